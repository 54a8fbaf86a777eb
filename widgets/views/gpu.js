// The same kernel for a GPU beside ours: the lines of both programs by their kernel line, what stands for what, and the
// passes of both pipelines by what they do. What a kernel was ported from can stand there, too.

/** @import { Concept, Fact, Failure, Gpu, PortedSource } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */
/** @import { Listing, Lowering } from "../model/lowering.js" */

import { ROLES, countLinked, kernelFile, kernelName, listingsBeside, litByOrigins } from "../model/lowering.js";
import { select } from "../model/state.js";
import { errorCard } from "../parts/cards.js";
import { button, chip, choice, closest, find, focusIn, gapper, grid, h, heading, link, offer, put, quiet, set } from "../parts/dom.js";
import { ListingView, kernelSource } from "../parts/listing.js";
import { panes } from "../parts/panes.js";
import { tabList } from "../parts/tabs.js";

const PANELS = ["Lines", "What stands for what", "Passes", "Constructs"];
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
  u{text-decoration:underline 2px color-mix(in srgb,var(--ttx-change) 60%,var(--ttx-surface));text-underline-offset:3px}
  s{text-decoration:underline wavy 1px var(--ttx-remove);text-underline-offset:3px}
  >.lanelines{flex-flow:column}
  .construct{flex:none;height:7.5em;overflow:auto;padding:4px 10px;border-top:var(--rule)}
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
  const theirs = new ListingView(store, "source for the GPU", { marked: (i) => constructs(i + 1).map(([, column, text, row]) => [
    column - 1, column - 1 + text.length, row < 0 ? "s" : "u", row < 0 ? `${text}: no row of the porting table` : ported?.rows[row].name]) });
  const ours = new ListingView(store, "kernel for the chip");
  const lists = [source, theirs, ours];
  const tabs = tabList("GPU");
  const files = tabList("kernels for the chip");
  const arch = choice("what stands beside", () => load(arch.value));
  const status = h("span.q", { role: "status" });
  const about = h("details");
  const name = h("b");
  const construct = h("div.construct", { tabindex: "0", role: "region", label: "constructs of the line" });
  const left = h("section.pane");
  const middle = h("section.pane");
  const lines = h("div.lanelines", panes(remembered, "gpu", [
    ["the first program", left, 30],
    ["both programs", panes(remembered, "gpulanes", [
      ["the second program", middle, 50],
      ["", h("section.pane.files", { label: "chip" }, h("div.filehead", files.element, gapper(), ours.pins.element), ours.element), 50],
    ]), 70],
  ]), construct);
  const body = h("div.scroll", { tabindex: "0", role: "region" });
  const problem = h("div.result");
  const element = h("div.gpuview", h("style", STYLE),
    h("div.tools", h("label", "beside ", arch), tabs.element, status, gapper(), chip("wrap", () => store.set({ wrapCode: !store.state.wrapCode }), { title: "wrap long lines (w)" })),
    about, problem, lines, body);
  /** @type {WeakMap<Lowering, Map<string, Promise<Lane>>>} */
  const known = new WeakMap();
  /** What was asked for last. @type {[lowering: Lowering, arch: string] | undefined} */
  let asked;
  /** @type {Lane | null} */
  let lane = null;
  /** What the kernel was ported from, while that is shown. @type {PortedSource | null} */
  let ported = null;
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

  /** The constructs of a line of the foreign source. @param {number} line */
  const constructs = (line) => ported?.marks.filter(([at]) => at === line) ?? [];

  /** Shows what the porting table says of a line, from 0, of the foreign source. @param {number} i */
  function tell(i) {
    if (!ported) return;
    const { rows } = ported;
    const there = constructs(i + 1);
    const known = [...new Set(there.map(([, , , row]) => row))].filter((row) => row >= 0).map((row) => rows[row]);
    put(construct,
      known.map(({ name, note, pitfall, tilelang, metalium }) => h("p", h("b", name), `: ${note} `, h("b", "Pitfall: "), `${pitfall} `, words([...tilelang, ...metalium]))),
      there.filter(([, , , row]) => row < 0).map(([, , text]) => h("p", h("span.bad", "✖ "), h("code", text), " is unknown: no row of the porting table is about it")),
      !there.length && h("p.q", `${i < 0 ? "Choose a line" : "Nothing to port in this line"}: constructs that the porting table knows are underlined.`));
  }

  /** @param {string[]} all */
  const words = (all) => quiet(all.map((word, i) => [i > 0 && ", ", h("code", word)]));
  // Hovering tells of the line under the pointer, all else of the one that the cursor is on.
  const cursor = () => Number(find(theirs.element, ".cursor")?.dataset.i ?? -1);
  set(theirs.element, {
    onmouseover: (event) => tell(Number(closest(event.target, "[data-i]")?.dataset.i ?? cursor())),
    onmouseleave: () => tell(cursor()),
    onkeydown: () => tell(cursor()),
    onclick: () => tell(cursor()),
  });
  store.on(["pinned"], () => tell(cursor()));

  /** @param {Lane} found */
  function draw(found) {
    lane = found;
    ported = found.port;
    construct.hidden = !ported;
    // What a kernel was written from stands before it, what it becomes after it.
    const [kernelPane, theirPane] = ported ? [middle, left] : [left, middle];
    put(kernelPane, h("div.filehead", h("b", "kernel"), gapper(), source.pins.element), source.element);
    put(theirPane, h("div.filehead", name, gapper(), theirs.pins.element), theirs.element);
    kernelPane.ariaLabel = "kernel";
    theirPane.ariaLabel = found.file?.name ?? "";
    const { offered, recorded, remarks, error, file, listing } = found;
    offer(arch, offered.map(([, words]) => words), offered.map(([one]) => one));
    arch.value = found.arch;
    put(status, `${recorded ? "recorded: " : ""}${remarks[0]}`);
    put(about, remarks.length > 1 && h("summary", "about this lane"), remarks.slice(1).map((one) => h("p", one)));
    put(problem, error && errorCard(store, error));
    put(name, file?.name);
    if (file && listing) theirs.show(listing, file.name.endsWith(".py") ? "python" : "cpp", file.name);
    tell(cursor());
    arrange();
  }

  /** Shows the panel; of a lane that has failed there are only passes. */
  function arrange() {
    const there = lane?.error ? [2] : lane?.port ? [0, 3] : [0, 1, 2];
    if (!there.includes(panel)) panel = there[0];
    tabs.show(lane ? there.map((i) => button(PANELS[i], () => { panel = i; arrange(); })) : []);
    tabs.select(there.indexOf(panel));
    arch.disabled = !arch.options.length;
    about.hidden = !about.firstChild;
    problem.hidden = !problem.firstChild;
    lines.hidden = !lane || panel !== 0;
    body.hidden = !lane || panel === 0;
    body.ariaLabel = PANELS[panel];
    if (lane && panel) put(body, lane.port ? table(lane.port, lane.file?.name ?? "") : panel === 1 ? concepts(lane) : passes(lane));
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

  /** @param {PortedSource} source @param {string} file */
  const table = ({ language, rows, marks }, file) => {
    /** @param {number} row */
    const places = (row) => marks.filter(([, , , own]) => own === row).map(([line, , text]) => h("div", h("code", text), " ", link(`${line}`, () => goTo(file, line), { label: `${file} line ${line}` })));
    return grid(["", language, "TileLang", "TT-Metalium"], [
      ...rows.map(({ name, note, pitfall, tilelang, metalium }, i) => h("tr",
        heading(h("b", name), h("p", note), h("p", h("b", "Pitfall: "), pitfall)), h("td", places(i)), h("td", words(tilelang)), h("td", words(metalium)))),
      ...(marks.some(([, , , row]) => row < 0) ? [h("tr", heading(h("b", h("span.bad", "✖ "), "unknown"), h("p", "No row of the porting table is about these.")), h("td", places(-1)), h("td"), h("td"))] : []),
    ]);
  };

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
    element: h("div.runview", element),
    keys: { n: () => follow(1), p: () => follow(-1), N: () => follow(1), P: () => follow(-1) },
    shown: () => { load(arch.value); reveal(); },
  };
}
