// Recording a run: the button, and what becomes of the answer.

/** @import { Answers, Bytes, Failure } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer, State } from "../model/state.js" */

import { MOMENT, started } from "../model/clock.js";
import { unpackedRecording } from "../model/lowering.js";
import { Recorded } from "../model/moments.js";
import { work } from "../model/work.js";
import { errorCard } from "./cards.js";
import { button, h, put, quiet } from "./dom.js";
import { editedKernels, given, noMix } from "./inputs.js";

/** The names of the cores that work, as the store has them. @param {State} state */
export const workingCores = ({ lowering: { cores } }) => cores?.cores.filter(({ items }) => items).map(({ x, y }) => `${x},${y}`) ?? [];

/** @param {string} name as the store has it */
export const shownCore = (name) => `(${name.replace(",", ", ")})`;

/** Why no run can be recorded; empty if one can. @param {State} state @param {Kernel} kernel */
export const noRecording = (state, kernel) => kernel.missing("record") || (state.lowering.steps.some((step) => step.error) ? "the lowering failed" : noMix(state));

/**
 * The button, the reason why it is off, and the place where failures are shown.
 * @param {Explorer} store
 * @param {Kernel} kernel
 */
export function recording(store, kernel) {
  const record = button("Record a run", () => {
    const { edits, core } = store.state;
    const cores = workingCores(store.state);
    const asked = { code: edits, core: cores.find((name) => name === core) ?? cores[0], ...given(store.state) };
    take(store, work(store, "record", (progressed) => kernel.ask({ do: "record", ...asked }, progressed)));
  }, { class: "primary" });
  const why = quiet();
  const problem = h("div.scroll");
  store.on(["lowering", "busy", "edits", "stale"], (state) => {
    const reason = noRecording(state, kernel);
    const edited = editedKernels(state);
    record.disabled = !!(state.busy || reason);
    put(record, state.busy === "record" ? "Recording …" : "Record a run");
    put(why, reason || (state.busy ? "" : edited && `uses the edited ${edited}`));
  });
  store.on(["recording", "recordFailure"], ({ recording, recordFailure }) => {
    const deadlock = recording?.recording.deadlock ?? [];
    put(problem, recordFailure ? errorCard(store, recordFailure) : deadlock.length > 0 && h("p.pre.bad.m", deadlock.join("\n")));
  });
  return { record, why, problem };
}

/** Shows what a page brought along, and what others record. @param {Explorer} store @param {Bytes | undefined} recorded */
export function followRecordings(store, recorded) {
  if (recorded) take(store, Promise.resolve({ buffer: recorded }), { metric: store.state.metric });
  store.on(["followed"], ({ followed }) => {
    if (followed?.do === "record") take(store, /** @type {Promise<Answers["record"]>} */ (followed.answer));
  });
}

/** @param {Explorer} store @param {Promise<Answers["record"]>} answer @param {Partial<State>} [patch] */
async function take(store, answer, patch) {
  const { lowering } = store.state;
  store.set({ recordFailure: null });
  try {
    const recorded = new Recorded(await unpackedRecording((await answer).buffer));
    // What was asked about another lowering is not of this one.
    if (store.state.lowering === lowering) store.set({ ...started(recorded), metric: MOMENT, ...patch });
  } catch (error) {
    const failure = /** @type {Failure} */ (error);
    store.set({ recordFailure: failure, marks: failure.places ?? [] });
  }
}
