"""Elements of blocks that hold a part of a tensor, which numbers choose, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.passes.test_index_tensors import held
from ttexplore.errors import BackendError, KernelError, Unsupported

Numbers = np.ndarray[Any, Any]


def _padded(a: Numbers, block: int, rows: int = 32, columns: int = 32) -> Numbers:
    """The rows of a block, zeros past the end of the tensor."""
    made = np.zeros((rows, columns))
    part = a[block * rows : (block + 1) * rows, :columns]
    made[: part.shape[0], : part.shape[1]] = part
    return made


def chosen(rows: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((rows, 32), "float32"), N: T.Tensor((2, 2), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                b[i, j] = a[N[bx, 0], N[bx, 1]]
            T.copy(b, C[bx * 32, 0])

    return kernel


@pytest.mark.parametrize("rows", [50, 64, 100])
@pytest.mark.parametrize("numbers", [[[1, 2], [25, 1]], [[31, 31], [17, 0]], [[0, 0], [18, 31]]])
def test_elements_that_numbers_choose(rows: int, numbers: Any) -> None:
    """Also where the block reaches past the end of the tensor."""

    def expected(a: Numbers, n: Numbers) -> Numbers:
        return np.repeat([_padded(a, block)[tuple(n[block])] for block in range(2)], 32 * 32).reshape(64, 32)

    held(chosen(rows), {1: numbers}, expected)


@pytest.mark.parametrize("outside", [-1, 32, 40])
def test_elements_outside_of_the_block_but_in_the_tensor(outside: int) -> None:
    exploration = ttx.explore(chosen(96))
    inputs = [*exploration.inputs()]
    inputs[1] = np.array([[3, 3], [outside, 0]], np.int32)
    with pytest.raises(KernelError, match=f"a has 32 elements along axis 0; index {outside} is outside"):
        exploration.check(inputs)
    told = "N_value >= 0" if outside < 0 else "N_value < 32"
    with pytest.raises(BackendError, match=f"a place that elements of tensors decide is outside: not {told}"):
        exploration.run(inputs)


@pytest.mark.parametrize("number", [3, 31, 140])
def test_an_element_that_nobody_asks_for(number: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2,), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            s = T.alloc_var("float32", init=0)
            T.copy(A[bx * 32, 0], a)
            if N[bx] < 32:
                s = a[N[bx], 2]
            for i, j in T.Parallel(32, 32):
                b[i, j] = a[i, j] + s
            T.copy(b, C[bx * 32, 0])

    def expected(a: Numbers, n: Numbers) -> Numbers:
        blocks = a.reshape(2, 32, 32)
        return np.concatenate([one + (one[at, 2] if at < 32 else 0) for one, at in zip(blocks, n, strict=True)])

    held(kernel, {1: [7, number]}, expected, 1e-6)


@pytest.mark.parametrize("numbers", [[[0, 1, 2, 3], [3, 25, 1, 50]], [[4, 0, 0, 0], [0, 18, 0, 0]]])
def test_numbers_past_the_end_are_zero(numbers: Any) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((50, 32), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 32), "float32"),
        D: T.Tensor((64, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            n = T.alloc_shared((8,), "int32")
            T.copy(A[bx * 32, 0], a)
            T.copy(N[bx, 0], n)
            T.copy(A[n[6] * 8 + n[1], 0], b)
            T.copy(b, C[bx * 32, 0])
            for i, j in T.Parallel(32, 32):
                if i < n[7] + 40:
                    D[bx * 32 + i, j] = a[i, j]

    def expected(a: Numbers, n: Numbers) -> Numbers:
        return np.concatenate([_padded(a[first:], 0) for first in n[:, 1]])

    exploration = held(kernel, {1: numbers}, expected)
    inputs = [*exploration.inputs()]
    inputs[1] = np.array(numbers, np.int32)
    stored = exploration.run(inputs).outputs[1]
    np.testing.assert_array_equal(stored, np.concatenate([_padded(inputs[0], block) for block in range(2)]))


def listed() -> Any:
    """A block of numbers, the last of which can lie past the end, one of which another number chooses."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 32), "float32"), N: T.Tensor((6,), "int32"), M: T.Tensor((2,), "int32"),
        C: T.Tensor((64, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            b = T.alloc_shared((32, 32), "float32")
            n = T.alloc_shared((4,), "int32")
            T.copy(N[bx * 4], n)
            T.copy(A[n[M[bx]] * 8, 0], b)
            T.copy(b, C[bx * 32, 0])

    return kernel


@pytest.mark.parametrize("places", [[0, 1], [3, 2], [1, 3], [2, 0]])
def test_a_number_that_a_number_chooses(places: list[int]) -> None:
    numbers = [1, 2, 3, 4, 3, 1]

    def expected(a: Numbers, n: Numbers, m: Numbers) -> Numbers:
        held = np.array([*n, 0, 0]).reshape(2, 4)
        return np.concatenate([a[held[bx, m[bx]] * 8 :][:32] for bx in range(2)])

    held(listed(), {1: numbers, 2: places}, expected)


@pytest.mark.parametrize("outside", [-1, 4])
def test_a_number_outside_of_the_block_but_in_the_tensor(outside: int) -> None:
    exploration = ttx.explore(listed())
    inputs = [*exploration.inputs()]
    inputs[1], inputs[2] = np.zeros(6, np.int32), np.array([outside, 0] if outside > 0 else [0, outside], np.int32)
    with pytest.raises(KernelError, match=f"n has 4 elements along axis 0; index {outside} is outside"):
        exploration.check(inputs)
    told = "M_value >= 0" if outside < 0 else "M_value < 4"
    with pytest.raises(BackendError, match=f"a place that elements of tensors decide is outside: not {told}"):
        exploration.run(inputs)


def test_a_block_whose_place_was_in_a_block() -> None:
    """What chose the part that a block holds is no longer there when the block is read."""

    @T.prim_func
    def kernel(A: T.Tensor((96, 32), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            n = T.alloc_shared((4,), "int32")
            T.copy(N[bx, 0], n)
            T.copy(A[n[0] % 4 * 8, 0], a)
            T.copy(N[1 - bx, 0], n)
            for i, j in T.Parallel(32, 32):
                b[i, j] = a[N[bx, 1], N[bx, 2]]
            T.copy(b, C[bx * 32, 0])

    def expected(a: Numbers, n: Numbers) -> Numbers:
        return np.repeat([a[first * 8 + row, column] for first, row, column, _ in n], 32 * 32).reshape(64, 32)

    held(kernel, {1: [[0, 1, 2, 3], [3, 25, 1, 0]]}, expected)


def test_a_block_that_the_other_arm_fills() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            T.clear(a)
            T.clear(b)
            if N[bx, 3] > 2:
                T.copy(A[0, 0], a)
            else:
                for i, j in T.Parallel(32, 32):
                    b[i, j] = a[N[bx, 1], N[bx, 2]] + 1
            T.copy(b, C[bx * 32, 0])

    def expected(a: Numbers, n: Numbers) -> Numbers:
        return np.repeat(np.where(n[:, 3] > 2, 0, 1), 32 * 32).reshape(64, 32)

    held(kernel, {1: [[0, 1, 2, 3], [3, 25, 1, 0]]}, expected)


def test_a_number_that_the_other_arm_loads() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            b = T.alloc_shared((32, 32), "float32")
            n = T.alloc_shared((4,), "int32")
            T.clear(b)
            T.copy(N[bx, 0], n)
            if N[bx, 3] > 2:
                T.copy(N[1 - bx, 0], n)
            else:
                T.copy(A[n[0] * 8, 0], b)
            T.copy(b, C[bx * 32, 0])

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.code == "TTX-L013"
    assert error.message == "the position of a read or write depends on an element of n that not all kernels know"
    assert "use elements of tensors right where they decide" in error.hint
    assert error.span is not None


def test_a_place_by_shifted_elements() -> None:
    """With the least int32, which is tried, too, the shift leaves int32."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), N: T.Tensor((2,), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[((N[bx] << 4) // 16 % 4) * 32, 0], a)
            T.copy(a, C[bx * 32, 0])

    def expected(a: Numbers, n: Numbers) -> Numbers:
        return np.concatenate([a.reshape(4, 32, 32)[at % 4] for at in n])

    held(kernel, {1: [7, 2]}, expected, 1e-6)
