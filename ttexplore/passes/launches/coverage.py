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

    def unless_known(self, what: str) -> Region:
        return self if self.unknown else dataclasses.replace(self, unknown=what)


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
    known = [_merged(one, lengths) for one in stores if not one.unknown]
    if any(_is_all(one, lengths) for one in known):
        return None
    unknown = next((one for one in stores if one.unknown), None)
    if unknown is not None:
        at = "" if unknown.span is None else f" in line {unknown.span.line}"
        undecided = Gap(f"{unknown.unknown}{at} is only known when the kernel runs")
    else:
        undecided = Gap(_NOT_PROVED)
    shape = [length for length in lengths if isinstance(length, int)]
    if len(shape) < len(lengths):
        return undecided
    stored, is_all_known = _boxes(known, shape)
    asked = None
    if reads is not None and not any(one.unknown for one in reads):
        boxes, is_complete = _boxes([_merged(one, lengths) for one in reads], shape)
        asked = boxes if is_complete else None
    found = _uncovered(stored, shape, asked)
    if found is None or (found and (unknown is not None or not is_all_known)):
        return undecided
    if not found:
        return None
    # What is read under a condition may not be read at all.
    certain = reads is None or asked is not None
    where = f"{tensor.name}[{', '.join(map(str, found))}]"
    return Gap(f"nothing is stored to {where}", found if certain else None)


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
    found: dict[str, list[Region]] = {}
    for one in groups:
        _join(found, _Reading(one, reads).body(statements(one.body)))
    return found


def _join(found: dict[str, list[Region]], more: dict[str, list[Region]]) -> None:
    for name, of_tensor in more.items():
        found.setdefault(name, []).extend(of_tensor)


class _Reading:
    """The regions of a function's statements."""

    def __init__(self, function: tirx.PrimFunc, reads: bool) -> None:
        self.reads = reads
        self.numbers = {one: _size(one) for one in size_variables(function)}
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
            self.is_known(*parts) if (parts := parts_of(e)) else isinstance(e, int) or e in self.counted
            for e in expressions
        )

    def body(self, body: Sequence[tirx.Stmt]) -> dict[str, list[Region]]:
        found: dict[str, list[Region]] = {}
        for statement in body:
            _join(found, self.statement(statement))
        return found

    def statement(self, statement: tirx.Stmt) -> dict[str, list[Region]]:
        match statement:
            case tirx.For():
                own = self.loads(statement, [statement.min, statement.extent])
                _join(own, self.loop(statement))
                return own
            case tirx.While():
                own = self.loads(statement, [statement.condition])
                _join(own, _unknown(self.body(statements(statement.body)), "how often it is stored"))
                return own
            case tirx.IfThenElse():
                own = self.loads(statement, [statement.condition])
                _join(own, self.branch(statement))
                return own
            case tirx.Bind():
                self.name(statement)
                return self.loads(statement, [statement.value])
            case tirx.BufferStore():
                return self.store(statement)
            case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
                found = regions(statement)
                values = [one for one in arguments(statement) if not isinstance(one, ir.TensorRegion)]
                values += [bound for one in found for part in elements(one.region) for bound in (part.min, part.extent)]
                own = self.loads(statement, values)
                for one in found[:-1] if self.reads else found[-1:]:
                    parts = tuple((self.expression(part.min), self.expression(part.extent)) for part in one.region)
                    _join(own, self.region(one.source, parts, span_of(statement)))
                return own
            case _:
                return {}

    def loop(self, loop: tirx.For) -> dict[str, list[Region]]:
        low, extent = self.expression(loop.min), self.expression(loop.extent)
        known = self.is_known(low, extent)
        variable = self.number(loop.loop_var)
        self.counted.add(variable)
        found = self.body(statements(loop.body))
        if not known or any(isinstance(one, tirx.Break | tirx.Continue) for one in walk(loop.body)):
            return _unknown(found, "how often it is stored")
        around = _Loop(variable, low, extent)
        return {
            name: [dataclasses.replace(one, loops=(around, *one.loops)) for one in of_tensor]
            for name, of_tensor in found.items()
        }

    def branch(self, branch: tirx.IfThenElse) -> dict[str, list[Region]]:
        test = self.expression(branch.condition)
        then = self.body(statements(branch.then_case))
        other = {} if branch.else_case is None else self.body(statements(branch.else_case))
        # What both sides store is stored in any case.
        found = {} if self.reads else {name: _common(then[name], other[name]) for name in then.keys() & other.keys()}
        if not self.is_known(test):
            for side in (then, other):
                _join(found, _unknown(side, "whether it is stored"))
            return found
        # Iterations show the rest; but not for all sizes, for which it matters that a test decides nothing.
        for name, both in found.items():
            found[name] = [one for one in both if one.parts in [own.parts for own in then[name]]]
        for side, condition in ((then, test), (other, Unary("not", test))):
            _join(found, {name: [_under(one, condition) for one in of_tensor] for name, of_tensor in side.items()})
        return found

    def store(self, store: tirx.BufferStore) -> dict[str, list[Region]]:
        own = self.loads(store, [store.value, *store.indices])
        if self.reads:
            return own
        found = self.region(store.buffer, self.places(store.indices), span_of(store))
        condition = condition_of(store.value)
        if condition is None:
            return found
        test = self.expression(condition)
        if not self.is_known(test):
            return _unknown(found, "whether it is stored")
        return {name: [_under(one, test) for one in of_tensor] for name, of_tensor in found.items()}

    def places(self, indices: Sequence[ir.Expr]) -> _Parts:
        return tuple((self.expression(index), 1) for index in indices)

    def region(self, buffer: tirx.Buffer, parts: _Parts, span: Span | None) -> dict[str, list[Region]]:
        if is_on_chip(buffer):
            return {}
        known = self.is_known(*(e for part in parts for e in part))
        return {str(buffer.name): [Region(span, parts, unknown="" if known else "where it is stored")]}

    def loads(self, statement: tirx.Stmt, values: Sequence[ir.Expr]) -> dict[str, list[Region]]:
        """The elements that values are computed with, if reads are asked for."""
        found: dict[str, list[Region]] = {}
        for value in values if self.reads else ():
            certain = list(certain_loads(value))
            for load in loads_of(value):
                one = self.region(load.source, self.places(load.indices), span_of(statement))
                is_certain = any(load.same_as(other) for other in certain)
                _join(found, one if is_certain else _unknown(one, "whether it is read"))
        return found


def _under(region: Region, test: Expression) -> Region:
    return dataclasses.replace(region, tests=(*region.tests, test))


def _unknown(found: dict[str, list[Region]], what: str) -> dict[str, list[Region]]:
    return {name: [one.unless_known(what) for one in of_tensor] for name, of_tensor in found.items()}


def _common(then: Sequence[Region], other: Sequence[Region]) -> list[Region]:
    """What is stored whichever of two sides of a branch is taken."""
    sides = [[one for one in side if not one.unknown] for side in (then, other)]
    if len(sides[0]) * len(sides[1]) > _MOST_PAIRS:
        return []
    made: list[Region] = []
    for one, two in itertools.product(*sides):
        parts: list[tuple[Expression, Expression]] = []
        for (low, extent), (other_low, other_extent) in zip(one.parts, two.parts, strict=True):
            if canonical(low) == canonical(other_low) and canonical(extent) == canonical(other_extent):
                parts.append((low, extent))
                continue
            start = Binary("max", low, other_low)
            end = Binary("min", Binary("+", low, extent), Binary("+", other_low, other_extent))
            parts.append((start, Binary("-", end, start)))
        made.append(Region(one.span, tuple(parts), (*one.loops, *two.loops), (*one.tests, *two.tests)))
    return made


# For all sizes


def _at_least(e: Expression, least: int) -> bool:
    """Whether a number is never less than another one, whatever the sizes."""
    e = canonical(_from_below(e))
    found = value_range(e, {one: (1, MAX_SIZE - 1) for one in variables(e) if one.number < 0})
    return found is not None and int(found[0]) >= least


def _from_below(e: Expression) -> Expression:
    """A sum that is never more, without quotients: b * (a // b) is at most a, and more than a - b."""
    made: Expression = 0
    for part, factor in terms_of(e).items():
        if isinstance(part, Binary) and part.symbol == "//" and isinstance(part.right, int) and part.right > 0:
            share, rest = divmod(factor, part.right)
            if not rest:
                quotient = Binary("-", part.left, part.right - 1) if share > 0 else part.left
                made = Binary("+", made, Binary("*", share, quotient))
                continue
        made = Binary("+", made, Binary("*", part, factor))
    return made


def _merged(region: Region, lengths: Sequence[Expression]) -> Region:
    """The same elements without the tests that only keep them within the tensor, and with as few loops as can be: what
    the iterations of a loop store one beside the other is stored at once."""
    tests = [one for test in region.tests for one in _both(test) if not _keeps_within(one, region.parts, lengths)]
    loops, parts = list(region.loops), list(region.parts)
    waiting = True
    while waiting:
        waiting = False
        for loop in loops:
            others = [one for other in loops if other is not loop for one in (other.low, other.extent)]
            if any(loop.variable in variables(e) for e in (*tests, *others)):
                continue
            joined = _joined(loop, parts)
            if joined is not None:
                loops.remove(loop)
                parts, waiting = joined, True
                break
    return dataclasses.replace(region, parts=tuple(parts), loops=tuple(loops), tests=tuple(tests))


def _both(test: Expression) -> list[Expression]:
    return [*_both(test.left), *_both(test.right)] if isinstance(test, Binary) and test.symbol == "and" else [test]


def _keeps_within(test: Expression, parts: _Parts, lengths: Sequence[Expression]) -> bool:
    """Whether there is nothing of the tensor where a test fails."""
    if not isinstance(test, Binary) or test.symbol not in ("<", "<=", ">", ">="):
        return False
    left, right = (test.left, test.right) if test.symbol in ("<", "<=") else (test.right, test.left)
    # It fails where this is 0 or more.
    fails = Binary("-", left, right) if len(test.symbol) == 1 else Binary("-", Binary("-", left, right), 1)
    for (low, extent), length in zip(parts, lengths, strict=True):
        for outside in (Binary("-", low, length), Binary("-", 0, Binary("+", low, extent))):
            rest = canonical(Binary("-", outside, fails))
            if isinstance(rest, int) and rest >= 0:
                return True
    return False


def _joined(loop: _Loop, parts: Sequence[tuple[Expression, Expression]]) -> list[tuple[Expression, Expression]] | None:
    """The parts that all iterations of a loop store together; None if that is no region."""
    if not _at_least(loop.extent, 1):
        return None
    found: int | None = None
    factor = 0
    for axis, (low, extent) in enumerate(parts):
        if loop.variable in variables(extent):
            return None
        terms = terms_of(low)
        within = [part for part in terms if loop.variable in variables(part)]
        if not within:
            continue
        if found is not None or within != [loop.variable]:
            return None
        found, factor = axis, terms[loop.variable]
    if found is None:
        return list(parts)
    low, extent = parts[found]
    if not _at_least(extent, abs(factor)):
        return None
    steps = Binary("-", loop.extent, 1)
    first = loop.low if factor >= 0 else Binary("+", loop.low, steps)
    made = list(parts)
    made[found] = (
        canonical(placed(low, {loop.variable: first})),
        canonical(Binary("+", extent, Binary("*", abs(factor), steps))),
    )
    return made


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


def _boxes(known: Sequence[Region], shape: Sequence[int]) -> tuple[_Rows, bool]:
    """The elements of regions as boxes within the tensor: a row for each iteration, with starts and ends along each
    axis; and whether these are all, because there are not too many, and none depends on sizes."""
    found, is_complete = [np.zeros((0, 2, len(shape)), np.int64)], True
    for one in known:
        boxes = _boxes_of(one, shape)
        if boxes is None or sum(map(len, found)) + len(boxes) > _MOST_ROWS:
            is_complete = False
        else:
            found.append(boxes)
    return np.concatenate(found), is_complete


def _boxes_of(region: Region, shape: Sequence[int]) -> _Rows | None:
    values: dict[Key, Range] = {}
    count = 1

    def of(e: Expression) -> _Rows | None:
        found = value_range(e, values)
        if found is None or found[0] is not found[1]:
            return None
        return np.broadcast_to(np.asarray(found[0], np.int64), count)

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
        columns = {one: np.asarray(at)[rows] for one, (at, _) in values.items()} | {loop.variable: number}
        values = {one: (column, column) for one, column in columns.items()}
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
    if prod(len(one) for one in cuts) > _MOST_CELLS:
        return None
    left = _is_in(stored, cuts) == 0
    if asked is not None:
        left &= _is_in(asked, cuts) > 0
    places = np.argwhere(left[tuple(slice(-1) for _ in cuts)])
    return tuple(int(cut[at]) for cut, at in zip(cuts, places[0], strict=True)) if len(places) else ()


def _is_in(boxes: _Rows, cuts: Sequence[_Rows]) -> _Rows:
    """How many boxes hold each cell between the cuts: each box adds at its corners, and sums along the axes fill it."""
    cells = np.zeros([len(one) for one in cuts], np.int64)
    ends = [np.searchsorted(cut, boxes[:, :, axis]) for axis, cut in enumerate(cuts)]
    for corner in itertools.product((0, 1), repeat=len(cuts)):
        np.add.at(cells, tuple(end[:, side] for end, side in zip(ends, corner, strict=True)), (-1) ** sum(corner))
    for axis in range(len(cuts)):
        np.cumsum(cells, axis=axis, out=cells)
    return cells
