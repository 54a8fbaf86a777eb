// What if: the same kernel with another option or target, both lowerings side by side.

/** @import { Failure, Option } from "../messages.js" */
/** @import { Lowering } from "../model/lowering.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { changes } from "../model/comparison.js";
import { unpacked } from "../model/lowering.js";
import { explore } from "../model/state.js";
import { limitOf, work } from "../model/work.js";
import { busyControl } from "../parts/busy.js";
import { counts, errorCard } from "../parts/cards.js";
import { chip, choice, grid, h, heading, isolated, markup, number, put, quiet } from "../parts/dom.js";
import { inputsWords } from "../parts/inputs.js";
import { explain } from "../parts/terms.js";

/** @typedef {{ field: HTMLInputElement | HTMLSelectElement, before: string, policy: string, label: HTMLElement }} Control */

/** @param {Explorer} store @param {Kernel} kernel */
export function whatIfView(store, kernel) {
  const form = h("form.tools.wrap", { onsubmit: (event) => { event.preventDefault(); compare(); } });
  const result = h("div.compared");
  /** @type {Map<string, Control>} */
  const controls = new Map();
  const go = h("button.primary", { type: "submit" });
  const target = choice("target");
  const why = h("p.q");
  store.on(["lowering", "targets"], ({ lowering, targets }) => {
    controls.clear();
    /** @type {(title: Child, ...fields: Child[]) => HTMLElement} */
    const group = (title, ...fields) => h("fieldset", h("legend", title), fields);
    put(target, ...targets.map((name) => h("option", { selected: name === lowering.target }, name)));
    put(form, why,
      group("chip", h("label", "target", target)),
      lowering.steps.filter((step) => step.options.length).map((step) => group([`${step.letter} `, quiet(step.name)], step.options.map(control))), go, busyControl(store, kernel));
    arrange();
    put(result);
  });
  store.on(["lowering", "busy", "stale"], ({ busy }) => {
    const reason = kernel.missing("fork");
    put(why, reason && `Not available: ${reason}.`);
    for (const group of form.querySelectorAll("fieldset")) group.disabled = !!reason;
    go.disabled = !!(busy || reason);
    go.textContent = busy === "fork" ? "Lowering …" : "Lower and compare";
  });

  /** @param {Option} option */
  function control({ name, text, policy, meaning, example, choices }) {
    const named = { label: name };
    const field = choices.length
      ? h("select", named, [...new Set([text, ...choices])].map((one) => h("option", { value: one, selected: one === text }, one || "auto")))
      : h("input", { ...named, type: "text", value: text, placeholder: example && `e.g. ${example}`, spellcheck: false });
    const title = h("span", name);
    explain(title, `${name}: ${meaning}`);
    const label = h("label", title, field);
    const before = field.value;
    const fit = () => {
      if (field instanceof HTMLInputElement) field.size = Math.max(8, (field.value || field.placeholder).length);
      field.classList.toggle("changed", field.value !== before);
    };
    fit();
    controls.set(name, { field, before, policy, label });
    field.addEventListener("input", () => {
      fit();
      arrange();
    });
    return label;
  }

  /** Options that go with one policy are there with it only. */
  function arrange() {
    const chosen = controls.get("policy");
    for (const { field, before, policy, label } of controls.values()) {
      if (!policy || !chosen) continue;
      label.hidden = policy !== chosen.field.value && !(before && chosen.field.value === chosen.before);
      field.required = policy === "explicit" && chosen.field.value === policy;
    }
  }

  async function compare() {
    /** @type {Record<string, string>} */
    const options = {};
    for (const [name, { field, before, label }] of controls) {
      const value = label.hidden ? "" : field.value;
      if (value !== before) options[name] = value;
    }
    try {
      const { buffer, variant } = await work(store, "fork", (progressed) => kernel.ask({ do: "fork", options, target: target.value }, progressed));
      draw(await unpacked(buffer), variant, options);
    } catch (error) {
      put(result, error instanceof Error ? h("p", `${error}`) : errorCard(store, /** @type {Failure} */ (error)));
    }
  }

  /** @param {Lowering} other @param {string} variant @param {Record<string, string>} options */
  function draw(other, variant, options) {
    const { lowering, original } = store.state;
    const sides = [lowering, other];
    const asked = Object.entries(options).map((option) => option.join("="));
    if (other.target !== lowering.target) asked.push(other.target);
    const failed = other.steps.find((step) => step.error)?.error;
    const changed = changes(lowering, other);
    const first = changed.findIndex(([glyph]) => glyph === "●" || glyph === "✖");
    const noEmulator = kernel.missing("record");
    const runs = h("div.two.even");
    const ran = h("p.q.scroll", noEmulator && `Run both: ${noEmulator}`);
    const now = store.state.variant;
    const runBoth = chip("Run both", async () => {
      const { busy, inputs } = store.state;
      if (busy) return;
      const words = `on emulator, ${inputsWords(store.state)}`;
      put(ran, words);
      const asked = { backend: "emulator", arithmetic: "exact", limit: limitOf(store.state), words, ...inputs };
      for (const one of [now, variant]) {
        let cancelled = false;
        runs.append(await work(store, "both", (progressed) => kernel.ask({ do: "run", ...asked, variant: one }, progressed))
          .then(({ html }) => isolated(html), (error) => {
            cancelled = error.kind === "Cancelled";
            return errorCard(store, error);
          }));
        if (cancelled) break;
      }
    }, { disabled: noEmulator, title: "on the emulator, with the inputs chosen in Run" });
    put(result,
      failed && errorCard(store, failed),
      h("div.tools", h("b", asked.join(", ") || "nothing changed"),
        quiet(first < 0 ? "the programs are the same" : `the programs differ from ${lowering.steps[first].letter} on`),
        h("span.gapper"), !failed && runBoth,
        chip("Explore this lowering", () => explore(store, { lowering: other, original: original || lowering, variant }, first, { tab: "Steps" }))),
      ran, runs,
      h("div.two.even",
        grid(["", "now", "what if"], lowering.figures.map(([label, a], i) => {
          const b = other.figures[i][1];
          return h("tr", { class: a === b ? "q" : "differs" }, heading(label), number(a), number(b));
        })),
        grid(["", "step", "now", "what if"], lowering.steps.map((step, i) => {
          const [glyph, what] = changed[i];
          const twin = other.steps[i];
          return h("tr", { class: glyph === "=" ? "q" : "" }, h("td", { title: what, label: what }, glyph),
            heading(`${step.letter} ${step.name}`), number(counts(step.ir.counts)), number(twin ? counts(twin.ir.counts) : what));
        }))),
      h("div.two.even", ...sides.map(({ cores }) => (cores ? markup(cores.svg) : h("p.q", "no partition")))),
      h("div.two.even", ...sides.map(({ buffers }) => (buffers?.l1 ? markup(buffers.l1) : h("p")))));
  }
  return { element: h("div.whatifview", form, result) };
}
