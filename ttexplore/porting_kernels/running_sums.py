"""A scan along rows."""

import ttexplore.language as T


def running_sums(M=64, N=64, block=32, dtype="float32"):
    """Out[i, j] = sum of A[i, :j + 1]"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as by:
            a = T.alloc_shared((block, N), dtype)
            out = T.alloc_fragment((block, N), dtype)
            T.copy(A[by * block, 0], a)
            T.cumsum(a, out, dim=1)
            T.copy(out, Out[by * block, 0])

    return kernel
