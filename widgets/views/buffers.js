// What a core does, its circular buffers, and what they take of L1.

/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { button, grid, h, heading, markup, number, put } from "../parts/dom.js";
import { pinLink } from "../parts/listing.js";
import { deviceTime } from "./device.js";
import { flowView } from "./flow.js";
import { timeTravel } from "./timeline.js";
import { tabList } from "../parts/tabs.js";

const HEADS = ["CB", "name", "data format", "pages × stages", "size", "producer", "consumer", "tiles in / out per item", "kernel line"];

/** @param {Explorer} store @param {Kernel} kernel */
export function buffersView(store, kernel) {
  const { element: flow, holder: graph, draws } = flowView(store, (line) => { const cost = store.state.costs?.kernel[line]; return cost ? [["cost", cost[2]]] : []; });
  flow.classList.add("graph");
  const l1 = h("div.scroll");
  const list = h("div.scroll");
  store.on(["lowering"], ({ lowering: { buffers } }) => {
    put(l1, buffers?.l1 && markup(buffers.l1));
    put(list, buffers && grid(HEADS, buffers.buffers.map((buffer) => h("tr", { title: buffer.reason || null },
      number(`${buffer.index ?? "–"}`), heading(buffer.name), h("td", buffer.format),
      number(`${buffer.block_pages} × ${buffer.stages}`), number(buffer.size),
      h("td", buffer.producer), h("td", buffer.consumer), number(`${buffer.in ?? "–"} / ${buffer.out ?? "–"}`),
      h("td", pinLink(store, buffer.line))))));
  });
  const { element, keys, shown } = timeTravel(store, kernel, graph);
  draws(shown);
  /** @type {[name: string, title: string, part: HTMLElement][]} */
  const parts = [
    ["dataflow", "the dataflow of one core, and the moments of a recorded run", h("div.pane", flow, element)],
    ["time on the device", "what each processor does and waits for, as it is predicted", h("div.part", deviceTime(store, kernel), h("p.q.none", "No estimate yet."))],
    ["circular buffers", "their sizes, and what they take of L1", h("div.part.two", list, l1)],
  ];
  const tabs = tabList("parts of Buffers");
  /** @param {number} chosen */
  const open = (chosen) => {
    tabs.select(chosen);
    parts.forEach(([, , part], i) => (part.hidden = i !== chosen));
  };
  tabs.show(parts.map(([name, title], i) => button(name, () => open(i), { title })));
  open(0);
  return { keys, shown, element: h("div.buffersview", h("div.tools", tabs.element), parts.map(([, , part]) => part)) };
}
