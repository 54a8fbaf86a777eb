// The steps in their order: each is followed by its parts, which are steps, too.

/** @import { Step } from "../messages.js" */

/** Whether a step is a part of another one and changed nothing: a dot in the list of steps. @param {Step} step */
export const isIdle = ({ part_of, glyph }) => part_of >= 0 && glyph === "○";

/** Whether step `i` has no parts. @param {Step[]} steps @param {number} i */
export const isLeaf = (steps, i) => steps[i + 1]?.part_of !== i;

/**
 * The step that a key leads to from step `i`; parts that changed nothing are passed over.
 * @param {Step[]} steps
 * @param {number} i
 * @param {number} direction
 */
export function neighbourOf(steps, i, direction) {
  let next = i + direction;
  while (steps[next] && isIdle(steps[next])) next += direction;
  return steps[next] ? next : i;
}

/** "step 3 of 15", or "A0.4, part 4 of 18 of A0". @param {Step[]} steps @param {number} i */
export function positionOf(steps, i) {
  const { part_of: whole, letter } = steps[i];
  const beside = [...steps.keys()].filter((k) => steps[k].part_of === whole);
  const at = `${beside.indexOf(i) + 1} of ${beside.length}`;
  return whole < 0 ? `step ${at}` : `${letter}, part ${at} of ${steps[whole].letter}`;
}

/** Two steps, the one first whose program is there first; a step ends after its parts. @param {Step[]} steps @param {number} a @param {number} b */
export const inTime = (steps, a, b) => (steps[a].part_of === b || (steps[b].part_of !== a && a < b) ? [a, b] : [b, a]);
