"""Convolutions of pictures with the channels last: padded already, or with the padding made on the way."""

import numpy as np

import ttexplore.language as T


def convolution(N=1, H=8, W=32, C=32, F=64, K=3, dtype="bfloat16"):
    """Out[n, h, w, f] = sum over kh, kw, c of X[n, h + kh, w + kw, c] * Weight[kh, kw, c, f]: a product of matrices
    for each place in the filter, added to the same accumulator."""

    @T.prim_func
    def main(
        X: T.Tensor((N, H + K - 1, W + K - 1, C), dtype),
        Weight: T.Tensor((K, K, C, F), dtype),
        Out: T.Tensor((N, H, W, F), dtype),
    ):
        with T.Kernel(H, N) as (bh, bn):
            x = T.alloc_shared((W, C), dtype)
            w = T.alloc_shared((C, F), dtype)
            out = T.alloc_fragment((W, F), "float32")
            T.clear(out)
            for place in T.Pipelined(K * K, num_stages=2):
                T.copy(X[bn, bh + place // K, place % K, 0], x)
                T.copy(Weight[place // K, place % K, 0, 0], w)
                T.gemm(x, w, out)
            T.copy(out, Out[bn, bh, 0, 0])

    return main


def convolution_reference(X, Weight):
    size = Weight.shape[0]
    height, width = X.shape[1] - size + 1, X.shape[2] - size + 1
    return sum(X[:, kh : kh + height, kw : kw + width] @ Weight[kh, kw] for kh in range(size) for kw in range(size))


def depthwise_convolution(N=1, H=8, W=32, C=64, K=3, dtype="bfloat16"):
    """Out[n, h, w, c] = sum over kh, kw of X[n, h + kh, w + kw, c] * Weight[kh, kw, c]"""

    @T.prim_func
    def main(
        X: T.Tensor((N, H + K - 1, W + K - 1, C), dtype),
        Weight: T.Tensor((K, K, C), dtype),
        Out: T.Tensor((N, H, W, C), dtype),
    ):
        with T.Kernel(H, N) as (bh, bn):
            x = T.alloc_shared((W, C), dtype)
            w = T.alloc_shared((C,), dtype)
            out = T.alloc_fragment((W, C), "float32")
            T.clear(out)
            for place in T.Pipelined(K * K, num_stages=2):
                T.copy(X[bn, bh + place // K, place % K, 0], x)
                T.copy(Weight[place // K, place % K, 0], w)
                for i, j in T.Parallel(W, C):
                    out[i, j] = out[i, j] + x[i, j] * w[j]
            T.copy(out, Out[bn, bh, 0, 0])

    return main


def depthwise_convolution_reference(X, Weight):
    size = Weight.shape[0]
    height, width = X.shape[1] - size + 1, X.shape[2] - size + 1
    return sum(X[:, kh : kh + height, kw : kw + width] * Weight[kh, kw] for kh in range(size) for kw in range(size))


def convolution_im2col(N=1, H=8, W=16, C=32, F=64, K=3, block_M=64, block_K=32, dtype="bfloat16"):
    """The same as one product of matrices, of a picture with a border of zeros: T.im2col lays out what the filter sees
    at each place as a row."""
    pad = K // 2

    @T.prim_func
    def main(
        X: T.Tensor((N, H, W, C), dtype),
        Weight: T.Tensor((K, K, C, F), dtype),
        Out: T.Tensor((N, H, W, F), dtype),
    ):
        with T.Kernel(T.ceildiv(N * H * W, block_M)) as bx:
            x = T.alloc_shared((block_M, block_K), dtype)
            w = T.alloc_shared((block_K, F), dtype)
            out = T.alloc_fragment((block_M, F), "float32")
            rows = T.Tensor((K * K * C, F), dtype, Weight.data)
            flat = T.Tensor((N * H * W, F), dtype, Out.data)
            T.clear(out)
            for k in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=2):
                T.im2col(X, x, bx, k, K, 1, 1, pad)
                T.copy(rows[k * block_K, 0], w)
                T.gemm(x, w, out)
            T.copy(out, flat[bx * block_M, 0])

    return main


def convolution_im2col_reference(X, Weight):
    pad = Weight.shape[0] // 2
    return convolution_reference(np.pad(X, ((0, 0), (pad, pad), (pad, pad), (0, 0))), Weight)
