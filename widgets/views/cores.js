// The chip's floorplan with a measure on each core, and all that one core gets.

/** @import { Core } from "../messages.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { neighbour } from "../model/keys.js";
import { pictureButtons } from "../parts/cards.js";
import { all, choice, closest, h, markup, put, quiet, set, table, take } from "../parts/dom.js";

/** A core as the drawings and the store name it. @param {Core} core */
const nameOf = ({ x, y }) => `${x},${y}`;

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
    if (!cores) return put(map, h("p.q", "Step B1, which assigns work items to cores, did not run."));
    put(measure, ...cores.measures.map(({ name }) => h("option", name)));
    figures.textContent = cores.summary;
    put(map, markup(cores.svg));
    put(work, markup(cores.work));
    for (const cell of all(map, "[data-core]")) {
      set(cell, { role: "button", label: cell.querySelector("title")?.textContent });
    }
    const [busiest] = [...cores.cores].sort((a, b) => b.items - a.items);
    store.set({ core: busiest ? nameOf(busiest) : null });
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
    const measure = cores?.measures.find(({ name }) => name === metric);
    const legend = map.querySelector(".legend");
    if (measure) legend?.replaceChildren(.../** @type {Element} */ (markup(`<svg>${measure.legend}</svg>`).firstChild).childNodes);
    cores?.cores.forEach((core, i) => {
      const [square, label] = all(map, `[data-core="${nameOf(core)}"]>:is(path,text)`);
      if (!measure?.labels[i] || !label) return;
      square.setAttribute("class", `f${measure.steps[i]}`);
      label.setAttribute("class", `n h${measure.steps[i]}`);
      label.textContent = measure.labels[i];
    });
  }

  function drawCard() {
    const { core: name, lowering: { cores, buffers } } = store.state;
    for (const cell of all(element, "[data-core]")) {
      const chosen = cell.dataset.core === name;
      cell.classList.toggle("chosen", chosen);
      if (!map.contains(cell)) continue;
      set(cell, { tabindex: chosen ? 0 : -1, "aria-pressed": chosen });
    }
    const i = cores?.cores.findIndex((core) => nameOf(core) === name) ?? -1;
    const core = cores?.cores[i];
    if (!cores || !core) return put(card, cores && name && [h("h4", `core (${name})`), h("p.q", "This core has no work.")]);
    const lists = Object.entries(core.arguments).filter(([, list]) => list.length);
    /** @type {(title: string, rows: [string, Child][]) => Child} */
    const titled = (title, rows) => [h("h4", title), table(rows)];
    put(card,
      h("h4", `core (${core.x}, ${core.y})`, core.noc && quiet(` NoC (${core.noc.join(", ")})`)),
      table(cores.measures.map(({ name, shown }) => [name, shown[i]])),
      core.listed.length > 0 && h("p.m", `items ${core.listed.slice(0, 40).join(", ")}${core.listed.length > 40 ? " …" : ""}`),
      lists.map(([kernel, list]) => titled(`${kernel} runtime arguments`, list)),
      !Object.keys(core.arguments).length && core.values.length > 0 && titled("values of this core", core.values.map(([label, value]) => [label, `${value}`])),
      buffers && titled("circular buffers", buffers.buffers.map((one) => [`${one.index ?? "–"} ${one.name}`, `${one.pages} × ${one.page_size}`])));
  }
  return { element };
}
