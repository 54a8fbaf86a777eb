// Running the program without blocking the notebook: backends, progress, cancel, the result, and the bisection.

/** @import { Answers, CheckedStep } from "../messages.js" */
/** @import { Lowering } from "../model/lowering.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { inputsWords } from "../model/inputs.js";
import { select } from "../model/state.js";
import { work } from "../model/work.js";
import { busyControl, limitControl } from "../parts/busy.js";
import { errorCard } from "../parts/cards.js";
import { button, choice, classed, closest, grid, h, heading, isolated, link, number, offer, put, set } from "../parts/dom.js";
import { editedKernels, given, inputsControl, noMix } from "../parts/inputs.js";
import { followTile } from "./tile.js";

const CHECK = "Check every step";
const ALL_GOOD = "every step matches the reference";

/** @param {Explorer} store @param {Kernel} kernel @param {string} [recorded] the card of a run that the page brought along */
export function runView(store, kernel, recorded) {
  const backend = choice("backend", () => store.set({ backend: backend.value }));
  const arithmetic = h("select", { label: "arithmetic", title: "exact: the emulator's FPU rounds as the chip does" }, h("option", "exact"), h("option", "fast"));
  const sums = h("label", "arithmetic ", arithmetic);
  const on = h("label", "backend ", backend);
  const start = button("Run", run, { class: "primary run" });
  const checks = button(CHECK, check, { class: "check", title: "run the program after each step and find the first step that changes the result" });
  const why = h("span.q.why", { role: "status" });
  const log = h("pre.log", { tabindex: "0", label: "log" });
  const told = h("details", h("summary", "log"), log);
  const limit = limitControl(store, kernel, () => store.state.backends[Math.max(0, backend.selectedIndex)]?.limit);
  const result = h("div.result");
  const steps = h("div.checks");
  const tile = followTile(store, kernel);

  /** The lowering that each of them is of. @type {Map<HTMLElement, Lowering>} */
  const shownOf = new Map([[result, store.state.lowering]]);
  const age = () => shownOf.forEach((lowering, holder) => classed(holder, "earlier", lowering !== store.state.lowering));

  store.on(["lowering"], age);
  store.on(["backends", "backend", "lowering", "busy", "edits", "stale"], drawState);
  store.on(["progress"], ({ progress }) => {
    if (progress) log.append(`${progress}\n`);
  });
  store.on(["followed"], ({ followed }) => {
    if (followed?.variant !== store.state.variant) return;
    if (followed.do === "run") show(result, followed.words, () => /** @type {Promise<Answers["run"]>} */ (followed.answer), ran);
    if (followed.do === "check") show(steps, followed.words, () => /** @type {Promise<Answers["check"]>} */ (followed.answer), checked);
  });

  function drawState() {
    const { backends, busy, lowering } = store.state;
    offer(backend, backends.map((one) => one.name));
    const chosen = backends[backend.selectedIndex];
    const failed = lowering.steps.some((step) => step.error) && "the lowering failed: there is no program to run";
    const whyRun = kernel.missing("run") || failed || noMix(store.state) || chosen?.missing;
    const whyCheck = kernel.missing("check") || failed;
    start.disabled = !!(busy || whyRun);
    checks.disabled = !!(busy || whyCheck);
    on.hidden = !kernel.live;
    put(start, busy === "run" ? "Running …" : "Run");
    put(checks, busy === "check" ? "Checking …" : CHECK);
    // What is said on the way can be read as it is said.
    told.open = !!busy;
    const edited = editedKernels(store.state);
    const reasons = [
      ...(whyRun === whyCheck ? [whyRun] : [whyRun && `Run: ${whyRun}`, whyCheck && `${CHECK}: ${whyCheck}`]),
      edited && !whyRun && `Run uses the edited ${edited} (Code tab).`,
    ];
    put(why, !busy && reasons.map((reason) => reason && h("div", reason)));
    sums.hidden = !chosen?.arithmetic;
  }

  /**
   * Waits for an answer, of which `made` makes what is shown and what is said.
   * @template Answer
   * @param {HTMLElement} holder
   * @param {string} words
   * @param {() => Promise<Answer>} ask
   * @param {(answer: Answer) => [HTMLElement, string]} made
   */
  async function show(holder, words, ask, made) {
    const { lowering } = store.state;
    put(log);
    // The last result stays where it is until there is another.
    classed(holder, "waiting", true);
    store.set({ marks: [] });
    /** @param {...HTMLElement} content */
    const end = (...content) => {
      classed(holder, "waiting", false);
      shownOf.set(holder, lowering);
      put(holder, ...content);
      age();
    };
    try {
      const [shown, say] = made(await ask());
      end(h("p.q", words), shown);
      store.set({ say });
    } catch (thrown) {
      const error = /** @type {import("../messages.js").Failure} */ (thrown);
      end(errorCard(store, error));
      store.set({ marks: error.places ?? [], say: `${error.kind}: ${error.message.join(" ")}` });
    }
  }

  function run() {
    const { edits } = store.state;
    const edited = editedKernels(store.state);
    const words = `on ${backend.value}, ${inputsWords(store.state)}${edited && `, ${edited} edited`}`;
    const asked = { backend: backend.value, arithmetic: arithmetic.value, ...given(store.state, words) };
    show(result, words, () => work(store, "run", (progressed) => kernel.ask({ do: "run", code: edits, ...asked }, progressed)), ran);
  }
  /** @param {Answers["run"]} answer @returns {[HTMLElement, string]} */
  function ran({ html, passed }) {
    const card = isolated(html);
    set(card, { onclick: (event) => {
      // A tile of the map of errors, which is in a tree of its own.
      const [cell] = event.composedPath();
      const index = closest(cell, "[data-tile]")?.dataset.tile;
      if (index) tile.follow(`${closest(cell, "[data-place]")?.dataset.place},${index}`.split(",").map(Number));
    } });
    return [card, passed === null ? "the run was not compared" : passed ? "the run passed" : "the run failed"];
  }

  function check() {
    const asked = given(store.state);
    show(steps, asked.words, () => work(store, "check", (progressed) => kernel.ask({ do: "check", ...asked }, progressed)), checked);
  }
  /** @param {Answers["check"]} answer @returns {[HTMLElement, string]} */
  function checked({ results, first_bad }) {
    return [bisection(results, first_bad), first_bad ? `${first_bad} changes the result` : ALL_GOOD];
  }

  /** @param {CheckedStep[]} results @param {string | null} bad the first step that changes the result */
  function bisection(results, bad) {
    const { lowering: { steps } } = store.state;
    /** @param {boolean} passed */
    const judged = (passed) => passed ? "ok" : "bad";
    return h("div", { class: `card ${bad ? "fault" : "good"}` },
      h("p", h("b", { class: judged(!bad) }, bad ? `✖ ${bad} is the first step that changes the result` : `✔ ${ALL_GOOD}`)),
      h("div.scroll", grid(["", "step", "PCC", "max relative error", ""], results.map((one) => h("tr",
        h("td", { class: judged(one.passed) }, one.passed ? "✔" : "✖"),
        heading(link(`${one.letter} ${one.step}`, () => select(store, steps.findIndex(({ letter }) => letter === one.letter), { tab: "Steps" }))),
        number(one.pcc), number(one.error), h("td", one.passed ? "" : one.message))))));
  }
  if (recorded) put(result, h("p.q", "on emulator, inputs random, seed 0"), isolated(recorded));
  return {
    element: h("div.runview",
      h("div.tools", on, inputsControl(store, kernel), sums, limit, start, checks),
      h("div.status", busyControl(store, kernel), why),
      result, steps, tile.element, told),
    keys: { r: () => start.click() },
  };
}
