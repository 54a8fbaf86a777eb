// Two lowerings in two lanes: each step's program and plan and each emitted file, now beside what if.

/** @import { StepChange } from "../messages.js" */
/** @import { Listing, Lowering } from "../model/lowering.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { countsOf, rowsBetween } from "../model/align.js";
import { within } from "../model/figures.js";
import { counts, toggle } from "../parts/cards.js";
import { button, gapper, h, pick, put, quiet, take } from "../parts/dom.js";
import { panes } from "../parts/panes.js";
import { changeRows } from "./changes.js";

/**
 * What can be read in two lanes: a step with program and plan, or a file.
 * @typedef {object} Item
 * @property {string} glyph
 * @property {string} letter
 * @property {string} name
 * @property {string} words
 * @property {boolean} part whether it is a part of a step
 * @property {Partial<Record<"ir" | "plan" | "file", [Listing, Listing]>>} texts
 * @property {string} language of the file
 */

/** The marks of the steps, and the names of the files that differ. @typedef {{ steps: StepChange[], files: string[] }} Differences */

/** The plan is no file of its own here: the steps have it. @param {Lowering} now @param {Lowering} other @param {Differences} differences @returns {Item[]} */
function itemsOf(now, other, { steps, files }) {
  /** @type {(one: number, twin: number) => [Listing, Listing]} */
  const pair = (one, twin) => [now.listings[one], other.listings[twin]];
  return [
    ...steps.flatMap(([glyph, words], i) => {
      const [one, twin] = [now.steps[i], other.steps[i]];
      const { letter, name, part_of } = one ?? twin;
      // Of parts, those that do something else.
      if (part_of >= 0 && "=↓".includes(glyph)) return [];
      return [{ glyph, words, letter, name, part: part_of >= 0, language: "", texts: one && twin ? { ir: pair(one.ir.after, twin.ir.after), plan: pair(one.plan.after, twin.plan.after) } : {} }];
    }),
    ...now.files.flatMap(({ name, listing, language }) => {
      const twin = other.files.find((file) => file.name === name);
      const [glyph, words] = files.includes(name) ? ["●", "differs"] : ["=", "the same"];
      return twin && language !== "json" ? [{ glyph, words, letter: "", name, part: false, language, texts: { file: pair(listing, twin.listing) } }] : [];
    }),
  ];
}

/** @param {Explorer} store */
export function lanesView(store) {
  /** @type {Item[]} */
  let items = [];
  /** @type {HTMLElement[]} */
  let options = [];
  let chosen = 0;
  const changes = changeRows(store, "now and what if");
  const list = h("div.lanelist", { role: "listbox", label: "steps and files", onkeydown: (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!move) return;
    choose(chosen + move);
    take(event);
  } });
  const title = h("div.title");
  const tools = h("div.tools");
  const heads = h("div.laneheads", h("b", "now"), h("b", "what if"));
  const pane = h("section.pane.diffpane", { label: "lanes" }, title, tools, heads, changes.element);
  const element = h("div.lanesview", panes(store.state.remembered, "lanes", [["the steps and files", h("div.pane", list, h("p.q.scroll", "● rewrites, ◐ decides differently, ↓ passes on differences, = the same")), 27], ["", pane, 73]]));

  store.on(["part", "open", "collapsed", "hidden", "wrap", "lanes", "tab"], ({ tab }) => { if (tab === "What if" && items.length) draw(); });

  /** @param {Lowering} now @param {Lowering} other @param {Differences} differences */
  function show(now, other, differences) {
    items = itemsOf(now, other, differences);
    options = items.map(({ glyph, letter, name, part, words }, i) => h(part ? "div.step.part" : "div.step", { role: "option", title: `${name}: ${words}`, onclick: () => choose(i) },
      h("span", { class: `k ${{ "✖": "bad", "●": "tilde", "◐": "tilde" }[glyph] ?? "q"}`, role: "img", label: words }, glyph),
      h("span.letter", letter), h("span.name", name)));
    put(list, ...options);
    choose(Math.max(0, items.findIndex(({ glyph }) => "●◐".includes(glyph))));
  }

  /** @param {number} i */
  function choose(i) {
    if (!items.length) return;
    chosen = within(i, items.length - 1);
    pick(list, options, chosen);
    const { glyph, letter, name, words, texts } = items[chosen];
    const { part } = store.state;
    // What the step does otherwise, else what it passes on.
    const parts = /** @type {("ir" | "plan" | undefined)[]} */ ([{ "●": "ir", "◐": "plan" }[glyph], part, "ir", "plan"]);
    const differs = glyph !== "=" && parts.find((key) => key && `${texts[key]?.[0]}` !== `${texts[key]?.[1]}`);
    store.set({ part: differs || part, open: new Set(), say: `${letter} ${name}, ${words}` });
  }

  function draw() {
    const { state } = store;
    const { part, lanes } = state;
    const { letter, name, words, texts, language } = items[chosen];
    const kind = texts.file ? "file" : part;
    const pair = texts[kind];
    put(title, h("span.letter", letter), h("b", name), h("span.q.what", { title: words }, words), changes.pins.element);
    heads.hidden = !lanes || !pair;
    changes.element.hidden = !pair;
    /** @type {(key: "ir" | "plan", label: string) => Child} */
    const tab = (key, label) => {
      const [before, after] = texts[key] ?? [];
      return before && after ? button([label, " ", counts(countsOf(rowsBetween(before, after, key === "plan")))], () => store.set({ part: key, open: new Set() }), { "aria-pressed": key === kind, class: "tab" }) : null;
    };
    let hidden = 0;
    if (pair) {
      const [before, after] = pair;
      hidden = changes.show({
        name: `${chosen}${kind}`, before, after, rows: rowsBetween(before, after, kind === "plan"), split: lanes,
        language: { ir: "tir", plan: "json", file: language }[kind],
      });
    }
    put(tools, tab("ir", "program"), tab("plan", "plan"),
      pair && kind === "file" && counts(countsOf(rowsBetween(...pair, false))),
      gapper(), hidden > 0 && quiet(`${hidden} lines hidden`),
      toggle(store, "collapsed", "collapse", "c"), toggle(store, "lanes", "side by side", "s"), toggle(store, "wrap", "wrap", "w"));
  }
  return { element, show, keys: { ...changes.keys, j: () => choose(chosen + 1), k: () => choose(chosen - 1), s: () => store.set({ lanes: !store.state.lanes }) } };
}
