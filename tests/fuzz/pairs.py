# pyright: basic
"""Random kernels of one feature each, with the attributes that a rewriting can drop: `features.py` lists the pairs.

    python -m tests.fuzz.pairs [number] [first seed]

What each must give is computed here, element by element, in Python's integers; numbers are whole and so small that
every format holds them and each result. Interpreter and emulator are held to it, and what must be refused is refused.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx
from tests.fuzz.laws import REFUSALS
from tests.fuzz.nests import branched_nest
from ttexplore.errors import TTExploreError

Array = NDArray[Any]
# Elements by their places, in Python's integers.
Elements = dict[tuple[int, ...], int]

FLOATS, WHOLES = ("float32", "bfloat16", "float8_e4m3fn"), ("int32", "int8", "uint8", "bool")
_LIMITS = {"int32": (-(1 << 31), (1 << 31) - 1), "int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}


def wrapped(value: int, dtype: str) -> int:
    """What a dtype keeps of a whole number."""
    if dtype == "bool":
        return int(value != 0)
    if dtype in FLOATS:
        return value
    low, high = _LIMITS[dtype]
    return (value - low) % (high - low + 1) + low


@dataclass
class Case:
    """A kernel: its feature and attributes, its tensors with what they hold, its lines, and what its outputs must hold
    in the end. One that must be `refused` says with which code."""

    feature: str
    attributes: set[str] = field(default_factory=set)
    tensors: list[tuple[str, tuple[int, ...], str]] = field(default_factory=list)
    grid: int = 1
    lines: list[str] = field(default_factory=list)
    given: dict[str, Elements] = field(default_factory=dict)
    wanted: dict[str, Elements] = field(default_factory=dict)
    refused: str = ""

    def text(self) -> str:
        parameters = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, shape, dtype in self.tensors)
        head = ["import ttexplore.language as T", "", "", "@T.prim_func", f"def kernel({parameters}):"]
        before = [line[1:] for line in self.lines if line.startswith("^")]
        inside = [line for line in self.lines if not line.startswith("^")]
        return "\n".join([
            *head, *(f"    {line}" for line in before), f"    with T.Kernel({self.grid}) as bx:",
            *(f"        {line}" for line in inside), "",
        ])  # fmt: skip

    def array(self, name: str, elements: Elements) -> Array:
        shape, dtype = next((shape, dtype) for own, shape, dtype in self.tensors if own == name)
        made = np.array([elements[place] for place in places(shape)], np.float64).reshape(shape)
        return made.astype(getattr(ml_dtypes, dtype) if dtype in ("bfloat16", "float8_e4m3fn") else dtype)


def places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


class Draw(random.Random):
    """Draws the parts of a case, and notes the attributes that they have."""

    def __init__(self, seed: int, case: Case) -> None:
        super().__init__(seed)
        self.case, self.numbers = case, np.random.default_rng(seed)

    def note(self, *attributes: str) -> None:
        self.case.attributes.update(attributes)

    def one(self, *values: Any) -> Any:
        return self.choice(values)

    def dtype(self, *among: str) -> str:
        chosen = self.choice(among or FLOATS + WHOLES)
        self.note(chosen)
        return chosen

    def block(self, *, largest: int = 2048, rows: Sequence[int] = (), columns: Sequence[int] = ()) -> tuple[int, int]:
        while True:
            shape = self.choice(rows or (1, 7, 16, 32, 33, 64, 96)), self.choice(columns or (1, 16, 20, 32, 48, 64))
            if math.prod(shape) <= largest:
                self.sized(shape)
                return shape

    def sized(self, shape: Sequence[int]) -> None:
        size = math.prod(shape)
        self.note(f"rank {len(shape)}")
        if any(extent % 32 for extent in shape[-2:]):
            self.note("odd sizes")
        if size == 1:
            self.note("one element")
        if size >= 512:
            self.note("512 elements")
        if size >= 2048:
            self.note("many tiles")

    def number(self, dtype: str) -> int:
        return self._some(dtype, 1)[0]

    def _some(self, dtype: str, count: int) -> list[int]:
        """Numbers of a dtype: of integers some of all, and some near zero."""
        if dtype in FLOATS:
            return self.numbers.integers(-4, 5, count).tolist()
        low, high = (-200, 200) if dtype == "int32" else _LIMITS[dtype]
        near = self.numbers.integers(max(low, -3), min(high, 3) + 1, count)
        return np.where(self.numbers.random(count) < 0.3, near, self.numbers.integers(low, high + 1, count)).tolist()

    def tensor(
        self, name: str, shape: tuple[int, ...], dtype: str, numbers: tuple[int, int] | Callable[[], int] | None = None
    ) -> Elements:
        """An input, or one that is written in part: its elements are from the first to the second of the `numbers`."""
        self.case.tensors.append((name, shape, dtype))
        match numbers:
            case None:
                drawn = self._some(dtype, math.prod(shape))
            case (low, high):
                drawn = self.numbers.integers(low, high + 1, math.prod(shape)).tolist()
            case _:
                drawn = [numbers() for _ in places(shape)]
        made = self.case.given[name] = dict(zip(places(shape), drawn, strict=True))
        if min(drawn) < 0:
            self.note("negative values")
        return made

    def output(self, name: str, shape: tuple[int, ...], dtype: str) -> Elements:
        self.case.tensors.append((name, shape, dtype))
        self.case.wanted[name] = {}
        return self.case.wanted[name]


# Features


def _view(draw: Draw, case: Case) -> None:
    """A tensor under another shape over the same memory, read or stored in blocks or by elements."""
    dtype = draw.dtype("float32", "bfloat16", "int32", "int8", "uint8", "bool")
    width, other = draw.one(16, 20, 32, 48, 64, 96), draw.one(8, 16, 32, 64, 40, 96)
    rows = other * draw.one(1, 2, 3)
    total = rows * width
    shape = draw.one(
        (rows, width), (other, rows // other, width), (total,), (1, rows, width), (other, rows // other, 1, width)
    )
    while total % other:
        other //= 2
    seen = draw.one(
        (total // other, other),
        (total,),
        (total // other // 2, 2, other) if total // other % 2 == 0 else (total // other, other),
    )
    draw.sized(shape)
    draw.note("last axis changed" if shape[-1] != seen[-1] else "last axis kept", f"view of rank {len(seen)}")
    write = draw.random() < 0.4
    draw.note("stored" if write else "read")
    a = draw.tensor("A", seen if write else shape, dtype)
    b = draw.output("B", shape if write else seen, dtype)
    name = "B" if write else "A"
    kind = draw.one("reshape", "view", "data")
    case.lines.append({
        "reshape": f"^v = T.reshape({name}, {seen})", "view": f"^v = T.view({name}, {seen})",
        "data": f'^v = T.Tensor({seen}, "{dtype}", {name}.data)',
    }[kind])  # fmt: skip
    source, target = ("A", "v") if write else ("v", "B")
    # A block of some of the last axis, or of a line of the first.
    if len(seen) == 1:
        block = draw.choice([one for one in (32, 16, 64, 128, total) if total % one == 0])
        case.grid, local, at = total // block, (block,), f"bx * {block}"
    else:
        block = draw.choice([one for one in (1, 2, 4, 8, 16, 32) if seen[-2] % one == 0])
        steps = seen[-2] // block
        case.grid, local = steps * (seen[0] if len(seen) == 3 else 1), (block, seen[-1])
        at = f"bx // {steps}, bx % {steps} * {block}, 0" if len(seen) == 3 else f"bx * {block}, 0"
    case.lines.append(f'a = T.alloc_shared({local}, "{dtype}")')
    names = ", ".join("ij"[: len(local)])
    if draw.random() < 0.35:
        draw.note("by elements")
        parts = at.split(", ")
        parts[-len(local) :] = [
            f"{part} + {index}"
            for part, index in zip(parts[-len(local) :], "ij"[-len(local) :] if len(local) == 2 else "i", strict=True)
        ]
        case.lines += [
            f"for {names} in T.Parallel({', '.join(map(str, local))}):",
            f"    a[{names}] = {source}[{', '.join(parts)}]",
            f"T.copy(a, {target}[{at}])",
        ]
    else:
        case.lines += [f"T.copy({source}[{at}], a)", f"T.copy(a, {target}[{at}])"]
    flat = [a[place] for place in places(seen if write else shape)]
    b.update(zip(places(shape if write else seen), flat, strict=True))


_JOINED: dict[str, Callable[[int, int], int]] = {
    "sum": lambda x, y: x + y, "max": max, "min": min, "abssum": lambda x, y: x + y, "absmax": max,
    "bitand": lambda x, y: x & y, "bitor": lambda x, y: x | y, "bitxor": lambda x, y: x ^ y,
}  # fmt: skip


def _reduce(draw: Draw, case: Case) -> None:
    kind = draw.choice([*_JOINED])
    bits = kind.startswith("bit")
    dtype = draw.dtype(
        *(
            ("int32", "int8", "uint8", "bool")
            if bits
            else ("float32", "bfloat16", "int32", "int8", "uint8", "float8_e4m3fn")
        )
    )
    draw.note(kind)
    if draw.random() < 0.3:
        shape = draw.one((2, 16, 32), (3, 7, 20), (2, 2, 8, 16))
        draw.sized(shape)
    else:
        shape = draw.block(rows=(1, 7, 32, 33, 64), columns=(1, 16, 20, 32, 64))
    dim, clear = draw.randrange(len(shape)), draw.random() < 0.7
    draw.note("last axis" if dim == len(shape) - 1 else "other axis", *([] if clear else ["target kept"]))
    small = None
    if kind in ("sum", "abssum") and dtype != "int32":
        # Sums that every format holds.
        small = (0 if dtype == "uint8" else -1, 1)
    a = draw.tensor("A", (2, *shape), dtype, small)
    left = (*shape[:dim], *shape[dim + 1 :])
    b = draw.output("B", (2, *left), dtype)
    case.grid = 2
    start = draw.one(0, 1) if not clear else 0
    slices, zeros = (", ".join(["bx", *["0"] * len(one)]) for one in (shape, left))
    negative = draw.random() < 0.5
    draw.note(*(["negative axis"] if negative else []))
    case.lines += [
        f'a, c = T.alloc_fragment({shape}, "{dtype}"), T.alloc_fragment({left}, "{dtype}")', f"T.copy(A[{slices}], a)",
        *([] if clear else [f"T.fill(c, {start})"]),
        f"T.reduce_{kind}(a, c, dim={dim - len(shape) if negative else dim}{'' if clear else ', clear=False'})",
        f"T.copy(c, B[{zeros}])",
    ]  # fmt: skip
    for item in range(2):
        for place in places(left):
            values = [a[item, *place[:dim], k, *place[dim:]] for k in range(shape[dim])]
            values = [abs(one) for one in values] if kind.startswith("abs") else values
            found = values[0]
            for one in values[1:]:
                found = _JOINED[kind](found, one)
            found = found if clear else _JOINED[kind](start, found)
            b[item, *place] = wrapped(found, dtype)


def _scan(draw: Draw, case: Case) -> None:
    kind, dtype = draw.one("cumsum", "cummax"), draw.dtype("float32", "bfloat16", "int32")
    shape = draw.block(rows=(1, 7, 32, 33), columns=(1, 16, 20, 32, 64))
    dim, reverse, in_place = draw.randrange(2), draw.random() < 0.5, draw.random() < 0.4
    draw.note(kind, *["reversed"] * reverse, *["in place"] * in_place, "last axis" if dim else "other axis")
    a = draw.tensor("A", (2, *shape), dtype, (-2, 2))
    b = draw.output("B", (2, *shape), dtype)
    case.grid = 2
    target = "a" if in_place else "c"
    given = f"a, dim={dim}" if in_place else f"a, c, dim={dim}"
    case.lines += [
        f'a, c = T.alloc_fragment({shape}, "{dtype}"), T.alloc_fragment({shape}, "{dtype}")', "T.copy(A[bx, 0, 0], a)",
        f"T.{kind}({given}{', reverse=True' if reverse else ''})", f"T.copy({target}, B[bx, 0, 0])",
    ]  # fmt: skip
    for item, other in itertools.product(range(2), range(shape[1 - dim])):
        order = [*range(shape[dim])][:: -1 if reverse else 1]
        running = None
        for k in order:
            place = (item, other, k) if dim else (item, k, other)
            value = a[place]
            running = value if running is None else running + value if kind == "cumsum" else max(running, value)
            b[place] = running


def _quantifier(draw: Draw, case: Case) -> None:
    """Any or all elements of a tensor's block decide a branch."""
    every, dtype = draw.random() < 0.5, draw.dtype("bool", "uint8", "int32", "int8")
    shape = draw.one((4,), (1,), (9,), (16, 16), (32, 20), (16, 40), (33, 32), (8, 1))
    draw.sized(shape)
    grid = case.grid = draw.one(2, 3)
    rare = draw.random() < 0.7
    values = lambda: int(draw.random() < (0.02 if rare else 0.5)) ^ int(every and rare)  # noqa: E731
    signed = lambda: values() * (-1 if dtype in ("int8", "int32") and draw.random() < 0.5 else 1)  # noqa: E731
    m = draw.tensor("M", (grid * shape[0], *shape[1:]), dtype, signed)
    a = draw.tensor("A", (grid * 32, 32), "float32")
    b = draw.output("B", (grid * 32, 32), "float32")
    whole = ", ".join([f"bx * {shape[0]} : bx * {shape[0]} + {shape[0]}", *(f"0:{one}" for one in shape[1:])])
    direct = draw.random() < 0.5
    case.lines += ['a = T.alloc_shared((32, 32), "float32")', "T.copy(A[bx * 32, 0], a)"]
    if not direct:
        draw.note("through a block")
        zeros = ", ".join([f"bx * {shape[0]}", *["0"] * (len(shape) - 1)])
        case.lines += [f'm = T.alloc_shared({shape}, "{dtype}")', f"T.copy(M[{zeros}], m)"]
    negated = draw.random() < 0.3
    test = f"T.{'all' if every else 'any'}_of({f'M[{whole}]' if direct else 'm'})"
    case.lines += [
        f"if {f'T.Not({test})' if negated else test}:", "    for i, j in T.Parallel(32, 32):",
        "        a[i, j] = a[i, j] * 2.0", *(["else:", "    T.fill(a, 7.0)"] if (other := draw.random() < 0.4) else []),
        "T.copy(a, B[bx * 32, 0])",
    ]  # fmt: skip
    for item in range(grid):
        values_of = [m[item * shape[0] + place[0], *place[1:]] != 0 for place in places(shape)]
        holds = (all(values_of) if every else any(values_of)) ^ negated
        for i, j in places((32, 32)):
            place = item * 32 + i, j
            b[place] = 2 * a[place] if holds else 7 if other else a[place]


def _loop(draw: Draw, case: Case) -> None:
    """A loop around copies, elements and products, which may have no iterations, alone or in another."""
    dtype = draw.dtype("float32", "bfloat16", "int32")
    count = draw.one(0, 0, 0, 1, 2)
    outer = draw.one(None, None, 0, 2)
    draw.note(*["zero iterations"] * (count == 0 or outer == 0), *["nested"] * (outer is not None))
    m, n = draw.block(rows=(1, 20, 32, 64), columns=(16, 20, 32))
    form = draw.one("T.serial", "T.Pipelined", "range", "T.unroll", "T.serial from")
    draw.note(form)
    head = {
        "T.serial from": f"for k in T.serial(1, {count} + 1):",
        "T.Pipelined": f"for k in T.Pipelined({count}, num_stages=2):",
    }.get(form, f"for k in {form}({count}):")
    first = 1 if form == "T.serial from" else 0
    a = draw.tensor("A", (3 * m, n), dtype, (-3, 3))
    b = draw.output("B", (m, n), "float32")
    what = draw.one("copy", "elements", "partly", "cast")
    draw.note(what)
    case.lines += [
        f'a, c = T.alloc_shared(({m}, {n}), "{dtype}"), T.alloc_fragment(({m}, {n}), "float32")', "T.copy(A[0, 0], a)",
        "T.fill(c, 1.0)",
    ]  # fmt: skip
    y, x = (draw.randrange(extent) for extent in (m, n))
    inner = {
        "copy": [
            f"T.copy(A[k * {m}, 0], a)",
            f"for i, j in T.Parallel({m}, {n}):",
            '    c[i, j] = c[i, j] + T.cast(a[i, j], "float32")',
        ],
        "elements": [f"for i, j in T.Parallel({m}, {n}):", '    c[i, j] = c[i, j] * 2.0 + T.cast(k, "float32")'],
        "partly": [
            f"for i, j in T.Parallel({m - y}, {n - x}):",
            f'    c[i + {y}, j + {x}] = T.cast(a[i, j], "float32")',
        ],
        "cast": [f"for i, j in T.Parallel({m}, {n}):", '    c[i, j] = T.cast(a[i, j], "float32") * 2.0'],
    }[what]
    loop = [head, *(f"    {line}" for line in inner)]
    case.lines += loop if outer is None else [f"for o in T.serial({outer}):", *(f"    {line}" for line in loop)]
    case.lines.append("T.copy(c, B)")
    c = {place: 1 for place in places((m, n))}
    held = {place: a[place] for place in places((m, n))}
    for _, k in itertools.product(range(1 if outer is None else outer), range(first, count + first)):
        if what == "copy":
            held = {(i, j): a[k * m + i, j] for i, j in places((m, n))}
        for i, j in places((m, n)):
            match what:
                case "copy":
                    c[i, j] += held[i, j]
                case "elements":
                    c[i, j] = c[i, j] * 2 + k
                case "cast":
                    c[i, j] = held[i, j] * 2
                case _:
                    if i >= y and j >= x:
                        c[i, j] = held[i - y, j - x]
    b.update(c)


_TESTS: dict[str, Callable[[int, int], int]] = {
    "x + y": lambda x, y: x + y, "x - y": lambda x, y: x - y, "x * y": lambda x, y: x * y, "x & y": lambda x, y: x & y,
    "x | y": lambda x, y: x | y, "x ^ y": lambda x, y: x ^ y, "x": lambda x, y: x, "x + 200": lambda x, y: x + 200,
    "x - 1": lambda x, y: x - 1, "-x": lambda x, y: -x, "~x": lambda x, y: ~x, "x << 4": lambda x, y: x << 4,
    "x >> 2": lambda x, y: x >> 2, "x * 3": lambda x, y: x * 3,
}  # fmt: skip


def _element(draw: Draw, case: Case) -> None:
    """Elements of a tensor decide a branch, the length of a loop or a place; their arithmetic wraps around."""
    dtype = draw.dtype("uint8", "bool", "int8", "int32")
    use = draw.one("branch", "length", "place", "rows", "choice")
    draw.note(use)
    grid = case.grid = draw.one(2, 4)
    text = draw.choice([*_TESTS]) if dtype != "bool" else draw.one("x", "x & y", "x | y", "x ^ y")
    if dtype in ("int32", "int8") and "200" in text:
        text = "x"
    s = draw.tensor("S", (grid + 1,), dtype)
    a = draw.tensor("A", (128, 32), "float32")
    b = draw.output("B", (grid * 32, 32), "float32")
    if text != "x":
        draw.note("arithmetic")

    def number(item: int) -> int:
        return wrapped(_TESTS[text](s[item,], s[item + 1,]), dtype)

    shown = "(" + re.sub(r"\by\b", "S[bx + 1]", re.sub(r"\bx\b", "S[bx]", text)) + ")"
    as_int = f'T.cast({shown}, "int32")' if draw.random() < 0.5 or dtype == "bool" else shown
    case.lines += ['a = T.alloc_shared((32, 32), "float32")']
    match use:
        case "branch" | "choice":
            sign, bound = draw.one("<", ">", "==", "!=", ">="), draw.one(0, 1, 2, 100)
            test = f"{shown} {sign} {bound}" if dtype != "bool" else shown
            case.lines.append("T.copy(A[bx * 32, 0], a)")
            case.lines += (
                [f"if {test}:", "    T.fill(a, 9.0)"] if use == "branch"
                else ["for i, j in T.Parallel(32, 32):", f"    a[i, j] = T.if_then_else({test}, 9.0, a[i, j])"]
            )  # fmt: skip
            compare = {"<": int.__lt__, ">": int.__gt__, "==": int.__eq__, "!=": int.__ne__, ">=": int.__ge__}[sign]
            for item in range(grid):
                holds = compare(number(item), bound) if dtype != "bool" else bool(number(item))
                for i, j in places((32, 32)):
                    b[item * 32 + i, j] = 9 if holds else a[item * 32 + i, j]
        case "length":
            case.lines += [
                "T.fill(a, 1.0)",
                f"for k in T.serial({as_int} % 5):" if dtype != "bool" else f"for k in T.serial({as_int}):",
                "    for i, j in T.Parallel(32, 32):",
                "        a[i, j] = a[i, j] + 1.0",
            ]
            if dtype != "bool" and any(number(item) % 5 == 0 for item in range(grid)):
                draw.note("zero iterations")
            for item in range(grid):
                for i, j in places((32, 32)):
                    b[item * 32 + i, j] = 1 + (number(item) % 5 if dtype != "bool" else number(item))
        case _:
            index = f"{as_int} % 4" if dtype != "bool" else as_int
            row = [number(item) % 4 for item in range(grid)]
            if use == "place":
                case.lines.append(f"T.copy(A[({index}) * 32, 0], a)")
            else:
                case.lines += ["for i, j in T.Parallel(32, 32):", f"    a[i, j] = A[({index}) * 32 + i, j]"]
            for item in range(grid):
                for i, j in places((32, 32)):
                    b[item * 32 + i, j] = a[row[item] * 32 + i, j]
    case.lines.append("T.copy(a, B[bx * 32, 0])")


def _shift(draw: Draw, case: Case) -> None:
    """Shifts by elements, also by the width of the dtype and more: what is beyond the last bit is 0, or the sign."""
    dtype, left = draw.dtype("int32", "int8", "uint8"), draw.random() < 0.5
    shape = draw.block(rows=(1, 20, 32), columns=(1, 20, 32, 64))
    draw.note("left" if left else "right")
    a = draw.tensor("A", shape, dtype)
    width = {"int32": 32, "int8": 8, "uint8": 8}[dtype]
    s = draw.tensor("S", shape, dtype, lambda: draw.one(draw.randint(0, width - 1), draw.randint(width, 70)))
    if any(one >= width for one in s.values()):
        draw.note("shifts by the width")
    b = draw.output("B", shape, dtype)
    case.lines += [
        f'a, s = T.alloc_shared({shape}, "{dtype}"), T.alloc_shared({shape}, "{dtype}")',
        "T.copy(A, a)",
        "T.copy(S, s)",
        f"for i, j in T.Parallel{shape}:",
        f"    a[i, j] = a[i, j] {'<<' if left else '>>'} s[i, j]",
        "T.copy(a, B)",
    ]
    for place in places(shape):
        b[place] = wrapped(a[place] << s[place], dtype) if left else a[place] >> s[place]


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "x + y": lambda x, y: x + y, "x - y": lambda x, y: x - y, "x * y": lambda x, y: x * y,
    "T.max(x, y)": max, "T.min(x, y)": min, "-x": lambda x, y: -x, "x + y + y": lambda x, y: x + y + y,
    "T.abs(x)": lambda x, y: abs(x), "T.if_then_else(x > y, x, y - x)": lambda x, y: x if x > y else y - x,
    "T.if_then_else(x == y, y, x)": lambda x, y: y if x == y else x,
    "T.if_then_else(T.And(x > 0, y != 0), y, x)": lambda x, y: y if x > 0 and y != 0 else x,
}  # fmt: skip
_OF_BITS: dict[str, Callable[[int, int], int]] = {
    "x & y": lambda x, y: x & y,
    "x | y": lambda x, y: x | y,
    "x ^ y": lambda x, y: x ^ y,
    "~x": lambda x, y: ~x,
    "x // 4": lambda x, y: x // 4,
    "x % 8": lambda x, y: x % 8,
    "(x + y) >> 1": lambda x, y: x + y,
    "x << 3": lambda x, y: x << 3,
}


def _arithmetic(draw: Draw, case: Case) -> None:
    """Arithmetic of elements, which wraps around in each dtype: beside others, in place, and with several uses."""
    dtype = draw.dtype("float32", "bfloat16", "int32", "int8", "uint8")
    texts = _ARITHMETIC if dtype in FLOATS else _ARITHMETIC | _OF_BITS
    shape = draw.block()
    text, alias, again = draw.choice([*texts]), draw.one("new", "in place", "operand"), draw.random() < 0.4
    draw.note(*["in place"] * (alias != "new"), *["several uses"] * again)
    numbers = None if dtype != "int32" else ((-200, 200))
    a, c = draw.tensor("A", (2, *shape), dtype, numbers), draw.tensor("C", (2, *shape), dtype, numbers)
    b = draw.output("B", (2, *shape), dtype)
    case.grid, target = 2, {"new": "d", "in place": "a", "operand": "c"}[alias]
    shown = re.sub(r"\by\b", "c[i, j]", re.sub(r"\bx\b", "a[i, j]", text))
    case.lines += [
        f'a, c, d = [T.alloc_fragment({shape}, "{dtype}") for _ in range(3)]', "T.copy(A[bx, 0, 0], a)",
        "T.copy(C[bx, 0, 0], c)", f"for i, j in T.Parallel{shape}:", f"    {target}[i, j] = {shown}",
        *([f"for i, j in T.Parallel{shape}:", f"    d[i, j] = {target}[i, j] + c[i, j]"] if again else []),
        f"T.copy({'d' if again else target}, B[bx, 0, 0])",
    ]  # fmt: skip
    for place in places((2, *shape)):
        x, y = a[place], c[place]
        value = wrapped(x + y, dtype) >> 1 if ">> 1" in text else wrapped(texts[text](x, y), dtype)
        if again:
            value = wrapped(value + (value if alias == "operand" else y), dtype)
        b[place] = value


def _cast(draw: Draw, case: Case) -> None:
    """A cast between two dtypes, with numbers outside of the second one, too, where they are integers."""
    source = draw.dtype("float32", "bfloat16", "int32", "int8", "uint8", "bool")
    target = draw.choice(("float32", "bfloat16", "int32", "int8", "uint8", "bool", "float8_e4m3fn"))
    draw.note(f"to {target}")
    shape = draw.block()
    low, high = {"uint8": (0, 255), "bool": (0, 1), "int8": (-128, 127)}.get(source, (-255, 255))
    if target == "float8_e4m3fn":
        low, high = max(low, -16), min(high, 16)
    if target in ("bool", "uint8", "int8") and source in FLOATS:
        low, high = (0, 127) if target == "uint8" else (-128, 127)
    a = draw.tensor("A", shape, source, (low, high))
    b = draw.output("B", shape, target)
    how = draw.one("elements", "copy")
    draw.note(how)
    case.lines += [f'a, c = T.alloc_shared({shape}, "{source}"), T.alloc_shared({shape}, "{target}")', "T.copy(A, a)"]
    case.lines += (
        ["T.copy(a, c)"]
        if how == "copy"
        else [f"for i, j in T.Parallel{shape}:", f'    c[i, j] = T.cast(a[i, j], "{target}")']
    )
    case.lines.append("T.copy(c, B)")
    b.update({place: wrapped(value, target) for place, value in a.items()})


def _gather(draw: Draw, case: Case) -> None:
    """Elements of a tensor at computed places: reversed, in steps, turned, or outside of it, where it is zero."""
    dtype = draw.dtype("float32", "bfloat16", "int32", "uint8", "int8")
    rows, columns = draw.one(20, 32, 64, 70), draw.one(20, 32, 64, 96)
    m, n = draw.one(1, 8, 16, 32), draw.one(1, 16, 20, 32)
    draw.sized((m, n))
    way = draw.one("reversed", "reversed columns", "strided", "turned", "shifted", "before the start", "both")
    draw.note({"reversed columns": "reversed", "both": "reversed"}.get(way) or way, *["strided"] * (way == "both"))
    y, x = {
        "reversed": (f"{rows - 1} - i", "j"),
        "reversed columns": ("i", f"{columns - 1} - j"),
        "strided": ("i * 2", "j * 3"),
        "turned": ("j", "i"),
        "shifted": ("i + 3", "j + 5"),
        "before the start": ("i - 2", "j - 1"),
        "both": (f"{rows - 1} - 2 * i", f"{columns - 1} - j"),
    }[way]
    a = draw.tensor("A", (rows, columns), dtype)
    b = draw.output("B", (m, n), dtype)
    case.lines += [
        f'a = T.alloc_shared(({m}, {n}), "{dtype}")',
        f"for i, j in T.Parallel({m}, {n}):",
        f"    a[i, j] = A[{y}, {x}]",
        "T.copy(a, B)",
    ]
    for i, j in places((m, n)):
        b[i, j] = a.get((eval(y, {"i": i, "j": j}), eval(x, {"i": i, "j": j})), 0)


def _part(draw: Draw, case: Case) -> None:
    """A row, a column or an element of a block, alone or beside the block, perhaps in place."""
    dtype, shape = draw.dtype(), draw.block(largest=4096)
    way, alias = draw.one("row", "column", "element"), draw.one("new", "in place")
    draw.note(way, alias)
    y, x = (draw.randrange(extent) for extent in shape)
    a = draw.tensor("A", (2, *shape), dtype)
    b = draw.output("B", (2, *shape), dtype)
    case.grid = 2
    part = {"row": f"a[{y}, j]", "column": f"a[i, {x}]", "element": f"a[{y}, {x}]"}[way]
    target = "c" if alias == "new" else "a"
    case.lines += [
        f'a, c, d = [T.alloc_fragment({shape}, "{dtype}") for _ in range(3)]',
        "T.copy(A[bx, 0, 0], a)",
        f"for i, j in T.Parallel{shape}:",
        f"    d[i, j] = {part}",
        f"for i, j in T.Parallel{shape}:",
        f"    {target}[i, j] = d[i, j]",
        f"T.copy({target}, B[bx, 0, 0])",
    ]
    for item, i, j in places((2, *shape)):
        b[item, i, j] = a[item, y if way != "column" else i, x if way != "row" else j]


def _product(draw: Draw, case: Case) -> None:
    dtype = draw.dtype("float32", "bfloat16", "int8", "uint8")
    turned = draw.random() < 0.4, draw.random() < 0.4
    m, n, k, steps = draw.one(1, 20, 32, 64), draw.one(16, 32, 33, 64), draw.one(16, 32, 48), draw.one(1, 2, 3)
    out = "int32" if "int" in dtype else "float32"
    draw.sized((m, n))
    draw.note(
        *["first turned"] * turned[0], *["second turned"] * turned[1], "several steps" if steps > 1 else "one step"
    )
    small = (0 if dtype == "uint8" else -2, 2)
    a = draw.tensor("A", (steps * k, m) if turned[0] else (m, steps * k), dtype, small)
    w = draw.tensor("W", (n, steps * k) if turned[1] else (steps * k, n), dtype, small)
    b = draw.output("B", (m, n), out)
    shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    at = f"s * {k}, 0" if turned[0] else f"0, s * {k}", f"0, s * {k}" if turned[1] else f"s * {k}, 0"
    flags = ", transpose_A=True" * turned[0] + ", transpose_B=True" * turned[1]
    case.lines += [
        f'a, w = T.alloc_shared({shapes[0]}, "{dtype}"), T.alloc_shared({shapes[1]}, "{dtype}")',
        f'c = T.alloc_fragment(({m}, {n}), "{out}")', "T.clear(c)", f"for s in T.Pipelined({steps}, num_stages=2):",
        f"    T.copy(A[{at[0]}], a)", f"    T.copy(W[{at[1]}], w)", f"    T.gemm(a, w, c{flags})", "T.copy(c, B)",
    ]  # fmt: skip
    for i, j in places((m, n)):
        b[i, j] = sum(a[(q, i) if turned[0] else (i, q)] * w[(j, q) if turned[1] else (q, j)] for q in range(steps * k))


def _fill(draw: Draw, case: Case) -> None:
    dtype, shape = draw.dtype(), draw.block()
    value = draw.number(dtype)
    draw.note(*["negative values"] * (value < 0))
    b = draw.output("B", (2, *shape), dtype)
    case.grid = 2
    clear = draw.random() < 0.2
    case.lines += [
        f'a = T.alloc_fragment({shape}, "{dtype}")',
        "T.clear(a)" if clear else f"T.fill(a, {value})",
        "T.copy(a, B[bx, 0, 0])",
    ]
    b.update({place: 0 if clear else value for place in places((2, *shape))})


def _variable(draw: Draw, case: Case) -> None:
    """A variable that a loop changes, and that elements take."""
    dtype = draw.dtype("float32", "int32", "bfloat16")
    count, start = draw.one(0, 1, 3), draw.randint(-4, 4)
    draw.note(*["zero iterations"] * (count == 0), *["negative values"] * (start < 0))
    shape = draw.block()
    a, b = draw.tensor("A", shape, dtype, (-4, 4)), draw.output("B", shape, dtype)
    text = f"{start}.0" if dtype != "int32" else str(start)
    is_stored = draw.random() < 0.7
    if not is_stored:
        draw.note("not stored before")
        start = 0
    case.lines += [
        f'a, v = T.alloc_shared({shape}, "{dtype}"), T.alloc_var("{dtype}")', "T.copy(A, a)",
        *[f"v = {text}"] * is_stored,
        f"for k in T.serial({count}):", f"    v = v + {'2' if dtype == 'int32' else '2.0'}",
    ]  # fmt: skip
    added, last = [f"for i, j in T.Parallel{shape}:", "    a[i, j] = a[i, j] + v"], start + 2 * count
    bound = draw.randint(-4, 6) if draw.random() < 0.5 else None
    if bound is not None:
        draw.note("branch")
        added = [f"if v > {bound}:", *(f"    {line}" for line in added), "else:", "    T.fill(a, 3)"]
    case.lines += [*added, "T.copy(a, B)"]
    b.update({place: value + last if bound is None or last > bound else 3 for place, value in a.items()})


def _partly(draw: Draw, case: Case) -> None:
    """A tensor of which a part is stored: what it held before is kept."""
    dtype = draw.dtype("float32", "bfloat16", "int32", "uint8")
    rows, columns = draw.one(64, 70, 96), draw.one(20, 32, 64)
    m = draw.one(1, 16, 32)
    draw.note("old contents")
    draw.sized((m, columns))
    slots = rows // m
    chosen = draw.sample(range(slots), 1)
    how = draw.one("constant", "element", "branch", "rows", "loop")
    draw.note(how)
    if how == "element":
        draw.tensor("P", (2,), "int32", lambda: chosen[0])
    a = draw.tensor("A", (m, columns), dtype)
    old = draw.tensor("B", (rows, columns), dtype)
    wanted = case.wanted["B"] = dict(old)
    case.lines += [f'a = T.alloc_shared(({m}, {columns}), "{dtype}")', "T.copy(A, a)"]
    count = m
    match how:
        case "constant":
            case.lines.append(f"T.copy(a, B[{chosen[0] * m}, 0])")
        case "element":
            case.lines.append(f"T.copy(a, B[P[0] * {m}, 0])")
        case "branch":
            case.grid = slots
            case.lines += [f"if bx == {chosen[0]}:", f"    T.copy(a, B[bx * {m}, 0])"]
        case "rows":
            count = draw.randint(1, m)
            case.lines += [
                f"for i, j in T.Parallel({m}, {columns}):", f"    if i < {count}:",
                f"        B[{chosen[0] * m} + i, j] = a[i, j]",
            ]  # fmt: skip
        case _:
            # Of two slots both would be stored, and nothing kept.
            turns = draw.one(0, 1) if slots > 2 else 0
            draw.note(*["zero iterations"] * (turns == 0))
            count = m if turns else 0
            # A kernel that stores nothing is none.
            other = (chosen[0] + 1) % slots
            case.lines += [
                f"T.copy(a, B[{other * m}, 0])",
                f"for k in T.serial({turns}):",
                f"    T.copy(a, B[{chosen[0] * m}, 0])",
            ]
            wanted.update({(other * m + i, j): a[i, j] for i, j in places((m, columns))})
    for i, j in places((count, columns)):
        wanted[chosen[0] * m + i, j] = a[i, j]


def _mixed_atomics(draw: Draw, case: Case) -> None:
    """Additions and maxima of the same elements, in any order: a race."""
    first, second = draw.sample(["add", "max", "min"], 2)
    draw.dtype("float32")
    case.grid, case.refused = 4, "TTX-K017"
    draw.tensor("A", (32, 32), "float32")
    draw.output("B", (8, 32), "float32")
    case.lines += [
        'a = T.alloc_shared((8, 32), "float32")',
        "T.copy(A[bx * 8, 0], a)",
        "if bx % 2 == 0:",
        f"    T.atomic_{first}(B, a)",
        "else:",
        f"    T.atomic_{second}(B, a)",
    ]


def _scattered(draw: Draw, case: Case) -> None:
    """Updates of the rows that an index tensor chooses in each turn of a T.Parallel, the same ones several times."""
    rows, columns = draw.block(largest=512)
    dtype, kind = draw.dtype("float32", "int32"), draw.one("add", "max", "min")
    chosen, blocks = draw.one("all", "some", "neighbours"), draw.one(1, 3)
    if chosen == "neighbours":
        kind, columns = "add", -(-columns // 4) * 4
    draw.note(kind, chosen, *["several blocks"] * (blocks > 1))
    case.grid = blocks
    a = draw.tensor("A", (blocks * rows, columns), dtype, (-9, 9))
    index = draw.tensor("N", (blocks * rows,), "int32", (0, 4))
    old = draw.tensor("C", (5, columns), dtype, (-9, 9))
    result = case.wanted["C"] = dict(old)
    for i, j in places((blocks * rows, columns)):
        at = index[i,]
        if chosen != "some" or at > 1:
            joined = {"add": operator.add, "max": max, "min": min}[kind]
            result[at, j] = joined(result[at, j], a[i, j])
    case.lines += [f'a = T.alloc_shared(({rows}, {columns}), "{dtype}")', f"T.copy(A[bx * {rows}, 0], a)"]
    if chosen == "neighbours":
        case.lines += [
            f"for i, j in T.Parallel({rows}, {columns // 4}):",
            f"    T.atomic_addx4(C[N[bx * {rows} + i], j * 4], a[i, j * 4])",
        ]
        return
    update = f"T.atomic_{kind}(C[row, j], a[i, j])"
    case.lines += [f"for i, j in T.Parallel({rows}, {columns}):", f"    row = N[bx * {rows} + i]"]
    case.lines += ["    if row > 1:", f"        {update}"] if chosen == "some" else [f"    {update}"]


def _shifted_in_place(draw: Draw, case: Case) -> None:
    """A T.Parallel that reads what its other iterations store: a race."""
    dtype = draw.dtype("float32", "int32", "bfloat16")
    way = draw.one("right", "left", "down", "up", "reversed")
    draw.note(way, "in place")
    case.refused = "TTX-L003"
    draw.tensor("A", (32, 64), dtype)
    draw.output("B", (32, 64), dtype)
    store, load, extents = {
        "right": ("i, j + 1", "i, j", "32, 63"),
        "left": ("i, j", "i, j + 1", "32, 63"),
        "down": ("i + 1, j", "i, j", "31, 64"),
        "up": ("i, j", "i + 1, j", "31, 64"),
        "reversed": ("i, j", "i, 63 - j", "32, 64"),
    }[way]
    case.lines += [
        f'a = T.alloc_shared((32, 64), "{dtype}")', "T.copy(A, a)", f"for i, j in T.Parallel({extents}):",
        f"    a[{store}] = a[{load}]", "T.copy(a, B)",
    ]  # fmt: skip


_FUNCTIONS: dict[str, tuple[Callable[[int, int], float], tuple[str, ...]]] = {
    # Of halves x / 2, where the functions round; of whole numbers.
    "T.floor(x)": (lambda x, y: math.floor(x / 2), FLOATS[:2]),
    "T.ceil(x)": (lambda x, y: math.ceil(x / 2), FLOATS[:2]),
    "T.trunc(x)": (lambda x, y: math.trunc(x / 2), FLOATS[:2]),
    "T.nearbyint(x)": (lambda x, y: round(x / 2), FLOATS[:2]),
    "T.round(x)": (lambda x, y: math.copysign(math.floor(abs(x) / 2 + 0.5), x), FLOATS[:2]),
    "T.clamp(x, -3, 5)": (lambda x, y: max(-3, min(x, 5)), ("int32", "int8")),
    "T.bitwise_and(x, y)": (lambda x, y: x & y, WHOLES[:3]),
    "T.bitwise_or(x, y)": (lambda x, y: x | y, WHOLES[:3]),
    "T.bitwise_xor(x, y)": (lambda x, y: x ^ y, WHOLES[:3]),
    "T.bitwise_not(x)": (lambda x, y: ~x, WHOLES[:3]),
    "T.floordiv(x, 8)": (lambda x, y: x // 8, WHOLES[:3]),
    "T.floormod(x, 8)": (lambda x, y: x % 8, WHOLES[:3]),
    "T.shift_left(x, 2)": (lambda x, y: x << 2, WHOLES[:3]),
    "T.shift_right(x, 2)": (lambda x, y: x >> 2, WHOLES[:3]),
    "T.Select(T.Or(x > 2, T.Not(y < 1)), x, y)": (
        lambda x, y: x if x > 2 or not y < 1 else y,
        ("int32", "int8", "uint8"),
    ),
    "T.max(x, T.min_value(DTYPE))": (lambda x, y: x, ("float32", "bfloat16", "int32")),
    "T.min(y, T.max_value(DTYPE))": (lambda x, y: y, ("float32", "bfloat16", "int32")),
    "T.min(x, T.infinity(DTYPE))": (lambda x, y: x, ("float32",)),
    "T.abs(x)": (lambda x, y: abs(x), ("int32", "int8")),
    'T.Cast("int32", x)': (lambda x, y: x, ("int32",)),
    'T.cast(T.reinterpret(T.cast(y, "float32"), "int32") >> 23, "int32")': (
        lambda x, y: int(np.float32(y).view(np.int32)) >> 23,
        ("int32",),
    ),
}


def _function(draw: Draw, case: Case) -> None:
    """The functions of elements whose results are exact."""
    text = draw.choice([*_FUNCTIONS])
    meaning, dtypes = _FUNCTIONS[text]
    dtype, shape = draw.dtype(*dtypes), draw.block()
    halves = dtypes == FLOATS[:2]
    low, high = (0, 255) if dtype == "uint8" else (-9, 9) if dtype in FLOATS else (-128, 127)
    a, c = (draw.tensor(name, shape, dtype, (low, high)) for name in "AC")
    b = draw.output("B", shape, dtype)
    shown = text.replace("DTYPE", f'"{dtype}"')
    shown = re.sub(r"\by\b", "c[i, j]", re.sub(r"\bx\b", "(a[i, j] * 0.5)" if halves else "a[i, j]", shown))
    case.lines += [
        f'a, c = T.alloc_shared({shape}, "{dtype}"), T.alloc_shared({shape}, "{dtype}")',
        "T.copy(A, a)",
        "T.copy(C, c)",
        f"for i, j in T.Parallel{shape}:",
        f"    a[i, j] = {shown}",
        "T.copy(a, B)",
    ]
    b.update({place: wrapped(int(meaning(a[place], c[place])), dtype) for place in places(shape)})


def _reducer(draw: Draw, case: Case) -> None:
    """A reducer, which many iterations of a T.Parallel update at one element, in several loops."""
    kind, dtype = draw.one("sum", "max", "min"), draw.dtype("float32", "int32")
    m, n = draw.block(rows=(1, 16, 32, 33), columns=(1, 20, 32, 64))
    rows = draw.random() < 0.5
    draw.note(kind, "rows" if rows else "columns")
    count = draw.one(0, 1, 2)
    draw.note(*["zero iterations"] * (count == 0))
    a = draw.tensor("A", (max(count, 1) * m, n), dtype, (-2, 2))
    length = m if rows else n
    b = draw.output("B", (length,), dtype)
    update, start = {"sum": ("add", 0), "max": ("max", -99), "min": ("min", 99)}[kind]
    at = "i" if rows else "j"
    case.lines += [
        f'a = T.alloc_shared(({m}, {n}), "{dtype}")',
        f'r = T.alloc_reducer(({length},), "{dtype}", op="{kind}", replication="all")',
        draw.one(f"T.fill(r, {start})", f"T.reducer_init(r, {start})"),
        f"for k in T.serial({count}):",
        f"    T.copy(A[k * {m}, 0], a)",
        f"    for i, j in T.Parallel({m}, {n}):",
        draw.one(
            {"sum": f"        r[{at}] += a[i, j]"}.get(kind, f"        r[{at}] = T.{update}(r[{at}], a[i, j])"),
            f"        T.reducer_update(r[{at}], a[i, j])",
        ),
        *draw.one(
            ("T.finalize_reducer(r)", "T.copy(r, B)"),
            (f'd = T.alloc_fragment(({length},), "{dtype}")', "T.finalize_reducer(r, d)", "T.copy(d, B)"),
        ),
    ]
    made = [start] * length
    for k, i, j in itertools.product(range(count), range(m), range(n)):
        place = i if rows else j
        made[place] = _JOINED[kind](made[place], a[k * m + i, j])
    b.update({(place,): value for place, value in enumerate(made)})


def _form(draw: Draw, case: Case) -> None:
    """Loops of other forms: T.grid, T.vectorized, T.unroll, T.Persistent; and blocks of T.alloc_local."""
    form, dtype = (
        draw.one("grid", "vectorized", "unroll", "Persistent", "local"),
        draw.dtype("float32", "bfloat16", "int32"),
    )
    m, n = draw.block(rows=(2, 8, 32), columns=(16, 20, 32))
    draw.note(form)
    a = draw.tensor("A", (2 * m, 2 * n), dtype, (-9, 9))
    b = draw.output("B", (2 * m, 2 * n), dtype)
    move = [
        f"T.copy(A[y * {m}, x * {n}], a)",
        f"for i, j in T.Parallel({m}, {n}):",
        "    a[i, j] = a[i, j] + a[i, j]",
        f"T.copy(a, B[y * {m}, x * {n}])",
    ]
    loop = {
        "grid": ["for y, x in T.grid(2, 2):"],
        "unroll": ["for y in T.unroll(2):", "for x in T.Unroll(2):"],
        "Persistent": ["for y, x in T.Persistent([2, 2], 2, bx):"],
        "local": ["for y, x in T.grid(2, 2):"],
        "vectorized": ["for y, x in T.grid(2, 2):"],
    }[form]
    if form == "Persistent":
        case.grid = 2
    if form == "vectorized":
        move[1:3] = [
            f"for i in T.Parallel({m}):",
            f"    for j in T.vectorized({n}):",
            "        a[i, j] = a[i, j] + a[i, j]",
        ]
    if form == "local":
        move[1:3] = [
            f'own = T.alloc_local((1,), "{dtype}")',
            "own[0] = a[1, 2]",
            f"for i, j in T.Parallel({m}, {n}):",
            "    a[i, j] = a[i, j] + own[0]",
        ]
    case.lines.append(f'a = T.alloc_shared(({m}, {n}), "{dtype}")')
    for depth, line in enumerate([*loop]):
        case.lines.append("    " * depth + line)
    case.lines += ["    " * len(loop) + line for line in move]
    for y, x in places((2 * m, 2 * n)):
        b[y, x] = a[y, x] + (a[y // m * m + 1, x // n * n + 2] if form == "local" else a[y, x])


GENERATORS: dict[str, Callable[[Draw, Case], None]] = {
    "view": _view, "reduction": _reduce, "scan": _scan, "quantifier": _quantifier, "loop": _loop, "element": _element,
    "shift": _shift, "arithmetic": _arithmetic, "cast": _cast, "gather": _gather, "part": _part, "product": _product,
    "fill": _fill, "variable": _variable, "partly stored": _partly, "mixed atomics": _mixed_atomics,
    "scattered updates": _scattered,
    "shifted in place": _shifted_in_place, "function": _function, "reducer": _reducer, "form of loop": _form,
    "branched nest": branched_nest,
}  # fmt: skip


def drawn(seed: int, *features: str) -> Case:
    """The case of a seed: of one of these features, or of any."""
    feature = random.Random(f"feature {seed}").choice([*(features or GENERATORS)])
    case = Case(feature)
    GENERATORS[feature](Draw(seed, case), case)
    return case


@dataclass
class Tally:
    """How many kernels had each pair of a feature and an attribute, what was refused, by feature and name, and what is
    wrong."""

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Wrong(AssertionError):
    """A kernel that is lowered to another one, or refused without reason."""


def verdict(seed: int, folder: Path, *features: str) -> tuple[Case, str]:
    """A case and the name of what refused it, if something did. Raises Wrong."""
    case, rng = drawn(seed, *features), random.Random(f"options {seed}")
    file = folder / f"pairs_{seed}.py"
    file.write_text(case.text())
    options: dict[str, Any] = {"cores": rng.choice(((1, 1), (2, 1), (2, 2)))}
    target = rng.choice(("wormhole_n150", "blackhole_p150"))
    told = f"seed {seed}, {case.feature}, {sorted(case.attributes)}, {target}, {options}:\n{case.text()}"
    try:
        lowered = ttx.explore(f"{file}::kernel", target=target, options=options)
        error = lowered.error
    except TTExploreError as refused:
        lowered, error = None, refused
    except Exception as crash:
        raise Wrong(f"{type(crash).__name__}: {crash}\n{told}") from crash
    if error is not None or lowered is None:
        assert error is not None
        if case.refused:
            if error.code != case.refused:
                raise Wrong(f"refused, but not by {case.refused}: {error} [{error.code}]\n{told}")
            return case, case.refused
        for name, kind, message in REFUSALS:
            if isinstance(error, kind) and re.search(message, error.message) and error.hint:
                return case, name
        raise Wrong(f"refused: {error} [{error.code}]\n{told}")
    if case.refused:
        raise Wrong(f"lowered, though {case.refused} must refuse it\n{told}")
    try:
        _compared(lowered, case, steps=seed % 4 == 0)
    except Wrong as wrong:
        raise Wrong(f"{wrong}\n{told}") from wrong
    except Exception as crash:
        raise Wrong(f"{type(crash).__name__}: {crash}\n{told}") from crash
    return case, ""


def _compared(lowered: Any, case: Case, *, steps: bool) -> None:
    given = {name: case.array(name, elements) for name, elements in case.given.items()}
    roles = lowered._roles
    asked = {name for name, role in roles.items() if role != "output"}
    if asked != set(given):
        raise Wrong(f"takes {sorted(asked)}, not {sorted(given)}")
    if steps and not (found := lowered.check(given)):
        raise Wrong(f"check: {found}")
    outputs = [name for name, role in roles.items() if role != "input"]
    for backend in ("interpreter", "emulator"):
        run = lowered.run(given, backend=backend)
        for name, array in zip(outputs, run.outputs, strict=True):
            want, got = (np.asarray(one).astype(np.float64) for one in (case.array(name, case.wanted[name]), array))
            wrong = ~((want == got) & np.isfinite(got))
            if got.shape != want.shape or wrong.any():
                at = tuple(map(int, np.argwhere(wrong)[0]))
                count = f"{int(wrong.sum())} of {wrong.size} elements"
                raise Wrong(f"{backend}: {count} of {name}; at {at} {got[at]}, not {want[at]}")
        if not run.passed:
            raise Wrong(f"{backend}: a right result is called wrong: {run.message}")


def campaign(first: int, number: int, *features: str) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + number):
            case = drawn(seed, *features)
            tally.kernels[case.feature] += 1
            tally.pairs.update((case.feature, one) for one in case.attributes)
            try:
                _, refused = verdict(seed, Path(folder), *features)
            except Wrong as wrong:
                tally.faults.append(str(wrong))
                continue
            if refused and not case.refused:
                tally.refused[case.feature, refused] += 1
    return tally


def summary(tally: Tally) -> str:
    lines: list[str] = []
    for feature, count in sorted(tally.kernels.items()):
        refused = sum(number for (own, _), number in tally.refused.items() if own == feature)
        pairs = ", ".join(f"{name} {number}" for (own, name), number in sorted(tally.pairs.items()) if own == feature)
        lines.append(f"{count:6} {feature}, {refused} refused: {pairs}")
    lines += [f"{number:6} refused: {feature}: {name}" for (feature, name), number in sorted(tally.refused.items())]
    lines.append(f"{tally.kernels.total()} kernels, {tally.refused.total()} refused, {len(tally.faults)} wrong")
    return "\n".join(lines)


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    tally = campaign(first, number, *sys.argv[3:])
    print("\n\n".join(tally.faults))
    print(summary(tally))
    sys.exit(bool(tally.faults))
