// A recorded run as moments: what each kernel of a core was doing, and how full its circular buffers were. A moment is a
// logical step; what is true at it is so after all events of this step.

/** @import { Pattern, Recording, Wait } from "../messages.js" */

/** @typedef {"waits" | "runs" | "done" | "stuck" | ""} State */
/** A kernel at a moment. @typedef {{ kernel: string, state: State, wait: Wait | undefined, line: Recording["lines"][0] | undefined }} Doing */

/** How many of sorted `values` are at most `limit`. @param {number[]} values @param {number} limit */
function upTo(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** All recorded cores. */
export class Recorded {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    const patterns = recording.patterns.map((pattern) => new Moments(recording, pattern));
    /** The moments of each core by its name; cores that are alike share them. @type {Map<string, Moments>} */
    this.cores = new Map(recording.cores.map(([x, y, pattern]) => [`${x},${y}`, patterns[pattern]]));
    this.patterns = patterns;
    /** The last moment of the whole run. */
    this.end = Math.max(1, ...patterns.map(({ end }) => end));
  }
}

/** One core. */
export class Moments {
  /** @param {Recording} recording @param {Pattern} pattern */
  constructor(recording, pattern) {
    this.recording = recording;
    this.pattern = pattern;
    /** The events of each kernel with their times, and its waits with their starts. */
    this.kernels = recording.kernels.map((_, k) => {
      const waits = pattern.waits.filter((wait) => wait[0] === k);
      return { events: /** @type {number[]} */ ([]), times: /** @type {number[]} */ ([]), waits, starts: waits.map((wait) => wait[1]) };
    });
    /** When the pages in each buffer changed, and how many there were from then on. */
    this.levels = recording.buffers.map(() => ({ times: [0], pages: [0] }));
    let time = 0;
    this.times = pattern.time.map((step, i) => {
      time += step;
      const { events, times } = this.kernels[pattern.kernel[i]];
      events.push(i);
      times.push(time);
      const sign = { push_back: 1, pop_front: -1 }[recording.operations[pattern.operation[i]]];
      const level = this.levels[pattern.buffer[i]];
      if (sign && level) {
        level.pages.push(level.pages[level.times.length - 1] + sign * pattern.amount[i]);
        level.times.push(time);
      }
      return time;
    });
    /** The last moment: after the last event comes the one in which kernels are stuck. */
    this.end = time + (pattern.waits.some((wait) => wait[8]) ? 1 : 0);
  }

  /** The pages in buffer `b`. @param {number} b @param {number} time */
  held(b, time) {
    const { times, pages } = this.levels[b];
    return pages[upTo(times, time) - 1];
  }

  /** What each kernel was doing: its last call until then, and whether it waited in the next one. @param {number} time @returns {Doing[]} */
  doing(time) {
    const { recording: { kernels, operations, lines }, pattern } = this;
    return this.kernels.map(({ events, times, waits, starts }, k) => {
      const last = events[upTo(times, time) - 1];
      const latest = waits[upTo(starts, time) - 1];
      const wait = latest && (time < latest[2] || latest[8]) ? latest : undefined;
      const finished = operations[pattern.operation[last]] === "finish";
      const state = finished ? "done" : wait ? (wait[8] ? "stuck" : "waits") : last === undefined ? "" : "runs";
      return { kernel: kernels[k], state, wait: finished ? undefined : wait, line: lines[wait ? wait[6] : pattern.line[last]] };
    });
  }

  /** When the next wait of a kernel begins, or of any (-1); the one before for a `direction` of -1. @param {number} time @param {number} k @param {number} direction */
  wait(time, k, direction) {
    const starts = this.kernels.filter((_, own) => k < 0 || own === k).flatMap(({ starts }) => starts).filter((start) => (start - time) * direction > 0);
    return starts.length ? starts.reduce((a, b) => ((a - b) * direction < 0 ? a : b)) : null;
  }

  /**
   * How full buffer `b` was from one moment to another, as the path of a line in steps, in a drawing that is `height`
   * high and has a column for each moment or for each of `columns`.
   * @param {number} b
   * @param {[number, number]} window
   * @param {number} height
   * @param {number} columns
   */
  level(b, [from, to], height, columns) {
    const { times, pages } = this.levels[b];
    const width = Math.max(1, (to - from) / columns);
    /** @param {number} count */
    const y = (count) => (height - 3 - (count * (height - 6)) / this.recording.buffers[b][2]).toFixed(1);
    let path = `M${from} ${y(this.held(b, from))}`;
    for (let i = upTo(times, from); i < times.length && times[i] <= to; ) {
      // What lies in one column is drawn as the range of its levels.
      const next = Math.max(i + 1, upTo(times, times[i] + width - 1));
      const all = pages.slice(i, next);
      path += `H${times[i]}`;
      if (all.length > 2) path += `V${y(Math.min(...all))}V${y(Math.max(...all))}`;
      path += `V${y(pages[next - 1])}`;
      i = next;
    }
    return `${path}H${to}`;
  }
}
