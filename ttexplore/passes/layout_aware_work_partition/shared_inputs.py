"""Inputs that several cores need at the same steps of their loops: who reads them, and to whom they are sent.

Cores share a block if the index expressions of its copy give the same blocks, in the same order, for all their work
items. They then make the same steps, so none waits for a block that no other core sends.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm import tirx

from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.clock.closed_form import Roles, microseconds, predicted_cycles, predicted_us, roles_of
from ttexplore.control import look_around
from ttexplore.errors import ResourceError, UsageError, unknown
from ttexplore.ir.build import constant
from ttexplore.ir.operations.work import ItemWork
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.notes import Note, note
from ttexplore.options import TOPOLOGIES
from ttexplore.passes.layout_aware_work_partition.shard_work import Block, TensorCopy, tensor_copies, tensors_moved
from ttexplore.plan import (
    MOST_LISTED_ITEMS,
    Candidate,
    Choice,
    CoreRange,
    Multicast,
    Partition,
    SharedInput,
    TensorLayout,
    Topology,
    item_block,
)
from ttexplore.target import Target

_Core = tuple[int, int]
# The work items of each core, by their block indices.
_Blocks = dict[_Core, list[Block]]
# Of more blocks than this, those that the index expressions compute are not compared, only the block indices in them.
_MOST_BLOCKS = 1 << 16
_LISTED = f"{MOST_LISTED_ITEMS:,}"
_NOT_TOGETHER = "no two cores need the same blocks at the same steps"
# A shared input has a semaphore that counts receivers, and one that says that a block is there.
_SEMAPHORES = 2
# The predicted time with sharing, against that without, that sharing is for: predictions are not exact.
_WORTH = 0.97
# Of the ways to share with a partition, so many are told.
_MOST_TOLD = 3


def with_shared_inputs(
    program: TirProgram, target: Target, request: str | Mapping[str, Topology],
    others: Callable[[], Sequence[Partition]] = tuple[Partition, ...],
) -> TirProgram:  # fmt: skip
    """The program whose plan says which inputs are shared, and whose cores have the values for that.

    `request` is ``off``, ``all`` (each input that several cores need, with the topology that saves most bytes from
    DRAM), ``auto`` (the inputs and topologies for which the shortest time is predicted), or the topologies of the
    tensors to share, by name. With ``auto``, one of the `others` replaces the partition where that is predicted to be
    faster.

    Raises UsageError for an input that cannot be shared as requested, ResourceError where the
    semaphores do not suffice.
    """
    if not request or request == "off":
        return program
    plan = program.plan
    assert plan.partition is not None, "it is decided"
    if request == "auto":
        return _with_fastest(program, target, others)
    inputs = [layout.name for layout in plan.layouts]
    asked = {} if isinstance(request, str) else dict(request)
    for name in asked:
        if name not in inputs:
            raise unknown("tensor", name, inputs)
    found: list[_Way] = []
    notes: list[Note] = []
    wanted = asked or [one.name for one in plan.layouts if one.role != "output"]
    for name, made in _all_ways(program, wanted)(plan.partition).items():
        if isinstance(made, str):
            if name in asked:
                raise _not_shared(name, made)
            notes.append(note("not shared", tensor=name, reason=made))
            continue
        ways = [one for one in made if one.topology == asked.get(name, one.topology)]
        if ways:
            # Of topologies that save as much, the first.
            found.append(max(ways, key=lambda one: one.saved_bytes))
        elif name in asked:
            where = {"row": "row of cores", "column": "column of cores", "grid": "rectangle of cores"}
            raise _not_shared(name, f"no two cores in one {where[asked[name]]} need the same blocks at the same steps")
        else:
            notes.append(note("not shared", tensor=name, reason=_NOT_TOGETHER))
    taken = len(plan.semaphores)
    most = (target.semaphores - taken) // _SEMAPHORES
    if len(found) > most:
        if asked:
            raise ResourceError(
                "R007",
                f"{len(found)} shared inputs need {len(found) * _SEMAPHORES} semaphores; {target.name} has "
                f"{target.semaphores} per core{f', of which partial sums use {taken}' if taken else ''}",
                hint=f"share at most {most} inputs",
            )
        kept = sorted(found, key=lambda one: -one.saved_bytes)[:most]
        reason = "others save more, and they use up the semaphores"
        notes += [note("not shared", tensor=one.tensor, reason=reason) for one in found if one not in kept]
        found = [one for one in found if one in kept]
    return _sharing(program, found, notes)


def _sharing(program: TirProgram, ways: Sequence[_Way], notes: Iterable[Note]) -> TirProgram:
    """The program with inputs that are shared in these ways."""
    plan = program.plan
    assert plan.partition is not None, "it is decided"
    first = len(plan.semaphores)
    shared = tuple(way.numbered(first + index * _SEMAPHORES) for index, way in enumerate(ways))
    return program.with_plan(
        shared=shared, partition=_with_values(plan.partition, shared), notes=(*plan.notes, *notes)
    )  # fmt: skip


# With a partition, the ways to share each of some tensors, or why there are none.
_AllWays = Callable[[Partition], "dict[str, list[_Way] | str]"]


def _all_ways(program: TirProgram, tensors: Collection[str]) -> _AllWays:
    copies = tensor_copies(grid_loops(program.kernel))
    moves = Counter(tensor for one in walk(program.kernel.body) for tensor in tensors_moved(one))
    layouts = [one for one in program.plan.layouts if one.name in tensors]
    block_of = functools.cache(item_block)

    def all_ways(partition: Partition) -> dict[str, list[_Way] | str]:
        @functools.cache
        def blocks() -> _Blocks:
            found: _Blocks = {}
            for core in partition.cores:
                look_around()
                found[core.x, core.y] = [block_of(partition.grid, item) for item in partition.items_of(core)]
            return found

        return {one.name: _ways(program, partition, blocks, one, copies, moves[one.name]) for one in layouts}

    return all_ways


# The choice by time


@dataclass(frozen=True)
class _Fastest:
    """The fastest way to share inputs with a partition: the predicted cycles, and those without sharing. `tried` are
    the cycles of all ways that were compared; `possible` are the inputs that could be shared."""

    partition: Partition
    ways: Mapping[str, _Way]
    cycles: float
    alone: float
    possible: tuple[str, ...]
    tried: tuple[tuple[tuple[_Way, ...], float], ...]


def _with_fastest(program: TirProgram, target: Target, others: Callable[[], Sequence[Partition]]) -> TirProgram:
    """Share the inputs for which the shortest time is predicted, if that is shorter than without; so with the
    partition."""
    plan, work = program.plan, program.work
    assert plan.partition is not None, "it is decided"
    if work is None or len(plan.partition.cores) < 2:
        return program
    inputs = [one.name for one in plan.layouts if one.role == "input"]
    all_ways = functools.cache(lambda: _all_ways(program, inputs))
    own = _fastest_with(program, plan.partition, work, target, all_ways)
    best, every = own, [own]
    for one in others() if own.possible else ():
        other = _fastest_with(program, one, work, target, all_ways)
        every.append(other)
        if other.ways and other.cycles < best.cycles * _WORTH:
            best = other
    if not own.possible:
        if plan.partition.work_items <= MOST_LISTED_ITEMS:
            return program
        return program.with_plan(notes=(*plan.notes, note("too many to share", most=MOST_LISTED_ITEMS)))
    alone = microseconds(own.alone, target)
    if not best.ways:
        times = {"shared": microseconds(own.cycles, target), "alone": alone}
        why = note("sharing does not pay", tensors=_listed(own.possible), **times)
        return program.with_choice(_choice(every, best, why.text, target), why)
    told = _listed(map(_told, best.ways.values()))
    why = note("shared", ways=told, shared=microseconds(best.cycles, target), alone=alone)
    notes: list[Note] = []
    if best is not own:
        time = microseconds(own.cycles, target)
        notes.append(note("policy", policy=best.partition.policy, time=time, other=own.partition.policy))
    notes += [note("not worth sharing", tensor=name) for name in best.possible if name not in best.ways]
    program = program.with_choice(_choice(every, best, why.text, target), why)
    return _sharing(program.with_plan(partition=best.partition), [*best.ways.values()], notes)


def _told(way: _Way) -> str:
    return f"{way.tensor} along {way.topology}s" if way.topology != "grid" else f"{way.tensor} over the grid"


def _choice(every: Sequence[_Fastest], best: _Fastest, reason: str, target: Target) -> Choice:
    """What was compared: the fastest ways to share, and no sharing, with each partition."""

    def name(one: _Fastest, ways: Iterable[_Way]) -> str:
        told = _listed(map(_told, ways)) or "nothing shared"
        return f"{one.partition.policy}, {told}" if len(every) > 1 else told

    times: dict[str, float] = {}
    for one in every:
        shared = sorted((tried for tried in one.tried if tried[0]), key=lambda tried: tried[1])
        times |= {name(one, ()): one.alone} | {name(one, ways): cycles for ways, cycles in shared[:_MOST_TOLD]}
    candidates = tuple(Candidate(told, predicted_us(cycles, target)) for told, cycles in times.items())
    return Choice("multicast", candidates, name(best, best.ways.values()), reason)


def _fastest_with(
    program: TirProgram, partition: Partition, work: ItemWork, target: Target, all_ways: Callable[[], _AllWays]
) -> _Fastest:  # fmt: skip
    """The fastest of the ways to share inputs with a partition; none unless that pays."""
    items = {(core.x, core.y): core.items for core in partition.cores}

    def cycles(ways: Mapping[str, _Way]) -> float:
        return predicted_cycles(work, items, target, {name: one.roles for name, one in ways.items()})

    alone = cycles({})
    if alone * _WORTH < predicted_cycles(work.without_reading, items, target, {}):
        # Reading takes no longer than what has to be done anyway.
        return _Fastest(partition, {}, alone, alone, (), ())
    ways = {name: made for name, made in all_ways()(partition).items() if made and not isinstance(made, str)}
    free = target.semaphores - len(program.plan.semaphores)
    best, chosen, tried = _fastest(ways, cycles, free // _SEMAPHORES)
    return _Fastest(partition, chosen if best < alone * _WORTH else {}, best, alone, tuple(ways), tried)


def _fastest(
    ways: Mapping[str, Sequence[_Way]], cycles: Callable[[Mapping[str, _Way]], float], most: int
) -> tuple[float, dict[str, _Way], tuple[tuple[tuple[_Way, ...], float], ...]]:
    """The fastest of the ways to share at most so many inputs, and all that were tried: from none and from all, one
    input is changed after another until nothing is faster."""
    every = {name: max(some, key=lambda one: one.saved_bytes) for name, some in ways.items()}
    known: dict[tuple[tuple[str, str], ...], tuple[tuple[_Way, ...], float]] = {}

    def found(tried: Mapping[str, _Way]) -> float:
        key = tuple((name, one.topology) for name, one in tried.items())
        if key not in known:
            known[key] = (*tried.values(),), cycles(tried)
        return known[key][1]

    kept = sorted(every, key=lambda name: -every[name].saved_bytes)[:most]
    results: list[tuple[float, dict[str, _Way]]] = []
    for start in ({}, {name: every[name] for name in every if name in kept}):
        best, chosen = found(start), dict[str, _Way](start)
        changed = True
        while changed:
            changed = False
            for name, some in ways.items():
                for way in (None, *some):
                    tried = {one: given for one in ways if (given := way if one == name else chosen.get(one))}
                    if len(tried) <= most and (time := found(tried)) < best:
                        best, chosen, changed = time, tried, True
        results.append((best, chosen))
    return *min(results, key=lambda one: (one[0], len(one[1]))), tuple(known.values())


def _listed(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _not_shared(tensor: str, reason: str) -> UsageError:
    return UsageError(
        "U021", f"{tensor} cannot be shared: {reason}",
        hint="multicast='all' shares what can be, and the plan's notes say why other inputs are not",
    )  # fmt: skip


def _with_values(partition: Partition, shared: Iterable[SharedInput]) -> Partition:
    """The partition whose cores know what they send and receive."""
    given = [one.core_values for one in shared]
    return partition.with_values(
        {(core.x, core.y): dict(itertools.chain(*(one[core.x, core.y].items() for one in given)))
         for core in partition.cores}
    )  # fmt: skip


@dataclass(frozen=True)
class _Way:
    """A way to share an input."""

    tensor: str
    buffer: str
    topology: Topology
    multicasts: tuple[Multicast, ...]
    read_bytes: int
    saved_bytes: int

    @functools.cached_property
    def roles(self) -> Roles:
        """Who sends it and who receives it."""
        return roles_of(self.multicasts)

    def numbered(self, first: int) -> SharedInput:
        """With its semaphores."""
        return SharedInput(
            self.tensor, self.buffer, self.topology, first, first + 1, self.multicasts, self.read_bytes,
            self.saved_bytes,
        )  # fmt: skip


def _ways(
    program: TirProgram, partition: Partition, blocks: Callable[[], _Blocks], layout: TensorLayout,
    copies: list[TensorCopy], moves: int,
) -> list[_Way] | str:  # fmt: skip
    """The ways to share an input that save anything, or why there are none."""
    plan = program.plan
    own = [one for one in copies if one.tensor == layout.name]
    if layout.role != "input":
        return "the kernel stores to it"
    if plan.sizes:
        return "the kernel has sizes that are known only when it runs"
    if layout.memory != "dram":
        return "it lies in L1"
    if layout.page != "tile":
        return "it is row-major"
    if moves != 1:
        return f"{moves} statements read it, instead of one" if moves else "no statement reads it"
    if not own:
        return _unknown(layout.name, grid_loops(program.kernel)[-1].body)
    if partition.work_items > MOST_LISTED_ITEMS:
        return f"the blocks of {partition.work_items:,} work items are not compared, at most those of {_LISTED}"
    copy = own[0]
    buffer = _filled(program, copy)
    if buffer is None:
        return "its blocks do not arrive in a circular buffer that the reader fills with nothing else"
    groups = _groups(_needed(copy, partition, blocks))
    items = {(core.x, core.y): core.items for core in partition.cores}
    item_bytes = prod(copy.loops) * plan.buffer(buffer).block_pages * plan.accessor(layout.name).page_bytes
    read = sum(items.values()) * item_bytes
    made: list[_Way] = []
    for topology in TOPOLOGIES:
        if topology != "grid" and not any(_has_line(cores, topology) for cores in groups):
            continue
        multicasts = tuple([Multicast(one.first, one) for cores in groups for one in _rectangles(cores, topology)])
        saved = read - sum([items[one.sender] for one in multicasts]) * item_bytes
        if saved:
            made.append(_Way(layout.name, buffer, topology, multicasts, read, saved))
    return made


def _unknown(tensor: str, body: tirx.Stmt) -> str:
    """Why the blocks that the one statement moves which reads a tensor are not known beforehand."""
    for around in walk(body):
        # Some conditions have become loops of no turn or one.
        varies = isinstance(around, tirx.IfThenElse) or (
            isinstance(around, tirx.For) and constant(around.extent) is None
        )
        if varies and any(tensor in tensors_moved(one) for one in walk(around)):
            return "it is read under a condition, or in a loop whose length varies"
    return "what is read of it is known only when the kernel runs"


def _filled(program: TirProgram, copy: TensorCopy) -> str | None:
    """The circular buffer that only this copy fills, in the reader; None if there is none."""
    staging = program.staging
    assert staging is not None, "A2 decides it"
    homes = {key[0]: name for key, name in staging.writes.items() if key[0].same_as(copy.statement)}
    name = next(iter(homes.values()), None)
    filling = [key for key, given in staging.writes.items() if given == name]
    buffer = next((one for one in program.plan.buffers if one.name == name), None)
    if buffer is None or len(filling) != 1 or buffer.producer != "reader" or buffer.shard_of:
        return None
    return buffer.name


def _needed(copy: TensorCopy, partition: Partition, blocks_of: Callable[[], _Blocks]) -> dict[_Core, Hashable]:
    """What each core needs of an input: equal for cores that need the same blocks in the same order."""
    if partition.work_items > _MOST_BLOCKS and all(
        axis in copy.axes or extent == 1 for axis, extent in enumerate(partition.grid)
    ):
        # Each work item has a place of its own.
        return {(core.x, core.y): (core.x, core.y) for core in partition.cores}
    blocks = blocks_of()
    # Of a work item, the block indices that the copy's place depends on; none of them is `()`.
    place_of: Callable[[Block], Hashable] = operator.itemgetter(*copy.axes or [slice(0)])
    at = {core: [*map(place_of, given)] for core, given in blocks.items()}
    places = {place: block for core, given in blocks.items() for place, block in zip(at[core], given, strict=True)}
    found: dict[Hashable, Hashable] = {place: place for place in places}
    if len(places) * prod(copy.loops) <= _MOST_BLOCKS:
        found = {place: tuple(copy.starts(block)) for place, block in places.items()}
    numbers: dict[Hashable, int] = {}
    of_place = {place: numbers.setdefault(starts, len(numbers)) for place, starts in found.items()}
    return {core: tuple([of_place[place] for place in own]) for core, own in at.items()}


def _groups(needed: Mapping[_Core, Hashable]) -> list[list[_Core]]:
    """The cores that need the same."""
    groups: dict[Hashable, list[_Core]] = {}
    for core, blocks in needed.items():
        groups.setdefault(blocks, []).append(core)
    return list(groups.values())


def _has_line(cores: Collection[_Core], topology: Topology) -> bool:
    """Whether two of these cores are in one row, or in one column."""
    return len({core[topology == "row"] for core in cores}) < len(cores)


def _rectangles(cores: Collection[_Core], topology: Topology) -> Iterator[CoreRange]:
    """The cores as rectangles: parts of rows, parts of columns, or any."""
    left = set(cores)
    for x, y in sorted(cores, key=lambda core: core[::-1]):
        if (x, y) not in left:
            continue
        width = height = 1
        while topology != "column" and (x + width, y) in left:
            width += 1
        while topology != "row" and left.issuperset([(x + m, y + height) for m in range(width)]):
            height += 1
        made = CoreRange((x, y), (x + width - 1, y + height - 1))
        left.difference_update(made.cores)
        yield made
