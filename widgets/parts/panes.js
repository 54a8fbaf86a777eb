// Panes with bars between them that move with the mouse and with the keyboard, and are remembered.

/** @import { Remembered } from "../model/remembered.js" */

import { h, rect, set, take } from "./dom.js";

const LEAST_PERCENT = 10;
const STEP_PERCENT = 2;
const STEP_PIXELS = 20;
const LEAST_PIXELS = 240;
const MOST_PIXELS = 3000;

/**
 * What a bar moves: a number between two limits. `at` gives the number for a place of the pointer; `lies` says whether
 * the bar lies flat, so that it moves up and down.
 * @typedef {object} Moved
 * @property {number} least
 * @property {number} most
 * @property {number} step
 * @property {string} unit
 * @property {() => boolean} lies
 * @property {() => number} get
 * @property {(value: number) => void} put
 * @property {() => void} reset
 * @property {(event: PointerEvent) => number} at
 */

/** A bar; `tell` it when what it shows has changed. @param {string} label @param {Moved} moved */
function bar(label, { least, most, step, unit, lies, get, put, reset, at }) {
  let moving = false;
  const element = h("div.bar", {
    role: "separator", tabindex: 0, label, title: "drag, or use the arrow keys; a double click resets",
    onpointerdown: (event) => {
      moving = true;
      element.setPointerCapture(event.pointerId);
      take(event);
      element.focus({ preventScroll: true });
    },
    onpointermove: (event) => { if (moving) move(at(event)); },
    onpointerup: () => { moving = false; },
    onpointercancel: () => { moving = false; },
    ondblclick: () => { reset(); tell(); },
    onkeydown: (event) => {
      const [back, on] = lies() ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
      const to = { [back]: get() - step, [on]: get() + step, Home: least, End: most }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      move(to);
      take(event);
    },
  });
  /** @param {number} to */
  function move(to) {
    put(Math.min(most, Math.max(least, to)));
    tell();
  }
  function tell() {
    const now = Math.round(get());
    set(element, {
      "aria-orientation": lies() ? "horizontal" : "vertical",
      "aria-valuenow": now, "aria-valuemin": least, "aria-valuemax": most, "aria-valuetext": `${now} ${unit}`,
    });
  }
  return { element, tell };
}

/**
 * Panes in a row, or below each other where the style says so, sharing the room as `shares` says.
 * @param {Remembered} remembered
 * @param {string} name what the shares are remembered as
 * @param {[label: string, pane: HTMLElement, share: number][]} parts
 */
export function panes(remembered, name, parts) {
  const first = parts.map(([, , share]) => share);
  let shares = remembered.numbers(name, first);
  /** @returns {boolean} */
  const lies = () => getComputedStyle(element).flexDirection === "column";
  const arrange = () => parts.forEach(([, pane], i) => pane.style.setProperty("--share", `${shares[i]}`));
  /** @type {ReturnType<typeof bar>[]} */
  const bars = parts.slice(1).map((_, k) => {
    const [label] = parts[k];
    // Panes that are hidden have no share in what a bar moves.
    const a = () => Math.max(0, parts.findLastIndex(([, pane], i) => i <= k && pane.clientWidth > 0));
    const b = () => Math.max(k + 1, parts.findIndex(([, pane], i) => i > k && pane.clientWidth > 0));
    const both = () => shares[a()] + shares[b()];
    return bar(`size of ${label}`, {
      least: LEAST_PERCENT, most: 100 - LEAST_PERCENT, step: STEP_PERCENT, unit: "%", lies,
      get: () => (100 * shares[a()]) / both(),
      put: (percent) => {
        const all = both();
        shares = shares.with(a(), (all * percent) / 100).with(b(), (all * (100 - percent)) / 100);
        arrange();
        remembered.keep(name, shares);
      },
      reset: () => {
        shares = first;
        arrange();
        bars.forEach((one) => one.tell());
        remembered.keep(name, []);
      },
      at: ({ clientX, clientY }) => {
        const [start, end] = [a(), b()].map((i) => rect(parts[i][1]));
        return 100 * (lies() ? (clientY - start.top) / (end.bottom - start.top) : (clientX - start.left) / (end.right - start.left));
      },
    });
  });
  /** @type {HTMLElement} */
  const element = h("div.panes", parts.map(([, pane], i) => [i > 0 && bars[i - 1].element, pane]));
  arrange();
  const sized = new ResizeObserver(() => bars.forEach((one) => one.tell()));
  for (const [, pane] of parts) sized.observe(pane);
  return element;
}

/** A bar at the lower end of `root`, which grows and shrinks with it: its `--tall`. @param {Remembered} remembered @param {HTMLElement} root */
export function heightBar(remembered, root) {
  /** @param {number[]} pixels */
  const arrange = ([pixels]) => (pixels ? root.style.setProperty("--tall", `${pixels}px`) : root.style.removeProperty("--tall"));
  arrange(remembered.numbers("height", [0]));
  const { element, tell } = bar("height", {
    least: LEAST_PIXELS, most: MOST_PIXELS, step: STEP_PIXELS, unit: "pixels", lies: () => true,
    get: () => rect(root).height,
    put: (pixels) => {
      arrange([pixels]);
      remembered.keep("height", [pixels]);
    },
    reset: () => {
      arrange([0]);
      remembered.keep("height", []);
    },
    at: ({ clientY }) => clientY - rect(root).top,
  });
  new ResizeObserver(tell).observe(root);
  return element;
}
