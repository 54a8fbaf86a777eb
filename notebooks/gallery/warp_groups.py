"""Groups of warps with work of their own, as GPU kernels write out what reader and compute kernels are on this chip."""

import ttexplore.language as T


def producer_and_consumer(M=128, N=64, K=256, block=64, slots=2, dtype="bfloat16"):
    """C = A @ B: one group fills slots with blocks while the other multiplies, with a barrier for each direction."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(N // block, M // block, threads=256) as (bx, by):
            a = T.alloc_shared((slots, block, block), dtype)
            b = T.alloc_shared((slots, block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            full = T.alloc_barrier([128] * slots)
            empty = T.alloc_barrier([128] * slots)
            with T.ws(0):
                for k in T.serial(K // block):
                    T.barrier_wait(empty[k % slots], (k // slots + 1) % 2)
                    T.copy(A[by * block, k * block], a[k % slots, :, :])
                    T.copy(B[k * block, bx * block], b[k % slots, :, :])
                    T.barrier_arrive(full[k % slots])
            with T.ws(1):
                T.clear(c)
                for k in T.serial(K // block):
                    T.barrier_wait(full[k % slots], k // slots % 2)
                    T.gemm(a[k % slots, :, :], b[k % slots, :, :], c)
                    T.barrier_arrive(empty[k % slots])
                T.copy(c, C[by * block, bx * block])

    return main


def producer_and_consumer_reference(A, B):
    return A @ B


def group_that_loads(M=128, N=64, K=128, block=64, dtype="bfloat16"):
    """C = A @ B + Bias: two groups take turns in one loop. The first loads, the second multiplies."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), Bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(N // block, M // block, threads=256) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            bias = T.alloc_shared((block,), dtype)
            c = T.alloc_fragment((block, block), "float32")
            loaded = T.alloc_barrier(128)
            used = T.alloc_barrier(128)
            T.copy(Bias[bx * block], bias)
            T.sync_threads()
            with T.ws(1):
                T.clear(c)
            for k in T.serial(K // block):
                with T.ws(0):
                    T.barrier_wait(used, (k + 1) % 2)
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.barrier_arrive(loaded)
                with T.ws(1):
                    T.barrier_wait(loaded, k % 2)
                    T.gemm(a, b, c)
                    T.barrier_arrive(used)
            with T.ws(1):
                for i, j in T.Parallel(block, block):
                    c[i, j] = c[i, j] + bias[j]
                T.copy(c, C[by * block, bx * block])

    return main


def group_that_loads_reference(A, B, Bias):
    return A @ B + Bias
