// How long lowerings would take on their target, as Python predicts it: asked for once for each, when it is to be seen.

/** @import { Estimate, Failure } from "../messages.js" */
/** @import { Lowering } from "./lowering.js" */
/** @import { Kernel } from "./questions.js" */
/** @import { Explorer } from "./state.js" */

/** @param {Explorer} store @param {Kernel} kernel @param {Lowering} lowering @param {string} variant @returns {Promise<Estimate>} */
export function estimateOf(store, kernel, lowering, variant) {
  const { estimates } = store.state;
  const known = estimates.get(lowering) ?? kernel.ask({ do: "estimate", variant }).then(({ estimate }) => estimate);
  estimates.set(lowering, known);
  return known;
}

/** Has the store know the estimate of what is shown, or why there is none. @param {Explorer} store @param {Kernel} kernel @param {Estimate | undefined} brought what the page brings along of the first lowering */
export function followEstimates(store, kernel, brought) {
  const { estimates, lowering } = store.state;
  if (brought) estimates.set(lowering, Promise.resolve(brought));
  store.on(["lowering"], async ({ lowering, variant }) => {
    store.set({ estimate: null, noEstimate: "" });
    if (lowering.steps.some((step) => step.error)) return;
    const missing = !estimates.has(lowering) && kernel.missing("estimate");
    // A page without Python has it or does not.
    if (missing) return store.set({ noEstimate: kernel.live ? missing : "" });
    const found = await estimateOf(store, kernel, lowering, variant).then((estimate) => ({ estimate }), (/** @type {Failure} */ noEstimate) => ({ noEstimate }));
    if (store.state.lowering === lowering) store.set(found);
  });
}
