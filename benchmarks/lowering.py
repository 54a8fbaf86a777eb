"""Cold lowering of a GEMM: python -m benchmarks.lowering [shapes].

Each shape is lowered once, in a process that has lowered another one before: no pass takes anything from the same
lowering before it. Prints the shortest and the median time over the shapes: of each pass with its verification, of the
whole (loading, tracing, lowering), of printing all listings, and of a fork without changes, which takes every pass from
the lowering that it forks. Times are the processor's; those of single passes are the clock's. Compare only figures from
one run, or from runs that alternate.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import ttexplore as ttx
from ttexplore.exploration import Exploration

KERNEL = "notebooks/kernels/gemm.py::matmul"


def shape(number: int) -> dict[str, Any]:
    return {"M": 1024 + 128 * number, "N": 1024, "K": 1024, "block_M": 128, "block_N": 128, "block_K": 32}


def lowered(number: int) -> Exploration:
    exploration = ttx.explore(KERNEL, **shape(number))
    if exploration.error is not None:
        raise exploration.error
    return exploration


def listings(exploration: Exploration) -> None:
    for step in exploration.steps:
        _ = step.listing


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def line(name: str, seconds: Sequence[float]) -> None:
    print(f"{name:<36} {min(seconds) * 1e3:7.2f} {statistics.median(seconds) * 1e3:7.2f} ms")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    lowered(0)
    numbers = range(1, count + 1)
    cold = [timed(lambda number=number: lowered(number)) for number in numbers]
    explorations = [exploration for _, exploration in cold]
    print(f"{f'{count} shapes':<36} {'min':>7} {'median':>7}")
    for index, step in enumerate(explorations[0].steps):
        line(f"{step.letter:<3} {step.name}", [one.steps[index].seconds for one in explorations])
    line("load, trace and lower", [seconds for seconds, _ in cold])
    line("every listing", [timed(lambda one=one: listings(one))[0] for one in explorations])
    line("a fork without changes", [timed(one.fork)[0] for one in explorations])


if __name__ == "__main__":
    main()
