"""Flash attention of the gallery: how long lowering takes, and the emulator against NumPy.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.attention [--rounds N] [--seq-len N] [--block N]

Lowering includes verification; it is measured warm, in seconds of the processor, so that other processes do not count.
NumPy computes the same attention in float32, with all scores at once. The emulator, in its fast arithmetic, and NumPy
run in turns on one thread; the ratio is the median of the paired rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import ml_dtypes
import numpy as np

import ttexplore as ttx
from ttexplore.backends.base import Array, Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.exploration import Exploration
from ttexplore.plan import KERNEL_ROLES

GALLERY = "notebooks/gallery/attention.py"
KERNELS = ("full_attention", "causal_attention")


def lowering_ms(explored: Exploration, repeats: int = 7) -> float:
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        explored.fork()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def in_numpy(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    scores = np.matmul(q, k.swapaxes(-1, -2)) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        scores = scores + np.triu(np.full(scores.shape[-2:], -np.inf, np.float32), 1)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.matmul(weights / weights.sum(axis=-1, keepdims=True), v)


def main() -> None:
    parser = argparse.ArgumentParser(description="flash attention: lowering, and the emulator against NumPy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--seq-len", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--block", type=int, default=128)
    given = parser.parse_args()
    sizes: dict[str, Any] = {
        "batch": 1, "heads": given.heads, "seq_len": given.seq_len, "dim": given.dim, "block_M": given.block,
        "block_N": given.block,
    }  # fmt: skip
    emulator = replace(Emulator(), arithmetic="fast")
    random = np.random.default_rng(0)
    shape = (1, given.heads, given.seq_len, given.dim)
    inputs = [random.standard_normal(shape).astype(ml_dtypes.bfloat16) for _ in range(3)]
    wide = [array.astype(np.float32) for array in inputs]
    for name in KERNELS:
        causal, kernel = name.startswith("causal"), f"{GALLERY}::{name}"
        explored = ttx.explore(kernel, **sizes)
        print(f"{name}: lowering {lowering_ms(explored):.0f} ms (aim: less than 150)")
        program = Program({role: str(explored.code[role]) for role in KERNEL_ROLES}, explored.plan)
        want = in_numpy(*wide, causal=causal)
        print(compare(emulator.run(program, inputs).outputs, [want]).message)
        emulated: list[float] = []
        numpy: list[float] = []
        for _ in range(given.rounds):
            emulated.append(min(emulator.measure(program, inputs, repeats=3)))
            times: list[float] = []
            for _ in range(3):
                start = time.perf_counter()
                in_numpy(*wide, causal=causal)
                times.append(time.perf_counter() - start)
            numpy.append(min(times))
        ratio = statistics.median(one / other for one, other in zip(emulated, numpy, strict=True))
        print(f"emulator {min(emulated) * 1e3:.1f} ms, NumPy {min(numpy) * 1e3:.1f} ms, ratio {ratio:.2f} (aim: 2)")


if __name__ == "__main__":
    main()
