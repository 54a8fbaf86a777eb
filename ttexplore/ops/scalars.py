"""Numbers that kernels of one core share: elements of index tensors that decide branches, lengths and places.

The reader reads the element, and hands the number on through circular buffers to the other kernels that need it: all
three take the same decision because it is made once. Operations with a result are bound to a name in the IR.
"""

from __future__ import annotations

from ttexplore.ops.op import Op, Operand, circular_buffer, condition, flag, integer, page, slot, tensor, tile

_BUFFER = "api/dataflow/dataflow_buffer.h"

READ_NUMBER = Op(
    "read_number",
    (tensor("source", "read"), page("page", "source"), integer("page_offset_bytes")),
    "", "", "whole block", role="reader", has_result=True,
)  # fmt: skip
READ_ANY = Op(
    "read_any",
    (
        tensor("source", "read"), page("page", "source"), integer("page_offset_bytes"), integer("index"),
        integer("count"), flag("of_all"), Operand("condition", "int", optional=True),
    ),
    "", "", "whole block", role="reader", has_result=True,
    note="1 if any element of a block is not 0, or all are; their places are computed from a variable, which is their "
    "number in the block",
)  # fmt: skip
# The operations that give a number that the reader hands on.
READ_NUMBERS = (READ_NUMBER, READ_ANY)
SEND_NUMBER = Op(
    "send_number", (circular_buffer("cb", "write"), integer("number")), "", "", "whole block", role="reader", waits=True
)
RECEIVE_NUMBER = Op(
    "receive_number", (circular_buffer("cb"),), "", "", "whole block", waits=True, has_result=True
)  # fmt: skip
NOC_READ_NUMBER = Op(
    "noc_read_number",
    (
        tensor("source", "read"), page("page", "source"), integer("page_offset_bytes"),
        circular_buffer("around", "write"), slot("around_slot", "around"), integer("around_bytes"),
        integer("count_bytes"),
    ),
    "read_number(noc, {source}, {page}, {page_offset_bytes}, {around.buffer}, {around_slot}, {around_bytes}, "
    "{count_bytes})",
    "api/tensor/noc_traits.h",
    "noc",
    role="reader",
    note="a whole number: an int32, or a bfloat16 that holds one; what lies around it arrives first",
    functions=("whole_number", "read_number"),
    has_result=True,
    cycles=20,
)  # fmt: skip
WRITE_NUMBER = Op(
    "write_number",
    (circular_buffer("cb", "write"), slot("slot", "cb"), integer("number")),
    "*reinterpret_cast<volatile tt_l1_ptr uint32_t*>({cb.buffer}.get_write_ptr() + {slot}) = {number}",
    _BUFFER,
    "riscv",
    role="reader",
    note="the number is the first word of the page",
    cycles=10,
)
TILE_NUMBER = Op(
    "tile_number",
    (circular_buffer("cb"), tile("tile", "cb")),
    "{cb.buffer}.read_tile_value({tile}, 0)",
    _BUFFER,
    "riscv",
    note="the first word of a page: the unpacker's processor reads it, and the two others get it from there",
    has_result=True,
    cycles=60,
)
L1_NUMBER = Op(
    "l1_number",
    (circular_buffer("cb"), slot("slot", "cb")),
    "*reinterpret_cast<volatile tt_l1_ptr uint32_t*>({cb.buffer}.get_read_ptr() + {slot})",
    _BUFFER,
    "riscv",
    role="writer",
    note="the first word of a page",
    has_result=True,
    cycles=10,
)
_CHECK = "the place of a transfer depends on elements of tensors, so that it is checked when the kernel runs"
CHECK_READ = Op(
    "check_read", (condition("holds"),), "ASSERT({holds})", "api/debug/assert.h", "riscv", role="reader", cycles=4,
    note=_CHECK,
)  # fmt: skip
CHECK_WRITE = Op(
    "check_write", (condition("holds"),), "ASSERT({holds})", "api/debug/assert.h", "riscv", role="writer", cycles=4,
    note=_CHECK,
)  # fmt: skip

SCALAR_OPS = (
    READ_NUMBER,
    READ_ANY,
    SEND_NUMBER,
    RECEIVE_NUMBER,
    NOC_READ_NUMBER,
    WRITE_NUMBER,
    TILE_NUMBER,
    L1_NUMBER,
    CHECK_READ,
    CHECK_WRITE,
)
