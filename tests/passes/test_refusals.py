# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
# ruff: noqa: RUF059, F841
"""What is refused: each with the kernel's line, the number and a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from ttexplore.errors import KernelError, ResourceError, TTExploreError, Unsupported, UsageError


def refused(kernel: Any, kind: type[TTExploreError], **arguments: Any) -> TTExploreError:
    """The error of a pass, or of an option itself."""
    try:
        error = ttx.explore(kernel, **arguments).error
    except TTExploreError as raised:
        error = raised
    assert isinstance(error, kind), repr(error)
    assert error.hint
    return error


def test_block_that_does_not_fit_l1() -> None:
    error = refused(gemm(2048, 2048, 2048, 1024, 1024, 1024), ResourceError)
    assert "B of L1; a core of wormhole_n150 has 1,393,312 B" in error.message
    assert "tiles x" in error.message
    assert error.span is not None


def test_unsupported_dtype() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float64"), B: T.Tensor((64, 64), "float64")):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 64), "float64")
            T.copy(A, a)
            T.copy(a, B)

    error = refused(kernel, Unsupported)
    assert "A is float64: no tile format supports this dtype" in error.message


def test_stores_through_a_view_that_end_inside_of_a_row() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((30, 24), "float32"), B: T.Tensor((5, 6, 24), "float32")):
        with T.Kernel(2) as bx:
            rows = T.Tensor((30, 24), "float32", B.data)
            for i, j in T.Parallel(16, 24):
                if bx * 16 + i < 30:
                    rows[bx * 16 + i, j] = A[bx * 16 + i, j]

    error = refused(kernel, Unsupported)
    assert "(bx * 16 + i) // 6 is no loop variable with something added to it" in error.message
    assert error.hint.startswith("through a view of another shape, T.copy a block on the chip: one that divides")


def test_unknown_expression() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                c[i, j] = T.atan(a[i, j])
            T.copy(c, B[by * 32, bx * 32])

    error = refused(kernel, Unsupported)
    assert "no rule lowers atan inside T.Parallel" in error.message
    assert error.span is not None


def test_read_before_write() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.gemm(a, a, c)
            T.copy(c, B)

    error = refused(kernel, KernelError)
    assert "c is read before anything is written to it" in error.message


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (
            "B[i * 2, j] = A[i, j]",
            "T.Parallel stores to B[i * 2, j]: of each 2 elements it leaves some as they are",
        ),
        (
            "B[i * i, j] = A[i, j]",
            "T.Parallel stores to B[i * i, j]: i * i is no loop variable with something added to it",
        ),
        ("B[i, i] = A[i, j]", "T.Parallel stores to B[i, i]: one variable runs along two axes"),
        ("B[i, bx] = A[i, j]", "T.Parallel stores to B[i, bx]: each turn of j stores to the same element"),
        ("if i > j:\n    B[i, j] = A[i, j]", "a store to the tensor B under the condition i > j"),
        ("if i * 2 <= 30:\n    B[i, j] = A[i, j]", "a store to the tensor B under the condition i * 2 <= 30"),
        (
            "B[i, j] = A[i, j]\nif i < 9:\n    B[i, j] = A[i + 1, j]",
            "T.Parallel stores to B[i, j]: other stores to these",
        ),
        ("if j + 1 > 1:\n    B[i, j] = A[i, j]", "a store to the tensor B under the condition j + 1 > 1"),
        ("if A[i, j] < 64:\n    B[i, j] = A[i, j]", "a store to the tensor B under the condition A[i, j] < "),
        ("for k in T.serial(bx + 1):\n    B[i, j] = A[i, j]", "a loop inside T.Parallel whose"),
        ("for k in T.serial(65):\n    B[i, j] = A[i, j]", "a loop of 65 turns inside T.Parallel"),
    ],
)
def test_elements_of_tensors_that_make_no_block(tmp_path: Path, store: str, message: str) -> None:
    lines = "\n".join(f"            {line}" for line in store.split("\n"))
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((32, 64), "bfloat16")):
    with T.Kernel(2) as bx:
        for i, j in T.Parallel(32, 64):
{lines}
""")
    error = refused(f"{file}::kernel", Unsupported)
    assert error.message.startswith(message)
    assert "a store" not in message or "if it compares one loop variable with an end: i < n" in error.hint
    assert error.span is not None
    assert error.span.line >= 5


@pytest.mark.parametrize(
    "condition",
    ["y <= 39", "y < 40", "39 >= bx * 32 + i", "y + 1 < 41", "y >= 0 and 40 > y", "bx * 32 + i <= 50 and j <= 63"],
)
def test_bounds_of_a_tensor_decide_what_is_stored(tmp_path: Path, condition: str) -> None:
    """However they are written: others are never stored."""
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((40, 64), "float32")):
    with T.Kernel(2) as bx:
        for i, j in T.Parallel(32, 64):
            y = bx * 32 + i
            if {condition}:
                B[y, j] = A[y, j] + 1.0
""")
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    (a,) = exploration.inputs()
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], a[:40] + 1)


def test_a_reduction_of_an_axis_of_one_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 64, 64), "bfloat16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as bx:
            r = T.alloc_fragment((64, 64), "float32")
            T.reduce_sum(A[bx : bx + 1, :, :], r, dim=0)
            T.copy(r, B)

    assert refused(kernel, Unsupported).message == "a reduction of A along an axis of one element"


def test_more_circular_buffers_than_a_core_has() -> None:
    """At the block that no number is left for, the 33rd."""

    @T.prim_func
    def kernel(A: T.Tensor((33 * 32, 32), "float32"), C: T.Tensor((33 * 32, 32), "float32")):
        with T.Kernel(1) as bx:
            for q in [*range(33)]:
                block = T.alloc_shared((32, 32), "float32")
                T.copy(A[q * 32, 0], block)
                T.copy(block, C[q * 32, 0])

    error = refused(kernel, ResourceError)
    assert "33 circular buffers are needed; a core of wormhole_n150 has 32" in error.message
    assert error.span is not None
    assert "alloc_shared" in Path(error.span.file).read_text(encoding="utf-8").split("\n")[error.span.line - 1]


def test_wrong_options() -> None:
    kernel = gemm()
    assert "there is no policy 'diagonal'" in refused(kernel, UsageError, options={"policy": "diagonal"}).message
    assert "stages is 0" in refused(kernel, UsageError, options={"stages": 0}).message
    assert "no math_fidelity 'HiFi9'" in refused(kernel, UsageError, options={"math_fidelity": "HiFi9"}).message
    assert "no accumulate 'disk'" in refused(kernel, UsageError, options={"accumulate": "disk"}).message
    assert "no accumulate_dtype 'fp8'" in refused(kernel, UsageError, options={"accumulate_dtype": "fp8"}).message
    assert "no epilogue 'later'" in refused(kernel, UsageError, options={"epilogue": "later"}).message
    assert (
        "9x9 cores are requested; wormhole_n150 has 8x8"
        in refused(kernel, ResourceError, options={"cores": (9, 9)}).message
    )
    with pytest.raises(UsageError, match="there is no option 'colour'"):
        ttx.explore(kernel, options={"colour": "red"})


def test_the_line_is_the_kernels() -> None:
    """The span of an error is the statement's own line in this file."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)
            T.copy(a, B[by * 64, 3])  # here

    error = refused(kernel, TTExploreError, options={"layouts": {"B": {"dtype": "bfp8_b"}}})
    assert error.span is not None
    assert Path(__file__).read_text().splitlines()[error.span.line - 1].endswith("# here")


def test_a_variable_that_changes_in_a_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_fragment((64, 64), "float32")
            row = T.alloc_var("int32")
            row = 0
            for _ in range(2):
                T.copy(A[row, 0], a)
                T.copy(a, B[row, 0])
                row = row + 64

    error = refused(kernel, Unsupported)
    assert error.message == "the variable row decides places, lengths or branches, and changes as the kernel runs"
    assert (error.hint or "").startswith("compute it from block and loop indices where it is used")


def test_each_turn_stores_where_a_number_says() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), N: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            n = T.alloc_fragment((64,), "int32")
            T.copy(N, n)
            for i in T.Parallel(64):
                B[n[i]] = A[i]

    error = refused(kernel, Unsupported)
    assert error.message == "T.Parallel stores to B where an element of n says, another one in each turn"
    assert (error.hint or "").endswith("for i in range(n): B[N[i]] = ...")


def test_turns_that_store_to_one_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            a = T.alloc_fragment((64,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A, a)
            T.clear(s)
            for i in T.Parallel(64):
                s[0] += a[i]
            T.copy(s, B)

    error = refused(kernel, Unsupported)
    assert error.message == "s[0]: each turn of i stores to the same element"
    assert error.hint == "store each element once; sums over turns are T.reduce_sum, or T.atomic_add(s[0], value)"


def test_loops_that_find_out_when_they_end() -> None:
    """Each refusal names what stands in the line, and what its hint says instead compiles."""

    @T.macro
    def added(A: Any, a: Any, b: Any, t: Any):
        T.copy(A[t * 32, 0], a)
        for i, j in T.Parallel(32, 32):
            b[i, j] += a[i, j]

    def kernel(kind: str) -> Any:
        @T.prim_func
        def made(A: T.Tensor((128, 32), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "float32")
                b = T.alloc_fragment((32, 32), "float32")
                T.clear(b)
                if kind == "break":
                    for t in range(4):
                        if t == N[0]:
                            break
                        added(A, a, b, t)
                elif kind == "continue":
                    for t in range(4):
                        if t == 1:
                            continue
                        added(A, a, b, t)
                elif kind == "while":
                    n = T.alloc_var("int32")
                    n = 0
                    while n != N[0]:
                        added(A, a, b, n)
                        n = n + 1
                elif kind == "until":
                    for t in T.serial(T.min(N[0], 4)):
                        added(A, a, b, t)
                else:
                    for t in range(4):
                        if t != 1:
                            added(A, a, b, t)
                T.copy(b, B)

        return made

    lines = Path(__file__).read_text().splitlines()
    for kind, instead in (
        ("break", "as in range(T.min(N[bx], 4))"),
        ("continue", "`if t != 1:`"),
        ("while", "as in range(N[bx])"),
    ):
        error = refused(kernel(kind), Unsupported)
        assert error.code == "TTX-L005"
        assert error.message.startswith(f"`{kind}`")
        assert instead in (error.hint or "")
        assert error.span is not None
        assert kind in lines[error.span.line - 1]
    for kind, taken in (("until", [0, 1, 2]), ("unless", [0, 2, 3])):
        exploration = ttx.explore(kernel(kind))
        assert exploration.error is None, str(exploration.error)
        blocks, _ = inputs = [exploration.inputs()[0], np.array([3], "int32")]
        run = exploration.run(inputs)
        wanted = np.asarray(blocks).reshape(4, 32, 32)[taken].sum(0)
        np.testing.assert_allclose(np.asarray(run.outputs[0]), wanted, rtol=1e-5, atol=1e-5)


def test_the_condition_that_cannot_decide_a_store() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                if i < N[0] and a[i, j] > 0:
                    B[i, j] = a[i, j]

    assert "under the condition a[i, j] > 0" in refused(kernel, Unsupported).message
