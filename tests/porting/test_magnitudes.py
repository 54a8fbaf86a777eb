"""Proofs see what a source rounds on the way, and what only numbers of some size show: where it is lost is a draft."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
from tests.porting.test_port import HEAD
from tests.porting.test_proof import check_shown
from ttexplore.porting.foreign import cuda, triton
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.proof.inputs import MAGNITUDES, Magnitudes, drawn
from ttexplore.porting.proof.numbers import constants_of

NEVER = re.compile("(?!)")


def by_elements(*statements: str) -> str:
    """A Triton kernel on elements `v`."""
    lines = [
        "def f(x, y, n, B: tl.constexpr):", "i = tl.program_id(0) * B + tl.arange(0, B)",
        "v = tl.load(x + i, mask=i < n)", *statements[:-1], f"tl.store(y + i, {statements[-1]}, mask=i < n)",
    ]  # fmt: skip
    return HEAD + "\n    ".join(lines) + "\n"


def by_rows(*statements: str) -> str:
    """A Triton kernel on rows `v`."""
    lines = [
        "def f(x, y, s, n, B: tl.constexpr):", "r = tl.program_id(0)", "i = tl.arange(0, B)",
        "v = tl.load(x + r * s + i, mask=i < n, other=0.0)", *statements[:-1],
        f"tl.store(y + r * s + i, {statements[-1]}, mask=i < n)",
    ]  # fmt: skip
    return HEAD + "\n    ".join(lines) + "\n"


def by_threads(value: str, dtype: str = "float") -> str:
    return (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        f"__global__ void f(int n, const {dtype} *x, {dtype} *y) {{\n"
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = {value};\n}}\n"
    )


def by_threads_of_rows(step: str, result: str, dtype: str = "float") -> str:
    return (
        f"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n__global__ void f(int n, const {dtype} *x, {dtype} *y) {{\n"
        "    int r = blockIdx.x;\n    if (threadIdx.x == 0) {\n        float acc = 0.0f;\n"
        f"        for (int k = 0; k < n; k++) {step}\n        y[r] = {result};\n    }}\n}}\n"
    )


ROUNDED_ON_THE_WAY = {
    "elements": by_elements("v.to(tl.bfloat16).to(tl.float32) * 2.0 + 1.0"),
    "elements, 11 bits": by_elements("w = (v * 3.0).to(tl.float16)", "w.to(tl.float32) + 1.0"),
    "what is added up": by_rows("h = v.to(tl.float16).to(tl.float32)", "v / tl.sum(h * h, axis=0)"),
    "a sum": by_rows("h = tl.sum(v, axis=0).to(tl.bfloat16)", "v - h.to(tl.float32)"),
    "a maximum": by_rows("h = tl.max(v, axis=0).to(tl.float16)", "v - h.to(tl.float32)").replace(
        "other=0.0", "other=-float('inf')"
    ),
    "CUDA": by_threads("__half2float(__float2half(x[i])) * 2.0f"),
    "CUDA, 8 bits": by_threads("__bfloat162float(__float2bfloat16(x[i] * 3.0f)) + 1.0f"),
    "a product of squares": by_threads(
        "__float2half(__half2float(__float2half(__half2float(x[i]) * 3.0f)) + 1.0f)", "half"
    ),
    "each step of a sum": by_threads_of_rows("acc += __half2float(__float2half(x[r * n + k] * x[r * n + k]));", "acc"),
    "squares of half": by_threads_of_rows(
        "acc += __half2float(__float2half(__half2float(x[r * n + k]) * __half2float(x[r * n + k])));",
        "__float2half(acc)", "half",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED_ON_THE_WAY)
def test_a_reader_that_loses_a_rounding_makes_a_draft(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ROUNDED_ON_THE_WAY[name]
    assert "to 16 bits" in ttx.port(source, prove=False).kernels[0].outside
    monkeypatch.setattr(triton, "_HALF", NEVER)
    monkeypatch.setattr(cuda, "_ROUNDING", NEVER)
    (kernel,) = ttx.port(source).kernels
    assert kernel.draft is not None, kernel
    assert kernel.draft.difference is not None, kernel.draft.reason
    assert kernel.draft.difference.inputs in ("distinct", MAGNITUDES)


LOST = {
    "a small number": (by_elements("v + 1e-5"), " + 1e-05", ""),
    "a tiny number": (by_threads("x[i] + 1e-25f"), " + 1e-25", ""),
    "eps of a mean": (by_rows("v / (tl.sum(v * v, axis=0) + 1e-12)"), " + 1e-12", ""),
    "a limit of 100": (by_threads("fminf(x[i], 100.0f)"), "T.min(x_block[i, j], 100.0)", "x_block[i, j]"),
    "a limit below -1e4": (by_elements("tl.maximum(v, -1e4)"), "T.max(x_block[i, j], -10000.0)", "x_block[i, j]"),
    "a bound of 1e20": (by_elements("tl.where(v > 1e20, 0.0, v)"), "x_block[i, j] > 1e+20", "x_block[i, j] > 1e+30"),
    "at a number": (by_threads("x[i] >= 3.5f ? 1.0f : x[i]"), ">= 3.5", "> 3.5"),
    "next to a number": (by_elements("tl.where(v <= 96.0, v, 96.5)"), "96.0", "96.00002"),
    "equal to a number": (by_elements("tl.where(v == 17.0, 5.0, v)"), "17.0", "18.0"),
    "a large divisor": (by_elements("v / 3e24"), "3e+24", "3.00001e+24"),
    "the sign of zero": (by_threads("1.0f / x[i]"), "1.0 / x_block[i, j]", "1.0 / (x_block[i, j] + 0.0)"),
    "digits": (by_elements("v * 3.1415927"), "3.1415927", "3.14159"),
    "an overflow": (by_threads("x[i] / 1e25f * 1e20f"), "/ 1e+25) * 1e+20", "* 1e+20) / 1e+25"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_what_a_skeleton_loses_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_shown(*LOST[name], monkeypatch)


RIGHT = {
    "cancellation": by_elements("(v + 16777216.0) - 16777216.0"), "overflow": by_threads("x[i] * 1e20f * 1e20f"),
    "sums of squares": by_rows("v / (tl.sum(v * v, axis=0) / (n * 100000.0))"),
    "a last rounding": by_elements("(v * 3.0).to(tl.float16)"), "nothing": by_threads("x[i] + (x[i] - x[i])"),
    "half": by_threads_of_rows("acc += __half2float(x[r * n + k]);", "__float2half(acc)", "half"),
    "logarithm": by_elements("tl.log(1.0 + v * v)"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_float32_rounds_is_proved(name: str) -> None:
    (kernel,) = ttx.port(RIGHT[name]).kernels
    assert kernel.proof is not None, kernel
    assert {"distinct", MAGNITUDES} <= set(kernel.proof.inputs)


def test_tensors_have_the_dtype_of_what_is_stored() -> None:
    for dtype in ("float16", "bfloat16"):
        assert f'dtype="{dtype}"' in ttx.port(by_elements(f"(v * 3.0).to(tl.{dtype})")).skeleton
    assert 'dtype="float32"' in ttx.port(
        by_elements("tl.store(x + i, v.to(tl.float16), mask=i < n)", "v.to(tl.bfloat16)")
    ).skeleton  # fmt: skip


def test_inputs_reach_all_magnitudes_and_the_constants() -> None:
    float32, half = np.dtype(np.float32), np.dtype(np.float16)
    first, second = Magnitudes((3.5, 0.1)).parts(24)
    elements = np.concatenate([drawn(part, 0, (8, 5), float32) for part in (first, second)])
    sizes = np.abs(elements[elements != 0])
    assert sizes.min() < 1e-20
    assert sizes.max() > 1e26
    next_one = float(np.nextafter(np.float32(3.5), np.float32(9)))
    assert {3.5, -3.5, next_one, -next_one} <= set(map(float, elements.flat))
    assert set(np.signbit(elements[elements == 0])) == {True, False}
    assert 0.1 not in np.abs(elements)
    # Rows of several tensors are of one size, each.
    of_another_tensor = drawn(second, 1, (8, 7), float32)
    ratios = np.abs(elements[8::3]).max(axis=1) / np.abs(of_another_tensor[::3]).max(axis=1)
    assert np.all((ratios > 0.1) & (ratios < 10))
    # Each dtype holds its elements, with all of its bits.
    assert np.any(elements != elements.astype(ml_dtypes.bfloat16))
    of_half = drawn(Magnitudes((1e20,)), 0, (20, 9), half)
    assert np.array_equal(of_half, of_half.astype(half))
    assert np.all(np.isfinite(of_half))


def test_constants_are_those_of_what_the_kernel_uses() -> None:
    kernel = ForeignKernel("f", 1, ())
    text = "A = 7.5\nB = 9\ndef g(x):\n    return x + 1e-5\ndef h():\n    return 13\ndef f(x):\n    return g(-x) + A\n"
    assert constants_of("Triton", text, kernel) == (1e-5, 7.5)
    text = "#define E 1e-6f // 50\n__global__ void f(float *x) { x[i2] = x1 > .25f ? 3.F : 0x40u + 1.0f; }"
    assert constants_of("CUDA", text, kernel) == (1e-6, 0.25, 3.0, 64.0)
