// Time travel: what each kernel of one core was doing at a moment, and how full the circular buffers were.

/** @import { Answers, Bytes, Failure, Recording } from "../messages.js" */
/** @import { Doing, Moments } from "../model/moments.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { unpackedRecording } from "../model/lowering.js";
import { Recorded } from "../model/moments.js";
import { limitOf, work } from "../model/work.js";
import { busyControl, limitControl } from "../parts/busy.js";
import { errorCard } from "../parts/cards.js";
import { all, button, chip, choice, h, markup, offer, put, quiet } from "../parts/dom.js";
import { editedKernels, inputsControl, inputsWords } from "../parts/inputs.js";
import { code, pinLink } from "../parts/listing.js";

const PLOT_WIDTH = 600;
const PLOT_HEIGHT = 22;
const TICK_MS = 120;
const RECORDER = "emulator";
// The glyph and the words for what a kernel does; a wait is told with what it is for.
const STATES = { waits: ["‖"], stuck: ["✖"], done: ["■", "finished", "■ done"], runs: ["▸", "runs", "▸ runs"], "": ["▸", "not started", "not started"] };

/** @param {Explorer} store @param {Kernel} kernel @param {Element} graph holds the drawing of the dataflow, which shows the moment too @param {Bytes} [recorded] */
export function timeTravel(store, kernel, graph, recorded) {
  const chooser = choice("core to record");
  const core = h("label", "core ", chooser);
  const record = button("Record a run", go, { class: "primary" });
  const limit = limitControl(store, kernel, () => store.state.backends.find(({ name }) => name === RECORDER)?.limit);
  const why = quiet();
  const place = h("input.scrubber", { type: "range", min: 0, value: 0, step: 1, label: "moment of the run", oninput: () => { show(place.valueAsNumber); } });
  const play = chip("▶", toggle, { label: "play" });
  const moment = h("span.m");
  const lanes = h("div.lanes");
  const plots = h("div.plots");
  const stage = h("div", h("div.tools", play, place, moment), lanes, plots);
  const problem = h("div.scroll");
  const element = h("section.timeline", { label: "time travel" },
    h("div.tools", h("b", "time travel"), core, inputsControl(store, kernel), limit, record, busyControl(store, kernel), why), problem, stage);
  /** @type {Moments} */
  let moments;
  let timer = 0;
  store.on(["lowering", "busy", "edits", "stale"], ({ lowering: { cores, steps }, busy, ...state }) => {
    const places = cores?.cores.filter(({ items }) => items).map(({ x, y }) => [x, y]) ?? [];
    offer(chooser, places.map((place) => `(${place.join(", ")})`), places.map(String));
    const reason = kernel.missing("record") || (steps.some((step) => step.error) ? "the lowering failed" : "");
    record.disabled = !!(busy || reason);
    core.hidden = !!reason;
    const edited = editedKernels(state);
    record.textContent = busy === "record" ? "Recording …" : "Record a run";
    why.textContent = reason || (busy ? "" : edited && `uses the edited ${edited}`);
  });
  store.on(["lowering"], () => (stage.hidden = true));
  if (recorded) unpackedRecording(recorded).then(load);
  store.on(["followed"], ({ followed }) => {
    if (followed?.do === "record") take(/** @type {Promise<Answers["record"]>} */ (followed.answer));
  });

  function go() {
    const { edits, inputs } = store.state;
    const asked = { code: edits, core: chooser.value, limit: limitOf(store.state), words: inputsWords(store.state), ...inputs };
    take(work(store, "record", (progressed) => kernel.ask({ do: "record", ...asked }, progressed)));
  }

  /** @param {Promise<Answers["record"]>} answer */
  async function take(answer) {
    put(problem);
    try {
      load(await unpackedRecording((await answer).buffer));
    } catch (error) {
      put(problem, errorCard(store, /** @type {Failure} */ (error)));
    }
  }

  /** @param {Recording} recording */
  function load(recording) {
    moments = /** @type {Moments} */ (new Recorded(recording).cores.get(`${recording.core}`));
    place.max = `${moments.end}`;
    stage.hidden = false;
    put(plots, recording.buffers.map(([name, number], b) => h("div.plot", h("span.m.name", `${number} ${name}`), h("span.track", plot(b), h("i.now")))));
    if (recording.deadlock.length) put(problem, h("p.pre.bad.m", recording.deadlock.join("\n")));
    show(0);
  }

  /** How full one buffer was over time, as steps, with its waits below. @param {number} b */
  function plot(b) {
    const { end } = moments;
    return markup(`<svg viewBox="0 0 ${end} ${PLOT_HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><path class="level" d="${moments.level(b, [0, end], PLOT_HEIGHT, PLOT_WIDTH)}"/></svg>`).firstChild;
  }

  /** @param {number} time */
  function show(time) {
    const { recording, end } = moments;
    place.valueAsNumber = time;
    moment.textContent = `core (${recording.core.join(", ")}), logical time ${time} of ${end}`;
    const doing = moments.doing(time);
    const told = doing.map(words);
    put(lanes, doing.map(({ kernel, state, wait, line }, k) => {
      const [number, text, own] = state === "done" || !line ? [0, "", 0] : line;
      return h("div", { class: `lane ${wait ? "waits" : state}` }, h("b", kernel), h("span.glyph", { "aria-hidden": true }, STATES[state][0]),
        h("span", told[k]), h("code", number > 0 && [`${number}  `, ...code(text, "cpp")]), pinLink(store, own));
    }));
    for (const mark of all(plots, ".now")) mark.style.left = `${(100 * time) / end}%`;
    draw(recording.buffers.map((_, b) => moments.held(b, time)), doing);
    store.set({ say: `time ${time}: ${doing.map(({ kernel }, k) => `${kernel} ${told[k]}`).join("; ")}` });
  }

  /** @param {Doing} doing */
  function words({ state, wait }) {
    return !wait ? STATES[state][1] : `waits for ${wait[7]}: ${wait[3] ? "room for " : ""}${wait[5]} tiles ${wait[3] ? "in" : "of"} ${bufferOf(wait)}${state === "stuck" ? ", forever" : ""}`;
  }

  /** @param {NonNullable<Doing["wait"]>} wait */
  const bufferOf = (wait) => moments.recording.buffers[wait[4]]?.[0] ?? "a semaphore";

  /** The moment in the drawing of the dataflow: pages in each buffer, what each kernel does, and where it waits. @param {number[]} pages @param {Doing[]} doing */
  function draw(pages, doing) {
    graph.querySelector("svg")?.classList.add("moment");
    for (const box of all(graph, "[data-buffer]")) {
      const b = moments.recording.buffers.findIndex(([name]) => name === box.dataset.buffer);
      if (b < 0) continue;
      const [bar, label] = all(box, ".held,.now text");
      bar.setAttribute("width", `${pages[b] * Number(bar.dataset.page)}`);
      label.textContent = `${pages[b]}/${moments.recording.buffers[b][2]}`;
    }
    const edges = doing.map(({ kernel, wait }) => wait && (wait[3] ? `${kernel}>${bufferOf(wait)}` : `${bufferOf(wait)}>${kernel}`));
    for (const { kernel, state, wait } of doing)
      for (const box of all(graph, `[data-kernel=${kernel}]`)) {
        const lines = wait
          ? [state === "stuck" ? "✖ stuck" : "‖ waits", wait[3] ? `room for ${wait[5]}` : `${wait[5]} tiles`]
          : [STATES[state][2]];
        box.setAttribute("class", state === "runs" ? "" : wait ? "waits" : state);
        all(box, ".now .s").forEach((line, k) => (line.textContent = lines[k] ?? ""));
      }
    for (const edge of all(graph, "[data-edge]")) edge.classList.toggle("waited", edges.includes(edge.dataset.edge));
  }

  function toggle() {
    if (timer) {
      clearInterval(timer);
      timer = 0;
    } else timer = setInterval(() => {
      // A view that is gone, or the end, stops the clock.
      if (!element.isConnected || place.value === place.max) toggle();
      else show(place.valueAsNumber + 1);
    }, TICK_MS);
    play.textContent = timer ? "❚❚" : "▶";
    play.ariaLabel = timer ? "pause" : "play";
  }
  return element;
}
