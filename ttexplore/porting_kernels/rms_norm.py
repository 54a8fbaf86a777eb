"""RMS norm of rows with a weight per column: a reduction, one scale per row, and a product."""

import ttexplore.language as T


def rms_norm(M=64, N=256, block=32, dtype="bfloat16"):
    """Y = X / sqrt(mean(X^2) + 1e-5) * weight"""

    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), weight: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as by:
            x = T.alloc_shared((block, N), dtype)
            w = T.alloc_shared((N,), dtype)
            y = T.alloc_fragment((block, N), "float32")
            scale = T.alloc_fragment((block,), "float32")
            T.copy(X[by * block, 0], x)
            T.copy(weight, w)
            for i, j in T.Parallel(block, N):
                y[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(y, scale, dim=1)
            for i in T.Parallel(block):
                scale[i] = T.rsqrt(scale[i] / N + 1e-5)
            for i, j in T.Parallel(block, N):
                y[i, j] = x[i, j] * scale[i] * w[j]
            T.copy(y, Y[by * block, 0])

    return kernel
