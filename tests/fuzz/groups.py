# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""Random groups of threads that hand blocks on at barriers, many with a fault, and what a GPU may make of them.

    python -m tests.fuzz.groups [number] [first seed]

Each kernel is run here with plain numbers under random schedules: groups advance in any order, an access takes time,
and a copy ends whenever it likes before its barrier's phase. A kernel that is lowered must end and give one result
under all of them, the one that every step gives. Of those that are rejected most must misbehave under some schedule.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.exploration import Exploration

# How many schedules a kernel is run under.
SCHEDULES = 60
_GARBAGE = -1


@dataclass(frozen=True)
class Step:
    """One step of a group in each turn k. `barrier` and `block` are numbers; the slot is that of turn ``k + shift``,
    and the parity changes with each round through the slots, from `parity` on."""

    kind: Literal["wait", "arrive", "load", "hand on", "store"]
    barrier: int = 0
    block: int = 0
    to: int = 0
    shift: int = 0
    parity: int = 0


@dataclass(frozen=True)
class Described:
    """Groups in a chain: the first loads, the last stores. `counts` are the groups that arrive at each barrier."""

    turns: int
    slots: tuple[int, ...]
    groups: tuple[tuple[Step, ...], ...]
    asynchronous: bool
    own_loops: bool
    faults: tuple[str, ...] = ()


def sound(rng: random.Random) -> Described:
    """A chain of groups that is right. Block i has the barriers 2 i, full, and 2 i + 1, empty."""
    count = rng.choice((2, 2, 3))
    slots = tuple(rng.choice((1, 2, 3)) for _ in range(count - 1))
    groups: list[tuple[Step, ...]] = []
    for group in range(count):
        steps: list[Step] = []
        if group:
            steps.append(Step("wait", 2 * (group - 1)))
        if group < count - 1:
            steps.append(Step("wait", 2 * group + 1, parity=1))
        if group == 0:
            steps.append(Step("load", 0))
        elif group < count - 1:
            steps.append(Step("hand on", 2 * group, group - 1, group))
        else:
            steps.append(Step("store", 0, group - 1))
        ends = [Step("arrive", 2 * group)] if group < count - 1 else []
        ends += [Step("arrive", 2 * (group - 1) + 1)] if group else []
        rng.shuffle(ends)
        groups.append((*steps, *ends))
    return Described(rng.randint(1, 5), slots, tuple(groups), rng.random() < 0.5, rng.random() < 0.5)


def changed(one: Described, rng: random.Random) -> Described:
    """The same with a step that is missing, doubled, moved or of other numbers."""
    number = rng.randrange(len(one.groups))
    steps = [*one.groups[number]]
    at = rng.randrange(len(steps))
    kind = rng.choice(("drop", "drop", "swap", "parity", "shift", "barrier", "double"))
    match kind:
        case "drop":
            if steps[at].kind not in ("wait", "arrive"):
                return changed(one, rng)
            del steps[at]
        case "swap":
            other = rng.randrange(len(steps))
            steps[at], steps[other] = steps[other], steps[at]
        case "parity":
            steps[at] = replace(steps[at], parity=1 - steps[at].parity)
        case "shift":
            steps[at] = replace(steps[at], shift=1)
        case "barrier":
            steps[at] = replace(steps[at], barrier=steps[at].barrier ^ 1)
        case _:
            steps.insert(at, steps[at])
    groups = (*one.groups[:number], tuple(steps), *one.groups[number + 1 :])
    return replace(one, groups=groups, faults=(*one.faults, kind))


def drawn(seed: int) -> Described:
    rng = random.Random(seed)
    made = sound(rng)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        made = changed(made, rng)
    return made


# As a kernel


def kernel_of(one: Described) -> Any:
    count, turns = len(one.groups), one.turns

    @T.macro
    def steps(group, k, A, C, blocks, barriers, fragments):
        for step in [*one.groups[group]]:
            # The slots are those of the barrier's block; a load goes to the first block.
            slots = one.slots[step.barrier // 2 if step.kind in ("wait", "arrive") else step.block]
            slot = (k + step.shift) % slots
            if step.kind == "wait":
                T.barrier_wait(barriers[step.barrier][slot], ((k + step.shift) // slots + step.parity) % 2)
            elif step.kind == "arrive":
                T.barrier_arrive(barriers[step.barrier][slot])
            elif step.kind == "load" and one.asynchronous:
                at = barriers[step.barrier][slot]
                T.tma_copy(A[k * 32 : k * 32 + 32, 0:32], blocks[0][slot, 0:32, 0:32], barrier=at)
            elif step.kind == "load":
                T.copy(A[k * 32 : k * 32 + 32, 0:32], blocks[0][slot, 0:32, 0:32])
            elif step.kind == "hand on":
                other = (k + step.shift) % one.slots[step.to]
                f = fragments[group]
                T.copy(blocks[step.block][slot, 0:32, 0:32], f)
                for i, j in T.Parallel(32, 32):
                    f[i, j] = f[i, j] * 2.0 + 1.0
                T.copy(f, blocks[step.to][other, 0:32, 0:32])
            else:
                f = fragments[group]
                T.copy(blocks[step.block][slot, 0:32, 0:32], f)
                T.copy(f, C[k * 32 : k * 32 + 32, 0:32])

    @T.prim_func
    def kernel(A: T.Tensor((32 * turns, 32), "float32"), C: T.Tensor((32 * turns, 32), "float32")):
        with T.Kernel(1, threads=128 * count):
            blocks = []
            barriers = []
            fragments = []
            for slots in [*one.slots]:
                block = T.alloc_shared((slots, 32, 32), "float32")
                full = T.alloc_barrier([128] * slots)
                empty = T.alloc_barrier([128] * slots)
                blocks.append(block)
                barriers.extend((full, empty))
            for _ in [*range(count)]:
                fragment = T.alloc_fragment((32, 32), "float32")
                fragments.append(fragment)
            if one.own_loops:
                for group in [*range(count)]:
                    with T.ws(group):
                        for k in range(turns):
                            steps(group, k, A, C, blocks, barriers, fragments)
            else:
                for k in range(turns):
                    for group in [*range(count)]:
                        with T.ws(group):
                            steps(group, k, A, C, blocks, barriers, fragments)

    return kernel


# On a GPU of numbers


class Machine:
    """The groups with one number for each slot, under one schedule. A slot that is being written is garbage; one that
    nothing has written is None, which the kernel's steps show as NaN."""

    def __init__(self, one: Described, rng: random.Random) -> None:
        self.one, self.rng = one, rng
        places = [(b, s) for b, slots in enumerate(one.slots) for s in range(slots)]
        self.slots: dict[tuple[int, int], int | None] = dict.fromkeys(places)
        self.phases = {(2 * b + e, s): 0 for b, slots in enumerate(one.slots) for s in range(slots) for e in (0, 1)}
        self.stored: list[int | None] = [0] * one.turns
        # The copies on their way: the barrier and phase that wait for them, and what they write.
        self.copies: list[tuple[tuple[int, int], int, tuple[int, int], int]] = []
        self.arrived: dict[tuple[int, int], int] = dict.fromkeys(self.phases, 0)

    def run(self) -> list[int | None] | None:
        """What is stored; None where it never ends."""
        running = {number: self.group(number) for number in range(len(self.one.groups))}
        waiting: dict[int, Any] = dict.fromkeys(running)
        while running:
            able = [number for number in running if (over := waiting[number]) is None or over()]
            choices = len(able) + len(self.copies)
            if not choices:
                return None
            chosen = self.rng.randrange(choices)
            if chosen >= len(able):
                self.end_copy(chosen - len(able))
                continue
            try:
                waiting[able[chosen]] = next(running[able[chosen]])
            except StopIteration:
                del running[able[chosen]]
        while self.copies:
            self.end_copy(0)
        return self.stored

    def end_copy(self, number: int) -> None:
        barrier, _, slot, value = self.copies.pop(number)
        self.slots[slot] = value
        self.advance(barrier)

    def advance(self, barrier: tuple[int, int]) -> None:
        """A phase is over when its group has arrived and its copies are there."""
        phase = self.phases[barrier]
        if self.arrived[barrier] and not any(one[:2] == (barrier, phase) for one in self.copies):
            self.arrived[barrier] -= 1
            self.phases[barrier] += 1
            self.advance(barrier)

    def group(self, number: int):
        for k in range(self.one.turns):
            for step in self.one.groups[number]:
                slots = self.one.slots[step.barrier // 2 if step.kind in ("wait", "arrive") else step.block]
                slot = (k + step.shift) % slots
                barrier = (step.barrier, slot)
                match step.kind:
                    case "wait":
                        parity = ((k + step.shift) // slots + step.parity) % 2
                        yield lambda b=barrier, p=parity: self.phases[b] % 2 != p
                    case "arrive":
                        self.arrived[barrier] += 1
                        self.advance(barrier)
                        yield None
                    case "load" if self.one.asynchronous:
                        # What it will write may be written from now on.
                        self.slots[0, slot] = _GARBAGE
                        self.copies.append((barrier, self.phases[barrier], (0, slot), k + 1))
                        yield None
                    case "load":
                        yield from self.write((0, slot), k + 1)
                    case "hand on":
                        value = yield from self.read((step.block, slot))
                        to = (step.to, (k + step.shift) % self.one.slots[step.to])
                        yield from self.write(to, value if value in (_GARBAGE, None) else value * 2 + 1)
                    case _:
                        self.stored[k] = yield from self.read((step.block, slot))

    def read(self, slot: tuple[int, int]):
        first = self.slots[slot]
        yield None
        return first if self.slots[slot] == first else _GARBAGE

    def write(self, slot: tuple[int, int], value: int | None):
        self.slots[slot] = _GARBAGE
        yield None
        self.slots[slot] = value


def behaviours(one: Described, seed: int) -> set[tuple[int | None, ...] | None]:
    """What schedules make of a kernel; None is one that never ends."""
    made: set[tuple[int | None, ...] | None] = set()
    for number in range(SCHEDULES):
        stored = Machine(one, random.Random(f"{seed} {number}")).run()
        made.add(None if stored is None else tuple(stored))
    return made


def verdict(seed: int) -> str:
    """What became of a kernel. Raises AssertionError where a kernel that misbehaves is lowered, or gives another
    result."""
    one = drawn(seed)
    ex = ttx.explore(kernel_of(one))
    assert isinstance(ex, Exploration)
    seen = behaviours(one, seed)
    is_right = len(seen) == 1 and not any(run is None or _GARBAGE in run for run in seen)
    if ex.error is not None:
        code = str(ex.error.code)
        if code not in ("TTX-K015", "TTX-K016"):
            return f"{'right' if is_right else 'wrong'}, rejected: {code}"
        return "wrong, rejected" if not is_right else "right in all schedules, rejected"
    assert is_right, f"seed {seed}: lowered, and it gives {seen}: {one}"
    given = np.repeat(np.arange(1, one.turns + 1, dtype=np.float32), 32)[:, None] * np.ones((1, 32), np.float32)
    (stored,) = seen
    assert stored is not None
    # Neither what is stored nowhere nor what comes from an empty slot is a number.
    arrays = [given] if ex._roles["C"] == "output" else [given, np.full_like(given, np.nan)]
    assert ex.check(arrays), f"seed {seed}: {ex.check(arrays)}"
    want = [np.nan if number is None else number for number in stored]
    np.testing.assert_array_equal(ex.run(arrays, backend="interpreter").outputs[0][::32, 0], want)
    return "lowered, changed" if one.faults else "lowered"


def campaign(first: int, number: int) -> Counter[str]:
    return Counter(verdict(seed) for seed in range(first, first + number))


if __name__ == "__main__":
    number, first = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 100), (2, 0)))
    for what, count in sorted(campaign(first, number).items()):
        print(f"{count:6} {what}")
