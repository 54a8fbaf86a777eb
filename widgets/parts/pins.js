// Following what is pinned through a list: where it lands, and the lines before and after that come from it too.

/** @import { Explorer } from "../model/state.js" */
/** @import { Rows } from "./rows.js" */

import { chip, classed, h, put } from "./dom.js";

/**
 * Brings a list to what is pinned, and steps on from there. `find()` gives the rows that come from it with their
 * distances from what does its work, and `say(i)` what row `i` is.
 * @param {Explorer} store
 * @param {Rows} rows
 * @param {() => [row: number, distance: number][]} find
 * @param {(i: number) => string} say
 */
export function followPins(store, rows, find, say) {
  /** @type {number[]} */
  let found = [];
  let nearest = -1;
  let isNew = true;
  const back = chip("‹", () => step(-1), { title: "P" });
  const count = h("span.q");
  const on = chip("›", () => step(1), { title: "N" });
  const element = h("span.pins", back, count, on);

  function draw() {
    const at = found.indexOf(rows.cursor);
    classed(element, "off", !store.state.pinned);
    const where = ` line of what is pinned in ${rows.element.ariaLabel}`;
    back.ariaLabel = `previous${where}`;
    on.ariaLabel = `next${where}`;
    back.disabled = on.disabled = !found.length;
    put(count, found.length ? `${at < 0 ? "–" : at + 1} of ${found.length}` : "none");
  }

  /** Shows a line of what is pinned: the one that the cursor is on, else the one that does the work. */
  function reveal() {
    const lines = store.state.pinned ? find() : [];
    found = lines.map(([row]) => row);
    nearest = [...lines].sort((a, b) => a[1] - b[1] || a[0] - b[0])[0]?.[0] ?? -1;
    // What is hidden has no place to scroll to.
    if (found.length && rows.element.clientHeight && !store.state.updating) {
      // Whoever pins a line in this list stays there.
      const stays = found.includes(rows.cursor) && (!isNew || rows.inSight(rows.cursor));
      rows.move(stays ? rows.cursor : nearest);
      isNew = false;
    }
    draw();
  }

  /** @param {number} direction */
  function step(direction) {
    if (!found.length) return store.set({ say: store.state.pinned ? "nothing here comes from what is pinned" : "nothing is pinned" });
    const at = found.indexOf(rows.cursor);
    const from = at < 0 ? found.indexOf(nearest) - direction : at;
    const next = (from + direction + found.length) % found.length;
    rows.move(found[next]);
    store.set({ say: `${next + 1} of ${found.length}: ${say(found[next])}` });
  }

  rows.onmove = draw;
  store.on(["pinned"], () => {
    // An edit of the kernel leaves the reader where they are.
    isNew ||= !store.state.updating;
    reveal();
  });
  return { element, reveal, step };
}
