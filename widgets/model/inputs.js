// What a run is given, in words.

/** @import { State } from "./state.js" */

/** The choice as words: "inputs random, seed 3". @param {Pick<State, "inputs" | "kinds">} state */
export function inputsWords({ inputs: { inputs, seed, names }, kinds }) {
  const kind = kinds.find(([name]) => name === inputs);
  return `inputs ${kind ? inputs : names}${kind?.[2] ? `, seed ${seed}` : ""}`;
}
