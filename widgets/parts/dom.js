// Elements without a framework. Text only ever becomes text nodes; markup made by Python goes through `markup`.

/** @import { Child } from "./child.js" */

/**
 * Listeners, properties and attributes.
 * @typedef {{ [Name in keyof HTMLElementEventMap as `on${Name}`]?: ((event: HTMLElementEventMap[Name]) => void) | undefined }
 *   & { [name: string]: unknown }} Properties
 */

/**
 * The element that `h` makes of a name.
 * @template {string} Name
 * @typedef {Name extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Name]
 *   : Name extends `${infer Tag extends keyof HTMLElementTagNameMap}.${string}` ? HTMLElementTagNameMap[Tag] : HTMLElement} ElementOf
 */

/**
 * Sets `on...` listeners, properties and attributes; `label` is what the element is called for who cannot see it. Those
 * that are null or undefined are left out, and so are attributes that are false, but for `aria-...`. Of SVG, for attributes only.
 * @param {Element} element
 * @param {Properties} properties
 */
export function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "label") element.ariaLabel = `${value}`;
    else if (name.startsWith("aria-")) element.setAttribute(name, `${value}`);
    else if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "class") element.setAttribute(name, `${value}`);
    else if (name in element && name !== "role") Reflect.set(element, name, value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : `${value}`);
  }
}

/**
 * `h("td.num", { title }, ...children)`: an element with classes, properties, which may be missing, and children.
 * @template {string} Name
 * @param {Name} name
 * @param {...(Child | Properties)} children
 * @returns {ElementOf<Name>}
 */
export function h(name, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (children[0]?.constructor === Object) set(element, /** @type {Properties} */ (children.shift()));
  element.append(...nodes(/** @type {Child[]} */ (children)));
  return /** @type {ElementOf<Name>} */ (/** @type {unknown} */ (element));
}

/** What can be seen of children: null, undefined, false and empty texts are left out. @param {Child[]} children */
const nodes = (children) => /** @type {Node[]} */ (children.flat(4).filter(Boolean));

// Terms are not among them: they are marked later than what they stand in is made.
const CONTROLS = "button,select,input,summary,[tabindex]:not([aria-description])";

/** Replaces what an element holds. @param {Element} element @param {...Child} children */
export function put(element, ...children) {
  const focused = focusIn(element);
  const at = focused ? all(element, CONTROLS).indexOf(focused) : -1;
  element.replaceChildren(...nodes(children));
  // Were the focus lost with a control that is made anew, the next keys would be the notebook's.
  if (focused && focused !== element) focusOn(all(element, CONTROLS)[at] ?? closest(element, ".ttx-explorer"));
}

/**
 * What `element` or something in it has the focus.
 * @param {Element} element
 */
export function focusIn(element) {
  const { activeElement } = /** @type {Document | ShadowRoot} */ (element.getRootNode());
  return element.contains(activeElement) ? /** @type {HTMLElement} */ (activeElement) : null;
}

/** Focuses, without scrolling the page around. @param {HTMLElement | SVGElement | null | undefined} element */
export const focusOn = (element) => element?.focus({ preventScroll: true });

/** Selects one of the options of a list, and brings it into sight. @param {HTMLElement} list @param {HTMLElement[]} options @param {number} chosen */
export function pick(list, options, chosen) {
  // There are many options, and two of them change.
  const changed = options.filter((option, i) => option.ariaSelected !== `${i === chosen}`);
  for (const option of changed) option.ariaSelected = `${option === options[chosen]}`;
  if (focusIn(list)) focusOn(options[chosen]);
  // Of what has the focus this would cost a layout.
  for (const option of changed) option.tabIndex = option === options[chosen] ? 0 : -1;
  // Not scrollIntoView: that would move the page around the explorer as well.
  const { offsetTop: top, offsetHeight: height } = options[chosen];
  if (top < list.scrollTop || top + height > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
}

/** Gives an element, if there is one, a class, or takes it away. @param {Element | null | undefined} element @param {string} name @param {boolean} on */
export const classed = (element, name, on) => element?.classList.toggle(name, on);

/** The first element with a selector. @param {ParentNode} root @param {string} selector */
export const find = (root, selector) => /** @type {HTMLElement | SVGElement | null} */ (root.querySelector(selector));

/** All elements with a selector. @param {ParentNode} root @param {string} selector */
export const all = (root, selector) => /** @type {(HTMLElement | SVGElement)[]} */ ([...root.querySelectorAll(selector)]);

/** The element with a selector that an event is in. @param {EventTarget | null} target @param {string} selector */
export const closest = (target, selector) => /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest(selector));

/** Where an element is in the window. @param {Element} element */
export const rect = (element) => element.getBoundingClientRect();

const MARGIN_PIXELS = 4;

/** Places what is shown above the page below what it is about, inside of the window. @param {HTMLElement} box @param {Element} about */
export function below(box, about) {
  const { left, bottom } = rect(about);
  const { offsetWidth: width, offsetHeight: height } = box;
  box.style.inset = `${Math.min(bottom + MARGIN_PIXELS, innerHeight - height)}px auto auto ${Math.min(left, innerWidth - width - MARGIN_PIXELS)}px`;
}

/** An event that is for nobody else. @param {Event} event */
export function take(event) {
  event.preventDefault();
  event.stopPropagation();
}

/** What Python drew or set. It is escaped there; whatever could run code is dropped here all the same. @param {string} text */
export function markup(text) {
  const page = new DOMParser().parseFromString(`<body>${text}</body>`, "text/html");
  for (const element of all(page.body, "*")) {
    if (/^(script|iframe|object|embed|link|foreignobject)$/i.test(element.tagName)) element.remove();
    for (const { name, value } of [...element.attributes]) {
      const outside = /^(xlink:)?(href|src)$/i.test(name) && !value.startsWith("#");
      if (/^on/i.test(name) || outside) element.removeAttribute(name);
    }
  }
  // What is wider than its place scrolls, with the keyboard too.
  return h("div.drawn", { tabindex: "0" }, ...page.body.childNodes);
}

/** The same for a whole fragment with a style of its own, which must not reach what is around it. @param {string} text */
export function isolated(text) {
  const holder = h("div");
  holder.attachShadow({ mode: "open" }).append(...markup(text).childNodes);
  return holder;
}

/** A button. @param {Child} content @param {(event: MouseEvent) => void} onclick @param {Properties} [properties] */
export const button = (content, onclick, properties) => h("button", { type: "button", onclick, ...properties }, content);

/** A small one. @param {Child} content @param {(event: MouseEvent) => void} onclick @param {Properties} [properties] */
export const chip = (content, onclick, properties) => button(content, onclick, { class: "chip", ...properties });

/** One that reads as text. @param {Child} content @param {(event: MouseEvent) => void} onclick @param {Properties} [properties] */
export const link = (content, onclick, properties) => button(content, onclick, { class: "link", ...properties });

/** A choice that shows its `label`. @param {string} label @param {() => void} [onchange] */
export const choice = (label, onchange) => h("select", { label, onchange });

/** The choices of a `select`, which is left alone where it has them. @param {HTMLSelectElement} select @param {string[]} texts @param {string[]} [values] */
export function offer(select, texts, values = texts) {
  if (select.options.length !== texts.length) put(select, texts.map((text, i) => h("option", { value: values[i] }, text)));
}

/** What a row of a table is about. @param {...Child} content */
export const heading = (...content) => h("th", { scope: "row" }, ...content);

/** A number in a table. @param {...Child} content */
export const number = (...content) => h("td.num", ...content);

/** A table with a head; its rows are made. @param {string[]} heads @param {HTMLElement[]} rows */
export const grid = (heads, rows) => h("table.grid",
  h("thead", h("tr", heads.map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", rows));

/** A table of names and values. @param {[string, Child][]} facts */
export const table = (facts) => h("table.facts", h("tbody", facts.map(([name, value]) => h("tr", heading(name), h("td.m", value)))));

/** What takes the room that is left in a row. */
export const gapper = () => h("span.gapper");

/** A note. @param {...Child} content */
export const quiet = (...content) => h("span.q", ...content);

/** A file for the user to keep. @param {string} name @param {BlobPart} content @param {string} [type] */
export function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
