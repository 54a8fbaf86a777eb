# pyright: basic
"""Nests of T.Parallel with statements and branches between their loops.

What they compute is what Python computes from the same lines, iteration by iteration: `T.Parallel` counts, and blocks
are dictionaries of whole numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fuzz.pairs import Case, Draw, Elements


class _Block(dict[tuple[int, ...], int]):
    """A block by places; a vector has its places without a tuple."""

    def __getitem__(self, place: Any) -> int:
        return super().__getitem__(place if isinstance(place, tuple) else (place,))

    def __setitem__(self, place: Any, value: int) -> None:
        super().__setitem__(place if isinstance(place, tuple) else (place,), value)


class _Counted:
    """`T` in Python: a T.Parallel takes its iterations one after the other."""

    @staticmethod
    def Parallel(*extents: int) -> Any:
        return range(*extents) if len(extents) == 1 else itertools.product(*map(range, extents))

    @staticmethod
    def if_then_else(condition: bool, first: int, second: int) -> int:
        return first if condition else second

    max, min = max, min


@dataclass
class _Nest:
    """The lines of a nest, which are drawn from the outermost loop inwards. `widths` say how many iterations each loop
    inside of the first has."""

    draw: Draw
    rows: int
    widths: Sequence[int]
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def say(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def read(self, indices: Sequence[str], column: str) -> str:
        """An element of the input that the iterations of these indices read."""
        if len(indices) > len(self.widths):
            return self.draw.one(f"x[{indices[0]}, {column}]", f"x[{indices[0]}, {column}]", *self.names)
        fixed = self.draw.one("0", str(self.draw.randrange(self.widths[0])))
        return self.draw.one(f"x[{indices[0]}, {fixed}]", *self.names)

    def condition(self, indices: Sequence[str], column: str) -> str:
        draw, index = self.draw, self.draw.choice(indices)
        is_inner = len(indices) > len(self.widths)
        kind = draw.one("index", "element", "scalar", "both", "either", "block index", *["own"] * is_inner)
        draw.note(f"decided by {kind}")
        bound = draw.randint(-4, 6)
        compared = draw.one(">", "<", ">=", "<=", "==", "!=")
        by_index = draw.one(f"{index} {compared} {draw.randrange(8)}", f"({' + '.join(indices)}) % 2 == 0")
        by_element = f"{self.read(indices, column)} {compared} {bound}"
        return {
            "index": by_index,
            "element": by_element,
            "scalar": f"N[0] {compared} {bound}",
            "both": f"{by_index} and {by_element}",
            "either": f"{by_element} or {by_index}",
            "block index": draw.one("bx == 0", "bx > 0"),
            "own": f"y[{indices[0]}, {column}] {compared} {bound}",
        }[kind]

    def store(self, depth: int, indices: Sequence[str], column: str) -> None:
        """A store to the element of an iteration of all loops."""
        draw = self.draw
        x, y = self.read(indices, column), f"y[{indices[0]}, {column}]"
        number = draw.randint(-4, 4)
        value = draw.one(
            f"{x} + {number}", f"{x} - {draw.choice(indices)} % 4", f"{number}", x, f"T.max({x}, {number})",
            f"{y} + 1", f"T.if_then_else({x} > {number}, {y}, {x})", f"{x} - {y}",
        )  # fmt: skip
        self.say(depth, f"{y} = {value}")

    def inside(self, depth: int, indices: Sequence[str], column: str, branches: int) -> None:
        """What iterations of some loops do, in perhaps so many more branches."""
        draw, is_inner = self.draw, len(indices) > len(self.widths)
        names = len(self.names)
        if draw.random() < (0.3 if is_inner else 0.03):
            draw.note("name" if is_inner else "name beside a loop")
            name = f"n{len(self.lines)}"
            self.say(depth, f"{name} = {self.read(indices, column)} + {draw.randint(-2, 2)}")
            self.names.append(name)
        if branches and draw.random() < 0.7:
            draw.note("branch around a loop" if not is_inner else "branch")
            self.say(depth, f"if {self.condition(indices, column)}:")
            self.inside(depth + 1, indices, column, branches - 1)
            if draw.random() < (0.5 if is_inner else 0.03):
                draw.note("else" if is_inner else "else with a loop")
                self.say(depth, draw.one("else:", f"elif {self.condition(indices, column)}:"))
                self.inside(depth + 1, indices, column, 0)
        elif is_inner:
            for _ in range(draw.one(1, 1, 2)):
                self.store(depth, indices, column)
        else:
            self.loop(depth, indices, column)
            if draw.random() < 0.03:
                draw.note("several loops")
                self.loop(depth, indices, column)
        if len(indices) == 1 and draw.random() < 0.04:
            draw.note("store beside a loop")
            self.say(depth, f"v[i] = {self.read(indices, column)}")
        del self.names[names:]

    def loop(self, depth: int, indices: Sequence[str], column: str) -> None:
        level = len(indices) - 1
        index, rest = "jk"[level], math.prod(self.widths[level + 1 :])
        step = index if rest == 1 else f"{index} * {rest}"
        self.say(depth, f"for {index} in T.Parallel({self.widths[level]}):")
        self.inside(depth + 1, [*indices, index], f"{column} + {step}" if column else step, 2)


def branched_nest(draw: Draw, case: Case) -> None:
    """Branches and statements between the loops of a nest."""
    dtype = draw.dtype("float32", "bfloat16", "int32")
    rows, widths = draw.one(1, 8, 32, 33), draw.one((32,), (20,), (64,), (4, 8), (2, 16), (8, 4))
    columns = math.prod(widths)
    draw.note("two loops" if len(widths) == 1 else "three loops")
    draw.sized((rows, columns))
    case.grid = draw.one(1, 2)
    nest = _Nest(draw, rows, widths)
    nest.say(0, f"for i in T.Parallel({rows}):")
    nest.inside(1, ["i"], "", 2)
    a = draw.tensor("A", (case.grid * rows, columns), dtype, (-9, 9))
    text = "\n".join(nest.lines)
    number = draw.tensor("N", (1,), "int32", (-9, 9)) if "N[0]" in text else {}
    has_vector = "v[" in text
    b = draw.output("B", (case.grid * rows, columns), dtype)
    c: Elements = draw.output("C", (case.grid * rows,), dtype) if has_vector else {}
    start = draw.one(0, 1)
    case.lines += [
        f'x, y = T.alloc_fragment(({rows}, {columns}), "{dtype}"), T.alloc_fragment(({rows}, {columns}), "{dtype}")',
        *[f'v = T.alloc_fragment(({rows},), "{dtype}")', "T.fill(v, 2)"] * has_vector,
        f"T.copy(A[bx * {rows}, 0], x)", f"T.fill(y, {start})", *nest.lines, f"T.copy(y, B[bx * {rows}, 0])",
        *[f"T.copy(v, C[bx * {rows}])"] * has_vector,
    ]  # fmt: skip
    for block in range(case.grid):
        places = [*itertools.product(range(rows), range(columns))]
        x = _Block({(i, j): a[block * rows + i, j] for i, j in places})
        y, v = _Block(dict.fromkeys(places, start)), _Block({(i,): 2 for i in range(rows)})
        exec(text, {"T": _Counted, "x": x, "y": y, "v": v, "N": _Block(number), "bx": block})
        b.update({(block * rows + i, j): y[i, j] for i, j in places})
        c.update({(block * rows + i,): v[i] for i in range(rows)} if has_vector else {})
