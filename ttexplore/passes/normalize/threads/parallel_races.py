"""Reject T.Parallel nests in which an iteration stores what another one uses: threads run them in any order."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import choice_of, elements, identity, operation_name, span_of
from ttexplore.ir.arithmetic.index import Key, Range, Variable, convert, value_range
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import constant, statements
from ttexplore.ir.dag import nodes_of, parts_of, replaced, same_expression, same_expressions, written_out
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body
from ttexplore.ir.operations.atomics import ATOMICS, updates
from ttexplore.ir.operations.turns import stored_by_turns
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk

_Numbers = NDArray[np.int64]
_Mask = NDArray[np.bool_]
# So many elements of a block, and so many iterations with all values of the variables around, are looked at.
_MOST_ELEMENTS, _MOST_ITERATIONS = 1 << 24, 1 << 20
# Of so many parts of an expression it is known which iterations ask for them.
_MOST_PARTS = 1000
# Elements of tensors that decide places are so many different numbers, one after another.
_NUMBERS = 4


def check_races(function: tirx.PrimFunc) -> None:
    """Raise Unsupported for a T.Parallel in which an iteration certainly uses an element that another one stores.

        for i, j in T.Parallel(32, 63):
            a[i, j + 1] = a[i, j]        # a[i, 1] is what a[i, 0] was, or what was stored there

    All elements of all iterations are compared. An iteration may read and store one element, and read what none stores:
    ``a[i, j] = a[i, j + 32]`` for j below 32. Elements of tensors that are the same for all iterations may be any
    numbers; places that others decide are left to other passes.
    """
    rewrite([_CHECKED], _Races(function, Firings()))


class _Races(Context):
    """`names` are those of values outside of T.Parallel."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names: dict[ir.Var, ir.Expr] = {}

    def check(self, statement: tirx.Stmt) -> None:
        if isinstance(statement, tirx.Bind):
            self.names[statement.var] = statement.value
        if self.is_nest(statement) and (shared := _used_elsewhere(statement)):
            outer = {one.loop_var: one for one in self.around if isinstance(one, tirx.For)}
            for values in _values(statement, outer, self.names):
                for number in range(_NUMBERS):
                    nest = _NestExecution(statement, shared, values, dict(self.names), number)
                    nest.check()
                    if not nest.loads:
                        break


def _used_elsewhere(nest: tirx.For) -> set[tirx.Buffer]:
    """What a nest stores to, and also uses at an element that is written in another way."""
    loops, _ = parallel_body(nest)
    own = stored_by_turns(loops, loops[-1].body)
    stores = [one for one in walk(loops[-1].body) if isinstance(one, tirx.BufferStore) and one.buffer not in own]
    places: dict[tirx.Buffer, list[list[ir.Expr]]] = {one.buffer: [] for one in stores}
    for one in stores:
        places[one.buffer].append([*one.indices])
    for one in walk(loops[-1].body):
        for value in _expressions(one):
            for load in loads_of(value):
                if load.source in places:
                    places[load.source].append([*load.indices])
    return {
        buffer for buffer, used in places.items() if not all(same_expressions(used[0], one) for one in used[1:])
    }  # fmt: skip


def _expressions(statement: tirx.Stmt) -> list[ir.Expr]:
    match statement:
        case tirx.Bind():
            return [statement.value]
        case tirx.BufferStore():
            return [statement.value, *statement.indices]
        case tirx.IfThenElse():
            return [statement.condition]
        case tirx.For():
            return [statement.min, statement.extent]
        case _:
            return []


def _values(nest: tirx.For, outer: dict[ir.Var, tirx.For], names: dict[ir.Var, ir.Expr]) -> Iterator[dict[ir.Var, int]]:
    """Values of the variables around a nest: all of them, or the first two and the last where these are many."""
    used = {
        one for statement in walk(nest) for value in _expressions(statement)
        for one in nodes_of(written_out(value, names)) if isinstance(one, ir.Var) and one in outer
    }  # fmt: skip
    ranges: dict[ir.Var, range] = {}
    for one in used:
        low, extent = constant(outer[one].min), constant(outer[one].extent)
        ranges[one] = range(low or 0, (low or 0) + (2 if extent is None else extent))
    loops, _ = parallel_body(nest)
    iterations = math.prod(constant(one.extent) or 1 for one in loops)
    if math.prod(map(len, ranges.values())) * iterations > _MOST_ITERATIONS:
        few = {one: sorted({*some[:2], *some[-1:]}) for one, some in ranges.items()}
    else:
        few = {one: [*some] for one, some in ranges.items()}
    for values in itertools.product(*few.values()):
        yield dict(zip(few, values, strict=True))


@dataclass(frozen=True)
class _ElementUse:
    """The elements of a block that a statement reads or stores, and the iteration of each."""

    statement: tirx.Stmt
    elements: _Numbers
    iterations: _Numbers


class _NestExecution:
    """One execution of a T.Parallel nest, all its iterations side by side: each loop in it is an axis of arrays."""

    def __init__(
        self, nest: tirx.For, shared: set[tirx.Buffer], outer: dict[ir.Var, int], names: dict[ir.Var, ir.Expr],
        number: int,
    ) -> None:  # fmt: skip
        """Elements of tensors that decide places are numbers that depend on `number`."""
        self.shared, self.names, self.element = shared, names, number
        self.loads: list[ir.Expr] = []
        self.inside = {one.loop_var for one in walk(nest) if isinstance(one, tirx.For)}
        self.numbers: dict[ir.Var, Variable] = {}
        self.known: dict[Key, Range] = {self.number(one): (value, value) for one, value in outer.items()}
        self.reads: dict[tirx.Buffer, list[_ElementUse]] = {one: [] for one in shared}
        self.stores: dict[tirx.Buffer, list[_ElementUse]] = {one: [] for one in shared}
        self.depth, self.iterations = 0, np.zeros((), np.int64)
        self.is_known = True
        loops, self.body = parallel_body(nest)
        for one in loops:
            extent = self.enter(one)
            axis = np.arange(extent).reshape(-1, *[1] * (self.depth - 1))
            self.iterations = self.iterations * extent + axis

    def number(self, one: ir.Var) -> Variable:
        return self.numbers.setdefault(one, Variable(len(self.numbers), str(one.name)))

    def enter(self, loop: tirx.For) -> int:
        """Give a loop an axis; returns its length. One whose length is not known is left to other passes."""
        low, extent = self.exact(loop.min), constant(loop.extent)
        if low is None or extent is None or math.prod([extent, *self.iterations.shape]) > _MOST_ITERATIONS:
            self.is_known = False
            low, extent = np.zeros((), np.int64), 1
        values = low + np.arange(extent).reshape(-1, *[1] * self.depth)
        self.known[self.number(loop.loop_var)] = (values, values)
        self.depth += 1
        return extent

    def exact(self, e: ir.Expr) -> _Numbers | None:
        """The value of an expression in each iteration; None where that depends on more than loops."""
        e = written_out(e, self.names)
        if loads_of(e):
            e = replaced(e, self._number)
        found = value_range(convert(e, self.number), self.known)
        return np.asarray(found[0]) if found is not None and found[0] is found[1] else None

    def _number(self, e: ir.Expr) -> ir.Expr:
        """An element of a tensor that is the same for all iterations, as a number; another part as it is."""
        if not isinstance(e, ir.TensorLoad) or is_on_chip(e.source) or any(one in self.inside for one in nodes_of(e)):
            return e
        place = next((at for at, one in enumerate(self.loads) if same_expression(one, e)), len(self.loads))
        if place == len(self.loads):
            self.loads.append(e)
        return tirx.const(self.element * (place + 1) % _NUMBERS, str(e.ty.dtype))

    def check(self) -> None:
        self.execute(self.body, np.ones((), np.bool_))
        if not self.is_known:
            return
        for buffer, stores in self.stores.items():
            size = math.prod(one for one in extents_of(buffer) if isinstance(one, int))
            least, most = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
            for use in stores:
                if (most[use.elements] >= 0).any() and _others(use, least, most):
                    raise _race(buffer, use.statement, "stores to the same elements of {} in several iterations")
                np.minimum.at(least, use.elements, use.iterations)
                np.maximum.at(most, use.elements, use.iterations)
            for use in self.reads[buffer]:
                if _others(use, least, most):
                    raise _race(buffer, use.statement, "stores to {} and reads it at other elements")

    def execute(self, body: list[tirx.Stmt], live: _Mask) -> None:
        for one in body:
            for value in _expressions(one):
                self.read(value, live, one)
            match one:
                case tirx.Bind():
                    self.names[one.var] = one.value
                case tirx.BufferStore() if one.buffer in self.shared and not updates(one.value):
                    self.use(one.buffer, [*one.indices], self.changed(one, one.value, live), one, self.stores)
                case tirx.IfThenElse():
                    test = self.exact(one.condition)
                    holds, other = (live, live) if test is None else (live & (test != 0), live & (test == 0))
                    self.execute(statements(one.then_case), holds)
                    if one.else_case is not None:
                        self.execute(statements(one.else_case), other)
                case tirx.For() if not is_parallel(one):
                    depth = self.depth
                    self.enter(one)
                    self.execute(statements(one.body), live)
                    self.depth = depth
                case _:
                    pass

    def changed(self, store: tirx.BufferStore, value: ir.Expr, live: _Mask) -> _Mask:
        """The iterations in which a store changes its element: not where a choice is what it was."""
        if isinstance(value, ir.TensorLoad) and value.source.same_as(store.buffer):
            return live & (not same_expressions([*value.indices], [*store.indices]))
        choice = choice_of(value)
        test = None if choice is None else self.exact(choice[0])
        if choice is None or test is None:
            return live
        # One side is looked into: in chains of choices the other one is what is new.
        sides = [live & (test != 0), live & (test == 0)]
        kept = [isinstance(side, ir.TensorLoad) for side in choice[1:]]
        return functools.reduce(
            np.logical_or,
            [self.changed(store, side, mask) if is_load or kept[1 - at] else mask
             for at, (side, mask, is_load) in enumerate(zip(choice[1:], sides, kept, strict=True))],
        )  # fmt: skip

    def read(self, e: ir.Expr, live: _Mask, statement: tirx.Stmt) -> None:
        """The elements that an expression reads where an iteration asks for it."""
        # With the masks, which keep their identities so.
        waiting, seen = [(e, live)], dict[tuple[int, int], _Mask]()
        while waiting:
            one, asked = waiting.pop()
            if len(seen) > _MOST_PARTS:
                # Parts that are shared are asked for on many paths.
                asked = live
            if (identity(one), id(asked)) in seen:
                continue
            seen[identity(one), id(asked)] = asked
            if isinstance(one, ir.TensorLoad) and one.source in self.shared:
                self.use(one.source, [*one.indices], asked, statement, self.reads)
            parts = parts_of(one)
            if isinstance(one, ir.Call) and operation_name(one) in ATOMICS:
                parts = elements(one.args)[1:]
            elif (choice := choice_of(one)) is not None or isinstance(one, tirx.And | tirx.Or):
                test = self.exact(parts[0])
                if test is not None and len(seen) <= _MOST_PARTS:
                    holds = asked & (test != 0)
                    sides = (holds, asked & (test == 0)) if choice is not None else (holds,)
                    if isinstance(one, tirx.Or):
                        sides = (asked & (test == 0),)
                    waiting += [(parts[0], asked), *zip(parts[1:], sides, strict=True)]
                    continue
            waiting += [(part, asked) for part in parts]

    def use(
        self, buffer: tirx.Buffer, indices: list[ir.Expr], live: _Mask, statement: tirx.Stmt,
        uses: dict[tirx.Buffer, list[_ElementUse]],
    ) -> None:  # fmt: skip
        place = np.zeros((), np.int64)
        for index, length in zip(indices, extents_of(buffer), strict=True):
            at = self.exact(index)
            if at is None or not isinstance(length, int) or place.max() * length > _MOST_ELEMENTS:
                return
            # What lies outside is refused, or not there.
            live = live & (at >= 0) & (at < length)
            place = place * length + np.clip(at, 0, length - 1)
        shape = np.broadcast_shapes(place.shape, live.shape, self.iterations.shape)
        live = np.broadcast_to(live, shape)
        places, iterations = (np.broadcast_to(one, shape)[live] for one in (place, self.iterations))
        uses[buffer].append(_ElementUse(statement, places, iterations))


def _others(use: _ElementUse, least: _Numbers, most: _Numbers) -> bool:
    """Whether another iteration than the one of a use stores its element."""
    stored = most[use.elements] >= 0
    return bool((stored & ((least[use.elements] != use.iterations) | (most[use.elements] != use.iterations))).any())


def _race(buffer: tirx.Buffer, statement: tirx.Stmt, what: str) -> Unsupported:
    return Unsupported(
        "L003",
        f"one T.Parallel {what.format(buffer.name)}",
        hint="its iterations run in any order: store to a second buffer, or use two T.Parallel nests"
        if is_on_chip(buffer)
        else "its iterations run in any order: use two T.Parallel nests, one after the other",
        span=span_of(statement),
    )


_CHECKED = StatementRule(
    "race in T.Parallel", "No iteration stores what another one uses; nothing changes.", _Races.check
)
