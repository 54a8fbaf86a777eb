// The chip's floorplan with a measure on each core, and all that one core gets.

import { button, bytes, download, grouped, h, markup, put } from "./dom.js";

const STEPS = 9;
const METRICS = {
  "work items": { of: (core) => core.items, shown: grouped },
  "tiles moved": { of: (core, cores) => core.items * cores.tiles_per_item, shown: grouped, needs: "tiles_per_item" },
  "bytes moved": { of: (core, cores) => core.items * cores.bytes_per_item, shown: bytes, short: compact, needs: "bytes_per_item" },
  "L1 in use": { of: (core, cores) => (core.items ? cores.l1_bytes : 0), shown: bytes, short: compact },
  "share of the mean": {
    of: (core, cores) => Math.round((100 * core.items * cores.working) / Math.max(1, cores.total)),
    shown: (value) => `${value} %`, short: (value) => `${value}`,
  },
};

/** Four characters at most: 960, 12k, 3.4M. */
function compact(value) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= unit) return `${value / unit >= 10 ? Math.round(value / unit) : (value / unit).toFixed(1)}${name}`;
  return `${Math.round(value)}`;
}

export function coresView(store) {
  const map = h("div.coremap", { role: "group", "aria-label": "cores" });
  const work = h("div.workmap", { role: "group", "aria-label": "work items" });
  const card = h("section.pane.corecard", { "aria-live": "polite" });
  const metric = h("select", { "aria-label": "measure", onchange: () => store.set({ metric: metric.value }) });
  const figures = h("span.q");
  const element = h("div.coresview",
    h("div.tools", h("label", "colour by ", metric), figures, h("span.gapper"), pictureButtons(map, "cores")),
    h("div.two", map, h("div", work), card));

  store.on(["lowering"], () => {
    const { cores } = store.state.lowering.data;
    if (!cores) return put(map, h("p.q", "Step B1 decides which core does what; it was not reached."));
    cores.total = cores.cores.reduce((sum, core) => sum + core.items, 0);
    cores.working = cores.cores.filter((core) => core.items).length;
    put(metric, ...Object.entries(METRICS).filter(([, one]) => !one.needs || cores[one.needs] !== null).map(([name]) => h("option", name)));
    put(map, markup(cores.svg));
    // A picture for who reads it, a group of buttons here.
    map.querySelector("svg").setAttribute("role", "group");
    put(work, markup(cores.work));
    work.onclick = (event) => {
      const block = event.target.closest("[data-core]");
      if (block) store.set({ core: block.dataset.core });
    };
    for (const cell of map.querySelectorAll("[data-core]")) {
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", cell.querySelector("title").textContent);
      cell.addEventListener("click", () => store.set({ core: cell.dataset.core }));
      cell.addEventListener("keydown", (event) => walk(event, cell));
    }
    const busiest = cores.cores.reduce((best, core) => (core.items > best.items ? core : best), cores.cores[0]);
    store.set({ core: busiest ? `${busiest.x},${busiest.y}` : null });
    colour();
  });
  store.on(["metric"], colour);
  store.on(["core", "lowering"], drawCard);

  function colour() {
    const { cores } = store.state.lowering.data;
    if (!cores) return;
    const one = METRICS[store.state.metric] || METRICS["work items"];
    const values = new Map(cores.cores.map((core) => [`${core.x},${core.y}`, one.of(core, cores)]));
    const most = Math.max(1, ...values.values());
    const least = Math.min(...values.values());
    for (const cell of map.querySelectorAll("[data-core]")) {
      const value = values.get(cell.dataset.core);
      const label = cell.querySelector("text");
      if (!value || !label) continue;
      // Where all are the same, a quiet step of the scale says so.
      const step = least === most ? 2 : Math.round((value * (STEPS - 1)) / most);
      cell.querySelector("path").setAttribute("class", `f${step}`);
      label.setAttribute("class", `n h${step}`);
      label.textContent = (one.short || compact)(value);
    }
    const mean = cores.working ? cores.total / cores.working : 0;
    figures.textContent = `${cores.summary} · imbalance ${mean ? (Math.max(...cores.cores.map((core) => core.items)) / mean).toFixed(2) : "–"}`;
  }

  function walk(event, cell) {
    const [x, y] = cell.dataset.core.split(",").map(Number);
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Enter" || event.key === " ") store.set({ core: cell.dataset.core });
    else if (event.key in steps) {
      const [dx, dy] = steps[event.key];
      const next = map.querySelector(`[data-core="${x + dx},${y + dy}"]`);
      if (next) {
        store.set({ core: next.dataset.core });
        next.focus();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function drawCard() {
    const { lowering, core: name } = store.state;
    const { cores, buffers } = lowering.data;
    for (const one of element.querySelectorAll("[data-core]")) one.classList.toggle("chosen", one.dataset.core === name);
    for (const cell of map.querySelectorAll("[data-core]")) {
      cell.setAttribute("tabindex", cell.dataset.core === name ? 0 : -1);
      cell.setAttribute("aria-pressed", cell.dataset.core === name);
    }
    if (!cores || !name) return put(card);
    const core = cores.cores.find((one) => `${one.x},${one.y}` === name);
    if (!core) return put(card, h("h4", `core (${name})`), h("p.q", "It gets no work."));
    const facts = Object.entries(METRICS).filter(([, one]) => !one.needs || cores[one.needs] !== null)
      .map(([label, one]) => row(label, one.shown(one.of(core, cores))));
    put(card, ...[
      h("h4", `core (${core.x}, ${core.y})`, core.noc ? h("span.q", ` NoC (${core.noc.join(", ")})`) : ""),
      table(facts),
      core.listed.length ? h("p.m", `items ${core.listed.slice(0, 40).join(", ")}${core.listed.length > 40 ? " …" : ""}`) : null,
      ...Object.entries(core.arguments).filter(([, list]) => list.length).map(([kernel, list]) => [h("h4", `${kernel} arguments`), table(list.map(([a, b]) => row(a, b)))]).flat(),
      !Object.keys(core.arguments).length && core.values.length ? [h("h4", "values"), table(core.values.map(([a, b]) => row(a, b)))] : null,
      buffers ? [h("h4", "circular buffers"), table(buffers.buffers.map((one) => row(`${one.index ?? "–"} ${one.name}`, `${one.pages} × ${bytes(one.page_bytes)}`)))] : null,
    ].flat().filter(Boolean));
  }
  return { element, focus: () => map.querySelector("[data-core][tabindex='0']")?.focus(), keys: {} };
}

const row = (label, value) => h("tr", h("th", { scope: "row" }, label), h("td.m", `${value}`));
export const table = (rows) => h("table.facts", h("tbody", rows));

/** Buttons that save the drawing in `holder` as SVG and as PNG. */
export function pictureButtons(holder, name) {
  const text = () => {
    const copy = holder.querySelector("svg").cloneNode(true);
    for (const chosen of copy.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
    return new XMLSerializer().serializeToString(copy);
  };
  const png = () => {
    const svg = holder.querySelector("svg");
    const { width, height } = svg.viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = h("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => download(`${name}.png`, blob, "image/png"));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text())}`;
  };
  return h("span.pictures",
    button("SVG", () => download(`${name}.svg`, text(), "image/svg+xml"), { class: "chip", "aria-label": `save the drawing of ${name} as SVG` }),
    button("PNG", png, { class: "chip", "aria-label": `save the drawing of ${name} as PNG` }),
  );
}
