"""Kernels in CUDA are written where running them proves it, and drafts where they are not what their skeleton is."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.porting.port import PortedKernel
from ttexplore.porting.proof.cuda import cuda_runner
from ttexplore.porting.proof.running import Launch

pytest.importorskip("tree_sitter_cuda")


def ported(source: str) -> PortedKernel:
    (kernel,) = ttx.port(source).kernels
    return kernel


# Each with the numbers of blocks and threads of its first launch as the source has it.
PROVED = {
    "whole constants are sizes of blocks": """
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
""",
    "one length of three axes": """
__global__ void mm(const float* A, const float* B, float* O, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) {
        float acc = 0.0f;
        for (int k = 0; k < n; ++k) acc += A[row * n + k] * B[k * n + col];
        O[row * n + col] = acc;
    }
}
""",
    "each block of threads has a row": """
__global__ void squares(const float *in, float *out, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] * in[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
""",
    "nothing says where the tensor ends": """
__global__ void twice(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}
""",
    "a warp for each row": """
__global__ void softmax(const float* x, float* y, int n) {
    int row = blockIdx.x;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[row * n + i]);
    for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    float s = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) s += expf(x[row * n + i] - m);
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    for (int i = threadIdx.x; i < n; i += 32) y[row * n + i] = expf(x[row * n + i] - m) / s;
}
""",
    "a function in a loop": """
__device__ float square(float v) {
    float half = 0.5f * v;
    return 4.0f * half * half;
}
__global__ void squares(const float *x, float *y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.0f;
    for (int c = 0; c < cols; ++c) s += square(x[r * cols + c]);
    y[r] = s;
}
""",
    "results that half has not": """
#include <cuda_fp16.h>
constexpr int TILE = 16;
__global__ void gemm(const half* A, const half* B, const half* bias, half* C, int M, int N, int K) {
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k) acc += __half2float(A[row * K + k]) * __half2float(B[k * N + col]);
    C[row * N + col] = __float2half(fmaxf(acc + __half2float(bias[col]), 0.0f));
}
""",
    "a type and a size of a template": """
template <typename T, int BLOCK> __global__ void squared(const T* x, T* y, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
""",
    "a whole number and a bool": """
__global__ void k(const float* A, const float* B, float* O, int n, int s, bool b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) O[i] = A[i] * s + B[i] * b;
}
""",
}


@pytest.mark.parametrize("name", PROVED)
def test_a_kernel_is_written_if_its_source_gives_the_same(name: str) -> None:
    kernel = ported(PROVED[name])
    assert kernel.proof is not None, kernel.draft
    assert kernel.skeleton
    assert kernel.proof.error < 2e-3
    assert len(kernel.proof.sizes) >= 2


MATMUL = PROVED["whole constants are sizes of blocks"]
TREE = PROVED["each block of threads has a row"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        # What is next is loaded while others still read the last block.
        (MATMUL.replace("        __syncthreads();\n    }", "    }"), "its threads race"),
        (MATMUL.replace("        __syncthreads();\n        for", "        for"), "its threads race"),
        (TREE.replace("        __syncthreads();\n    }", "    }"), "its threads race"),
        (TREE.replace("if (t < s) part", "if (t < s) { __syncthreads(); part").replace("+ s];", "+ s]; }"), ""),
        (MATMUL.replace("float acc = 0.0f;", "float acc;"), "no value yet"),
        (MATMUL.replace("float a[T][T]", "float a[T][T - 1]"), "an array of the kernel, which has fewer"),
        (TREE.replace("part[t + s]", "part[t + 8 * s]"), ""),
        (PROVED["a warp for each row"].replace("int o = 16;", "int o = 8;"), ""),
    ],
)
def test_a_kernel_that_its_source_does_not_give_is_no_skeleton(source: str, reason: str) -> None:
    kernel = ported(source)
    assert not kernel.skeleton
    assert reason in (kernel.draft.reason if kernel.draft else kernel.outside)


def test_a_kernel_that_is_no_c_has_its_line() -> None:
    kernel = ported(PROVED["nothing says where the tensor ends"].replace("int i =", "size i ="))
    assert not kernel.skeleton
    said = kernel.draft.reason if kernel.draft else kernel.outside
    assert "line 3" in said


def test_lines_of_stores_are_those_of_the_source() -> None:
    runner = cuda_runner(MATMUL, "mm")
    assert runner.translation.lines == {"O": 1 + MATMUL[: MATMUL.index("O[row")].count("\n")}
    x = np.arange(8, dtype=np.float32)
    launch = Launch((1,), (8,))
    run = cuda_runner(PROVED["nothing says where the tensor ends"], "twice").run(launch, {"x": x, "y": x})
    assert run.lines == {"y": 4}
    assert list(run.arrays["y"]) == list(2 * x)
