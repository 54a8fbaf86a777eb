// The dataflow of one core, its circular buffers, and what they take of L1.

import { bytes, h, heads, markup, put } from "./dom.js";
import { pictureButtons } from "./cores.js";
import { pinLink } from "./listing.js";
import { timelineView } from "./timeline.js";

const HEADS = ["CB", "buffer", "format", "pages", "bytes", "from", "to", "tiles in / out per item", "kernel line"];

export function buffersView(store, kernel) {
  const graph = h("div.scroll");
  const l1 = h("div.scroll");
  const list = h("div.scroll");
  const element = h("div.buffersview",
    h("div.tools", h("b", "dataflow of one core"), h("span.gapper"), pictureButtons(graph, "dataflow")),
    graph, timelineView(store, kernel, kernel.model.get("timeline"), graph).element, h("div.two", list, l1));
  store.on(["lowering"], () => {
    const { buffers } = store.state.lowering.data;
    if (!buffers) return put(graph, h("p.q", "Step A2 decides the circular buffers; it was not reached."));
    put(graph, markup(buffers.graph));
    put(l1, buffers.l1 ? markup(buffers.l1) : "");
    put(list, h("table.grid",
      heads(...HEADS),
      h("tbody", ...buffers.buffers.map((one) => h("tr", { title: one.reason || null },
        h("td.num", `${one.index ?? "–"}`), h("th", { scope: "row" }, one.name), h("td", one.format),
        h("td.num", `${one.block_pages} × ${one.stages}`), h("td.num", bytes(one.bytes)),
        h("td", one.producer), h("td", one.consumer), h("td.num", `${one.in ?? "–"} / ${one.out ?? "–"}`),
        h("td", one.line ? pinLink(store, one.line, `L${one.line}`) : ""))))));
  });
  return { element, focus: () => graph.querySelector("[tabindex='0']")?.focus(), keys: {} };
}
