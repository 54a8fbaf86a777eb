// Two lowerings of a kernel: what differs in the program or the plan of each step.

/** @import { Diff } from "../messages.js" */
/** @import { Lowering } from "./lowering.js" */

/** The program or plan after a step. @param {Lowering} lowering @param {Diff} diff */
const textAfter = ({ listings }, { after }) => `${listings[after]}`;

/** What a step has decided, without what was asked for. @param {Lowering} lowering @param {number} step */
const decided = (lowering, step) => textAfter(lowering, lowering.steps[step].plan).replace(/^(options|annotations|target)\b.*\n/gm, "");

/** Which of the steps gives what: a glyph and words for each. @param {Lowering} here @param {Lowering} there @returns {[string, string][]} */
export const changes = (here, there) => here.steps.map((step, i) =>
  !there.steps[i] ? ["✖", "not reached"]
    : textAfter(here, step.ir) !== textAfter(there, there.steps[i].ir) ? ["●", "different program"]
    : decided(here, i) !== decided(there, i) ? ["◐", "different plan"] : ["=", "the same"]);
