# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Tensors of more than 2^31 elements: what is lowered computes the right pages, and what has no room is refused.

Nothing here runs: the pages are those that the reader's text computes for the last work items.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.said import said
from ttexplore.errors import ResourceError, TTExploreError, Unsupported


def row_sums(batch: int, rows: int, columns: int) -> Any:
    """One row of tiles of each block of 1,024 rows is read."""

    @T.prim_func
    def kernel(A: T.Tensor((batch, rows, columns), "bfloat16"), Out: T.Tensor((batch, rows // 1024, 32), "float32")):
        with T.Kernel(rows // 1024, batch) as (bx, by):
            a, s = T.alloc_shared((32, 32), "bfloat16"), T.alloc_fragment((32,), "float32")
            T.copy(A[by, bx * 1024 + 992, columns - 32], a)
            T.reduce_sum(a, s, dim=1)
            T.copy(s, Out[by, bx, 0])

    return kernel


@pytest.mark.parametrize(("batch", "rows", "columns"), [
    (1, 2**22, 1024), (8, 2**20, 512), (2, 2**26, 32), (4, 2**24, 64)
])  # fmt: skip
def test_pages_of_elements_beyond_the_range_of_int32(batch: int, rows: int, columns: int) -> None:
    exploration = ttx.explore(row_sums(batch, rows, columns))
    assert exploration.error is None, str(exploration.error)
    assert batch * rows * columns >= 2**32
    text = exploration.code["reader"].text
    (page,) = re.findall(r"noc\.async_read\(A, .*\.page_id = ([^}]*)\}", text)
    names = {name: value for name, value in re.findall(r"const uint32_t (\w+) = ([^;]*);", text) if "arg" not in value}
    for work in (0, batch * rows // 1024 - 1):
        # As C++ computes it: in 32 bits.
        known = {"work": work, "item": 0, "r": 0, "c": 0}
        for name, value in names.items():
            if name not in ("work", "work_start", "work_count"):
                known.setdefault(name, _evaluated(value, known))
        by, bx = divmod(work, rows // 1024)
        row_tile = bx * 32 + 31
        want = (by * (rows // 32) + row_tile) * (columns // 32) + columns // 32 - 1
        assert _evaluated(page, known) == want
        assert want < 2**31


def _evaluated(text: str, known: dict[str, int]) -> int:
    return eval(text.replace("/", "//"), {}, dict(known)) & 0xFFFFFFFF


def copied(rows: int, columns: int, dtype: str = "bfloat16") -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), dtype), C: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, 32)) as bx:
            a = T.alloc_shared((32, min(columns, 64)), dtype)
            T.copy(A[bx * 32, 0], a)
            T.copy(a, C[bx * 32, 0])

    return kernel


def flattened() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((2**18, 2**14), "bfloat16"), Out: T.Tensor((32, 32), "bfloat16")):
        v = T.reshape(A, (2**14, 2**18))
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(v[0, 0], a)
            T.copy(a, Out)

    return kernel


ROWS = {"layouts": {"A": {"page": "row"}, "C": {"page": "row"}}}


def test_rows_of_tiles_that_fit_are_lowered() -> None:
    assert ttx.explore(copied(2**25, 64)).error is None


def added(rows: int, at_once: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((rows, 32), "bfloat16"), C: T.Tensor((rows, 32), "bfloat16")):
        with T.Kernel(rows // at_once) as bx:
            a = T.alloc_shared((at_once, 32), "bfloat16")
            T.copy(A[bx * at_once, 0], a)
            for i, j in T.Parallel(at_once, 32):
                a[i, j] = a[i, j] + a[i, j]
            T.copy(a, C[bx * at_once, 0])

    return kernel


@pytest.mark.parametrize(("rows", "at_once", "options"), [
    (2**27, 32, {}), (2**27, 32, {"policy": "strided"}), (2**22 + 3, 1, ROWS), (2**22, 1, {**ROWS, "policy": "strided"})
])  # fmt: skip
def test_millions_of_work_items(rows: int, at_once: int, options: Any) -> None:
    """Each core's items are those that NumPy deals out, and the last ones read and write their own pages."""
    exploration = ttx.explore(added(rows, at_once), target="blackhole_p150", options=options)
    assert exploration.error is None, str(exploration.error)
    partition = exploration.plan.partition
    assert partition is not None
    items, cores = np.arange(rows // at_once), len(partition.cores)
    wanted = (
        [items[number::cores] for number in range(cores)] if options.get("policy") else np.array_split(items, cores)
    )
    assert all(map(np.array_equal, map(partition.items_of, partition.cores), wanted))
    for role in ("reader", "writer"):
        code = exploration.code[role].text
        page = re.findall(r"noc\.async_(?:read|write)\(.*\.page_id = (\w+)", code)[0]
        names = {
            name: value for name, value in re.findall(r"const uint32_t (\w+) = ([^;]*);", code) if "arg" not in value
        }
        for core, own in zip((partition.cores[0], partition.cores[-1]), (wanted[0], wanted[-1]), strict=True):
            for item in (0, len(own) - 1):
                known = {**core.values, "item": item, "r": 0, "c": 0}
                for name, value in names.items():
                    known.setdefault(name, _evaluated(value, known))
                assert known[page] == own[item]
    assert exploration.estimate().cycles > 0
    assert f"{len(items) - 4096:,} more items not drawn" in exploration.work_map.svg


@pytest.mark.parametrize(("options", "what"), [
    ({"policy": "rectangular"}, "the policy rectangular"),
    ({"policy": "z_order"}, "the policy z_order"),
    ({"order": "column_major"}, "the order column_major"),
    ({"order": "block_linear(4)", "policy": "strided"}, "the order block_linear"),
    ({"mode": "local_shard"}, "the mode local_shard"),
])  # fmt: skip
def test_schedules_that_list_each_work_item(options: Any, what: str) -> None:
    error = ttx.explore(added(2**27, 32), target="blackhole_p150", options=options).error
    assert error is not None
    assert error.code == "TTX-R012"
    assert error.message == (
        f"the launch grid 4194304 has 4,194,304 blocks; with {what}, at most 2,097,152 are lowered"
    )


def with_row(columns: int, rows: int) -> Any:
    """Each work item adds a block of its own to the one of its column."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows * 32, columns * 32), "bfloat16"), B: T.Tensor((32, columns * 32), "bfloat16"),
        C: T.Tensor((rows * 32, columns * 32), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(columns, rows) as (bx, by):
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], a)
            T.copy(B[0, bx * 32], b)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[by * 32, bx * 32])

    return kernel


def test_inputs_of_many_work_items_are_shared_or_a_note_says_why_not() -> None:
    plan = ttx.explore(with_row(2**9, 2**8), options={"multicast": "all"}).plan
    assert [(one.tensor, one.topology) for one in plan.shared] == [("B", "grid")]
    assert "A is not shared: no two cores need the same blocks at the same steps" in said(plan)
    large = ttx.explore(with_row(2**11, 2**11), target="blackhole_p150", options={"multicast": "all"}).plan
    assert large.shared == ()
    why = "the blocks of 4,194,304 work items are not compared, at most those of 2,097,152"
    assert [f"{name} is not shared: {why}" in said(large) for name in "AB"] == [True, True]
    chosen = ttx.explore(with_row(2**11, 2**11), target="blackhole_p150").plan
    assert chosen.shared == ()
    assert "inputs are not shared: the blocks of more than 2,097,152 work items are not compared" in said(chosen)


@pytest.mark.parametrize(("made", "options", "error", "message", "hint"), [
    (lambda: copied(2**27, 16), ROWS, ResourceError, "C is used in 134,217,728 transfers; at most", "in tiles"),
    (lambda: copied(2**29, 64), None, ResourceError, "the tensors need 11,453,247,488 B of each DRAM bank", "make A"),
    (lambda: copied(2**31 - 1, 64), ROWS, ResourceError, "of the 12 banks of wormhole_n150 has", "make A"),
    (lambda: copied(2, 2**29, "float32"), ROWS, ResourceError, "a row of A is a page of 2,147,483,648 B", "in tiles"),
    (flattened, None, Unsupported, "4,294,967,296 elements lie along axes that have other lengths", "in its own shape"),
])  # fmt: skip
def test_what_is_too_large(made: Any, options: Any, error: type[TTExploreError], message: str, hint: str) -> None:
    try:
        raised = ttx.explore(made(), options=options).error
    except TTExploreError as caught:
        raised = caught
    assert isinstance(raised, error)
    assert message in raised.message
    assert hint in raised.hint
