"""Which elements of a tensor a kernel stores whatever its inputs are: all of them, or some that are known."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.errors import TTExploreError
from ttexplore.ir.adapter import elements, span_of
from ttexplore.ir.arithmetic.bounds import MAX_SIZE
from ttexplore.ir.arithmetic.index import (
    Binary,
    Expression,
    Key,
    Range,
    Unary,
    Variable,
    canonical,
    convert,
    parts_of,
    placed,
    terms_of,
    value_range,
    variables,
)
from ttexplore.ir.arithmetic.limited import condition_of
from ttexplore.ir.arithmetic.shallow import LARGEST_SIZE
from ttexplore.ir.arithmetic.sizes import extents_of, size_variables
from ttexplore.ir.build import arguments, op_name, regions, statements
from ttexplore.ir.dataflow import certain_loads, is_on_chip, loads_of
from ttexplore.ir.operations.groups import projected
from ttexplore.ir.rewrite import Firings, walk
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.decisions.deciding_variables import with_named_variables
from ttexplore.passes.normalize.loops.while_loops import with_counted_loops
from ttexplore.record import Span

# Nothing is proved of more iterations, of more parts of a tensor, and of branches with more pairs of stores.
_MOST_ROWS = 1 << 20
_MOST_CELLS = 1 << 22
_MOST_PAIRS = 64
_NOT_PROVED = "it is not proved that all of it is stored"

_Rows = NDArray[np.int64]
# Along each axis, where a part of a tensor begins, and how many elements it has.
_Parts = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """The values that a variable takes: from `low`, so many."""

    variable: Variable
    low: Expression
    extent: Expression


@dataclass(frozen=True, slots=True)
class Region:
    """The elements that a statement stores, or reads, in all iterations of `loops`, outermost first, in which all
    `tests` hold. Where only the run decides, `unknown` says what."""

    span: Span | None
    parts: _Parts
    loops: tuple[_Loop, ...] = ()
    tests: tuple[Expression, ...] = ()
    unknown: str = ""

    def unless_known(self, reason: str) -> Region:
        return self if self.unknown else dataclasses.replace(self, unknown=reason)


@dataclass(frozen=True, slots=True)
class Gap:
    """Why it is not proved that all elements are stored; the first one that no statement stores, if that is certain."""

    reason: str
    element: tuple[int, ...] | None = None


def stored_regions(function: tirx.PrimFunc) -> dict[str, list[Region]]:
    """What a kernel, as it is traced, stores to each tensor."""
    return _regions(function, reads=False)


def read_regions(function: tirx.PrimFunc) -> dict[str, list[Region]]:
    """What a kernel, as it is traced, reads of each tensor."""
    return _regions(function, reads=True)


def gap_in(stores: Sequence[Region], tensor: tirx.Buffer, reads: Sequence[Region] | None = None) -> Gap | None:
    """Why some stores may leave elements of a tensor as they are; None if they store all of them whatever the inputs,
    or, with `reads`, all that are read.

    An element counts as stored where that is certain: not where an element of a tensor decides whether or where.
    """
    lengths = [_size(extent) if isinstance(extent, ir.Var) else extent for extent in extents_of(tensor)]
    merged = [_merged(store, lengths) for store in stores if not store.unknown]
    if any(_is_all(region, lengths) for region in merged):
        return None
    unknown = next((store for store in stores if store.unknown), None)
    if unknown is not None:
        at = "" if unknown.span is None else f" in line {unknown.span.line}"
        undecided = Gap(f"{unknown.unknown}{at} is only known when the kernel runs")
    else:
        undecided = Gap(_NOT_PROVED)
    shape = [length for length in lengths if isinstance(length, int)]
    if len(shape) < len(lengths):
        return undecided
    stored, is_all_known = _boxes(merged, shape)
    asked = None
    if reads is not None and not any(read.unknown for read in reads):
        boxes, is_complete = _boxes([_merged(read, lengths) for read in reads], shape)
        asked = boxes if is_complete else None
    uncovered = _uncovered(stored, shape, asked)
    if uncovered is None or (uncovered and (unknown is not None or not is_all_known)):
        return undecided
    if not uncovered:
        return None
    # What is read under a condition may not be read at all.
    certain = reads is None or asked is not None
    where = f"{tensor.name}[{', '.join(map(str, uncovered))}]"
    return Gap(f"nothing is stored to {where}", uncovered if certain else None)


# Reading the kernel


def _size(variable: ir.Var) -> Variable:
    """A T.dynamic size: it has the same name in all launches."""
    return Variable(-1, str(variable.name))


# The launches of a kernel are looked at together, each with those before it.
@functools.lru_cache(maxsize=16)
def _regions(function: tirx.PrimFunc, *, reads: bool) -> dict[str, list[Region]]:
    try:
        function = with_named_variables(with_counted_loops(function, Firings()), Firings())
        groups = projected(function).values()
    except TTExploreError:
        # Variables and threads stay what they are, and what they decide is not known.
        groups = [function]
    of_tensors: dict[str, list[Region]] = {}
    for group in groups:
        _join(of_tensors, _Reading(group, reads).body(statements(group.body)))
    return of_tensors


def _join(of_tensors: dict[str, list[Region]], more: dict[str, list[Region]]) -> None:
    for name, of_tensor in more.items():
        of_tensors.setdefault(name, []).extend(of_tensor)


class _Reading:
    """The regions of a function's statements."""

    def __init__(self, function: tirx.PrimFunc, reads: bool) -> None:
        self.reads = reads
        self.numbers = {variable: _size(variable) for variable in size_variables(function)}
        # The variables that depend on no tensor, and what names stand for.
        self.counted = set(self.numbers.values())
        self.bound: dict[Variable, Expression] = {}
        self.sizes: dict[Variable, int] = {}

    def number(self, variable: ir.Var) -> Variable:
        return self.numbers.setdefault(variable, Variable(len(self.numbers), str(variable.name)))

    def expression(self, e: ir.Expr) -> Expression:
        return placed(convert(e, self.number), self.bound)

    def name(self, bind: tirx.Bind) -> None:
        """A name for a whole number is written out, unless that is large: written out, a value that names use again and
        again doubles with each."""
        variable = self.number(bind.var)
        if not str(bind.var.ty.dtype).startswith(("int", "uint", "bool")):
            return
        value = convert(bind.value, self.number)
        self.sizes[variable] = self.size(value)
        if self.sizes[variable] <= LARGEST_SIZE:
            self.bound[variable] = placed(value, self.bound)

    def size(self, e: Expression) -> int:
        """How many operations an expression has, written out."""
        return self.sizes.get(e, 1) if isinstance(e, Variable) else 1 + sum(map(self.size, parts_of(e)))

    def is_known(self, *expressions: Expression) -> bool:
        """Whether values follow from sizes and loops alone."""
        return all(
            self.is_known(*operands) if (operands := parts_of(e)) else isinstance(e, int) or e in self.counted
            for e in expressions
        )

    def body(self, body: Sequence[tirx.Stmt]) -> dict[str, list[Region]]:
        of_tensors: dict[str, list[Region]] = {}
        for statement in body:
            _join(of_tensors, self.statement(statement))
        return of_tensors

    def statement(self, statement: tirx.Stmt) -> dict[str, list[Region]]:
        match statement:
            case tirx.For():
                of_tensors = self.loads(statement, [statement.min, statement.extent])
                _join(of_tensors, self.loop(statement))
                return of_tensors
            case tirx.While():
                of_tensors = self.loads(statement, [statement.condition])
                _join(of_tensors, _unknown(self.body(statements(statement.body)), "how often it is stored"))
                return of_tensors
            case tirx.IfThenElse():
                of_tensors = self.loads(statement, [statement.condition])
                _join(of_tensors, self.branch(statement))
                return of_tensors
            case tirx.Bind():
                self.name(statement)
                return self.loads(statement, [statement.value])
            case tirx.BufferStore():
                return self.store(statement)
            case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
                used_regions = regions(statement)
                values = [argument for argument in arguments(statement) if not isinstance(argument, ir.TensorRegion)]
                values += [
                    bound
                    for region in used_regions
                    for interval in elements(region.region)
                    for bound in (interval.min, interval.extent)
                ]
                of_tensors = self.loads(statement, values)
                for region in used_regions[:-1] if self.reads else used_regions[-1:]:
                    intervals = tuple(
                        (self.expression(interval.min), self.expression(interval.extent)) for interval in region.region
                    )
                    _join(of_tensors, self.region(region.source, intervals, span_of(statement)))
                return of_tensors
            case _:
                return {}

    def loop(self, loop: tirx.For) -> dict[str, list[Region]]:
        low, extent = self.expression(loop.min), self.expression(loop.extent)
        bounds_known = self.is_known(low, extent)
        variable = self.number(loop.loop_var)
        self.counted.add(variable)
        of_tensors = self.body(statements(loop.body))
        if not bounds_known or any(isinstance(statement, tirx.Break | tirx.Continue) for statement in walk(loop.body)):
            return _unknown(of_tensors, "how often it is stored")
        around = _Loop(variable, low, extent)
        return {
            name: [dataclasses.replace(region, loops=(around, *region.loops)) for region in of_tensor]
            for name, of_tensor in of_tensors.items()
        }

    def branch(self, branch: tirx.IfThenElse) -> dict[str, list[Region]]:
        test = self.expression(branch.condition)
        then = self.body(statements(branch.then_case))
        otherwise = {} if branch.else_case is None else self.body(statements(branch.else_case))
        # What both sides store is stored in any case.
        of_tensors = (
            {}
            if self.reads
            else {name: _common(then[name], otherwise[name]) for name in then.keys() & otherwise.keys()}
        )
        if not self.is_known(test):
            for side in (then, otherwise):
                _join(of_tensors, _unknown(side, "whether it is stored"))
            return of_tensors
        # Iterations show the rest; but not for all sizes, for which it matters that a test decides nothing.
        for name, both in of_tensors.items():
            of_tensors[name] = [
                region for region in both if region.parts in [then_region.parts for then_region in then[name]]
            ]
        for side, condition in ((then, test), (otherwise, Unary("not", test))):
            _join(
                of_tensors,
                {name: [_under(region, condition) for region in of_tensor] for name, of_tensor in side.items()},
            )
        return of_tensors

    def store(self, store: tirx.BufferStore) -> dict[str, list[Region]]:
        loaded = self.loads(store, [store.value, *store.indices])
        if self.reads:
            return loaded
        stored = self.region(store.buffer, self.places(store.indices), span_of(store))
        condition = condition_of(store.value)
        if condition is None:
            return stored
        test = self.expression(condition)
        if not self.is_known(test):
            return _unknown(stored, "whether it is stored")
        return {name: [_under(region, test) for region in of_tensor] for name, of_tensor in stored.items()}

    def places(self, indices: Sequence[ir.Expr]) -> _Parts:
        return tuple((self.expression(index), 1) for index in indices)

    def region(self, buffer: tirx.Buffer, intervals: _Parts, span: Span | None) -> dict[str, list[Region]]:
        if is_on_chip(buffer):
            return {}
        place_known = self.is_known(*(e for interval in intervals for e in interval))
        return {str(buffer.name): [Region(span, intervals, unknown="" if place_known else "where it is stored")]}

    def loads(self, statement: tirx.Stmt, values: Sequence[ir.Expr]) -> dict[str, list[Region]]:
        """The elements that values are computed with, if reads are asked for."""
        of_tensors: dict[str, list[Region]] = {}
        for value in values if self.reads else ():
            certain = list(certain_loads(value))
            for load in loads_of(value):
                read = self.region(load.source, self.places(load.indices), span_of(statement))
                is_certain = any(load.same_as(certain_load) for certain_load in certain)
                _join(of_tensors, read if is_certain else _unknown(read, "whether it is read"))
        return of_tensors


def _under(region: Region, test: Expression) -> Region:
    return dataclasses.replace(region, tests=(*region.tests, test))


def _unknown(of_tensors: dict[str, list[Region]], reason: str) -> dict[str, list[Region]]:
    return {name: [region.unless_known(reason) for region in of_tensor] for name, of_tensor in of_tensors.items()}


def _common(then: Sequence[Region], otherwise: Sequence[Region]) -> list[Region]:
    """What is stored whichever of two sides of a branch is taken."""
    sides = [[region for region in side if not region.unknown] for side in (then, otherwise)]
    if len(sides[0]) * len(sides[1]) > _MOST_PAIRS:
        return []
    common: list[Region] = []
    for then_region, two in itertools.product(*sides):
        intervals: list[tuple[Expression, Expression]] = []
        for (low, extent), (other_low, other_extent) in zip(then_region.parts, two.parts, strict=True):
            if canonical(low) == canonical(other_low) and canonical(extent) == canonical(other_extent):
                intervals.append((low, extent))
                continue
            start = Binary("max", low, other_low)
            end = Binary("min", Binary("+", low, extent), Binary("+", other_low, other_extent))
            intervals.append((start, Binary("-", end, start)))
        common.append(
            Region(
                then_region.span, tuple(intervals), (*then_region.loops, *two.loops), (*then_region.tests, *two.tests)
            )
        )
    return common


# For all sizes


def _at_least(e: Expression, least: int) -> bool:
    """Whether a number is never less than another one, whatever the sizes."""
    e = canonical(_from_below(e))
    bounds = value_range(e, {size: (1, MAX_SIZE - 1) for size in variables(e) if size.number < 0})
    return bounds is not None and int(bounds[0]) >= least


def _from_below(e: Expression) -> Expression:
    """A sum that is never more, without quotients: b * (a // b) is at most a, and more than a - b."""
    total: Expression = 0
    for term, factor in terms_of(e).items():
        if isinstance(term, Binary) and term.symbol == "//" and isinstance(term.right, int) and term.right > 0:
            share, rest = divmod(factor, term.right)
            if not rest:
                quotient = Binary("-", term.left, term.right - 1) if share > 0 else term.left
                total = Binary("+", total, Binary("*", share, quotient))
                continue
        total = Binary("+", total, Binary("*", term, factor))
    return total


def _merged(region: Region, lengths: Sequence[Expression]) -> Region:
    """The same elements without the tests that only keep them within the tensor, and with as few loops as can be: what
    the iterations of a loop store one beside the other is stored at once."""
    tests = [
        conjunct
        for test in region.tests
        for conjunct in _both(test)
        if not _keeps_within(conjunct, region.parts, lengths)
    ]
    loops, intervals = list(region.loops), list(region.parts)
    waiting = True
    while waiting:
        waiting = False
        for loop in loops:
            bounds = [
                bound for other_loop in loops if other_loop is not loop for bound in (other_loop.low, other_loop.extent)
            ]
            if any(loop.variable in variables(e) for e in (*tests, *bounds)):
                continue
            joined = _joined(loop, intervals)
            if joined is not None:
                loops.remove(loop)
                intervals, waiting = joined, True
                break
    return dataclasses.replace(region, parts=tuple(intervals), loops=tuple(loops), tests=tuple(tests))


def _both(test: Expression) -> list[Expression]:
    return [*_both(test.left), *_both(test.right)] if isinstance(test, Binary) and test.symbol == "and" else [test]


def _keeps_within(test: Expression, intervals: _Parts, lengths: Sequence[Expression]) -> bool:
    """Whether there is nothing of the tensor where a test fails."""
    if not isinstance(test, Binary) or test.symbol not in ("<", "<=", ">", ">="):
        return False
    left, right = (test.left, test.right) if test.symbol in ("<", "<=") else (test.right, test.left)
    # It fails where this is 0 or more.
    fails = Binary("-", left, right) if len(test.symbol) == 1 else Binary("-", Binary("-", left, right), 1)
    for (low, extent), length in zip(intervals, lengths, strict=True):
        for outside in (Binary("-", low, length), Binary("-", 0, Binary("+", low, extent))):
            rest = canonical(Binary("-", outside, fails))
            if isinstance(rest, int) and rest >= 0:
                return True
    return False


def _joined(
    loop: _Loop, intervals: Sequence[tuple[Expression, Expression]]
) -> list[tuple[Expression, Expression]] | None:
    """The parts that all iterations of a loop store together; None if that is no region."""
    if not _at_least(loop.extent, 1):
        return None
    moving_axis: int | None = None
    factor = 0
    for axis, (low, extent) in enumerate(intervals):
        if loop.variable in variables(extent):
            return None
        terms = terms_of(low)
        within = [term for term in terms if loop.variable in variables(term)]
        if not within:
            continue
        if moving_axis is not None or within != [loop.variable]:
            return None
        moving_axis, factor = axis, terms[loop.variable]
    if moving_axis is None:
        return list(intervals)
    low, extent = intervals[moving_axis]
    if not _at_least(extent, abs(factor)):
        return None
    steps = Binary("-", loop.extent, 1)
    first = loop.low if factor >= 0 else Binary("+", loop.low, steps)
    joined = list(intervals)
    joined[moving_axis] = (
        canonical(placed(low, {loop.variable: first})),
        canonical(Binary("+", extent, Binary("*", abs(factor), steps))),
    )
    return joined


def _is_all(region: Region, lengths: Sequence[Expression]) -> bool:
    """Whether a region is all of its tensor, in any case."""
    return (
        not region.loops
        and not region.tests
        and all(
            _at_least(Binary("-", 0, low), 0) and _at_least(Binary("-", Binary("+", low, extent), length), 0)
            for (low, extent), length in zip(region.parts, lengths, strict=True)
        )
    )


# Iteration by iteration


def _boxes(merged: Sequence[Region], shape: Sequence[int]) -> tuple[_Rows, bool]:
    """The elements of regions as boxes within the tensor: a row for each iteration, with starts and ends along each
    axis; and whether these are all, because there are not too many, and none depends on sizes."""
    box_rows, is_complete = [np.zeros((0, 2, len(shape)), np.int64)], True
    for region in merged:
        boxes = _boxes_of(region, shape)
        if boxes is None or sum(map(len, box_rows)) + len(boxes) > _MOST_ROWS:
            is_complete = False
        else:
            box_rows.append(boxes)
    return np.concatenate(box_rows), is_complete


def _boxes_of(region: Region, shape: Sequence[int]) -> _Rows | None:
    values: dict[Key, Range] = {}
    count = 1

    def of(e: Expression) -> _Rows | None:
        bounds = value_range(e, values)
        if bounds is None or bounds[0] is not bounds[1]:
            return None
        return np.broadcast_to(np.asarray(bounds[0], np.int64), count)

    for loop in region.loops:
        low, extent = of(loop.low), of(loop.extent)
        if low is None or extent is None:
            return None
        iterations = np.maximum(extent, 0)
        ends = np.cumsum(iterations)
        if not count or int(ends[-1]) > _MOST_ROWS:
            return None if count else np.zeros((0, 2, len(shape)), np.int64)
        rows = np.repeat(np.arange(count), iterations)
        number = np.arange(int(ends[-1])) - (ends - iterations)[rows] + low[rows]
        columns = {variable: np.asarray(at)[rows] for variable, (at, _) in values.items()} | {loop.variable: number}
        values = {variable: (column, column) for variable, column in columns.items()}
        count = len(rows)
    boxes = np.zeros((count, 2, len(shape)), np.int64)
    for axis, ((low, extent), length) in enumerate(zip(region.parts, shape, strict=True)):
        start, many = of(low), of(extent)
        if start is None or many is None:
            return None
        boxes[:, 0, axis], boxes[:, 1, axis] = np.clip(start, 0, length), np.clip(start + many, 0, length)
    keep = np.all(boxes[:, 0] < boxes[:, 1], axis=1)
    for test in region.tests:
        holds = of(test)
        if holds is None:
            return None
        keep &= holds != 0
    return boxes[keep]


def _uncovered(stored: _Rows, shape: Sequence[int], asked: _Rows | None) -> tuple[int, ...] | None:
    """The first element of a tensor, or of the boxes `asked` for, that is in none of the stored boxes; nothing if all
    are. None where they cut the tensor into too many parts."""
    every = stored if asked is None else np.concatenate([stored, asked])
    cuts: list[_Rows] = [
        np.unique(np.concatenate([[0, length], every[:, 0, axis], every[:, 1, axis]]))
        for axis, length in enumerate(shape)
    ]
    if prod(len(cut) for cut in cuts) > _MOST_CELLS:
        return None
    uncovered = _is_in(stored, cuts) == 0
    if asked is not None:
        uncovered &= _is_in(asked, cuts) > 0
    cells = np.argwhere(uncovered[tuple(slice(-1) for _ in cuts)])
    return tuple(int(cut[at]) for cut, at in zip(cuts, cells[0], strict=True)) if len(cells) else ()


def _is_in(boxes: _Rows, cuts: Sequence[_Rows]) -> _Rows:
    """How many boxes hold each cell between the cuts: each box adds at its corners, and sums along the axes fill it."""
    cells = np.zeros([len(cut) for cut in cuts], np.int64)
    ends = [np.searchsorted(cut, boxes[:, :, axis]) for axis, cut in enumerate(cuts)]
    for corner in itertools.product((0, 1), repeat=len(cuts)):
        np.add.at(cells, tuple(end[:, side] for end, side in zip(ends, corner, strict=True)), (-1) ** sum(corner))
    for axis in range(len(cuts)):
        np.cumsum(cells, axis=axis, out=cells)
    return cells
