"""Softmax of rows: with the whole row on the core, and online, with rows that come in blocks."""

import numpy as np

import ttexplore.language as T


def softmax(M=128, N=160, block_M=32, dtype="bfloat16"):
    """Each row is on the core at once; N may be any number."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            x = T.alloc_shared((block_M, N), dtype)
            e = T.alloc_fragment((block_M, N), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[by * block_M, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(block_M, N):
                e[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(e, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                e[i, j] = e[i, j] / total[i]
            T.copy(e, Y[by * block_M, 0])

    return main


def softmax_reference(X):
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def online_softmax(M=64, N=256, block_M=32, block_N=64, dtype="bfloat16"):
    """Two passes over blocks of a row: the first carries the maximum and the sum, scaled anew whenever the maximum
    grows; the second divides."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            x = T.alloc_shared((block_M, block_N), dtype)
            e = T.alloc_fragment((block_M, block_N), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by * block_M, k * block_N], x)
                T.copy(largest, before)
                T.reduce_max(x, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    e[i, j] = T.exp(x[i, j] - largest[i])
                T.reduce_sum(e, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp(before[i] - largest[i]) + part[i]
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[by * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    e[i, j] = T.exp(x[i, j] - largest[i]) / total[i]
                T.copy(e, Y[by * block_M, k * block_N])

    return main


def online_softmax_reference(X):
    return softmax_reference(X)
