"""Flash attention of the gallery: how long lowering takes, and the emulator against NumPy.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.attention [--rounds N] [--heads N ...] [--seq-len N ...] [--dim N ...]
                                                          [--block N ...] [--dtype NAME] [--target NAME]

Lowering includes loading, tracing and verification. It is measured cold, on the same kernel with batches of other
sizes, each lowered once; the shortest time counts. NumPy computes the same attention in float32, with all scores at
once. The emulator, in its fast arithmetic, and NumPy run in turns on one thread; the ratio is that of their shortest
times. All times are the processor's, so that other processes do not count.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np

import ttexplore as ttx
from ttexplore.backends.base import Array, Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.exploration import Exploration
from ttexplore.plan import KERNEL_ROLES

GALLERY = "notebooks/gallery/attention.py"
# In each round: the first ones fill the caches.
REPEATS = 10
# The heads of queries that share a head of keys, and what a query sees: all keys, those before it, or the last few.
KERNELS = {
    "full_attention": (1, None),
    "causal_attention": (1, 0),
    "windowed_attention": (1, 48),
    "grouped_attention": (2, 0),
}


def shortest_ms(work: Callable[[], object], repeats: int) -> float:
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def unseen(seq_len: int, window: int | None) -> Array | None:
    """What to add to the scores: minus infinity where a query does not see a key."""
    if window is None:
        return None
    distance = np.arange(seq_len)[:, None] - np.arange(seq_len)
    return np.where((distance >= 0) & (distance < (window or seq_len)), np.float32(0), np.float32(-np.inf))


def in_numpy(q: Array, k: Array, v: Array, mask: Array | None) -> Array:
    keys, values = (np.repeat(array, q.shape[1] // k.shape[1], axis=1) for array in (k, v))
    scores = np.matmul(q, keys.swapaxes(-1, -2)) * np.float32(q.shape[-1] ** -0.5)
    if mask is not None:
        scores = scores + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.matmul(weights / weights.sum(axis=-1, keepdims=True), values)


@dataclass(frozen=True)
class Size:
    heads: int
    seq_len: int
    dim: int
    block: int

    def __str__(self) -> str:
        return f"{self.heads} heads, {self.seq_len} x {self.dim}, blocks of {self.block}"

    def arguments(self) -> dict[str, Any]:
        return {
            "batch": 1, "heads": self.heads, "seq_len": self.seq_len, "dim": self.dim, "block_M": self.block,
            "block_N": self.block,
        }  # fmt: skip


def measured(name: str, size: Size, *, rounds: int, dtype: str, target: str) -> float:
    """Print a line on a kernel of a size and return the ratio."""
    shared, window = KERNELS[name]

    def lowered(batch: int) -> Exploration:
        arguments = {**size.arguments(), "batch": batch}
        return ttx.explore(f"{GALLERY}::{name}", target=target, dtype=dtype, **arguments)

    explored = lowered(1)
    lowering = min(shortest_ms(lambda batch=batch: lowered(batch), 1) for batch in (2, 3, 4))
    program = Program({role: str(explored.code[role]) for role in KERNEL_ROLES}, explored.plan)
    random = np.random.default_rng(0)
    shapes = [(1, heads, size.seq_len, size.dim) for heads in (size.heads, size.heads // shared, size.heads // shared)]
    inputs = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    q, k, v = (array.astype(np.float32) for array in inputs)
    mask = unseen(size.seq_len, window)

    def attention() -> Array:
        return in_numpy(q, k, v, mask)

    emulator = replace(Emulator(), arithmetic="fast")
    compared = compare(emulator.run(program, inputs).outputs, [attention()])
    emulated, numpy = float("inf"), float("inf")
    for _ in range(rounds):
        emulated = min(emulated, *emulator.measure(program, inputs, repeats=REPEATS))
        numpy = min(numpy, shortest_ms(attention, REPEATS))
    ratio = emulated * 1e3 / numpy
    print(
        f"{name}, {size}: lowering {lowering:.0f} ms, emulator {emulated * 1e3:.1f} ms, NumPy {numpy:.1f} ms, "
        f"ratio {ratio:.2f}; {compared.message}",
        flush=True,
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description="flash attention: lowering, and the emulator against NumPy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--seq-len", type=int, nargs="+", default=[256, 512, 1024])
    parser.add_argument("--dim", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--block", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--target", default="wormhole_n150")
    given = parser.parse_args()
    sizes = itertools.starmap(Size, itertools.product(given.heads, given.seq_len, given.dim, given.block))
    ratios = [
        measured(name, size, rounds=given.rounds, dtype=given.dtype, target=given.target)
        for size in sizes
        for name, (shared, _) in KERNELS.items()
        if size.heads % shared == 0
    ]
    print(f"ratio of at most {max(ratios):.2f} (aim: 2)")


if __name__ == "__main__":
    main()
