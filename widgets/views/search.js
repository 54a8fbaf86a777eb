// The search over everything, beside whatever view is shown: a list of all lines with a text, and a way through them.

/** @import { Group, Match } from "../model/search.js" */
/** @import { Explorer } from "../model/state.js" */

import { search } from "../model/search.js";
import { select } from "../model/state.js";
import { chip, closest, focusOn, h, put, set, take } from "../parts/dom.js";
import { code } from "../parts/listing.js";
import { Rows } from "../parts/rows.js";

/** @param {Explorer} store @param {HTMLElement} root the explorer, which gets the focus afterwards */
export function finder(store, root) {
  /** A row of the list: a match, or the head of its group. @type {{ group: Group, match?: Match, number: number }[]} */
  let entries = [];
  let count = 0;
  const label = "search everything";
  const query = h("input", {
    type: "search", placeholder: label, label,
    oninput: () => store.set({ query: query.value.trim().toLowerCase() }),
  });
  const where = h("span.found.q");
  const rows = new Rows("search results", "results", (i) => {
    const { group: { name, language, matches }, match } = entries[i];
    return match
      ? h("div.l", { role: "listitem", title: match.text.trim() }, h("span.n", match.line >= 0 && `${match.line + 1}`), h("code", ...code(match.text.trim(), language, store.state.query)))
      : h("div.stage", { role: "listitem" }, h("b", name), ` ${matches.length}`);
  });
  set(rows.element, { onclick: ({ target }) => {
    const i = Number(closest(target, "[data-i]")?.dataset.i ?? -1);
    if (i >= 0) go(i + +!entries[i].match);
  } });
  const element = h("search.pane.finder", {
    hidden: true, onkeydown: (event) => {
      const { key, shiftKey } = event;
      const direction = key === "Enter" && closest(event.target, "button") ? 0 : { Enter: shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 }[key];
      if (direction) walk(direction);
      else if (key === "Escape") close();
      else return;
      take(event);
    },
  },
  h("div.search", query, chip("‹", () => walk(-1), { label: "previous" }), where, chip("›", () => walk(1), { label: "next" }), chip("×", close, { label: "close" })),
  rows.element);

  store.on(["query", "lowering"], ({ query, lowering }) => {
    const groups = query ? search(lowering, query) : [];
    count = 0;
    entries = groups.flatMap((group) => [{ group, number: 0 }, ...group.matches.map((match) => ({ group, match, number: ++count }))]);
    rows.reset(entries.length, { wrapped: false, longest: 0 });
    rows.draw();
    store.set({ matches: groups, found: null });
    tell();
  });
  rows.onmove = tell;

  function tell() {
    put(where, store.state.query && (count ? `${entries[rows.cursor]?.number ?? "–"} of ${count}` : "not found"));
  }

  /** The first match on from what is shown. */
  function start() {
    const { tab, step, file } = store.state;
    return entries.findIndex(({ group, match }) => match && (tab === "Code" ? group.file === file : group.step >= step));
  }

  /** To the next match, round the ends. @param {number} direction */
  function walk(direction) {
    if (!count) return store.set({ say: "no matches" });
    let i = rows.cursor;
    if (i < 0 && direction > 0) i = start() - 1;
    do i = (Math.max(i, direction < 0 ? 0 : -1) + direction + entries.length) % entries.length; while (!entries[i].match);
    go(i);
  }

  /** @param {number} i */
  function go(i) {
    const { group: { name, step, part, file, listing }, match, number } = entries[i];
    const { tab } = store.state;
    rows.move(i);
    if (!match) return;
    if (step >= 0) select(store, step, { tab: "Steps", part, against: -1 });
    else store.set(file ? { tab: "Code", file } : { tab: tab === "Code" ? tab : "Steps" });
    // It is shown before the line is looked for in it.
    store.set({ found: { listing, line: match.line }, say: `${number} of ${count}, ${name}${match.line < 0 ? "" : ` line ${match.line + 1}`}: ${match.text.trim()}` });
  }

  function close() {
    store.set({ query: (query.value = "") });
    element.hidden = true;
    focusOn(root);
  }
  return {
    element,
    open: () => {
      element.hidden = false;
      query.select();
      focusOn(query);
    },
  };
}
