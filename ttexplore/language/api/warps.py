"""Thread groups of a GPU kernel and what they wait with: T.ws, branches by thread, barriers, asynchronous copies and
products.

They are traced as they are written; the pass apply_defaults proves that the groups are one sequential program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import SupportsIndex

from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import allocation, shape_of
from ttexplore.ir.operations.groups import BARRIER_SCOPE, COUNTS, TENSOR_MEMORY, WARP_GROUP
from ttexplore.ir.operations.thread_indices import ALL_AXES, thread_index
from ttexplore.language.api.memory import alloc_fragment
from ttexplore.language.api.tile import as_region, copy, product
from ttexplore.language.tracer.builder import (
    AllocationRequest,
    Builder,
    current,
    described,
    element,
    sequence,
    statement_call,
    unsupported,
)
from ttexplore.language.tracer.containers import items_of
from ttexplore.ops import language as tl

# Groups


@contextlib.contextmanager
def ws(*groups: object, **_hints: object) -> Generator[None]:
    """Run the statements inside on some warp groups: ``with T.ws(0):`` on threads 0 to 127, ``T.ws(1)`` on the next.

    Raises KernelError for what is no group.
    """
    builder = current("T.ws")
    chosen: ir.Expr | None = None
    for group in groups:
        if not isinstance(group, int) or group < 0:
            raise KernelError("K008", f"T.ws: {shown(group)} is not a warp group", hint="number the groups from 0")
        low, high = WARP_GROUP * group, WARP_GROUP * (group + 1)
        index = _thread_number(builder)
        in_range = tirx.And(tirx.GE(index, tirx.const(low, "int32")), tirx.LT(index, tirx.const(high, "int32")))
        chosen = in_range if chosen is None else tirx.Or(chosen, in_range)
    if chosen is None:
        raise KernelError("K008", "T.ws names no warp group", hint="write T.ws(0)")
    span = builder.tvm_span()
    with builder.collect() as body, builder.inside("branch"):
        yield
    builder.emit(tirx.IfThenElse(chosen, sequence(body, span), None, span))


def get_warp_group_idx(warp_size: object = None, warps_per_group: object = None) -> ir.Expr:
    """The number of a thread's warp group: 128 threads each."""
    builder = current("T.get_warp_group_idx")
    if warp_size is not None or warps_per_group is not None:
        raise unsupported("T.get_warp_group_idx of other groups than of 128 threads", "leave its arguments out")
    return tirx.FloorDiv(_thread_number(builder), tirx.const(WARP_GROUP, "int32"))


def _thread_number(builder: Builder) -> ir.Expr:
    """The number of a thread among all threads of its block, which its warp group follows from."""
    return thread_index(ALL_AXES if len(builder.threads) > 1 else 0)


# Barriers


@dataclass(frozen=True)
class Barriers(AllocationRequest):
    """Barriers, one for each number of threads that must arrive."""

    counts: tuple[int, ...] = ()

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        span = builder.tvm_span()
        statement = allocation(builder.unused(name), self.shape, self.dtype, self.scope, span, {COUNTS: [*self.counts]})
        builder.emit(statement)
        return statement.buffer


def alloc_barrier(arrive_count: object) -> Barriers:
    """Allocate a barrier, or one for each number of a list. A phase of it is over when so many threads have arrived.

    Raises KernelError for counts that are no positive integers.
    """
    builder = current("T.alloc_barrier")
    if not builder.blocks:
        raise KernelError("K005", "T.alloc_barrier is outside T.Kernel", hint="allocate inside `with T.Kernel(...)`")
    counts = items_of(arrive_count)
    for count in counts:
        if not isinstance(count, SupportsIndex) or isinstance(count, bool) or int(count) < 1:
            raise KernelError(
                "K008",
                f"T.alloc_barrier: {shown(count)} is not a number of threads",
                hint="pass how many threads arrive: arrive_count=128",
            )
    numbers = tuple(int(count) for count in counts if isinstance(count, SupportsIndex))
    return Barriers((len(numbers),), "int32", BARRIER_SCOPE, None, numbers)


def _barrier(callee: str, value: object) -> ir.Expr:
    """A barrier as its element."""
    if is_buffer(value) and value.ty.storage_scope == BARRIER_SCOPE:
        (count,) = shape_of(value)
        if count != 1:
            raise KernelError(
                "K003", f"{callee}: {value.name} is {count} barriers", hint=f"choose one: {value.name}[0]"
            )
        return current(callee).read(value, (0,))
    if isinstance(value, ir.TensorLoad) and value.source.ty.storage_scope == BARRIER_SCOPE:
        return value
    raise KernelError(
        "K008", f"{callee} takes a barrier, not {described(value)}", hint="allocate it with T.alloc_barrier"
    )


def barrier_arrive(mbarrier: object, cta_id: object = None, pred: object = None) -> ir.Call:
    """Arrive at a barrier, with each thread that comes here. Raises Unsupported for another block's barrier."""
    if cta_id not in (None, 0) or pred is not None:
        raise unsupported("arriving at the barrier of another block", "keep what blocks exchange in tensors")
    return statement_call(tl.BARRIER_ARRIVE.name, [_barrier("T.barrier_arrive", mbarrier)])


def barrier_wait(mbarrier: object, parity: object = 0, **_hints: object) -> ir.Call:
    """Wait until the phase of this parity of a barrier is over; the phase before the first has parity 1."""
    return statement_call(tl.BARRIER_WAIT.name, [_barrier("T.barrier_wait", mbarrier), element(parity, "a parity")])


def mbarrier_arrive_expect_tx(mbarrier: object, tx: object) -> ir.Call:
    """Arrive at a barrier. The bytes of copies need not be counted here."""
    return barrier_arrive(mbarrier)


def sync_threads(barrier_id: object = None, arrive_count: object = None) -> ir.Call:
    """Wait for the other threads of the block, or for `arrive_count` of them at a barrier with a number."""
    numbers = [number for number in (barrier_id, arrive_count) if number is not None]
    for number in numbers:
        if not isinstance(number, int):
            raise KernelError("K008", f"T.sync_threads: {shown(number)} is not a number", hint="pass integers")
    return statement_call(tl.SYNC_THREADS.name, [int(number) for number in numbers if isinstance(number, int)])


def sync_grid() -> ir.Call:
    """Wait for all blocks of the launch: what follows is a launch of its own, after this one."""
    builder = current("T.sync_grid")
    if not builder.blocks:
        raise KernelError("K005", "T.sync_grid is outside T.Kernel", hint="leave it out: launches wait for each other")
    if any(around in ("tir", "branch") for around in builder.enclosing):
        raise unsupported(
            "T.sync_grid inside a loop or a branch",
            "put it at the top level of T.Kernel, or let Python run the loop: `for k in [*range(n)]` unrolls it",
        )
    return statement_call(tl.SYNC_GRID.name, [])


# Asynchronous copies and products


def tma_copy(src: object, dst: object, barrier: object = None, **hints: object) -> ir.Call:
    """Copy a block, over when its barrier's phase is. Raises KernelError without a barrier, and for copies of single
    elements."""
    copy_call = copy(src, dst, **hints)
    if copy_call is None:
        raise KernelError("K008", "T.tma_copy copies blocks", hint="pass regions: A[i : i + 32, :]")
    if barrier is None:
        raise KernelError(
            "K008",
            "T.tma_copy without a barrier: nothing says when it is over",
            hint="pass barrier=, or use T.copy, which waits by itself",
        )
    current("T.tma_copy").execute(copy_call)
    return statement_call(tl.COPY.name, [*copy_call.args, _barrier("T.tma_copy", barrier)])


def wgmma_gemm(
    A: object, B: object, C: object, transpose_A: bool = False, transpose_B: bool = False, policy: object = None,
    clear_accum: object = False,
) -> ir.Call:  # fmt: skip
    """T.gemm that is over at a T.wait_wgmma."""
    attrs = {tl.ASYNCHRONOUS: 1}
    return product("T.wgmma_gemm", (A, B, C), (transpose_A, transpose_B), policy, clear_accum, attrs)


def wait_wgmma(num_inflight: int = 0) -> ir.Call:
    """Wait until at most so many of the group's last products are not over."""
    return statement_call(tl.GEMM_WAIT.name, [num_inflight])


def tcgen05_gemm(
    A: object, B: object, C: object, transpose_A: bool = False, transpose_B: bool = False, policy: object = None,
    clear_accum: object = False, mbar: object = None, use_2cta: bool = False,
) -> ir.Call:  # fmt: skip
    """T.gemm that arrives at a barrier when it is over. Into registers, without a barrier, it is T.gemm: a GPU's matrix
    unit leaves only what is in its own memory unfinished. Raises Unsupported for products of two blocks."""
    callee = "T.tcgen05_gemm"
    if use_2cta:
        raise unsupported(f"{callee} of two blocks", "let each block compute its own products")
    barrier = [] if mbar is None else [_barrier(callee, mbar)]
    is_unfinished = bool(barrier) or _is_in_tensor_memory(C, callee)
    attrs = {tl.ASYNCHRONOUS: 1} if is_unfinished else {}
    return product(callee, (A, B, C), (transpose_A, transpose_B), policy, clear_accum, attrs, barrier)


def _is_in_tensor_memory(block: object, callee: str) -> bool:
    builder = current(callee)
    return builder.views.base_of(as_region(block, callee).source) in builder.tensor_memory


def tcgen05_mma_arrive(mbar: object, arrive_2cta: object = None) -> ir.Call:
    """Arrive at a barrier when all products of the group so far are over."""
    if arrive_2cta:
        raise unsupported("T.tcgen05_mma_arrive of two blocks", "let each block compute its own products")
    return statement_call(tl.GEMM_ARRIVE.name, [_barrier("T.tcgen05_mma_arrive", mbar)])


@dataclass(frozen=True)
class TensorMemory(AllocationRequest):
    """A block in the memory of a GPU's matrix unit, which all threads see."""

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        span = builder.tvm_span()
        statement = allocation(builder.unused(name), self.shape, self.dtype, self.scope, span, {TENSOR_MEMORY: 1})
        builder.emit(statement)
        builder.tensor_memory.add(statement.buffer)
        return statement.buffer


def alloc_tmem(shape: object, dtype: object = "float32", **_hints: object) -> AllocationRequest:
    """Allocate a block in the memory of a GPU's matrix unit: on a Tensix core, DST registers or a circular buffer."""
    fragment = alloc_fragment(shape, dtype)
    return TensorMemory(fragment.shape, fragment.dtype, fragment.scope)
