"""Branches around operations on blocks, against NumPy: which blocks and turns take them, and what the others keep."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.branches import chosen_source, last_products, skipped, waves, ways
from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.arithmetic.index import Binary, Expression, Select, Unary, Variable, folded

Numbers = np.ndarray[Any, Any]


def held(kernel: Any, expected: Callable[..., Numbers], tolerance: float = 1e-6, **options: Any) -> ttx.Exploration:
    """Each step and the emulator against what NumPy computes."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    inputs = exploration.inputs()
    want = expected(*(one.astype(np.float64) for one in inputs))
    check = exploration.check()
    assert check, str(check)
    run = exploration.run(inputs)
    assert run.passed, run.message
    np.testing.assert_allclose(run.outputs[0], want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    return exploration


CONDITIONS: dict[str, Callable[..., Any]] = {
    "parity": lambda bx, k: (bx + k) % 2 == 0,
    "of the block": lambda bx, k: bx == 1,
    "of the turn": lambda bx, k: k != 2,
    "first turns": lambda bx, k: k < bx,
    "both": lambda bx, k: (bx > 0) & (k > 1),
    "either": lambda bx, k: (bx * 3 + k) % 4 < 2,
    "always": lambda bx, k: bx + k >= 0,
    "never": lambda bx, k: bx * 4 + k > 11,
    "a number": lambda bx, k: (bx + k) % 3,
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize(("size", "accumulate"), [(64, "reload"), (128, "reload"), (128, "l1")])
def test_sums_that_leave_out_terms(name: str, size: int, accumulate: str) -> None:
    """Also of accumulators that are larger than DST."""
    condition = CONDITIONS[name]

    def expected(a: Numbers, b: Numbers) -> Numbers:
        rows = [np.zeros((size, size)) for _ in range(3)]
        for bx in range(3):
            for k in range(4):
                if condition(bx, k):
                    rows[bx] += a[bx * size : bx * size + size, k * 32 : k * 32 + 32] @ b[k * 32 : k * 32 + 32]
        return np.concatenate(rows)

    held(skipped(condition, size), expected, 2e-3, accumulate=accumulate)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("epilogue", ["fused", "separate"])
def test_turns_before_work_that_shares_their_last_section(name: str, epilogue: str) -> None:
    """The last turn is peeled off the loop, and its condition with it."""
    condition = CONDITIONS[name]

    def expected(a: Numbers, b: Numbers) -> Numbers:
        blocks: list[Numbers] = []
        for bx in range(3):
            c = np.zeros((64, 64))
            for k in range(4):
                c = c * (0.5 if condition(bx, k) else 1.0)
                c = c + a[bx * 64 : bx * 64 + 64, k * 32 : k * 32 + 32] @ b[k * 32 : k * 32 + 32]
            blocks.append(np.maximum(c, 0.0))
        return np.concatenate(blocks)

    held(last_products(condition), expected, 2e-3, epilogue=epilogue)


def test_one_of_three_tensors() -> None:
    def expected(a: Numbers, b: Numbers, d: Numbers) -> Numbers:
        chosen = [a if bx % 2 == 0 else b if bx < 3 else d for bx in range(6)]
        return np.concatenate([one[bx * 32 : bx * 32 + 32] * 2 + 1 for bx, one in enumerate(chosen)])

    held(chosen_source(lambda bx: bx % 2 == 0, lambda bx: bx < 3), expected)


def test_a_block_that_both_sides_use() -> None:
    def expected(a: Numbers) -> Numbers:
        blocks = [a[bx * 32 : bx * 32 + 32] for bx in range(6)]
        return np.concatenate([
            np.exp(one) + (bx < 3) if bx % 2 == 1 else 3.0 - one for bx, one in enumerate(blocks)
        ])  # fmt: skip

    held(ways(lambda bx: bx % 2 == 1), expected, 1e-2)


def test_a_value_that_one_branch_changes_and_another_reads() -> None:
    """The first branch leaves alone what the compute kernel keeps in a circular buffer for the others."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 32), "float32"), B: T.Tensor((3, 32), "float32"), S: T.Tensor((3,), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_fragment((32,), "float32")
            s = T.alloc_var("float32", init=0.5)
            T.copy(A[bx, 0], a)
            if bx == 0:
                for i in T.Parallel(32):
                    a[i] = a[i] * 2
            elif bx == 1:
                s = s * 0.5
            else:
                for i in T.Parallel(32):
                    a[i] = a[i] + s
            T.copy(a, B[bx, 0])
            S[bx] = s

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    a = np.arange(96, dtype=np.float32).reshape(3, 32)
    found, scale = exploration.run([a]).outputs
    np.testing.assert_array_equal(found, np.stack([a[0] * 2, a[1], a[2] + 0.5]))
    np.testing.assert_array_equal(scale, np.array([0.5, 0.25, 0.5], np.float32))


@pytest.mark.parametrize(("rows", "columns", "blocks", "group"), [(3, 5, 4, 2), (2, 2, 64, 8), (1, 1, 3, 1)])
def test_waves_of_tiles(rows: int, columns: int, blocks: int, group: int) -> None:
    """Each tile is stored once, and none outside: the condition proves it, so that no transfer needs a guard."""
    exploration = held(waves(rows, columns, blocks, group), lambda a, b: a @ b, 2e-3)
    assert "write_zeros" not in exploration.code["reader"].text
    assert sum("if (" in line.text for line in exploration.code["writer"].lines) == 1


def test_text_of_a_branch() -> None:
    """Every kernel takes it by the same condition, which reads as the kernel's."""
    exploration = ttx.explore(skipped(lambda bx, k: (bx + k) % 2 == 0))
    for role in ("reader", "compute"):
        assert "if ((bx + k) % 2 == 0) {" in exploration.code[role].text
    assert "if (" not in exploration.code["writer"].text
    for step in exploration.steps:
        assert "if (bx + k) % 2 == 0:" in str(step)


def test_a_value_that_only_a_branch_writes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            if bx > 0:
                T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    error = ttx.explore(kernel).error
    assert isinstance(error, KernelError)
    assert error.message == "a is read here, and written only under a condition"
    assert error.hint == "T.clear(a) before the condition, or write all of it in `else`, too"
    assert error.span is not None
    assert linecache.getline(error.span.file, error.span.line).strip() == "T.copy(a, B[bx * 32, 0])"


def test_a_condition_on_what_the_chip_computes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] *= 2
            if a[0, 0] > 0:
                T.copy(a, B[bx * 32, 0])

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.message == (
        "a condition around operations on blocks depends on an element of the block a, which only the compute kernel "
        "knows"
    )
    assert "T.if_then_else" in error.hint
    assert error.span is not None
    assert linecache.getline(error.span.file, error.span.line).strip() == "if a[0, 0] > 0:"


def test_folded_expressions() -> None:
    x, y = Variable(0, "x"), Variable(1, "y")

    def times(a: Expression, b: Expression) -> Expression:
        return Binary("*", a, b)

    assert folded(Binary("+", times(64, 0), Binary("+", y, x))) == folded(Binary("+", x, y))
    assert folded(Binary("<", Binary("%", 7, 4), 3)) == 0
    assert folded(Select(Binary("<", 1, 2), x, y)) == x
    assert folded(Unary("not", Binary("==", times(2, x), Binary("+", 3, -3)))) == Unary(
        "not", Binary("==", folded(times(2, x)), 0)
    )
