"""Softmax of rows, each of which is on the core at once."""

import ttexplore.language as T


def softmax(M=128, N=160, block=32, dtype="bfloat16"):
    """Y = exp(X - max) / sum, for each row"""

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as by:
            x = T.alloc_shared((block, N), dtype)
            e = T.alloc_fragment((block, N), "float32")
            largest = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(X[by * block, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(block, N):
                e[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(e, total, dim=1)
            for i, j in T.Parallel(block, N):
                e[i, j] = e[i, j] / total[i]
            T.copy(e, Y[by * block, 0])

    return kernel
