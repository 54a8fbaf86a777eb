import assert from "node:assert/strict";
import { test } from "node:test";
import { along, keys, meaning, neighbour } from "../../widgets/model/keys.js";
import { withListings } from "../../widgets/model/lowering.js";
import { explore, opened, select, totals } from "../../widgets/model/state.js";
import { Store } from "../../widgets/model/store.js";

test("listeners hear of the keys that they want, where the value is new", () => {
  const heard = [];
  const store = new Store({ a: 1, b: 1 });
  store.on(["a"], ({ a }) => heard.push(a));
  store.set({ b: 2 });
  store.set({ a: 1 });
  store.set({ a: 2, b: 3 });
  assert.deepEqual(heard, [1, 2]);
  assert.deepEqual(store.state, { a: 2, b: 3 });
});

test("a listener may set something itself", () => {
  const store = new Store({ a: 1, double: 0 });
  store.on(["a"], ({ a }) => store.set({ double: 2 * a }));
  store.set({ a: 4 });
  assert.equal(store.state.double, 8);
});

const none = [0, 0, 0, 0, 0];
const step = (name, ir, plan, error = null) => ({ name, part_of: -1, state: "done", ir: { counts: ir }, plan: { counts: plan }, error });
const data = (...steps) => withListings({ listings: [], files: [], places: [["k.py", 7]], target: "n150", steps });
const some = data(step("trace", none, none), step("plan", none, [2, 1, 0, 0, 0]), step("rewrite", [3, 0, 1, 0, 0], [1, 0, 0, 0, 0]));

test("an explorer opens at the first step that changes the program", () => {
  const { state } = opened(some, { stale: "old" });
  assert.deepEqual([state.step, state.part, state.stale, state.pinned], [2, "ir", "old", null]);
  assert.equal(opened(data(step("trace", none, none)), {}).state.step, 0);
});

test("an explorer of a failed lowering opens there, with the kernel line pinned", () => {
  const { state } = opened(data(step("rewrite", [1, 0, 0, 0, 0], none), step("fits", none, none, { line: 7 })), {});
  assert.equal(state.step, 1);
  assert.deepEqual(state.pinned.places, new Set([0]));
});

test("a step shows its plan where only that has changed", () => {
  const store = opened(some, {});
  select(store, 1);
  assert.deepEqual([store.state.part, store.state.say], ["plan", "step 2 of 3, plan, done, 2 added, 1 removed"]);
  select(store, 9);
  assert.deepEqual([store.state.step, store.state.part], [2, "ir"]);
  select(store, -3);
  assert.deepEqual([store.state.step, store.state.part], [0, "ir"]);
  assert.deepEqual(totals(some.steps[2]), [4, 0, 1, 0, 0]);
});

test("another lowering starts with nothing lit, open or edited", () => {
  const store = opened(some, { pinned: { places: new Set([0]), from: "" }, edits: { reader: "" } });
  store.set({ open: new Set([3]) });
  const other = data(step("trace", [1, 0, 0, 0, 0], none));
  explore(store, { lowering: other, original: some, variant: "1" }, 5, { tab: "Steps" });
  const { lowering, original, variant, step: at, pinned, open, edits } = store.state;
  assert.deepEqual([lowering, original, variant, at, pinned, open.size, edits], [other, some, "1", 0, null, 0, {}]);
});

test("edits stay with another lowering for which the same text was emitted", () => {
  const files = ["reader", "compute"].map((role, listing) => ({ name: `${role}.cpp`, listing }));
  const emitted = (reader, compute) => withListings({ ...some, files, texts: [reader, compute], listings: [[0, 0, 0, 0], [1, 0, 0, 0]] });
  const [first, other] = [emitted("a", "b"), emitted("a", "c")];
  const store = opened(first, { edits: { reader: "x", compute: "y" }, emitted: { reader: "a\n", compute: "b\n" } });
  explore(store, { lowering: other, original: first, variant: "1" }, 0);
  assert.deepEqual(store.state.edits, { reader: "x" });
  explore(store, { lowering: first, original: null, variant: "" }, 0, store.state.back);
  assert.deepEqual(store.state.edits, { reader: "x", compute: "y" });
});

const TABS = ["Steps", "Cores", "Run"];
const steps = { tab: "Steps", hover: null, pinned: null };

test("keys mean something to the whole explorer", () => {
  assert.deepEqual(["j", "k", "ArrowDown", "ArrowUp"].map((key) => meaning(key, steps, TABS)), [{ move: 1 }, { move: -1 }, { move: 1 }, { move: -1 }]);
  assert.deepEqual(["c", "s", "w"].map((key) => meaning(key, steps, TABS)), [{ turn: "collapsed" }, { turn: "split" }, { turn: "wrap" }]);
  assert.deepEqual(["Code", "GPU", "What if"].map((tab) => meaning("w", { ...steps, tab }, TABS)), [{ turn: "wrapCode" }, { turn: "wrapCode" }, { turn: "wrap" }]);
  assert.deepEqual(["1", "3", "0", "4"].map((key) => meaning(key, steps, TABS)), [{ tab: "Steps" }, { tab: "Run" }, null, null]);
  assert.deepEqual(["?", "x", "Enter", " "].map((key) => meaning(key, steps, TABS)), ["help", null, null, null]);
});

test("arrows change the step only where the steps are", () => {
  assert.equal(meaning("ArrowDown", { ...steps, tab: "Run" }, TABS), null);
  assert.deepEqual(meaning("j", { ...steps, tab: "Run" }, TABS), { move: 1 });
});

test("Escape leaves the full screen first, then unpins, then leaves", () => {
  assert.deepEqual(meaning("Escape", { ...steps, pinned: {}, full: true }, TABS), { turn: "full" });
  assert.deepEqual(meaning("f", steps, TABS), { turn: "full" });
  assert.equal(meaning("Escape", { ...steps, pinned: {} }, TABS), "unpin");
  assert.equal(meaning("Escape", { ...steps, hover: {} }, TABS), "unpin");
  assert.equal(meaning("Escape", steps, TABS), "leave");
});

test("the list of keys names the tabs", () => assert.ok(keys(TABS).some(([key, what]) => key === "1 … 3" && what === "Steps, Cores, Run")));

test("arrows go round a list and over a floorplan", () => {
  assert.deepEqual([along("ArrowRight", 2, 3), along("ArrowLeft", 0, 3), along("ArrowUp", 0, 3)], [0, 2, null]);
  const near = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Enter"].map((key) => neighbour(key, "3,4"));
  assert.deepEqual(near, ["2,4", "4,4", "3,3", "3,5", null]);
});
