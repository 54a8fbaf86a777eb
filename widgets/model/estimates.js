// How long lowerings would take on their target, as Python predicts it: asked for once for each, when it is to be seen.
// Where elements of tensors decide it, it is predicted for the inputs that are chosen for runs.

/** @import { Estimate, Failure } from "../messages.js" */
/** @import { Lowering } from "./lowering.js" */
/** @import { Kernel } from "./questions.js" */
/** @import { Explorer } from "./state.js" */

import { inputsWords } from "./inputs.js";

// The diagnostic of a time that depends on elements.
const DECIDED = "TTX-U022";
// Names of variables are written letter by letter.
const QUIET_MS = 500;

/** @param {Explorer} store @param {Kernel} kernel @param {Lowering} lowering @param {string} variant @returns {Promise<Estimate>} */
export function estimateOf(store, kernel, lowering, variant) {
  const { estimates } = store.state;
  const known = estimates.get(lowering) ?? kernel.ask({ do: "estimate", variant }).then(({ estimate }) => estimate);
  estimates.set(lowering, known);
  return known.catch((/** @type {Failure} */ failure) => {
    if (failure.code !== DECIDED) throw failure;
    return kernel.ask({ do: "estimate", variant, words: inputsWords(store.state), ...store.state.inputs }).then(({ estimate }) => estimate);
  });
}

/** Has the store know the estimate of what is shown, or why there is none. @param {Explorer} store @param {Kernel} kernel @param {Estimate | undefined} brought what the page brings along of the first lowering */
export function followEstimates(store, kernel, brought) {
  const { estimates, lowering } = store.state;
  if (brought) estimates.set(lowering, Promise.resolve(brought));
  let waiting = 0;
  let last = {};
  async function follow() {
    const { lowering, variant } = store.state;
    const mine = last = {};
    store.set({ estimate: null, costs: null, noEstimate: "", advice: "" });
    if (lowering.steps.some((step) => step.error)) return;
    const missing = !estimates.has(lowering) && kernel.missing("estimate");
    // A page without Python has it or does not.
    if (missing) return store.set({ noEstimate: kernel.live ? missing : "" });
    const found = await estimateOf(store, kernel, lowering, variant).then((estimate) => ({ estimate, costs: estimate.costs ?? null }), (/** @type {Failure} */ noEstimate) => ({ noEstimate }));
    if (last === mine) store.set(found);
  }
  let { inputs: chosen } = store.state;
  store.on(["inputs"], ({ lowering, inputs }) => {
    if (inputs === chosen) return;
    chosen = inputs;
    clearTimeout(waiting);
    waiting = setTimeout(() => estimates.get(lowering)?.catch((/** @type {Failure} */ { code }) => {
      if (code === DECIDED && store.state.lowering === lowering) follow();
    }), QUIET_MS);
  });
  store.on(["lowering"], follow);
}
