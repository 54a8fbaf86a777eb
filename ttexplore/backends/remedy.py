"""Finding the smallest change that resolves a deadlock, by running each candidate on the emulator."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence

from ttexplore.backends.base import AddedLine, Array, BlockedKernel, Deadlock, DeeperBuffer, Program
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import BackendError, Cancelled
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import lines_of

# A program whose deadlock is resolved ends soon.
_TRIAL_SECONDS = 20.0
_MOST_BLOCKS = 3


def remedy(
    deadlock: Deadlock, program: Program, inputs: Sequence[Array], cancel: threading.Event | None = None
) -> AddedLine | DeeperBuffer | None:  # fmt: skip
    """The change that lets the program end: a deeper circular buffer, fewest additional bytes of L1 first, or a push or
    pop that is missing in a kernel. None if no candidate resolves the deadlock. Raises Cancelled."""
    emulator = Emulator(event_limit=0)

    def ends(changed: Program) -> bool:
        try:
            emulator.run(changed, inputs, time_limit_seconds=_TRIAL_SECONDS, cancel=cancel)
        except Cancelled:
            raise
        except BackendError:
            return False
        return True

    for buffer, blocks in _depths(deadlock.waits, program.plan):
        deeper = dataclasses.replace(buffer, stages=buffer.stages + blocks)
        buffers = tuple(
            dataclasses.replace(candidate, stages=deeper.stages) if candidate.index == buffer.index else candidate
            for candidate in program.plan.buffers
        )
        plan = program.plan.replace(buffers=buffers)
        if ends(Program(program.texts, plan)):
            more_bytes = blocks * buffer.block_pages * buffer.page_bytes
            return DeeperBuffer(buffer.name, deeper.stages, deeper.pages, buffer.pages, more_bytes)
    for wait in deadlock.waits:
        for call in _missing_calls(wait, program):
            if ends(Program(call.apply(program.texts), program.plan)):
                return call
    return None


def _depths(waits: Sequence[BlockedKernel], plan: Plan) -> list[tuple[CircularBuffer, int]]:
    """The full buffers that kernels wait for, with one to three more blocks, ordered by the additional bytes."""
    full = {wait.number for wait in waits if wait.operation == "reserve_back"}
    tried = [
        (buffer, blocks) for buffer in plan.buffers if buffer.index in full for blocks in range(1, _MOST_BLOCKS + 1)
    ]
    return sorted(tried, key=lambda choice: choice[1] * choice[0].block_pages * choice[0].page_bytes)


def _missing_calls(wait: BlockedKernel, program: Program) -> list[AddedLine]:
    """The push or pop that `wait` waits for, added to the other kernel at the end of each block that contains the
    preceding call; innermost and last blocks first."""
    buffer = next((candidate for candidate in program.plan.buffers if candidate.index == wait.number), None)
    if buffer is None or wait.operation == "semaphore":
        return []
    kernel = buffer.producer if wait.operation == "wait_front" else buffer.consumer
    before, call = ("reserve_back", "push_back") if wait.operation == "wait_front" else ("wait_front", "pop_front")
    text = program.texts[kernel]
    lines = lines_of(text)
    added_lines: list[AddedLine] = []
    for position in reversed(range(len(lines))):
        name, dot, rest = lines[position].strip().partition(f".{before}(")
        if not dot or not _is_of(name, buffer, text):
            continue
        indent = len(lines[position]) - len(lines[position].lstrip())
        closing = " " * (indent - 4) + "}"
        # In a text that was edited, a block need not end as those do that are emitted.
        end = next((i for i in range(position + 1, len(lines)) if lines[i].startswith(closing)), None)
        if end is not None:
            added_lines.append(AddedLine(kernel, end + 1, f"{' ' * indent}{name}.{call}({rest}", text))
    return added_lines


def _is_of(name: str, buffer: CircularBuffer, text: str) -> bool:
    """Whether `name` is the object of a circular buffer in a kernel's text."""
    return f"constexpr uint32_t cb_{buffer.name} = {buffer.index};" in text and f"{name}(cb_{buffer.name});" in text
