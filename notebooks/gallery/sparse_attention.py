"""Attention that leaves out blocks of keys: those that a mask excludes, or all but those that a query has selected."""

import numpy as np

import ttexplore.language as T


def block_sparse_attention(batch=1, heads=2, seq_len=128, dim=64, block=32, dtype="bfloat16"):
    """Attention without the blocks of keys that `Mask` leaves out for a block of queries. They are neither read nor
    multiplied; a block of queries that sees nothing gives 0."""
    scale = dim**-0.5 * 1.44269504
    shape, blocks = (batch, heads, seq_len, dim), seq_len // block

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Mask: T.Tensor((batch, heads, blocks, blocks), "bool"),
        Out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(blocks, heads, batch) as (bx, by, bz):
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
            T.copy(Q[bz, by, bx * block, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.Pipelined(blocks, num_stages=2):
                if Mask[bz, by, bx, n]:
                    T.copy(K[bz, by, n * block, 0], k)
                    T.copy(V[bz, by, n * block, 0], v)
                    T.clear(scores)
                    T.gemm(q, k, scores, transpose_B=True)
                    T.copy(largest, before)
                    T.reduce_max(scores, largest, dim=1, clear=False)
                    for i, j in T.Parallel(block, block):
                        scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                    T.reduce_sum(scores, part, dim=1)
                    for i in T.Parallel(block):
                        total[i] = total[i] * T.exp2((before[i] - largest[i]) * scale) + part[i]
                    T.copy(scores, weights)
                    for i, j in T.Parallel(block, dim):
                        out[i, j] = out[i, j] * T.exp2((before[i] - largest[i]) * scale)
                    T.gemm(weights, v, out)
            for i, j in T.Parallel(block, dim):
                out[i, j] = out[i, j] / T.max(total[i], 1e-30)
            T.copy(out, Out[bz, by, bx * block, 0])

    return main


def block_sparse_attention_reference(Q, K, V, Mask):
    size = Q.shape[2] // Mask.shape[-1]
    weights = np.exp(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) * np.kron(Mask, np.ones((size, size)))
    return weights @ V / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)


def native_sparse_attention(batch=1, queries=4, heads=32, keys=256, dim=64, selected=3, block=32, dtype="bfloat16"):
    """Each query attends to the blocks of keys that it has selected, `Selected` says which. Its heads share keys and
    values, so that they are the rows of a block; the result is scaled by the gate of the query."""
    scale = dim**-0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((batch, queries, heads, dim), dtype),
        K: T.Tensor((batch, keys, dim), dtype),
        V: T.Tensor((batch, keys, dim), dtype),
        Selected: T.Tensor((batch, queries, selected), "int32"),
        Gate: T.Tensor((batch, queries, heads), "float32"),
        Out: T.Tensor((batch, queries, heads, dim), dtype),
    ):
        with T.Kernel(queries, batch) as (bx, by):
            q = T.alloc_shared((heads, dim), dtype)
            k = T.alloc_shared((block, dim), dtype)
            v = T.alloc_shared((block, dim), dtype)
            gate = T.alloc_shared((heads,), "float32")
            scores = T.alloc_fragment((heads, block), "float32")
            weights = T.alloc_fragment((heads, block), dtype)
            out = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads,), "float32")
            before = T.alloc_fragment((heads,), "float32")
            part = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[by, bx, 0, 0], q)
            T.copy(Gate[by, bx, 0], gate)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.serial(selected):
                number = Selected[by, bx, n]
                T.copy(K[by, number * block, 0], k)
                T.copy(V[by, number * block, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
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
                T.gemm(weights, v, out)
            for i, j in T.Parallel(heads, dim):
                out[i, j] = out[i, j] / total[i] * gate[i]
            T.copy(out, Out[by, bx, 0, 0])

    return main


def native_sparse_attention_reference(Q, K, V, Selected, Gate, block=32):
    out = np.zeros(Q.shape)
    for n, query in np.ndindex(Q.shape[:2]):
        rows = np.concatenate([np.arange(one * block, (one + 1) * block) for one in Selected[n, query].astype(int)])
        weights = np.exp(Q[n, query] @ K[n, rows].T / np.sqrt(Q.shape[-1]))
        out[n, query] = weights / weights.sum(axis=-1, keepdims=True) @ V[n, rows]
    return out * Gate[..., None]
