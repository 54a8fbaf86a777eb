# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Measures how long it takes to predict the time of a program, beside the time to lower it.

    python -m benchmarks.clock [size ...]

Of matrix products of these sizes (by default 1024 to 4096) with several blocks and targets, prints the processor
seconds to lower the kernel, to predict its time, with one replay, and to tell what bounds it, with one replay for each
resource that is made free besides; the ratio of that to the lowering, and the events that were replayed one by one.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.clock.program import core_classes
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import replay


def gemm(size: int, block: int, depth: int) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((size, size), "bfloat16"),
        B: T.Tensor((size, size), "bfloat16"),
        C: T.Tensor((size, size), "bfloat16"),
    ):
        with T.Kernel(size // block, size // block) as (bx, by):
            a = T.alloc_shared((block, depth), "bfloat16")
            b = T.alloc_shared((depth, block), "bfloat16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(size // depth, num_stages=2):
                T.copy(A[by * block, k * depth], a)
                T.copy(B[k * depth, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return kernel


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or [1024, 2048, 4096]
    ttx.explore(gemm(256, 64, 64)).estimate()
    heads = ("size", 5), ("block", 5), ("lower s", 8), ("once s", 8), ("bound s", 10), ("ratio", 6), ("events", 8)
    print(f"{'target':15}", *(f"{head:>{width}}" for head, width in heads))
    for size in sizes:
        for block, depth in ((64, 64), (128, 64)):
            for target in ("wormhole_n150", "blackhole_p150"):
                start = time.process_time()
                exploration = ttx.explore(gemm(size, block, depth), target=target)
                lowered = time.process_time()
                final = exploration.steps[-1].after
                found = replay(
                    core_classes(final.functions, final.plan, exploration.target), rates_of(exploration.target)
                )
                once = time.process_time()
                _ = exploration.estimate().bound
                end = time.process_time()
                print(
                    f"{target:15} {size:5} {block:5} {lowered - start:8.3f} {once - lowered:8.3f} {end - once:10.3f} "
                    f"{(end - once) / (lowered - start):6.2f} {found.events:8,}"
                )


if __name__ == "__main__":
    main()
