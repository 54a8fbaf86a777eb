"""Runs and checks beside the user's own formula: what it finds is in the kernel, not in its lowering."""

import functools
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration

Array = NDArray[Any]
GEMM = f"{Path(__file__).parents[1] / 'notebooks/kernels/gemm.py'}::matmul"


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return ttx.explore(GEMM, M=64, N=64, K=64)


def product(A: Array, B: Array) -> Array:
    assert (A.dtype, B.dtype) == (np.float64, np.float64)
    return A @ B


def other_product(A: Array, B: Array) -> Array:
    return A @ B.T


def test_a_run_beside_the_right_formula_and_a_wrong_one(gemm: Exploration) -> None:
    right, wrong = gemm.run(reference=product), gemm.run(reference=other_product)
    assert right.passed
    assert [side.name for side in right.sides] == ["emulator against reference", "emulator against your reference"]
    assert wrong.passed is False
    # What is told is the comparison that fails.
    assert wrong.pcc < 0.5 < right.pcc
    assert [side.comparison.passed for side in wrong.sides] == [True, False]
    assert "failed" in wrong._repr_html_()


def test_a_check_compares_the_kernel_itself_first(gemm: Exploration) -> None:
    right, wrong = gemm.check(reference=product), gemm.check(reference=other_product)
    assert right.ok
    assert len(right.results) == len(gemm.check().results) + 1
    assert (wrong.ok, wrong.first_bad) == (False, "the kernel itself")
    assert [result.passed for result in wrong.results] == [False] + [True] * (len(wrong.results) - 1)
    assert "the kernel itself differs from your reference" in wrong._repr_html_()


def test_a_mistake_of_the_kernel_passes_without_a_formula() -> None:
    def transposed(M: int, N: int) -> object:
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), Out: T.Tensor((N, M), "float32")) -> None:
            with T.Kernel(N // 32, M // 32) as (bx, by):
                a = T.alloc_shared((32, 32), "float32")
                T.copy(A[by * 32, bx * 32], a)
                # The blocks change places, and the elements of a block do not.
                T.copy(a, Out[bx * 32, by * 32])

        return main

    ex = ttx.explore(transposed, M=64, N=32)
    assert ex.run().passed
    assert ex.check().ok
    assert ex.run(reference=lambda A: A.T).passed is False


def quantized(zero: int, dtype: str, M: int = 64, N: int = 128) -> object:
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Q: T.Tensor((M, N), dtype), scales: T.Tensor((M,), "float32")) -> None:
        with T.Kernel(M // 32) as bx:
            x = T.alloc_shared((32, N), "float32")
            q = T.alloc_fragment((32, N), dtype)
            scale = T.alloc_fragment((32,), "float32")
            T.copy(X[bx * 32, 0], x)
            T.reduce_absmax(x, scale, dim=1)
            for i in T.Parallel(32):
                scale[i] = scale[i] / 127.0
            for i, j in T.Parallel(32, N):
                q[i, j] = T.cast(T.max(T.min(T.round(x[i, j] / scale[i]), 127.0), -127.0) + zero, dtype)
            T.copy(q, Q[bx * 32, 0])
            T.copy(scale, scales[bx * 32])

    return main


def quantized_in_numpy(X: Array) -> tuple[Array, Array]:
    scale = np.abs(X).max(axis=1) / 127
    return np.clip(np.rint(X / scale[:, None]), -127, 127), scale


@pytest.mark.parametrize(("zero", "dtype"), [(0, "int8"), (128, "uint8"), (0, "int32")])
def test_integers_of_rounded_floats_may_lie_on_either_side_of_a_tie(zero: int, dtype: str) -> None:
    ex = ttx.explore(quantized, zero=zero, dtype=dtype)
    # The first row has quotients of exactly half an integer, which float32 rounds to either side.
    (X,) = ex.inputs()
    X[0] = np.linspace(-127, 127, 128) * np.float32(0.1)
    X[0, :40] = (np.arange(40) + np.float32(0.5)) * np.float32(0.1)
    X[0, -1] = np.float32(12.7)

    def right(X: Array) -> tuple[Array, Array]:
        Q, scale = quantized_in_numpy(X)
        return Q + zero, scale

    assert ex.run([X], reference=right).passed

    def off(X: Array, step: int) -> tuple[Array, Array]:
        Q, scale = quantized_in_numpy(X)
        # The element that is furthest from a step.
        Q[np.unravel_index(np.argmin(np.abs(X / scale[:, None] - Q)), Q.shape)] += step
        return Q + zero, scale

    for step in (-1, 1):
        assert ex.run([X], reference=functools.partial(off, step=step)).passed is False


def test_several_launches_are_compared_as_a_whole() -> None:
    def both(N: int = 64) -> object:
        @T.prim_func
        def main(
            A: T.Tensor((N, N), "bfloat16"), B: T.Tensor((N, N), "bfloat16"), C: T.Tensor((N, N), "bfloat16")
        ) -> None:
            for source, target in ((A, B), (B, C)):
                with T.Kernel(N // 32) as bx:
                    a = T.alloc_shared((32, N), "bfloat16")
                    T.copy(source[bx * 32, 0], a)
                    for i, j in T.Parallel(32, N):
                        a[i, j] = a[i, j] * 2.0
                    T.copy(a, target[bx * 32, 0])

        return main

    ex = ttx.explore(both)
    assert len(ex.launches) == 2
    assert ex.run(reference=lambda A: (A * 2, A * 4)).passed
    assert ex.run(reference=lambda A: (A * 2, A * 3)).passed is False
    assert ex.check(reference=lambda A: (A * 2, A * 4)).ok
    assert ex.check(reference=lambda A: (A * 2, A * 3)).first_bad == "the kernel itself"


def test_a_saved_exploration_has_the_formula_where_it_has_no_reference(gemm: Exploration, tmp_path: Path) -> None:
    gemm.save(tmp_path / "gemm.ttx")
    saved = ttx.load(tmp_path / "gemm.ttx")
    assert saved.run("ones").passed is None
    assert saved.run("ones", reference=product).passed
    assert saved.run("identity", reference=lambda A, B: A @ B + 1).passed is False


def test_a_formula_may_return_numbers_of_any_dtype_and_size(gemm: Exploration) -> None:
    import ml_dtypes

    assert gemm.run(reference=lambda A, B: (A @ B).astype(ml_dtypes.bfloat16)).passed
    # Numbers beyond float32 are no warning.
    assert gemm.run(reference=lambda A, B: np.full((64, 64), 1e300)).passed is False


def test_formulas_that_do_not_fit(gemm: Exploration) -> None:
    for reference in (3, "A @ B", [product]):
        for call in (gemm.run, gemm.check):
            with pytest.raises(UsageError, match="reference"):
                call(reference=cast(Any, reference))
    with pytest.raises(UsageError, match="takes no reference"):
        gemm.run(compared=False, reference=product)
    with pytest.raises(UsageError, match=r"returns \(64, 32\)") as wrong:
        gemm.run(reference=lambda A, B: (A @ B)[:, :32])
    assert wrong.value.hint == "the outputs are (64, 64)"
    for returned, dtype in ((1j, "complex128"), ("3", "<U1"), (None, "object")):
        with pytest.raises(UsageError, match=f"returns {dtype}"):
            gemm.run(reference=lambda A, B, returned=returned: np.full((64, 64), returned))

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raising(A: Array, B: Array) -> Array:
        raise Silent

    with pytest.raises(UsageError, match="raises Silent"):
        gemm.run(reference=raising)
    with pytest.raises(UsageError, match="raises ZeroDivisionError"):
        gemm.check(reference=lambda A, B: 1 // 0)


def test_inputs_are_integers_where_the_kernel_has_integers() -> None:
    def rows(words: int = 64, tokens: int = 32) -> object:
        @T.prim_func
        def main(
            table: T.Tensor((words, 32), "bfloat16"),
            index: T.Tensor((tokens,), "int32"),
            Y: T.Tensor((tokens, 32), "bfloat16"),
        ) -> None:
            with T.Kernel(tokens // 32) as bx:
                y = T.alloc_shared((32, 32), "bfloat16")
                for i, j in T.Parallel(32, 32):
                    y[i, j] = table[index[bx * 32 + i], j]
                T.copy(y, Y[bx * 32, 0])

        return main  # fmt: skip

    assert ttx.explore(rows).run(reference=lambda table, index: table[index]).passed
    assert ttx.explore(rows).run(reference=lambda table, index: table[(index + 1) % 64]).passed is False
