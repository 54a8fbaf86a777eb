// The explorer: the Python half is `ttexplore/widget.py`, what it shows comes from `ttexplore/views/explorer.py`.

import { button, h, put, Store } from "./dom.js";
import { unpacked } from "./data.js";
import { buffersView } from "./buffers.js";
import { codeView } from "./code.js";
import { coresView } from "./cores.js";
import { runView } from "./run.js";
import { select, stepsView } from "./steps.js";
import { whatIfView } from "./whatif.js";

const FORM = 1;
const NARROW_PIXELS = 900;
// From here on a diff has room for two sides.
const SPLIT_PIXELS = 1600;
const KEYS = [
  ["↑ ↓  or  k j", "previous, next step; in a listing: line"],
  ["n p", "next, previous change"],
  ["/", "find in all steps; Enter: next hit"],
  ["h or Enter", "pin the line under the cursor"],
  ["c  s  w", "collapse, side by side, wrap"],
  ["1 … 6", "Steps, Cores, Buffers, Code, Run, What if"],
  ["r", "run"],
  ["?", "this list"],
  ["Esc", "unpin, close; then leave the explorer"],
];

const NO_PYTHON = "no Python behind this page: explore the kernel in a notebook";
const RESTARTED = "the notebook's kernel was restarted: run the cell again";

/** Questions to Python and their answers. `live` is false where there is no Python, or no longer. */
class Kernel {
  constructor(model) {
    this.model = model;
    this.live = typeof model.send === "function" && model.get("live") !== false;
    this.reason = NO_PYTHON;
    // Jupyter cuts the line where it restarts a kernel; JupyterLab tells the status where one has ended by itself.
    this.cut = (_, status = "dead") => /restart|dead/.test(status) && this.lose();
    model.on?.("comm_live_update", this.cut);
    this.status = model.widget_manager?.kernel?.statusChanged;
    this.status?.connect(this.cut);
    this.waiting = new Map();
    this.count = 0;
    // Which lowering is asked about: the first one, or one that what-if has made.
    this.variant = () => "";
    this.heard = (message, buffers) => this.hear(message, buffers);
    model.on?.("msg:custom", this.heard);
  }

  /** Why `what` cannot be asked for; empty where it can. */
  missing(what) {
    return this.live ? this.model.get("missing")?.[what] || "" : this.reason;
  }

  /** Asks; `progress` is called with each word on the way. The promise gives the answer or throws the error. */
  ask(question, progress) {
    const id = `${this.model.model_id || ""}${Date.now()}-${++this.count}`;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed, progress });
      if (this.live) this.model.send({ variant: this.variant(), ...question, id });
      else this.lose();
    });
  }

  /** The Python that made this is gone: nothing that waits for it will be answered. */
  lose() {
    this.live = false;
    this.reason = RESTARTED;
    for (const { failed } of this.waiting.values()) failed({ kind: "Restarted", message: [RESTARTED], hint: [], where: "", code: "" });
    this.waiting.clear();
    this.lost?.(RESTARTED);
  }

  hear(message, buffers) {
    const one = this.waiting.get(message.id);
    if (!one) return;
    if (message.state === "progress") return one.progress?.(message);
    this.waiting.delete(message.id);
    if (message.state === "failed") one.failed(message.error);
    else one.done({ ...message, buffer: buffers?.[0] });
  }

  close() {
    this.model.off?.("msg:custom", this.heard);
    this.model.off?.("comm_live_update", this.cut);
    this.status?.disconnect(this.cut);
  }
}

async function render({ model, el }) {
  const start = performance.now();
  const kernel = new Kernel(model);
  const lowering = await unpacked(model.get("data"));
  const root = h("div.ttx-explorer", { tabindex: "0", role: "region", "aria-label": `exploration of ${lowering.data.kernel}`, "data-lm-suppress-shortcuts": "true" });
  el.append(root);
  if (lowering.data.form !== FORM) {
    root.append(h("p", "This page was made by another version of ttexplore; run the cell again."));
    return () => kernel.close();
  }
  const store = new Store({
    lowering, original: null, variant: "", step: 0, part: "ir", tab: "Steps", hover: null, pinned: null, query: "", hidden: new Set(), open: new Set(),
    collapsed: true, split: false, wrap: false, core: null, metric: "work items", busy: null, progress: null, say: "", help: false,
    edits: {}, recordedRun: model.get("recorded_run") || "", backends: model.get("backends") || [], kinds: model.get("inputs") || [], inputs: { inputs: "random", seed: 0, names: "" }, targets: model.get("targets") || [lowering.data.target], stale: model.get("stale") || "",
  });
  kernel.variant = () => store.state.variant;
  kernel.lost = (stale) => store.set({ stale, say: stale });
  const failed = lowering.steps.findIndex((step) => step.error);
  if (failed >= 0) store.set({ pinned: lowering.lineAsActive(lowering.steps[failed].error.line) });
  select(store, failed >= 0 ? failed : Math.max(0, lowering.steps.findIndex((step) => step.ir.counts.some(Boolean))));

  const makers = { Steps: stepsView, Cores: coresView, Buffers: buffersView, Code: codeView, Run: runView, "What if": whatIfView };
  const views = {};
  const tabs = Object.keys(makers).map((name, i) => button(name, () => store.set({ tab: name }), { role: "tab", class: "tab", title: `${i + 1}` }));
  const tablist = h("div.tabs", { role: "tablist", "aria-label": "views", onkeydown: (event) => {
    const at = tabs.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
    if (to === undefined || at < 0) return;
    const next = tabs[(to + tabs.length) % tabs.length];
    next.click();
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  } }, ...tabs);
  const banner = h("div.banner", { role: "status" });
  const body = h("div.body", { role: "tabpanel" });
  const live = h("div.live", { "aria-live": "polite" });
  const help = h("dialog.help", { "aria-label": "keys" }, h("h3", "Keys"),
    h("table.facts", h("tbody", ...KEYS.map(([key, what]) => h("tr", h("th", { scope: "row" }, h("code", key)), h("td", what))))),
    h("p.q", "Links: ", h("span.e", "exact"), ", ", h("span.d", "derived"), " by a pass, ", h("span.i", "inferred"), " from what encloses the line."),
    button("Close", () => help.close(), { class: "chip" }));
  const head = h("header");
  root.append(head, banner, tablist, body, live, help);

  store.on(["lowering"], () => {
    const { data } = store.state.lowering;
    store.set({ edits: {} });
    put(head, h("h3", data.kernel), h("span.m", data.target), h("span.q", data.where),
      ...data.facts.filter(([name]) => name !== "buffers").map(([name, value]) => h("span.fact", h("span.q", `${name} `), value)),
      h("span.gapper"), button("?", () => help.showModal(), { class: "chip", "aria-label": "keys" }));
  });
  store.on(["stale", "original"], () => {
    const { stale, original } = store.state;
    put(banner, ...[
      stale ? h("p", "⟳ ", stale) : null,
      original ? h("p", "This is the what-if lowering. ", button("Back to the first one", () => {
        store.set({ lowering: original, original: null, variant: "", pinned: null, hover: null });
        select(store, store.state.step);
      }, { class: "link" })) : null,
    ].filter(Boolean));
    banner.hidden = !banner.childElementCount;
  });
  store.on(["tab"], () => {
    const { tab } = store.state;
    views[tab] ||= makers[tab](store, kernel);
    if (body.contains(root.getRootNode().activeElement)) root.focus({ preventScroll: true });
    put(body, views[tab].element);
    tabs.forEach((one) => {
      const chosen = one.textContent === tab;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
    });
    body.setAttribute("aria-label", tab);
    views[tab].shown?.();
  });
  let speaking;
  store.on(["say"], () => {
    clearTimeout(speaking);
    speaking = setTimeout(() => (live.textContent = store.state.say), 150);
  });
  // A control that cannot be used any more loses the focus; the next keys would be the notebook's.
  store.on(["busy"], () => queueMicrotask(() => {
    const { activeElement } = root.getRootNode();
    if (root.contains(activeElement) && (activeElement.disabled || activeElement.hidden)) root.focus({ preventScroll: true });
  }));
  let wasWide = null;
  const sized = new ResizeObserver(() => {
    const narrow = root.clientWidth > 0 && root.clientWidth < NARROW_PIXELS;
    root.classList.toggle("narrow", narrow);
    const wide = root.clientWidth >= SPLIT_PIXELS;
    if (wide !== wasWide) store.set({ split: wide });
    wasWide = wide;
  });
  sized.observe(root);

  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Whatever is typed here is meant for here, not for the notebook around it.
    const typing = event.target.matches("input,select,textarea");
    event.stopPropagation();
    if (typing || help.open) return;
    const toggles = { c: "collapsed", w: "wrap", s: "split" };
    const { tab, step, hover, pinned } = store.state;
    const own = views[tab].keys[event.key];
    if (own) own();
    else if (event.key === "j" || (event.key === "ArrowDown" && tab === "Steps")) select(store, step + 1);
    else if (event.key === "k" || (event.key === "ArrowUp" && tab === "Steps")) select(store, step - 1);
    else if (toggles[event.key]) store.set({ [toggles[event.key]]: !store.state[toggles[event.key]] });
    else if (/^[1-6]$/.test(event.key)) store.set({ tab: Object.keys(makers)[event.key - 1] });
    else if (event.key === "?") help.showModal();
    else if (event.key === "Escape" && (pinned || hover)) store.set({ pinned: null, hover: null });
    else if (event.key === "Escape") root.blur(), document.activeElement?.blur();
    else if (event.key !== "Enter" && event.key !== " ") return;
    else if (event.target !== root) return;
    event.preventDefault();
  });

  requestAnimationFrame(() => performance.measure("ttexplore first paint", { start, end: performance.now() }));
  const told = () => store.set({ stale: model.get("stale") || "" });
  model.on?.("change:stale", told);
  return () => {
    kernel.close();
    sized.disconnect();
    model.off?.("change:stale", told);
  };
}

export default { render };
