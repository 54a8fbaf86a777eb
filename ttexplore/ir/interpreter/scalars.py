"""Numbers that kernels of one core share: elements of tensors, and how they are handed on."""

from __future__ import annotations

import numpy as np

from ttexplore.errors import KernelError
from ttexplore.ir.interpreter.arrays import Array
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.tiles import as_faces
from ttexplore.ir.interpreter.transfers import read_barrier
from ttexplore.ir.interpreter.waits import KernelWait


def read_number(core: Core, tensor: str, page: int, offset: int) -> int:
    """The whole number at an offset, in bytes, of a page."""
    layout, elements = core.plan.layout(tensor), core.page(tensor, page)
    flat = elements if layout.page == "row" else as_faces(elements)
    first = offset // layout.element_bytes
    if not 0 <= first < flat.size:
        raise core.where.fault(
            "V013",
            f"element {first} of a page of {tensor} is accessed, which has {flat.size}",
            "check the index",
        )
    return int(flat[first])


def read_any(
    core: Core, tensor: str, pages: Array, offsets: Array, _index: Array, count: int, of_all: int,
    inside: Array | int = 1,
) -> int:  # fmt: skip
    """Whether any of some elements is not 0, or all are. Those that are not inside of the tensor are 0."""
    addresses = np.broadcast_arrays(np.arange(count), pages, offsets, inside)[1:]
    tests = (bool(is_inside) and read_number(core, tensor, int(page), int(offset)) != 0
             for page, offset, is_inside in zip(*addresses, strict=True))  # fmt: skip
    return int(all(tests) if of_all else any(tests))


def noc_read_number(
    core: Core, tensor: str, page: int, offset: int, around: str, around_slot: int, around_bytes: int, count: int
) -> int:  # fmt: skip
    """The same; what lies around the element arrives first, and all else that is on its way, too."""
    core.queues[around].to_fill(around_slot)
    core.queues[around].put(around_slot, np.zeros((32, 32), np.float32))
    read_barrier(core)
    return read_number(core, tensor, page, offset)


def _page_of(number: int) -> Array:
    page = np.zeros((32, 32), np.int32)
    page[0, 0] = np.uint32(number & 0xFFFFFFFF).astype(np.int32)
    return page


def send_number(core: Core, cb: str, number: int) -> KernelWait | None:
    def write(block: Array) -> None:
        block[0] = _page_of(number)

    return core.blocks[cb].fill(write)


def receive_number(core: Core, cb: str) -> KernelWait | int:
    block = core.blocks[cb].take()
    return int(block[0, 0, 0]) if isinstance(block, np.ndarray) else block


def write_number(core: Core, cb: str, slot: int, number: int) -> None:
    core.queues[cb].put(slot, _page_of(number))


def first_word(core: Core, cb: str, slot: int) -> int:
    return int(core.queues[cb].get(slot)[0, 0])


def check(core: Core, holds: int) -> None:
    """Raises KernelError where a place that an element of a tensor decides is outside."""
    if not holds:
        raise KernelError(
            "K001",
            "a place that elements of tensors decide is outside of its tensor",
            hint="check the elements, or test them: `if index >= 0:`; those that T.Parallel computes with are at most "
            "2^20",
            span=core.span,
        )
