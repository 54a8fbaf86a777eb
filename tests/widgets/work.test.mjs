import assert from "node:assert/strict";
import { test } from "node:test";
import { Kernel } from "../../widgets/model/questions.js";
import { Store } from "../../widgets/model/store.js";
import { elapsed, followOthers, limitOf, share, work } from "../../widgets/model/work.js";

class Model {
  sent = [];
  heard = new Map();
  constructor(state) { this.state = state; }
  get(name) { return this.state[name]; }
  on(name, listener) { this.heard.set(name, listener); }
  send(question) { this.sent.push(question); }
  answer(id, message) { this.heard.get("msg:custom")({ id, ...message }); }
}
const RUN = { id: "a", do: "run", variant: "", words: "on emulator", since: 2 };

function start(running = []) {
  const model = new Model({ running });
  const store = new Store({ busy: "", progress: "", followed: null, since: 0 });
  return { model, store, kernel: new Kernel(model, () => "", () => {}) };
}

test("an explorer is busy until the answer is there, whatever it is", async () => {
  const { store } = start();
  const asked = work(store, "check", (progressed) => {
    progressed("1 of 2: A1");
    assert.deepEqual([store.state.busy, store.state.progress], ["check", "1 of 2: A1"]);
    return Promise.reject(new Error("no"));
  });
  await assert.rejects(asked, /no/);
  assert.deepEqual([store.state.busy, store.state.progress], ["", ""]);
});

test("what another page asked for is followed to its answer", async () => {
  const { model, store, kernel } = start([RUN]);
  followOthers(store, kernel);
  assert.deepEqual([store.state.busy, store.state.since, store.state.followed.words], ["run", 2000, "on emulator"]);
  model.answer("a", { state: "progress", text: "half" });
  assert.equal(store.state.progress, "half");
  model.answer("a", { state: "done", html: "x" });
  assert.equal((await store.state.followed.answer).html, "x");
  model.state.running = [];
  followOthers(store, kernel);
  assert.deepEqual([store.state.busy, store.state.followed], ["", null]);
});

test("what ended unheard is not waited for", () => {
  const { model, store, kernel } = start([RUN]);
  followOthers(store, kernel);
  model.state.running = [];
  followOthers(store, kernel);
  assert.deepEqual([store.state.busy, store.state.followed], ["", null]);
});

test("one's own questions are not followed", async () => {
  const { model, store, kernel } = start();
  kernel.ask({ do: "check" });
  model.state.running = [{ ...RUN, id: model.sent[0].id }];
  followOthers(store, kernel);
  assert.deepEqual([store.state.busy, store.state.followed], ["", null]);
});

test("cancelling waits for nothing", () => {
  const { model, kernel } = start();
  kernel.cancel();
  model.heard.get("comm_live_update")();
  kernel.cancel();
  assert.deepEqual(model.sent, [{ do: "cancel" }]);
});

test("a kernel that is gone ends what was followed", async () => {
  const { model, store, kernel } = start([RUN]);
  followOthers(store, kernel);
  const { answer } = store.state.followed;
  model.heard.get("comm_live_update")();
  await assert.rejects(answer, { kind: "KernelGone" });
  assert.deepEqual([store.state.busy, store.state.followed], ["", null]);
});

test("words for a limit, a time and a share", () => {
  assert.deepEqual(["", "5", "0.5", "0", "-1", "x"].map((limit) => limitOf({ limit })), [null, 5, 0.5, null, null, null]);
  assert.deepEqual([0, 59_900, 125_000].map((now) => elapsed({ since: 0 }, now)), ["0 s", "59 s", "2 min 5 s"]);
  assert.equal(elapsed({ since: 5000 }, 0), "0 s");
  assert.deepEqual(share("3 of 15: A3 equals the reference"), [3, 15]);
  assert.equal(share("compiling"), undefined);
});
