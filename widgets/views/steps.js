// The steps, the kernel, what the selected step changed, and where a kernel line went.

/** @import { Step } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { along } from "../model/keys.js";
import { select, totals } from "../model/state.js";
import { isIdle } from "../model/steps.js";
import { meaning } from "../model/terms.js";
import { counts } from "../parts/cards.js";
import { choice, focusIn, h, pick, put, take } from "../parts/dom.js";
import { kernelPane } from "../parts/kernel.js";
import { panes } from "../parts/panes.js";
import { diffPane } from "./diff.js";
import { historyStrip } from "./history.js";

/** @param {Explorer} store @param {Kernel} kernel */
export function stepsView(store, kernel) {
  const { remembered } = store.state;
  // The list comes first: what the focus wants to know of the layout would cost more after the rows have changed.
  const steps = stepList(store);
  const { element, error, keys, pins, rule } = diffPane(store);
  const { view, bar, body, toggle } = kernelPane(store, kernel);
  const source = h("details.pane.source", { open: true }, h("summary", "kernel"), bar, body);
  /** @param {number} direction */
  const follow = (direction) => (focusIn(view.element) ? view.pins : pins).step(direction);
  return {
    element: h("div.stepsview",
      error,
      panes(remembered, "steps", [
        ["the list of steps", steps, 19],
        ["", panes(remembered, "kernel and step", [["the kernel", source, 36], ["", element, 64]]), 81],
      ]),
      h("div.underneath", historyStrip(store), rule)),
    keys: { ...keys, e: toggle, N: () => follow(1), P: () => follow(-1) },
    // Lists that are out of the page have no height.
    shown: () => [view.pins, pins].forEach((one) => one.reveal()),
  };
}

/** @param {Explorer} store */
function stepList(store) {
  const list = h("div.steplist", { role: "listbox", label: "steps", onkeydown: (event) => {
    const to = along(event.key, store.state.step, options.length);
    if (to === null) return;
    select(store, to);
    take(event);
  } });
  const chooser = choice("step", () => select(store, chooser.selectedIndex));
  chooser.className = "stepchoice";
  /** @type {HTMLElement[]} */
  let options;
  store.on(["lowering"], ({ lowering: { steps, terms }, before }) => {
    /** @param {Step} step */
    const isNew = (step) => before && `${totals(step)}` !== `${before.steps.filter(({ letter }) => letter === step.letter).map(totals)}`;
    options = steps.map((step, i) => h("div", {
      class: isIdle(step) ? "dot" : `step ${step.part_of < 0 ? "" : "part"} ${step.glyph === "○" ? "noop" : ""} ${isNew(step) ? "flash" : ""}`,
      role: "option", "aria-setsize": steps.length, "aria-posinset": i + 1, label: isIdle(step) ? `${step.letter} ${step.name}: ${step.state}` : null,
      "data-step": i, title: `${isIdle(step) ? `${step.letter} ` : ""}${step.name}: ${step.summary}`, onclick: () => select(store, i),
    },
    !isIdle(step) && [h("span", { class: `k ${{ "✖": "bad", "○": "q" }[step.glyph] ?? "tilde"}`, role: "img", label: step.state, title: step.state }, step.glyph),
    h("span.letter", step.letter),
    h("span.name", step.name),
    counts(totals(step))]));
    /** What stands for the parts of step `i`. @param {number} i @param {boolean} idle */
    const parts = (i, idle) => options.filter((_, k) => steps[k].part_of === i && isIdle(steps[k]) === idle);
    put(list, ...steps.map(({ stage, part_of }, i) => part_of < 0 && [
      stage !== steps[i - 1]?.stage && h("div.stage", { role: "presentation", "data-meaning": meaning(terms, stage) }, stage),
      options[i], parts(i, false), h("div.dots", { role: "presentation" }, parts(i, true)),
    ]));
    put(chooser, ...steps.map(({ glyph, letter, name, part_of }) => h("option", `${part_of < 0 ? "" : "\u2003"}${glyph} ${letter} ${name}`)));
  });
  store.on(["matches", "lowering"], ({ matches }) => options.forEach((option, i) => {
    const count = matches.reduce((sum, { step, matches }) => sum + (step === i ? matches.length : 0), 0);
    if (count) option.dataset.hits = `${count}`;
    else delete option.dataset.hits;
  }));
  store.on(["step", "lowering"], ({ step }) => {
    pick(list, options, step);
    chooser.selectedIndex = step;
  });
  return h("div.pane.steppane", list, chooser);
}
