"""Kernels with a twist: each is written as NumPy computes it, or refused. Never is something else written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.porting.test_port import ATTENTION, HEAD, check_written, refused

Array = NDArray[Any]


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.split("\n"))


def ew(body: str, extra: str = "") -> str:
    """A Triton kernel over the elements i of x and y."""
    begin = "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
    return f"{HEAD}def k(x, y, n, {extra}B: tl.constexpr):\n{begin}{indented(body)}"


def row(body: str, extra: str = "") -> str:
    """A Triton kernel over the rows of x, each in one block."""
    begin = "    i = tl.arange(0, B)\n    at = tl.program_id(0) * step\n"
    return f"{HEAD}def k(x, y, step, n, {extra}B: tl.constexpr):\n{begin}{indented(body)}"


def turns(body: str) -> str:
    """A Triton kernel with a loop over a row."""
    begin = "    p = tl.program_id(0)\n    i = tl.arange(0, B)\n"
    return f"{HEAD}def k(x, y, step, n, B: tl.constexpr):\n{begin}{indented(body)}"


def cu(body: str, args: str = "const float *x, float *y, int n") -> str:
    """A CUDA kernel with one thread for each element i."""
    return f"__global__ void k({args}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}\n"


def mm(body: str, args: str = "const float *A, const float *B, float *C, int M, int N, int K", pre: str = "") -> str:
    """A CUDA kernel with one thread for each element of a product."""
    pre = pre or "int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;"
    return f"__global__ void k({args}) {{\n    {pre}\n    float acc = 0;\n    {body}\n}}\n"


def grid(body: str, args: str = "const float *x, float *y, int N, int M") -> str:
    """A CUDA kernel over rows r and columns c."""
    begin = "int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;"
    return f"__global__ void k({args}) {{ {begin} {body} }}"


def rows(body: str, args: str = "const float *x, float *y, int R, int N") -> str:
    """A CUDA kernel with a thread for each row r."""
    return f"__global__ void k({args}) {{ int r = blockIdx.x * blockDim.x + threadIdx.x; {body} }}"


def product(pa: str = "", pb: str = "", ep: str = "") -> str:
    """A Triton kernel of a product, with the addresses of its factors and an epilogue."""
    pa, pb = pa or "a + m[:, None] * K + (kk + s)[None, :]", pb or "b + (kk + s)[:, None] * N + n[None, :]"
    return f"""{HEAD}
def k(a, b, bias, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for s in range(0, K, BK):
        acc += tl.dot(tl.load({pa}), tl.load({pb}))
    tl.store(c + m[:, None] * N + n[None, :], acc{ep})
"""


def shared(write: str, read: str, turns: int = 16) -> str:
    """A CUDA kernel of a product by way of shared memory."""
    return f"""
__global__ void k(const float *A, const float *B, float *C, int K, int N) {{
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float s = 0;
    for (int t = 0; t < K / 16; ++t) {{
        {write} = A[row * K + t * 16 + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(t * 16 + threadIdx.y) * N + col];
        __syncthreads();
        for (int k = 0; k < {turns}; ++k) s += {read};
        __syncthreads();
    }}
    C[row * N + col] = s;
}}
"""


def blocks(made: str, value: str = "v * 2.0", end: str = "N") -> str:
    """A Triton kernel over blocks of rows and columns, with a vector w; `made` loads v."""
    return f"""{HEAD}def k(x, y, w, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    {made}
    tl.store(y + m[:, None] * sm + n[None, :] * sn, {value}, mask=(m[:, None] < M) & (n[None, :] < {end}))
"""


def block(shape: str, offsets: str) -> str:
    """A load of a block of x by its shape and offsets."""
    at = f"tl.make_block_ptr(x, ({shape}), (sm, sn), ({offsets}), (BM, BN), (1, 0))"
    return f"v = tl.load({at}, boundary_check=(0, 1))"


def summed(steps: str) -> str:
    """A CUDA kernel that adds up rows, each with a warp; `steps` join its threads."""
    return (
        "__global__ void k(const float *x, float *y, int N) { float s = 0; "
        f"for (int j = threadIdx.x; j < N; j += 32) s += x[blockIdx.x * N + j]; {steps} "
        "if (threadIdx.x == 0) y[blockIdx.x] = s; }"
    )


JOINED = "for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);"
LOADED = "v = tl.load(x + m[:, None] * sm + n[None, :] * sn)"
OF_BLOCKS = "tl.program_id(0) * BM, tl.program_id(1) * BN"


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# The source and a part of why it is refused.
REFUSED: dict[str, tuple[str, str]] = {
    "negative axis": (
        HEAD
        + """
def k(x, y, sx, R: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, N)
    tl.store(y + r, tl.sum(tl.load(x + r[:, None] * sx + c[None, :]), axis=-2))
""",
        "a reduction over the rows of a block",
    ),
    "sum of a block": (
        HEAD
        + """
def k(x, y, sx, R: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, N)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + r[:, None] * sx + c[None, :])))
""",
        "a reduction over the rows of a block",
    ),
    "whole numbers": (
        ew("tl.store(y + i, (tl.load(x + i, mask=i < n) * 4.0).to(tl.int32), mask=i < n)"),
        "a conversion to whole numbers",
    ),
    "last product": (product().replace("acc += tl.dot", "acc = tl.dot"), "the last turn of a loop"),
    "clamped in the loop": (
        product().replace("    tl.store", "        acc = tl.maximum(acc, 0.0)\n    tl.store"),
        "carried from turn to turn",
    ),
    "batch": (
        mm(
            "for (int k = 0; k < K; ++k) "
            "acc += A[blockIdx.z * M * K + row * K + k] * B[blockIdx.z * K * N + k * N + col];"
            " C[blockIdx.z * M * N + row * N + col] = acc;"
        ),
        "several products are computed",
    ),
    "cast": (cu("y[i] = (int)(x[i] * 4.0f);"), "a conversion to whole numbers"),
    "whole variable": (cu("int v = x[i] * 4.0f; y[i] = v;"), "a conversion to whole numbers"),
    "bits": (
        cu("if (i < n) y[i] = x[i] * (m & 1);", "const float *x, float *y, int n, int m"),
        "a choice of a length, `m & 1`, (line 3)",
    ),
    "later condition": (cu("if (x[i] > 0.5f) return; y[i] = x[i];"), "a branch on elements"),
    "t shift": (
        ew("tl.store(y + i, tl.load(x + i + 1, mask=i < n), mask=i < n)"),
        "x is read at a distance from its beginning",
    ),
    "t reverse": (ew("tl.store(y + i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)"), "x is read in reverse"),
    "t stride2": (
        ew("tl.store(y + i, tl.load(x + 2 * i, mask=i < n), mask=i < n)"),
        "x is read in blocks that overlap or leave gaps",
    ),
    "t stride2 both": (
        ew("tl.store(y + 2 * i, tl.load(x + 2 * i, mask=i < n) * 3.0, mask=i < n)"),
        "y is written in blocks that overlap or leave gaps",
    ),
    "t half mask": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) * 3.0, mask=i < n // 2)"),
        "it compares an index with (n // 2) and with n",
    ),
    "t part of a block": (
        row(
            "j = tl.arange(0, B // 2)\ntl.store(y + at + i, tl.load(x + at + i) * 2.0)\n"
            "tl.store(y + at + j, tl.load(x + at + j, mask=j < n) * 3.0, mask=j < n)"
        ),
        "it goes over B and over (B // 2) elements",
    ),
    "t zeros in a maximum": (
        row("v = tl.load(x + at + i, mask=i < n, other=0.0)\ntl.store(y + tl.program_id(0), tl.max(v, 0))"),
        "what is beyond the edge is part of a reduction",
    ),
    "t lower mask": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) * 3.0, mask=(i < n) & (i > 4))"),
        "y is made of elements that a mask chooses",
    ),
    "t elem mask": (
        ew("v = tl.load(x + i, mask=i < n)\ntl.store(y + i, v * 3.0, mask=v > 0.5)"),
        "y is made of elements that a mask chooses",
    ),
    "t mod": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) + tl.load(x + i % 7), mask=i < n)"),
        "it loads x from several places",
    ),
    "t mod n": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) + tl.load(w + i % m), mask=i < n)", "w, m, "),
        "w is read at indices that wrap around",
    ),
    "t other": (
        row("v = tl.load(x + at + i, mask=i < n, other=1.0)\ntl.store(y + tl.program_id(0), tl.sum(v, axis=0))"),
        "what is beyond the edge is part of a reduction",
    ),
    "t where const": (
        row(
            "v = tl.load(x + at + i, mask=i < n, other=0.0)\nv = tl.where(i < n, v, "
            "2.0)\ntl.store(y + tl.program_id(0), tl.sum(v, axis=0))"
        ),
        "what is beyond the edge is part of a reduction",
    ),
    "t prod": (
        row("v = tl.load(x + at + i, mask=i < n, other=1.0)\ntl.store(y + tl.program_id(0), tl.reduce(v, 0, mul))"),
        "`mul` (line 10) is not understood",
    ),
    "t loop from 1": (
        turns("t = 0.0\nfor j in range(1, n):\n    t += tl.load(x + p * step + j)\ntl.store(y + p, t)"),
        "the range of a loop, `range(1, n)`, (line 10) is not understood",
    ),
    "t loop half": (
        turns("t = 0.0\nfor j in range(0, n // 2):\n    t += tl.load(x + p * step + j)\ntl.store(y + p, t)"),
        "x is read in a loop that does not visit all of them",
    ),
    "t loop step2": (
        turns("t = 0.0\nfor j in range(0, n, 2):\n    t += tl.load(x + p * step + j)\ntl.store(y + p, t)"),
        "x is read in blocks that overlap or leave gaps",
    ),
    "t count": (
        turns(
            "t = 0.0\nc = 0.0\nfor j in range(0, n):\n    t += tl.load(x + p * step + j)\n    c "
            "+= 1.0\ntl.store(y + p, t / c)"
        ),
        "y is made of a number of turns",
    ),
    "t overlap": (
        turns(
            "t = tl.zeros([B], tl.float32)\nfor j in range(0, n, B):\n    t += tl.load(x + p * "
            "step + j + i // 2)\ntl.store(y + p, tl.sum(t, 0))"
        ),
        "not all of (r // 2) is used",
    ),
    "t last only": (
        turns(
            "t = tl.zeros([B], tl.float32)\nfor j in range(0, n, B):\n    t = tl.load(x + p * "
            "step + j + i)\ntl.store(y + p, tl.sum(t, 0))"
        ),
        "y is made of the last turn of a loop",
    ),
    "t program 0": (
        ew("if tl.program_id(0) == 0:\n    tl.store(y + i, tl.load(x + i))"),
        "y is made of a branch on indices",
    ),
    "t return": (
        ew("if tl.load(x) > 0.5:\n    return\ntl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)"),
        "y is made of a branch on elements",
    ),
    "t scalar load": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) * tl.load(s), mask=i < n)", "s, "),
        "s is read at one element",
    ),
    "t gemm bias wrong": (
        product(ep=" + tl.load(bias + n)[:, None]"),
        "it is not known whether rows or columns share bias",
    ),
    "t gemm at": (product(pa="a + m[:, None] + (kk + s)[None, :] * M"), "a factor of the product is transposed"),
    "t gemm shift": (
        product(pa="a + m[:, None] * K + (kk + s + 1)[None, :]"),
        "a is read at a distance from its beginning",
    ),
    "t gemm same k": (
        product(pa="a + m[:, None] * K + kk[None, :]"),
        "c is made of a number of turns",
    ),
    "t gemm half": (
        product().replace("range(0, K, BK)", "range(0, K // 2, BK)"),
        "a is read in a loop that does not visit all of them",
    ),
    "t gemm ct": (
        product().replace("c + m[:, None] * N + n[None, :]", "c + m[:, None] + n[None, :] * M"),
        "the product is stored in another order",
    ),
    "t gemm carry": (
        product().replace("acc += tl.dot", "acc = acc * 0.5 + tl.dot"),
        "c is carried from turn to turn of a loop in a way that is not known",
    ),
    "c only if": (
        cu("if (i < n && x[i] > 0.5f) y[i] = x[i];"),
        "y is made of elements that a condition on them chooses",
    ),
    "c shift": (cu("if (i < n - 1) y[i] = x[i + 1];"), "y is made of elements that a condition on them chooses"),
    "c interior": (cu("if (i < n - 1) y[i] = x[i];"), "y is made of elements that a condition on them chooses"),
    "c stencil": (
        cu("if (i > 0 && i < n) y[i] = x[i] + x[i - 1];"),
        "y is made of elements that a condition on them chooses",
    ),
    "c even": (cu("if (i % 2 == 0) y[i] = x[i]; else y[i] = -x[i];"), "y is made of indices"),
    "c first": (cu("if (i < 5) y[i] = x[i];"), "y is made of elements that a condition on them chooses"),
    "c thread": (cu("if (threadIdx.x < 5) y[i] = x[i];"), "y is made of elements that a condition on threads chooses"),
    "c return odd": (cu("if (i >= n || x[i] < 0.5f) return;\n y[i] = x[i];"), "y is made of a branch on elements"),
    "c transpose": (grid("y[c * M + r] = x[r * N + c];"), "x is read in another order"),
    "c grid stride 2": (
        cu("for (int j = i; j < n; j += 2 * blockDim.x * gridDim.x) y[j] = x[j] * 2.0f;"),
        "the range of a loop (line 3)",
    ),
    "c thread cols": (
        "__global__ void k(const float *x, float *y, int R, int N) { "
        "int c = blockIdx.x * blockDim.x + threadIdx.x; if (c < N) { float s = 0; for (int j = 0; "
        "j < R; ++j) s += x[j * N + c]; y[c] = s; } }",
        "rows and columns of its tensors are not as they are here",
    ),
    "c no reduce": (
        "__global__ void k(const float *x, float *y, int N) { float s = 0; "
        "for (int j = threadIdx.x; j < N; j += blockDim.x) s += x[blockIdx.x * N + j]; "
        "for (int j = threadIdx.x; j < N; "
        "j += blockDim.x) y[blockIdx.x * N + j] = x[blockIdx.x * N + j] / s; }",
        "threads do not add up what each of them reduced",
    ),
    "c partial": (
        "__global__ void k(const float *x, float *y, int N) { float s = 0; "
        "for (int j = threadIdx.x; j < N; j += blockDim.x) s += x[blockIdx.x * N + j]; "
        "if (threadIdx.x == 0) y[blockIdx.x] = s; }",
        "threads do not add up what each of them reduced",
    ),
    "c prod": (
        rows("float m = 1.0f; for (int j = 0; j < N; ++j) m *= x[r * N + j]; y[r] = m;"),
        "y is carried from turn to turn of a loop in a way that is not known",
    ),
    "c At": (
        mm("for (int k = 0; k < K; ++k) acc += A[k * M + row] * B[k * N + col];\n C[row * N + col] = acc;"),
        "C is made of a transposed A",
    ),
    "c k from 1": (
        mm("for (int k = 1; k < K; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;"),
        "the range of a loop (line 4)",
    ),
    "c k+1": (
        mm("for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[(k + 1) * N + col];\n C[row * N + col] = acc;"),
        "B is read at a distance from its beginning",
    ),
    "c minus": (
        mm("for (int k = 0; k < K; ++k) acc -= A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;"),
        "C is carried from turn to turn of a loop in a way that is not known",
    ),
    "c tri": (
        mm("for (int k = 0; k < row; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;"),
        "the range of a loop (line 4)",
    ),
    "c if k": (
        mm(
            "for (int k = 0; k < K; ++k) if (k % 2 == 0) acc += A[row * K + k] * B[k * N + col];"
            "\n C[row * N + col] = acc;"
        ),
        "C is made of indices",
    ),
    "c if a": (
        mm(
            "for (int k = 0; k < K; "
            "++k) if (A[row * K + k] > 0.5f) acc += A[row * K + k] * B[k * N + col];"
            "\n C[row * N + col] = acc;"
        ),
        "C is carried from turn to turn of a loop in a way that is not known",
    ),
    "c stored in loop": (
        mm(
            "for (int k = 0; k < K; ++k) { acc += A[row * K + k] * B[k * N + col]; }"
            "\n C[row * N + col] = acc; C[row * N + col] = acc * 2.0f;"
        ),
        "it stores several values to C",
    ),
    "c static tile": (
        shared("a[threadIdx.x][threadIdx.y]", "a[threadIdx.y][k] * b[k][threadIdx.x]"),
        "a factor of the product is read in an order that is not known",
    ),
    "c read swapped": (
        shared("a[threadIdx.y][threadIdx.x]", "a[threadIdx.x][k] * b[k][threadIdx.y]"),
        "A is read in blocks that overlap or leave gaps",
    ),
    "c first tile": (
        shared("a[threadIdx.y][threadIdx.x]", "a[threadIdx.y][k] * b[k][threadIdx.x]", 8),
        "B is read in blocks that overlap or leave gaps",
    ),
    "c atomic too": (
        cu("if (i < n) { y[i] = x[i]; atomicAdd(&z[0], x[i]); }", "const float *x, float *y, float *z, int n"),
        "z is made of atomicAdd()",
    ),
    "c float4 odd": (
        cu(
            "float4 v = reinterpret_cast<const float4 *>(x)[i]; float4 w; w.x = v.x * 2; "
            "w.y = v.y * 3; w.z = v.z * 2; w.w = v.w * 2; reinterpret_cast<float4 *>(y)[i] = w;"
        ),
        "y is made of several different elements",
    ),
    "c float4 swap": (
        cu(
            "float4 v = reinterpret_cast<const float4 *>(x)[i]; float4 w; w.x = v.y; w.y = v.x; "
            "w.z = v.z; w.w = v.w; reinterpret_cast<float4 *>(y)[i] = w;"
        ),
        "y is made of several different elements",
    ),
    "c uninit": (
        cu('float v; asm("mov.f32 %0, %1;" : "=f"(v) : "f"(x[i])); y[i] = x[i] + v;'),
        "`asm(",
    ),
    "c pointer off": (cu("x += 4; if (i < n) y[i] = x[i];"), "x is read at a distance from its beginning"),
    "c mod val": (cu("if (i < n) y[i] = fmodf(x[i], 0.3f);"), "the function fmodf (line 3)"),
    "c index val": (cu("if (i < n) y[i] = x[i] * i;"), "y is made of indices"),
    "c switch": (
        cu("if (i < n) { switch (n) { case 1: y[i] = x[i]; break; default: y[i] = 2.0f * x[i]; } }"),
        "`switch (n)",
    ),
    "c break": (
        rows(
            "float s = 0; for (int j = 0; j < N; ++j) { if (x[r * N + j] > 0.9f) break; s += x[r * N + j]; } y[r] = s;"
        ),
        "`break;`",
    ),
    "c do": (
        cu("if (i < n) { float v = x[i]; int c = 0; do { v = v * v; c++; } while (c < 3); y[i] = v; }"),
        "`do {",
    ),
    "c const loop": (
        cu("if (i < n) { float v = x[i]; for (int c = 0; c < 3; ++c) v = v * v; y[i] = v; }"),
        "y is carried from turn to turn of a loop in a way that is not known",
    ),
    "c const loop2": (
        cu("if (i < n) { float v = x[i]; for (int c = 0; c < 3; ++c) v += 1.0f; y[i] = v; }"),
        "y is made of a number of turns",
    ),
    "c const loop3": (
        cu("if (i < n) { float v = 0; for (int c = 0; c < 3; ++c) v += x[i]; y[i] = v; }"),
        "y is made of a number of turns",
    ),
    "c turns": (cu("if (i < n) for (int c = 0; c < 3; ++c) y[i] += x[i];"), "y is made of a sum over turns of a loop"),
    "c turns mem": (
        rows("for (int j = 0; j < N; ++j) y[r] += x[r * N + j];"),
        "y is made of a sum over turns of a loop",
    ),
    "c last": (rows("for (int j = 0; j < N; ++j) y[r] = x[r * N + j];"), "y is made of the last turn of a loop"),
    "a tanh": (
        ATTENTION.replace("tl.dot(q, k) * scale", "tl.math.tanh(tl.dot(q, k) * scale) * 30.0"),
        "its scores are changed by tanh",
    ),
    "a window": (
        ATTENTION.replace("m[:, None] >= j[None, :]", "m[:, None] - j[None, :] < 64"),
        "its scores are masked, but not as in causal attention",
    ),
    "a anti": (
        ATTENTION.replace("m[:, None] >= j[None, :]", "m[:, None] <= j[None, :]"),
        "its scores are masked, but not as in causal attention",
    ),
    "a strict": (
        ATTENTION.replace("m[:, None] >= j[None, :]", "m[:, None] > j[None, :]"),
        "its scores are masked, but not as in causal attention",
    ),
    "a shifted": (
        ATTENTION.replace("m[:, None] >= j[None, :]", "m[:, None] + 1 >= j[None, :]"),
        "its scores are masked, but not as in causal attention",
    ),
    "c bool": (cu("bool v = x[i]; if (i < n) y[i] = v * 3.0f;"), "a conversion to bool"),
    "c char": (cu("if (i < n) y[i] = x[i] * (char)300;"), "a number that its type does not have"),
    "c unsigned": (cu("if (i < n) y[i] = x[i] * (unsigned)-1;"), "a number that its type does not have"),
    "c short": (cu("unsigned short w = 65537; if (i < n) y[i] = x[i] * w;"), "a number that its type does not have"),
    "c char of the file": ("const char w = 300;\n" + cu("if (i < n) y[i] = x[i] * w;"), "the name w"),
    "c truncated": ("__device__ int f(float v) { return v; }\n" + cu("if (i < n) y[i] = f(x[i]);"), "whole numbers"),
    "c alias": (
        "typedef int R;\n__device__ R f(float v) { return v; }\n" + cu("if (i < n) y[i] = f(x[i]);"),
        "whole numbers",
    ),
    "c alias of an argument": (
        "using R = int;\n__device__ float f(R v) { return v; }\n" + cu("if (i < n) y[i] = f(x[i]);"),
        "whole numbers",
    ),
    "c truth": (
        "__device__ bool f(float v) { return v; }\n" + cu("if (i < n) y[i] = f(x[i]);"),
        "a conversion to bool",
    ),
    "c type of a template": (
        "template<class T> __device__ T f(T v) { return v; }\n" + cu("if (i < n) y[i] = f<int>(x[i]);"),
        "`f<int>(x[i])`",
    ),
    "c name of a type": (
        "typedef int R;\n" + cu("if (i < n) y[i] = x[i] / 2;", "const R *x, R *y, int n"),
        "y has whole numbers",
    ),
    "c whole output": (cu("if (i < n) y[i] = x[i] * 2.5f;", "const float *x, int *y, int n"), "y has whole numbers"),
    "c true output": (cu("if (i < n) y[i] = x[i] * 2.5f;", "const float *x, bool *y, int n"), "y has whole numbers"),
    "c halved condition": (cu("if (i < n) y[i] = x[i] * ((x[i] > 0.5f) / 2);"), "a division of whole numbers"),
    "c halved choice": (cu("if (i < n) y[i] = x[i] * ((x[i] > 0.5f ? 7 : 1) / 2);"), "a division of whole numbers"),
    "c overflow": (cu("if (i < n) y[i] = x[i] * (2147483647 + 1);"), "a number that its type does not have"),
    "c elvis": (cu("if (i < n) y[i] = x[i] ?: 2.0f;"), "`x[i] ?: 2.0f`"),
    "c every second block": (
        "__global__ void k(const float *x, float *y, int n) {\n"
        "    int i = blockIdx.x * blockDim.x * 2 + threadIdx.x; if (i < n) y[i] = 2.0f * x[i];\n}\n",
        "in blocks that overlap or leave gaps",
    ),
    "c count": (cu("if (i < n) y[i] = x[i] / n;"), "n, which counts elements, is one of its values"),
    "t every second block": (
        ew("tl.store(y + i, 2.0 * tl.load(x + i))").replace("program_id(0) * B", "program_id(0) * B * 2"),
        "in blocks that overlap or leave gaps",
    ),
    "t one of two blocks": (
        ew(
            "for o in range(1):\n    j = (tl.program_id(0) * 2 + o) * B + tl.arange(0, B)\n"
            "    tl.store(y + j, 2.0 * tl.load(x + j))"
        ),
        "in blocks that overlap or leave gaps",
    ),
    "t all blocks but one": (
        ew(
            "for p in range(tl.program_id(0), tl.cdiv(n, B) - 1, tl.num_programs(0)):\n"
            "    j = p * B + tl.arange(0, B)\n    tl.store(y + j, 2.0 * tl.load(x + j, mask=j < n), mask=j < n)"
        ),
        "the range of a loop",
    ),
    "t counted": (ew("tl.store(y + i, tl.load(x + i, mask=i < n) / n, mask=i < n)"), "n, which counts elements"),
    "t size": (
        row("v = tl.load(x + at + i, mask=i < n, other=0.0)\ntl.store(y + at + i, v - tl.sum(v) / B, mask=i < n)"),
        "B, which counts elements, is one of its values",
    ),
    "t function bound again": (
        ew("tl.store(y + i, f(tl.load(x + i)))") + "@triton.jit\ndef f(v):\n    return 2.0 * v\nf = g\n",
        "f is defined more than once",
    ),
    "t language bound": (
        ew("tl.store(y + i, tl.exp(tl.load(x + i)))") + "tl.exp = tl.sqrt\n",
        "is not understood",
    ),
    "a undivided": (
        ATTENTION.replace("acc / total[:, None]", "acc"),
        "its sum of values is not divided by that of the weights",
    ),
    "a times v": (
        ATTENTION.replace("tl.dot(p.to(tl.float16), v)", "tl.dot(p.to(tl.float16), v * 2.0)"),
        "its values are computed in the kernel",
    ),
    "a plus": (
        ATTENTION.replace("acc / total[:, None]", "acc / total[:, None] + 1.0"),
        "its sum of values is not divided by that of the weights",
    ),
    "a squared": (
        ATTENTION.replace("total = total * old + tl.sum(p, 1)", "total = total * old + tl.sum(p * p, 1)"),
        "it is divided by another sum",
    ),
    "a no rescale": (
        ATTENTION.replace("acc = acc * old[:, None] +", "acc = acc +"),
        "its sum of values is not that of attention",
    ),
    "t computed default": (
        ew("tl.store(y + i, tl.load(x + i) * f)", "f=2**3, ").replace("B: tl.constexpr", "B: tl.constexpr = 32"),
        "the default f=2 ** 3 (line 6)",
    ),
    "t default of a module": (
        ew("tl.store(y + i, tl.load(x + i) * f)", "f=m.pi, ").replace("B: tl.constexpr", "B: tl.constexpr = 32"),
        "`m.pi` (line 6)",
    ),
    "t short index": (ew("tl.store(y + i, tl.load(x + i.to(tl.int8)))"), "x is read at indices that are not known"),
    "t short index of a result": (ew("tl.store(y + tl.cast(i, tl.uint8), tl.load(x + i))"), "y is"),
    "t sum of a number": (
        row(
            "v = tl.load(x + at + i, mask=i < n, other=0.0)\n"
            "tl.store(y + tl.program_id(0), tl.sum(v, 0) + tl.sum(tl.full([B], 2.0, tl.float32), 0))"
        ),
        "a reduction of one number",
    ),
    "t half of a shape": (blocks(block("M // 2, N", OF_BLOCKS)), "a block of a tensor whose shape is not known"),
    "t swapped shape": (
        blocks(
            f"{block('M, N', OF_BLOCKS)}\n    v += tl.load(tl.make_block_ptr("
            f"w, (N, M), (sm, sn), ({OF_BLOCKS}), (BM, BN), (1, 0)), boundary_check=(0, 1))"
        ),
        "an index that goes up to M and to N",
    ),
    "t first block of all": (blocks(block("M, N", "tl.program_id(0) * BM, 0")), "rows and columns of its tensors"),
    "t vector of the first block": (
        blocks(LOADED, "v + tl.load(w + tl.arange(0, BN))[None, :]").replace("* sm", "* N").replace(" * sn", ""),
        "rows and columns of its tensors",
    ),
    "t vector of columns by a stride of rows": (
        blocks(LOADED, "v + tl.load(w + n * sm)[None, :]"),
        "sm is the distance of elements of w, and of rows of y",
    ),
    "t distance of rows as that of elements": (
        row("v = tl.load(x + at + i, mask=i < n)\ntl.store(y + at + i, v * tl.load(w + at), mask=i < n)", "w, "),
        "step is the distance of elements of w, and of rows of",
    ),
    "t results with gaps": (
        row("v = tl.load(x + at + i, mask=i < n, other=0.0)\ntl.store(y + tl.program_id(0) * B, tl.sum(v, 0))"),
        "y is read or written in blocks that leave gaps",
    ),
    "t gemm distances of another factor": (
        product("a + m[:, None] * p + (kk + s)[None, :] * q", "b + (kk + s)[:, None] * q + n[None, :] * p").replace(
            "bias,", "p, q,"
        ),
        "is the distance of elements of",
    ),
    "t gemm distance of rows of two lengths": (
        product("a + m[:, None] * p + (kk + s)[None, :]").replace("bias,", "p,").replace("* N + n", "* p + n"),
        "p is the distance of rows of",
    ),
    "c gemm up to another length": (
        mm("for (int k = 0; k < N; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;"),
        "rows of A have N elements, but begin K elements after each other",
    ),
    "a transposed keys": (
        ATTENTION.replace("j[None, :] * sm + d[:, None] * sd", "j[None, :] * sd + d[:, None] * sm"),
        "is the distance of elements of",
    ),
    "a transposed values": (
        ATTENTION.replace("j[:, None] * sm + d[None, :] * sd", "j[:, None] + d[None, :] * n"),
        "V is transposed",
    ),
    "c comma in an index": (cu("if (i < n) y[i] = x[i, 0];"), "`x[i, 0]` (line 3)"),
    "c comma in an index of a result": (cu("if (i < n) y[i, 0] = x[i];"), "`y[i, 0]` (line 3)"),
    "c comment in a macro": ("#define W 3 /* and */ + 1\n" + cu("if (i < n) y[i] = x[i] * W;"), "the macro W"),
    "c joined twice": (summed(JOINED + JOINED), "`s += __shfl_xor_sync(0xffffffff, s, o)` (line 1) is not understood"),
    "c joined with more": (
        summed(JOINED.replace("s +=", "{ s +=").replace("o);", "o); s += 1; }")),
        "what a loop over all threads makes of s",
    ),
    "c joined again after a change": (
        summed(JOINED + " s += 1; " + JOINED),
        "`s += __shfl_xor_sync(0xffffffff, s, o)` (line 1) is not understood",
    ),
    "t a row of values of rows": (
        blocks(LOADED, "v + tl.load(w + m)"),
        "blocks of different numbers of axes, `v + tl.load(w + m)`, (line 10)",
    ),
    "t sums as a row": (
        product().replace("acc += tl.dot", "acc = acc - tl.max(acc, axis=1)\n        acc += tl.dot"),
        "blocks of different numbers of axes, `acc - tl.max(acc, axis=1)`",
    ),
    "t a block to one element": (
        row("v = tl.load(x + at + i)\ntl.store(y + tl.program_id(0), tl.sum(v[:, None], 1))"),
        "a block with other axes than its address",
    ),
    "a weights of a row": (
        ATTENTION.replace("s - new[:, None]", "s - new"),
        "blocks of different numbers of axes, `s - new`",
    ),
    "t names by text": (
        "S = 3\nglobals()['S'] = 5\n" + ew("tl.store(y + i, tl.load(x + i) * S)"),
        "globals (line 2) may give names another meaning",
    ),
    "t names of another module": (
        "S = 3\nfrom m import *\n" + ew("tl.store(y + i, tl.load(x + i) * S)"),
        "an import of all names (line 2) may give names another meaning",
    ),
}

# The source and what it computes.
# Conditions on what a loop carries, which begins as a constant.
_CARRIED = {
    f"carried {name}": (rows(f"float s = 0; for (int j = 0; j < N; ++j) {step} y[r] = s;"), "carried from turn to turn")
    for name, step in {
        "if": "if (s < 100.0f) s += x[r * N + j];",
        "if far": "if (s < 1e30f) s += x[r * N + j];",
        "choice": "s = s != 3.0f ? s + x[r * N + j] : s;",
        "not a number": "s = (s == s ? s : 0.0f) + x[r * N + j];",
    }.items()
} | {
    f"t carried {condition}": (
        turns(
            f"s = 0.0\nfor b in range(0, n, B):\n    part = tl.sum(tl.load(x + p * step + b + i))\n"
            f"    s = tl.where({condition}, s, 0.0) + part\ntl.store(y + p, s)"
        ),
        "carried from turn to turn",
    )
    for condition in ("s < 300.0", "s != 3.0", "s < 65504.0")
}
# Loops that leave out the last elements for some lengths, which no trial may have.
_BLOCK_OF_64 = "for (int j = 0; j < 64; ++j) if (b * 64 + j < N) s += x[r * N + b * 64 + j]; y[r] = s;"
_COUNTS = {
    f"t count {count}": (
        turns(
            f"s = 0.0\nfor b in range(0, {count}):\n    at = b * B + i\n"
            "    s += tl.sum(tl.load(x + p * step + at, mask=at < n, other=0.0))\ntl.store(y + p, s)"
        ),
        "the range of a loop",
    )
    for count in ("tl.cdiv(n - 1, B)", "tl.cdiv(n - n // 2200, B)", "(n + B - 2) // B", "(n + 126) // B")
} | {
    f"count {count}": (rows(f"float s = 0; for (int b = 0; b < {count}; ++b) {_BLOCK_OF_64}"), "the range of a loop")
    for count in ("(N + 62) / 64", "(N + 50) / 64", "(N + 63 - (N >> 13)) / 64")
}
# Steps that a loop's own variable changes.
_STEPS = {
    f"step {header}": (
        rows(f"float s = 0; for (int j = 0; {header}) s += x[r * N + j]; y[r] = s;"),
        "the range of a loop",
    )
    for header in (
        "j < N; j += 1 + (j > 2500)",
        "j < N; j += 1 + j / 2500",
        "j < N; j += (j < 5000 ? 1 : 2)",
        "j < N; j += 1 + (j == 2500)",
        "j < N - j / 5000; ++j",
    )
}
# Whole numbers that do not fit into 32 bits.
_WRAPPED = {
    f"wrapped {kind} {value}": (
        cu(f"if (i < n) y[i] = {value};", f"const float *x, float *y, int n, {kind} s"),
        "a product of lengths is one of its values",
    )
    for kind in ("int", "unsigned")
    for value in ("x[i] + s * 1000000000", "x[i] * (s << 20)", "x[i] * (s * 100000)", "x[i] + s * 1000 * 1000")
} | {
    "t wrapped": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n) + s * 1000000000, mask=i < n)", "s, "),
        "a product of s with a large number may overflow",
    ),
    "wrapped index": (cu("if (i < n && i * 4096 >= 0) y[i] = 2.0f * x[i];"), "y is made of"),
    "t wrapped index": (
        ew("m = (i < n) & (i * 100000 >= 0)\ntl.store(y + i, tl.load(x + i, mask=m), mask=m)"),
        "y is made of elements that a mask chooses",
    ),
    "hook": (
        ew("tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)").replace(
            "@triton.jit",
            "@triton.autotune([triton.Config({'B': 64}, pre_hook=lambda v: v['y'].zero_())], key=['n'])\n@triton.jit",
        ),
        "the decorator",
    ),
}

REFUSED.update(_CARRIED | _COUNTS | _STEPS | _WRAPPED)

WRITTEN: dict[str, tuple[str, Callable[..., Array]]] = {
    "t rowsum": (
        row("v = tl.load(x + at + i, mask=i < n, other=0.0)\ntl.store(y + tl.program_id(0), tl.sum(v, axis=0))"),
        lambda x: x.sum(1),
    ),
    "t minmax": (
        row(
            "v = tl.load(x + at + i, mask=i < n, other=float('inf'))\ntl.store(y + at + i, v - "
            "tl.min(v, axis=0), mask=i < n)"
        ),
        lambda x: x - x.min(1, keepdims=True),
    ),
    "t loop": (
        turns("t = 0.0\nfor j in range(0, n):\n    t += tl.load(x + p * step + j)\ntl.store(y + p, t)"),
        lambda x: x.sum(1),
    ),
    "t loop init": (
        turns("t = 5.0\nfor j in range(0, n):\n    t += tl.load(x + p * step + j)\ntl.store(y + p, t)"),
        lambda x: 5 + x.sum(1),
    ),
    "t in place": (
        ew("tl.store(x + i, tl.load(x + i, mask=i < n) * 2.0 + tl.load(y + i, mask=i < n), mask=i < n)"),
        lambda x, y: 2 * x + y,
    ),
    "t variants": (
        ew(
            "v = tl.load(x + i, mask=i < n)\nif F == 1:\n    v = v * 2.0\nelse:\n    v = v * "
            "3.0\nif F != 1:\n    v = v + 7.0\ntl.store(y + i, v, mask=i < n)",
            "F: tl.constexpr, ",
        ),
        lambda x: x * 2,
    ),
    "t variants2": (
        ew(
            "v = tl.load(x + i, mask=i < n)\nif F:\n    w = v\nelse:\n    v = v * 3.0\n    w = "
            "v\ntl.store(y + i, v + w, mask=i < n)",
            "F: tl.constexpr, ",
        ),
        lambda x: x * 2,
    ),
    "t softmax swapped": (
        row(
            "v = tl.load(x + at + i)\ne = tl.exp(tl.max(v, "
            "axis=0) - v)\ntl.store(y + at + i, tl.sum(e, axis=0) / e, mask=i < n)"
        ),
        lambda x: np.exp(x.max(1, keepdims=True) - x).sum(1, keepdims=True) / np.exp(x.max(1, keepdims=True) - x),
    ),
    "t gemm": (product(), lambda a, b: a @ b),
    "t gemm biasN": (product(ep=" + tl.load(bias + n)[None, :]"), lambda a, b, w: a @ b + w),
    "c leaky": (
        cu("if (i < n) { float v = x[i]; y[i] = v > 0.5f ? v : v * 0.1f; }"),
        lambda x: np.where(x > 0.5, x, x * 0.1),
    ),
    "c copy2d": (grid("y[r * N + c] = x[r * N + c] * 2;"), lambda x: 2 * x),
    "c bias2d": (
        grid("y[r * N + c] = x[r * N + c] + b[c];", "const float *x, const float *b, float *y, int N, int M"),
        lambda x, b: x + b,
    ),
    "c bias2d rows": (
        grid("y[r * N + c] = x[r * N + c] + b[r];", "const float *x, const float *b, float *y, int N, int M"),
        lambda x, b: x + b[:, None],
    ),
    "c bias2d xrow": (
        "__global__ void k(const float *x, const float *b, float *y, int N, int M) { "
        "int r = blockIdx.x * 16 + threadIdx.x, c = blockIdx.y * 16 + threadIdx.y; "
        "y[r * N + c] = x[r * N + c] + b[c]; }",
        lambda x, b: x + b,
    ),
    "c grid stride": (cu("for (int j = i; j < n; j += blockDim.x * gridDim.x) y[j] = x[j] * 2.0f;"), lambda x: 2 * x),
    "c max0": (
        rows("float m = 0.4975f; for (int j = 0; j < N; ++j) m = fmaxf(m, x[r * N + j] * 0.5f); y[r] = m;"),
        lambda x: np.maximum(0.4975, (x * 0.5).max(1)),
    ),
    "c warp reduce": (
        "__global__ void k(const float *x, float *y, int N) { float s = 0; "
        "for (int j = threadIdx.x; j < N; j += 32) s += x[blockIdx.x * N + j]; for (int o = 16; "
        "o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o); "
        "if (threadIdx.x == 0) y[blockIdx.x] = s; }",
        lambda x: x.sum(1),
    ),
    "c alpha beta": (
        mm(
            "for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];"
            "\n if (row < M && col < N) C[row * N + col] = 2.0f * acc + 3.0f * C[row * N + col];"
        ),
        lambda a, b, c: 2 * a @ b + 3 * c,
    ),
    "c BA": (
        mm("for (int k = 0; k < K; ++k) acc += B[row * K + k] * A[k * N + col];\n C[row * N + col] = acc;"),
        lambda b, a: b @ a,
    ),
    "c xrow": (
        mm(
            "for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;",
            pre="int row = blockIdx.x * 16 + threadIdx.x, col = blockIdx.y * 16 + threadIdx.y;",
        ),
        lambda a, b: a @ b,
    ),
    "c xrow biasN": (
        mm(
            "for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc + bias[col];",
            "const float *A, const float *B, const float *bias, float *C, int M, int N, int K",
            "int row = blockIdx.x * 16 + threadIdx.x, col = blockIdx.y * 16 + threadIdx.y;",
        ),
        lambda a, b, w: a @ b + w,
    ),
    "c nested": (
        cu(
            "if (i < n) { if (x[i] > 0.5f) { if (x[i] > 0.75f) y[i] = 3.0f * x[i]; "
            "else y[i] = 2.0f * x[i]; } else y[i] = x[i]; }"
        ),
        lambda x: np.where(x > 0.5, np.where(x > 0.75, 3 * x, 2 * x), x),
    ),
    "c clamp": (cu("if (i < n) { float v = x[i]; if (v > 0.5f) v = 0.5f; y[i] = v; }"), lambda x: np.minimum(x, 0.5)),
    "c clamp2": (
        cu("if (i < n) { float v = x[i]; if (v > 0.5f) v = 2.0f * v; else v = v * v; y[i] = v; }"),
        lambda x: np.where(x > 0.5, 2 * x, x * x),
    ),
    "c deref": (cu("if (i < n) { float v = *(x + i); *(y + i) = v * v; }"), lambda x: x * x),
    "c pointer walk": (cu("x += i; y += i; if (i < n) *y = *x * 3.0f;"), lambda x: 3 * x),
    "c read back": (
        cu("if (i < n) { y[i] = x[i] * 2.0f; z[i] = y[i] + 1.0f; }", "const float *x, float *y, float *z, int n"),
        lambda x: 2 * x,
    ),
    "shared memory": (
        shared("a[threadIdx.y][threadIdx.x]", "a[threadIdx.y][k] * b[k][threadIdx.x]"),
        lambda a, b: a @ b,
    ),
    "float4": (
        cu(
            "float4 v = reinterpret_cast<const float4 *>(x)[i]; float4 w; w.x = v.x * 2; w.y = v.y * 2; "
            "w.z = v.z * 2; w.w = v.w * 2; reinterpret_cast<float4 *>(y)[i] = w;"
        ),
        lambda x: 2 * x,
    ),
    "reference": (
        "__device__ void twice(float &v) { v = v * 2.0f; }\n" + cu("float v = x[i]; twice(v); y[i] = v;"),
        lambda x: 2 * x,
    ),
    "not": (cu("if (i < n) y[i] = !(x[i] > 0.5f) ? x[i] : 2.0f * x[i];"), lambda x: np.where(x > 0.5, 2 * x, x)),
    "truth of a number": (cu("bool w = 2.9f; if (i < n) y[i] = x[i] * w;"), lambda x: x),
    "type of a number": (cu("auto w = 7; if (i < n) y[i] = x[i] * (w / 2);"), lambda x: 3 * x),
    "whole product": (cu("int w = 3; w *= 2.6f; if (i < n) y[i] = x[i] * w;"), lambda x: 7 * x),
    "false condition": (cu("if (i < n) y[i] = 1 > 2 ? x[i] : 3.0f * x[i];"), lambda x: 3 * x),
    "t false condition": (ew("tl.store(y + i, tl.load(x + i) * (2 if 3 > 4 else 5))"), lambda x: 5 * x),
    "t two blocks": (
        ew(
            "for o in range(2):\n    j = (tl.program_id(0) * 2 + o) * B + tl.arange(0, B)\n"
            "    tl.store(y + j, 2.0 * tl.load(x + j))"
        ),
        lambda x: 2 * x,
    ),
    "t default": (
        ew("tl.store(y + i, tl.load(x + i) * f)", "f=-3.0, ").replace("B: tl.constexpr", "B: tl.constexpr = 32"),
        lambda x: -3 * x,
    ),
    "t default of numbers": (
        ew("tl.store(y + i, tl.load(x + i) * f)", "f=-(2 * 3.5), ").replace("B: tl.constexpr", "B: tl.constexpr = 32"),
        lambda x: -7 * x,
    ),
    "t blocks by shapes": (blocks(block("M, N", OF_BLOCKS)), lambda x: 2 * x),
    "t long index": (ew("tl.store(y + i, 2.0 * tl.load(x + i.to(tl.int64)))"), lambda x: 2 * x),
    "t vector of columns": (blocks(LOADED, "v + tl.load(w + n)[None, :]"), lambda x, w: x + w),
    "c joined two sums": (
        summed(
            "float q = s; for (int o = 16; o > 0; o >>= 1) { q += __shfl_xor_sync(0xffffffff, q, o);"
            " s += __shfl_xor_sync(0xffffffff, s, o); } s += q;"
        ),
        lambda x: 2 * x.sum(1),
    ),
    "whole numbers": (cu("if (i < n) y[i] = x[i] * (7 / 2);"), lambda x: 3 * x),
    "swapped factors": (
        mm("for (int k = 0; k < K; ++k) acc += B[k * N + col] * A[row * K + k];\n C[row * N + col] = acc;"),
        lambda a, b: a @ b,
    ),
    "start of a sum": (
        mm("acc = 4.0f; for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];\n C[row * N + col] = acc;"),
        lambda a, b: 4 + a @ b,
    ),
    "bias of rows": (product(ep=" + tl.load(bias + m)[:, None]"), lambda a, b, bias: a @ b + bias[:, None]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_skeleton_cannot_say_is_refused(name: str) -> None:
    source, reason = REFUSED[name]
    assert reason in refused(source)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_computes_the_same(name: str, tmp_path: Path) -> None:
    source, formula = WRITTEN[name]
    assert np.ptp(check_written(source, formula, tmp_path)) > 0
