// Reader, compute and writer side by side, linked to the kernel; the other files behind a choice. A kernel can be
// edited, and Run takes what it has become.

import { button, download, h, put } from "./dom.js";
import { ListingView } from "./listing.js";

const KERNELS = ["reader.cpp", "compute.cpp", "writer.cpp"];

export function codeView(store, kernel) {
  const source = new ListingView(store, "kernel source", { numberOf: (i) => store.state.lowering.data.source.lines[i], withOrigins: false });
  const columns = KERNELS.map((name) => column(store, name, kernel.live));
  const other = column(store, null);
  const element = h("div.codeview",
    h("section.pane", h("div.filehead", h("b", "kernel")), source.element),
    ...columns.map((one) => one.element), other.element);
  store.on(["lowering", "edits"], () => {
    const { lowering } = store.state;
    source.show(lowering.source, "python", "kernel source");
    for (const one of columns) one.show(lowering.data.files.find((file) => file.name === one.name));
    other.choose(lowering.data.files.filter((file) => !KERNELS.includes(file.name)));
    element.classList.toggle("empty", !lowering.data.files.length);
  });
  const views = [source, ...columns.map((one) => one.view), other.view];
  return {
    element, keys: {}, focus: () => columns[0].view.element.focus(),
    // Lists have no height before they are in the page.
    shown: () => views.forEach((view) => view.reveal()),
  };
}

function column(store, name, live) {
  const role = name?.split(".")[0];
  const view = new ListingView(store, name || "file");
  const head = h("div.filehead");
  const element = h("section", { class: `pane ${name ? "" : "other"}`, "aria-label": name || "other files" }, head, view.element);
  // Nobody else looks at the text before it runs.
  const editor = h("textarea", { spellcheck: false, "aria-label": `${name}, edited`, oninput: () => (store.state.edits[role] = editor.value) });
  element.append(editor);
  const column_ = { name, view, element, show, choose };
  function show(file, chooser) {
    element.hidden = !file;
    if (!file) return;
    const { lowering } = store.state;
    const listing = lowering.listings[file.listing];
    const edited = store.state.edits[role];
    const isEdited = edited !== undefined;
    const text = () => store.state.edits[role] ?? Array.from({ length: listing.count }, (_, i) => `${listing.text(i)}\n`).join("");
    const [exact, derived, inferred, unknown] = file.coverage;
    const all = exact + derived + inferred + unknown;
    const note = isEdited ? "edited" : all ? `${Math.round((100 * (exact + derived)) / all)} % linked` : `${listing.count} lines`;
    put(head, ...[
      chooser || h("b", file.name), h("span.q", note), h("span.gapper"),
      live && name && button(isEdited ? "undo" : "edit", () => edit(isEdited ? undefined : text()), { class: "chip", "aria-label": `${isEdited ? "undo the edits of" : "edit"} ${name}` }),
      button("copy", async () => {
        await navigator.clipboard.writeText(text());
        store.set({ say: `${file.name} copied` });
      }, { class: "chip", "aria-label": `copy ${file.name}` }),
      button("save", () => download(file.name, text()), { class: "chip", "aria-label": `download ${file.name}` }),
    ]);
    view.show(listing, file.language, file.name);
    editor.value = edited || "";
    editor.hidden = !isEdited;
    view.element.hidden = isEdited;
  }
  function edit(text) {
    const { [role]: _, ...edits } = store.state.edits;
    store.set({ edits: text === undefined ? edits : { ...edits, [role]: text } });
    editor.setSelectionRange(0, 0);
    (text === undefined ? view.element : editor).focus();
  }
  function choose(files) {
    const chooser = h("select", { "aria-label": "file", onchange: () => show(files[chooser.selectedIndex], chooser) },
      ...files.map((file) => h("option", file.name)));
    show(files[0], chooser);
  }
  return column_;
}
