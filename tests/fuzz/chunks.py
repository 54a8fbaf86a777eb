"""Chunks of random kernels, which workers check: processes of this machine, or those of a Dask cluster."""

from __future__ import annotations

import gc
import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.campaign import Check, Tally, search
from tests.fuzz.description import Kernel, Schedule
from tests.fuzz.laws import Checks, check
from tests.typecheck.headers import HEADERS_FOLDER, headers_missing
from ttexplore.backends.emulator import Emulator

# One kernel in this many goes through the costly laws.
EVERY_DETERMINISM, EVERY_TYPECHECK = 10, 50


@dataclass
class Known:
    """The signatures of failures that have been made small. All chunks share one: what a worker gets holds those of
    that time."""

    signatures: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Chunk:
    """`count` kernels from the seed `start`; the emulator runs one in `every_emulator` of them."""

    count: int
    start: int
    every_emulator: int
    known: Known


def run_chunk(chunk: Chunk) -> Tally:
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
                emulator if number % chunk.every_emulator == 0 else None,
                number % EVERY_DETERMINISM == 0,
                headers if number % EVERY_TYPECHECK == 0 else None,
            )
            return check(kernel, schedule, checks)

        def full(law: str) -> Check:
            checks = Checks(emulator, True, headers).finding(law)
            return lambda kernel, schedule: check(kernel, schedule, checks)

        return search(chunk.count, checked, full, start=chunk.start, known=chunk.known.signatures)


def _emulator(folder: Path) -> Emulator:
    """An emulator with a cache of its own, which holds the runner that was built once for all."""
    runner = Emulator().toolchain().runner()
    (folder / "emulator").mkdir()
    shutil.copy2(runner, folder / "emulator" / runner.name)
    return Emulator(cache_folder=folder, event_limit=0)
