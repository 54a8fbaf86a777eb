// The bar of launches above an explorer of several: each with the tensors that go to others; one is shown.

/** @import { LaunchState } from "../messages.js" */
/** @import { Lowering } from "../model/lowering.js" */
/** @import { Explorer } from "../model/state.js" */

import { linesOf, unpacked } from "../model/lowering.js";
import { litByLines } from "../model/place.js";
import { explore } from "../model/state.js";
import { all, closest, find, focusOn, h, markup, set, take } from "./dom.js";

/** What Python calls the lowering of a launch. @param {number} number */
export const variantOf = (number) => `launch ${number}`;

/** Nothing where there is one launch only. @param {Explorer} store @param {LaunchState[]} launches @param {string} drawing */
export function launchBar(store, launches, drawing) {
  if (!launches.length) return null;
  const { launch: first, lowering: at } = store.state;
  /** @type {Map<number, Lowering>} */
  const lowerings = new Map([[first, at]]);
  let wanted = first;
  const element = h("nav.launches", { label: "launches", onclick: choose, onkeydown: walk }, ...markup(drawing).childNodes);
  set(find(element, "svg") ?? element, { role: "group" });
  const boxes = all(element, "[data-launch]");
  for (const box of boxes) set(box, { role: "button", label: find(box, "title")?.textContent });

  store.on(["launch"], ({ launch }) => boxes.forEach((box, i) => {
    box.setAttribute("aria-current", `${i === launch}`);
    box.setAttribute("tabindex", i === launch ? "0" : "-1");
  }));

  /** @param {number} number */
  async function open(number) {
    wanted = number;
    if (!lowerings.has(number)) lowerings.set(number, await unpacked(launches[number].data));
    const lowering = lowerings.get(number);
    const { state } = store;
    if (!lowering || wanted !== number || state.lowering === lowering) return;
    const { draft, steps } = { draft: state.draft, steps: lowering.steps };
    const failed = steps.findLastIndex((step) => step.error);
    const same = steps.findIndex(({ letter }) => letter === state.lowering.steps[state.step].letter);
    explore(store, { lowering, original: null, variant: variantOf(number) }, failed < 0 ? same : failed, {
      launch: number, pinned: litByLines(lowering, linesOf(state.lowering, state.pinned)),
    });
    // The text is that of all launches.
    store.set({ draft, say: `${launches[number].name}, ${launches[number].state}` });
  }

  /** @param {Event} event */
  function choose(event) {
    const box = closest(event.target, "[data-launch]");
    if (box) open(Number(box.dataset.launch));
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const { key } = event;
    const here = boxes.findIndex((box) => box === event.target);
    const next = boxes[here + ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? boxes.length)];
    if (next) focusOn(next);
    else if (key === "Enter" || key === " ") choose(event);
    else return;
    take(event);
  }
  return element;
}
