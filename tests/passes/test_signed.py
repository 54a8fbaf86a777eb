"""Indices and bounds that are negative on the way: pages, turns and values are what Python makes of the same text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import TTExploreError, Unsupported

BLOCKS = 4
PAGES = np.repeat(np.arange(BLOCKS, dtype=np.float32), 32)[:, None] * np.ones((1, 32), np.float32)


def page(index: Callable[[Any], Any]) -> Any:
    """Each block copies the page that `index` gives for it."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[index(bx) * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return kernel


def total(bounds: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Each block adds up 10 more than the number of a page, over the pages of its turns modulo 4."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(*bounds(bx)):
                T.copy(A[k % 4 * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j] + 10.0
            T.copy(c, B[bx * 32, 0])

    return kernel


def gives(kernel: Any, wanted: list[float], sizes: dict[str, int] | None = None) -> None:
    exploration = ttx.explore(kernel, sizes=sizes)
    assert exploration.error is None, str(exploration.error)
    result = exploration.check(inputs=[PAGES])
    assert result, str(result)
    run = exploration.run(inputs=[PAGES])
    assert run.outputs[0][::32, 0].tolist() == wanted


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (lambda bx: T.max(bx - 2, 0), [0, 0, 0, 1]),
        (lambda bx: T.clamp(bx - 2, 0, 3), [0, 0, 0, 1]),
        (lambda bx: T.min(T.max(T.max(bx - 2, -1), 2 - bx), 3), [2, 1, 0, 1]),
        (lambda bx: (bx - 3) // 2 + 2, [0, 1, 1, 2]),
        (lambda bx: ((bx - 3) // 2 + 4) % 3, [2, 0, 0, 1]),
        (lambda bx: (bx - 3) % 4, [1, 2, 3, 0]),
        (lambda bx: T.truncmod(bx - 3, 2) + 1, [0, 1, 0, 1]),
        (lambda bx: T.truncdiv(bx - 3, 2) + 1, [0, 0, 1, 1]),
        (lambda bx: T.ceildiv(bx - 3, 2) + 1, [0, 0, 1, 1]),
        (lambda bx: (bx - 3) // (-2) % 4, [1, 1, 0, 0]),
        (lambda bx: ((bx - 2) >> 1) + 1, [0, 0, 1, 1]),
        (lambda bx: ((bx - 2) << 1) % 4, [0, 2, 0, 2]),
        (lambda bx: bx & 2, [0, 0, 2, 2]),
        (lambda bx: T.if_then_else((bx & 2) == 1, 3, bx), [0, 1, 2, 3]),
        (lambda bx: T.if_then_else((bx | 4) != 2, bx, 3), [0, 1, 2, 3]),
        (lambda bx: T.if_then_else((bx & 2) == 2, 3, bx), [0, 1, 3, 3]),
        (lambda bx: (bx - 1) & 3, [3, 0, 1, 2]),
        (lambda bx: (bx ^ -1) + 4, [3, 2, 1, 0]),
        (lambda bx: ~bx + 4, [3, 2, 1, 0]),
        (lambda bx: T.abs(bx - 2), [2, 1, 0, 1]),
        (lambda bx: T.if_then_else(bx > 1, bx - 2, 3), [3, 3, 0, 1]),
        (lambda bx: T.if_then_else(bx - 2 < 0, T.max(bx - 1, 0), 3 - bx), [0, 0, 1, 0]),
        (lambda bx: T.cast(bx - 1, "uint8") % 3, [0, 0, 1, 2]),
        (lambda bx: T.cast(bx > 1, "int32") * 3, [0, 0, 3, 3]),
        (lambda bx: T.cast(bx * 100, "int8") // 64 % 4, [0, 1, 3, 0]),
        # Numbers that their dtype does not hold, known before a proof about them is tried.
        (lambda bx: T.cast(T.min(-4, bx), "uint8") % 3, [0, 0, 0, 0]),
        (lambda bx: T.cast(T.cast(T.min(-3, bx), "uint16") % 4, "int8"), [1, 1, 1, 1]),
        (lambda bx: T.cast(bx, "uint32") % 3, [0, 1, 2, 0]),
        (lambda bx: T.cast(T.uint64(bx) * 2, "int32") % 3, [0, 2, 1, 0]),
        # What a choice does not take is not computed.
        (lambda bx: T.if_then_else(bx > 0, 7 // bx, 0) % 4, [0, 3, 3, 2]),
        (lambda bx: T.if_then_else(bx == 0, 2, 7 % bx), [2, 0, 1, 1]),
        (lambda bx: T.if_then_else(bx != 2, 6 // (bx - 2), 1) % 4, [1, 2, 1, 2]),
        (lambda bx: T.if_then_else((bx > 0) & (bx < 3), 7 // bx % 4 + 3 // (3 - bx), 0) % 4, [0, 0, 2, 0]),
        (lambda bx: T.if_then_else(bx, 7 // bx, 0) % 4, [0, 3, 3, 2]),
        (lambda bx: T.if_then_else(T.if_then_else(bx > 0, 7 // bx > 2, False), bx, 0), [0, 1, 2, 0]),
        (lambda bx: T.if_then_else(bx > 0, 1 << (bx - 1), 3) % 4, [3, 1, 2, 0]),
        (lambda bx: T.if_then_else(bx < 2, bx * 2000000000 // 1000000000, 3), [0, 2, 3, 3]),
        (lambda bx: T.if_then_else(bx < 0, 7 // bx, bx), [0, 1, 2, 3]),
    ],
)
def test_pages(index: Callable[[Any], Any], wanted: list[float]) -> None:
    gives(page(index), wanted)


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        (lambda bx: (T.max(bx - 1, 0), bx + 1), [10, 21, 23, 25]),
        (lambda bx: (0, bx - 2), [0, 0, 0, 10]),
        (lambda bx: (bx - 2, bx), [25, 23, 21, 23]),
        (lambda bx: (-1, bx - 1), [0, 13, 23, 34]),
        (lambda bx: (2, 2 - bx), [0, 0, 0, 0]),
        (lambda bx: (T.min(bx + 1, 3), None), [10, 21, 33, 33]),
        (lambda bx: (T.if_then_else(bx > 1, 3, 1), None), [10, 10, 33, 33]),
        (lambda bx: (T.ceildiv(bx * 32 - 32, 32), None), [0, 0, 10, 21]),
        (lambda bx: (bx, bx + 1), [10, 11, 12, 13]),
        (lambda bx: (T.max(0, bx - 2), T.min(bx + 1, 3)), [10, 21, 33, 23]),
        (lambda bx: (T.cast(bx // 2, "uint8"), T.cast(bx, "uint8")), [0, 10, 11, 23]),
        (lambda bx: (T.cast(bx - 2, "int8"), T.cast(bx, "int64")), [25, 23, 21, 23]),
        (lambda bx: (T.cast(bx * 127, "int8") // 32, bx), [0, 0, 34, 0]),
        (lambda bx: (T.cast(bx, "uint32"), None), [0, 10, 21, 33]),
        (lambda bx: (T.if_then_else(bx > 0, 6 // bx, 1), None), [10, 67, 33, 21]),
    ],
)
def test_turns(bounds: Callable[[Any], tuple[Any, Any]], wanted: list[float]) -> None:
    gives(total(bounds), wanted)


@pytest.mark.parametrize(
    ("start", "turns", "pages"),
    [
        (lambda bx, k: (bx - k) * 32, lambda bx: (bx + 1, None), lambda bx: range(bx + 1)),
        (lambda bx, k: (bx - k) * 32, lambda bx: (T.max(bx - 1, 0), bx + 1), lambda bx: range(min(bx, 1) + 1)),
        (lambda bx, k: (k - bx + 1) * 32, lambda bx: (bx, T.min(bx + 2, 4)), lambda bx: range(1, min(3, 5 - bx))),
        (lambda bx, k: (3 - bx - k) * 32, lambda bx: (4 - bx, None), lambda bx: range(4 - bx)),
        (lambda bx, k: bx * 16 // (bx - k + 1) // 32 * 32, lambda bx: (bx + 1, None),
         lambda bx: [bx * 16 // (bx - k + 1) // 32 for k in range(bx + 1)]),
        (lambda bx, k: T.if_then_else(bx > k, bx - k, 0) * 32, lambda bx: (4, None),
         lambda bx: [max(bx - k, 0) for k in range(4)]),
        (lambda bx, k: T.if_then_else(bx * 2 >= k + 2, (bx * 2 - k) // 2 * 32, 64), lambda bx: (4, None),
         lambda bx: [(bx * 2 - k) // 2 if bx * 2 >= k + 2 else 2 for k in range(4)]),
    ],
)  # fmt: skip
def test_starts_that_are_never_negative_by_what_loops_and_conditions_say(start: Any, turns: Any, pages: Any) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(*turns(bx)):
                T.copy(A[start(bx, k), 0], a)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j] + 10.0
            T.copy(c, B[bx * 32, 0])

    gives(kernel, [float(sum(page + 10 for page in pages(bx))) for bx in range(BLOCKS)])


def test_a_chain_of_loops_says_that_a_start_is_never_negative() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for q in T.serial(bx + 1):
                for k in T.serial(q + 1):
                    T.copy(A[(bx - k) * 32, 0], a)
                    for i, j in T.Parallel(32, 32):
                        c[i, j] = c[i, j] + a[i, j]
            T.copy(c, B[bx * 32, 0])

    gives(kernel, [float(sum(bx - k for q in range(bx + 1) for k in range(q + 1))) for bx in range(BLOCKS)])


@pytest.mark.parametrize(
    ("start", "turns"),
    [
        (lambda bx, q, k: q - k, lambda bx, q: (0, q + 1)),
        (lambda bx, q, k: (q - k) * (q - k), lambda bx, q: (0, 2)),
        (lambda bx, q, k: bx - q - k, lambda bx, q: (0, bx - q + 1)),
        (lambda bx, q, k: k + 3, lambda bx, q: (q - bx, q + bx - 3)),
    ],
)
def test_pages_that_no_bounds_of_single_variables_tell(start: Any, turns: Any) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for q in T.serial(2):
                for k in T.serial(*turns(bx, q)):
                    T.copy(A[start(bx, q, k) * 32, 0], a)
                    for i, j in T.Parallel(32, 32):
                        c[i, j] = c[i, j] + a[i, j] + 10.0
            T.copy(c, B[bx * 32, 0])

    pages = [[start(bx, q, k) for q in range(2) for k in range(*turns(bx, q))] for bx in range(BLOCKS)]
    gives(kernel, [float(sum(page + 10 for page in one)) for one in pages])


def test_a_loop_says_nothing_after_it() -> None:
    """A turn of the loop would mean that the block is not the first."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 32), "float32")
            for k in T.serial(bx):
                T.copy(A[(bx - 1 - k) * 32, 0], a)
                T.copy(a, B[bx * 32, 0])
            T.copy(A[(bx - 1) * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    assert ttx.explore(kernel).check(inputs=[PAGES + 1])
    run = ttx.explore(kernel).run(inputs=[PAGES + 1])
    assert run.outputs[0][::32, 0].tolist() == [0, 1, 2, 3]


def test_sizes_less_something() -> None:
    """The blocks in opposite order, and the one before each: one lowering, two sizes."""
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((m, 32), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, 32)) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[(T.ceildiv(m, 32) - 1 - bx) * 32, 0], a)
            T.copy(a, B[bx * 32, 0])
            T.copy(A[T.max(bx - 1, 0) * 32, 0], a)
            T.copy(a, B[bx * 32, 32])

    exploration = ttx.explore(kernel, sizes={"m": 128})
    for size in (128, 96):
        sized = exploration.with_sizes(m=size)
        # That two stores fill B is not proved for all sizes, so that it is an input, too.
        inputs = [PAGES[:size], np.full((size, 64), -1, np.float32)]
        assert sized.check(inputs=inputs)
        found = sized.run(inputs=inputs).outputs[0]
        blocks = size // 32
        assert found[::32, 0].tolist() == [*range(blocks)][::-1]
        assert found[::32, 32].tolist() == [0, *range(blocks - 1)]


def refused(kernel: Any) -> TTExploreError:
    error = ttx.explore(kernel).error
    assert error is not None
    assert error.span is not None
    assert error.hint
    return error


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda bx: (bx + 3) * 1000003 * 1021 % 4, "is between 3063009189 and 6126018378, which int32 does not hold"),
        (lambda bx: (bx + 1) * 65536 * 65536 % 4, "is between 4294967296 and 17179869184"),
        (lambda bx: bx * 3000000000 % 4, "int32 does not hold the number 3000000000"),
        (lambda bx: (bx << 31) % 4, "is between 0 and 6442450944"),
        (lambda bx: T.int64(bx + 3) * 1000003 * 1021 % 4, "which int32 does not hold"),
        (lambda bx: 7 // bx % 4, r"7 // bx divides by bx, which can be 0"),
        (lambda bx: 7 % (bx - 1) % 4, r"divides by bx - 1, which can be 0"),
        (lambda bx: T.if_then_else(bx > 1, 0, 7 // bx) % 4, "divides by bx, which can be 0"),
        (lambda bx: T.if_then_else((bx > 0) | (7 // bx > 1), 0, 1), "divides by bx, which can be 0"),
        (lambda bx: T.if_then_else(bx < 3, bx * 2000000000, 0) % 4, "is between 0 and 4000000000"),
        (lambda bx: (1 << bx - 1) % 4, "shifts by -1 to 2 bits"),
        (lambda bx: T.cast(bx + 1, "int8"), "* 32 is between 32 and 128, which int8 does not hold"),
        (lambda bx: T.cast(bx, "uint8") - 1, "is between -1 and 2, which uint8 does not hold"),
        (lambda bx: ~T.cast(bx, "uint16"), "which uint16 does not hold"),
        (lambda bx: T.cast(bx - 1, "uint32") >> 30, "T.uint32(bx - 1) is between -1 and 2, which uint32 does not hold"),
        (lambda bx: (T.cast(bx, "uint32") - 1) % 4, "T.uint32(bx) - 1 is between -1 and 2, which uint32 does not hold"),
        (lambda bx: T.cast(bx, "uint32") * 1000000000 % 4, "is between 0 and 3000000000, which int32 does not hold"),
    ],
)
def test_numbers_that_int32_does_not_hold(index: Callable[[Any], Any], message: str) -> None:
    error = refused(page(index))
    assert isinstance(error, Unsupported)
    assert message in error.message
    assert error.code == "TTX-L015"


def test_a_start_of_few_bits() -> None:
    """The start of the last block fits in uint8, and its end does not."""

    @T.prim_func
    def kernel(A: T.Tensor((256, 32), "float32"), B: T.Tensor((256, 32), "float32")):
        with T.Kernel(8) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[T.cast(bx, "uint8") * 32, 0], a)
            T.copy(a, B[T.cast(bx, "uint8") * 32 : T.cast(bx, "uint8") * 32 + 32, :])

    exploration = ttx.explore(kernel)
    values = np.arange(256, dtype=np.float32)[:, None] * np.ones((1, 32), np.float32)
    assert exploration.check(inputs=[values])
    assert np.array_equal(exploration.run(inputs=[values]).outputs[0], values)


def test_a_number_that_int32_does_not_hold_where_it_is_written() -> None:
    with pytest.raises(Unsupported, match="int32 does not hold the number 1099511627776") as caught:
        page(lambda bx: T.min(bx, 2**40))
    assert caught.value.code == "TTX-L015"


def test_a_number_that_no_integer_holds() -> None:
    with pytest.raises(Unsupported, match="int64 does not hold a number of this line") as caught:
        page(lambda bx: bx + 10**30)
    assert caught.value.code == "TTX-L015"
    assert caught.value.span is not None
    assert caught.value.span is not None


def test_more_turns_than_int32_holds() -> None:
    assert "which int32 does not hold" in refused(total(lambda bx: (-(2**31), bx))).message


def test_an_offset_that_is_taken_apart_leaves_int32() -> None:
    """It is within int32 itself, but what TVM makes of it on the way is not."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            for k in T.serial(100, 102):
                T.copy(A[(k - 100) * 30000000 % 4 * 32, 0], a)
                T.copy(a, B[(k - 100) * 32, 0])

    assert "which int32 does not hold" in refused(kernel).message


def test_a_block_before_the_tensor() -> None:
    """It reads as zeros."""
    kernel = page(lambda bx: bx - 1)
    assert ttx.explore(kernel).check(inputs=[PAGES + 1])
    run = ttx.explore(kernel).run(inputs=[PAGES + 1])
    assert run.outputs[0][::32, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (lambda bx: T.if_then_else(bx > 0, bx - 1, 3), [3, 0, 1, 2]),
        (lambda bx: T.truncdiv(bx - 4, 2) + 2, [0, 1, 1, 2]),
        (lambda bx: (bx ^ 1) & 3, [1, 0, 3, 2]),
    ],
)
def test_shards_are_matched_by_any_index(index: Callable[[Any], Any], wanted: list[float]) -> None:
    """The block that item 0 of a core begins with is the block of its own shard."""
    options = {"layouts": {"A": {"shard": "height"}}, "policy": "match_shard"}
    exploration = ttx.explore(page(index), options=options)
    assert exploration.error is None, str(exploration.error)
    partition, layout = exploration.plan.partition, exploration.plan.layout("A")
    assert partition is not None
    assert layout.sharding is not None
    for core in partition.cores:
        shard = layout.sharding.cores.index((core.x, core.y))
        assert {int(wanted[item]) for item in partition.items_of(core)} <= {shard}
    assert exploration.check(inputs=[PAGES])
    assert exploration.run(inputs=[PAGES]).outputs[0][::32, 0].tolist() == wanted


def test_a_tensor_to_match_in_a_loop_of_any_length() -> None:
    options = {"layouts": {"A": {"shard": "height"}}, "policy": "match_shard"}
    error = ttx.explore(total(lambda bx: (0, bx + 1)), options=options).error
    assert error is not None
    assert "the blocks of A cannot be assigned" in error.message
    assert error.span is not None
