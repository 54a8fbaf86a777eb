// A button with a panel that has controls of less use: open until something else is clicked.

import { below, button, h, put, quiet, set } from "./dom.js";

/** `count` says beside the label what is set in the panel. @param {string} label @param {...HTMLElement} content */
export function menu(label, ...content) {
  const panel = h("div.menu", { popover: "auto", role: "group", label }, ...content);
  const told = quiet();
  const opener = button([`${label} ▾`, told], () => (panel.matches(":popover-open") ? panel.hidePopover() : open()), { class: "chip", "aria-expanded": false });
  set(panel, { ontoggle: ({ newState }) => set(opener, { "aria-expanded": newState === "open" }) });

  function open() {
    panel.showPopover();
    below(panel, opener);
  }
  return { element: h("span", opener, panel), open, count: (/** @type {string} */ text) => put(told, text && ` ${text}`) };
}
