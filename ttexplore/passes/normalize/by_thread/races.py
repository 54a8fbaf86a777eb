"""Races between threads: elements that several threads store, or that one stores and another uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tvm import ir, tirx

from ttexplore.ir.build import constant
from ttexplore.ir.dag import replaced, same_expressions
from ttexplore.ir.dataflow import is_on_chip, loads_of
from ttexplore.ir.operations.atomics import updates
from ttexplore.ir.operations.by_thread import is_private
from ttexplore.ir.rewrite import walk
from ttexplore.passes.normalize.by_thread.leaves import Leaves, ThreadStore, buffers_of, race


def check_tensors(leaves: Leaves) -> None:
    """Raise KernelError for elements of tensors that one thread stores and another one uses: nothing orders that, and
    each thread may use only what it stores itself."""
    uses: dict[tirx.Buffer, list[_Use]] = {}
    for leaf in leaves.all_leaves:
        for buffer, indices in leaf.accesses:
            if not is_on_chip(buffer):
                stores = buffer.same_as(leaf.store.buffer)
                use = _Use(_renamed(indices, leaf.loops), leaf, stores, stores and updates(leaf.store.value))
                uses.setdefault(buffer, []).append(use)
    elsewhere = _used_elsewhere(leaves)
    for buffer, accesses in uses.items():
        for store in (access for access in accesses if access.stores):
            if buffer not in elsewhere and all(store.agrees(access) for access in accesses):
                continue
            raise race(
                f"threads store elements of {buffer.name} that others may use: nothing says in which order",
                store.leaf.store,
            )


@dataclass(frozen=True)
class _Use:
    """An access to an element of a tensor: whether its leaf `stores` there, and `updates` what is there."""

    indices: list[ir.Expr]
    leaf: ThreadStore
    stores: bool
    updates: bool

    def agrees(self, access: _Use) -> bool:
        """Whether no order of both, in different threads, changes a result."""
        if self.updates or access.updates:
            return self.updates and access.updates
        return same_expressions(self.indices, access.indices)


def _used_elsewhere(leaves: Leaves) -> set[tirx.Buffer]:
    """The tensors that operations of the whole block use."""
    tensors: set[tirx.Buffer] = set()
    stores = {leaf.store for leaf in leaves.all_leaves}
    for statement in (nested for top in leaves.kernel.body for nested in walk(top)):
        if statement not in stores:
            tensors |= {buffer for buffer in buffers_of(statement) if not is_on_chip(buffer)}
    return tensors


def check_store(leaf: ThreadStore, leaves: Leaves) -> None:
    """Raise KernelError where several threads store one element, or change it without T.atomic_add."""
    store, axes = leaf.store, leaves.lanes_of(leaf)
    if is_private(store.buffer):
        return
    if not leaves.is_injective(store.indices, leaf.loops, sorted(axes)):
        raise race(f"several threads store to one element of {store.buffer.name}", store)
    if any(load.source.same_as(store.buffer) for load in loads_of(store.value)):
        count = prod(
            axis.extent
            for number, axis in enumerate(leaves.kernel.axes)
            if number not in axes and number not in leaf.fixed
        )
        if count > 1:
            raise race(f"{count} threads change one element of {store.buffer.name}", store)


def _renamed(indices: Sequence[ir.Expr], loops: Sequence[tirx.For]) -> list[ir.Expr]:
    """Indices in which loops that become axes are numbers that say how long they are."""
    stands = {
        loop.loop_var: tirx.const(-1 - position - len(loops) * (constant(loop.extent) or 0), "int32")
        for position, loop in enumerate(loops)
    }
    return [
        replaced(index, lambda node: stands.get(node, node) if isinstance(node, ir.Var) else node) for index in indices
    ]
