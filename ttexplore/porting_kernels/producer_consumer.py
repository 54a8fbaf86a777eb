"""Specialized warps: one group of threads fills the slots of a ring, the other one uses them; mbarriers hand them
over."""

import ttexplore.language as T


def producer_consumer(K=320, slots=2, dtype="bfloat16"):
    """C = A @ B"""

    @T.prim_func
    def kernel(A: T.Tensor((128, K), dtype), B: T.Tensor((K, 64), dtype), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=256) as bx:
            a = T.alloc_shared((slots, 64, 64), dtype)
            b = T.alloc_shared((slots, 64, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128] * slots)
            empty = T.alloc_barrier([128] * slots)
            if T.get_thread_binding() < 128:
                for k in range(K // 64):
                    T.barrier_wait(empty[k % slots], (k // slots + 1) % 2)
                    T.tma_copy(A[bx * 64, k * 64], a[k % slots, :, :], barrier=full[k % slots])
                    T.tma_copy(B[k * 64, 0], b[k % slots, :, :], barrier=full[k % slots])
                    T.barrier_arrive(full[k % slots])
            else:
                T.clear(c)
                for k in range(K // 64):
                    T.barrier_wait(full[k % slots], k // slots % 2)
                    T.gemm(a[k % slots, :, :], b[k % slots, :, :], c)
                    T.barrier_arrive(empty[k % slots])
                T.copy(c, C[bx * 64, 0])

    return kernel
