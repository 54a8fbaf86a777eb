// A second view of the widget to the right of its notebook, where the front end has a way to put it there: JupyterLab has.

/** @import { Model } from "../model/questions.js" */

import { chip, classed, closest, put } from "./dom.js";

/** Nothing where there is no such way. @param {Model} model @param {HTMLElement} root @param {string} title */
export function besideChip(model, root, title) {
  const { widget_manager: manager } = model;
  const identity = model.get("identity");
  // Notebook 7 has the same call, and no place beside the notebook.
  const hasPlace = document.querySelector(".jp-LabShell") !== null;
  if (!identity || !hasPlace || !manager?.context?.addSibling || !manager.create_view) return null;
  const { context } = manager;
  /** One of both is enough: the other shows its head, until there is none beside it. @param {boolean} isBeside */
  function leave(isBeside) {
    classed(root, "headonly", isBeside);
    put(element, isBeside ? "show here" : "beside");
  }
  const element = chip("beside", async () => {
    if (root.matches(".headonly")) return leave(false);
    const { luminoWidget: view } = await manager.create_view(await manager.get_model(identity));
    // Widgets clear the place that a panel gives their element, so another one holds it.
    let { constructor: Widget } = view;
    while (Object.getPrototypeOf(Widget).attach) Widget = Object.getPrototypeOf(Widget);
    const panel = new Widget();
    panel.node.classList.add("ttx-filled");
    Object.assign(panel.title, { label: title, closable: true });
    context.addSibling(panel, { ref: closest(root, ".jp-NotebookPanel")?.id, mode: "split-right" });
    Widget.attach(view, panel.node);
    leave(true);
    panel.disposed.connect(() => {
      leave(false);
      view.dispose();
    });
    context.disposed.connect(() => panel.dispose());
  }, { title: "open another view of this explorer to the right of the notebook" });
  return element;
}
