// Numbers as people read them.

/** "12", "12–15, 20" of positions in order, counted from 1. @param {number[]} positions */
export function ranges(positions) {
  /** @type {number[][]} */
  const parts = [];
  for (const position of positions) {
    const last = parts.at(-1);
    if (last?.[1] === position - 1) last[1] = position;
    else parts.push([position, position]);
  }
  return parts.map(([a, b]) => (a === b ? `${a + 1}` : `${a + 1}–${b + 1}`)).join(", ");
}
