# pyright: basic
"""Random parts of blocks: rows, columns, elements, regions and elements at computed places, read and stored, copied,
filled and turned.

    python -m tests.fuzz.parts [number] [first seed]

All numbers are small and whole, so that every format holds each result exactly. NumPy computes it statement by
statement, from slices.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx

Block = NDArray[np.float64]
_ROWS, _COLUMNS = (8, 32, 40, 64, 70), (32, 40, 64, 96)


@dataclass(frozen=True)
class Part:
    """A statement: what it is counted as, its lines, and what it does to the two blocks."""

    kind: str
    lines: tuple[str, ...]
    does: Callable[[Block, Block], None]


def _start(rng: random.Random, length: int, extent: int) -> int:
    """A start of a part: half of them are at tiles."""
    if rng.random() < 0.5:
        return rng.randint(0, length - extent)
    return 32 * rng.randint(0, (length - extent) // 32)


def _plus(index: str, start: int) -> str:
    return index if start == 0 else f"{index} + {start}"


def _extents(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    least = [min(one) for one in zip(a, b, strict=True)]
    return (rng.randint(1, least[0]), rng.randint(1, least[1])) if rng.random() < 0.5 else (least[0], least[1])


def _region(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    """A part of one block becomes part of the other, in T.Parallel or as a copy, perhaps turned."""
    turned = rng.random() < 0.3
    m, n = _extents(rng, (a[1], a[0]) if turned else a, b)
    r, c = (_start(rng, *one) for one in zip(a, (n, m) if turned else (m, n), strict=True))
    y, x = _start(rng, b[0], m), _start(rng, b[1], n)
    source = (slice(r, r + n), slice(c, c + m)) if turned else (slice(r, r + m), slice(c, c + n))
    target = (slice(y, y + m), slice(x, x + n))
    if not turned and rng.random() < 0.4:

        def copied(one: Block, other: Block) -> None:
            other[target] = one[source]

        return Part("copy", (f"T.copy(a[{r}:{r + m}, {c}:{c + n}], b[{y}:{y + m}, {x}:{x + n}])",), copied)
    read = f"a[{_plus('j', r)}, {_plus('i', c)}]" if turned else f"a[{_plus('i', r)}, {_plus('j', c)}]"
    own = f"b[{_plus('i', y)}, {_plus('j', x)}]"

    def added(one: Block, other: Block) -> None:
        other[target] += one[source].T if turned else one[source]

    lines = (f"for i, j in T.Parallel({m}, {n}):", f"    {own} = {own} + {read}")
    return Part("turned" if turned else "region", lines, added)


def _broadcast(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    """A row, a column and an element of one block for all of the other."""
    u, v = rng.randrange(a[0]), rng.randrange(a[1])
    kinds = ["element"]
    if a[1] >= b[1]:
        kinds.append("row")
    if a[0] >= b[0]:
        kinds.append("column")
    if a[0] >= b[1]:
        kinds.append("column as a row")
    kind = rng.choice(kinds)
    start = _start(rng, {"row": a[1], "column": a[0], "column as a row": a[0]}.get(kind, 0) or b[1],
                   b[0] if kind == "column" else b[1])  # fmt: skip
    text = {
        "element": f"a[{u}, {v}]", "row": f"a[{u}, {_plus('j', start)}]", "column": f"a[{_plus('i', start)}, {v}]",
        "column as a row": f"a[{_plus('j', start)}, {v}]",
    }[kind]  # fmt: skip

    def added(one: Block, other: Block) -> None:
        match kind:
            case "row":
                other += one[u, start : start + b[1]]
            case "column":
                other += one[start : start + b[0], v][:, None]
            case "column as a row":
                other += one[start : start + b[1], v]
            case _:
                other += one[u, v]

    return Part(kind, (f"for i, j in T.Parallel({b[0]}, {b[1]}):", f"    b[i, j] = b[i, j] + {text}"), added)


def _computed(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    """Elements of one block at computed places, perhaps the same for all rows or columns, for all of the other."""
    rows, columns = b
    indices: list[str] = []
    for length in a:
        variable, extent = rng.choice((("i", rows), ("j", columns)))
        wanted = [f"({variable} * {rng.randint(1, 5)} + {rng.randint(0, 9)}) % {rng.randint(1, length)}"]
        divisor = -(-extent // length) + rng.randint(0, 3)
        wanted.append(f"{variable} // {divisor}" if divisor > 1 else variable)
        if rng.random() < 0.3:
            wanted.append(f"{length - 1} - {variable} // {divisor}" if divisor > 1 else f"{extent - 1} - {variable}")
        if rng.random() < 0.3:
            wanted.append(f"(i + j) % {length}")
        indices.append(rng.choice(wanted))
    places = [eval(index, {}, dict(zip("ij", np.mgrid[:rows, :columns], strict=True))) for index in indices]

    def added(one: Block, other: Block) -> None:
        other += one[places[0], places[1]]

    read = f"a[{indices[0]}, {indices[1]}]"
    return Part("computed", (f"for i, j in T.Parallel({rows}, {columns}):", f"    b[i, j] = b[i, j] + {read}"), added)


def _line(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    """Rows or columns of one block become some of the other, in the turns of a loop."""
    axis = rng.randrange(2)
    length = min(a[1 - axis], b[1 - axis])
    turns = rng.randint(1, min(4, a[axis], b[axis]))
    first, into = rng.randint(0, a[axis] - turns), rng.randint(0, b[axis] - turns)
    back = rng.random() < 0.5
    at = f"{first + turns - 1} - k" if back else f"k + {first}"
    if axis == 0:
        line = f"T.copy(a[{at}, :{length}], b[k + {into}, :{length}])"
    else:
        line = f"T.copy(a[:{length}, {at}], b[:{length}, k + {into}])"

    def moved(one: Block, other: Block) -> None:
        for k in range(turns):
            place = first + turns - 1 - k if back else k + first
            if axis == 0:
                other[k + into, :length] = one[place, :length]
            else:
                other[:length, k + into] = one[:length, place]

    return Part(("rows", "columns")[axis], (f"for k in T.serial({turns}):", f"    {line}"), moved)


def _steps(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    """Elements of a part of one block become some of the other, in steps along its axes, perhaps side by side, and
    perhaps in both sides of a branch."""
    down, across = rng.choice((1, 1, 2, -1)), rng.choice((2, 2, 3, -1, -2))
    extents = [min(length, -(-room // abs(factor))) for length, room, factor in zip(a, b, (down, across), strict=True)]
    m, n = (rng.randint(1, one) for one in extents)
    starts: list[int] = []
    for room, factor, extent in ((b[0], down, m), (b[1], across, n)):
        low = rng.randint(0, room - abs(factor) * (extent - 1) - 1)
        starts.append(low if factor > 0 else low - factor * (extent - 1))
    y, x = starts
    beside = abs(across) > 1 and 0 <= x + across * (n - 1) + 1 < b[1] and x + 1 < b[1]
    branch, bound = rng.random() < 0.4, rng.randint(-1, 1)
    own = f"b[{_plus(f'i * {down}', y)}, {_plus(f'j * {across}', x)}"
    stores = [f"{own}] = a[i, j]", *([f"{own} + 1] = a[i, j] - 1"] if beside else [])]
    if branch:
        inside = [*stores, f"{own}] = {own}] + a[i, j]"]
        stores = [
            f"if a[i, j] > {bound}:", *(f"    {one}" for one in inside), "else:", *(f"    {one}" for one in stores),
        ]  # fmt: skip

    def moved(one: Block, other: Block) -> None:
        given = one[:m, :n]
        rows, columns = (y + down * np.arange(m))[:, None], x + across * np.arange(n)
        other[rows, columns] = np.where(given > bound, 2 * given, given) if branch else given
        if beside:
            other[rows, columns + 1] = given - 1

    return Part("steps", (f"for i, j in T.Parallel({m}, {n}):", *(f"    {one}" for one in stores)), moved)


def _fill(rng: random.Random, a: tuple[int, int], b: tuple[int, int]) -> Part:
    m, n = _extents(rng, b, b)
    y, x, value = _start(rng, b[0], m), _start(rng, b[1], n), rng.randint(-3, 3)
    u, v, computed = rng.randrange(a[0]), rng.randrange(a[1]), rng.random() < 0.3
    text = f"a[{u}, {v}] + {value}" if computed else str(value)

    def filled(one: Block, other: Block) -> None:
        other[y : y + m, x : x + n] = one[u, v] + value if computed else value

    return Part(
        "fill with an element" if computed else "fill", (f"T.fill(b[{y}:{y + m}, {x}:{x + n}], {text})",), filled
    )


def _shapes(rng: random.Random) -> tuple[tuple[int, int], tuple[int, int]]:
    return (rng.choice(_ROWS), rng.choice(_COLUMNS)), (rng.choice(_ROWS), rng.choice(_COLUMNS))


def verdict(seed: int, folder: Path) -> list[str]:
    """What a kernel had, or what stopped it. Raises AssertionError where a law does not hold."""
    rng = random.Random(seed)
    a, b = _shapes(rng)
    dtype, held = rng.choice(("float32", "bfloat16")), rng.choice(("float32", "bfloat16"))
    parts = [
        rng.choice((_region, _region, _broadcast, _computed, _line, _fill, _steps))(rng, a, b)
        for _ in range(rng.randint(1, 3))
    ]
    text = "\n".join((
        "import ttexplore.language as T", "", "", "@T.prim_func",
        f'def kernel(A: T.Tensor((2, *{a}), "{dtype}"), B: T.Tensor((2, *{b}), "{dtype}"), '
        f'Out: T.Tensor((2, *{b}), "float32")):',
        "    with T.Kernel(2) as bx:",
        f'        a, b = T.alloc_shared({a}, "{dtype}"), T.alloc_fragment({b}, "{held}")',
        "        T.copy(A[bx, 0, 0], a)", "        T.copy(B[bx, 0, 0], b)",
        *(f"        {line}" for part in parts for line in part.lines), "        T.copy(b, Out[bx, 0, 0])", "",
    ))  # fmt: skip
    file = folder / f"parts_{seed}.py"
    file.write_text(text)
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    options = {"eltwise": rng.choice(("auto", "fpu", "sfpu")), "cores": rng.choice(((1, 1), (2, 1)))}
    exploration = ttx.explore(f"{file}::kernel", target=target, options=options)
    told = f"seed {seed}, {target}, {options}:\n{text}"
    if exploration.error is not None:
        assert "circular buffers are" in exploration.error.message, f"{exploration.error}\n{told}"
        return ["too many circular buffers"]
    numbers = np.random.default_rng(seed)
    given = [numbers.integers(-2, 3, one.shape).astype(one.dtype) for one in exploration.inputs()]
    check = exploration.check(given)
    assert check, f"{check}\n{told}"
    one, want = (array.astype(np.float64) for array in given)
    for item in range(2):
        for part in parts:
            part.does(one[item], want[item])
    for backend in ("interpreter", "emulator"):
        (found,) = exploration.run(given, backend=backend).outputs
        np.testing.assert_array_equal(found.astype(np.float64), want, err_msg=f"{backend}, {told}")
    return [part.kind for part in parts]


def campaign(first: int, number: int) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        return Counter(one for seed in range(first, first + number) for one in verdict(seed, Path(folder)))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number).items()):
        print(f"{count:6} {what}")
