// Tabs: arrows go along them, one of them is selected.

import { along } from "../model/keys.js";
import { h, put, set, take } from "./dom.js";

/** @param {string} label */
export function tabList(label) {
  /** @type {HTMLElement[]} */
  let tabs = [];
  const element = h("div.tabs", { role: "tablist", label, onkeydown: (event) => {
    const next = along(event.key, tabs.indexOf(/** @type {HTMLElement} */ (event.target)), tabs.length);
    if (next === null) return;
    // What a click does may make them anew.
    tabs[next].click();
    tabs[next].focus();
    take(event);
  } });

  /** @param {HTMLElement[]} shown */
  function show(shown) {
    tabs = shown;
    for (const tab of tabs) set(tab, { class: "tab", role: "tab" });
    put(element, ...tabs);
  }

  /** @param {number} selected */
  const select = (selected) => tabs.forEach((tab, i) => set(tab, { "aria-selected": i === selected, tabindex: i === selected ? 0 : -1 }));
  return { element, show, select };
}
