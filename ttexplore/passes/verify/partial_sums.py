"""Check that cores that hand on partial sums agree: who sends to whom, how often, and which blocks.

:mod:`sharing` follows the kernels of all cores together, as far as they wait for each other. That writers also wait for
their own compute kernels changes nothing: :func:`check_handshake` shows that a core whose blocks arrive always makes
the next one. All cores that wait for one another make the same steps, so each waits only for what comes earlier in the
program, or at the same step on a core before it. The numbers of blocks, and the places that they are read from and
stored to, are compared over all turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Call, Kernel, calls
from ttexplore.ops.semaphores import NOC_SEND_BLOCK, RECEIVE_SENT
from ttexplore.passes.verify.agreement import Place, check_core_values, disagreement
from ttexplore.passes.verify.needed_pages import Pages, needed_pages
from ttexplore.plan import PartialSums, Partition, Plan

# What says where a transfer takes its bytes from, and where it puts them.
_WHERE = ("page", "slot", "page_offset_bytes", "slot_offset_bytes")


def check_partials(plan: Plan) -> None:
    """The plan's chains fit the cores, each of which knows its part, and the circular buffers. Raises VerifyError."""
    assert plan.partition is not None or not plan.partials, "B1 decides both"
    for sums in plan.partials:
        assert plan.partition is not None
        _check_chains(sums, plan.partition)
        into, out = plan.buffer(sums.received), plan.buffer(sums.sent)
        if into.stages != 1:
            raise disagreement(
                f"{into.name} holds {into.stages} blocks, so the next one has another address on each core",
                f"give {into.name} a depth of 1",
            )
        if (into.block_pages, into.data_format, into.tile_order) != (out.block_pages, out.data_format, out.tile_order):
            raise disagreement(
                f"blocks of {out.name} are sent to {into.name}, whose blocks are others",
                "use circular buffers with the same blocks",
            )


def _check_chains(sums: PartialSums, partition: Partition) -> None:
    running = {(core.x, core.y): core for core in partition.cores}
    counts = Counter(core for chain in sums.chains for core in chain)
    for core, number in counts.items():
        if core not in running:
            raise VerifyError(
                "V041",
                f"{sums.tensor} is sent to core {core}, which has no work",
                hint="keep chains within the cores of the partition",
            )
        if number > 1:
            raise disagreement(f"core {core} is {number} times in the chains of {sums.tensor}", "put it into one, once")
    if missing := running.keys() - counts.keys():
        raise disagreement(
            f"core {min(missing)} is in no chain of {sums.tensor}", "put each core into one chain, if need be alone"
        )
    check_core_values(sums.core_values, sums.tensor, "chain", partition)


# The writers


def check_counts(
    sums: PartialSums, numbers: Mapping[Place, Mapping[tuple[str, int | str], int]], at: Call
) -> None:  # fmt: skip
    """Each core receives and sends as many blocks as its chain has steps. `numbers` count the operations of each core,
    by name and semaphore or circular buffer. Raises VerifyError."""
    neighbours = sums.neighbours
    for chain, steps in zip(sums.chains, sums.steps, strict=True):
        for core in chain:
            before, after = neighbours[core]
            for action, expected, number in (
                ("receives", steps if before else 0, numbers[core][RECEIVE_SENT.ir_name, sums.arrived]),
                ("sends", steps if after else 0, numbers[core][NOC_SEND_BLOCK.ir_name, sums.sent]),
            ):
                if number != expected:
                    raise disagreement(
                        f"core {core} {action} {number} blocks of {sums.tensor}; with its chain it is {expected}",
                        "let all cores of a chain update the same blocks",
                        at,
                    )


def check_told(plan: Plan, core: Place, neighbour: Place, semaphore: int, at: Call) -> None:
    """A core raises semaphores of its neighbours: of the one before, that there is room, of the next one, that a block
    came. Raises VerifyError."""
    for sums in plan.partials:
        if semaphore not in (sums.room, sums.arrived):
            continue
        before, after = sums.neighbours[core]
        expected = before if semaphore == sums.room else after
        if neighbour != expected:
            raise disagreement(
                f"core {core} raises {dict(plan.semaphores)[semaphore]} of core {neighbour}; its chain has "
                f"{'no core' if expected is None else f'core {expected}'} there",
                "tell the core before of room, and the next one of a block",
                at,
            )


def sums_of_send(plan: Plan, call: Call) -> PartialSums:
    """The partial sums that an operation sends. Raises VerifyError for other blocks."""
    ends = call.buffer("cb"), call.buffer("into")
    for sums in plan.partials:
        if (sums.sent, sums.received) == ends:
            return sums
    raise disagreement(
        f"{ends[0]} is sent to {ends[1]}, which are not those of partial sums", "send blocks as the plan says", call
    )


def check_next(sums: PartialSums, core: Place, receiver: Place, tiles: int, plan: Plan, at: Call) -> None:
    """A core sends whole blocks to the next one of its chain. Raises VerifyError."""
    if receiver != sums.neighbours[core][1]:
        raise disagreement(
            f"core {core} sends {sums.sent} to {sums.received} of core {receiver}, which is not the next one of its "
            "chain",
            "send each block to the next core of the chain",
            at,
        )
    block_pages = plan.buffer(sums.received).block_pages
    if tiles != block_pages:
        raise disagreement(f"core {core} sends {tiles} of {block_pages} tiles of a block", "send whole blocks", at)


def check_places(sums: PartialSums, writer: Kernel, partition: Partition) -> None:
    """All cores of a chain use the same pages of the tensor at the same steps; and a tile of a block stands for the
    same page where the first core reads it and where the last one stores it."""
    operands = [_operands(writer, partition, buffer) for buffer in (sums.received, sums.sent)]
    for chain, steps in zip(sums.chains, sums.steps, strict=True):
        if not steps:
            continue
        moves_of = {
            core: [
                _MovedTiles.of(sums, writer, core, buffer, values[core], steps)
                for buffer, values in zip((sums.received, sums.sent), operands, strict=True)
            ]
            for core in chain
        }
        loads, stores = moves_of[chain[0]]
        pages = np.full((1 + max(int(move.slots.max()) for move in (*loads, *stores)), steps), -1)
        for move in stores:
            for slots, numbers in zip(move.slots, move.pages, strict=True):
                pages[slots, np.arange(steps)] = numbers
        for move in (*loads, *stores):
            if not move.is_straight or not (pages[move.slots, np.arange(steps)] == move.pages).all():
                raise disagreement(
                    f"core {chain[0]} reads other pages of {sums.tensor} into {sums.received} than core {chain[-1]} "
                    f"stores from {sums.sent}",
                    "load and store the same block",
                    move.call,
                )
        for core, core_moves in moves_of.items():
            for mine, theirs, does in zip(core_moves, (loads, stores), ("reads", "stores"), strict=True):
                if [move.key for move in mine] != [move.key for move in theirs]:
                    raise disagreement(
                        f"core {core} {does} other pages of {sums.tensor} than core {chain[0]}, which begins its "
                        "chain, or in another order",
                        "let all cores of a chain update the same blocks at the same steps",
                        mine[0].call,
                    )


# The values of some operands of calls on a core, by the operand's name.
_Operands = Mapping[str, Mapping[Call, Pages]]


def _operands(writer: Kernel, partition: Partition, buffer: str) -> dict[Place, _Operands]:
    """What calls on each core move into, or out of, a circular buffer, and between which places."""
    values_of: dict[Place, dict[str, dict[Call, Pages]]] = {(core.x, core.y): {} for core in partition.cores}
    for name in _WHERE:
        for cores, values in needed_pages(writer, partition.cores, [buffer], name):
            for number, core in enumerate(cores):
                values_of[core.x, core.y][name] = {call: pages[..., number] for call, pages in values.items()}
    return {**values_of}


@dataclass(frozen=True, slots=True)
class _MovedTiles:
    """What a call moves between a tensor and a block: pages, and the tiles of the block, with a row for each run in one
    step, and a column for each step. Parts of pages that it moves have the same place in both if it `is_straight`."""

    call: Call
    pages: Pages
    slots: Pages
    is_straight: bool

    @property
    def key(self) -> tuple[bytes, bytes]:
        return self.pages.tobytes(), self.slots.tobytes()

    @staticmethod
    def of(
        sums: PartialSums, writer: Kernel, core: Place, buffer: str, values: _Operands, steps: int
    ) -> list[_MovedTiles]:  # fmt: skip
        """All calls of a core that move into, or out of, a circular buffer. Raises VerifyError where they are not
        known."""
        moves: list[_MovedTiles] = []
        for call in calls(writer.body):
            if "page" not in call.values or "cb" not in call.buffers or call.buffer("cb") != buffer:
                continue
            pages_of = {name: values[name].get(call) for name in _WHERE if name in call.values}
            flat = {name: array.reshape(-1) for name, array in pages_of.items() if array is not None}
            if len(flat) < len(pages_of) or flat["page"].size % steps:
                raise disagreement(
                    f"core {core}: which pages of {sums.tensor} it hands on is not known",
                    "use smaller tensors, or simpler indices",
                    call,
                )
            zero = np.zeros(1, np.int64)
            is_straight = np.array_equal(
                flat.get("page_offset_bytes", zero), flat.get("slot_offset_bytes", zero)
            )  # fmt: skip
            pages, slots = (flat[name].reshape(-1, steps) for name in ("page", "slot"))
            moves.append(_MovedTiles(call, pages, slots, is_straight))
        if not moves:
            raise disagreement(f"no block of {sums.tensor} passes through {buffer}", "load and store its blocks")
        return moves
