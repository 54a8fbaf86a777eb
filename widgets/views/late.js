// A tab until its module is there: Python is asked for it when the tab is opened, and a page brings it along.

/** @import { Failure, Question } from "../messages.js" */
/** @import { Kernel, Model } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { errorCard } from "../parts/cards.js";
import { h, put } from "../parts/dom.js";

/**
 * The view of a module, which a question `needs` Python for, unless a page brought what it would answer.
 * @param {"gpu" | "whatif"} name
 * @param {Question["do"]} needs
 */
export const lateView = (name, needs) => (/** @type {Explorer} */ store, /** @type {Kernel} */ kernel, /** @type {Model} */ model) => {
  /** @type {{ element: HTMLElement, keys?: Record<string, () => void>, shown?: () => void }} */
  const view = { element: h("div.runview"), shown };
  let asked = false;

  async function shown() {
    const { element } = view;
    const brought = name === "gpu" && model.get(name);
    const reason = !brought && kernel.missing(needs);
    if (reason) put(element, h("div.result", h("p", `Not available: ${reason}.`)));
    if (reason || asked) return;
    asked = true;
    try {
      const text = brought ? model.get("module") ?? "" : (await kernel.ask({ do: "module", name })).module;
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      /** @type {typeof import("../gpu.js") | typeof import("../whatif.js")} */
      const module = await import(address);
      Object.assign(view, module.view(store, kernel, model));
      element.replaceWith(view.element);
      view.shown?.();
    } catch (error) {
      if (error instanceof Error) throw error;
      asked = false;
      put(element, errorCard(store, /** @type {Failure} */ (error)));
    }
  }
  return view;
};
