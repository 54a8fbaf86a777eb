"""The examples of the porting table: each is lowered, checked, and emulated, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.porting_kernels

Array = NDArray[Any]
FOLDER = Path(ttexplore.porting_kernels.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
# Of the largest element of an output: bfloat16 has 8 bits of mantissa.
BOUND = 1e-2


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    outputs: list[Array] = []
    for head in range(len(q)):
        scores = q[head] @ k[head].T / np.sqrt(q.shape[-1])
        scores[np.triu_indices(len(scores), 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        outputs.append(weights @ v[head] / weights.sum(axis=1, keepdims=True))
    return np.stack(outputs)


def rotated(x: Array, cos: Array, sin: Array) -> Array:
    # As complex numbers: a rotation is a product.
    half = x.shape[1] // 2
    turned = (x[:, :half] + 1j * x[:, half:]) * (cos + 1j * sin)
    return np.concatenate([turned.real, turned.imag], axis=1)


def two_phases(a: Array) -> tuple[Array, Array]:
    half = a / 2
    return half, half + np.concatenate([half[32:], half[:32]])


def softmax(x: Array) -> Array:
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


# What each kernel computes, from its inputs in float64.
FORMULAS: dict[str, Callable[..., Array | tuple[Array, ...]]] = {
    "any_size": lambda a: np.where(a > 0, a, 0),
    "attention": causal_attention,
    "converted": lambda a: a.astype(ml_dtypes.bfloat16).astype(np.float64),
    "edges": lambda a: a @ np.ones(a.shape[1]),
    "gathered_rows": lambda a, index: a[index.astype(int)],
    "gemm": np.matmul,
    "gemm_epilogue": lambda a, b, bias: np.maximum(a @ b + bias, 0),
    "gemm_shared": np.matmul,
    "gemm_transposed": lambda a, b: np.einsum("mk,nk->mn", a, b),
    "lower_triangle": lambda matrix, b: np.tril(matrix) @ b,
    "persistent": np.matmul,
    "producer_consumer": np.matmul,
    "rms_norm": lambda x, weight: x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-5) * weight,
    "rope": rotated,
    "row_sums": lambda a: (a.sum(axis=1), a.max(axis=1)),
    "running_sums": lambda a: np.cumsum(a, axis=1),
    "scaled_sum": lambda a, b: a / 2 + np.exp(b),
    "sharded": lambda a: 2 * a,
    "softmax": softmax,
    "split_k": lambda a, b, c: c + a @ b,
    "swizzled": np.matmul,
    "two_phases": two_phases,
}


def test_every_kernel_has_a_formula() -> None:
    assert list(FORMULAS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_kernel(name: str) -> None:
    explored = ttx.explore(f"{FOLDER / name}.py::{name}")
    if explored.error is not None:
        raise explored.error
    checked = explored.check()
    assert checked.ok, str(checked)
    inputs = explored.inputs()
    ran = explored.run(list(inputs), backend="emulator")
    found = FORMULAS[name](*(array.astype(np.float64) for array in inputs))
    wanted = found if isinstance(found, tuple) else (found,)
    assert [output.shape for output in ran.outputs] == [one.shape for one in wanted]
    for output, one in zip(ran.outputs, wanted, strict=True):
        # A run that leaves its outputs at zero, or gives all elements one value, would not be close.
        assert np.ptp(one) > 0
        assert np.abs(output.astype(np.float64) - one).max() <= BOUND * np.abs(one).max()
