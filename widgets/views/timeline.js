// Time travel: what each kernel of one core was doing at a moment, and how full the circular buffers were.

/** @import { Doing, Moments } from "../model/moments.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { goToMoment, MOMENT, momentsOf, spans } from "../model/clock.js";
import { busyControl, limitControl } from "../parts/busy.js";
import { clock } from "../parts/clock.js";
import { all, choice, classed, closest, find, h, link, offer, put, rect, set } from "../parts/dom.js";
import { inputsControl } from "../parts/inputs.js";
import { code, pinLink } from "../parts/listing.js";
import { BAR_HEIGHT, PLOT_HEIGHT, bars, labels, plot } from "../parts/plots.js";
import { noRecording, recording, shownCore, workingCores } from "../parts/record.js";

const PLOT_COLUMNS = 1000;
const RECORDER = "emulator";
// The glyph and the words for what a kernel does; a wait is told with what it is for.
export const STATES = { waits: ["‖"], stuck: ["✖"], done: ["■", "finished", "■ done"], runs: ["▸", "runs", "▸ runs"], "": ["▸", "not started", "not started"] };

/** @param {Explorer} store @param {Kernel} kernel @param {Element} graph holds the drawing of the dataflow, which shows the moment too */
export function timeTravel(store, kernel, graph) {
  const chooser = choice("core to record", () => store.set({ core: chooser.value }));
  const core = h("label", "core ", chooser);
  const { record, why, problem } = recording(store, kernel);
  const limit = limitControl(store, kernel, () => store.state.backends.find(({ name }) => name === RECORDER)?.limit);
  const { element: controls, scrubber, keys } = clock(store);
  const notes = h("p.q.recorded.note");
  const lanes = h("div.lanes");
  const axis = h("span.axis");
  const rows = h("div");
  const plots = h("div.plots", { onpointerdown: scrub, onpointermove: scrub },
    h("div.plot", h("span.name", "logical step"), axis), rows);
  const transport = h("div.transport", h("div.plot", h("span"), h("span.slide", scrubber)), controls);
  const stage = h("div.recordedstage", lanes, plots, notes, transport);
  const element = h("section.timeline", { label: "time travel" },
    h("div.tools", h("b", "time travel"), core, inputsControl(store, kernel), limit, record, busyControl(store, kernel), why), problem, stage);

  store.on(["lowering", "busy", "stale"], (state) => {
    const cores = workingCores(state);
    offer(chooser, cores.map(shownCore), cores);
    core.hidden = !!noRecording(state, kernel) && !state.recording;
  });
  store.on(["core", "lowering", "recording"], (state) => {
    if (workingCores(state).includes(`${state.core}`)) chooser.value = `${state.core}`;
    const moments = momentsOf(state);
    stage.hidden = !state.recording;
    lanes.hidden = plots.hidden = !moments;
    const { missing = "", unit = "" } = state.recording?.recording ?? {};
    put(notes, link("Play all cores on their map", () => store.set({ metric: MOMENT, tab: "Cores" })), " · ",
      missing, moments ? moments.pattern.note : ` Core ${shownCore(`${state.core}`)} is not recorded: record again.`, ` ${unit} `);
    notes.title = notes.textContent;
    if (!moments) classed(find(graph, "svg"), "moment", false);
  });
  store.on(["core", "recording", "window"], drawPlots);
  store.on(["core", "recording", "time"], show);

  function drawPlots() {
    const moments = momentsOf(store.state);
    if (!moments) return;
    const { window } = store.state;
    /** @param {Parameters<typeof spans>[0]} waits @param {number} y @param {number} height */
    const waited = (waits, y, height) => bars("waited", spans(waits, window, PLOT_COLUMNS), y, height);
    const { recording: { kernels, buffers }, pattern } = moments;
    put(axis, labels(window));
    put(rows,
      kernels.map((name, k) => {
        const { times, waits } = moments.kernels[k];
        const last = times.length ? times[times.length - 1] + 1 : 0;
        return plot(name, window, `${bars("ran", [[0, last]], 4, BAR_HEIGHT)}${waited(waits, 4, BAR_HEIGHT)}`, h("i.now"));
      }),
      buffers.map(([name, number], b) => plot(`${number} ${name}`, window,
        `${waited(pattern.waits.filter((wait) => wait[4] === b), PLOT_HEIGHT - 3, 3)}<path class="level" d="${moments.level(b, window, PLOT_HEIGHT, PLOT_COLUMNS)}"/>`, h("i.now"))));
    place();
  }

  function place() {
    const { time, window: [from, to] } = store.state;
    plots.style.setProperty("--now", `${(100 * (time - from)) / (to - from)}%`);
  }

  /** Where a plot is pressed, or dragged over, is the moment. @param {PointerEvent} event */
  function scrub(event) {
    const track = closest(event.target, ".track,.axis");
    if (!track || !(event.buttons & 1)) return;
    const { left, width } = rect(track);
    const { window: [from, to] } = store.state;
    store.set({ playing: false });
    goToMoment(store, from + ((to - from) * (event.clientX - left)) / width);
  }

  function show() {
    const moments = momentsOf(store.state);
    // The other view plays without this one.
    if (!moments || store.state.tab !== "Buffers") return;
    const { time } = store.state;
    place();
    const doing = moments.doing(time);
    const told = doing.map(words);
    put(lanes, doing.map(({ kernel, state, wait, line }, k) => {
      const [number, text, own] = state === "done" || !line ? [0, "", 0] : line;
      return h("div", { class: `lane ${wait ? "waits" : state}` }, h("b", kernel), h("span.glyph", { "aria-hidden": true }, STATES[state][0]),
        h("span", told[k]), h("code", number > 0 && [`${number}  `, ...code(text, "cpp")]), pinLink(store, own));
    }));
    draw(moments, doing);
    store.set({ say: `step ${time}: ${doing.map(({ kernel }, k) => `${kernel} ${told[k]}`).join("; ")}` });
  }

  /** @param {Doing} doing */
  function words({ state, wait }) {
    if (wait && wait[4] < 0) return "waits for a semaphore, forever";
    return !wait ? STATES[state][1] : `waits for ${wait[7]}: ${wait[3] ? "room for " : ""}${wait[5]} tiles ${wait[3] ? "in" : "of"} ${bufferOf(wait)}${wait[8] ? ", forever" : ""}`;
  }

  /** @param {NonNullable<Doing["wait"]>} wait */
  function bufferOf(wait) {
    return store.state.recording?.recording.buffers[wait[4]]?.[0];
  }

  /** The moment in the drawing of the dataflow: pages in each buffer, what each kernel does, and where it waits. @param {Moments} moments @param {Doing[]} doing */
  function draw(moments, doing) {
    const { buffers } = moments.recording;
    classed(find(graph, "svg"), "moment", true);
    for (const box of all(graph, "[data-buffer]")) {
      const b = buffers.findIndex(([name]) => name === box.dataset.buffer);
      if (b < 0) continue;
      const [bar, label] = all(box, ".held,.now text");
      const held = moments.held(b, store.state.time);
      bar.setAttribute("width", `${held * Number(bar.dataset.page)}`);
      put(label, `${held}/${buffers[b][2]}`);
    }
    const edges = doing.map(({ kernel, wait }) => wait && (wait[3] ? `${kernel}>${bufferOf(wait)}` : `${bufferOf(wait)}>${kernel}`));
    for (const { kernel, state, wait } of doing)
      for (const box of all(graph, `[data-kernel=${kernel}]`)) {
        const lines = wait
          ? [wait[8] ? "✖ stuck" : "‖ waits", wait[4] < 0 ? "a semaphore" : wait[3] ? `room for ${wait[5]}` : `${wait[5]} tiles`]
          : [STATES[state][2]];
        set(box, { class: state === "runs" ? "" : wait ? "waits" : state });
        all(box, ".now .s").forEach((line, k) => (put(line, lines[k] ?? "")));
      }
    for (const edge of all(graph, "[data-edge]")) classed(edge, "waited", edges.includes(edge.dataset.edge));
  }

  return { element, keys, shown: show };
}
