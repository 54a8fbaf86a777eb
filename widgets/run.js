// Running the program without blocking the notebook: backends, progress, cancel, the result, and the bisection.

import { button, h, heads, isolated, put } from "./dom.js";
import { edits, inputsControl, inputsWords } from "./inputs.js";
import { errorCard, select } from "./steps.js";

export function runView(store, kernel) {
  const backend = h("select", { "aria-label": "backend", onchange: drawState });
  const arithmetic = h("select", { "aria-label": "arithmetic", title: "of the emulator's matrix unit" }, h("option", "exact"), h("option", "fast"));
  const sums = h("label", "sums ", arithmetic);
  const start = button("Run", () => go("run"), { class: "primary" });
  const check = button("Check every step", () => go("check"), { title: "executes the program after each step and names the first that changes the result" });
  const cancel = button("Cancel", () => kernel.ask({ do: "cancel" }), {});
  const why = h("span.q", { role: "status" });
  const log = h("pre.log", { tabindex: "0", "aria-label": "log" });
  const logFold = h("details", h("summary", "log"), log);
  const result = h("div.result");
  const steps = h("div.checks");
  const element = h("div.runview",
    h("div.tools", h("label", "on ", backend), inputsControl(store, kernel), sums, start, cancel, check, why),
    result, steps, logFold);

  store.on(["backends", "lowering", "busy", "edits", "stale"], drawState);

  function drawState() {
    const { backends, busy, lowering } = store.state;
    if (backend.options.length !== backends.length) put(backend, ...backends.map((one) => h("option", one.name)));
    const chosen = backends[backend.selectedIndex];
    const failed = lowering.steps.some((step) => step.error) && "the lowering failed: there is no program to run";
    const whyRun = kernel.missing("run") || failed || chosen?.missing;
    const whyCheck = kernel.missing("check") || failed;
    start.disabled = Boolean(busy || whyRun);
    check.disabled = Boolean(busy || whyCheck);
    backend.parentElement.hidden = !kernel.live;
    start.textContent = busy === "run" ? "Running …" : "Run";
    check.textContent = busy === "check" ? "Checking …" : "Check every step";
    cancel.hidden = !busy;
    const reasons = whyRun === whyCheck ? [whyRun] : [whyRun && `Run: ${whyRun}`, whyCheck && `Check every step: ${whyCheck}`];
    const edited = edits(store);
    if (edited) reasons.push(`Run takes the edited ${edited} (tab Code).`);
    put(why, busy ? store.state.progress || "" : reasons.map((reason) => reason && h("div", reason)));
    sums.hidden = !chosen?.arithmetic;
  }

  store.on(["progress"], () => {
    if (store.state.progress) log.append(`${store.state.progress}\n`);
    drawState();
  });

  function go(what) {
    put(log);
    (what === "run" ? result : steps).replaceChildren();
    store.set({ busy: what, progress: null });
    const done = (patch) => store.set({ busy: null, progress: null, ...patch });
    const edited = what === "run" && edits(store);
    const words = h("p.q", `${what === "run" ? `on ${backend.value}, ` : ""}${inputsWords(store.state)}${edited ? `, ${edited} edited` : ""}`);
    kernel.ask({ do: what, code: edited ? store.state.edits : {}, backend: backend.value, arithmetic: arithmetic.value, ...store.state.inputs }, (answer) => store.set({ progress: answer.text })).then(
      (answer) => {
        if (what === "run") {
          put(result, words, isolated(answer.html));
          done({ say: answer.passed ? "the run passed" : "the run failed" });
        } else {
          put(steps, words, bisection(answer.results));
          done({ say: answer.first_bad ? `${answer.first_bad} changes the result` : "every step gives the reference's result" });
        }
      },
      (error) => {
        (what === "run" ? result : steps).replaceChildren(errorCard(store, error));
        done({ say: `${error.kind}: ${error.message.join(" ")}` });
      });
  }

  function bisection(results) {
    const bad = results.findIndex((one) => !one.passed);
    return h("div", { class: `card ${bad < 0 ? "good" : "fault"}` },
      h("p", h("b", { class: bad < 0 ? "ok" : "bad" }, bad < 0 ? "✔ every step gives the reference's result" : `✖ ${results[bad].step} is the first step that changes the result`)),
      h("div.scroll", h("table.grid",
        heads("", "step", "PCC", "max relative error", ""),
        h("tbody", ...results.map((one, i) => h("tr",
          h("td", { class: one.passed ? "ok" : "bad" }, one.passed ? "✔" : "✖"),
          h("th", { scope: "row" }, button(`${one.letter} ${one.step}`, () => { select(store, i); store.set({ tab: "Steps" }); }, { class: "link" })),
          h("td.num", one.pcc), h("td.num", one.error), h("td", one.passed ? "" : one.message)))))));
  }
  // A page without Python may bring the result of a run.
  if (store.state.recordedRun) put(result, h("p.q", "on emulator, inputs random, seed 0"), isolated(store.state.recordedRun));
  return { element, focus: () => (start.disabled ? backend : start).focus(), keys: { r: () => start.click() } };
}
