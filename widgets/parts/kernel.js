// The kernel's own lines, and the field in which they are edited.

/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { draftText, isOutdated } from "../model/live.js";
import { copyChip } from "./cards.js";
import { cellChip } from "./cell.js";
import { chip, find, focusOn, h, link, put, set, take } from "./dom.js";
import { Editor } from "./editor.js";
import { kernelSource } from "./listing.js";

/** `bar` has the controls, `body` what stands below them. An explorer has several; all show the same text. @param {Explorer} store @param {Kernel} kernel */
export function kernelPane(store, kernel) {
  const view = kernelSource(store);
  const editor = new Editor("kernel, edited", "python", (draft) => store.set({ draft }));
  set(editor.element, { onkeydown: (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    // A text that is not lowered stays where it is, with what is wrong with it.
    if (isOutdated(store.state)) focusOn(edit);
    else toggle();
    take(event);
  } });
  const status = h("span.q", { role: "status" });
  const edit = chip("edit", toggle, { label: "edit the kernel", title: "e" });
  const undo = chip("undo all", () => store.set({ draft: store.state.first }), { title: "as in the notebook" });
  const copy = copyChip(store, "the kernel", () => draftText(store.state));

  store.on(["editing", "draft", "first", "drafting", "draftError", "lowering", "stale"], (state) => {
    const { editing, drafting, draftError, lowering, first } = state;
    const reason = kernel.missing("edit");
    const isOpen = editing && !reason;
    const text = draftText(state);
    set(edit, { "aria-pressed": isOpen });
    copy.hidden = !isOpen && text === first;
    undo.hidden = text === first;
    undo.disabled = !!reason;
    editor.element.hidden = !isOpen;
    view.element.hidden = view.pins.element.hidden = isOpen;
    if (isOpen) {
      editor.first = lowering.source.lines[0];
      editor.value = text;
    }
    const line = draftError?.line;
    const told = editing && reason ? `Not available: ${reason}.`
      : drafting ? "lowering …"
        : isOutdated(state) ? `✖ ${line ? "not lowered" : draftError?.message.join(" ")}`
          : text !== first ? "edited; source unchanged" : isOpen ? "lowered as you type" : "";
    put(status, line && isOpen && isOutdated(state) && !drafting ? link(told, () => editor.goTo(line)) : told);
    status.title = told;
  });
  store.on(["draftError", "editing"], ({ draftError: error }) => {
    editor.marks(error?.line ? [{ line: error.line, kind: "error", message: [...error.message, ...error.hint].join(" · ") }] : []);
  });

  function toggle() {
    store.set({ editing: !store.state.editing });
    focusOn(view.element.hidden ? find(editor.element, "textarea") : view.element);
  }
  return { view, bar: h("div.draft", status, view.pins.element, cellChip(store, kernel.manager, () => focusOn(edit)), copy, undo, edit), body: [view.element, editor.element], toggle };
}
