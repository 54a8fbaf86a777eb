"""Tensors that say where others are read, how far a loop runs and what is left out. The cores read them first."""

import numpy as np

import ttexplore.language as T


def paged_attention(batch=2, heads=32, dim=64, pages=8, page=32, table_length=4, dtype="bfloat16"):
    """One query of each sequence against its keys, which lie in pages anywhere in a cache: `Table` says in which ones,
    `Lengths` how many there are. The heads of a sequence are the rows of a block."""
    scale = dim**-0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype),
        K: T.Tensor((pages, page, dim), dtype),
        V: T.Tensor((pages, page, dim), dtype),
        Table: T.Tensor((batch, table_length), "int32"),
        Lengths: T.Tensor((batch,), "int32"),
        Out: T.Tensor((batch, heads, dim), dtype),
    ):
        with T.Kernel(batch) as by:
            q = T.alloc_shared((heads, dim), dtype)
            k = T.alloc_shared((page, dim), dtype)
            v = T.alloc_shared((page, dim), dtype)
            scores = T.alloc_fragment((heads, page), "float32")
            weights = T.alloc_fragment((heads, page), dtype)
            out = T.alloc_fragment((heads, dim), "float32")
            largest = T.alloc_fragment((heads,), "float32")
            before = T.alloc_fragment((heads,), "float32")
            part = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[by, 0, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            for n in T.serial(Lengths[by]):
                number = Table[by, n]
                T.copy(K[number, 0, 0], k)
                T.copy(V[number, 0, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(heads, page):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(heads):
                    total[i] = total[i] * T.exp2((before[i] - largest[i]) * scale) + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(heads, dim):
                    out[i, j] = out[i, j] * T.exp2((before[i] - largest[i]) * scale)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(heads, dim):
                out[i, j] = out[i, j] / T.max(total[i], 1e-30)
            T.copy(out, Out[by, 0, 0])

    return main


def paged_attention_reference(Q, K, V, Table, Lengths):
    out = np.zeros(Q.shape)
    for n, length in enumerate(Lengths.astype(int)):
        if length > 0:
            own = Table[n, :length].astype(int)
            keys, values = (one[own].reshape(-1, one.shape[-1]) for one in (K, V))
            weights = np.exp(Q[n] @ keys.T / np.sqrt(Q.shape[-1]))
            out[n] = weights / weights.sum(axis=-1, keepdims=True) @ values
    return out


def grouped_gemm(blocks=4, experts=3, block=32, N=64, K=64, dtype="bfloat16"):
    """Out = A @ B[e], where each block of rows of A has its own expert e, as in a mixture of experts."""

    @T.prim_func
    def main(
        A: T.Tensor((blocks * block, K), dtype),
        B: T.Tensor((experts, K, N), dtype),
        Expert: T.Tensor((blocks,), "int32"),
        Out: T.Tensor((blocks * block, N), dtype),
    ):
        with T.Kernel(blocks) as by:
            a = T.alloc_shared((block, 32), dtype)
            b = T.alloc_shared((32, N), dtype)
            c = T.alloc_fragment((block, N), "float32")
            expert = Expert[by]
            T.clear(c)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[expert, k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, Out[by * block, 0])

    return main


def grouped_gemm_reference(A, B, Expert):
    rows = np.split(A, len(Expert))
    return np.concatenate([one @ B[expert] for one, expert in zip(rows, Expert.astype(int), strict=True)])


def block_sparse_gemm(M=128, N=128, K=128, block=32, dtype="bfloat16"):
    """Out = A @ B without the blocks of A that `Mask` leaves out, which are neither read nor multiplied."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        Mask: T.Tensor((M // block, K // block), "bool"),
        Out: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(N // 64, M // block) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, 64), dtype)
            c = T.alloc_fragment((block, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // block, num_stages=2):
                if Mask[by, k]:
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * 64], b)
                    T.gemm(a, b, c)
            T.copy(c, Out[by * block, bx * 64])

    return main


def block_sparse_gemm_reference(A, B, Mask):
    size = A.shape[0] // Mask.shape[0]
    return (A * np.kron(Mask, np.ones((size, size)))) @ B
