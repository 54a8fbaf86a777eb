// What would make the program faster, as Python has tried it: other options and block sizes.

/** @import { Failure } from "../messages.js" */
/** @import { Kernel } from "../model/questions.js" */
/** @import { Explorer, State } from "../model/state.js" */

import { chip, focusOn, h, put, quiet } from "./dom.js";

/** What is known of it; `ask` has Python try, once for each lowering. @param {Explorer} store @param {Kernel} kernel */
export function adviceList(store, kernel) {
  const element = h("div.advice", { tabindex: -1 });
  const canAsk = () => !store.state.estimate?.of_inputs && !kernel.missing("estimate");
  store.on(["advice", "estimate"], ({ advice, estimate }) => put(element, !advice ? estimate && canAsk() && chip("what would be faster", () => {
    // The chip goes, and the focus stays in the card.
    focusOn(element);
    ask();
  })
    : typeof advice === "string" ? h("p.q", advice)
      : advice.map(({ cause, words, told, percent, wish }) => h("p",
        quiet(cause, ": "), h("b", words), ` ${told} (−${percent} %) `, chip("try", () => store.set({ tab: "What if", wish }), { label: `try ${words}` })))));

  async function ask() {
    const { advice, lowering, estimate, variant } = store.state;
    if (advice || !estimate || !canAsk()) return;
    /** @param {State["advice"]} advice */
    const show = (advice) => { if (store.state.lowering === lowering) store.set({ advice }); };
    show("trying what would be faster …");
    show(await kernel.ask({ do: "advice", variant }, show).then(({ advice }) => (advice.length ? advice : "nothing that was tried gains 2 %"),
      (/** @type {Failure} */ { kind, message }) => (kind === "Cancelled" ? "" : message.join(" "))));
  }
  return { element, ask };
}
