// What if: the same kernel with another option or target; the choices, and beside them what they lead to.

/** @import { Answers, Estimate, Failure, Option } from "../messages.js" */
/** @import { Lowering } from "../model/lowering.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { estimateOf } from "../model/estimates.js";
import { inputsWords } from "../model/inputs.js";
import { unpacked } from "../model/lowering.js";
import { explore } from "../model/state.js";
import { isLeaf } from "../model/steps.js";
import { meaning } from "../model/terms.js";
import { work } from "../model/work.js";
import { adviceList } from "../parts/advice.js";
import { busyControl } from "../parts/busy.js";
import { errorCard } from "../parts/cards.js";
import { all, button, chip, choice, classed, closest, find, gapper, grid, h, heading, isolated, markup, number, put, quiet, set } from "../parts/dom.js";
import { given } from "../parts/inputs.js";
import { panes } from "../parts/panes.js";
import { lanesView } from "./lanes.js";

/** `row` holds the field; `fault` says what is wrong with its value.
 * @typedef {{ field: HTMLInputElement | HTMLSelectElement, before: string, policy: string, idle: boolean, row: HTMLElement, fault: HTMLElement }} Control */

/** Which options are listed. @type {[label: string, title: string, isListed: (control: Control) => boolean][]} */
const FILTERS = [
  ["changed", "options that are not what they are by default, or are to be changed", ({ field, before, row }) => field.value !== before || row.matches(":has(.by)")],
  ["matters here", "options that may change a program or the C++ of this lowering", ({ field, before, idle }) => !idle || field.value !== before],
  ["all", "all options", () => true],
];

/** @param {Explorer} store @param {Kernel} kernel */
export function whatIfView(store, kernel) {
  const result = h("div.compared", { tabindex: "0", role: "group", label: "result" });
  const lanes = lanesView(store);
  /** @type {Map<string, Control>} */
  const controls = new Map();
  const go = h("button.primary.go", { type: "submit" });
  const target = choice("target", () => arrange());
  const why = h("p.q");
  const fields = h("div.options");
  const chosen = h("span.chosen", { role: "group", label: "what is changed" });
  let filter = 1;
  /** Arguments of the kernel that are to change. @type {Record<string, string>} */
  let sizes = {};
  const advice = adviceList(store, kernel);
  const filters = FILTERS.map(([label, title], i) => button(label, () => list(i), { class: "tab", title }));
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); compare(); } },
    why, h("div.tools.choices", go, chosen, busyControl(store, kernel), h("span.filters", filters)),
    panes(store.state.remembered, "what if", [["the choices", fields, 26], ["", result, 74]]));
  store.on(["lowering", "targets"], ({ lowering, targets, updating }) => {
    // An edit of the kernel leaves what has been chosen.
    const kept = updating ? [...controls].filter(([, { field, before }]) => field.value !== before).map(([name, { field }]) => /** @type {[string, string]} */ ([name, field.value])) : [];
    const machine = updating ? target.value : lowering.target;
    controls.clear();
    /** @type {(title: Child, ...fields: Child[]) => HTMLElement} */
    const group = (title, ...fields) => h("fieldset", h("legend", title), fields);
    put(target, ...targets.map((name) => h("option", { selected: name === machine }, name)));
    sizes = {};
    put(fields,
      advice.element,
      group("chip", h("div.option", h("label", h("span.name", "target"), target))),
      lowering.steps.filter((step) => step.part_of < 0 && step.options.length).map((step) => group([`${step.letter} `, quiet(step.name)], step.options.map(control))));
    fill(kept);
    arrange();
    list(filter);
    put(result, kernel.live && h("p.q", "Change an option, then lower and compare: what it leads to stands here."));
  });
  store.on(["lowering", "busy", "stale"], ({ busy }) => {
    const reason = kernel.missing("fork");
    put(why, reason && `Not available: ${reason}.`);
    for (const group of form.querySelectorAll("fieldset")) group.disabled = !!reason;
    fields.hidden = !kernel.live;
    classed(result, "waiting", busy === "fork");
    go.disabled = !!(busy || reason);
    put(go, busy === "fork" ? "Lowering …" : "Lower and compare");
  });

  store.on(["estimate"], ({ tab }) => { if (tab === "What if") advice.ask(); });
  store.on(["wish"], ({ wish }) => {
    const wanted = Object.entries(wish);
    sizes = Object.fromEntries(wanted.filter(([name]) => !controls.has(name)));
    fill(wanted);
    arrange();
    if (wanted.length && !go.disabled) compare();
  });

  /** @param {[name: string, value: string][]} values */
  function fill(values) {
    for (const [name, value] of values) {
      const { field } = controls.get(name) ?? {};
      if (field) field.value = value;
      field?.dispatchEvent(new Event("input"));
    }
  }

  /** @param {Option} option */
  function control({ name, text, policy, by, help, idle, example, choices }) {
    const named = { label: name };
    const field = choices.length
      ? h("select", named, [...new Set([text, ...choices])].map((one) => h("option", { value: one, selected: one === text }, one || "auto")))
      : h("input", { ...named, type: "text", value: text, placeholder: example && `e.g. ${example}`, spellcheck: false });
    const fault = h("p.bad.pre", { role: "alert" });
    // The sentence comes on hovering: there are many options.
    const meant = policy ? `With policy=${policy}. ${help}` : help;
    const term = meaning(store.state.lowering.terms, name);
    const row = h("div.option", h("label", h("span.name", { "data-meaning": term ? `${meant}\n${term}` : meant }, name), field), by !== "default" && h("span.by.tilde", { title: `set by ${by}` }, `set by ${by}`), fault);
    set(field, { title: meant });
    const before = field.value;
    const fit = () => {
      classed(field, "changed", field.value !== before);
    };
    fit();
    controls.set(name, { field, before, policy, idle: !!idle, row, fault });
    set(field, { oninput: () => {
      fit();
      refuse(name);
      arrange();
    } });
    return row;
  }

  /** Says at an option's field what is wrong with its value; nothing any more without an error. @param {string} name @param {Failure} [error] */
  function refuse(name, error) {
    const { field, fault } = controls.get(name) ?? {};
    if (!field || !fault) return;
    set(field, { "aria-invalid": !!error });
    put(fault, error && [...error.message, ...error.hint].join("\n"));
  }

  /** Options that go with one policy rest with another: nothing moves while one chooses. */
  function arrange() {
    const policies = controls.get("policy");
    for (const { field, before, policy } of controls.values()) {
      if (!policy || !policies) continue;
      field.disabled = policy !== policies.field.value && !(before && policies.field.value === policies.before);
      field.required = policy === "explicit" && policies.field.value === policy;
    }
    const { target: now } = store.state.lowering;
    put(chosen, [...controls].map(([name, { field, before }]) => !field.disabled && field.value !== before && undo(name, field.value || "auto", () => fill([[name, before]]))),
      target.value !== now && undo("target", target.value, () => { target.value = now; arrange(); }),
      Object.entries(sizes).map(([name, value]) => undo(name, value, () => { delete sizes[name]; arrange(); })));
  }

  /** @param {string} name @param {string} value @param {() => void} take */
  function undo(name, value, take) {
    return chip(`${name}=${value} ×`, take, { title: "take it back" });
  }

  /** Lists the options that a filter lets through; not anew with each that is changed, as nothing is to move. @param {number} wanted */
  function list(wanted) {
    filter = wanted;
    filters.forEach((one, i) => set(one, { "aria-pressed": i === filter }));
    for (const control of controls.values()) control.row.hidden = !FILTERS[filter][2](control);
    for (const group of all(fields, "fieldset")) set(group, { hidden: !group.querySelector(".option:not([hidden])") });
  }

  async function compare() {
    /** @type {Record<string, string>} */
    const options = {};
    const now = store.state.lowering;
    for (const [name, { field, before }] of controls) {
      const value = field.disabled ? "" : field.value;
      if (value !== before) options[name] = value;
      refuse(name);
    }
    try {
      const answer = await work(store, "fork", (progressed) => kernel.ask({ do: "fork", options, arguments: sizes, target: target.value }, progressed));
      const other = await unpacked(answer.buffer, now);
      if (store.state.lowering === now) draw(other, answer, { ...options, ...sizes });
    } catch (error) {
      if (error instanceof Error) return put(result, h("p", `${error}`));
      const failure = /** @type {Failure} */ (error);
      const wrong = controls.get(failure.option ?? "");
      put(result, !wrong && errorCard(store, failure));
      if (wrong) {
        refuse(failure.option ?? "", failure);
        wrong.row.hidden = false;
        wrong.field.focus();
      }
    }
  }

  /** @param {Lowering} other @param {Pick<Answers["fork"], "variant" | "steps" | "files">} answer @param {Record<string, string>} options */
  function draw(other, { variant, steps, files }, options) {
    const { lowering, original } = store.state;
    const sides = [lowering, other];
    const asked = Object.entries(options).map((option) => option.join("="));
    if (other.target !== lowering.target) asked.push(other.target);
    const failed = other.steps.find((step) => step.error)?.error;
    // Where one value was asked for, it is the one that a step rejects.
    const [asks, ...more] = Object.keys(options);
    if (failed && asks && !more.length && other.target === lowering.target) refuse(asks, failed);
    // What a step with parts does otherwise, one of these does.
    const longer = lowering.steps.length < other.steps.length ? other.steps : lowering.steps;
    const first = steps.findIndex(([glyph], i) => isLeaf(longer, i) && "●◐✖".includes(glyph));
    const changed = steps.flatMap(([glyph, words], i) => (isLeaf(longer, i) && "●◐".includes(glyph) ? [`${lowering.steps[i].letter} ${words.split(":")[0]}`] : []));
    const same = steps.every(([glyph]) => glyph === "=") && !files.length;
    const noEmulator = kernel.missing("record");
    const runs = h("div.two.even");
    const ran = h("p.q.scroll", noEmulator && `Run both: ${noEmulator}`);
    const now = store.state.variant;
    const runBoth = chip("Run both", async () => {
      if (store.state.busy) return;
      const words = `on emulator, ${inputsWords(store.state)}`;
      put(ran, words);
      put(runs);
      const asked = { backend: "emulator", arithmetic: "exact", ...given(store.state, words) };
      for (const one of [now, variant]) {
        let cancelled = false;
        runs.append(h("div", h("b", one === now ? "now" : "what if"), await work(store, "both", (progressed) => kernel.ask({ do: "run", ...asked, variant: one }, progressed))
          .then(({ html }) => isolated(html), (error) => {
            cancelled = error.kind === "Cancelled";
            return errorCard(store, error);
          })));
        if (cancelled) break;
      }
    }, { disabled: noEmulator, title: "on the emulator, with the inputs chosen in Run" });
    const figures = grid(["", "now", "what if"], compared(lowering.figures, other.figures));
    // What is predicted comes later than the rest; a lowering that failed has none.
    /** @type {(one: Lowering, name: string) => Promise<Estimate["figures"]>} */
    const predicted = (one, name) => estimateOf(store, kernel, one, name).then(({ figures }) => figures, () => []);
    if (!kernel.missing("estimate")) Promise.all([predicted(lowering, now), predicted(other, variant)]).then(([a, b]) => find(figures, "tbody")?.append(...compared(a, b)));
    lanes.show(lowering, other, { steps, files });
    put(result,
      failed && errorCard(store, failed),
      h("div.tools", h("b", asked.join(", ") || "nothing changed"),
        quiet(same ? "no effect with these values: every step and every file is the same" : changed.join(", ")),
        gapper(), !failed && runBoth,
        chip("Explore this lowering", () => {
          const head = closest(form, ".ttx-explorer")?.firstElementChild;
          explore(store, { lowering: other, original: original || lowering, variant }, first, { tab: "Steps" });
          head?.scrollIntoView({ block: "nearest" });
        })),
      ran, runs,
      h("div.two.even", figures),
      lanes.element,
      h("div.two.even", ...sides.map(({ cores }) => (cores ? markup(cores.svg) : h("p.q", "no partition")))),
      h("div.two.even", ...sides.map(({ buffers }) => (buffers?.l1 ? markup(buffers.l1) : h("p")))));
  }
  return { element: h("div.whatifview", form), keys: lanes.keys, shown: advice.ask };
}

/** Rows of figures, of which one side may have none. @param {Lowering["figures"]} now @param {Lowering["figures"]} other */
const compared = (now, other) => (now.length ? now : other).map(([label], i) => {
  const [a, b] = [now, other].map((side) => side[i]?.[1] ?? "–");
  return h("tr", { class: a === b ? "q" : "differs" }, heading(label), number(a), number(b));
});
