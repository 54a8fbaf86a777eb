# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Sums over work items and tensors that are changed in place: against NumPy, and what becomes of the launch grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.sums import in_place, split_k, sums_of_columns, sums_of_found_rows, sums_of_heads
from tests.said import said
from ttexplore.errors import BackendError, KernelError, TTExploreError, Unsupported


def run(kernel: Any, **options: Any) -> tuple[list[Any], list[Any], Any]:
    """The inputs as float64, the outputs of the emulator, and the exploration, whose steps are all right."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    made = exploration.run()
    assert made.passed, made.message
    return [one.astype(np.float64) for one in exploration.inputs()], list(made.outputs), exploration


@pytest.mark.parametrize(("shape", "cores"), [((64, 64, 256), None), ((96, 70, 128), (2, 1)), ((64, 64, 256), (1, 1))])
def test_partial_products_are_added_to_what_is_there(shape: tuple[int, int, int], cores: Any) -> None:
    m, n, k = shape
    (a, b, old), (found,), exploration = run(split_k(m, n, k, 4 if k == 256 else 2), cores=cores)
    assert np.abs(old).max() > 1, "what was there counts"
    np.testing.assert_allclose(found, old + a @ b, rtol=2e-2, atol=5e-2)
    assert exploration.plan.partition.grid == (-(-n // 32), -(-m // 32))
    notes = "\n".join(said(exploration.plan))
    assert f"all {4 if k == 256 else 2} blocks along bz update the same elements of C" in notes


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_each_tensor_has_its_own_owners(dtype: str) -> None:
    """All blocks of rows add to each block of `Q`, but only the heads of a group to a block of `K`."""
    (a, q, k), found, exploration = run(sums_of_heads(dtype=dtype))
    factors = np.arange(1, 4).repeat(32)[None, :, None]
    want_q = q + a.reshape(4, 3, 32, 64).sum(1)[:, None].repeat(3, 1).reshape(q.shape) * factors
    want_k = k + a.reshape(2, 2, 96, 64).sum(1)
    for one, want in zip(found, (want_q, want_k), strict=True):
        if dtype == "int32":
            np.testing.assert_array_equal(one, want)
        else:
            tolerance = 0.1 if dtype == "bfloat16" else 2e-2
            np.testing.assert_allclose(one.astype(np.float64), want, rtol=tolerance, atol=tolerance * 3)
    # bx is divided into groups of two, by is gone.
    assert exploration.plan.partition.grid == (2,)
    assert "groups of 2 blocks along bx update the same elements of K" in "\n".join(said(exploration.plan))


def test_sums_and_maxima_of_all_blocks() -> None:
    (a, s, m), (sums, largest), exploration = run(sums_of_columns())
    np.testing.assert_allclose(sums, s + a.sum(0), rtol=2e-2, atol=5e-2)
    np.testing.assert_allclose(largest, np.maximum(a, m), rtol=2e-3, atol=2e-3)
    assert exploration.plan.partition.grid == (1,)


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "block", "options"),
    [
        (96, 64, "bfloat16", 32, {}), (70, 50, "float32", 32, {}), (64, 64, "float32", 16, {"cores": (1, 1)}),
        (64, 64, "bfloat16", 32, {"layouts": {"B": {"page": "row"}}}),
    ],
)  # fmt: skip
def test_blocks_are_changed_in_place(rows: int, columns: int, dtype: str, block: int, options: Any) -> None:
    (a, b), (found,), _ = run(in_place(rows, columns, dtype, block), **options)
    half = (b * 2 + a).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float32).astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), half - a, rtol=2e-2, atol=5e-2)


def test_the_writer_loads_what_it_stores() -> None:
    """It waits until each block has arrived before it loads the next one."""
    exploration = ttx.explore(sums_of_heads())
    assert {one.name: one.producer for one in exploration.plan.buffers if one.name.endswith("_block")} == {
        "Q_block": "writer", "K_block": "writer"
    }  # fmt: skip
    text = exploration.code["writer"].text
    assert text.count("noc.async_write_barrier();") == text.count(".pop_front(") == 2
    assert "async_read" not in text[text.rindex("async_write_barrier") :]
    assert "Q" not in exploration.code["reader"].text.replace("QK", "")


def test_rows_that_are_shared_through_a_group_of_blocks_in_the_middle() -> None:
    """bx // 2 stands in the middle of an expression, and only its pairs share blocks."""

    @T.prim_func
    def kernel(A: T.Tensor((6, 32, 32), "float32"), S: T.Tensor((96, 32), "float32")):
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            T.atomic_add(S[(2 - bx // 2) * 32, 0], a)

    (a, s), (found,), exploration = run(kernel)
    np.testing.assert_allclose(found, s + a.reshape(3, 2, 32, 32).sum(1)[::-1].reshape(96, 32), rtol=2e-2, atol=2e-2)
    assert exploration.plan.partition.grid == (3,)


HEAD = """import ttexplore.language as T
m = T.dynamic("m")
@T.prim_func
def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((32, 32), "float32"), I: T.Tensor((4,), "int32")):
    with T.Kernel(4) as bx:
        a = T.alloc_shared((32, 32), "float32")
        b = T.alloc_shared((32, 32), "float32")
        T.copy(A[bx * 32, 0], a)
"""


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., TTExploreError]:
    """The error of a kernel made from a text, and its line after the head."""

    def refuse(body: str, head: str = HEAD, **options: Any) -> TTExploreError:
        file = tmp_path / "kernels.py"
        file.write_text(head + "".join(f"        {line}\n" for line in body.split("\n")))
        try:
            error = ttx.explore(f"{file}::kernel", options=options).error
        except TTExploreError as traced:
            return traced
        assert error is not None
        return error

    return refuse


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("T.copy(B, b)\nT.copy(a, B)", 1),
        ("T.atomic_add(B, a)\nT.copy(B, b)", 1),
        ("T.atomic_add(B, a)\nT.copy(a, B)", 1),
        ("for i, j in T.Parallel(32, 32):\n    B[i, j] = B[i, j] + a[i, j]", 0),
        ("T.copy(B, b)\nT.copy(a, B[bx * 8, 0])", 1),
    ],
)
def test_races_between_blocks(refused: Callable[..., TTExploreError], body: str, line: int) -> None:
    error = refused(body)
    assert isinstance(error, KernelError)
    assert error.message.startswith("blocks of the launch grid that differ in bx use the same elements of B")
    # What the blocks have added so far is read in a kernel of its own.
    reads = body.startswith("T.atomic_add(B, a)\nT.copy(B")
    told = "read B in a second T.Kernel of the function" if reads else "T.atomic_add"
    assert told in (error.hint or "")
    assert error.span is not None
    assert error.span.line == HEAD.count("\n") + 1 + line


@pytest.mark.parametrize(
    ("body", "line", "how"),
    [
        ("if bx % 2 == 0:\n    T.atomic_add(B, a)\nelse:\n    T.atomic_max(B, a)", 3, "T.atomic_add and T.atomic_max"),
        ("T.atomic_min(B, a)\nT.atomic_max(B, a)", 1, "T.atomic_max and T.atomic_min"),
        ("for k in range(2):\n    T.atomic_add(B, a)\nfor k in range(bx):\n    T.atomic_min(B, a)", 3,
         "T.atomic_add and T.atomic_min"),
        ("T.atomic_add(B[0:8, 0:32], a[0:8, 0:32])\nif bx == 1:\n    T.atomic_max(B[7:9, 0:32], a[0:2, 0:32])", 2,
         "T.atomic_add and T.atomic_max"),
        ("for i, j in T.Parallel(32, 32):\n    T.atomic_add(B[i, j], a[i, j])\nT.atomic_max(B[bx, 0], a[0, 0])", 2,
         "T.atomic_add and T.atomic_max"),
        ("if I[bx] > 0:\n    T.atomic_add(B, a)\nelse:\n    T.atomic_max(B, a)", 3, "T.atomic_add and T.atomic_max"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("partials", ["dram", "noc"])
def test_updates_of_several_kinds_race(
    refused: Callable[..., TTExploreError], body: str, line: int, how: str, partials: str
) -> None:
    error = refused(body, partials=partials)
    assert isinstance(error, KernelError)
    assert (error.code, error.hint) == (
        "TTX-K017", "let all of them update B in one way; or use two T.Kernel, one after the other",
    )  # fmt: skip
    assert f"update the same elements of B with {how}: the result depends on which comes first" in error.message
    assert error.span is not None
    assert error.span.line == HEAD.count("\n") + 1 + line
    unknown = refused("T.atomic_add(B[I[bx], 0], a[0:1, 0:32])\nT.atomic_max(B[I[bx + 1], 0], a[0:1, 0:32])")
    assert (unknown.code, "is not known before the kernel runs" in unknown.message) == ("TTX-L010", True)


@pytest.mark.parametrize("cores", [(1, 1), (2, 2)])
def test_updates_of_several_kinds_of_elements_that_no_two_blocks_share(cores: tuple[int, int]) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), S: T.Tensor((32, 32), "float32"), Q: T.Tensor((16, 32), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((8, 32), "float32")
            T.copy(A[bx * 8, 0], a)
            # Own elements, in order.
            T.atomic_add(S[bx * 8, 0], a)
            for i, j in T.Parallel(8, 32):
                T.atomic_max(S[bx * 8 + i, j], 0.5)
            # Some blocks share these, others those.
            if bx < 2:
                T.atomic_add(Q[0:8, 0:32], a)
            else:
                T.atomic_max(Q[8:16, 0:32], a)

    (a, s, q), (sums, others), _ = run(kernel, cores=cores)
    np.testing.assert_allclose(sums, np.maximum(s + a, 0.5), rtol=1e-6)
    np.testing.assert_allclose(others[:8], q[:8] + a[:8] + a[8:16], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(others[8:], np.maximum(q[8:], np.maximum(a[16:24], a[24:])), rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"cores": (1, 1)}, {"cores": (2, 2)}, {"cores": (2, 2), "policy": "rectangular"},
        {"cores": (1, 1), "order": "column_major"}, {"cores": (2, 1), "policy": "z_order"},
    ],
    ids=str,
)  # fmt: skip
def test_blocks_that_write_the_same_elements_race_on_one_core_too(options: dict[str, Any]) -> None:
    """That a core runs its work items in order is a choice of the partition, not what the kernel says."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 256), "float32"), B: T.Tensor((128, 256), "float32")):
        with T.Kernel(8, 4) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], a)
            T.copy(a, B[by * 32, T.max(bx, 1) * 32])

    error = ttx.explore(kernel, options=options).error
    assert isinstance(error, KernelError)
    assert error.message == (
        "block (0, 0) and block (1, 0) both write page 1 of B: the result depends on which comes last"
    )
    assert error.hint == "let one block own each element of B, or add to B with T.atomic_add"
    assert error.span is not None


def test_elements_that_two_blocks_of_one_core_write() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(4) as bx:
            B[bx // 2] = A[bx, 3]

    error = ttx.explore(kernel, options={"cores": (1, 1)}).error
    assert isinstance(error, KernelError)
    assert error.message.startswith("block (0) and block (1) both write element 0 of page 0 of B")


def test_other_refusals(refused: Callable[..., TTExploreError]) -> None:
    unknown = (
        "T.copy(B[I[bx], 0], b)\nT.copy(b, B[I[bx], 0])", "T.atomic_add(B[I[bx], 0], a)\nT.copy(B[I[bx], 0], b)",
        "T.atomic_add(B[I[bx], 0], a)\nT.copy(B, b)", "T.atomic_add(B[I[bx], 0], a)\nT.copy(b, B[bx * 8, 0])",
    )  # fmt: skip
    for body in unknown:
        error = refused(body)
        assert isinstance(error, Unsupported)
        assert "which elements it uses here is not known before it runs" in error.message
        assert "only update B, with T.atomic_add" in (error.hint or "")
    error = refused("for k in range(I[0]):\n    T.copy(A[0, 0], a)\nI[1] = 3")
    assert "an element of I is read here on its own, and the kernel writes I, too" in error.message
    assert "write to a separate output tensor" in (error.hint or "")
    error = refused("for i, j in T.Parallel(32, 32):\n    T.atomic_add(B[i, 0], a[i, j])")
    assert "each turn of j stores to the same element" in error.message
    assert error.hint == "add up these turns on the chip, with T.reduce_sum, and the sums to B"
    both = "for i, j in T.Parallel(32, 32):\n    T.atomic_add(B[i, j], a[i, j])\n    b[i, j] = B[i, j]"
    assert "one T.Parallel stores to B and uses it at other elements, or in another way" in refused(both).message
    error = refused("T.atomic_add(B, a, return_prev=True)")
    assert "T.atomic_add with return_prev=True is not lowered" in error.message
    error = refused("T.atomic_add(B, A[0:64, :])")
    assert "T.atomic_add: the shapes differ: B (32, 32) and A (64, 32)" in error.message
    error = refused(
        "for i, j in T.Parallel(1, 32):\n    T.atomic_add(B[bx + i, bx * 33 + j], 1)",
        HEAD.replace('(32, 32), "float32"), I', '(8192, 4096), "float32"), I'),
    )
    assert "in 33,554,432 blocks: too many to find the work items that share elements" in error.message
    long = "T.copy(A[0, 0], a)\nfor k in range(99999999):\n    T.copy(B, b)\n    T.copy(b, B[k // 3333333, 0])"
    assert "which elements it uses here is not known before it runs" in refused(long).message


@pytest.mark.parametrize("to", [[0, 0, 0, 0], [0, 32, 64, 32], [5, 63, 20, 90], [95, 0, 96, 31]])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_an_index_tensor_names(to: list[int], dtype: str) -> None:
    """Any blocks may share rows, so all along by run on one core; those of other columns do not."""
    exploration = ttx.explore(sums_of_found_rows(dtype=dtype))
    assert exploration.error is None, str(exploration.error)
    inputs = [*exploration.inputs()]
    inputs[1][:], inputs[2][:] = to, [32, 0, 7, 31]
    check = exploration.check(inputs)
    assert check, str(check)
    made = exploration.run(inputs)
    assert made.passed, made.message
    a, (sums, largest) = inputs[0].astype(np.float64), (one.astype(np.float64) for one in inputs[3:])
    for n, start in enumerate(to):
        part = a[n * 32 : n * 32 + 32]
        rows = sums[start : start + 32]
        rows += part[: len(rows)]
        rows = largest[start : start + inputs[2][n]]
        np.maximum(rows, part[: len(rows)], out=rows)
    tolerance = 5e-2 if dtype == "bfloat16" else 2e-2
    for found, want in zip(made.outputs, (sums, largest), strict=True):
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=tolerance, atol=tolerance * 2)
    assert exploration.plan.partition is not None
    assert exploration.plan.partition.grid == (2,)
    notes = "\n".join(said(exploration.plan))
    assert "all 4 blocks along by may update the same elements of S: one core runs them one after another" in notes
    assert "that no two blocks store" not in notes


def test_an_update_before_the_tensor() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((96, 32), "float32"), To: T.Tensor((3,), "int32"), B: T.Tensor((64, 32), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            T.atomic_add(B[To[bx], 0], a)

    exploration = ttx.explore(kernel)
    inputs = [*exploration.inputs()]
    inputs[1][:] = [0, -1, 3]
    with pytest.raises(KernelError, match="a place that elements of tensors decide is outside of its tensor"):
        exploration.check(inputs)
    with pytest.raises(BackendError, match="a place that elements of tensors decide is outside"):
        exploration.run(inputs)


def test_two_updates_of_one_element_in_one_nest() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                T.atomic_add(B[i, j], a[i, j])
                T.atomic_add(B[i, j], 1)

    (a, b), (found,), _ = run(kernel)
    np.testing.assert_allclose(found, b + a[:32] + a[32:] + 2, rtol=2e-2, atol=2e-2)


def test_an_update_under_a_condition_leaves_other_elements() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                if i + bx >= j:
                    T.atomic_add(B[i, j], a[i, j])

    (a, b), (found,), _ = run(kernel)
    first, second = (np.tril(part, k) for k, part in enumerate((a[:32], a[32:])))
    np.testing.assert_allclose(found, b + first + second, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("blocks", [2, 3])
def test_updates_of_one_place_by_all_blocks_and_of_parts_of_different_sizes(blocks: int) -> None:
    """The number of parts of `B` is the number of blocks of the grid, and is another one."""

    @T.prim_func
    def kernel(A: T.Tensor((96, 24), "float32"), B: T.Tensor((24,), "float32")):
        with T.Kernel(blocks) as bx:
            a = T.alloc_fragment((24,), "float32")
            T.copy(A[bx, 0:24], a)
            T.atomic_add(B[0:24], a)
            T.atomic_add(B[bx * 8 : bx * 8 + 8], a[8:16])

    (a, b), (found,), exploration = run(kernel)
    own = np.zeros((3, 8))
    own[:blocks] = a[:blocks, 8:16]
    np.testing.assert_allclose(found, b + a[:blocks].sum(0) + own.reshape(24), rtol=2e-2, atol=2e-2)
    assert exploration.plan.partition.grid == (1,)
