# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Blocks whose rows elements of an index tensor choose, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.deciding_variables import gathered_rows
from tests.passes.test_limited_stores import Numbers, held
from tests.said import said


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_an_index_tensor_chooses(dtype: str) -> None:
    """Rows that are not there are zero."""

    def expected(a: Numbers, index: Numbers) -> Numbers:
        rows = np.concatenate([a, np.zeros((1, 2, 64))])[np.where((index < 0) | (index >= 48), 48, index)]
        return np.stack([rows[n, :, n] for n in range(2)]) * 2

    index = np.random.default_rng(1).integers(-4, 52, (2, 64))
    exploration = held(gathered_rows(dtype), {1: index}, expected)
    assert any("rows of a in line" in note and "32 reads for each block" in note for note in said(exploration.plan))
    held(exploration, {1: np.full((2, 64), 47)}, expected)


VALUES: dict[str, Any] = {
    "A[S[i], j]": lambda a, s, i, j: a[s[i], j],
    "A[S[i] + 1, j] * 2 + A[i, j]": lambda a, s, i, j: a[s[i] + 1, j] * 2 + a[i, j],
    "T.if_then_else(S[i] > 3, A[S[i] - 3, j], 7.0)": lambda a, s, i, j: np.where(s[i] > 3, a[s[i] - 3, j], 7),
    # Behind the end of S, and before its start, there are zeros, as everywhere.
    "A[S[i + 9], j] + 1": lambda a, s, i, j: a[np.append(s, [0] * 9)[i + 9], j] + 1,
    "T.if_then_else(i < 30, A[S[i - 5] + S[i + 2], j], 7.0)": lambda a, s, i, j: np.where(
        i < 30, np.pad(a, ((0, 40), (0, 0)))[np.pad(s, 5)[i] + np.append(s, [0, 0])[i + 2], j], 7
    ),
    "A[S[bx * 4 + i], j]": lambda a, s, i, j: a[s[i], j],
}


@pytest.mark.parametrize("value", VALUES)
def test_values_of_chosen_rows(tmp_path: Path, value: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((40, 64), "float32"), S: T.Tensor((32,), "int32"), B: T.Tensor((32, 64), "float32")):
    with T.Kernel(1) as bx:
        a = T.alloc_fragment((32, 64), "float32")
        for i, j in T.Parallel(32, 64):
            a[i, j] = {value}
        T.copy(a, B)
""")
    i, j = np.ogrid[:32, :64]

    def expected(a: Numbers, s: Numbers) -> Numbers:
        return VALUES[value](a, s, i, j)

    held(f"{file}::kernel", {1: np.arange(32) * 7 % 39}, expected, 1e-6)


def test_elements_of_a_vector_that_a_block_chooses(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((3, 90), "float32"), S: T.Tensor((3, 16), "int32"), B: T.Tensor((3, 16), "float32")):
    with T.Kernel(3) as bx:
        s = T.alloc_shared((16,), "int32")
        a = T.alloc_fragment((16,), "float32")
        T.copy(S[bx, :], s)
        for i in T.Parallel(16):
            place = s[i]
            a[i] = A[bx, place]
        for i in T.Parallel(16):
            B[bx, i] = a[i]
""")

    def expected(a: Numbers, s: Numbers) -> Numbers:
        return np.stack([np.append(a[n], 0)[np.where((s[n] < 0) | (s[n] > 89), 90, s[n])] for n in range(3)])

    held(f"{file}::kernel", {1: np.random.default_rng(2).integers(-9, 99, (3, 16))}, expected)


def test_two_tensors_alike(tmp_path: Path) -> None:
    """Tensors of the same type are not the same."""
    file = tmp_path / "kernels.py"
    file.write_text("""import ttexplore.language as T
@T.prim_func
def kernel(
    A: T.Tensor((40, 64), "float32"), S: T.Tensor((32,), "int32"), R: T.Tensor((32,), "int32"),
    B: T.Tensor((32, 64), "float32"),
):
    with T.Kernel(1):
        a = T.alloc_fragment((32, 64), "float32")
        for i, j in T.Parallel(32, 64):
            a[i, j] = A[S[i], j] - A[R[i], j]
        T.copy(a, B)
""")
    error = ttx.explore(f"{file}::kernel").error
    assert error is not None
    assert "depends on an element of S that not all kernels know" in error.message
    file.write_text(file.read_text().replace("A[S[i], j] - A[R[i], j]", "A[S[i] + R[i], j]"))

    def expected(a: Numbers, s: Numbers, r: Numbers) -> Numbers:
        return a[s + r]

    held(f"{file}::kernel", {1: np.arange(32), 2: np.arange(32) % 5}, expected)


def test_the_kernel_is_left_alone_where_columns_are_chosen(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((32, 90), "float32"), S: T.Tensor((64,), "int32"), B: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        a = T.alloc_fragment((32, 64), "float32")
        for i, j in T.Parallel(32, 64):
            a[i, j] = A[i, S[j]]
        T.copy(a, B)
""")
    error = ttx.explore(f"{file}::kernel").error
    assert error is not None
    assert "depends on an element of S that not all kernels know" in error.message


def test_peeled_turns_of_nested_loops() -> None:
    """Both turns of the outer loop come to one block of C++, each with the last turn of its loop over rows."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), Row: T.Tensor((2, 32), "int32"), Out: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            rows = T.alloc_shared((32, 64), "float32")
            out = T.alloc_fragment((32, 64), "float32")
            T.clear(out)
            for n in T.serial(2):
                for i, j in T.Parallel(32, 64):
                    rows[i, j] = A[Row[n, i], j]
                for i, j in T.Parallel(32, 64):
                    out[i, j] = out[i, j] + rows[i, j]
            T.copy(out, Out[0, 0])

    random = np.random.default_rng(0)
    a = random.integers(-9, 9, (64, 64)).astype(np.float32)
    row = random.integers(0, 64, (2, 32))
    explored = ttx.explore(kernel)
    assert "Row_value_2 = " in explored.code["compute"].text
    assert explored.check([a, row]).ok
    np.testing.assert_array_equal(explored.run([a, row]).outputs[0], a[row].sum(axis=0))
