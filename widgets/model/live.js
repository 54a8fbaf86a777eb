// The kernel's text as the user edits it: whenever no key has been pressed for a moment, Python lowers it, and what comes
// takes the place of what is shown.

/** @import { Failure } from "../messages.js" */
/** @import { Listing, Lit, Lowering } from "./lowering.js" */
/** @import { Kernel } from "./questions.js" */
/** @import { Explorer, State } from "./state.js" */

import { unpacked } from "./lowering.js";

const PAUSE_MS = 400;
const FLASH_MS = 1500;

/** The kernel's text of which a lowering is. @param {Pick<Lowering, "listings" | "source">} lowering */
export const kernelText = ({ listings, source }) => `${listings[source.listing]}`.slice(0, -1);

/** The kernel's text as it is being edited. @param {Pick<State, "draft" | "lowering">} state */
export const draftText = ({ draft, lowering }) => draft ?? kernelText(lowering);

/** Whether what is shown is of a text before this one, which cannot be lowered. @param {State} state */
export const isOutdated = (state) => !!state.draftError && draftText(state) !== kernelText(state.lowering);

/** @param {Listing} listing */
export const textsOf = (listing) => new Set(listing.lines().map((i) => listing.text(i)));

/** Lowers each draft; the newest is the one that counts. @param {Explorer} store @param {Kernel} kernel */
export function lowerDrafts(store, kernel) {
  let timer = 0;
  let newest = 0;
  /** The variants that edits have given. @type {Set<string>} */
  const made = new Set();
  store.on(["draft"], (state) => {
    clearTimeout(timer);
    newest++;
    const drafting = draftText(state) !== kernelText(state.lowering);
    store.set({ drafting, draftError: drafting ? state.draftError : null });
    if (drafting) timer = setTimeout(lower, PAUSE_MS, newest);
  });

  /** @param {number} number */
  async function lower(number) {
    const { state } = store;
    const unused = [...made].filter((one) => one !== state.variant && one !== state.back?.variant);
    unused.forEach((one) => made.delete(one));
    try {
      const { buffer, variant, moved, error } = await kernel.ask({ do: "edit", text: draftText(state), unused, launch: state.launch });
      made.add(variant);
      const other = await unpacked(buffer);
      if (number !== newest) return;
      // What can be lowered stays in sight.
      if (!error || state.lowering.steps.some((step) => step.error)) replace(store, other, variant, moved);
      store.set({ drafting: false, draftError: error });
    } catch (error) {
      if (error instanceof Error) throw error;
      if (number === newest) store.set({ drafting: false, draftError: /** @type {Failure} */ (error) });
    }
  }
}

/** Shows the lowering of an edited text; the reader stays where they are. @param {Explorer} store @param {Lowering} other @param {string} variant @param {number[]} moved */
function replace(store, other, variant, moved) {
  const { lowering: before, pinned, step } = store.state;
  const same = other.steps.findIndex(({ letter }) => letter === before.steps[step].letter);
  store.set({
    lowering: other, variant, before, updating: true, hover: null, marks: [], recording: null, recordFailure: null, pinned: followed(before, other, moved, pinned),
    step: same < 0 ? other.steps.length - 1 : same,
  });
  store.set({ updating: false });
  setTimeout(() => { if (store.state.before === before) store.set({ before: null }); }, FLASH_MS);
}

/**
 * What is pinned, in the lowering of an edited text; `moved` says which line each line of the kernel has become, -1 for none.
 * @param {Lowering} before
 * @param {Lowering} after
 * @param {number[]} moved
 * @param {Lit | null} lit
 * @returns {Lit | null}
 */
export function followed(before, after, moved, lit) {
  /** The place of a line of the kernel. @type {(lowering: Lowering, row: number) => number | undefined} */
  const placeOf = ({ listings, source, origins }, row) => (row < 0 ? undefined : origins[listings[source.listing].origins(row)][0]);
  const rows = new Map(moved.map((_, row) => [placeOf(before, row), row]));
  const places = [...(lit?.places ?? [])].flatMap((place) => {
    const row = rows.get(place);
    const [file, line] = before.places[place];
    // Lines of macros stay what they are.
    const to = row === undefined ? after.places.findIndex(([a, b]) => a === file && b === line) : placeOf(after, moved[row]) ?? -1;
    return to < 0 ? [] : [to];
  });
  return places.length ? { places: new Set(places), from: "the edited kernel" } : null;
}
