// The steps, the kernel, what the selected step changed, and where a kernel line went.

import { GLYPHS, ROWS, ranges } from "./data.js";
import { button, h, markup, put } from "./dom.js";
import { ListingView, code, linkRows, mark, originLabel, pinLink } from "./listing.js";
import { LARGEST_WRAPPED, Rows } from "./rows.js";

const CONTEXT_ROWS = 3;
const [EQUAL, ADDED, REMOVED, CHANGED, , RENAMED, MOVED] = ROWS.keys();

/** "+42 −17 ~3" with the meaning of each in its class. */
export function counts([added, removed, indented, renamed, moved]) {
  const parts = [["plus", "+", added], ["minus", "−", removed], ["tilde", "~", indented], ["tilde", "≈", renamed], ["tilde", "⇄", moved]];
  const shown = parts.filter(([, , count]) => count).map(([kind, glyph, count]) => h("span", { class: kind }, `${glyph}${count} `));
  return h("span.counts", shown.length ? shown : h("span.q", "·"));
}

export function stepsView(store) {
  const sourceLines = () => store.state.lowering.data.source.lines;
  const source = new ListingView(store, "kernel source", { numberOf: (i) => sourceLines()[i], withOrigins: false });
  const list = stepList(store);
  const diff = diffPane(store);
  const history = historyStrip(store);
  store.on(["lowering"], () => source.show(store.state.lowering.source, "python", "kernel source"));
  const element = h("div.stepsview",
    list,
    h("details.pane.source", { open: true }, h("summary", "kernel"), source.element),
    diff.element,
    history);
  return { element, focus: () => list.querySelector("[tabindex='0']")?.focus(), keys: diff.keys };
}

function stepList(store) {
  const box = h("div.steplist", { role: "listbox", "aria-label": "steps" });
  const choice = h("select.stepchoice", { "aria-label": "step", onchange: () => select(store, choice.selectedIndex) });
  store.on(["lowering"], () => {
    const { steps } = store.state.lowering;
    let stage = null;
    put(box);
    put(choice);
    steps.forEach((step, i) => {
      if (step.stage !== stage) box.append(h("div.stage", { role: "presentation" }, (stage = step.stage)));
      const state = { "✖": "bad", "○": "q" }[step.glyph] || "tilde";
      box.append(h("div", {
        class: `step ${step.glyph === "○" ? "noop" : ""}`, role: "option", "aria-selected": false, tabindex: -1, "aria-setsize": steps.length, "aria-posinset": i + 1,
        "data-step": i, title: step.summary, onclick: () => select(store, i),
      },
      h("span", { class: `k ${state}`, role: "img", "aria-label": step.state }, step.glyph),
      h("span.letter", step.letter),
      h("span.name", step.name),
      counts(totals(step))));
      choice.append(h("option", `${step.glyph} ${step.letter} ${step.name}`));
    });
  });
  store.on(["step", "lowering"], () => {
    const chosen = box.querySelector(`[data-step="${store.state.step}"]`);
    for (const option of box.querySelectorAll("[aria-selected=true]")) {
      option.setAttribute("aria-selected", false);
      option.tabIndex = -1;
    }
    chosen.setAttribute("aria-selected", true);
    chosen.tabIndex = 0;
    if (box.contains(document.activeElement)) chosen.focus({ preventScroll: true });
    // Not scrollIntoView: that would move the page around the explorer as well.
    const { offsetTop: top, offsetHeight: height } = chosen;
    if (top < box.scrollTop || top + height > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
    choice.selectedIndex = store.state.step;
  });
  return h("div.pane.steppane", box, choice);
}

const totals = (step) => step.ir.counts.map((count, i) => count + step.plan.counts[i]);

/** Goes to a step; its program is shown where it changed, else its plan. */
export function select(store, index) {
  const { steps } = store.state.lowering;
  const i = Math.max(0, Math.min(steps.length - 1, index));
  const step = steps[i];
  const changed = (part) => step[part].counts.some((count) => count > 0);
  const part = changed("ir") || !changed("plan") ? "ir" : "plan";
  const [added, removed] = totals(step);
  store.set({
    step: i, part, open: new Set(),
    say: `step ${i + 1} of ${steps.length}, ${step.name}, ${step.state}, ${added} added, ${removed} removed`,
  });
}

function diffPane(store) {
  let shown = [];
  let language = "tir";
  let before, after;
  const make = (i) => diffRow(store, shown[i], before, after, language);
  const rows = new Rows("what the step changed", make);
  rows.element.classList.add("diff");
  const lineOf = (row) => (!row || row.gap ? -1 : row.j >= 0 ? after.originId(row.j) : before.originId(row.i));
  const place = (row) => (row.gap ? `${row.gap} unchanged lines` : `${ROWS[row.kind]} line ${1 + (row.j >= 0 ? row.j : row.i)}: ${row.j >= 0 ? after.text(row.j) : before.text(row.i)}`);
  linkRows(rows, store, (i) => lineOf(shown[i]), (i) => place(shown[i]));
  rows.element.addEventListener("click", (event) => {
    const gap = event.target.closest(".gap");
    if (gap) store.set({ open: new Set([...store.state.open, shown[Number(gap.dataset.i)].key]) });
  });

  let search;
  const title = h("div.title");
  const about = h("details.about");
  const toggles = h("div.toggles");
  const error = h("div");
  const found = h("span.found.q");
  const query = h("input", {
    type: "search", placeholder: "find, or first step with …", "aria-label": "find in all steps",
    oninput: () => store.set({ query: query.value.trim().toLowerCase() }),
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
  // What is being typed must not be taken out of the page, so the search stands beside what is drawn anew.
  const tools = h("div.tools", toggles, h("span.search", query, found));
  const element = h("section.pane.diffpane", { "aria-label": "step" }, title, about, tools, error, rows.element);

  store.on(["step", "part", "lowering", "open", "collapsed", "hidden", "wrap", "split", "query"], () => {
    const { lowering, step: index, part, collapsed, hidden, wrap, split, open } = store.state;
    const step = lowering.steps[index];
    language = part === "ir" ? "tir" : "json";
    before = lowering.listings[step[part].before];
    after = lowering.listings[step[part].after];
    const made = diffRows(step[part].rows, before, after, { collapsed, hidden, open, split });
    const same = rows.of === `${index}${part}` && rows.lowering === lowering;
    rows.of = `${index}${part}`;
    rows.lowering = lowering;
    shown = made.rows;
    rows.element.classList.toggle("split", split);
    rows.reset(shown.length, { keep: same, wrapped: wrap });
    if (!same) {
      const first = shown.findIndex((row) => !row.gap && row.kind !== EQUAL);
      if (first > 10) rows.show(first);
      reveal();
    }
    search = store.state.query ? lowering.search(store.state.query) : null;
    drawHead(step, made.hiddenRows);
  });

  store.on(["pinned"], reveal);

  function reveal() {
    const { lowering, pinned } = store.state;
    if (pinned) rows.reveal([...shown.keys()].filter((i) => lineOf(shown[i]) >= 0 && lowering.link(lineOf(shown[i]), pinned) >= 0));
  }

  function drawHead(step, hiddenRows) {
    const { lowering, part, hidden, step: index } = store.state;
    put(title,
      h("span.letter", step.letter), h("b", step.name), h("span.q.what", step.summary),
      h("span.q.ms", { title: "time of this pass" }, `${step.ms} ms`));
    const options = step.options.map((one) => `${one.name}=${one.shown}`).join("  ");
    const opened = about.open;
    put(about, h("summary", "what it promises", options && h("code.q", options)), h("div.prose", step.prose.join("\n")));
    about.open = opened;
    put(error, step.error ? errorCard(store, step.error) : "");
    const tab = (name, label) => button([label, " ", counts(step[name].counts)], () => store.set({ part: name }), { "aria-pressed": part === name, class: "tab" });
    const toggle = (key, label, title) => button(label, () => store.set({ [key]: !store.state[key] }), { "aria-pressed": store.state[key], class: "chip", title });
    const classes = lowering.data.classes.map((name, i) => {
      const count = lowering.listings[step.ir.after].classCounts[i + 1];
      if (!count || part !== "ir") return null;
      const off = hidden.has(name);
      const share = Math.round((100 * count) / lowering.listings[step.ir.after].count);
      return button(`${off ? "▢" : "▣"} ${name} ${share} %`, () => {
        const next = new Set(hidden);
        if (off) next.delete(name);
        else next.add(name);
        store.set({ hidden: next });
      }, { class: "chip", "aria-pressed": !off, title: `${count} lines: ${off ? "show" : "hide"} them` });
    });
    const renames = step[part].renames;
    put(toggles,
      tab("ir", "program"), tab("plan", "plan"),
      h("span.gapper"),
      ...classes.filter(Boolean),
      renames.length ? h("span.chip", { title: renames.map(([a, b]) => `${a} → ${b}`).join("\n") }, `≈ ${renames.length} renamed`) : null,
      hiddenRows ? h("span.q", `${hiddenRows} lines hidden`) : null,
      toggle("collapsed", "collapse", "fold unchanged lines (c)"), toggle("split", "side by side", "before beside after (s)"),
      toggle("wrap", "wrap", `wrap long lines (w); up to ${LARGEST_WRAPPED} rows`),
    );
    if (!search) return put(found);
    if (search.first < 0) return put(found, "nowhere");
    const last = search.counts.length - 1 - [...search.counts].reverse().findIndex((count) => count > 0);
    const go = (i) => button(lowering.steps[i].letter, () => select(store, i), { class: "link", title: lowering.steps[i].name });
    const gone = last + 1 < search.counts.length ? ["gone at ", go(last + 1), " · "] : [];
    put(found, "first in ", go(search.first), " · ", ...gone, `${search.counts[index]} here`);
  }

  const isMatch = (row) => {
    const { query: words } = store.state;
    if (row.gap || !words) return false;
    return [row.i >= 0 && before.text(row.i), row.j >= 0 && after.text(row.j)].some((text) => text && text.toLowerCase().includes(words));
  };
  const nextMatch = (direction, last) => {
    const from = rows.cursor < 0 ? (direction > 0 ? -1 : shown.length) : rows.cursor;
    let i = from + direction;
    while (i >= 0 && i < shown.length && !isMatch(shown[i])) i += direction;
    if (i < 0 || i >= shown.length) {
      // The next step that has it.
      const { step } = store.state;
      const next = search?.counts[direction > 0 ? "findIndex" : "findLastIndex"]((count, k) => count && (k - step) * direction > 0);
      if (last || !(next >= 0)) return store.set({ say: "no more" });
      select(store, next);
      return nextMatch(direction, true);
    }
    rows.move(i);
    store.set({ say: place(shown[i]) });
  };
  const isChange = (row) => !row.gap && row.kind !== EQUAL;
  const nextChange = (direction) => {
    let i = rows.cursor;
    // The rest of the change that the cursor is in is no next one.
    while (i >= 0 && i < shown.length && isChange(shown[i])) i += direction;
    if (i < 0 && direction > 0) i = 0;
    while (i >= 0 && i < shown.length && !isChange(shown[i])) i += direction;
    if (i < 0 || i >= shown.length) return store.set({ say: "no more changes" });
    rows.move(i);
    store.set({ say: place(shown[i]) });
  };
  return {
    element,
    keys: { n: () => nextChange(1), p: () => nextChange(-1), "/": () => query.focus(), h: () => pinCursor() },
  };

  function pinCursor() {
    rows.element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  }
}

export function errorCard(store, error) {
  return h("div.card.fault", { role: "alert" },
    h("p", h("b", h("span.bad", "✖ "), error.kind), " ", error.line ? pinLink(store, error.line, error.where) : error.where, " ", h("span.q", error.code)),
    h("p.pre.m", error.message.join("\n")),
    error.hint.length ? h("p.pre", h("span.q", "hint: "), error.hint.join("\n")) : null,
    error.drawing ? markup(error.drawing) : null);
}

/** The rows to show: runs of equal ones folded, hidden kinds of lines left out. */
export function diffRows(packed, before, after, { collapsed, hidden, open, split }) {
  const { classes } = before.lowering.data;
  const isHidden = (listing, i) => i >= 0 && listing.kind(i) > 0 && hidden.has(classes[listing.kind(i) - 1]);
  const rows = [];
  let hiddenRows = 0;
  const push = (row) => {
    if (isHidden(before, row.i) || isHidden(after, row.j)) hiddenRows++;
    else rows.push(row);
  };
  packed.forEach(([kind, i, j, ...rest], position) => {
    if (kind === EQUAL) {
      const [length] = rest;
      const top = position ? CONTEXT_ROWS : 0;
      const bottom = position + 1 < packed.length ? CONTEXT_ROWS : 0;
      const folds = collapsed && !open.has(position) && length > top + bottom + 1;
      for (let k = 0; k < length; k++) {
        if (folds && k === top) {
          rows.push({ gap: length - top - bottom, key: position });
          k = length - bottom - 1;
        } else push({ kind, i: i + k, j: j + k });
      }
    } else if (kind === CHANGED && !split) {
      push({ kind: REMOVED, i, j: -1, beforePieces: rest[0] });
      push({ kind: ADDED, i: -1, j, afterPieces: rest[1] });
    } else if (kind === MOVED) push({ kind, i, j, partner: rest[0] });
    else push({ kind, i, j, beforePieces: rest[0], afterPieces: rest[1] });
  });
  return { rows, hiddenRows };
}

const SIDE_CLASS = ["", "a", "r", "c", "w", "w", "v"];

function diffRow(store, row, before, after, language) {
  const { lowering, hover, pinned, query, split } = store.state;
  if (row.gap)
    return h("div.l.gap", { role: "listitem" }, h("button", { type: "button", tabindex: "-1" }, `⋯ ${row.gap} unchanged lines`));
  const listing = row.j >= 0 ? after : before;
  const id = listing.originId(row.j >= 0 ? row.j : row.i);
  const glyph = GLYPHS[row.kind];
  const element = h("div", {
    class: `l ${SIDE_CLASS[row.kind]} ${row.i < 0 ? "new" : row.j < 0 ? "old" : ""}`, role: "listitem",
    title: row.partner ? `moved ${row.j >= 0 ? "from" : "to"} line ${row.partner}` : null,
  });
  const side = (list, i, pieces, sign) => [
    h("span.n", i >= 0 ? `${i + 1}` : ""),
    h("span.g", i >= 0 ? sign : ""),
    h("code", ...(i >= 0 ? changed(list.text(i), pieces, language, query) : [])),
  ];
  if (split)
    element.append(
      ...side(before, row.i, row.beforePieces, row.kind === CHANGED ? "−" : row.j >= 0 && row.kind !== RENAMED ? "" : glyph),
      ...side(after, row.j, row.afterPieces, row.kind === CHANGED ? "+" : glyph));
  else element.append(...side(listing, row.j >= 0 ? row.j : row.i, row.j >= 0 ? row.afterPieces : row.beforePieces, glyph));
  element.append(originLabel(lowering, id));
  mark(element, lowering.link(id, hover || pinned));
  return element;
}

/** The code of a line with the pieces that differ in bold; lengths alternate between same and other. */
function changed(text, lengths, language, query) {
  if (!lengths || lengths.length < 2) return code(text, language, query);
  const parts = [];
  let start = 0;
  lengths.forEach((length, position) => {
    const piece = text.slice(start, start + length);
    start += length;
    if (piece) parts.push(h(position % 2 ? "b" : "span", {}, ...code(piece, language, query)));
  });
  return parts;
}

function historyStrip(store) {
  const strip = h("div.history", { role: "group", "aria-label": "history of the pinned lines" });
  store.on(["hover", "pinned", "lowering", "step"], () => {
    const { lowering, step: index } = store.state;
    const active = store.state.hover || store.state.pinned;
    const [exact, derived, inferred, unknown] = lowering.steps[index].coverage;
    const all = exact + derived + inferred + unknown;
    const share = all ? Math.round((100 * (exact + derived)) / all) : 100;
    const covered = h("span.q.coverage", { title: `${exact} exact, ${derived} derived, ${inferred} inferred, ${unknown} unknown` }, `${share} % of statements linked`);
    if (!active) {
      put(strip, h("span.q", "Hover a line to see where it comes from and where it went; click it or press Enter to pin it."), covered);
      return;
    }
    const lines = [...active.places].map((place) => lowering.data.places[place][1]).sort((a, b) => a - b);
    const found = lowering.steps.map((step) => lowering.linked(lowering.listings[step.ir.after], active).length);
    const most = Math.max(1, ...found);
    const cells = lowering.steps.map((step, i) =>
      h("button", { type: "button", class: i === index ? "cell now" : "cell", title: `${step.letter} ${step.name}: ${found[i]} lines`, onclick: () => select(store, i) },
        h("span.bar", { style: `height:${found[i] ? 3 + Math.round((13 * found[i]) / most) : 0}px` }), h("span.lab", step.letter)));
    const files = lowering.data.files.filter((file) => /^(reader|compute|writer)/.test(file.name)).map((file) => {
      const linked = lowering.linked(lowering.listings[file.listing], active);
      const best = linked.length ? Math.min(...linked.map(([, kind]) => kind)) : 3;
      return h("span.file", h("span.q", `${file.name.replace(".cpp", "")} `),
        h("span", { class: "edi"[best] || "q" }, linked.length ? ranges(linked.map(([i]) => i)) : "–"));
    });
    put(strip, h("span", h("span.q", store.state.hover ? "" : "pinned "), h("b", `L${lines.join(" L")}`)), h("span.cells", ...cells), ...files, covered);
  });
  return strip;
}
