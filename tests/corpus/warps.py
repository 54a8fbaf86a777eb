# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Groups of threads that wait for each other at barriers: producers and consumers, slots used in turns, hand-overs."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32 = "bfloat16", "float32"
# What a planted fault leaves out of `ring`, or does in another way.
FAULTS = (
    "no full arrive", "no full wait", "full parity", "no empty arrive", "no empty wait", "empty parity", "count",
    "other slot", "no copy barrier",
)  # fmt: skip


def ring(turns: int = 5, slots: int = 2, fault: str = "") -> Any:
    """A @ B with one group that fills slots while the other one uses them, each in a loop of its own."""
    assert not fault or fault in FAULTS

    @T.prim_func
    def kernel(A: T.Tensor((128, 64 * turns), BF16), B: T.Tensor((64 * turns, 64), BF16), C: T.Tensor((128, 64), FP32)):
        with T.Kernel(2, threads=256) as bx:
            a = T.alloc_shared((slots, 64, 64), BF16)
            b = T.alloc_shared((slots, 64, 64), BF16)
            c = T.alloc_fragment((64, 64), FP32)
            full = T.alloc_barrier([64 if fault == "count" else 128] * slots)
            empty = T.alloc_barrier([128] * slots)
            tx = T.get_thread_binding()
            if tx < 128:
                for k in range(turns):
                    if fault != "no empty wait":
                        T.barrier_wait(empty[k % slots], (k // slots + (fault != "empty parity")) % 2)
                    T.tma_copy(A[bx * 64, k * 64], a[k % slots, :, :], barrier=full[k % slots])
                    if fault == "no copy barrier":
                        T.tma_copy(B[k * 64, 0], b[k % slots, :, :], barrier=empty[k % slots])
                    else:
                        T.tma_copy(B[k * 64, 0], b[k % slots, :, :], barrier=full[k % slots])
                    if fault != "no full arrive":
                        T.barrier_arrive(full[k % slots])
            else:
                T.clear(c)
                for k in range(turns):
                    if fault != "no full wait":
                        T.barrier_wait(full[k % slots], (k // slots + (fault == "full parity")) % 2)
                    T.gemm(a[(k + (fault == "other slot")) % slots, :, :], b[k % slots, :, :], c)
                    if fault != "no empty arrive":
                        T.barrier_arrive(empty[k % slots])
                T.copy(c, C[bx * 64, 0])

    return kernel


def handed_on(turns: int = 3, *, asynchronous: bool = True) -> Any:
    """Three groups, each of which does part of the work of each turn: load, scale and accumulate."""

    @T.prim_func
    def kernel(A: T.Tensor((64 * turns, 64), BF16), B: T.Tensor((64, 64), BF16), C: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=384) as bx:
            a = T.alloc_shared((64, 64), BF16)
            s = T.alloc_shared((64, 64), BF16)
            b = T.alloc_shared((64, 64), BF16)
            f = T.alloc_fragment((64, 64), BF16)
            c = T.alloc_fragment((64, 64), FP32)
            loaded = T.alloc_barrier(128)
            scaled = T.alloc_barrier(128)
            free = T.alloc_barrier([128, 128])
            T.copy(B, b)
            T.sync_threads()
            with T.ws(2):
                T.clear(c)
            for k in T.Pipelined(turns, num_stages=1):
                with T.ws(0):
                    T.mbarrier_wait_parity(free[0], (k & 1) ^ 1)
                    T.copy(A[k * 64, 0], a)
                    T.mbarrier_arrive(loaded)
                with T.ws(1):
                    T.mbarrier_wait_parity(loaded, k & 1)
                    T.mbarrier_wait_parity(free[1], (k & 1) ^ 1)
                    for i, j in T.Parallel(64, 64):
                        f[i, j] = a[i, j] * 0.5
                    T.copy(f, s)
                    T.fence_proxy_async()
                    T.mbarrier_arrive(free[0])
                    T.mbarrier_arrive(scaled)
                with T.ws(2):
                    T.mbarrier_wait_parity(scaled, k & 1)
                    if asynchronous:
                        T.wgmma_gemm(s, b, c)
                        T.wait_wgmma(0)
                    else:
                        T.gemm(s, b, c)
                    T.mbarrier_arrive(free[1])
            with T.ws(2):
                T.copy(c, C)

    return kernel


def mutual(turns: int = 3) -> Any:
    """Two groups that compute a sum each and need the other one's factor in the middle of a turn."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * turns, 32), FP32), C: T.Tensor((64, 32), FP32)):
        with T.Kernel(1, threads=256) as bx:
            left = T.alloc_shared((32, 32), FP32)
            right = T.alloc_shared((32, 32), FP32)
            x = T.alloc_fragment((32, 32), FP32)
            y = T.alloc_fragment((32, 32), FP32)
            of_x = T.alloc_barrier(128)
            of_y = T.alloc_barrier(128)
            done_x = T.alloc_barrier(128)
            done_y = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            if tx < 128:
                T.fill(x, 1.0)
                for k in range(turns):
                    T.copy(A[k * 32, 0], left)
                    T.barrier_arrive(of_x)
                    T.barrier_wait(of_y, k % 2)
                    for i, j in T.Parallel(32, 32):
                        x[i, j] = x[i, j] * 0.5 + right[i, j]
                    T.barrier_arrive(done_x)
                    T.barrier_wait(done_y, k % 2)
                T.copy(x, C[0, 0])
            else:
                T.fill(y, 2.0)
                for k in range(turns):
                    T.barrier_wait(of_x, k % 2)
                    for i, j in T.Parallel(32, 32):
                        y[i, j] = y[i, j] * 0.25 + left[i, j]
                    T.barrier_arrive(done_y)
                    T.copy(y, right)
                    T.barrier_arrive(of_y)
                    T.barrier_wait(done_x, k % 2)
                T.copy(y, C[32, 0])

    return kernel


def one_warp_each(turns: int = 4, slots: int = 3) -> Any:
    """Products that arrive at a barrier when they are over, begun by one warp for copies of another one."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64 * turns), BF16), B: T.Tensor((64 * turns, 64), BF16), C: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((slots, 64, 64), BF16)
            b = T.alloc_shared((slots, 64, 64), BF16)
            c = T.alloc_tmem((64, 64), FP32)
            out = T.alloc_fragment((64, 64), FP32)
            loaded = T.alloc_barrier([32] * slots)
            used = T.alloc_barrier([1] * slots)
            done = T.alloc_barrier([1])
            tx = T.get_thread_binding()
            if tx < 32:
                for k in T.serial(turns):
                    T.mbarrier_wait_parity(used[k % slots], ((k // slots) & 1) ^ 1)
                    T.tma_copy(A[0:64, k * 64 : k * 64 + 64], a[k % slots, :, :], barrier=loaded[k % slots])
                    T.tma_copy(B[k * 64 : k * 64 + 64, 0:64], b[k % slots, :, :], barrier=loaded[k % slots])
                    T.mbarrier_arrive(loaded[k % slots])
            elif tx < 64:
                for k in T.serial(turns):
                    T.mbarrier_wait_parity(loaded[k % slots], (k // slots) & 1)
                    T.tcgen05_gemm(a[k % slots, :, :], b[k % slots, :, :], c, mbar=used[k % slots], clear_accum=k == 0)
                T.tcgen05_mma_arrive(done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(c, out)
            T.copy(out, C)

    return kernel


WARPS = (
    Case("thread groups, slots", ring),
    Case("thread groups, one slot", lambda: ring(3, 1), on_chip=False),
    Case("thread groups, three", handed_on),
    Case("thread groups, both ways", mutual),
    Case("thread groups, products that arrive", one_warp_each, on_chip=False),
)
