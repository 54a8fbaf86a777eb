# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Measures how the time to lower a kernel grows with its size.

    python -m benchmarks.scaling [shape ...] [--sizes=10,30,100,300,1000]

Each shape makes a kernel with n parts of one kind. Prints the processor seconds of `explore` at each size and two
scaling exponents, of all sizes (least squares) and of the two largest: with 1, twice the size takes twice the time.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ttexplore as ttx
import ttexplore.language as T


def stores(*, apart: bool) -> Callable[[int], Any]:
    """Kernels of n stores, in one nest of T.Parallel or each in a nest of its own."""

    def make(n: int) -> Any:
        each_nest, nests = (1, n) if apart else (n, 1)

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "float32")
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(A, a)
                T.clear(c)
                for _ in [*range(nests)]:
                    for i, j in T.Parallel(32, 32):
                        for _ in [*range(each_nest)]:
                            c[i, j] = c[i, j] * 0.5 + a[i, j]
                T.copy(c, C)

        return kernel

    return make


def chained(step: Callable[[Any, Any], Any]) -> Callable[[int], Any]:
    """Kernels whose values follow from each other by a helper function of the value before and of an element."""

    def make(n: int) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "float32")
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(A, a)
                for i, j in T.Parallel(32, 32):
                    v = a[i, j]
                    for _ in [*range(n)]:
                        v = step(v, a[i, j])
                    c[i, j] = v
                T.copy(c, C)

        return kernel

    return make


def terms(n: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                c[i, j] = sum([a[i, j] * float(k) for k in range(n)])
            T.copy(c, C)

    return kernel


def copies(n: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            d = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(a, c)
            for _ in [*range(n)]:
                T.copy(c, d)
                T.copy(d, c)
            T.copy(c, C)

    return kernel


def gemms(n: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.clear(c)
            for _ in [*range(n)]:
                T.gemm(a, a, c)
            T.copy(c, C)

    return kernel


SHAPES: dict[str, Callable[[int], Any]] = {
    "nests": stores(apart=True),
    "stores": stores(apart=False),
    "chains": chained(lambda value, element: T.exp(value * 0.01)),
    "products": chained(lambda value, element: value * element),
    "squares": chained(lambda value, element: value * value + value),
    "blends": chained(lambda value, element: value * 0.5 + T.abs(element)),
    "terms": terms,
    "copies": copies,
    "gemms": gemms,
}


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(one) for one in seconds]
    middle_x, middle_y = statistics.fmean(x), statistics.fmean(y)
    across = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return across / sum((a - middle_x) ** 2 for a in x)


def main() -> None:
    names = [one for one in sys.argv[1:] if not one.startswith("-")] or [*SHAPES]
    asked = next((one.partition("=")[2] for one in sys.argv if one.startswith("--sizes=")), "10,30,100,300,1000")
    sizes = [int(one) for one in asked.split(",")]
    ttx.explore(SHAPES["nests"](2))
    print(f"{'n':14}", *(f"{size:8}" for size in sizes), f"{'exponent':>10} {'at the end':>10}")
    for name in names:
        row: list[float] = []
        for size in sizes:
            kernel = SHAPES[name](size)
            start = time.process_time()
            exploration = ttx.explore(kernel)
            row.append(time.process_time() - start)
            if exploration.error is not None:
                raise exploration.error
        figures = f"{exponent(sizes, row):10.2f} {exponent(sizes[-2:], row[-2:]):10.2f}"
        print(f"{name:14}", *(f"{one:8.2f}" for one in row), figures, flush=True)


if __name__ == "__main__":
    main()
