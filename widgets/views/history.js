// Where the pinned kernel lines went: how many lines of each step, and which of each kernel.

/** @import { Step } from "../messages.js" */
/** @import { Explorer } from "../model/state.js" */

import { range, ranges, runs } from "../model/figures.js";
import { KINDS, ROLES, countLinked, kernelFile, kernelName, linesOf, linked, linkedShare } from "../model/lowering.js";
import { select } from "../model/state.js";
import { button, classed, h, put, quiet } from "../parts/dom.js";
import { codeLink } from "../parts/faults.js";

const BAR_PIXELS = 11;
// More links would be a long way for the Tab key.
const MOST_LINKS = 6;

/** The letter of a step; of a part, what its letter adds to that of its step: ".4". @param {Step[]} steps @param {number} i */
const labelOf = (steps, i) => steps[i].letter.slice(steps[steps[i].part_of]?.letter.length);

/** @param {Explorer} store */
export function historyStrip(store) {
  // Hovering changes these often, so they stay.
  const hint = quiet("Hover over a line to see where it came from and where it went. Click or press Enter to pin it.");
  const title = h("span");
  const cells = h("span.cells");
  const files = ROLES.map(() => h("span.file"));
  const covered = h("span.q.coverage");
  const strip = h("div.history", { role: "group", label: "history of the pinned lines" });
  /** The steps that have cells: of parts, those that change the program. @type {number[]} */
  let shown;
  store.on(["lowering"], ({ lowering: { steps } }) => {
    shown = [...steps.keys()].filter((i) => steps[i].part_of < 0 || steps[i].ir.counts.some(Boolean));
    put(cells, shown.map((i) => button([h("span.bar"), h("span.lab", labelOf(steps, i))], () => select(store, i), { class: "cell" })));
  });
  store.on(["hover", "pinned", "lowering", "step"], ({ lowering, step: index, hover, pinned }) => {
    const { steps, listings } = lowering;
    const lit = hover || pinned;
    const { coverage } = steps[index];
    const share = `${linkedShare(coverage) ?? 100} % of statements linked`;
    covered.title = [...KINDS, "unknown"].map((kind, i) => `${coverage[i]} ${kind}`).join(", ");
    if (covered.textContent !== share) put(covered, share);
    if (!strip.contains(lit ? cells : hint)) put(strip, lit ? [title, cells, files] : [hint, covered]);
    if (!lit) return;
    const found = shown.map((i) => countLinked(lowering, listings[steps[i].ir.after], lit));
    const now = shown.includes(index) ? index : steps[index].part_of;
    const most = Math.max(1, ...found);
    title.title = lit.from;
    put(title, !hover && quiet("pinned "), h("b", `L${linesOf(lowering, lit).join(" L")}`));
    shown.forEach((number, i) => {
      const { letter, name } = steps[number];
      const cell = /** @type {HTMLElement} */ (cells.children[i]);
      const bar = /** @type {HTMLElement} */ (cell.firstChild);
      bar.style.height = `${found[i] ? 3 + Math.round((BAR_PIXELS * found[i]) / most) : 0}px`;
      cell.title = `${letter} ${name}: ${found[i]} lines`;
      classed(cell, "now", number === now);
    });
    files.forEach((element, k) => {
      const role = ROLES[k];
      const { listing } = kernelFile(lowering, role);
      element.hidden = !listing;
      const own = listing ? linked(lowering, listing, lit) : [];
      const best = Math.min(...own.map(([, kind]) => kind));
      const all = runs(own.map(([i]) => i));
      const file = kernelName(role);
      /** @param {string} text @param {number} line */
      const go = (text, line) => codeLink(store, file, line + 1, text, { class: `link ${KINDS[best][0]}`, title: `${file} line ${line + 1}` });
      put(element, quiet(`${role} `), hover || !own.length ? h("span", { class: KINDS[best]?.[0] ?? "q" }, ranges(own.map(([i]) => i)) || "–") : [
        all.slice(0, MOST_LINKS).map((run, k) => [k > 0 && ", ", go(range(run), run[0])]),
        all.length > MOST_LINKS && [", ", go(`+${all.length - MOST_LINKS}`, all[MOST_LINKS][0])],
      ]);
    });
  });
  return strip;
}
