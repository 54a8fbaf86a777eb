// The tab GPU until its module is there: Python is asked for it when the tab is opened, and a page brings it along.

/** @import { Failure } from "../messages.js" */
/** @import { Kernel, Model } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { errorCard } from "../parts/cards.js";
import { h, put } from "../parts/dom.js";

/** @param {Explorer} store @param {Kernel} kernel @param {Model} model */
export function lateView(store, kernel, model) {
  const element = h("div.runview");
  /** @type {{ element: HTMLElement, keys?: Record<string, () => void>, shown?: () => void }} */
  const view = { element, shown };
  let asked = false;

  async function shown() {
    const brought = model.get("gpu");
    const reason = !brought && kernel.missing("gpu");
    if (reason) put(element, h("div.result", h("p", `No GPU lane here: ${reason}.`)));
    if (reason || asked) return;
    asked = true;
    try {
      const text = brought ? model.get("module") ?? "" : (await kernel.ask({ do: "module" })).module;
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      /** @type {typeof import("../gpu.js")} */
      const { gpuView } = await import(address);
      const { keys, shown: again, content } = gpuView(store, kernel, brought);
      put(element, content);
      Object.assign(view, { keys, shown: again });
      again();
    } catch (error) {
      if (error instanceof Error) throw error;
      asked = false;
      put(element, errorCard(store, /** @type {Failure} */ (error)));
    }
  }
  return view;
}
