"""Kernels for single threads become kernels for blocks, and are rejected where the order between threads counts."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.changed_lines import check_changed_lines
from tests.corpus import gemv
from ttexplore.errors import KernelError, TTExploreError, Unsupported
from ttexplore.exploration import Exploration

# Sizes that fill blocks, and odd ones.
_PRODUCTS = {
    "a row of each thread": gemv.row_of_each_thread(64, 128, 32, 32),
    "a row of each thread, odd": gemv.row_of_each_thread(50, 100, 16, 24),
    "a row of each thread, bfloat16": gemv.row_of_each_thread(33, 65, 32, 32, "bfloat16"),
    "split": gemv.split_and_added(64, 512, 32, 32, 8),
    "split, odd": gemv.split_and_added(50, 300, 4, 8, 4),
    "split, vectorized": gemv.split_and_added(30, 70, 2, 4, 8, "bfloat16", vectorized=True),
    "an element of each thread": gemv.element_of_each_thread(33, 70, 8, 16),
    "joined by all": gemv.joined_by_all(30, 100, 4, 8, 4),
    "joined by all, bfloat16": gemv.joined_by_all(64, 256, 4, 32, 8, "bfloat16"),
    "a row of each warp": gemv.row_of_each_warp(31, 77, 4),
}


@pytest.mark.parametrize("way", _PRODUCTS)
def test_products_of_a_matrix_and_a_vector(way: str) -> None:
    ex = ttx.explore(_PRODUCTS[way])
    assert ex.error is None, str(ex.error)
    vector, matrix = ex.inputs()
    # Small whole numbers, so that sums are exact in any order.
    generator = np.random.default_rng(0)
    vector, matrix = (generator.integers(-3, 4, np.shape(a)).astype(np.float32) for a in (vector, matrix))
    expected = matrix @ vector
    if "bfloat16" in way or "vectorized" in way:
        expected = _bfloat16(expected)
    np.testing.assert_array_equal(np.asarray(ex.reference([vector, matrix])[0], np.float32), expected)
    assert ex.check([vector, matrix])
    for backend in ("interpreter", "emulator"):
        outputs = ex.run([vector, matrix], backend=backend).outputs
        np.testing.assert_array_equal(np.asarray(outputs[0], np.float32), expected)


def _bfloat16(values: Any) -> Any:
    """The nearest numbers of 8 bits, of those of two the even one."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


_KERNEL = """
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32"), D: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads={threads}) as bx:
{body}
"""


def explored(tmp_path: Path, body: str, threads: str = "32") -> Exploration:
    file = tmp_path / "by_thread.py"
    file.write_text(_KERNEL.format(threads=threads, body=textwrap.indent(textwrap.dedent(body).strip(), " " * 8)))
    return ttx.explore(f"{file}::kernel")


def refusal(tmp_path: Path, body: str, threads: str = "32") -> TTExploreError:
    error = explored(tmp_path, body, threads).error
    assert error is not None, "the kernel was lowered"
    return error


def run(tmp_path: Path, body: str, threads: str = "32") -> dict[str, Any]:
    """The tensors after a run on the emulator, of whole numbers, with what A was."""
    ex = explored(tmp_path, body, threads)
    assert ex.error is None, str(ex.error)
    generator = np.random.default_rng(1)
    inputs = [generator.integers(-9, 10, np.shape(array)).astype(np.float32) for array in ex.inputs()]
    names = [tensor.name for tensor in ex._tensors(("input", "inout"))]
    assert ex.check(inputs)
    result = ex.run(inputs, backend="emulator")
    np.testing.assert_array_equal(ex.run(inputs).outputs[0], result.outputs[0])
    outputs = [tensor.name for tensor in ex._tensors(("output", "inout"))]
    before = {f"{name} before": array for name, array in zip(names, inputs, strict=True)}
    return {**before, **dict(zip(outputs, result.outputs, strict=True))}


def test_elements_of_a_thread_are_an_axis(tmp_path: Path) -> None:
    body = """
        tx, ty = T.get_thread_bindings()
        x = T.alloc_local((4,), "float32")
        for k in T.vectorized(4):
            x[k] = A[bx * 32 + ty, tx * 4 + k]
        for k in T.serial(4):
            x[k] = x[k] * x[k] + tx
        for k in T.vectorized(4):
            C[bx * 32 + ty, tx * 4 + k] = x[k]
    """
    tensors = run(tmp_path, body, "(16, 32)")
    a = tensors["A before"]
    np.testing.assert_array_equal(tensors["C"], a * a + np.arange(64) // 4)


def test_an_update_by_all_threads_counts_each(tmp_path: Path) -> None:
    body = """
        tx = T.get_thread_binding()
        s = T.alloc_shared((1,), "float32")
        s[0] = 0
        T.atomic_add(s[0], 2.0)
        T.atomic_add(s[0], A[bx, tx])
        if tx == 3:
            D[bx] = s[0]
    """
    tensors = run(tmp_path, body)
    np.testing.assert_array_equal(tensors["D"][:2], 64 + tensors["A before"][:2, :32].sum(axis=1))


def test_only_some_threads_add(tmp_path: Path) -> None:
    body = """
        tx = T.get_thread_binding()
        s = T.alloc_shared((1,), "float32")
        s[0] = 1
        if tx % 3 == 1:
            T.atomic_max(s[0], A[bx, tx])
        D[bx * 32 + tx] = s[0]
    """
    tensors = run(tmp_path, body)
    largest = np.maximum(tensors["A before"][:2, 1:32:3].max(axis=1), 1)
    np.testing.assert_array_equal(tensors["D"], np.repeat(largest, 32))


def test_a_condition_of_elements_keeps_the_others(tmp_path: Path) -> None:
    body = """
        tx, ty = T.get_thread_bindings()
        if A[bx * 32 + ty, tx] > 0 or tx == 5:
            C[bx * 32 + ty, tx] = 7
    """
    tensors = run(tmp_path, body, "(32, 32)")
    a, before = tensors["A before"], tensors["C before"]
    stored = (a > 0) | (np.arange(64) == 5)
    stored[:, 32:] = False
    np.testing.assert_array_equal(tensors["C"], np.where(stored, 7, before))


def test_a_sum_goes_on_from_a_number(tmp_path: Path) -> None:
    body = """
        tx = T.get_thread_binding()
        s = T.alloc_local((1,), "float32")
        s[0] = tx
        for k in T.serial(8):
            s[0] += A[bx * 32 + tx, k]
        for k in T.serial(4):
            s[0] = s[0] * 2 + A[bx * 32 + tx, k]
        D[bx * 32 + tx] = s[0]
    """
    tensors = run(tmp_path, body)
    a = tensors["A before"]
    expected = np.tile(np.arange(32), 2) + a[:, :8].sum(axis=1)
    for k in range(4):
        expected = expected * 2 + a[:, k]
    np.testing.assert_array_equal(tensors["D"], expected)


def test_only_some_threads_fill(tmp_path: Path) -> None:
    body = """
        tx = T.get_thread_binding()
        x = T.alloc_local((4,), "float32")
        T.fill(x, A[bx, tx])
        if tx < 4:
            T.fill(x, 5)
        else:
            if A[bx, tx] > 3:
                T.clear(x)
        for k in T.serial(3):
            if tx % 7 == k:
                T.fill(x, A[bx, tx] * 2)
        D[bx * 32 + tx] = x[3]
    """
    tensors = run(tmp_path, body)
    own, threads = tensors["A before"][:2, :32], np.arange(32)
    filled = np.where(threads < 4, 5, np.where(own > 3, 0, own))
    np.testing.assert_array_equal(tensors["D"], np.where(threads % 7 < 3, own * 2, filled).reshape(-1))


def test_only_some_sums_begin_again(tmp_path: Path) -> None:
    again = "for k in T.serial(8):\n    x[0] += A[bx * 32 + tx, k]\n"
    body = f'tx = T.get_thread_binding()\nx = T.alloc_local((1,), "float32")\nT.clear(x)\n{again}'
    tensors = run(tmp_path, f"{body}if tx < 4:\n    T.clear(x)\n{again}D[bx * 32 + tx] = x[0]")
    sums = tensors["A before"][:, :8].sum(axis=1)
    np.testing.assert_array_equal(tensors["D"], np.where(np.arange(64) % 32 < 4, sums, 2 * sums))


_RACES = {
    "one element of several threads": ("D[bx] = A[bx, tx]", "several threads store to one element of D"),
    "a change by all threads": (
        's = T.alloc_shared((1,), "float32")\ns[0] = 0\ns[0] = s[0] + 1\nD[bx * 32 + tx] = s[0]',
        "32 threads change one element of s",
    ),
    "a neighbour's element": (
        "D[bx * 32 + tx] = A[bx, tx]\nC[bx, tx] = D[bx * 32 + 31 - tx]",
        "threads store elements of D that others may use",
    ),
    "other elements in one branch": (
        's = T.alloc_shared((64,), "float32")\nT.clear(s)\nif tx < 16:\n    s[tx] = A[bx, tx]\n'
        "    D[bx * 32 + tx] = s[15 - tx]",
        "threads that take this branch store to s and use other elements of it",
    ),
    "other elements on the other side": (
        's = T.alloc_shared((64,), "float32")\nT.clear(s)\nif tx < 16:\n    s[tx] = A[bx, tx]\nelse:\n'
        "    D[bx * 32 + tx] = s[tx - 16]",
        "threads that take this branch store to s and use other elements of it",
    ),
    "elements that a division joins": (
        "for i in T.serial(2):\n    for v in T.vectorized(4):\n        index = i * 128 + tx // 2 * 4 + v\n"
        "        C[bx * 32 + index // 64, index % 64] = A[bx, v]",
        "several threads store to one element of C",
    ),
    "overlapping elements": (
        "for k in T.serial(4):\n    D[bx * 32 + tx * 2 + k] = A[bx, k]", "several threads store to one element of D"
    ),
}  # fmt: skip


@pytest.mark.parametrize("race", _RACES)
def test_races_are_rejected(tmp_path: Path, race: str) -> None:
    body, message = _RACES[race]
    error = refusal(tmp_path, f"tx = T.get_thread_binding()\n{body}")
    assert isinstance(error, KernelError)
    assert error.message.startswith(message)
    assert error.code == "TTX-K016"
    assert error.span is not None


@pytest.mark.parametrize("vector", [4, 8])
def test_threads_that_a_division_tells_apart_do_not_race(tmp_path: Path, vector: int) -> None:
    """A loop around adds whole rows before the division; what has no block form is no race."""
    body = f"""
        tx = T.get_thread_binding()
        s = T.alloc_shared((32, {vector * 2}), "float32")
        for i in T.serial(2):
            for v in T.vectorized({vector}):
                index = i * {vector * 32} + tx * {vector} + v
                s[index // {vector * 2}, index % {vector * 2}] = A[bx, v]
        T.copy(s, C[bx * 32, 0])
    """
    error = refusal(tmp_path, body)
    assert (type(error), error.code) == (Unsupported, "TTX-L003")


def test_a_neighbours_element_in_one_statement_is_a_race(tmp_path: Path) -> None:
    body = 's = T.alloc_shared((32,), "float32")\nT.clear(s)\ns[tx] = s[31 - tx] + 1\nD[bx * 32 + tx] = s[tx]'
    error = refusal(tmp_path, f"tx = T.get_thread_binding()\n{body}")
    assert error.message == "one T.Parallel stores to s and reads it at other elements"


_REFUSED = {
    "a length of each thread": "for k in T.serial(tx):\n    C[bx, tx] = A[bx, k]",
    "an operation of the block": (
        's = T.alloc_shared((1, 64), "float32")\nT.copy(A[tx, 0:64], s)\nD[bx * 32 + tx] = s[0, 0]'
    ),
    "an operation of the block by some": (
        's = T.alloc_shared((32,), "float32")\nT.clear(s)\nif tx < 4:\n    T.fill(s, 4)\nD[bx * 32 + tx] = s[tx]'
    ),
    "a fill with its own value": (
        'x = T.alloc_local((4,), "float32")\nT.fill(x, A[bx, tx])\nT.fill(x, x[0] + 1)\nD[bx * 32 + tx] = x[3]'
    ),
    "a T.Parallel by some": (
        's = T.alloc_shared((32,), "float32")\nT.clear(s)\nif tx < 4:\n    for i in T.Parallel(32):\n'
        "        s[i] = 4\nD[bx * 32 + tx] = s[tx]"
    ),
    "joined by some": (
        's = T.alloc_local((1,), "float32")\nif tx < 4:\n    s[0] = T.warp_reduce_sum(A[bx, tx])\n'
        "D[bx * 32 + tx] = s[0]"
    ),
    "a histogram": (
        's = T.alloc_shared((32,), "float32")\nT.clear(s)\nT.atomic_add(s[tx % 4], 1.0)\nD[bx * 32 + tx] = s[tx]'
    ),
}  # fmt: skip


@pytest.mark.parametrize("construct", _REFUSED)
def test_what_has_no_block_form_is_rejected(tmp_path: Path, construct: str) -> None:
    error = refusal(tmp_path, f"tx = T.get_thread_binding()\n{_REFUSED[construct]}")
    assert isinstance(error, Unsupported)
    assert error.code == "TTX-L001"
    assert error.span is not None


@pytest.mark.parametrize("way", ["split", "joined by all", "a row of each warp"])
def test_each_changed_line_has_a_rule_and_a_source(way: str) -> None:
    for step in ttx.explore(_PRODUCTS[way]).steps:
        for leaf in step.leaves:
            check_changed_lines(leaf.record)
