// The kernel and what was emitted for it, a tab for each file; two kernels stand side by side, or all three, which share a
// tab then. The kernel is a strip above them or a column. Emitted kernels can be edited, and Run takes what they have become.

/** @import { EmittedFile } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { ROLES, countLinked, kernelFile, kernelName, linkedShare } from "../model/lowering.js";
import { copyChip } from "../parts/cards.js";
import { button, chip, classed, download, focusIn, gapper, h, put, quiet, set } from "../parts/dom.js";
import { Editor } from "../parts/editor.js";
import { kernelPane } from "../parts/kernel.js";
import { ListingView } from "../parts/listing.js";
import { EARLIER, isEarlier } from "../parts/inputs.js";
import { OFF, ON } from "../model/remembered.js";
import { panes } from "../parts/panes.js";
import { tabList } from "../parts/tabs.js";

const KERNELS = ROLES.map(kernelName);

/** @param {Explorer} store @param {Kernel} kernel */
export function codeView(store, kernel) {
  const { remembered } = store.state;
  /** The two kernels that are shown where there is room for two; the one chosen last comes last. */
  let pair = remembered.numbers("pair", [2, 1]).map((number) => number - 1);
  const { view: source, bar, body, toggle } = kernelPane(store, kernel);
  const columns = ROLES.map((role) => column(store, role, kernel.live));
  const other = column(store);
  const kernels = panes(remembered, "kernels", columns.map(({ element }, i) => [ROLES[i], element, 1]));
  const files = tabList("files");
  const wrap = chip("wrap", () => store.set({ wrapCode: !store.state.wrapCode }), { title: "wrap long lines (w)" });
  const views = [source, other.view, ...columns.map((column) => column.view)];
  const reveal = () => views.forEach((view) => view.reveal());
  let isStrip = remembered.numbers("strip", [ON])[0] === ON;
  const position = chip("", () => {
    isStrip = !isStrip;
    remembered.keep("strip", [isStrip ? ON : OFF]);
    arrange();
  }, { class: "chip position", title: "where the kernel stands" });
  const element = h("div.codeview", panes(remembered, "code", [
    ["the kernel", h("section.pane", { label: "kernel" }, h("div.filehead", h("b", "kernel"), bar, position), body), 28],
    ["", h("div.pane.files", h("div.filehead", files.element, gapper(), wrap), kernels, other.element), 72],
  ]));
  function arrange() {
    classed(element, "strip", isStrip);
    put(position, isStrip ? "as a column" : "as a strip");
  }
  arrange();
  /** Steps in the list that has the focus, else in the file that is shown. @param {number} direction */
  const follow = (direction) => (views.find(({ element }) => focusIn(element)) ?? views.find(({ name }) => name === last) ?? source).pins.step(direction);

  store.on(["wrapCode"], ({ wrapCode }) => set(wrap, { "aria-pressed": wrapCode }));
  store.on(["lowering", "edits"], ({ lowering }) => columns.forEach((column, i) => column.show(kernelFile(lowering, ROLES[i]).file)));
  store.on(["marks"], () => columns.forEach(({ mark }) => mark()));
  /** @type {string | undefined} */
  let last;
  store.on(["lowering", "file", "columns", "pinned"], ({ lowering, file: wanted, columns: room, pinned }) => {
    const { files: all, listings } = lowering;
    /** @param {EmittedFile | undefined} one */
    const count = (one) => (pinned && one ? countLinked(lowering, listings[one.listing], pinned) : 0);
    const old = all.find(({ name }) => name === last);
    // As long as none has been chosen, one that comes from what is pinned is shown.
    const file = all.find(({ name }) => name === wanted) ?? [old, ...all].find(count) ?? old ?? all.find(({ name }) => name === KERNELS[pair[1]]) ?? all[0];
    last = file?.name;
    const at = KERNELS.indexOf(file?.name ?? "");
    const isKernel = at >= 0;
    kernels.hidden = !isKernel;
    classed(kernels, "one", room < 2);
    if (isKernel && file && pair[1] !== at) {
      pair = [pair[1], at];
      if (wanted === file.name) remembered.keep("pair", pair.map((number) => number + 1));
    }
    const shownKernels = room > 2 ? [0, 1, 2] : pair.slice(2 - room);
    columns.forEach(({ element }, i) => classed(element, "away", !shownKernels.includes(i)));
    other.show(isKernel ? undefined : file);
    // All of them have one tab.
    const beside = room > 2;
    const first = all.find(({ name }) => KERNELS.includes(name));
    const shown = all.filter((one) => !beside || one === first || !KERNELS.includes(one.name));
    files.show(shown.map((one) => {
      const together = beside && one === first ? all.filter(({ name }) => KERNELS.includes(name)) : [one];
      const lines = together.reduce((sum, one) => sum + count(one), 0);
      const words = together.map(({ name }) => name).join(", ");
      return button([words, lines > 0 && h("span.hits", ` ${lines}`)], () => store.set({ file: one.name }), {
        title: lines ? `${words}: ${lines} lines of the pinned one` : words,
      });
    }));
    files.select(shown.findIndex((one) => one === (isKernel && beside ? first : file)));
    reveal();
  });
  return {
    element,
    keys: { n: () => follow(1), p: () => follow(-1), N: () => follow(1), P: () => follow(-1), e: toggle },
    shown: () => {
      const { goTo, file } = store.state;
      reveal();
      if (goTo) columns[KERNELS.indexOf(file)].goTo(goTo);
      store.set({ goTo: 0 });
    },
  };
}

/** A file with its buttons: the kernel of a role, or one of the other files. @param {Explorer} store @param {string} [role] @param {boolean} [live] */
function column(store, role = "", live = false) {
  const view = new ListingView(store, role || "file");
  const head = h("div.filehead");
  // Nobody else looks at the text before it runs.
  const editor = new Editor(`${kernelName(role)}, edited`, "cpp", (text) => { store.state.edits[role] = text; });
  const element = h("section", { class: `pane ${role ? "" : "other"}` }, head, view.element, editor.element);

  /** @param {EmittedFile | undefined} file */
  function show(file) {
    element.hidden = !file;
    if (!file) return;
    const { name } = file;
    element.ariaLabel = name;
    const listing = store.state.lowering.listings[file.listing];
    /** @type {string | undefined} */
    const edited = store.state.edits[role];
    const isEdited = edited !== undefined;
    const text = () => store.state.edits[role] ?? `${listing}`;
    const share = linkedShare(file.coverage);
    put(head,
      h("b", name), quiet(isEdited ? (isEarlier(store.state, role) ? `✖ ${EARLIER}` : "edited") : share === null ? `${listing.count} lines` : `${share} % linked`), !isEdited && view.pins.element, gapper(),
      live && chip(isEdited ? "undo" : "edit", () => edit(isEdited ? undefined : text()), { label: `${isEdited ? "undo the edits of" : "edit"} ${name}` }),
      copyChip(store, name, text),
      chip("save", () => download(name, text()), { label: `download ${name}` }));
    view.show(listing, file.language, name);
    editor.value = edited || "";
    editor.element.hidden = !isEdited;
    view.element.hidden = isEdited;
  }

  /** @param {string} [text] nothing for the text that was emitted */
  function edit(text) {
    const { edits: { [role]: _, ...edits }, marks } = store.state;
    if (text === undefined) store.set({ edits, marks: marks.filter(({ file }) => file !== kernelName(role)) });
    else store.set({ edits: { ...edits, [role]: text }, emitted: { ...store.state.emitted, [role]: text } });
    mark();
    goTo(1);
  }

  function mark() {
    const marks = store.state.marks.filter(({ file }) => file === kernelName(role));
    view.marks(marks);
    editor.marks(marks);
  }

  /** @param {number} line */
  const goTo = (line) => (store.state.edits[role] === undefined ? view : editor).goTo(line);
  return { element, view, show, mark, goTo };
}
