# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Loops with a condition, against NumPy, and those whose turns nobody can count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus.whiles import by_index, nested, stream_k, strided
from tests.passes.test_limited_stores import Numbers, held
from ttexplore.errors import Unsupported

HEAD = """
import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((128, 32), "float32"), N: T.Tensor((4,), "int32"), B: T.Tensor((128, 32), "float32")):
    with T.Kernel(4) as bx:
        a = T.alloc_shared((32, 32), "float32")
        x = T.alloc_var("int32")
        y = T.alloc_var("int32")
        x = bx
        y = 0
"""


def written(tmp_path: Path, body: str) -> ttx.Exploration:
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + "\n".join(f"        {line}" for line in body.splitlines()) + "\n")
    return ttx.explore(f"{file}::kernel")


@pytest.mark.parametrize(("blocks", "tiles", "step"), [(4, 7, 4), (3, 3, 3), (5, 2, 5), (2, 9, 2)])
def test_every_so_many_th_tile(blocks: int, tiles: int, step: int) -> None:
    def expected(a: Numbers) -> Numbers:
        return a * 0.5 + np.arange(tiles).repeat(32)[:, None]

    held(strided(blocks, tiles, step), {}, expected, 1e-6)


# Shares that end within tiles, with them, and within one tile; more cores than turns.
@pytest.mark.parametrize(
    ("m", "n", "k", "cores"),
    [(96, 64, 160, 4), (64, 64, 128, 3), (128, 96, 96, 5), (32, 32, 128, 5), (32, 32, 128, 4)],
)
def test_stream_k(m: int, n: int, k: int, cores: int) -> None:
    exploration = ttx.explore(stream_k(m, n, k, cores))
    assert exploration.error is None, str(exploration.error)
    draw = np.random.default_rng(2)
    a, b = (draw.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
    inputs = [a, b, np.zeros((m, n), np.float32)]
    assert exploration.check(inputs)
    np.testing.assert_array_equal(exploration.run(inputs).outputs[0], a @ b.T)


@pytest.mark.parametrize("ends", [[(0, 8), (0, 0), (5, 3)], [(0, 1), (1, 3), (3, 6)], [(1, 2), (7, 8), (2, 7)]])
def test_two_variables_and_numbers_of_a_tensor(ends: Sequence[tuple[int, int]]) -> None:
    def expected(a: Numbers, _: Numbers) -> Numbers:
        out = np.full((256, 32), np.nan)
        for low, end in ends:
            high = end - 1
            while low < high and high >= 1:
                out[low * 32 :][:32] = a[low * 32 :][:32] * 2
                out[high * 32 :][:32] = a[high * 32 :][:32] * 0.5
                low, high = low + 1, high - 1
        return out

    exploration = held(by_index(), {1: ends}, expected)
    inputs = [*exploration.inputs()]
    inputs[1] = np.asarray(ends, np.int32)
    met = [(low + max(end - low, 0) // 2, end - 1 - max(end - low, 0) // 2) for low, end in ends]
    want = [low + high * 0.125 for low, high in met]
    np.testing.assert_array_equal(exploration.run(inputs).outputs[1][::32, 0], want)


def test_a_loop_in_a_loop() -> None:
    def expected(a: Numbers) -> Numbers:
        row, column = np.arange(4)[:, None], np.arange(5)
        taken = (column >= row) & ((column - row) % 2 == 0)
        number = np.where(taken, row + column, np.nan)
        return a + number.repeat(32, 0).repeat(32, 1)

    held(nested(), {}, expected, 1e-6)


STEP = "let each turn add a number that is at least 1"


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("while x < 9:\n    T.copy(A[0, 0], a)", "how often it turns is only known when", "range(N[bx])"),
        ("while x < 9:\n    x += N[bx]\n    T.copy(A[0, 0], a)", "no turn is known to bring x < 9 closer", STEP),
        ("while x < 9:\n    x -= 1\n    T.copy(A[0, 0], a)", "no turn is known to bring x < 9 closer", STEP),
        ("while x < 9:\n    x = x * 2 + 1\n    T.copy(A[0, 0], a)", "what x holds in each turn", "x += 4"),
        ("while x < 9:\n    x = T.min(x + (8 - x % 4), 9)\n    T.copy(A[0, 0], a)", "what x holds in", "x += 4"),
        ("while x < 9:\n    x = T.min(x + (4 - x % 4), 8)\n    T.copy(A[0, 0], a)", "what x holds in", "x += 4"),
        ("while x != 9:\n    x += 1\n    T.copy(A[0, 0], a)", "how often it turns", "for t in range(n)"),
        ("while x < 9 or y < 3:\n    x += 1\n    y += 1\n    T.copy(A[0, 0], a)", "how often it turns", "range"),
        ("while x < 9:\n    if N[x] > 0:\n        x += 2\n    else:\n        x += 1\n    T.copy(A[0, 0], a)",
         "what x holds in each turn", "x += 4"),
        ("while x < 9:\n    for k in range(2):\n        x += 1\n    T.copy(A[0, 0], a)", "what x holds in", "x += 4"),
        ("while x < y:\n    y += x\n    x += 1\n    T.copy(A[0, 0], a)", "what y holds in", "y += 4"),
        ("z = T.alloc_fragment((1,), 'int32')\nz[0] = bx\nwhile z[0] < 9:\n    z[0] += 1\n    T.fill(z, 0)\n"
         "    T.copy(A[z[0] * 32, 0], a)", "what z holds in", "z += 4"),
        ("while x < 9:\n    x += 1\n    if x > N[0]:\n        break\n    T.copy(A[0, 0], a)", "`break`", "range("),
    ],
)  # fmt: skip
def test_turns_that_nobody_can_count(tmp_path: Path, body: str, message: str, hint: str) -> None:
    error = written(tmp_path, body).error
    assert isinstance(error, Unsupported)
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None


def test_a_loop_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="`while` has not ended after 65,536 turns") as caught:
        written(tmp_path, "while x < 9:\n    T.copy(A[0, 0], a)").reference()
    assert caught.value.span is not None
    assert "t += 1" in (caught.value.hint or "")
