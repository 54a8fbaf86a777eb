"""What happened on one core, in order: circular buffers that fill and empty, and who waits for whom.

Times are logical steps: each operation of a kernel takes one, and a wait ends no earlier than the push or pop that it
waited for. They tell the order, not how long anything takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ttexplore.characters import Printed
from ttexplore.given import named
from ttexplore.record import Listing
from ttexplore.views.markup import plural, visible

if TYPE_CHECKING:
    from ttexplore.backends.base import BlockedKernel
    from ttexplore.views.runs.recording import Recording

LARGEST_COUNT = 200_000

# Of a program whose cores share inputs.
BETWEEN_CORES = "Each core has steps of its own: waits for a block from another core take none, and are not counted."

RESERVE, PUSH, WAIT, POP, FINISH = "reserve_back", "push_back", "wait_front", "pop_front", "finish"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A kernel that waits from time `start` until `end`: with ``reserve_back`` for `amount` free pages of a circular
    buffer, with ``wait_front`` for `amount` pushed ones. It waits at line `line` of its C++ text, for kernel `other`.
    With ``semaphore``, `buffer` names the semaphore and `amount` is its value; such waits are known only where they are
    stuck. A wait that is `stuck` never ends; `end` is two steps after the last event then."""

    kernel: str
    start: int
    end: int
    operation: str
    buffer: str
    amount: int
    line: int
    other: str
    stuck: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Timeline(Printed):
    """The recorded run of the core with logical coordinates `core`; `recording` has those of the other cores.

    `records` are the events in order of time, a structured array with the fields of the emulator's events. `buffers`
    are the names of the circular buffers by their number, `capacities` their pages. `cut` events were left out at the
    end. `lines` are the C++ text and the number of the kernel line (0 for none) of each kernel and C++ line that
    occurs.
    """

    core: tuple[int, int]
    records: NDArray[np.void]
    kernels: tuple[str, ...]
    operations: tuple[str, ...]
    tensors: tuple[str, ...]
    buffers: dict[int, str]
    capacities: dict[int, int]
    lines: dict[tuple[str, int], tuple[str, int]]
    waits: tuple[Waiting, ...]
    recording: Recording
    cut: int = 0

    @property
    def deadlock(self) -> str:
        """The message of the deadlock that ended the run, empty for a run that ended well."""
        return self.recording.deadlock

    @property
    def end(self) -> int:
        """The time of the last event."""
        return int(self.records["time"][-1]) if len(self.records) else 0

    def _of(self, operation: str, number: int | None = None) -> NDArray[np.bool_]:
        chosen = self.records["operation"] == self.operations.index(operation)
        return chosen if number is None else chosen & (self.records["object"] == number)

    def occupancy(self, buffer: str) -> NDArray[np.int64]:
        """The pages in a circular buffer after each event. Raises UsageError for another name."""
        number = self._number(buffer)
        amount = self.records["amount"].astype(np.int64)
        return np.cumsum(amount * self._of(PUSH, number) - amount * self._of(POP, number))

    def reserved(self, buffer: str) -> NDArray[np.int64]:
        """The pages that the producer has reserved and not pushed after each event."""
        number = self._number(buffer)
        reserved, reserved_at = 0, np.zeros(len(self.records), np.int64)
        reserve, push = self._of(RESERVE, number), self._of(PUSH, number)
        for i in range(len(self.records)):
            amount = int(self.records["amount"][i])
            reserved = max(reserved, amount) if reserve[i] else reserved - amount if push[i] else reserved
            reserved_at[i] = reserved
        return reserved_at

    def _number(self, buffer: str) -> int:
        numbers = {name: number for number, name in self.buffers.items()}
        return numbers[named("circular buffer", buffer, numbers)]

    def waiting_share(self, kernel: str) -> float:
        """The part of its time until it finished that a kernel waited for another one. Raises UsageError for another
        name."""
        kernel = named("kernel", kernel, self.kernels)
        mine = self.records["time"][self.records["kernel"] == self.kernels.index(kernel)]
        waits = [wait for wait in self.waits if wait.kernel == kernel]
        last = max([int(mine[-1]) + 1 if len(mine) else 0, *(wait.end for wait in waits)])
        return sum(wait.end - wait.start for wait in waits) / last if last else 0.0

    def __str__(self) -> str:
        """The most that each circular buffer held, and how much each kernel waited."""
        events = plural(len(self.records), "event")
        rest = f", the last {self.cut:,} are left out" if self.cut else ""
        rows = [f"core ({self.core[0]}, {self.core[1]}): {events} in {plural(self.end + 1, 'step')}{rest}"]
        width = max((len(visible(name)) for name in self.buffers.values()), default=0)
        for number, name in self.buffers.items():
            pushed = int(self.records["amount"][self._of(PUSH, number)].sum())
            most = int(self.occupancy(name).max(initial=0))
            pages = f"{most} of {self.capacities[number]} pages at most"
            rows.append(f"  CB {number:<2} {visible(name):<{width}}  {pages}, {pushed:,} pushed")
        for kernel in self.kernels:
            waits: dict[tuple[str, str], int] = {}
            for wait in self.waits:
                if wait.kernel == kernel:
                    awaited = "room in" if wait.operation == RESERVE else "tiles of"
                    key = (f"for {awaited} {visible(wait.buffer)}", wait.other)
                    waits[key] = waits.get(key, 0) + wait.end - wait.start
            told = ", ".join(f"{awaited} from {kernel}: {steps:,}" for (awaited, kernel), steps in waits.items())
            rows.append(f"  {kernel:<7} waits {self.waiting_share(kernel):4.0%}{f' (steps {told})' if told else ''}")
        notes = [BETWEEN_CORES] if self.recording.plan.semaphores else []
        return "\n".join([*rows, *notes, *self.deadlock.splitlines()])

    def __repr__(self) -> str:
        return f"<timeline of core ({self.core[0]}, {self.core[1]}): {plural(len(self.records), 'event')}>"


def timeline(
    records: NDArray[np.void], core: tuple[int, int], recording: Recording, *, stuck: tuple[BlockedKernel, ...] = (),
    largest_count: int = LARGEST_COUNT,
) -> Timeline:  # fmt: skip
    """The timeline of one core of a recording, at most `largest_count` events long.

    `records` are its events in order of time, `stuck` its waits that never ended.
    """
    events, files = recording.events, recording.files
    cut = max(0, len(records) - largest_count) + events.cut
    shown = records[:largest_count]
    numbered = recording.buffers
    buffers = {number: buffer.name for number, buffer in numbered.items()}
    counterparts: dict[str, dict[int, str]] = {
        RESERVE: {number: buffer.consumer for number, buffer in numbered.items()},
        WAIT: {number: buffer.producer for number, buffer in numbered.items()},
    }
    waiting = [events.operations.index(name) for name in counterparts]
    end = int(shown["time"][-1]) if len(shown) else 0
    waits: list[Waiting] = []
    for role, kernel in enumerate(events.kernels):
        mine = shown[shown["kernel"] == role]
        before = np.concatenate([[-1], mine["time"].astype(np.int64)])
        late = (mine["time"] > before[:-1] + 1) & np.isin(mine["operation"], waiting)
        for i in np.flatnonzero(late).tolist():
            record = mine[i]
            name, number = events.operations[int(record["operation"])], int(record["object"])
            waits.append(
                Waiting(
                    kernel, int(before[i]) + 1, int(record["time"]), name, buffers[number], int(record["amount"]),
                    int(record["line"]), counterparts[name].get(number, ""),
                )
            )  # fmt: skip
        for wait in stuck if not cut else ():
            if wait.kernel == kernel:
                # The step after the last event is the one in which all of them are stuck, also the last that moved.
                waits.append(
                    Waiting(
                        kernel, int(before[-1]) + 1, end + 2, wait.operation,
                        buffers[wait.number] if wait.operation in counterparts else f"semaphore {wait.number}",
                        wait.needed,
                        wait.cpp_line, counterparts.get(wait.operation, {}).get(wait.number, ""), True,
                    )
                )  # fmt: skip
    lines: list[tuple[int, int]] = np.unique(shown[["kernel", "line"]]).tolist()
    used = {(events.kernels[kernel], line) for kernel, line in lines}
    used |= {(wait.kernel, wait.line) for wait in waits}
    return Timeline(
        core, shown, events.kernels, events.operations, events.tensors, buffers,
        {number: buffer.pages for number, buffer in numbered.items()},
        {key: _line(files[key[0]], key[1]) for key in sorted(used)},
        tuple(sorted(waits, key=lambda wait: (wait.start, wait.end))), recording, cut,
    )  # fmt: skip


def _line(listing: Listing, number: int) -> tuple[str, int]:
    """The text of a C++ line and the kernel line that it came from, 0 for none."""
    if not 1 <= number <= len(listing.lines):
        return "", 0
    line = listing.lines[number - 1]
    return line.text.strip(), line.origins[0].span.line if line.origins else 0
