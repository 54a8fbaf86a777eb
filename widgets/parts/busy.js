// What Python is doing for this explorer: how far it is, for how long, and the button that ends it; and how long it may.

/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { elapsed, share } from "../model/work.js";
import { button, h, put, quiet, set } from "./dom.js";

const TICK_MS = 500;

/**
 * Cancel, the time so far and the last words of what is going on; hidden while nothing is.
 * @param {Explorer} store
 * @param {Kernel} kernel
 */
export function busyControl(store, kernel) {
  const cancel = button("Cancel", () => {
    kernel.cancel();
    store.set({ progress: "cancelling …" });
  });
  const bar = h("progress", { label: "share of the steps that are done" });
  const time = quiet();
  const words = h("span.q", { role: "status" });
  const element = h("span.busy", cancel, bar, time, words);
  let timer = 0;
  function tick() {
    const { busy } = store.state;
    if (busy) put(time, elapsed(store.state, Date.now()));
    // A view that is not seen stops the clock; it starts again with the tab.
    if (busy && element.isConnected) return;
    clearInterval(timer);
    timer = 0;
  }
  store.on(["busy", "progress", "tab"], ({ busy, progress }) => {
    element.hidden = !busy;
    put(words, busy && progress);
    const done = share(progress);
    if (done) set(bar, { value: done[0], max: done[1] });
    bar.hidden = !busy || !(done || bar.value);
    if (!busy) bar.value = 0;
    else timer ||= setInterval(tick, TICK_MS);
    if (busy) put(time, elapsed(store.state, Date.now()));
  });
  return element;
}

/**
 * A field for the time limit; empty for the usual one, which `usual` gives. Nothing where there is no Python.
 * @param {Explorer} store
 * @param {Kernel} kernel
 * @param {() => number | null | undefined} usual in seconds
 */
export function limitControl(store, kernel, usual) {
  const field = h("input.small", { type: "number", min: 0, step: "any", label: "time limit in seconds", oninput: () => { store.set({ limit: field.value }); } });
  const title = "The program on its backend may take so long, and the reference again; a check, all steps together. Compiling does not count. Empty: the usual limit.";
  store.on(["limit", "backends", "backend"], ({ limit }) => {
    field.placeholder = `${usual() ?? "none"}`;
    if (field.value !== limit) field.value = limit;
  });
  return kernel.live && h("label", { title }, "time limit ", field, " s");
}
