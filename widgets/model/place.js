// Where a reader is, in words that can be written down: a tab, the letter of a step, kernel lines, a file.

/** @import { Place } from "../messages.js" */
/** @import { Lowering } from "./lowering.js" */
/** @import { Explorer, State } from "./state.js" */

import { linesOf, litByLine } from "./lowering.js";
import { select } from "./state.js";

/** @param {Pick<State, "lowering" | "tab" | "step" | "pinned" | "file">} state @returns {Place} */
export function placeOf({ lowering, tab, step, pinned, file }) {
  return { tab, step: lowering.steps[step]?.letter ?? "", pin: linesOf(lowering, pinned).join(), file };
}

/** What opens the explorer there again, in Python: of launch `number`, from 0, where there are several. @param {Place} place @param {number} number -1 for one launch */
export function viewText({ tab, step, pin, file }, number) {
  const named = Object.entries({ tab, step, file }).flatMap(([name, value]) => (value ? [`${name}=${JSON.stringify(value)}`] : []));
  if (pin) named.push(`pin=${pin.split(",")[0]}`);
  return `ex${number < 0 ? "" : `.launches[${number}]`}.view(${named.join(", ")})`;
}

/** What several kernel lines light up together. @param {Lowering} lowering @param {number[]} lines */
export function litByLines(lowering, lines) {
  const lit = lines.map((line) => litByLine(lowering, line)).filter((one) => one !== null);
  return lit.length ? { places: new Set(lit.flatMap(({ places }) => [...places])), from: lit.map(({ from }) => from).join(", ") } : null;
}

/**
 * Goes there. What the place does not name stays, and so does what it names and there is not, which is said.
 * @param {Explorer} store
 * @param {Place} place
 * @param {string[]} tabs
 */
export function goTo(store, { lowering: other, tab = "", step, pin, file }, tabs) {
  const { state } = store;
  const { lowering } = state;
  const lines = pin ? pin.split(",") : [];
  const pinned = litByLines(lowering, lines.map(Number));
  const at = lowering.steps.findIndex(({ letter }) => letter === step);
  const wanted = tabs.find((one) => one.toLowerCase() === tab.toLowerCase());
  const patch = {
    tab: wanted ?? state.tab,
    pinned: pin === "" || pinned ? pinned : state.pinned,
    file: file ?? state.file,
  };
  if (at < 0) store.set(patch);
  else select(store, at, patch);
  const lost = [
    other && `lowering ${other}`, tab && !wanted && `tab ${tab} (there are ${tabs.join(", ")})`, step && at < 0 && `step ${step}`, lines.some((line) => !litByLine(lowering, Number(line))) && `kernel line ${pin}`,
    file && !lowering.files.some(({ name }) => name === file) && `file ${file}`,
  ].filter(Boolean).join(", ");
  store.set({ lost: lost && `Not here: ${lost}.` });
}
