// What keys mean to the whole explorer. A view has keys of its own, which come first.

/** @import { State } from "./state.js" */

/** What the keys do, in words. @param {string[]} tabs */
export const keys = (tabs) => [
  ["↑ ↓  or  k j", "previous or next step; in a listing, line"],
  ["← →", "in the list of steps: also parts that changed nothing"],
  ["n p", "next or previous change; of a recorded run, wait; in Code, line of what is pinned"],
  ["N P", "next or previous line of what is pinned"],
  ["t  + -", "play or pause a recorded run, zoom into it"],
  ["+ - 0", "in the graph of Buffers: zoom, and show all of it; arrows go to the nearest box, Enter tells of it"],
  ["/", "search everything; Enter and Shift+Enter go through all that has it"],
  ["h or Enter", "pin the line under the cursor"],
  ["c  s", "fold unchanged lines, side by side"],
  ["v", "in Steps, compare with another step"],
  ["w", "wrap long lines: in Steps and What if of changes, elsewhere of code"],
  ["l", "give lines the colours of their kernel lines"],
  ["f", "full screen; Esc leaves it"],
  [`1 … ${tabs.length}`, tabs.join(", ")],
  ["e", "edit the kernel, in Steps and Code; Esc ends it"],
  ["r", "go to Run; there, run the kernels"],
  ["Ctrl+] Ctrl+[", "indent lines of an edited text more, less; Tab leaves it"],
  ["?", "this list"],
  ["Esc", "unpin or close; otherwise leave the explorer"],
];

/**
 * A key's meaning: so many steps on, a switch to turn, a tab, the list of keys, nothing lit any more,
 * or out of the explorer. Null for a key without one.
 * @typedef {{ move: number } | { turn: "collapsed" | "split" | "wrap" | "wrapCode" | "full" | "colours" } | { tab: string } | "help" | "search" | "unpin" | "leave"} Meaning
 */

/**
 * @param {string} key
 * @param {Pick<State, "tab" | "hover" | "pinned" | "full">} state
 * @param {string[]} tabs
 * @returns {Meaning | null}
 */
export function meaning(key, { tab, hover, pinned, full }, tabs) {
  if (tabs[Number(key) - 1]) return { tab: tabs[Number(key) - 1] };
  const step = { j: 1, k: -1 }[key] ?? (tab === "Steps" && vertical(key));
  if (step) return { move: step };
  switch (key) {
    case "c": return { turn: "collapsed" };
    case "s": return { turn: "split" };
    case "w": return { turn: tab === "Steps" || tab === "What if" ? "wrap" : "wrapCode" };
    case "l": return { turn: "colours" };
    case "f": return { turn: "full" };
    case "r": return { tab: "Run" };
    case "?": return "help";
    case "/": return "search";
    case "Escape": return full ? { turn: "full" } : pinned || hover ? "unpin" : "leave";
    default: return null;
  }
}

/** @param {string} key */
const vertical = (key) => ({ ArrowDown: 1, ArrowUp: -1 })[key] ?? 0;

/** @param {string} key */
const horizontal = (key) => ({ ArrowRight: 1, ArrowLeft: -1 })[key] ?? 0;

/**
 * The item that an arrow key leads to along a list, round its ends; null for another key.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 */
export const along = (key, at, count) => (horizontal(key) ? (at + horizontal(key) + count) % count : null);

/**
 * The neighbour of "x,y" that an arrow key leads to; null for another key.
 * @param {string} key
 * @param {string} place
 */
export function neighbour(key, place) {
  const [x, y] = place.split(",").map(Number);
  return horizontal(key) || vertical(key) ? `${x + horizontal(key)},${y + vertical(key)}` : null;
}
