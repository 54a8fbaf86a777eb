"""Inputs that several cores need at the same steps of their loops: who reads them, and to whom they are sent.

Cores share a block if the index expressions of its copy give the same blocks, in the same order, for all their work
items. They then make the same steps, so none waits for a block that no other core sends.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tvm import tirx

from ttexplore.errors import ResourceError, UsageError, unknown
from ttexplore.ir.build import constant
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.options import TOPOLOGIES
from ttexplore.passes.launch_grid import grid_loops
from ttexplore.passes.shard_work import Block, TensorCopy, tensor_copies, tensors_moved
from ttexplore.plan import (
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
# Of more blocks than this, those that the index expressions compute are not compared, only the block indices in them.
_MOST_BLOCKS = 1 << 16
# A shared input has a semaphore that counts receivers, and one that says that a block is there.
_SEMAPHORES = 2


def with_shared_inputs(program: Program, target: Target, request: str | Mapping[str, Topology]) -> Program:
    """The program whose plan says which inputs are shared, and whose cores have the values for that.

    `request` is ``off``, ``auto`` (each input with the topology that saves most bytes from DRAM), or the topologies of
    the tensors to share, by name. Raises UsageError for an input that cannot be shared as requested, ResourceError
    where the semaphores do not suffice.
    """
    if not request or request == "off":
        return program
    plan = program.plan
    assert plan.partition is not None, "it is decided"
    inputs = [layout.name for layout in plan.layouts]
    asked = {} if isinstance(request, str) else dict(request)
    for name in asked:
        if name not in inputs:
            raise unknown("tensor", name, inputs)
    copies = tensor_copies(grid_loops(program.kernel))
    moves = Counter(tensor for one in walk(program.kernel.body) for tensor in tensors_moved(one))
    found: list[_Way] = []
    notes: list[str] = []
    for layout in plan.layouts:
        if layout.name not in asked if asked else layout.role == "output":
            continue
        made = _ways(program, layout, copies, moves[layout.name])
        if isinstance(made, str):
            if layout.name in asked:
                raise _not_shared(layout.name, made)
            notes.append(f"{layout.name} is not shared: {made}")
            continue
        ways = [one for one in made if one.topology == asked.get(layout.name, one.topology) and one.saved_bytes]
        if ways:
            # Of topologies that save as much, the first.
            found.append(max(ways, key=lambda one: one.saved_bytes))
        elif layout.name in asked:
            where = {"row": "row of cores", "column": "column of cores", "grid": "rectangle of cores"}
            raise _not_shared(
                layout.name, f"no two cores in one {where[asked[layout.name]]} need the same blocks at the same steps"
            )
        else:
            notes.append(f"{layout.name} is not shared: no two cores need the same blocks at the same steps")
    most = target.semaphores // _SEMAPHORES
    if len(found) > most:
        if asked:
            raise ResourceError(
                "R007",
                f"{len(found)} shared inputs need {len(found) * _SEMAPHORES} semaphores; {target.name} has "
                f"{target.semaphores} per core",
                hint=f"share at most {most} inputs",
            )
        kept = sorted(found, key=lambda one: -one.saved_bytes)[:most]
        notes += [f"{one.tensor} is not shared: others save more, and they use up the semaphores"
                  for one in found if one not in kept]  # fmt: skip
        found = [one for one in found if one in kept]
    shared = tuple(way.numbered(index * _SEMAPHORES) for index, way in enumerate(found))
    return program.with_plan(
        shared=shared, partition=_with_values(plan.partition, shared), notes=(*plan.notes, *notes)
    )  # fmt: skip


def _not_shared(tensor: str, reason: str) -> UsageError:
    return UsageError(
        "U021", f"{tensor} cannot be shared: {reason}",
        hint="multicast='auto' shares what can be, and the plan's notes say why other inputs are not",
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

    def numbered(self, first: int) -> SharedInput:
        """With its semaphores."""
        return SharedInput(
            self.tensor, self.buffer, self.topology, first, first + 1, self.multicasts, self.read_bytes,
            self.saved_bytes,
        )  # fmt: skip


def _ways(program: Program, layout: TensorLayout, copies: list[TensorCopy], moves: int) -> list[_Way] | str:
    """The ways to share an input, or why there are none."""
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
    copy = own[0]
    buffer = _filled(program, copy)
    if buffer is None:
        return "its blocks do not arrive in a circular buffer that the reader fills with nothing else"
    partition = plan.partition
    assert partition is not None, "it is decided"
    needed = _needed(copy, partition)
    blocks = {(core.x, core.y): core.items * prod(copy.loops) for core in partition.cores}
    block_bytes = plan.buffer(buffer).block_pages * plan.accessor(layout.name).page_bytes
    read = sum(blocks.values()) * block_bytes
    made: list[_Way] = []
    for topology in TOPOLOGIES:
        multicasts = tuple(
            Multicast(one.first, one)
            for cores in _groups(needed)
            for one in _rectangles(cores, topology)
        )  # fmt: skip
        saved = read - sum(blocks[one.sender] for one in multicasts) * block_bytes
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


def _filled(program: Program, copy: TensorCopy) -> str | None:
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


def _needed(copy: TensorCopy, partition: Partition) -> dict[_Core, Hashable]:
    """What each core needs of an input: equal for cores that need the same blocks in the same order."""
    blocks = {
        (core.x, core.y): [item_block(partition.grid, item) for item in partition.items_of(core)]
        for core in partition.cores
    }
    # Of a work item, the block indices that the copy's place depends on.
    places = {tuple(block[axis] for axis in copy.axes): block for given in blocks.values() for block in given}
    found: dict[Block, Hashable] = {place: place for place in places}
    if len(places) * prod(copy.loops) <= _MOST_BLOCKS:
        found = {place: tuple(copy.starts(block)) for place, block in places.items()}
    numbers: dict[Hashable, int] = {}
    of_place = {place: numbers.setdefault(starts, len(numbers)) for place, starts in found.items()}
    return {
        core: tuple(of_place[tuple(block[axis] for axis in copy.axes)] for block in given)
        for core, given in blocks.items()
    }


def _groups(needed: Mapping[_Core, Hashable]) -> list[set[_Core]]:
    """The cores that need the same."""
    groups: dict[Hashable, set[_Core]] = {}
    for core, blocks in needed.items():
        groups.setdefault(blocks, set()).add(core)
    return list(groups.values())


def _rectangles(cores: set[_Core], topology: Topology) -> Iterator[CoreRange]:
    """The cores as rectangles: parts of rows, parts of columns, or any."""
    left = set(cores)
    while left:
        x, y = first = min(left, key=lambda core: core[::-1])
        width = 1 if topology == "column" else _run((x + n, y) in left for n in itertools.count())
        height = 1 if topology == "row" else _run(
            all((x + m, y + n) in left for m in range(width)) for n in itertools.count()
        )  # fmt: skip
        made = CoreRange(first, (x + width - 1, y + height - 1))
        left -= set(made.cores)
        yield made


def _run(inside: Iterator[bool]) -> int:
    """How many hold from the first on."""
    return len(list(itertools.takewhile(bool, inside)))
