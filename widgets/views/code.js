// Reader, compute and writer side by side, linked to the kernel; the other files behind a choice. A kernel can be
// edited, and Run takes what it has become.

/** @import { EmittedFile } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { ROLES, kernelFile, kernelName, linkedShare } from "../model/lowering.js";
import { chip, choice, download, h, put, quiet } from "../parts/dom.js";
import { ListingView, kernelSource } from "../parts/listing.js";

/** @param {Explorer} store @param {Kernel} kernel */
export function codeView(store, kernel) {
  const source = kernelSource(store);
  const columns = ROLES.map((role) => column(store, role, kernel.live));
  const other = column(store);
  /** @type {EmittedFile[]} */
  let others;
  const chooser = choice("file", () => other.show(others[chooser.selectedIndex], chooser));
  store.on(["lowering"], ({ lowering: { files } }) => {
    others = files.filter(({ name }) => !ROLES.map(kernelName).includes(name));
    put(chooser, ...others.map(({ name }) => h("option", name)));
    other.show(others[0], chooser);
  });
  store.on(["lowering", "edits"], ({ lowering }) => columns.forEach((column, i) => column.show(kernelFile(lowering, ROLES[i]).file)));
  return {
    element: h("div.codeview",
      h("section.pane", h("div.filehead", h("b", "kernel")), source.element),
      ...columns.map((column) => column.element), other.element),
    // Lists have no height before they are in the page.
    shown: () => [source, other.view, ...columns.map((column) => column.view)].forEach((view) => view.reveal()),
  };
}

/** A file with its buttons: the kernel of a role, or one of the other files. @param {Explorer} store @param {string} [role] @param {boolean} [live] */
function column(store, role = "", live = false) {
  const view = new ListingView(store, role || "file");
  const head = h("div.filehead");
  // Nobody else looks at the text before it runs.
  const editor = h("textarea", { spellcheck: false, label: `${role}.cpp, edited`, oninput: () => { store.state.edits[role] = editor.value; } });
  const element = h("section", { class: `pane ${role ? "" : "other"}`, label: role ? `${role}.cpp` : "other files" }, head, view.element, editor);

  /** @param {EmittedFile | undefined} file @param {HTMLElement} [chooser] stands for the file's name */
  function show(file, chooser) {
    element.hidden = !file;
    if (!file) return;
    const { name } = file;
    const listing = store.state.lowering.listings[file.listing];
    /** @type {string | undefined} */
    const edited = store.state.edits[role];
    const isEdited = edited !== undefined;
    const text = () => store.state.edits[role] ?? `${listing}`;
    const share = linkedShare(file.coverage);
    put(head,
      chooser || h("b", name), quiet(isEdited ? "edited" : share === null ? `${listing.count} lines` : `${share} % linked`), h("span.gapper"),
      live && chip(isEdited ? "undo" : "edit", () => edit(isEdited ? undefined : text()), { label: `${isEdited ? "undo the edits of" : "edit"} ${name}` }),
      chip("copy", async () => {
        await navigator.clipboard.writeText(text());
        store.set({ say: `${name} copied` });
      }, { label: `copy ${name}` }),
      chip("save", () => download(name, text()), { label: `download ${name}` }));
    view.show(listing, file.language, name);
    editor.value = edited || "";
    editor.hidden = !isEdited;
    view.element.hidden = isEdited;
  }

  /** @param {string} [text] nothing for the text that was emitted */
  function edit(text) {
    const { [role]: _, ...edits } = store.state.edits;
    store.set({ edits: text === undefined ? edits : { ...edits, [role]: text } });
    editor.setSelectionRange(0, 0);
    (text === undefined ? view.element : editor).focus();
  }
  return { element, view, show };
}
