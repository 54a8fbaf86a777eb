"""Circular buffers: who pushes and pops, how much, and what is read and written in between, over all paths."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from ttexplore.errors import VerifyError
from ttexplore.ir.index import (
    Binary,
    Expression,
    Range,
    Unary,
    Variable,
    affine,
    canonical,
    decided,
    narrowed,
    placed,
    show,
    value_range,
    variables,
)
from ttexplore.ir.kernel import (
    Allocation,
    Bind,
    Body,
    Branch,
    Call,
    Kernel,
    Loop,
    Store,
    Walk,
    calls,
    kernel_name,
)  # fmt: skip
from ttexplore.ops import OPS
from ttexplore.ops.move import TILIZE_BLOCK
from ttexplore.ops.op import Op
from ttexplore.passes.verify.ranges import core_ranges, may_be_empty
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import Span

_PROTOCOL = frozenset({"tt.cb_reserve_back", "tt.cb_push_back", "tt.cb_wait_front", "tt.cb_pop_front"})
_STATE = _PROTOCOL | {"tt.noc_read_barrier", "tt.noc_writes_flushed", "tt.noc_write_barrier"}
# Larger blocks are not followed tile by tile.
_LARGEST_BLOCK = 4096


def check_users(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Each circular buffer has the producer and the consumer that the plan names, and no other."""
    known = {buffer.name: buffer for buffer in plan.buffers}
    used = set[str]()
    for role, kernel in kernels.items():
        for call in calls(kernel.body):
            for name in _buffers_of(call):
                used.add(name)
                if name not in known:
                    raise VerifyError(
                        f"{kernel_name(role)} uses the circular buffer {name}, which the plan does not have",
                        hint="add it to the plan where it is allocated",
                        span=call.span,
                    )
            if call.name not in _PROTOCOL:
                continue
            buffer = known[call.buffer("cb")]
            fills = call.name in ("tt.cb_reserve_back", "tt.cb_push_back")
            wanted = buffer.producer if fills else buffer.consumer
            if role != wanted:
                what = {"tt.cb_reserve_back": "reserves room in", "tt.cb_push_back": "pushes",
                        "tt.cb_wait_front": "waits for", "tt.cb_pop_front": "pops"}[call.name]  # fmt: skip
                raise VerifyError(
                    f"{kernel_name(role)} {what} {buffer.name}, which {kernel_name(wanted)} should",
                    hint="a circular buffer has one producer and one consumer: move it there, or name another buffer",
                    span=call.span,
                )
    if not any(kernel.names & _PROTOCOL for kernel in kernels.values()):
        return
    for buffer in plan.buffers:
        if buffer.name not in used:
            raise VerifyError(
                f"no kernel uses the circular buffer {buffer.name} of the plan",
                hint="leave it out of the plan: it takes L1 for nothing",
                span=buffer.origin,
            )


def _buffers_of(call: Call) -> list[str]:
    return [buffer.name for buffer in call.buffers.values() if buffer.scope == "tt.cb"]


# Balance


Factor = tuple[Any, ...]
# How many tiles: a number for each product of loop lengths and conditions that are only known when the kernel runs.
Amount = dict[tuple[Factor, ...], Fraction]


def check_balance(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Every buffer gets as many tiles as it gives, on every path. What one kernel fills and empties itself is followed
    from turn to turn by :func:`check_protocol`."""
    pushed, popped = _totals(kernels, "tt.cb_push_back"), _totals(kernels, "tt.cb_pop_front")
    for buffer in plan.buffers:
        if buffer.producer == buffer.consumer:
            continue
        given, taken = pushed.get(buffer.name, {}), popped.get(buffer.name, {})
        if given != taken:
            more = "pop what is pushed" if _number(given) > _number(taken) else "push what is popped"
            raise VerifyError(
                f"{buffer.name}: {kernel_name(buffer.producer)} pushes {_shown(given)}, "
                f"{kernel_name(buffer.consumer)} pops {_shown(taken)}",
                hint=f"{more}: the same number on every path",
                span=_first_span(kernels, buffer, given, taken),
            )


def _number(amount: Amount) -> Fraction:
    return sum(amount.values(), Fraction(0))


def _shown(amount: Amount) -> str:
    if not amount:
        return "no tiles"
    parts = [
        " x ".join([str(number), *(show(factor[1]) if factor[0] == "turns" else f"[{show(factor[1])}]"
                                   for factor in factors)])
        for factors, number in amount.items()
    ]  # fmt: skip
    return f"{' + '.join(parts)} tiles"


def _first_span(kernels: Mapping[str, Kernel], buffer: CircularBuffer, given: Amount, taken: Amount) -> Span | None:
    """The line of the side that does more, which there surely is."""
    role, name = buffer.producer, "tt.cb_push_back"
    if _number(taken) > _number(given):
        role, name = buffer.consumer, "tt.cb_pop_front"
    for call in calls(kernels[role].body):
        if call.name == name and call.buffer("cb") == buffer.name:
            return call.span
    return buffer.origin


def _totals(kernels: Mapping[str, Kernel], name: str) -> dict[str, Amount]:
    totals: dict[str, Amount] = {}
    for kernel in kernels.values():
        bound: dict[Variable, Expression] = {}
        if name in kernel.names:
            _add_totals(kernel.body, name, [], [], bound, totals)
    return totals


def _add_totals(
    body: Body, name: str, loops: list[Loop], tests: list[Expression], bound: dict[Variable, Expression],
    totals: dict[str, Amount],
) -> None:  # fmt: skip
    for statement in body:
        match statement:
            case Call() if statement.name == name:
                factors, number = _times(loops, tests, bound)
                amount = totals.setdefault(statement.buffer("cb"), {})
                amount[factors] = amount.get(factors, Fraction(0)) + number * statement.number("count")
                if not amount[factors]:
                    del amount[factors]
            case Loop() if name in statement.names:
                _add_totals(statement.body, name, [*loops, statement], tests, bound, totals)
            case Branch():
                _add_totals(statement.then, name, loops, [*tests, statement.condition], bound, totals)
                if statement.otherwise:
                    _add_totals(
                        statement.otherwise, name, loops, [*tests, Unary("not", statement.condition)], bound, totals
                    )
            case Bind():
                bound[statement.variable] = statement.value
            case Call() | Loop() | Allocation() | Store():
                pass
            case _:
                assert_never(statement)


def _times(
    loops: list[Loop], tests: list[Expression], bound: dict[Variable, Expression]
) -> tuple[tuple[Factor, ...], Fraction]:
    """How often a statement runs that stands in these loops, under these conditions."""
    constant = {
        loop.variable: range(loop.low, loop.low + loop.turns)
        for loop in loops
        if loop.turns is not None and isinstance(loop.low, int)
    }
    open_tests: list[Factor] = []
    decidable: list[Expression] = []
    for test in tests:
        whole = placed(test, bound)
        if variables(whole) <= constant.keys():
            decidable.append(whole)
        else:
            open_tests.append(("when", whole))
    number = Fraction(1)
    factors: list[Factor] = []
    for loop in loops:
        if loop.turns is None:
            factors.append(("turns", canonical(placed(loop.extent, bound))))
        else:
            number *= loop.turns
    if decidable:
        involved = sorted(set[Variable]().union(*map(variables, decidable)), key=lambda v: v.number)
        number *= _share(decidable, [(one, constant[one]) for one in involved])
    return tuple(sorted([*factors, *open_tests], key=str)), number


def _share(tests: list[Expression], loops: list[tuple[Variable, range]]) -> Fraction:
    """The part of the turns of some loops in which all tests hold."""
    axes = np.meshgrid(*[np.array(turns) for _, turns in loops], indexing="ij")
    known: dict[Any, Range] = {one: (axis, axis) for (one, _), axis in zip(loops, axes, strict=True)}
    holds = np.ones(axes[0].shape if axes else (), bool)
    for test in tests:
        found = value_range(test, known)
        if found is None:
            raise VerifyError(f"the condition {show(test)} cannot be decided", hint="use loop variables and constants")
        holds &= found[0] != 0
    return Fraction(int(holds.sum()), max(holds.size, 1))


# What each kernel does with its ends


@dataclass(slots=True)
class _End:
    """One kernel's end of a circular buffer. `back` and `front` are (value, modulus): where the next tile is written
    and read, as far as it is known; `filled` counts the tiles of a buffer that has both its ends in this kernel."""

    buffer: CircularBuffer
    own: bool
    reserved: int = 0
    waited: int = 0
    filled: int = 0
    unread: bool = False
    unsent: bool = False
    written: frozenset[int] | None = frozenset()
    since: int = 0
    back: tuple[int, int] = (0, 0)
    front: tuple[int, int] = (0, 0)

    def copy(self) -> _End:
        return _End(
            self.buffer, self.own, self.reserved, self.waited, self.filled, self.unread, self.unsent, self.written,
            self.since, self.back, self.front,
        )  # fmt: skip

    def join(self, other: _End) -> None:
        """Know what holds on both of two paths that have met, and hold as much."""
        self.unread |= other.unread
        self.unsent |= other.unsent
        self.written = None if None in (self.written, other.written) else _both(self.written, other.written)
        for side in ("back", "front"):
            (value, modulus), (second, other_modulus) = getattr(self, side), getattr(other, side)
            wider = math.gcd(modulus, other_modulus, value - second)
            setattr(self, side, (value % wider, wider))

    @property
    def held(self) -> tuple[int, int, bool, bool]:
        """What decides whether the next turn of a loop must be looked at, too."""
        return self.reserved, self.waited, self.unread, self.unsent


def check_protocol(kernel: Kernel, plan: Plan) -> None:
    """What one kernel does with its ends of the circular buffers is in order on all paths.

    Reserved before pushed, waited for before popped, never more than the buffer holds, no block across its end, reads
    inside of what was waited for, writes inside of what was reserved, every tile written before it is pushed, reads
    arrived before they are pushed, writes gone before they are popped and arrived at the end. Raises VerifyError.
    """
    _Protocol(kernel, plan).run()


class _Protocol(Walk):
    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self.kernel, self.role, self.plan = kernel, kernel.role, plan
        self.who = kernel_name(kernel.role)
        self.ends = {
            buffer.name: _End(
                buffer, buffer.producer == buffer.consumer,
                back=self.start(buffer, "tt.cb_reserve_back", "tt.cb_push_back"),
                front=self.start(buffer, "tt.cb_wait_front", "tt.cb_pop_front"),
            )
            for buffer in plan.buffers
            if self.role in (buffer.producer, buffer.consumer)
        }  # fmt: skip
        self.known = core_ranges(plan)
        # The same outside of all branches. Each turn of a loop takes one arm, so that what both arms write is counted
        # over all turns.
        self.outside: dict[Any, Range] | None = None
        self.bound: dict[Variable, Expression] = {}
        self.entered: dict[Variable, int] = {}
        self.clock = 0
        self.unwritten: Call | None = None

    def run(self) -> None:
        self.body(self.kernel.body)
        last = (calls(self.kernel.body) or [None])[-1]
        span = last.span if last else None
        if self.unwritten is not None:
            raise VerifyError(
                f"{self.who} ends before its writes have arrived",
                hint="end it with noc_write_barrier",
                span=self.unwritten.span,
            )
        for name, end in self.ends.items():
            if end.unread:
                raise self.fault(f"{self.who} ends with reads into {name} under way", "put a noc_read_barrier", span)
            if end.reserved:
                raise self.fault(
                    f"{self.who} ends with {end.reserved} tiles of {name} reserved", "push what is reserved", span
                )
            if end.waited:
                raise self.fault(
                    f"{self.who} ends with {end.waited} tiles of {name} waited for", "pop what is waited for", span
                )
            if end.own and end.filled:
                raise self.fault(
                    f"{self.who} ends with {end.filled} tiles left in {name}, which it fills and empties itself",
                    "pop as many tiles as are pushed",
                    span,
                )

    def start(self, buffer: CircularBuffer, *names: str) -> tuple[int, int]:
        """Where an end is at first. Where all blocks are alike, it is enough to know that they begin at multiples."""
        counts = {
            call.values["count"]
            for call in calls(self.kernel.body)
            if call.name in names and call.buffer("cb") == buffer.name
        }
        alike = counts.pop() if len(counts) == 1 else None
        return 0, alike if isinstance(alike, int) and alike > 0 and buffer.pages % alike == 0 else buffer.pages

    def fault(self, message: str, hint: str, at: Call | Span | None) -> VerifyError:
        return VerifyError(message, hint=hint, span=at.span if isinstance(at, Call) else at)

    def bind(self, bind: Bind) -> None:
        found = value_range(bind.value, self.known)
        self.bound[bind.variable] = bind.value
        if found is not None:
            self.known[bind.variable] = found

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
            self.known[loop.variable] = (first, last)
            self.turns(loop, last - first + 1)
        self.known[loop.variable] = (loop.low, loop.low + loop.turns - 1)

    def open_loop(self, loop: Loop) -> None:
        """A loop whose length differs by core or work item: no turn, where that can be, the first, and later ones."""
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        turns = (0 if may_be_empty(loop, self.known, self.bound) else 1, None if extent is None else int(extent[1]))
        before = self.snapshot()
        if loop.variable in loop.tested and isinstance(loop.low, int):
            self.known[loop.variable] = (loop.low, loop.low)
            self.body(loop.body)
            if turns[0] < 1:
                self.meet(before, loop)
            low, before = (loop.low + 1, loop.low + 1), self.snapshot()
            turns = (0, None if turns[1] is None else turns[1] - 1)
        self.known.pop(loop.variable, None)
        if low is not None and turns[1] is not None and turns[1] > 0:
            self.known[loop.variable] = (int(low[0]), int(low[1]) + turns[1] - 1)
        if turns[1] != 0:
            self.turns(loop, None)
            if turns[0] < 1:
                self.meet(before, loop)

    def meet(self, other: dict[str, _End], loop: Loop) -> None:
        """Go on with what holds after some turns of a loop as well as without them: `other`."""
        for name, end in self.ends.items():
            # What a turn has waited for and left at the front is waited for again by who needs it.
            end.waited = other[name].waited = min(end.waited, other[name].waited)
            for what, turned, still in _held_by(end, other[name]):
                if turned != still:
                    raise self.fault(
                        f"{self.who}: after a turn of a loop that may make none, {turned} tiles of {name} are {what}, "
                        f"before it {still}",
                        "reserve, push, wait and pop as many in each turn",
                        self.line(loop),
                    )
            end.join(other[name])

    @staticmethod
    def parts(loop: Loop) -> list[tuple[int, int]]:
        """The turns of a loop as ranges: the first, the last and those between, where a condition asks for the turn."""
        assert loop.turns is not None
        assert isinstance(loop.low, int)
        first, last = loop.low, loop.low + loop.turns - 1
        if loop.variable not in loop.tested or loop.turns == 1:
            return [(first, last)]
        cuts = [(first, first), (first + 1, last - 1), (last, last)]
        return [(low, high) for low, high in cuts if low <= high]

    def turns(self, loop: Loop, count: int | None) -> None:
        if not loop.names & _STATE:
            # Nothing in it but reads and writes of tiles.
            self.body(loop.body)
            return
        before = self.snapshot()
        self.body(loop.body)
        if count == 1:
            return
        if self.only_waits_more(before):
            # The turns share what the first one has waited for; it stays at the front until after the loop.
            before = self.snapshot()
            self.body(loop.body)
            count = None if count is None else count - 1
        spent = [name for name, end in self.ends.items() if end.waited < before[name].waited]
        if spent:
            # The first turn pops what was waited for before the loop; the others wait for it themselves, or fail.
            self.ends = before
            for name in spent:
                self.ends[name].waited = 0
            before = self.snapshot()
            self.body(loop.body)
        self.steady(loop, before, count)
        growth = {name: end.filled - before[name].filled for name, end in self.ends.items() if end.own}
        ways = {(n, side): getattr(end, side)[0] - getattr(before[n], side)[0] for n, end in self.ends.items()
                for side in ("back", "front")}  # fmt: skip
        moved = False
        for name, end in self.ends.items():
            for side in ("back", "front"):
                (value, modulus), (old, _) = getattr(end, side), getattr(before[name], side)
                wider = math.gcd(modulus, value - old)
                if wider != modulus:
                    setattr(end, side, (value % wider, wider))
                    moved = True
        for name, change in growth.items():
            if change and count is None:
                raise self.fault(
                    f"each turn of a loop of unknown length leaves {change:+d} tiles in {name}",
                    "pop in each turn what it pushes",
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
            # Each turn goes as far as the first one: after all of them it is known again where an end is.
            for (name, side), way in ways.items():
                value, modulus = getattr(before[name], side)
                setattr(self.ends[name], side, ((value + count * way) % modulus, modulus))

    def only_waits_more(self, before: dict[str, _End]) -> bool:
        """Whether a turn left nothing reserved and nothing else moved of the buffers that it has waited for longer."""
        more = [name for name, end in self.ends.items() if end.waited > before[name].waited]
        return bool(more) and all(
            self.ends[name].reserved == before[name].reserved and self.ends[name].front == before[name].front
            for name in more
        )

    def steady(self, loop: Loop, before: dict[str, _End], count: int | None) -> None:
        for name, end in self.ends.items():
            old = before[name]
            if (end.reserved, end.waited) != (old.reserved, old.waited):
                what, was, now = (
                    ("reserved", old.reserved, end.reserved)
                    if end.reserved != old.reserved
                    else ("waited for", old.waited, end.waited)
                )
                end_with = "cb_push_back" if what == "reserved" else "cb_pop_front"
                raise self.fault(
                    f"{self.who}: a turn of the loop starts with {was} tiles of {name} {what} and ends with {now}",
                    f"put {end_with}({name}, {now - was}) at the end of what uses them, in the same turn"
                    if now > was
                    else "reserve and wait in the turn that pushes and pops",
                    self.line(loop),
                )

    @staticmethod
    def line(loop: Loop | Branch) -> Span | None:
        inner = calls(loop.body if isinstance(loop, Loop) else [*loop.then, *loop.otherwise])
        return inner[0].span if inner else None

    def snapshot(self) -> dict[str, _End]:
        return {name: end.copy() for name, end in self.ends.items()}

    def branch(self, branch: Branch) -> None:
        answer = decided(branch.condition, self.known)
        if answer is not None:
            self.body(branch.then if answer else branch.otherwise)
            return
        before, known, outside = self.snapshot(), self.known, self.outside
        self.outside = known if outside is None else outside
        self.known = narrowed(branch.condition, known, holds=True)
        self.body(branch.then)
        after_then, self.ends = self.ends, before
        self.known = narrowed(branch.condition, known, holds=False)
        self.body(branch.otherwise)
        self.known, self.outside = known, outside
        for name, end in self.ends.items():
            other = after_then[name]
            for what, one, two in _held_by(other, end):
                if one != two:
                    raise self.fault(
                        f"{self.who}: where {show(branch.condition)} holds {one} tiles of {name} are {what}, "
                        f"else {two}",
                        "reserve, push, wait and pop the same in both arms",
                        self.line(branch),
                    )
            end.join(other)

    # Operations

    def call(self, call: Call) -> None:
        match call.name:
            case "tt.cb_reserve_back":
                self.reserve(call, self.end(call), self.count(call))
            case "tt.cb_push_back":
                self.push(call, self.end(call), self.count(call))
            case "tt.cb_wait_front":
                self.wait(call, self.end(call), self.count(call))
            case "tt.cb_pop_front":
                self.pop(call, self.end(call), self.count(call))
            case "tt.noc_read_barrier":
                for end in self.ends.values():
                    end.unread = False
            case "tt.noc_writes_flushed":
                for end in self.ends.values():
                    end.unsent = False
            case "tt.noc_write_barrier":
                for end in self.ends.values():
                    end.unsent = False
                self.unwritten = None
            case _:
                if not call.phase:
                    self.access(call)

    def end(self, call: Call) -> _End:
        return self.ends[call.buffer("cb")]

    def count(self, call: Call) -> int:
        count = call.values["count"]
        if not isinstance(count, int) or count < 1:
            raise self.fault(
                f"{self.who}: {call.name[3:]} of {show(count)} tiles of {call.buffer('cb')}",
                "give a constant of at least 1",
                call,
            )
        return count

    def fits(self, call: Call, end: _End, position: tuple[int, int], count: int) -> None:
        name, pages = end.buffer.name, end.buffer.pages
        if count > pages:
            raise self.fault(
                f"{self.who}: {call.name[3:]} of {count} tiles of {name}, which holds {pages}",
                f"give {name} more pages (stages), or move smaller blocks",
                call,
            )
        value, modulus = position
        highest = pages - modulus + value if modulus else value
        if highest + count > pages:
            raise self.fault(
                f"{self.who}: {count} tiles from position {highest} of {name} straddle its end: it holds {pages} pages",
                f"make the size of {name} a multiple of every block that is pushed and popped",
                call,
            )

    def reserve(self, call: Call, end: _End, count: int) -> None:
        self.fits(call, end, end.back, count)
        if end.own and end.filled + count > end.buffer.pages:
            raise self.fault(
                f"{self.who} waits for room for {count} tiles in {end.buffer.name}, which holds "
                f"{end.buffer.pages} and has {end.filled}: it waits for itself",
                "pop before reserving again, or give it more pages",
                call,
            )
        end.reserved = count
        # The reader writes nothing to a shard that is the circular buffer: its tiles are there.
        in_place = bool(end.buffer.shard_of) and end.buffer.producer == "reader"
        end.written = None if in_place or count > _LARGEST_BLOCK else frozenset()
        self.clock += 1
        end.since = self.clock

    def push(self, call: Call, end: _End, count: int) -> None:
        name = end.buffer.name
        if count > end.reserved:
            raise self.fault(
                f"{self.who} pushes {count} tiles of {name}, {end.reserved} are reserved",
                f"put cb_reserve_back({name}, {count}) before what writes them",
                call,
            )
        if end.unread:
            raise self.fault(
                f"{self.who} pushes {name} before the reads into it have arrived",
                "put noc_read_barrier before the push",
                call,
            )
        if end.written is not None:
            missing = next((tile for tile in range(count) if tile not in end.written), None)
            if missing is not None:
                raise self.fault(
                    f"{self.who} pushes {count} tiles of {name}; nothing is written to tile {missing} of them",
                    "write every tile of a block before it is pushed",
                    call,
                )
            end.written = frozenset(tile - count for tile in end.written if tile >= count)
        value, modulus = end.back
        end.back = ((value + count) % modulus, modulus)
        end.reserved -= count
        end.filled += count if end.own else 0

    def wait(self, call: Call, end: _End, count: int) -> None:
        self.fits(call, end, end.front, count)
        if end.own and end.filled < count:
            raise self.fault(
                f"{self.who} waits for {count} tiles of {end.buffer.name}, which has {end.filled}, and which only "
                f"itself fills: it waits for ever",
                f"push {count} tiles before",
                call,
            )
        end.waited = max(end.waited, count)

    def pop(self, call: Call, end: _End, count: int) -> None:
        name = end.buffer.name
        if count > end.waited:
            raise self.fault(
                f"{self.who} pops {count} tiles of {name}, {end.waited} were waited for",
                f"put cb_wait_front({name}, {count}) before what reads them",
                call,
            )
        if end.unsent:
            raise self.fault(
                f"{self.who} pops {name} while it is still written from",
                "put noc_writes_flushed before the pop",
                call,
            )
        value, modulus = end.front
        end.front = ((value + count) % modulus, modulus)
        end.waited -= count
        end.filled -= count if end.own else 0

    def access(self, call: Call) -> None:
        op = call.op
        touched = touches(op.ir_name)
        reach = op.reach(call.values) if op.reach is not None and touched else {}
        self.kinds(call, op)
        for operand, of, reads in touched:
            name = call.buffer(of)
            end = self.ends.get(name)
            if end is None:
                buffer = self.plan.buffer(name)
                raise self.fault(
                    f"{self.who}: {op.name} touches {name}, which goes from {kernel_name(buffer.producer)} to "
                    f"{kernel_name(buffer.consumer)}",
                    "name a buffer that this kernel fills or empties",
                    call,
                )
            if end.buffer.row_tiles and op.engine == "noc" and "count_bytes" in call.values:
                self.touch_rows(call, end, call.values[operand], reads=reads)
            else:
                self.touch(call, end, call.values[operand], reach.get(operand, 1), reads=reads)
        if op.engine == "block":
            for operand in op.operands:
                if operand.kind == "cb":
                    end = self.ends[call.buffer(operand.name)]
                    self.touch(call, end, 0, call.number("tiles"), reads=operand.access == "read")
        if op.engine == "noc":
            self.transfer(call)

    def kinds(self, call: Call, op: Op) -> None:
        """What computes takes tiles; rows become tiles, and tiles rows, of the width that their buffer says."""
        if op.engine not in ("fpu", "pack", "block"):
            return
        rows = {o.name: self.plan.buffer(call.buffer(o.name)).row_tiles for o in op.operands if o.kind == "cb"}
        wanted: dict[str, Expression] = dict.fromkeys(rows, 0)
        if op.engine == "block":
            wanted["source" if op is TILIZE_BLOCK else "out"] = call.values["tiles"]
        for operand, held in rows.items():
            if held != wanted[operand]:
                raise self.fault(
                    f"{self.who}: {op.name} takes {call.buffer(operand)} for {_held(wanted[operand])}; "
                    f"it holds {_held(held)}",
                    "make tiles of rows with tilize_block and rows of tiles with pack_untilize_block, as wide as the "
                    "buffer says",
                    call,
                )

    def transfer(self, call: Call) -> None:
        for operand in call.op.operands:
            if operand.kind != "cb":
                continue
            end = self.ends[call.buffer(operand.name)]
            if operand.access == "write":
                end.unread = True
            else:
                end.unsent = True
                self.unwritten = call

    def touch_rows(self, call: Call, end: _End, slot: Expression, *, reads: bool) -> None:
        """A part of the memory of a buffer of rows: the pages that it lies in, from the first to the last."""
        page_bytes, size = end.buffer.page_bytes, call.values["count_bytes"]
        start = Binary("+", Binary("*", slot, page_bytes), call.values["slot_offset_bytes"])
        offsets: list[Expression] = [0, Binary("-", size, 1)]
        if isinstance(size, int):
            offsets = [*range(0, size, page_bytes), size - 1]
        before = end.written
        for offset in offsets:
            self.touch(call, end, Binary("//", Binary("+", start, offset), page_bytes), 1, reads=reads)
        if not isinstance(size, int):
            # It can be less.
            end.written = before

    def touch(self, call: Call, end: _End, index: Expression, count: int, *, reads: bool) -> None:
        name = end.buffer.name
        found = value_range(index, self.known)
        if found is None:
            raise self.fault(
                f"{self.who}: {call.op.name} at tile {show(index)} of {name}: no bound is known",
                "index with loop variables of constant range",
                call,
            )
        low, high = int(found[0]), int(found[1]) + count - 1
        room, what = (end.waited, "waited for") if reads else (end.reserved, "reserved")
        if low < 0 or high >= room:
            raise self.fault(
                f"{self.who}: {call.op.name} {'reads' if reads else 'writes'} tile {low if low < 0 else high} of "
                f"{name}, {room} are {what}",
                (f"put cb_wait_front({name}, ...) before it, of enough tiles"
                 if reads else f"put cb_reserve_back({name}, ...) before it, of enough tiles")
                if low >= 0 else "correct the tile index",
                call,
            )  # fmt: skip
        if not reads and end.written is not None:
            end.written |= self.indices(index, count, end.since, low, high)

    def indices(self, index: Expression, count: int, since: int, low: int, high: int) -> frozenset[int]:
        """The tiles that an index takes while the loops run that were entered after `since`."""
        if isinstance(index, int):
            return frozenset(range(index, index + count))
        index, known = placed(index, self.bound), self.known | (self.outside or {})
        terms = affine(index)
        if terms is not None:
            return self.sums(terms, count, since)
        axes: list[tuple[Variable, Range]] = []
        for one in sorted(variables(index), key=lambda v: v.number):
            if self.entered.get(one, 0) > since:
                axes.append((one, known[one]))
            else:
                known[one] = (known[one][0], known[one][0])
        if math.prod(int(b) - int(a) + 1 for _, (a, b) in axes) > 64 * _LARGEST_BLOCK:
            return frozenset(range(low, high + 1))
        grids = np.meshgrid(*[np.arange(int(a), int(b) + 1) for _, (a, b) in axes], indexing="ij")
        for (one, _), grid in zip(axes, grids, strict=True):
            known[one] = (grid, grid)
        found = value_range(index, known)
        assert found is not None
        tiles = np.unique(found[0])
        return frozenset(int(tile) + more for tile, more in itertools.product(tiles, range(count)))

    def sums(self, terms: dict[Variable | None, int], count: int, since: int) -> frozenset[int]:
        """As :meth:`indices`, for a sum of multiples of variables."""
        made, known = set(range(terms.get(None, 0), terms.get(None, 0) + count)), self.known | (self.outside or {})
        for one, factor in terms.items():
            if one is None:
                continue
            low, high = map(int, known[one])
            turns = range(low, high + 1) if self.entered.get(one, 0) > since else range(low, low + 1)
            made = {tile + factor * turn for tile in made for turn in turns}
        return frozenset(made)


@functools.cache
def touches(name: str) -> tuple[tuple[str, str, bool], ...]:
    """The tile operands of an operation: the operand, the circular buffer operand it indexes, whether it reads."""
    operands = OPS[name].operands
    access = {operand.name: operand.access for operand in operands}
    return tuple((o.name, o.of, access[o.of] == "read") for o in operands if o.kind in ("tile", "slot"))


def _held(row_tiles: Expression) -> str:
    return "tiles" if row_tiles == 0 else f"rows of {show(row_tiles)} tiles"


def _held_by(one: _End, other: _End) -> tuple[tuple[str, int, int], ...]:
    """What must be the same at two ends where their paths meet."""
    return (
        ("reserved", one.reserved, other.reserved), ("waited for", one.waited, other.waited),
        ("left", one.filled, other.filled),
    )  # fmt: skip


def _both(one: frozenset[int] | None, two: frozenset[int] | None) -> frozenset[int]:
    assert one is not None
    assert two is not None
    return one & two
