// Time travel: what each kernel of one core was doing at a moment, and how full the circular buffers were.

import { inflated } from "./data.js";
import { button, h, put } from "./dom.js";
import { edits, inputsControl } from "./inputs.js";
import { code, pinLink } from "./listing.js";
import { errorCard } from "./steps.js";

const PLOT_WIDTH = 600;
const ROW = 22;

/** `graph` holds the drawing of the dataflow, which shows the moment too. */
export function timelineView(store, kernel, recorded, graph) {
  const chooser = h("select", { "aria-label": "core to record" });
  const record = button("Record a run", go, { class: "primary" });
  const why = h("span.q");
  const place = h("input", { type: "range", min: 0, value: 0, step: 1, class: "scrubber", "aria-label": "moment of the run", oninput: () => show(Number(place.value)) });
  const play = button("▶", toggle, { class: "chip", "aria-label": "play" });
  const moment = h("span.m");
  const lanes = h("div.lanes");
  const plots = h("div.plots");
  const stage = h("div", h("div.tools", play, place, moment), lanes, plots);
  const problem = h("div.scroll");
  const element = h("section.timeline", { "aria-label": "time travel" },
    h("div.tools", h("b", "time travel"), h("label", "core ", chooser), inputsControl(store, kernel), record, why), problem, stage);
  let data, timer;
  stage.hidden = true;
  store.on(["lowering", "busy", "edits", "stale"], () => {
    const { lowering, busy } = store.state;
    const cores = (lowering.data.cores?.cores || []).filter((core) => core.items);
    if (chooser.options.length !== cores.length) put(chooser, cores.map((core) => h("option", { value: `${core.x},${core.y}` }, `(${core.x}, ${core.y})`)));
    const failed = lowering.steps.some((step) => step.error);
    const reason = kernel.missing("record") || (failed ? "the lowering failed" : "");
    record.disabled = Boolean(busy || reason);
    chooser.parentElement.hidden = Boolean(reason);
    why.textContent = reason || (busy === "record" ? "recording …" : edits(store) && `takes the edited ${edits(store)}`);
  });
  store.on(["lowering"], () => (stage.hidden = true));
  if (recorded) inflated(recorded).then(load);

  function go() {
    store.set({ busy: "record" });
    put(problem);
    kernel.ask({ do: "record", code: store.state.edits, core: chooser.value, ...store.state.inputs })
      .then(async (answer) => load(await inflated(answer.buffer)), (error) => put(problem, errorCard(store, error)))
      .finally(() => store.set({ busy: null }));
  }

  /** Takes a recorded run: times are sums of differences, pages in each buffer are sums of pushes less pops. */
  function load(timeline) {
    data = timeline;
    let time = 0;
    data.at = data.time.map((step) => (time += step));
    const held = data.buffers.map(() => 0);
    data.pages = data.at.map((_, i) => {
      const name = data.operations[data.operation[i]];
      if (data.buffer[i] >= 0 && /^(push_back|pop_front)$/.test(name)) held[data.buffer[i]] += name === "push_back" ? data.amount[i] : -data.amount[i];
      return [...held];
    });
    place.max = Math.max(0, data.at.length - 1);
    stage.hidden = false;
    put(plots, data.buffers.map((buffer, b) => plot(buffer, b)));
    if (data.deadlock.length) put(problem, h("p.pre.bad.m", data.deadlock.join("\n")));
    place.value = 0;
    show(0);
  }

  /** How full one buffer was over time, as steps. */
  function plot([name, number, capacity], b) {
    const end = data.at[data.at.length - 1] || 1;
    const x = (time) => ((time * PLOT_WIDTH) / end).toFixed(1);
    const y = (pages) => (ROW - 3 - (pages * (ROW - 6)) / capacity).toFixed(1);
    let path = `M0 ${y(0)}`;
    data.at.forEach((time, i) => {
      if (!i || data.pages[i][b] !== data.pages[i - 1][b]) path += `H${x(time)}V${y(data.pages[i][b])}`;
    });
    const waits = data.waits.filter((wait) => wait[4] === b).map((wait) => [wait[1], wait[2], data.kernels[wait[0]]]);
    const svg = `<svg viewBox="0 0 ${PLOT_WIDTH} ${ROW}" width="${PLOT_WIDTH}" height="${ROW}" preserveAspectRatio="none" aria-hidden="true">` +
      waits.map(([start, stop]) => `<rect class="waited" x="${x(start)}" y="${ROW - 3}" width="${Math.max(1, x(stop) - x(start))}" height="3"/>`).join("") +
      `<path class="level" d="${path}H${PLOT_WIDTH}"/></svg>`;
    const drawn = new DOMParser().parseFromString(svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"'), "image/svg+xml").documentElement;
    return h("div.plot", h("span.m.name", `${number} ${name}`), h("span.track", drawn, h("i.now")));
  }

  /** What each kernel was doing at event `i`: its last call until then, and whether it waited in the next one. */
  function show(i) {
    const time = data.at[i];
    const end = data.at[data.at.length - 1] || 1;
    place.value = i;
    moment.textContent = `core (${data.core.join(", ")}), step ${time} of ${end}`;
    const words = [];
    const doing = [];
    put(lanes, data.kernels.map((role, k) => {
      let last = -1;
      for (let e = 0; e < data.at.length && data.at[e] <= time; e++) if (data.kernel[e] === k) last = e;
      const wait = data.waits.find((one) => one[0] === k && one[1] <= time && time < one[2]);
      const done = last >= 0 && data.operations[data.operation[last]] === "finish";
      const line = data.lines[wait ? wait[6] : last >= 0 ? data.line[last] : -1];
      const needs = wait && `waits for ${wait[7]}: ${wait[5]} tiles ${wait[3] ? "of room in" : "of"} ${data.buffers[wait[4]][0]}${wait[8] ? ", for ever" : ""}`;
      const state = done ? "has finished" : needs || (last < 0 ? "not started" : "runs");
      words.push(`${role} ${state}`);
      const two = done ? ["■ done"] : wait ? [wait[8] ? "✖ is stuck" : "‖ waits", wait[3] ? `room for ${wait[5]}` : `${wait[5]} tiles`] : last < 0 ? ["not started"] : ["▸ runs"];
      const buffer = wait && data.buffers[wait[4]][0];
      doing.push({ role, two, state: wait ? "waits" : done ? "done" : "", edge: wait && (wait[3] ? `${role}>${buffer}` : `${buffer}>${role}`) });
      return h("div", { class: `lane ${wait ? "waits" : done ? "done" : ""}` }, h("b", role), h("span.glyph", { "aria-hidden": true }, wait ? "‖" : done ? "■" : "▸"),
        h("span", state), line && !done ? h("code", `${line[0]}  `, ...code(line[1], "cpp")) : h("code"), line && line[2] && !done ? pinLink(store, line[2], `L${line[2]}`) : "");
    }));
    for (const mark of plots.querySelectorAll(".now")) mark.style.left = `${(100 * time) / end}%`;
    draw(data.pages[i], doing);
    store.set({ say: `step ${time}: ${words.join("; ")}` });
  }

  /** The moment in the drawing of the dataflow: pages in each buffer, what each kernel does, and where it waits. */
  function draw(pages, doing) {
    const svg = graph.querySelector("svg");
    if (!svg) return;
    svg.classList.add("moment");
    for (const box of svg.querySelectorAll("[data-buffer]")) {
      const b = data.buffers.findIndex(([name]) => name === box.dataset.buffer);
      if (b < 0) continue;
      const bar = box.querySelector(".held");
      bar.setAttribute("width", pages[b] * bar.dataset.page);
      box.querySelector(".now text").textContent = `${pages[b]}/${data.buffers[b][2]}`;
    }
    for (const { role, two, state } of doing) {
      const box = svg.querySelector(`[data-kernel=${role}]`);
      box.setAttribute("class", state);
      box.querySelectorAll(".now .s").forEach((line, k) => (line.textContent = two[k] || ""));
    }
    const edges = doing.map((one) => one.edge);
    for (const edge of svg.querySelectorAll("[data-edge]")) edge.classList.toggle("waited", edges.includes(edge.dataset.edge));
  }

  function toggle() {
    if (timer) {
      clearInterval(timer);
      timer = null;
    } else timer = setInterval(() => {
      // A view that is gone, or the end, stops the clock.
      if (!element.isConnected || Number(place.value) >= Number(place.max)) toggle();
      else show(Number(place.value) + 1);
    }, 120);
    play.textContent = timer ? "❚❚" : "▶";
    play.setAttribute("aria-label", timer ? "pause" : "play");
  }
  return { element, load };
}
