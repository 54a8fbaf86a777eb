"""``python -m tests.fuzz 10000 --workers 2``: random kernels in several processes, with other ones each time.

Progress, refusals by kind, how many kernels have each construct, seconds per thousand kernels, and for each broken law
the smallest kernel that was found, as a regression test. The exit status is 1 if a law was broken.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import shutil
import sys
import tempfile
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tests.fuzz.campaign import CHUNK, Check, Tally, search
from tests.fuzz.description import Kernel, Schedule
from tests.fuzz.laws import Checks, check
from tests.typecheck.headers import HEADERS_FOLDER, headers_missing
from ttexplore.backends.emulator import Emulator

# One kernel in this many goes through the costly laws.
EVERY_DETERMINISM, EVERY_TYPECHECK = 10, 50


def run_chunk(count: int, start: int, every_emulator: int, known: Tally) -> Tally:
    """One search in a process of its own. What the emulator compiles is thrown away after it."""
    # Most of what is made here lives on: looking for garbage as often as usual takes a tenth of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    turn = itertools.count()
    headers = None if headers_missing() else HEADERS_FOLDER
    with tempfile.TemporaryDirectory(prefix="ttexplore-fuzz-") as folder:
        emulator = _emulator(Path(folder))

        def checked(kernel: Kernel, schedule: Schedule) -> str:
            number = next(turn)
            checks = Checks(
                emulator if number % every_emulator == 0 else None,
                number % EVERY_DETERMINISM == 0,
                headers if number % EVERY_TYPECHECK == 0 else None,
            )
            return check(kernel, schedule, checks)

        def full(law: str) -> Check:
            checks = Checks(emulator, True, headers).finding(law)
            return lambda kernel, schedule: check(kernel, schedule, checks)

        return search(count, checked, full, start=start, known=known)


def _emulator(folder: Path) -> Emulator:
    """An emulator with a cache of its own, which holds the runner that was built once for all."""
    runner = Emulator().toolchain().runner()
    (folder / "emulator").mkdir()
    shutil.copy2(runner, folder / "emulator" / runner.name)
    return Emulator(cache_folder=folder, event_limit=0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=1000, help="how many kernels")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; without it a random one")
    parser.add_argument("--emulate-every", type=int, default=2, help="the emulator runs one kernel in this many")
    given = parser.parse_args(arguments)
    start = random.SystemRandom().randrange(1_000_000) * 1000 if given.seed is None else given.seed
    print(f"{given.count} kernels in {given.workers} processes, from seed {start}", flush=True)
    total = Tally()
    Emulator().toolchain().runner()
    chunks = iter([(min(CHUNK, given.count - n), start + n // CHUNK) for n in range(0, given.count, CHUNK)])
    with ProcessPoolExecutor(given.workers) as pool:
        running: set[Future[Tally]] = set()
        while True:
            for count, first in itertools.islice(chunks, given.workers - len(running)):
                running.add(pool.submit(run_chunk, count, first, given.emulate_every, total))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                made = one.result()
                for name, failure in made.failures.items():
                    if name not in total.failures:
                        print(f"\n{failure.text(len(total.failures) + 1)}", flush=True)
                        total.failures[name] = failure
                total.add(made)
            print(_line(total), flush=True)
    print(_summary(total))
    return 1 if total.failures else 0


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
