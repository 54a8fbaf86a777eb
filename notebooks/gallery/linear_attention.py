"""Linear attention and retention: no softmax, so that everything before a chunk is one matrix, carried from chunk to
chunk."""

import numpy as np

import ttexplore.language as T


def linear_attention(batch=1, heads=2, seq_len=128, dim=32, chunk=32, dtype="bfloat16"):
    """Out[t] = sum over s <= t of (Q[t] . K[s]) V[s]"""
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), Out: T.Tensor(shape, dtype)
    ):
        with T.Kernel(heads, batch) as (bx, by):
            q = T.alloc_shared((chunk, dim), dtype)
            k = T.alloc_shared((chunk, dim), dtype)
            v = T.alloc_shared((chunk, dim), dtype)
            scores = T.alloc_fragment((chunk, chunk), "float32")
            masked = T.alloc_fragment((chunk, chunk), dtype)
            state = T.alloc_fragment((dim, dim), "float32")
            before = T.alloc_fragment((dim, dim), dtype)
            out = T.alloc_fragment((chunk, dim), "float32")
            T.clear(state)
            for n in T.Pipelined(T.ceildiv(seq_len, chunk), num_stages=1):
                T.copy(Q[by, bx, n * chunk, 0], q)
                T.copy(K[by, bx, n * chunk, 0], k)
                T.copy(V[by, bx, n * chunk, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(chunk, chunk):
                    masked[i, j] = T.if_then_else(i >= j, scores[i, j], 0)
                T.copy(state, before)
                T.clear(out)
                T.gemm(masked, v, out)
                T.gemm(q, before, out)
                T.gemm(k, v, state, transpose_A=True)
                T.copy(out, Out[by, bx, n * chunk, 0])

    return main


def linear_attention_reference(Q, K, V):
    return np.tril(Q @ K.swapaxes(-1, -2)) @ V


def retention(batch=1, heads=2, seq_len=128, dim=32, chunk=32, decay=0.9, dtype="bfloat16"):
    """Out[t] = sum over s <= t of decay^(t - s) (Q[t] . K[s]) V[s]"""
    shape, log_decay = (batch, heads, seq_len, dim), float(np.log2(decay))

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), Out: T.Tensor(shape, dtype)
    ):
        with T.Kernel(heads, batch) as (bx, by):
            q = T.alloc_shared((chunk, dim), dtype)
            k = T.alloc_shared((chunk, dim), dtype)
            v = T.alloc_shared((chunk, dim), dtype)
            aged = T.alloc_fragment((chunk, dim), dtype)
            scores = T.alloc_fragment((chunk, chunk), "float32")
            masked = T.alloc_fragment((chunk, chunk), dtype)
            state = T.alloc_fragment((dim, dim), "float32")
            before = T.alloc_fragment((dim, dim), dtype)
            out = T.alloc_fragment((chunk, dim), "float32")
            T.clear(state)
            for n in T.Pipelined(T.ceildiv(seq_len, chunk), num_stages=1):
                T.copy(Q[by, bx, n * chunk, 0], q)
                T.copy(K[by, bx, n * chunk, 0], k)
                T.copy(V[by, bx, n * chunk, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(chunk, chunk):
                    masked[i, j] = T.if_then_else(i >= j, scores[i, j] * T.exp2((i - j) * log_decay), 0)
                T.copy(state, before)
                T.clear(out)
                T.gemm(q, before, out)
                for i, j in T.Parallel(chunk, dim):
                    out[i, j] = out[i, j] * T.exp2((i + 1) * log_decay)
                T.gemm(masked, v, out)
                for i, j in T.Parallel(chunk, dim):
                    aged[i, j] = k[i, j] * T.exp2((chunk - 1 - i) * log_decay)
                for i, j in T.Parallel(dim, dim):
                    state[i, j] = state[i, j] * float(decay**chunk)
                T.gemm(aged, v, state, transpose_A=True)
                T.copy(out, Out[by, bx, n * chunk, 0])

    return main


def retention_reference(Q, K, V, decay=0.9):
    distance = np.arange(Q.shape[2])[:, None] - np.arange(Q.shape[2])
    return np.where(distance >= 0, Q @ K.swapaxes(-1, -2) * decay ** np.maximum(distance, 0), 0) @ V
