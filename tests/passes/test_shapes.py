# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
# ruff: noqa: F841
"""Blocks and tensors of any size: what is refused, what the plan says, and that no page is touched in vain."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.shapes import copied, exponent, product, vector
from tests.corpus.sizes import any_size_gemm
from tests.said import said
from ttexplore.errors import TTExploreError, Unsupported
from ttexplore.plan import Plan


def refused(kernel: Any, *messages: str, **arguments: Any) -> TTExploreError:
    exploration = ttx.explore(kernel, **arguments)
    assert isinstance(exploration.error, Unsupported), repr(exploration.error)
    assert exploration.error.span is not None
    for message in messages:
        assert message in f"{exploration.error.message}; {exploration.error.hint}", str(exploration.error)
    return exploration.error


def moved(source: tuple[int, ...], into: Any, block: tuple[int, ...], dtype: str = "bfloat16") -> Any:
    """A kernel with one load, of the region that `into` says, and a store of what was loaded."""

    @T.prim_func
    def kernel(A: T.Tensor(source, dtype), B: T.Tensor((8, *block), dtype)):
        with T.Kernel(4, 2) as (bx, by):
            a = T.alloc_shared(block, dtype)
            T.copy(into(A, bx, by), a)
            if len(block) == 2:
                T.copy(a, B[by * 4 + bx, :, :])
            else:
                T.copy(a, B[by * 4 + bx, :])

    return kernel


@pytest.mark.parametrize(
    ("source", "block", "low", "page"),
    [
        ((64, 64), (32, 32), lambda bx: (bx * 32 - 32, 0), "tile"),
        ((64, 64), (32, 32), lambda bx: (bx * 32 - 48, bx * 16 - 16), "tile"),
        ((64, 40), (16, 40), lambda bx: (bx * 16 - 3, 0), "tile"),
        ((64, 40), (16, 40), lambda bx: (bx * 16 - 3, 0), "row"),
        ((64, 40), (16, 40), lambda bx: (bx * 16, bx * 16 - 24), "row"),
        ((9, 20), (4, 7), lambda bx: (bx * 5 - 6, bx * 9 - 10), "tile"),
        ((9, 20), (4, 7), lambda bx: (bx * 5 - 6, bx * 9 - 10), "row"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_blocks_that_begin_before_the_tensor(
    source: tuple[int, ...], block: tuple[int, ...], low: Any, page: str, dtype: str
) -> None:
    """What lies before a tensor reads as zeros and is not stored, as what lies behind it."""
    height, width = source
    layouts = {"layouts": {"A": {"page": page}}}
    exploration = ttx.explore(moved(source, lambda A, bx, by: A[low(bx)], block, dtype), options=layouts)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    (a,) = exploration.inputs()
    (found,) = exploration.run([a]).outputs
    for bx in range(4):
        wanted = np.zeros(block, np.float32)
        for i, j in np.ndindex(*block):
            y, x = low(bx)[0] + i, low(bx)[1] + j
            if 0 <= y < height and 0 <= x < width:
                wanted[i, j] = a[y, x]
        for by in range(2):
            np.testing.assert_array_equal(np.asarray(found[by * 4 + bx], np.float32), wanted)


def test_stores_before_the_tensor() -> None:
    """Only what lies in the tensor is stored, and nothing to its neighbour in memory."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 20), "float32"), B: T.Tensor((3, 50), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((20,), "float32")
            T.copy(A[bx, :], a)
            T.copy(a, B[1, bx * 20 - 10 : bx * 20 + 10])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    a, held = exploration.inputs()
    (found,) = exploration.run([a, held]).outputs
    np.testing.assert_array_equal(found[1], a.reshape(-1)[10:60])
    np.testing.assert_array_equal(found[[0, 2]], held[[0, 2]])


@pytest.mark.parametrize(
    ("source", "into", "block", "numbers"),
    [
        ((64, 104), lambda A, bx, by: A[by * 32, bx * 16 + 8], (32, 32),
         lambda a, bx, by: a[by * 32 : by * 32 + 32, bx * 16 + 8 : bx * 16 + 40]),
        ((64, 64), lambda A, bx, by: A[by * 8, bx * 16], (8, 8),
         lambda a, bx, by: a[by * 8 : by * 8 + 8, bx * 16 : bx * 16 + 8]),
        ((64, 64), lambda A, bx, by: A[bx * 16 : bx * 16 + 16, by], (16,),
         lambda a, bx, by: a[bx * 16 : bx * 16 + 16, by]),
        ((64,), lambda A, bx, by: A[bx * 16 : bx * 16 + 16], (16, 1),
         lambda a, bx, by: a[bx * 16 : bx * 16 + 16, None]),
    ],
)  # fmt: skip
def test_regions_that_neither_tiles_nor_strips_express(
    source: tuple[int, ...], into: Any, block: tuple[int, ...], numbers: Any
) -> None:
    """They are read element by element, as the plan says."""
    exploration = ttx.explore(moved(source, into, block))
    count = int(np.prod(block))
    lines, first = inspect.getsourcelines(moved)
    line = next(number for number, text in enumerate(lines, first) if "T.copy(into(" in text)
    assert any(f"A is read element by element in line {line}: {count} reads" in note for note in said(exploration.plan))
    assert exploration.check()
    (a,) = exploration.inputs()
    (found,) = exploration.run().outputs
    for bx in range(4):
        for by in range(2):
            np.testing.assert_array_equal(found[by * 4 + bx], numbers(a, bx, by))


def stored(target: tuple[int, ...], into: Any, block: tuple[int, ...], dtype: str = "bfloat16") -> Any:
    """A kernel that stores blocks to the regions that `into` says."""

    @T.prim_func
    def kernel(A: T.Tensor((8, *block), dtype), B: T.Tensor(target, dtype)):
        with T.Kernel(4, 2) as (bx, by):
            a = T.alloc_shared(block, dtype)
            if len(block) == 2:
                T.copy(A[by * 4 + bx, :, :], a)
            else:
                T.copy(A[by * 4 + bx, :], a)
            T.copy(a, into(B, bx, by))

    return kernel


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("page", ["tile", "row"])
@pytest.mark.parametrize(
    ("target", "block", "into"),
    [
        # single elements, also of a vector: eight cores write to one page
        ((2, 5), (1,), lambda B, bx, by: B[by, bx]),
        ((9,), (1,), lambda B, bx, by: B[by * 4 + bx]),
        # columns, of matrices and of what lies before them
        ((40, 11), (10,), lambda B, bx, by: B[bx * 10 : bx * 10 + 10, by * 7 + 3]),
        ((40, 2, 3), (10,), lambda B, bx, by: B[bx * 10 : bx * 10 + 10, by, 1]),
        ((3, 45, 5), (11, 2), lambda B, bx, by: B[2, bx * 11 : bx * 11 + 11, by * 2 : by * 2 + 2]),
        # vectors that begin anywhere, and end behind the tensor
        ((2, 50), (13,), lambda B, bx, by: B[by, bx * 13 : bx * 13 + 13]),
        ((100,), (13,), lambda B, bx, by: B[(by * 4 + bx) * 13 : (by * 4 + bx) * 13 + 13]),
        # blocks that begin anywhere, the last ones partly or wholly outside
        ((50, 30), (17, 9), lambda B, bx, by: B[by * 17 + 5 : by * 17 + 22, bx * 9 + 1 : bx * 9 + 10]),
    ],
)
def test_stores_to_any_region(
    target: tuple[int, ...], block: tuple[int, ...], into: Any, page: str, dtype: str
) -> None:
    """Elements are stored by themselves, and nothing around them, even if cores write neighbours in a page."""
    exploration = ttx.explore(stored(target, into, block, dtype), options={"layouts": {"B": {"page": page}}})
    assert exploration.error is None, str(exploration.error)
    assert any("B is stored element by element" in note for note in said(exploration.plan))
    assert exploration.check()
    a, *held = exploration.inputs()
    # What is not stored keeps what B holds, which is an input then.
    wanted = np.asarray(held[0], np.float64) if held else np.full(target, np.nan)
    for bx in range(4):
        for by in range(2):
            at = [one if isinstance(one, slice) else slice(one, one + 1) for one in into(_Region(), bx, by)]
            sizes = [one.stop - one.start for one in at]
            for index in np.ndindex(*sizes):
                place = tuple(one.start + offset for one, offset in zip(at, index, strict=True))
                if all(one < length for one, length in zip(place, target, strict=True)):
                    wanted[place] = np.asarray(a[by * 4 + bx], np.float64).reshape(sizes)[index]
    run = exploration.run([a, *held])
    assert run.passed, run.message
    np.testing.assert_array_equal(np.asarray(run.outputs[0], np.float64), wanted)


@pytest.mark.parametrize(
    ("into", "options", "messages"),
    [
        (lambda B, bx, by: B[by * 32 : by * 32 + 32, bx * 8 : bx * 8 + 32], {"B": {"dtype": "bfp8_b"}},
         ("B[by * 32:by * 32 + 32, bx * 8:bx * 8 + 32] cannot be stored", "stores exponents apart",
          "or omit the tensor's dtype in its layout")),
        (lambda B, bx, by: B[bx * 32 : bx * 32 + 32, by], {"B": {"dtype": "bfp8_b"}}, 
         ("axis 0 would become the columns of a block (32,)", "the last axis of both is the same")),
    ],
)  # fmt: skip
def test_block_floats_have_no_single_elements(into: Any, options: Any, messages: tuple[str, ...]) -> None:
    block = (32,) if "axis 0" in messages[0] else (32, 32)
    refused(stored((128, 64), into, block), *messages, options={"layouts": options})


@pytest.mark.parametrize(
    ("low", "options"),
    [(lambda bx: bx * 32 + 5, {}), (lambda bx: bx * 32 - 32, {"A": {"page": "row"}})],
)
def test_tensors_of_unknown_size_are_moved_element_by_element(low: Any, options: Any) -> None:
    m, n = T.dynamic("m, n")

    @T.prim_func
    def kernel(A: T.Tensor((2, m, n), "bfloat16"), B: T.Tensor((32, 128), "bfloat16")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[1, 0:32, low(bx) : low(bx) + 32], a)
            T.copy(a, B[0, bx * 32])

    for sizes in ({"m": 20, "n": 100}, {"m": 40, "n": 33}):
        exploration = ttx.explore(kernel, sizes=sizes, options={"layouts": options, "cores": (1, 1)})
        assert exploration.error is None, str(exploration.error)
        (a,) = given = exploration.inputs()
        assert exploration.check(given)
        (found,) = exploration.run(given).outputs
        want = np.zeros((32, 4, 32), np.float32)
        for item in range(4):
            columns = [one for one in range(32) if 0 <= low(item) + one < sizes["n"]]
            rows = min(32, sizes["m"])
            want[:rows, item, columns] = a[1, :rows, [low(item) + one for one in columns]].T
        np.testing.assert_array_equal(found.astype(np.float32), want.reshape(32, 128))
        assert any("element by element" in one for one in said(exploration.plan))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_single_elements_outside_of_a_nest(dtype: str) -> None:
    """Statistics, sums of elements, numbers and indices, under a condition and outside of the tensor too."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4, 64), "float32"), Out: T.Tensor((4, 6), "float32"), N: T.Tensor((9,), dtype),
        H: T.Tensor((3, 4, 5), dtype),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a, s = T.alloc_fragment((64,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(A[bx, :], a)
            T.reduce_max(a, s, dim=0)
            at = bx * 3 - 1
            for k in T.serial(3):
                Out[bx, k * 2] = s[0] * 2.0 + A[bx, k]
                N[at + k] = bx * 10 + k
            if bx > 1:
                H[2, bx, 4] = 7

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    held = exploration.inputs(seed=1)
    a = held[0]
    outputs = exploration.run(held).outputs
    out, numbers, sevens = (np.asarray(one, np.float64) for one in outputs)
    wanted = np.array(held[1], np.float64)
    wanted[:, ::2] = a.max(1)[:, None] * 2 + a[:, :3]
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    assert numbers.tolist() == [1, 2, 10, 11, 12, 20, 21, 22, 30]
    wanted = np.array(held[-1], np.float64)
    wanted[2, 2:, 4] = 7
    np.testing.assert_array_equal(sevens, wanted)


def test_elements_say_where_elements_are_stored() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), S: T.Tensor((4,), "int32"), Out: T.Tensor((8,), "float32")):
        with T.Kernel(4) as bx:
            at = S[bx]
            Out[at] = A[bx, 3]

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a, held = exploration.inputs()[0], np.full(8, 9, np.float32)
    places = np.array([6, 0, 5, 3], np.int32)
    assert exploration.check([a, places, held])
    wanted = held.copy()
    wanted[places] = a[:, 3]
    np.testing.assert_array_equal(exploration.run([a, places, held]).outputs[0], wanted)


def test_two_cores_store_one_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), Out: T.Tensor((8,), "float32")):
        with T.Kernel(4) as bx:
            Out[3] = A[bx, 3]

    error = ttx.explore(kernel).error
    assert error is not None
    assert "element 3 of page 0 of Out is written by core (3, 0) and by core (0, 0)" in error.message
    assert error.hint == "let one block own each element of Out, or add to Out with T.atomic_add"


class _Region:
    """Stands in for a tensor: gives the region that it is asked for."""

    def __getitem__(self, at: Any) -> tuple[Any, ...]:
        return at if isinstance(at, tuple) else (at,)


def test_one_number_of_many() -> None:
    def scaled(shape: tuple[int, ...], at: Any) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), S: T.Tensor(shape, "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1) as bx:
                a = T.alloc_shared((32, 32), "float32")
                s = T.alloc_shared((1,), "float32")
                T.copy(A, a)
                T.copy(at(S), s)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] * s[0]
                T.copy(a, B)

        return kernel

    for kernel in (scaled((3,), lambda S: S[1]), scaled((3, 1), lambda S: S[1, 0])):
        exploration = ttx.explore(kernel)
        a, s = exploration.inputs()
        np.testing.assert_allclose(exploration.run([a, s]).outputs[0], a * s[1], rtol=1e-2)


def test_scalar_parameters() -> None:
    """A float is an input; a whole number is a size, of which launch grid, lengths and elements may be made."""

    @T.prim_func
    def kernel(A: T.Tensor((96,), "float32"), n: T.int32, scale: T.float32, B: T.Tensor((96,), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            a = T.alloc_shared((32,), "float32")
            T.copy(A[bx * 32], a)
            for _ in range(n // 32):
                for i in T.Parallel(32):
                    a[i] = T.if_then_else(bx * 32 + i < n, a[i] * scale, n) + T.Cast("float32", n // 3) * 0.5
            T.copy(a, B[bx * 32])

    exploration = ttx.explore(kernel, sizes={"n": 70})
    assert "scale is a number: the kernel takes it as a tensor of one element" in said(exploration.plan)
    a, scale, held = exploration.inputs()
    assert scale.shape == (1,)
    at = np.arange(96)
    by_name = {"A": a, "scale": np.float32(-1), "B": held}
    for factor, inputs in ((2.5, [a, 2.5, held]), (scale[0], [a, scale, held]), (-1.0, by_name)):
        assert exploration.check(inputs)
        wanted = a
        for _ in range(2):
            wanted = np.where(at < 70, wanted * factor, 70) + 11.5
        np.testing.assert_allclose(exploration.run(inputs).outputs[0], wanted, rtol=1e-6)
    smaller = exploration.run([a, 2.0, held], sizes={"n": 32}).outputs[0]
    np.testing.assert_allclose(smaller[:32], a[:32] * 2 + 5, rtol=1e-6)
    np.testing.assert_array_equal(smaller[32:], held[32:])


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint32"])
def test_scalar_parameters_of_other_dtypes(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), scale: getattr(T, dtype), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * scale
            T.copy(a, B)

    refused(kernel, "the scalar parameter scale", "make it a T.int32, a T.float32 or a tensor of one element")


def test_alignment_of_rows_on_blackhole() -> None:
    """A row of 16 bfloat16 has 32 bytes: a unit of Wormhole's memory, and half of one of Blackhole's."""
    kernel = moved((64, 64), lambda A, bx, by: A[by, bx * 16], (1, 16))
    assert ttx.explore(kernel, target="wormhole_n150").run().passed
    alone = ttx.explore(kernel, target="blackhole_p150")
    assert alone.run().passed
    assert any("A is read element by element" in note for note in said(alone.plan))
    wide = moved((64, 64), lambda A, bx, by: A[by, bx * 16], (1, 16), "float32")
    assert ttx.explore(wide, target="blackhole_p150").run().passed


def test_store_of_a_part_of_a_run() -> None:
    """A store never touches what follows a block in its tiles."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 40), "bfloat16"), B: T.Tensor((64, 80), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 40), "bfloat16")
            T.copy(A, a)
            T.copy(a, B[0, bx * 40])

    exploration = ttx.explore(kernel)
    assert exploration.check()
    a, held = exploration.inputs()
    (found,) = exploration.run([a, held]).outputs
    np.testing.assert_array_equal(found[:32, :40], a)
    np.testing.assert_array_equal(found[:32, 40:], a)
    np.testing.assert_array_equal(found[32:], held[32:])


def test_product_over_unknown_padding() -> None:
    """exp(0) is 1: in the last tile of a block of 20 columns it would be added to the product."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 20), "bfloat16"), B: T.Tensor((20, 32), "bfloat16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 20), "bfloat16")
            b = T.alloc_shared((20, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 20):
                a[i, j] = T.exp(a[i, j])
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    exploration = ttx.explore(kernel)
    (mask,) = [note for note in said(exploration.plan) if "masked" in note]
    assert mask.startswith("a_masked: the product of line ")
    assert "the padding of a beyond 20 is not known to be 0" in mask
    assert exploration.check(), str(exploration.check())
    assert exploration.run().passed


def test_product_over_padding_that_stays_zero() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 20), "bfloat16"), B: T.Tensor((20, 32), "bfloat16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 20), "bfloat16")
            b = T.alloc_shared((20, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 20):
                a[i, j] = T.max(a[i, j] * 2.0, T.abs(a[i, j]))
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    exploration = ttx.explore(kernel)
    assert exploration.check(), str(exploration.check())
    assert exploration.run().passed


def test_padding_in_the_plan() -> None:
    plan: Plan = ttx.explore(exponent((31, 64), (32, 32))).plan
    assert [(one.padded_shape, one.padding) for one in plan.layouts] == [((32, 64), "zero"), ((32, 64), "any")]
    whole = ttx.explore(copied((64, 64), (32, 32))).plan
    assert {one.padding for one in whole.layouts} == {"none"}


@pytest.mark.parametrize("target", ["wormhole_n300", "blackhole_p100"])
@pytest.mark.parametrize("size", [1, 31, 33, 4097])
def test_awkward_sizes_against_numpy(size: int, target: str) -> None:
    """Every element is right and none is missing, with numbers that are no products of the same code."""
    values = np.arange(size, dtype=np.float32) % 251
    run = ttx.explore(vector(size, 64), target=target).run([values % 100])
    np.testing.assert_array_equal(run.outputs[0].astype(np.float32), values % 100 * 2 + 1)
    matrix = values[None, :] - np.arange(33, dtype=np.float32)[:, None]
    run = ttx.explore(copied((33, size), (32, 64), "float32"), target=target).run([matrix])
    np.testing.assert_array_equal(run.outputs[0], matrix)


def test_gemm_with_tails_against_numpy() -> None:
    exploration = ttx.explore(product(100, 70, 50, 64, 64, 32))
    a, b = (np.round(one.astype(np.float32) * 2) for one in exploration.inputs())
    np.testing.assert_array_equal(exploration.run([a, b]).outputs[0], a @ b)


def test_tiles_beyond_the_end_in_every_block() -> None:
    """The verifier follows each turn of a loop into one arm: a tile is read, or set to zeros."""
    exploration = ttx.explore(product(31, 33, 1, 128, 128, 32))
    assert exploration.check(), str(exploration.check())
    assert "c < 2" in exploration.code["reader"]


def test_blocks_inside_are_not_tested() -> None:
    """A bounds test is made only where a block can reach beyond the last tile."""
    assert "if (" not in ttx.explore(product(96, 64, 64, 32, 32, 32)).code["reader"]
    reader = ttx.explore(product(100, 70, 50, 64, 96, 32)).code["reader"]
    assert "if (" not in reader
    reader = ttx.explore(product(90, 70, 50, 128, 64, 32)).code["reader"]
    assert "if (by * 4 + r < 3)" in reader
    assert "noc.async_write_zeros(a_buffer, a_page_bytes" in reader
    assert "if (bx * 2 + c < 3)" in reader


@pytest.mark.parametrize(("policy", "target"), [("contiguous", "wormhole_n150"), ("rectangular", "blackhole_p150")])
def test_one_lowering_at_awkward_sizes(policy: str, target: str) -> None:
    """Accumulators larger than DST go through L1, in a loop whose length no pass knows."""
    exploration = ttx.explore(any_size_gemm(96), target=target, options={"policy": policy})
    for m, n, k in ((1, 31, 33), (33, 1, 50), (100, 70, 31), (1025, 33, 1)):
        sized = exploration.with_sizes(m=m, n=n, k=k)
        assert all(sized.code[role] == exploration.code[role] for role in ("reader", "compute", "writer"))
        a, b = (np.round(one.astype(np.float32)) for one in sized.inputs())
        np.testing.assert_array_equal(exploration.run([a, b]).outputs[0], a @ b)


def test_sizes_as_tvm_variables(tmp_path: Path) -> None:
    """Some example files name their sizes with tvm.te.var."""
    file = tmp_path / "rows.py"
    file.write_text("""
import tilelang.language as T
from tilelang import tvm

m = tvm.te.var("m")

@T.prim_func
def rows(A: T.Tensor((m, 40), "bfloat16"), B: T.Tensor((m, 40), "bfloat16")):
    with T.Kernel(T.ceildiv(m, 64)) as bx:
        a = T.alloc_shared((64, 40), "bfloat16")
        T.copy(A[bx * 64, 0], a)
        T.copy(a, B[bx * 64, 0])
""")
    values = np.arange(90 * 40, dtype=np.float32).reshape(90, 40) % 199
    run = ttx.explore(f"{file}::rows").run([values])
    np.testing.assert_array_equal(run.outputs[0].astype(np.float32), values)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_loops_in_another_order_than_the_axes(dtype: str) -> None:
    """The turns of T.Parallel have no order: its variables may come in any."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 5, 40), dtype), B: T.Tensor((3, 5, 40), dtype), C: T.Tensor((3, 5, 40), dtype)):
        with T.Kernel(1):
            a, b, c = (T.alloc_shared((3, 5, 40), dtype) for _ in range(3))
            T.copy(A, a)
            for i, n, j in T.Parallel(5, 3, 40):
                b[n, i, j] = a[n, i, j] * 2
            T.fill(c, 7)
            for j, i, n in T.Parallel(40, 5, 3):
                if n < 2 and j >= i:
                    c[n, i, j] = a[n, 4 - i, j] + b[n, i, j] * n
            T.copy(b, B)
            T.copy(c, C)

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    array = np.random.default_rng(3).integers(-9, 9, (3, 5, 40)).astype(dtype)
    check = exploration.check([array])
    assert check, str(check)
    run = exploration.run([array])
    assert run.passed, run.message
    n, i, j = np.indices((3, 5, 40))
    np.testing.assert_array_equal(np.asarray(run.outputs[0]), array * 2)
    chosen = np.where((n < 2) & (j >= i), array[:, ::-1] + array * 2 * n, 7)
    np.testing.assert_array_equal(np.asarray(run.outputs[1]), chosen)
