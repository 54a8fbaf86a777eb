"""How fast schedules of a GEMM are lowered, verified and estimated: python -m benchmarks.sweep [schedules].

Prints the seconds of a sweep in this process and in two, their ratio, the time of a schedule against that of `explore`
and `estimate` alone, and the ratio of a second sweep, which finds what the first has kept, to the first. Compare only
figures from one run. Two processors must be free.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ttexplore as ttx
from ttexplore.sweeping import kept

KERNEL = "notebooks/kernels/gemm.py::matmul"
SIZES: dict[str, Any] = {"M": 1024, "N": 1024, "K": 1024}
BLOCKS = {"block_M": [32, 64, 128, 256], "block_N": [32, 64, 128, 256], "block_K": [32, 64, 128, 256]}
OPTIONS = {
    "math_fidelity": ["LoFi", "HiFi2", "HiFi3", "HiFi4"], "policy": ["contiguous", "strided"], "stages": [1, 2],
}  # fmt: skip


def seconds(measured: Callable[[], object]) -> float:
    start = time.perf_counter()
    measured()
    return time.perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    names = [*BLOCKS, *OPTIONS]
    every = [dict(zip(names, values, strict=True)) for values in itertools.product(*BLOCKS.values(), *OPTIONS.values())]
    # Spread over the space, whatever their number.
    points = [every[number * len(every) // count] for number in range(min(count, len(every)))]
    with tempfile.TemporaryDirectory() as folder:
        vars(kept)["default_cache_folder"] = lambda: Path(folder)

        def swept(workers: int, fresh: bool) -> ttx.Sweep:
            return ttx.sweep(KERNEL, points, workers=workers, fresh=fresh, prove=0, **SIZES)

        def alone() -> None:
            ttx.explore(KERNEL, **SIZES).estimate()

        alone()
        one = statistics.median(seconds(alone) for _ in range(9))
        two_processes = seconds(lambda: swept(2, True))
        one_process = seconds(lambda: swept(1, True))
        again = seconds(lambda: swept(2, False))
        found = swept(2, False)
    print(f"{found.summary}")
    print(f"one process            {one_process:8.2f} s")
    print(f"two processes          {two_processes:8.2f} s")
    print(f"one by two             {one_process / two_processes:8.2f}")
    print(f"a schedule by explore  {one_process / len(points) / one:8.2f}")
    print(f"again by first         {again / two_processes:8.4f}")


if __name__ == "__main__":
    main()
