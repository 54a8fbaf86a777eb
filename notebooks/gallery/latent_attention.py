"""Multi-latent attention: all heads share one compressed vector for each token, which is key and value at once. A
second, short part of the keys carries the position."""

import numpy as np

import ttexplore.language as T


def latent_decoding(batch=2, heads=32, keys=128, dim=128, rope=32, block=64, dtype="bfloat16"):
    """One query against all keys. The heads are the rows of a block; scores are sums of two products."""
    scale = (dim + rope) ** -0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype),
        QRope: T.Tensor((batch, heads, rope), dtype),
        KV: T.Tensor((batch, keys, dim), dtype),
        KRope: T.Tensor((batch, keys, rope), dtype),
        Out: T.Tensor((batch, heads, dim), dtype),
    ):
        with T.Kernel(batch) as by:
            q = T.alloc_shared((heads, dim), dtype)
            q_rope = T.alloc_shared((heads, rope), dtype)
            kv = T.alloc_shared((block, dim), dtype)
            k_rope = T.alloc_shared((block, rope), dtype)
            scores = T.alloc_fragment((heads, block), "float32")
            weights = T.alloc_fragment((heads, block), dtype)
            out = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads,), "float32")
            before = T.alloc_fragment((heads,), "float32")
            part = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[by, 0, 0], q)
            T.copy(QRope[by, 0, 0], q_rope)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.Pipelined(T.ceildiv(keys, block), num_stages=2):
                T.copy(KV[by, n * block, 0], kv)
                T.copy(KRope[by, n * block, 0], k_rope)
                T.clear(scores)
                T.gemm(q, kv, scores, transpose_B=True)
                T.gemm(q_rope, k_rope, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(heads, block):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(heads):
                    total[i] = total[i] * T.exp2((before[i] - largest[i]) * scale) + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(heads, dim):
                    out[i, j] = out[i, j] * T.exp2((before[i] - largest[i]) * scale)
                T.gemm(weights, kv, out)
            for i, j in T.Parallel(heads, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[by, 0, 0])

    return main


def latent_decoding_reference(Q, QRope, KV, KRope):
    scores = Q @ KV.swapaxes(-1, -2) + QRope @ KRope.swapaxes(-1, -2)
    weights = np.exp(scores / np.sqrt(Q.shape[-1] + QRope.shape[-1]))
    return weights / weights.sum(axis=-1, keepdims=True) @ KV
