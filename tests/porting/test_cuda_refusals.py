"""CUDA kernels that compute something else than a skeleton beside one that it does: the first are refused."""

from __future__ import annotations

import pytest

from tests.porting.test_port import read, readable, refused
from tests.porting.test_twists import cu, mm


def dot(inside: str = "", limit: str = "K", before: str = "", args: str = "int M, int N, int K") -> str:
    """A kernel of a product, with a statement in its loop, its limit, and what is before it."""
    loop = f"for (int k = 0; k < {limit}; ++k) {{ acc += A[row * K + k] * B[k * N + col]; {inside} }}"
    return mm(f"{before} {loop}\n C[row * N + col] = acc;", f"const float *A, const float *B, float *C, {args}")


def total(inside: str = "", before: str = "", begin: str = "float acc = 0.f;", limit: str = "cols") -> str:
    """A kernel that adds up rows, of which each thread takes several."""
    step = "blockDim.x * gridDim.x"
    return f"""__global__ void k(const float *x, float *y, int rows, int cols) {{
    {before}
    for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += {step}) {{
        {begin}
        for (int c = 0; c < {limit}; ++c) acc += x[r * cols + c];
        {inside}
        y[r] = acc;
    }}
}}"""


def element(value: str, args: str = "const float *x, float *y, int n", limit: str = "n", before: str = "") -> str:
    return cu(f"{before} if (i < {limit}) y[i] = {value};", args)


def mean(length: str) -> str:
    """A kernel that adds up rows and divides by a length."""
    return f"""__global__ void k(const float *x, float *y, int cols) {{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    float acc = 0.f;
    for (int c = 0; c < cols; ++c) acc += x[r * cols + c];
    y[r] = acc / {length};
}}"""


def tree(step: str, begin: str = "0.f", own: str = "v += x[row * cols + j];") -> str:
    """A kernel whose blocks join in shared memory what each of their threads has made of a row."""
    return f"""__global__ void k(const float *x, float *y, int cols) {{
    extern __shared__ float s[];
    int row = blockIdx.x, t = threadIdx.x;
    float v = {begin};
    for (int j = t; j < cols; j += blockDim.x) {own}
    s[t] = v;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
        if (t < k) {step}
        __syncthreads();
    }}
    if (t == 0) y[row] = s[0];
}}"""


LARGEST = {"begin": "-INFINITY", "own": "v = fmaxf(v, x[row * cols + j]);"}
HALVES = "const half *A, float *y, int n"
REFUSED = {
    "counter under a condition": (dot("if (k > 1000) k++;"), "a change of k"),
    "counter by a choice": (dot("k = k > 1000 ? K : k;"), "a change of k"),
    "counter by a reference": ("__device__ void skip(int& q) { q += 1; }\n" + dot("skip(k);"), "a change of k"),
    "nested counter": (dot("if (acc > 1.f) { if (k > 3) { k += 2; } }"), "a change of k"),
    "limit": (total("if (acc > 1e30f) cols = 0;"), "the parameter cols"),
    "limit of its own": (total("if (acc > 1.f) w = 0;", "int w = cols;", limit="w"), "a change of w"),
    "row": (total("if (acc > 1e30f) r = rows;"), "a change of r"),
    "length before": (element("x[i]", before="n -= (i > 1000);"), "the parameter n"),
    "sum outside of rows": (total(begin="", before="float acc = 0.f;"), "acc, which goes on"),
    "sum set under a condition": (
        total(begin="if (r < 5) acc = 0.f;", before="float acc = 0.f;"),
        "acc, which goes on",
    ),
    "min of a length": (dot(limit="min(K, 16)"), "a choice of a length"),
    "rest of a length": (dot(limit="K - K % 4"), "a choice of a length"),
    "bits of a length": (dot(limit="(K & 15)"), "a choice of a length"),
    "limit of elements": (element("x[i]", limit="min(n, 100)"), "a choice of a length"),
    "chosen length": (element("x[i]", limit="m", before="int m = n > 5 ? 5 : n;"), "a choice of a length"),
    "length of a function": (
        "__device__ int h(int a) { return a < 5 ? a : 5; }\n" + element("x[i]", limit="h(n)"),
        "a choice of a length",
    ),
    "length by a branch of a function": (
        "__device__ int h(int a) { int b = a; if (a > 5) b = 5; return b; }\n" + element("x[i]", limit="h(n)"),
        "a choice by",
    ),
    "cube of a length": (mean("(cols * cols * cols)"), "a product of lengths"),
    "square of a length": (mean("(float)(cols * cols)"), "a product of lengths"),
    "index as a fraction": (element("x[(int)(i + 0.f)]"), "an index as a fraction"),
    "length as a fraction": (element("x[i]", limit="(float)n"), "an index as a fraction"),
    "scaled index": (cu("if (i * 1.0f < n) y[i] = x[i];"), "an index as a fraction"),
    "length of a fraction": (element("x[i]", "const float *x, float *y, float n"), "an index as a fraction"),
    "short length": (element("x[i]", "const float *x, float *y, short n"), "few bits"),
    "length of a byte": (dot(args="int M, int N, unsigned char K"), "few bits"),
    "double": (element("v", before="double v = x[i];"), "double, which has no equivalent"),
    "cast to double": (element("(float)((double)x[i] * 3)"), "double, which has no equivalent"),
    "array of double": (element("x[i]", "const double *x, float *y, int n"), "double, which has no equivalent"),
    "comparison": (element("x[i] == 0.1 ? 1.f : 0.f"), "a comparison with `0.1`"),
    "comparison with a product": (element("x[i] <= 3 * 0.1 ? 1.f : 0.f"), "a comparison with `0.1`"),
    "too small": (element("x[i] * 1e-46"), "float has not"),
    "too large": (element("x[i] * 1e39f"), "float has not"),
    "shared memory": (element("s[0]", before="__shared__ float s[20000000];"), "80000000 bytes"),
    "rounded": (element("__half2float(__float2half(x[i])) * 2.f"), "rounding to 16 bits"),
    "rounded variable": (
        element("__half2float(h) * 2.f", before="half h = __float2half(x[i]);"),
        "rounding to 16 bits",
    ),
    "product of halves": (element("__half2float(A[i] * A[i])", HALVES), "rounding to 16 bits"),
    "twice its own in a tree": (tree("s[t] = 2.f * s[t] + s[t + k];"), "an element of a reduction"),
    "another element in a tree": (tree("s[t] += s[t + 1];"), "a sum of elements on the chip"),
    "only the other one in a tree": (tree("s[t] = fmaxf(s[t + k], s[t + k]);", **LARGEST), "an element of a reduction"),
    "itself in a tree": (tree("s[t] = fmaxf(s[t], s[t]);", **LARGEST), "an element of a reduction"),
    "largest of sums": (tree("s[t] = fmaxf(s[t], s[t + k]);"), "threads do not add up"),
    "least of the largest": (tree("s[t] = fminf(s[t], s[t + k]);", **LARGEST), "threads do not add up"),
    "function of its own in a tree": (
        "__device__ float fmaxf(float a, float b) { return a; }\n" + tree("s[t] = fmaxf(s[t], s[t + k]);"),
        "an element of a reduction",
    ),
    "return in a function's branch": (
        "__device__ float f(float a, float b) { if (a > b) { return a; } return b; }\n" + dot("acc = f(acc, A[k]);"),
        "a return that some elements take",
    ),
    "several dtypes": (element("__float2half(x[i] * 2.f)", "const float *x, half *y, int n"), "several dtypes"),
}
WRITTEN = {
    "product": dot(),
    "mean": mean("cols"),
    "half of it": element("x[i] * 0.5"),
    "exact comparison": element("x[i] > 0.5 ? x[i] : 0.1f"),
    "halves": element("__float2half(__half2float(A[i]) * 2.f)", "const half *A, half *y, int n"),
    "sum of rows": total(),
    "function in a loop": "__device__ float f(float a) { return a * a; }\n"
    + dot("sum += f(1.f);", before="float sum = 0.f;"),
    "tree of sums": tree("s[t] += s[t + k];"),
    "tree of sums, written out": tree("s[t] = s[t + k] + s[t];"),
    "tree of the largest": tree("s[t] = fmaxf(s[t], s[t + k]);", **LARGEST),
    "sum that begins anew": total(begin="acc = 0.f;", before="float acc;"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_computation_is_refused(name: str) -> None:
    source, reason = REFUSED[name]
    assert reason in refused(source)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_beside_it_is_still_read(name: str) -> None:
    readable(WRITTEN[name])
    (kernel,) = read(WRITTEN[name]).kernels
    assert kernel.outside == ""


def test_a_sum_with_zero_stays_and_defaults_choose_the_variant() -> None:
    readable(element("x[i]"))
    (kernel,) = read(element("x[i] + 0.f")).kernels
    assert kernel.draft is not None
    assert "x_block[i, j] + 0.0" in kernel.draft.text
    choice = element("v", before="float v = x[i]; if (F) v = v * 2.f;")
    (kernel,) = read(f"template<bool F = false>\n{choice}").kernels
    assert kernel.draft is not None
    assert "* 2" not in kernel.draft.text
    (kernel,) = read(f"template<bool F = true>\n{choice}").kernels
    assert kernel.draft is not None
    assert "* 2" in kernel.draft.text
