// Which rule made a line of the selected step, what it replaced, and what the plan says of it.

/** @import { Explorer } from "../model/state.js" */
/** @import { changeRows } from "./changes.js" */

import { range, runs } from "../model/figures.js";
import { landing, litByOrigins } from "../model/lowering.js";
import { closest, h, link, put, quiet, set } from "../parts/dom.js";

/**
 * The card of the row under the pointer, else of the one that the cursor is on.
 * @param {Explorer} store
 * @param {ReturnType<changeRows>} changes
 * @param {() => boolean} isStep whether the changes are those of one step
 */
export function ruleCard(store, changes, isStep) {
  const element = h("div.rule", { tabindex: "0", role: "group", label: "rules of the line" });
  const { rows } = changes;

  /** What rules did to a line of one side, each of them once. @param {number} side @param {number} line */
  const made = (side, line) => {
    const { lowering, step, part } = store.state;
    const diff = lowering.steps[step][part];
    const found = diff.made[diff.why[side]?.[line] ?? 0];
    return [...new Set(found.map(([rule]) => rule))].map((rule) => ({
      rule: diff.rules[rule][0], sentence: diff.rules[rule][1], replaced: found.flatMap(([one, lines]) => (one === rule ? lines : [])).sort((a, b) => a - b),
    }));
  };

  /** @param {number} [i] */
  function draw(i = rows.cursor) {
    const { lowering, step: index, part } = store.state;
    const row = changes.row(i);
    if (!isStep() || part === "plan" || !row || row.gap) return put(element);
    const side = +(row.j >= 0);
    const line = side ? row.j : row.i;
    const { ir, plan } = lowering.steps[index];
    const origins = lowering.listings[side ? ir.after : ir.before].origins(line);
    const listing = lowering.listings[plan.after];
    const lit = litByOrigins(lowering, origins, "");
    const decision = lit ? landing(lowering, listing, lit) : -1;
    const text = decision < 0 ? "" : listing.text(decision);
    const found = made(side, line);
    put(element, quiet(`line ${line + 1}${found.length ? " " : ": unchanged by this step "}`),
      found.map(({ rule, replaced }, k) => [
        k > 0 && ", ", side ? "by " : "replaced by ", h("b", rule),
        side > 0 && replaced.length > 0 && [" of line ", runs(replaced).flatMap((run, k) => [
          k > 0 && ", ", link(range(run), () => changes.goTo("i", run[0]), { title: "go there" }),
        ]), " before"],
      ]),
      text && [found.length > 0 && " · ", "in the plan: ", link(text.split(": ")[0], () => {
        store.set({ part: "plan", collapsed: false });
        changes.goTo("j", decision);
      }, { class: "link m", title: text })],
      // What can be followed comes first: there may be no room for all of it.
      found.map(({ rule, sentence }) => [" · ", found.length > 1 && h("b", `${rule}: `), sentence]));
    element.title = element.textContent;
  }

  set(rows.element, {
    onmouseover: ({ target }) => draw(Number(closest(target, "[data-i]")?.dataset.i ?? rows.cursor)),
    onmouseleave: () => draw(),
  });
  const { onmove } = rows;
  rows.onmove = () => {
    onmove();
    draw();
  };
  return { element, draw: () => draw() };
}
