# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""Schedules of attention: K and V in chunks of the sequence, cores, and Q, K and V in shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.said import said
from ttexplore.errors import UsageError

BF16, FP32 = "bfloat16", "float32"
ROWS, LENGTH, WIDTH = 64, 256, 64


def attention(block: int = 64, **schedule: Any) -> Any:
    """softmax(Q K^T) V for two heads, over blocks of the sequence; the schedule is annotated in the kernel."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((2, ROWS, WIDTH), BF16), K: T.Tensor((2, LENGTH, WIDTH), BF16),
        V: T.Tensor((2, LENGTH, WIDTH), BF16), Out: T.Tensor((2, ROWS, WIDTH), BF16),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            if schedule:
                T.annotate_tt_schedule(**schedule)
            q = T.alloc_shared((ROWS, WIDTH), BF16)
            k = T.alloc_shared((block, WIDTH), BF16)
            v = T.alloc_shared((block, WIDTH), BF16)
            s = T.alloc_fragment((ROWS, block), FP32)
            p = T.alloc_fragment((ROWS, block), BF16)
            o = T.alloc_fragment((ROWS, WIDTH), FP32)
            sums = T.alloc_fragment((ROWS,), FP32)
            part = T.alloc_fragment((ROWS,), FP32)
            T.copy(Q[bx, 0, 0], q)
            T.clear(o)
            T.clear(sums)
            for n in T.Pipelined(LENGTH // block, num_stages=1):
                first = n * block
                T.copy(K[bx, first : first + block, :], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(ROWS, block):
                    s[i, j] = T.exp(s[i, j] * 0.125)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(ROWS):
                    sums[i] += part[i]
                T.copy(s, p)
                T.copy(V[bx, first : first + block, :], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(ROWS, WIDTH):
                o[i, j] /= sums[i]
            T.copy(o, Out[bx, 0, 0])

    return kernel


def depths(ex: Any) -> dict[str, int]:
    return {
        one.name: one.stages for one in ex.plan.buffers if one.producer != "compute" and one.name in ("q", "k", "v")
    }


def holds(ex: Any) -> None:
    """Every step, and NumPy in float64."""
    assert ex.error is None, str(ex.error)
    assert ex.check()
    q, k, v = (one.astype(np.float64) for one in ex.inputs())
    weights = np.exp(q @ k.transpose(0, 2, 1) * 0.125)
    wanted = weights @ v / weights.sum(-1, keepdims=True)
    made = ex.run()
    assert made.passed, made.message
    np.testing.assert_allclose(made.outputs[0].astype(np.float64), wanted, rtol=0.05, atol=0.03)


def test_a_chunk_of_the_sequence() -> None:
    assert depths(ttx.explore(attention())) == {"q": 2, "k": 1, "v": 1}
    ex = ttx.explore(attention(qk_chunk_tiles=6))
    assert depths(ex) == {"q": 2, "k": 3, "v": 3}
    assert [one for one in said(ex.plan) if "qk_chunk_tiles" in one] == [
        "k holds 3 blocks: qk_chunk_tiles=6", "v holds 3 blocks: qk_chunk_tiles=6",
    ]  # fmt: skip
    holds(ex)
    # Blocks of another size: the tiles stay, and their number of blocks does not.
    assert depths(ttx.explore(attention(32, qk_chunk_tiles=6))) == {"q": 2, "k": 6, "v": 6}


def test_both_chunks_and_single_depths() -> None:
    ex = ttx.explore(attention(chunk_k_tiles=4, qk_chunk_tiles=6, cb_depth={"v": 4}))
    assert depths(ex) == {"q": 2, "k": 3, "v": 4}
    notes = "\n".join(said(ex.plan))
    assert "k: qk_chunk_tiles overrides the 2 of chunk_k_tiles=4" in notes
    assert "v holds 4 blocks: cb_depth overrides the 3 of qk_chunk_tiles=6" in notes


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        (3, "qk_chunk_tiles is 3; a block of k is 2 tiles along the sequence"),
        (1, "qk_chunk_tiles is 1; a block of k is 2 tiles along the sequence"),
    ],
)
def test_a_chunk_that_is_no_blocks(tiles: int, message: str) -> None:
    error = ttx.explore(attention(qk_chunk_tiles=tiles)).error
    assert isinstance(error, UsageError)
    assert error.message == message
    assert error.hint == "use a multiple of 2"
    assert error.span is not None


def test_no_chained_products() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 128), BF16), B: T.Tensor((128, 64), BF16), C: T.Tensor((64, 64), FP32)):
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), BF16)
            b = T.alloc_shared((64, 64), BF16)
            c = T.alloc_fragment((64, 64), FP32)
            T.clear(c)
            for k in T.Pipelined(2, num_stages=1):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    error = ttx.explore(kernel, options={"qk_chunk_tiles": 4}).error
    assert isinstance(error, UsageError)
    assert error.message.startswith("qk_chunk_tiles is given, but no loop loads operands of chained products")
    assert "chunk_k_tiles" in error.hint


def test_cores_and_stages_of_attention() -> None:
    ex = ttx.explore(attention(core_ranges=[((2, 1), (3, 1))], stages=3))
    assert ex.plan.partition is not None
    assert [(core.x, core.y) for core in ex.plan.partition.cores] == [(2, 1), (3, 1)]
    assert depths(ex) == {"q": 3, "k": 3, "v": 3}
    holds(ex)


@pytest.mark.parametrize(
    "layouts",
    [
        {"Q": T.TTShard(axis=0, placement="L1")},
        {name: T.TTShard(axis=0, placement="L1") for name in "QKV"},
        {"K": {"memory": "L1", "shard": "height"}, "V": {"memory": "L1", "shard": "width"}},
        {"K": {"nd_shard": {"axes": [0, 1], "grid": [2, 4]}}, "V": {"memory": "DRAM", "shard": "height"}},
    ],
)
def test_shards_of_attention(layouts: dict[str, Any]) -> None:
    ex = ttx.explore(attention(qk_chunk_tiles=4), options={"layouts": layouts})
    holds(ex)
    assert [one.name for one in ex.plan.layouts if one.arrangement == "sharded"] == [*layouts]


def test_work_that_follows_the_shards_of_q() -> None:
    layouts = {"Q": T.TTShard(axis=0, placement="L1")}
    ex = ttx.explore(attention(policy="match_shard"), options={"layouts": layouts, "match": "Q"})
    holds(ex)
    assert ex.plan.partition is not None
    assert ex.plan.partition.policy == "match_shard"
