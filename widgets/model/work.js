// What Python has been asked to do and is not done with.

/** @import { Explorer, State } from "./state.js" */
/** @import { Kernel } from "./questions.js" */

/**
 * Asks, and keeps the explorer busy with that until the answer is there.
 * @template Answer
 * @param {Explorer} store
 * @param {string} busy
 * @param {(progressed: (progress: string) => void) => Promise<Answer>} ask
 */
export async function work(store, busy, ask) {
  store.set({ busy, since: Date.now(), progress: "" });
  try {
    return await ask((progress) => store.set({ progress }));
  } finally {
    store.set({ busy: "", progress: "" });
  }
}

/**
 * Takes part in what another page, or this one before it was loaded again, has asked for: `followed` has the answer.
 * @param {Explorer} store
 * @param {Kernel} kernel
 */
export function followOthers(store, kernel) {
  const { busy, followed } = store.state;
  const others = kernel.others();
  if (followed && !others.some(({ id }) => id === followed.id)) store.set({ followed: null, busy: "", progress: "" });
  else if (!busy && others.length) {
    const [question] = others;
    const answer = kernel.follow(question.id, (progress) => store.set({ progress }));
    // Whoever shows the answer shows its failure as well.
    answer.catch(() => store.set({ followed: null, busy: "", progress: "" }));
    store.set({ busy: question.do, since: 1000 * question.since, progress: "", followed: { ...question, answer } });
  }
}

/** The limit that was asked for, in seconds; null for the usual one. @param {Pick<State, "limit">} state */
export const limitOf = ({ limit }) => (Number(limit) > 0 ? Number(limit) : null);

/** For how long Python has been busy: "12 s", "2 min 5 s". @param {Pick<State, "since">} state @param {number} now */
export function elapsed({ since }, now) {
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** How many of how many are done, if words of progress say so. @param {string} progress */
export const share = (progress) => /^(\d+) of (\d+)\b/.exec(progress)?.slice(1).map(Number);
