"""What threads join: sums, maxima and minima over an axis of threads, and sums that go on in loops, as T.reduce."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm import ir, tirx

from ttexplore.ir.adapter import call, elements, operation_name
from ttexplore.ir.build import (
    allocation,
    dtype_of,
    shape_of,
    whole_region,
)
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.atomics import KINDS, UPDATES, updated
from ttexplore.ir.operations.by_thread import ThreadKernel, is_private, refused, with_owned
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.ir.operations.thread_indices import over_threads
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.by_thread.axes import Axes, BlockAxes, Node
from ttexplore.passes.normalize.by_thread.leaves import (
    Leaves,
    ThreadStore,
)
from ttexplore.passes.normalize.by_thread.nests import Nests, Total


@dataclass(frozen=True)
class ThreadJoin:
    """What threads along some axes join: a value, to the element of a block or tensor if `is_update`."""

    kind: str
    value: ir.Expr
    axes: frozenset[int]
    is_update: bool


def joining(leaf: ThreadStore, kernel: ThreadKernel) -> ThreadJoin | None:
    """What a leaf joins over threads, and over which."""
    value, store = leaf.store.value, leaf.store
    over_axis = over_threads(value)
    if over_axis is not None:
        kind, joined, axis = over_axis
        return ThreadJoin(kind, joined, frozenset([axis]), False)
    if type(value) is ir.Call and operation_name(value) in KINDS:
        axes = frozenset(range(len(kernel.axes))) - kernel.axes_of([*store.indices])
        return ThreadJoin(KINDS[operation_name(value)], elements(value.args)[1], axes, True)
    return None


def without_layout(leaves: Leaves, axes: Axes) -> set[ir.Var]:
    """The sums that no reduction of whole rows or columns completes where they are read."""
    bad: set[ir.Var] = set()
    for leaf in leaves.all_leaves:
        for load in leaf.loads:
            buffer = load.source
            if buffer not in leaves.partial or (leaf.summed and buffer.same_as(leaf.store.buffer)):
                continue
            layout = axes.layout(buffer)
            joined = _joined_nodes(leaf, buffer, leaves.kernel)
            joined |= layout.sums
            for group in (layout.rows, layout.columns):
                if joined & {*group} and not joined >= {*group}:
                    bad.add(buffer)
    return bad


def _joined_nodes(leaf: ThreadStore, buffer: tirx.Buffer, kernel: ThreadKernel) -> set[Node]:
    """The axes of threads over which a leaf joins the values of a buffer, if that is all that it joins."""
    joined = joining(leaf, kernel)
    if joined is None or not isinstance(value := joined.value, ir.TensorLoad):
        return set()
    if not value.source.same_as(buffer) or leaf.guards:
        return set()
    return set[Node](joined.axes & kernel.owned.get(buffer, frozenset[int]()))


class Joins:
    """Writes what threads join. `names` are those of the kernel's buffers."""

    def __init__(self, nests: Nests, names: set[str]) -> None:
        self.nests, self.names = nests, names

    def fresh(self, name: str) -> str:
        """A name that no buffer has."""
        fresh = unused_name(name, self.names)
        self.names.add(fresh)
        return fresh

    def totals(self, leaf: ThreadStore) -> tuple[list[tirx.Stmt], dict[ir.Var, Total]]:
        """The sums that a leaf reads, completed before it."""
        before: list[tirx.Stmt] = []
        totals: dict[ir.Var, Total] = {}
        for load in leaf.loads:
            buffer = load.source
            goes_on = bool(leaf.summed) and buffer.same_as(leaf.store.buffer)
            if buffer not in self.nests.leaves.partial or goes_on or buffer in totals:
                continue
            layout = self.nests.axes.layout(buffer)
            kind = self.nests.leaves.partial[buffer].kind
            new, block = self.reduction(self.nests.blocks[buffer], layout, layout.sums, kind, leaf.store)
            before += new
            totals[buffer] = Total(block, layout.sums)
        return before, totals

    def reduction(
        self, block: tirx.Buffer, layout: BlockAxes, joined: frozenset[Node], kind: str, at: tirx.Stmt
    ) -> tuple[list[tirx.Stmt], tirx.Buffer]:
        """The T.reduce of the rows or columns of a block, or of both, that are all joined."""
        new: list[tirx.Stmt] = []
        shape, dimension = [*shape_of(block)], len(layout.slots)
        for group in (layout.rows, layout.columns):
            if not group:
                continue
            if not joined & {*group}:
                dimension += 1
                continue
            if not joined >= {*group}:
                raise refused("a sum over some threads of those that lie along one axis of a block", at)
            del shape[dimension]
            allocated = allocation(self.fresh(f"{block.name}_{kind}"), shape or [1], dtype_of(block), "local.fragment")
            operands = [whole_region(block), whole_region(allocated.buffer)]
            reduce = call(tl.REDUCE.name, operands, {"kind": kind, "dim": dimension, "clear": 1})
            new += [allocated, tirx.Evaluate(reduce, at.span)]
            block = allocated.buffer
        return new, block

    def joined_values(self, leaf: ThreadStore, joining: ThreadJoin) -> list[tirx.Stmt]:
        """What takes the place of a leaf that joins the values of threads."""
        store, leaves = leaf.store, self.nests.leaves
        if leaf.guards and not joining.is_update:
            raise refused("joining the values of only some threads", store)
        if joining.is_update and is_private(store.buffer):
            raise refused(f"T.atomic_add to {store.buffer.name}, which each thread has,", store)
        differing = leaves.kernel.axes_of([joining.value, *leaf.guards])
        alike = prod(leaves.kernel.axes[axis].extent for axis in joining.axes - differing)
        new, value, totals = self.joined_block(leaf, joining, differing)
        if alike > 1 and joining.kind == "sum":
            value = value * tirx.const(alike, str(value.ty.dtype))
        indices = [*store.indices]
        if joining.is_update:
            old = tirx.BufferLoad(store.buffer, indices)
            joined = JOININGS[joining.kind].expression(old, value)
            value = joined if is_on_chip(store.buffer) else updated(UPDATES[joining.kind], old, value)
            axes = leaves.kernel.axes_of(indices)
            if not leaves.is_injective(indices, (), sorted(axes)):
                raise refused(f"an update of elements of {store.buffer.name} that threads choose", store)
        else:
            axes = leaves.kernel.owned.get(store.buffer, frozenset[int]())
        # What is joined has the conditions in it, unless it is the same for all these threads.
        guards = () if joining.axes & differing else leaf.guards
        final = ThreadStore(tirx.BufferStore(store.buffer, value, indices, store.span), guards)
        return [*new, self.nests.nest(final, axes | leaves.kernel.axes_of(guards), totals)]

    def joined_block(
        self, leaf: ThreadStore, joining: ThreadJoin, differing: frozenset[int]
    ) -> tuple[list[tirx.Stmt], ir.Expr, dict[ir.Var, Total]]:
        """What threads join, as an element to read: the statements that compute it, the element, and the blocks that
        have it."""
        nests, store, kind = self.nests, leaf.store, joining.kind
        if not joining.axes & differing and not leaf.guards:
            before, totals = self.totals(leaf)
            return before, joining.value, totals
        source = joining.value
        if isinstance(source, ir.TensorLoad) and source.source in nests.blocks and not leaf.guards:
            partial = nests.leaves.partial.get(source.source)
            if partial is None or partial.kind == kind:
                layout = nests.axes.layout(source.source)
                joined = layout.sums | {node for node in layout.nodes if node in joining.axes}
                new, block = self.reduction(nests.blocks[source.source], layout, joined, kind, store)
                return new, source, {source.source: Total(block, joined)}
        # It has a block of its own, with what changes nothing for threads that do not take part.
        name, dtype = self.fresh(f"{store.buffer.name}_of_threads"), str(source.ty.dtype)
        of_threads = allocation(name, [1], dtype, "local", store.span).buffer
        nests.leaves.kernel = with_owned(nests.leaves.kernel, of_threads, differing)
        allocated = allocation(name, nests.axes.shape(of_threads), dtype, "local.fragment", store.span)
        nests.blocks[of_threads] = allocated.buffer
        for guard in reversed(leaf.guards):
            source = tirx.Select(guard, source, tirx.const(JOININGS[kind].neutral_of(dtype), dtype))
        zero = tirx.const(0, "int32")
        spread = ThreadStore(tirx.BufferStore(of_threads, source, [zero], store.span), ())
        before, totals = self.totals(spread)
        nest = nests.nest(spread, differing, totals)
        layout = nests.axes.layout(of_threads)
        joined = frozenset(node for node in layout.nodes if node in joining.axes)
        new, block = self.reduction(allocated.buffer, layout, joined, kind, store)
        element = tirx.BufferLoad(of_threads, [zero])
        return [*before, allocated, nest, *new], element, {element.source: Total(block, joined)}
