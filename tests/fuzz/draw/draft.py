"""A kernel as it is being drawn: its tensors and buffers, what they hold, and the statements that move blocks."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal

from tests.fuzz.description import (
    Allocate,
    Copy,
    Expression,
    Fill,
    Gemm,
    Kernel,
    Load,
    Named,
    Parallel,
    Reduce,
    Region,
    Scalar,
    ScalarForm,
    Statement,
    Store,
    Tensor,
)
from tests.fuzz.draw.grids import Axis, Grid
from tests.fuzz.draw.ranges import follow, value_range
from tests.fuzz.meaning import Interval

DTYPES = ("bfloat16", "float32", "float16")
# These meet numbers only where `integers` draws so.
_INTEGERS = ("int32", "uint8", "int8")
# These meet numbers only where `formats` draws so.
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2")
_LIMITS = {
    "coarse": (-2, 2), "positive": (0.5, 2), "normal": (-4, 4), "whole": (-200, 200), "bytes": (0, 255),
    "signed": (-128, 127),
}  # fmt: skip


@dataclass(frozen=True)
class Buffer:
    name: str
    shape: tuple[int, ...]
    dtype: str


class Draft(Grid):
    """A kernel as it is being drawn.

    `ranges` are those of the values of all that holds something, `unstored` what no output has yet, `loops` the axes of
    the loops around, `values` the names that the T.Parallel being drawn has given, with their ranges and the buffers
    that they come from, `branching` whether an ``if`` is around.
    """

    def __init__(self, numbers: random.Random) -> None:
        super().__init__(numbers)
        self.tensors: list[Tensor] = []
        self.stored: set[str] = set()
        # Where blocks begin of which there are several.
        self.several: set[str] = set()
        self.body: list[Statement] = []
        self.buffers: dict[str, Buffer] = {}
        self.ranges: dict[str, Interval] = {}
        self.unstored: dict[str, None] = {}
        self.loops: list[Axis] = []
        self.values: dict[str, tuple[Interval, set[str]]] = {}
        # The scalars that hold something.
        self.forms: dict[str, ScalarForm] = {}
        self.branching = False
        self.names = 0

    def scalars(self) -> list[Expression]:
        """What reads the scalars that hold something."""
        return [Load(name, ("0",)) if form == "element" else Named(name) for name, form in self.forms.items()]

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def kernel(self) -> Kernel:
        return Kernel(self.grid, tuple(self.tensors), tuple(self.body), tuple(self.sizes))

    def block_indices(self) -> list[str]:
        """Those that are the number of a block along rows or columns."""
        return [axis.text for axis in (self.row, self.column) if axis.text.isidentifier()]

    # Statements

    def add(self, statement: Statement) -> None:
        self.body.append(statement)
        follow(statement, self.ranges)
        match statement:
            case Copy(_, target):
                self.unstored[target.name] = None
            case Fill(buffer) | Gemm(_, _, buffer) | Reduce(target=buffer):
                self.unstored[buffer] = None
            case Scalar(name, form="block"):
                self.unstored[name] = None
            case Parallel():
                for one in statement.body:
                    if isinstance(one, Store) and not one.indices:
                        self.unstored[one.buffer] = None
            case _:
                pass

    def allocate(self, shape: tuple[int, ...], dtype: str, scope: Literal["shared", "fragment"], letter: str) -> str:
        buffer = Buffer(self.name(letter), shape, dtype)
        self.buffers[buffer.name] = buffer
        self.body.append(Allocate(buffer.name, shape, dtype, scope))
        return buffer.name

    def target(self, shape: tuple[int, ...], dtype: str, letter: str) -> str:
        """A buffer to write to: a new one, or one that has been written before."""
        fitting = [
            one.name
            for one in self.buffers.values()
            if one.shape == shape and (one.dtype == dtype or not {one.dtype, dtype} & {*_INTEGERS, *SMALL_FLOATS})
        ]
        if fitting and self.chance(4):
            return self.one(fitting)
        scope: Literal["shared", "fragment"] = self.one(["shared", "fragment"])
        return self.allocate(shape, dtype, scope, letter)

    def defined(self, shape: tuple[int, ...], *dtypes: str) -> list[str]:
        """The buffers of a shape that hold something: numbers, or what is of one of `dtypes`."""
        return [
            one.name
            for one in self.buffers.values()
            if one.shape == shape and one.name in self.ranges and one.dtype in (dtypes or DTYPES)
        ]

    def taken_apart(self, outside: list[Statement]) -> tuple[Statement, ...]:
        """The body of a loop from what has been drawn; its allocations, and all else from now on, go `outside`."""
        inside, self.body = self.body, outside
        self.body += [one for one in inside if isinstance(one, Allocate)]
        return tuple(one for one in inside if not isinstance(one, Allocate))

    # Tensors

    def input(self, shape: tuple[int | str, ...], dtype: str) -> str:
        fitting = [t.name for t in self.tensors if t.shape == shape and t.name not in self.stored and t.dtype == dtype]
        if fitting and self.chance(3):
            return self.one(fitting)
        kinds = {"int32": ["whole"], "uint8": ["bytes"], "int8": ["signed"]}
        values: Any = self.one(kinds.get(dtype, ["coarse", "coarse", "positive", "normal"]))
        tensor = Tensor(self.name("A"), shape, dtype, values)
        self.tensors.append(tensor)
        self.ranges[tensor.name] = value_range(*_LIMITS[values])
        return tensor.name

    def placed(self, axes: list[Axis], *, output: bool) -> tuple[tuple[int | str, ...], tuple[str, ...]]:
        """A tensor's shape and where in it the block starts; outputs have a place for every block."""
        leading = [*self.leading, *self.loops] if len(axes) == 2 else []
        if not output:
            leading = [axis for axis in leading if not self.chance(3)]
            axes = [self.elsewhere(axis) if self.chance(4) else axis for axis in axes]
        before = [axis.text for axis in leading]
        places = [scaled(axis.text, axis.extent) for axis in axes]
        self.several |= {place for place, axis in zip(places, axes, strict=True) if axis.count != 1}
        lengths = [axis.length for axis in axes]
        if self.style in ("odd", "tails") and self.chance(6):
            self.shift(lengths, places, output=output)
        if leading and not self.sizes and self.chance(6):
            # The block is one of columns, or of single elements.
            return (*lengths, *(axis.length for axis in leading)), (*places, *before)
        return (*(axis.length for axis in leading), *lengths), (*before, *places)

    def shift(self, lengths: list[int | str], places: list[str], *, output: bool) -> None:
        """Let the blocks along an axis begin earlier, so that the first one is partly before the tensor, or, of inputs,
        later."""
        number = self.number(0, len(places) - 1)
        length, place = lengths[number], places[number]
        if not isinstance(length, int):
            return
        by = self.number(1, 40)
        if output:
            # All that is left of the tensor is stored.
            by = min(by, length - 1)
            lengths[number] = length - by
        elif self.chance(2):
            by = -by
        if by:
            places[number] = f"{place} {'-' if by > 0 else '+'} {abs(by)}"

    def region(self, tensor: str, block: tuple[int, ...], starts: tuple[str, ...]) -> Region:
        shape = next(one.shape for one in self.tensors if one.name == tensor)
        extents = (1,) * (len(starts) - len(block)) + block
        if self.begins_with_block(starts, block):
            extents = block + (1,) * (len(starts) - len(block))
            return Region(tensor, starts, extents, "slice")
        # Of a tensor that begins or ends inside of the first block, several blocks may be as long as what is left.
        moves = any(" + " in start or " - " in start or start in self.several for start in starts)
        if shape == block and not moves and self.chance(2):
            return Region(tensor, starts, extents, "whole")
        # A slice between two numbers has to lie in its tensor.
        ends = (int(start) + extent for start, extent in zip(starts, extents, strict=True) if start.isdigit())
        lengths = (length for start, length in zip(starts, shape, strict=True) if start.isdigit())
        inside = all(isinstance(length, int) and end <= length for end, length in zip(ends, lengths, strict=True))
        return Region(tensor, starts, extents, "slice" if inside and self.chance(4) else "index")

    def begins_with_block(self, starts: tuple[str, ...], block: tuple[int, ...]) -> bool:
        """Whether the axes of a block are the first ones of its tensor, before other ones."""
        names = {axis.text for axis in (*self.leading, *self.loops)}
        return len(starts) > len(block) and starts[-1] in names and starts[0] not in names

    def whole(self, buffer: str) -> Region:
        shape = self.buffers[buffer].shape
        return Region(buffer, ("0",) * len(shape), shape, "whole")

    def load(self, axes: list[Axis], letter: str = "s") -> str:
        """A block of numbers along these axes, from a tensor that it finds or makes, into a buffer."""
        return self.load_as(axes, self.one(DTYPES), letter)

    def load_as(self, axes: list[Axis], dtype: str, letter: str) -> str:
        """A block of a tensor of this dtype; numbers may be turned to others on the way."""
        block = tuple(axis.extent for axis in axes)
        shape, starts = self.placed(axes, output=False)
        tensor = self.input(shape, dtype)
        other = dtype in DTYPES and self.chance(4)
        buffer = self.target(block, self.one(DTYPES) if other else dtype, letter)
        self.add(Copy(self.region(tensor, block, starts), self.whole(buffer)))
        return buffer

    def output(self, dtype: str) -> tuple[Tensor, tuple[str, ...]]:
        """A new tensor that the block is stored to, and where in it."""
        shape, starts = self.placed(self.places, output=True)
        tensor = Tensor(self.name("C"), shape, dtype)
        self.tensors.append(tensor)
        self.stored.add(tensor.name)
        return tensor, starts

    def store(self, name: str, dtype: str = "") -> None:
        """The block of a buffer to a tensor of its own, of a dtype that is drawn if none is given."""
        if len(self.stored) == 3:
            return
        dtype = dtype or (self.buffers[name].dtype if self.chance(2) else self.one(DTYPES))
        tensor, starts = self.output(dtype)
        self.add(Copy(self.whole(name), self.region(tensor.name, self.block, starts)))
        self.unstored.pop(name, None)
        self.unstored.pop(tensor.name, None)


def scaled(text: str, extent: int) -> str:
    if text.isdigit():
        return str(int(text) * extent)
    is_product = "%" not in text and "//" not in text
    return f"{text} * {extent}" if is_product else f"({text}) * {extent}"
