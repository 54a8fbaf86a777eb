// One tile of an output, followed back: which lines read, computed, packed and wrote for it, from which pages.

/** @import { Answers, Failure, Stop, TileHistory } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { ROLES, kernelFile, kernelName, litByLine } from "../model/lowering.js";
import { nearest, tileAt } from "../model/tiles.js";
import { limitOf, work } from "../model/work.js";
import { errorCard } from "../parts/cards.js";
import { all, button, chip, choice, h, link, offer, put, quiet, set, table, take } from "../parts/dom.js";
import { editedKernels, inputsWords } from "../parts/inputs.js";
import { code, pinLink } from "../parts/listing.js";

const SIDE_PIXELS = 256;
const LARGEST_PIXELS = 20;
const TICK_MS = 1500;
// Lines of the C++ before and after that of a stop.
const AROUND = 5;

/** Gives the element, and what follows a tile, given its output and its index. @param {Explorer} store @param {Kernel} kernel */
export function followTile(store, kernel) {
  const output = choice("output", () => choose([]));
  const fields = h("span");
  const follow = button("Follow", go, { class: "primary" });
  const why = quiet();
  const square = h("i");
  const picture = h("div.tiles", { tabindex: "0", role: "img", onclick: pick, onkeydown: move }, square);
  const facts = h("div");
  const play = chip("▶", toggle, { label: "play the stops" });
  const moment = quiet();
  const stops = h("ol.stops", { label: "stops" });
  const around = h("pre.m.around", { tabindex: "0" });
  const chain = h("div.chain", facts, h("div.tools", play, moment), stops, around);
  const problem = h("div.scroll");
  const element = h("section.followed", { label: "follow one tile" },
    h("div.tools", h("b", "follow one tile"), h("label", "output ", output), fields, follow, why),
    h("div.two", picture, h("div.way", problem, chain)));
  /** @type {number[]} */
  let tile = [];
  /** The C++ that ran, by role. @type {Record<string, string[]>} */
  let texts = {};
  /** @type {Stop[]} */
  let shown = [];
  let at = 0;
  let timer = 0;

  const grid = () => store.state.lowering.outputs[Math.max(0, output.selectedIndex)]?.tiles ?? [];

  store.on(["lowering"], ({ lowering: { outputs } }) => {
    offer(output, outputs.map(({ name }) => name));
    outputs.forEach(({ name }, i) => (output.options[i].text = name));
    chain.hidden = true;
    put(problem);
    choose([]);
  });
  store.on(["lowering", "busy", "edits", "stale"], ({ lowering: { steps }, busy, ...state }) => {
    const reason = kernel.missing("record") || (steps.some((step) => step.error) ? "the lowering failed" : "");
    follow.disabled = !!(busy || reason);
    follow.textContent = busy === "tile" ? "Following …" : "Follow";
    const edited = editedKernels(state);
    why.textContent = reason || (busy ? "" : edited ? `uses the edited ${edited}` : "click a tile, or move with the arrow keys and press Enter");
  });
  store.on(["followed"], ({ followed }) => {
    if (followed?.do === "tile" && followed.variant === store.state.variant) answer(/** @type {Promise<Answers["tile"]>} */ (followed.answer));
  });

  /** @param {number[]} wanted what it lacks is 0 */
  function choose(wanted) {
    const most = grid();
    tile = nearest(wanted, most);
    if (fields.children.length !== most.length)
      put(fields, most.map((_, axis) => h("input.small", { type: "number", min: 0, label: axisName(axis), oninput: () => choose(typed()) })));
    all(fields, "input").forEach((field, axis) => {
      set(field, { max: most[axis] - 1, title: `${axisName(axis)}, 0 to ${most[axis] - 1}` });
      if (Number(/** @type {HTMLInputElement} */ (field).value || NaN) !== tile[axis]) Reflect.set(field, "value", tile[axis]);
    });
    const [rows, columns] = [1, ...most].slice(-2);
    const [row, column] = [0, ...tile].slice(-2);
    const size = Math.min(LARGEST_PIXELS, SIDE_PIXELS / Math.max(rows, columns));
    const { style } = picture;
    style.cssText = `width:${size * columns}px;height:${size * rows}px;background-size:${size > 3 ? `${size}px ${size}px` : "0"}`;
    square.style.cssText = `left:${size * column}px;top:${size * row}px;width:${size}px;height:${size}px`;
    picture.ariaLabel = `${rows} × ${columns} tiles of ${output.value}; tile (${tile.join(", ")}) is chosen`;
  }
  const typed = () => all(fields, "input").map((field) => /** @type {HTMLInputElement} */ (field).valueAsNumber || 0);

  /** @param {number} axis */
  function axisName(axis) {
    const last = grid().length - 1;
    return axis === last ? "tile column" : axis === last - 1 ? "tile row" : `index ${axis}`;
  }

  /** @param {MouseEvent} event */
  function pick(event) {
    choose(tileAt(tile, grid(), event.offsetX / picture.clientWidth, event.offsetY / picture.clientHeight));
    if (!follow.disabled) go();
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === "Enter" && !follow.disabled) go();
    else if (down || right) {
      const last = tile.length - 1;
      choose(tile.map((one, axis) => one + (axis === last ? right : axis === last - 1 ? down : 0)));
      store.set({ say: `tile ${tile.join(", ")}` });
    } else return;
    take(event);
  }

  function go() {
    const { edits, inputs, lowering } = store.state;
    texts = Object.fromEntries(ROLES.map((role) => {
      const text = edits[role] ?? `${kernelFile(lowering, role).listing ?? ""}`;
      return [role, text.split("\n")];
    }));
    const words = `tile (${tile.join(", ")}) of ${output.value}, ${inputsWords(store.state)}`;
    const asked = { output: output.selectedIndex, tile, code: edits, limit: limitOf(store.state), words, ...inputs };
    answer(work(store, "tile", (progressed) => kernel.ask({ do: "tile", ...asked }, progressed)));
  }

  /** @param {Promise<TileHistory>} promised */
  async function answer(promised) {
    put(problem);
    try {
      load(await promised);
    } catch (error) {
      chain.hidden = true;
      put(problem, errorCard(store, /** @type {Failure} */ (error)));
    }
  }

  /** @param {TileHistory} history */
  function load({ tensor, tile: of, facts: told, notes, stops: made }) {
    shown = made;
    chain.hidden = false;
    put(facts, h("h4", `tile (${of.join(", ")}) of ${tensor}`), table(told), notes.map((note) => h("p.warn", note)));
    put(stops, made.map((stop, i) => h("li",
      link(stop.kernel, () => show(i), { class: "link m" }), h("span", stop.does, stop.turns > 1 && quiet(`, ${stop.turns} turns`)))));
    show(0);
  }

  /** @param {number} i */
  function show(i) {
    at = i;
    const stop = shown[i];
    if (!stop) return;
    const { kernel: role, line, own, does } = stop;
    all(stops, "li").forEach((row, k) => set(row, { "aria-current": k === i ? "step" : "false" }));
    put(moment, `stop ${i + 1} of ${shown.length} `, line > 0 && link(`${kernelName(role)} line ${line}`, () =>
      store.set({ tab: "Code", file: kernelName(role), pinned: litByLine(store.state.lowering, own) })), " ", pinLink(store, own));
    const lines = texts[role] ?? [];
    const first = Math.max(0, Math.min(line - 1 - AROUND, lines.length - 2 * AROUND - 1));
    put(around, line > 0 && lines.slice(first, first + 2 * AROUND + 1).map((text, k) =>
      h("div", { class: first + k + 1 === line ? "at" : "" }, `${first + k + 1}`.padStart(4), "  ", ...code(text, "cpp"))));
    around.ariaLabel = line > 0 ? `${kernelName(role)} around line ${line}` : role;
    store.set({ say: `stop ${i + 1} of ${shown.length}: ${role} ${does}` });
  }

  function toggle() {
    if (timer) {
      clearInterval(timer);
      timer = 0;
    } else {
      if (at + 1 >= shown.length) show(0);
      timer = setInterval(() => {
        // A view that is gone, or the end, stops the clock.
        if (!element.isConnected || at + 1 >= shown.length) toggle();
        else show(at + 1);
      }, TICK_MS);
    }
    play.textContent = timer ? "❚❚" : "▶";
    play.ariaLabel = timer ? "pause" : "play the stops";
  }

  /** @param {number[]} place */
  function of([number, ...index]) {
    output.selectedIndex = number;
    choose(index.slice(-grid().length));
    if (!follow.disabled) go();
    element.scrollIntoView({ block: "nearest" });
  }
  return { element, follow: of };
}
