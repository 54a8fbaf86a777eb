// The moment of a recorded run that is shown, and the part of the run that the plots show around it.

/** @import { Moments, Recorded } from "./moments.js" */
/** @import { Explorer, State } from "./state.js" */

import { within } from "./figures.js";

/** The measure of the core map that shows the moment. */
export const MOMENT = "recorded run";
/** Steps in a second. */
export const SPEEDS = [1, 10, 100, 1000, 10000];
const SHORTEST_WINDOW = 16;
// A run at its first speed plays for about so long.
const SECONDS = 20;

/** What a store has of a recording that it starts to show. @param {Recorded} recording @returns {Partial<State>} */
export const started = (recording) => ({
  recording, time: 0, window: [0, recording.end], core: `${recording.recording.core}`, playing: false,
  speed: SPEEDS.find((speed) => speed * SECONDS >= recording.end) ?? 10000,
});

/** The moments of the chosen core, if it is recorded. @param {State} state */
export const momentsOf = ({ recording, core }) => recording?.cores.get(`${core}`);

/** Goes to a moment; the window goes with it. @param {Explorer} store @param {number} time */
export function goToMoment(store, time) {
  const { recording, window: [from, to] } = store.state;
  if (!recording) return;
  const at = within(Math.round(time), recording.end);
  const span = to - from;
  // As if a page were turned, to where the moment is at the side that it comes from.
  const first = at < from ? at - span : at > to ? at : from;
  store.set({ time: at, window: first === from ? store.state.window : windowFrom(first, span, recording.end) });
}

/** @param {number} from @param {number} span @param {number} end @returns {[number, number]} */
export function windowFrom(from, span, end) {
  const first = within(Math.round(from), end - span);
  return [first, first + span];
}

/** Zooms so that the moment stays where it is in the window. @param {Explorer} store @param {number} factor below 1 for a closer look */
export function zoom(store, factor) {
  const { recording, time, window: [from, to] } = store.state;
  if (!recording) return;
  const { end } = recording;
  const span = Math.min(end, Math.max(Math.round((to - from) * factor), SHORTEST_WINDOW));
  store.set({ window: windowFrom(time - (span * (time - from)) / (to - from), span, end) });
}

/** Goes to the next wait of a kernel, or of any (-1), on the chosen core. @param {Explorer} store @param {number} direction */
export function jump(store, direction) {
  const { time, waitsOf } = store.state;
  const start = momentsOf(store.state)?.wait(time, waitsOf, direction) ?? null;
  store.set({ playing: false, say: "no further wait" });
  if (start !== null) goToMoment(store, start);
}

/** The moments of the labels of an axis, about `count` of them. @param {[number, number]} window @param {number} count */
export function ticks([from, to], count) {
  const rough = Math.max(1, (to - from) / count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

/**
 * The parts of the window that waits take, as [start, end]; waits that share one of so many columns with the one before
 * are drawn with it.
 * @param {Moments["pattern"]["waits"]} waits in order
 * @param {[number, number]} window
 * @param {number} columns
 */
export function spans(waits, [from, to], columns) {
  const width = (to - from) / columns;
  /** @type {[number, number][]} */
  const found = [];
  for (const [, start, last, , , , , , stuck] of waits) {
    const end = stuck ? to : last;
    const before = found[found.length - 1];
    if (end <= from || start >= to) continue;
    if (before && end - before[1] < width) before[1] = Math.max(before[1], end);
    else found.push([Math.max(from, start), Math.min(to, end)]);
  }
  return found;
}

/** What a core does as one word, by what its kernels do: that of the compute kernel until it is done. @param {import("./moments.js").State[]} states of reader, compute, writer */
export function together(states) {
  if (states.includes("stuck")) return "stuck";
  const open = states.filter((state) => state !== "done");
  if (!open.length) return "done";
  if (states[1] !== "done") return states[1] || "waits";
  return open.includes("runs") ? "runs" : "waits";
}
