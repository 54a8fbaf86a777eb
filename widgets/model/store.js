// What several views show together.

/** `set` calls the listeners of the keys whose values are new. @template {object} State */
export class Store {
  /** @type {[(keyof State)[], (state: State) => void][]} */
  #listeners = [];

  /** @param {State} state */
  constructor(state) {
    this.state = state;
  }

  /** @param {Partial<State>} patch */
  set(patch) {
    const names = /** @type {(keyof State)[]} */ (Object.keys(patch)).filter((name) => this.state[name] !== patch[name]);
    Object.assign(this.state, patch);
    for (const [wanted, listener] of [...this.#listeners]) if (names.some((name) => wanted.includes(name))) listener(this.state);
  }

  /** Calls `listener` now and whenever one of `names` changes. @param {(keyof State)[]} names @param {(state: State) => void} listener */
  on(names, listener) {
    this.#listeners.push([names, listener]);
    listener(this.state);
  }
}
