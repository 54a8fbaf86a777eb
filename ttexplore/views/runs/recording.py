"""A recorded run of all cores: what the emulator recorded, core by core, and what of it the explorer gets.

Cores whose kernels do the same at the same logical times, and differ only in the pages that they read and write, are
alike: their events are sent once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.characters import Printed
from ttexplore.errors import UsageError
from ttexplore.given import whole, wholes
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import Listing
from ttexplore.views.explorer import packed
from ttexplore.views.figures.timeline import BETWEEN_CORES, POP, PUSH, RESERVE, WAIT, Timeline, timeline
from ttexplore.views.markup import plural, visible

if TYPE_CHECKING:
    from ttexplore.backends.base import BlockedKernel, Events

# The bytes that a page gets of a recording at most, compressed.
LARGEST_BYTES = 4 * 2**20

# What times in a recording are.
UNIT = (
    "Steps are logical: each operation takes one, and a wait ends when what it waits for is there. They tell the order "
    "of events, not how long anything takes on a device"
)
_LEGEND = (
    "Bars are blue while a kernel runs and orange while it waits; lines are the pages in a buffer, with orange below "
    "while a kernel waits for it."
)

_MAP = (
    "In each core reader, compute, writer: ▸ runs, ‖ waits, ■ is done, ✖ is stuck. The colour is that of compute until "
    "it is done. Enter or a click opens the core at this moment in Buffers."
)

_TRANSFERS = ("read", "write")
_WITH_BUFFER = (RESERVE, PUSH, WAIT, POP, "fpu", "pack", "zeros", "multicast", *_TRANSFERS)


@dataclass(frozen=True, eq=False)
class Recording(Printed):
    """The recorded run of `plan` on all cores; `recording[x, y]` is the timeline of one.

    `core` is the core that was asked for, which is always recorded; `files` are the C++ of the kernels by role. `stuck`
    has the waits that never end of each blocked core, by its index in the partition, `deadlock` the message of the
    deadlock that ended the run, empty for a run that ended well. Only every `stride`-th core is in it; where that is
    more than one, `reason` says why.
    """

    events: Events
    plan: Plan
    files: Mapping[str, Listing]
    core: tuple[int, int]
    stuck: Mapping[int, tuple[BlockedKernel, ...]] = field(default_factory=dict[int, "tuple[BlockedKernel, ...]"])
    deadlock: str = ""
    stride: int = 1
    reason: str = ""

    @functools.cached_property
    def _places(self) -> list[tuple[int, int]]:
        return [(core.x, core.y) for core in self.plan.partition.cores] if self.plan.partition else []

    @functools.cached_property
    def buffers(self) -> dict[int, CircularBuffer]:
        """The circular buffers by number."""
        numbered = ((buffer.index, buffer) for buffer in self.plan.on_chip.buffers if buffer.index is not None)
        return dict(sorted(numbered, key=lambda numbered_buffer: numbered_buffer[0]))

    @functools.cached_property
    def _records(self) -> dict[int, NDArray[np.void]]:
        """The events of each core by its index, in order of time."""
        records = self.events.records
        records = records[np.lexsort((records["time"], records["core"]))]
        first = self._places.index(self.core)
        chosen = [i for i in range(first % self.stride, len(self._places), self.stride) if self.events.has(i)]
        bounds = np.searchsorted(records["core"], [[i, i + 1] for i in chosen]).tolist()
        return {i: records[start:end] for i, (start, end) in zip(chosen, bounds, strict=True)}

    @property
    def cores(self) -> tuple[tuple[int, int], ...]:
        """The logical coordinates of the recorded cores."""
        return tuple(self._places[i] for i in self._records)

    @property
    def unit(self) -> str:
        """What times are."""
        return f"{UNIT}. {BETWEEN_CORES}" if self.plan.semaphores else f"{UNIT}."

    @property
    def missing(self) -> str:
        """How many cores are recorded and why not all of them; empty if all are."""
        count, total = len(self._records), len(self._places)
        return f"{count:,} of {total:,} cores are recorded: {self.reason}." if count < total else ""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Timeline]:
        return (self[core] for core in self.cores)

    def __getitem__(self, core: tuple[int, int]) -> Timeline:
        """The timeline of a core. Raises UsageError for one that has no work or is not recorded."""
        core = cast("tuple[int, int]", wholes("core", core, 2, least=0))
        index = place_of(core, self._places)
        if index not in self._records:
            raise UsageError(
                "U010", f"core {core} is not recorded", hint=f"{self.missing} Record it with ex.timeline({core})."
            )
        return self._timeline(index)

    def _timeline(self, index: int) -> Timeline:
        return timeline(self._records[index], self._places[index], self, stuck=self.stuck.get(index, ()))

    @functools.cached_property
    def _patterns(self) -> dict[tuple[object, ...], list[int]]:
        """The indices of the cores that are alike."""
        patterns: dict[tuple[object, ...], list[int]] = {}
        for index, records in self._records.items():
            same = records.copy()
            same["core"] = 0
            same["amount"][self._transfers(records)] = 0
            patterns.setdefault((same.tobytes(), self.stuck.get(index)), []).append(index)
        return patterns

    def _transfers(self, records: NDArray[np.void]) -> NDArray[np.bool_]:
        return np.isin(records["operation"], [self.events.operations.index(name) for name in _TRANSFERS])

    @property
    def alike(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The recorded cores, grouped by those whose kernels do the same at the same times."""
        return tuple(tuple(self._places[i] for i in group) for group in self._patterns.values())

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """What the explorer shows, in JSON form.

        Each core has the number of its pattern, and the pages that it reads and writes, in order. The events of a
        pattern are columns; times are differences, lines and buffers positions in the lists of them, -1 for none.
        """
        timelines = [self._timeline(group[0]) for group in self._patterns.values()]
        of = {index: position for position, group in enumerate(self._patterns.values()) for index in group}
        lines = {key: line for timeline in timelines for key, line in timeline.lines.items()}
        positions = {key: position for position, key in enumerate(lines)}
        pages: list[list[int]] = []
        for index, records in self._records.items():
            shown = records[: len(timelines[of[index]].records)]
            pages.append(shown["amount"][self._transfers(shown)].tolist())
        return {
            "core": list(self.core), "missing": self.missing, "unit": f"{_LEGEND} {self.unit}", "map": _MAP,
            "deadlock": [visible(line) for line in self.deadlock.splitlines()],
            "cores": [[*self._places[i], of[i]] for i in self._records],
            "pages": pages,
            "kernels": list(self.events.kernels), "operations": list(self.events.operations),
            "tensors": [visible(name) for name in self.events.tensors],
            "buffers": [[visible(buffer.name), number, buffer.pages] for number, buffer in self.buffers.items()],
            "lines": [[line, visible(text), kernel_line] for (_, line), (text, kernel_line) in lines.items()],
            "patterns": [
                self._columns(timeline, positions) | {"note": self._note(timeline, len(group))}
                for timeline, group in zip(timelines, self._patterns.values(), strict=True)
            ],
        }  # fmt: skip

    def _note(self, timeline: Timeline, alike: int) -> str:
        """What is left out of a core, and how many are alike."""
        cut = f" The last {plural(timeline.cut, 'event')} of this core are left out." if timeline.cut else ""
        return cut + (f" {alike} of {len(self)} cores do the same at the same steps." if alike > 1 else "")

    def _columns(self, timeline: Timeline, positions: Mapping[tuple[str, int], int]) -> dict[str, Any]:
        """The events and waits of a core as columns."""
        records = timeline.records
        kernel, operation = records["kernel"].astype(np.int64), records["operation"].astype(np.int64)
        transfer = self._transfers(records)
        position = np.full(256, -1)
        for index, number in enumerate(self.buffers):
            position[number] = index
        holds = np.isin(operation, [self.events.operations.index(name) for name in _WITH_BUFFER])
        names = [visible(buffer.name) for buffer in self.buffers.values()]
        line = np.full((len(timeline.kernels), 1 + int(records["line"].max(initial=0))), -1)
        for (role, number), index in positions.items():
            if number < line.shape[1]:
                line[timeline.kernels.index(role), number] = index
        return {
            "time": np.diff(records["time"].astype(np.int64), prepend=0).tolist(),
            "kernel": kernel.tolist(), "operation": operation.tolist(),
            "buffer": np.where(holds, position[records["object"] & 0xFF], -1).tolist(),
            "amount": np.where(transfer, 0, records["amount"]).tolist(),
            "line": line[kernel, records["line"]].tolist(),
            "tensor": np.where(transfer, records["object"].astype(np.int64) >> 8, -1).tolist(),
            "waits": [
                [
                    timeline.kernels.index(wait.kernel), wait.start, wait.end, int(wait.operation == RESERVE),
                    names.index(visible(wait.buffer)) if visible(wait.buffer) in names else -1, wait.amount,
                    positions[wait.kernel, wait.line], visible(wait.other), int(wait.stuck),
                ]
                for wait in timeline.waits
            ],
        }  # fmt: skip

    def within(self, largest_bytes: int = LARGEST_BYTES) -> Recording:
        """The recording of as many cores, evenly chosen, as a page takes in so many bytes."""
        largest_bytes, size = whole("largest_bytes", largest_bytes, 0), len(packed(self.data))
        if size <= largest_bytes or len(self) == 1:
            return self
        reason = f"that of more takes {size / 2**20:.1f} MiB, and a page gets at most {largest_bytes / 2**20:g} MiB"
        stride = 2 * max(self.stride, self.events.stride)
        return dataclasses.replace(self, stride=stride, reason=reason).within(largest_bytes)

    @property
    def summary(self) -> str:
        """For cores that are alike their steps, how much of them each kernel waited, and whether they are done."""
        head = f"{plural(len(self), 'core')} recorded, {plural(self.events.total, 'event')} in all"
        rows = [("cores", "steps", *(f"{kernel} waits" for kernel in self.events.kernels), "end")]
        for group, cores in zip(self._patterns.values(), self.alike, strict=True):
            timeline = self._timeline(group[0])
            shares = [f"{timeline.waiting_share(kernel):.0%}" for kernel in timeline.kernels]
            state = "deadlock" if group[0] in self.stuck else "cut" if timeline.cut else "done"
            named = ", ".join(str(core) for core in cores[:2])
            rest = f" and {len(cores) - 2} alike" if len(cores) > 2 else ""
            rows.append((f"{named}{rest}", f"{timeline.end + 1:,}", *shares, state))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        last = len(widths) - 1
        table = [
            "  ".join(
                text.ljust(width) if column in (0, last) else text.rjust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([head, *([self.missing] if self.missing else []), *table])

    def __str__(self) -> str:
        return "\n".join([self.summary, self.unit, *self.deadlock.splitlines()])

    def __repr__(self) -> str:
        return f"<recording of {plural(len(self), 'core')}: {plural(self.events.total, 'event')}>"


def place_of(core: tuple[int, int], cores: Sequence[tuple[int, int]]) -> int:
    """The index of a core among those that have kernels. Raises UsageError for one without work."""
    if core not in cores:
        hint = f"{cores[0]} to {cores[-1]} do" if cores else "none does"
        raise UsageError("U010", f"core {core} does no work", hint=hint)
    return cores.index(core)
