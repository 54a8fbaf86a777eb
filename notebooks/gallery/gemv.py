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
