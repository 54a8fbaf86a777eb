"""Long chains of `elif`, which Python nests, and what they do, against Python's own branches."""

from __future__ import annotations

from pathlib import Path

import pytest

import ttexplore as ttx
from ttexplore.errors import Unsupported

_HEAD = """
import ttexplore.language as T


def kernel(kind=0):
    @T.prim_func
    def main(A: T.Tensor(({rows}, 32), "float32")):
        with T.Kernel({blocks}) as by:
            a = T.alloc_shared((32, 32), "float32")
"""


def chain(tests: list[str], *, has_else: bool = True) -> list[str]:
    """A chain of branches that fill with the number of the test, from 1 on."""
    lines = ["T.fill(a, 0.0)"]
    for place, test in enumerate(tests):
        lines += [f"{'elif' if place else 'if'} {test}:", f"    T.fill(a, {place + 1}.0)"]
    return [*lines, "else:", "    T.fill(a, -1.0)"] if has_else else lines


def results(lines: list[str], folder: Path, blocks: int = 1, kind: int = 0) -> list[float]:
    """What the interpreter leaves in the block of each work item."""
    file = folder / "kernels.py"
    body = [*lines, "T.copy(a, A[by * 32, 0])"]
    file.write_text(
        _HEAD.format(rows=blocks * 32, blocks=blocks)
        + "".join(f"            {one}\n" for one in body)
        + "    return main\n"
    )
    exploration = ttx.explore(f"{file}::kernel", kind=kind)
    assert exploration.error is None, str(exploration.error)
    return exploration.run([]).outputs[0].reshape(blocks, 32, 32)[:, 0, 0].tolist()


@pytest.mark.parametrize("kind", [0, 77, 119, 500])
def test_a_chain_that_python_decides(kind: int, tmp_path: Path) -> None:
    assert results(chain([f"kind == {n}" for n in range(120)]), tmp_path, kind=kind) == [kind + 1 if kind < 120 else -1]


@pytest.mark.parametrize("has_else", [True, False])
def test_a_chain_that_the_block_decides(has_else: bool, tmp_path: Path) -> None:
    tests = [f"by == {n}" if n % 3 else f"by >= {n} and by < {n + 1}" for n in range(12)]
    want = [*range(1, 13), *[-1 if has_else else 0] * 3]
    assert results(chain(tests, has_else=has_else), tmp_path, blocks=15) == want


@pytest.mark.parametrize("kind", [0, 1, 3])
def test_a_chain_of_both(kind: int, tmp_path: Path) -> None:
    tests = ["kind == 1", "by == 0", "kind == 3", "by == 2"]
    want: list[float] = []
    for by in range(4):
        holds = [kind == 1, by == 0, kind == 3, by == 2]
        want.append(holds.index(True) + 1 if any(holds) else -1)
    assert results(chain(tests), tmp_path, blocks=4, kind=kind) == want


def test_what_jumps_out_of_a_chain(tmp_path: Path) -> None:
    lines = [
        "T.fill(a, 0.0)", "for n in [1, 2, 3, 4]:", "    if kind == 9:", "        T.fill(a, 9.0)",
        "    elif n == 2:", "        continue", "    elif n == 4:", "        break",
        "    elif by == 1:", "        T.fill(a, n * 1.0)", "    else:", "        T.fill(a, n * 10.0)",
    ]  # fmt: skip
    assert results(lines, tmp_path, blocks=2) == [30, 3]


def test_branches_in_branches_have_an_end(tmp_path: Path) -> None:
    lines = ["    " * depth + f"if kind < {depth + 1}:" for depth in range(30)]
    with pytest.raises(Unsupported, match="the loops and branches of main are nested too deeply") as caught:
        results([*lines, "    " * 30 + "T.fill(a, 1.0)"], tmp_path)
    assert caught.value.code == "TTX-L016"


@pytest.mark.parametrize("kind", [0, 1])
def test_branches_in_the_second_side_behind_a_statement(kind: int, tmp_path: Path) -> None:
    """A branch of the block in the second side of one that Python decides, and the other way round."""
    lines = [
        "T.fill(a, 0.0)", "if kind == 1:", "    x, y, z = 1.0, 2.0, 3.0", "    T.fill(a, x + y + z)", "else:",
        "    T.fill(a, 5.0)", "    if by == 1:", "        T.fill(a, 7.0)", "if by == 2:", "    x = 8.0",
        "    T.fill(a, x)", "else:", "    z = 1.0", "    if kind == 1:", "        y = 9.0", "        if by == 0:",
        "            T.fill(a, y + z)",
    ]  # fmt: skip
    want = [10.0, 6.0, 8.0] if kind == 1 else [5.0, 7.0, 8.0]
    assert results(lines, tmp_path, blocks=3, kind=kind) == want
