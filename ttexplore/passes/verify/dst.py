"""Check DST: sections in order over loops and branches, slots within DST, and no slot read before it is written."""

from __future__ import annotations

import numpy as np

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import Expression, Unary, decided, show, value_range, variables
from ttexplore.ir.kernel import (
    Branch,
    Call,
    Kernel,
    Loop,
    calls,
)  # fmt: skip
from ttexplore.ops import OPS
from ttexplore.ops.protocol import TILE_REGS_ACQUIRE, TILE_REGS_COMMIT, TILE_REGS_RELEASE, TILE_REGS_WAIT
from ttexplore.passes.verify.ranges import RangeWalk, core_ranges
from ttexplore.plan import ComputeConfig, Partition
from ttexplore.record import Span

_STEPS = {
    TILE_REGS_ACQUIRE.ir_name: ("released", "acquired"),
    TILE_REGS_COMMIT.ir_name: ("acquired", "committed"),
    TILE_REGS_WAIT.ir_name: ("committed", "waited for"),
    TILE_REGS_RELEASE.ir_name: ("waited for", "released"),
}
_NEXT = {
    "released": "tile_regs_acquire", "acquired": "tile_regs_commit", "committed": "tile_regs_wait",
    "waited for": "tile_regs_release",
}  # fmt: skip
# No valid loop over slots is longer: DST holds at most 16 tiles.
_MOST_SLOTS = 64


_ON_DST = frozenset(
    name
    for name, op in OPS.items()
    if name.startswith("tt.tile_regs_") or op.engine == "block" or any(o.kind == "dst" for o in op.operands)
)


def _slots(call: Call) -> list[str]:
    """The operands that are slots of DST."""
    return [operand.name for operand in call.form.operands if operand.kind == "dst"]


def check_dst(kernel: Kernel, compute: ComputeConfig, partition: Partition | None) -> None:
    """Sections are acquired, committed, waited for and released in this order on all paths; operations run in their
    part of a section, use slots within DST, and read only slots that the section has written. Raises VerifyError."""
    walker = _Dst(kernel, compute, partition)
    walker.body(kernel.body)
    if walker.section != "released":
        raise VerifyError(
            "V020",
            f"the compute kernel ends while DST is {walker.section}",
            hint=f"add {_NEXT[walker.section]}",
            span=walker.begun,
        )


class _Dst(RangeWalk):
    def __init__(self, kernel: Kernel, compute: ComputeConfig, partition: Partition | None) -> None:
        super().__init__(partition, core_ranges(partition))
        self.capacity = compute.dst_tiles
        self.untilized = compute.half_dst_tiles
        self.section = "released"
        self.begun: Span | None = None
        # The slots that certainly, and possibly, hold a value that this section has written.
        self.written: frozenset[int] = frozenset()
        self.touched: frozenset[int] = frozenset()
        self.indexed = {v for call in calls(kernel.body) for name in _slots(call) for v in variables(call.values[name])}

    def loop(self, loop: Loop) -> None:
        if loop.turns == 0 or not loop.names & _ON_DST:
            return
        before, written = self.section, self.written
        self.learn_count(loop)
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        for first, last in self.turns(loop):
            self.known.pop(loop.variable, None)
            if first is not None and last is not None:
                self.known[loop.variable] = (first, last)
            elif low is not None and extent is not None and extent[1] > 0:
                self.known[loop.variable] = (int(low[0]), int(low[1] + extent[1] - 1))
            self.body(loop.body)
            if self.section != before:
                raise VerifyError(
                    "V020",
                    f"an iteration of the loop starts while DST is {before} and ends while it is {self.section}",
                    hint=f"add {_NEXT[self.section]} to the loop, or remove the call that leads to this state",
                    span=next(iter(call.span for call in calls(loop.body)), None),
                )
        if self.may_be_empty(loop):
            # With zero iterations, nothing is written.
            self.written &= written

    def turns(self, loop: Loop) -> list[tuple[int | None, int | None]]:
        """The iterations to check: all if the variable indexes slots, otherwise the first, the second and the last."""
        if loop.turns is None or not isinstance(loop.low, int):
            return [(None, None)] * (1 if self.section == "released" else 2)
        first, last = loop.low, loop.low + loop.turns - 1
        if loop.variable in self.indexed:
            if loop.turns > _MOST_SLOTS:
                raise VerifyError(
                    "V022",
                    f"a loop of {loop.turns} iterations indexes slots of DST, which holds {self.capacity}",
                    hint="use smaller sub-blocks",
                    span=next(iter(call.span for call in calls(loop.body)), None),
                )
            return [(iteration, iteration) for iteration in range(first, last + 1)]
        if loop.turns == 1:
            return [(first, first)]
        # If no section is open, all iterations start in the same state.
        twice = 1 if self.section == "released" else 2
        if loop.variable not in loop.tested:
            return [(first, last)] * twice
        middle = [(first + 1, last - 1)] * twice if loop.turns > 2 else []
        return [(first, first), *middle, (last, last)]

    def branch(self, branch: Branch) -> None:
        answer = decided(branch.condition, self.known)
        if answer is not None:
            self.body(branch.then if answer else branch.otherwise)
            return
        section, written, touched = self.section, self.written, self.touched
        self.given.append(branch.condition)
        self.body(branch.then)
        self.given[-1] = Unary("not", branch.condition)
        after = self.section, self.written, self.touched
        self.section, self.written, self.touched = section, written, touched
        self.body(branch.otherwise)
        self.given.pop()
        if self.section != after[0]:
            raise VerifyError(
                "V020",
                f"DST is {after[0]} if {show(branch.condition)}, otherwise {self.section}",
                hint="acquire and release in both arms, or in neither",
                span=next(iter(call.span for call in calls([*branch.then, *branch.otherwise])), None),
            )
        self.written &= after[1]
        self.touched |= after[2]

    def call(self, call: Call) -> None:
        if call.result is not None:
            self.known[call.result] = call.least, call.most
        if call.name in _STEPS:
            required, after = _STEPS[call.name]
            if self.section != required:
                raise VerifyError(
                    "V020",
                    f"{call.name[3:]} comes while DST is {self.section}; {_NEXT[self.section]} should come first",
                    hint="the order is tile_regs_acquire, tile_regs_commit, tile_regs_wait, tile_regs_release",
                    span=call.span,
                )
            self.section = after
            if after == "acquired":
                self.begun = call.span
                self.written = self.touched = frozenset()
            return
        if call.phase:
            return
        if call.op.engine == "block":
            self.block(call)
        elif _slots(call):
            self.operation(call)

    def block(self, call: Call) -> None:
        """An operation that has DST sections of its own."""
        if self.section != "released":
            raise VerifyError(
                "V021",
                f"{call.op.name} runs while DST is {self.section}; it needs DST released",
                hint="put it before tile_regs_acquire or after tile_regs_release: it acquires and releases DST itself",
                span=call.span,
            )
        if call.op.name != "pack_untilize_block":
            return
        tiles = call.values["tiles"]
        if not isinstance(tiles, int) or tiles > self.untilized:
            raise VerifyError(
                "V022",
                f"{call.op.name} takes {show(tiles)} tiles at once; half of DST holds {self.untilized} in this mode",
                hint="convert fewer tiles at once",
                span=call.span,
            )

    def operation(self, call: Call) -> None:
        op = call.op
        required = "waited for" if op.engine == "pack" else "acquired"
        if self.section != required:
            hint = (
                "put tile_regs_commit and tile_regs_wait before it"
                if op.engine == "pack"
                else "put it between tile_regs_acquire and tile_regs_commit"
            )
            raise VerifyError(
                "V021",
                f"{op.name} runs while DST is {self.section}; it needs DST {required}",
                hint=hint,
                span=call.span,
            )
        reach = op.reach(call.values) if op.reach is not None else {}
        written = frozenset[int]()
        for operand in op.operands:
            if operand.kind != "dst":
                continue
            slots = self.slots(call, call.values[operand.name], reach.get(operand.name, 1))
            reads = operand.access in ("read", "update") and not (op.accumulates and operand.access == "update")
            if reads and (missing := slots - self.written):
                raise VerifyError(
                    "V023",
                    f"{op.name} reads slot {min(missing)} of DST, which nothing has written in this section",
                    hint="copy a tile to this slot or compute it first, or correct the slot",
                    span=call.span,
                )
            if op.accumulates and operand.access == "write" and (used := slots & self.touched):
                raise VerifyError(
                    "V023",
                    f"{op.name} adds to slot {min(used)} of DST, which already holds another value",
                    hint="use a slot that nothing has used in this section",
                    span=call.span,
                )
            if operand.access in ("write", "update"):
                written |= slots
        self.written |= written
        self.touched |= written

    def slots(self, call: Call, index: Expression, count: int) -> frozenset[int]:
        bounds = value_range(index, self.known)
        if bounds is None or (bounds[0] is not bounds[1] and not np.array_equal(*bounds)):
            raise VerifyError(
                "V022",
                f"{call.op.name} uses slot {show(index)} of DST, which is not a known number",
                hint="index slots with the variables of loops of constant length",
                span=call.span,
            )
        low, high = int(bounds[0]), int(bounds[0]) + count - 1
        if low < 0 or high >= self.capacity:
            raise VerifyError(
                "V022",
                f"{call.op.name} uses slot {low if low < 0 else high} of DST, which holds {self.capacity} tiles in "
                "this mode",
                hint="use smaller sub-blocks",
                span=call.span,
            )
        return frozenset(range(low, high + 1))
