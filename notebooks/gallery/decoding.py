"""Decoding with a split cache: one query against many keys. Parts of the keys are worked on by different cores; a
second kernel joins their results by their maxima and sums."""

import numpy as np

import ttexplore.language as T


def decoding_parts(batch=2, heads=32, keys=256, dim=64, parts=2, block_N=64, dtype="bfloat16"):
    """The attention of each part of the keys and the log2 of its sum of exponentials. The heads of a batch share keys
    and values, so that they are the rows of a block."""
    scale, per_part = dim**-0.5 * 1.44269504, keys // parts

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype),
        K: T.Tensor((batch, keys, dim), dtype),
        V: T.Tensor((batch, keys, dim), dtype),
        Part: T.Tensor((batch, parts, heads, dim), "float32"),
        Lse: T.Tensor((batch, parts, heads), "float32"),
    ):
        with T.Kernel(parts, batch) as (bx, by):
            q = T.alloc_shared((heads, dim), dtype)
            k = T.alloc_shared((block_N, dim), dtype)
            v = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((heads, block_N), "float32")
            weights = T.alloc_fragment((heads, block_N), dtype)
            out = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads,), "float32")
            before = T.alloc_fragment((heads,), "float32")
            shrink = T.alloc_fragment((heads,), "float32")
            part = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[by, 0, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.Pipelined(T.ceildiv(per_part, block_N), num_stages=2):
                T.copy(K[by, bx * per_part + n * block_N, 0], k)
                T.copy(V[by, bx * per_part + n * block_N, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(heads):
                    shrink[i] = T.exp2((before[i] - largest[i]) * scale)
                for i, j in T.Parallel(heads, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(heads):
                    total[i] = total[i] * shrink[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(heads, dim):
                    out[i, j] = out[i, j] * shrink[i]
                T.gemm(weights, v, out)
            for i, j in T.Parallel(heads, dim):
                out[i, j] = out[i, j] / total[i]
            for i in T.Parallel(heads):
                total[i] = T.log2(total[i]) + largest[i] * scale
            T.copy(out, Part[by, bx, 0, 0])
            T.copy(total, Lse[by, bx, 0])

    return main


def decoding_parts_reference(Q, K, V, parts=2):
    outs, sums = [], []
    for keys, values in zip(np.split(K, parts, axis=1), np.split(V, parts, axis=1), strict=True):
        scores = Q @ keys.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
        weights = np.exp(scores)
        outs.append(weights / weights.sum(axis=-1, keepdims=True) @ values)
        sums.append(np.log2(weights.sum(axis=-1)))
    return np.stack(outs, axis=1), np.stack(sums, axis=1)


def decoding_joined(batch=2, heads=32, dim=64, parts=2, dtype="bfloat16"):
    """The parts, each with its share of the sum of all."""

    @T.prim_func
    def main(
        Part: T.Tensor((batch, parts, heads, dim), "float32"),
        Lse: T.Tensor((batch, parts, heads), "float32"),
        Out: T.Tensor((batch, heads, dim), dtype),
    ):
        with T.Kernel(batch) as by:
            p = T.alloc_shared((heads, dim), "float32")
            lse = T.alloc_shared((heads,), "float32")
            largest = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            out = T.alloc_fragment((heads, dim), "float32")
            T.fill(largest, -1e30)
            T.clear(total)
            T.clear(out)
            for n in T.serial(parts):
                T.copy(Lse[by, n, 0], lse)
                for i in T.Parallel(heads):
                    largest[i] = T.max(largest[i], lse[i])
            for n in T.serial(parts):
                T.copy(Lse[by, n, 0], lse)
                T.copy(Part[by, n, 0, 0], p)
                for i in T.Parallel(heads):
                    total[i] = total[i] + T.exp2(lse[i] - largest[i])
                for i, j in T.Parallel(heads, dim):
                    out[i, j] = out[i, j] + p[i, j] * T.exp2(lse[i] - largest[i])
            for i, j in T.Parallel(heads, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[by, 0, 0])

    return main


def decoding_joined_reference(Part, Lse):
    shares = np.exp2(Lse - Lse.max(axis=1, keepdims=True))
    return (Part * shares[..., None]).sum(axis=1) / shares.sum(axis=1)[..., None]
