# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# ruff: noqa: F841
"""Expressions of T.Parallel: what is refused, which engine computes a value, what is computed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import tirx

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.expressions import binary, common_parts, masked, unary
from ttexplore.analysis.tile_values import ValueGraph
from ttexplore.errors import KernelError, TTExploreError, Unsupported, UsageError
from ttexplore.exploration import Exploration


def refused(kernel: Any, kind: type[TTExploreError], **arguments: Any) -> TTExploreError:
    exploration = ttx.explore(kernel, **arguments)
    assert isinstance(exploration.error, kind), repr(exploration.error)
    assert exploration.error.hint
    assert exploration.error.span is not None
    return exploration.error


def tile_operations(exploration: Exploration) -> list[str]:
    """The tile operations after C2, in order."""
    assert exploration.error is None, str(exploration.error)
    return re.findall(r"tt\.(\w*tiles?\w*)\(", exploration.steps["C2"].listing.text)


def reasons(exploration: Exploration) -> str:
    assert exploration.plan.compute is not None
    return "\n".join(exploration.plan.compute.reasons)


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (lambda x: T.atan(x), "no rule lowers atan inside T.Parallel", "T.if_then_else"),
        (lambda x: T.isnan(x), "no rule lowers isnan inside T.Parallel", "T.if_then_else"),
        (lambda x: T.cast(x, "float64"), "a cast from float32 to float64 inside T.Parallel", "cast to float32"),
        (lambda x: ~T.cast(x, "uint32"), "a cast from float32 to uint32 inside T.Parallel", "cast to float32"),
        (lambda x: T.cast(x, "int32") % 6, "a division of elements by 6", "power of two"),
        (
            lambda x: T.cast(T.reinterpret(x, "uint32") // 4, "int32"),
            "arithmetic in uint32 on elements",
            "compute in int32",
        ),
    ],
)
def test_what_has_no_operation(function: Callable[[Any], Any], message: str, hint: str) -> None:
    error = refused(unary(function), Unsupported)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (lambda x, r, c, bx, by: x + T.cast(r * r * r * c, "float32"), "is between 0 and 260144641", "keep index"),
        (lambda x, r, c, bx, by: x + T.cast(T.cast(r, "uint32"), "float32"), "a cast of int32 to uint32",
         "read its bits"),
        (lambda x, r, c, bx, by: x + T.cast(r * r * c * c // 5 % 3, "float32"), "divides a number between 0 and",
         "divide numbers between -2097152 and 2097152"),
        (lambda x, r, c, bx, by: x + T.cast(T.max(r * c, 0) * r * c + 1 - T.max(r * c, 0) * r * c, "float32"),
         "is between -", "keep index values within 16777216"),
        (lambda x, r, c, bx, by: x + T.cast(c // (bx + 1), "float32"), "a division of loop variables by bx + 1",
         "divide by a positive constant"),
        (lambda x, r, c, bx, by: x + T.cast(bx // by, "float32"), "divides by by, which can be 0",
         "divide by a positive number"),
    ],
)  # fmt: skip
def test_whole_numbers_that_cannot_be_computed(function: Callable[..., Any], message: str, hint: str) -> None:
    kernel = masked(function)
    error = refused(kernel, Unsupported)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    "value",
    [
        lambda r, c, bx: (r - c) // 4,
        lambda r, c, bx: (c - 9) // 4 * 100 + (r - 40) % 7,
        lambda r, c, bx: (c - 9) // 4 + (bx - 3) // 2 - (bx - 5) % 3,
        # Bounds of each variable for itself say that it may be negative, or large.
        lambda r, c, bx: (r - (bx - 3) + bx) % 2,
        lambda r, c, bx: (bx * 3000000 + c - bx * 3000000 - 70) // 6,
    ],
)
def test_divisions_of_negative_indices(value: Callable[..., Any]) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            for r, c in T.Parallel(64, 64):
                a[r, c] = T.if_then_else(value(r, c, bx) % 3 == 1, a[r, c], T.cast(value(r, c, bx), "float32"))
            T.copy(a, B[bx * 64, 0])

    exploration = ttx.explore(kernel)
    (a,) = exploration.inputs()
    row, column = np.indices(a.shape)
    wanted = value(row % 64, column, row // 64)
    assert exploration.check()
    np.testing.assert_array_equal(exploration.run().outputs[0], np.where(wanted % 3 == 1, a, wanted))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda r, c: r * 37 + c * 101 > 1500, "a comparison of index values in 16-bit DST"),
        (lambda r, c: r * c > 1500, "a comparison of index values in 16-bit DST"),
        (lambda r, c: r // 3 > 5, "a comparison of index values in 16-bit DST"),
        (lambda r, c: T.cast(r % 3, "float32") > 1.0, "a division of index values in 16-bit DST"),
    ],
)
def test_indices_that_16_bits_do_not_hold(condition: Callable[..., Any], message: str) -> None:
    """3 * r - c within a tile is exact in bfloat16, whatever the block adds; 101 * c is not."""
    kernel = masked(lambda x, r, c, bx, by: T.if_then_else(condition(r, c), x, -x), "bfloat16")
    error = refused(kernel, Unsupported, options={"accumulate_dtype": "bfloat16"})
    assert error.message == message
    small = masked(lambda x, r, c, bx, by: T.if_then_else(r * 3 - c + 1000 * bx > 50, x, -x), "bfloat16")
    run = ttx.explore(small, options={"accumulate_dtype": "bfloat16"}).run()
    assert run.passed, run.message


@pytest.mark.parametrize("size", [5, 70])
def test_masks_of_sizes_that_are_not_known(size: int) -> None:
    """An index is compared with a size exactly, however large both may become."""
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((32, m), "float32"), B: T.Tensor((32, m), "float32")):
        with T.Kernel(T.ceildiv(m, 64)) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[0, bx * 64], a)
            for i, j in T.Parallel(32, 64):
                column = bx * 64 + j
                a[i, j] = T.if_then_else(column < m - 3, a[i, j], T.if_then_else(i + m - 9 >= column, 1.0, 2.0))
            T.copy(a, B[0, bx * 64])

    exploration = ttx.explore(kernel, sizes={"m": size})
    (a,) = exploration.inputs()
    row, column = np.indices(a.shape)
    wanted = np.where(column < size - 3, a, np.where(row + size - 9 >= column, 1.0, 2.0))
    assert exploration.check()
    np.testing.assert_array_equal(exploration.run().outputs[0], wanted)


def test_index_that_is_no_role() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), P: T.Tensor((32, 64), "int32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            places = T.alloc_shared((32, 64), "int32")
            T.copy(A, a)
            T.copy(P, places)
            for i, j in T.Parallel(32, 64):
                b[i, j] = a[i, places[i, j]]
            T.copy(b, B)

    error = refused(kernel, Unsupported)
    assert "a[i, places[i, j]] in a T.Parallel over (i, j)" in error.message
    assert "a block transposed at [j, i]" in error.hint


def test_vector_that_is_too_short() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), V: T.Tensor((32,), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 64), "float32")
            v = T.alloc_shared((32,), "float32")
            T.copy(A, a)
            T.copy(V, v)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + v[j]
            T.copy(a, B)

    assert "v has 32 elements along axis 0, but j reaches 63" in refused(kernel, KernelError).message


def test_block_that_is_stored_to_and_read_transposed() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = a[i, j] + a[j, i]
            T.copy(a, B)

    assert "one T.Parallel stores to a and reads it at other elements" in refused(kernel, Unsupported).message


def test_engine_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="there is no eltwise 'gpu'"):
        ttx.explore(unary(T.exp), options={"eltwise": "gpu"})


def test_fpu_for_bfloat16_and_sfpu_for_float32() -> None:
    fast = ttx.explore(binary(lambda x, y: x * y, "bfloat16"))
    assert tile_operations(fast) == ["mul_tiles", "pack_tile"]
    assert (
        "a * b: FPU, because both are bfloat16 circular buffers (32 cycles per tile; the SFPU would take 748"
        in reasons(fast)
    )
    whole = ttx.explore(binary(lambda x, y: x * y))
    assert tile_operations(whole) == ["copy_tile", "copy_tile", "mul_binary_tile", "pack_tile"]
    assert "a * b: SFPU, which keeps float32 exact" in reasons(whole)


def test_sfpu_where_a_comparison_jumps() -> None:
    kernel = binary(lambda x, y: T.if_then_else(x + y > 1.0, x, y), "bfloat16")
    assert "add_binary_tile" in tile_operations(ttx.explore(kernel))
    assert "a + b: SFPU, because the result is compared" in reasons(ttx.explore(kernel))
    assert "add_tiles" in tile_operations(ttx.explore(kernel, options={"eltwise": "fpu"}))


def test_sfpu_by_option_has_a_wide_dst() -> None:
    exploration = ttx.explore(binary(lambda x, y: x + y, "bfloat16"), options={"eltwise": "sfpu"})
    assert tile_operations(exploration) == ["copy_tile", "copy_tile", "add_binary_tile", "pack_tile"]
    assert exploration.plan.compute is not None
    assert exploration.plan.compute.fp32_dest_acc_en
    assert exploration.run().passed


def test_common_parts_are_computed_once() -> None:
    found = tile_operations(ttx.explore(common_parts()))
    assert [found.count(name) for name in ("mul_binary_tile", "exp_tile", "sqrt_tile", "abs_tile")] == [1, 1, 1, 1]


def test_names_do_not_make_an_expression_grow() -> None:
    """Names that are used twice: a tree would double with each."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                x1 = a[i, j] * (a[i, j] + 0.5)
                x2 = x1 * (x1 - 0.25)
                x3 = x2 * (x2 + 0.5)
                x4 = x3 * (x3 - 0.25)
                x5 = x4 * (x4 + 0.5)
                b[i, j] = x5 * (x5 - 0.25)
            T.copy(b, B)

    exploration = ttx.explore(kernel)
    assert tile_operations(exploration).count("mul_binary_tile") == 6
    assert len(exploration.steps["C1"].listing.text) < 2000
    assert exploration.check()


def test_narrow_casts_round_where_they_must() -> None:
    """A product that is rounded to bfloat16 and then scaled up: without the rounding every element differs."""
    kernel = unary(lambda x: (T.cast(T.cast(x, "bfloat16"), "float32") - x) * 256.0)
    exploration = ttx.explore(kernel)
    assert "typecast_fp32_to_bf16_tile" in tile_operations(exploration)
    (inputs,) = exploration.inputs()
    wanted = (np.float32(inputs.astype("bfloat16")) - inputs) * 256
    np.testing.assert_array_equal(exploration.run().outputs[0], wanted)
    stored = ttx.explore(unary(lambda x: T.cast(x * 2.0, "bfloat16"), "float32", "bfloat16"))
    assert "typecast_fp32_to_bf16_tile" not in tile_operations(stored)


def test_a_cast_to_an_integer_saturates() -> None:
    """Also where the integer becomes a number again, or is compared."""
    kernel = unary(lambda x: T.cast(T.cast(x * 1e9, "int32"), "float32") + T.if_then_else(T.cast(x, "int32") > 1, 1, 0))
    exploration = ttx.explore(kernel)
    (inputs,) = exploration.inputs()
    inputs = inputs * 4
    saturated = np.clip(np.trunc(inputs.astype(np.float64) * 1e9), -(2**31), 2**31 - 1)
    assert (np.abs(saturated) >= 2**31 - 1).any()
    wanted = saturated + (np.trunc(inputs) > 1)
    np.testing.assert_allclose(exploration.run([inputs]).outputs[0], wanted, rtol=3e-7)
    np.testing.assert_allclose(exploration.reference([inputs])[0], wanted, rtol=3e-7)


def test_erf_is_good_to_float32_and_part_of_gelu() -> None:
    exploration = ttx.explore(unary(lambda x: T.erf(x)))
    assert np.abs(exploration.run().outputs[0] - exploration.reference()[0]).max() < 1e-6
    gelu = ttx.explore(unary(lambda x: 0.5 * x * (1.0 + T.erf(x / 1.4142135623730951))))
    assert tile_operations(gelu) == ["copy_tile", "gelu_tile", "pack_tile"]
    assert np.abs(gelu.run().outputs[0] - gelu.reference()[0]).max() < 2e-6


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_flipped_bits_keep_their_dtype(dtype: str) -> None:
    exploration = ttx.explore(unary(lambda x: ~x, dtype))
    values = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(dtype)
    assert exploration.check([values])
    np.testing.assert_array_equal(exploration.run([values]).outputs[0], ~values)


def test_casts_of_indices_wrap_around() -> None:
    """What a cast changes is no index any more: not the byte of a number, not whether it is 0."""

    def function(x: Any, row: Any, column: Any, bx: Any, by: Any) -> Any:
        byte, is_set = T.cast(row * 128 + column, "uint8"), T.cast(T.cast(bx + 2 * column, "bool"), "int32")
        return T.cast(byte, "float32") + T.cast(is_set, "float32") * 1000.0 + x * 0.0

    exploration = ttx.explore(masked(function))
    row, column = np.indices((128, 128))
    wanted = (row * 128 + column) % 256 + 1000.0 * (column // 64 + 2 * column != 0)
    assert exploration.check()
    np.testing.assert_array_equal(exploration.run().outputs[0], wanted)


def test_numbers_as_conditions() -> None:
    kernel = unary(lambda x: T.if_then_else(T.logical_and(x, T.logical_not(x - 2.0)), 1.0, T.if_then_else(x, 2.0, 3.0)))
    exploration = ttx.explore(kernel)
    values = (np.arange(64 * 64).reshape(64, 64) % 4).astype(np.float32)
    assert exploration.check([values])
    np.testing.assert_array_equal(
        exploration.run([values]).outputs[0], np.array([3.0, 2.0, 1.0, 2.0])[values.astype(int)]
    )


def test_constants_of_one_value_and_two_dtypes() -> None:
    """For TVM they are equal."""
    kernel = unary(
        lambda x: T.if_then_else(x > 12, x & T.cast(12, "uint8"), x) | T.cast(T.cast(x, "int32") & 12, "uint8"), "uint8"
    )
    exploration = ttx.explore(kernel)
    values = np.arange(64 * 64).reshape(64, 64).astype(np.uint8)
    assert exploration.check([values])
    wanted = np.where(values > 12, values & 12, values) | (values & 12)
    np.testing.assert_array_equal(exploration.run([values]).outputs[0], wanted)


def test_bfloat16_constants_are_rounded() -> None:
    exploration = ttx.explore(unary(lambda x: x * 0.0 + T.cast(T.bfloat16(0.1), "float32")))
    np.testing.assert_array_equal(exploration.run().outputs[0], np.full((64, 64), 0.10009765625, np.float32))


def test_values_are_folded_and_simplified() -> None:
    graph = ValueGraph()
    x = graph.axis(0)

    def number(value: float) -> int:
        return graph.number(value)

    assert graph.make("add", number(1.5), number(2.0)) == number(3.5)
    assert graph.make("mul", x, number(1.0)) == x
    assert graph.make("add", number(0.0), x) == x
    assert graph[graph.make("sub", number(-0.0), x)].op == "negative"
    assert graph[graph.make("div", number(1.0), graph.make("sqrt", x))].op == "rsqrt"
    assert graph[graph.make("mul", x, graph.make("sigmoid", x))].op == "silu"
    clamped = graph.make("min", graph.make("max", x, number(-1.0)), number(2.0))
    assert graph[clamped].op == "clamp"
    assert clamped == graph.make("max", graph.make("min", x, number(2.0)), number(-1.0))
    assert graph[graph.make("max", x, number(0.0))].op == "relu"
    assert graph[graph.make("max", x, number(-0.0))].op == "max"
    assert number(float("nan")) == number(float("nan"))
    assert graph.make("gt", number(1.0), x) == graph.make("lt", x, number(1.0))
    assert graph[graph.make("le", number(0.0), x)].op == "gez"
    assert graph.make("where", number(1.0), x, number(0.0)) == x
    assert graph.make("to_bfloat16", number(1.01)) == number(1.0078125)
    assert graph.make("to_bfloat16", graph.make("abs", x)) == graph.make("abs", x)
    assert graph.make("round_half_away", number(-2.5)) == number(-3.0)
    assert graph[graph.make("round_half_away", number(-0.3))].constant.hex() == "-0x0.0p+0"
    for ties, rounded in ((0.5, 0.0), (1.5, 2.0), (-0.5, 0.0)):
        assert graph[graph.make("round", number(ties))].constant == rounded


def test_dst_of_16_bits_needs_no_rounding_but_of_numbers() -> None:
    """A number is rounded to nearest when it is written into the program: the 16 bits of DST would cut it."""
    wide, narrow = ValueGraph(), ValueGraph(is_wide=False)
    for graph in (wide, narrow):
        rounded = graph.make("to_bfloat16", graph.number(0.1))
        assert graph[rounded].constant == 0.10009765625
    a = tirx.decl_buffer((32, 32), "float32", name="a")
    inputs = [graph.load(a, "element", 0, "float32") for graph in (wide, narrow)]
    assert wide[wide.make("to_bfloat16", inputs[0])].op == "to_bfloat16"
    assert narrow.make("to_bfloat16", inputs[1]) == inputs[1]
