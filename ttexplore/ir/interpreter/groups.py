"""Groups of threads that wait for each other, as a kernel has them before its lowering: barriers and meetings.

Each group is a function of its own; all share the core's arrays. Copies and products are over at once, which is one of
the times at which a GPU may end them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ttexplore.ir.interpreter.barriers import Barrier, BarrierWait
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.waits import KernelWait
from ttexplore.ops import language as tl


def _until(core: Core, wait: BarrierWait) -> Iterator[KernelWait]:
    site = core.where.place
    while not wait.is_over():
        yield wait
        if site is not None:
            core.where.reach(site)


def _wait(core: Core, name: str, number: int, parity: int) -> Iterator[KernelWait]:
    yield from _until(core, BarrierWait(core.meetings.barriers[name, int(number)], int(parity), 0, core.where.place))


def _arrive(core: Core, threads: int, name: str, number: int) -> Iterator[KernelWait]:
    core.meetings.barriers[name, int(number)].arrive(threads)
    return iter(())


def _gemm_arrive(core: Core, name: str, number: int) -> Iterator[KernelWait]:
    return _arrive(core, 1, name, number)


def _gemm_wait(core: Core, pending: int) -> Iterator[KernelWait]:
    return iter(())


def _meet(core: Core, key: tuple[str, int], count: int, arriving: int) -> Iterator[KernelWait]:
    barrier = core.meetings.met.setdefault(key, Barrier(key[0], count))
    wait = BarrierWait(barrier, None, barrier.phases, core.where.place)
    barrier.arrive(arriving)
    yield from _until(core, wait)


def _rendezvous(core: Core, groups: int) -> Iterator[KernelWait]:
    return _meet(core, ("the other threads", groups), groups.bit_count(), 1)


def _sync(core: Core, arriving: int, number: int, threads: int) -> Iterator[KernelWait]:
    return _meet(core, ("T.sync_threads()", number), threads, arriving)


# By the names that TIR has for them. Of a barrier they are given the name and the number.
GROUP_STATEMENTS: dict[str, Callable[..., Iterator[Any]]] = {
    tl.BARRIER_WAIT.name: _wait, tl.BARRIER_ARRIVE.name: _arrive, tl.GEMM_WAIT.name: _gemm_wait,
    tl.GEMM_ARRIVE.name: _gemm_arrive, tl.SYNC_THREADS.name: _sync, tl.RENDEZVOUS.name: _rendezvous,
}  # fmt: skip
