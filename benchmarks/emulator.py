"""Emulated bf16 GEMM of 1024^3 on 64 cores against NumPy's float32 product and a plain native tile loop, in one run.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.emulator [--blocks M N K] [--accumulate reload|l1] [--no-events]

The program is emitted for the notebooks' GEMM; the emulator runs it with both kinds of arithmetic. All run in turns, so
that a busy machine slows them equally; the ratios are medians of the paired rounds. The goals are those of the fast
arithmetic: the exact one has no counterpart for comparison.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import ml_dtypes
import numpy as np

import ttexplore as ttx
from ttexplore.backends.base import Array, Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.backends.emulator.compiler import RUNNER_FLAGS, RUNTIME_FOLDER, find_compiler, processor_flags
from ttexplore.backends.emulator.tiles import tilize
from ttexplore.plan import KERNEL_ROLES

SIZE = 1024
TILE = 32

NATIVE_LOOP = """#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "matmul.h"

// The same product without cores, buffers and checks: per output tile a loop over K that widens both tiles, multiplies
// and at the end rounds. Tiles in face order.
static void widen_tile(const uint16_t* from, float* to) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) to[i] = widen(from[i]);
}

int main(int, char** arguments) {
    const int tiles = atoi(arguments[1]), rounds = atoi(arguments[2]);
    const size_t bytes = static_cast<size_t>(tiles) * tiles * 2048;
    std::vector<uint16_t> a(bytes / 2), b(bytes / 2), out(bytes / 2);
    FILE* file = fopen(arguments[3], "rb");
    if (!file || fread(a.data(), 1, bytes, file) != bytes || fread(b.data(), 1, bytes, file) != bytes) return 1;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < tiles; ++i) {
            for (int j = 0; j < tiles; ++j) {
                alignas(64) float left[TILE_ELEMENTS], right[TILE_ELEMENTS], sum[TILE_ELEMENTS];
                for (int k = 0; k < tiles; ++k) {
                    widen_tile(&a[static_cast<size_t>(i * tiles + k) * 1024], left);
                    widen_tile(&b[static_cast<size_t>(k * tiles + j) * 1024], right);
                    multiply_tiles(left, right, sum, 0, 32, k == 0);
                }
                uint16_t* target = &out[static_cast<size_t>(i * tiles + j) * 1024];
                for (uint32_t e = 0; e < TILE_ELEMENTS; ++e) target[e] = narrow_ties_away(sum[e]);
            }
        }
        printf("%.9f\\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
}
"""


def gemm_program(m: int, n: int, k: int, *, accumulate: str, size: int = SIZE) -> Program:
    """The program that is emitted for the notebooks' GEMM, on 64 cores."""
    exploration = ttx.explore(
        "notebooks/kernels/gemm.py::matmul", options={"accumulate": accumulate}, M=size, N=size, K=size, block_M=m,
        block_N=n, block_K=k,
    )  # fmt: skip
    return Program({role: str(exploration.code[role]) for role in KERNEL_ROLES}, exploration.plan)


@dataclass(frozen=True)
class Speed:
    """Seconds per round of each contender, round by round."""

    exact: list[float]
    fast: list[float]
    numpy: list[float]
    native_loop: list[float]

    def lines(self, size: int) -> list[str]:
        operations = 2.0 * size**3
        rows = (
            ("emulator, exact", self.exact), ("emulator, fast", self.fast), ("numpy float32", self.numpy),
            ("native tile loop", self.native_loop),
        )  # fmt: skip
        texts = [
            f"{name:18} min {min(seconds) * 1e3:7.2f} ms, median {statistics.median(seconds) * 1e3:7.2f} ms, "
            f"{operations / min(seconds) / 1e9:6.1f} GF/s"
            for name, seconds in rows
        ]
        by_fast = statistics.median(e / f for e, f in zip(self.exact, self.fast, strict=True))
        by_numpy = statistics.median(n / e for e, n in zip(self.fast, self.numpy, strict=True))
        by_loop = statistics.median(e / n for e, n in zip(self.fast, self.native_loop, strict=True))
        texts.append(f"exact relative to fast: {by_fast:.1f} times the time")
        texts.append(f"fast: speed relative to NumPy {by_numpy:.2f} (aim: 0.5 or more)")
        texts.append(f"fast: time relative to the native loop {by_loop:.2f} (aim: 1.4 or less)")
        return texts


def compare_speed(program: Program, a: Array, b: Array, *, emulator: Emulator, rounds: int) -> Speed:
    """Times `program` (of inputs a and b), NumPy's product and the native loop in turns.

    Each turn takes the best of three runs in one process, so that start-up and page faults count for none of them.
    """
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    speed = Speed([], [], [], [])
    exact, fast = (replace(emulator, arithmetic=arithmetic) for arithmetic in ("exact", "fast"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loop = _native_loop(folder, a, b)
        for _ in range(rounds):
            speed.exact.append(min(exact.measure(program, [a, b], repeats=3)))
            speed.fast.append(min(fast.measure(program, [a, b], repeats=3)))
            times: list[float] = []
            for _ in range(3):
                start = time.perf_counter()
                np.matmul(wide_a, wide_b)
                times.append(time.perf_counter() - start)
            speed.numpy.append(min(times))
            done = subprocess.run(loop, check=True, capture_output=True, text=True)
            speed.native_loop.append(min(map(float, done.stdout.split())))
    return speed


def _native_loop(folder: Path, a: Array, b: Array) -> list[str]:
    compiler = find_compiler()
    if compiler is None:
        sys.exit("no C++ compiler")
    (folder / "loop.cpp").write_text(NATIVE_LOOP)
    with (folder / "data").open("wb") as file:
        tilize(a).tofile(file)
        tilize(b).tofile(file)
    sources = [str(folder / "loop.cpp"), str(RUNTIME_FOLDER / "matmul.cpp")]
    flags = [*RUNNER_FLAGS, *processor_flags(compiler), f"-I{RUNTIME_FOLDER}"]
    subprocess.run([*compiler.command, *flags, *sources, "-o", str(folder / "loop")], check=True)
    return [str(folder / "loop"), str(a.shape[0] // TILE), "3", str(folder / "data")]


def main() -> None:
    parser = argparse.ArgumentParser(description="emulated GEMM against NumPy and a native tile loop")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-events", action="store_true", help="record no events")
    parser.add_argument("--blocks", type=int, nargs=3, default=(128, 128, 128), metavar=("M", "N", "K"))
    parser.add_argument("--accumulate", choices=("reload", "l1"), default="reload")
    options = parser.parse_args()
    emulator = Emulator(event_limit=0) if options.no_events else Emulator()
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(ml_dtypes.bfloat16) for _ in range(2))
    program = gemm_program(*options.blocks, accumulate=options.accumulate)
    execution = emulator.run(program, [a, b])
    want = a.astype(np.float64) @ b.astype(np.float64)
    print(execution.message)
    print(compare(execution.outputs, [want]).message)
    if execution.events is not None:
        print(f"{execution.events.total} events")
    print("\n".join(compare_speed(program, a, b, emulator=emulator, rounds=options.rounds).lines(SIZE)))


if __name__ == "__main__":
    main()
