// Plots over time: rows with one axis above them.

/** @import { Child } from "./child.js" */

import { ticks } from "../model/clock.js";
import { h, markup } from "./dom.js";

export const PLOT_HEIGHT = 22;
export const BAR_HEIGHT = 14;
const LABELS = 8;

/** @param {Child} name @param {[number, number]} window the times at both ends @param {string} drawn in SVG, with times as x @param {Child} [mark] what stands above it */
export const plot = (name, [from, to], drawn, mark) => h("div.plot", h("span.m.name", name), h("span.track",
  markup(`<svg viewBox="${from} 0 ${to - from} ${PLOT_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${drawn}</svg>`).firstChild, mark));

/** A path of bars. @param {string} kind its class @param {[start: number, end: number][]} spans @param {number} y @param {number} height */
export const bars = (kind, spans, y, height) => `<path class="${kind}" d="${spans.map(([start, end]) => `M${start} ${y}h${end - start}v${height}h${start - end}z`).join("")}"/>`;

/** The labels of an axis. @param {[number, number]} window @param {number} [unit] what a label counts */
export const labels = ([from, to], unit = 1) => ticks([from, to], LABELS).map((at) => h("span", { style: `left:${(100 * (at - from)) / (to - from)}%` }, (at / unit).toLocaleString("en")));
