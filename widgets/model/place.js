// Where a reader is, in words that can be written down: a tab, the letter of a step, kernel lines, a file.

/** @import { Place } from "../messages.js" */
/** @import { Explorer, State } from "./state.js" */

import { linesOf, litByLine } from "./lowering.js";
import { select } from "./state.js";

/** @param {Pick<State, "lowering" | "tab" | "step" | "pinned" | "file">} state @returns {Place} */
export function placeOf({ lowering, tab, step, pinned, file }) {
  return { tab, step: lowering.steps[step]?.letter ?? "", pin: linesOf(lowering, pinned).join(), file };
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
  const lit = lines.map((line) => litByLine(lowering, Number(line))).filter((one) => one !== null);
  const pinned = lit.length ? { places: new Set(lit.flatMap(({ places }) => [...places])), from: lit.map(({ from }) => from).join(", ") } : null;
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
    other && `lowering ${other}`, tab && !wanted && `tab ${tab} (there are ${tabs.join(", ")})`, step && at < 0 && `step ${step}`, lit.length < lines.length && `kernel line ${pin}`,
    file && !lowering.files.some(({ name }) => name === file) && `file ${file}`,
  ].filter(Boolean).join(", ");
  store.set({ lost: lost && `Not here: ${lost}.` });
}
