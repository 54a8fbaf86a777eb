"""Kernels in CUDA C++ run on the CPU: each against NumPy, which computes the same from its description."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ttexplore.porting.proof.cuda import cuda_runner
from ttexplore.porting.proof.running import Launch

pytest.importorskip("tree_sitter_cuda")
Array = NDArray[Any]
SOURCES = Path(__file__).parent / "cuda"
GENERATOR = np.random.default_rng(3)


def numbers(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """How a kernel is launched, its arguments, and what its arrays must have."""

    launch: Launch
    arguments: Mapping[str, Any]
    expected: Mapping[str, Array]
    tolerance: float = 1e-5


CASES: dict[str, Callable[[], Case]] = {}


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    CASES[function.__name__] = function
    return function


@pytest.mark.parametrize("name", sorted(path.stem for path in SOURCES.glob("*.cu")))
def test_a_kernel_gives_what_numpy_computes(name: str) -> None:
    chosen = CASES[name]()
    source = (SOURCES / f"{name}.cu").read_text(encoding="utf-8")
    done = cuda_runner(source, name).run(chosen.launch, chosen.arguments)
    assert done.outside == ()
    for tensor, expected in chosen.expected.items():
        result = done.arrays[tensor]
        original = chosen.arguments[tensor]
        assert result.dtype == original.dtype
        assert result.shape == original.shape
        wide = result.astype(np.float64)
        error = np.abs(wide - expected.ravel().astype(np.float64))
        bound = chosen.tolerance * max(1.0, float(np.max(np.abs(expected))))
        assert np.all(error <= bound), f"{tensor}: {float(np.max(error))} at {int(np.argmax(error))}"


def empty(count: int, dtype: Any = np.float32) -> Array:
    return np.full(count, np.nan if np.dtype(dtype).kind not in "iub" else 77, dtype)


@case
def transpose() -> Case:
    x = numbers(45, 70)
    return Case(
        Launch((3, 2), (32, 8)),
        {"out": empty(45 * 70), "in": x.ravel(), "height": 45, "width": 70}, {"out": x.T},
    )  # fmt: skip


@case
def histogram() -> Case:
    data = GENERATOR.integers(0, 256, 5000).astype(np.uint8)
    return Case(
        Launch((4,), (128,)), {"data": data, "bins": np.zeros(256, np.uint32), "n": 5000},
        {"bins": np.bincount(data, minlength=256)}, 0,
    )  # fmt: skip


@case
def jacobi() -> Case:
    x = numbers(20, 37)
    expected = x.copy()
    expected[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return Case(
        Launch((3, 2), (16, 16)), {"u": x.ravel(), "v": empty(740), "h": 20, "w": 37}, {"v": expected},
    )  # fmt: skip


@case
def block_sum() -> Case:
    x = numbers(5, 300)
    return Case(
        Launch((5,), (128,)), {"in": x.ravel(), "out": empty(5), "n": 300}, {"out": x.sum(axis=1)},
    )  # fmt: skip


@case
def block_softmax() -> Case:
    x = numbers(3, 200) * 50
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return Case(
        Launch((3,), (64,), 16), {"inp": x.ravel(), "out": empty(600), "N": 3, "C": 200},
        {"out": e / e.sum(axis=1, keepdims=True)},
    )  # fmt: skip


@case
def sgemm() -> Case:
    a, b, c = numbers(64, 24), numbers(24, 64), numbers(64, 64)
    return Case(
        Launch((2, 2), (256,)),
        {"M": 64, "N": 64, "K": 24, "alpha": 2.0, "A": a.ravel(), "B": b.ravel(), "beta": -0.5, "C": c.ravel(),
         "BM": 32, "BN": 32, "BK": 8, "TM": 4},
        {"C": 2 * (a @ b) - 0.5 * c},
    )  # fmt: skip


@case
def wmma_gemm() -> Case:
    a, b = numbers(32, 48).astype(np.float16), numbers(48, 32).astype(np.float16)
    return Case(
        Launch((1, 2), (64, 1)), {"A": a.ravel(), "B": b.ravel(), "C": empty(1024), "M": 32, "N": 32, "K": 48},
        {"C": 3 * (a.astype(np.float32) @ b.astype(np.float32))},
    )  # fmt: skip


@case
def gelu4() -> Case:
    x = numbers(1028)
    wide = x.astype(np.float64)
    return Case(
        Launch((3,), (128,)), {"x": x, "y": empty(1028), "N": 1028},
        {"y": 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))},
    )  # fmt: skip


@case
def layer_norm() -> Case:
    x, w, b = numbers(6, 100) + 3, numbers(100), numbers(100)
    mean, variance = x.mean(axis=1), x.var(axis=1)
    rstd = 1 / np.sqrt(variance + 1e-5)
    return Case(
        Launch((2,), (128,)),
        {"out": empty(600), "mean": empty(6), "rstd": empty(6), "inp": x.ravel(), "weight": w, "bias": b, "N": 6,
         "C": 100},
        {"out": (x - mean[:, None]) * rstd[:, None] * w + b, "mean": mean, "rstd": rstd},
    )  # fmt: skip


@case
def quantize() -> Case:
    x = numbers(4, 96)
    scale = (np.abs(x).max(axis=1) / np.float32(127)).astype(np.float32)
    return Case(
        Launch((4,), (64,)), {"x": x.ravel(), "q": empty(384, np.int8), "scale": empty(4), "n": 96},
        {"q": np.rint(x / scale[:, None]), "scale": scale}, 0,
    )  # fmt: skip


@case
def rope() -> Case:
    x = numbers(5, 2, 16)
    positions = np.array([7, 0, 3, 3, 100], np.int64)
    table = numbers(128, 16)
    cosine, sine = table[positions, None, :8], table[positions, None, 8:]
    first, second = x[..., :8], x[..., 8:]
    return Case(
        Launch((5,), (32,)),
        {"positions": positions, "query": x.ravel(), "cache": table.ravel(), "rot_dim": 16, "num_heads": 2,
         "scalar_t": "float32"},
        {"query": np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)},
    )  # fmt: skip


@case
def block_scan() -> Case:
    x = GENERATOR.integers(-9, 9, 256).astype(np.int32)
    return Case(
        Launch((1,), (128,), 1024), {"in": x, "out": empty(256, np.int32), "n": 256}, {"out": np.cumsum(x) - x}, 0,
    )  # fmt: skip


@case
def top2() -> Case:
    x = GENERATOR.permutation(40 * 8).astype(np.float32).reshape(40, 8)
    order = np.argsort(-x, axis=1)[:, :2]
    return Case(
        Launch((2,), (32,)),
        {"x": x.ravel(), "values": empty(80), "indices": empty(80, np.int32), "rows": 40, "experts": 8},
        {"values": np.take_along_axis(x, order, axis=1), "indices": order}, 0,
    )  # fmt: skip


@case
def gather() -> Case:
    table = numbers(50, 12).astype(np.float16)
    tokens = GENERATOR.integers(0, 50, 9).astype(np.int32)
    return Case(
        Launch((2,), (32,)),
        {"table": table.ravel(), "tokens": tokens, "out": empty(108, np.float16), "count": 9, "dim": 12},
        {"out": table[tokens]}, 0,
    )  # fmt: skip


@case
def cross_entropy() -> Case:
    x = numbers(5, 70) * 9
    targets = GENERATOR.integers(0, 70, 5).astype(np.int32)
    wide = x.astype(np.float64)
    top = wide.max(axis=1)
    losses = np.log(np.exp(wide - top[:, None]).sum(axis=1)) + top - wide[np.arange(5), targets]
    return Case(
        Launch((5,), (32,)), {"losses": empty(5), "logits": x.ravel(), "targets": targets, "V": 70},
        {"losses": losses},
    )  # fmt: skip


@case
def attention() -> Case:
    q, k, v = numbers(2, 32, 16), numbers(2, 32, 16), numbers(2, 32, 16)
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1) * 0.25
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return Case(
        Launch((2,), (16,), 4 * (3 * 16 * 16 + 256)),
        {"Q": q.ravel(), "K": k.ravel(), "V": v.ravel(), "N": 32, "d": 16, "Tc": 2, "Tr": 2, "Bc": 16, "Br": 16,
         "softmax_scale": 0.25, "l": np.zeros(64, np.float32), "m": np.full(64, -np.inf, np.float32),
         "O": np.zeros(1024, np.float32)},
        {"O": weights / weights.sum(axis=-1, keepdims=True) @ v},
    )  # fmt: skip


@case
def grid_stride() -> Case:
    x = numbers(777)
    return Case(
        Launch((3,), (96,)), {"n": 777, "a": 0.1, "x": x, "y": empty(777)}, {"y": (0.1 * x.astype(np.float64))},
    )  # fmt: skip


@case
def half2_axpy() -> Case:
    x, y = numbers(130).astype(np.float16), numbers(130).astype(np.float16)
    expected = (np.float64(np.float16(1.5)) * x.astype(np.float64) + y.astype(np.float64)).astype(np.float16)
    return Case(
        Launch((2,), (64,)), {"x": x, "y": y, "a": 1.5, "n": 130}, {"y": expected}, 0,
    )  # fmt: skip


@case
def bfloat_scale() -> Case:
    x = numbers(100).astype(ml_dtypes.bfloat16)
    expected = (x.astype(np.float32) * np.float32(0.3)).astype(ml_dtypes.bfloat16)
    return Case(
        Launch((1,), (128,)), {"x": x, "y": empty(100, ml_dtypes.bfloat16), "a": 0.3, "n": 100}, {"y": expected}, 0,
    )  # fmt: skip


@case
def convolution() -> Case:
    x = numbers(60)
    weights = np.array([0.1, 0.2, 0.4, 0.2, 0.1], np.float32)
    return Case(
        Launch((2,), (32,)), {"x": x, "y": empty(60), "n": 60},
        {"y": np.convolve(x, weights, "same")},
    )  # fmt: skip


@case
def group_sum() -> Case:
    x = numbers(64)
    return Case(
        Launch((1,), (64,)), {"x": x, "sums": empty(8), "votes": empty(8, np.int32)},
        {"sums": x.reshape(8, 8).sum(axis=1), "votes": (x.reshape(8, 8) > 0).sum(axis=1)},
    )  # fmt: skip


@case
def bitonic() -> Case:
    x = numbers(256)
    return Case(
        Launch((1,), (256,), 1024), {"values": x}, {"values": np.sort(x)}, 0,
    )  # fmt: skip


@case
def arg_max() -> Case:
    x = numbers(4, 50)
    return Case(
        Launch((4,), (32,)), {"x": x.ravel(), "index": empty(4, np.int64), "n": 50}, {"index": x.argmax(axis=1)}, 0,
    )  # fmt: skip


@case
def compact() -> Case:
    x = GENERATOR.integers(-5, 6, 64).astype(np.int32)
    positive = x[x > 0]
    return Case(
        Launch((1,), (64,)), {"x": x, "y": np.zeros(64, np.int32), "count": empty(1, np.int32)},
        {"y": np.pad(positive, (0, 64 - positive.size)), "count": np.array([positive.size])}, 0,
    )  # fmt: skip


@case
def struct_of_functions() -> Case:
    x = numbers(40)
    return Case(
        Launch((1,), (64,)), {"x": x, "y": empty(40), "n": 40, "twice": True}, {"y": 4 * np.maximum(x, 0)},
    )  # fmt: skip


@case
def volatile_free() -> Case:
    x = numbers(128)
    return Case(
        Launch((1,), (128,)), {"in": x, "out": empty(1), "n": 128, "blockSize": 128}, {"out": x.sum(keepdims=True)},
    )  # fmt: skip


@case
def pipelined() -> Case:
    x = numbers(4, 64)
    return Case(
        Launch((1,), (16,)), {"x": x.ravel(), "y": empty(64), "rows": 4}, {"y": x.sum(axis=0)},
    )  # fmt: skip


@case
def float_atomics() -> Case:
    x = numbers(1000)
    return Case(
        Launch((8,), (128,)),
        {"x": x, "sum": np.zeros(1, np.float32), "top": np.full(1, -np.inf, np.float32), "wide": np.zeros(1),
         "n": 1000},
        {"sum": x.sum(dtype=np.float64, keepdims=True), "top": x.max(keepdims=True),
         "wide": x.sum(dtype=np.float64, keepdims=True)},
        1e-4,
    )  # fmt: skip
