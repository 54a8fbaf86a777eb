"""The T.Parallel that makes one store for all threads, and for all iterations of the loops that become axes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm import ir, sym, tirx

from ttexplore.ir.build import (
    constant,
    parallel_loops,
    variable,
    when,
)
from ttexplore.ir.dag import conjuncts, nodes_of, replaced
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.atomics import updates
from ttexplore.passes.normalize.by_thread.axes import Axes, Node
from ttexplore.passes.normalize.by_thread.leaves import (
    ThreadStore,
)


@dataclass(frozen=True)
class Total:
    """A block without the axes along which it was joined."""

    block: tirx.Buffer
    joined: frozenset[Node]


@dataclass(frozen=True)
class Frame:
    """The loops of a T.Parallel, and where along each axis an iteration is."""

    variables: list[ir.Var]
    extents: list[int]
    at: dict[Node, ir.Expr]
    analyzer: sym.Analyzer

    def simple(self, expression: ir.Expr) -> ir.Expr:
        return (
            self.analyzer.simplify(expression)
            if "int" in str(expression.ty.dtype) or "bool" in str(expression.ty.dtype)
            else expression
        )


class Nests:
    """`blocks` are those of the buffers that each thread has, `sizes` the numbers that the kernel is given."""

    def __init__(self, axes: Axes, sizes: Sequence[ir.Var]) -> None:
        self.axes, self.leaves, self.sizes = axes, axes.leaves, sizes
        self.blocks: dict[ir.Var, tirx.Buffer] = {}

    def specialized(self, leaf: ThreadStore) -> ThreadStore:
        """A leaf of one thread of an axis, if a condition says which."""
        fixed: dict[int, ir.Expr] = {}
        for condition in [test for guard in leaf.guards for test in conjuncts(guard)]:
            if not isinstance(condition, tirx.EQ):
                continue
            for index, number in ((condition.a, condition.b), (condition.b, condition.a)):
                axis = self.leaves.numbers.get(index) if isinstance(index, ir.Var) else None
                thread = constant(number)
                if axis is not None and thread is not None and 0 <= thread < self.leaves.kernel.axes[axis].extent:
                    fixed[axis] = number
        if not fixed:
            return leaf

        def rule(node: ir.Expr) -> ir.Expr:
            return fixed.get(self.leaves.numbers.get(node, -1), node) if isinstance(node, ir.Var) else node

        analyzer = sym.Analyzer()
        value, *values = [replaced(expression, rule) for expression in leaf.expressions]
        count = len(leaf.store.indices)
        indices, guards = (map(analyzer.simplify, some) for some in (values[:count], values[count:]))
        store = tirx.BufferStore(leaf.store.buffer, value, [*indices], leaf.store.span)
        return ThreadStore(store, tuple(guard for guard in guards if constant(guard) != 1), leaf.loops, fixed)

    def frame(self, nodes: Iterable[Node], loops: Sequence[tirx.For], fixed: Mapping[int, ir.Expr]) -> Frame:
        """The loops of a T.Parallel over some axes: one over those that are rows, one over the others."""
        all_nodes = [*dict.fromkeys(nodes)]
        frame = Frame([], [], {**fixed}, sym.Analyzer())
        for group in (
            self.axes.sorted(node for node in all_nodes if self.axes.is_row(node)),
            self.axes.sorted(node for node in all_nodes if not self.axes.is_row(node)),
        ):
            if not group:
                continue
            extents = [self.axes.extent(node, loops) for node in group]
            var = variable("_".join(self.axes.word(node) for node in group))
            frame.variables.append(var)
            frame.extents.append(prod(extents))
            frame.analyzer.bind(var, ir.Range.from_min_extent(0, prod(extents)))
            for position, (node, extent) in enumerate(zip(group, extents, strict=True)):
                inner = prod(extents[position + 1 :])
                outer: ir.Expr = tirx.FloorDiv(var, tirx.const(inner, "int32")) if inner > 1 else var
                frame.at[node] = tirx.FloorMod(outer, tirx.const(extent, "int32")) if position else outer
        return frame

    def nest(self, leaf: ThreadStore, nodes: Iterable[Node], totals: Mapping[ir.Var, Total]) -> tirx.Stmt:
        """The T.Parallel that makes a store for all threads and iterations."""
        frame = self.frame(nodes, leaf.loops, leaf.fixed)
        store = leaf.store
        value = self.expression(store.value, leaf, frame, totals)
        indices = [frame.simple(self.expression(index, leaf, frame, totals)) for index in store.indices]
        target = store.buffer
        if target in self.blocks:
            indices = self.place(target, indices, leaf, frame)
            target = self.blocks[target]
        guards = leaf.guards
        if guards and not is_on_chip(target) and not updates(store.value) and not all(map(self.is_end, guards)):
            # It keeps what it has. That no other block stores there is checked later, of reads as of stores.
            test = self.expression(functools.reduce(tirx.And, guards), leaf, frame, totals)
            value, guards = tirx.if_then_else(frame.simple(test), value, tirx.BufferLoad(target, indices)), ()
        inner: tirx.Stmt = tirx.BufferStore(target, value, indices, store.span)
        for guard in reversed(guards):
            inner = when(frame.simple(self.expression(guard, leaf, frame, totals)), [inner], store.span)
        if not frame.variables and (guards or store.buffer in self.blocks):
            return parallel_loops([variable("i")], [1], inner)
        return parallel_loops(frame.variables, frame.extents, inner)

    def is_end(self, guard: ir.Expr) -> bool:
        """Whether a condition compares indices with an end, which says which part of a tensor is stored."""
        if not all(isinstance(each, tirx.LT | tirx.LE | tirx.GT | tirx.GE) for each in conjuncts(guard)):
            return False
        counted = [axis.variable for axis in self.leaves.kernel.axes]
        counted += [each.loop_var for each in (*self.leaves.kernel.launch, *self.leaves.loops)]
        nodes = nodes_of(guard)
        return not any(isinstance(node, ir.TensorLoad) for node in nodes) and all(
            any(node.same_as(each) for each in (*counted, *self.sizes)) for node in nodes if isinstance(node, ir.Var)
        )

    def expression(
        self, expression: ir.Expr, leaf: ThreadStore, frame: Frame, totals: Mapping[ir.Var, Total]
    ) -> ir.Expr:
        def rule(node: ir.Expr) -> ir.Expr:
            if isinstance(node, ir.Var):
                return frame.at.get(self.leaves.numbers.get(node, node), node)
            if not isinstance(node, ir.TensorLoad):
                return node
            indices = [frame.simple(index) for index in node.indices]
            if node.source in totals:
                total = totals[node.source]
                return tirx.BufferLoad(
                    total.block, self.place(node.source, indices, leaf, frame, total.joined), node.span
                )
            if node.source in self.blocks:
                return tirx.BufferLoad(
                    self.blocks[node.source], self.place(node.source, indices, leaf, frame), node.span
                )
            return tirx.BufferLoad(node.source, indices, node.span)

        return replaced(expression, rule)

    def place(
        self,
        buffer: tirx.Buffer,
        indices: Sequence[ir.Expr],
        leaf: ThreadStore,
        frame: Frame,
        joined: frozenset[Node] = frozenset(),
    ) -> list[ir.Expr]:
        """Where an element of a thread's buffer lies in the block of all threads, without the axes that are joined."""
        layout = self.axes.layout(buffer)
        position: list[ir.Expr] = [indices[slot] for slot in layout.slots]
        for group in (layout.rows, layout.columns):
            remaining = [node for node in group if node not in joined]
            if not remaining:
                continue
            total: ir.Expr = tirx.const(0, "int32")
            for node in remaining:
                total = total * self.axes.extent(node) + self.along(node, indices, leaf, frame)
            position.append(frame.simple(total))
        return position or [tirx.const(0, "int32")]

    def along(self, node: Node, indices: Sequence[ir.Expr], leaf: ThreadStore, frame: Frame) -> ir.Expr:
        if isinstance(node, tuple):
            _, purpose, position = node
            return indices[position] if purpose == "element" else frame.at[leaf.summed[position].loop_var]
        return frame.at[node]
