// Questions to Python and their answers.

/** @import { Answers, Bytes, Failure, Message, Question, Running, Traits } from "../messages.js" */

const NO_PYTHON = "this page has no Python: explore the kernel in a notebook";
const AWAY = "there is no connection to the notebook's kernel: what needs Python waits for it";
const GONE = "the notebook's kernel restarted or ended: run the cell again";

/**
 * What Jupyter, or a page without it, gives the widget; of its events only those that are heard here.
 * @typedef {object} Model
 * @property {<Name extends keyof Traits>(name: Name) => Traits[Name]} get
 * @property {Hears} [on]
 * @property {Hears} [off]
 * @property {(question: object) => void} [send]
 * @property {<Name extends keyof Traits>(name: Name, value: Traits[Name]) => void} [set]
 * @property {() => void} [save_changes]
 * @property {string} [model_id]
 * @property {Manager} [widget_manager]
 */
/**
 * Of the widget manager what is used here; JupyterLab's has all of it.
 * @typedef {object} Manager
 * @property {{ [name in "statusChanged" | "connectionStatusChanged" | "disposed"]?: Signal } | null} [kernel]
 * @property {{ model?: { cells?: Iterable<{ sharedModel: Cell }> }, addSibling: (widget: Panel, where: { ref: string | undefined, mode: string }) => void, disposed: { connect: (listener: () => void) => void } }} [context]
 * @property {(identity: string) => Promise<object>} get_model
 * @property {(model: object) => Promise<{ luminoWidget: Panel }>} create_view
 */
/** @typedef {{ readonly source: string, updateSource: (start: number, end: number, text: string) => void }} Cell */
/** @typedef {{ node: HTMLElement, title: object, dispose: () => void, disposed: { connect: (listener: () => void) => void }, constructor: PanelClass }} Panel */
/** @typedef {{ new (): Panel, attach: (panel: Panel, host: HTMLElement) => void }} PanelClass */
/** @typedef {{ connect: (listener: Cut) => void, disconnect: (listener: Cut) => void }} Signal */
/** @typedef {(sender: unknown, status?: unknown) => void} Cut */
/** @typedef {(message: Message, buffers?: Bytes[]) => void} Heard */
/** @typedef {((event: "msg:custom", listener: Heard) => void) & ((event: "comm_live_update", listener: Cut) => void) & ((event: "change:stale" | "change:place" | "change:running", listener: () => void) => void)} Hears */
/** @typedef {Answers[Question["do"]]} Answer */

/** `live` is false where there is no Python, or no longer. */
export class Kernel {
  #reason = NO_PYTHON;
  #away = "";
  #count = 0;
  /** The last edit; a newer one takes its place. */
  #edit = "";
  /** The questions that were asked here. @type {Set<string>} */
  #own = new Set();
  /** @type {Map<string, { done: (answer: Answer) => void, failed: (error: Failure) => void, progress: ((text: string) => void) | undefined }>} */
  #waiting = new Map();
  #model;
  #variant;
  #lost;
  /** @type {Signal[]} */
  #signals;

  /**
   * `variant` names the lowering that is asked about; `lost` is told why no more answers will come, or none for now,
   * and nothing once they come again.
   * @param {Model} model
   * @param {() => string} variant
   * @param {(reason: string) => void} lost
   */
  constructor(model, variant, lost) {
    this.#model = model;
    this.#variant = variant;
    this.#lost = lost;
    this.live = typeof model.send === "function" && model.get("live") !== false;
    const { statusChanged, connectionStatusChanged, disposed } = model.widget_manager?.kernel ?? {};
    this.#signals = [statusChanged, connectionStatusChanged, disposed].filter((one) => one !== undefined);
    model.on?.("msg:custom", this.#hear);
    model.on?.("comm_live_update", this.#cut);
    for (const signal of this.#signals) signal.connect(this.#cut);
  }

  /** The front end's own part, where there is one. */
  get manager() {
    return this.#model.widget_manager;
  }

  /** Why `what` cannot be asked for; empty where it can. @param {Question["do"]} what */
  missing(what) {
    return this.live ? this.#away || this.#model.get("missing")?.[what] || "" : this.#reason;
  }

  /**
   * Asks; `progress` is called with each word on the way. The promise gives the answer or throws the error.
   * @template {Question} Asked
   * @param {Asked} question
   * @param {(text: string) => void} [progress]
   * @returns {Promise<Answers[Asked["do"]]>}
   */
  ask(question, progress) {
    const id = `${this.#model.model_id || ""}${Date.now()}-${++this.#count}`;
    this.#own.add(id);
    if (question.do === "edit") {
      if (this.#waiting.has(this.#edit)) this.#send({ do: "cancel", edit: this.#edit });
      this.#edit = id;
    }
    const answer = this.#answer(id, progress);
    if (this.live) this.#send({ variant: this.#variant(), ...question, id });
    else this.#lose();
    return /** @type {Promise<Answers[Asked["do"]]>} */ (answer);
  }

  /** Ends all that Python does for this explorer; each question is answered with that. */
  cancel() {
    if (this.live) this.#send({ do: "cancel" });
  }

  /** What Python is doing and was not asked for here. @returns {Running[]} */
  others() {
    return this.live ? (this.#model.get("running") ?? []).filter(({ id }) => !this.#own.has(id)) : [];
  }

  /** The answer to a question that was not asked here. @param {string} id @param {(text: string) => void} progress */
  follow(id, progress) {
    return this.#answer(id, progress);
  }

  /** @param {string} id @param {((text: string) => void) | undefined} progress @returns {Promise<Answer>} */
  #answer(id, progress) {
    return new Promise((done, failed) => this.#waiting.set(id, { done, failed, progress }));
  }

  close() {
    this.#model.off?.("msg:custom", this.#hear);
    this.#model.off?.("comm_live_update", this.#cut);
    for (const signal of this.#signals) signal.disconnect(this.#cut);
  }

  /** Jupyter cuts the line where it restarts a kernel; JupyterLab tells the status where one has ended by itself, drops
   * one that was shut down, and looks for a server that does not answer. @type {Cut} */
  #cut = (_, status) => {
    if (!status || /restart|dead|disconnected/.test(`${status}`)) this.#lose();
    else if (status === "connecting" || (status === "connected" && this.#away)) {
      this.#away = status === "connecting" ? AWAY : "";
      if (this.live) this.#lost(this.#away);
      // What went over the line while it was cut may be lost.
      if (!this.#away && this.#waiting.size) this.#send({ do: "waiting", ids: [...this.#waiting.keys()] });
    }
  };

  /** Jupyter refuses what is sent in the moment between the end of a kernel and the word of it. @param {object} message */
  #send(message) {
    try {
      this.#model.send?.(message);
    } catch {
      this.#lose();
    }
  }

  /** The Python that made this is gone: nothing that waits for it will be answered. */
  #lose() {
    this.live = false;
    this.#reason = GONE;
    for (const { failed } of this.#waiting.values()) failed({ kind: "KernelGone", message: [GONE], hint: [], where: "", line: 0, code: "" });
    this.#waiting.clear();
    this.#lost(GONE);
  }

  /** @type {Heard} */
  #hear = (message, buffers) => {
    const { id, state } = message;
    const asked = this.#waiting.get(id);
    if (!asked) return;
    if (state === "progress") return asked.progress?.(message.text);
    this.#waiting.delete(id);
    if (state === "failed") asked.failed(message.error);
    else asked.done(/** @type {Answer} */ ({ ...message, buffer: buffers?.[0] }));
  };
}
