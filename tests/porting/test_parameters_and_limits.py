"""What a source cannot have: numbers that its types do not hold, and rows that are longer than its loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.errors import UsageError

ROW_SUM = """
__global__ void row_sum(const float* x, float* out, int M, int N) {
  int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= M) return;
  float s = 0.f;
  const int CAP = COUNT;
  for (int j = 0; j < CAP; j++) if (j < N) s += x[r * N + j];
  out[r] = s; }
"""
GEMM = """
__global__ void mm(const float* A, const float* B, float* C, int M, int N, int K) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < M && c < N) {
    float s = 0.f;
    for (int q = 0; q < COUNT; q++) if (q < K) s += A[r * K + q] * B[q * N + c];
    C[r * N + c] = s; } }
"""
TWICE = """
__global__ void twice(const float* x, float* out, int M, int N) {
  int j = blockIdx.x * blockDim.x + threadIdx.x; if (j >= N) return;
  for (int r = 0; r < COUNT; r++) if (r < M) out[r * N + j] = x[r * N + j] * 2.0f; }
"""
TRITON = """
import triton, triton.language as tl
@triton.jit
def row_sum(x_ptr, out_ptr, N, stride):
    r = tl.program_id(0)
    c = tl.arange(0, COUNT)
    x = tl.load(x_ptr + r * stride + c, mask=c < N, other=0.0)
    tl.store(out_ptr + r, tl.sum(x, axis=0))
"""


@pytest.mark.parametrize(("source", "count", "told"), [
    (ROW_SUM, "10 * 10", "100 columns"), (ROW_SUM, "3000 - 2900", "100 columns"), (ROW_SUM, "4096", "4,096 columns"),
    (GEMM, "8 * 16", "128 depth"), (GEMM, "4096", "4,096 depth"), (TWICE, "8 * 16", "128 rows"),
    (TRITON, "4096", "4,096 columns"), (TRITON, "1 << 9", "512 columns"),
])  # fmt: skip
def test_a_source_that_takes_the_first_elements_alone_is_a_draft(source: str, count: str, told: str) -> None:
    (kernel,) = ttx.port(source.replace("COUNT", count)).kernels
    assert kernel.draft is not None
    assert kernel.draft.reason == f"the source takes no more than {told}, the skeleton any number"


def test_a_source_that_takes_all_elements_is_written() -> None:
    port = ttx.port(ROW_SUM.replace("COUNT", "N"))
    x = np.random.default_rng(0).normal(size=(32, 300)).astype(np.float32)
    run = ttx.explore(port, rows=32, columns=300).run([x])
    np.testing.assert_allclose(run.outputs[0], x.sum(1), rtol=1e-2, atol=1e-1)


SCALE = """
__global__ void scale(const float* x, float* out, TYPE a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = VALUE; }
"""


@pytest.mark.parametrize(("dtype", "value"), [
    ("int", 2.5), ("int", float("nan")), ("int", 2**40), ("int", -(2**31) - 1), ("unsigned", -3), ("unsigned", 2**32),
    ("short", 65_536), ("char", 300), ("int", None), ("float", None), ("float", "0.5"),
])  # fmt: skip
def test_a_number_that_a_parameter_does_not_hold(dtype: str, value: Any) -> None:
    port = ttx.port(SCALE.replace("TYPE", dtype).replace("VALUE", "x[i] * (1.0f - a)"))
    with pytest.raises(UsageError, match=r"^a is ") as caught:
        ttx.explore(port, rows=32, columns=32, a=value)
    assert "a takes" in str(caught.value)


HELD = [("int", -3), ("int", 3.0), ("int", np.int64(7)), ("unsigned", 40_000), ("bool", True), ("float", 0.25)]


@pytest.mark.parametrize(("dtype", "value"), [*HELD, ("float", 2)])
def test_a_number_that_a_parameter_holds(dtype: str, value: Any) -> None:
    port = ttx.port(SCALE.replace("TYPE", dtype).replace("VALUE", "a * x[i]"))
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    run = ttx.explore(port, rows=32, columns=32, a=value).run([x])
    np.testing.assert_array_equal(run.outputs[0], np.float32(value) * x)
