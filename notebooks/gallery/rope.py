"""Rotary position embedding: pairs of numbers are turned by an angle that grows with the position."""

import numpy as np

import ttexplore.language as T


def rope_halves(batch=1, seq_len=64, heads=2, dim=128, block_S=32, dtype="bfloat16"):
    """Number d of the first half and number d of the second half are a pair, so that both halves are whole tiles."""
    half = dim // 2

    @T.prim_func
    def main(
        X: T.Tensor((batch, heads, seq_len, dim), dtype),
        Cos: T.Tensor((seq_len, half), dtype),
        Sin: T.Tensor((seq_len, half), dtype),
        Y: T.Tensor((batch, heads, seq_len, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_S), heads, batch) as (bs, bh, bb):
            first = T.alloc_shared((block_S, half), dtype)
            second = T.alloc_shared((block_S, half), dtype)
            c = T.alloc_shared((block_S, half), dtype)
            s = T.alloc_shared((block_S, half), dtype)
            turned = T.alloc_fragment((block_S, half), "float32")
            rest = T.alloc_fragment((block_S, half), "float32")
            T.copy(X[bb, bh, bs * block_S, 0], first)
            T.copy(X[bb, bh, bs * block_S, half], second)
            T.copy(Cos[bs * block_S, 0], c)
            T.copy(Sin[bs * block_S, 0], s)
            for i, j in T.Parallel(block_S, half):
                turned[i, j] = first[i, j] * c[i, j] - second[i, j] * s[i, j]
                rest[i, j] = second[i, j] * c[i, j] + first[i, j] * s[i, j]
            T.copy(turned, Y[bb, bh, bs * block_S, 0])
            T.copy(rest, Y[bb, bh, bs * block_S, half])

    return main


def rope_halves_reference(X, Cos, Sin):
    first, second = np.split(X, 2, axis=-1)
    return np.concatenate([first * Cos - second * Sin, second * Cos + first * Sin], axis=-1)


def rope_neighbours(batch=1, seq_len=64, heads=2, dim=64, block_S=32, dtype="bfloat16"):
    """Numbers 2 * d and 2 * d + 1 are a pair. No operation on tiles exchanges neighbours, but a matrix product does:
    with a matrix that holds 1 and -1 beside its diagonal. It is made from indices on the core, once for each block."""

    @T.prim_func
    def main(
        X: T.Tensor((batch, heads, seq_len, dim), dtype),
        Cos: T.Tensor((seq_len, dim), dtype),
        Sin: T.Tensor((seq_len, dim), dtype),
        Y: T.Tensor((batch, heads, seq_len, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_S), heads, batch) as (bs, bh, bb):
            x = T.alloc_shared((block_S, dim), dtype)
            c = T.alloc_shared((block_S, dim), dtype)
            s = T.alloc_shared((block_S, dim), dtype)
            exchange = T.alloc_shared((dim, dim), dtype)
            beside = T.alloc_fragment((block_S, dim), "float32")
            T.copy(X[bb, bh, bs * block_S, 0], x)
            T.copy(Cos[bs * block_S, 0], c)
            T.copy(Sin[bs * block_S, 0], s)
            for i, j in T.Parallel(dim, dim):
                to_even = T.if_then_else(T.logical_and(j % 2 == 0, i == j + 1), -1.0, 0.0)
                exchange[i, j] = T.if_then_else(T.logical_and(j % 2 == 1, i == j - 1), 1.0, to_even)
            T.clear(beside)
            T.gemm(x, exchange, beside)
            for i, j in T.Parallel(block_S, dim):
                beside[i, j] = x[i, j] * c[i, j] + beside[i, j] * s[i, j]
            T.copy(beside, Y[bb, bh, bs * block_S, 0])

    return main


def rope_neighbours_reference(X, Cos, Sin):
    even, odd = X[..., ::2], X[..., 1::2]
    turned = np.stack([-odd, even], axis=-1).reshape(X.shape)
    return X * Cos + turned * Sin
