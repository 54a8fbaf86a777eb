"""``python -m tests.fuzz 10000 --workers 2``: random kernels in several processes, with other ones each time.

Progress, refusals by kind, how many kernels have each construct, seconds per thousand kernels, and for each broken law
the smallest kernel that was found, as a regression test. A process that dies is replaced, and its seeds are run again.
The exit status is 1 if a law was broken, or if kernels ended their process again, and 2 if there are no workers.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys

from tests.fuzz.campaign import CHUNK, Tally
from tests.fuzz.chunks import Chunk, Known, run_chunk
from ttexplore.backends.emulator import Emulator
from ttexplore.control import FREE
from ttexplore.errors import BackendError
from ttexplore.sweeping.workers import LostTask, Processes, Workers, connected

# A short run has so many chunks, of so many kernels at least: each worker gets some, and little is lost with one. They
# do not depend on the workers: the same seed gives the same kernels anywhere.
CHUNKS, LEAST_CHUNK = 10, 4


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=1000, help="how many kernels")
    parser.add_argument("--workers", type=int, default=2, help="processes of this machine")
    parser.add_argument("--scheduler", default=None, help="the address of a Dask scheduler, whose workers do the work")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; without it a random one")
    parser.add_argument("--emulate-every", type=int, default=2, help="the emulator runs one kernel in this many")
    given = parser.parse_args(arguments)
    start = random.SystemRandom().randrange(1_000_000) * 1000 if given.seed is None else given.seed
    try:
        return _search(given, start)
    except BackendError as error:
        print(error, file=sys.stderr)
        return 2


def _search(given: argparse.Namespace, start: int) -> int:
    """Raises BackendError for a scheduler that cannot be reached, or workers that cannot work."""
    known, total, lost = Known(), Tally(), 0
    size = min(CHUNK, max(LEAST_CHUNK, given.count // CHUNKS))
    chunks = [
        Chunk(min(size, given.count - n), start + n // size, given.emulate_every, known)
        for n in range(0, given.count, size)
    ]
    Emulator().toolchain().runner()
    with contextlib.ExitStack() as stack:
        local: Workers = Processes(given.workers)
        workers = local if given.scheduler is None else stack.enter_context(connected(given.scheduler))
        print(f"{given.count} kernels in {workers.count} processes, from seed {start}", flush=True)
        for number, made in stack.enter_context(contextlib.closing(workers.answers(run_chunk, chunks, FREE))):
            if isinstance(made, LostTask):
                lost += 1
                print(f"\nthe kernels of seed {chunks[number].start} ended their process: {made.why}", flush=True)
                continue
            for name, failure in made.failures.items():
                if name not in total.failures:
                    print(f"\n{failure.text(len(total.failures) + 1)}", flush=True)
            total.add(made)
            known.signatures = frozenset(total.failures)
            print(_line(total), flush=True)
    print(_summary(total))
    return 1 if total.failures or lost else 0


def _line(tally: Tally) -> str:
    refused = tally.outcomes.total() - tally.outcomes[""]
    return (
        f"{tally.kernels} kernels, {refused} refused, {tally.again.total()} broken ({len(tally.failures)} kinds), "
        f"per thousand {1000 * tally.seconds / max(tally.kernels, 1):.0f} s in a worker, "
        f"{1000 * tally.processor_seconds / max(tally.kernels, 1):.0f} s of a processor"
    )


def _summary(tally: Tally) -> str:
    rows = [f"{count:7}  {name or 'every law holds'}" for name, count in tally.outcomes.most_common()]
    rows += [f"{count:7}  BROKEN {name}" for name, count in tally.again.most_common()]
    drawn = [f"{100 * count / max(tally.kernels, 1):6.1f}%  {name}" for name, count in sorted(tally.traits.items())]
    return "\n".join([_line(tally), *rows, "Of the kernels have:", *drawn])


if __name__ == "__main__":
    sys.exit(main())
