// Folding frames of a flow graph: a frame becomes a small box, and what is below it moves up.

/** @import { Flow } from "../messages.js" */

import { all, find, put, set } from "./dom.js";

const FOLDED_HEIGHT = 44;
const SIDE_STEP = 58;
const PADDING = 6;

/** @param {Element} element @param {string} name */
const value = (element, name) => Number(element.getAttribute(name) ?? 0);

/** Folds frames of a drawing that shows all of them. @param {Element} svg @param {Flow} flow @param {Set<number>} frames */
export function folded(svg, flow, frames) {
  /** Whether a frame is in another one, or is that. @param {number} frame @param {number} outer */
  const isIn = (frame, outer) => {
    for (let at = frame; at >= 0; at = flow.frames[at]) if (at === outer) return true;
    return false;
  };
  for (const frame of frames) {
    // One that is in a folded one is gone already.
    if ([...frames].some((outer) => outer !== frame && isIn(frame, outer))) continue;
    const inside = new Set(flow.nodes.flatMap((node, i) => (isIn(node.frame, frame) ? [i] : [])));
    fold(svg, flow, frame, inside, (other) => other !== frame && isIn(other, frame));
  }
}

/** @param {Element} svg @param {Flow} flow @param {number} frame @param {Set<number>} inside @param {(frame: number) => boolean} isInner */
function fold(svg, flow, frame, inside, isInner) {
  const box = /** @type {Element} */ (find(svg, `[data-loop="${frame}"] rect`));
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => value(box, name));
  const right = left + width;
  const bottom = top + height;
  /** @type {Map<number, Element[]>} */
  const columns = new Map();
  for (const side of all(svg, "[data-side]")) {
    const rect = /** @type {Element} */ (find(side, "rect"));
    const middle = value(rect, "y") + value(rect, "height") / 2;
    if (middle > top && middle < bottom) columns.set(value(rect, "x"), [...columns.get(value(rect, "x")) ?? [], side]);
  }
  const most = Math.max(0, ...[...columns.values()].map((column) => column.length));
  const least = Math.min(height, Math.max(FOLDED_HEIGHT, most * SIDE_STEP + PADDING));
  /** @param {number} y */
  const moved = (y) => (y <= top ? y : y >= bottom ? y - height + least : top + ((y - top) * least) / height);
  /** What is beside the frame keeps its size: where each of these goes, by its edges and its middle. @type {Map<string, number>} */
  const shifts = new Map();
  for (const [x, column] of columns)
    column.forEach((side, i) => {
      const rect = /** @type {Element} */ (find(side, "rect"));
      const [wide, high] = [value(rect, "width"), value(rect, "height")];
      const by = top + PADDING / 2 + i * SIDE_STEP + (least - PADDING - column.length * SIDE_STEP) / 2 + 4 - value(rect, "y");
      const middle = value(rect, "y") + high / 2;
      for (let apart = -high / 2; apart <= high / 2; apart += 0.5) for (const edge of [x, x - 0.5, x + wide, x + wide + 0.5]) shifts.set(`${edge} ${middle + apart}`, by);
      shift(side, by);
    });
  for (const element of svg.children) {
    const { node, side, loop, label, flow: edge, kernel } = /** @type {HTMLElement} */ (element).dataset;
    if (label === `${frame}` || (side && [...columns.values()].flat().includes(element))) continue;
    if ((node && inside.has(Number(node))) || ((loop ?? label) && isInner(Number(loop ?? label)))) element.setAttribute("display", "none");
    else if (loop || kernel || element.matches("rect")) stretch(element, moved);
    else if (edge) route(element, flow, Number(edge));
    else {
      const line = find(element, "path.edge");
      const flat = line && /^M([\d.]+) ([\d.]+)H([\d.]+)$/.exec(line.getAttribute("d") ?? "");
      if (flat) {
        const y = Number(flat[2]);
        const by = shifts.get(`${flat[1]} ${y}`) ?? shifts.get(`${flat[3]} ${y}`) ?? moved(y) - y;
        shift(element, by);
      } else if (element.matches("g,text")) {
        const own = element.matches("text") ? element : find(element, "rect,text");
        if (own) shift(element, moved(value(own, "y")) - value(own, "y"));
      }
    }
  }
  const label = /** @type {Element} */ (find(svg, `[data-label="${frame}"]`));
  const [sign, words] = all(label, "text");
  put(sign, "▸");
  words.textContent += `: ${inside.size} folded`;
  // Above the edges that run through it.
  set(box, { class: "box" });
  /** @type {Element} */ (label.parentNode).insertBefore(/** @type {Element} */ (box.parentNode), label);
  const lower = height - least;
  const view = (svg.getAttribute("viewBox") ?? "").split(" ").map(Number);
  view[3] -= lower;
  svg.setAttribute("viewBox", view.join(" "));
  svg.setAttribute("height", `${view[3]}`);

  /** @param {Element} element @param {Flow} flow @param {number} number */
  function route(element, flow, number) {
    const [from, to] = flow.edges[number].ends;
    const [hidesFrom, hidesTo] = [from, to].map((end) => typeof end === "number" && inside.has(end));
    if (hidesFrom && hidesTo) return element.setAttribute("display", "none");
    for (const path of all(element, "path")) {
      const points = corners(path.getAttribute("d") ?? "");
      /** @type {[number, number][]} */
      let drawn = points.map(([x, y], i) => {
        const beside = typeof (i < 2 ? from : to) === "string" && (i < 2 || i > points.length - 3);
        const [edgeX, edgeY] = points[i < 2 ? 0 : points.length - 1];
        return [x, y + (beside && y === edgeY ? shifts.get(`${edgeX} ${Math.round(2 * edgeY) / 2}`) ?? moved(y) - y : moved(y) - y)];
      });
      if (hidesTo) drawn = until(drawn);
      else if (hidesFrom) drawn = until(drawn.reverse()).reverse();
      path.setAttribute("d", drawn.map(([x, y], i) => (i ? (x === drawn[i - 1][0] ? `V${y}` : `H${x}`) : `M${x} ${y}`)).join(""));
    }
  }

  /** A way up to where it comes to the folded box. @param {[number, number][]} points @returns {[number, number][]} */
  function until(points) {
    const [[x, y]] = points;
    const [low, high] = [top, top + least];
    // From the side straight to the box.
    if (y > low && y < high && (x <= left || x >= right)) return [points[0], [x <= left ? left : right, y]];
    for (let i = 1; i < points.length; i++) {
      const [px, py] = points[i];
      const [qx, qy] = points[i - 1];
      if (px === qx && px >= left && px <= right && (qy <= low || qy >= high) && py > low && py < high) return [...points.slice(0, i), [px, qy <= low ? low : high]];
      if (py === qy && py > low && py < high && (qx <= left || qx >= right) && px > left && px < right) return [...points.slice(0, i), [qx <= left ? left : right, py]];
    }
    return points;
  }
}

/** The corners of a path of horizontal and vertical lines. @param {string} data @returns {[number, number][]} */
export function corners(data) {
  /** @type {[number, number][]} */
  const points = [];
  for (const [, kind, first, second] of data.matchAll(/([MHV])([\d.]+)(?: ([\d.]+))?/g)) {
    const [x, y] = points.at(-1) ?? [0, 0];
    points.push(kind === "M" ? [Number(first), Number(second)] : kind === "H" ? [Number(first), y] : [x, Number(first)]);
  }
  return points;
}

/** @param {Element} element @param {number} by */
function shift(element, by) {
  if (!by) return;
  const before = Number(/translate\(0 ([-\d.]+)\)/.exec(element.getAttribute("transform") ?? "")?.[1] ?? 0);
  element.setAttribute("transform", `translate(0 ${before + by})`);
}

/** Moves the edges of boxes, and the texts in them. @param {Element} element @param {(y: number) => number} moved */
function stretch(element, moved) {
  /** Texts stay together. @type {number | undefined} */
  let by;
  for (const part of element.matches("rect") ? [element] : all(element, "rect,text")) {
    const y = value(part, "y");
    const isBox = part.matches("rect");
    if (isBox) part.setAttribute("height", `${moved(y + value(part, "height")) - moved(y)}`);
    else by ??= moved(y) - y;
    part.setAttribute("y", `${isBox ? moved(y) : y + (by ?? 0)}`);
  }
}
