// Terms in labels and headings: underlined, with their definitions on hovering and where the keyboard reaches them.

import { finder } from "../model/terms.js";
import { all, below, closest, h, set } from "./dom.js";

// `.t` are the labels in drawings.
const LABELS = "th,h4,h4>.q,label,.fact>.q,.tools>b,.filehead>:is(b,.q),.coverage,.t";
// Those with `data-meaning` are no place for the focus.
const TERM = "[aria-description],[data-meaning],abbr";

/** Makes a term of an element. @param {Element} element @param {string} meaning */
export const explain = (element, meaning) => set(element, { tabindex: 0, role: "button", "aria-description": meaning });

/** Explains all terms in labels and headings of `root`, also in those that come later. @param {HTMLElement} root @param {Record<string, string>} terms */
export function explainTerms(root, terms) {
  const find = finder(terms);
  const box = h("div.meaning", { popover: "manual", role: "tooltip" });
  root.append(box);
  new MutationObserver((changes) => {
    /** @param {Element} target what is in it and is a label, and the target itself; long lists change most, and have none */
    const labels = (target) => (closest(target, ".rows") ? [] : [target, ...all(target, LABELS)]);
    for (const label of changes.flatMap(({ target }) => labels(/** @type {Element} */ (target))))
      for (const node of label.matches(LABELS) ? label.childNodes : []) {
        const pieces = node instanceof Text ? find(node.data) : [];
        if (pieces.length < 2) continue;
        const drawing = closest(label, "svg");
        // Inside a picture nothing could have the focus.
        if (drawing) drawing.role = "group";
        /** @type {ChildNode} */ (node).replaceWith(...pieces.map(([text, meaning]) => {
          if (!meaning) return text;
          const term = document.createElementNS(label.namespaceURI, drawing ? "tspan" : "abbr");
          term.textContent = text;
          explain(term, meaning);
          return term;
        }));
      }
  }).observe(root, { childList: true, subtree: true });

  /** @param {Event} event */
  const show = (event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    if (box.contains(target)) return;
    const term = closest(target, TERM);
    box.togglePopover(!!term);
    if (!term) return;
    // One that Python made, which has to show its definition itself elsewhere.
    if (term.title) explain(term, term.title);
    term.title = "";
    box.textContent = term.getAttribute("aria-description") ?? term.dataset.meaning ?? "";
    below(box, term);
  };
  const hide = () => box.hidePopover();
  set(root, {
    onmouseover: show, onfocusin: show, onmouseleave: hide, onfocusout: hide,
    onkeydown: (event) => {
      if (event.key === "Escape" && box.matches(":popover-open")) event.stopImmediatePropagation();
      hide();
    },
  });
}
