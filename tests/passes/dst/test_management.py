# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# ruff: noqa: F841, RUF059
"""What DST management decides: sections, spills, sub-blocks, epilogues; and that it is right whatever it decides."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from tests.corpus.gemms import (
    attention_like,
    gated,
    mixed,
    nested_loops,
    one_accumulator,
    residual,
    starts_from_a_tensor,
)
from ttexplore.errors import ResourceError, UsageError
from ttexplore.exploration import Exploration


def lowered(kernel: Any, **options: Any) -> Exploration:
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    return exploration


def right(exploration: Exploration) -> None:
    check = exploration.check()
    assert check, str(check)
    run = exploration.run()
    assert run.passed, run.message


def lines(exploration: Exploration, text: str) -> int:
    """How many lines of the emitted compute kernel have a text in them."""
    return sum(text in line for line in exploration.code["compute"].text.splitlines())


# One step of a straight line: an operation, its two operands (-1 and -2 are the inputs, others earlier steps), its
# result: a new value, or an earlier one that it replaces.
Steps = list[tuple[str, int, int, int]]


def straight_line(steps: Steps, dtype: str) -> Any:
    """A kernel that runs the steps over whole blocks, each in a T.Parallel of its own."""
    count = len(steps)

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 128), dtype), B: T.Tensor((32, 128), dtype), C: T.Tensor((32, 128), dtype),
        D: T.Tensor((32, 128), dtype),
    ):  # fmt: skip
        with T.Kernel(2, 1) as (bx, by):
            a = T.alloc_shared((32, 64), dtype)
            b = T.alloc_shared((32, 64), dtype)
            v = [T.alloc_fragment((32, 64), "float32") for _ in range(count)]
            T.copy(A[0, bx * 64], a)
            T.copy(B[0, bx * 64], b)
            for kind, x, y, t in steps:
                for i, j in T.Parallel(32, 64):
                    left = a[i, j] if x == -1 else b[i, j] if x == -2 else v[x][i, j]
                    right = a[i, j] if y == -1 else b[i, j] if y == -2 else v[y][i, j]
                    if kind == "add":
                        v[t][i, j] = left + right
                    elif kind == "mul":
                        v[t][i, j] = left * right * 0.25
                    elif kind == "exp":
                        v[t][i, j] = T.exp(T.min(left, 1.0)) - right
                    else:
                        v[t][i, j] = T.max(left * 0.5, right)
            T.copy(v[steps[-1][3]], C[0, bx * 64])
            T.copy(v[steps[count // 2][3]], D[0, bx * 64])

    return kernel


@st.composite
def random_steps(draw: st.DrawFn) -> Steps:
    steps: Steps = []
    made: list[int] = []
    for number in range(draw(st.integers(3, 40))):
        operands = st.sampled_from([-1, -2, *made])
        new = not made or draw(st.integers(0, 5)) > 0
        target = number if new else draw(st.sampled_from(made))
        steps.append((draw(st.sampled_from(["add", "mul", "exp", "max"])), draw(operands), draw(operands), target))
        made += [target] if new else []
    return steps


@settings(max_examples=6, deadline=None, derandomize=True)
@given(random_steps(), st.sampled_from(["float32", "bfloat16"]))
def test_any_straight_line_of_expressions_is_right(steps: Steps, dtype: str) -> None:
    right(lowered(straight_line(steps, dtype)))


def balanced_tree() -> Any:
    """A product of 32 values that all differ: each level of the tree needs one tile more."""

    def tree(x: Any, y: Any, depth: int, place: int = 1) -> Any:
        if depth == 0:
            return T.max(x * (1.0 + place / 64), y)
        return tree(x, y, depth - 1, 2 * place) * tree(x, y, depth - 1, 2 * place + 1)

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                c[i, j] = tree(a[i, j], b[i, j], 5)
            T.copy(c, C)

    return kernel


def test_an_expression_that_needs_more_tiles_than_there_are() -> None:
    """What DST cannot hold waits in circular buffers, which count for L1; the plan says which and why."""
    exploration = lowered(balanced_tree())
    right(exploration)
    spilled = [buffer for buffer in exploration.plan.buffers if "spilled" in buffer.name]
    assert spilled
    assert all(buffer.reason == "more values are alive at once than DST holds" for buffer in spilled)
    assert all(buffer.index is not None and buffer.producer == buffer.consumer == "compute" for buffer in spilled)
    assert exploration.plan.compute is not None
    assert any("are spilled to circular buffers" in reason for reason in exploration.plan.compute.reasons)


def test_inputs_are_copied_right_before_their_use() -> None:
    """A sum of eight blocks needs three tiles of DST at once, and no section but one."""
    numbers = list(range(8))

    @T.prim_func
    def kernel(A: T.Tensor((8, 32, 128), "float32"), C: T.Tensor((32, 128), "float32")):
        with T.Kernel(1) as bx:
            a = [T.alloc_shared((32, 128), "float32") for _ in range(8)]
            c = T.alloc_fragment((32, 128), "float32")
            for n in numbers:
                T.copy(A[n, 0, 0], a[n])
            for i, j in T.Parallel(32, 128):
                c[i, j] = ((a[0][i, j] + a[1][i, j]) + (a[2][i, j] + a[3][i, j])) + (
                    (a[4][i, j] + a[5][i, j]) + (a[6][i, j] + a[7][i, j])
                )
            T.copy(c, C)

    exploration = lowered(kernel)
    right(exploration)
    assert not [buffer for buffer in exploration.plan.buffers if "spilled" in buffer.name]
    assert lines(exploration, "tile_regs_acquire") == 1


# Epilogues and sub-blocks


def test_the_epilogue_runs_in_the_last_turn() -> None:
    """128x128 does not fit DST: partial sums go to L1 and back for all turns but the last."""
    fused = lowered(gemm(128, 128, 128, 128, 128, 32, bias=True, relu=True), cores=(1, 1))
    separate = lowered(gemm(128, 128, 128, 128, 128, 32, bias=True, relu=True), cores=(1, 1), epilogue="separate")
    right(fused)
    right(separate)
    assert lines(fused, "matmul_block(") == 2
    assert lines(separate, "matmul_block(") == 1
    assert "kb < 3" in fused.code["compute"].text
    assert "kb < 4" in separate.code["compute"].text
    for exploration, wanted in ((fused, "fused: the last iteration of kb"), (separate, "separate, as requested")):
        assert exploration.plan.compute is not None
        assert any(wanted in reason for reason in exploration.plan.compute.reasons)


def test_an_accumulator_that_fits_stays_though_its_epilogue_needs_more() -> None:
    """64x64 in float32 fills DST; bias and relu come from the buffer, but only once."""
    exploration = lowered(gemm(64, 64, 128, 64, 64, 32, bias=True, relu=True))
    right(exploration)
    text = exploration.code["compute"].text
    loop = text[text.index("for (uint32_t kb") :]
    loop = loop[: loop.index("\n        }")]
    assert "pack_tile" not in loop
    assert exploration.plan.buffer("c_partials").block_pages == 4


@pytest.mark.parametrize("subblock", [(1, 2), (2, 2), (4, 1), (1, 1)])
def test_sub_blocks_as_asked_for(subblock: tuple[int, int]) -> None:
    exploration = lowered(gemm(128, 64, 96, 128, 64, 32, relu=True), subblock=subblock)
    right(exploration)
    rows, columns = subblock
    assert f", 0, {columns}, {rows}, 1);" in exploration.code["compute"].text


def test_sub_blocks_that_do_not_fit() -> None:
    error = ttx.explore(gemm(128, 64, 96, 128, 64, 32), options={"subblock": (3, 1)}).error
    assert isinstance(error, UsageError)
    assert "sub-blocks of 3x1 tiles do not divide the block of 4x2" in error.message
    assert "(2, 2)" in error.hint
    assert error.span is not None
    error = ttx.explore(gemm(128, 64, 96, 128, 64, 32), options={"subblock": (4, 2)}).error
    assert isinstance(error, ResourceError)
    assert "a sub-block of 4x2 tiles is 8 tiles; DST holds 4" in error.message
    assert "(4, 1)" in error.hint


# Products of all kinds

PRODUCTS: dict[str, Any] = {
    "two into one accumulator": one_accumulator,
    "chained through a fragment": lambda: attention_like(through_fragment=True),
    "two whose results meet": gated,
    "from a tensor": lambda: starts_from_a_tensor(64),
    "from a tensor, spilled": lambda: starts_from_a_tensor(128),
    "bf16 by fp32": lambda: mixed("bfloat16", "float32"),
    "fp16 by bf16": lambda: mixed("float16", "bfloat16", tb=True),
    "one row of tiles": lambda: mixed("bfloat16", "bfloat16", bm=32, bn=256),
    "nested loops in DST": lambda: nested_loops(64),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    right(lowered(PRODUCTS[name]()))


@pytest.mark.parametrize("accumulate", ["reload", "l1"])
@pytest.mark.parametrize("epilogue", ["fused", "separate"])
def test_ways_to_accumulate_with_an_epilogue(accumulate: str, epilogue: str) -> None:
    right(lowered(gemm(64, 128, 96, 64, 128, 32, relu=True), accumulate=accumulate, epilogue=epilogue))


@pytest.mark.parametrize(
    ("dtype", "full", "tiles"), [("bfloat16", False, 8), ("bfloat16", True, 16), ("float32", True, 8)]
)
def test_how_much_dst_holds(dtype: str, full: bool, tiles: int) -> None:
    """16 bits hold twice as many tiles as 32, full synchronisation twice as many as half."""
    exploration = lowered(gemm(64, 128, 64, 64, 128, 32), accumulate_dtype=dtype, dst_full_sync=full)
    right(exploration)
    compute = exploration.plan.compute
    assert compute is not None
    assert compute.dst_tiles == tiles
    assert compute.dst_full_sync_en == full
    # 64x128 is 8 tiles, which all of these hold: nothing is spilled.
    assert not [buffer for buffer in exploration.plan.buffers if "partials" in buffer.name]
    assert any("as requested" in reason for reason in compute.reasons)
    assert exploration.plan.precisions == ("low_fidelity" if dtype == "bfloat16" else "full",)


def test_a_scaled_product_inside_of_a_loop_starts_from_zero_in_each_turn() -> None:
    """The FPU's product of two blocks adds to DST, so it cannot stay in the section of the whole loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 128), "bfloat16"), B: T.Tensor((32, 128), "bfloat16"), C: T.Tensor((32, 32), "float32")
    ):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            b = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(4):
                T.copy(A[0, k * 32], a)
                T.copy(B[0, k * 32], b)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j] * b[i, j]
            T.copy(c, C)

    right(lowered(kernel, eltwise="fpu"))


def test_a_loop_that_looks_at_a_result_and_one_that_makes_it_anew() -> None:
    """A block that each turn makes anew keeps the last one; a loop that only reads it leaves it where it is."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 96), "bfloat16"), B: T.Tensor((96, 128), "bfloat16"), C: T.Tensor((2, 64, 128), "bfloat16"),
        D: T.Tensor((64, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 128), "bfloat16")
            c = T.alloc_fragment((64, 128), "float32")
            for k in T.serial(3):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, clear_accum=True)
            for n in T.serial(2):
                T.copy(c, C[n, 0, 0])
            for i, j in T.Parallel(64, 128):
                c[i, j] = c[i, j] * 2.0
            T.copy(c, D)

    exploration = lowered(kernel, epilogue="separate")
    right(exploration)
    assert lines(exploration, "c_partials_buffer.wait_front(8)") == 2


def products_in_turn(count: int) -> Any:
    """Products one after another, each in a fragment of its own that DST cannot hold."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, 96), "bfloat16"), B: T.Tensor((96, 96), "bfloat16"),
        C: T.Tensor((count, 96, 96), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((96, 32), "bfloat16")
            b = T.alloc_shared((32, 96), "bfloat16")
            results = [T.alloc_fragment((96, 96), "float32") for _ in range(count)]
            for number, c in enumerate(results):
                T.clear(c)
                for kb in T.serial(3):
                    T.copy(A[0, kb * 32], a)
                    T.copy(B[kb * 32, 0], b)
                    T.gemm(a, b, c)
                T.copy(c, C[number, 0, 0])

    return kernel


def test_values_that_are_not_alive_together_share_a_buffer() -> None:
    exploration = lowered(products_in_turn(4), cores=(1, 1))
    right(exploration)
    spills = [buffer for buffer in exploration.plan.buffers if buffer.producer == buffer.consumer == "compute"]
    assert [buffer.block_pages for buffer in spills] == [9]


def many_values(count: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 64):
                values = [T.exp(a[i, j] * number) for number in range(1, count + 1)]
                total = values[0]
                for value in values[1:]:
                    total = total * 0.5 + value
                for value in values:
                    total = T.max(total, value)
                b[i, j] = total
            T.copy(b, B)

    return kernel


def test_sub_blocks_are_smaller_where_l1_is_full() -> None:
    for depth, tiles in ((1, 2), (157, 1)):
        exploration = lowered(many_values(12), cores=(1, 1), cb_depth={"a": depth})
        right(exploration)
        spills = [buffer for buffer in exploration.plan.buffers if buffer.producer == buffer.consumer == "compute"]
        assert {buffer.block_pages for buffer in spills} == {tiles}
        compute = exploration.plan.compute
        assert compute is not None
        reason = "sub-blocks of at most 1 tiles, because L1 has no room for larger ones"
        assert (reason in compute.reasons) == (tiles == 1)


def test_more_values_at_once_than_circular_buffers() -> None:
    error = ttx.explore(many_values(40)).error
    assert isinstance(error, ResourceError)
    assert error.message == "43 circular buffers are needed; a core of wormhole_n150 has 32"
    assert error.hint.endswith("or keep fewer values of a T.Parallel at a time: compute each right before its use")


def test_an_epilogue_after_nested_loops_is_fused() -> None:
    exploration = lowered(nested_loops(128), cores=(1, 1))
    right(exploration)
    compute = exploration.plan.compute
    assert compute is not None
    assert "epilogue of c fused: the last iteration of outer leaves it in DST" in compute.reasons


def test_a_float32_factor_that_is_an_addend_too_is_added_whole() -> None:
    """What the FPU cuts to TF32 is a copy of it; the sum is that of float32, to the last bit."""
    exploration = lowered(residual())
    right(exploration)
    reasons = {one.name: one.reason for one in exploration.plan.buffers if one.reason}
    assert reasons == {
        "a_operand": "the FPU reads float32 as TF32, and a is also used exactly",
        "c_partials": "c is spilled while other work uses DST",
    }
    factor = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    run = exploration.run([factor, np.zeros((64, 64), np.float32)])
    np.testing.assert_array_equal(run.outputs[0], factor)


def rescaled(rows: int, columns: int, depth: int, dtype: str) -> Any:
    """Products whose running sum shrinks by a number of each row, as in attention: the shrinking needs three tiles of
    DST for each of the sum, the product one."""
    m, n, k = 32 * rows, 32 * columns, 32 * depth

    @T.prim_func
    def main(
        A: T.Tensor((m, 6 * k), dtype), B: T.Tensor((6 * k, n), dtype), S: T.Tensor((3, m), "float32"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a = T.alloc_shared((m, k), dtype)
            b = T.alloc_shared((k, n), dtype)
            s = T.alloc_shared((m,), "float32")
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            for step in T.serial(3):
                T.copy(S[step, 0], s)
                for i, j in T.Parallel(m, n):
                    c[i, j] = c[i, j] * s[i] + c[i, j] * c[i, j]
                for part in T.serial(2):
                    T.copy(A[0, (step * 2 + part) * k], a)
                    T.copy(B[(step * 2 + part) * k, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "dtype", "options", "product"),
    [
        # The sub-block of the product in the inner loop: columns and rows. That of 2x3 tiles is no part of a row, and
        # the same for all operations.
        (4, 4, 2, "bfloat16", {}, (4, 1)),
        (2, 3, 1, "bfloat16", {}, (1, 2)),
        (4, 2, 1, "bfloat16", {}, (2, 2)),
        (5, 1, 2, "float32", {}, (1, 1)),
        (4, 4, 1, "bfloat16", {"accumulate": "l1"}, (4, 1)),
        (3, 8, 1, "bfloat16", {"dst_full_sync": True}, (8, 1)),
        (4, 4, 1, "bfloat16", {"subblock": (1, 2)}, (2, 1)),
    ],
)
def test_a_product_has_larger_sub_blocks_than_operations_of_more_values(
    rows: int, columns: int, depth: int, dtype: str, options: dict[str, Any], product: tuple[int, int]
) -> None:
    exploration = lowered(rescaled(rows, columns, depth, dtype), **options)
    calls = re.findall(r"matmul_block\(.*, (\d+), (\d+), \d+\);", exploration.code["compute"].text)
    assert product in {(int(across), int(down)) for across, down in calls}
    rng = np.random.default_rng(rows * 8 + columns)
    # Whole numbers, small enough to be exact in every format.
    A, B = (rng.integers(-1, 2, shape) for shape in ((32 * rows, 192 * depth), (192 * depth, 32 * columns)))
    S = rng.integers(-1, 2, (3, 32 * rows))
    expected = np.zeros((32 * rows, 32 * columns))
    A *= rng.random(A.shape) < 0.05
    for step in range(3):
        part = slice(64 * depth * step, 64 * depth * (step + 1))
        expected = expected * S[step][:, None] + expected * expected + A[:, part] @ B[part]
    inputs = [A.astype(np.float32), B.astype(np.float32), S.astype(np.float32)]
    run = exploration.run(inputs=inputs)
    assert run.passed, run.message
    assert np.allclose(run.outputs[0], expected, rtol=2e-3, atol=1e-3)
    assert exploration.check()
