"""ttx.port: constructs are marked with their rows, and kernels of known families are written as NumPy computes them."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from ttexplore.errors import UsageError
from ttexplore.porting.foreign.words import CUDA, KITTENS, TRITON, TRITON_AROUND, by_name
from ttexplore.porting.pattern import patterns
from ttexplore.porting.port import Port, PortedKernel

Array = NDArray[Any]
BOUND = 2e-2
HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

ADD = (
    HEAD
    + """
def scaled(out_p, a_p, b_p, factor, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    a = tl.load(a_p + i, mask=inside)
    b = tl.load(b_p + i, mask=inside).to(tl.float32)
    tl.store(out_p + i, tl.where(a > b, factor * a, tl.exp(b)), mask=inside)
"""
)

SOFTMAX = (
    HEAD
    + """
def rows(y, x, step, n, B: tl.constexpr):
    at = tl.program_id(0) * step
    i = tl.arange(0, B)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + at + i, e / tl.sum(e, axis=0), mask=i < n)
"""
)

LAYER_NORM = (
    HEAD
    + """
def norm(x, w, b, y, step, n, eps, B: tl.constexpr):
    x += tl.program_id(0) * step
    y += tl.program_id(0) * step
    total = tl.zeros([B], dtype=tl.float32)
    for begin in range(0, n, B):
        i = begin + tl.arange(0, B)
        total += tl.load(x + i, mask=i < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([B], dtype=tl.float32)
    for begin in range(0, n, B):
        i = begin + tl.arange(0, B)
        d = tl.where(i < n, tl.load(x + i, mask=i < n, other=0.0) - mean, 0.0)
        squares += d * d
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    for begin in range(0, n, B):
        i = begin + tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(y + i, (v - mean) * scale * tl.load(w + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
"""
)

GEMM = (
    HEAD
    + """
def gemm(a, b, bias, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * sam + k[None, :] * sak
    pb = b + k[:, None] * sbk + n[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        acc += tl.dot(tl.load(pa), tl.load(pb))
        pa += BK * sak
        pb += BK * sbk
    acc = tl.maximum(acc + tl.load(bias + n)[None, :], 0.0)
    tl.store(c + m[:, None] * scm + n[None, :] * scn, acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))
"""
)

ROPE = (
    HEAD
    + """
def rotate(x, y, c, s, step, half, B: tl.constexpr):
    at = tl.program_id(0) * step
    i = tl.arange(0, B)
    one = tl.load(x + at + i)
    two = tl.load(x + at + i + half)
    cc = tl.load(c + at + i)
    ss = tl.load(s + at + i)
    tl.store(y + at + i, one * cc - two * ss)
    tl.store(y + at + i + half, two * cc + one * ss)
"""
)

ATTENTION = (
    HEAD
    + """
def attend(Q, K, V, O, L, scale, sh, sm, sd, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.program_id(1) * sh
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + at + m[:, None] * sm + d[None, :] * sd)
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for begin in range(0, n, BN):
        j = begin + tl.arange(0, BN)
        k = tl.load(K + at + j[None, :] * sm + d[:, None] * sd)
        s = tl.dot(q, k) * scale
        s = tl.where(m[:, None] >= j[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        v = tl.load(V + at + j[:, None] * sm + d[None, :] * sd)
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), v)
        top = new
    tl.store(O + at + m[:, None] * sm + d[None, :] * sd, acc / total[:, None])
    tl.store(L + m, top + tl.log(total))
"""
)

SAXPY = """
__global__ void saxpy(int n, float a, const float *__restrict__ x, const float *y, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + fmaxf(y[i], 0.0f);
}
"""

TREE = """
__global__ void largest(const float *in, float *out, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] * in[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
"""

TILED = """
template <int B> __global__ void matmul(float *C, const float *A, const float *D, int K, int N) {
    __shared__ float a[B][B];
    __shared__ float d[B][B];
    int row = blockIdx.y * B + threadIdx.y, col = blockIdx.x * B + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < K / B; ++t) {
        a[threadIdx.y][threadIdx.x] = A[row * K + t * B + threadIdx.x];
        d[threadIdx.y][threadIdx.x] = D[(t * B + threadIdx.y) * N + col];
        __syncthreads();
        for (int k = 0; k < B; ++k) sum += a[threadIdx.y][k] * d[k][threadIdx.x];
        __syncthreads();
    }
    C[row * N + col] = 2.0f * sum;
}
"""

TRANSPOSED = """
__global__ void matmul(half *C, const half *A, const half *Bt, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += __half2float(A[row * K + k]) * __half2float(Bt[col * K + k]);
    C[row * N + col] = __float2half(sum);
}
"""

SCALED = """
__global__ void sgemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
    if (row < M && col < N) {
        if (beta == 0.0f) C[row * N + col] = 3.0f * alpha * acc;
        else C[row * N + col] = 3.0f * alpha * acc + beta * C[row * N + col];
    }
}
"""

TWO_OUTPUTS = """
__global__ void both(int N, int K, const float *A, const float *B, float *relu, float *C) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
    relu[row * N + col] = fmaxf(acc, 0.0f);
    C[row * N + col] = acc;
}
"""

LEAKY = """
__global__ void leaky(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] > 0.5f) y[i] = x[i];
    else y[i] = x[i] * 0.5f;
}
"""

KITTENS_SOFTMAX = """
#include "kittens.cuh"
using namespace kittens;
struct globals { gl<bf16, -1, -1, -1, -1> x, y; };
__global__ void softmax(const __grid_constant__ globals g) {
    rt_fl<16, 64> v;
    rv_fl<16> top, total;
    warp::load(v, g.x, {0, 0, blockIdx.x, 0});
    warp::row_max(top, v);
    warp::sub_row(v, v, top);
    warp::exp(v, v);
    warp::row_sum(total, v);
    warp::div_row(v, v, total);
    warp::store(g.y, v, {0, 0, blockIdx.x, 0});
}
"""

KITTENS_GEMM = """
#include "kittens.cuh"
using namespace kittens;
struct globals { gl<bf16, 1, 1, -1, -1> A, B, C; int K; };
__global__ void gemm(const __grid_constant__ globals g) {
    extern __shared__ alignment_dummy mem[];
    shared_allocator al((int*)&mem[0]);
    st_bf<64, 64> &a = al.allocate<st_bf<64, 64>>();
    st_bf<64, 64> &b = al.allocate<st_bf<64, 64>>();
    rt_fl<16, 64> acc;
    warp::zero(acc);
    for (int k = 0; k < g.K / 64; ++k) {
        warpgroup::load(a, g.A, {0, 0, blockIdx.y, k});
        warpgroup::load(b, g.B, {0, 0, blockIdx.x, k});
        __syncthreads();
        warpgroup::mma_ABt(acc, a, b);
        warpgroup::mma_async_wait();
    }
    warpgroup::store(g.C, acc, {0, 0, blockIdx.y, blockIdx.x});
}
"""


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, w: Array, b: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1) * w + b


def rotated(x: Array, c: Array, s: Array) -> Array:
    one, two = np.split(x, 2, axis=1)
    return np.concatenate([one * c - two * s, two * c + one * s], axis=1)


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    hidden = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
    return softmax(np.where(hidden, -np.inf, scores)) @ v


# The source, the row of its family, and what it computes from the inputs of the skeleton, with scalars of 1.
CASES: dict[str, tuple[str, str, Callable[..., Array]]] = {
    "element-wise": (ADD, "element-wise arithmetic", lambda a, b: np.where(a > b, a, np.exp(b))),
    "softmax": (SOFTMAX, "softmax", softmax),
    "layer norm": (LAYER_NORM, "RMS norm and layer norm", layer_norm),
    "gemm": (GEMM, "GEMM", lambda a, b, bias: np.maximum(a @ b + bias, 0)),
    "rope": (ROPE, "RoPE", rotated),
    "attention": (ATTENTION, "attention, forward", attention),
    "cuda element-wise": (SAXPY, "element-wise arithmetic", lambda x, y: x + np.maximum(y, 0)),
    "cuda reduction": (TREE, "reductions", lambda x: (x**2).sum(axis=1)),
    "cuda gemm": (TILED, "GEMM", lambda a, d: 2 * a @ d),
    "cuda transposed": (TRANSPOSED, "GEMM", lambda a, b: a @ b.T),
    "a choice by an argument": (SCALED, "GEMM", lambda a, b, c: 3 * a @ b + c),
    "a choice by an argument that holds": (
        SCALED.replace("beta == 0.0f", "beta == 1.0f"), "GEMM", lambda a, b, c: 3 * a @ b,
    ),
    "a branch on the product": (
        SCALED.replace("beta == 0.0f", "acc > 32"), "GEMM", lambda a, b, c: 3 * a @ b + np.where(a @ b > 32, 0, c),
    ),
    "a branch on elements": (LEAKY, "element-wise arithmetic", lambda x: np.where(x > 0.5, x, 0.5 * x)),
    "kittens softmax": (KITTENS_SOFTMAX, "softmax", softmax),
    "kittens gemm": (KITTENS_GEMM, "GEMM", lambda a, b: a @ b.T),
}  # fmt: skip


def readable(source: str) -> None:
    """Skip a test of C++ where the packages that read it are not installed; CI has them."""
    missing = "triton" not in source and importlib.util.find_spec("tree_sitter_cuda") is None
    if missing and os.environ.get("CI") != "true":
        pytest.skip("the extra port is not installed")


def read(source: str) -> Port:
    """A port that is not proved: its skeletons are drafts."""
    return ttx.port(source, prove=False)


def refused(source: str) -> str:
    """Why the kernel of a source is not even a draft."""
    readable(source)
    (kernel,) = read(source).kernels
    assert (kernel.skeleton, kernel.draft) == ("", None)
    return kernel.outside


def draft_of(kernel: PortedKernel) -> str:
    """The text of a draft, empty if there is none."""
    return "" if kernel.draft is None else kernel.draft.text


def explored(text: str, factory: str, tmp_path: Path) -> ttx.Exploration:
    """A skeleton with scalars of 1."""
    file = tmp_path / "ported.py"
    file.write_text(text, encoding="utf-8")
    (function,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    required = [
        argument.arg
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if default is None
    ]
    ones: dict[str, Any] = dict.fromkeys(required, 1.0)
    return ttx.explore(f"{file}::{factory}", **ones)


def check_written(source: str, formula: Callable[..., Array], tmp_path: Path) -> Array:
    """Check that a source is written as a kernel that computes a formula, and proved if it is Triton's; return what the
    formula gives for random inputs."""
    readable(source)
    (kernel,) = ttx.port(source).kernels
    assert kernel.outside == ""
    if "triton" in source:
        assert kernel.proof is not None, kernel.draft
    text, factory = (
        (kernel.skeleton, kernel.factory) if kernel.draft is None else (draft_of(kernel), kernel.draft.factory)
    )
    skeleton = explored(text, factory, tmp_path)
    inputs = skeleton.inputs(kind="uniform")
    ported = skeleton.reference(list(inputs))[0].astype(np.float64)
    expected = formula(*(array.astype(np.float64) for array in inputs))
    assert ported.shape == expected.shape
    assert np.abs(ported - expected).max() <= BOUND * np.abs(expected).max()
    return expected


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_written_as_it_computes(name: str, tmp_path: Path) -> None:
    source, row, formula = CASES[name]
    readable(source)
    ported = read(source)
    (kernel,) = ported.kernels
    assert (kernel.family, kernel.outside, kernel.skeleton) == (row, "", "")
    assert ported.unknown == ()
    assert kernel.draft is not None
    skeleton = explored(kernel.draft.text, kernel.draft.factory, tmp_path)
    checked = skeleton.check()
    assert checked.ok, str(checked)
    assert np.ptp(check_written(source, formula, tmp_path)) > 0


def test_outputs_of_one_product_are_apart(tmp_path: Path) -> None:
    readable(TWO_OUTPUTS)
    (kernel,) = read(TWO_OUTPUTS).kernels
    skeleton = explored(draft_of(kernel), "both", tmp_path)
    assert skeleton.check().ok
    inputs = skeleton.inputs(kind="random")
    relu, product = (one.astype(np.float64) for one in skeleton.reference(list(inputs)))
    wanted = inputs[0].astype(np.float64) @ inputs[1].astype(np.float64)
    assert wanted.min() < 0
    for found, formula in ((relu, np.maximum(wanted, 0)), (product, wanted)):
        assert np.abs(found - formula).max() <= BOUND * np.abs(wanted).max()


def test_marks_have_their_place_and_row() -> None:
    ported = ttx.port(ADD)
    first = next(one for one in ported.marks if one.text == "tl.program_id")
    assert ADD.split("\n")[first.line - 1][first.column - 1 :].startswith("tl.program_id")
    assert first.row == "launch grid"
    rows = {one.text: one.row for one in ported.marks}
    assert rows["tl.load"] == "tensor in global memory"
    assert rows["mask="] == "edges and masks"
    assert rows["tl.where"] == "masks from indices"
    assert [one.name for one in ported.table][:2] == ["sizes known at launch", "launch grid"]
    pattern = ported.pattern(first)
    assert pattern is not None
    assert "T.Kernel" in pattern.tilelang


def test_what_is_unknown_is_said_to_be() -> None:
    ported = ttx.port(ADD.replace("tl.exp(b)", "tl.rand(1, i) + other_library(b)"))
    assert [one.text for one in ported.unknown] == ["tl.rand", "other_library"]
    assert ported.kernels[0].outside == "the function other_library (line 12) is not understood"
    ported = ttx.port(ADD.replace("tl.exp(b)", "tl.rand(1, i)"))
    with pytest.raises(
        UsageError, match=r"no kernel of the source is of a known family \(scaled: out_p is made of tl.rand"
    ):
        _ = ported.skeleton
    assert "unknown" in str(ported)
    assert "<code>tl.rand</code> is unknown" in ported._repr_html_()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (ROPE.replace("two * cc + one * ss", "two * cc - one * ss"), "it loads x from several places"),
        (ATTENTION.replace("tl.exp(s - new[:, None])", "tl.exp(s - tl.load(L + m)[:, None])"), "its largest score"),
        (GEMM.replace("tl.dot(tl.load(pa)", "tl.dot(tl.exp(tl.load(pa))"), "a factor of the product is computed"),
        (SOFTMAX.replace("tl.store(y", "tl.atomic_add(y"), "tl.atomic_add"),
        (ADD.replace("    tl.store", "    if a > 0:\n        b = b + 1\n    tl.store"), "a branch on elements"),
        (SCALED.replace("else C", "C"), "a condition on them chooses"),
        (LEAKY.replace("else y[i] = x[i] * 0.5f;", ""), "a condition on them chooses"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_not_written(changed: str, reason: str) -> None:
    assert reason in refused(changed)


def test_names_mean_nothing() -> None:
    first, second = ttx.port(GEMM), ttx.port(GEMM.replace("bias", "softmax").replace("acc", "exp"))
    assert first.kernels[0].family == second.kernels[0].family == "GEMM"
    assert [one.row for one in first.marks] == [one.row for one in second.marks]


def test_sources_that_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="the source is not valid Python") as raised:
        ttx.port(ADD.replace("tl.arange(0, B)", "tl.arange(0,"), file="add.py")
    assert raised.value.span is not None
    assert raised.value.span.file == "add.py"
    with pytest.raises(UsageError, match="neither Triton nor CUDA"):
        ttx.port("def f(x): return x")
    with pytest.raises(UsageError, match="the source of a kernel"):
        ttx.port(3)  # pyright: ignore[reportArgumentType]
    readable(SAXPY)
    with pytest.raises(UsageError, match="not valid CUDA"):
        ttx.port("__global__ }{ saxpy(")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter_cuda", None)
    with pytest.raises(UsageError, match=r"needs the package tree-sitter") as raised:
        ttx.port(SAXPY)
    assert raised.value.hint == f"run {sys.executable} -m pip install 'tree-sitter>=0.26' 'tree-sitter-cuda>=0.21'"


def test_words_belong_to_rows() -> None:
    for words in (TRITON, TRITON_AROUND, CUDA, KITTENS):
        assert set(by_name(words).values()) <= set(patterns())


def test_a_port_as_text_and_html() -> None:
    ported = ttx.port(SOFTMAX)
    assert repr(ported).startswith("<port of Triton: ")
    assert ported.summary == "Triton: 1 of 1 kernel written in TileLang; 12 of 12 constructs recognized"
    assert "rows (line 7): softmax" in str(ported)
    html = ported._repr_html_()
    assert "<h4>rows: softmax</h4>" in html
    assert "T.reduce_max" in html


def test_constants_of_a_cuda_file_are_numbers(tmp_path: Path) -> None:
    source = """
#include <math.h>
#define SCALE sqrtf(2.0f / M_PI)
#define NOTHING (1/2)
constexpr float kBias = 0.125f;
static const float kTwice = SCALE * 2.0f;
__constant__ float given;
__global__ void act(float* out, const float* inp, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = inp[i] * SCALE + kBias + kTwice + NOTHING; }
}
__global__ void unknown(float* out, const float* inp, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = inp[i] * given; }
}
"""
    act, unknown = read(source).kernels
    ex = explored(draft_of(act), "act", tmp_path)
    [given] = ex.inputs()
    scale = np.sqrt(2 / np.pi)
    [got] = ex.run(backend="reference").outputs
    np.testing.assert_allclose(got, given * scale + 0.125 + 2 * scale, rtol=1e-6, atol=1e-6)
    assert "SCALE" not in draft_of(act)
    assert (draft_of(unknown), unknown.outside) == ("", "the name given (line 14) is not understood")
