# pyright: basic
"""Random kernels in which numbers of tensors decide which rows and columns are stored, where, and what of.

    python -m tests.fuzz.limits [number] [first seed]

Blocks are loaded as they lie or row by row from where an index tensor says, may be scanned, and are stored as far as
conditions hold; the numbers in them are elements, differences of elements, or what variables hold after a loop. Python
runs the same text for each item, NumPy makes the blocks. All numbers are small and whole, so that sums are exact.
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

# Names in Python as in the language.
_LANGUAGE = SimpleNamespace(
    min=np.minimum, max=np.maximum, if_then_else=lambda c, a, b: np.where(c, a, b)[()], alloc_var=lambda _: 0,
    any_of=np.any, all_of=np.all, cast=lambda value, dtype: np.asarray(value).astype(dtype)[()],
)  # fmt: skip
_NUMBERS = (
    ("n = N[item]",),
    ("n = T.min(N[item], 30)",),
    ("n = T.max(0, N[item]) - 1",),
    ("n = N[item + 1] - N[item] + 9",),
    ("n = N[item] - bx * 8",),
    ("n = T.if_then_else(N[item] > 12, 40, N[item] * 2)",),
    ("n = T.if_then_else(T.any_of(Z[item, 3:9]), N[item], 5)",),
    ("n = T.if_then_else(T.all_of(Z[item, 1:]), 9, N[item])",),
    ("n = T.if_then_else(T.any_of(Z[item, :]), 20, 3)",),
    ('n = T.alloc_var("int32")', "n = 3", "for t in range(4):", "    if N[t] > 8 * item:", "        n = N[t] - t"),
    ('n = T.alloc_var("int32")', "n = N[item]", "for t in range(3):", "    n += T.max(N[t], 0) // 4 - t"),
    ('n = T.alloc_var("int32")', "n = N[item]", "if n > 16:", "    n = n - 9", "else:", "    n = n * 2 + bx"),
)
# Those that compute in the dtype of the elements; what a variable holds does not.
_IN_DTYPE = (
    *_NUMBERS[:9], ("n = N[item] * 3 - N[item + 1]",), ("n = (N[item] << 2) // 3",), ("n = ~N[item] & 63",),
    ("n = -N[item]",), ("n = T.cast(N[item] + N[item + 1], 'int32') - bx",),
)  # fmt: skip
# With elements of a bool tensor.
_OF_BOOLS = (
    "F[item] and i < n", "i < n * F[item]", "j < M[bx] + F[item] and not F[item + 1]", "n > 7 and ~F[item]",
    "i < n and F[item] == F[item + 1]", "i < (F[item] * 5 + F[item + 1] * 9)", "j < n and (F[item] | F[item + 1])",
)  # fmt: skip
_CONDITIONS = (
    "i < n", "i < n", "n > i", "i <= n", "i + 3 < n", "j < n", "bx * {columns} + j < 2 * n",
    "item * {rows} + i < 5 * n", "i < n and j < M[bx]", "j <= M[bx] and i < n", "i < n and i < M[bx]", "n > 7",
    "n > 7 and j < M[bx]", "j < M[bx]", "i < n and i < 13", "i < n and item * {rows} + i < M[bx] * 3", "i >= n",
)  # fmt: skip
_ROWS = (
    "A[I[item, i], {column}]", "A[I[item, i] + 1, {column}]",
    "T.if_then_else(I[item, i] > 1, A[I[item, i] - 2, {column}], 3.0)", "A[I[item, i], {column}] + 1.0",
)  # fmt: skip


@dataclass(frozen=True)
class Described:
    """A kernel: its grid, the turns of a loop in each block, the shape and dtype of the blocks, the dtype of what makes
    `n`, and texts: how a row is loaded (none where the block is copied), what makes `n`, and under which condition an
    element is stored. A scan is its name, its dimension, and whether it starts at the end."""

    grid: tuple[int, int]
    turns: int
    block: tuple[int, int]
    dtype: str
    number: str
    row: str
    cut: bool
    scan: tuple[str, int, bool] | None
    numbers: tuple[str, ...]
    condition: str
    packed: bool

    @property
    def items(self) -> int:
        return self.grid[1] * self.turns

    @property
    def shape(self) -> tuple[int, int]:
        return self.items * self.block[0], self.grid[0] * self.block[1]


def drawn(seed: int) -> Described:
    rng = random.Random(seed)
    rows, columns = block = (rng.choice((32, 32, 64, 16, 40)), rng.choice((32, 32, 64, 48)))
    names = {"rows": rows, "columns": columns, "column": f"bx * {columns} + j"}
    packed = rng.random() < 0.25
    number = rng.choice(("int32", "int32", "uint8", "int8"))
    conditions = rng.choice((_CONDITIONS, _CONDITIONS, _OF_BOOLS))
    return Described(
        (rng.choice((1, 2, 3)), rng.choice((1, 2, 3))), rng.choice((1, 1, 2)), block,
        rng.choice(("float32", "bfloat16")), number, rng.choice(("", "", rng.choice(_ROWS))).format(**names),
        rng.random() < 0.2,
        rng.choice((None, None, (rng.choice(("cumsum", "cummax")), rng.choice((0, 1)), rng.random() < 0.5))),
        rng.choice(_NUMBERS if number == "int32" else _IN_DTYPE),
        "first + i < S[item + 1]" if packed else rng.choice(conditions).format(**names), packed,
    )  # fmt: skip


def source_text(one: Described) -> str:
    rows, columns = one.block
    parallel = f"for i, j in T.Parallel({rows}, {columns}):"
    lines = [f"item = by * {one.turns} + k", *one.numbers]
    if one.row:
        lines += [parallel, f"    a[i, j] = {one.row}"]
    else:
        lines += [f"T.copy(A[item * {rows}, bx * {columns}], a)"]
    if one.cut:
        lines += [parallel, "    a[i, j] = T.if_then_else(i < n, a[i, j], -1.0)"]
    if one.scan:
        name, dim, reverse = one.scan
        lines += [f"T.{name}(a, dim={dim}, reverse={reverse})"]
    if one.packed:
        lines += ["first = S[item]"]
    first = "first" if one.packed else f"item * {rows}"
    lines += [
        parallel, f"    if {one.condition}:", f"        C[{first} + i, bx * {columns} + j] = a[i, j]"
    ]  # fmt: skip
    shape, items = one.shape, one.items
    head = [
        "import ttexplore.language as T", "", "", "@T.prim_func", "def kernel(",
        f'    A: T.Tensor({shape}, "{one.dtype}"), I: T.Tensor(({items}, {rows}), "int32"),',
        f'    N: T.Tensor(({items + 4},), "{one.number}"), M: T.Tensor(({one.grid[0]},), "int32"),',
        f'    S: T.Tensor(({items + 1},), "int32"), Z: T.Tensor(({items}, 12), "int32"),',
        f'    F: T.Tensor(({items + 1},), "bool"),',
        f'    C: T.Tensor({shape}, "{one.dtype}"),', "):",
        f"    with T.Kernel({one.grid[0]}, {one.grid[1]}) as (bx, by):",
        f'        a = T.alloc_shared(({rows}, {columns}), "{one.dtype}")', f"        for k in T.serial({one.turns}):",
    ]  # fmt: skip
    return "\n".join([*head, *(f"            {line}" for line in lines)]) + "\n"


def numbers(one: Described, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The tensors, by name. Of blocks that are stored one after the other, none reaches into the next one."""
    rows, columns = one.block
    # Also of numbers that are all below 0: what is not there must not count.
    high = rng.choice((3, 0))
    lengths = rng.integers(0, rows + 1, one.items)
    return {
        "A": rng.integers(-3, high, one.shape), "I": rng.integers(-3, one.shape[0] + 3, (one.items, rows)),
        "N": rng.choice([*range(-2, max(one.block) + 4), 0, rows, rows + 1], one.items + 4).astype(one.number),
        "M": rng.integers(-1, columns + 3, one.grid[0]), "S": np.cumsum([0, *lengths]),
        # Rows of zeros, of other numbers, and with few of one kind.
        "Z": rng.choice((-1, 1, 256), (one.items, 12)) * (rng.random((one.items, 12)) < rng.choice((0, 0.1, 0.9, 1))),
        "F": rng.random(one.items + 1) < 0.5,
        "C": rng.integers(40, 90, one.shape),
    }  # fmt: skip


def expected(one: Described, given: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """What the tensor holds in the end: where nobody stores, what it held before."""
    rows, columns = one.block
    made = given["C"].astype(np.float64)
    condition = compile(one.condition, "condition", "eval")
    names: dict[str, Any] = {"T": _LANGUAGE, **{name: _tensor(array) for name, array in given.items()}}
    for bx, item in itertools.product(range(one.grid[0]), range(one.items)):
        # Indices are no numbers of Python, which take the dtype of what they meet.
        names.update(bx=np.int64(bx), item=np.int64(item), first=int(given["S"][item]))
        with np.errstate(over="ignore"):
            exec("\n".join(one.numbers), names)
        if one.row:
            row = compile(one.row, "row", "eval")
            a = np.array(
                [[eval(row, names, {"i": i, "j": j}) for j in range(columns)] for i in range(rows)], np.float64
            )
        else:
            a = given["A"][item * rows : (item + 1) * rows, bx * columns : (bx + 1) * columns].astype(np.float64)
        if one.cut:
            a[max(int(names["n"]), 0) :] = -1
        if one.scan:
            name, dim, reverse = one.scan
            a = np.flip(a, dim) if reverse else a
            a = {"cumsum": np.add, "cummax": np.maximum}[name].accumulate(a, dim)
            a = np.flip(a, dim) if reverse else a
        start = names["first"] if one.packed else item * rows
        for i, j in itertools.product(range(rows), range(columns)):
            with np.errstate(over="ignore"):
                is_stored = eval(condition, names, {"i": i, "j": j})
            if is_stored:
                made[start + i, bx * columns + j] = a[i, j]
    return made


class _tensor:
    """A tensor that is zero outside of its rows."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __getitem__(self, at: Any) -> Any:
        first = at[0] if isinstance(at, tuple) else at
        return self.array[at] if 0 <= first < len(self.array) else 0


def verdict(seed: int, folder: Path) -> list[str]:
    """What a kernel had, or how it was refused. Raises AssertionError where a law does not hold."""
    one, rng = drawn(seed), random.Random(f"options {seed}")
    text = source_text(one)
    file = folder / f"limits_{seed}.py"
    file.write_text(text)
    options: dict[str, Any] = {"cores": rng.choice(((1, 1), (2, 1), (2, 2)))}
    options["policy"] = rng.choice(("contiguous", "strided"))
    if rng.random() < 0.4:
        options["layouts"] = {name: {"page": "row"} for name in rng.choice(("A", "C", "AC"))}
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    exploration = ttx.explore(f"{file}::kernel", target=target, options=options)
    told = f"seed {seed}, {target}, {options}:\n{text}"
    if exploration.error is not None:
        error = exploration.error
        assert error.hint, f"{error}\n{told}"
        assert error.span is not None, f"{error}\n{told}"
        assert not error.code.startswith("TTX-V"), f"{error}\n{told}"
        return [f"refused: {error.code} {error.message.partition(' in line')[0]}"]
    values = numbers(one, np.random.default_rng(seed))
    # Tensors that no kernel reads are inputs as well. Numbers decide what is stored, so that the rest may stay.
    inputs = exploration.inputs()
    given = [values[name].astype(old.dtype) for name, old in zip("AINMSZFC", inputs, strict=True)]
    check = exploration.check(given)
    assert check, f"{check}\n{told}"
    want = expected(one, values)
    for backend in ("interpreter", "emulator"):
        (found,) = exploration.run(given, backend=backend).outputs
        np.testing.assert_array_equal(found.astype(np.float64), want, err_msg=f"{backend}, {told}")
    had = [one.number] + ["bools"] * ("F[" in one.condition)
    had += ["limited" if not one.packed else "one after the other", "rows by index" if one.row else "copied"]
    return (
        had
        + ["scanned"] * bool(one.scan)
        + [what for what, text in (("variable", "alloc_var"), ("any or all", "_of(")) if text in one.numbers[0]]
    )


def campaign(first: int, number: int) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return Counter(what for seed in range(first, first + number) for what in verdict(seed, Path(folder)))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number).items()):
        print(f"{count:6} {what}")
