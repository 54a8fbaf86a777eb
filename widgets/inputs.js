// What runs, checks and recordings are given: a kind of numbers with its seed, or arrays of the notebook by name.

import { h, put } from "./dom.js";

const YOURS = "yours";

/** The choice as words: "inputs random, seed 3". */
export function inputsWords({ inputs: { inputs, seed, names }, kinds }) {
  const kind = kinds.find(([name]) => name === inputs);
  return `inputs ${kind ? inputs : names}${kind?.[2] ? `, seed ${seed}` : ""}`;
}

/** The kernels that have been edited: "reader, compute". */
export const edits = ({ state }) => Object.keys(state.edits).join(", ");

/** A control for the choice. An explorer has several; all show the same one. */
export function inputsControl(store, kernel) {
  const set = (patch) => store.set({ inputs: { ...store.state.inputs, ...patch } });
  const kind = h("select", { "aria-label": "inputs", onchange: () => set({ inputs: kind.value }) });
  const seed = h("input.small", { type: "number", min: 0, "aria-label": "seed of the inputs", oninput: () => set({ seed: Number(seed.value) || 0 }) });
  const seedLabel = h("label", "seed ", seed);
  const names = h("input", { type: "text", spellcheck: false, "aria-label": "names of arrays in the notebook", oninput: () => set({ names: names.value }) });
  const what = h("span.q");
  store.on(["inputs", "kinds", "lowering"], () => {
    const { inputs, kinds, lowering } = store.state;
    const known = [...kinds, [YOURS, `names of arrays in the notebook, or of one list or dictionary of them, for ${lowering.data.inputs.join(", ")}`]];
    const [, words, seeded] = known.find(([name]) => name === inputs.inputs) || known[0];
    if (kind.options.length !== known.length) put(kind, known.map(([name]) => h("option", name)));
    kind.value = inputs.inputs;
    what.textContent = words;
    kind.title = words;
    names.placeholder = lowering.data.inputs.map((one) => one.split(" ")[0].toLowerCase()).join(", ");
    seedLabel.hidden = !seeded;
    names.hidden = inputs.inputs !== YOURS;
    for (const [control, value] of [[seed, inputs.seed], [names, inputs.names]]) if (control.value !== `${value}`) control.value = value;
  });
  return kernel.live && h("span.inputs", h("label", "inputs ", kind), seedLabel, names, what);
}
