"""Loops whose length a block decides, against NumPy: with no turn, one, and several."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.turns import (
    FROM,
    UP_TO,
    UP_TO_AND_WITH,
    cleared_by_product,
    last_load,
    stored_in_turns,
    triangle,
    turned_loops,
    turns_in_turns,
    window,
)
from ttexplore.errors import KernelError, ResourceError
from ttexplore.passes.verify import handshake

Numbers = np.ndarray[Any, Any]


def held(kernel: Any, expected: Callable[..., Numbers], tolerance: float = 1e-6, **options: Any) -> None:
    """Each step and the emulator against what NumPy computes."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    inputs = exploration.inputs()
    want = expected(*(one.astype(np.float64) for one in inputs))
    assert exploration.check()
    run = exploration.run(inputs)
    assert run.passed, run.message
    np.testing.assert_allclose(run.outputs[0], want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize("turns", [UP_TO, UP_TO_AND_WITH, FROM], ids=["up_to", "up_to_and_with", "from"])
@pytest.mark.parametrize("columns", [64, 256])
@pytest.mark.parametrize("accumulate", ["reload", "l1"])
def test_sums_of_products(turns: Any, columns: int, accumulate: str) -> None:
    for first, anew, factor, after in itertools.product((0.0, 3.0), (False, True), (False, True), (False, True)):

        def expected(a: Numbers, b: Numbers, first: float = first, anew: bool = anew, factor: bool = factor,
                     after: bool = after) -> Numbers:  # fmt: skip
            blocks: list[Numbers] = []
            for block in range(3):
                c = np.full((64, columns), first)
                for k in range(turns[0](block), turns[1](block)):
                    product = a[block * 64 : block * 64 + 64, k * 64 : k * 64 + 64] @ b[k * 64 : k * 64 + 64]
                    c = (0.0 if anew else c) + (0.5 if factor else 1.0) * product
                blocks.append(c * 2 + 1 if after else c)
            return np.concatenate(blocks)

        kernel = triangle(turns, columns, first=first, anew=anew, factor=factor, after=after)
        held(kernel, expected, 2e-3, accumulate=accumulate)


@pytest.mark.parametrize("columns", [32, 64, 512])
@pytest.mark.parametrize("changed", [False, True])
def test_the_last_of_several_loads(columns: int, changed: bool) -> None:
    for length, first in ((lambda bx: 3, None), (lambda bx: bx + 1, None), (lambda bx: bx, 7.0)):

        def expected(a: Numbers, length: Any = length) -> Numbers:
            blocks = [np.full((32, columns), 7.0), *(a[k * 32 : k * 32 + 32] for k in range(3))]
            return np.concatenate([blocks[length(block)] * (2 if changed else 1) for block in range(3)])

        held(last_load(length, columns, changed=changed, first=first), expected)


def test_one_load_for_many_stores() -> None:
    held(stored_in_turns(), lambda a: np.concatenate([a[:32]] * 2 + [a[32:]] * 2))


@pytest.mark.parametrize("columns", [32, 256, 512])
def test_turns_in_turns(columns: int) -> None:
    def expected(a: Numbers) -> Numbers:
        blocks: list[Numbers] = []
        for block in range(4):
            m, c = np.full((32, columns), -1.0), np.zeros((32, columns))
            for q in range(block):
                for k in range(q):
                    m = a[k * 32 : k * 32 + 32] + 1
                c = c + m
            blocks.append(c * 2 + m)
        return np.concatenate(blocks)

    held(turns_in_turns(columns), expected)


@pytest.mark.parametrize(
    ("start", "end", "last"),
    [
        (lambda bx: T.max(bx - 2, 0), lambda bx: bx + 1, lambda bx: bx),
        (lambda bx: T.max(bx - 1, 0), lambda bx: T.min(bx + 2, 4), lambda bx: min(bx + 1, 3)),
        (lambda bx: 0, lambda bx: T.if_then_else(bx > 1, 3, 1), lambda bx: 2 if bx > 1 else 0),
        (lambda bx: 0, lambda bx: T.clamp(bx, 1, 2), lambda bx: min(max(bx, 1), 2) - 1),
        (lambda bx: 0, lambda bx: (bx & 1) + 1, lambda bx: bx & 1),
        (lambda bx: 0, lambda bx: (bx ^ 1) + 1, lambda bx: bx ^ 1),
        (lambda bx: bx // 2, lambda bx: bx // 2 + 2, lambda bx: bx // 2 + 1),
        (lambda bx: 0, lambda bx: T.ceildiv(bx * 48 + 32, 64), lambda bx: -(-(bx * 48 + 32) // 64) - 1),
    ],
)
def test_loops_that_surely_come_to_a_turn(start: Any, end: Any, last: Callable[[int], int]) -> None:
    def expected(a: Numbers) -> Numbers:
        return np.concatenate([a[last(block) * 32 : last(block) * 32 + 32] for block in range(4)])

    held(window((start, end)), expected)


def test_a_loop_of_very_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' waits are followed in some of its turns; where these do not stand for all, it is refused."""
    kernel = last_load(lambda bx: 2**25)
    assert ttx.explore(kernel).error is None
    monkeypatch.setattr(handshake, "_balanced", lambda events: False)
    error = ttx.explore(kernel).error
    assert isinstance(error, ResourceError)
    assert error.message == "following the 33,554,432 iterations of a loop needs more memory than this machine has"
    assert error.span is not None
    assert linecache.getline(error.span.file, error.span.line).strip() == "T.copy(A[k * 32, 0], a)"


@pytest.mark.parametrize(
    ("length", "taken", "message"),
    [
        (lambda bx: bx, lambda k: None, "written only in a loop that may make no turn"),
        (lambda bx: 1, lambda k: k == 2, "written only under a condition"),
    ],
)
def test_what_no_turn_writes_is_not_read_after_a_loop_around(
    length: Callable[[Any], Any], taken: Callable[[Any], Any], message: str
) -> None:
    """Not even where the loop around makes turns for certain."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            for k in T.serial(3):
                for _ in T.serial(length(bx)):
                    condition = taken(k)
                    if condition is None or condition:
                        T.copy(A[k * 32, 0], a)
            T.copy(a, C[bx * 32, 0])

    error = ttx.explore(kernel).error
    assert isinstance(error, KernelError)
    assert error.message == f"a is read here, and {message}"


def test_what_no_turn_writes_is_not_read() -> None:
    error = ttx.explore(last_load(lambda bx: bx)).error
    assert isinstance(error, KernelError)
    assert error.message == "a is read here, and written only in a loop that may make no turn"
    assert error.hint == "T.clear(a) before the loop, or give it a length of at least 1"
    assert error.span is not None
    assert error.span.line == 71


def cleared_sums(condition: Callable[[int, int], bool], turns: Any, first: float) -> Callable[..., Numbers]:
    def expected(a: Numbers, b: Numbers) -> Numbers:
        blocks: list[Numbers] = []
        for block in range(3):
            c = np.full((64, b.shape[1]), first)
            for k in range(turns[0](block), turns[1](block)):
                product = a[block * 64 : block * 64 + 64, k * 64 : k * 64 + 64] @ b[k * 64 : k * 64 + 64]
                c = product if condition(k, block) else c + product
            blocks.append(c)
        return np.concatenate(blocks)

    return expected


@pytest.mark.parametrize(
    ("condition", "turns"),
    [
        (lambda k, bx: k == 0, UP_TO_AND_WITH),
        (lambda k, bx: k < 1, UP_TO_AND_WITH),
        (lambda k, bx: k == 1, (lambda bx: 1, lambda bx: 3)),
        (lambda k, bx: k <= 0, (lambda bx: 0, lambda bx: 3)),
        (lambda k, bx: k == bx, FROM),
        # Surely in the first turn, and in later ones.
        (lambda k, bx: k % 2 == 0, UP_TO_AND_WITH),
        (lambda k, bx: k != 1, UP_TO_AND_WITH),
        # Always.
        (lambda k, bx: k >= 0, UP_TO_AND_WITH),
        (lambda k, bx: k <= bx, UP_TO_AND_WITH),
    ],
)
@pytest.mark.parametrize(("columns", "filled"), [(64, True), (256, False)])
def test_products_that_clear_in_the_first_turn(condition: Any, turns: Any, columns: int, filled: bool) -> None:
    expected = cleared_sums(condition, turns, 7.0 if filled else np.nan)
    held(cleared_by_product(condition, turns, columns, filled=filled), expected, 2e-3)


@pytest.mark.parametrize("turns", [UP_TO, UP_TO_AND_WITH, FROM], ids=["up_to", "up_to_and_with", "from"])
@pytest.mark.parametrize(
    "condition",
    [
        lambda k, bx: k == 1,
        lambda k, bx: k == bx,
        lambda k, bx: k > bx,
        lambda k, bx: bx == 1,
        lambda k, bx: (k + bx) % 2 == 0,
        lambda k, bx: k < 0,
    ],
)
def test_products_that_clear_in_any_turn(condition: Any, turns: Any) -> None:
    for columns in (64, 256):
        kernel = cleared_by_product(condition, turns, columns, filled=True)
        held(kernel, cleared_sums(condition, turns, 7.0), 2e-3)


def test_a_first_turn_that_may_not_come() -> None:
    """Blocks without a turn leave their sum unfilled: it may be read in a turn, and not after the loop."""
    error = ttx.explore(cleared_by_product(lambda k, bx: k == 0, UP_TO)).error
    assert isinstance(error, KernelError)
    assert error.message == "c is read here, and written only in a loop that may make no turn"
    assert error.hint == "T.clear(c) before the loop, or give it a length of at least 1"
    assert error.span is not None
    assert linecache.getline(error.span.file, error.span.line).strip() == "T.copy(c, C[bx * 64, 0])"
    for condition in (lambda k, bx: k == 0, lambda k, bx: k % 2 == 0):
        exploration = ttx.explore(cleared_by_product(condition, UP_TO, stored=False))
        assert exploration.error is None, str(exploration.error)
        a, b, *held_before = exploration.inputs()
        wanted = cleared_sums(condition, UP_TO, np.nan)(a.astype(np.float64), b.astype(np.float64))
        inputs = (a, b, *held_before)
        assert exploration.check(inputs)
        np.testing.assert_allclose(exploration.run(inputs).outputs[0][64:], wanted[64:], rtol=2e-3, atol=0.1)


def test_a_sum_that_no_turn_clears_keeps_its_first_value() -> None:
    held(
        cleared_by_product(lambda k, bx: k == 0, UP_TO, filled=True),
        cleared_sums(lambda k, bx: k == 0, UP_TO, 7.0),
        2e-3,
    )


def test_a_sum_that_a_later_turn_is_the_first_to_clear() -> None:
    """Turns before it add to what nothing has filled."""
    error = ttx.explore(cleared_by_product(lambda k, bx: k == 1, UP_TO_AND_WITH)).error
    assert isinstance(error, KernelError)
    assert error.message == "c is read here, and written only under a condition"
    assert error.hint == "T.clear(c) before the condition, or write all of it in `else`, too"
    error = ttx.explore(cleared_by_product(lambda k, bx: k < 0, UP_TO_AND_WITH)).error
    assert isinstance(error, KernelError)
    assert error.message == "c is read before anything is written to it"


def test_loops_in_another_order_than_the_axes() -> None:
    exploration = ttx.explore(turned_loops())
    assert exploration.error is None, str(exploration.error)
    a, v, d = (one.astype(np.float64) for one in exploration.inputs())
    assert exploration.check()
    c, e = exploration.run().outputs
    np.testing.assert_allclose(c, np.triu(a + v, 1), rtol=1e-6)
    np.testing.assert_allclose(e, d.T * 2 + d, rtol=2e-3, atol=2e-3 * np.abs(d).max())
