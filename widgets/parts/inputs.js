// What runs, checks and recordings are given: a kind of numbers with its seed, or arrays of the notebook by name.

/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer, State } from "../model/state.js" */
/** @import { Asked, Inputs } from "../messages.js" */

import { inputsWords } from "../model/inputs.js";
import { ROLES, kernelFile, kernelName } from "../model/lowering.js";
import { limitOf } from "../model/work.js";
import { choice, h, offer, put, quiet } from "./dom.js";

const YOURS = "yours";
export const EARLIER = "edited before the kernel changed";

/** What each question about a run has. @param {State} state @param {string} [words] @returns {Inputs & Asked} */
export const given = (state, words = inputsWords(state)) => ({ limit: limitOf(state), words, ...state.inputs });

/** The kernels that have been edited: "reader, compute". @param {Pick<State, "edits">} state */
export const editedKernels = ({ edits }) => Object.keys(edits).join(", ");

/** Whether a kernel was edited when another text was emitted for it. @param {Pick<State, "edits" | "emitted" | "lowering">} state @param {string} role */
export const isEarlier = ({ edits, emitted, lowering }, role) => edits[role] !== undefined && emitted[role] !== `${kernelFile(lowering, role).listing}`;

/** Why edits cannot run: they belong to another lowering. Empty if they can. @param {State} state */
export function noMix(state) {
  const earlier = ROLES.filter((role) => isEarlier(state, role)).map(kernelName);
  return earlier.length ? `${earlier.join(", ")} ${EARLIER}: undo one of the two` : "";
}

/** A control for the choice; nothing where there is no Python. An explorer has several; all show the same one. @param {Explorer} store @param {Kernel} kernel */
export function inputsControl(store, kernel) {
  /** @param {Partial<Inputs>} patch */
  const set = (patch) => store.set({ inputs: { ...store.state.inputs, ...patch } });
  const kind = choice("inputs", () => set({ inputs: kind.value }));
  const seed = h("input.small", { type: "number", min: 0, label: "seed of the inputs", oninput: () => { set({ seed: Number(seed.value) || 0 }); } });
  const seedLabel = h("label", "seed ", seed);
  const names = h("input", { type: "text", spellcheck: false, label: "names of notebook variables", oninput: () => { set({ names: names.value }); } });
  const what = quiet();
  store.on(["inputs", "kinds", "lowering"], ({ inputs, kinds, lowering }) => {
    const chosen = kinds.find(([name]) => name === inputs.inputs);
    const words = chosen?.[1] ?? `names of notebook variables, or of one list or dictionary of arrays, for ${lowering.inputs.join(", ")}`;
    offer(kind, [...kinds.map(([name]) => name), YOURS]);
    kind.value = inputs.inputs;
    put(what, words);
    kind.title = words;
    names.placeholder = lowering.inputs.map((text) => text.split(" ")[0].toLowerCase()).join(", ");
    seedLabel.hidden = !chosen?.[2];
    names.hidden = inputs.inputs !== YOURS;
    if (seed.value !== `${inputs.seed}`) seed.value = `${inputs.seed}`;
    if (names.value !== inputs.names) names.value = inputs.names;
  });
  return kernel.live && h("span.inputs", h("label", "inputs ", kind), seedLabel, names, what);
}
