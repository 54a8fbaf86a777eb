# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""An emulated expression of 64 operators on 1024x1024 float32 against NumPy, in one run.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.expression [rounds]

Prints the time of the lowering, the number of tile operations per tile, and the emulator's time relative to NumPy's
with exact and with fast arithmetic: medians of the paired rounds.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.backends.base import Array, Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.plan import KERNEL_ROLES

SIZE, BLOCK = 1024, 64


def deep_expression(size: int = SIZE, block: int = BLOCK) -> Any:
    @T.prim_func
    def deep(
        A: T.Tensor((size, size), "float32"), B: T.Tensor((size, size), "float32"), C: T.Tensor((size, size), "float32")
    ):  # fmt: skip
        with T.Kernel(size // block, size // block) as (bx, by):
            a = T.alloc_shared((block, block), "float32")
            b = T.alloc_shared((block, block), "float32")
            c = T.alloc_fragment((block, block), "float32")
            T.copy(A[by * block, bx * block], a)
            T.copy(B[by * block, bx * block], b)
            for i, j in T.Parallel(block, block):
                x = a[i, j] * 0.5 + b[i, j] * 0.25
                y = T.abs(a[i, j] - b[i, j]) + 0.125
                u = T.sqrt(y * y + x * x) - T.max(x, y) * 0.75
                v = T.exp(-T.abs(u)) * (1.0 + x * 0.1) / (1.0 + y)
                w = T.tanh(u - v) + T.min(u, v) * (x - y)
                p = T.if_then_else(w > x, w * 0.5 + v, x - w * 0.25)
                q = (p * 0.3 + 0.2) * p - (u * 0.4 - 0.1) * v
                r = T.log(1.0 + q * q) + T.clamp(p - q, -1.0, 1.0)
                s = (r + p) * (r - q) + (w + u) * (w - v)
                c[i, j] = s / (1.0 + T.abs(s)) + T.floor(q * 4.0) * 0.0625 - r * 0.5 + w * v
            T.copy(c, C[by * block, bx * block])

    return deep


def with_numpy(a: Array, b: Array) -> Array:
    """The same, statement by statement."""
    x = a * np.float32(0.5) + b * np.float32(0.25)
    y = np.abs(a - b) + np.float32(0.125)
    u = np.sqrt(y * y + x * x) - np.maximum(x, y) * np.float32(0.75)
    v = np.exp(-np.abs(u)) * (1 + x * np.float32(0.1)) / (1 + y)
    w = np.tanh(u - v) + np.minimum(u, v) * (x - y)
    p = np.where(w > x, w * np.float32(0.5) + v, x - w * np.float32(0.25))
    q = (p * np.float32(0.3) + np.float32(0.2)) * p - (u * np.float32(0.4) - np.float32(0.1)) * v
    r = np.log(1 + q * q) + np.clip(p - q, -1, 1)
    s = (r + p) * (r - q) + (w + u) * (w - v)
    return s / (1 + np.abs(s)) + np.floor(q * 4) * np.float32(0.0625) - r * np.float32(0.5) + w * v


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    start = time.perf_counter()
    exploration = ttx.explore(deep_expression())
    if exploration.error is not None:
        raise exploration.error
    print(f"traced and lowered in {(time.perf_counter() - start) * 1e3:.0f} ms")
    listing = exploration.steps["C2"].listing.text
    print(f"{sum('_tile' in line for line in listing.splitlines())} operations a tile")
    program = Program({role: str(exploration.code[role]) for role in KERNEL_ROLES}, exploration.plan)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))
    emulator = Emulator()
    print(compare(emulator.run(program, [a, b]).outputs, [with_numpy(a, b)]).message)
    times: dict[str, list[float]] = {"exact": [], "fast": [], "numpy": []}
    for _ in range(rounds):
        for arithmetic in ("exact", "fast"):
            times[arithmetic].append(min(replace(emulator, arithmetic=arithmetic).measure(program, [a, b], repeats=3)))
        single: list[float] = []
        for _ in range(3):
            start = time.perf_counter()
            with_numpy(a, b)
            single.append(time.perf_counter() - start)
        times["numpy"].append(min(single))
    for name, seconds in times.items():
        print(f"{name:6} min {min(seconds) * 1e3:7.1f} ms, median {statistics.median(seconds) * 1e3:7.1f} ms")
    for name in ("exact", "fast"):
        ratio = statistics.median(e / n for e, n in zip(times[name], times["numpy"], strict=True))
        print(f"deep expression, {name}: {ratio:.2f} times NumPy's time")


if __name__ == "__main__":
    main()
