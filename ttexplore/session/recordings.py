"""Recording what happens during a run: the events of the cores, and the moves that made a tile."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from ttexplore.backends.base import Deadlock, Events, Execution, KernelFault, ordered_layouts
from ttexplore.backends.moves import ByteRange, Moves
from ttexplore.backends.registry import recorder
from ttexplore.control import Progress
from ttexplore.errors import UsageError, memory_for
from ttexplore.given import named, wholes
from ttexplore.record import Listing
from ttexplore.session.inputs import Inputs
from ttexplore.session.lowering import sized
from ttexplore.session.request import RunRequest
from ttexplore.session.runs import emitted, kernel_line, kernel_listings
from ttexplore.views.figures.timeline import Timeline
from ttexplore.views.runs.recording import Recording, place_of
from ttexplore.views.runs.tile_history import TileHistory, tile_history, tile_parts

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored


@memory_for("running the program")
def timeline(
    explored: Explored, core: tuple[int, int] | None = None, *, inputs: Inputs = None, seed: int = 0,
    sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
    time_limit_seconds: float | None = None, progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> Timeline:  # fmt: skip
    """Run on the emulator and record what happens on the cores: how circular buffers fill and empty, and which
    kernel waits for which.

    The result is the timeline of one core; its `recording` has those of all cores. `core` holds logical
    coordinates, by default those of the core with the most work items. A deadlock ends the record and is part of
    it; the core is then the first blocked one. The other arguments are those of :meth:`run`.

    Of a run with more than a million events, only every second core is recorded, or every fourth ..., and `core`
    in any case. Times are logical steps: each operation of a kernel takes one.

    Raises UsageError for a core without work, and what :meth:`run` raises, except for deadlocks.
    """
    core = None if core is None else cast("tuple[int, int]", wholes("core", core, 2, least=0))
    request = RunRequest.checked(
        recorder().name, inputs, seed, time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel,
        sizes=sizes, code=code,
    )  # fmt: skip
    return _timeline(sized(explored, request.inputs, request.sizes), request, core)


def _timeline(explored: Explored, request: RunRequest, core: tuple[int, int] | None) -> Timeline:
    """Record the run with the sizes of this exploration."""
    if explored.error is not None:
        raise explored.error
    listings = kernel_listings(explored, request.code)
    # The logical coordinates of the cores that have kernels.
    cores = [(core.x, core.y) for core in explored.plan.partition.cores] if explored.plan.partition else []
    chosen = core or busiest_core(explored)
    execution, deadlock = _record(explored, request, listings, place_of(chosen, cores))
    if deadlock is not None:
        chosen = cores[deadlock.core]
        if deadlock.events is not None and not deadlock.events.has(deadlock.core):
            execution, deadlock = _record(explored, request, listings, deadlock.core)
    request.control.tell("sorting the events")
    events = deadlock.events if deadlock is not None else execution.events if execution is not None else None
    assert events is not None, "the emulator records events by default"
    return recording(explored, events, chosen, listings, deadlock)[chosen]


def _record(
    explored: Explored, request: RunRequest, listings: Mapping[str, Listing], core: int
) -> tuple[Execution | None, Deadlock | None]:  # fmt: skip
    """A run on the recording backend that keeps the events of `core` in any case, or the deadlock that ended it."""
    assert request.backend.make is not None, "the recording backend runs texts"
    runner = request.backend.make(dataclasses.replace(request.settings, event_core=core))
    request.control.tell(f"recording on {request.backend.name}")
    try:
        return runner.run(
            emitted(explored, listings), explored._inputs(request.inputs, request.seed),
            time_limit_seconds=request.time_limit_seconds, cancel=request.control.cancel,
        ), None  # fmt: skip
    except Deadlock as deadlock:
        return None, deadlock
    except KernelFault as fault:
        raise fault.at(kernel_line(fault, listings)) from None


def busiest_core(explored: Explored, events: Events | None = None) -> tuple[int, int]:
    """The core with the most work items, of those whose events are kept."""
    assert explored.plan.partition is not None, "a program that runs has a partition"
    cores = explored.plan.partition.cores
    busiest = max(
        (core for i, core in enumerate(cores) if events is None or events.has(i)), key=lambda core: core.items
    )
    return busiest.x, busiest.y


def recording(
    explored: Explored, events: Events, core: tuple[int, int], listings: Mapping[str, Listing],
    deadlock: Deadlock | None = None,
) -> Recording:  # fmt: skip
    """The events of a run as a recording that has `core`."""
    reason = f"the run has {events.total:,} events, and {len(events.records):,} are kept" if events.stride > 1 else ""
    stuck, message = (deadlock.stuck, deadlock.message) if deadlock is not None else ({}, "")
    return Recording(events, explored.plan, listings, core, stuck, message, events.stride, reason)


_MOST_MOVES = 4_000_000


@memory_for("running the program")
def tile(
    explored: Explored, tensor: str, *tile: int, inputs: Inputs = None, seed: int = 0,
    sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
    time_limit_seconds: float | None = None, progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> TileHistory:  # fmt: skip
    """Follow one tile of an output back: its core and work item, the pages of each input that made it, and each
    C++ line that read, computed, packed and wrote for it.

    ``ex.tile("C", 3, 5)`` is tile row 3, tile column 5; leading dimensions come first, and a vector has only a
    column. All comes from a run on the emulator that records each move of a value; it is kept for further tiles.
    The other arguments are those of :meth:`run`.

    Raises UsageError for a tensor that is no output, a tile that it does not have or that nothing writes, and a run
    of more than 4,000,000 moves, and what :meth:`run` raises.
    """
    request = RunRequest.checked(
        recorder().name, inputs, seed, time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel,
        sizes=sizes, code=code,
    )  # fmt: skip
    numbers = wholes("tile", tile, len(tile), least=0) if tile else ()
    return _tile(sized(explored, request.inputs, request.sizes), request, tensor, numbers)


def _tile(explored: Explored, request: RunRequest, tensor: str, tile: tuple[int, ...]) -> TileHistory:
    if explored.error is not None:
        raise explored.error
    layouts = ordered_layouts(explored.plan)
    outputs = {layout.name: layout for layout in layouts if layout.role != "input"}
    layout = outputs[named("output", tensor, outputs)]
    locations = tile_parts(layout, tile)
    listings = kernel_listings(explored, request.code)
    moves = _moves(explored, request, listings)
    request.control.tell("following the tile")
    number = layouts.index(layout)
    followed = moves.follow(ByteRange("tensor", number, *location) for location in locations)
    return tile_history(followed, moves, explored.plan, layouts, layout, tile, listings)


def _moves(explored: Explored, request: RunRequest, listings: Mapping[str, Listing]) -> Moves:
    """The moves of a run, recorded again only for other inputs or texts than those of the last time."""
    program, arrays = emitted(explored, listings), explored._inputs(request.inputs, request.seed)
    for texts, inputs, moves in explored._recorded_moves:
        if texts == program.texts and all(map(np.array_equal, inputs, arrays)):
            return moves
    request.control.tell(f"recording on {request.backend.name}")
    make = request.backend.make
    assert make is not None, "the recording backend runs texts"
    runner = make(dataclasses.replace(request.settings, move_limit=_MOST_MOVES))
    try:
        execution = runner.run(
            program, arrays, time_limit_seconds=request.time_limit_seconds, cancel=request.control.cancel
        )
    except KernelFault as fault:
        raise fault.at(kernel_line(fault, listings)) from None
    assert execution.moves is not None, "the emulator was asked to record them"
    if len(execution.moves) >= _MOST_MOVES:
        raise UsageError(
            "U010", f"the run moves values more than {_MOST_MOVES:,} times, which is too much to keep",
            hint="follow a tile of the same kernel with smaller tensors",
        )  # fmt: skip
    moves = Moves(execution.moves, explored.plan, program.texts)
    explored._recorded_moves[:] = [(program.texts, arrays, moves)]
    return moves
