// The graph of what happens: operations, the memory between them, and loops as frames that fold. What is chosen is pinned
// in every view, and a card tells of it.

/** @import { Flow } from "../messages.js" */
/** @import { Explorer } from "../model/state.js" */

import { linesOf, litByLine } from "../model/lowering.js";
import { folded } from "../parts/fold.js";
import { all, below, chip, classed, closest, find, focusOn, gapper, h, link, markup, put, quiet, rect, set, table, take } from "../parts/dom.js";
import { pictureButtons } from "../parts/cards.js";

// What the keyboard is at; terms in the drawing are stops of their own.
const STOPS = "[data-node],[data-side],[data-label]";
const STOP = `:is(${STOPS})[tabindex='0']`;
const LEAST_SCALE = 0.4;
const MOST_SCALE = 3;
const ZOOM = 1.25;
const FIT_MARGIN = 24;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/** @param {Explorer} store @param {(line: number) => [string, string][]} costs what is known of the cost of a kernel line */
export function flowView(store, costs) {
  const holder = h("div.flow", { role: "group", label: "what flows", onclick: choose, onkeydown: walk, onpointerdown: grab, onpointermove: drag, onwheel: wheel });
  const card = h("div.estimate.flowcard", { popover: "manual", role: "group", label: "what is chosen", onkeydown: (event) => {
    if (event.key !== "Escape") return;
    take(event);
    close(true);
  } });
  const hint = quiet("click a box or an arrow");
  const kinds = h("span.pictures", { role: "group", label: "statements or operations" });
  /** The graph that the user chose; null follows the step. @type {number | null} */
  let wanted = null;
  /** @type {Flow | undefined} */
  let flow;
  /** Folded frames of the graph that is shown. @type {Set<number>} */
  let folds = new Set();
  let scale = 1;
  /** Shows in a new drawing what is true at a moment. */
  let drew = () => {};
  /** @type {[number, number] | null} */
  let held = null;

  // Buffers are what one looks for here first: only a step that is chosen later is followed.
  let { step: first } = store.state;
  store.on(["lowering"], ({ step }) => {
    wanted = null;
    flow = undefined;
    first = step;
  });
  store.on(["lowering", "step", "recording"], ({ lowering: { flows }, step, recording }) => {
    if (step !== first) first = -1;
    const followed = recording || step === first ? flows.length - 1 : flows.findLastIndex((one) => one.step <= step);
    const shown = flows[wanted ?? followed];
    if (shown && shown === flow) return;
    flow = shown;
    folds = new Set();
    put(kinds, flows.length > 1 && flows.map((one, i) => chip(one.words, () => redraw(i), { "aria-pressed": one === flow })));
    draw();
  });
  store.on(["pinned", "lowering"], light);

  /** @param {number} i */
  function redraw(i) {
    wanted = i;
    flow = store.state.lowering.flows[i];
    folds = new Set();
    for (const [k, one] of all(kinds, "button").entries()) set(one, { "aria-pressed": k === i });
    draw();
  }

  function draw() {
    close(false);
    if (!flow) return put(holder, h("p.q", "Step A2, which decides the circular buffers, did not run."));
    const drawn = markup(flow.svg);
    const svg = find(drawn, "svg");
    const stops = all(drawn, STOPS);
    hint.hidden = !stops.length;
    if (svg && stops.length) {
      folded(svg, flow, folds);
      svg.setAttribute("role", "group");
      stops.forEach((element, i) => {
        set(element, { role: "button", label: find(element, "title")?.textContent ?? "", "aria-expanded": element.dataset.label ? `${!folds.has(Number(element.dataset.label))}` : null });
        element.tabIndex = i ? -1 : 0;
      });
    }
    // The drawing's own holder would be a second stop of Tab.
    put(holder, ...drawn.childNodes);
    zoom(scale);
    light();
    drew();
  }

  /** @param {number} to */
  function zoom(to) {
    scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, to));
    const svg = /** @type {SVGSVGElement | null} */ (find(holder, "svg"));
    if (!svg) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.style.width = `${width * scale}px`;
    svg.style.height = `${height * scale}px`;
  }

  function fit() {
    const { width, height } = /** @type {SVGSVGElement} */ (find(holder, "svg")).viewBox.baseVal;
    zoom(Math.min((holder.clientWidth - FIT_MARGIN) / width, (holder.clientHeight - FIT_MARGIN) / height));
  }

  /** What comes from what is pinned stands out. */
  function light() {
    const { pinned, lowering } = store.state;
    const lines = linesOf(lowering, pinned);
    for (const element of all(holder, "[data-node]")) classed(element, "chosen", lines.includes(flow?.nodes[Number(element.dataset.node)].line ?? 0));
  }

  /** @param {boolean} back whether the focus goes back to the graph */
  function close(back) {
    if (card.isConnected && card.matches(":popover-open")) card.hidePopover();
    if (back) focusOn(find(holder, STOP));
  }

  /** @param {Element} element @param {string} title @param {import("../parts/child.js").Child[]} told */
  function tell(element, title, ...told) {
    put(card, h("div.tools", h("b", title), gapper(), chip("×", () => close(true), { label: "close" })), told);
    card.showPopover();
    below(card, element);
    store.set({ say: title });
  }

  /** Tells of an element of the drawing, and pins what it comes from. @param {Element} element */
  function open(element) {
    const { node, side, flow: edge, label } = /** @type {HTMLElement} */ (element).dataset;
    if (!flow) return;
    if (label) {
      const frame = Number(label);
      if (!folds.delete(frame)) folds.add(frame);
      draw();
      focusOn(find(holder, `[data-label="${frame}"]`));
    } else if (edge) {
      const { title, facts } = flow.edges[Number(edge)];
      tell(element, title, table(facts));
    } else {
      const end = node ? Number(node) : side ?? "";
      const { title, line, facts } = typeof end === "number" ? flow.nodes[end] : { title: end, line: 0, facts: flow.sides[end] ?? [] };
      if (line) store.set({ pinned: litByLine(store.state.lowering, line), say: `pinned kernel line ${line}` });
      const around = flow.edges.flatMap(({ ends: [from, to], title: way }, i) => (from === end || to === end ? [h("div", link(way, () => {
        const drawn = find(holder, `[data-flow="${i}"]`);
        if (drawn) open(drawn);
      }))] : []));
      tell(element, title, table([...(line ? /** @type {[string, string][]} */ ([["kernel line", `${line}`]]) : []), ...facts, ...costs(line)]),
        around, line > 0 && h("p", "pinned: ", link("in the step", () => store.set({ tab: "Steps" })), " · ", link("in the code", () => store.set({ tab: "Code" }))));
    }
  }

  /** @param {MouseEvent} event */
  function choose(event) {
    const element = closest(event.target, `${STOPS},[data-flow]`);
    if (!element) return close(false);
    for (const other of all(holder, STOP)) other.tabIndex = -1;
    if (!element.dataset.flow) element.tabIndex = 0;
    open(element);
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const { key } = event;
    const here = closest(event.target, STOPS);
    const way = ARROWS[key];
    if (key === "+" || key === "-") zoom(key === "+" ? scale * ZOOM : scale / ZOOM);
    else if (key === "0") fit();
    else if (!here || event.ctrlKey || event.metaKey) return;
    else if (key === "Enter" || key === " ") open(here);
    else if (key === "Escape" && card.matches(":popover-open")) close(true);
    else if (way) go(here, way);
    else return;
    take(event);
  }

  /** To the nearest element in a direction. @param {HTMLElement} here @param {[number, number]} way */
  function go(here, [right, down]) {
    /** @param {Element} element */
    const middle = (element) => {
      const { left, top, width, height } = rect(element);
      return [left + (element.matches("[data-label]") ? 0 : width / 2), top + height / 2];
    };
    const [x, y] = middle(here);
    let [next, least] = /** @type {[HTMLElement | SVGElement | null, number]} */ ([null, Infinity]);
    for (const element of all(holder, STOPS)) {
      if (element === here || !rect(element).width) continue;
      const [ex, ey] = middle(element);
      const along = (ex - x) * right + (ey - y) * down;
      const far = along + 3 * Math.abs((ex - x) * down + (ey - y) * right);
      if (along > 2 && far < least) [next, least] = [element, far];
    }
    if (!next) return;
    here.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /** @param {PointerEvent} event */
  function grab(event) {
    held = closest(event.target, `${STOPS},[data-flow]`) ? null : [event.clientX, event.clientY];
  }

  /** @param {PointerEvent} event */
  function drag(event) {
    if (!held || !(event.buttons & 1)) return;
    holder.scrollBy(held[0] - event.clientX, held[1] - event.clientY);
    held = [event.clientX, event.clientY];
  }

  /** @param {WheelEvent} event */
  function wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? scale * ZOOM : scale / ZOOM);
  }

  const element = h("div", h("div.tools", h("b", "dataflow of one core"), kinds, hint, gapper(), h("span.pictures",
    chip("fit", fit, { label: "fit the graph", title: "0" }), chip("1:1", () => zoom(1), { label: "natural size" }),
    chip("+", () => zoom(scale * ZOOM), { label: "zoom in", title: "+" }), chip("−", () => zoom(scale / ZOOM), { label: "zoom out", title: "-" })),
  pictureButtons(holder, "dataflow")), holder, card);
  return { element, holder, draws: (/** @type {() => void} */ then) => { drew = then; } };
}
