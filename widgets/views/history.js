// Where the pinned kernel lines went: how many lines of each step, and which of each kernel.

/** @import { Explorer } from "../model/state.js" */

import { range, ranges, runs } from "../model/figures.js";
import { KINDS, ROLES, countLinked, kernelFile, kernelName, linked, linkedShare } from "../model/lowering.js";
import { select } from "../model/state.js";
import { button, h, link, put, quiet } from "../parts/dom.js";

const BAR_PIXELS = 13;
// More links would be a long way for the Tab key.
const MOST_LINKS = 6;

/** @param {Explorer} store */
export function historyStrip(store) {
  const strip = h("div.history", { role: "group", label: "history of the pinned lines" });
  store.on(["hover", "pinned", "lowering", "step"], ({ lowering, step: index, hover, pinned }) => {
    const { steps, places, listings } = lowering;
    const lit = hover || pinned;
    const { coverage } = steps[index];
    const covered = h("span.q.coverage", { title: [...KINDS, "unknown"].map((kind, i) => `${coverage[i]} ${kind}`).join(", ") }, `${linkedShare(coverage) ?? 100} % of statements linked`);
    if (!lit) return put(strip, quiet("Hover over a line to see where it came from and where it went. Click or press Enter to pin it."), covered);
    const lines = [...lit.places].map((place) => places[place][1]).sort((a, b) => a - b);
    const found = steps.map((step) => countLinked(lowering, listings[step.ir.after], lit));
    const most = Math.max(1, ...found);
    put(strip,
      h("span", { title: lit.from }, !hover && quiet("pinned "), h("b", `L${lines.join(" L")}`)),
      h("span.cells", steps.map((step, i) => button([
        h("span.bar", { style: `height:${found[i] ? 3 + Math.round((BAR_PIXELS * found[i]) / most) : 0}px` }), h("span.lab", step.letter),
      ], () => select(store, i), { class: i === index ? "cell now" : "cell", title: `${step.letter} ${step.name}: ${found[i]} lines` }))),
      ROLES.map((role) => {
        const { listing } = kernelFile(lowering, role);
        const own = listing ? linked(lowering, listing, lit) : [];
        const best = Math.min(...own.map(([, kind]) => kind));
        const all = runs(own.map(([i]) => i));
        const file = kernelName(role);
        /** @param {string} text @param {number} line */
        const go = (text, line) => link(text, () => {
          // The file is shown before the line is looked for in it.
          store.set({ file });
          store.set({ tab: "Code", goTo: line + 1 });
        }, { class: `link ${KINDS[best][0]}`, title: `${file} line ${line + 1}` });
        return listing && h("span.file", quiet(`${role} `),
          hover || !own.length ? h("span", { class: KINDS[best]?.[0] ?? "q" }, ranges(own.map(([i]) => i)) || "–") : [
            all.slice(0, MOST_LINKS).map((run, k) => [k > 0 && ", ", go(range(run), run[0])]),
            all.length > MOST_LINKS && [", ", go(`+${all.length - MOST_LINKS}`, all[MOST_LINKS][0])],
          ]);
      }), covered);
  });
  return strip;
}
