"""The pages of tensors that one core needs, over all turns of its loops at once."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ttexplore.ir.index import CoreItem, CoreValue, Key, Range, Variable, value_range
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store
from ttexplore.plan import CoreWork

Pages = NDArray[np.int64]
# Of a loop that would make more pages of one call, two turns stand for all. Loops over work items come first.
_MOST_PAGES = 1 << 18
_TURNS = 2


def needed_pages(reader: Kernel, work: CoreWork, buffer: str) -> dict[Call, Pages]:
    """The pages that a core moves into a circular buffer, by the call that moves them, with an axis for each loop
    around it, the innermost first.

    They count on both arms of a branch: what a core receives, another one reads. A page that depends on more than the
    core and its loops is left out.
    """
    found = _Needed(work, buffer)
    found.body(reader.body)
    return found.pages


class _Needed:
    def __init__(self, work: CoreWork, buffer: str) -> None:
        self.listed, self.buffer = np.asarray(work.listed, np.int64), buffer
        self.known: dict[Key, Range] = {CoreValue(name): (value, value) for name, value in work.values.items()}
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
        if "page" in call.values and "cb" in call.buffers and call.buffer("cb") == self.buffer:
            page = value_range(call.values["page"], self.known)
            if page is not None and np.array_equal(*page):
                self.pages[call] = np.broadcast_to(np.asarray(page[0], np.int64), self.turns)

    def bind(self, bind: Bind) -> None:
        value = bind.value
        if not isinstance(value, CoreItem):
            self.learn(bind.variable, value_range(value, self.known))
            return
        at = value_range(value.position, self.known)
        if at is not None and np.array_equal(*at) and np.max(at[0]) < len(self.listed):
            items = self.listed[at[0]]
            self.learn(bind.variable, (items, items))

    def learn(self, variable: Variable, found: Range | None) -> None:
        self.known.pop(variable, None)
        if found is not None:
            self.known[variable] = found

    def loop(self, loop: Loop) -> None:
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        self.known.pop(loop.variable, None)
        turns = 1
        if low is not None and extent is not None and np.array_equal(*low) and np.min(extent[0]) == np.max(extent[1]):
            turns = int(np.max(extent[1]))
            if turns < 1:
                return
            if turns * int(np.prod(self.turns, dtype=np.int64)) > _MOST_PAGES:
                turns = min(turns, _TURNS)
            at = low[0] + np.arange(turns).reshape(-1, *[1] * len(self.turns))
            self.known[loop.variable] = at, at
        around, self.turns = self.turns, (turns, *self.turns)
        self.body(loop.body)
        self.turns = around
