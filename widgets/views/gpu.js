// The same kernel for a GPU beside ours: the lines of both programs by their kernel line, what stands for what, and the
// passes of both pipelines by what they do.

/** @import { Concept, Fact, Failure, Gpu } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Listing, Lowering } from "../model/lowering.js" */

import { ROLES, countLinked, kernelFile, kernelName, listingsBeside, litByOrigins } from "../model/lowering.js";
import { select } from "../model/state.js";
import { errorCard } from "../parts/cards.js";
import { button, chip, choice, focusIn, gapper, grid, h, heading, link, offer, put, quiet } from "../parts/dom.js";
import { ListingView, kernelSource } from "../parts/listing.js";
import { panes } from "../parts/panes.js";
import { tabList } from "../parts/tabs.js";

const PANELS = ["Lines", "What stands for what", "Passes"];
const STYLE = `
.ttx-explorer .gpuview{
  &{display:flex;flex-flow:column;height:var(--tall,min(640px,88vh))}
  >.tools{flex:none;border-bottom:var(--rule);align-items:center}
  >.tools .tabs{border:0;padding:0}
  >.lanelines,>.lanelines>.panes{flex:1;display:flex;min-height:0;min-width:0}
  >.scroll{flex:1;overflow:auto;padding:4px 10px}
  details{padding:0 10px;flex:none}
  table{width:100%;table-layout:fixed}
  table.grid :is(td,th){white-space:normal;overflow-wrap:anywhere;padding:4px 18px 6px 0}
  th p{font-family:var(--ttx-ui);color:var(--ttx-muted);margin:2px 0}
  td>div{margin-bottom:3px}
}
.ttx-explorer.medium .gpuview{
  >.lanelines>.panes{flex-flow:column}
  .panes .panes{flex-flow:row}
}
.ttx-explorer.narrow .gpuview{
  &{height:var(--tall,860px)}
  .panes .panes{flex-flow:column}
}
.ttx-explorer:is(.full,.filled) :is(.runview:has(>.gpuview),.gpuview){height:100%}
`;

/** @typedef {Gpu & { listing: Listing | undefined }} Lane */

/** @param {Explorer} store @param {Kernel} kernel @param {Gpu[]} [brought] the lanes that a page brings along */
export function gpuView(store, kernel, brought = []) {
  const { remembered, lowering: first } = store.state;
  const source = kernelSource(store);
  const theirs = new ListingView(store, "source for the GPU");
  const ours = new ListingView(store, "kernel for the chip");
  const lists = [source, theirs, ours];
  const tabs = tabList("GPU");
  const files = tabList("kernels for the chip");
  const arch = choice("architecture", () => load(arch.value));
  const status = h("span.q", { role: "status" });
  const about = h("details");
  const name = h("b");
  const lines = h("div.lanelines", panes(remembered, "gpu", [
    ["the kernel", h("section.pane", { label: "kernel" }, h("div.filehead", h("b", "kernel"), gapper(), source.pins.element), source.element), 30],
    ["both programs", panes(remembered, "gpulanes", [
      ["the source for the GPU", h("section.pane", { label: "GPU" }, h("div.filehead", name, gapper(), theirs.pins.element), theirs.element), 50],
      ["", h("section.pane.files", { label: "chip" }, h("div.filehead", files.element, gapper(), ours.pins.element), ours.element), 50],
    ]), 70],
  ]));
  const body = h("div.scroll", { tabindex: "0", role: "region" });
  const problem = h("div.result");
  const element = h("div.gpuview", h("style", STYLE),
    h("div.tools", h("label", "GPU ", arch), tabs.element, status, gapper(), chip("wrap", () => store.set({ wrap: !store.state.wrap }), { title: "wrap long lines (w)" })),
    about, problem, lines, body);
  /** @type {WeakMap<Lowering, Map<string, Promise<Lane>>>} */
  const known = new WeakMap();
  /** What was asked for last. @type {[lowering: Lowering, arch: string] | undefined} */
  let asked;
  /** @type {Lane | null} */
  let lane = null;
  let panel = 0;
  // What was chosen; until then, what has lines of what is pinned is shown.
  let role = "";
  /** @type {{ role: string, listing: Listing | undefined }} */
  let shown = { role: "", listing: undefined };

  /** @param {Lowering} lowering @param {string} wanted @returns {Promise<Lane>} */
  function laneOf(lowering, wanted) {
    const lanes = known.get(lowering) ?? new Map();
    known.set(lowering, lanes);
    const there = lanes.get(wanted);
    if (there) return there;
    const along = lowering === first && brought.find((one) => !wanted || one.arch === wanted);
    const found = (along ? Promise.resolve({ gpu: along }) : kernel.ask({ do: "gpu", variant: store.state.variant, arch: wanted }, (words) => put(status, words)))
      .then(({ gpu }) => ({ ...gpu, listing: gpu.file ? listingsBeside(gpu, lowering)[gpu.file.listing] : undefined }));
    lanes.set(wanted, found);
    // Whoever looks again may have mended what was missing.
    found.then((made) => lanes.set(made.arch, found), () => lanes.delete(wanted));
    return found;
  }

  /** @param {string} wanted an architecture; empty for the first that there is */
  async function load(wanted) {
    const { lowering, tab } = store.state;
    if (tab !== "GPU" || (asked?.[0] === lowering && asked[1] === wanted)) return;
    const mine = asked = [lowering, wanted];
    put(status, "asking TileLang …");
    try {
      const found = await laneOf(lowering, wanted);
      if (asked !== mine) return;
      asked[1] = found.arch;
      draw(found);
    } catch (error) {
      if (error instanceof Error) throw error;
      if (asked !== mine) return;
      asked = undefined;
      lane = null;
      put(status);
      put(about);
      put(problem, errorCard(store, /** @type {Failure} */ (error)), chip("try again", () => load(wanted)));
      arrange();
    }
  }

  /** @param {Lane} found */
  function draw(found) {
    lane = found;
    const { offered, recorded, remarks, error, file, listing } = found;
    offer(arch, offered.map(([, words]) => words), offered.map(([one]) => one));
    arch.value = found.arch;
    put(status, `${recorded ? "recorded: " : ""}${remarks[0]}`);
    put(about, h("summary", "about this lane"), remarks.slice(1).map((one) => h("p", one)));
    put(problem, error && errorCard(store, error));
    put(name, file?.name);
    if (file && listing) theirs.show(listing, "cpp", file.name);
    arrange();
  }

  /** Shows the panel; of a lane that has failed there are only passes. */
  function arrange() {
    const there = lane?.error ? [2] : PANELS.map((_, i) => i);
    if (!there.includes(panel)) panel = there[0];
    tabs.show(lane ? there.map((i) => button(PANELS[i], () => { panel = i; arrange(); })) : []);
    tabs.select(there.indexOf(panel));
    arch.disabled = !arch.options.length;
    about.hidden = !about.firstChild;
    problem.hidden = !problem.firstChild;
    lines.hidden = !lane || panel !== 0;
    body.hidden = !lane || panel === 0;
    body.ariaLabel = PANELS[panel];
    if (lane && panel) put(body, panel === 1 ? concepts(lane) : passes(lane));
    reveal();
  }

  // Lists have no height before they are in the page.
  const reveal = () => lists.forEach((list) => list.pins.reveal());

  /** Goes to a line of one of the programs, and pins what it comes from. @param {string} file @param {number} line */
  function goTo(file, line) {
    const { lowering } = store.state;
    const own = ROLES.find((one) => kernelName(one) === file);
    const listing = own ? kernelFile(lowering, own).listing : lane?.listing;
    panel = 0;
    role = own ?? role;
    arrange();
    drawOurs();
    store.set({ pinned: listing ? litByOrigins(lowering, listing.origins(line - 1), `${file} line ${line}`) : null, say: `${file} line ${line}` });
    (own ? ours : theirs).goTo(line);
  }

  /** @param {Fact[]} facts */
  const told = (facts) => facts.length ? facts.map(({ text, lines, more }) => h("div", text, " ", lines.map(([file, from, to], i) => [
    file !== lines[i - 1]?.[0] && quiet(` ${file}`), " ", link(from === to ? `${from}` : `${from}–${to}`, () => goTo(file, from), { label: `${file} line ${from}` })]), more && quiet(` ${more}`)))
    : quiet("not in this program");

  /** @param {Lane} of */
  const concepts = (of) => grid(["", of.arch, store.state.lowering.target], of.concepts.map((/** @type {Concept} */ { names, sentence, facts }) => h("tr",
    heading(h("b", names.join(" → ")), h("p", sentence)), facts.map((side) => h("td", told(side))))));

  /** @param {Lane} of */
  const passes = (of) => [
    grid(["", of.arch, store.state.lowering.target], of.passes.map(({ name, sentence, gpu, ours: own }) => h("tr",
      heading(h("b", name), h("p", sentence)),
      h("td", gpu.length ? gpu.map((words) => h("div.m", words)) : quiet("·")),
      h("td", own.length ? own.map(([words, letter]) => h("div", link(words, () => {
        select(store, store.state.lowering.steps.findIndex((step) => step.letter === letter), { tab: "Steps" });
      }, { class: "link m" }))) : quiet("·"))))),
    h("p.q", "● changes the program or the plan, ○ changes nothing, ✖ fails"),
  ];

  store.on(["lowering", "tab"], ({ lowering }) => {
    if (lane && asked?.[0] !== lowering) {
      lane = null;
      arrange();
    }
    load(arch.value);
  });
  function drawOurs() {
    const { lowering, pinned } = store.state;
    const there = ROLES.filter((one) => kernelFile(lowering, one).file);
    /** @param {string} one */
    const count = (one) => {
      const { listing } = kernelFile(lowering, one);
      return pinned && listing ? countLinked(lowering, listing, pinned) : 0;
    };
    // As long as none has been chosen, one that comes from what is pinned is shown.
    const now = role || [shown.role, ...there].find(count) || shown.role || there[0];
    files.show(there.map((one) => {
      const hits = count(one);
      return button([kernelName(one), hits > 0 && h("span.hits", ` ${hits}`)], () => { role = one; drawOurs(); }, { title: hits ? `${kernelName(one)}: ${hits} lines of the pinned one` : kernelName(one) });
    }));
    files.select(there.indexOf(now));
    const { file, listing } = kernelFile(lowering, now);
    if (file && listing && listing !== shown.listing) ours.show(listing, file.language, file.name);
    shown = { role: now, listing };
  }
  store.on(["lowering", "pinned"], drawOurs);

  /** Steps in the list that has the focus, else in the source for the GPU. @param {number} direction */
  const follow = (direction) => (lists.find((list) => focusIn(list.element)) ?? theirs).pins.step(direction);

  return {
    element,
    keys: { n: () => follow(1), p: () => follow(-1), N: () => follow(1), P: () => follow(-1) },
    shown: () => { load(arch.value); reveal(); },
  };
}
