"""Kernels with one change that alters what they compute: each is refused, or the change shows in its numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from tests.porting.test_port import HEAD, KITTENS_GEMM, KITTENS_SOFTMAX, ROPE, check_written, draft_of, read, readable
from ttexplore.errors import UsageError

Array = NDArray[Any]

EACH = """
__global__ void k(const float* A, const float* B, float* O, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) O[i] = A[i] * 2.0f + B[i];
}
"""
PRODUCT = """
__global__ void mm(const float* A, const float* B, float* O, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float acc = 0.0f;
        for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
        O[row * N + col] = acc;
    }
}
"""
TRITON_EACH = f"""{HEAD}def k(x, y, o, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    mask = i < n
    v = tl.load(x + i, mask=mask)
    w = tl.load(y + i, mask=mask)
    tl.store(o + i, v * 2.0 + w, mask=mask)
"""
TRITON_PRODUCT = f"""{HEAD}def mm(a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
       BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    r = tl.arange(0, BK)
    x = a + m[:, None] * am + r[None, :] * ak
    y = b + r[:, None] * bk + n[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        v = tl.load(x, mask=r[None, :] < K - k * BK, other=0.0)
        w = tl.load(y, mask=r[:, None] < K - k * BK, other=0.0)
        acc += tl.dot(v, w)
        x += BK * ak
        y += BK * bk
    tl.store(c + m[:, None] * cm + n[None, :] * cn, acc, mask=(m[:, None] < M) & (n[None, :] < N))
"""
TILES = """
#define T 16
__global__ void mm(const float* A, const float* B, float* O, int M, int N, int K) {
    __shared__ float a[T][T];
    __shared__ float b[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float acc = 0.0f;
    for (int t = 0; t < (K + T - 1) / T; ++t) {
        a[threadIdx.y][threadIdx.x] = (row < M && t * T + threadIdx.x < K) ? A[row * K + t * T + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = (col < N && t * T + threadIdx.y < K) ? B[(t * T + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < T; ++k) acc += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) O[row * N + col] = acc;
}
"""
SHARED_ROW = """
__global__ void k(const float* x, const float* w, float* o, int rows, int cols, int ld) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) o[r * cols + c] = x[r * cols + c] + w[c];
}
"""
SQUARES = f"""{HEAD}def k(x, o, step, n, B: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((B,), dtype=tl.float32)
    for off in range(0, n, B):
        i = off + tl.arange(0, B)
        v = tl.load(x + row * step + i, mask=i < n, other=0.0)
        acc += v * v
    tl.store(o + row, tl.sum(acc, axis=0))
"""
SUMS = f"""{HEAD}def k(x, o, step, rows, n, M: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    i = tl.arange(0, B)
    v = tl.load(x + r[:, None] * step + i[None, :], mask=(r[:, None] < rows) & (i[None, :] < n), other=0.0)
    tl.store(o + r, tl.sum(v, axis=1), mask=r < rows)
"""
SERIAL = """
__global__ void softmax(const float* x, float* o, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float m = -INFINITY;
    for (int c = 0; c < cols; c++) m = fmaxf(m, x[row * cols + c]);
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) sum += expf(x[row * cols + c] - m);
    for (int c = 0; c < cols; c++) o[row * cols + c] = expf(x[row * cols + c] - m) / sum;
}
"""
ADDED = "acc += A[row * K + k] * B[k * N + col]"
CHANGES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "each element": (
        EACH,
        [
            ("blockIdx.x * blockDim.x", "blockIdx.x * blockDim.x * 2"),
            ("blockIdx.x * blockDim.x", "blockIdx.x * gridDim.x"),
            ("blockIdx.x * blockDim.x", "blockIdx.x"),
            ("threadIdx.x;", "threadIdx.x * blockDim.x;"),
            ("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x * blockDim.x + blockIdx.x"),
            ("threadIdx.x;", "threadIdx.x + threadIdx.y;"),
            ("i < n", "threadIdx.x < n"),
            ("i < n", "blockIdx.x < n"),
            ("i < n", "i < blockDim.x"),
            ("if (i < n)", "if (i < n) return;"),
            ("int i", "float i"),
            ("int i", "bool i"),
            ("int i", "unsigned char i"),
            ("A[i]", "A[(unsigned char)i]"),
            ("A[i]", "((int*)A)[i]"),
            ("A[i]", "((half*)A)[i]"),
            ("A[i]", "reinterpret_cast<const int*>(A)[i]"),
            ("A[i]", "*(int*)&A[i]"),
            ("A[i]", "my::exp(A[i])"),
            ("A[i]", "s.exp(A[i])"),
            ("const float* A", "const float** A"),
            ("const float* A", "const void* A"),
            ("const float* A", "const float4* A"),
            ("const float* A", "const Odd* A"),
            ("const float* A", "const std::vector<float>& A"),
            ("float* O", "int* O"),
            ("float* O", "bool* O"),
            ("float* O", "int8_t* O"),
            ("A[i]", "(A[i] > B[i]) / 2"),
            ("A[i]", "(A[i] > 0 ? 3 : 5) / 2"),
            ("A[i] * 2.0f", "A[i] * (-1u)"),
            ("A[i] * 2.0f", "A[i] * (65536 * 65536)"),
            ("A[i] * 2.0f", "A[i] * (uint8_t)(300)"),
            ("A[i]", "(bool)A[i]"),
            ("A[i] * 2.0f", "A[i] * (-1 > 0u ? 2.0f : 3.0f)"),
            ("A[i] * 2.0f", "A[i] * (-6 / 2u)"),
            ("A[i]", "(__nv_fp8_e4m3)A[i]"),
        ],
    ),
    "a product": (
        PRODUCT,
        [
            ("++k", "k += 2"),
            ("++k", "++k, ++k"),
            ("++k", "k++, acc *= 2"),
            ("int k = 0", "char k = 0"),
            (ADDED, "acc += fabsf(A[row * K + k]) * B[k * N + col]"),
            (ADDED, "acc += A[row * K + k] * expf(B[k * N + col])"),
            (ADDED, "acc += (int)(A[row * K + k] * B[k * N + col])"),
            (ADDED, "acc += fabsf(A[row * K + k] * B[k * N + col])"),
            ("float acc", "bool acc"),
            ("float acc", "int acc"),
            ("int row", "short row"),
            ("int row", "float row"),
            ("B[k * N + col]", "B[k * K + col]"),
            ("B[k * N + col]", "B[col * N + k]"),
            ("A[row * K + k]", "A[row * N + k]"),
            ("O[row * N + col]", "O[row * M + col]"),
            ("row < M && col < N", "row < N && col < M"),
            ("blockIdx.y * blockDim.y", "blockIdx.y * gridDim.y"),
            ("float acc = 0.0f;", "float acc = 0.0f; N = 16;"),
            ("O[row * N + col] = acc", "O[row * N + col] = acc + O[col]"),
            ("O[row * N + col] = acc", "A[row * N + col] = acc"),
        ],
    ),
    "each element in Triton": (
        TRITON_EACH,
        [
            ("pid * B", "pid * B * 2"),
            ("mask = i < n", "mask = pid < n"),
            ("v * 2.0 + w", "v.to(tl.foo) + w"),
            ("v * 2.0 + w", "v.to(v) + w"),
            ("v * 2.0 + w", "v.to(tl.float8e4nv).to(tl.float32) + w"),
            ("v * 2.0 + w", "(v > w) + (v > 0)"),
            ("program_id(0)", "program_id(3)"),
            ("\ndef k(", "\ndef k2(x): pass\ntl.load = k2\n@triton.jit\ndef k("),
            ("pid * B + tl.arange(0, B)", "pid + tl.arange(0, B) * B"),
            ("pid * B", "(pid * tl.num_programs(0) + tl.program_id(1)) * B"),
            ("mask = i < n", "mask = tl.arange(0, B) < n"),
        ],
    ),
    "a product in Triton": (
        TRITON_PRODUCT,
        [
            ("tl.cdiv(K, BK)", "tl.cdiv(M, BK)"),
            ("K - k * BK, other", "M - k * BK, other"),
            ("K - k * BK, other", "K, other"),
            ("acc += tl.dot(v, w)", "acc += tl.exp(tl.dot(v, w))"),
            ("acc += tl.dot(v, w)", "acc += tl.abs(tl.dot(v, w))"),
            ("acc += tl.dot(v, w)", "acc += tl.dot(v, w) + 1"),
            ("acc += tl.dot(v, w)", "acc += tl.dot(v, w) + tl.dot(v, w)"),
            ("m[:, None] * am", "m[:, None] * am * 2"),
            ("m[:, None] * am + r[None, :] * ak", "m[:, None] * 8 + r[None, :] * ak"),
            (
                "pid_m = tl.program_id(0)\n    pid_n = tl.program_id(1)",
                "pid = tl.program_id(0)\n    pid_m = pid % tl.cdiv(N, BN)\n    pid_n = pid // tl.cdiv(N, BN)",
            ),
            (
                "other=0.0)\n        w = tl.load(y, mask=r[:, None] < K - k * BK, other=0.0)",
                "other=1.0)\n        w = tl.load(y, mask=r[:, None] < K - k * BK, other=1.0)",
            ),
            ("K - k * BK, other", "K - k * k, other"),
            ("tl.dot(v, w)", "tl.dot(v.to(tl.float8e5), w)"),
            ("dtype=tl.float32", "dtype=tl.int32"),
            ("    tl.store", "    acc = acc / am\n    tl.store"),
        ],
    ),
    "a product of tiles": (
        TILES,
        [
            ("t * T + threadIdx.x < K", "t * T + threadIdx.y < K"),
            ("(K + T - 1) / T", "(N + T - 1) / T"),
            (": 0.0f;", ": 1.0f;"),
            ("blockIdx.y * T", "blockIdx.y * 8"),
            ("(t * T + threadIdx.y) * N", "(t * T + threadIdx.y) * K"),
        ],
    ),
    "a sum with a row": (
        SHARED_ROW,
        [
            ("w[c]", "w[c * rows]"),
            ("r < rows && c < cols", "r * cols + c < rows * cols"),
            ("w[c]", "w[r + c]"),
            ("o[r * cols + c] = x[r * cols + c] + w[c]", "o[r * cols + c] = x[r * ld + c] / ld"),
            ("o[r * cols + c] = x[r * cols + c]", "o[r * cols + c] = o[r]"),
        ],
    ),
    "sums of rows": (
        SQUARES,
        [
            ("range(0, n, B)", "range(0, n, 2 * B)"),
            ("range(0, n, B)", "range(0, n)"),
            ("i = off +", "i ="),
            ("i = off +", "i = off + off +"),
            ("i < n", "off < n"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 0, tl.int32)"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 0.0, dtype=tl.float8e5)"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 0, tl.int1)"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 0, bool)"),
            ("dtype=tl.float32", "dtype=tl.float8e4nv"),
            ("acc += v * v", "acc += tl.sum(v)"),
            ("acc += v * v", "acc += 1.0"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 1.0, tl.float32)"),
            ("tl.sum(acc, axis=0)", "tl.sum(tl.exp(acc), axis=0)"),
            ("tl.sum(acc, axis=0)", "tl.sum(acc * acc, axis=0)"),
            ("tl.sum(acc, axis=0)", "tl.sum(acc + 1, axis=0)"),
            ("tl.sum(acc, axis=0)", "tl.sum(v, axis=0)"),
            ("acc += v * v", "s = tl.sum(v * v, axis=0)"),
            ("row = tl.program_id(0)", "row = tl.program_id(0) * 2"),
            ("o + row", "o + row * 2"),
            ("tl.sum(acc, axis=0)", "tl.sum(acc, axis=0) / step"),
            ("dtype=tl.float32", "dtype=tl.int32"),
            ("v * v", "v.to(tl.float8e5).to(tl.float32)"),
        ],
    ),
    "sums of blocks of rows": (
        SUMS,
        [
            ("(r[:, None] < rows) & (i[None, :] < n)", "(r[:, None] < n) & (i[None, :] < rows)"),
            ("mask=r < rows", "mask=r < n"),
        ],
    ),
    "rows of threads": (
        SERIAL,
        [
            ("c++) m", "c++, c++) m"),
            ("row >= rows", "row < rows"),
            ("float sum", "bool sum"),
            ("float sum", "int sum"),
            ("blockIdx.x * blockDim.x", "2 * blockIdx.x * blockDim.x"),
            ("o[row * cols + c]", "o[row * rows + c]"),
            ("blockIdx.x * blockDim.x + threadIdx.x", "2 * blockIdx.x"),
        ],
    ),
    "kittens product": (
        KITTENS_GEMM,
        [
            ("mma_ABt(", "mm_ABt("),
            ("warpgroup::mma_async_wait();", "warp::exp(acc, acc);"),
            ("blockIdx.x, k", "2 * blockIdx.x, k"),
        ],
    ),
    "kittens softmax": (KITTENS_SOFTMAX, [("sub_row", "sub_col"), ("warp::exp", "my::exp")]),
    "rope": (ROPE, [("tl.arange(0, B)", "tl.arange(0, half // 2)"), ("tl.arange(0, B)", "tl.arange(0, 2 * half)")]),
}


def skeleton(source: str) -> str:
    readable(source)
    try:
        return next(filter(None, map(draft_of, read(source).kernels)), "")
    except UsageError:
        return ""


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_unchanged_is_written(name: str) -> None:
    assert skeleton(CHANGES[name][0])


@pytest.mark.parametrize(
    ("name", "before", "after"), [(name, *one) for name, (_, every) in CHANGES.items() for one in every]
)
def test_a_change_of_the_meaning_is_refused(name: str, before: str, after: str) -> None:
    source = CHANGES[name][0]
    assert before in source
    assert skeleton(source.replace(before, after, 2 if before == ": 0.0f;" else 1)) == ""


def around(body: str, above: str = "") -> str:
    """EACH, with statements before the store of v."""
    return above + EACH.replace("O[i] = A[i] * 2.0f + B[i];", f"{{ {body} }}")


WHOLE = "constexpr int N = 7;\nconstexpr float S = N / 2;\n"
COMPUTED: dict[str, tuple[str, Callable[..., Array]]] = {
    "bool of a number": (around("bool w = 2; O[i] = A[i] * w + B[i];"), lambda a, b: a + b),
    "bool of a half": (around("O[i] = A[i] * (bool)(0.5f) + B[i];"), lambda a, b: a + b),
    "whole number of a product": (around("int w = 3; w *= 1.5f; O[i] = A[i] * w + B[i];"), lambda a, b: 4 * a + b),
    "array of whole numbers": (around("int w[1]; w[0] = 2.7f; O[i] = A[i] * w[0] + B[i];"), lambda a, b: 2 * a + b),
    "auto of whole numbers": (around("auto w = 3; O[i] = A[i] * (w / 2) + B[i];"), lambda a, b: a + b),
    "function of whole numbers": (
        around("O[i] = A[i] * f(2.7f) + B[i];", "__device__ int f(float v) { return v; }"),
        lambda a, b: 2 * a + b,
    ),
    "function with the name of a barrier": (
        around("float v = A[i]; sync(v); O[i] = v + B[i];", "__device__ void sync(float& v) { v *= 2; }"),
        lambda a, b: 2 * a + b,
    ),
    "type with another name": (
        "typedef float real;" + EACH.replace("const float* A", "const real* A"),
        lambda a, b: 2 * a + b,
    ),
    "return inside": (EACH.replace("if (i < n)", "if (i >= n) return;"), lambda a, b: 2 * a + b),
    "grid stride": (
        EACH.replace("int i =", "for (int i =")
        .replace("threadIdx.x;", "threadIdx.x; i < n; i += blockDim.x * gridDim.x)")
        .replace("if (i < n) ", ""),
        lambda a, b: 2 * a + b,
    ),
    "converted product": (
        PRODUCT.replace(ADDED, "acc += (float)A[row * K + k] * __half2float(B[k * N + col])"),
        lambda a, b: a @ b,
    ),
    "product times a number": (TRITON_PRODUCT.replace("tl.dot(v, w)", "tl.dot(v, w) * 2.0"), lambda a, b: 2 * (a @ b)),
    "lengths of a square": (
        PRODUCT.replace("M && col < N", "K && col < K").replace("* N + col", "* K + col"),
        lambda a, b: a @ b,
    ),
    "product of tiles": (TILES, lambda a, b: a @ b),
    "sum with a row": (SHARED_ROW, lambda x, w: x + w),
    "quotient of whole constants": (around("O[i] = A[i] * S + B[i];", WHOLE), lambda a, b: 3 * a + b),
    "quotient of a constant of fractions": (
        around("O[i] = A[i] * (S / 2) + B[i];", "constexpr float S = 3;"),
        lambda a, b: 1.5 * a + b,
    ),
    "quotient of a macro of fractions": (
        around("O[i] = A[i] * (S / 2) + B[i];", "#define S 3.0f\n"),
        lambda a, b: 1.5 * a + b,
    ),
    "comparison of unsigned numbers": (
        around("O[i] = A[i] * (1 > 0u ? 2.0f : 3.0f) + B[i];"),
        lambda a, b: 2 * a + b,
    ),
    "default of a parameter": (
        EACH.replace("int n", "int n, float s = -3.5f").replace("2.0f", "s"),
        lambda a, b: -3.5 * a + b,
    ),
    "default of a whole number": (
        EACH.replace("int n", "int n, int s = 2.7f").replace("2.0f", "s"),
        lambda a, b: 2 * a + b,
    ),
    "default of a bool": (EACH.replace("int n", "int n, bool s = false").replace("2.0f", "s"), lambda a, b: 0 * a + b),
    "fraction that a whole number is made of": (
        around("float s = 3; int w = s; O[i] = A[i] * (s / 2) + w * B[i];"),
        lambda a, b: 1.5 * a + 3 * b,
    ),
    "column in each column": (
        SHARED_ROW.replace("x[r * cols + c] + w[c]", "x[r] * 2"),
        lambda x: np.broadcast_to(2 * x[:, None], (256, 256)),
    ),
    "row in each row": (
        SHARED_ROW.replace("x[r * cols + c] + w[c]", "expf(w[c])"),
        lambda w: np.broadcast_to(np.exp(w), (256, 256)),
    ),
    "product of a column and a row": (
        SHARED_ROW.replace("x[r * cols + c] + w[c]", "x[r] * w[c]"),
        lambda x, w: np.outer(x, w),
    ),
    "sums of blocks of rows": (SUMS, lambda x: x.sum(axis=1)),
    "sums of squares": (SQUARES, lambda x: (x * x).sum(axis=1)),
    "sums of sums": (
        SQUARES.replace("tl.zeros((B,), dtype=tl.float32)", "0.0")
        .replace("v * v", "tl.sum(v * v, axis=0)")
        .replace("tl.sum(acc, axis=0)", "acc"),
        lambda x: (x * x).sum(axis=1),
    ),
}


@pytest.mark.parametrize(
    ("above", "body"),
    [
        ("constexpr int S = 3;", "float S = 3; O[i] = A[i] * (S / 2) + B[i];"),
        ("constexpr float S = 3;", "float v; { float S = 5; v = S; } O[i] = A[i] * S + v * B[i];"),
        ("constexpr int S = 3; __device__ float f(float S) { return S / 2; }", "O[i] = A[i] * f(3) + B[i];"),
        ("", "float v; { float q = 3; v = q; } int q = 3; O[i] = A[i] * (q / 2) + v * B[i];"),
        ("", "float v; { auto q = 3; v = q; } auto q = 3.0f; O[i] = A[i] * (q / 2) + v * B[i];"),
    ],
)
def test_a_name_of_several_types_is_refused(above: str, body: str) -> None:
    source = around(body, above)
    readable(source)
    (kernel,) = read(source).kernels
    assert "a second variable" in kernel.outside


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        ("int s = 3", "(s / 2)", "//"),
        ("bool s = true", "(s / 2)", "//"),
        ("unsigned s = -1", "s", "the default of s"),
        ("int s = 0x10", "s", "the default of s"),
        ("char s = 300", "s", "the default of s"),
        ("half s = 0.1f", "s", "the default of s"),
    ],
)
def test_a_parameter_with_a_default_is_refused(parameter: str, value: str, reason: str) -> None:
    source = EACH.replace("int n", f"int n, {parameter}").replace("2.0f", value)
    readable(source)
    (kernel,) = read(source).kernels
    assert reason in kernel.outside


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_written_has_the_numbers_of_the_source(name: str, tmp_path: Path) -> None:
    source, formula = COMPUTED[name]
    check_written(source, formula, tmp_path)


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    long = EACH.replace("O[i] =", "{" + "i = i;" * 30_000 + "} O[i] =")
    readable(long)
    for source in (long, TRITON_EACH.replace("    v =", "    pass\n" * 110_000 + "    v =")):
        (kernel,) = read(source).kernels
        assert "more than 100,000 statements" in kernel.outside
        assert not ttx.port(source).marks


def test_the_name_of_a_file_is_a_text() -> None:
    with pytest.raises(UsageError):
        ttx.port(TRITON_EACH, file=5)  # pyright: ignore[reportArgumentType]
