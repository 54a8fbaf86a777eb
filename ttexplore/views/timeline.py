"""What happened on one core, in order: circular buffers that fill and empty, and who waits for whom.

Times are logical steps: each operation of a kernel takes one, and a wait ends no earlier than the push or pop that it
waited for. They tell the order, not how long anything takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.errors import UsageError
from ttexplore.plan import Plan
from ttexplore.record import Listing
from ttexplore.views.markup import plural, visible

if TYPE_CHECKING:
    from ttexplore.backends.base import Events, Wait

LARGEST_COUNT = 20_000

RESERVE, PUSH, WAIT, POP, FINISH = "reserve_back", "push_back", "wait_front", "pop_front", "finish"
_TRANSFERS = ("read", "write")
_WITH_BUFFER = (RESERVE, PUSH, WAIT, POP, "fpu", "pack", "zeros", "multicast", *_TRANSFERS)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A kernel that waits from time `start` until `end`: with ``reserve_back`` for `amount` free pages of a circular
    buffer, with ``wait_front`` for `amount` pushed ones. It waits at line `line` of its C++ text, for kernel `other`.
    A wait that is `stuck` never ends; `end` is two steps after the last event then."""

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
class Timeline:
    """The recorded run of the core with logical coordinates `core`.

    `records` are the events in order of time, a structured array with the fields of the emulator's events. `buffers`
    are the names of the circular buffers by their number, `capacities` their pages. `cut` events were left out at the
    end. `lines` are the C++ text and the number of the kernel line (0 for none) of each kernel and C++ line that
    occurs. `deadlock` is the message of the deadlock that ended the run, empty for a run that ended well.
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
    cut: int = 0
    deadlock: str = ""

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
        held, found = 0, np.zeros(len(self.records), np.int64)
        reserve, push = self._of(RESERVE, number), self._of(PUSH, number)
        for i in range(len(self.records)):
            amount = int(self.records["amount"][i])
            held = max(held, amount) if reserve[i] else held - amount if push[i] else held
            found[i] = held
        return found

    def _number(self, buffer: str) -> int:
        for number, name in self.buffers.items():
            if name == buffer:
                return number
        raise UsageError(
            "U001", f"there is no circular buffer {buffer!r}", hint=f"there are {', '.join(self.buffers.values())}"
        )

    def waiting_share(self, kernel: str) -> float:
        """The part of its time until it finished that a kernel waited for another one."""
        own = self.records["time"][self.records["kernel"] == self.kernels.index(kernel)]
        waits = [wait for wait in self.waits if wait.kernel == kernel]
        last = max([int(own[-1]) + 1 if len(own) else 0, *(wait.end for wait in waits)])
        return sum(wait.end - wait.start for wait in waits) / last if last else 0.0

    @property
    def data(self) -> dict[str, Any]:
        """What the explorer shows, in JSON form: events as columns; times as differences. Where kernels are stuck, a
        moment without an event comes last."""
        places = {key: position for position, key in enumerate(self.lines)}
        names = {number: position for position, number in enumerate(self.buffers)}
        kernels, operations, objects = (_column(self.records, one) for one in ("kernel", "operation", "object"))
        times = self.records["time"].astype(np.int64)
        buffers: list[int] = []
        for operation, number in zip(operations, objects, strict=True):
            has = self.operations[operation] in _WITH_BUFFER
            buffers.append(names.get(number & 0xFF, -1) if has else -1)
        lines = [places[self.kernels[k], line] for k, line in zip(kernels, _column(self.records, "line"), strict=True)]
        deadlock = [visible(line) for line in self.deadlock.splitlines()]
        after = int(any(wait.stuck for wait in self.waits))
        none = [-1] * after
        return {
            "core": list(self.core), "cut": self.cut, "deadlock": deadlock,
            "kernels": list(self.kernels), "operations": list(self.operations),
            "buffers": [[visible(name), number, self.capacities[number]] for number, name in self.buffers.items()],
            "lines": [[line, visible(text), own] for (_, line), (text, own) in self.lines.items()],
            "time": np.diff(times, prepend=0).tolist() + [1] * after,
            "kernel": kernels + none, "operation": operations + none, "buffer": buffers + none,
            "amount": self.records["amount"].tolist() + [0] * after, "line": lines + none,
            "tensor": [
                visible(self.tensors[number >> 8]) if self.operations[one] in _TRANSFERS else ""
                for one, number in zip(operations, objects, strict=True)
            ]
            + [""] * after,
            "waits": [
                [
                    self.kernels.index(one.kernel), one.start, one.end, int(one.operation == RESERVE),
                    names[self._number(one.buffer)], one.amount, places[one.kernel, one.line], visible(one.other),
                    int(one.stuck),
                ]
                for one in self.waits
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        """The most that each circular buffer held, and how much each kernel waited."""
        events = plural(len(self.records), "event")
        rest = f", the last {self.cut:,} are left out" if self.cut else ""
        found = [f"core ({self.core[0]}, {self.core[1]}): {events} in {plural(self.end + 1, 'step')}{rest}"]
        width = max((len(visible(name)) for name in self.buffers.values()), default=0)
        for number, name in self.buffers.items():
            pushed = int(self.records["amount"][self._of(PUSH, number)].sum())
            most = int(self.occupancy(name).max(initial=0))
            pages = f"{most} of {self.capacities[number]} pages at most"
            found.append(f"  CB {number:<2} {visible(name):<{width}}  {pages}, {pushed:,} pushed")
        for kernel in self.kernels:
            waits: dict[tuple[str, str], int] = {}
            for wait in self.waits:
                if wait.kernel == kernel:
                    what = "room in" if wait.operation == RESERVE else "tiles of"
                    key = (f"for {what} {visible(wait.buffer)}", wait.other)
                    waits[key] = waits.get(key, 0) + wait.end - wait.start
            told = ", ".join(f"{what} from {other}: {steps:,}" for (what, other), steps in waits.items())
            found.append(f"  {kernel:<7} waits {self.waiting_share(kernel):4.0%}{f' (steps {told})' if told else ''}")
        return "\n".join([*found, *self.deadlock.splitlines()])

    def __repr__(self) -> str:
        return f"<timeline of core ({self.core[0]}, {self.core[1]}): {plural(len(self.records), 'event')}>"


def timeline(
    events: Events, plan: Plan, core: tuple[int, int], files: Mapping[str, Listing], *,
    stuck: tuple[Wait, ...] = (), deadlock: str = "", largest_count: int = LARGEST_COUNT,
) -> Timeline:  # fmt: skip
    """The timeline of one core, at most `largest_count` events long. `files` are the C++ of the kernels by role.

    `stuck` are the waits of that core that never ended. Raises UsageError for a core that has no work.
    """
    cores = [(one.x, one.y) for one in plan.partition.cores] if plan.partition else []
    if core not in cores:
        raise UsageError(
            "U010", f"core {core} does no work", hint=f"{cores[0]} to {cores[-1]} do" if cores else "none does"
        )
    own = events.records[events.records["core"] == cores.index(core)]
    # What the record's own limit left out may be of any core.
    cut = max(0, len(own) - largest_count) + (events.total - len(events.records))
    own = own[np.argsort(own["time"], kind="stable")][:largest_count]
    on_chip = plan.on_chip.buffers
    numbered = sorted(((one.index, one) for one in on_chip if one.index is not None), key=lambda one: one[0])
    buffers = {number: one.name for number, one in numbered}
    other: dict[str, dict[int, str]] = {
        RESERVE: {number: one.consumer for number, one in numbered},
        WAIT: {number: one.producer for number, one in numbered},
    }
    end = int(own["time"][-1]) if len(own) else 0
    waits: list[Waiting] = []
    for role, kernel in enumerate(events.kernels):
        before = -1
        columns = [
            _column(own[own["kernel"] == role], one) for one in ("time", "operation", "object", "amount", "line")
        ]
        rows: list[tuple[int, ...]] = list(zip(*columns, strict=True))
        for time, operation, number, amount, line in rows:
            name = events.operations[operation]
            if name in other and time > before + 1:
                other_kernel = other[name].get(number, "")
                waits.append(Waiting(kernel, before + 1, time, name, buffers[number], amount, line, other_kernel))
            before = time
        for wait in stuck if not cut else ():
            if wait.kernel == kernel and wait.operation in other:
                name = buffers[wait.number]
                other_kernel = other[wait.operation].get(wait.number, "")
                # The step after the last event is the one in which all of them are stuck, also the last that moved.
                waits.append(
                    Waiting(
                        kernel,
                        before + 1,
                        end + 2,
                        wait.operation,
                        name,
                        wait.needed,
                        wait.cpp_line,
                        other_kernel,
                        True,
                    )
                )
    used = {(events.kernels[k], line) for k, line in zip(_column(own, "kernel"), _column(own, "line"), strict=True)}
    used |= {(wait.kernel, wait.line) for wait in waits}
    lines = {key: _line(files[key[0]], key[1]) for key in sorted(used)}
    return Timeline(
        core, own, events.kernels, events.operations, events.tensors, buffers, {n: one.pages for n, one in numbered},
        lines, tuple(sorted(waits, key=lambda one: (one.start, one.end))), cut, deadlock,
    )  # fmt: skip


def _column(records: NDArray[np.void], name: str) -> list[int]:
    return records[name].tolist()


def _line(listing: Listing, number: int) -> tuple[str, int]:
    """The text of a C++ line and the kernel line that it came from, 0 for none."""
    if not 1 <= number <= len(listing.lines):
        return "", 0
    line = listing.lines[number - 1]
    return line.text.strip(), line.origins[0].span.line if line.origins else 0
