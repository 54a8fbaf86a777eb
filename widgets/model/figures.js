// Numbers as people read them.

/** 1,234. @param {number} value */
export const grouped = (value) => Math.round(value).toLocaleString("en-US");

/** 960 B, 2 KiB, 3.5 MiB. @param {number} count */
export function bytes(count) {
  const size = Math.abs(count);
  if (size < 1024) return `${grouped(count)} B`;
  const [unit, name] = size < 1024 * 1024 ? [1024, "KiB"] : [1024 * 1024, "MiB"];
  return `${(count / unit).toLocaleString("en-US", { maximumFractionDigits: 1 })} ${name}`;
}

/** Four characters at most: 960, 12k, 3.4M. @param {number} value */
export function compact(value) {
  /** @type {[number, string][]} */
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [unit, name] of units)
    if (value >= unit) return `${value / unit >= 10 ? Math.round(value / unit) : (value / unit).toFixed(1)}${name}`;
  return `${Math.round(value)}`;
}

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
