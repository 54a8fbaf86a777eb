// Estimates: asked for once for each lowering; what belongs to another lowering is not shown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { estimateOf, followEstimates } from "../../widgets/model/estimates.js";
import { Store } from "../../widgets/model/store.js";

/** A kernel that notes what it is asked, and answers when it is told to. */
function asked({ live = true, missing = "" } = {}) {
  const questions = [];
  return {
    questions,
    live,
    missing: () => missing,
    ask: (question) => new Promise((done, failed) => questions.push({ ...question, done: (badge) => done({ estimate: { badge } }), failed })),
  };
}

const lowering = (error = null) => ({ steps: [{ error }] });
const inputs = { inputs: "random", seed: 0, names: "" };
const kinds = [["random", "", true], ["ones", "", false]];
const opened = (first) => new Store({ lowering: first, variant: "", estimate: null, noEstimate: "", estimates: new WeakMap(), inputs, kinds });
const settled = () => new Promise((done) => setTimeout(done));

test("each lowering is asked about once", async () => {
  const [store, kernel, other] = [opened(lowering()), asked(), lowering()];
  followEstimates(store, kernel, undefined);
  const both = [estimateOf(store, kernel, other, "1"), estimateOf(store, kernel, other, "1")];
  assert.deepEqual(kernel.questions.map(({ do: what, variant }) => [what, variant]), [["estimate", ""], ["estimate", "1"]]);
  kernel.questions[1].done("b");
  assert.deepEqual(await Promise.all(both), [{ badge: "b" }, { badge: "b" }]);
  assert.equal(store.state.estimate, null);
  kernel.questions[0].done("a");
  await settled();
  assert.equal(store.state.estimate.badge, "a");
  store.set({ lowering: other, variant: "1" });
  await settled();
  assert.equal(store.state.estimate.badge, "b");
  assert.equal(kernel.questions.length, 2);
});

test("an answer that comes late does not stand for another lowering", async () => {
  const [store, kernel] = [opened(lowering()), asked()];
  followEstimates(store, kernel, undefined);
  store.set({ lowering: lowering(), variant: "1" });
  kernel.questions[0].done("old");
  await settled();
  assert.equal(store.state.estimate, null);
  kernel.questions[1].failed({ kind: "UsageError" });
  await settled();
  assert.deepEqual([store.state.estimate, store.state.noEstimate], [null, { kind: "UsageError" }]);
});

test("what elements decide is asked about with the inputs, and again with others", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const wait = async () => { for (let i = 0; i < 9; i++) await Promise.resolve(); };
  const [store, kernel] = [opened(lowering()), asked()];
  followEstimates(store, kernel, undefined);
  kernel.questions[0].failed({ code: "TTX-U022" });
  await wait();
  const { do: what, variant, words, inputs: kind, seed } = kernel.questions[1];
  assert.deepEqual([what, variant, words, kind, seed], ["estimate", "", "inputs random, seed 0", "random", 0]);
  assert.equal(store.state.noEstimate, "");
  kernel.questions[1].done("for these");
  await wait();
  assert.equal(store.state.estimate.badge, "for these");
  context.mock.timers.tick(1000);
  await wait();
  assert.equal(kernel.questions.length, 2);
  // One question for all that is chosen within half a second.
  for (const seed of [1, 12, 123]) store.set({ inputs: { ...inputs, seed } });
  context.mock.timers.tick(499);
  await wait();
  assert.equal(kernel.questions.length, 2);
  context.mock.timers.tick(1);
  await wait();
  assert.equal(store.state.estimate, null);
  assert.deepEqual([kernel.questions.length, kernel.questions[2].seed], [3, 123]);
  // The names are wrong: that is said, and others can be chosen.
  kernel.questions[2].failed({ code: "TTX-U010" });
  await wait();
  assert.deepEqual(store.state.noEstimate, { code: "TTX-U010" });
  store.set({ inputs: { ...inputs, inputs: "ones" } });
  context.mock.timers.tick(500);
  await wait();
  kernel.questions[3].done("of ones");
  await wait();
  assert.equal(store.state.estimate.badge, "of ones");
});

test("other inputs change nothing where elements decide nothing", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const [store, kernel] = [opened(lowering()), asked()];
  followEstimates(store, kernel, undefined);
  kernel.questions[0].done("always");
  for (let i = 0; i < 9; i++) await Promise.resolve();
  store.set({ inputs: { ...inputs, inputs: "ones" } });
  context.mock.timers.tick(1000);
  for (let i = 0; i < 9; i++) await Promise.resolve();
  assert.deepEqual([kernel.questions.length, store.state.estimate.badge], [1, "always"]);
});

test("nothing is asked about a lowering that failed, or where nobody could answer", async () => {
  for (const [first, kernel, why] of [
    [lowering({}), asked(), ""],
    [lowering(), asked({ missing: "needs the kernel" }), "needs the kernel"],
    [lowering(), asked({ live: false, missing: "no Python" }), ""],
  ]) {
    const store = opened(first);
    followEstimates(store, kernel, undefined);
    await settled();
    assert.deepEqual([kernel.questions.length, store.state.noEstimate], [0, why]);
  }
});

test("what a page brings along is shown without a question", async () => {
  const [store, kernel] = [opened(lowering()), asked({ live: false, missing: "no Python" })];
  followEstimates(store, kernel, { badge: "brought" });
  await settled();
  assert.equal(store.state.estimate.badge, "brought");
  assert.equal(kernel.questions.length, 0);
});
