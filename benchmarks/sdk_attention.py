# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Flash attention as the SDK computes it: the sums are those of the weights that the product takes, in bfloat16.

The attention of the gallery adds the weights up before they are rounded, as the kernels for GPUs do, and keeps them in
float32 for that."""

from __future__ import annotations

from typing import Any

import numpy as np

import ttexplore.language as T


def attention(
    heads: int = 2, groups: int = 2, seq_len: int = 256, dim: int = 64, block_M: int = 64, block_N: int = 128,
    causal: bool = False,
) -> Any:  # fmt: skip
    """`groups` heads of queries share a head of keys and values."""
    scale = dim**-0.5 * 1.44269504  # exp(x) = exp2(x * log2(e))
    of_queries, of_keys = (heads, seq_len, dim), (heads // groups, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(of_queries, "bfloat16"),
        K: T.Tensor(of_keys, "bfloat16"),
        V: T.Tensor(of_keys, "bfloat16"),
        Out: T.Tensor(of_queries, "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads) as (bx, by):
            q = T.alloc_shared((block_M, dim), "bfloat16")
            k = T.alloc_shared((block_N, dim), "bfloat16")
            v = T.alloc_shared((block_N, dim), "bfloat16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), "bfloat16")
            out = T.alloc_fragment((block_M, dim), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            shrink = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[by, bx * block_M, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(largest, -1e30)
            blocks = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(seq_len, block_N)
            for n in T.Pipelined(blocks, num_stages=2):
                T.copy(K[by // groups, n * block_N, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(bx * block_M + i >= n * block_N + j, scores[i, j], -1e30)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2((before[i] - largest[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)
                T.copy(scores, weights)
                T.reduce_sum(weights, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * shrink[i] + part[i]
                for i, j in T.Parallel(block_M, dim):
                    out[i, j] = out[i, j] * shrink[i]
                T.copy(V[by // groups, n * block_N, 0], v)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(block_M, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, Out[by, bx * block_M, 0])

    return main


def in_numpy(q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
    """Attention as its formula says, in float64."""
    queries, keys, values = (array.astype(np.float64) for array in (q, k, v))
    keys, values = (np.repeat(array, len(queries) // len(array), axis=0) for array in (keys, values))
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ values
