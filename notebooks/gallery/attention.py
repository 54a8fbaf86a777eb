"""Flash attention, forward: the scores of a block of queries are never stored; their maxima and sums are carried over
the blocks of keys. Full, causal or windowed, with as many heads of keys as of queries or with groups of heads that
share theirs, and with a sink."""

import numpy as np

import ttexplore.language as T


def attention(batch, heads, groups, seq_len, dim, block_M, block_N, dtype, *, causal=False, window=0):
    """`groups` heads of queries share a head of keys and values. `window` counts the keys that a query sees, itself
    among them."""
    scale = dim**-0.5 * 1.44269504  # exp(x) = exp2(x * log2(e))
    of_queries, of_keys = (batch, heads, seq_len, dim), (batch, heads // groups, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(of_queries, dtype),
        K: T.Tensor(of_keys, dtype),
        V: T.Tensor(of_keys, dtype),
        Out: T.Tensor(of_queries, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch) as (bx, by, bz):
            q = T.alloc_shared((block_M, dim), dtype)
            k = T.alloc_shared((block_N, dim), dtype)
            v = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            out = T.alloc_fragment((block_M, dim), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            shrink = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bz, by, bx * block_M, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            # A causal block of queries ends with the block of keys on the diagonal.
            blocks = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(seq_len, block_N)
            for n in T.Pipelined(blocks, num_stages=2):
                T.copy(K[bz, by // groups, n * block_N, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(bx * block_M + i >= n * block_N + j, scores[i, j], -1e30)
                if window:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(bx * block_M + i < n * block_N + j + window, scores[i, j], -1e30)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2((before[i] - largest[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * shrink[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    out[i, j] = out[i, j] * shrink[i]
                T.copy(V[bz, by // groups, n * block_N, 0], v)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(block_M, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[bz, by, bx * block_M, 0])

    return main


def attention_of(Q, K, V, seen):
    """Attention as its formula says, for the pairs of a query and a key that `seen` holds."""
    groups = Q.shape[1] // K.shape[1]
    keys, values = np.repeat(K, groups, axis=1), np.repeat(V, groups, axis=1)
    scores = np.where(seen, Q @ keys.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ values


def seen_by(count, window=None):
    """Which keys each of `count` queries sees: those before it and itself, at most `window` of them."""
    distance = np.arange(count)[:, None] - np.arange(count)
    return (distance >= 0) & (distance < (window or count))


def full_attention(batch=1, heads=2, seq_len=128, dim=64, block_M=64, block_N=64, dtype="bfloat16"):
    return attention(batch, heads, 1, seq_len, dim, block_M, block_N, dtype)


def full_attention_reference(Q, K, V):
    return attention_of(Q, K, V, True)


def causal_attention(batch=1, heads=2, seq_len=128, dim=64, block_M=32, block_N=32, dtype="bfloat16"):
    return attention(batch, heads, 1, seq_len, dim, block_M, block_N, dtype, causal=True)


def causal_attention_reference(Q, K, V):
    return attention_of(Q, K, V, seen_by(Q.shape[2]))


def windowed_attention(batch=1, heads=2, seq_len=128, dim=64, block_M=32, block_N=32, dtype="bfloat16"):
    """A query sees itself and the 47 keys before it."""
    return attention(batch, heads, 1, seq_len, dim, block_M, block_N, dtype, causal=True, window=48)


def windowed_attention_reference(Q, K, V):
    return attention_of(Q, K, V, seen_by(Q.shape[2], 48))


def grouped_attention(batch=1, heads=4, seq_len=128, dim=32, block_M=64, block_N=64, dtype="bfloat16"):
    """Four heads of queries share two heads of keys and values."""
    return attention(batch, heads, 2, seq_len, dim, block_M, block_N, dtype, causal=True)


def grouped_attention_reference(Q, K, V):
    return attention_of(Q, K, V, seen_by(Q.shape[2]))


def attention_with_sink(batch=1, heads=2, seq_len=64, dim=32, block=32, dtype="bfloat16"):
    """Causal attention in which one more score of each head, its sink, takes part in the sum but has no value."""
    scale = dim**-0.5 * 1.44269504
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Sinks: T.Tensor((heads,), "float32"),
        Out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch) as (bx, by, bz):
            q = T.alloc_shared((block, dim), dtype)
            k = T.alloc_shared((block, dim), dtype)
            v = T.alloc_shared((block, dim), dtype)
            sink = T.alloc_shared((1,), "float32")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), dtype)
            out = T.alloc_fragment((block, dim), "float32")
            largest = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(Q[bz, by, bx * block, 0], q)
            T.copy(Sinks[by], sink)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.Pipelined(bx + 1, num_stages=2):
                T.copy(K[bz, by, n * block, 0], k)
                T.copy(V[bz, by, n * block, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(bx * block + i >= n * block + j, scores[i, j] * scale, -1e30)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2(scores[i, j] - largest[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp2(before[i] - largest[i]) + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block, dim):
                    out[i, j] = out[i, j] * T.exp2(before[i] - largest[i])
                T.gemm(weights, v, out)
            for i in T.Parallel(block):
                total[i] = total[i] + T.exp2(sink[0] * 1.44269504 - largest[i])
            for i, j in T.Parallel(block, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[bz, by, bx * block, 0])

    return main


def attention_with_sink_reference(Q, K, V, Sinks):
    scores = np.where(seen_by(Q.shape[2]), Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -np.inf)
    weights = np.exp(scores)
    return weights / (weights.sum(axis=-1, keepdims=True) + np.exp(Sinks)[:, None, None]) @ V
