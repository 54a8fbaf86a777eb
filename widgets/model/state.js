// What the views of one explorer share.

/** @import { Recorded } from "./moments.js" */
/** @import { Advice, Answers, Backend, Costs, Edits, Estimate, Failure, InputKind, Inputs, Marked, Question, Running, Step } from "../messages.js" */
/** @import { Listing, Lit, Lowering } from "./lowering.js" */
/** @import { Remembered } from "./remembered.js" */
/** @import { Group } from "./search.js" */

import { within } from "./figures.js";
import { kernelFile, litByLine } from "./lowering.js";
import { positionOf } from "./steps.js";
import { Store } from "./store.js";

/**
 * @typedef {object} State
 * @property {Lowering} lowering what is shown
 * @property {Lowering | null} original the first lowering while another one is shown
 * @property {Back | null} back what the original was like when it was left
 * @property {string} first the kernel's text as it was explored
 * @property {string | null} draft the kernel's text as it is edited; null where it is that of the lowering
 * @property {boolean} editing whether the kernel is shown as a field
 * @property {boolean} drafting whether the draft is going to be lowered
 * @property {Failure | null} draftError why the last draft has no lowering
 * @property {boolean} updating while the lowering of an edited text takes the place of another: nothing is scrolled
 * @property {Lowering | null} before the other, for a moment, to show what has changed
 * @property {string} variant the name that Python has for the lowering; empty for the first one
 * @property {number} launch which launch it is of, of several
 * @property {number} step
 * @property {"ir" | "plan"} part
 * @property {string} tab
 * @property {Lit | null} hover
 * @property {Lit | null} pinned
 * @property {string} query in lower case
 * @property {Group[]} matches what has it
 * @property {{ listing: Listing, line: number } | null} found the line that a search has come to
 * @property {Set<string>} hidden classes of lines that are left out
 * @property {Set<number>} open folds of the diff
 * @property {boolean} collapsed
 * @property {boolean} split
 * @property {boolean} lanes whether the lanes of What if are side by side
 * @property {number} against the step that the selected one is compared with; -1 for the one before it
 * @property {boolean} wrap whether lines of changes are wrapped
 * @property {boolean} wrapCode whether those of the kernel and of files are
 * @property {number} columns for how many kernels there is room side by side
 * @property {boolean} colours whether lines have the colours of their kernel lines
 * @property {boolean} full whether the explorer fills the screen
 * @property {string} file the emitted file that is shown
 * @property {number} goTo the line of that file, from 1, to which Code goes when it is shown; 0 for none
 * @property {Marked[]} marks lines of emitted files
 * @property {Remembered} remembered
 * @property {string | null} core "x,y"
 * @property {string} metric
 * @property {Estimate | null} estimate the predicted time of the lowering, once it is known
 * @property {Advice[] | string} advice what would be faster, or how far Python is with that; empty before it was asked
 * @property {Costs | null} costs what its lines cost, once that is known
 * @property {Failure | string} noEstimate why there is none; empty if there is one, or may be
 * @property {WeakMap<Lowering, Promise<Estimate>>} estimates what has been asked for
 * @property {Recorded | null} recording the recorded run that is shown
 * @property {Failure | null} recordFailure why there is none
 * @property {number} time the moment of it, in logical steps
 * @property {[number, number]} window the moments that plots show
 * @property {boolean} playing
 * @property {number} speed in steps per second
 * @property {number} waitsOf the kernel whose waits are jumped to; -1 for any
 * @property {string} busy what Python is doing; empty for nothing
 * @property {number} since when Python began with that, in milliseconds since 1970
 * @property {string} progress
 * @property {Followed | null} followed what Python does although nobody asked for it here
 * @property {string} limit the time limit in seconds, as it was written; empty for the usual one
 * @property {string} backend the chosen one
 * @property {string} say for who hears the page
 * @property {Edits} edits
 * @property {Edits} emitted the texts that edits began with
 * @property {Backend[]} backends
 * @property {InputKind[]} kinds
 * @property {Inputs} inputs
 * @property {string[]} targets
 * @property {Record<string, string>} wish options, or arguments of the kernel, that What if is to try
 * @property {string} stale
 * @property {string} lost what a link named and there is not
 */

/** @typedef {Running & { answer: Promise<Answers[Question["do"]]> }} Followed */
/** @typedef {Pick<State, "variant" | "pinned" | "edits" | "emitted" | "draft">} Back */
/** @typedef {Store<State>} Explorer */

/**
 * The store of an explorer that has just been opened: at the step that failed, with its kernel line pinned, else at
 * the first one that changes the program.
 * @param {Lowering} lowering
 * @param {Pick<State, "backends" | "kinds" | "targets" | "stale" | "remembered" | "wrap" | "wrapCode" | "first" | "launch" | "variant">} given
 * @returns {Explorer}
 */
export function opened(lowering, given) {
  const store = new Store(/** @type {State} */ ({
    lowering, original: null, back: null, draft: null, editing: false, drafting: false,
    draftError: null, updating: false, before: null, step: 0, part: "ir", tab: "Steps", hover: null, pinned: null, query: "", matches: [], found: null,
    lanes: true, against: -1,
    hidden: new Set(), open: new Set(), collapsed: true, split: false, columns: 1, full: false, colours: false, file: "", goTo: 0, marks: [], core: null, metric: "work items",
    estimate: null, costs: null, advice: "", noEstimate: "", estimates: new WeakMap(),
    recording: null, recordFailure: null, time: 0, window: [0, 1], playing: false, speed: 1, waitsOf: -1,
    busy: "", since: 0, progress: "", followed: null, limit: "", backend: "", say: "", lost: "", wish: {}, edits: {}, emitted: {}, inputs: { inputs: "random", seed: 0, names: "" }, ...given,
  }));
  // Where a part failed, its step did, too.
  const failed = lowering.steps.findLastIndex((step) => step.error);
  const error = lowering.steps[failed]?.error;
  if (error) store.set({ pinned: litByLine(lowering, error.line) });
  select(store, error ? failed : lowering.steps.findIndex((step) => step.ir.counts.some(Boolean)));
  return store;
}

/** Lines added, removed ... in the program and the plan of a step together. @param {Step} step */
export const totals = (step) => step.ir.counts.map((count, i) => count + step.plan.counts[i]);

/**
 * Goes to a step; its program is shown where it changed, else its plan.
 * @param {Explorer} store
 * @param {number} index
 * @param {Partial<State>} [patch]
 */
export function select(store, index, patch) {
  const { steps } = patch?.lowering ?? store.state.lowering;
  const i = within(index, steps.length - 1);
  const step = steps[i];
  const [added, removed] = totals(step);
  store.set({
    ...patch, step: i, part: patch?.part ?? (step.ir.counts.some(Boolean) || !step.plan.counts.some(Boolean) ? "ir" : "plan"), open: new Set(),
    say: `${positionOf(steps, i)}, ${step.name}, ${step.state}, ${added} added, ${removed} removed`,
  });
}

/**
 * Shows another lowering; nothing of the old one stays lit, and its edits stay where they can run. Where an original is left, `back` keeps what it was like.
 * @param {Explorer} store
 * @param {Pick<State, "lowering" | "original" | "variant">} which
 * @param {number} step
 * @param {Partial<State>} [patch]
 */
export function explore(store, which, step, patch) {
  const { original, back, variant, pinned, edits, emitted, draft } = store.state;
  // Where the same text was emitted, an edit of it is one of the other lowering as well.
  const kept = Object.entries(edits).filter(([role]) => emitted[role] === `${kernelFile(which.lowering, role).listing}`);
  select(store, step, {
    ...which, pinned: null, hover: null, edits: Object.fromEntries(kept), marks: [], recording: null, recordFailure: null, draft: null, draftError: null,
    back: which.original && (original ? back : { variant, pinned, edits, emitted, draft }), ...patch,
  });
}
