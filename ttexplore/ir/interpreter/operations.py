"""What runs each operation of the table: a function of the core and of the operation's arguments in the IR.

Of a buffer it is given the name, of a dst operand array and slot. One that waits gives what it waits for as long as it
cannot go on, and is called again.
"""

from __future__ import annotations

from collections.abc import Callable

from ttexplore.ir.interpreter import blocks, compute, scalars, semaphores, transfers
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.waits import KernelWait
from ttexplore.ops.blocks import (
    INDEX_BLOCK,
    READ_BLOCK,
    READ_ELEMENTS,
    READ_GATHERED,
    READ_STRIPS,
    REARRANGE,
    RECEIVE_BLOCK,
    SEND_BLOCK,
    TILIZE,
    UNTILIZE,
    WRITE_BLOCK,
    WRITE_ELEMENTS,
    WRITE_STRIPS,
)  # fmt: skip
from ttexplore.ops.matmul import MATMUL_BLOCK
from ttexplore.ops.move import PACK_L1_ACCUMULATE
from ttexplore.ops.op import Form, Op
from ttexplore.ops.protocol import (
    CB_POP_FRONT,
    CB_PUSH_BACK,
    CB_RESERVE_BACK,
    CB_WAIT_FRONT,
    COMPUTE_STARTUP,
    COMPUTE_STARTUP_MATMUL,
    MOVE_ELEMENT,
    NOC_READ_BARRIER,
    NOC_READ_ELEMENT,
    NOC_READ_PART,
    NOC_READ_TILE,
    NOC_WRITE_BARRIER,
    NOC_WRITE_ELEMENT,
    NOC_WRITE_PART,
    NOC_WRITE_TILE,
    NOC_WRITE_ZEROS,
    NOC_WRITES_FLUSHED,
    NOC_ZEROS_BARRIER,
    RECONFIG_PACK,
    RECONFIG_SOURCE_A,
    RECONFIG_SOURCE_B,
    REFRESH_L1,
    SET_PACK,
    SET_SOURCE_A,
    SET_SOURCE_B,
    TILE_REGS_ACQUIRE,
    TILE_REGS_COMMIT,
    TILE_REGS_RELEASE,
    TILE_REGS_WAIT,
    WRITE_INDEX_TILE,
)  # fmt: skip
from ttexplore.ops.reduce import REDUCE_BLOCK_MAX_ROW
from ttexplore.ops.scalars import (
    CHECK_READ,
    CHECK_WRITE,
    L1_NUMBER,
    NOC_READ_NUMBER,
    READ_ANY,
    READ_NUMBER,
    RECEIVE_NUMBER,
    SEND_NUMBER,
    TILE_NUMBER,
    WRITE_NUMBER,
)
from ttexplore.ops.semaphores import (
    NOC_FULL_BARRIER,
    NOC_MULTICAST,
    NOC_MULTICAST_TO_ALL,
    NOC_SEND_BLOCK,
    RECEIVE_SENT,
    SEMAPHORE_MULTICAST,
    SEMAPHORE_MULTICAST_TO_ALL,
    SEMAPHORE_SET,
    SEMAPHORE_UP,
    SEMAPHORE_WAIT,
)

# What an operation with a result gives is that, once it need not wait.
Operation = Callable[..., KernelWait | int | None]


def operation(form: Form) -> Operation:
    """What runs an operation, an init or an uninit of the table. Raises KeyError for an operation that has nothing."""
    if form.phase:
        return compute.initialising(form) if form.phase == "init" else compute.uninitialise
    if form.op in _OPERATIONS:
        return _OPERATIONS[form.op]
    return _ENGINES[form.op.engine](form)


def _reserve(core: Core, cb: str, count: int) -> KernelWait | None:
    return core.queues[cb].reserve(count)


def _push(core: Core, cb: str, count: int) -> None:
    core.queues[cb].push(count)


def _wait(core: Core, cb: str, count: int) -> KernelWait | None:
    return core.queues[cb].wait(count)


def _pop(core: Core, cb: str, count: int) -> None:
    core.queues[cb].pop(count)


_OPERATIONS: dict[Op, Operation] = {
    CB_RESERVE_BACK: _reserve,
    CB_PUSH_BACK: _push,
    CB_WAIT_FRONT: _wait,
    CB_POP_FRONT: _pop,
    NOC_READ_TILE: transfers.read_tile,
    NOC_WRITE_TILE: transfers.write_tile,
    NOC_READ_PART: transfers.read_part,
    NOC_READ_ELEMENT: transfers.read_element,
    NOC_WRITE_PART: transfers.write_part,
    NOC_WRITE_ELEMENT: transfers.write_element,
    NOC_WRITE_ZEROS: transfers.write_zeros,
    NOC_ZEROS_BARRIER: transfers.read_barrier,
    NOC_READ_BARRIER: transfers.read_barrier,
    NOC_WRITES_FLUSHED: transfers.writes_flushed,
    NOC_WRITE_BARRIER: transfers.write_barrier,
    MOVE_ELEMENT: transfers.move_element,
    REFRESH_L1: transfers.refresh,
    WRITE_INDEX_TILE: transfers.write_index_tile,
    TILE_REGS_ACQUIRE: compute.acquire,
    TILE_REGS_COMMIT: compute.commit,
    TILE_REGS_WAIT: compute.wait,
    TILE_REGS_RELEASE: compute.release,
    COMPUTE_STARTUP: compute.startup,
    COMPUTE_STARTUP_MATMUL: compute.startup_matmul,
    RECONFIG_SOURCE_A: compute.reconfiguring("a"),
    RECONFIG_SOURCE_B: compute.reconfiguring("b"),
    RECONFIG_PACK: compute.reconfiguring("pack"),
    SET_SOURCE_A: compute.setting("a"),
    SET_SOURCE_B: compute.setting("b"),
    SET_PACK: compute.setting("pack"),
    PACK_L1_ACCUMULATE: compute.l1_accumulate,
    MATMUL_BLOCK: compute.matmul_block,
    REDUCE_BLOCK_MAX_ROW: compute.reduce_block_max_row,
    READ_BLOCK: blocks.read_block,
    READ_STRIPS: blocks.read_strips,
    READ_ELEMENTS: blocks.read_elements,
    READ_GATHERED: blocks.read_gathered,
    REARRANGE: blocks.rearrange,
    WRITE_BLOCK: blocks.write_block,
    WRITE_STRIPS: blocks.write_strips,
    WRITE_ELEMENTS: blocks.write_elements,
    INDEX_BLOCK: blocks.index_block,
    RECEIVE_BLOCK: blocks.receive_block,
    SEND_BLOCK: blocks.send_block,
    TILIZE: blocks.tilize,
    UNTILIZE: blocks.untilize,
    READ_NUMBER: scalars.read_number,
    READ_ANY: scalars.read_any,
    SEND_NUMBER: scalars.send_number,
    RECEIVE_NUMBER: scalars.receive_number,
    NOC_READ_NUMBER: scalars.noc_read_number,
    WRITE_NUMBER: scalars.write_number,
    TILE_NUMBER: scalars.first_word,
    L1_NUMBER: scalars.first_word,
    SEMAPHORE_SET: semaphores.set_semaphore,
    SEMAPHORE_WAIT: semaphores.wait,
    SEMAPHORE_UP: semaphores.up,
    RECEIVE_SENT: semaphores.receive,
    NOC_MULTICAST: semaphores.multicast,
    NOC_MULTICAST_TO_ALL: semaphores.multicast_to_all,
    SEMAPHORE_MULTICAST: semaphores.multicast_semaphore,
    SEMAPHORE_MULTICAST_TO_ALL: semaphores.multicast_semaphore_to_all,
    NOC_SEND_BLOCK: semaphores.send_block,
    NOC_FULL_BARRIER: semaphores.full_barrier,
    CHECK_READ: scalars.check,
    CHECK_WRITE: scalars.check,
}
# All other operations compute tiles from tiles: their engine says how they are given these.
_ENGINES: dict[str, Callable[[Form], Operation]] = {
    "fpu": compute.computing,
    "sfpu": compute.computing,
    "pack": compute.computing,
    "block": compute.converting,
}
