// Two lowerings of a kernel: what differs in their figures, and in the program or the plan of each step.

/** @import { Diff } from "../messages.js" */
/** @import { Lowering } from "./lowering.js" */

import { bytes, grouped } from "./figures.js";
import { ROLES, kernelFile, kernelName } from "./lowering.js";
import { most, working } from "./measures.js";

/** @type {[string, (lowering: Lowering) => string | number | false | null | undefined][]} */
const FIGURES = [
  ["cores that work", ({ cores }) => cores && grouped(working(cores).length)],
  ["items of the busiest core", ({ cores }) => cores && grouped(most(cores))],
  ["circular buffers", ({ buffers }) => buffers?.buffers.length],
  ["L1 of each core", ({ cores }) => cores && bytes(cores.l1_bytes)],
  ["tiles per work item", ({ cores }) => cores?.tiles_per_item != null && grouped(cores.tiles_per_item)],
  .../** @type {FIGURES} */ (ROLES.map((role) => [`lines of ${kernelName(role)}`, (lowering) => kernelFile(lowering, role).listing?.count])),
];

/** The figures of both: [what, here, there]. @param {Lowering} here @param {Lowering} there @returns {[string, string, string][]} */
export const figures = (here, there) => FIGURES.map(([what, of]) => [what, `${of(here) || "–"}`, `${of(there) || "–"}`]);

/** The program or plan after a step. @param {Lowering} lowering @param {Diff} diff */
const textAfter = ({ listings }, { after }) => `${listings[after]}`;

/** What a step has decided, without what was asked for. @param {Lowering} lowering @param {number} step */
const decided = (lowering, step) => textAfter(lowering, lowering.steps[step].plan).replace(/^(options|annotations|target)\b.*\n/gm, "");

/** Which of the steps gives what: a glyph and words for each. @param {Lowering} here @param {Lowering} there @returns {[string, string][]} */
export const changes = (here, there) => here.steps.map((step, i) =>
  !there.steps[i] ? ["✖", "not reached"]
    : textAfter(here, step.ir) !== textAfter(there, there.steps[i].ir) ? ["●", "another program"]
    : decided(here, i) !== decided(there, i) ? ["◐", "another plan"] : ["=", "the same"]);
