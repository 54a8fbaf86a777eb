// What the map of the cores can show of each of them.

/** @import { Core, Cores } from "../messages.js" */

import { bytes, compact, grouped } from "./figures.js";

const HEAT_STEPS = 9;

/**
 * `short` is how a value stands on the map. `of` gives null where it is not known.
 * @typedef {object} Measure
 * @property {(core: Core, cores: Cores) => number | null} of
 * @property {(value: number) => string} shown
 * @property {(value: number) => string} [short]
 */

/** @param {Cores} cores */
const total = ({ cores }) => cores.reduce((sum, core) => sum + core.items, 0);

/** The cores that have work. @param {Cores} cores */
export const working = ({ cores }) => cores.filter((core) => core.items);

/** The items of the core that has most. @param {Cores} cores */
export const most = ({ cores }) => Math.max(0, ...cores.map((core) => core.items));

/** @param {number} items @param {number | null} each */
const times = (items, each) => each === null ? null : items * each;

/** @type {Record<string, Measure>} */
export const MEASURES = {
  "work items": { of: (core) => core.items, shown: grouped },
  "tiles moved": { of: (core, cores) => times(core.items, cores.tiles_per_item), shown: grouped },
  "bytes moved": { of: (core, cores) => times(core.items, cores.bytes_per_item), shown: bytes },
  "L1 in use": { of: (core, cores) => (core.items ? cores.l1_bytes : 0), shown: bytes },
  "share of the mean": {
    of: (core, cores) => Math.round((100 * core.items * working(cores).length) / Math.max(1, total(cores))),
    shown: (value) => `${value} %`, short: (value) => `${value}`,
  },
};

/** The measures that are known, by name. @param {Cores} cores @returns {[string, Measure][]} */
export const known = (cores) => Object.entries(MEASURES).filter(([, { of }]) => cores.cores.every((core) => of(core, cores) !== null));

/**
 * For each core with something to show, by "x,y": its text on the map and its step of the heat's scale.
 * @param {Cores} cores
 * @param {string} name
 */
export function heat(cores, name) {
  const { of, short = compact } = MEASURES[name];
  const values = cores.cores.map((core) => of(core, cores) ?? 0);
  const largest = Math.max(1, ...values);
  // Where all are the same, a quiet step of the scale says so.
  /** @param {number} value */
  const step = (value) => (Math.min(...values) === largest ? 2 : Math.round((value * (HEAT_STEPS - 1)) / largest));
  return new Map(cores.cores.flatMap((core, i) => (values[i] ? [[`${core.x},${core.y}`, { label: short(values[i]), step: step(values[i]) }]] : [])));
}

/** How much more than the mean the busiest core has to do; null without work. @param {Cores} cores */
export const imbalance = (cores) => (total(cores) ? (most(cores) * working(cores).length) / total(cores) : null);
