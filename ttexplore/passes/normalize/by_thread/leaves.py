"""The stores of a kernel for single threads, and which loops around them become axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray
from tvm import ir, sym, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.index import (
    Binary,
    Expression,
    Variable,
    VariableNumbers,
    compiled,
    convert,
    terms_of,
)
from ttexplore.ir.arithmetic.index import variables as variables_in
from ttexplore.ir.build import (
    arguments,
    constant,
    is_whole,
    regions,
    runs,
    statements,
)
from ttexplore.ir.dag import nodes_of, same_expressions
from ttexplore.ir.dataflow import is_parallel, loads_of
from ttexplore.ir.operations.atomics import updates
from ttexplore.ir.operations.by_thread import ThreadKernel, is_private, values_of
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.ir.operations.thread_indices import over_threads
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

# A T.Parallel made of loops of one thread has at most so many elements: they lie in L1 at once.
_MOST_ELEMENTS = 1 << 16
_ARITHMETIC = frozenset(["+", "-", "*", "//", "%"])
_RACE_HINT = "let one thread store it: if tx == 0, or join the values with T.atomic_add"


@dataclass(eq=False)
class ThreadStore:
    """A store, the conditions that it needs, the loops around it that become axes, and of which thread of an axis it
    is, where it is one's."""

    store: tirx.BufferStore
    guards: tuple[ir.Expr, ...]
    loops: tuple[tirx.For, ...] = ()
    fixed: Mapping[int, ir.Expr] = field(default_factory=dict[int, ir.Expr])

    @property
    def expressions(self) -> list[ir.Expr]:
        return [self.store.value, *self.store.indices, *self.guards]

    @property
    def loads(self) -> list[ir.TensorLoad]:
        return [load for expression in self.expressions for load in loads_of(expression)]

    @property
    def accesses(self) -> list[tuple[tirx.Buffer, list[ir.Expr]]]:
        stored = (self.store.buffer, [*self.store.indices])
        return [stored, *((load.source, [*load.indices]) for load in self.loads)]

    @property
    def summed(self) -> tuple[tirx.For, ...]:
        """The loops in which it joins one element to what was there."""
        if joining_of(self.store) is None:
            return ()
        return tuple(loop for loop in self.loops if not uses_variable(self.store.indices, [loop.loop_var]))


@dataclass
class Partial:
    """A buffer of each thread that holds sums, one for each iteration of some loops: so many each."""

    kind: str
    extents: tuple[int, ...]


class Leaves:
    """The leaves of a kernel by the statement that they are in, and the sums that have an element for each iteration.

    A sum that is `refused` stays in its loop.
    """

    def __init__(self, kernel: ThreadKernel, refused: set[ir.Var]) -> None:
        self.kernel, self.refused = kernel, refused
        self.of: dict[tirx.Stmt, list[ThreadStore]] = {}
        self.partial: dict[ir.Var, Partial] = {}
        self.loops = [each for top in kernel.body for each in walk(top) if isinstance(each, tirx.For)]
        self.numbers = {axis.variable: number for number, axis in enumerate(kernel.axes)}
        self.collect(kernel.body, ())

    @property
    def all_leaves(self) -> list[ThreadStore]:
        return [leaf for leaves in self.of.values() for leaf in leaves]

    def collect(self, body: Sequence[tirx.Stmt], guards: tuple[ir.Expr, ...]) -> None:
        for statement in body:
            match statement:
                case tirx.BufferStore():
                    self.of[statement] = [ThreadStore(statement, guards)]
                case tirx.IfThenElse():
                    differs = bool(self.kernel.axes_of([statement.condition]))
                    if differs:
                        self.check_branch(statement)
                    for side, condition in sides_of(statement):
                        self.collect(side, (*guards, condition) if differs else guards)
                case tirx.For() if not is_parallel(statement):
                    leaves = self.as_axes(statement, guards)
                    if leaves is not None:
                        self.of[statement] = leaves
                    else:
                        self.collect(statements(statement.body), guards)
                case _:
                    pass

    def check_branch(self, branch: tirx.IfThenElse) -> None:
        """In a branch that only some threads take nothing keeps one from another's elements, nor in both sides."""
        stores = [each for each in walk(branch) if isinstance(each, tirx.BufferStore)]
        for store in stores:
            if is_private(store.buffer):
                continue
            for nested in stores:
                for buffer, indices in ThreadStore(nested, ()).accesses:
                    both_update = updates(store.value) and updates(nested.value)
                    is_same = same_expressions(indices, [*store.indices])
                    if buffer.same_as(store.buffer) and not is_same and not both_update:
                        raise race(
                            f"threads that take this branch store to {buffer.name} and use other elements of it: "
                            "nothing says in which order",
                            store,
                        )

    def as_axes(self, loop: tirx.For, guards: tuple[ir.Expr, ...]) -> list[ThreadStore] | None:
        """The leaves of a loop whose iterations can all be done at once, each statement for all of them."""
        extent = constant(loop.extent)
        if constant(loop.min) != 0 or extent is None or extent < 1:
            return None
        inner = self.flat(statements(loop.body), guards)
        if inner is None or not any(self.lanes_of(leaf) for leaf in inner):
            return None
        leaves = [ThreadStore(leaf.store, leaf.guards, (loop, *leaf.loops)) for leaf in inner]
        for leaf in leaves:
            lanes = self.lanes_of(leaf)
            size = prod(self.kernel.axes[number].extent for number in lanes)
            size *= prod(constant(each.extent) or 1 for each in leaf.loops)
            if size > _MOST_ELEMENTS or not self.is_free(leaf, leaves, loop):
                return None
        for leaf in leaves:
            if leaf.summed:
                kind = joining_of(leaf.store)
                assert kind is not None
                extents = tuple(constant(each.extent) or 1 for each in leaf.summed)
                first = self.partial.setdefault(leaf.store.buffer, Partial(kind, extents))
                if (first.kind, first.extents) != (kind, extents):
                    self.refused.add(leaf.store.buffer)
                    return None
        return leaves

    def flat(self, body: Sequence[tirx.Stmt], guards: tuple[ir.Expr, ...]) -> list[ThreadStore] | None:
        leaves: list[ThreadStore] = []
        for statement in body:
            inner: list[ThreadStore] | None = None
            match statement:
                case tirx.BufferStore() if over_threads(statement.value) is None and not updates(statement.value):
                    inner = [ThreadStore(statement, guards)]
                case tirx.IfThenElse():
                    if self.kernel.axes_of([statement.condition]):
                        self.check_branch(statement)
                    flat_sides = [self.flat(side, (*guards, test)) for side, test in sides_of(statement)]
                    if all(leaves_of_side is not None for leaves_of_side in flat_sides):
                        inner = [leaf for leaves_of_side in flat_sides for leaf in leaves_of_side or ()]
                case tirx.For() if not is_parallel(statement):
                    inner = self.as_axes(statement, guards)
                case _:
                    pass
            if inner is None:
                return None
            leaves += inner
        return leaves

    def is_free(self, leaf: ThreadStore, leaves: Sequence[ThreadStore], loop: tirx.For) -> bool:
        """Whether no iteration of a loop needs what another one stores by this leaf, but for a sum that goes on."""
        buffer, indices = leaf.store.buffer, [*leaf.store.indices]
        uses = [(user, at) for user in leaves for used, at in user.accesses if used.same_as(buffer)]
        if not uses_variable(indices, [loop.loop_var]):
            is_sum = joining_of(leaf.store) is not None and buffer not in self.refused and is_private(buffer)
            return is_sum and all(user is leaf for user, _ in uses) and len(uses) == 2
        if not all(same_expressions(at, indices) for _, at in uses):
            return False
        return self.is_injective(indices, [each for each in leaf.loops if each not in leaf.summed], ())

    def is_injective(self, indices: Sequence[ir.Expr], loops: Sequence[tirx.For], axes: Iterable[int]) -> bool:
        """Whether each thread and each iteration has an element of its own, whatever is around them. False for indices
        of which that is not known."""
        number = VariableNumbers()
        lanes = [(number(loop.loop_var), constant(loop.extent) or 1) for loop in loops]
        lanes += [(number(self.kernel.axes[axis].variable), self.kernel.axes[axis].extent) for axis in axes]
        lanes = [lane for lane in lanes if lane[1] > 1]
        if not lanes:
            return True
        variables = {lane for lane, _ in lanes}
        analyzer = sym.Analyzer()
        # What loops around add before a division by a divisor of it is added after it.
        terms = [terms_of(convert(analyzer.simplify(index), number)) for index in indices]
        mixed = {
            variable
            for each in terms
            for term in each
            if variables_in(term) & variables
            for variable in variables_in(term)
        }
        # Other threads have elements of their own for each number of those around.
        around = [(number(axis.variable), axis.extent) for axis in self.kernel.axes]
        around = [lane for lane in around if lane[0] in mixed - variables]
        names = {lane: f"v[{position}]" for position, (lane, _) in enumerate((*lanes, *around))}
        grids = np.meshgrid(*(np.arange(extent) for _, extent in (*lanes, *around)), indexing="ij")
        coordinates: list[NDArray[np.int64]] = [grid.reshape(-1) for grid in grids[len(lanes) :]]
        for each in terms:
            varying: Expression = 0
            for term, factor in each.items():
                used = variables_in(term)
                if used & variables:
                    if not used <= names.keys() or not _is_arithmetic(term):
                        return False
                    varying = scaled_sum(varying, term, factor)
            evaluator = compiled([varying], "v", names)
            if evaluator is None:
                return False
            values = np.broadcast_to(np.asarray(evaluator(grids)[0], np.int64), grids[0].shape)
            coordinates.append(values.reshape(-1))
        elements_used = np.stack(coordinates, axis=1)
        return len(np.unique(elements_used, axis=0)) == len(elements_used)

    def lanes_of(self, leaf: ThreadStore) -> frozenset[int]:
        """The axes of threads over which a leaf goes."""
        owned = self.kernel.owned.get(leaf.store.buffer, frozenset[int]())
        return (owned | self.kernel.axes_of(leaf.expressions)) - leaf.fixed.keys()

    def without_form(self) -> set[ir.Var]:
        """The sums that begin with more than nothing, or that more than these leaves use."""
        bad: set[ir.Var] = set()
        stores = {leaf.store for leaf in self.all_leaves}
        for statement in (nested for top in self.kernel.body for nested in walk(top)):
            if runs(statement, tl.FILL) and regions(statement)[0].source in self.partial:
                region, value = regions(statement)[0], arguments(statement)[1]
                if not is_whole(region) or not self.begins(region.source, value):
                    bad.add(region.source)
            elif statement not in stores and not isinstance(statement, tirx.AllocBuffer):
                bad |= {buffer for buffer in buffers_of(statement) if buffer in self.partial}
        for leaf in self.all_leaves:
            target = leaf.store.buffer
            begins = not leaf.guards and not leaf.loops and self.begins(target, leaf.store.value)
            if target in self.partial and not leaf.summed and not begins:
                bad.add(target)
        return {buffer for buffer in bad if buffer in self.partial}

    def begins(self, buffer: ir.Var, value: ir.Expr) -> bool:
        """Whether a sum that begins with a value for each iteration begins with it."""
        if buffer not in self.partial:
            return False
        while isinstance(value, tirx.Cast):
            value = value.value
        if not isinstance(value, tirx.IntImm | tirx.FloatImm):
            return False
        return self.partial[buffer].kind != "sum" or float(value.value) == 0


def sides_of(branch: tirx.IfThenElse) -> list[tuple[list[tirx.Stmt], ir.Expr]]:
    """The sides of a branch with their conditions."""
    otherwise = [] if branch.else_case is None else statements(branch.else_case)
    return [(statements(branch.then_case), branch.condition), (otherwise, tirx.Not(branch.condition))]


def buffers_of(statement: tirx.Stmt) -> list[tirx.Buffer]:
    """The buffers that a statement itself uses."""
    values = values_of(statement)
    used = [load.source for value in values for load in loads_of(value)]
    used += [value.source for value in values if isinstance(value, ir.TensorRegion)]
    return [*used, statement.buffer] if isinstance(statement, tirx.BufferStore) else used


def _is_arithmetic(e: Expression) -> bool:
    """Whether an expression can be computed for many values at once."""
    if isinstance(e, int | Variable):
        return True
    return isinstance(e, Binary) and e.symbol in _ARITHMETIC and _is_arithmetic(e.left) and _is_arithmetic(e.right)


def joining_of(store: tirx.BufferStore) -> str | None:
    """How a store joins a value to the element that it replaces; None where it does something else."""
    value = store.value
    for kind in ("sum", "max", "min"):
        if not isinstance(value, JOININGS[kind].expression):
            continue
        loads = [load for load in loads_of(value) if load.source.same_as(store.buffer)]
        for side in (value.a, value.b):
            if isinstance(side, ir.TensorLoad) and side.source.same_as(store.buffer) and len(loads) == 1:
                return kind if same_expressions([*side.indices], [*store.indices]) else None
    return None


def uses_variable(expressions: Iterable[ir.Expr], searched: Sequence[ir.Var]) -> bool:
    return any(
        node.same_as(each) for e in expressions for node in nodes_of(e) for each in searched if isinstance(node, ir.Var)
    )


def scaled_sum(total: Expression, term: Expression, factor: int) -> Expression:
    return Binary("+", total, Binary("*", term, factor))


def race(problem: str, at: tirx.Stmt) -> KernelError:
    return KernelError("K016", f"{problem}: a race between threads", hint=_RACE_HINT, span=span_of(at))
