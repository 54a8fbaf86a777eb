// Where in the emitted files an error is, and the change that was found to mend it.

/** @import { Failure, Fix } from "../messages.js" */
/** @import { Explorer } from "../model/state.js" */

import { kernelFile, kernelName } from "../model/lowering.js";
import { button, h, link, put, quiet } from "./dom.js";

const APPLY = "Apply this fix";

/** A link to a line of an emitted file. @param {Explorer} store @param {string} file @param {number} line @param {string} [text] @param {import("./dom.js").Properties} [properties] */
export const codeLink = (store, file, line, text = `${file} line ${line}`, properties = { class: "link m" }) => link(text, () => {
  // Code goes there when it is shown.
  store.set({ file, goTo: line });
  store.set({ tab: "Code" });
}, properties);

/** The places of an error, and a button for its fix. @param {Explorer} store @param {Failure} error */
export const faults = (store, { places = [], fix }) => [
  fix && ("options" in fix ? h("p", button(APPLY, () => store.set({ tab: "What if", wish: { ...fix.options } })), quiet(" in What if: explore the other lowering there, and run again")) : repair(store, fix)),
  places.length > 0 && h("p", "in Code: ", places.map(({ file, line }, i) => [i > 0 && ", ", codeLink(store, file, line)])),
];

/** @param {Explorer} store @param {Fix} fix */
function repair(store, { kernel, line, text, around }) {
  const file = kernelName(kernel);
  const told = h("span", { role: "status" });
  const apply = button(APPLY, () => {
    const { edits, emitted, lowering } = store.state;
    const now = `${kernelFile(lowering, kernel).listing}`;
    const lines = (edits[kernel] ?? now).split("\n");
    if (`${lines.slice(line - 2, line)}` !== `${around}`) {
      put(told, `${file} has changed around line ${line}: run it again`);
      return;
    }
    store.set({
      emitted: edits[kernel] === undefined ? { ...emitted, [kernel]: now } : emitted,
      edits: { ...edits, [kernel]: lines.toSpliced(line - 1, 0, text).join("\n") },
      marks: [{ file, line, kind: "changed", message: "added by the fix" }],
    });
    apply.disabled = true;
    put(told, "added ", h("code", text.trim()), " as ", codeLink(store, file, line), ": run it again");
  });
  return h("p", apply, " ", told);
}
