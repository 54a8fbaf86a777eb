# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Tensors of more than 2^31 elements: what is lowered computes the right pages, and what has no room is refused.

Nothing here runs: the pages are those that the reader's text computes for the last work items.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
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
            a = T.alloc_shared((32, 64), dtype)
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


@pytest.mark.parametrize(("made", "options", "error", "message", "hint"), [
    (lambda: copied(2**25, 64), ROWS, ResourceError, "C is used in 33,554,432 transfers; at most", "in tiles"),
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
