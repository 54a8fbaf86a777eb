// What the selected step changed: its head and its rows.

/** @import { Step } from "../messages.js" */
/** @import { Explorer, State } from "../model/state.js" */

import { countsOf, rowsBetween } from "../model/align.js";
import { textsOf } from "../model/live.js";
import { CLASS } from "../model/lowering.js";
import { inTime, isIdle } from "../model/steps.js";
import { meaning } from "../model/terms.js";
import { counts, errorCard, toggle } from "../parts/cards.js";
import { button, chip, choice, h, put, quiet } from "../parts/dom.js";
import { menu } from "../parts/menu.js";
import { LARGEST_WRAPPED } from "../parts/rows.js";
import { changeRows } from "./changes.js";
import { ruleCard } from "./rules.js";

/** The step that the selected one is compared with; none where that is its own change. @param {State} state */
const other = ({ lowering: { steps }, step, against }) => (against === step ? undefined : steps[against]);

/** @param {Explorer} store */
export function diffPane(store) {
  const changes = changeRows(store, "changes of the step");
  const rule = ruleCard(store, changes, () => !other(store.state));

  const title = h("summary.title");
  const prose = h("div.prose");
  const about = h("details.about", title, prose);
  const toggles = h("div.toggles");
  const showing = h("div.toggles");
  const error = h("div.refusal");
  const against = choice("compare with", () => store.set({ against: Number(against.value), open: new Set() }));
  const show = menu("show", showing, against);
  const element = h("section.pane.diffpane", { label: "step" },
    h("div.tools", about, toggles, changes.pins.element, show.element),
    changes.element);

  store.on(["lowering"], ({ lowering: { steps } }) => put(against,
    h("option", { value: "-1" }, "compare with"), ...steps.map((step, i) => !isIdle(step) && h("option", { value: `${i}` }, `${step.letter} ${step.name}`))));
  store.on(["step", "part", "against", "lowering", "open", "collapsed", "hidden", "wrap", "split", "query"], (state) => {
    const { lowering, step: index, part, before: old } = state;
    const step = lowering.steps[index];
    const twin = old?.steps.find(({ letter }) => letter === step.letter)?.[part];
    against.value = `${other(state) ? state.against : -1}`;
    const hiddenRows = changes.show({
      name: `${index}${part}${against.value}`, ...sides(state, part), language: part === "ir" ? "tir" : "json", split: state.split,
      known: old && twin && [twin.before, twin.after].map((one) => textsOf(old.listings[one])),
    });
    rule.draw();
    drawHead(step, hiddenRows);
  });

  /** What the selected step changed, or what is between it and another one, the earlier one first. @param {State} state @param {"ir" | "plan"} part */
  function sides(state, part) {
    const { lowering: { listings, steps }, step, against } = state;
    const { before, after, rows } = steps[step][part];
    if (!other(state)) return { before: listings[before], after: listings[after], rows, why: part === "ir" ? () => ` · ${rule.element.textContent}` : undefined };
    const [from, to] = inTime(steps, step, against).map((i) => listings[steps[i][part].after]);
    return { before: from, after: to, rows: rowsBetween(from, to, part === "plan") };
  }

  /** @param {Step} step @param {number} hiddenRows */
  function drawHead(step, hiddenRows) {
    const { state } = store;
    const { lowering, part, hidden } = state;
    const compared = other(state);
    const what = compared ? `${inTime(lowering.steps, state.step, state.against).map((i) => lowering.steps[i].letter).join(" → ")}: the program and the plan after these steps` : step.summary;
    put(title, h("span.letter", step.letter), " ", h("b", step.name), " ", h("span.q.what", { title: what }, what));
    put(prose, h("p", h("b", step.name), quiet(` ${step.options.map((one) => `${one.name}=${one.shown}`).join("  ")} · this pass took ${step.ms} ms`)), step.prose.join("\n"));
    put(error, step.error && errorCard(store, step.error));
    /** @param {"ir" | "plan"} name @param {string} label */
    const tab = (name, label) => button([label, " ", counts(compared ? countsOf(sides(state, name).rows) : step[name].counts)], () => store.set({ part: name }),
      { "aria-pressed": part === name, class: "tab", "aria-description": meaning(lowering.terms, label) });
    const listing = lowering.listings[step.ir.after];
    const renames = compared ? [] : step[part].renames;
    put(toggles, tab("ir", "program"), tab("plan", "plan"));
    show.count(hiddenRows ? `${hiddenRows} hidden` : compared ? "compared" : "");
    put(showing,
      lowering.classes.map((name, i) => {
        const count = part === "ir" ? listing.tally(CLASS).get(i + 1) ?? 0 : 0;
        const off = hidden.has(name);
        return count > 0 && chip(`${off ? "▢" : "▣"} ${name} ${Math.round((100 * count) / listing.count)} %`,
          () => store.set({ hidden: new Set(off ? [...hidden].filter((one) => one !== name) : [...hidden, name]) }),
          { "aria-pressed": !off, "aria-description": [`${count} lines: click to ${off ? "show" : "hide"} them`, meaning(lowering.terms, name)].join("\n") });
      }),
      renames.length > 0 && h("span.chip", { title: renames.map(([a, b]) => `${a} → ${b}`).join("\n") }, `≈ ${renames.length} renamed`),
      hiddenRows > 0 && quiet(`${hiddenRows} lines hidden`),
      h("br"),
      toggle(store, "collapsed", "collapse", "fold unchanged lines (c)"), toggle(store, "split", "side by side", "before and after side by side (s)"),
      toggle(store, "wrap", "wrap", `wrap long lines (w), up to ${LARGEST_WRAPPED} rows`));
  }

  return {
    element, error, rule: rule.element, pins: changes.pins,
    keys: { ...changes.keys, v: () => { show.open(); against.focus(); } },
  };
}
