"""Reject T.Parallel nests in which an iteration stores what another one uses: threads run them in any order."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
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


def stores_all(nest: tirx.For, buffer: tirx.Buffer, names: Mapping[ir.Var, ir.Expr]) -> bool:
    """Whether a T.Parallel certainly stores each element of a block, whatever elements of tensors and the variables
    around it are."""
    execution = _NestExecution(nest, {buffer}, {}, dict(names), None)
    execution.execute(execution.body, np.ones((), np.bool_))
    stored = np.zeros(math.prod(extent for extent in extents_of(buffer) if isinstance(extent, int)), np.bool_)
    for use in execution.stores[buffer]:
        stored[use.elements] = True
    return execution.is_known and bool(stored.all())


class _Races(Context):
    """`names` are those of values outside of T.Parallel."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names: dict[ir.Var, ir.Expr] = {}

    def check(self, statement: tirx.Stmt) -> None:
        if isinstance(statement, tirx.Bind):
            self.names[statement.var] = statement.value
        if self.is_nest(statement) and (shared := _used_elsewhere(statement)):
            outer = {loop.loop_var: loop for loop in self.around if isinstance(loop, tirx.For)}
            for values in _values(statement, outer, self.names):
                for number in range(_NUMBERS):
                    nest = _NestExecution(statement, shared, values, dict(self.names), number)
                    nest.check()
                    if not nest.loads:
                        break


def _used_elsewhere(nest: tirx.For) -> set[tirx.Buffer]:
    """What a nest stores to, and also uses at an element that is written in another way."""
    loops, _ = parallel_body(nest)
    turn_buffers = stored_by_turns(loops, loops[-1].body)
    stores = [
        statement
        for statement in walk(loops[-1].body)
        if isinstance(statement, tirx.BufferStore) and statement.buffer not in turn_buffers
    ]
    uses_of: dict[tirx.Buffer, list[list[ir.Expr]]] = {store.buffer: [] for store in stores}
    for statement in stores:
        uses_of[statement.buffer].append([*statement.indices])
    for statement in walk(loops[-1].body):
        for value in _expressions(statement):
            for load in loads_of(value):
                if load.source in uses_of:
                    uses_of[load.source].append([*load.indices])
    return {
        buffer for buffer, used in uses_of.items() if not all(same_expressions(used[0], access) for access in used[1:])
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
        loop_var for statement in walk(nest) for value in _expressions(statement)
        for loop_var in nodes_of(written_out(value, names)) if isinstance(loop_var, ir.Var) and loop_var in outer
    }  # fmt: skip
    ranges: dict[ir.Var, range] = {}
    for loop_var in used:
        low, extent = constant(outer[loop_var].min), constant(outer[loop_var].extent)
        ranges[loop_var] = range(low or 0, (low or 0) + (2 if extent is None else extent))
    loops, _ = parallel_body(nest)
    iterations = math.prod(constant(loop.extent) or 1 for loop in loops)
    if math.prod(map(len, ranges.values())) * iterations > _MOST_ITERATIONS:
        few = {loop_var: sorted({*some[:2], *some[-1:]}) for loop_var, some in ranges.items()}
    else:
        few = {loop_var: [*some] for loop_var, some in ranges.items()}
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
        number: int | None,
    ) -> None:  # fmt: skip
        """Elements of tensors that decide places are numbers that depend on `number`. Without it nothing is known of
        them, and only what is certainly stored counts."""
        self.shared, self.names, self.element = shared, names, number
        self.loads: list[ir.Expr] = []
        self.inside = {statement.loop_var for statement in walk(nest) if isinstance(statement, tirx.For)}
        self.numbers: dict[ir.Var, Variable] = {}
        self.known: dict[Key, Range] = {self.number(loop_var): (value, value) for loop_var, value in outer.items()}
        self.reads: dict[tirx.Buffer, list[_ElementUse]] = {buffer: [] for buffer in shared}
        self.stores: dict[tirx.Buffer, list[_ElementUse]] = {buffer: [] for buffer in shared}
        self.depth, self.iterations = 0, np.zeros((), np.int64)
        self.is_known = True
        loops, self.body = parallel_body(nest)
        for loop in loops:
            extent = self.enter(loop)
            axis = np.arange(extent).reshape(-1, *[1] * (self.depth - 1))
            self.iterations = self.iterations * extent + axis

    def number(self, loop_var: ir.Var) -> Variable:
        return self.numbers.setdefault(loop_var, Variable(len(self.numbers), str(loop_var.name)))

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
            if self.element is None:
                return None
            e = replaced(e, self._number)
        bounds = value_range(convert(e, self.number), self.known)
        return np.asarray(bounds[0]) if bounds is not None and bounds[0] is bounds[1] else None

    def _number(self, e: ir.Expr) -> ir.Expr:
        """An element of a tensor that is the same for all iterations, as a number; another part as it is."""
        if not isinstance(e, ir.TensorLoad) or is_on_chip(e.source) or any(node in self.inside for node in nodes_of(e)):
            return e
        position = next((at for at, load in enumerate(self.loads) if same_expression(load, e)), len(self.loads))
        if position == len(self.loads):
            self.loads.append(e)
        assert self.element is not None
        return tirx.const(self.element * (position + 1) % _NUMBERS, str(e.ty.dtype))

    def check(self) -> None:
        self.execute(self.body, np.ones((), np.bool_))
        if not self.is_known:
            return
        for buffer, stores in self.stores.items():
            size = math.prod(extent for extent in extents_of(buffer) if isinstance(extent, int))
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
        for statement in body:
            for value in _expressions(statement):
                self.read(value, live, statement)
            match statement:
                case tirx.Bind():
                    self.names[statement.var] = statement.value
                case tirx.BufferStore() if statement.buffer in self.shared and not updates(statement.value):
                    self.use(
                        statement.buffer,
                        [*statement.indices],
                        self.changed(statement, statement.value, live),
                        statement,
                        self.stores,
                    )
                case tirx.IfThenElse():
                    test = self.exact(statement.condition)
                    unknown = live if self.element is not None else np.zeros((), np.bool_)
                    holds, fails = (unknown,) * 2 if test is None else (live & (test != 0), live & (test == 0))
                    self.execute(statements(statement.then_case), holds)
                    if statement.else_case is not None:
                        self.execute(statements(statement.else_case), fails)
                case tirx.For() if not is_parallel(statement):
                    depth = self.depth
                    self.enter(statement)
                    self.execute(statements(statement.body), live)
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
        are_loads = [isinstance(side, ir.TensorLoad) for side in choice[1:]]
        return functools.reduce(
            np.logical_or,
            [self.changed(store, side, mask) if is_load or are_loads[1 - at] else mask
             for at, (side, mask, is_load) in enumerate(zip(choice[1:], sides, are_loads, strict=True))],
        )  # fmt: skip

    def read(self, e: ir.Expr, live: _Mask, statement: tirx.Stmt) -> None:
        """The elements that an expression reads where an iteration asks for it."""
        # With the masks, which keep their identities so.
        waiting, visited = [(e, live)], dict[tuple[int, int], _Mask]()
        while waiting:
            node, asked = waiting.pop()
            if len(visited) > _MOST_PARTS:
                # Parts that are shared are asked for on many paths.
                asked = live
            if (identity(node), id(asked)) in visited:
                continue
            visited[identity(node), id(asked)] = asked
            if isinstance(node, ir.TensorLoad) and node.source in self.shared:
                self.use(node.source, [*node.indices], asked, statement, self.reads)
            children = parts_of(node)
            if isinstance(node, ir.Call) and operation_name(node) in ATOMICS:
                children = elements(node.args)[1:]
            elif (choice := choice_of(node)) is not None or isinstance(node, tirx.And | tirx.Or):
                test = self.exact(children[0])
                if test is not None and len(visited) <= _MOST_PARTS:
                    holds = asked & (test != 0)
                    sides = (holds, asked & (test == 0)) if choice is not None else (holds,)
                    if isinstance(node, tirx.Or):
                        sides = (asked & (test == 0),)
                    waiting += [(children[0], asked), *zip(children[1:], sides, strict=True)]
                    continue
            waiting += [(child, asked) for child in children]

    def use(
        self, buffer: tirx.Buffer, indices: list[ir.Expr], live: _Mask, statement: tirx.Stmt,
        uses: dict[tirx.Buffer, list[_ElementUse]],
    ) -> None:  # fmt: skip
        offsets = np.zeros((), np.int64)
        for index, length in zip(indices, extents_of(buffer), strict=True):
            at = self.exact(index)
            if at is None or not isinstance(length, int) or offsets.max() * length > _MOST_ELEMENTS:
                return
            # What lies outside is refused, or not there.
            live = live & (at >= 0) & (at < length)
            offsets = offsets * length + np.clip(at, 0, length - 1)
        shape = np.broadcast_shapes(offsets.shape, live.shape, self.iterations.shape)
        live = np.broadcast_to(live, shape)
        positions, iterations = (np.broadcast_to(array, shape)[live] for array in (offsets, self.iterations))
        uses[buffer].append(_ElementUse(statement, positions, iterations))


def _others(use: _ElementUse, least: _Numbers, most: _Numbers) -> bool:
    """Whether another iteration than the one of a use stores its element."""
    stored = most[use.elements] >= 0
    return bool((stored & ((least[use.elements] != use.iterations) | (most[use.elements] != use.iterations))).any())


def _race(buffer: tirx.Buffer, statement: tirx.Stmt, problem: str) -> Unsupported:
    return Unsupported(
        "L003",
        f"one T.Parallel {problem.format(buffer.name)}",
        hint="its iterations run in any order: store to a second buffer, or use two T.Parallel nests"
        if is_on_chip(buffer)
        else "its iterations run in any order: use two T.Parallel nests, one after the other",
        span=span_of(statement),
    )


_CHECKED = StatementRule(
    "race in T.Parallel", "No iteration stores what another one uses; nothing changes.", _Races.check
)
