// The predicted time in one line; hovering over it or reaching it with Tab shows a card with how sure it is, and what
// would make the program faster.

/** @import { Estimate, Failure } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer } from "../model/state.js" */

import { adviceList } from "./advice.js";
import { errorCard } from "./cards.js";
import { below, chip, focusIn, focusOn, grid, h, heading, number, put, set, table } from "./dom.js";

/** Its room is taken from the start, so that nothing moves once it is known. @param {Explorer} store @param {Kernel} kernel @param {boolean} wanted false in a page that has none and nobody to ask */
export function estimateBadge(store, kernel, wanted) {
  const card = h("div.estimate", { popover: "manual", role: "group", label: "estimate" });
  const badge = chip("", show);
  const element = h("span.estimated", badge, card);
  const problem = h("div");
  const advice = adviceList(store, kernel);
  const byLine = chip("what each line costs", async () => {
    // A disabled button loses the focus, and the card closes without it.
    focusOn(badge);
    byLine.disabled = true;
    put(problem);
    const { estimate, inputs } = store.state;
    try {
      const { costs } = await kernel.ask({ do: "costs", ...(estimate?.of_inputs && inputs) });
      if (store.state.estimate === estimate) store.set({ costs });
    } catch (error) {
      if (error instanceof Error) throw error;
      if (store.state.estimate !== estimate) return;
      put(problem, errorCard(store, /** @type {Failure} */ (error)));
      byLine.disabled = false;
    }
  }, { title: "shown beside the lines in Steps and Code" });
  store.on(["costs", "estimate"], ({ costs, estimate }) => {
    byLine.hidden = !estimate || !!costs || !!kernel.missing("estimate");
    byLine.disabled = false;
    put(problem);
  });
  store.on(["estimate", "noEstimate", "lowering"], ({ estimate, noEstimate, lowering }) => {
    badge.hidden = !wanted || lowering.steps.some((step) => step.error);
    badge.disabled = !estimate && !noEstimate;
    badge.style.setProperty("--share", `${estimate?.share ?? 0}%`);
    put(badge, estimate?.badge ?? (noEstimate ? "no estimate" : "estimating …"));
    open(false);
    put(card, estimate ? [told(estimate), advice.element, byLine, problem] : typeof noEstimate === "string" ? h("p", noEstimate) : errorCard(store, noEstimate));
  });

  store.on(["tab"], () => open(false));

  /** @param {boolean} shown */
  function open(shown) {
    if (card.isConnected) card.togglePopover(shown);
    badge.ariaExpanded = `${shown}`;
  }

  function show() {
    if (badge.disabled) return;
    open(true);
    below(card, badge);
  }
  set(badge, { onmouseenter: show, onfocus: show, class: "chip badge" });
  set(element, {
    onmouseleave: () => open(!!focusIn(element)),
    onfocusout: (event) => { if (!element.contains(/** @type {Node | null} */ (event.relatedTarget))) open(false); },
    onkeydown: (event) => {
      if (event.key !== "Escape" || !card.matches(":popover-open")) return;
      event.stopPropagation();
      open(false);
    },
  });
  return element;
}

/** @param {Estimate} estimate */
const told = ({ title, facts, gains }) => [
  h("p", title),
  table(facts),
  grid(["if it were free", "time", "saves"], gains.filter(([, , percent]) => percent).map(([name, time, percent]) => h("tr", heading(name), number(time),
    h("td", h("i.gain", { style: `--share:${percent}%` }), `${percent} %`)))),
  h("p.q", `less than 1 %: ${gains.filter(([, , percent]) => !percent).map(([name]) => name).join(", ")}`),
];
