// The lowering as it comes from Python (`ttexplore/views/explorer.py` says what is in it), with what views look up.

export const KINDS = ["exact", "derived", "inferred"];
export const ROWS = ["equal", "added", "removed", "changed", "indented", "renamed", "moved"];
export const GLYPHS = ["", "+", "−", "±", "~", "≈", "⇄"];

/** The value of the deflated JSON that Python sends. */
export async function inflated(buffer) {
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

export const unpacked = async (buffer) => new Lowering(await inflated(buffer));

/** Lines of text that know their origins: position `i` counts from 0. */
class Listing {
  constructor(lowering, flat) {
    this.lowering = lowering;
    this.flat = flat;
    this.count = flat.length / 3;
  }

  text(i) {
    return this.lowering.data.texts[this.flat[3 * i]];
  }

  /** The number of the set of origins; sets are stored once. */
  originId(i) {
    return this.flat[3 * i + 1];
  }

  kind(i) {
    return this.flat[3 * i + 2];
  }

  /** How many lines there are of each class. */
  get classCounts() {
    if (!this.counted) {
      this.counted = {};
      for (let k = 2; k < this.flat.length; k += 3) this.counted[this.flat[k]] = (this.counted[this.flat[k]] || 0) + 1;
    }
    return this.counted;
  }
}

export class Lowering {
  constructor(data) {
    this.data = data;
    this.listings = data.listings.map((flat) => new Listing(this, flat));
    this.source = this.listings[data.source.listing];
    this.steps = data.steps;
  }

  /** The places, kernel lines as positions in `data.places`, of a set of origins. */
  places(originId) {
    return this.data.origins[originId].filter((_, position) => position % 2 === 0);
  }

  /** How a line with these origins is linked to the active places: 0 exact, 1 derived, 2 inferred, -1 not at all. */
  link(originId, active) {
    if (!active) return -1;
    if (active.known === undefined) active.known = new Map();
    let found = active.known.get(originId);
    if (found === undefined) {
      const flat = this.data.origins[originId];
      found = -1;
      for (let k = 0; k < flat.length; k += 2)
        if (active.places.has(flat[k]) && (found < 0 || flat[k + 1] < found)) found = flat[k + 1];
      active.known.set(originId, found);
    }
    return found;
  }

  /** What pinning a kernel line lights up; null for a line that no other comes from. */
  lineAsActive(line) {
    const places = this.data.places.map((_, place) => place).filter((place) => this.data.places[place][1] === line);
    return places.length ? { places: new Set(places), from: `kernel line ${line}` } : null;
  }

  /** "L27", "L18 L22", "L18 L22 +3" with the kind of each. */
  labels(originId) {
    const flat = this.data.origins[originId];
    const found = [];
    for (let k = 0; k < flat.length; k += 2) found.push([this.data.places[flat[k]][1], flat[k + 1]]);
    return found.sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  }

  /** The lines of a listing that are linked to the active places, as [[position, kind], ...]. */
  linked(listing, active) {
    const found = [];
    for (let i = 0; i < listing.count; i++) {
      const kind = this.link(listing.originId(i), active);
      if (kind >= 0) found.push([i, kind]);
    }
    return found;
  }

  /** The first and last steps whose program or plan has a text, and how many lines of each step do. */
  search(words) {
    const wanted = words.toLowerCase();
    const matches = this.data.texts.map((text) => text.toLowerCase().includes(wanted));
    const counts = this.steps.map((step) => {
      let count = 0;
      for (const part of [step.ir, step.plan]) {
        const { flat } = this.listings[part.after];
        for (let k = 0; k < flat.length; k += 3) if (matches[flat[k]]) count++;
      }
      return count;
    });
    return { counts, first: counts.findIndex((count) => count > 0) };
  }
}

/** "12", "12–15, 20" of positions in order, counted from 1. */
export function ranges(positions) {
  const parts = [];
  for (const position of positions) {
    const last = parts[parts.length - 1];
    if (last && last[1] === position - 1) last[1] = position;
    else parts.push([position, position]);
  }
  return parts.map(([a, b]) => (a === b ? `${a + 1}` : `${a + 1}–${b + 1}`)).join(", ");
}
