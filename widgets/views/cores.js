// The chip's floorplan with a measure on each core, and all that one core gets.

/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { bytes } from "../model/figures.js";
import { neighbour } from "../model/keys.js";
import { heat, imbalance, known, most } from "../model/measures.js";
import { pictureButtons } from "../parts/cards.js";
import { all, choice, closest, h, markup, put, quiet, set, table, take } from "../parts/dom.js";

/** @param {Explorer} store */
export function coresView(store) {
  const map = h("div.coremap", { role: "group", label: "cores", onclick: choose, onkeydown: walk });
  const work = h("div.workmap", { role: "group", label: "work items", onclick: choose });
  const card = h("section.pane.corecard", { "aria-live": "polite" });
  const measure = choice("measure", () => store.set({ metric: measure.value }));
  const figures = quiet();
  const element = h("div.coresview",
    h("div.tools", h("label", "colour by ", measure), figures, h("span.gapper"), pictureButtons(map, "cores")),
    h("div.two", map, h("div", work), card));

  store.on(["lowering"], ({ lowering: { cores } }) => {
    if (!cores) return put(map, h("p.q", "Step B1 decides which core does what; it was not reached."));
    put(measure, ...known(cores).map(([name]) => h("option", name)));
    put(map, markup(cores.svg));
    // A picture for who reads it, a group of buttons here.
    for (const drawing of all(map, "svg")) drawing.role = "group";
    put(work, markup(cores.work));
    for (const cell of all(map, "[data-core]")) {
      set(cell, { role: "button", label: cell.querySelector("title")?.textContent });
    }
    const busiest = cores.cores.find((core) => core.items === most(cores));
    store.set({ core: busiest ? `${busiest.x},${busiest.y}` : null });
    colour();
  });
  store.on(["metric"], colour);
  store.on(["core", "lowering"], drawCard);
  /** @param {Event} event */
  function choose(event) {
    const core = closest(event.target, "[data-core]")?.dataset.core;
    if (core) store.set({ core });
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const cell = closest(event.target, "[data-core]")?.dataset.core;
    const near = cell && neighbour(event.key, cell);
    if (near) {
      const [next] = all(map, `[data-core="${near}"]`);
      if (next) store.set({ core: near });
      next?.focus();
    } else if (event.key === "Enter" || event.key === " ") choose(event);
    else return;
    take(event);
  }

  function colour() {
    const { metric, lowering: { cores } } = store.state;
    if (!cores) return;
    const shown = heat(cores, metric);
    for (const cell of all(map, "[data-core]")) {
      const value = shown.get(cell.dataset.core ?? "");
      const label = cell.querySelector("text");
      if (!value || !label) continue;
      cell.querySelector("path")?.setAttribute("class", `f${value.step}`);
      label.setAttribute("class", `n h${value.step}`);
      label.textContent = value.label;
    }
    figures.textContent = `${cores.summary} · imbalance ${imbalance(cores)?.toFixed(2) ?? "–"}`;
  }

  function drawCard() {
    const { core: name, lowering: { cores, buffers } } = store.state;
    for (const cell of all(element, "[data-core]")) {
      const chosen = cell.dataset.core === name;
      cell.classList.toggle("chosen", chosen);
      if (!map.contains(cell)) continue;
      set(cell, { tabindex: chosen ? 0 : -1, "aria-pressed": chosen });
    }
    const core = cores?.cores.find((core) => `${core.x},${core.y}` === name);
    if (!cores || !core) return put(card, cores && name && [h("h4", `core (${name})`), h("p.q", "It gets no work.")]);
    const lists = Object.entries(core.arguments).filter(([, list]) => list.length);
    /** @type {(title: string, rows: [string, Child][]) => Child} */
    const titled = (title, rows) => [h("h4", title), table(rows)];
    put(card,
      h("h4", `core (${core.x}, ${core.y})`, core.noc && quiet(` NoC (${core.noc.join(", ")})`)),
      table(known(cores).map(([label, { of, shown }]) => [label, shown(of(core, cores) ?? 0)])),
      core.listed.length > 0 && h("p.m", `items ${core.listed.slice(0, 40).join(", ")}${core.listed.length > 40 ? " …" : ""}`),
      lists.map(([kernel, list]) => titled(`${kernel} arguments`, list)),
      !Object.keys(core.arguments).length && core.values.length > 0 && titled("values", core.values.map(([label, value]) => [label, `${value}`])),
      buffers && titled("circular buffers", buffers.buffers.map((one) => [`${one.index ?? "–"} ${one.name}`, `${one.pages} × ${bytes(one.page_bytes)}`])));
  }
  return { element };
}
