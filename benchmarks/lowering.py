"""Warm lowering of a GEMM, pass by pass: python -m benchmarks.lowering [repeats].

Prints the median milliseconds of each pass (including verification), of the whole lowering, of tracing, and of printing
all listings. Compare only figures from one run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ttexplore as ttx
from ttexplore.exploration import Exploration

KERNEL = "notebooks/kernels/gemm.py::matmul"
SIZES: dict[str, Any] = {"M": 1024, "N": 1024, "K": 1024, "block_M": 128, "block_N": 128, "block_K": 32}


def median_ms(repeats: int, measured: Callable[[], float]) -> float:
    return statistics.median(measured() for _ in range(repeats)) * 1e3


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    first = ttx.explore(KERNEL, **SIZES)
    runs: list[Exploration] = [first.fork() for _ in range(repeats)]
    for index, step in enumerate(first.steps):
        seconds = statistics.median(run.steps[index].seconds for run in runs)
        print(f"{step.letter:<3} {step.name:<32} {seconds * 1e3:7.2f} ms")
    print(f"{'all passes':<36} {statistics.median(sum(s.seconds for s in run.steps) for run in runs) * 1e3:7.2f} ms")
    print(f"{'the fastest run':<36} {min(sum(s.seconds for s in run.steps) for run in runs) * 1e3:7.2f} ms")

    def listings() -> float:
        run = first.fork()
        start = time.perf_counter()
        for step in run.steps:
            _ = step.listing
        return time.perf_counter() - start

    print(f"{'every listing':<36} {median_ms(repeats, listings):7.2f} ms")

    def whole() -> float:
        start = time.perf_counter()
        ttx.explore(KERNEL, **SIZES)
        return time.perf_counter() - start

    print(f"{'load, trace and lower':<36} {median_ms(repeats, whole):7.2f} ms")


if __name__ == "__main__":
    main()
