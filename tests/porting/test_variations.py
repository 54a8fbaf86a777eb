"""Variations of well-known kernels that differ in one detail: each is written as NumPy computes it, or not written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from tests.porting.test_port import HEAD, readable

Array = NDArray[Any]
Formula = Callable[..., Array]
KNOWN = Path(__file__).parent / "known"
BOUND = 2e-5


def source_of(name: str, *changes: tuple[str, str]) -> str:
    """A well-known source with some of its text changed."""
    text = (KNOWN / name).read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def check(source: str, formula: Formula | None, **arguments: Any) -> None:
    """Check that a source is written, proved and computes a formula; without one, that it is not written."""
    readable(source)
    ported = ttx.port(source)
    (kernel,) = ported.kernels
    if formula is None:
        assert kernel.skeleton == "", kernel.skeleton
        assert bool(kernel.outside) != (kernel.draft is not None)
        return
    assert kernel.skeleton, kernel.outside or kernel.draft
    explored = ttx.explore(ported, dtype="float32", **arguments)
    inputs = explored.inputs(kind="random", seed=3)
    expected = formula(*(array if array.dtype.kind == "i" else array.astype(np.float64) for array in inputs))
    (result, *_) = explored.reference(list(inputs))
    assert result.shape == expected.shape
    assert np.ptp(expected) > 0
    assert np.abs(result - expected).max() <= BOUND * np.abs(expected).max()


def running(x: Array) -> Array:
    return np.cumsum(x, axis=1)


STORED = "tl.cumsum(x, axis=0)"
LARGEST = "m = tl.max(tl.where(cols < n, x, -float('inf')), axis=0)"
IN_BLOCKS = f"""{HEAD}def k(x_ptr, y_ptr, stride, n, R: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    cols = tl.arange(0, B)
    at = rows[:, None] * stride + cols[None, :]
    tl.store(y_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=1))
"""
IN_TURNS = f"""{HEAD}def k(x_ptr, y_ptr, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    before = 0.0
    for begin in range(0, n, B):
        cols = begin + tl.arange(0, B)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)
        tl.store(y_ptr + row * stride + cols, before + tl.cumsum(x, axis=0), mask=cols < n)
        before += tl.sum(x, axis=0)
"""
SCANS: dict[str, tuple[str, Formula | None]] = {
    "as it is": (source_of("cumsum.triton"), running),
    "last axis": (source_of("cumsum.triton", ("axis=0", "axis=-1")), running),
    "from the end": (source_of("cumsum.triton", (STORED, "tl.cumsum(x, axis=0, reverse=True)")), None),
    "products": (source_of("cumsum.triton", (STORED, "tl.cumprod(x, axis=0)")), None),
    "another axis": (source_of("cumsum.triton", (STORED, "tl.cumsum(x, axis=1)")), None),
    "before each": (source_of("cumsum.triton", (STORED, f"{STORED} - x")), lambda x: running(x) - x),
    "of squares": (source_of("cumsum.triton", (STORED, "tl.cumsum(x * x, axis=0) * 0.5")), lambda x: running(x**2) / 2),
    "of sums": (source_of("cumsum.triton", (STORED, f"tl.cumsum({STORED}, axis=0)")), lambda x: running(running(x))),
    "begins at 1": (source_of("cumsum.triton", ("other=0.0", "other=1.0")), running),
    "largest": (source_of("cumsum.triton", (STORED, f"tl.max({STORED}, axis=0)")), None),
    "less the largest": (
        source_of("cumsum.triton", ("    tl.store", f"    {LARGEST}\n    tl.store"),
                  (STORED, "tl.cumsum(tl.exp(x - m), axis=0)")),
        lambda x: running(np.exp(x - x.max(axis=1, keepdims=True))),
    ),
    "shifted": (source_of("cumsum.triton", ("y_ptr + row * stride + cols", "y_ptr + row * stride + cols + 1")), None),
    "every second": (source_of("cumsum.triton", ("x_ptr + row * stride + cols", "x_ptr + row * stride + 2 * cols")),
                     None),
    "half of a row": (source_of("cumsum.triton", ("other=0.0)", "other=0.0)\n    x = tl.where(cols < n // 2, x, 0.0)")),
                      None),
    "blocks of rows": (IN_BLOCKS, running),
    "down the rows": (IN_BLOCKS.replace("axis=1", "axis=0"), None),
    "parts of rows": (IN_TURNS, None),
    "parts of rows alone": (IN_TURNS.replace("before + ", ""), None),
}  # fmt: skip


@pytest.mark.parametrize("name", SCANS)
def test_a_scan_is_written_as_it_is_or_not_at_all(name: str) -> None:
    source, formula = SCANS[name]
    check(source, formula, rows=64, columns=96)


NUMPY_HEADS = (4, 96, 32)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    bias: Callable[[Array], Array] = np.zeros_like,
    causal: bool = False,
) -> Array:
    """Attention of heads, each with the keys and values of its group; `bias` is that of the distance of row and key."""
    heads, length, dim = q.shape
    result = np.zeros_like(q)
    distance = np.subtract.outer(np.arange(length), np.arange(length)).astype(np.float64)
    for head in range(heads):
        key_head = head // (heads // len(k))
        scores = q[head] @ k[key_head].T * dim**-0.5 + bias(distance)
        if causal:
            scores = np.where(distance >= 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        result[head] = weights @ v[key_head] / weights.sum(axis=1, keepdims=True)
    return result


GROUPED, ALIBI = "attention_grouped.triton", "attention_alibi.triton"
SHARED = "(head // GROUP)"
TO_K, TO_V = f"K + {SHARED} * stride_h", f"V + {SHARED} * stride_h"
CAUSAL = 'tl.where(offs_m[:, None] >= offs_n[None, :], qk, float("-inf"))'
GROUPS: dict[str, tuple[str, Formula | None]] = {
    "as it is": (source_of(GROUPED), lambda *x: attention(*x, causal=True)),
    "not causal": (source_of(GROUPED, (CAUSAL, "qk * 1.0")), attention),
    "groups of two": (source_of(GROUPED, (SHARED, "(head // 2)")), lambda *x: attention(*x, causal=True)),
    "only keys": (source_of(GROUPED, (TO_V, "V + head * stride_h")), None),
    "only values": (source_of(GROUPED, (TO_K, "K + head * stride_h")), None),
    "other groups of values": (source_of(GROUPED, (TO_V, "V + (head // 2) * stride_h")), None),
    "heads in turn": (source_of(GROUPED, (SHARED, "(head % GROUP)")), None),
    "the first head": (source_of(GROUPED, (SHARED, "0")), None),
    "the next head": (source_of(GROUPED, (SHARED, "(head // GROUP + 1)")), None),
    "every second head": (source_of(GROUPED, (SHARED, "(head // GROUP * 2)")), None),
    "groups of queries": (source_of(GROUPED, ("Q + head * stride_h", f"Q + {SHARED} * stride_h")), None),
    "groups of results": (source_of(GROUPED, ("Out + head * stride_h", f"Out + {SHARED} * stride_h")), None),
    "groups and all heads": (source_of(GROUPED, (SHARED, "(head // GROUP + head)")), None),
    "by rows": (source_of(GROUPED, (SHARED, "(start_m // GROUP)")), None),
    "without the first block": (source_of(GROUPED, ("range(0, N_CTX", "range(BLOCK_N, N_CTX")), None),
    "without the diagonal": (source_of(GROUPED, (">= offs_n", "> offs_n")), None),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_heads_that_share_keys_are_written_as_they_do_or_not_at_all(name: str) -> None:
    source, formula = GROUPS[name]
    check(source, formula, heads=4, key_heads=2, length=96, dim=32)


DISTANCE = "slope * (offs_m[:, None] - offs_n[None, :])"
BIAS = f"qk = qk - {DISTANCE}"
SLOPE = 0.25


def biased(text: str) -> str:
    return source_of(ALIBI, (BIAS, text))


BIASES: dict[str, tuple[str, Formula | None]] = {
    "as it is": (source_of(ALIBI), lambda *x: attention(*x, bias=lambda d: -SLOPE * d)),
    "added": (
        biased("qk = qk + slope * (offs_m[:, None] - offs_n[None, :])"),
        lambda *x: attention(*x, bias=lambda d: SLOPE * d),
    ),
    "half": (
        biased("qk = qk - 0.5 * (offs_m[:, None] - offs_n[None, :])"),
        None,
    ),
    "twice": (
        biased("qk = qk - 2 * slope * (offs_m[:, None] - offs_n[None, :])"),
        lambda *x: attention(*x, bias=lambda d: -2 * SLOPE * d),
    ),
    "of keys": (
        biased("qk = qk + slope * offs_n[None, :]"),
        # What is the same for a row changes nothing.
        lambda *x: attention(*x, bias=lambda d: -SLOPE * d),
    ),
    "causal": (
        biased(f"{BIAS}\n        qk = {CAUSAL}"),
        lambda *x: attention(*x, bias=lambda d: -SLOPE * d, causal=True),
    ),
    "after the mask": (biased(f"qk = {CAUSAL}\n        {BIAS}"), None),
    "of the block's own rows": (biased("qk = qk - slope * (tl.arange(0, BLOCK_M)[:, None] - offs_n[None, :])"), None),
    "of the block's own keys": (
        biased("qk = qk - slope * (offs_m[:, None] - tl.arange(0, BLOCK_N)[None, :])"), None,
    ),
    "before it is scaled": (
        source_of(ALIBI, ("tl.dot(q, k) * sm_scale", "tl.dot(q, k)"), (BIAS, f"{BIAS}\n        qk = qk * sm_scale")),
        None,
    ),
    "of the largest alone": (
        source_of(ALIBI, (f"        {BIAS}\n", ""), ("tl.max(qk, 1)", f"tl.max(qk - {DISTANCE}, 1)")),
        None,
    ),
    "not of the largest": (
        source_of(ALIBI, (f"        {BIAS}\n", ""), ("tl.exp(qk -", f"tl.exp(qk - {DISTANCE} -")),
        None,
    ),
    "by a length": (biased("qk = qk - N_CTX * (offs_m[:, None] - offs_n[None, :])"), None),
    "by the head": (biased("qk = qk - slope * head * (offs_m[:, None] - offs_n[None, :])"), None),
    "squared": (biased("d = offs_m[:, None] - offs_n[None, :]\n        qk = qk - slope * d * d"), None),
    "both ways": (biased("qk = qk - slope * tl.abs(offs_m[:, None] - offs_n[None, :])"), None),
    "powers of two": (source_of(ALIBI, ("tl.exp(", "tl.exp2(")), None),
}  # fmt: skip


@pytest.mark.parametrize("name", BIASES)
def test_what_is_added_to_scores_is_written_as_it_is_or_not_at_all(name: str) -> None:
    source, formula = BIASES[name]
    arguments = {} if formula is None else {"slope": SLOPE}
    check(source, formula, heads=2, length=96, dim=32, **arguments)
