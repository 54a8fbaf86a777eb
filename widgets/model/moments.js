// A recorded run as moments: what each kernel of the core was doing, and how full the circular buffers were.

/** @import { Recording, Wait } from "../messages.js" */

/** A kernel at a moment. @typedef {{ kernel: string, state: "waits" | "runs" | "done" | "", wait: Wait | undefined, line: Recording["lines"][0] | undefined }} Doing */

/** The recording with the time of each event and the pages in each buffer after it. */
export class Moments {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    let time = 0;
    this.times = recording.time.map((step) => (time += step));
    this.end = time || 1;
    const held = recording.buffers.map(() => 0);
    this.pages = this.times.map((_, i) => {
      const sign = { push_back: 1, pop_front: -1 }[recording.operations[recording.operation[i]]];
      if (sign && recording.buffer[i] >= 0) held[recording.buffer[i]] += sign * recording.amount[i];
      return [...held];
    });
  }

  /** What each kernel was doing at event `i`: its last call until then, and whether it waited in the next one. @param {number} i @returns {Doing[]} */
  doing(i) {
    const { kernels, kernel, waits, operations, operation, lines, line } = this.recording;
    const time = this.times[i];
    return kernels.map((name, k) => {
      const last = kernel.findLastIndex((own, event) => own === k && this.times[event] <= time);
      const wait = waits.find(([own, start, end]) => own === k && start <= time && time < end);
      const state = operations[operation[last]] === "finish" ? "done" : wait ? "waits" : last < 0 ? "" : "runs";
      return { kernel: name, state, wait, line: lines[wait ? wait[6] : line[last]] };
    });
  }

  /**
   * How full buffer `b` was over time, as the path of a line in steps in a drawing of some size, and its waits as
   * [start, width] in that drawing.
   * @param {number} b
   * @param {number} width
   * @param {number} height
   */
  level(b, width, height) {
    /** @param {number} time */
    const x = (time) => (time * width) / this.end;
    /** @param {number} pages */
    const y = (pages) => (height - 3 - (pages * (height - 6)) / this.recording.buffers[b][2]).toFixed(1);
    let path = `M0 ${y(0)}`;
    this.times.forEach((time, i) => {
      if (this.pages[i][b] !== this.pages[i - 1]?.[b]) path += `H${x(time).toFixed(1)}V${y(this.pages[i][b])}`;
    });
    const waits = this.recording.waits.filter((wait) => wait[4] === b)
      .map(([, start, end]) => [x(start).toFixed(1), `${Math.max(1, x(end) - x(start))}`]);
    return { path: `${path}H${width}`, waits };
  }
}
