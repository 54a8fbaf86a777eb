"""The pages of tensors that cores need, over all turns of their loops at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ttexplore.ir.arithmetic.index import CoreItem, Range
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store
from ttexplore.passes.verify.alike_cores import CoreRanges, by_likeness
from ttexplore.plan import CoreWork

Pages = NDArray[np.int64]
# Of a loop that would make more pages of one call, two turns stand for all. Loops over work items come first.
_MOST_PAGES = 1 << 18
_TURNS = 2
# So many pages of all cores together are looked at at once.
_MOST_TOGETHER = 1 << 20


def needed_pages(
    kernel: Kernel, cores: Sequence[CoreWork], buffers: Collection[str], operand: str = "page"
) -> list[tuple[list[CoreWork], dict[Call, Pages]]]:  # fmt: skip
    """The pages that cores move into circular buffers, or out of them, by the call that moves them, with an axis for
    each loop around it, the innermost first, and a last one for the cores: for each group of cores that make the same
    turns; or the values of another operand of these calls.

    They count on both arms of a branch: what a core receives, another one reads. A page that depends on more than the
    core and its loops is left out, and so is a call without the operand.
    """

    def look(group: Sequence[CoreWork]) -> dict[Call, Pages]:
        needed = _Needed(group, buffers, operand)
        needed.body(kernel.body)
        return needed.pages

    return by_likeness(cores, look)


class _Needed:
    """The values of an operand of the calls that move pages into, or out of, circular buffers."""

    def __init__(self, cores: Sequence[CoreWork], buffers: Collection[str], operand: str) -> None:
        self.count, self.buffers, self.operand = len(cores), buffers, operand
        self.ranges = CoreRanges(cores)
        self.turns: tuple[int, ...] = ()
        self.pages: dict[Call, Pages] = {}

    def body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Call():
                    self.call(statement)
                case Bind():
                    self.bind(statement)
                case Loop():
                    self.loop(statement)
                case Branch():
                    self.body(statement.then)
                    self.body(statement.otherwise)
                case Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)

    def call(self, call: Call) -> None:
        if "cb" not in call.buffers or call.buffer("cb") not in self.buffers:
            return
        if {"page", self.operand} <= call.values.keys():
            page = self.ranges.of(call.values[self.operand])
            if page is not None and np.array_equal(*page):
                self.pages[call] = np.broadcast_to(np.asarray(page[0], np.int64), (*self.turns, self.count))

    def bind(self, bind: Bind) -> None:
        value = bind.value
        bounds = self.ranges.item(value) if isinstance(value, CoreItem) else self.ranges.of(value)
        self.ranges.learn(bind.variable, bounds)

    def loop(self, loop: Loop) -> None:
        low, extent = self.ranges.of(loop.low), self.ranges.of(loop.extent)
        self.ranges.learn(loop.variable, None)
        turns = 1
        if (
            low is not None
            and extent is not None
            and np.array_equal(*low)
            and (turn_count := self.turns_of(extent)) >= 0
        ):
            turns = turn_count
            if turns < 1:
                return
            around = math.prod(self.turns)
            if turns * around > _MOST_PAGES:
                turns = min(turns, _TURNS)
            if turns * around * self.count > _MOST_TOGETHER and self.count > 1:
                raise self.ranges.halved()
            at = low[0] + np.arange(turns).reshape(-1, *[1] * (len(self.turns) + 1))
            self.ranges.learn(loop.variable, (at, at))
        before, self.turns = self.turns, (turns, *self.turns)
        self.body(loop.body)
        self.turns = before

    def turns_of(self, extent: Range) -> int:
        """How many turns a loop makes, whatever the turns of those around it; -1 if that differs."""
        axes = tuple(range(len(self.turns)))
        low, high = (np.broadcast_to(bound, (*self.turns, self.count)) for bound in extent)
        least, most = low.min(axis=axes), high.max(axis=axes)
        return self.ranges.same(np.where(least == most, np.maximum(least, 0), -1))
