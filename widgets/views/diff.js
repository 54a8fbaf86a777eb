// What the selected step changed: its head, the search in all steps, and the rows.

/** @import { Step } from "../messages.js" */
/** @import { ShownRow } from "../model/diff.js" */
/** @import { Listing } from "../model/lowering.js" */
/** @import { Explorer, State } from "../model/state.js" */

import { CHANGED, GLYPHS, RENAMED, ROWS, hasWords, isChange, nextChange, piecesOf, shownRows } from "../model/diff.js";
import { hits, link as linkOf } from "../model/lowering.js";
import { select } from "../model/state.js";
import { meaning } from "../model/terms.js";
import { counts, errorCard } from "../parts/cards.js";
import { button, chip, closest, h, link, put, quiet } from "../parts/dom.js";
import { code, linkRows, mark, originLabel } from "../parts/listing.js";
import { LARGEST_WRAPPED, Rows } from "../parts/rows.js";

// By kind, in the order of ROWS.
const ROW_CLASSES = ["", "a", "r", "c", "w", "w", "v"];

/** @param {Explorer} store */
export function diffPane(store) {
  /** @type {ShownRow[]} */
  let shown = [];
  /** @type {Listing} */
  let before;
  /** @type {Listing} */
  let after;
  /** In how many lines of each step the words occur that are searched for. @type {number[] | null} */
  let found;
  const rows = new Rows("changes of the step", "diff", (i) => diffRow(store, shown[i], before, after));
  /** The side of a row that stands for it, and its line there. @type {(row: ShownRow) => [Listing, number]} */
  const sideOf = ({ i, j }) => (j >= 0 ? [after, j] : [before, i]);
  /** @param {ShownRow | undefined} row */
  const originsOf = (row) => {
    if (!row || row.gap) return -1;
    const [listing, line] = sideOf(row);
    return listing.origins(line);
  };
  /** @param {ShownRow} row */
  const place = (row) => {
    const [listing, line] = sideOf(row);
    const { lowering: { steps, texts }, step, part } = store.state;
    const why = texts[steps[step][part].why[+(row.j >= 0)][line]];
    return row.gap ? `${row.gap} unchanged lines` : `${ROWS[row.kind]} line ${1 + line}: ${listing.text(line)}${why}`;
  };
  const pinCursor = linkRows(rows, store, (i) => originsOf(shown[i]), (i) => place(shown[i]));
  rows.element.addEventListener("click", (event) => {
    const { key } = shown[Number(closest(event.target, ".gap")?.dataset.i)] ?? {};
    if (key !== undefined) store.set({ open: new Set([...store.state.open, key]) });
  });

  const title = h("div.title");
  const options = h("code.q");
  const prose = h("div.prose");
  const toggles = h("div.toggles");
  const error = h("div");
  const where = h("span.found.q");
  const query = h("input", {
    type: "search", placeholder: "search all steps", label: "search all steps",
    oninput: () => { store.set({ query: query.value.trim().toLowerCase() }); },
    onkeydown: (event) => {
      event.stopPropagation();
      if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") {
        if (query.value) store.set({ query: (query.value = "") });
        else rows.element.focus();
      } else return;
      event.preventDefault();
    },
  });
  const element = h("section.pane.diffpane", { label: "step" },
    title,
    h("details.about", h("summary", "description", options), prose),
    // What is being typed must not be taken out of the page, so the search stands beside what is drawn anew.
    h("div.tools", toggles, h("span.search", query, where)),
    error, rows.element);

  let old = "";
  /** @type {State["lowering"]} */
  let oldLowering;
  store.on(["step", "part", "lowering", "open", "collapsed", "hidden", "wrap", "split", "query"], (state) => {
    const { lowering, step: index, part, hidden, split, query } = state;
    const step = lowering.steps[index];
    const keep = old === `${index}${part}` && oldLowering === lowering;
    old = `${index}${part}`;
    oldLowering = lowering;
    before = lowering.listings[step[part].before];
    after = lowering.listings[step[part].after];
    const made = shownRows(step[part].rows, (side, i) => hidden.has(lowering.classes[(side === "j" ? after : before).class(i) - 1]), state);
    shown = made.rows;
    rows.element.classList.toggle("split", split);
    const longest = shown.reduce((most, { i, j }) => Math.max(most, i < 0 ? 0 : before.width(i), j < 0 ? 0 : after.width(j)), 0);
    rows.reset(shown.length, { keep, wrapped: state.wrap, longest });
    if (!keep) {
      const first = shown.findIndex(isChange);
      if (first > 10) rows.show(first);
      reveal();
    }
    found = query ? hits(lowering, query) : null;
    drawHead(step, made.hiddenRows);
    drawFound();
  });

  store.on(["pinned"], reveal);

  function reveal() {
    const { lowering, pinned } = store.state;
    if (pinned) rows.reveal([...shown.keys()].filter((i) => linkOf(lowering, originsOf(shown[i]), pinned) >= 0));
  }

  /** @param {Step} step @param {number} hiddenRows */
  function drawHead(step, hiddenRows) {
    const { state } = store;
    const { lowering, part, hidden } = state;
    put(title,
      h("span.letter", step.letter), h("b", step.name), h("span.q.what", step.summary),
      h("span.q.ms", { title: "time spent in this pass" }, `${step.ms} ms`));
    options.textContent = step.options.map((one) => `${one.name}=${one.shown}`).join("  ");
    prose.textContent = step.prose.join("\n");
    put(error, step.error && errorCard(store, step.error));
    /** @param {"ir" | "plan"} name @param {string} label */
    const tab = (name, label) => button([label, " ", counts(step[name].counts)], () => store.set({ part: name }),
      { "aria-pressed": part === name, class: "tab", title: meaning(lowering.terms, label) });
    /** @param {"collapsed" | "split" | "wrap"} name @param {string} label @param {string} title */
    const toggle = (name, label, title) => chip(label, () => store.set({ [name]: !state[name] }), { "aria-pressed": state[name], title });
    const listing = lowering.listings[step.ir.after];
    const { renames } = step[part];
    put(toggles,
      tab("ir", "program"), tab("plan", "plan"),
      h("span.gapper"),
      lowering.classes.map((name, i) => {
        const count = part === "ir" ? listing.lines().filter((line) => listing.class(line) === i + 1).length : 0;
        const off = hidden.has(name);
        return count > 0 && chip(`${off ? "▢" : "▣"} ${name} ${Math.round((100 * count) / listing.count)} %`,
          () => store.set({ hidden: new Set(off ? [...hidden].filter((one) => one !== name) : [...hidden, name]) }),
          { "aria-pressed": !off, title: `${count} lines: click to ${off ? "show" : "hide"} them\n${meaning(lowering.terms, name) ?? ""}` });
      }),
      renames.length > 0 && h("span.chip", { title: renames.map(([a, b]) => `${a} → ${b}`).join("\n") }, `≈ ${renames.length} renamed`),
      hiddenRows > 0 && quiet(`${hiddenRows} lines hidden`),
      toggle("collapsed", "collapse", "fold unchanged lines (c)"), toggle("split", "side by side", "before and after side by side (s)"),
      toggle("wrap", "wrap", `wrap long lines (w), up to ${LARGEST_WRAPPED} rows`));
  }

  function drawFound() {
    const { lowering: { steps }, step } = store.state;
    if (!found) return put(where);
    const first = found.findIndex(Boolean);
    if (first < 0) return put(where, "not found");
    const gone = found.findLastIndex(Boolean) + 1;
    /** @param {number} i */
    const go = (i) => link(steps[i].letter, () => select(store, i), { title: steps[i].name });
    put(where, "first in ", go(first), " · ", gone < steps.length && ["gone in ", go(gone), " · "], `${found[step]} here`);
  }

  /** @param {number} i */
  function moveTo(i) {
    rows.move(i);
    store.set({ say: place(shown[i]) });
  }

  /** @param {number} direction @param {boolean} [last] whether to look in this step only */
  function nextMatch(direction, last) {
    const { query, step } = store.state;
    if (!query) return store.set({ say: "no more matches" });
    let i = rows.cursor < 0 && direction < 0 ? shown.length : rows.cursor;
    do i += direction; while (shown[i] && !hasWords(shown[i], before, after, query));
    if (shown[i]) return moveTo(i);
    // The next step that has it.
    const next = found?.[direction > 0 ? "findIndex" : "findLastIndex"]((count, k) => count > 0 && (k - step) * direction > 0) ?? -1;
    if (last || next < 0) return store.set({ say: "no more matches" });
    select(store, next);
    nextMatch(direction, true);
  }

  /** @param {number} direction */
  function goToChange(direction) {
    const next = nextChange(shown, rows.cursor, direction);
    if (next < 0) store.set({ say: "no more changes" });
    else moveTo(next);
  }
  return { element, keys: { n: () => goToChange(1), p: () => goToChange(-1), "/": () => query.focus(), h: pinCursor } };
}

/** @param {Explorer} store @param {ShownRow} row @param {Listing} before @param {Listing} after */
function diffRow(store, row, before, after) {
  const { kind, i, j, gap, partner } = row;
  const { lowering, query, split, part } = store.state;
  const language = part === "ir" ? "tir" : "json";
  if (gap) return h("div.l.gap", { role: "listitem" }, h("button", { type: "button", tabindex: "-1" }, `⋯ ${gap} unchanged lines`));
  const glyph = GLYPHS[kind];
  /** The code of a line with the pieces that differ in bold. @param {"before" | "after"} name @param {string} sign */
  const side = (name, sign) => {
    const [listing, line] = name === "after" ? [after, j] : [before, i];
    const pieces = line >= 0 ? piecesOf(listing.text(line), row[name]) : [];
    const bare = pieces.length === 1;
    return [
      h("span.n", line >= 0 && `${line + 1}`),
      h("span.g", line >= 0 && sign),
      h("code", ...pieces.map(([text, differs]) => (bare ? code(text, language, query) : text && h(differs ? "b" : "span", ...code(text, language, query))))),
    ];
  };
  const origins = j >= 0 ? after.origins(j) : before.origins(i);
  const element = h("div", {
    class: `l ${ROW_CLASSES[kind]} ${i < 0 ? "new" : j < 0 ? "old" : ""}`, role: "listitem",
    title: partner && `moved ${j >= 0 ? "from" : "to"} line ${partner}`,
  },
  ...(split
    ? [side("before", kind === CHANGED ? "−" : j >= 0 && kind !== RENAMED ? "" : glyph), side("after", kind === CHANGED ? "+" : glyph)]
    : [side(j >= 0 ? "after" : "before", glyph)]),
  originLabel(lowering, origins));
  mark(element, store, origins);
  return element;
}
