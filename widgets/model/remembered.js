// What a user has arranged: kept by the widget where it has a place for that, and by the browser for the next explorer.

/** @import { Arrangement } from "../messages.js" */
/** @import { Model } from "./questions.js" */

const KEY = "ttexplore";
/** What is remembered of a switch. */
export const [OFF, ON] = [2, 1];

/** A browser may forbid its storage; then only the widget remembers. @returns {Arrangement} */
function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** What is remembered under a name; `usable` judges it, as anything may have been stored. */
export class Remembered {
  #model;
  /** @type {Arrangement} */
  #all;

  /** @param {Model} model */
  constructor(model) {
    this.#model = model;
    this.#all = { ...stored(), ...model.get("arrangement") };
  }

  /**
   * Numbers, as many as there are in `otherwise`, which stands where none are remembered.
   * @param {string} name
   * @param {number[]} otherwise
   */
  numbers(name, otherwise) {
    const found = this.#all[name];
    const usable = Array.isArray(found) && found.length === otherwise.length && found.every((one) => Number.isFinite(one) && one > 0);
    return usable ? [...found] : otherwise;
  }

  /** @param {string} name @param {number[]} numbers nothing for what it was at first */
  keep(name, numbers) {
    const { [name]: _, ...others } = this.#all;
    this.#all = numbers.length ? { ...others, [name]: numbers } : others;
    this.#model.set?.("arrangement", this.#all);
    this.#model.save_changes?.();
    try {
      localStorage.setItem(KEY, JSON.stringify(this.#all));
    } catch {
      // The widget remembers.
    }
  }
}
