"""A matrix times a vector."""

import ttexplore.language as T


def gemv(N=128, K=256, block_N=32, block_K=128, dtype="bfloat16"):
    """y = B @ x: products of elements, summed along rows."""

    @T.prim_func
    def main(B: T.Tensor((N, K), dtype), x: T.Tensor((K,), dtype), y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N)) as bn:
            b = T.alloc_shared((block_N, block_K), dtype)
            v = T.alloc_shared((block_K,), dtype)
            products = T.alloc_fragment((block_N, block_K), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(B[bn * block_N, k * block_K], b)
                T.copy(x[k * block_K], v)
                for i, j in T.Parallel(block_N, block_K):
                    products[i, j] = b[i, j] * v[j]
                T.reduce_sum(products, total, dim=1, clear=False)
            T.copy(total, y[bn * block_N])

    return main


def gemv_reference(B, x):
    return B @ x


def gemv_by_threads(N=128, K=256, rows=32, threads=32, each=4, dtype="bfloat16"):
    """y = B @ x, written for a GPU's threads: several share a row, and add up their sums."""
    width = threads * each

    @T.prim_func
    def main(B: T.Tensor((N, K), dtype), x: T.Tensor((K,), dtype), y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, rows), threads=(rows, threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            b = T.alloc_local((each,), dtype)
            v = T.alloc_local((each,), dtype)
            total = T.alloc_local((1,), "float32")
            sums = T.alloc_shared((rows,), "float32")
            if tk == 0:
                sums[tn] = 0
            T.clear(total)
            for k in T.serial(T.ceildiv(K, width)):
                for i in T.vectorized(each):
                    b[i] = B[bn * rows + tn, k * width + tk * each + i]
                    v[i] = x[k * width + tk * each + i]
                for i in T.serial(each):
                    total[0] += T.cast(b[i], "float32") * T.cast(v[i], "float32")
            T.atomic_add(sums[tn], total[0])
            y[bn * rows + tn] = sums[tn]

    return main


def gemv_by_threads_reference(B, x):
    return B @ x
