// Numbers as people read them, and within limits.

/** What is nearest to a number from 0 to `most`. @param {number} value @param {number} most */
export const within = (value, most) => Math.max(0, Math.min(most, value));

/** The first and the last of each run of positions in order. @param {number[]} positions */
export function runs(positions) {
  /** @type {number[][]} */
  const parts = [];
  for (const position of positions) {
    const last = parts.at(-1);
    if (last?.[1] === position - 1) last[1] = position;
    else parts.push([position, position]);
  }
  return parts;
}

/** "12", "12–15" of a run, counted from 1. @param {number[]} run */
export const range = ([first, last]) => (first === last ? `${first + 1}` : `${first + 1}–${last + 1}`);

/** "12, 15–20" of positions in order. @param {number[]} positions */
export const ranges = (positions) => runs(positions).map(range).join(", ");
