// Running the program without blocking the notebook: backends, progress, cancel, the result, and the bisection.

/** @import { CheckedStep } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { select } from "../model/state.js";
import { errorCard } from "../parts/cards.js";
import { button, choice, grid, h, heading, isolated, link, number, offer, put } from "../parts/dom.js";
import { editedKernels, inputsControl, inputsWords } from "../parts/inputs.js";

const CHECK = "Check every step";
const ALL_GOOD = "every step matches the reference";

/** @param {Explorer} store @param {Kernel} kernel @param {string} [recorded] the card of a run that the page brought along */
export function runView(store, kernel, recorded) {
  const backend = choice("backend", drawState);
  const arithmetic = h("select", { label: "arithmetic", title: "exact: the emulator's FPU rounds as the chip does" }, h("option", "exact"), h("option", "fast"));
  const sums = h("label", "arithmetic ", arithmetic);
  const on = h("label", "backend ", backend);
  const start = button("Run", run, { class: "primary" });
  const checks = button(CHECK, check, { title: "run the program after each step and find the first step that changes the result" });
  const cancel = button("Cancel", () => kernel.ask({ do: "cancel" }));
  const why = h("span.q", { role: "status" });
  const log = h("pre.log", { tabindex: "0", label: "log" });
  const result = h("div.result");
  const steps = h("div.checks");

  store.on(["backends", "lowering", "busy", "edits", "stale"], drawState);
  store.on(["progress"], ({ progress }) => {
    if (progress) log.append(`${progress}\n`);
    drawState();
  });

  function drawState() {
    const { backends, busy, lowering, progress } = store.state;
    offer(backend, backends.map((one) => one.name));
    const chosen = backends[backend.selectedIndex];
    const failed = lowering.steps.some((step) => step.error) && "the lowering failed: there is no program to run";
    const whyRun = kernel.missing("run") || failed || chosen?.missing;
    const whyCheck = kernel.missing("check") || failed;
    start.disabled = !!(busy || whyRun);
    checks.disabled = !!(busy || whyCheck);
    on.hidden = !kernel.live;
    start.textContent = busy === "run" ? "Running …" : "Run";
    checks.textContent = busy === "check" ? "Checking …" : CHECK;
    cancel.hidden = !busy;
    const edited = editedKernels(store.state);
    const reasons = [
      ...(whyRun === whyCheck ? [whyRun] : [whyRun && `Run: ${whyRun}`, whyCheck && `${CHECK}: ${whyCheck}`]),
      edited && `Run uses the edited ${edited} (Code tab).`,
    ];
    put(why, busy ? progress : reasons.map((reason) => reason && h("div", reason)));
    sums.hidden = !chosen?.arithmetic;
  }

  /**
   * Waits for an answer, of which `show` makes what is shown and what is said.
   * @template Answer
   * @param {string} busy
   * @param {HTMLElement} holder
   * @param {string} words
   * @param {() => Promise<Answer>} ask
   * @param {(answer: Answer) => [HTMLElement, string]} show
   */
  async function work(busy, holder, words, ask, show) {
    put(log);
    put(holder);
    store.set({ busy, progress: "" });
    let say = "";
    try {
      const [shown, told] = show(await ask());
      put(holder, h("p.q", words), shown);
      say = told;
    } catch (thrown) {
      const error = /** @type {import("../messages.js").Failure} */ (thrown);
      put(holder, errorCard(store, error));
      say = `${error.kind}: ${error.message.join(" ")}`;
    }
    store.set({ busy: "", progress: "", say });
  }
  /** @param {string} progress */
  const progressed = (progress) => store.set({ progress });

  function run() {
    const { edits, inputs } = store.state;
    const edited = editedKernels(store.state);
    const asked = { backend: backend.value, arithmetic: arithmetic.value, ...inputs };
    work("run", result, `on ${backend.value}, ${inputsWords(store.state)}${edited && `, ${edited} edited`}`,
      () => kernel.ask({ do: "run", code: edits, ...asked }, progressed),
      (answer) => [isolated(answer.html), answer.passed ? "the run passed" : "the run failed"]);
  }

  function check() {
    work("check", steps, inputsWords(store.state),
      () => kernel.ask({ do: "check", ...store.state.inputs }, progressed),
      (answer) => [bisection(answer.results), answer.first_bad ? `${answer.first_bad} changes the result` : ALL_GOOD]);
  }

  /** @param {CheckedStep[]} results */
  function bisection(results) {
    const bad = results.find((one) => !one.passed);
    /** @param {boolean} passed */
    const judged = (passed) => passed ? "ok" : "bad";
    return h("div", { class: `card ${bad ? "fault" : "good"}` },
      h("p", h("b", { class: judged(!bad) }, bad ? `✖ ${bad.step} is the first step that changes the result` : `✔ ${ALL_GOOD}`)),
      h("div.scroll", grid(["", "step", "PCC", "max relative error", ""], results.map((one, i) => h("tr",
        h("td", { class: judged(one.passed) }, one.passed ? "✔" : "✖"),
        heading(link(`${one.letter} ${one.step}`, () => select(store, i, { tab: "Steps" }))),
        number(one.pcc), number(one.error), h("td", one.passed ? "" : one.message))))));
  }
  if (recorded) put(result, h("p.q", "on emulator, inputs random, seed 0"), isolated(recorded));
  return {
    element: h("div.runview",
      h("div.tools", on, inputsControl(store, kernel), sums, start, cancel, checks, why),
      result, steps, h("details", h("summary", "log"), log)),
    keys: { r: () => start.click() },
  };
}
