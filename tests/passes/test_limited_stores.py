# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Stores of the first rows and columns of blocks, against NumPy; all other elements stay as they were."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.limited import corners, groups, sequences
from tests.kept import only_read, with_old
from ttexplore.errors import Unsupported

Numbers = np.ndarray[Any, Any]


def held(
    kernel: Any, numbers: dict[int, Any], expected: Callable[..., Numbers], tolerance: float = 0.0, **options: Any
) -> ttx.Exploration:
    """Each step and the emulator against what NumPy computes of the tensors that are only read. NaN are elements that
    nobody stores, which stay what they were; `numbers` are the index tensors, by position."""
    exploration = kernel if isinstance(kernel, ttx.Exploration) else ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    inputs = [*exploration.inputs()]
    for position, values in numbers.items():
        inputs[position] = np.asarray(values, inputs[position].dtype)
    read = only_read(exploration, inputs)
    stored = expected(*(one.astype(np.float64) if n not in numbers else one for n, one in enumerate(read)))
    want = with_old(exploration, inputs, stored)
    check = exploration.check(inputs)
    assert check, str(check)
    run = exploration.run(inputs)
    assert run.passed, run.message
    found = np.asarray(run.outputs[0], np.float64)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * np.max(np.abs(want), initial=0))
    return exploration


STARTS = [[0, 40, 77, 96], [0, 0, 64, 95], [3, 35, 36, 36], [5, 5, 5, 5], [0, 32, 64, 96]]


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_attention_of_sequences(starts: Sequence[int], dtype: str) -> None:
    def expected(q: Numbers, k: Numbers, v: Numbers, starts: Numbers) -> Numbers:
        out = np.full_like(q, np.nan)
        for first, end in itertools.pairwise(starts):
            for head in range(q.shape[1]):
                own = slice(first, end), head
                scores = q[own] @ k[own].T
                weights = np.exp(scores - scores.max(1, keepdims=True, initial=-1e30))
                out[own] = weights / weights.sum(1, keepdims=True) @ v[own]
        return out

    held(sequences(dtype), {3: starts}, expected, 2e-2)


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("options", [{}, {"layouts": {"C": {"page": "row"}}}])
def test_products_of_groups(starts: Sequence[int], options: dict[str, Any]) -> None:
    def expected(a: Numbers, b: Numbers, starts: Numbers) -> Numbers:
        out = np.full_like(a, np.nan)
        for n, (first, end) in enumerate(itertools.pairwise(starts)):
            out[first:end] = a[first:end] @ b[n]
        return out

    held(groups(), {2: starts}, expected, 2e-2, **options)


# The ends of int32 are numbers like any other.
LIMITS = [([5, 0, 32], [64, 70]), ([-(2**31), 2**31 - 1, 31], [2**31 - 1, -(2**31)]), ([1, 17, 33], [1, 128]),
          ([9, 9, 9], [0, 127]), ([32, 32, 32], [17, 65])]  # fmt: skip


@pytest.mark.parametrize(("rows", "columns"), LIMITS)
@pytest.mark.parametrize("page", ["tile", "row"])
def test_first_rows_and_columns(rows: Sequence[int], columns: Sequence[int], page: str) -> None:
    def expected(a: Numbers, rows: Numbers, columns: Numbers) -> Numbers:
        row, column = np.arange(96), np.arange(128)
        stored = (row % 32 < rows[row // 32])[:, None] & (column < columns[column // 64])
        return np.where(stored, a + 1, np.nan)

    held(corners(), {1: rows, 2: columns}, expected, 1e-6, layouts={"C": {"page": page}})


CONDITIONS = {
    "i <= 30": lambda i, j, n: i <= 30,
    "n[0] > i": lambda i, j, n: i < n,
    "j < n[0]": lambda i, j, n: j < n,
    "j + 3 <= n[0] and i < 31": lambda i, j, n: (j + 3 <= n) & (i < 31),
    "i < n[0] and i < 2 * n[0] - 9": lambda i, j, n: (i < n) & (i < 2 * n - 9),
    "n[0] > 7": lambda i, j, n: np.full_like(i + j, n > 7),
    "n[0] > 7 and i < n[0]": lambda i, j, n: (n > 7) & (i < n) & (j == j),
    "bx < 1": lambda i, j, n: i + j >= 0,
    "i < 1": lambda i, j, n: i < 1,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("shape", [(64, 32), (1, 64), (20, 40)])
def test_conditions(tmp_path: Path, condition: str, shape: tuple[int, int]) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor({shape}, "float32"), n: T.Tensor((1,), "int32"), B: T.Tensor({shape}, "float32")):
    with T.Kernel(1) as bx:
        for i, j in T.Parallel{shape}:
            if {condition}:
                B[i, j] = A[i, j]
""")
    row, column = np.ogrid[: shape[0], : shape[1]]
    exploration = ttx.explore(f"{file}::kernel")
    for n in (0, 8, 19, 64):

        def expected(a: Numbers, _: Numbers, n: int = n) -> Numbers:
            return np.where(CONDITIONS[condition](row, column, n), a, np.nan)

        held(exploration, {1: [n]}, expected)


def test_a_vector_that_starts_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((3, 64), "float32"), s: T.Tensor((4,), "int32"), B: T.Tensor((70,), "float32")):
    with T.Kernel(3) as bx:
        first = s[bx]
        for i in T.Parallel(64):
            if first + i < s[bx + 1]:
                B[first + i] = A[bx, i]
""")

    def expected(a: Numbers, s: Numbers) -> Numbers:
        out = np.full(70, np.nan)
        for n in range(3):
            out[s[n] : s[n + 1]] = a[n, : s[n + 1] - s[n]]
        return out

    held(f"{file}::kernel", {1: [1, 18, 18, 69]}, expected)


def test_elements_that_only_a_shard_has() -> None:
    """A block that is in place in its shard would be stored as a whole."""
    exploration = ttx.explore(corners(), options={"layouts": {"C": {"memory": "L1", "shard": "height"}}})
    assert exploration.error is None
    assert not any(one.shard_of == "C" for one in exploration.plan.buffers)


def test_a_block_float_has_no_columns_of_its_own() -> None:
    error = ttx.explore(corners("bfloat16"), options={"layouts": {"C": {"dtype": "Bfp8_b"}}}).error
    assert isinstance(error, Unsupported)
    assert "C[by * 32:" in error.message


def test_no_columns() -> None:
    """Rows end where a number says, columns where an index does that can be 0: of such a block nothing is stored."""

    @T.prim_func
    def kernel(
        A: T.Tensor((34, 40), "float32"), N: T.Tensor((2,), "int32"), B: T.Tensor((34, 40), "float32")
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            for i, j in T.Parallel(17, 40):
                if i < N[bx] and j < bx * 33:
                    B[bx * 17 + i, j] = A[bx * 17 + i, j]

    def expected(a: Numbers, numbers: Numbers) -> Numbers:
        row, column = np.arange(34), np.arange(40)
        rows = row % 17 < numbers[row // 17]
        return np.where(rows[:, None] & (column < row[:, None] // 17 * 33), a, np.nan)

    for cores in ((1, 1), (1, 2)):
        exploration = ttx.explore(kernel, options={"cores": cores})
        for numbers in ([3, 5], [17, 40], [0, -3]):
            held(exploration, {1: numbers}, expected)
