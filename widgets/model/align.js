// The rows of a diff of any two texts, made in the page, so that reports can compare, too. Those of a step's own change
// come from Python.

/** @import { Pieces, Row } from "../messages.js" */
/** @import { Listing } from "./lowering.js" */

import { ADDED, CHANGED, EQUAL, INDENTED, REMOVED } from "./diff.js";

// Larger blocks without a line of their own in common are not searched: the search is quadratic.
const LARGEST_SEARCH = 1_000_000;
// The same for lines that are only similar, as in Python.
const LARGEST_PAIRING = 4000;
const LONGEST_LINE = 1000;
const SIMILAR = 0.5;

/** @typedef {[i: number, j: number]} Pair */

/** The rows that align two listings, which are made once. @type {WeakMap<Listing, WeakMap<Listing, Row[]>>} */
const made = new WeakMap();

/** The rows between two programs, plans or files. @param {Listing} before @param {Listing} after @param {boolean} plan */
export function rowsBetween(before, after, plan) {
  const known = made.get(before) ?? new WeakMap();
  made.set(before, known);
  /** @param {Listing} listing */
  const lines = (listing) => listing.lines().map((i) => listing.text(i));
  const rows = known.get(after) ?? aligned(lines(before), lines(after), (line) => (plan ? line.split(": ")[0] : line.trim()));
  known.set(after, rows);
  return rows;
}

/** How many lines were added, removed, and only indented. @param {Row[]} rows */
export function countsOf(rows) {
  return [[ADDED, CHANGED], [REMOVED, CHANGED], [INDENTED]].map((kinds) => rows.filter(([kind]) => kinds.includes(kind)).length);
}

/**
 * The rows that align two texts: lines with equal keys in order, and between them those that are similar.
 * @param {string[]} before
 * @param {string[]} after
 * @param {(line: string) => string} key
 */
export function aligned(before, after, key) {
  /** @type {Row[]} */
  const rows = [];
  let [i, j] = [0, 0];
  /** Lines without a partner, up to a pair, and the pair. @param {Pair} pair */
  const upTo = ([k, l]) => {
    while (i < k) rows.push([REMOVED, i++, -1]);
    while (j < l) rows.push([ADDED, -1, j++]);
    if (!(i < before.length && j < after.length)) return;
    const [one, other] = [before[i], after[j]];
    const last = rows.at(-1);
    if (one !== other) rows.push(one.trim() === other.trim() ? [INDENTED, i, j] : [CHANGED, i, j, ...pieces(one, other)]);
    else if (last?.[0] === EQUAL) last[3]++;
    else rows.push([EQUAL, i, j, 1]);
    i++;
    j++;
  };
  /** @type {Pair} */
  const end = [before.length, after.length];
  for (const pair of [...matches(before.map(key), 0, end[0], after.map(key), 0, end[1]), end]) {
    const [k, l] = [i, j];
    for (const [x, y] of similar(before.slice(k, pair[0]), after.slice(l, pair[1]))) upTo([k + x, l + y]);
    upTo(pair);
  }
  return rows;
}

/**
 * Pairs of equal items in order: around lines that both sides have once, as far as these keep their order; what lies
 * between them is searched.
 * @param {string[]} a @param {number} i @param {number} k
 * @param {string[]} b @param {number} j @param {number} l
 * @returns {Generator<Pair>}
 */
function* matches(a, i, k, b, j, l) {
  while (i < k && j < l && a[i] === b[j]) yield [i++, j++];
  let same = 0;
  while (i < k && j < l && a[k - 1] === b[l - 1]) {
    same++;
    k--;
    l--;
  }
  const there = once(b, j, l);
  const anchors = growing([...once(a, i, k)].flatMap(([item, x]) => {
    const y = there.get(item) ?? -1;
    return x < 0 || y < 0 ? [] : [/** @type {Pair} */ ([x, y])];
  }));
  for (const [x, y] of anchors) {
    yield* matches(a, i, x, b, j, y);
    yield [x, y];
    [i, j] = [x + 1, y + 1];
  }
  if (anchors.length) yield* matches(a, i, k, b, j, l);
  else for (const [x, y] of best(k - i, l - j, LARGEST_SEARCH, (x, y) => +(a[i + x] === b[j + y]))) yield [i + x, j + y];
  while (same--) yield [k++, l++];
}

/** Where each item of a range is, -1 if it is there more than once. @param {string[]} items @param {number} from @param {number} to */
function once(items, from, to) {
  /** @type {Map<string, number>} */
  const places = new Map();
  for (let i = from; i < to; i++) places.set(items[i], places.has(items[i]) ? -1 : i);
  return places;
}

/** As many pairs as can be kept so that both numbers grow: the first ones grow already. @param {Pair[]} pairs */
function growing(pairs) {
  /** @typedef {{ pair: Pair, before: End | undefined }} End */
  /** The run with the smallest end for each length. @type {End[]} */
  const ends = [];
  for (const pair of pairs) {
    let length = ends.length;
    while (length && ends[length - 1].pair[1] > pair[1]) length--;
    ends[length] = { pair, before: ends[length - 1] };
  }
  const found = [];
  for (let end = ends.at(-1); end; end = end.before) found.push(end.pair);
  return found.reverse();
}

/**
 * Pairs in order with the largest sum of scores; none where more than `most` would have to be scored.
 * @param {number} n @param {number} m @param {number} most @param {(x: number, y: number) => number} score
 */
function best(n, m, most, score) {
  /** @type {Pair[]} */
  const found = [];
  if (n * m > most) return found;
  const sums = new Float64Array((n + 1) * (m + 1));
  /** @type {(x: number, y: number) => number} */
  const at = (x, y) => x * (m + 1) + y;
  for (let x = n - 1; x >= 0; x--)
    for (let y = m - 1; y >= 0; y--) sums[at(x, y)] = Math.max(sums[at(x + 1, y)], sums[at(x, y + 1)], sums[at(x + 1, y + 1)] + score(x, y));
  for (let x = 0, y = 0; x < n && y < m;)
    if (score(x, y) && sums[at(x, y)] === sums[at(x + 1, y + 1)] + score(x, y)) found.push([x++, y++]);
    else if (sums[at(x, y)] === sums[at(x + 1, y)]) x++;
    else y++;
  return found;
}

/** Pairs of lines of which half of the words agree. @param {string[]} before @param {string[]} after */
function similar(before, after) {
  const [one, other] = [before, after].map((lines) => lines.map((line) => line.match(/\w+/g) ?? []));
  return best(before.length, after.length, LARGEST_PAIRING, (x, y) => {
    const [a, b] = [one[x], other[y]];
    const share = (2 * [...matches(a, 0, a.length, b, 0, b.length)].length) / (a.length + b.length || 1);
    return share >= SIMILAR ? share : 0;
  });
}

/** The pieces of a changed line on both sides; its indentation is no change. @param {string} before @param {string} after @returns {[Pieces, Pieces]} */
function pieces(before, after) {
  const lines = [before, after];
  if (lines.some((line) => line.length > LONGEST_LINE)) return [[0, before.length], [0, after.length]];
  const [one, other] = lines.map((line) => line.trimStart().match(/\w+|\s+|[^\w\s]/g) ?? []);
  const pairs = [...matches(one, 0, one.length, other, 0, other.length)];
  return /** @type {[Pieces, Pieces]} */ ([one, other].map((tokens, side) => {
    const kept = new Set(pairs.map((pair) => pair[side]));
    const lengths = [lines[side].length - lines[side].trimStart().length];
    tokens.forEach((token, t) => {
      if (kept.has(t) === lengths.length % 2 < 1) lengths.push(0);
      lengths[lengths.length - 1] += token.length;
    });
    return lengths;
  }));
}
