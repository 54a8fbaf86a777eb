# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false, reportIndexIssue=false
"""Row-major tensors: what the plan says, what is moved at a tail, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.rows import ROWS, total
from tests.corpus.sizes import any_size_gemm
from tests.corpus.spine import gemm
from tests.said import said
from ttexplore.errors import KernelError, ResourceError, Unsupported, UsageError
from ttexplore.views.figures.cb_graph import cb_graph_svg

RUNS = {"page": "row", "through": "runs"}


def test_pages_of_a_row_major_tensor() -> None:
    plan = ttx.explore(total((33, 50), (32, 32), "float32"), options={"layouts": {"A": ROWS}}).plan
    layout, accessor = plan.layout("A"), plan.accessor("A")
    assert (layout.page, layout.padded_shape, layout.padding) == ("row", (33, 50), "none")
    assert (accessor.page_bytes, accessor.pages, accessor.page_strides) == (200, 33, (1, 1))
    cost = "A is row-major, in runs: the reader moves 64 runs of 16 elements (64 bytes) per tile, instead of one page"
    assert cost in said(plan)


def sound(kernel: Any, target: str = "wormhole_n150", **options: Any) -> ttx.Exploration:
    exploration = ttx.explore(kernel, target=target, options=options)
    assert exploration.check(), str(exploration.check())
    run = exploration.run()
    assert run.passed, run.message
    return exploration


@pytest.mark.parametrize("width", [1, 15, 16, 31, 48])
def test_tails_of_rows(width: int) -> None:
    """The last run of a row is as long as what is left: nothing beyond the row is read or written."""
    exploration = sound(total((3, width), (32, 32), "bfloat16"), layouts=dict.fromkeys("ABC", RUNS))
    tail = width % 16 * 2
    assert (f"noc.async_read(A, a_buffer, {tail}," in exploration.code["reader"]) == (tail > 0)
    assert (f"noc.async_write(c_buffer, C, {tail}," in exploration.code["writer"]) == (tail > 0)


def transfers(exploration: ttx.Exploration, role: str) -> list[int]:
    """The bytes of the transfers that stand in a kernel."""
    text = re.sub(r"\s+", " ", exploration.code[role].text)
    return [int(size) for size in re.findall(r"noc\.async_(?:read|write)\(\w+, \w+, (\d+),", text)]


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_whole_rows_through_tilize(target: str) -> None:
    """A row of the block is one transfer, and what lies beyond the tensor is neither read nor written."""
    exploration = sound(total((33, 100), (32, 64), "bfloat16"), target, layouts=dict.fromkeys("ABC", ROWS))
    plan = exploration.plan
    assert [layout.through for layout in plan.layouts] == ["tilize"] * 3
    assert {buffer.name: (buffer.row_tiles, buffer.producer, buffer.consumer) for buffer in plan.buffers} == {
        "a": (0, "compute", "compute"), "a_rows": (2, "reader", "compute"),
        "b": (0, "compute", "compute"), "b_rows": (2, "reader", "compute"),
        "c": (0, "compute", "compute"), "c_rows": (2, "compute", "writer"),
    }  # fmt: skip
    assert "rows of 2 tiles" in cb_graph_svg(plan)
    assert plan.buffer("a_rows").reason == "rows of A, which the compute kernel converts to tiles"
    assert any(note.startswith("A is row-major, through tilize: the reader moves whole rows") for note in said(plan))
    assert any(note.startswith("C is row-major, through untilize: the compute kernel") for note in said(plan))
    assert transfers(exploration, "reader") == [128, 72, 128, 72]
    assert transfers(exploration, "writer") == [128, 72]
    assert "tilize_block(cb_a_rows, 2, cb_a);" in exploration.code["compute"]
    assert "pack_untilize_block<2>(cb_c, 1, cb_c_rows);" in exploration.code["compute"]


def test_rows_of_blocks_that_start_anywhere() -> None:
    """Where each block ends in another place, what is left of a row is computed."""

    @T.prim_func
    def shifted(A: T.Tensor((8, 50), "bfloat16"), B: T.Tensor((8, 96), "bfloat16")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((8, 32), "bfloat16")
            T.copy(A[0, bx * 16], a)
            T.copy(a, B[0, bx * 32])

    exploration = sound(shifted, layouts={"A": ROWS})
    assert "noc.async_read(A, a_rows_buffer, (50 - bx * 16) * 2," in exploration.code["reader"]
    exploration = sound(shifted, layouts={"A": ROWS, "B": ROWS})
    assert [buffer.name for buffer in exploration.plan.buffers] == ["a"]
    assert "tilize" not in exploration.code["compute"]


@pytest.mark.parametrize(("columns", "wide", "at_once"), [(256, "bfloat16", 8), (288, "float32", 3)])
def test_rows_as_wide_as_half_of_dst(columns: int, wide: str, at_once: int) -> None:
    """What packs rows does it from one half of DST."""
    kernel = total((16, columns), (16, columns), "bfloat16")
    exploration = sound(kernel, layouts={"C": ROWS}, accumulate_dtype=wide)
    assert exploration.plan.buffer("c_rows").row_tiles == at_once
    assert f"pack_untilize_block<{at_once}>" in exploration.code["compute"]
    assert transfers(exploration, "writer") == [at_once * 64]


def test_an_accumulator_leaves_dst_where_rows_become_tiles() -> None:
    """What makes tiles of rows takes DST for itself: partial sums wait in a circular buffer meanwhile."""
    kernel = gemm(32, 32, 96, 32, 32, 32)
    resident = sound(kernel)
    assert all("partials" not in buffer.name for buffer in resident.plan.buffers)
    exploration = sound(kernel, layouts={"A": ROWS})
    assert any("partials" in buffer.name for buffer in exploration.plan.buffers)


def test_what_the_buffers_of_rows_take_counts() -> None:
    kernel = total((1024, 1024), (256, 640), "bfloat16")
    error = ttx.explore(kernel, options={"layouts": dict.fromkeys("AB", ROWS), "stages": 1}).error
    assert isinstance(error, ResourceError)
    assert "a_rows" in error.message


def test_an_annotation_asks_for_rows() -> None:
    kernel = T.annotate_tt_layout(total((32, 32), (32, 32), "bfloat16"), {"A": {"page": "row"}})
    assert [one.page for one in ttx.explore(kernel).plan.layouts] == ["row", "tile", "tile"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"page": "row", "memory": "L1"}, "A: a row-major tensor in L1"),
        ({"page": "row", "shard": "height"}, "A: a row-major tensor in shards"),
    ],
)
def test_rows_lie_in_dram(asked: dict[str, Any], message: str) -> None:
    error = ttx.explore(total((64, 64), (32, 32), "bfloat16"), options={"layouts": {"A": asked}}).error
    assert isinstance(error, Unsupported)
    assert error.message == message
    assert error.hint == 'keep it interleaved in DRAM, or in tiles: page="tile"'


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rows_of_sizes_that_are_known_when_the_kernel_runs(dtype: str, target: str) -> None:
    """A row ends where the size says, whole or in runs; one lowering moves rows of any length."""
    kernel = any_size_gemm(dtype=dtype)
    exploration = sound(kernel, target, layouts=dict.fromkeys("ABC", ROWS))
    through = "tilize" if dtype == "bfloat16" else "runs"
    assert [one.through for one in exploration.plan.layouts] == [through, through, "runs"]
    length = "(k - ko * 32) * 2" if dtype == "bfloat16" else "(k - (ko * 32 + c * 16)) * 4"
    assert length in " ".join(exploration.code["reader"].text.split())
    for m, n, k in ((1, 1, 1), (33, 70, 50), (64, 32, 96)):
        random = np.random.default_rng(m)
        a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        run = exploration.run([a, b])
        assert np.array_equal(run.outputs[0], a @ b)
        assert exploration.check([a, b])


@pytest.mark.parametrize("policy", ["strided", "rectangular", "block_linear(2)", "z_order"])
def test_rows_of_any_length_in_any_order(policy: str) -> None:
    """Where what is left of a row is computed, the verifier knows how much that can be, in lists of work too."""
    kernel = total((33, T.dynamic("n")), (32, 64), "bfloat16")
    exploration = sound(kernel, layouts=dict.fromkeys("ABC", ROWS), policy=policy, cores=(2, 1))
    assert exploration.run(sizes={"n": 257}).passed


@pytest.mark.parametrize("layouts", [{}, {"A": ROWS}], ids=["tiles", "rows"])
def test_the_first_columns_of_rows_of_any_length(layouts: dict[str, Any]) -> None:
    """Some of them are always there; where a row ends is asked for its own sake."""
    n = T.dynamic("n")

    @T.prim_func
    def first(A: T.Tensor((8, n), "float32"), B: T.Tensor((8, 16), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((8, 16), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, B)

    exploration = sound(first, layouts=layouts)
    for length in (1, 5, 16, 40):
        array = np.ones((8, length), np.float32)
        want = np.zeros((8, 16), np.float32)
        want[:, :length] = 1
        assert np.array_equal(exploration.run([array]).outputs[0], want)
        assert exploration.check([array])


def test_rows_of_matrices_of_any_size() -> None:
    """The pages of a matrix are as many as it has rows, which is a size."""
    m, n = T.dynamic("m, n")

    @T.prim_func
    def negated(A: T.Tensor((3, m, n), "int32"), B: T.Tensor((3, m, n), "int32")):
        with T.Kernel(T.ceildiv(n, 48), T.ceildiv(m, 8), 3) as (bx, by, bz):
            a = T.alloc_shared((8, 48), "int32")
            T.copy(A[bz, by * 8, bx * 48], a)
            for i, j in T.Parallel(8, 48):
                a[i, j] = 0 - a[i, j]
            T.copy(a, B[bz, by * 8, bx * 48])

    exploration = sound(negated, layouts=dict.fromkeys("AB", ROWS))
    for shape in ((3, 1, 1), (3, 13, 95), (3, 8, 96)):
        array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        assert np.array_equal(exploration.run([array]).outputs[0], -array)


def test_runs_of_bfloat16_are_no_unit_of_the_memory_of_blackhole() -> None:
    kernel = total((64, 64), (32, 32), "bfloat16")
    alone = ttx.explore(kernel, target="blackhole_p150", options={"layouts": {"A": RUNS}})
    assert any("A is read element by element" in note for note in said(alone.plan))
    assert alone.check()
    assert alone.run().passed
    assert ttx.explore(kernel, target="blackhole_p150", options={"layouts": {"C": RUNS}}).run().passed


def test_rows_start_at_units_of_the_memory() -> None:
    kernel = gemm(32, 32, 96, 32, 32, 48)
    assert ttx.explore(kernel, options={"layouts": {"A": ROWS}}).error is None
    alone = ttx.explore(kernel, target="blackhole_p150", options={"layouts": {"A": ROWS}})
    assert any("A is read element by element" in note for note in said(alone.plan))
    assert alone.check()
    assert alone.run().passed


@pytest.mark.parametrize(
    ("asked", "dtype", "kind", "message"),
    [
        (
            {"page": "row", "through": "tilize"},
            "float32",
            Unsupported,
            "it holds Float32, which tilize converts to TF32",
        ),
        (
            {"page": "row", "through": "tilize"},
            "int32",
            Unsupported,
            "it holds Int32, which is unpacked directly to DST",
        ),
        ({"through": "runs"}, "bfloat16", UsageError, "A is requested through 'runs', but its pages are tiles"),
        ({"page": "row", "through": "tiles"}, "bfloat16", UsageError, "'tiles'"),
    ],
)
def test_refused_ways_through(asked: dict[str, Any], dtype: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        raise_error(ttx.explore(total((64, 64), (32, 32), dtype), options={"layouts": {"A": asked}}))


def raise_error(exploration: ttx.Exploration) -> None:
    assert exploration.error is not None
    raise exploration.error


def test_elements_stored_into_a_row_with_a_tail() -> None:
    """The row moves in runs of 16, the last of which reaches into the padding."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 40), "float32"), B: T.Tensor((2, 40), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((40,), "float32")
            T.copy(A[bx, 0], a)
            T.copy(a, B[bx, 0])
            B[bx, 5] = 2.0

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a = np.arange(80, dtype=np.float32).reshape(2, 40)
    wanted = a.copy()
    wanted[:, 5] = 2.0
    assert exploration.check([a])
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], wanted)


def _stored_outside() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((2, 8), "float32")):
        with T.Kernel(2) as bx:
            A[bx, 9] = 1.0

    return kernel


def test_an_element_is_not_stored_outside() -> None:
    with pytest.raises(KernelError) as caught:
        ttx.explore(_stored_outside())
    assert caught.value.message == "a store to A at 9 along dimension 1, whose extent is 8"
    assert caught.value.hint == "indices count from 0, and none is negative"
    assert caught.value.span is not None


def test_a_store_that_is_always_outside_stores_nothing() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((8,), "float32")
            T.copy(A[bx, 0], a)
            T.copy(a, B[bx, 0])
            B[bx + 4, 3] = 1.0

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], a)
