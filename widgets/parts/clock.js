// The controls of a recorded run: play, speed, jumps to waits, zoom, and the scrubber.

/** @import { Explorer } from "../model/state.js" */

import { goToMoment, jump, momentsOf, SPEEDS, zoom } from "../model/clock.js";
import { chip, choice, h, put, set, take } from "./dom.js";
import { shownCore } from "./record.js";

const TICK_MS = 50;
// What leads out of the window, too.
const STEPS = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity });

/** Nothing moves by itself for who does not want that. */
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Moves the moment on while the explorer plays, as long as it is in the page. @param {Explorer} store @param {Element} root */
export function player(store, root) {
  let timer = 0;
  let since = 0;
  store.on(["playing"], ({ playing }) => {
    clearInterval(timer);
    since = performance.now();
    if (playing) timer = setInterval(tick, TICK_MS);
  });
  store.on(["tab", "recording"], ({ tab, recording }) => {
    if (!recording || !["Cores", "Buffers"].includes(tab)) store.set({ playing: false });
  });
  function tick() {
    const { recording, time, speed } = store.state;
    const steps = Math.floor(((performance.now() - since) * speed) / 1000);
    if (!recording || !root.isConnected || time >= recording.end) store.set({ playing: false });
    else if (steps) {
      since += (1000 * steps) / speed;
      goToMoment(store, time + steps);
    }
  }
}

/** Plays or pauses; one event further where nothing moves by itself. @param {Explorer} store */
function play(store) {
  const { recording, time, playing } = store.state;
  if (!recording) return;
  if (still()) goToMoment(store, momentsOf(store.state)?.times.find((event) => event > time) ?? recording.end);
  else {
    if (!playing && time >= recording.end) goToMoment(store, 0);
    store.set({ playing: !playing });
  }
}

/** @param {Explorer} store */
export function clock(store) {
  const button = chip("▶", () => play(store), { title: "t" });
  const kernels = choice("waits of", () => store.set({ waitsOf: Number(kernels.value) }));
  const speed = choice("speed", () => store.set({ speed: Number(speed.value) }));
  const moment = h("span.m");
  const scrubber = h("input.scrubber", {
    type: "range", min: 0, step: 1, label: "moment of the run",
    oninput: () => goToMoment(store, scrubber.valueAsNumber),
    onkeydown: (event) => {
      const move = STEPS[event.key];
      if (!move) return;
      goToMoment(store, store.state.time + move);
      take(event);
    },
  });
  const element = h("div.tools.clock",
    chip("‖◀", () => jump(store, -1), { label: "previous wait", title: "p" }), button, chip("▶‖", () => jump(store, 1), { label: "next wait", title: "n" }),
    h("label", "waits of ", kernels), h("label", "speed ", speed),
    chip("−", () => zoom(store, 2), { label: "zoom out", title: "-" }), chip("+", () => zoom(store, 0.5), { label: "zoom in", title: "+" }),
      chip("whole run", () => zoom(store, Infinity)), moment);
  put(speed, SPEEDS.map((steps) => h("option", { value: steps }, `${steps} steps/s`)));
  store.on(["recording"], ({ recording }) => {
    element.hidden = !recording;
    put(kernels, ["any kernel", ...(recording?.recording.kernels ?? [])].map((name, k) => h("option", { value: k - 1 }, name)));
  });
  store.on(["recording", "speed", "waitsOf"], (state) => {
    speed.value = `${state.speed}`;
    kernels.value = `${state.waitsOf}`;
  });
  store.on(["playing"], ({ playing }) => {
    [button.textContent, button.ariaLabel] = still() ? ["▸|", "next event"] : playing ? ["❚❚", "pause"] : ["▶", "play"];
  });
  store.on(["recording", "time", "window", "core"], ({ recording, time, window: [min, max], core }) => {
    if (!recording) return;
    set(scrubber, { min, max });
    scrubber.valueAsNumber = time;
    put(moment, `core ${shownCore(`${core}`)}, logical step ${time} of ${recording.end}`);
  });
  const keys = { t: () => play(store), n: () => jump(store, 1), p: () => jump(store, -1), "+": () => zoom(store, 0.5), "-": () => zoom(store, 2) };
  return { element, scrubber, keys };
}
