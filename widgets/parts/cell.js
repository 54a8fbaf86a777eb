// The notebook's cell that a kernel stands in, where the front end has its cells: JupyterLab has.

/** @import { Manager } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { draftText } from "../model/live.js";
import { chip } from "./dom.js";

/**
 * Writes the edited kernel into its cell, where its editor can undo it. Nothing is seen unless exactly one cell has the
 * kernel's text from before the edits, and has it once. `done` takes the focus, as the chip goes.
 * @param {Explorer} store
 * @param {Manager | undefined} manager
 * @param {() => void} done
 */
export function cellChip(store, manager, done) {
  /** The cell, and where the kernel's text starts in it. */
  function find() {
    const { first } = store.state;
    const places = [...manager?.context?.model?.cells ?? []].flatMap(({ sharedModel: cell }) => {
      const { source } = cell;
      return [...source.split(first).keys()].slice(1).map(() => ({ cell, start: source.indexOf(first) }));
    });
    return places.length === 1 && first ? places[0] : null;
  }
  const element = chip("write to cell", () => {
    const place = find();
    const { first } = store.state;
    const text = draftText(store.state);
    place?.cell.updateSource(place.start, place.start + first.length, text);
    store.set(place ? { first: text, say: "written: run the cell again" } : { say: "the cell has another text now" });
    done();
  }, { title: "takes the place of the kernel in its cell, which is not run" });
  store.on(["draft", "first", "editing"], (state) => {
    element.hidden = draftText(state) === state.first || !find();
  });
  return element;
}
