"""Cores that hand blocks to one another: semaphores, and multicasts into the circular buffers of other cores.

A block lies in the receiver's buffer at once, but the receiver knows only by its semaphore.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.transfers import read_barrier, write_barrier
from ttexplore.ir.interpreter.waits import KernelWait, Remedy
from ttexplore.ir.kernel import SourceLocation
from ttexplore.plan import FIRST_CORNERS, NOC_OF_ROLE


@dataclass(frozen=True, slots=True)
class SemaphoreWait:
    """Until a semaphore of the core has a value, which other cores give it."""

    core: Core
    number: int
    value: int
    place: SourceLocation | None
    crosses_cores: bool = True

    def is_over(self) -> bool:
        return self.core.semaphores[self.number] == self.value

    def __str__(self) -> str:
        return f"for {_name(self.core, self.number)} to be {self.value}, is {self.core.semaphores[self.number]}"

    def remedy(self, running: Collection[str]) -> Remedy | None:
        name = _name(self.core, self.number)
        return Remedy(f"let other cores set {name} to {self.value}: compare who sends with who receives", False)


def _name(core: Core, number: int) -> str:
    return dict(core.plan.semaphores)[number]


def set_semaphore(core: Core, number: int, value: int) -> None:
    core.semaphores[number] = value


def wait(core: Core, number: int, value: int) -> KernelWait | None:
    waits = SemaphoreWait(core, number, value, core.where.place)
    return None if waits.is_over() else waits


def up(core: Core, number: int, x: int, y: int) -> None:
    if core.where.role in core.on_the_way:
        raise core.where.fault(
            "V017",
            f"{_name(core, number)} is raised at another core while the block sent to it is on its way",
            "put noc_write_barrier before it",
        )
    _other(core, x, y).semaphores[number] += 1
    core.in_flight.add(core.where.role)


def multicast(core: Core, cb: str, count: int, *rectangle: int) -> None:
    """Send a block to the same place of other cores. Raises VerifyError where that is not free there."""
    _send(core, cb, count, _receivers(core, *rectangle, with_sender=False))


def multicast_to_all(core: Core, cb: str, count: int, *rectangle: int) -> None:
    _send(core, cb, count, _receivers(core, *rectangle, with_sender=True))


def _send(core: Core, cb: str, count: int, receivers: list[Core]) -> None:
    queue = core.queues[cb]
    if queue.unread:
        raise core.where.fault(
            "V011", f"{cb} is sent before the reads into it have arrived", "call noc_read_barrier before it"
        )
    for index in range(count):
        queue.to_fill(index)
    for receiver in receivers:
        into = receiver.queues.get(cb)
        if into is None or into.reserved < count or into.back != queue.back:
            there = "no room" if into is None or into.reserved < count else f"room at {into.back}"
            raise core.where.fault(
                "V017",
                f"{count} tiles of {cb} are sent to {receiver.name}, to position {queue.back}, but it has {there} "
                "reserved",
                "let receivers reserve room before they tell the sender, and the sender wait for all of them",
            )
        for index in range(count):
            into.to_fill(index)[...] = queue.to_fill(index)
        if receiver is not core:
            receiver.sent.add(cb)
    queue.unsent = True
    core.in_flight.add(core.where.role)


def send_block(core: Core, cb: str, count: int, into: str, x: int, y: int) -> None:
    """Send a block to a buffer of another core, to where this core's own buffer of that name has room next. Raises
    VerifyError where that is not free there."""
    queue, local, receiver = core.queues[cb], core.queues[into], _other(core, x, y)
    there = receiver.queues.get(into)
    room = 0 if there is None else there.reserved
    if there is None or room < count or there.back != local.back or receiver is core:
        has = f"{room} tiles reserved" + ("" if there is None else f" at {there.back}")
        raise core.where.fault(
            "V017",
            f"{count} tiles of {cb} are sent to {into} of {receiver.name}, to position {local.back}, but it has {has}",
            "let the next core reserve room before it says so, and the sender wait for that",
        )
    for index in range(count):
        there.to_fill(index)[...] = queue.get(index)
    receiver.sent.add(into)
    queue.unsent = True
    core.in_flight.add(core.where.role)
    core.on_the_way.add(core.where.role)


def receive(core: Core, number: int, cb: str, count: int) -> KernelWait | None:
    """Wait until a block has arrived. Raises VerifyError where the semaphore says so of one that was not sent."""
    if (waits := wait(core, number, 1)) is not None:
        return waits
    if cb not in core.sent:
        raise core.where.fault(
            "V017",
            f"{_name(core, number)} says that a block of {cb} has arrived, but none was sent",
            "set the semaphore to 0 before the sender is told that there is room",
        )
    core.sent.remove(cb)
    return None


def multicast_semaphore(core: Core, number: int, *rectangle: int) -> None:
    _tell(core, number, _receivers(core, *rectangle, with_sender=False))


def multicast_semaphore_to_all(core: Core, number: int, *rectangle: int) -> None:
    _tell(core, number, _receivers(core, *rectangle, with_sender=True))


def _tell(core: Core, number: int, receivers: list[Core]) -> None:
    for receiver in receivers:
        receiver.semaphores[number] = core.semaphores[number]
    core.in_flight.add(core.where.role)


def full_barrier(core: Core) -> None:
    read_barrier(core)
    write_barrier(core)
    core.in_flight.discard(core.where.role)


def _receivers(
    core: Core, first_x: int, first_y: int, last_x: int, last_y: int, receivers: int, *, with_sender: bool
) -> list[Core]:  # fmt: skip
    """The cores of a rectangle, whose corners come in the order of the kernel's NoC. Raises VerifyError where it has
    another number of them."""
    corners = f"({first_x}, {first_y}) to ({last_x}, {last_y})"
    noc = NOC_OF_ROLE[core.where.role]
    if noc == 1:
        first_x, first_y, last_x, last_y = last_x, last_y, first_x, first_y
    if first_x > last_x or first_y > last_y:
        raise core.where.fault(
            "V017", f"a multicast from {corners}", f"name {FIRST_CORNERS[noc]} first, as NoC {noc} goes"
        )
    cores = [_other(core, x, y) for y in range(first_y, last_y + 1) for x in range(first_x, last_x + 1)]
    if (core in cores) != with_sender:
        verb = "leaves out" if with_sender else "includes"
        raise core.where.fault(
            "V017", f"a multicast to {corners} {verb} the sender", "use the operation for this rectangle"
        )
    if len(cores) - with_sender != receivers:
        raise core.where.fault(
            "V017",
            f"a multicast to {corners} names {receivers} receivers, but there are {len(cores) - with_sender}",
            "count the cores of the rectangle without the sender",
        )
    return cores


def _other(core: Core, x: int, y: int) -> Core:
    """A core that runs. Raises VerifyError where none does."""
    target = core.run.cores.get((x, y))
    if target is None:
        message = f"core ({x}, {y}) is told of a block, but does not run"
        raise core.where.fault("V017", message, "send to cores that have as many work items")
    return target
