"""Causal flash attention, forward: the scores are never stored, and blocks of keys beyond the diagonal are skipped."""

import ttexplore.language as T


def attention(heads=2, seq_len=128, dim=32, block=32, dtype="bfloat16"):
    """Out = softmax(Q @ K.T / sqrt(dim), causal) @ V, for each head"""
    # exp2 takes the scores times log2(e).
    scale = 1.44269504 / dim**0.5

    @T.prim_func
    def kernel(
        Q: T.Tensor((heads, seq_len, dim), dtype), K: T.Tensor((heads, seq_len, dim), dtype),
        V: T.Tensor((heads, seq_len, dim), dtype), Out: T.Tensor((heads, seq_len, dim), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(seq_len, block), heads, threads=128) as (bx, bh):
            q = T.alloc_shared((block, dim), dtype)
            k = T.alloc_shared((block, dim), dtype)
            v = T.alloc_shared((block, dim), dtype)
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), dtype)
            out = T.alloc_fragment((block, dim), "float32")
            largest = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(Q[bh, bx * block, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -T.infinity("float32"))
            for n in T.Pipelined(bx + 1, num_stages=2):
                T.copy(K[bh, n * block, 0], k)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(n * block + j <= bx * block + i, 0.0, -T.infinity("float32"))
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    before[i] = T.exp2((before[i] - largest[i]) * scale)
                for i in T.Parallel(block):
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(block, dim):
                    out[i, j] = out[i, j] * before[i]
                T.copy(scores, weights)
                T.copy(V[bh, n * block, 0], v)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(block, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[bh, bx * block, 0])

    return kernel
