// The explorer, as anywidget wants it. Python's half is `ttexplore/session/widget.py`; README.md says what is where.

/** @import { Kernel as Python, Model } from "./model/questions.js" */
/** @import { Explorer } from "./model/state.js" */

import { followEstimates } from "./model/estimates.js";
import { keys, meaning } from "./model/keys.js";
import { isOutdated, kernelText, lowerDrafts } from "./model/live.js";
import { litByLine, unpacked } from "./model/lowering.js";
import { goTo, placeOf, viewText } from "./model/place.js";
import { Kernel } from "./model/questions.js";
import { OFF, ON, Remembered } from "./model/remembered.js";
import { explore, opened, select } from "./model/state.js";
import { neighbourOf } from "./model/steps.js";
import { followOthers } from "./model/work.js";
import { besideChip } from "./parts/beside.js";
import { copyChip } from "./parts/cards.js";
import { player } from "./parts/clock.js";
import { all, button, chip, classed, closest, focusIn, focusOn, h, heading, link, put, quiet, set } from "./parts/dom.js";
import { estimateBadge } from "./parts/estimate.js";
import { launchBar, variantOf } from "./parts/launches.js";
import { heightBar } from "./parts/panes.js";
import { followRecordings } from "./parts/record.js";
import { tabList } from "./parts/tabs.js";
import { explainTerms } from "./parts/terms.js";
import { buffersView } from "./views/buffers.js";
import { codeView } from "./views/code.js";
import { coresView } from "./views/cores.js";
import { lateView } from "./views/late.js";
import { runView } from "./views/run.js";
import { finder } from "./views/search.js";
import { stepsView } from "./views/steps.js";

const FORM = 5;
// Widths of the explorer itself: below the first everything stands below each other, below the second the kernel stands
// above what is beside it elsewhere.
const NARROW_PIXELS = 900;
const MEDIUM_PIXELS = 1250;
// From this height on there is room for a second line below the steps.
const TALL_PIXELS = 840;
// From here on all three kernels have room side by side, and a diff for two sides; two of them unless it is narrow.
const COLUMNS_PIXELS = 1500;
const SPLIT_PIXELS = 2200;

/**
 * A view: its element, what its keys do, and what is to be done whenever it comes into the page.
 * @typedef {{ element: HTMLElement, keys?: Record<string, () => void>, shown?: () => void }} View
 */

/** The views by the names of their tabs, in order. @type {Record<string, (store: Explorer, kernel: Python, model: Model) => View>} */
const VIEWS = {
  Steps: stepsView,
  Cores: coresView,
  Buffers: buffersView,
  Code: codeView,
  Run: (store, kernel, model) => runView(store, kernel, model.get("recorded_run")),
  "What if": lateView("whatif", "fork"),
  GPU: lateView("gpu", "gpu"),
};
const TABS = Object.keys(VIEWS);

/** @param {{ model: Model, el: HTMLElement }} where */
async function render({ model, el }) {
  const start = performance.now();
  const left = model.get("here") ?? {};
  const launches = model.get("launches") ?? [];
  const wanted = { ...model.get("place"), ...left }.launch;
  // The one that is asked for, else the one that failed.
  const at = launches.findIndex(({ name, failed }) => (wanted ? name === wanted : failed));
  const launch = Math.max(0, at);
  const lowering = await unpacked((launches[launch] ?? { data: model.get("data") }).data);
  const root = h("div.ttx-explorer", { tabindex: "0", role: "region", label: `exploration of ${lowering.kernel}`, "data-lm-suppress-shortcuts": "true" });
  el.append(root);
  if (lowering.form !== FORM) {
    root.append(h("p", "Another version of ttexplore made this page: rerun the cell."));
    return;
  }
  const stale = () => model.get("stale") || "";
  explainTerms(root, lowering.terms);
  const remembered = new Remembered(model);
  const store = opened(lowering, {
    first: kernelText(lowering), launch, variant: launches.length ? variantOf(launch) : "", remembered, wrap: remembered.numbers("wrap", [OFF])[0] === ON, wrapCode: remembered.numbers("wrapCode", [ON])[0] === ON,
    backends: model.get("backends") || [], kinds: model.get("inputs") || [], targets: model.get("targets") || [lowering.target], stale: stale(),
  });
  goTo(store, { ...model.get("place"), ...left }, TABS);
  const kernel = new Kernel(model, () => store.state.variant, (reason) => store.set({ stale: reason || stale(), say: reason || "the notebook's kernel is there again" }));

  store.on(["tab", "step", "pinned", "file", "lowering"], (state) => {
    if (state.original) return;
    const text = kernelText(state.lowering);
    const name = launches[state.launch]?.name;
    model.set?.("here", { ...placeOf(state), ...(name && { launch: name }), ...(text !== state.first && { text }) });
    if (kernel.live) model.save_changes?.();
  });
  lowerDrafts(store, kernel);
  if (left.text && !kernel.missing("edit")) store.set({ draft: left.text });

  /** @type {Record<string, View>} */
  const views = {};
  const tabs = tabList("views");
  tabs.show(TABS.map((name, i) => button(name, () => store.set({ tab: name }), { title: `${i + 1}` })));
  const banner = h("div.banner", { role: "status" });
  const body = h("div.body", { role: "tabpanel" });
  const live = h("div.live", { "aria-live": "polite" });
  const help = h("dialog.help", { label: "keys" }, h("h3", "Keys"),
    h("table.facts", h("tbody", ...keys(TABS).map(([key, what]) => h("tr", heading(h("code", key)), h("td", what))))),
    h("p.q", "Steps: ● change the program, ◐ only the plan, ○ nothing, ✖ failed. Lines: + added, − removed, ~ only indented, ≈ only renamed, ⇄ moved."),
    h("p.q", "Kernel lines: ", h("span.e", "exact"), ", ", h("span.d", "derived"), " by a pass, ", h("span.i", "inferred"), " from the enclosing statement."),
    h("details", h("summary", "Terms"), [...new Set(Object.values(lowering.terms))].sort().map((meaning) => h("p", meaning))),
    chip("Close", () => help.close()));
  const head = h("header");
  const beside = besideChip(model, root, lowering.kernel);
  const badge = estimateBadge(store, kernel, kernel.live || !!model.get("estimate"));
  const fullScreen = chip("", () => store.set({ full: !store.state.full }), { title: "f" });

  /** Fills the screen, or the window where the browser does not allow that. @param {boolean} full */
  function fill(full) {
    classed(root, "full", full);
    root.popover = null;
    if (!full) {
      if (root.matches(":fullscreen")) document.exitFullscreen();
      return;
    }
    root.requestFullscreen().catch(() => {
      root.popover = "manual";
      root.showPopover();
      focusOn(root);
    });
  }
  const search = finder(store, root);
  root.append(head, launchBar(store, launches, model.get("chain") ?? "") ?? "", banner, h("div.desk", search.element, body), heightBar(remembered, root), live, help);

  const copyLink = copyChip(store, "what opens this place", () => kernel.live ? viewText(placeOf(store.state), launches.length ? store.state.launch : -1) : location.href, "link");
  const coloursChip = chip("colours", () => store.set({ colours: !store.state.colours }), { title: "a colour for each kernel line, wherever it went (l)" });
  store.on(["colours"], ({ colours }) => set(coloursChip, { "aria-pressed": colours }));
  const chips = h("span.pictures", beside, chip("search", search.open, { title: "/" }), copyLink, coloursChip, fullScreen, chip("?", () => help.showModal(), { label: "keys" }));
  store.on(["lowering"], ({ lowering, before }) => put(head,
    h("h3", { title: lowering.where }, lowering.kernel), h("span.m", { title: lowering.facts.map((fact) => fact.join(" ")).join("\n") }, lowering.target), quiet(lowering.where), tabs.element, badge, refused(lowering),
    h("span.facts", lowering.facts.filter(([name]) => name !== "buffers").map(([name, value]) => h("span.fact", {
      class: before && !before.facts.some((one) => `${one}` === `${[name, value]}`) ? "fact flash" : "fact", title: `${name} ${value}`,
    }, quiet(`${name} `), value))),
    chips));
  /** The way to the step that failed, from wherever the reader is. @param {import("./model/lowering.js").Lowering} lowering */
  function refused({ steps }) {
    const failed = steps.findLastIndex((step) => step.error);
    return failed >= 0 && link(`✖ refused at ${steps[failed].letter}`, () => select(store, failed, { tab: "Steps", pinned: litByLine(lowering, steps[failed].error?.line ?? 0) }), { class: "link bad refused" });
  }
  store.on(["full"], ({ full }) => {
    put(fullScreen, full ? "leave full screen" : "full screen");
    fill(full);
  });
  store.on(["wrapCode"], ({ wrapCode }) => classed(root, "wrapping", wrapCode));
  for (const name of /** @type {const} */ (["wrap", "wrapCode"])) {
    let kept = store.state[name];
    store.on([name], ({ [name]: wraps }) => {
      if (wraps !== kept) remembered.keep(name, [wraps ? ON : OFF]);
      kept = wraps;
    });
  }
  store.on(["stale", "original", "lost"], ({ stale, original, back, lost }) => {
    put(banner,
      stale && h("p", "⟳ ", stale),
      lost && h("p", lost),
      original && h("p", "This is the what-if lowering. ", link("Back to the original", () =>
        explore(store, { lowering: original, original: null, variant: "" }, store.state.step, back ?? {}))));
    banner.hidden = !banner.firstChild;
  });
  store.on(["tab"], ({ tab }) => {
    views[tab] ||= VIEWS[tab](store, kernel, model);
    if (focusIn(body)) focusOn(root);
    put(body, views[tab].element);
    tabs.select(TABS.indexOf(tab));
    body.ariaLabel = tab;
    views[tab].shown?.();
  });
  player(store, root);
  followRecordings(store, model.get("timeline"));
  store.on(["draftError", "draft", "lowering"], (state) => classed(root, "outdated", isOutdated(state)));
  store.on(["before"], ({ before }) => {
    if (!before) for (const { element } of [{ element: root }, ...Object.values(views)]) all(element, ".flash").forEach((one) => classed(one, "flash", false));
  });
  let speaking = 0;
  store.on(["say"], () => {
    clearTimeout(speaking);
    speaking = setTimeout(() => (live.textContent = store.state.say), 150);
  });
  // A control that cannot be used any more loses the focus; the next keys would be the notebook's.
  store.on(["busy"], () => queueMicrotask(() => {
    if (focusIn(root)?.matches(":disabled,[hidden]")) focusOn(root);
  }));
  /** @type {boolean | null} */
  let wasWide = null;
  const sized = new ResizeObserver(() => {
    const { offsetWidth: width } = root;
    if (!width) return;
    // A view that has a place of its own fills it, and is beside the notebook already.
    classed(root, "filled", !!closest(root, ".ttx-filled"));
    if (beside) beside.hidden = !closest(root, ".jp-NotebookPanel");
    fit();
    classed(root, "narrow", width < NARROW_PIXELS);
    classed(root, "tall", root.clientHeight >= TALL_PIXELS);
    const room = width - search.element.offsetWidth;
    classed(root, "medium", room < MEDIUM_PIXELS);
    const split = room >= SPLIT_PIXELS;
    if (split !== wasWide) store.set({ split });
    wasWide = split;
    store.set({ columns: width < NARROW_PIXELS ? 1 : room < COLUMNS_PIXELS ? 2 : 3 });
  });
  sized.observe(root);
  sized.observe(body);
  /** What the explorer is scrolled in; a frame of which nobody knows how it grows is no measure. */
  const scroller = () => closest(root, ".jp-WindowedPanel-outer,.jp-Notebook");
  function fit() {
    const room = scroller()?.clientHeight ?? (window === top ? innerHeight : 0);
    if (room) root.style.setProperty("--room", `${room}px`);
  }
  addEventListener("resize", fit);

  set(root, {
    // The browser has a way out of its own.
    onfullscreenchange: () => { if (!root.matches(":fullscreen")) store.set({ full: false }); },
    onkeydown: (event) => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      // Whatever is typed here is meant for here, not for the notebook around it.
      event.stopPropagation();
      if (help.open) return;
      if (/** @type {Element} */ (target).matches("input,select,textarea")) {
        if (key === "Escape") focusOn(root);
        return;
      }
      const { state } = store;
      const own = views[state.tab].keys?.[key];
      const means = meaning(key, state, TABS);
      if (own) own();
      else if (means === "help") help.showModal();
      else if (means === "search") search.open();
      else if (means === "unpin") store.set({ pinned: null, hover: null });
      else if (means === "leave") {
        root.blur();
        focusIn(document.body)?.blur();
      } else if (!means) {
        if (target !== root || (key !== "Enter" && key !== " ")) return;
      } else if ("move" in means) select(store, neighbourOf(state.lowering.steps, state.step, means.move));
      else if ("turn" in means) store.set({ [means.turn]: !state[means.turn] });
      else store.set(means);
      event.preventDefault();
    },
  });

  // Asked for when the explorer comes into sight: a page may have many.
  const seen = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    seen.disconnect();
    followEstimates(store, kernel, model.get("estimate"));
  });
  requestAnimationFrame(() => {
    performance.measure("ttexplore first paint", { start, end: performance.now() });
    seen.observe(root);
  });
  /** @type {["change:stale" | "change:place" | "change:running", () => void][]} */
  const listeners = [
    ["change:stale", () => store.set({ stale: stale() })],
    ["change:place", () => goTo(store, model.get("place") ?? {}, TABS)],
    ["change:running", () => followOthers(store, kernel)],
  ];
  for (const [event, listener] of listeners) model.on?.(event, listener);
  followOthers(store, kernel);
  return () => {
    kernel.close();
    seen.disconnect();
    sized.disconnect();
    removeEventListener("resize", fit);
    for (const [event, listener] of listeners) model.off?.(event, listener);
  };
}

export default { render };
