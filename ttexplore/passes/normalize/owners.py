"""Give each element of a tensor that a kernel reads and writes one owner: the work items that share it run on one core,
one after another."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.errors import KernelError, TTExploreError, Unsupported
from ttexplore.ir.adapter import elements, is_buffer, span_of
from ttexplore.ir.arithmetic.index import Key, Range, Variable, convert, value_range, variables
from ttexplore.ir.arithmetic.limited import full_extents
from ttexplore.ir.arithmetic.sizes import bound_shape
from ttexplore.ir.build import (
    attribute,
    constant,
    regions,
    runs,
    shape_of,
    statements,
)
from ttexplore.ir.dataflow import is_on_chip, is_parallel
from ttexplore.ir.operations.atomics import ATOMIC, HANDED_ON
from ttexplore.ir.rewrite import Firings, walk
from ttexplore.notes import Note
from ttexplore.ops import language as tl
from ttexplore.passes.launches.tensor_roles import read_and_written, touched
from ttexplore.passes.normalize.open_owners import with_owners_of_open_sizes
from ttexplore.passes.normalize.shared_items import decides, note_on_owner, unknown_place, with_grouped_items

Numbers = NDArray[np.int64]
_Kind = Literal["load", "store", "update"]
# More blocks of one tensor than this are not told apart.
_MOST_BLOCKS = 1 << 24


def with_owners(
    function: tirx.PrimFunc, sizes: Mapping[str, int], firings: Firings, *, over_noc: bool
) -> tuple[tirx.PrimFunc, tuple[Note, ...]]:
    """The kernel with a loop in place of each axis of its launch grid along which work items update the same elements,
    and a note for each such axis; with `over_noc`, only where the updated places are not known before the kernel runs:
    the other tensors are marked for B1, whose cores hand what they update on to one another.

    If only groups of neighbouring blocks share elements, as the heads of a group do, the axis is divided. All places
    are computed for all work items. An update whose place is not known before the kernel runs, as where elements of
    tensors decide it, may touch any element along that axis of its tensor: all work items that may share one run on
    one core. Raises KernelError where two work items use an element that one of them writes without T.atomic_add,
    and where they update it in different ways, Unsupported where the places of other reads and writes are not known.
    """
    read, written = read_and_written(function)
    shared = read & written
    if not shared:
        return function, ()
    loops = grid_loops(function)
    if sizes:
        return with_owners_of_open_sizes(function, shared, loops, firings)
    shapes = {
        str(parameter.name): bound_shape(parameter, {})
        for parameter in elements(function.params)
        if is_buffer(parameter)
    }
    tensor_uses = _Uses({name: shape for name, shape in shapes.items() if name in shared}, loops)
    tensor_uses.body(statements(loops[-1].body), np.array(True))
    groups, notes, handed_on = [1] * len(loops), list[Note](), list[str]()
    for name in (tensor_name for tensor_name in shapes if tensor_name in shared):
        uses = [use for use in tensor_uses.uses if use.tensor == name]
        needed = _groups(name, shapes[name], uses, loops)
        if over_noc and max(needed) > 1 and not any(use.is_anywhere for use in uses):
            handed_on.append(name)
            continue
        for axis, group in enumerate(needed):
            if group > groups[axis]:
                groups[axis] = math.lcm(group, groups[axis])
                notes.append(
                    note_on_owner(name, loops[axis], group, is_certain=not any(use.is_anywhere for use in uses))
                )
    if handed_on:
        function = function.with_attr(HANDED_ON, handed_on)
    if not notes:
        return function, ()
    return with_grouped_items(function, loops, groups, firings), tuple(notes)


# Places


@dataclass(frozen=True)
class _RegionUse:
    """All runs of a statement that use a region of a tensor: where it starts along each axis, and which runs there are;
    the arrays have an axis for each loop around, the innermost first.

    Where it starts along an axis may not be known before the kernel runs: then the region is all of this axis, and
    `is_anywhere` says so. An update has a bit for its kind.
    """

    statement: tirx.Stmt
    tensor: str
    kind: _Kind
    lows: tuple[Numbers, ...]
    extents: tuple[int, ...]
    live: NDArray[np.bool_]
    is_anywhere: bool
    updates: int


class _Uses:
    """Finds the uses of some tensors, by running a kernel's loops side by side."""

    def __init__(self, tensors: Mapping[str, tuple[int, ...]], grid: Sequence[tirx.For]) -> None:
        self.tensors = tensors
        self.numbers: dict[ir.Var, Variable] = {}
        self.known: dict[Key, Range] = {}
        self.depth = 0
        self.uses: list[_RegionUse] = []
        for grid_loop in grid:
            self.enter(grid_loop.loop_var, np.array(0), int(constant(grid_loop.extent) or 0))

    def number(self, loop_var: ir.Var) -> Variable:
        return self.numbers.setdefault(loop_var, Variable(len(self.numbers), str(loop_var.name)))

    def enter(self, loop_var: ir.Var, low: Numbers, turns: int) -> Numbers:
        """Give a loop an axis of its own; returns the numbers of its turns."""
        numbers = np.arange(turns).reshape(-1, *[1] * self.depth)
        self.depth += 1
        values = low + numbers
        self.known[self.number(loop_var)] = (values, values)
        return numbers

    def exact(self, expression: ir.Expr) -> Numbers | None:
        """The values of an expression in all iterations, as far as these are known and not too many."""
        converted = convert(expression, self.number)
        shapes = [np.shape(self.known[symbol][0]) for symbol in variables(converted) if symbol in self.known]
        if math.prod(np.broadcast_shapes(*shapes)) > _MOST_BLOCKS:
            return None
        bounds = value_range(converted, self.known)
        if bounds is None or not (bounds[0] is bounds[1] or np.array_equal(bounds[0], bounds[1])):
            return None
        return np.asarray(bounds[0])

    def body(self, body: list[tirx.Stmt], live: NDArray[np.bool_]) -> None:
        for statement in body:
            match statement:
                case tirx.Bind():
                    value = self.exact(statement.value)
                    if value is not None:
                        self.known[self.number(statement.var)] = (value, value)
                case tirx.For() if not is_parallel(statement):
                    self.loop(statement, live)
                case tirx.IfThenElse():
                    test = self.exact(statement.condition)
                    holds = live if test is None else live & (test != 0)
                    self.body(statements(statement.then_case), holds)
                    if statement.else_case is not None:
                        self.body(statements(statement.else_case), live if test is None else live & (test == 0))
                case tirx.For():
                    # Elements that make no block.
                    for inner in walk(statement.body):
                        self.use(inner, live)
                case _:
                    pass
            self.use(statement, live)

    def loop(self, statement: tirx.For, live: NDArray[np.bool_]) -> None:
        low, extent = self.exact(statement.min), self.exact(statement.extent)
        depth = self.depth
        most = -1 if extent is None else max(int(np.max(extent)), 0)
        if low is not None and extent is not None and most <= _MOST_BLOCKS:
            turns = self.enter(statement.loop_var, low, most)
            live = live & (turns < extent)
        self.body(statements(statement.body), live)
        self.depth = depth

    def use(self, statement: tirx.Stmt, live: NDArray[np.bool_]) -> None:
        tensors = {str(buffer.name) for buffer, _ in touched(statement) if not is_on_chip(buffer)} & self.tensors.keys()
        for name in tensors:
            if not runs(statement, tl.COPY):
                raise decides(name, statement)
            source, target = regions(statement)
            kinds: tuple[_Kind, _Kind] = ("load", "store")
            for region, kind in zip((source, target), kinds, strict=True):
                if str(region.source.name) != name or is_on_chip(region.source):
                    continue
                starts = [self.exact(interval.min) for interval in region.region]
                # Of a block that is stored in part, each element may be.
                extents = full_extents(region, shape_of((target if region is source else source).source))
                is_anywhere, updates = any(low is None for low in starts), attribute(statement, ATOMIC)
                if extents is None or (is_anywhere and not updates):
                    raise unknown_place(name, statement)
                lengths = self.tensors[name]
                reached = [
                    length if low is None else n for low, n, length in zip(starts, extents, lengths, strict=True)
                ]
                lows = tuple(np.array(0) if low is None else low for low in starts)
                self.uses.append(
                    _RegionUse(
                        statement, name, "update" if updates else kind, lows, tuple(reached), live,
                        is_anywhere=is_anywhere, updates=updates,
                    )
                )  # fmt: skip


# Owners


def _groups(name: str, shape: tuple[int, ...], uses: list[_RegionUse], loops: list[tirx.For]) -> list[int]:
    """How many neighbouring blocks along each axis of the grid must run on one core, a divisor of all of them."""
    units = [
        math.gcd(*(int(np.gcd.reduce(use.lows[axis], axis=None)) for use in uses), *(use.extents[axis] for use in uses))
        for axis in range(len(shape))
    ]
    counts = [-(-length // unit) for length, unit in zip(shape, units, strict=True)]
    total = math.prod(counts)
    runs = [_Runs(use, units, counts, len(loops)) for use in uses]
    if total > _MOST_BLOCKS or any(run.size > _MOST_BLOCKS for run in runs):
        raise Unsupported(
            "L010",
            f"the kernel reads and writes {name} in {max(total, *(run.size for run in runs)):,} blocks: too many to "
            "find the work items that share elements",
            hint="use larger blocks",
            span=span_of(uses[0].statement),
        )
    written, plain, kinds = np.zeros(total, bool), np.zeros(total, bool), np.zeros(total, np.uint8)
    for use, run in zip(uses, runs, strict=True):
        kinds[run.places] |= use.updates
        written[run.places] |= use.kind != "load"
        plain[run.places] |= use.kind != "update"
    groups: list[int] = []
    for axis, grid_loop in enumerate(loops):
        count = int(constant(grid_loop.extent) or 0)
        least, most = np.full(total, count), np.full(total, -1)
        for run in runs:
            run.bound(axis, count, least, most)
        shared = written & (least < most)
        if (shared & plain).any():
            for use in uses:
                if use.is_anywhere:
                    raise unknown_place(name, use.statement)
            raise _race(name, grid_loop, [use for use, run in zip(uses, runs, strict=True) if plain[run.places].any()])
        mixed = shared & (kinds & (kinds - 1) != 0)
        if mixed.any():
            raise _mixed(name, grid_loop, [use for use, run in zip(uses, runs, strict=True) if mixed[run.places].any()])
        least, most = least[shared], most[shared]
        groups.append(next(n for n in range(1, count + 1) if count % n == 0 and (least // n == most // n).all()))
    return groups


def _race(name: str, axis: tirx.For, uses: list[_RegionUse]) -> KernelError:
    stores = [use for use in uses if use.kind == "store"]
    updates = any(use.kind == "update" for use in uses)
    hint = f"let one block own each element of {name}, or add to it with T.atomic_add"
    hint += " here, too" if updates else ""
    if not stores:
        hint = f"read {name} in a second T.Kernel of the function, which begins when all blocks have updated it"
    return KernelError(
        "K017",
        f"blocks of the launch grid that differ in {axis.loop_var.name} use the same elements of {name}, and one of "
        "them writes these: the result depends on which comes first",
        hint=hint,
        span=span_of((stores or [use for use in uses if use.kind == "load"])[0].statement),
    )


def _mixed(name: str, axis: tirx.For, uses: list[_RegionUse]) -> TTExploreError:
    """The error where blocks update elements in ways whose order matters."""
    differing_use = next((use for use in uses if use.updates != uses[0].updates), uses[0])
    how = " and ".join(
        f"T.atomic_{kind}" for bit, kind in enumerate(tl.ATOMICS) if sum(1 << bit & use.updates for use in uses)
    )
    hint = f"let all of them update {name} in one way; or use two T.Kernel, one after the other"
    if any(use.is_anywhere for use in uses):
        return Unsupported(
            "L010",
            f"blocks update {name} with {how}, and whether they update the same elements is not known before the "
            "kernel runs",
            hint=hint, span=span_of(differing_use.statement),
        )  # fmt: skip
    return KernelError(
        "K017",
        f"blocks of the launch grid that differ in {axis.loop_var.name} update the same elements of {name} with {how}: "
        "the result depends on which comes first",
        hint=hint, span=span_of(differing_use.statement),
    )  # fmt: skip


class _Runs:
    """The `places` that the runs of a use touch: numbers of blocks of the tensor, which have `units` elements along its
    axes, `counts` of them along each; the launch grid has `grid` axes."""

    def __init__(self, use: _RegionUse, units: list[int], counts: list[int], grid: int) -> None:
        # The blocks of a region are axes of their own, to the left of those of the grid and of the loops in it.
        leading_axes = max(grid, use.live.ndim, *(low.ndim for low in use.lows))
        block_numbers, live = np.array(0), use.live
        for axis, (low, extent, unit, count) in enumerate(zip(use.lows, use.extents, units, counts, strict=True)):
            at = low // unit + np.arange(extent // unit).reshape(-1, *[1] * (leading_axes + axis))
            block_numbers, live = block_numbers * count + at, live & (at >= 0) & (at < count)
        self.shape = np.broadcast_shapes(block_numbers.shape, live.shape)
        self.live = live
        self.numbers = block_numbers

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @functools.cached_property
    def places(self) -> Numbers:
        return self._alive(self.numbers)

    def _alive(self, values: Numbers) -> Numbers:
        return np.broadcast_to(values, self.shape)[np.broadcast_to(self.live, self.shape)]

    def bound(self, axis: int, count: int, least: Numbers, most: Numbers) -> None:
        """Lower `least` and raise `most` to the first and last block along an axis of the grid that uses a place."""
        if len(self.shape) <= axis or self.shape[-1 - axis] < count:
            least[self.places], most[self.places] = 0, count - 1
            return
        blocks = self._alive(np.arange(count).reshape(-1, *[1] * axis))
        np.minimum.at(least, self.places, blocks)
        np.maximum.at(most, self.places, blocks)
