# pyright: reportInvalidTypeForm=false
"""The storage of values is decided once, for the kernel without unused values; and no store goes with these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import two_outputs
from tests.rewriting import rewrite
from ttexplore.errors import VerifyError
from ttexplore.ir.build import op_name, regions
from ttexplore.ir.rewrite import Firings
from ttexplore.notes import Note
from ttexplore.passes.propagate_tt_layout.unused import without_unused


def test_it_is_kept_until_it_is_carried_out() -> None:
    ex = ttx.explore(two_outputs())
    decided = ex.steps["A2"].after.staging
    assert decided is not None
    assert all(ex.steps[letter].after.staging is decided for letter in ("A3", "B1", "B2"))
    assert ex.steps["C1"].after.staging is None
    held = [name for name, one in decided.buffers.items() if one.kind == "cb"]
    assert held == [buffer.name for buffer in ex.steps["C1"].plan.buffers]


def test_a_store_that_goes_with_unused_values_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel stores is told by the kernel before any pass has changed it."""

    def store_of_c(statement: Any) -> list[Any] | None:
        stores = op_name(statement) == "tl.copy" and str(regions(statement)[1].source.name) == "C"
        return [] if stores else None

    def forgetful(function: Any, firings: Firings) -> tuple[Any, tuple[Note, ...]]:
        return without_unused(rewrite(function, store_of_c), firings)

    monkeypatch.setattr("ttexplore.passes.propagate_tt_layout.without_unused", forgetful)
    ex = ttx.explore(two_outputs())
    assert isinstance(ex.error, VerifyError)
    assert "of C is never written" in ex.error.message


def test_float32_is_whole_as_row_column_and_transposed() -> None:
    """A difference of a vector's elements as a column and as a row is 0 on the diagonal, and a block is what its own
    transposed block is: nothing may go through the 10 bits of the FPU's source registers."""

    @T.prim_func
    def kernel(
        G: T.Tensor((64,), "float32"), A: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32"),
        P: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            g, d = T.alloc_shared((64,), "float32"), T.alloc_fragment((64, 64), "float32")
            a, p = T.alloc_shared((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.copy(G, g)
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                d[i, j] = g[i] - g[j]
                p[i, j] = a[j, i] - a[i, j]
            T.copy(d, D)
            T.copy(p, P)

    explored = ttx.explore(kernel)
    random = np.random.default_rng(0)
    g, a = random.standard_normal(64).astype(np.float32), random.standard_normal((64, 64)).astype(np.float32)
    ran = explored.run([g, a], backend="emulator")
    assert np.array_equal(ran.outputs[0], g[:, None] - g[None, :])
    assert np.array_equal(ran.outputs[1], a.T - a)


def test_statistics_of_rows_are_stored_whole() -> None:
    """They are columns of tiles, and rows of tiles in the tensor: transposed, without loss."""

    @T.prim_func
    def stored(A: T.Tensor((32, 64), "float32"), M: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            a, m = T.alloc_shared((32, 64), "float32"), T.alloc_fragment((32,), "float32")
            T.copy(A, a)
            T.reduce_max(a, m, dim=1)
            T.copy(m, M)

    a = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    assert np.array_equal(ttx.explore(stored).run([a], backend="emulator").outputs[0], a.max(axis=1))


@T.prim_func
def scaled_twice(
    A: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32"), B: T.Tensor((64, 64), "float32"),
    C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32"),
):  # fmt: skip
    with T.Kernel(1):
        a = T.alloc_shared((64, 64), "float32")
        s = T.alloc_shared((64,), "float32")
        b, c, d = (T.alloc_fragment((64, 64), "float32") for _ in range(3))
        T.copy(A, a)
        T.copy(S, s)
        for i, j in T.Parallel(64, 64):
            b[i, j] = a[i, j] * s[i]
        T.copy(b, B)
        for i, j in T.Parallel(64, 64):
            c[i, j] = a[i, j] + s[i]
        for i, j in T.Parallel(64, 64):
            d[i, j] = s[i] - a[j, i]
        T.copy(c, C)
        T.copy(d, D)


def test_uses_of_one_form_share_a_buffer() -> None:
    """The column that a vector becomes is filled for each use and drained by it."""
    ex = ttx.explore(scaled_twice)
    assert [one.name for one in ex.plan.buffers if one.name.startswith("s_")] == ["s_transposed"]
    assert ex.code["compute"].text.count("s_transposed_buffer.pop_front") == 3
    rng = np.random.default_rng(3)
    a, s = rng.standard_normal((64, 64)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    run = ex.run([a, s])
    expected = (a * s[:, None], a + s[:, None], s[:, None] - a.T)
    for made, wanted in zip(run.outputs, expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-6, atol=1e-6)


@T.prim_func
def scaled_in_a_branch(
    A: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32"), B: T.Tensor((64, 64), "float32")
):
    with T.Kernel(2) as bx:
        a = T.alloc_fragment((32, 64), "float32")
        s = T.alloc_fragment((32,), "float32")
        T.copy(A[bx * 32, 0], a)
        T.copy(S[bx * 32], s)
        for i in T.Parallel(32):
            s[i] = s[i] + 1.0
        for i, j in T.Parallel(32, 64):
            a[i, j] = a[i, j] * s[i]
        for k in T.serial(3):
            if k + bx > 1:
                for i, j in T.Parallel(32, 64):
                    a[i, j] = a[i, j] + s[i]
        for i, j in T.Parallel(32, 64):
            a[i, j] = a[i, j] - s[i]
        T.copy(a, B[bx * 32, 0])


def test_a_shared_buffer_is_empty_before_a_loop_that_fills_it() -> None:
    ex = ttx.explore(scaled_in_a_branch)
    assert ex.error is None, str(ex.error)
    rng = np.random.default_rng(4)
    a, s = rng.standard_normal((64, 64)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    times = np.repeat([1, 2], 32)[:, None]
    factor = s[:, None] + 1
    assert ex.check([a, s])
    np.testing.assert_allclose(ex.run([a, s]).outputs[0], a * factor + (times - 1) * factor, rtol=1e-5, atol=1e-5)
