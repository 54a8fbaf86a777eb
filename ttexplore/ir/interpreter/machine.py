"""One core: its arrays, circular buffers and compute engine, and the pages of tensors that all cores share.

All cores see at once what one writes to a tensor, as if each write had arrived. Shards of tensors are copied: to the
buffers of a core when it first names them, to the tensor when it has ended. Until then no other core sees the shard.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ttexplore.errors import KernelError
from ttexplore.ir.arithmetic.uncertain import Elements, Operand, Uncertain, value_of
from ttexplore.ir.interpreter.arrays import Array, in_tiles, is_whole, stored_as, unrounded, unwritten
from ttexplore.ir.interpreter.barriers import Meetings
from ttexplore.ir.interpreter.engines import Dst, Setup
from ttexplore.ir.interpreter.queues import Block, Blocks, Channel, Queue, TileSource
from ttexplore.ir.interpreter.where import Limits, Where
from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.ops.small import numpy_dtype
from ttexplore.ops.storage import rounded as rounded_array
from ttexplore.plan import SMALL_WHOLES, CoreWork, Plan
from ttexplore.record import Span

# A number, or one for each element that is loaded or stored at once.
Index = int | Elements
# How far kernels of one core are apart: one function, or three that exchange whole blocks, or tiles by the protocol.
Mode = Literal["sequential", "channels", "queues"]
# The numbers that the operations of a core gave: by kernel, by the position of the operation among those of the kernel
# that give one, and by the variables of the loops around it, from the outermost on.
Numbers = Mapping[str, Mapping[tuple[int, tuple[int, ...]], int]]


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all cores of a run share.

    `tensors` are the tensors, by name, `pages` those of a program that is `tiled`; `dtypes` are theirs. From D5 on the
    use of DST is `managed` in sections. `unit` is the rounding error of an operation, where errors are asked for; where
    the run does not `round`, floating-point numbers are float64.
    `cores` are those that have started and not ended, by their logical coordinates. `numbers` are those that the
    operations of each core gave, where they are asked for, by its logical coordinates; None is the only core of a
    program that knows none.
    """

    plan: Plan
    tensors: dict[str, Elements]
    pages: dict[str, Array]
    dtypes: dict[str, str]
    mode: Mode
    managed: bool
    tiled: bool
    limits: Limits
    unit: float | None
    rounds: bool
    cores: dict[tuple[int, int], Core] = field(default_factory=dict[tuple[int, int], "Core"])
    numbers: dict[tuple[int, int] | None, dict[str, dict[tuple[int, tuple[int, ...]], int]]] | None = None


class Core:
    """One core. `queues` are its circular buffers where their protocol is there, `blocks` those before; `tiles` are
    both. `unwritten` are the tensors with writes that no barrier waited for; at `meetings` groups of threads wait for
    each other. `semaphores` are the core's by number, `sent` the circular buffers with a block from another core that
    it has not waited for yet; `in_flight` are the kernels of which something is on its way to others, and
    `on_the_way` those that sent a block to one core for which no barrier has waited."""

    def __init__(self, run: SharedState, work: CoreWork | None) -> None:
        self.run, self.plan, self.work = run, run.plan, work
        self.where = Where(work, run.mode != "sequential", run.limits)
        self.arrays: dict[str, Elements] = {}
        self.dtypes = dict(run.dtypes)
        self.queues: dict[str, Queue] = {}
        self.channels: dict[str, Channel] = {}
        self.blocks: dict[str, Blocks] = {}
        self.tiles: dict[str, TileSource] = {}
        wide = self.plan.compute is None or self.plan.compute.fp32_dest_acc_en
        self.dst = Dst({}, self.where, run.managed, wide)
        self.setup = Setup(self.plan, self.where)
        self.unwritten: set[str] = set()
        self.meetings = Meetings()
        self.semaphores: defaultdict[int, int] = defaultdict(int)
        self.sent: set[str] = set()
        self.in_flight: set[str] = set()
        self.on_the_way: set[str] = set()
        if work is not None:
            run.cores[work.x, work.y] = self

    # Running

    @property
    def name(self) -> str:
        return self.where.core

    @property
    def span(self) -> Span | None:
        return self.where.span

    def turn_to(self, role: str) -> None:
        self.where.role = role

    def kernel_ended(self) -> None:
        """The kernel that runs has ended. Raises VerifyError where it may not."""
        role = self.where.role
        if role in self.in_flight:
            raise self.where.fault(
                "V012", f"the {role} ends before what it sent has arrived", "end with noc_full_barrier"
            )  # fmt: skip
        if role == "writer" and self.unwritten:
            raise self.where.fault(
                "V012", "the writer ends before its writes have arrived", "end with noc_write_barrier"
            )

    def ended(self) -> None:
        """All kernels have ended: what lies in shards is in their tensors. Raises VerifyError for tiles left over."""
        if self.work is not None:
            del self.run.cores[self.work.x, self.work.y]
        for queue in self.queues.values():
            shard_of = queue.plan.shard_of
            if shard_of and self.plan.layout(shard_of).role != "input":
                for slot, page in _shard(self.plan, self.work, shard_of):
                    self.set_page(shard_of, page, queue.tiles[slot])
            if queue.filled:
                raise self.where.fault(
                    "V001",
                    f"{queue.name} still holds {queue.filled} tiles when all kernels have ended",
                    "pop as many tiles as are pushed",
                )
        self.run.limits.core_ended()

    def core_value(self, name: str) -> int:
        assert self.work is not None
        return self.work.values[name]

    def core_item(self, position: int) -> int:
        assert self.work is not None
        if position >= len(self.work.listed):
            raise self.where.fault(
                "V040",
                f"work item {position} is read on a core that has {len(self.work.listed)}",
                "check the work count",
            )
        return self.work.listed[position]

    def gave(self, operation: int, turns: tuple[int, ...], number: int) -> None:
        """An operation of the kernel that runs gave a number."""
        if self.run.numbers is not None:
            kernels = self.run.numbers.setdefault(self.work and (self.work.x, self.work.y), {})
            kernels.setdefault(self.where.role, {})[operation, turns] = number

    # Buffers

    def allocate(self, name: str, scope: str, dtype: str, shape: tuple[int, ...]) -> None:
        dtype = in_tiles(dtype) if self.run.tiled else dtype if self.run.rounds else unrounded(dtype)
        self.dtypes[name] = dtype
        is_cb = scope == CB_SCOPE
        if is_cb and self.run.mode != "sequential":
            # Each kernel names the circular buffers that it uses.
            if name not in self.tiles:
                self.tiles[name] = (
                    self._queue(name, dtype) if self.run.mode == "queues" else self._channel(name, dtype, shape)
                )
            return
        # The tiles of DST hold numbers or the bits of integers, as the operations leave them.
        in_dst = self.run.tiled and scope == DST_SCOPE
        array = unwritten(shape, "float32" if in_dst else dtype)
        if scope == "local.var":
            # TileLang's variables are 0 until they are stored.
            array[...] = 0
        self.arrays[name] = self.stored(array, whole=is_whole(dtype))
        if in_dst:
            self.dst.arrays[name] = array
        if is_cb and self.run.tiled:
            formats = {buffer.name: buffer.data_format for buffer in self.plan.buffers}
            self.tiles[name] = self.blocks[name] = Block(dtype, formats.get(name), array)

    def _queue(self, name: str, dtype: str) -> Queue:
        plan = self.plan.buffer(name)
        for sharer in self.queues.values() if plan.index is not None else ():
            if sharer.plan.index == plan.index:
                # They are one circular buffer of the chip.
                self.queues[name] = sharer
                return sharer
        queue = Queue(plan, dtype, self.where, unwritten((plan.pages, 32, 32), dtype))
        if plan.shard_of and self.plan.layout(plan.shard_of).role == "input":
            for slot, page in _shard(self.plan, self.work, plan.shard_of):
                queue.tiles[slot] = self.page(plan.shard_of, page)
        self.queues[name] = queue
        return queue

    def _channel(self, name: str, dtype: str, shape: tuple[int, ...]) -> Channel:
        channel = Channel(self.plan.buffer(name), dtype, self.where, unwritten(shape, dtype))
        self.channels[name] = self.blocks[name] = channel
        return channel

    def stored(self, array: Array, *, whole: bool) -> Elements:
        """An array whose elements carry their errors, where these are asked for."""
        return array if self.run.unit is None else Uncertain.stored(array, self.run.unit, whole=whole)

    # Elements

    def array(self, name: str) -> Elements:
        return self.arrays[name] if name in self.arrays else self.run.tensors[name]

    def load(self, name: str, indices: tuple[Index, ...]) -> Elements:
        """Elements of a buffer. What lies outside of a tensor reads as zero. Raises KernelError outside of others."""
        array, at = self.array(name), tuple(map(value_of, indices))
        if name not in self.arrays and not np.all(inside := _inside(array, at)):
            at = tuple(np.clip(index, 0, extent - 1) for index, extent in zip(at, array.shape, strict=True))
            loaded = _where(inside, array[at], 0)
        else:
            _check_indices(name, array, at, self.span)
            loaded = array[at]
        # Arithmetic on integers of 8 bits wraps around in these.
        dtype = self.dtypes[name]
        return loaded.astype(numpy_dtype(dtype)) if dtype in SMALL_WHOLES else loaded

    def number(self, name: str, indices: tuple[int, ...]) -> int:
        """The whole number that an element of a tensor is; one of 8 bits wraps around, as in :meth:`load`. Raises
        KernelError for an element that there is not."""
        array, at = self.array(name), tuple(int(value_of(index)) for index in indices)
        _check_indices(name, array, at, self.span)
        number, dtype = int(value_of(array[at])), self.dtypes[name]
        return numpy_dtype(dtype).type(number) if dtype in SMALL_WHOLES else number

    def store(
        self, name: str, indices: tuple[Index, ...], value: Operand, chosen: Operand = True
    ) -> None:  # fmt: skip
        """Store the elements that are `chosen`. What lies outside of a tensor is not stored. Raises KernelError for
        elements outside of other buffers."""
        array, at = self.array(name), tuple(map(value_of, indices))
        stored = stored_as(value, self.dtypes[name])
        if name in self.arrays:
            _check_indices(name, array, at, self.span)
            if math.prod(stored.shape) == 1 and all(np.ndim(index) == 0 for index in at):
                # One element, of a T.Parallel of one turn.
                stored = stored.reshape(())
            array[at] = stored if chosen is True else _where(chosen, stored, array[at])
            return
        mask = np.logical_and(_inside(array, at), value_of(chosen))
        shape = np.broadcast_shapes(mask.shape, stored.shape, *(np.shape(index) for index in at))
        mask = np.broadcast_to(mask, shape)
        positions = tuple(np.broadcast_to(index, shape)[mask] for index in at)
        array[positions] = _spread(stored, shape)[mask]

    # Pages

    def page(self, tensor: str, page: int) -> Array:
        """A page of a tensor: a tile, or of a row-major tensor a row. Raises VerifyError where there is none."""
        pages = self.run.pages[tensor]
        if not 0 <= page < len(pages):
            raise self.where.fault(
                "V013", f"page {page} of {tensor} is accessed, which has {len(pages)} pages", "check the index"
            )
        return pages[page]

    def set_page(self, tensor: str, page: int, values: Array) -> None:
        self.page(tensor, page)[...] = rounded_array(values, self.dtypes[tensor])


# NumPy's own says nothing of arrays that carry their errors, which it takes, too.
_where: Callable[..., Any] = np.where


def _shard(plan: Plan, work: CoreWork | None, tensor: str) -> list[tuple[int, int]]:
    """The positions of a core's shard of a tensor that hold a page, and the page."""
    assert work is not None, "a shard is some core's"
    pages = plan.layout(tensor).shard_pages((work.x, work.y))
    return [(slot, page) for slot, page in enumerate(pages) if page is not None]


def _check_indices(name: str, array: Elements, indices: tuple[int | Array, ...], span: Span | None) -> None:
    for axis, (index, extent) in enumerate(zip(indices, array.shape, strict=True)):
        low, high = int(np.min(index)), int(np.max(index))
        if low < 0 or high >= extent:
            raise KernelError(
                "K001",
                f"{name} has {extent} elements along axis {axis}; index {high if high >= extent else low} is outside",
                hint="check the index",
                span=span,
            )


def _spread(value: Elements, shape: tuple[int, ...]) -> Elements:
    """A value for each element of an array of this shape."""
    if isinstance(value, Uncertain):
        return value.moved(lambda array: np.broadcast_to(array, shape))
    return np.broadcast_to(value, shape)


def _inside(array: Elements, indices: tuple[int | Array, ...]) -> Array:
    """Which elements are some of an array's."""
    inside: Array = np.array(True)
    for index, extent in zip(indices, array.shape, strict=True):
        inside = np.logical_and(inside, np.logical_and(np.greater_equal(index, 0), np.less(index, extent)))
    return inside
