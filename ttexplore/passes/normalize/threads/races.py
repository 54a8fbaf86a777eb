"""Whether accesses of groups of threads race: what their clocks say of those before."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.build import scope_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.groups import TENSOR_MEMORY
from ttexplore.passes.normalize.threads.state import GroupAccess, GroupBarrier, Running
from ttexplore.passes.normalize.threads.steps import Turns
from ttexplore.passes.normalize.threads.tree import Axis, Leaf, Tree

# An earlier and a later access of two groups, each a step in turns.
Edge = tuple[int, Turns, int, Turns]


class Races:
    """The accesses to each buffer that a later one may race with; the `edges` are those that clocks order."""

    def __init__(self, tree: Tree) -> None:
        self.found = tree.found
        self.edges: dict[Edge, None] = {}
        self._live: dict[int, list[GroupAccess]] = {}
        self._owners: dict[int, Leaf] = {}
        self._shared = {
            identity(one.buffer) for one in tree.allocations
            if TENSOR_MEMORY in dict(one.annotations) or scope_of(one.buffer).startswith("shared")
        }  # fmt: skip
        # Nothing races for what is only read.
        self._written = {
            identity(touch.buffer) for leaf in tree.leaves for touch in leaf.accesses if touch.kind != "read"
        }

        self._readers: dict[int, frozenset[int]] = {}
        for leaf in tree.leaves:
            for key in {identity(touch.buffer) for touch in leaf.accesses if touch.kind != "write"}:
                self._readers[key] = self._readers.get(key, frozenset()) | leaf.groups

    def check(self, members: Sequence[Running], buffer: tirx.Buffer, access: GroupAccess) -> None:
        self._check_owner(buffer, access.leaf)
        key = identity(buffer)
        if key not in self._written:
            return
        live = self._live.setdefault(key, [])
        kept: list[GroupAccess] = []
        for other in live:
            is_together = len(other.leaf.groups) > 1 or len(access.leaf.groups) > 1
            if (other.kind == access.kind == "read") or not _overlap(other.region, access.region):
                covered = other.kind == access.kind == "read" and other.leaf.groups <= access.leaf.groups
                other.is_past = covered and _covers(access.region, other.region)
                if not other.is_past:
                    kept.append(other)
                continue
            in_order = other.is_product and access.is_product and other.group == access.group
            # The compiler waits around what all make together, though not for copies and products under way.
            in_order |= is_together and bool(other.leaf.groups & access.leaf.groups) and not other.is_later
            if not in_order and not all(other.is_known(one.clock) for one in members):
                raise self._race(buffer, other, access)
            if other.leaf.groups != access.leaf.groups or other.group != access.group:
                edge = (min(other.leaf.leaves), other.turns, min(access.leaf.leaves), access.turns)
                self.edges[edge] = None
                _note(members[0], buffer, other)
            other.is_past = access.kind != "read" and _covers(access.region, other.region)
            if not other.is_past:
                kept.append(other)
        kept.append(access)
        self._live[key] = kept

    def _check_owner(self, buffer: tirx.Buffer, leaf: Leaf) -> None:
        """Raises KernelError for what lies in the registers of other threads."""
        key = identity(buffer)
        if not is_on_chip(buffer) or key in self._shared:
            return
        owner = self._owners.setdefault(key, leaf)
        if owner.groups != leaf.groups:
            line = span_of(owner.statement)
            raise KernelError(
                "K015",
                f"{buffer.name} lies in the registers of {self._names(owner.groups)}, which use it at line "
                f"{line.line if line else '?'}; here {self._names(leaf.groups)} do",
                hint="hand it over in a block that all threads see: T.alloc_shared",
                span=span_of(leaf.statement),
            )

    def _names(self, groups: frozenset[int]) -> str:
        return " and ".join(str(self.found.groups[one]) for one in sorted(groups))

    def _race(self, buffer: tirx.Buffer, other: GroupAccess, access: GroupAccess) -> KernelError:
        """Of two accesses that nothing orders."""
        told = "".join(f"\n  {self._told(one)}" for one in (other, access))
        readers = self._readers.get(identity(buffer), frozenset()) - {access.group}
        if other.kind == access.kind == "write" and other.group == access.group and readers:
            hint = (
                f"wait before {buffer.name} is filled again: let {self._names(readers)} arrive at a barrier once they "
                "have read it, T.barrier_arrive(empty), and wait for that here: T.barrier_wait(empty, parity)"
            )
        elif other.barrier is not None and access.group not in other.barrier.waiting:
            hint = f"wait for that copy first: T.barrier_wait({other.barrier.name}, parity)"
        elif other.barrier is not None:
            hint = f"wait for the phase of {other.barrier.name} in which that copy ends: check the parity"
        elif other.is_product and other.group == access.group:
            hint = "wait for that product first: T.wait_wgmma(0)"
        else:
            hint = (
                "let the threads of that line arrive at a barrier after it, and wait for it here with its parity: "
                "T.barrier_arrive(done), T.barrier_wait(done, k % 2)"
            )
        return KernelError(
            "K015",
            f"a race for {buffer.name}: nothing orders two accesses{told}",
            hint=hint,
            span=span_of(access.leaf.statement),
        )

    def _told(self, access: GroupAccess) -> str:
        """An access: line, turns of the loops around it, group and kind."""
        line = span_of(access.leaf.statement)
        verb = {"read": "read", "write": "write", "update": "change"}[access.kind]
        turns = [f"{loop.loop_var.name} = {turn}" for loop, turn in zip(access.leaf.loops, access.turns, strict=True)]
        where = "".join(f", {turn}" for turn in turns)
        return f"line {line.line if line else '?'}{where}: {self.found.groups[access.group]} {verb} it"


def _note(one: Running, buffer: tirx.Buffer, other: GroupAccess) -> None:
    """Note what the barrier says at whose wait a group learned of another group's access."""
    teller: GroupBarrier | None = None
    for before, barrier in reversed(one.waits):
        teller = barrier
        if not other.is_known(before):
            break
    if teller is not None:
        known = teller.empty if other.kind == "read" else teller.full
        known[str(buffer.name)] = None


def _overlap(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    for a, b in zip(one, other, strict=True):
        if a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1]):
            return False
    return True


def _covers(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    """Whether a region has all of another one."""
    return all(
        a is None or (b is not None and a[0] == b[0] and a[1] <= b[1] and b[2] <= a[2])
        for a, b in zip(one, other, strict=True)
    )
