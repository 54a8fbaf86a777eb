"""Cores and their kernels, one after another: a kernel runs until it waits, a core until all its kernels wait.

A core is left only when its kernels wait for other cores, and goes on before another one starts. So cores that never
wait for others run one after another, and only one of them has its circular buffers at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ttexplore.errors import VerifyError
from ttexplore.ir.interpreter.waits import KernelWait, Remedy
from ttexplore.record import Span

Kernel = Generator[KernelWait, None, None]
# Of kernels that wait for each other, so many are told.
_MOST_TOLD = 12


class ScheduledCore(Protocol):
    """What is scheduled, with its kernels."""

    @property
    def name(self) -> str: ...

    @property
    def span(self) -> Span | None:
        """The statement that it came to."""
        ...

    def turn_to(self, role: str) -> None:
        """Another of its kernels runs."""
        ...

    def kernel_ended(self) -> None:
        """The kernel that runs has ended."""
        ...

    def ended(self) -> None:
        """All its kernels have ended."""
        ...


@dataclass(slots=True)
class _Started:
    """A core whose `kernels` have not all ended; those that wait say what for."""

    core: ScheduledCore
    kernels: dict[str, Kernel]
    waits: dict[str, KernelWait] = field(default_factory=dict[str, KernelWait])
    turns: int = 0

    def can_go_on(self) -> bool:
        return any(role not in self.waits or self.waits[role].is_over() for role in self.kernels)

    @property
    def waits_for_others(self) -> bool:
        return any(wait.crosses_cores for wait in self.waits.values())

    def advance(self, turn_limit: int | None) -> None:
        """Give turns to the kernels until all have ended, or none can go on."""
        while self.kernels:
            went = False
            for role, kernel in list(self.kernels.items()):
                wait = self.waits.get(role)
                if wait is not None and not wait.is_over():
                    continue
                went = True
                self.core.turn_to(role)
                try:
                    self.waits[role] = next(kernel)
                except StopIteration:
                    self.core.kernel_ended()
                    del self.kernels[role]
                    self.waits.pop(role, None)
            if not went:
                return
            self.turns += 1
            if turn_limit is not None and self.turns > turn_limit:
                raise VerifyError("V009", f"the kernels did not end within {turn_limit} turns", span=self.core.span)


def run(cores: Iterable[tuple[ScheduledCore, dict[str, Kernel]]], turn_limit: int | None = None) -> None:
    """Run the kernels of all cores to their ends. `cores` may make each core when it is asked for it.

    `turn_limit` bounds the turns that the kernels of one core get. Raises VerifyError where it is reached, and for
    kernels that wait for each other, with the line of one that waits.
    """
    fresh = iter(cores)
    started: list[_Started] = []
    while True:
        active = next((candidate for candidate in started if candidate.can_go_on()), None)
        if active is None:
            fresh_core = next(fresh, None)
            if fresh_core is None:
                break
            active = _Started(*fresh_core)
            started.append(active)
            # Its buffers go with it.
            del fresh_core
        active.advance(turn_limit)
        if not active.kernels:
            active.core.ended()
            started.remove(active)
        elif not active.waits_for_others:
            raise _deadlock([active])
    if started:
        raise _deadlock(started)


def _deadlock(stuck: Sequence[_Started]) -> VerifyError:
    told: list[str] = []
    pairs: list[tuple[Remedy, KernelWait]] = []
    for blocked in stuck:
        for role in blocked.kernels:
            wait = blocked.waits[role]
            line = wait.place.span if wait.place is not None else None
            who = f"the {role}" if len(stuck) == 1 else f"the {role} of {blocked.core.name}"
            told.append(f"  {who} waits {wait} (line {line.line if line else '?'})")
            remedy = wait.remedy(blocked.kernels.keys())
            if remedy is not None:
                pairs.append((remedy, wait))
    if len(told) > _MOST_TOLD:
        told[_MOST_TOLD:] = [f"  and {len(told) - _MOST_TOLD} more kernels"]
    # What is surely the cause, else what may help.
    remedy, wait = next((pair for pair in reversed(pairs) if pair[0].is_cause), pairs[0] if pairs else (None, None))
    where = stuck[0].core.name if len(stuck) == 1 else f"{len(stuck)} cores, which wait for each other"
    return VerifyError(
        "V009",
        f"deadlock on {where}:\n" + "\n".join(told),
        hint=remedy.text if remedy is not None else "a push is missing",
        span=wait.place.span if wait is not None and wait.place is not None else None,
    )
