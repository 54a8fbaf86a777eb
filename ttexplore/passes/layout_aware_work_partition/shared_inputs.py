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
    alternatives: Callable[[], Sequence[Partition]] = tuple[Partition, ...],
) -> TirProgram:  # fmt: skip
    """The program whose plan says which inputs are shared, and whose cores have the values for that.

    `request` is ``off``, ``all`` (each input that several cores need, with the topology that saves most bytes from
    DRAM), ``auto`` (the inputs and topologies for which the shortest time is predicted), or the topologies of the
    tensors to share, by name. With ``auto``, one of the `alternatives` replaces the partition where that is predicted
    to be faster.

    Raises UsageError for an input that cannot be shared as requested, ResourceError where the
    semaphores do not suffice.
    """
    if not request or request == "off":
        return program
    plan = program.plan
    assert plan.partition is not None, "it is decided"
    if request == "auto":
        return _with_fastest(program, target, alternatives)
    inputs = [layout.name for layout in plan.layouts]
    asked = {} if isinstance(request, str) else dict(request)
    for name in asked:
        if name not in inputs:
            raise unknown("tensor", name, inputs)
    chosen: list[_Way] = []
    notes: list[Note] = []
    candidates = asked or [layout.name for layout in plan.layouts if layout.role != "output"]
    for name, ways_or_reason in _all_ways(program, candidates)(plan.partition).items():
        if isinstance(ways_or_reason, str):
            if name in asked:
                raise _not_shared(name, ways_or_reason)
            notes.append(note("not shared", tensor=name, reason=ways_or_reason))
            continue
        ways = [way for way in ways_or_reason if way.topology == asked.get(name, way.topology)]
        if ways:
            # Of topologies that save as much, the first.
            chosen.append(max(ways, key=lambda way: way.saved_bytes))
        elif name in asked:
            where = {"row": "row of cores", "column": "column of cores", "grid": "rectangle of cores"}
            raise _not_shared(name, f"no two cores in one {where[asked[name]]} need the same blocks at the same steps")
        else:
            notes.append(note("not shared", tensor=name, reason=_NOT_TOGETHER))
    used_semaphores = len(plan.semaphores)
    most = (target.semaphores - used_semaphores) // _SEMAPHORES
    if len(chosen) > most:
        if asked:
            raise ResourceError(
                "R007",
                f"{len(chosen)} shared inputs need {len(chosen) * _SEMAPHORES} semaphores; {target.name} has "
                f"{target.semaphores} per "
                f"core{f', of which partial sums use {used_semaphores}' if used_semaphores else ''}",
                hint=f"share at most {most} inputs",
            )
        best = sorted(chosen, key=lambda way: -way.saved_bytes)[:most]
        reason = "others save more, and they use up the semaphores"
        notes += [note("not shared", tensor=way.tensor, reason=reason) for way in chosen if way not in best]
        chosen = [way for way in chosen if way in best]
    return _sharing(program, chosen, notes)


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
    moves = Counter(tensor for statement in walk(program.kernel.body) for tensor in tensors_moved(statement))
    layouts = [layout for layout in program.plan.layouts if layout.name in tensors]
    block_of = functools.cache(item_block)

    def all_ways(partition: Partition) -> dict[str, list[_Way] | str]:
        @functools.cache
        def blocks() -> _Blocks:
            blocks_of: _Blocks = {}
            for core in partition.cores:
                look_around()
                blocks_of[core.x, core.y] = [block_of(partition.grid, item) for item in partition.items_of(core)]
            return blocks_of

        return {
            layout.name: _ways(program, partition, blocks, layout, copies, moves[layout.name]) for layout in layouts
        }

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


def _with_fastest(program: TirProgram, target: Target, alternatives: Callable[[], Sequence[Partition]]) -> TirProgram:
    """Share the inputs for which the shortest time is predicted, if that is shorter than without; so with the
    partition."""
    plan, work = program.plan, program.work
    assert plan.partition is not None, "it is decided"
    if work is None or len(plan.partition.cores) < 2:
        return program
    inputs = [layout.name for layout in plan.layouts if layout.role == "input"]
    all_ways = functools.cache(lambda: _all_ways(program, inputs))
    unchanged = _fastest_with(program, plan.partition, work, target, all_ways)
    best, every = unchanged, [unchanged]
    for partition in alternatives() if unchanged.possible else ():
        fastest = _fastest_with(program, partition, work, target, all_ways)
        every.append(fastest)
        if fastest.ways and fastest.cycles < best.cycles * _WORTH:
            best = fastest
    if not unchanged.possible:
        if plan.partition.work_items <= MOST_LISTED_ITEMS:
            return program
        return program.with_plan(notes=(*plan.notes, note("too many to share", most=MOST_LISTED_ITEMS)))
    alone = microseconds(unchanged.alone, target)
    if not best.ways:
        times = {"shared": microseconds(unchanged.cycles, target), "alone": alone}
        why = note("sharing does not pay", tensors=_listed(unchanged.possible), **times)
        return program.with_choice(_choice(every, best, why.text, target), why)
    told = _listed(map(_told, best.ways.values()))
    why = note("shared", ways=told, shared=microseconds(best.cycles, target), alone=alone)
    notes: list[Note] = []
    if best is not unchanged:
        time = microseconds(unchanged.cycles, target)
        notes.append(note("policy", policy=best.partition.policy, time=time, other=unchanged.partition.policy))
    notes += [note("not worth sharing", tensor=name) for name in best.possible if name not in best.ways]
    program = program.with_choice(_choice(every, best, why.text, target), why)
    return _sharing(program.with_plan(partition=best.partition), [*best.ways.values()], notes)


def _told(way: _Way) -> str:
    return f"{way.tensor} along {way.topology}s" if way.topology != "grid" else f"{way.tensor} over the grid"


def _choice(every: Sequence[_Fastest], best: _Fastest, reason: str, target: Target) -> Choice:
    """What was compared: the fastest ways to share, and no sharing, with each partition."""

    def name(fastest: _Fastest, ways: Iterable[_Way]) -> str:
        told = _listed(map(_told, ways)) or "nothing shared"
        return f"{fastest.partition.policy}, {told}" if len(every) > 1 else told

    times: dict[str, float] = {}
    for fastest in every:
        shared = sorted((tried for tried in fastest.tried if tried[0]), key=lambda tried: tried[1])
        times |= {name(fastest, ()): fastest.alone} | {
            name(fastest, ways): cycles for ways, cycles in shared[:_MOST_TOLD]
        }
    candidates = tuple(Candidate(told, predicted_us(cycles, target)) for told, cycles in times.items())
    return Choice("multicast", candidates, name(best, best.ways.values()), reason)


def _fastest_with(
    program: TirProgram, partition: Partition, work: ItemWork, target: Target, all_ways: Callable[[], _AllWays]
) -> _Fastest:  # fmt: skip
    """The fastest of the ways to share inputs with a partition; none unless that pays."""
    items = {(core.x, core.y): core.items for core in partition.cores}

    def cycles(ways: Mapping[str, _Way]) -> float:
        return predicted_cycles(work, items, target, {name: way.roles for name, way in ways.items()})

    alone = cycles({})
    if alone * _WORTH < predicted_cycles(work.without_reading, items, target, {}):
        # Reading takes no longer than what has to be done anyway.
        return _Fastest(partition, {}, alone, alone, (), ())
    ways = {
        name: ways_or_reason
        for name, ways_or_reason in all_ways()(partition).items()
        if ways_or_reason and not isinstance(ways_or_reason, str)
    }
    free = target.semaphores - len(program.plan.semaphores)
    best, chosen, tried = _fastest(ways, cycles, alone, free // _SEMAPHORES)
    return _Fastest(partition, chosen if best < alone * _WORTH else {}, best, alone, tuple(ways), tried)


def _fastest(
    ways: Mapping[str, Sequence[_Way]], cycles: Callable[[Mapping[str, _Way]], float], alone: float, most: int
) -> tuple[float, dict[str, _Way], tuple[tuple[tuple[_Way, ...], float], ...]]:
    """The fastest of the ways to share at most so many inputs, and all that were tried: from none, which take the
    cycles `alone`, and from all, one input is changed after another until nothing is faster."""
    every = {name: max(some, key=lambda way: way.saved_bytes) for name, some in ways.items()}
    timed: dict[tuple[tuple[str, str], ...], tuple[tuple[_Way, ...], float]] = {(): ((), alone)}

    def predicted(tried: Mapping[str, _Way]) -> float:
        key = tuple((name, way.topology) for name, way in tried.items())
        if key not in timed:
            timed[key] = (*tried.values(),), cycles(tried)
        return timed[key][1]

    largest = sorted(every, key=lambda name: -every[name].saved_bytes)[:most]
    results: list[tuple[float, dict[str, _Way]]] = []
    for start in ({}, {name: every[name] for name in every if name in largest}):
        best, chosen = predicted(start), dict[str, _Way](start)
        changed = True
        while changed:
            changed = False
            for name, some in ways.items():
                for way in (None, *some):
                    tried = {
                        tensor: chosen_way
                        for tensor in ways
                        if (chosen_way := way if tensor == name else chosen.get(tensor))
                    }
                    if len(tried) <= most and (time := predicted(tried)) < best:
                        best, chosen, changed = time, tried, True
        results.append((best, chosen))
    return *min(results, key=lambda result: (result[0], len(result[1]))), tuple(timed.values())


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
    core_values = [shared_input.core_values for shared_input in shared]
    return partition.with_values(
        {(core.x, core.y): dict(itertools.chain(*(values[core.x, core.y].items() for values in core_values)))
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
    own_copies = [copy for copy in copies if copy.tensor == layout.name]
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
    if not own_copies:
        return _unknown(layout.name, grid_loops(program.kernel)[-1].body)
    if partition.work_items > MOST_LISTED_ITEMS:
        return f"the blocks of {partition.work_items:,} work items are not compared, at most those of {_LISTED}"
    copy = own_copies[0]
    buffer = _filled(program, copy)
    if buffer is None:
        return "its blocks do not arrive in a circular buffer that the reader fills with nothing else"
    groups = _groups(_needed(copy, partition, blocks))
    items = {(core.x, core.y): core.items for core in partition.cores}
    item_bytes = prod(copy.loops) * plan.buffer(buffer).block_pages * plan.accessor(layout.name).page_bytes
    read = sum(items.values()) * item_bytes
    ways: list[_Way] = []
    for topology in TOPOLOGIES:
        if topology != "grid" and not any(_has_line(cores, topology) for cores in groups):
            continue
        multicasts = tuple(
            [Multicast(rectangle.first, rectangle) for cores in groups for rectangle in _rectangles(cores, topology)]
        )
        saved = read - sum([items[multicast.sender] for multicast in multicasts]) * item_bytes
        if saved:
            ways.append(_Way(layout.name, buffer, topology, multicasts, read, saved))
    return ways


def _unknown(tensor: str, body: tirx.Stmt) -> str:
    """Why the blocks that the one statement moves which reads a tensor are not known beforehand."""
    for around in walk(body):
        # Some conditions have become loops of no turn or one.
        varies = isinstance(around, tirx.IfThenElse) or (
            isinstance(around, tirx.For) and constant(around.extent) is None
        )
        if varies and any(tensor in tensors_moved(statement) for statement in walk(around)):
            return "it is read under a condition, or in a loop whose length varies"
    return "what is read of it is known only when the kernel runs"


def _filled(program: TirProgram, copy: TensorCopy) -> str | None:
    """The circular buffer that only this copy fills, in the reader; None if there is none."""
    staging = program.staging
    assert staging is not None, "A2 decides it"
    homes = {key[0]: name for key, name in staging.writes.items() if key[0].same_as(copy.statement)}
    name = next(iter(homes.values()), None)
    filling = [key for key, buffer_name in staging.writes.items() if buffer_name == name]
    buffer = next((candidate for candidate in program.plan.buffers if candidate.name == name), None)
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
    at = {core: [*map(place_of, core_blocks)] for core, core_blocks in blocks.items()}
    positions = {
        position: block
        for core, core_blocks in blocks.items()
        for position, block in zip(at[core], core_blocks, strict=True)
    }
    starts_of: dict[Hashable, Hashable] = {position: position for position in positions}
    if len(positions) * prod(copy.loops) <= _MOST_BLOCKS:
        starts_of = {position: tuple(copy.starts(block)) for position, block in positions.items()}
    numbers: dict[Hashable, int] = {}
    of_place = {position: numbers.setdefault(starts, len(numbers)) for position, starts in starts_of.items()}
    return {
        core: tuple([of_place[position] for position in positions_of_core]) for core, positions_of_core in at.items()
    }


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
    remaining = set(cores)
    for x, y in sorted(cores, key=lambda core: core[::-1]):
        if (x, y) not in remaining:
            continue
        width = height = 1
        while topology != "column" and (x + width, y) in remaining:
            width += 1
        while topology != "row" and remaining.issuperset([(x + m, y + height) for m in range(width)]):
            height += 1
        rectangle = CoreRange((x, y), (x + width - 1, y + height - 1))
        remaining.difference_update(rectangle.cores)
        yield rectangle
