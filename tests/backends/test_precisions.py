"""What each output is held to follows from what flows into it, not from what is computed beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.backends.compare import compare
from ttexplore.exploration import Exploration
from ttexplore.exploration.references import rounding_of
from ttexplore.session.lowering import precisions as precisions_of_outputs

LOFI, FAST, NARROW = {"math_fidelity": "LoFi"}, {"sfpu": "fast"}, {"accumulate_dtype": "bfloat16"}


@T.prim_func
def beside(
    A: T.Tensor((64, 64), "bfloat16"),
    W: T.Tensor((64, 64), "bfloat16"),
    X: T.Tensor((64, 64), "float32"),
    B: T.Tensor((64, 64), "float32"),
    C: T.Tensor((64, 64), "float32"),
    D: T.Tensor((64, 64), "bfloat16"),
    E: T.Tensor((64, 64), "float32"),
):
    """A product: B; what is computed from another input: C; an input as it is: D; what is computed from both: E."""
    with T.Kernel(2) as bx:
        a, w = T.alloc_shared((32, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
        b, e = T.alloc_fragment((32, 64), "float32"), T.alloc_fragment((32, 64), "float32")
        x, d = T.alloc_shared((32, 64), "float32"), T.alloc_shared((32, 64), "bfloat16")
        T.copy(A[bx * 32, 0], a)
        T.copy(W, w)
        T.copy(X[bx * 32, 0], x)
        T.copy(A[bx * 32, 0], d)
        T.copy(d, D[bx * 32, 0])
        T.clear(b)
        T.gemm(a, w, b)
        for i, j in T.Parallel(32, 64):
            e[i, j] = b[i, j] * 2 + x[i, j]
        for i, j in T.Parallel(32, 64):
            x[i, j] = x[i, j] * 2 + 1
        T.copy(b, B[bx * 32, 0])
        T.copy(x, C[bx * 32, 0])
        T.copy(e, E[bx * 32, 0])


@T.prim_func
def reused(
    A: T.Tensor((32, 64), "bfloat16"),
    W: T.Tensor((64, 64), "bfloat16"),
    B: T.Tensor((32, 64), "float32"),
    C: T.Tensor((32, 64), "float32"),
):
    """One fragment, for a product and then for something else."""
    with T.Kernel(1):
        a, w = T.alloc_shared((32, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
        b = T.alloc_fragment((32, 64), "float32")
        T.copy(A, a)
        T.copy(W, w)
        T.clear(b)
        T.gemm(a, w, b)
        T.copy(b, B)
        for i, j in T.Parallel(32, 64):
            b[i, j] = T.exp(a[i, j])
        T.copy(b, C)


@T.prim_func
def carried(
    A: T.Tensor((32, 64), "bfloat16"),
    W: T.Tensor((64, 64), "bfloat16"),
    B: T.Tensor((96, 64), "float32"),
    C: T.Tensor((32, 64), "float32"),
):
    """A product that reaches the first statement of a loop only in its second turn."""
    with T.Kernel(1):
        a, w = T.alloc_shared((32, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
        b, c = T.alloc_fragment((32, 64), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(A, a)
        T.copy(W, w)
        T.clear(b)
        T.clear(c)
        for k in T.serial(3):
            T.copy(b, B[k * 32, 0])
            for i, j in T.Parallel(32, 64):
                b[i, j] = c[i, j] + 1
            T.gemm(a, w, c)
        T.clear(c)
        T.copy(c, C)


@T.prim_func
def exponential(
    A: T.Tensor((32, 64), "float32"),
    B: T.Tensor((32, 64), "float32"),
    C: T.Tensor((32, 64), "float32"),
):
    with T.Kernel(1):
        a, c = T.alloc_fragment((32, 64), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(A, a)
        for i, j in T.Parallel(32, 64):
            c[i, j] = a[i, j] * 3 - 1
        for i, j in T.Parallel(32, 64):
            a[i, j] = T.exp(a[i, j])
        T.copy(a, B)
        T.copy(c, C)


@T.prim_func
def two_launches(
    A: T.Tensor((64, 64), "bfloat16"),
    W: T.Tensor((64, 64), "bfloat16"),
    X: T.Tensor((64, 64), "float32"),
    M: T.Tensor((64, 64), "float32"),
    B: T.Tensor((64, 64), "float32"),
    C: T.Tensor((64, 64), "float32"),
):
    """The second launch takes the product of the first for B, and only an input for C."""
    with T.Kernel(1):
        a, w = T.alloc_shared((64, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
        m = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(W, w)
        T.clear(m)
        T.gemm(a, w, m)
        T.copy(m, M)
    with T.Kernel(1):
        m, x = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        T.copy(M, m)
        T.copy(X, x)
        for i, j in T.Parallel(64, 64):
            m[i, j] = m[i, j] + 1
        for i, j in T.Parallel(64, 64):
            x[i, j] = x[i, j] + 1
        T.copy(m, B)
        T.copy(x, C)


def precisions(exploration: Exploration) -> dict[str, str]:
    return dict(zip(exploration._output_names, precisions_of_outputs(exploration), strict=True))


COARSE: list[tuple[Any, dict[str, Any], dict[str, str]]] = [
    (beside, {}, {"B": "full", "C": "full", "D": "exact", "E": "full"}),
    (beside, LOFI, {"B": "low_fidelity", "C": "full", "D": "exact", "E": "low_fidelity"}),
    (beside, NARROW, {"B": "low_fidelity", "C": "bfloat16", "D": "exact", "E": "low_fidelity"}),
    (reused, LOFI, {"B": "low_fidelity", "C": "full"}),
    (carried, LOFI, {"B": "low_fidelity", "C": "full"}),
    (exponential, FAST, {"B": "fast", "C": "full"}),
    (two_launches, LOFI, {"M": "low_fidelity", "B": "low_fidelity", "C": "full"}),
]


@pytest.mark.parametrize(("kernel", "options", "expected"), COARSE)
def test_only_what_something_coarse_flows_into_is_held_to_less(
    kernel: Any, options: dict[str, Any], expected: dict[str, str]
) -> None:
    exploration = ttx.explore(kernel, options=options)
    assert precisions(exploration) == expected
    result = exploration.run()
    assert result.passed, result.message


def beside_in_numpy(inputs: tuple[NDArray[Any], ...]) -> list[NDArray[Any]]:
    a, w, x = (array.astype(np.float64) for array in inputs)
    b = np.array([[sum(a[i, k] * w[k, j] for k in range(64)) for j in range(64)] for i in range(64)])
    return [b, x * 2 + 1, a, b * 2 + x]


@pytest.mark.parametrize("options", [LOFI, NARROW])
@pytest.mark.parametrize(("name", "share"), [("C", 0.02), ("D", 0.001)])
def test_a_wrong_output_beside_a_coarse_product_is_found(options: dict[str, Any], name: str, share: float) -> None:
    """Every element of one output is wrong by so much of the largest: less than what a LoFi product explains."""
    exploration = ttx.explore(beside, options=options)
    inputs = exploration.inputs(seed=3)
    expected = beside_in_numpy(inputs)
    outputs, names = exploration.run(inputs).outputs, exploration._output_names
    number = names.index(name)
    arguments = (exploration.plan.precisions, rounding_of(exploration, inputs), names)
    reference = [array.astype(output.dtype) for array, output in zip(expected, outputs, strict=True)]
    assert compare(outputs, reference, *arguments).passed
    wrong = [*outputs]
    shift = share * np.abs(expected[number]).max()
    wrong[number] = (outputs[number].astype(np.float64) + shift).astype(outputs[number].dtype)
    found = compare(wrong, reference, *arguments)
    assert not found.passed
    assert found.message.startswith(f"{name} differs")
