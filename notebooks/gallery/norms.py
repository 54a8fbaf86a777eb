"""Norms of rows and of groups of rows, with weights."""

import numpy as np

import ttexplore.language as T


def rms_norm(M=64, N=256, block_M=32, dtype="bfloat16"):
    """Y = X / sqrt(mean(X^2) + 1e-5) * weight"""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), weight: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            x = T.alloc_shared((block_M, N), dtype)
            w = T.alloc_shared((N,), dtype)
            y = T.alloc_fragment((block_M, N), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.copy(weight, w)
            for i, j in T.Parallel(block_M, N):
                y[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(y, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + 1e-5)
            for i, j in T.Parallel(block_M, N):
                y[i, j] = x[i, j] * scale[i] * w[j]
            T.copy(y, Y[by * block_M, 0])

    return main


def rms_norm_reference(X, weight):
    return X / np.sqrt((X * X).mean(axis=1, keepdims=True) + 1e-5) * weight


def layer_norm(M=64, N=256, block_M=32, dtype="bfloat16"):
    """Y = (X - mean) / sqrt(variance + 1e-5) * weight + bias, with the mean and the reciprocal deviation as outputs."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        weight: T.Tensor((N,), dtype),
        bias: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
        Mean: T.Tensor((M,), "float32"),
        Scale: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            x = T.alloc_shared((block_M, N), dtype)
            w = T.alloc_shared((N,), dtype)
            b = T.alloc_shared((N,), dtype)
            centred = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.copy(weight, w)
            T.copy(bias, b)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
            for i, j in T.Parallel(block_M, N):
                centred[i, j] = x[i, j] - mean[i]
            for i, j in T.Parallel(block_M, N):
                square[i, j] = centred[i, j] * centred[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + 1e-5)
            for i, j in T.Parallel(block_M, N):
                centred[i, j] = centred[i, j] * scale[i] * w[j] + b[j]
            T.copy(centred, Y[by * block_M, 0])
            T.copy(mean, Mean[by * block_M])
            T.copy(scale, Scale[by * block_M])

    return main


def layer_norm_reference(X, weight, bias):
    mean = X.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(X.var(axis=1, keepdims=True) + 1e-5)
    return (X - mean) * scale * weight + bias, mean[:, 0], scale[:, 0]


def group_norm(batch=2, groups=4, channels=32, positions=64, dtype="float32"):
    """Channels of a picture in groups: each group of `channels` rows of `positions` numbers has mean 0 and deviation 1
    afterwards. The statistics of a group go along both axes of its block."""
    count = channels * positions

    @T.prim_func
    def main(
        X: T.Tensor((batch, groups, channels, positions), dtype),
        Y: T.Tensor((batch, groups, channels, positions), dtype),
    ):
        with T.Kernel(groups, batch) as (bx, by):
            x = T.alloc_shared((channels, positions), dtype)
            y = T.alloc_fragment((channels, positions), dtype)
            of_rows = T.alloc_fragment((channels,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.copy(X[by, bx, 0, 0], x)
            T.reduce_sum(x, of_rows, dim=1)
            T.reduce_sum(of_rows, mean, dim=0)
            for i, j in T.Parallel(channels, positions):
                y[i, j] = x[i, j] - mean[0] / count
            for i, j in T.Parallel(channels, positions):
                x[i, j] = y[i, j] * y[i, j]
            T.reduce_sum(x, of_rows, dim=1)
            T.reduce_sum(of_rows, scale, dim=0)
            for i, j in T.Parallel(channels, positions):
                y[i, j] = y[i, j] * T.rsqrt(scale[0] / count + 1e-5)
            T.copy(y, Y[by, bx, 0, 0])

    return main


def group_norm_reference(X):
    mean = X.mean(axis=(2, 3), keepdims=True)
    return (X - mean) / np.sqrt(X.var(axis=(2, 3), keepdims=True) + 1e-5)
