# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Scalars that are operands against NumPy, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.scalars import decays, elements_of_blocks, joined_splits, scalars_of_turns, whole_scalars
from tests.said import said


def run(kernel: Any, inputs: list[Any] | None = None) -> tuple[list[Any], list[Any], Any]:
    """The inputs, the outputs of the emulator, and the exploration, whose steps are all right."""
    exploration = kernel if isinstance(kernel, ttx.Exploration) else ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    inputs = list(exploration.inputs()) if inputs is None else inputs
    check = exploration.check(inputs)
    assert check, str(check)
    made = exploration.run(inputs)
    assert made.passed, made.message
    return inputs, list(made.outputs), exploration


def test_splits_are_joined() -> None:
    (g, p), (out,), exploration = run(joined_splits())
    weights = np.exp2(g.astype(np.float64))
    weights /= weights.sum(1, keepdims=True)
    np.testing.assert_allclose(out, np.einsum("bk,bkd->bd", weights, p.astype(np.float64)), rtol=1e-5, atol=1e-6)
    # The reader copies the element: nothing else is done for a name of it.
    assert "T.copy(G[bx, k], split)" in str(exploration.steps["A0"])


def test_numbers_of_block_indices() -> None:
    (a,), (out, z), _ = run(decays())
    for block in range(4):
        bx, by = divmod(block, 2)
        rate, far = np.log2(1 - np.exp2(-2.0 - by)), (bx - 1) * 0.5
        i, j = np.arange(32)[:, None], np.arange(64)
        np.testing.assert_allclose(out[block], a[block] * np.exp2((i - j) * rate * 0.1) + far, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(z[block], np.full(32, rate + far), rtol=1e-6)


def test_elements_of_blocks() -> None:
    (a, b), (out, s), _ = run(elements_of_blocks())
    want = [a[39] * 2 + (7 + a[7]), b[3, 40] * 0.5 - a[0], a[0], a[3] + 1, a[6] + 2, a[9] + 3]
    np.testing.assert_allclose(s, np.array(want, np.float32), rtol=1e-6)
    changed = np.where(np.arange(40) == 5, np.float32(7), a)
    np.testing.assert_allclose(out, changed * b[31, 63] * 0.5 + a[39], rtol=1e-6)


def test_whole_scalars() -> None:
    n = np.array([-7, 2**23, 5, -(2**28)], np.int32)
    m, h = np.array([1, 0, 0, 255], np.uint8), np.array([1.5, -2.0, 0.25, 3.0], "float32")
    _, (out, whole), _ = run(whole_scalars(), [n, m, h])
    for bx in range(4):
        v = bx - 2 + n[bx] * 3 + (0 + 1 + 2)
        on = m[3 - bx] != 0
        f = np.float32(v) * 0.5 if on else -1.0 if bx > 2 else 0.0
        np.testing.assert_array_equal(whole[bx], v + np.arange(32) - n[bx])
        np.testing.assert_allclose(out[bx], np.full(32, (f if on else f + 0.25) + h[bx] * h[3 - bx]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_negative_numbers_of_block_indices_fill_tiles(dtype: str) -> None:
    @T.prim_func
    def kernel(Out: T.Tensor((4, 32), dtype)):
        with T.Kernel(4) as bx:
            o = T.alloc_fragment((32,), dtype)
            v = T.alloc_var(dtype)
            v = bx - 2
            for i in T.Parallel(32):
                o[i] = v * 3 + (bx - 3)
            T.copy(o, Out[bx, :])

    _, (out,), _ = run(kernel)
    np.testing.assert_array_equal(out, np.repeat((np.arange(4) - 2) * 3 + np.arange(4) - 3, 32).reshape(4, 32))


def test_a_name_keeps_what_an_element_was() -> None:
    """A later store to the element does not change it."""

    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            a, s = T.alloc_fragment((32,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(A, a)
            s[0] = a[1]
            before = s[0]
            s[0] = s[0] + 1
            a[1] = 100
            for i in T.Parallel(32):
                a[i] = a[i] + before * 10 + s[0]
            T.copy(a, Out)

    (a,), (out,), _ = run(kernel)
    changed = np.where(np.arange(32) == 1, np.float32(100), a)
    np.testing.assert_allclose(out, changed + a[1] * 10 + (a[1] + 1), rtol=1e-6)


def test_elements_that_were_never_stored_stay_so() -> None:
    """As in the reference, they are NaN, not a number that looks like a result."""

    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32"), Out: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            s = T.alloc_fragment((4,), "float32")
            s[0] = A[2]
            s[3] = A[1] * 2
            T.copy(s, Out)

    (a,), (out,), _ = run(kernel)
    np.testing.assert_array_equal(out, np.array([a[2], np.nan, np.nan, a[1] * 2], np.float32))


def test_infinity_and_nan_are_elements_like_others() -> None:
    """Reading one element of a block takes in no other, whatever that is."""
    a, b = np.arange(40, dtype=np.float32), np.full((32, 64), np.nan, np.float32)
    a[[3, 6]], b[3, 40], b[31, 63] = (np.inf, -np.inf), 5, 2
    exploration = ttx.explore(elements_of_blocks())
    out, s = exploration.run([a, b]).outputs
    np.testing.assert_array_equal(s, np.array([78 + 14, 2.5, 0, np.inf, -np.inf, 12], np.float32))
    np.testing.assert_array_equal(out, np.where(np.arange(40) == 5, np.float32(7), a) + 39)


def after(body: str, tmp_path: Path) -> tuple[Any, Any, str]:
    """The input and the output of a kernel, and what A0 makes of it; x becomes all of the output."""
    lines = "".join(f"        {one}\n" for one in body.split("\n"))
    file = tmp_path / "kernels.py"
    file.write_text(f"""
import ttexplore.language as T

@T.prim_func
def kernel(A: T.Tensor((3, 80), "float32"), C: T.Tensor((3, 64), "float32")):
    with T.Kernel(3) as bx:
        a, b = T.alloc_shared((64,), "float32"), T.alloc_fragment((64,), "bfloat16")
        x = T.alloc_var("float32")
        x = 0.0
        T.copy(A[bx, 0:64], a)
{lines}
        T.fill(a, x)
        T.copy(a, C[bx, :])
""")
    (a,), (c,), exploration = run(ttx.explore(f"{file}::kernel"))
    assert (c == c[:, :1]).all()
    return a, c[:, 0], str(exploration.steps["A0"])


@pytest.mark.parametrize(
    ("body", "wanted", "picks"),
    [
        ("x = a[5]", lambda a: a[:, 5], False),
        ("x = a[63] + a[bx]", lambda a: a[:, 63] + np.diagonal(a), False),
        ("T.copy(A[bx, bx * 16 + 32 : bx * 16 + 96], a)\nx = a[47] * 2", lambda a: [a[0, 79] * 2, 0, 0], False),
        ("T.copy(a, b)\nx = b[7]", lambda a: rounded(a[:, 7]), True),
        ("T.copy(A[bx, 8:72], b)\nx = b[7]", lambda a: rounded(a[:, 15]), False),
        ("for i in T.Parallel(64):\n    a[i] = a[i] + 1\nx = a[5]", lambda a: a[:, 5] + 1, True),
        ("a[5] = 3\nx = a[5] + a[6]", lambda a: a[:, 6] + 3, True),
        ("for k in range(2):\n    x += a[5]\n    T.copy(A[k, 0:64], a)", lambda a: a[:, 5] + a[0, 5], True),
        ("for k in range(2):\n    T.copy(A[k, 0:64], a)\n    x += a[5]", lambda a: [a[0, 5] + a[1, 5]] * 3, False),
        ("for k in range(2):\n    T.copy(A[k, 0:64], a)\nx = a[5]", lambda a: 0 * a[:, 5] + a[1, 5], True),
        ("if bx == 1:\n    T.copy(A[0, 0:64], a)\nx = a[5]", lambda a: a[[0, 0, 2], 5], True),
        ("T.fill(a, 2.0)\nx = a[5]", lambda a: 0 * a[:, 5] + 2, True),
    ],
)  # fmt: skip
def test_elements_are_read_where_they_are(
    tmp_path: Path, body: str, wanted: Callable[[Any], Any], picks: bool
) -> None:  # fmt: skip
    """In the tensor while the block holds what that does, else in the block."""
    a, x, text = after(body, tmp_path)
    np.testing.assert_allclose(x, wanted(a), rtol=1e-6)
    assert ("_masked" in text) == picks


def rounded(values: Any) -> Any:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_scalars_of_turns() -> None:
    (a,), (out,), _ = run(scalars_of_turns())
    sign = np.where(a > 0, 1.0, -1.0 - a)
    rounded = (a * 2 * np.float32(1.01)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_allclose(out, sign + a * rounded + sign * np.arange(64), rtol=1e-6, atol=1e-6)


OF_TURNS = """
import ttexplore.language as T

@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1):
        a = T.alloc_fragment((64,), "float32")
        own = T.alloc_local((2,), "float32")
        x = T.alloc_var("float32")
        T.copy(A, a)
"""


@pytest.mark.parametrize(
    ("body", "line", "message", "hint"),
    [
        ("for i in T.Parallel(64):\n    if a[i] > 0:\n        x = 1.0\n    a[i] = x", 3,
         "a turn of T.Parallel reads x before it stores to it",
         "each turn has its own: store to it first, on both sides of a branch"),
        ("x = 2.0\nfor i in T.Parallel(64):\n    a[i] = a[i] + x\n    x = 1.0", 2,
         "a turn of T.Parallel reads x before it stores to it",
         "each turn has its own: store to it first, on both sides of a branch"),
        ("for i in T.Parallel(64):\n    x = a[i]\na[0] = x", 2,
         "x is used outside of the T.Parallel that stores to it in each turn",
         "each turn has its own: use a buffer with an element for each turn, and T.reduce it"),
        ("for i in T.Parallel(64):\n    own[0] = a[i]\nT.fill(a, own[0])", 2,
         "own is used outside of the T.Parallel that stores to it in each turn",
         "each turn has its own: use a buffer with an element for each turn, and T.reduce it"),
        ("for k in range(2):\n    for i in T.Parallel(64):\n        own[k] = a[i]\n        a[i] = own[k] + 1", 2,
         "T.Parallel keeps a value of each turn in own[k]",
         "use constant indices, or a buffer with an element for each turn"),
    ],
)  # fmt: skip
def test_scalars_of_turns_that_others_read(tmp_path: Path, body: str, line: int, message: str, hint: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(OF_TURNS + "".join(f"        {one}\n" for one in body.split("\n")) + "        T.copy(a, B)\n")
    error = ttx.explore(f"{file}::kernel").error
    assert error is not None
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.line == OF_TURNS.count("\n") + 1 + line


def under_a_condition(used: bool) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            x = T.alloc_var("float32")
            if bx > 0:
                x = a[0, 15] * 2
            for i, j in T.Parallel(32, 32):
                C[bx * 32 + i, j] = a[i, j] + (x if used else 1.0)

    return kernel


def test_a_scalar_that_a_branch_gives_a_value_and_nothing_reads() -> None:
    (a,), (c,), exploration = run(under_a_condition(used=False))
    np.testing.assert_array_equal(c, np.concatenate([a, a]) + 1)
    assert any(note.startswith("the value of x of line") and "is never used" in note for note in said(exploration.plan))


def with_branch(folder: Path, branch: Sequence[str]) -> str:
    """A kernel that copies A to both halves of C, with a branch on the way."""
    body = "\n".join(f"        {line}" for line in branch)
    text = f"""\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((64, 32), "float32")):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), "float32")
        T.copy(A, a)
        x = T.alloc_var("float32")
        y = T.alloc_var("float32")
{body}
        T.copy(a, C[bx * 32, 0])
"""
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}::kernel"


@pytest.mark.parametrize(
    "branch",
    [
        ("if bx > 0:", "    x = a[0, 15] * 2", "else:", "    y = -0.25"),
        ("if bx > 0:", "    if a[0, 3] > 0:", "        x = 1.0", "    else:", "        y = 1.0", "else:",
         "    if bx > 1:", "        x = 2.0", "    else:", "        y = a[0, 1]"),
        ("if bx > 0:", "    T.clear(a)", "else:", "    x = 2.0"),
        ("for k in T.serial(3):", "    if k < bx:", "        x = a[0, 1]", "    else:", "        y = a[k, 2]"),
    ],
)  # fmt: skip
def test_variables_that_arms_of_a_branch_give_values_and_nothing_reads(tmp_path: Path, branch: tuple[str, ...]) -> None:
    """What the other arm leaves in them nobody asks for."""
    (a,), (c,), _ = run(with_branch(tmp_path, branch))
    np.testing.assert_array_equal(c, np.concatenate([a, a * ("    T.clear(a)" not in branch)]))


@pytest.mark.parametrize("side", ["if bx > 0:", "else:"])
def test_a_variable_whose_value_is_read_before_there_is_one(tmp_path: Path, side: str) -> None:
    """It is 0, and nothing reads what becomes of it."""
    arms = {"if bx > 0:": "x = 1.0", "else:": "x = 2.0", side: "y = T.max(y, a[0, 15])"}
    branch = tuple(line for test, body in arms.items() for line in (test, f"    {body}"))
    (a,), (c,), _ = run(with_branch(tmp_path, branch))
    np.testing.assert_array_equal(c, np.concatenate([a, a]))


def test_a_scalar_that_only_a_branch_gives_a_value_is_zero_elsewhere() -> None:
    (a,), (c,), _ = run(under_a_condition(used=True))
    np.testing.assert_array_equal(c, np.concatenate([a, a + a[0, 15] * 2]))
