"""Flash attention, backward. The forward pass saves the log2 of each row's sum of exponentials, so that the weights of
a block are found again from its scores alone. Keys and queries have a kernel each: every block of a gradient is summed
up on one core."""

import numpy as np

import ttexplore.language as T


def attention_saving_sums(batch=1, heads=2, seq_len=128, dim=64, block_M=64, block_N=64, dtype="bfloat16"):
    """Causal attention, forward, with the log2 of the sums of exponentials for the backward pass."""
    scale = dim**-0.5 * 1.44269504
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Out: T.Tensor(shape, dtype),
        Lse: T.Tensor((batch, heads, seq_len), "float32"),
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
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bz, by, bx * block_M, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.Pipelined(T.ceildiv((bx + 1) * block_M, block_N), num_stages=2):
                T.copy(K[bz, by, n * block_N, 0], k)
                T.copy(V[bz, by, n * block_N, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.if_then_else(bx * block_M + i >= n * block_N + j, scores[i, j] * scale, -1e30)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] - largest[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2(before[i] - largest[i]) + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    out[i, j] = out[i, j] * T.exp2(before[i] - largest[i])
                T.gemm(weights, v, out)
            for i, j in T.Parallel(block_M, dim):
                out[i, j] = out[i, j] / total[i]
            for i in T.Parallel(block_M):
                total[i] = T.log2(total[i]) + largest[i]
            T.copy(out, Out[bz, by, bx * block_M, 0])
            T.copy(total, Lse[bz, by, bx * block_M])

    return main


def seen(scores):
    """The scores of keys up to each query."""
    return np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)


def attention_saving_sums_reference(Q, K, V):
    weights = np.exp(seen(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])))
    sums = weights.sum(axis=-1)
    return weights / sums[..., None] @ V, np.log2(sums)


def products_of_rows(batch=1, heads=2, seq_len=128, dim=64, block=64, dtype="bfloat16"):
    """Delta: how much each row of the result and its gradient have in common, the sum of their products."""
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(
        Out: T.Tensor(shape, dtype), dOut: T.Tensor(shape, dtype), Delta: T.Tensor((batch, heads, seq_len), "float32")
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch) as (bx, by, bz):
            out = T.alloc_shared((block, dim), dtype)
            d_out = T.alloc_shared((block, dim), dtype)
            both = T.alloc_fragment((block, dim), "float32")
            delta = T.alloc_fragment((block,), "float32")
            T.copy(Out[bz, by, bx * block, 0], out)
            T.copy(dOut[bz, by, bx * block, 0], d_out)
            for i, j in T.Parallel(block, dim):
                both[i, j] = T.cast(out[i, j], "float32") * T.cast(d_out[i, j], "float32")
            T.reduce_sum(both, delta, dim=1)
            T.copy(delta, Delta[bz, by, bx * block])

    return main


def products_of_rows_reference(Out, dOut):
    return (Out * dOut).sum(axis=-1)


def gradients_of_keys(batch=1, heads=2, seq_len=128, dim=64, block=64, dtype="bfloat16"):
    """dK and dV: a block of keys against all queries that see it."""
    scale = dim**-0.5
    shape, rows = (batch, heads, seq_len, dim), (batch, heads, seq_len)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        dOut: T.Tensor(shape, dtype),
        Lse: T.Tensor(rows, "float32"),
        Delta: T.Tensor(rows, "float32"),
        dK: T.Tensor(shape, dtype),
        dV: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch) as (bx, by, bz):
            k = T.alloc_shared((block, dim), dtype)
            v = T.alloc_shared((block, dim), dtype)
            q = T.alloc_shared((block, dim), dtype)
            d_out = T.alloc_shared((block, dim), dtype)
            lse = T.alloc_shared((block,), "float32")
            delta = T.alloc_shared((block,), "float32")
            scores = T.alloc_fragment((block, block), "float32")
            d_scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_shared((block, block), dtype)
            slopes = T.alloc_shared((block, block), dtype)
            d_k = T.alloc_fragment((block, dim), "float32")
            d_v = T.alloc_fragment((block, dim), "float32")
            T.copy(K[bz, by, bx * block, 0], k)
            T.copy(V[bz, by, bx * block, 0], v)
            T.clear(d_k)
            T.clear(d_v)
            for n in T.serial(bx, T.ceildiv(seq_len, block)):
                T.copy(Q[bz, by, n * block, 0], q)
                T.copy(dOut[bz, by, n * block, 0], d_out)
                T.copy(Lse[bz, by, n * block], lse)
                T.copy(Delta[bz, by, n * block], delta)
                T.clear(scores)
                T.clear(d_scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.gemm(d_out, v, d_scores, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(
                        n * block + i >= bx * block + j, T.exp2(scores[i, j] * (scale * 1.44269504) - lse[i]), 0.0
                    )
                T.copy(scores, weights)
                for i, j in T.Parallel(block, block):
                    d_scores[i, j] = scores[i, j] * (d_scores[i, j] - delta[i]) * scale
                T.copy(d_scores, slopes)
                T.gemm(weights, d_out, d_v, transpose_A=True)
                T.gemm(slopes, q, d_k, transpose_A=True)
            T.copy(d_k, dK[bz, by, bx * block, 0])
            T.copy(d_v, dV[bz, by, bx * block, 0])

    return main


def weights_and_slopes(Q, K, V, dOut, Lse, Delta):
    """The weights of all keys for all queries, and the gradients of their scores."""
    scores = seen(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]))
    weights = np.exp(scores - Lse[..., None] * np.log(2))
    return weights, weights * (dOut @ V.swapaxes(-1, -2) - Delta[..., None]) / np.sqrt(Q.shape[-1])


def gradients_of_keys_reference(Q, K, V, dOut, Lse, Delta):
    weights, slopes = weights_and_slopes(Q, K, V, dOut, Lse, Delta)
    return slopes.swapaxes(-1, -2) @ Q, weights.swapaxes(-1, -2) @ dOut


def gradients_of_queries(batch=1, heads=2, seq_len=128, dim=64, block=64, dtype="bfloat16"):
    """dQ: a block of queries against all keys that it sees."""
    scale = dim**-0.5
    shape, rows = (batch, heads, seq_len, dim), (batch, heads, seq_len)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        dOut: T.Tensor(shape, dtype),
        Lse: T.Tensor(rows, "float32"),
        Delta: T.Tensor(rows, "float32"),
        dQ: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch) as (bx, by, bz):
            q = T.alloc_shared((block, dim), dtype)
            d_out = T.alloc_shared((block, dim), dtype)
            lse = T.alloc_shared((block,), "float32")
            delta = T.alloc_shared((block,), "float32")
            k = T.alloc_shared((block, dim), dtype)
            v = T.alloc_shared((block, dim), dtype)
            scores = T.alloc_fragment((block, block), "float32")
            d_scores = T.alloc_fragment((block, block), "float32")
            slopes = T.alloc_shared((block, block), dtype)
            d_q = T.alloc_fragment((block, dim), "float32")
            T.copy(Q[bz, by, bx * block, 0], q)
            T.copy(dOut[bz, by, bx * block, 0], d_out)
            T.copy(Lse[bz, by, bx * block], lse)
            T.copy(Delta[bz, by, bx * block], delta)
            T.clear(d_q)
            for n in T.Pipelined(bx + 1, num_stages=2):
                T.copy(K[bz, by, n * block, 0], k)
                T.copy(V[bz, by, n * block, 0], v)
                T.clear(scores)
                T.clear(d_scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.gemm(d_out, v, d_scores, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(
                        bx * block + i >= n * block + j, T.exp2(scores[i, j] * (scale * 1.44269504) - lse[i]), 0.0
                    )
                for i, j in T.Parallel(block, block):
                    d_scores[i, j] = scores[i, j] * (d_scores[i, j] - delta[i]) * scale
                T.copy(d_scores, slopes)
                T.gemm(slopes, k, d_q)
            T.copy(d_q, dQ[bz, by, bx * block, 0])

    return main


def gradients_of_queries_reference(Q, K, V, dOut, Lse, Delta):
    return weights_and_slopes(Q, K, V, dOut, Lse, Delta)[1] @ K
