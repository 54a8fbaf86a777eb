// Elements without a framework. Text only ever becomes text nodes; markup made by Python goes through `markup`.

/**
 * `h("td.num", { title }, ...children)`: an element with classes, properties, `on...` listeners, attributes and children.
 * The properties may be missing; null and false children are left out.
 */
export function h(name, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  const properties = children[0]?.constructor === Object ? children.shift() : {};
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === false) continue;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && name !== "role") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  put(element, ...children);
  return element;
}

const CONTROLS = "button,select,input,summary,[tabindex]";

/** Replaces what an element holds; null, undefined and false are left out. */
export function put(element, ...children) {
  const focused = element.getRootNode().activeElement;
  const at = focused && focused !== element && element.contains(focused) ? [...element.querySelectorAll(CONTROLS)].indexOf(focused) : -1;
  element.replaceChildren(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  // Were the focus lost with a control that is made anew, the next keys would be the notebook's.
  if (at >= 0) (element.querySelectorAll(CONTROLS)[at] || element.closest(".ttx-explorer"))?.focus({ preventScroll: true });
}

/** What Python drew or set. It is escaped there; whatever could run code is dropped here all the same. */
export function markup(text) {
  const page = new DOMParser().parseFromString(`<body>${text}</body>`, "text/html");
  for (const element of [...page.body.querySelectorAll("*")]) {
    if (/^(script|iframe|object|embed|link|foreignobject)$/i.test(element.tagName)) element.remove();
    for (const { name, value } of [...element.attributes]) {
      const outside = /^(xlink:)?(href|src)$/i.test(name) && !value.startsWith("#");
      if (/^on/i.test(name) || outside) element.removeAttribute(name);
    }
  }
  // What is wider than its place scrolls, with the keyboard too.
  return h("div.drawn", { tabindex: "0" }, ...page.body.childNodes);
}

/** The same for a whole fragment with a style of its own, which must not reach what is around it. */
export function isolated(text) {
  const holder = h("div");
  holder.attachShadow({ mode: "open" }).append(...markup(text).childNodes);
  return holder;
}

/** A button. `title` is also its name for who cannot see it, if it has one. */
export function button(content, onclick, properties) {
  return h("button", { type: "button", onclick, ...properties }, content);
}

/** The head of a table. */
export const heads = (...names) => h("thead", h("tr", names.map((name) => h("th", { scope: "col" }, name))));

/** The figures as people read them: 1,234. */
export const grouped = (value) => Math.round(value).toLocaleString("en-US");

export function bytes(count) {
  if (Math.abs(count) < 1024) return `${grouped(count)} B`;
  const unit = Math.abs(count) < 1024 * 1024 ? [1024, "KiB"] : [1024 * 1024, "MiB"];
  return `${(count / unit[0]).toLocaleString("en-US", { maximumFractionDigits: 1 })} ${unit[1]}`;
}

/** A file for the user to keep. */
export function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** What several views show together. `set` tells the listeners of the keys whose values are new. */
export class Store {
  constructor(state) {
    this.state = state;
    this.listeners = new Set();
  }

  set(patch) {
    const keys = Object.keys(patch).filter((key) => this.state[key] !== patch[key]);
    if (!keys.length) return;
    Object.assign(this.state, patch);
    for (const [wanted, listener] of [...this.listeners]) if (keys.some((key) => wanted.includes(key))) listener();
  }

  /** Calls `listener` now and whenever one of `keys` changes. */
  on(keys, listener) {
    this.listeners.add([keys, listener]);
    listener();
  }
}
