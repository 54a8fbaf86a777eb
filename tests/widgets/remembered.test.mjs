import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Remembered } from "../../widgets/model/remembered.js";

class Model {
  constructor(arrangement) { this.state = { arrangement }; this.saved = 0; }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; }
  save_changes() { this.saved++; }
}

/** A storage that holds one text, or throws at whoever touches it. */
const storage = (text) => {
  const forbidden = () => { throw new Error("forbidden"); };
  const value = text === undefined ? { getItem: forbidden, setItem: forbidden } : { getItem: () => text, setItem: (_, now) => { text = now; } };
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });
};
afterEach(() => delete globalThis.localStorage);

test("the widget and the browser remember, each for the next explorer", () => {
  storage("{}");
  const model = new Model();
  new Remembered(model).keep("code", [30, 70]);
  assert.deepEqual([model.state.arrangement, model.saved], [{ code: [30, 70] }, 1]);
  assert.deepEqual(new Remembered(model).numbers("code", [1, 1]), [30, 70]);
  assert.deepEqual(new Remembered(new Model()).numbers("code", [1, 1]), [30, 70]);
  new Remembered(model).keep("code", []);
  assert.deepEqual(new Remembered(new Model()).numbers("code", [1, 1]), [1, 1]);
});

test("what the widget remembers goes before what the browser does", () => {
  storage('{"code":[1,3],"steps":[1,2]}');
  const remembered = new Remembered(new Model({ code: [5, 5] }));
  assert.deepEqual([remembered.numbers("code", [1, 1]), remembered.numbers("steps", [1, 1])], [[5, 5], [1, 2]]);
});

test("a browser that forbids its storage leaves it to the widget", () => {
  storage();
  const model = new Model();
  const remembered = new Remembered(model);
  remembered.keep("code", [30, 70]);
  assert.deepEqual(remembered.numbers("code", [1, 1]), [30, 70]);
  assert.deepEqual(new Remembered(model).numbers("code", [1, 1]), [30, 70]);
});

test("what cannot be shares of these panes counts for nothing", () => {
  for (const wrong of ['{"code":[1,2,3]}', '{"code":[0,1]}', '{"code":["1",2]}', '{"code":"x"}', "null", "[", "7"]) {
    storage(wrong);
    assert.deepEqual(new Remembered(new Model()).numbers("code", [1, 1]), [1, 1], wrong);
  }
});
