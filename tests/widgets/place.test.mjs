import assert from "node:assert/strict";
import { test } from "node:test";
import { withListings } from "../../widgets/model/lowering.js";
import { goTo, placeOf, viewText } from "../../widgets/model/place.js";
import { opened } from "../../widgets/model/state.js";

const TABS = ["Steps", "Code", "What if"];
const none = [0, 0, 0, 0, 0];
const step = (letter) => ({ name: letter, letter, part_of: -1, state: "done", ir: { counts: none }, plan: { counts: none } });
const lowering = withListings({ listings: [], files: [{ name: "a" }, { name: "reader.cpp" }], places: [["k.py", 7], ["k.py", 9], ["k.py", 7]], steps: ["A0", "B1", "C2"].map(step) });
const explorer = () => opened(lowering, {});

test("a place leads there, and is what it was made from", () => {
  const store = explorer();
  for (const place of [
    { tab: "Code", step: "B1", pin: "7", file: "reader.cpp" },
    { tab: "What if", step: "C2", pin: "7,9", file: "" },
    { tab: "Steps", step: "A0", pin: "", file: "x" },
  ]) {
    goTo(store, place, TABS);
    assert.deepEqual(placeOf(store.state), place);
  }
});

test("a pinned line is pinned in all of its places", () => {
  const store = explorer();
  goTo(store, { pin: "7" }, TABS);
  assert.deepEqual([...store.state.pinned.places], [0, 2]);
  assert.equal(store.state.pinned.from, "kernel line 7");
});

test("what is not named and what there is not stays", () => {
  const store = explorer();
  goTo(store, { tab: "code", step: "C2", pin: "9", file: "a" }, TABS);
  const before = placeOf(store.state);
  assert.equal(before.tab, "Code");
  for (const place of [{}, { tab: "Coffee" }, { step: "Z9" }, { pin: "8" }, { pin: "x" }]) {
    goTo(store, place, TABS);
    assert.deepEqual(placeOf(store.state), before, JSON.stringify(place));
  }
});

test("what a place names and there is not is said, until another one leads somewhere", () => {
  const store = explorer();
  for (const [place, words] of [
    [{ lowering: "relu", step: "B1" }, "lowering relu"], [{ step: "Z9", pin: "7,8" }, "step Z9, kernel line 7,8"], [{ file: "<b>" }, "file <b>"],
    [{ tab: "Coffee" }, "tab Coffee (there are Steps, Code, What if)"],
  ]) {
    goTo(store, place, TABS);
    assert.equal(store.state.lost, `Not here: ${words}.`);
  }
  goTo(store, { step: "B1", pin: "", file: "a" }, TABS);
  assert.equal(store.state.lost, "");
});

test("a place is written as the call that leads there", () => {
  assert.equal(viewText({ tab: "Code", step: "B1", pin: "7,9", file: "reader.cpp" }, -1), 'ex.view(tab="Code", step="B1", file="reader.cpp", pin=7)');
  assert.equal(viewText({ tab: "Steps", step: "A0", pin: "", file: "" }, 1), 'ex.launches[1].view(tab="Steps", step="A0")');
});
