// The lowering as it comes from Python (`messages.d.ts` says what is in it), with what views look up in it.

/** @import * as sent from "../messages.js" */

/** How a line is linked to a kernel line, best first. */
export const KINDS = ["exact", "derived", "inferred"];

export const ROLES = ["reader", "compute", "writer"];

/** The name of the file of a kernel. @param {string} role */
export const kernelName = (role) => `${role}.cpp`;

/** @typedef {Omit<sent.Lowering, "listings"> & { listings: Listing[] }} Lowering */

/**
 * Kernel lines that light up what they are linked to, and the words for where they are from. `known` remembers the
 * kind of the link for each set of origins.
 * @typedef {{ places: Set<number>, from: string, known?: Map<number, number> }} Lit
 */

/**
 * The value of the deflated JSON that Python sends.
 * @param {sent.Bytes} buffer
 */
async function inflated(buffer) {
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** A lowering, or another one of the kernel of `base`. @type {(buffer: sent.Bytes, base?: Lowering) => Promise<Lowering>} */
export const unpacked = async (buffer, base) => {
  const data = await inflated(buffer);
  return withListings(base ? beside(data, base) : data);
};

/** @type {(buffer: sent.Bytes) => Promise<sent.Recording>} */
export const unpackedRecording = inflated;

/** @type {(data: sent.Lowering) => Lowering} */
export const withListings = (data) => ({ ...data, listings: data.listings.map((flat) => new Listing(data.texts, flat)) });

// How many numbers a line takes.
const FLAT = 4;
// Which of them are its set of origins and its class.
const ORIGINS = 1;
export const CLASS = 2;

/**
 * A lowering with the places and the sets of origins of another one, which gets those that it lacks: what is lit or
 * pinned means the same in both.
 * @template {Pick<sent.Lowering, "places" | "origins" | "listings">} Sent
 * @param {Sent} data
 * @param {Pick<Lowering, "places" | "origins">} base
 */
export function beside(data, { places, origins }) {
  const place = positions(places, data.places);
  const origin = positions(origins, data.origins.map((flat) => flat.map((value, k) => (k % 2 ? value : place[value]))));
  return { ...data, places, origins, listings: data.listings.map((flat) => flat.map((value, k) => (k % FLAT === ORIGINS ? origin[value] : value))) };
}

/** Listings that Python sends later, with the places and sets of origins of a lowering. @param {sent.Tables} data @param {Lowering} lowering */
export const listingsBeside = (data, lowering) => beside(data, lowering).listings.map((flat) => new Listing(data.texts, flat));

/** Where each of `more` is among `values`, which gets those that it lacks. @template Value @param {Value[]} values @param {Value[]} more */
function positions(values, more) {
  const known = new Map(values.map((value, i) => [`${value}`, i]));
  return more.map((value) => {
    const at = known.get(`${value}`) ?? values.push(value) - 1;
    known.set(`${value}`, at);
    return at;
  });
}

/** Lines of text that know their origins: position `i` counts from 0. */
export class Listing {
  /** @type {number | undefined} */
  #longest;
  /** @type {string | undefined} */
  #text;
  /** @type {Record<number, Map<number, number>>} */
  #tallies = {};

  /** @param {string[]} texts @param {number[]} flat */
  constructor(texts, flat) {
    this.texts = texts;
    this.flat = flat;
    this.count = flat.length / FLAT;
  }

  /** @param {number} i */
  text(i) {
    return this.texts[this.flat[FLAT * i]];
  }

  /** The number of the set of origins; sets are stored once. @param {number} i */
  origins(i) {
    return this.flat[FLAT * i + ORIGINS];
  }

  /** 0, or one more than the position of the line's class. @param {number} i */
  class(i) {
    return this.flat[FLAT * i + CLASS];
  }

  /** What the line does: 0 computes, 1 moves, 2 controls, 3 is around that. @param {number} i */
  work(i) {
    return this.flat[FLAT * i + 3];
  }

  /** How many characters line `i` takes; a tab counts as four. @param {number} i */
  width(i) {
    return this.text(i).replaceAll("\t", "    ").length;
  }

  /** The width of the longest line. */
  get longest() {
    return (this.#longest ??= this.lines().reduce((most, i) => Math.max(most, this.width(i)), 0));
  }

  /** How many lines have each value of number `k` of a line, such as each set of origins. @param {number} k */
  tally(k) {
    const { flat } = this;
    return (this.#tallies[k] ??= this.lines().reduce((tally, i) => tally.set(flat[FLAT * i + k], (tally.get(flat[FLAT * i + k]) ?? 0) + 1), new Map()));
  }

  /** The positions of all lines. */
  lines() {
    return [...Array(this.count).keys()];
  }

  /** The positions of the lines whose texts are among those that `has` says. @param {boolean[]} has */
  matching(has) {
    return this.lines().filter((i) => has[this.flat[FLAT * i]]);
  }

  toString() {
    return (this.#text ??= this.lines().map((i) => `${this.text(i)}\n`).join(""));
  }
}

/**
 * The kernel line and the kind of the link of each origin in a set, best first.
 * @param {Lowering} lowering
 * @param {number} origins
 */
export function labels(lowering, origins) {
  return labelled(lowering, origins).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
}

/** The same in the order of the set. @param {Lowering} lowering @param {number} origins */
export const labelled = ({ origins: sets, places }, origins) => pairs(sets[origins]).map(([place, kind]) => [places[place][1], kind]);

/** @param {number[]} flat */
const pairs = (flat) => flat.flatMap((place, k) => (k % 2 ? [] : [[place, flat[k + 1]]]));

/**
 * What a line with these origins lights up; null for a line that no kernel line is known for.
 * @param {Lowering} lowering
 * @param {number} origins
 * @param {string} from
 * @returns {Lit | null}
 */
export function litByOrigins(lowering, origins, from) {
  const places = origins < 0 ? [] : pairs(lowering.origins[origins]).map(([place]) => place);
  return places.length ? { places: new Set(places), from } : null;
}

/**
 * What a kernel line lights up; null for one that no other line comes from.
 * @param {Lowering} lowering
 * @param {number} line
 * @returns {Lit | null}
 */
export function litByLine(lowering, line) {
  const places = lowering.places.flatMap(([, own], place) => (own === line ? [place] : []));
  return places.length ? { places: new Set(places), from: `kernel line ${line}` } : null;
}

/** The kernel lines that are lit, in their order. @param {Lowering} lowering @param {Lit | null} lit */
export const linesOf = ({ places }, lit) => [...new Set([...lit?.places ?? []].map((place) => places[place][1]))].sort((a, b) => a - b);

/**
 * How a line with these origins is linked to what is lit: a position in KINDS, -1 for not at all.
 * @param {Lowering} lowering
 * @param {number} origins
 * @param {Lit | null} lit
 */
export function link(lowering, origins, lit) {
  if (!lit || origins < 0) return -1;
  const known = (lit.known ??= new Map());
  if (!known.has(origins)) {
    const kinds = pairs(lowering.origins[origins]).flatMap(([place, kind]) => (lit.places.has(place) ? [kind] : []));
    known.set(origins, kinds.length ? Math.min(...kinds) : -1);
  }
  return known.get(origins) ?? -1;
}

/**
 * The lines of a listing that are linked to what is lit, as [position, kind].
 * @param {Lowering} lowering
 * @param {Listing} listing
 * @param {Lit} lit
 */
export function linked(lowering, listing, lit) {
  return listing.lines().map((i) => [i, link(lowering, listing.origins(i), lit)]).filter(([, kind]) => kind >= 0);
}

/**
 * How many lines of a listing are linked to what is lit.
 * @param {Lowering} lowering
 * @param {Listing} listing
 * @param {Lit} lit
 */
export function countLinked(lowering, listing, lit) {
  let sum = 0;
  listing.tally(ORIGINS).forEach((count, origins) => { if (link(lowering, origins, lit) >= 0) sum += count; });
  return sum;
}

/**
 * How far line `i`, linked by `kind`, is from what a reader looks for who follows a kernel line: what does the work comes
 * before what is around it, then exact before derived; what is only inferred comes last.
 * @param {Listing} listing
 * @param {number} i
 * @param {number} kind
 */
export const distance = (listing, i, kind) => (kind > 1 ? 100 : 0) + 10 * listing.work(i) + kind;

/**
 * The position of the line of a listing that does the work of what is lit; -1 for none.
 * @param {Lowering} lowering
 * @param {Listing} listing
 * @param {Lit} lit
 */
export function landing(lowering, listing, lit) {
  const found = linked(lowering, listing, lit).sort(([a, x], [b, y]) => distance(listing, a, x) - distance(listing, b, y) || a - b);
  return found[0]?.[0] ?? -1;
}

/**
 * The file of a kernel, and the listing of its lines; both are missing where no file was emitted.
 * @param {Lowering} lowering
 * @param {string} role
 */
export function kernelFile({ files, listings }, role) {
  const file = files.find(({ name }) => name === kernelName(role));
  return { file, listing: file && listings[file.listing] };
}

/** The share of the statements whose kernel line is known, in percent; null where there are none. @param {sent.Coverage} coverage */
export function linkedShare([exact, derived, inferred, unknown]) {
  const all = exact + derived + inferred + unknown;
  return all ? Math.round((100 * (exact + derived)) / all) : null;
}
