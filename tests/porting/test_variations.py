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


def check(source: str, formula: Formula | None, choices: int = 0, **arguments: Any) -> None:
    """Check that a source is written, proved and computes a formula; without one, that it is not written. Whole numbers
    are indices, of as many choices."""
    readable(source)
    ported = ttx.port(source)
    (kernel,) = ported.kernels
    if formula is None:
        assert kernel.skeleton == "", kernel.skeleton
        assert bool(kernel.outside) != (kernel.draft is not None)
        return
    assert kernel.skeleton, kernel.outside or kernel.draft
    explored = ttx.explore(ported, dtype="float32", **arguments)
    draw = np.random.default_rng(5)
    inputs = [
        draw.integers(0, choices, array.shape).astype(np.int32) if array.dtype.kind == "i" else array
        for array in explored.inputs(kind="random", seed=3)
    ]
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
    arguments: dict[str, Any] = {} if formula is None else {"slope": SLOPE}
    check(source, formula, heads=2, length=96, dim=32, **arguments)


EMBEDDING, LOOKED_UP = "embedding.cu", "table[ids[token] * dim + j]"


def looked_up(text: str, *changes: tuple[str, str]) -> str:
    return source_of(EMBEDDING, (LOOKED_UP, text), *changes)


BY_BLOCKS = f"""{HEAD}def k(ids, table, out, M, N, stride, R: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    index = tl.load(ids + rows, mask=rows < M, other=0)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    v = tl.load(table + index[:, None] * stride + cols[None, :], mask=mask)
    tl.store(out + rows[:, None] * N + cols[None, :], v, mask=mask)
"""
GATHERED: dict[str, tuple[str, Formula | None]] = {
    "as it is": (source_of(EMBEDDING), lambda table, ids: table[ids]),
    "an index of its own": (
        looked_up("table[row * dim + j]", ("int token = blockIdx.x;", "int token = blockIdx.x, row = ids[token];")),
        lambda table, ids: table[ids],
    ),
    "an address of its own": (
        looked_up("row[j]", ("blockIdx.x;", "blockIdx.x; const float *row = table + ids[token] * dim;")),
        lambda table, ids: table[ids],
    ),
    "scaled": (looked_up(f"2.0f * {LOOKED_UP}"), lambda table, ids: 2 * table[ids]),
    "with positions": (
        looked_up(f"{LOOKED_UP} + p[token * dim + j]", ("float *out", "const float *p, float *out")),
        lambda table, ids, p: table[ids] + p,
    ),
    "the next row": (looked_up("table[(ids[token] + 1) * dim + j]"), None),
    "every second row": (looked_up("table[ids[token] * 2 * dim + j]"), None),
    "the next column": (looked_up("table[ids[token] * dim + j + 1]"), None),
    "the index of the row after": (looked_up("table[ids[token + 1] * dim + j]"), None),
    "an index for each column": (looked_up("table[ids[j] * dim + j]"), None),
    "columns by an index": (looked_up("table[token * dim + ids[j]]"), None),
    "as columns": (looked_up("table[ids[token] + j * dim]"), None),
    "an index of an index": (looked_up("table[ids[ids[token]] * dim + j]"), None),
    "a remainder": (looked_up("table[ids[token] % 7 * dim + j]"), None),
    "the row besides": (looked_up("table[(ids[token] + token) * dim + j]"), None),
    "a sum of two": (looked_up("table[ids[token] * dim + j] + table[ids[token + 1] * dim + j]"), None),
    "two tables": (
        looked_up(f"{LOOKED_UP} * other[ids[token] * dim + j]", ("float *out", "const float *other, float *out")),
        lambda table, ids, other: table[ids] * other[ids],
    ),
    "with the index": (looked_up(f"{LOOKED_UP} * ids[token]"), None),
    "where it is not 0": (looked_up(f"ids[token] == 0 ? 0.0f : {LOOKED_UP}"), None),
    "few bits": (looked_up(LOOKED_UP.replace("ids[token]", "(short)ids[token]")), None),
    "scattered": (
        source_of(EMBEDDING, ("out[token", "out[ids[token]"), (LOOKED_UP, "table[token * dim + j]")), None,
    ),
    "blocks": (BY_BLOCKS, lambda table, ids: table[ids]),
    "blocks by long indices": (
        BY_BLOCKS.replace("other=0)", "other=0).to(tl.int64)"), lambda table, ids: table[ids],
    ),
    "blocks without a mask of rows": (BY_BLOCKS.replace("(rows[:, None] < M) & ", ""), lambda table, ids: table[ids]),
    "blocks of columns": (
        BY_BLOCKS.replace("index[:, None] * stride + cols[None, :]", "rows[:, None] * stride + index[None, :]"), None,
    ),
    "blocks with the index": (BY_BLOCKS.replace(", v, mask", ", v * index[:, None], mask"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", GATHERED)
def test_gathered_rows_are_written_as_they_are_or_not_at_all(name: str) -> None:
    source, formula = GATHERED[name]
    sizes = {"table_rows": 50} | ({"other_rows": 50} if name == "two tables" else {})
    check(source, formula, choices=50, rows=70, columns=96, **sizes)


ENTROPY, PICKED = "cross_entropy.triton", "tl.load(logits_ptr + row * stride + label)"
LOSS = "tl.store(loss_ptr + row, lse"


def entropy(x: Array, labels: Array) -> Array:
    largest = x.max(axis=1)
    total = np.log(np.exp(x - largest[:, None]).sum(axis=1)) + largest
    return np.asarray([total[row] - x[row, label] for row, label in enumerate(labels)])


def picked(x: Array, labels: Array) -> Array:
    return np.asarray([x[row, label] for row, label in enumerate(labels)])


OF_ROWS = """
__global__ void loss(const float *x, const int *labels, float *y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float best = -INFINITY, sum = 0.0f;
    for (int j = 0; j < n; ++j) best = fmaxf(best, x[row * n + j]);
    for (int j = 0; j < n; ++j) sum += expf(x[row * n + j] - best);
    y[row] = logf(sum) + best - x[row * n + labels[row]];
}
"""


def entropic(*changes: tuple[str, str]) -> str:
    return source_of(ENTROPY, *changes)


PICKS: dict[str, tuple[str, Formula | None]] = {
    "as it is": (entropic(), entropy),
    "with the largest": (entropic((LOSS, f"{LOSS} - m")), lambda x, labels: entropy(x, labels) - x.max(axis=1)),
    "twice": (
        entropic((f"lse - {PICKED}", f"lse - 2.0 * {PICKED}")),
        lambda x, labels: entropy(x, labels) - picked(x, labels),
    ),
    "a factor": (
        entropic((f"lse - {PICKED}", f"lse * {PICKED}")),
        lambda x, labels: (entropy(x, labels) + picked(x, labels)) * picked(x, labels),
    ),
    "the next one": (entropic(("+ label)", "+ label + 1)")), None),
    "every second one": (entropic(("+ label)", "+ 2 * label)")), None),
    "of the row after": (entropic((PICKED, "tl.load(logits_ptr + (row + 1) * stride + label)")), None),
    "of the first row": (entropic((PICKED, "tl.load(logits_ptr + label)")), None),
    "the label of the row after": (entropic(("labels_ptr + row", "labels_ptr + row + 1")), None),
    "the first label": (entropic(("tl.load(labels_ptr + row)", "tl.load(labels_ptr)")), None),
    "by rows": (entropic((PICKED, "tl.load(logits_ptr + label * stride + row)")), None),
    "of another tensor": (
        entropic(("loss_ptr, stride", "other, loss_ptr, stride"), (PICKED, "tl.load(other + row * stride + label)")),
        None,
    ),
    "with the label": (entropic((f"lse - {PICKED}", f"lse - {PICKED} * label")), None),
    "without the ignored": (
        entropic((f"lse - {PICKED}", f"tl.where(label == -100, 0.0, lse - {PICKED})")), None,
    ),
    "without the largest": (
        entropic(("m + tl.log(tl.sum(tl.exp(logits - m)", "tl.log(tl.sum(tl.exp(logits)")), entropy,
    ),
    "threads of rows": (OF_ROWS, entropy),
    "threads of rows, of the one before": (
        OF_ROWS.replace("x[row * n + labels[row]]", "x[row * n + labels[row] - 1]"), None,
    ),
    "threads of rows, but for the first": (OF_ROWS.replace("j = 0; j < n; ++j) sum", "j = 1; j < n; ++j) sum"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKS)
def test_a_chosen_element_of_a_row_is_written_as_it_is_or_not_at_all(name: str) -> None:
    source, formula = PICKS[name]
    check(source, formula, choices=96, rows=70, columns=96)


GELU, STORED_BY_FOUR = "gelu_float4.cu", "*reinterpret_cast<float4 *>(y + i) = r"


def by_four(*changes: tuple[str, str]) -> str:
    return source_of(GELU, *changes)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


BY_TWO = """
__global__ void k(const float *x, const float *w, float *y, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const float2 *x2 = reinterpret_cast<const float2 *>(x);
    float2 v = x2[i / 2], u = *reinterpret_cast<const float2 *>(w + i);
    *reinterpret_cast<float2 *>(y + i) = make_float2(v.x * u.x, v.y * u.y);
}
"""
VECTORS: dict[str, tuple[str, Formula | None]] = {
    "as it is": (by_four(), gelu),
    "left beyond": (by_four(("if (i < n) {", "if (i >= n) return;\n    {")), gelu),
    "not by four": (by_four((" * 4;", ";")), None),
    "by eight": (by_four((" * 4;", " * 8;")), None),
    "by two": (by_four((" * 4;", " * 2;")), None),
    "a vector further": (by_four(("(x + i)", "(x + i + 4)")), None),
    "an element further": (by_four(("(x + i)", "(x + i + 1)")), None),
    "exchanged": (by_four(("gelu(v.x)", "gelu(v.w)"), ("r.w = gelu(v.w)", "r.w = gelu(v.x)")), None),
    "of the first one": (by_four(("gelu(v.y)", "gelu(v.x)")), None),
    "one is another function": (by_four(("r.z = gelu(v.z)", "r.z = v.z")), None),
    "without the last one": (by_four(("        r.w = gelu(v.w);\n", "")), None),
    "only the first one is stored": (by_four((STORED_BY_FOUR, "y[i] = r.x")), None),
    "up to the last vector": (by_four(("if (i < n)", "if (i < n - 4)")), None),
    "with another length": (by_four(("int n)", "int n, int m)"), ("if (i < n)", "if (i < m / 2)")), None),
    "by two, of two": (
        by_four((" * 4;", " * 2;"), ("float4", "float2"), ("        r.z = gelu(v.z);\n        r.w = gelu(v.w);\n", "")),
        gelu,
    ),
    "two tensors": (BY_TWO.replace("x2[i / 2]", "*reinterpret_cast<const float2 *>(x + i)"), lambda x, w: x * w),
    "two tensors, one reversed": (
        BY_TWO.replace("x2[i / 2]", "*reinterpret_cast<const float2 *>(x + n - 2 - i)"), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_written_as_their_elements_or_not_at_all(name: str) -> None:
    source, formula = VECTORS[name]
    check(source, formula, rows=70, columns=96)


JOIN = "for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);"
ONLY_FIRST = "if (warp == 0) v = warp_sum(v);"
OF_LANES = "v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0.0f;"
BLOCK_SUM = f"""
__inline__ __device__ float warp_sum(float v) {{
    {JOIN}
    return v;
}}
__inline__ __device__ float block_sum(float v) {{
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    {OF_LANES}
    {ONLY_FIRST}
    return v;
}}
"""
NORM = f"""{BLOCK_SUM}
__global__ void layer_norm(const float *x, float *y, int columns, float eps) {{
    __shared__ float mean, scale;
    int row = blockIdx.x;
    float s = 0.0f, q = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) s += x[row * columns + j];
    s = block_sum(s);
    if (threadIdx.x == 0) mean = s / columns;
    __syncthreads();
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {{
        float d = x[row * columns + j] - mean;
        q += d * d;
    }}
    q = block_sum(q);
    if (threadIdx.x == 0) scale = rsqrtf(q / columns + eps);
    __syncthreads();
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[row * columns + j] = (x[row * columns + j] - mean) * scale;
}}
"""
LARGEST_OF_ROWS = """
__global__ void row_max(const float *x, float *y, int n) {
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = -INFINITY;
    for (int j = threadIdx.x; j < n; j += blockDim.x) v = fmaxf(v, x[blockIdx.x * n + j]);
    for (int o = warpSize / 2; o > 0; o /= 2) v = fmaxf(v, __shfl_down_sync(0xffffffff, v, o));
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < blockDim.x / warpSize ? part[lane] : -INFINITY;
        for (int o = warpSize / 2; o > 0; o /= 2) v = fmaxf(v, __shfl_down_sync(0xffffffff, v, o));
        if (lane == 0) y[blockIdx.x] = v;
    }
}
"""


def normed(x: Array) -> Array:
    centered = x - x.mean(axis=1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 0.5)


def norm(*changes: tuple[str, str]) -> str:
    text = NORM
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def largest(before: str, after: str) -> str:
    assert before in LARGEST_OF_ROWS, before
    return LARGEST_OF_ROWS.replace(before, after)


DOWN = ("__shfl_xor_sync", "__shfl_down_sync")
WARPS: dict[str, tuple[str, Formula | None]] = {
    "as it is": (norm(), normed),
    "down": (norm(DOWN), normed),
    "in all warps": (
        norm((OF_LANES, OF_LANES.replace("threadIdx.x <", "lane <")), (ONLY_FIRST, "v = warp_sum(v);")), normed,
    ),
    "in all warps, without variables": (
        norm(
            (OF_LANES, OF_LANES.replace("threadIdx.x <", "lane <")), (ONLY_FIRST, "v = warp_sum(v);"),
            ("if (threadIdx.x == 0) mean", "mean"), ("if (threadIdx.x == 0) scale", "scale"),
            ("__shared__ float mean, scale;", "float mean, scale;"),
        ),
        normed,
    ),
    "in the first warp, without variables": (
        norm(
            ("if (threadIdx.x == 0) mean", "mean"), ("if (threadIdx.x == 0) scale", "scale"),
            ("__shared__ float mean, scale;", "float mean, scale;"),
        ),
        None,
    ),
    "warps rounded up": (norm(("blockDim.x / 32", "(blockDim.x + 31) / 32")), normed),
    "joined twice": (norm(("v = warp_sum(v);\n    if (lane", "v = warp_sum(warp_sum(v));\n    if (lane")), None),
    "all joined twice": (norm((ONLY_FIRST, "if (warp == 0) v = warp_sum(warp_sum(v));")), None),
    "without the second level": (norm((ONLY_FIRST, "")), None),
    "without the first level": (norm(("    v = warp_sum(v);\n    if (lane", "    if (lane")), None),
    "of the second lane": (norm(("if (lane == 0)", "if (lane == 1)")), None),
    "without a lane": (norm(("if (lane == 0) part", "part")), None),
    "from 8 lanes on": (norm(("int o = 16;", "int o = 8;")), None),
    "to 2 lanes": (norm(("o > 0", "o > 1")), None),
    "up": (norm(("__shfl_xor_sync", "__shfl_up_sync")), None),
    "half of the lanes": (norm(("0xffffffff", "0x0000ffff")), None),
    "another distance": (norm(("v, o)", "v, 1)")), None),
    "another value": (norm(("(0xffffffff, v, o)", "(0xffffffff, 2.0f * v, o)")), None),
    "by lanes": (norm(("part[warp] = v", "part[lane] = v")), None),
    "read by warps": (norm(("part[lane] :", "part[warp] :")), None),
    "half of the warps": (norm(("blockDim.x / 32", "blockDim.x / 64")), None),
    "beyond the warps": (norm((": 0.0f;", ": 1.0f;")), None),
    "the largest of sums": (
        norm((ONLY_FIRST, "for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));")), None,
    ),
    "in the second warp": (norm(("if (warp == 0)", "if (warp == 1)")), None),
    "of another thread": (norm(("if (threadIdx.x == 0) mean", "if (threadIdx.x == 33) mean")), None),
    "in some steps": (norm((JOIN, JOIN.replace("v +=", "if (threadIdx.x % 32 < o) v +="))), None),
    "an element left out": (norm(("j < columns; j += blockDim.x) s", "j < columns - 1; j += blockDim.x) s")), None),
    "largest": (LARGEST_OF_ROWS, lambda x: x.max(axis=1)),
    "largest, from 0 on": (largest("float v = -INFINITY", "float v = 0.0f"), None),
    "largest, or 0": (largest(": -INFINITY", ": 0.0f"), None),
    "largest, never stored": (largest("if (warp == 0)", "if (warp > 0)"), None),
    "largest, of each warp": (
        largest("if (lane == 0) y[blockIdx.x] = v;\n    }", "}\n    if (lane == 0) y[blockIdx.x] = v;"), None,
    ),
    "largest of the first warp": (largest("v = lane < blockDim.x / warpSize ? part[lane] : -INFINITY;", ""), None),
}  # fmt: skip


@pytest.mark.parametrize("name", WARPS)
def test_what_warps_join_is_written_as_they_do_or_not_at_all(name: str) -> None:
    source, formula = WARPS[name]
    arguments: dict[str, Any] = {"eps": 0.5} if formula is normed else {}
    check(source, formula, rows=70, columns=96, **arguments)
