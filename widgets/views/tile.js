// One tile of an output, followed back: which lines read, computed, packed and wrote for it, from which pages.

/** @import { Failure, Stop, TileHistory } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { inputsWords } from "../model/inputs.js";
import { neighbour } from "../model/keys.js";
import { kernelName, litByLine } from "../model/lowering.js";
import { nearest, tileAt } from "../model/tiles.js";
import { work } from "../model/work.js";
import { errorCard } from "../parts/cards.js";
import { all, button, chip, choice, h, link, offer, put, quiet, set, table, take } from "../parts/dom.js";
import { editedKernels, given } from "../parts/inputs.js";
import { code, pinLink } from "../parts/listing.js";
import { noRecording } from "../parts/record.js";

const SIDE_PIXELS = 256;
const LARGEST_PIXELS = 20;
const TICK_MS = 1500;

/** Gives the element, and what follows a tile, given its output and its index. @param {Explorer} store @param {Kernel} kernel */
export function followTile(store, kernel) {
  const output = choice("output", () => choose([]));
  const field = h("input.small", { label: "tile", onchange: () => choose((field.value.match(/\d+/g) ?? []).map(Number)) });
  const follow = button("Follow", go, { class: "primary" });
  const why = quiet();
  const square = h("i");
  const picture = h("div.tiles", { tabindex: "0", role: "img", onkeydown: move, onclick: (event) => {
    choose(tileAt(tile, grid(), event.offsetX / picture.clientWidth, event.offsetY / picture.clientHeight));
    go();
  } }, square);
  const play = chip("▶", () => toggle(!timer));
  const way = h("div.way");
  const stops = h("ol.stops");
  const choices = [h("label", "output ", output), h("label", "tile ", field), h("div.two", picture, way)];
  const element = h("div.followed", h("div.tools", h("b", "follow one tile"), choices.slice(0, 2), follow, why), choices[2]);
  /** @type {number[]} */
  let tile = [];
  /** @type {Stop[]} */
  let shown = [];
  let at = 0;
  let timer = 0;

  const grid = () => store.state.lowering.outputs[Math.max(0, output.selectedIndex)]?.tiles ?? [];

  store.on(["lowering"], ({ lowering: { outputs } }) => {
    offer(output, outputs.map(({ name }) => name));
    put(way);
    choose([]);
  });
  store.on(["lowering", "busy", "edits", "stale"], (state) => {
    const reason = noRecording(state, kernel);
    const edited = editedKernels(state);
    follow.disabled = !!(state.busy || reason);
    for (const one of choices) one.hidden = !!reason;
    put(why, reason || (edited ? `uses the edited ${edited}` : "click one, or use arrow keys and Enter"));
  });

  /** @param {number[]} wanted what it lacks is 0 */
  function choose(wanted) {
    const most = grid();
    tile = nearest(wanted, most);
    field.value = tile.join(", ");
    const [rows, columns] = [1, ...most].slice(-2);
    const [row, column] = [0, ...tile].slice(-2);
    const size = Math.min(LARGEST_PIXELS, SIDE_PIXELS / Math.max(rows, columns));
    picture.style.cssText = `width:${size * columns}px;height:${size * rows}px;background-size:${size}px ${size}px`;
    square.style.cssText = `left:${size * column}px;top:${size * row}px;width:${size}px;height:${size}px`;
    picture.ariaLabel = `${most.join(" × ")} tiles of ${output.value}; tile (${field.value}) is chosen`;
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const [row, column] = [0, ...tile].slice(-2);
    const near = neighbour(event.key, `${column},${row}`)?.split(",").map(Number).reverse();
    if (event.key === "Enter") go();
    else if (near) {
      choose([...tile.slice(0, -2), ...near].slice(-tile.length));
      store.set({ say: `tile ${field.value}` });
    } else return;
    take(event);
  }

  async function go() {
    if (follow.disabled) return;
    const { edits, lowering } = store.state;
    const words = `tile (${field.value}) of ${output.value}, ${inputsWords(store.state)}`;
    const asked = { output: output.selectedIndex, tile, code: edits, ...given(store.state, words) };
    toggle(false);
    put(way);
    try {
      /** @type {TileHistory} */
      const { tensor, tile: of, facts, notes, stops: made } = await work(store, "tile", (progressed) => kernel.ask({ do: "tile", ...asked }, progressed));
      // What was asked about another lowering is not of this one.
      if (store.state.lowering !== lowering) return;
      shown = made;
      put(stops, made.map(({ kernel, line, text, own, turns, does }, i) => h("li",
        link(kernel, () => show(i)), ` ${does}`, turns > 1 && quiet(` (${turns} times)`),
        line > 0 && h("div", link(`${kernelName(kernel)}:${line}`, () =>
          store.set({ tab: "Code", file: kernelName(kernel), pinned: litByLine(store.state.lowering, own) })),
          " ", pinLink(store, own), " ", h("code", ...code(text, "cpp"))))));
      put(way, h("div.tools", play, h("b", `tile (${of.join(", ")}) of ${tensor}`)), table(facts), notes.map((note) => h("p", note)), stops);
      show(0);
    } catch (error) {
      put(way, errorCard(store, /** @type {Failure} */ (error)));
    }
  }

  /** @param {number} i */
  function show(i) {
    at = i;
    all(stops, "li").forEach((row, k) => set(row, { "aria-current": k === i ? "step" : "false" }));
    store.set({ say: `stop ${i + 1} of ${shown.length}: ${shown[i].kernel} ${shown[i].does}` });
  }

  /** @param {boolean} playing */
  function toggle(playing) {
    clearInterval(timer);
    timer = 0;
    if (playing) {
      show((at + 1) % shown.length);
      timer = setInterval(() => {
        // A view that is gone, or the end, stops the clock.
        if (!element.isConnected || at + 1 >= shown.length) toggle(false);
        else show(at + 1);
      }, TICK_MS);
    }
    put(play, timer ? "❚❚" : "▶");
    play.ariaLabel = timer ? "pause" : "play";
  }

  /** @param {number[]} place */
  function of([number, ...index]) {
    output.selectedIndex = number;
    choose(index.slice(-grid().length));
    go();
    element.scrollIntoView({ block: "nearest" });
  }
  return { element, follow: of };
}
