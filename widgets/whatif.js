// What if: the same kernel with another option or target, both lowerings side by side.

import { unpacked } from "./data.js";
import { button, bytes, grouped, h, heads, isolated, markup, put } from "./dom.js";
import { inputsWords } from "./inputs.js";
import { counts, errorCard, select } from "./steps.js";

export function whatIfView(store, kernel) {
  const form = h("form.tools.wrap", { onsubmit: (event) => { event.preventDefault(); compare(); } });
  const result = h("div.compared");
  const controls = new Map();
  const go = h("button", { type: "submit", class: "primary" }, "Lower and compare");
  const target = h("select", { "aria-label": "target" });
  const why = h("p.q");
  const element = h("div.whatifview", form, result);
  store.on(["lowering", "targets"], () => {
    const { lowering, targets } = store.state;
    controls.clear();
    const group = (title, ...fields) => h("fieldset", h("legend", title), fields);
    put(target, ...targets.map((name) => h("option", { selected: name === lowering.data.target }, name)));
    put(form, why,
      group("chip", h("label", h("span", "target"), target)),
      ...lowering.steps.filter((step) => step.options.length).map((step) => group([`${step.letter} `, h("span.q", step.name)],
        step.options.map(control))), go);
    arrange();
    put(result);
  });
  store.on(["lowering", "busy", "stale"], () => {
    const { busy } = store.state;
    const reason = kernel.missing("fork");
    put(why, reason && `Lowering again: ${reason}.`);
    for (const one of form.querySelectorAll("fieldset")) one.disabled = reason;
    go.disabled = Boolean(busy || reason);
    go.textContent = busy === "compare" ? "Lowering …" : "Lower and compare";
  });

  function control(option) {
    const { name, text, policy, example } = option;
    const named = { "aria-label": name };
    const choices = option.choices.includes(text) ? option.choices : [text, ...option.choices];
    const made = option.choices.length
      ? h("select", named, choices.map((one) => h("option", { value: one, selected: one === text }, one || "auto")))
      : h("input", { ...named, type: "text", value: text, placeholder: example && `e.g. ${example}`, spellcheck: false });
    const label = h("label", h("span", name), made);
    const before = made.value;
    const fit = () => {
      if (!option.choices.length) made.size = Math.max(8, (made.value || made.placeholder).length);
      made.classList.toggle("changed", made.value !== before);
    };
    fit();
    controls.set(name, { made, before, policy, label });
    made.addEventListener("input", () => {
      fit();
      arrange();
    });
    return label;
  }

  /** Options that go with one policy are there with it only. */
  function arrange() {
    const chosen = controls.get("policy");
    for (const { made, before, policy, label } of controls.values()) {
      if (!policy) continue;
      label.hidden = policy !== chosen.made.value && !(before && chosen.made.value === chosen.before);
      made.required = policy === "explicit" && chosen.made.value === policy;
    }
  }

  function compare() {
    const options = {};
    for (const [name, { made, before, label }] of controls) {
      const value = label.hidden ? "" : made.value;
      if (value !== before) options[name] = value;
    }
    store.set({ busy: "compare" });
    kernel.ask({ do: "fork", options, target: target.value })
      .then(async (answer) => draw(await unpacked(answer.buffer), answer, options))
      .catch((error) => put(result, error.message?.join ? errorCard(store, error) : h("p", `${error}`)))
      .finally(() => store.set({ busy: null }));
  }

  function draw(other, answer, options) {
    const { lowering } = store.state;
    const sides = [lowering, other];
    const changed = [...Object.entries(options).map(([name, value]) => `${name}=${value}`), other.data.target === lowering.data.target ? null : other.data.target].filter(Boolean);
    const sameProgram = (step, twin) => textOf(lowering, step.ir.after) === textOf(other, twin.ir.after);
    const failed = other.steps.find((step) => step.error);
    const measures = [
      ["cores that work", (data) => data.cores && grouped(data.cores.cores.filter((core) => core.items).length)],
      ["items of the busiest core", (data) => data.cores && grouped(Math.max(...data.cores.cores.map((core) => core.items)))],
      ["circular buffers", (data) => data.buffers && `${data.buffers.buffers.length}`],
      ["L1 of each core", (data) => data.cores && bytes(data.cores.l1_bytes)],
      ["tiles per work item", (data) => data.cores?.tiles_per_item != null && grouped(data.cores.tiles_per_item)],
      ...["reader.cpp", "compute.cpp", "writer.cpp"].map((name) => [`lines of ${name}`, (data, side) => {
        const file = data.files.find((one) => one.name === name);
        return file && `${side.listings[file.listing].count}`;
      }]),
    ];
    const rows = measures.map(([label, of]) => [label, ...sides.map((side) => of(side.data, side) || "–")]);
    const steps = lowering.steps.map((step, i) => {
      const twin = other.steps[i];
      const [glyph, what] = !twin ? ["✖", "not reached"] : !sameProgram(step, twin) ? ["●", "another program"]
        : planOf(lowering, step) !== planOf(other, twin) ? ["◐", "another plan"] : ["=", "the same"];
      return h("tr", { class: glyph === "=" ? "q" : "" }, h("td", { title: what, "aria-label": what }, glyph),
        h("th", { scope: "row" }, `${step.letter} ${step.name}`),
        h("td.num", counts(step.ir.counts)), h("td.num", twin ? counts(twin.ir.counts) : what));
    });
    const first = lowering.steps.findIndex((step, i) => !other.steps[i] || !sameProgram(step, other.steps[i]));
    const runs = h("div.two.even");
    const noEmulator = kernel.missing("record");
    const ran = h("p.q.scroll", noEmulator && `Run both: ${noEmulator}`);
    const runBoth = button("Run both", async () => {
      if (store.state.busy) return;
      store.set({ busy: "both" });
      const asked = { do: "run", backend: "emulator", arithmetic: "exact", ...store.state.inputs };
      put(ran, `on emulator, ${inputsWords(store.state)}`);
      for (const variant of [kernel.variant(), answer.variant])
        runs.append(await kernel.ask({ ...asked, variant }).then((one) => isolated(one.html), (error) => errorCard(store, error)));
      store.set({ busy: null });
    }, { class: "chip", disabled: noEmulator, title: "on the emulator, with the inputs chosen in Run" });
    put(result, ...[
      failed && errorCard(store, failed.error),
      h("div.tools", h("b", changed.length ? changed.join(", ") : "nothing changed"),
        first >= 0 ? h("span.q", `the programs differ from ${lowering.steps[first].letter} on`) : h("span.q", "the programs are the same"),
        h("span.gapper"), failed ? null : runBoth,
        button("Explore this lowering", () => {
          store.set({ lowering: other, original: store.state.original || lowering, variant: answer.variant, pinned: null, hover: null, open: new Set() });
          select(store, Math.max(0, first));
          store.set({ tab: "Steps" });
        }, { class: "chip" })),
      ran, runs,
      h("div.two.even",
        h("table.grid", heads("", "now", "what if"),
          h("tbody", ...rows.map(([label, a, b]) => h("tr", { class: a === b ? "q" : "differs" }, h("th", { scope: "row" }, label), h("td.num", a), h("td.num", b))))),
        h("table.grid", heads("", "step", "now", "what if"), h("tbody", ...steps))),
      h("div.two.even", ...sides.map((side) => (side.data.cores ? markup(side.data.cores.svg) : h("p.q", "no cores were decided")))),
      h("div.two.even", ...sides.map((side) => (side.data.buffers?.l1 ? markup(side.data.buffers.l1) : h("p")))),
    ].filter(Boolean));
  }
  return { element, focus: () => go.focus(), keys: {} };
}

/** What a step has decided, without what was asked for. */
const planOf = (side, step) => textOf(side, step.plan.after).replace(/^(options|annotations|target)\b.*\n/gm, "");

function textOf(side, index) {
  const listing = side.listings[index];
  let text = "";
  for (let i = 0; i < listing.count; i++) text += `${listing.text(i)}\n`;
  return text;
}
