"""Rotary position embedding with the pairs in two halves, so that both halves are whole tiles."""

import ttexplore.language as T


def rope(seq_len=64, dim=128, block=32, dtype="bfloat16"):
    """Columns d and d + dim / 2 of each row are rotated by the angle of the row."""
    half = dim // 2

    @T.prim_func
    def kernel(
        X: T.Tensor((seq_len, dim), dtype), Cos: T.Tensor((seq_len, half), dtype),
        Sin: T.Tensor((seq_len, half), dtype), Y: T.Tensor((seq_len, dim), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(seq_len, block)) as bs:
            left = T.alloc_shared((block, half), dtype)
            right = T.alloc_shared((block, half), dtype)
            c = T.alloc_shared((block, half), dtype)
            s = T.alloc_shared((block, half), dtype)
            new_left = T.alloc_fragment((block, half), "float32")
            new_right = T.alloc_fragment((block, half), "float32")
            T.copy(X[bs * block, 0], left)
            T.copy(X[bs * block, half], right)
            T.copy(Cos[bs * block, 0], c)
            T.copy(Sin[bs * block, 0], s)
            for i, j in T.Parallel(block, half):
                new_left[i, j] = left[i, j] * c[i, j] - right[i, j] * s[i, j]
                new_right[i, j] = right[i, j] * c[i, j] + left[i, j] * s[i, j]
            T.copy(new_left, Y[bs * block, 0])
            T.copy(new_right, Y[bs * block, half])

    return kernel
