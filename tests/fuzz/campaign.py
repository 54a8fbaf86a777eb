"""Many random kernels: failures are told apart by what they say, and each is shrunk once."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from tests.fuzz.description import Kernel, Schedule
from tests.fuzz.draw import case
from tests.fuzz.laws import LawBroken
from tests.fuzz.reduce import reduced
from tests.fuzz.source import regression_text, source_text
from tests.fuzz.traits import traits

# Kernels that one search draws: between two searches progress is told, and the strategy starts afresh.
CHUNK = 100

Check = Callable[[Kernel, Schedule], str]


@dataclass(frozen=True)
class Failure:
    """A broken law with the smallest kernel that was found to break it."""

    signature: str
    message: str
    kernel: Kernel
    schedule: Schedule

    def text(self, number: int) -> str:
        """What is wrong, and a regression test that is ready to paste."""
        comment = "\n".join(f"# {line}" for line in self.message.splitlines()[:12])
        return f"{comment}\n{regression_text(self.kernel, self.schedule, f'fuzz_{number}')}"


@dataclass
class Tally:
    """What a campaign has come to: kernels by outcome ("" is well) and by what they have of each construct, failures by
    signature, seconds of the clock and of processors, those of compilers and emulators included."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    traits: Counter[str] = field(default_factory=Counter[str])
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    again: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    processor_seconds: float = 0.0

    @property
    def kernels(self) -> int:
        return self.outcomes.total() + self.again.total()

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.traits += other.traits
        self.again += other.again
        for name, failure in other.failures.items():
            self.failures.setdefault(name, failure)
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds


def signature(error: LawBroken) -> str:
    """What the failure says without names, numbers and places, so that one fault has one."""
    text = str(error).splitlines()[0]
    text = re.sub(r"\S*kernel\.py:\d+:", "", text)
    text = re.sub(r"\b[a-zA-Z]\d+\w*\b|\(.*?\)|-?\d[\w.+-]*|\[.*", "#", text)
    return re.sub(r"\s+", " ", text)[:160]


def search(
    count: int, check: Check, full: Callable[[str], Check], *, start: int, known: Container[str] = ()
) -> Tally:  # fmt: skip
    """Draw `count` different kernels from the seed `start` and check each; failures are made small, except for those
    with a `known` signature.

    `check` may sample the costly laws; ``full(law)`` always checks this one, so that a failure is found again.
    """
    begin, processor_begin = time.perf_counter(), processor_seconds()
    tally = Tally()
    seen: set[str] = set()

    # Not hypothesis, whose draws depend on the numbers in all modules that happen to be loaded.
    numbers = random.Random(start)
    while len(seen) < count:
        kernel, schedule = case(numbers)
        text = f"{source_text(kernel)}{schedule}"
        if text in seen:
            continue
        seen.add(text)
        tally.traits.update(traits(kernel, schedule))
        try:
            tally.outcomes[told(check, kernel, schedule)] += 1
        except LawBroken as error:
            name = signature(error)
            tally.again[name] += 1
            if name not in known and name not in tally.failures:
                tally.failures[name] = small(kernel, schedule, full(error.law), name)
    tally.seconds = time.perf_counter() - begin
    tally.processor_seconds = processor_seconds() - processor_begin
    return tally


def processor_seconds() -> float:
    """What this process and those that it has waited for have used of processors."""
    return sum(os.times()[:4])


def told(check: Check, kernel: Kernel, schedule: Schedule) -> str:
    """What `check` gives. Raises LawBroken, also for whatever else goes wrong."""
    try:
        return check(kernel, schedule)
    except LawBroken:
        raise
    except Exception as crash:
        raise LawBroken("no crash", f"{type(crash).__name__}: {crash}") from crash


def small(kernel: Kernel, schedule: Schedule, check: Check, name: str) -> Failure:
    """The failure with this signature, on the smallest kernel that has it."""
    messages: list[str] = []

    def fails(kernel: Kernel, schedule: Schedule) -> bool:
        try:
            told(check, kernel, schedule)
        except LawBroken as error:
            # A description that makes no sense any more breaks in another way.
            if signature(error) == name:
                messages.append(str(error))
                return True
        return False

    fails(kernel, schedule)
    kernel, schedule = reduced(kernel, schedule, fails)
    return Failure(name, messages[-1] if messages else name, kernel, schedule)
