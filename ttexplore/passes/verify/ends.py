"""The ends of the circular buffers in one kernel, and how each of its calls changes them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import (
    Binary,
    Expression,
    Key,
    Range,
    Variable,
    affine,
    placed,
    show,
    value_range,
    variables,
)
from ttexplore.ir.kernel import Call, Kernel, calls, kernel_name
from ttexplore.ops import OPS
from ttexplore.ops.move import TILIZE_BLOCK
from ttexplore.ops.op import Op
from ttexplore.ops.protocol import (
    CB_POP_FRONT,
    CB_PUSH_BACK,
    CB_RESERVE_BACK,
    CB_WAIT_FRONT,
    NOC_READ_BARRIER,
    NOC_WRITE_BARRIER,
    NOC_WRITES_FLUSHED,
)
from ttexplore.ops.semaphores import (
    NOC_FULL_BARRIER,
    NOC_MULTICAST,
    NOC_MULTICAST_TO_ALL,
    NOC_SEND_BLOCK,
    RECEIVE_SENT,
    SEMAPHORE_MULTICAST,
    SEMAPHORE_MULTICAST_TO_ALL,
    SEMAPHORE_UP,
)
from ttexplore.passes.verify.ranges import RangeWalk
from ttexplore.plan import CircularBuffer, Plan, chip_buffers
from ttexplore.record import Span

PROTOCOL = frozenset({CB_RESERVE_BACK.ir_name, CB_PUSH_BACK.ir_name, CB_WAIT_FRONT.ir_name, CB_POP_FRONT.ir_name})
_BACK = frozenset({CB_RESERVE_BACK.ir_name, CB_PUSH_BACK.ir_name})
# Larger blocks are not tracked tile by tile.
_LARGEST_BLOCK = 4096

# A position in a circular buffer, as far as it is known: (value, modulus).
Position = tuple[int, int]


def moved_by(position: Position, tiles: int) -> Position:
    value, modulus = position
    return (value + tiles) % modulus, modulus


def either(position: Position, alternative: Position) -> Position:
    """What is known of a position that is one of two."""
    (value, modulus), (second, other_modulus) = position, alternative
    common = math.gcd(modulus, other_modulus, value - second)
    return value % common, common


@dataclass(slots=True)
class End:
    """One kernel's end of a circular buffer. `back` and `front` are where the next tile is written and read; `filled`
    is the number of tiles in a buffer whose ends are both in this kernel.

    If several buffers of the plan share it, `buffer` is the one that has it now, or had it last; it is `mixed` where
    different ones have it on two paths that join."""

    buffer: CircularBuffer
    own: bool
    reserved: int = 0
    waited: int = 0
    filled: int = 0
    unread: bool = False
    unsent: bool = False
    written: frozenset[int] | None = frozenset()
    # What is written if a condition holds, or does not, that is the same for the whole run of a core.
    written_if: tuple[tuple[Expression, bool, frozenset[int]], ...] = ()
    since: int = 0
    back: Position = (0, 0)
    front: Position = (0, 0)
    mixed: bool = False

    def copy(self) -> End:
        return End(
            self.buffer, self.own, self.reserved, self.waited, self.filled, self.unread, self.unsent, self.written,
            self.written_if, self.since, self.back, self.front, self.mixed,
        )  # fmt: skip

    def join(self, alternative: End) -> None:
        """Keep the state that holds on both of two paths that join."""
        self.mixed |= alternative.mixed or (self.is_taken and self.buffer.name != alternative.buffer.name)
        self.unread |= alternative.unread
        self.unsent |= alternative.unsent
        self.written = None if None in (self.written, alternative.written) else _both(self.written, alternative.written)
        self.back, self.front = either(self.back, alternative.back), either(self.front, alternative.front)

    def enter(self, condition: Expression, *, holds: bool) -> None:
        """Add what is written where a condition holds, or does not."""
        for test, outcome, written in self.written_if:
            if self.written is not None and (test, outcome) == (condition, holds):
                self.written |= written

    @property
    def is_taken(self) -> bool:
        """Whether there are tiles in it, or room in it is reserved, as far as this kernel knows."""
        return bool(self.filled or self.reserved or self.waited)

    @property
    def held(self) -> tuple[int, int, bool, bool, str]:
        """The state that determines whether the next iteration of a loop must be checked as well."""
        return self.reserved, self.waited, self.unread, self.unsent, self.buffer.name if self.is_taken else ""


class Ends(RangeWalk):
    """The tiles that a kernel has reserved, written and waited for at the current call. Raises VerifyError for a call
    that this state does not allow."""

    def __init__(self, kernel: Kernel, plan: Plan, ranges: Mapping[Key, Range]) -> None:
        """`ranges` are the ranges of the values that cores are given."""
        super().__init__(plan.partition, ranges)
        self.kernel, self.role, self.plan = kernel, kernel.role, plan
        self.who = kernel_name(kernel.role)
        moved: dict[tuple[str, bool], set[Expression]] = {}
        for call in calls(kernel.body):
            if call.name in PROTOCOL:
                moved.setdefault((call.buffer("cb"), call.name in _BACK), set()).add(call.values["count"])
        own_buffers = [buffer for buffer in plan.buffers if self.role in (buffer.producer, buffer.consumer)]
        # One end for all buffers that share a number, by the name of the first.
        self.ends: dict[str, End] = {}
        self.homes: dict[str, str] = {}
        for sharing in chip_buffers(own_buffers):
            buffer = sharing[0]
            back, front = (
                {count for member in sharing for count in moved.get((member.name, way), ())} for way in (True, False)
            )
            self.homes |= {member.name: buffer.name for member in sharing}
            self.ends[buffer.name] = End(
                buffer, buffer.producer == buffer.consumer, back=_start(buffer, back), front=_start(buffer, front)
            )
        # The ranges outside all branches. Each iteration of a loop takes one arm, so tiles that both arms write are
        # counted over all iterations.
        self.outside: dict[Key, Range] | None = None
        self.entered: dict[Variable, int] = {}
        self.clock = 0
        self.unwritten: Call | None = None
        # A block was sent to a core, and no barrier waited for it.
        self.on_the_way: Call | None = None
        # A semaphore of another core was raised. This is no write: only the full barrier waits for it.
        self.unraised: Call | None = None
        # The tensors with writes that no barrier waited for.
        self.unarrived: frozenset[str] = frozenset()

    def fault(self, code: str, message: str, hint: str, at: Call | Span | None) -> VerifyError:
        return VerifyError(code, message, hint=hint, span=at.span if isinstance(at, Call) else at)

    def call(self, call: Call) -> None:
        if call.result is not None:
            self.known[call.result] = call.least, call.most
        match call.name:
            case CB_RESERVE_BACK.ir_name:
                self.reserve(call, self.end(call), self.count(call))
            case CB_PUSH_BACK.ir_name:
                self.push(call, self.end(call), self.count(call))
            case CB_WAIT_FRONT.ir_name:
                self.wait(call, self.end(call), self.count(call))
            case CB_POP_FRONT.ir_name:
                self.pop(call, self.end(call), self.count(call))
            case NOC_READ_BARRIER.ir_name:
                for end in self.ends.values():
                    end.unread = False
            case NOC_WRITES_FLUSHED.ir_name:
                for end in self.ends.values():
                    end.unsent = False
            case NOC_WRITE_BARRIER.ir_name | NOC_FULL_BARRIER.ir_name:
                for end in self.ends.values():
                    end.unsent = False
                self.unwritten, self.unarrived, self.on_the_way = None, frozenset(), None
                if call.name == NOC_FULL_BARRIER.ir_name:
                    self.unraised = None
            case RECEIVE_SENT.ir_name:
                self.receive(call, self.end(call), self.count(call))
            case NOC_MULTICAST.ir_name | NOC_MULTICAST_TO_ALL.ir_name:
                self.send(call, self.end(call), call.number("tiles"))
            case SEMAPHORE_MULTICAST.ir_name | SEMAPHORE_MULTICAST_TO_ALL.ir_name:
                self.unwritten = call
            case NOC_SEND_BLOCK.ir_name:
                self.send_from_front(call, self.end(call), call.number("tiles"))
            case SEMAPHORE_UP.ir_name:
                if self.on_the_way is not None:
                    raise self.fault(
                        "V017",
                        f"{self.who} tells another core of {self.on_the_way.buffer('into')} before the block has "
                        "arrived there",
                        "put noc_write_barrier before it",
                        call,
                    )
                self.unraised = call
            case _:
                if not call.phase:
                    self.access(call)

    def end(self, call: Call) -> End:
        return self.named(call.buffer("cb"), call)

    def named(self, name: str, call: Call) -> End:
        """The end of the buffer that a call names. Only a reserve, or a wait for what another kernel pushes, turns to
        another one of those that share it."""
        end = self.ends[self.homes[name]]
        if end.buffer.name == name and not (end.mixed and end.is_taken):
            return end
        turns = call.name == CB_RESERVE_BACK.ir_name or (call.name == CB_WAIT_FRONT.ir_name and not end.own)
        if end.is_taken or not turns:
            there = f"holds tiles of {end.buffer.name}" if end.is_taken else f"had {end.buffer.name} last"
            raise self.fault(
                "V009",
                f"{self.who}: {call.name[3:]} of {name}, whose circular buffer {end.buffer.index} {there}",
                f"pop all tiles of {end.buffer.name} first, or give {name} a number of its own",
                call,
            )
        end.buffer, end.mixed = self.plan.buffer(name), False
        return end

    def count(self, call: Call) -> int:
        count = call.values["count"]
        if not isinstance(count, int) or count < 1:
            raise self.fault(
                "V007",
                f"{self.who}: {call.name[3:]} of {show(count)} tiles of {call.buffer('cb')}",
                "use a constant of at least 1",
                call,
            )
        return count

    def fits(self, call: Call, end: End, position: Position, count: int) -> None:
        name, pages = end.buffer.name, end.buffer.pages
        if count > pages:
            raise self.fault(
                "V007",
                f"{self.who}: {call.name[3:]} of {count} tiles of {name}, which holds {pages}",
                f"give {name} more pages (stages), or move smaller blocks",
                call,
            )
        value, modulus = position
        highest = pages - modulus + value if modulus else value
        if highest + count > pages:
            raise self.fault(
                "V008",
                f"{self.who}: {count} tiles from position {highest} of {name} straddle its end: it holds {pages} pages",
                f"make the size of {name} a multiple of every block that is pushed and popped",
                call,
            )

    def reserve(self, call: Call, end: End, count: int) -> None:
        self.fits(call, end, end.back, count)
        if end.own and end.filled + count > end.buffer.pages:
            raise self.fault(
                "V009",
                f"{self.who} waits for room for {count} tiles in {end.buffer.name}, which holds "
                f"{end.buffer.pages} and has {end.filled}: it waits for itself",
                f"pop before reserving again, or give {end.buffer.name} more pages",
                call,
            )
        end.reserved = count
        # If the circular buffer is the shard, its tiles are in place and the reader writes nothing.
        in_place = bool(end.buffer.shard_of) and end.buffer.producer == "reader"
        end.written, end.written_if = None if in_place or count > _LARGEST_BLOCK else frozenset(), ()
        self.clock += 1
        end.since = self.clock

    def push(self, call: Call, end: End, count: int) -> None:
        name = end.buffer.name
        if count > end.reserved:
            raise self.fault(
                "V003",
                f"{self.who} pushes {count} tiles of {name}; {end.reserved} are reserved",
                f"put cb_reserve_back({name}, {count}) before the operations that write them",
                call,
            )
        if end.unread:
            raise self.fault(
                "V011",
                f"{self.who} pushes {name} before the reads into it have completed",
                "put noc_read_barrier before the push",
                call,
            )
        if end.written is not None:
            missing = next((tile for tile in range(count) if tile not in end.written), None)
            if missing is not None:
                raise self.fault(
                    "V006",
                    f"{self.who} pushes {count} tiles of {name}; tile {missing} of them was not written",
                    "write every tile of a block before it is pushed",
                    call,
                )
            end.written = frozenset(tile - count for tile in end.written if tile >= count)
            end.written_if = ()
        end.back = moved_by(end.back, count)
        end.reserved -= count
        end.filled += count if end.own else 0

    def send(self, call: Call, end: End, count: int) -> None:
        """Send a complete block to other cores, from the room where it was written."""
        name = end.buffer.name
        if count > end.reserved:
            raise self.fault(
                "V005",
                f"{self.who} sends {count} tiles of {name}; {end.reserved} are reserved",
                f"put cb_reserve_back({name}, {count}) before it",
                call,
            )
        if end.unread:
            raise self.fault(
                "V011",
                f"{self.who} sends {name} before the reads into it have completed",
                "put noc_read_barrier before it",
                call,
            )
        missing = None if end.written is None else next((t for t in range(count) if t not in end.written), None)
        if missing is not None:
            raise self.fault(
                "V006",
                f"{self.who} sends {count} tiles of {name}; tile {missing} of them was not written",
                "write every tile of a block before it is sent",
                call,
            )
        end.unsent = True
        self.unwritten = call

    def send_from_front(self, call: Call, end: End, count: int) -> None:
        """Send a block to another core, from where this kernel waited for it."""
        if count > end.waited:
            raise self.fault(
                "V005",
                f"{self.who} sends {count} tiles of {end.buffer.name}; {end.waited} were waited for",
                f"put cb_wait_front({end.buffer.name}, {count}) before it",
                call,
            )
        end.unsent = True
        self.unwritten = self.on_the_way = call

    def receive(self, call: Call, end: End, count: int) -> None:
        """Another core writes a block into room that was reserved."""
        if count > end.reserved:
            raise self.fault(
                "V005",
                f"{self.who} receives {count} tiles of {end.buffer.name}; {end.reserved} are reserved",
                f"put cb_reserve_back({end.buffer.name}, {count}) before it",
                call,
            )
        if end.written is not None:
            end.written |= frozenset(range(count))

    def wait(self, call: Call, end: End, count: int) -> None:
        self.fits(call, end, end.front, count)
        if end.own and end.filled < count:
            raise self.fault(
                "V009",
                f"{self.who} waits for {count} tiles of {end.buffer.name}, which has {end.filled} and which no other "
                "kernel fills: it waits forever",
                f"push {count} tiles first",
                call,
            )
        end.waited = max(end.waited, count)

    def pop(self, call: Call, end: End, count: int) -> None:
        name = end.buffer.name
        if count > end.waited:
            raise self.fault(
                "V004",
                f"{self.who} pops {count} tiles of {name}; {end.waited} were waited for",
                f"put cb_wait_front({name}, {count}) before the operations that read them",
                call,
            )
        if end.unsent:
            raise self.fault(
                "V012",
                f"{self.who} pops {name} before the writes from it have left",
                "put noc_writes_flushed before the pop",
                call,
            )
        end.front = moved_by(end.front, count)
        end.waited -= count
        end.filled -= count if end.own else 0

    def access(self, call: Call) -> None:
        op = call.op
        touched = touches(op.ir_name)
        reach = op.reach(call.values) if op.reach is not None and touched else {}
        self.kinds(call, op)
        for operand, of, reads in touched:
            name = call.buffer(of)
            if name not in self.homes:
                buffer = self.plan.buffer(name)
                raise self.fault(
                    "V010",
                    f"{self.who}: {op.name} uses {name}, which goes from {kernel_name(buffer.producer)} to "
                    f"{kernel_name(buffer.consumer)}",
                    "use a buffer that this kernel fills or empties",
                    call,
                )
            end = self.named(name, call)
            if end.buffer.row_tiles and op.engine == "noc" and "count_bytes" in call.values:
                self.touch_rows(call, end, call.values[operand], reads=reads)
            else:
                self.touch(call, end, call.values[operand], reach.get(operand, 1), reads=reads)
        if op.engine == "block":
            for operand in op.operands:
                if operand.kind == "cb":
                    end = self.named(call.buffer(operand.name), call)
                    self.touch(call, end, 0, call.number("tiles"), reads=operand.access == "read")
        if op.engine == "noc":
            self.transfer(call)

    def kinds(self, call: Call, op: Op) -> None:
        """Compute operations take tiles; conversions between rows and tiles have the width of the buffer of rows."""
        if op.engine not in ("fpu", "pack", "block"):
            return
        rows = {o.name: self.plan.buffer(call.buffer(o.name)).row_tiles for o in op.operands if o.kind == "cb"}
        expected: dict[str, Expression] = dict.fromkeys(rows, 0)
        if op.engine == "block":
            expected["source" if op is TILIZE_BLOCK else "out"] = call.values["tiles"]
        for operand, width in rows.items():
            if width != expected[operand]:
                raise self.fault(
                    "V035",
                    f"{self.who}: {op.name} expects {_held(expected[operand])} in {call.buffer(operand)}, "
                    f"which holds {_held(width)}",
                    "convert rows to tiles with tilize_block and tiles to rows with pack_untilize_block, "
                    "in the width of the buffer",
                    call,
                )

    def transfer(self, call: Call) -> None:
        for operand in call.op.operands:
            if operand.kind == "tensor":
                name = call.buffer(operand.name)
                if operand.access == "write":
                    self.unarrived |= {name}
                elif name in self.unarrived:
                    raise self.fault(
                        "V012",
                        f"{self.who} reads {name} before its writes to it have arrived",
                        "put noc_write_barrier before the read",
                        call,
                    )
            if operand.kind != "cb":
                continue
            end = self.named(call.buffer(operand.name), call)
            if operand.access == "write":
                end.unread = True
            else:
                end.unsent = True
                self.unwritten = call

    def touch_rows(self, call: Call, end: End, slot: Expression, *, reads: bool) -> None:
        """Use a part of the memory of a buffer of rows: all pages that it overlaps."""
        page_bytes, size = end.buffer.page_bytes, call.values["count_bytes"]
        start = Binary("+", Binary("*", slot, page_bytes), call.values["slot_offset_bytes"])
        offsets: list[Expression] = [0, Binary("-", size, 1)]
        if isinstance(size, int):
            offsets = [*range(0, size, page_bytes), size - 1]
        before = end.written
        for offset in offsets:
            self.touch(call, end, Binary("//", Binary("+", start, offset), page_bytes), 1, reads=reads)
        if not isinstance(size, int):
            # The size can be smaller.
            end.written = before

    def touch(self, call: Call, end: End, index: Expression, count: int, *, reads: bool) -> None:
        name = end.buffer.name
        bounds = value_range(index, self.known)
        if bounds is None:
            raise self.fault(
                "V005",
                f"{self.who}: {call.op.name} uses tile {show(index)} of {name}, which has no known bound",
                "index tiles with the variables of loops of constant length",
                call,
            )
        low, high = int(bounds[0]), int(bounds[1]) + count - 1
        room, state = (end.waited, "waited for") if reads else (end.reserved, "reserved")
        if low < 0 or high >= room:
            raise self.fault("V005", 
                f"{self.who}: {call.op.name} {'reads' if reads else 'writes'} tile {low if low < 0 else high} of "
                f"{name}; {room} are {state}",
                (f"put cb_wait_front({name}, ...) for enough tiles before it"
                 if reads else f"put cb_reserve_back({name}, ...) for enough tiles before it")
                if low >= 0 else "correct the tile index",
                call,
            )  # fmt: skip
        if not reads and end.written is not None:
            end.written |= self.indices(index, count, end.since, low, high)

    def indices(self, index: Expression, count: int, since: int, low: int, high: int) -> frozenset[int]:
        """The values of a tile index over the loops that were entered after `since`."""
        if isinstance(index, int):
            return frozenset(range(index, index + count))
        index, ranges = placed(index, self.bound), self.known | (self.outside or {})
        terms = affine(index)
        if terms is not None:
            return self.sums(terms, count, since)
        axes: list[tuple[Variable, Range]] = []
        for variable in sorted(variables(index), key=lambda v: v.number):
            if self.entered.get(variable, 0) > since:
                axes.append((variable, ranges[variable]))
            else:
                ranges[variable] = (ranges[variable][0], ranges[variable][0])
        if math.prod(int(b) - int(a) + 1 for _, (a, b) in axes) > 64 * _LARGEST_BLOCK:
            return frozenset(range(low, high + 1))
        grids = np.meshgrid(*[np.arange(int(a), int(b) + 1) for _, (a, b) in axes], indexing="ij")
        for (variable, _), grid in zip(axes, grids, strict=True):
            ranges[variable] = (grid, grid)
        values = value_range(index, ranges)
        assert values is not None
        tiles = np.unique(values[0])
        return frozenset(int(tile) + more for tile, more in itertools.product(tiles, range(count)))

    def sums(self, terms: dict[Variable | None, int], count: int, since: int) -> frozenset[int]:
        """Like :meth:`indices`, for a sum of multiples of variables."""
        tiles, ranges = set(range(terms.get(None, 0), terms.get(None, 0) + count)), self.known | (self.outside or {})
        for variable, factor in terms.items():
            if variable is None:
                continue
            low, high = map(int, ranges[variable])
            turns = range(low, high + 1) if self.entered.get(variable, 0) > since else range(low, low + 1)
            tiles = {tile + factor * iteration for tile in tiles for iteration in turns}
        return frozenset(tiles)


def _start(buffer: CircularBuffer, counts: Collection[Expression]) -> tuple[int, int]:
    """Where an end is at first that moves by these numbers of tiles. Where all blocks are alike, it is enough to know
    that they begin at multiples."""
    alike = next(iter(counts)) if len(counts) == 1 else None
    return 0, alike if isinstance(alike, int) and alike > 0 and buffer.pages % alike == 0 else buffer.pages


@functools.cache
def touches(name: str) -> tuple[tuple[str, str, bool], ...]:
    """The tile operands of an operation: operand, the circular buffer operand that it indexes, whether it reads."""
    operands = OPS[name].operands
    access = {operand.name: operand.access for operand in operands}
    return tuple((o.name, o.of, access[o.of] == "read") for o in operands if o.kind in ("tile", "slot"))


def _held(row_tiles: Expression) -> str:
    return "tiles" if row_tiles == 0 else f"rows of {show(row_tiles)} tiles"


def _both(first: frozenset[int] | None, two: frozenset[int] | None) -> frozenset[int]:
    assert first is not None
    assert two is not None
    return first & two
