// Where a text occurs: in the kernel, in the steps, in the program and plan after each of them, and in what was emitted.

/** @import { Listing, Lowering } from "./lowering.js" */

import { isLeaf } from "./steps.js";

/** A line that has the text; -1 for the title of a step. @typedef {{ line: number, text: string }} Match */

/**
 * Lines of one listing that have the text. `step` and `part` say where the listing is shown, or `file` does; the kernel has
 * neither.
 * @typedef {object} Group
 * @property {string} name
 * @property {number} step -1 for none
 * @property {"ir" | "plan"} part
 * @property {string} file
 * @property {string} language
 * @property {Listing} listing
 * @property {Match[]} matches
 */

const PARTS = /** @type {const} */ (["ir", "plan"]);

/**
 * What has a text, which is in lower case, in the order in which it came to be. Steps with parts have no listings of their
 * own, and neither have those that leave them as they were.
 * @param {Lowering} lowering
 * @param {string} words
 * @returns {Group[]}
 */
export function search({ texts, steps, files, listings, source }, words) {
  /** @param {string} text */
  const has = (text) => text.toLowerCase().includes(words);
  const having = texts.map(has);
  // It has what there was before all steps.
  const first = steps.findIndex((_, i) => isLeaf(steps, i));
  /** @param {string} name @param {number} listing @param {string} language @param {Partial<Group>} [more] @returns {Group} */
  const group = (name, listing, language, more) => ({
    name, step: -1, part: "ir", file: "", language, listing: listings[listing],
    matches: listings[listing].matching(having).map((line) => ({ line, text: listings[listing].text(line) })), ...more,
  });
  return [
    group("kernel", source.listing, "python"),
    ...steps.flatMap((step, i) => {
      const { letter, name, summary } = step;
      const title = { line: -1, text: `${name}: ${summary}` };
      return [
        group(`${letter} step`, step.ir.after, "", { step: i, matches: has(title.text) ? [title] : [] }),
        ...PARTS.filter((part) => isLeaf(steps, i) && (i === first || step[part].before !== step[part].after)).map((part) =>
          group(`${letter} ${part === "ir" ? "program" : "plan"}`, step[part].after, part === "ir" ? "tir" : "json", { step: i, part })),
      ];
    }),
    ...files.map(({ name, listing, language }) => group(name, listing, language, { file: name })),
  ].filter(({ matches }) => matches.length);
}
