"""Check how each kernel uses its ends of the circular buffers, over all iterations and branches.

Each kernel is checked alone: it reads only tiles that it waited for itself, and writes only room that it reserved
itself. A transfer from another core into a buffer of this one would have no reserve here, and no barrier of this kernel
would wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import (
    CoreValue,
    Expression,
    Key,
    Range,
    Unary,
    Variable,
    decided,
    narrowed,
    parts_of,
    placed,
    show,
    value_range,
)
from ttexplore.ir.kernel import Branch, Kernel, Loop, calls
from ttexplore.ops import OPS
from ttexplore.ops.protocol import NOC_READ_BARRIER, NOC_WRITE_BARRIER, NOC_WRITES_FLUSHED
from ttexplore.ops.semaphores import NOC_FULL_BARRIER
from ttexplore.passes.verify.ends import PROTOCOL, End, Ends, either, moved_by
from ttexplore.plan import Plan
from ttexplore.record import Span

_STATE = PROTOCOL | {
    NOC_READ_BARRIER.ir_name, NOC_WRITES_FLUSHED.ir_name, NOC_WRITE_BARRIER.ir_name, NOC_FULL_BARRIER.ir_name,
}  # fmt: skip

_READS = frozenset(
    name
    for name, op in OPS.items()
    if op.engine == "noc" and any(o.kind == "tensor" and o.access == "read" for o in op.operands)
)


def check_protocol(kernel: Kernel, plan: Plan, ranges: Mapping[Key, Range]) -> None:
    """One kernel follows the protocol of its circular buffers on all paths; `ranges` are the ranges of the values that
    cores are given.

    It reserves before it pushes and waits before it pops, never more than the buffer holds; no block straddles the end
    of the buffer; it reads only tiles that it waited for, and writes only room that it reserved; every tile is written,
    and every NoC read has completed, before a push; NoC writes have left before a pop and have completed at the end of
    the kernel and before the kernel reads their tensor. Raises VerifyError.
    """
    _Protocol(kernel, plan, ranges).run()


class _Protocol(Ends):
    """Walks a kernel: one iteration of a loop represents all similar ones, and the arms of a branch are joined."""

    def run(self) -> None:
        self.body(self.kernel.body)
        last = (calls(self.kernel.body) or [None])[-1]
        span = last.span if last else None
        late, signals = self.unwritten or self.unraised, self.unraised is not None
        if late is not None:
            raise VerifyError(
                "V012",
                f"{self.who} ends before its writes have completed",
                hint=f"end it with {'noc_full_barrier' if self.role == 'reader' or signals else 'noc_write_barrier'}",
                span=late.span,
            )
        for name, end in self.ends.items():
            if end.unread:
                raise self.fault(
                    "V011", f"{self.who} ends with reads into {name} in flight", "put noc_read_barrier after them", span
                )
            if end.reserved:
                raise self.fault(
                    "V002",
                    f"{self.who} ends without pushing {end.reserved} tiles of {name} that it reserved",
                    "push all tiles that are reserved",
                    span,
                )
            if end.waited:
                raise self.fault(
                    "V002",
                    f"{self.who} ends without popping {end.waited} tiles of {name} that it waited for",
                    "pop all tiles that are waited for",
                    span,
                )
            if end.own and end.filled:
                raise self.fault(
                    "V001",
                    f"{self.who} ends with {end.filled} tiles left in {name}, which it fills and empties itself",
                    "pop as many tiles as are pushed",
                    span,
                )

    # Loops and branches

    def loop(self, loop: Loop) -> None:
        if loop.turns == 0:
            return
        self.clock += 1
        self.entered[loop.variable] = self.clock
        if loop.turns is None or not isinstance(loop.low, int):
            self.open_loop(loop)
            return
        for first, last in self.parts(loop):
            self.range_of(loop.variable, (first, last))
            self.turns(loop, last - first + 1)
        self.range_of(loop.variable, (loop.low, loop.low + loop.turns - 1))

    def range_of(self, variable: Variable, bounds: Range) -> None:
        """Set the values of a loop's variable. Branches in a loop may narrow them, those around it do not."""
        self.known[variable] = bounds
        if self.outside is not None:
            self.outside = {**self.outside, variable: bounds}

    def open_loop(self, loop: Loop) -> None:
        """A loop whose length depends on core or work item: zero iterations, if possible, the first, and later ones."""
        self.learn_count(loop)
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        turns = (
            0 if self.may_be_empty(loop) else 1,
            None if extent is None else int(extent[1]),
        )
        before, unarrived = self.snapshot(), self.unarrived
        if loop.variable in loop.tested and isinstance(loop.low, int):
            self.known[loop.variable] = (loop.low, loop.low)
            self.body(loop.body)
            if turns[0] < 1:
                self.meet(before, loop)
            low, before = (loop.low + 1, loop.low + 1), self.snapshot()
            turns = (0, None if turns[1] is None else turns[1] - 1)
        self.known.pop(loop.variable, None)
        if low is not None and turns[1] is not None and turns[1] > 0:
            self.range_of(loop.variable, (int(low[0]), int(low[1]) + turns[1] - 1))
        if turns[1] != 0:
            self.turns(loop, None)
            if turns[0] < 1:
                self.meet(before, loop)
        self.unarrived |= unarrived

    def meet(self, skipped: dict[str, End], loop: Loop) -> None:
        """Keep the state that holds both after some iterations of a loop and without them (`skipped`)."""
        for name, end in self.ends.items():
            # Tiles that an iteration waited for and left at the front are waited for again where they are needed.
            end.waited = skipped[name].waited = min(end.waited, skipped[name].waited)
            for state, turned, still in _held_by(end, skipped[name]):
                if turned != still:
                    raise self.fault(
                        "V002",
                        f"{self.who}: after an iteration of a loop that may run zero iterations, {turned} tiles of "
                        f"{name} are {state}; before it, {still}",
                        "reserve, push, wait for and pop the same number in each iteration",
                        self.line(loop),
                    )
            end.join(skipped[name])

    @staticmethod
    def parts(loop: Loop) -> list[tuple[int, int]]:
        """The iterations of a loop as ranges: the first, the last and those between, if a condition tests the
        iteration."""
        assert loop.turns is not None
        assert isinstance(loop.low, int)
        first, last = loop.low, loop.low + loop.turns - 1
        if loop.variable not in loop.tested or loop.turns == 1:
            return [(first, last)]
        cuts = [(first, first), (first + 1, last - 1), (last, last)]
        return [(low, high) for low, high in cuts if low <= high]

    def turns(self, loop: Loop, count: int | None) -> None:
        before, unarrived = self.snapshot(), self.unarrived
        self.body(loop.body)
        if count == 1:
            return
        if self.unarrived - unarrived and loop.names & _READS:
            # The next iteration finds writes on their way.
            self.ends = before
            before = self.snapshot()
            self.body(loop.body)
        if not loop.names & _STATE:
            # The loop only reads and writes tiles.
            return
        if self.only_waits_more(before):
            # All iterations share the tiles that the first one waited for; they stay at the front until after the loop.
            before = self.snapshot()
            self.body(loop.body)
            count = None if count is None else count - 1
        spent = [name for name, end in self.ends.items() if end.waited < before[name].waited]
        if spent:
            # The first iteration pops tiles that were waited for before the loop; later ones must wait themselves.
            self.ends = before
            for name in spent:
                self.ends[name].waited = 0
            before = self.snapshot()
            self.body(loop.body)
        self.steady(loop, before, count)
        growth = {name: end.filled - before[name].filled for name, end in self.ends.items() if end.own}
        ways = {
            name: (end.back[0] - before[name].back[0], end.front[0] - before[name].front[0])
            for name, end in self.ends.items()
        }
        moved = False
        for name, end in self.ends.items():
            back, front = either(end.back, before[name].back), either(end.front, before[name].front)
            moved = moved or (back, front) != (end.back, end.front)
            end.back, end.front = back, front
        for name, change in growth.items():
            if change and count is None:
                raise self.fault(
                    "V001",
                    f"each iteration of a loop of unknown length changes the number of tiles in {name} by {change:+d}",
                    "pop as many tiles as are pushed in each iteration",
                    self.line(loop),
                )
            if change and count is not None:
                self.ends[name].filled = before[name].filled + (count - 1) * change
                moved = True
        changed = any(end.held != before[name].held for name, end in self.ends.items())
        if moved or changed:
            again = self.snapshot()
            self.body(loop.body)
            self.steady(loop, again, count)
        if count is not None:
            # Each iteration moves as far as the first one, so the positions after all of them are known.
            for name, (back, front) in ways.items():
                end, old = self.ends[name], before[name]
                end.back, end.front = moved_by(old.back, count * back), moved_by(old.front, count * front)

    def only_waits_more(self, before: dict[str, End]) -> bool:
        """Whether an iteration waited for more tiles of some buffers, and reserved and popped nothing of these."""
        more = [name for name, end in self.ends.items() if end.waited > before[name].waited]
        return bool(more) and all(
            self.ends[name].reserved == before[name].reserved and self.ends[name].front == before[name].front
            for name in more
        )

    def steady(self, loop: Loop, before: dict[str, End], count: int | None) -> None:
        for name, end in self.ends.items():
            old = before[name]
            if (end.reserved, end.waited) != (old.reserved, old.waited):
                state, was, now = (
                    ("reserved", old.reserved, end.reserved)
                    if end.reserved != old.reserved
                    else ("waited for", old.waited, end.waited)
                )
                end_with = "cb_push_back" if state == "reserved" else "cb_pop_front"
                raise self.fault(
                    "V002",
                    f"{self.who}: an iteration of the loop starts with {was} tiles of {name} {state} and ends with "
                    f"{now}",
                    f"put {end_with}({name}, {now - was}) after their last use, in the same iteration"
                    if now > was
                    else "reserve and wait in the iteration that pushes and pops",
                    self.line(loop),
                )

    @staticmethod
    def line(loop: Loop | Branch) -> Span | None:
        inner = calls(loop.body if isinstance(loop, Loop) else [*loop.then, *loop.otherwise])
        return inner[0].span if inner else None

    def snapshot(self) -> dict[str, End]:
        return {name: end.copy() for name, end in self.ends.items()}

    def branch(self, branch: Branch) -> None:
        answer = decided(branch.condition, self.known)
        if answer is not None:
            self.body(branch.then if answer else branch.otherwise)
            return
        before, ranges, outside, unarrived = self.snapshot(), self.known, self.outside, self.unarrived
        self.outside = ranges if outside is None else outside
        self.known = narrowed(branch.condition, ranges, holds=True)
        self.given.append(branch.condition)
        # Core values are the same at the next branch that tests them.
        fixed = _is_of_core(placed(branch.condition, self.bound))
        for end in self.ends.values() if fixed else ():
            end.enter(branch.condition, holds=True)
        self.body(branch.then)
        after_then, self.ends = self.ends, before
        for end in self.ends.values() if fixed else ():
            end.enter(branch.condition, holds=False)
        unarrived, self.unarrived = self.unarrived, unarrived
        self.known = narrowed(branch.condition, ranges, holds=False)
        self.given[-1] = Unary("not", branch.condition)
        self.body(branch.otherwise)
        self.given.pop()
        self.known, self.outside, self.unarrived = ranges, outside, self.unarrived | unarrived
        for name, end in self.ends.items():
            then_end = after_then[name]
            # Tiles that one arm waited for and left at the front are waited for again where they are needed.
            end.waited = then_end.waited = min(end.waited, then_end.waited)
            for state, tiles, two in _held_by(then_end, end):
                if tiles != two:
                    raise self.fault(
                        "V002",
                        f"{self.who}: {tiles} tiles of {name} are {state} if {show(branch.condition)}, otherwise {two}",
                        "reserve, push, wait for and pop the same number in both arms",
                        self.line(branch),
                    )
            if fixed and end.written is not None and then_end.written is not None and end.since == then_end.since:
                arms = ((branch.condition, True, then_end.written), (branch.condition, False, end.written))
                end.written_if = (*end.written_if, *arms)
            end.join(then_end)


def _held_by(first: End, second: End) -> tuple[tuple[str, int, int], ...]:
    """The numbers that must be equal where two paths join."""
    return (
        ("reserved", first.reserved, second.reserved), ("waited for", first.waited, second.waited),
        ("left", first.filled, second.filled),
    )  # fmt: skip


def _is_of_core(e: Expression) -> bool:
    """Whether an expression depends only on values that each core is given."""
    if isinstance(e, int | CoreValue):
        return True
    return bool(parts_of(e)) and all(map(_is_of_core, parts_of(e)))
