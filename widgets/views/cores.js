// The chip's floorplan with a measure on each core, and all that one core gets.

/** @import { Core } from "../messages.js" */
/** @import { Recorded } from "../model/moments.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Child } from "../parts/child.js" */

import { MOMENT, together } from "../model/clock.js";
import { neighbour } from "../model/keys.js";
import { busyControl } from "../parts/busy.js";
import { pictureButtons } from "../parts/cards.js";
import { clock } from "../parts/clock.js";
import { all, choice, classed, closest, find, gapper, h, markup, put, quiet, set, table, take } from "../parts/dom.js";
import { recording as recordingControls } from "../parts/record.js";
import { STATES } from "./timeline.js";

/** A core as the drawings and the store name it. @param {Core} core */
const nameOf = ({ x, y }) => `${x},${y}`;

/** @param {Explorer} store @param {Kernel} kernel */
export function coresView(store, kernel) {
  const map = h("div.coremap", { role: "group", label: "cores", onclick: choose, onkeydown: walk });
  const work = h("div.workmap", { role: "group", label: "work items", onclick: choose });
  const card = h("section.pane.corecard", { "aria-live": "polite" });
  // Until one is chosen, the measure is shown that differs most between cores.
  let isChosen = false;
  const measure = choice("measure", () => {
    isChosen = true;
    store.set({ metric: measure.value });
  });
  const figures = quiet();
  const { record, why, problem } = recordingControls(store, kernel);
  const { element: controls, scrubber, keys } = clock(store);
  const legend = h("p.q");
  const recorded = h("div.recorded", controls, h("div.slide", scrubber), legend);
  const element = h("div.coresview",
    h("div.tools", h("label", "colour by ", measure), figures, record, busyControl(store, kernel), why, gapper(), pictureButtons(map, "cores")),
    problem, recorded,
    h("div.withcard", h("div.two", map, h("div", work)), card));

  store.on(["lowering"], ({ lowering: { cores } }) => {
    if (!cores) return put(map, h("p.q", "Step B1, which assigns work items to cores, did not run."));
    put(map, markup(cores.svg));
    put(work, markup(cores.work));
    for (const cell of all(map, "[data-core]")) cell.role = "button";
    const [busiest] = [...cores.cores].sort((a, b) => b.items - a.items);
    if (!cores.cores.some((core) => nameOf(core) === store.state.core)) store.set({ core: busiest ? nameOf(busiest) : null });
    colour();
  });
  store.on(["lowering", "recording", "estimate", "noEstimate"], ({ lowering: { cores }, recording, estimate, noEstimate, metric }) => {
    if (!cores) return;
    const names = [...measures().map(({ name }) => name), ...(recording ? [MOMENT] : [])];
    put(measure, names.map((name) => h("option", name)));
    if (!isChosen && metric !== MOMENT) store.set({ metric: mostDifferent() });
    // One of an estimate comes back with it.
    if (!names.includes(metric) && (metric === MOMENT || estimate || noEstimate)) store.set({ metric: names[0] });
  });
  store.on(["metric", "recording", "lowering", "estimate"], ({ metric, recording, lowering: { cores } }) => {
    measure.value = metric;
    recorded.hidden = metric !== MOMENT;
    put(legend, recording?.recording.map ?? "");
    if (metric !== MOMENT) put(figures, cores?.summary ?? "");
    colour();
  });
  store.on(["time"], colour);
  store.on(["core", "lowering", "estimate"], drawCard);

  /** Those of the plan, and those that are predicted. */
  function measures() {
    const { estimate, lowering: { cores } } = store.state;
    return [...(cores?.measures ?? []), ...(estimate?.measures ?? [])];
  }

  /** The measure of which the cores have the most different colours; the first where none differs. */
  function mostDifferent() {
    const all = measures();
    const spreads = all.map(({ steps }) => Math.max(...steps) - Math.min(...steps));
    return all[spreads.indexOf(Math.max(...spreads))]?.name ?? store.state.metric;
  }

  /** @param {Event} event */
  function choose(event) {
    const core = closest(event.target, "[data-core]")?.dataset.core;
    if (core) store.set({ core, ...(store.state.metric === MOMENT && { tab: "Buffers" }) });
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
    const { metric, recording, lowering: { cores } } = store.state;
    if (metric === MOMENT && recording) return play(recording);
    for (const cell of all(map, "[data-core]")) cell.ariaLabel = find(cell, "title")?.textContent ?? "";
    const measure = measures().find(({ name }) => name === metric);
    const legend = find(map, ".legend");
    if (measure) legend?.replaceChildren(.../** @type {Element} */ (markup(`<svg>${measure.legend}</svg>`).firstChild).childNodes);
    cores?.cores.forEach((core, i) => {
      const [square, label] = all(map, `[data-core="${nameOf(core)}"]>:is(path,text)`);
      if (!measure?.labels[i] || !label) return;
      set(square, { class: `f${measure.steps[i]}` });
      set(label, { class: `n h${measure.steps[i]}` });
      put(label, measure.labels[i]);
    });
  }

  /** What each core does at the moment. @param {Recorded} recording */
  function play(recording) {
    const { time, tab, lowering: { cores } } = store.state;
    if (tab !== "Cores") return;
    /** @type {Record<string, number>} */
    const counts = {};
    find(map, ".legend")?.replaceChildren();
    const now = new Map(recording.patterns.map((moments) => [moments, moments.doing(time)]));
    for (const core of cores?.cores ?? []) {
      const moments = recording.cores.get(nameOf(core));
      const doing = moments && now.get(moments);
      const [cell] = all(map, `[data-core="${nameOf(core)}"]`);
      const [square, label] = all(cell, ":scope>:is(path,text)");
      if (!label) continue;
      const state = doing ? together(doing.map(({ state }) => state)) : "";
      if (doing) counts[state] = (counts[state] ?? 0) + 1;
      set(square, { class: `at ${state}` });
      set(label, { class: "n" });
      put(label, doing ? doing.map(({ state }) => STATES[state][0]).join("") : "?");
      const told = doing ? doing.map(({ kernel, state }) => `${kernel} ${STATES[state][1] ?? state}`).join(", ") : "not recorded";
      cell.ariaLabel = `core (${core.x}, ${core.y}): ${told}`;
    }
    put(figures, Object.entries(counts).map(([state, count]) => `${state}: ${count}`).join(", "));
    store.set({ say: `step ${time}: ${figures.textContent}` });
  }

  function drawCard() {
    const { core: name, lowering: { cores, buffers } } = store.state;
    for (const cell of all(element, "[data-core]")) {
      const chosen = cell.dataset.core === name;
      classed(cell, "chosen", chosen);
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
      table(measures().map(({ name, shown }) => [name, shown[i]])),
      core.listed.length > 0 && h("p.m", `items ${core.listed.slice(0, 40).join(", ")}${core.listed.length > 40 ? " …" : ""}`),
      lists.map(([kernel, list]) => titled(`${kernel} runtime arguments`, list)),
      !Object.keys(core.arguments).length && core.values.length > 0 && titled("values of this core", core.values.map(([label, value]) => [label, `${value}`])),
      buffers && titled("circular buffers", buffers.buffers.map((one) => [`${one.index ?? "–"} ${one.name}`, `${one.pages} × ${one.page_size}`])));
  }
  return { element, keys, shown: colour };
}
