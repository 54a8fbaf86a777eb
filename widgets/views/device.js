// Time on the device: when each processor of the chosen core works and what it waits for, as Python predicts it.

/** @import { CoreTrace, Estimate, Failure } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { windowFrom } from "../model/clock.js";
import { errorCard } from "../parts/cards.js";
import { chip, gapper, h, put, quiet } from "../parts/dom.js";
import { BAR_HEIGHT, PLOT_HEIGHT, bars, labels, plot } from "../parts/plots.js";
import { workingCores } from "../parts/record.js";

const NS_PER_US = 1000;
const SHORTEST_WINDOW_NS = 500;
// The classes of waits, and how high their bars are, by what is waited for.
const WAITS = /** @type {const} */ ([["waited", BAR_HEIGHT], ["far", BAR_HEIGHT], ["near", 3]]);

/** @param {Explorer} store @param {Kernel} kernel */
export function deviceTime(store, kernel) {
  const note = quiet();
  const stage = h("div");
  /** @type {(name: string, title: string, turn: () => [from: number, span: number]) => HTMLElement} */
  const control = (name, title, turn) => chip(name, () => {
    if (!trace) return;
    const [from, span] = turn();
    const wanted = Math.min(trace.end, Math.max(SHORTEST_WINDOW_NS, span));
    window = windowFrom(from + (span - wanted) / 2, wanted, trace.end);
    draw();
  }, { label: title, title });
  const span = () => window[1] - window[0];
  const element = h("section.device", { label: "time on the device" },
    h("div.tools", h("b", "time on the device (estimate)"), note, gapper(), h("span.pictures",
      control("‹", "earlier", () => [window[0] - span() / 2, span()]), control("›", "later", () => [window[0] + span() / 2, span()]),
      control("+", "closer", () => [window[0] + span() / 4, span() / 2]), control("−", "further away", () => [window[0] - span() / 2, 2 * span()]))),
    stage);
  /** @type {CoreTrace | null} */
  let trace = null;
  /** @type {[number, number]} */
  let window = [0, 1];
  /** What was asked for last. @type {[estimate: Estimate | null, core: string | null]} */
  let asked = [null, null];

  store.on(["core", "estimate", "tab"], async (state) => {
    const { estimate, tab } = state;
    const core = state.core ?? workingCores(state)[0];
    element.hidden = !estimate || !core || !!kernel.missing("estimate");
    if (element.hidden || tab !== "Buffers" || !core || (asked[0] === estimate && asked[1] === core)) return;
    const mine = asked = [estimate, core];
    try {
      const answer = await kernel.ask({ do: "trace", core, ...(estimate?.of_inputs && state.inputs) });
      if (asked !== mine) return;
      trace = answer.trace;
      window = [0, trace.end];
      draw();
    } catch (error) {
      if (error instanceof Error) throw error;
      if (asked === mine) put(stage, errorCard(store, /** @type {Failure} */ (error)));
    }
  });

  function draw() {
    if (!trace) return;
    const { kinds, gaps, processors, unit } = trace;
    put(note, trace.note);
    put(stage, h("div.plots",
      h("div.plot", h("span.name", "microseconds"), h("span.axis", labels(window, NS_PER_US))),
      processors.map(({ name, told, parts }) => {
        /** @type {[number, number][][]} */
        const waits = WAITS.map(() => []);
        let works = "";
        for (let i = 0; i < parts.length; i += 4) {
          const [start, end, busy, kind] = parts.slice(i, i + 4);
          if (end < window[0] || start > window[1]) continue;
          waits[kind]?.push([start, end]);
          // Where work and waits alternate too fast to be drawn, the height is the share of work.
          const height = (BAR_HEIGHT * busy) / (end - start);
          if (busy) works += `M${start} ${4 + BAR_HEIGHT}h${end - start}v${-height}h${start - end}z`;
        }
        return [plot(name, window, `${bars("gone", gaps, 0, PLOT_HEIGHT)}${WAITS.map(([kind, height], i) => bars(kind, waits[i], 4 + (BAR_HEIGHT - height) / 2, height)).join("")}<path class="ran" d="${works}"/>`),
          h("div.plot", h("span"), quiet(told))];
      })),
      h("p.q.recorded", h("i.key.ran"), "works ", kinds.map((kind, i) => [h(`i.key.${WAITS[i][0]}`), `waits for ${kind} `]), gaps.length > 0 && [h("i.key.gone"), "as before: left out "]), h("p.q.recorded", unit));
  }
  return element;
}
