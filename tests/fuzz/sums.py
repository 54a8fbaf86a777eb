# pyright: basic
"""Random sums over work items: updates of elements that some blocks of the launch grid share, and blocks that are
changed in place.

    python -m tests.fuzz.sums [number] [first seed] [noc]

With `noc`, all blocks are whole tiles, and cores hand on partial sums wherever they can.

All numbers are small and whole, so that every order of the updates gives the same result, which NumPy computes from the
description, item by item. A kernel that changes blocks in place is lowered exactly if no two work items share one.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx

_AXES = "xyz"
# What else may stop a kernel: a name to count by, and what its message says.
_REFUSALS = {"a block is neither tiles nor strips": "cannot be", "too many circular buffers": "circular buffers are"}


@dataclass(frozen=True)
class Described:
    """A kernel: the blocks of its grid, the turns of a loop in it, and the texts of the plane, row and column of the
    block that a turn updates."""

    grid: tuple[int, ...]
    turns: int
    block: tuple[int, int]
    places: tuple[str, str, str]
    shape: tuple[int, int, int]
    dtype: str
    kind: Literal["add", "max", "min", "in place"]
    by_elements: bool
    # The row of each turn of each work item, if an index tensor decides it.
    rows: tuple[int, ...] = ()

    def turns_of_items(self) -> Iterator[tuple[int, int, tuple[int, int, int]]]:
        """Each turn of each work item: the item, the turn, and where its block starts."""
        for item, at in enumerate(itertools.product(*map(range, reversed(self.grid)))):
            blocks = dict(zip((f"b{axis}" for axis in _AXES), reversed(at), strict=False))
            for k in range(self.turns):
                plane, row, column = (int(eval(text, {}, {**blocks, "k": k})) for text in self.places)
                row = self.rows[item * self.turns + k] if self.rows else row
                yield item, k, (plane, row, column)

    @property
    def is_shared(self) -> bool:
        """Whether two work items use one element."""
        owners = np.full(self.shape, -1)
        for item, _, (plane, row, column) in self.turns_of_items():
            part = owners[plane, row : row + self.block[0], column : column + self.block[1]]
            if ((part >= 0) & (part != item)).any():
                return True
            part[...] = item
        return False

    @property
    def makes_chains(self) -> bool:
        """Whether cores with one work item each can hand on what they share: each updates a block once, and those that
        share one share all, turn by turn."""
        steps = [[at for item, _, at in self.turns_of_items() if item == number]
                 for number in range(int(np.prod(self.grid)))]  # fmt: skip
        once = all(len({*blocks}) == len(blocks) for blocks in steps)
        return once and all(one == other or not {*one} & {*other} for one in steps for other in steps)


def drawn(seed: int, *, over_noc: bool = False) -> Described:
    """A kernel; with `over_noc`, one of whole tiles at known places, most of which several work items update."""
    rng = random.Random(seed)
    grid = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 2, 2, 3))))
    turns = rng.choice((1, 1, 2, 3))
    block = (rng.choice((32, 32, 64, 16, 40)), rng.choice((32, 32, 64, 48)))
    if over_noc:
        block = (rng.choice((32, 32, 64)), rng.choice((32, 64, 96)))
        grid = (*grid, rng.choice((2, 3, 4)))[:3]
    parts: list[list[str]] = [[], [], []]
    for axis, count in zip(_AXES, grid, strict=False):
        name = rng.choice((f"b{axis}", f"b{axis}", f"b{axis} // 2", f"({count - 1} - b{axis})", ""))
        if name:
            parts[rng.choice((0, 1, 1, 2))].append(name)
    if turns > 1 and rng.random() < 0.7:
        parts[rng.choice((1, 2))].append("k")
    units = (1, *block)
    texts = [f"({rng.choice((' + ', ' * 2 + ')).join(part) or '0'}) * {unit}" for part, unit in zip(parts, units)]  # noqa: B905
    one = Described(grid, turns, block, (texts[0], texts[1], texts[2]), (0, 0, 0), "", "add", False)
    starts = [start for _, _, start in one.turns_of_items()]
    cover = [max(start[axis] for start in starts) + unit for axis, unit in enumerate(units)]
    tails = [rng.choice((0, 0, 0, 7, 16)) for _ in block]
    shape = (cover[0], max(cover[1] - tails[0], 1), max(cover[2] - tails[1], 1))
    kind = rng.choice(("add", "add", "add", "max", "min", "in place"))
    dtype, by_elements = rng.choice(("float32", "float32", "bfloat16", "int32")), rng.random() < 0.5
    rows = tuple(rng.choice((start[1], rng.randrange(shape[1]))) for start in starts) if rng.random() < 0.3 else ()
    if over_noc:
        kind, rows = rng.choice(("add", "add", "max", "min")), ()
    return Described(grid, turns, block, one.places, shape, dtype, kind, by_elements, rows)


def source_text(one: Described) -> str:
    names = ", ".join(f"b{axis}" for axis, _ in zip(_AXES, one.grid, strict=False))
    item = "0"
    for axis, count in reversed([*zip(_AXES, one.grid, strict=False)]):
        item = f"({item}) * {count} + b{axis}"
    rows, columns = one.block
    plane, row, column = one.places
    row = f"I[({item}) * {one.turns} + k]" if one.rows else row
    items = int(np.prod(one.grid))
    if one.kind == "in place":
        update = [
            f"T.copy(C[{plane}, {row}, {column}], c)",
            f"for i, j in T.Parallel({rows}, {columns}):", "    c[i, j] = c[i, j] + a[i, j]",
            f"T.copy(c, C[{plane}, {row}, {column}])",
        ]  # fmt: skip
    elif one.by_elements:
        update = [
            f"for i, j in T.Parallel({rows}, {columns}):",
            f"    T.atomic_{one.kind}(C[{plane}, {row} + i, {column} + j], a[i, j])",
        ]
    else:
        update = [f"T.atomic_{one.kind}(C[{plane}, {row}, {column}], a)"]
    inner = [f"T.copy(A[({item}) * {one.turns} + k, 0, 0], a)", *update]
    lines = [
        "import ttexplore.language as T", "", "", "@T.prim_func", "def kernel(",
        f'    A: T.Tensor(({items * one.turns}, {rows}, {columns}), "{one.dtype}"),',
        f'    I: T.Tensor(({items * one.turns},), "int32"),', f'    C: T.Tensor({one.shape}, "{one.dtype}"),', "):",
        f"    with T.Kernel({', '.join(map(str, one.grid))}) as {names if len(one.grid) == 1 else f'({names})'}:",
        *(f'        {name} = T.alloc_shared(({rows}, {columns}), "{one.dtype}")' for name in "ac"),
        f"        for k in T.serial({one.turns}):", *(f"            {line}" for line in inner),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def expected(one: Described, a: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """What the tensor holds in the end."""
    join = {"add": np.add, "max": np.maximum, "min": np.minimum, "in place": np.add}[one.kind]
    made = c.astype(np.float64)
    for item, k, (plane, row, column) in one.turns_of_items():
        part = made[plane, row : row + one.block[0], column : column + one.block[1]]
        part[...] = join(part, a[item * one.turns + k, : part.shape[0], : part.shape[1]])
    return made


def verdict(seed: int, folder: Path, *, over_noc: bool = False) -> str:
    """What became of a kernel. Raises AssertionError where a law does not hold."""
    one, rng = drawn(seed, over_noc=over_noc), random.Random(f"options {seed}")
    text = source_text(one)
    file = folder / f"sums_{seed}.py"
    file.write_text(text)
    options: dict[str, Any] = {"cores": rng.choice(((1, 1), (2, 1), (2, 2), (8, 8)))}
    options["policy"] = rng.choice(("contiguous", "strided", "rectangular"))
    if rng.random() < 0.5 or over_noc:
        options["partials"] = "noc"
        # So that many cores get as many work items.
        options["cores"] = rng.choice((options["cores"], (2, 2), (3, 1), (8, 8)))
    if over_noc:
        options |= {"cores": rng.choice((options["cores"], (8, 8), (8, 8))), "multicast": rng.choice(("all", "auto"))}
    # No grid has more blocks than there are cores.
    one_each = options["cores"] == (8, 8) and options["policy"] != "rectangular"
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    exploration = ttx.explore(f"{file}::kernel", target=target, options=options)
    told = f"seed {seed}, {target}, {options}:\n{text}"
    if exploration.error is not None:
        error = exploration.error
        if one.rows and one.kind == "in place":
            assert "which elements it uses here is not known before it runs" in error.message, f"{error}\n{told}"
            return "places not known, refused"
        if error.code == "TTX-K017":
            assert one.kind == "in place", f"{error}\n{told}"
            assert one.is_shared, f"{error}\n{told}"
            return "race, refused"
        if error.code == "TTX-U025":
            assert "partials" in options, f"{error}\n{told}"
            assert one.is_shared, f"{error}\n{told}"
            assert not (over_noc and one_each and one.makes_chains), f"{error}\n{told}"
            return "partial sums, refused"
        name = next((name for name, message in _REFUSALS.items() if message in error.message), None)
        assert name is not None, f"{error}\n{told}"
        return name
    assert one.kind != "in place" or not (one.is_shared or one.rows), f"a race is lowered\n{told}"
    numbers = np.random.default_rng(seed)
    count = int(np.prod(one.grid)) * one.turns
    a, c = (numbers.integers(-2, 3, shape).astype(exploration.inputs()[0].dtype)
            for shape in ((count, *one.block), one.shape))  # fmt: skip
    given = [a, np.array(one.rows or [0] * count, np.int32), c]
    check = exploration.check(given)
    assert check, f"{check}\n{told}"
    want = expected(one, a, c)
    for backend in ("interpreter", "emulator"):
        (found,) = exploration.run(given, backend=backend).outputs
        np.testing.assert_array_equal(found.astype(np.float64), want, err_msg=f"{backend}, {told}")
    shared = ("shared" if one.is_shared else "apart") + (", places of a tensor" if one.rows else "")
    chains = [chain for sums in exploration.plan.partials for chain in sums.chains]
    if over_noc:
        assert bool(chains) == one.is_shared, told
        assert not (chains and one_each) or one.makes_chains, told
    return f"{one.kind}, {shared}" + (", handed on" if any(len(chain) > 1 for chain in chains) else "")


def campaign(first: int, number: int, *, over_noc: bool = False) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return Counter(verdict(seed, Path(folder), over_noc=over_noc) for seed in range(first, first + number))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number, over_noc="noc" in sys.argv[3:]).items()):
        print(f"{count:6} {what}")
