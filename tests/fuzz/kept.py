# pyright: basic
"""Random kernels that store to some elements of tensors, and leave the others as they are.

    python -m tests.fuzz.kept [number] [first seed]

Blocks go to places that block indices and loops say, perhaps with room between them, in branches and loops that
indices, or numbers of a tensor, decide. Python runs the same texts for each block and turn, and marks what is stored.
Where no number of a tensor decides anything, a tensor is an input exactly if some element is left as it was.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx

_LANGUAGE = SimpleNamespace(min=min, max=max)
_GROUPS = 4
# Conditions by block, turn and number, of which each may be negated.
_KNOWN = ("bx < 1", "by % 2 == 0", "bx <= by", "k == 0", "bx + by < 2", "k < by", "by * 2 + k != 3", "by < 9", "k >= 0")
_DECIDED = ("N[by] > 1", "N[bx] + k < 3", "N[k] % 2 == 0")
_TURNS = ("2", "3", "by + 1", "T.max(bx, 1)", "1")
_ELEMENTS = ("i < 5", "i < 64", "j < 16", "i + 3 < 10 + k", "i < N[by] * 3", "j < N[bx] + 1")
_DECIDED_TURNS = ("N[by]", "T.min(N[bx], 2)")


@dataclass(frozen=True)
class Described:
    """A kernel: its grid, the shape of its blocks and the distances from one to the next, where the first one lies, the
    text of how many turns there are, those of where along rows and columns a block goes, and in which branches."""

    grid: tuple[int, int]
    block: tuple[int, int]
    pitch: tuple[int, int]
    start: tuple[int, int]
    places: tuple[int, int]
    dtype: str
    turns: str
    row: str
    column: str
    condition: str
    other: str
    element: str
    by_copy: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The last block reaches the end, and so do clipped ones."""
        ends = (
            first + (count - 1) * step + length
            for first, count, step, length in zip(self.start, self.places, self.pitch, self.block, strict=True)
        )
        rows, columns = ends
        return rows, columns

    @property
    def is_known(self) -> bool:
        return not any("N[" in text for text in (self.turns, self.row, self.condition, self.element))


def drawn(seed: int) -> Described:
    rng = random.Random(seed)
    grid = rng.choice((1, 2, 3)), rng.choice((1, 2, 3))
    block = rng.choice((32, 32, 16, 7, 64)), rng.choice((32, 32, 16, 48))
    by_copy, is_whole = rng.random() < 0.6, rng.random() < 0.5

    def unless_whole(*choices: int) -> int:
        return 0 if is_whole else rng.choice((0, *choices))

    gaps = unless_whole(32 if by_copy else 3), unless_whole(32 if by_copy else 5)
    start = unless_whole(16, 32), unless_whole(16, 32)
    turns = rng.choice(_TURNS[:2] if is_whole else _TURNS + _DECIDED_TURNS)
    decided = rng.choice(_DECIDED) if rng.random() < 0.3 else ""
    condition = rng.choice(("", rng.choice(_KNOWN), decided))
    if condition and not decided and rng.random() < 0.3:
        condition = f"not ({condition})"
    other = rng.choice(("same", "negative") if is_whole else ("same", "negative", "")) if condition else ""
    # Of each row of blocks so many turns; in any order.
    most = 2 if turns in ("2", _DECIDED_TURNS[1]) else 3
    names = {"t": most, "last": most - 1, "g": grid[1], "top": grid[1] - 1, "right": grid[0] - 1}
    row = rng.choice(("by * {t} + k", "by * {t} + {last} - k", "({top} - by) * {t} + k", "k * {g} + by"))
    column = rng.choice(("bx", "{right} - bx"))
    element = "" if by_copy or rng.random() < 0.5 else rng.choice(_ELEMENTS)
    return Described(
        grid, block, (block[0] + gaps[0], block[1] + gaps[1]), start,
        (grid[1] * most + unless_whole(1), grid[0] + unless_whole(1)), rng.choice(("float32", "bfloat16", "int32")),
        turns, row.format(**names), column.format(**names), condition, other, element, by_copy,
    )  # fmt: skip


def source_text(one: Described) -> str:
    rows, columns = one.block
    at = f"({one.row}) * {one.pitch[0]} + {one.start[0]}", f"({one.column}) * {one.pitch[1]} + {one.start[1]}"

    def stored(sign: str) -> list[str]:
        if one.by_copy and not sign:
            return [f"T.copy(a, C[{at[0]}, {at[1]}])"]
        lines = [f"C[{at[0]} + i, {at[1]} + j] = {sign}a[i, j]"]
        if one.element:
            lines = [f"if {one.element}:", f"    {lines[0]}"]
        return [f"for i, j in T.Parallel({rows}, {columns}):", *(f"    {line}" for line in lines)]

    lines = stored("")
    if one.condition:
        lines = [f"if {one.condition}:", *(f"    {line}" for line in lines)]
    if one.other:
        lines += ["else:", *(f"    {line}" for line in stored("-" if one.other == "negative" else ""))]
    head = [
        "import ttexplore.language as T", "", "", "@T.prim_func", "def kernel(",
        f'    A: T.Tensor(({one.grid[1]}, {one.grid[0]}, {rows}, {columns}), "{one.dtype}"),',
        f'    N: T.Tensor(({_GROUPS},), "int32"), C: T.Tensor({one.shape}, "{one.dtype}"),', "):",
        f"    with T.Kernel({one.grid[0]}, {one.grid[1]}) as (bx, by):",
        f'        a = T.alloc_shared(({rows}, {columns}), "{one.dtype}")', "        T.copy(A[by, bx, 0, 0], a)",
        f"        for k in T.serial({one.turns}):",
    ]  # fmt: skip
    return "\n".join([*head, *(f"            {line}" for line in lines)]) + "\n"


def expected(one: Described, given: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """What the tensor holds in the end, and which of its elements are stored."""
    made, stored = given["C"].astype(np.float64), np.zeros(one.shape, bool)
    i, j = np.ogrid[: one.block[0], : one.block[1]]
    names: dict[str, Any] = {"T": _LANGUAGE, "N": [int(number) for number in given["N"]], "i": i, "j": j}
    for bx, by in itertools.product(*map(range, one.grid)):
        names |= {"bx": bx, "by": by}
        for k in range(eval(one.turns, names)):
            names["k"] = k
            taken = not one.condition or eval(one.condition, names)
            if not taken and not one.other:
                continue
            value = given["A"][by, bx].astype(np.float64)
            mask = np.broadcast_to(eval(one.element, names), one.block) if one.element else np.ones(one.block, bool)
            if not taken and one.other == "negative":
                value = -value
            row, column = (
                eval(text, names) * pitch + start
                for text, pitch, start in zip((one.row, one.column), one.pitch, one.start, strict=True)
            )
            place = np.s_[row : row + one.block[0], column : column + one.block[1]]
            made[place] = np.where(mask, value, made[place])
            stored[place] |= mask
    return made, stored


def verdict(seed: int, folder: Path) -> list[str]:
    """What a kernel had, or how it was refused. Raises AssertionError where a law does not hold."""
    one, rng = drawn(seed), random.Random(f"options {seed}")
    text = source_text(one)
    file = folder / f"kept_{seed}.py"
    file.write_text(text)
    options: dict[str, Any] = {
        "cores": rng.choice(((1, 1), (2, 1), (2, 2))), "policy": rng.choice(("contiguous", "strided")),
    }  # fmt: skip
    if rng.random() < 0.2:
        options["layouts"] = {"C": {"page": "row"}}
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    told = f"seed {seed}, {target}, {options}:\n{text}"
    exploration = ttx.explore(f"{file}::kernel", target=target, options=options)
    if exploration.error is not None:
        error = exploration.error
        assert error.hint, f"{error}\n{told}"
        assert error.span is not None, f"{error}\n{told}"
        assert not error.code.startswith("TTX-V"), f"{error}\n{told}"
        return [f"refused: {error.code} {error.message.partition(' in line')[0]}"]
    numbers = np.random.default_rng(seed)
    given = {
        "A": numbers.integers(-9, 10, (one.grid[1], one.grid[0], *one.block)), "N": numbers.integers(0, 3, _GROUPS),
        "C": numbers.integers(40, 90, one.shape),
    }  # fmt: skip
    want, stored = expected(one, given)
    role = exploration._roles["C"]
    assert role == "inout" or stored.all(), f"{told}"
    if one.is_known:
        assert role == ("output" if stored.all() else "inout"), f"{told}"
    arrays = [given[name] for name in ("A", "N", *(["C"] if role == "inout" else []))]
    check = exploration.check(arrays)
    assert check, f"{check}\n{told}"
    for backend in ("interpreter", "emulator"):
        (found,) = exploration.run(arrays, backend=backend).outputs
        np.testing.assert_array_equal(found.astype(np.float64), want, err_msg=f"{backend}, {told}")
    return [role, "known" if one.is_known else "decided by numbers", *(["both sides"] if one.other else [])]


def campaign(first: int, number: int) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return Counter(what for seed in range(first, first + number) for what in verdict(seed, Path(folder)))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number).items()):
        print(f"{count:6} {what}")
