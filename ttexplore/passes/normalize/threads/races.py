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
        self.grouping = tree.grouping
        self.edges: dict[Edge, None] = {}
        self._live: dict[int, list[GroupAccess]] = {}
        self._owners: dict[int, Leaf] = {}
        self._shared = {
            identity(allocation.buffer) for allocation in tree.allocations
            if TENSOR_MEMORY in dict(allocation.annotations) or scope_of(allocation.buffer).startswith("shared")
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
        still_live: list[GroupAccess] = []
        for earlier in live:
            is_together = len(earlier.leaf.groups) > 1 or len(access.leaf.groups) > 1
            if (earlier.kind == access.kind == "read") or not _overlap(earlier.region, access.region):
                covered = earlier.kind == access.kind == "read" and earlier.leaf.groups <= access.leaf.groups
                earlier.is_past = covered and _covers(access.region, earlier.region)
                if not earlier.is_past:
                    still_live.append(earlier)
                continue
            in_order = earlier.is_product and access.is_product and earlier.group == access.group
            # The compiler waits around what all make together, though not for copies and products under way.
            in_order |= is_together and bool(earlier.leaf.groups & access.leaf.groups) and not earlier.is_later
            if not in_order and not all(earlier.is_known(member.clock) for member in members):
                raise self._race(buffer, earlier, access)
            if earlier.leaf.groups != access.leaf.groups or earlier.group != access.group:
                edge = (min(earlier.leaf.leaves), earlier.turns, min(access.leaf.leaves), access.turns)
                self.edges[edge] = None
                _note(members[0], buffer, earlier)
            earlier.is_past = access.kind != "read" and _covers(access.region, earlier.region)
            if not earlier.is_past:
                still_live.append(earlier)
        still_live.append(access)
        self._live[key] = still_live

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
        return " and ".join(str(self.grouping.groups[number]) for number in sorted(groups))

    def _race(self, buffer: tirx.Buffer, earlier: GroupAccess, access: GroupAccess) -> KernelError:
        """Of two accesses that nothing orders."""
        told = "".join(f"\n  {self._told(conflicting)}" for conflicting in (earlier, access))
        readers = self._readers.get(identity(buffer), frozenset()) - {access.group}
        if earlier.kind == access.kind == "write" and earlier.group == access.group and readers:
            hint = (
                f"wait before {buffer.name} is filled again: let {self._names(readers)} arrive at a barrier once they "
                "have read it, T.barrier_arrive(empty), and wait for that here: T.barrier_wait(empty, parity)"
            )
        elif earlier.barrier is not None and access.group not in earlier.barrier.waiting:
            hint = f"wait for that copy first: T.barrier_wait({earlier.barrier.name}, parity)"
        elif earlier.barrier is not None:
            hint = f"wait for the phase of {earlier.barrier.name} in which that copy ends: check the parity"
        elif earlier.is_product and earlier.group == access.group:
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
        turns = [
            f"{loop.loop_var.name} = {iteration}"
            for loop, iteration in zip(access.leaf.loops, access.turns, strict=True)
        ]
        where = "".join(f", {setting}" for setting in turns)
        return f"line {line.line if line else '?'}{where}: {self.grouping.groups[access.group]} {verb} it"


def _note(runner: Running, buffer: tirx.Buffer, access: GroupAccess) -> None:
    """Note what the barrier says at whose wait a group learned of another group's access."""
    teller: GroupBarrier | None = None
    for before, barrier in reversed(runner.waits):
        teller = barrier
        if not access.is_known(before):
            break
    if teller is not None:
        names = teller.empty if access.kind == "read" else teller.full
        names[str(buffer.name)] = None


def _overlap(first: tuple[Axis, ...], second: tuple[Axis, ...]) -> bool:
    for a, b in zip(first, second, strict=True):
        if a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1]):
            return False
    return True


def _covers(first: tuple[Axis, ...], second: tuple[Axis, ...]) -> bool:
    """Whether a region has all of another one."""
    return all(
        a is None or (b is not None and a[0] == b[0] and a[1] <= b[1] and b[2] <= a[2])
        for a, b in zip(first, second, strict=True)
    )
