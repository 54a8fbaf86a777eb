"""Two phases with a barrier of the whole grid between them: each becomes a launch of its own."""

import ttexplore.language as T


def two_phases(M=64, N=64, block=32, dtype="float32"):
    """Half = A / 2, Out = Half + its mirrored blocks of rows"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), Half: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as by:
            a = T.alloc_shared((block, N), dtype)
            b = T.alloc_shared((block, N), dtype)
            c = T.alloc_fragment((block, N), dtype)
            T.copy(A[by * block, 0], a)
            for i, j in T.Parallel(block, N):
                c[i, j] = a[i, j] * 0.5
            T.copy(c, Half[by * block, 0])
            T.sync_grid()
            T.copy(Half[by * block, 0], a)
            T.copy(Half[(T.ceildiv(M, block) - 1 - by) * block, 0], b)
            for i, j in T.Parallel(block, N):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, Out[by * block, 0])

    return kernel
