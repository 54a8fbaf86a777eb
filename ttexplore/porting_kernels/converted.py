"""A change of dtype, which a copy between blocks makes."""

import ttexplore.language as T


def converted(M=128, N=128, block=64):
    """B = A in bfloat16"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block), "float32")
            b = T.alloc_fragment((block, block), "bfloat16")
            T.copy(A[by * block, bx * block], a)
            T.copy(a, b)
            T.copy(b, B[by * block, bx * block])

    return kernel
