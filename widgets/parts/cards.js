// What several views show: figures of a change, an error, the drawings' buttons.

/** @import { Failure } from "../messages.js" */
/** @import { Explorer } from "../model/state.js" */

import { all, chip, classed, download, find, h, markup, quiet } from "./dom.js";
import { faults } from "./faults.js";
import { pinLink } from "./listing.js";

/** What the signs of lines mean, in the order of the counts. */
const CHANGES = ["added", "removed", "only indented", "only renamed", "moved"];

/** "+42 −17 ~3" with the meaning of each in its class. @param {number[]} counts */
export function counts(counts) {
  const shown = counts.map((count, i) => count > 0 && h("span", { class: ["plus", "minus"][i] ?? "tilde", title: `${count} lines ${CHANGES[i]}` }, `${"+−~≈⇄"[i]}${count} `));
  return h("span.counts", shown.some(Boolean) ? shown : quiet("·"));
}

/** A chip that turns a switch of the whole explorer. @param {Explorer} store @param {"collapsed" | "lanes" | "split" | "wrap"} name @param {string} label @param {string} title */
export const toggle = (store, name, label, title) => chip(label, () => store.set({ [name]: !store.state[name] }), { "aria-pressed": store.state[name], title });

/** A chip that copies a text. @param {Explorer} store @param {string} what @param {() => string} text @param {string} [words] */
export const copyChip = (store, what, text, words = "copy") => chip(words, async () => {
  await navigator.clipboard.writeText(text());
  store.set({ say: `${what} copied` });
}, { label: `copy ${what}` });

/** @param {Explorer} store @param {Failure} error */
export const errorCard = (store, error) => h("div.card.fault", { role: "alert" },
  h("p", h("b", h("span.bad", "✖ "), error.kind), " ", pinLink(store, error.line, error.where) || error.where, " ", quiet(error.code)),
  h("p.pre.m", error.message.join("\n")),
  error.hint.length > 0 && h("p.pre", quiet("hint: "), error.hint.join("\n").split(/`([^`]+)`/).map((part, k) => (k % 2 ? h("code", part) : part))),
  faults(store, error),
  error.drawing && markup(error.drawing));

/** Buttons that save the drawing in `holder` as SVG and as PNG. @param {Element} holder @param {string} name */
export function pictureButtons(holder, name) {
  const svg = () => /** @type {SVGSVGElement} */ (find(holder, "svg"));
  const text = () => {
    const copy = /** @type {Element} */ (svg().cloneNode(true));
    all(copy, ".chosen").forEach((chosen) => classed(chosen, "chosen", false));
    return new XMLSerializer().serializeToString(copy);
  };
  const png = () => {
    const image = new Image();
    const { width, height } = svg().viewBox.baseVal;
    image.onload = () => {
      const canvas = h("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && download(`${name}.png`, blob, "image/png"));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text())}`;
  };
  /** @param {string} kind @param {() => void} save */
  const saves = (kind, save) => chip(kind, save, { label: `save the drawing of ${name} as ${kind}` });
  return h("span.pictures", saves("SVG", () => download(`${name}.svg`, text(), "image/svg+xml")), saves("PNG", png));
}
