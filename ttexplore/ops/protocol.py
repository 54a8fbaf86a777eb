"""The protocols: circular buffers, NoC transfers, DST sections, start-up and data-format changes."""

from __future__ import annotations

import numpy as np

from ttexplore.ops.costs import ELEMENT_CYCLES
from ttexplore.ops.op import Op, Tile, circular_buffer, integer, page, slot, tensor

_DATAFLOW_BUFFER = "api/dataflow/dataflow_buffer.h"
_REGISTERS = "api/compute/reg_api.h"
_RECONFIG = "api/compute/reconfig_data_format.h"


def _buffer_call(name: str, method: str, *, waits: bool = False) -> Op:
    return Op(
        name,
        (circular_buffer("cb", "update"), integer("count")),
        f"{{cb.buffer}}.{method}({{count}})",
        _DATAFLOW_BUFFER,
        "sync",
        waits=waits,
    )


CB_RESERVE_BACK = _buffer_call("cb_reserve_back", "reserve_back", waits=True)
CB_PUSH_BACK = _buffer_call("cb_push_back", "push_back")
CB_WAIT_FRONT = _buffer_call("cb_wait_front", "wait_front", waits=True)
CB_POP_FRONT = _buffer_call("cb_pop_front", "pop_front")

NOC_READ_TILE = Op(
    "noc_read_tile",
    (tensor("source", "read"), page("page", "source"), circular_buffer("cb", "write"), slot("slot", "cb")),
    "noc.async_read({source}, {cb.buffer}, {cb.page_bytes}, {{.page_id = {page}}}, {{.offset_bytes = {slot}}})",
    "api/tensor/noc_traits.h",
    "noc",
)
NOC_WRITE_TILE = Op(
    "noc_write_tile",
    (circular_buffer("cb"), slot("slot", "cb"), tensor("target", "write"), page("page", "target")),
    "noc.async_write({cb.buffer}, {target}, {cb.page_bytes}, {{.offset_bytes = {slot}}}, {{.page_id = {page}}})",
    "api/tensor/noc_traits.h",
    "noc",
)
NOC_READ_PART = Op(
    "noc_read_part",
    (
        tensor("source", "read"), page("page", "source"), integer("page_offset_bytes"), circular_buffer("cb", "write"),
        slot("slot", "cb"), integer("slot_offset_bytes"), integer("count_bytes"),
    ),
    "noc.async_read({source}, {cb.buffer}, {count_bytes}, {{.page_id = {page}, .offset_bytes = {page_offset_bytes}}}, "
    "{{.offset_bytes = {slot} + {slot_offset_bytes}}})",
    "api/tensor/noc_traits.h",
    "noc",
    note="a part of a face; both addresses must be equal modulo the alignment of the memory that is read",
)  # fmt: skip
NOC_READ_ELEMENT = Op(
    "noc_read_element",
    (
        tensor("source", "read"), page("page", "source"), integer("page_offset_bytes"), circular_buffer("cb", "write"),
        slot("slot", "cb"), integer("slot_offset_bytes"), circular_buffer("around", "write"),
        slot("around_slot", "around"), integer("around_bytes"),
        integer("count_bytes"),
    ),
    "read_element(noc, {source}, {page}, {page_offset_bytes}, {around.buffer}, {around_slot}, "
    "{around_bytes}, {cb.buffer}.get_write_ptr() + {slot} + {slot_offset_bytes}, {count_bytes})",
    "api/tensor/noc_traits.h",
    "noc",
    note="one element, whose address agrees with nothing: what lies around it arrives first, and is waited for",
    functions=("copy_element", "read_element"),
    cycles=ELEMENT_CYCLES,
)  # fmt: skip
NOC_WRITE_PART = Op(
    "noc_write_part",
    (
        circular_buffer("cb"), slot("slot", "cb"), integer("slot_offset_bytes"), tensor("target", "write"),
        page("page", "target"), integer("page_offset_bytes"), integer("count_bytes"),
    ),
    "noc.async_write({cb.buffer}, {target}, {count_bytes}, {{.offset_bytes = {slot} + {slot_offset_bytes}}}, "
    "{{.page_id = {page}, .offset_bytes = {page_offset_bytes}}})",
    "api/tensor/noc_traits.h",
    "noc",
)  # fmt: skip
NOC_WRITE_ELEMENT = Op(
    "noc_write_element",
    (
        circular_buffer("cb"), slot("slot", "cb"), integer("slot_offset_bytes"), circular_buffer("aligned", "update"),
        slot("aligned_slot", "aligned"), tensor("target", "write"), page("page", "target"),
        integer("page_offset_bytes"), integer("count_bytes"),
    ),
    "write_element(noc, {cb.buffer}.get_read_ptr() + {slot} + {slot_offset_bytes}, {aligned.buffer}.get_write_ptr() + "
    "{aligned_slot}, {target}, {page}, {page_offset_bytes}, {count_bytes})",
    "api/core_local_mem.h",
    "noc",
    note="one element and nothing around it, so that other cores may write its neighbours: it is copied to a place "
    "whose address is equal to its own modulo 16 first",
    functions=("copy_element", "write_element"),
    cycles=ELEMENT_CYCLES,
)  # fmt: skip
MOVE_ELEMENT = Op(
    "move_element",
    (
        circular_buffer("source"), slot("slot", "source"), integer("slot_offset_bytes"), circular_buffer("cb", "write"),
        slot("cb_slot", "cb"), integer("cb_offset_bytes"), integer("count_bytes"),
    ),
    "copy_element({source.buffer}.get_read_ptr() + {slot} + {slot_offset_bytes}, {cb.buffer}.get_write_ptr() + "
    "{cb_slot} + {cb_offset_bytes}, {count_bytes})",
    _DATAFLOW_BUFFER,
    "riscv",
    role="writer",
    note="one element from one circular buffer to another, exact in every format",
    functions=("copy_element",),
    cycles=ELEMENT_CYCLES,
)  # fmt: skip
REFRESH_L1 = Op(
    "refresh_l1",
    (),
    "invalidate_l1_cache()",
    "api/dataflow/dataflow_api.h",
    "riscv",
    role="writer",
    note="forgets what the processor has cached of L1, so that it reads what the packer wrote; Wormhole has no cache",
    cycles=20,
)
NOC_WRITE_ZEROS = Op(
    "noc_write_zeros",
    (circular_buffer("cb", "write"), slot("slot", "cb")),
    "noc.async_write_zeros({cb.buffer}, {cb.page_bytes}, {{.offset_bytes = {slot}}})",
    "api/dataflow/noc.h",
    "noc",
    note="a tile of zeros, copied from the firmware's zeros",
)
NOC_ZEROS_BARRIER = Op("noc_zeros_barrier", (), "noc.write_zeros_l1_barrier()", "api/dataflow/noc.h", "noc")
NOC_READ_BARRIER = Op("noc_read_barrier", (), "noc.async_read_barrier()", "api/dataflow/noc.h", "noc")
NOC_WRITES_FLUSHED = Op("noc_writes_flushed", (), "noc.async_writes_flushed()", "api/dataflow/noc.h", "noc")
NOC_WRITE_BARRIER = Op("noc_write_barrier", (), "noc.async_write_barrier()", "api/dataflow/noc.h", "noc")


def _numbers(axis: int) -> Tile:
    """The row (axis 0) or column (axis 1) number of each element of a tile."""
    numbers = np.arange(32, dtype=np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
    return np.broadcast_to(numbers, (32, 32))


WRITE_INDEX_TILE = Op(
    "write_index_tile",
    (circular_buffer("cb", "write"), slot("slot", "cb"), integer("axis")),
    "write_index_tile({cb.buffer}.get_write_ptr() + {slot}, {axis})",
    _DATAFLOW_BUFFER,
    "riscv",
    note="a bfloat16 tile with the row (axis 0) or column (axis 1) number of each element, exact in bfloat16",
    meaning=_numbers,
    functions=("float_bits", "write_index_tile"),
    cycles=1024 * 10,
)

TILE_REGS_ACQUIRE = Op("tile_regs_acquire", (), "tile_regs_acquire()", _REGISTERS, "sync")
TILE_REGS_COMMIT = Op("tile_regs_commit", (), "tile_regs_commit()", _REGISTERS, "sync")
TILE_REGS_WAIT = Op("tile_regs_wait", (), "tile_regs_wait()", _REGISTERS, "sync")
TILE_REGS_RELEASE = Op("tile_regs_release", (), "tile_regs_release()", _REGISTERS, "sync")

COMPUTE_STARTUP = Op(
    "compute_startup",
    (circular_buffer("in0"), circular_buffer("in1"), circular_buffer("out")),
    "compute_kernel_hw_startup({in0}, {in1}, {out})",
    "api/compute/compute_kernel_hw_startup.h",
    "config",
    note="once, before everything else; sets the formats of SrcA (in0), SrcB (in1) and the packer",
)
COMPUTE_STARTUP_MATMUL = Op(
    "compute_startup_matmul",
    (circular_buffer("in0"), circular_buffer("in1"), circular_buffer("out")),
    "compute_kernel_hw_startup<SrcOrder::Reverse>({in0}, {in1}, {out})",
    "api/compute/compute_kernel_hw_startup.h",
    "config",
    note="for kernels that start with a matmul: in0 goes to SrcB, in1 to SrcA",
)
RECONFIG_SOURCE_A = Op(
    "reconfig_source_a",
    (circular_buffer("old"), circular_buffer("new")),
    "reconfig_data_format_srca({old}, {new})",
    _RECONFIG,
    "config",
)
RECONFIG_SOURCE_B = Op(
    "reconfig_source_b",
    (circular_buffer("old"), circular_buffer("new")),
    "reconfig_data_format_srcb({old}, {new})",
    _RECONFIG,
    "config",
)
RECONFIG_PACK = Op(
    "reconfig_pack",
    (circular_buffer("old"), circular_buffer("new")),
    "pack_reconfig_data_format({old}, {new})",
    "api/compute/pack.h",
    "config",
)
SET_SOURCE_A = Op("set_source_a", (circular_buffer("new"),), "reconfig_data_format_srca({new})", _RECONFIG, "config")
SET_SOURCE_B = Op("set_source_b", (circular_buffer("new"),), "reconfig_data_format_srcb({new})", _RECONFIG, "config")
SET_PACK = Op("set_pack", (circular_buffer("new"),), "pack_reconfig_data_format({new})", "api/compute/pack.h", "config")

CONFIGURATION_OPS = (
    COMPUTE_STARTUP,
    COMPUTE_STARTUP_MATMUL,
    RECONFIG_SOURCE_A,
    RECONFIG_SOURCE_B,
    RECONFIG_PACK,
    SET_SOURCE_A,
    SET_SOURCE_B,
    SET_PACK,
)

PROTOCOL_OPS = (
    CB_RESERVE_BACK,
    CB_PUSH_BACK,
    CB_WAIT_FRONT,
    CB_POP_FRONT,
    NOC_READ_TILE,
    NOC_WRITE_TILE,
    NOC_READ_PART,
    NOC_READ_ELEMENT,
    NOC_WRITE_PART,
    NOC_WRITE_ELEMENT,
    MOVE_ELEMENT,
    REFRESH_L1,
    NOC_WRITE_ZEROS,
    NOC_ZEROS_BARRIER,
    NOC_READ_BARRIER,
    NOC_WRITES_FLUSHED,
    NOC_WRITE_BARRIER,
    WRITE_INDEX_TILE,
    TILE_REGS_ACQUIRE,
    TILE_REGS_COMMIT,
    TILE_REGS_WAIT,
    TILE_REGS_RELEASE,
    *CONFIGURATION_OPS,
)
