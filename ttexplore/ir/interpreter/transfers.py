"""Transfers between tensors and circular buffers over the NoC, and the barriers that wait for them."""

from __future__ import annotations

import numpy as np

from ttexplore.ir.interpreter.arrays import Array
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.tiles import as_faces, from_faces
from ttexplore.ops.protocol import WRITE_INDEX_TILE
from ttexplore.ops.storage import rounded
from ttexplore.plan import DATA_FORMATS, FACE


def read_tile(core: Core, tensor: str, page: int, cb: str, slot: int) -> None:
    queue = core.queues[cb]
    _check_arrived(core, tensor)
    queue.put(slot, core.page(tensor, page))
    queue.unread = True


def write_tile(core: Core, cb: str, slot: int, tensor: str, page: int) -> None:
    queue = core.queues[cb]
    core.set_page(tensor, page, queue.get(slot))
    queue.unsent = True
    core.unwritten.add(tensor)


def read_part(
    core: Core, tensor: str, page: int, offset: int, cb: str, slot: int, slot_offset: int, count: int
) -> None:  # fmt: skip
    """Elements of a face, or of a row; offsets and count are bytes."""
    queue = core.queues[cb]
    element = DATA_FORMATS[queue.plan.data_format].tile_bytes // 1024
    first, size = slot_offset // element, count // element
    queue.unread = True
    _check_arrived(core, tensor)
    if queue.plan.row_tiles:
        memory = queue.elements_to_fill(slot * 1024 + first, size)
        memory[...] = rounded(_part(core, tensor, page, offset // element, size), queue.dtype)
        return
    faces = as_faces(queue.to_fill(slot))
    faces[first : first + size] = _part(core, tensor, page, offset // element, size)
    queue.put(slot, from_faces(faces))


def read_element(
    core: Core, tensor: str, page: int, offset: int, cb: str, slot: int, slot_offset: int, around: str,
    around_slot: int, around_bytes: int, count: int,
) -> None:  # fmt: skip
    """One element; what lies around it arrives first. What is on its way arrives, too: the kernel waits for all."""
    queue = core.queues[cb]
    element = DATA_FORMATS[queue.plan.data_format].tile_bytes // 1024
    _check_arrived(core, tensor)
    core.queues[around].to_fill(around_slot)
    faces = as_faces(queue.to_fill(slot))
    faces[slot_offset // element] = _part(core, tensor, page, offset // element, 1)[0]
    queue.put(slot, from_faces(faces))
    read_barrier(core)


def write_part(
    core: Core, cb: str, slot: int, slot_offset: int, tensor: str, page: int, offset: int, count: int
) -> None:  # fmt: skip
    """Elements of a face, or of a row; offsets and count are bytes."""
    queue = core.queues[cb]
    element = DATA_FORMATS[queue.plan.data_format].tile_bytes // 1024
    first, size = slot_offset // element, count // element
    _part(core, tensor, page, offset // element, size)
    by_rows, array = core.plan.layout(tensor).page == "row", core.page(tensor, page)
    elements = array.copy() if by_rows else as_faces(array)
    if queue.plan.row_tiles:
        values = queue.elements_to_send(slot * 1024 + first, size)
    else:
        values = as_faces(queue.get(slot))[first : first + size]
    elements[offset // element : offset // element + size] = values
    core.set_page(tensor, page, elements if by_rows else from_faces(elements))
    queue.unsent = True
    core.unwritten.add(tensor)


def write_element(
    core: Core, cb: str, slot: int, slot_offset: int, aligned: str, aligned_slot: int, tensor: str, page: int,
    offset: int, count: int,
) -> None:  # fmt: skip
    """One element, by way of a place whose address is equal to its own modulo 16."""
    queue = core.queues[cb]
    element = DATA_FORMATS[queue.plan.data_format].tile_bytes // 1024
    core.queues[aligned].to_fill(aligned_slot)
    _part(core, tensor, page, offset // element, 1)
    value = queue.get(slot)[_place(slot_offset // element)]
    at = (offset // element,) if core.plan.layout(tensor).page == "row" else _place(offset // element)
    core.page(tensor, page)[at] = rounded(value, core.dtypes[tensor])
    core.queues[aligned].unsent = queue.unsent = True
    core.unwritten.add(tensor)


def move_element(
    core: Core, source: str, slot: int, slot_offset: int, cb: str, cb_slot: int, cb_offset: int, count: int
) -> None:  # fmt: skip
    """One element from one circular buffer to another."""
    if not (0 <= slot_offset < 1024 * count and 0 <= cb_offset < 1024 * count):
        raise core.where.fault(
            "V013", f"an element at {slot_offset} of a tile is copied to {cb_offset} of one", "check the offsets"
        )
    value = core.queues[source].get(slot)[_place(slot_offset // count)]
    core.queues[cb].to_fill(cb_slot)[_place(cb_offset // count)] = value


def refresh(core: Core) -> None:
    """Nothing is cached here."""


def _place(element: int) -> tuple[int, int]:
    """Row and column of an element of a tile, by its number in memory."""
    face, inside = divmod(element, FACE * FACE)
    return face // 2 * FACE + inside // FACE, face % 2 * FACE + inside % FACE


def _part(core: Core, tensor: str, page: int, first: int, size: int) -> Array:
    """Raises VerifyError where the elements are not all in one face, or in the row."""
    if core.plan.layout(tensor).page == "row":
        row = core.page(tensor, page)
        if first < 0 or first + size > row.size:
            raise core.where.fault(
                "V013",
                f"elements {first} to {first + size} of a row of {tensor} are accessed, but the row has {row.size}",
                "check the offset and the number of elements",
            )
        return row[first : first + size]
    if first < 0 or first % 256 + size > 256 or first + size > 1024:
        raise core.where.fault(
            "V013",
            f"elements {first} to {first + size} of a page of {tensor} are accessed, but they are not in one face",
            "check the offset and the number of elements",
        )
    return as_faces(core.page(tensor, page))[first : first + size]


def _check_arrived(core: Core, tensor: str) -> None:
    """Raises VerifyError where a tensor is read while writes to it are on their way."""
    if tensor in core.unwritten:
        raise core.where.fault(
            "V012", f"{tensor} is read before the writes to it have arrived", "put noc_write_barrier before the read"
        )


def write_zeros(core: Core, cb: str, slot: int) -> None:
    queue = core.queues[cb]
    queue.put(slot, np.zeros((32, 32), np.float32))
    queue.unread = True


def write_index_tile(core: Core, cb: str, slot: int, axis: int) -> None:
    assert WRITE_INDEX_TILE.meaning is not None
    core.queues[cb].put(slot, WRITE_INDEX_TILE.meaning(axis))


def read_barrier(core: Core) -> None:
    """Each kernel waits for its own transfers, on its own NoC."""
    for queue in core.queues.values():
        if queue.producer == core.where.role:
            queue.unread = False


def writes_flushed(core: Core) -> None:
    for queue in core.queues.values():
        # A producer sends its blocks to other cores, a consumer stores them.
        if core.where.role in (queue.producer, queue.consumer):
            queue.unsent = False


def write_barrier(core: Core) -> None:
    writes_flushed(core)
    if core.where.role == "writer":
        core.unwritten.clear()
    core.on_the_way.discard(core.where.role)
