"""The axes of blocks that take the place of threads and their elements: which are rows, and in which order they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm import ir, tirx

from ttexplore.ir.arithmetic.index import (
    Expression,
    Variable,
    VariableNumbers,
    affine,
    convert,
    terms_of,
)
from ttexplore.ir.arithmetic.index import variables as variables_in
from ttexplore.ir.build import (
    constant,
    shape_of,
)
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.by_thread import is_private
from ttexplore.passes.normalize.by_thread.leaves import (
    Leaves,
    scaled_sum,
    uses_variable,
)

# What is an axis: one of threads, by number; a loop's, by its variable; and of a buffer of each thread, the buffer and
# the number of its dimension, or of the loop in which a sum goes on.
Node = int | ir.Var | tuple[tirx.Buffer, str, int]


@dataclass(frozen=True)
class BlockAxes:
    """The axes of a buffer of each thread as a block: those of its slots, of its rows and of its columns."""

    slots: tuple[int, ...]
    rows: tuple[Node, ...]
    columns: tuple[Node, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.rows, *self.columns)

    @property
    def sums(self) -> frozenset[Node]:
        """The axes along which the elements of one sum lie."""
        return frozenset(node for node in self.nodes if isinstance(node, tuple) and node[1] == "sum")


class Axes:
    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.parents: dict[Node, Node] = {}
        self.row_votes: dict[Node, bool] = {}
        self.strides: dict[Node, int] = {}
        self.link()

    def link(self) -> None:
        """Find which axes are one, which of them are rows, and their order."""
        number = VariableNumbers()
        for leaf in self.leaves.all_leaves:
            loops = {loop.loop_var for loop in leaf.loops}
            for buffer, indices in leaf.accesses:
                for dimension, index in enumerate(indices):
                    if isinstance(index, ir.Var) and index in loops and (is_private(buffer) or is_on_chip(buffer)):
                        self.join((buffer, "element", dimension), index)
            if leaf.store.buffer in self.leaves.partial:
                for position, loop in enumerate(leaf.summed):
                    self.join((leaf.store.buffer, "sum", position), loop.loop_var)
        for leaf in self.leaves.all_leaves:
            lanes: dict[Variable, Node] = {number(loop.loop_var): loop.loop_var for loop in leaf.loops}
            lanes |= {number(axis.variable): position for position, axis in enumerate(self.leaves.kernel.axes)}
            for buffer, indices in leaf.accesses:
                if is_private(buffer):
                    continue
                for dimension, index in enumerate(indices):
                    factors = affine(_without_rest(convert(index, number), lanes)) or {}
                    for lane, factor in factors.items():
                        if lane is None or lane not in lanes:
                            continue
                        root = self.root(lanes[lane])
                        self.strides[root] = max(self.strides.get(root, 0), abs(factor))
                        if len(indices) > 1:
                            self.row_votes.setdefault(root, dimension < len(indices) - 1)

    def root(self, node: Node) -> Node:
        while node in self.parents:
            node = self.parents[node]
        return node

    def join(self, first: Node, second: Node) -> None:
        first_root, second_root = self.root(first), self.root(second)
        if first_root != second_root:
            self.parents[first_root] = second_root

    def is_row(self, node: Node) -> bool:
        return self.row_votes.get(self.root(node), False)

    def sorted(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Axes with the widest steps first; those of threads before those of loops."""
        return tuple(sorted(nodes, key=lambda node: (-self.strides.get(self.root(node), 0), not isinstance(node, int))))

    def extent(self, node: Node, loops: Sequence[tirx.For] = ()) -> int:
        if isinstance(node, int):
            return self.leaves.kernel.axes[node].extent
        if isinstance(node, tuple):
            buffer, purpose, position = node
            return self.leaves.partial[buffer].extents[position] if purpose == "sum" else shape_of(buffer)[position]
        return next(constant(loop.extent) or 1 for loop in loops if loop.loop_var.same_as(node))

    def layout(self, buffer: tirx.Buffer) -> BlockAxes:
        """The axes of the block that the buffers of all threads are."""
        nodes: list[Node] = [*self.leaves.kernel.owned.get(buffer, frozenset[int]())]
        slots: list[int] = []
        for dimension, extent in enumerate(shape_of(buffer)):
            node = (buffer, "element", dimension)
            if self.is_lane(buffer, dimension):
                nodes.append(node)
            elif extent > 1:
                slots.append(dimension)
        if buffer in self.leaves.partial:
            nodes += [(buffer, "sum", position) for position in range(len(self.leaves.partial[buffer].extents))]
        rows = [node for node in nodes if self.is_row(node)]
        return BlockAxes(tuple(slots), self.sorted(rows), self.sorted(node for node in nodes if node not in rows))

    def is_lane(self, buffer: ir.Var, dimension: int) -> bool:
        """Whether a loop that becomes an axis decides where along a dimension an element lies."""
        for leaf in self.leaves.all_leaves:
            loops = [loop.loop_var for loop in leaf.loops]
            for used, indices in leaf.accesses:
                if used.same_as(buffer) and uses_variable([indices[dimension]], loops):
                    return True
        return False

    def shape(self, buffer: tirx.Buffer) -> list[int]:
        layout = self.layout(buffer)
        groups = [prod(map(self.extent, group)) for group in (layout.rows, layout.columns) if group]
        return [*(shape_of(buffer)[slot] for slot in layout.slots), *groups] or [1]

    def word(self, node: Node) -> str:
        if isinstance(node, int):
            return str(self.leaves.kernel.axes[node].variable.name)
        return str((node[0] if isinstance(node, tuple) else node).name)


def _without_rest(e: Expression, lanes: Mapping[Variable, Node]) -> Expression:
    """The parts of a sum in which lanes are."""
    total: Expression = 0
    for term, factor in terms_of(e).items():
        if variables_in(term) & lanes.keys():
            total = scaled_sum(total, term, factor)
    return total
