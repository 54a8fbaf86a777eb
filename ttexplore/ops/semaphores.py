"""Cores that hand blocks to one another: semaphores, and multicasts to rectangles of cores."""

from __future__ import annotations

from ttexplore.ops.op import Op, Operand, circular_buffer, integer, slot

_SEMAPHORE = "api/dataflow/noc_semaphore.h"
# What names a rectangle of cores on the NoC.
CORNERS = ("first_x", "first_y", "last_x", "last_y")


def semaphore(name: str = "semaphore") -> Operand:
    return Operand(name, "semaphore")


def _rectangle() -> tuple[Operand, ...]:
    """The corners of a rectangle of cores, and how many cores it has besides this one."""
    return (*map(integer, CORNERS), integer("receivers"))


SEMAPHORE_SET = Op(
    "semaphore_set",
    (semaphore(), integer("value")),
    "{semaphore}.set({value})",
    _SEMAPHORE,
    "sync",
    role="reader",
)
SEMAPHORE_WAIT = Op(
    "semaphore_wait",
    (semaphore(), integer("value")),
    "{semaphore}.wait({value})",
    _SEMAPHORE,
    "sync",
    role="reader",
    waits=True,
)
SEMAPHORE_UP = Op(
    "semaphore_up",
    (semaphore(), integer("x"), integer("y")),
    "{semaphore}.up(noc, {x}, {y}, 1)",
    _SEMAPHORE,
    "sync",
    role="reader",
    note="adds 1 to the semaphore of another core",
)
RECEIVE_SENT = Op(
    "receive_sent",
    (semaphore(), circular_buffer("cb", "write"), integer("count")),
    "{semaphore}.wait(1)",
    _SEMAPHORE,
    "sync",
    role="reader",
    waits=True,
    note="waits until another core has sent the block",
)

_SENT = (
    "noc.async_write_multicast{options}(CoreLocalMem<uint32_t>({{cb.buffer}}.get_write_ptr()), {{cb.buffer}}, "
    "{{tiles}}, {{receivers}}{more}, {{{{.offset_bytes = 0}}}}, "
    "{{{{.noc_x_start = {{first_x}}, .noc_y_start = {{first_y}}, .noc_x_end = {{last_x}}, "
    ".noc_y_end = {{last_y}}}}}}, true)"
)
_TOLD = (
    "{{semaphore}}.set_multicast{options}(noc, {{first_x}}, {{first_y}}, {{last_x}}, {{last_y}}, {{receivers}}{more})"
)
_INCLUDED = "<NocOptions::MCAST_INCL_SRC>"


def _multicasts(suffix: str, options: str, more: str, note: str) -> tuple[Op, Op]:
    # The tiles of a block print as bytes, as a tile's place does.
    block = Op(
        f"noc_multicast{suffix}",
        (circular_buffer("cb", "update"), slot("tiles", "cb"), *_rectangle()),
        _SENT.format(options=options, more=more),
        "api/core_local_mem.h",
        "noc",
        role="reader",
        note=f"sends a block to the same place of other cores, {note}; the semaphore's multicast must follow",
    )
    flag = Op(
        f"semaphore_multicast{suffix}",
        (semaphore(), *_rectangle()),
        _TOLD.format(options=options, more=more),
        _SEMAPHORE,
        "noc",
        role="reader",
        note=f"sets the semaphore of other cores to this core's, {note}; it arrives after the block before it",
    )
    return block, flag


NOC_MULTICAST, SEMAPHORE_MULTICAST = _multicasts("", "", "", "none of which is the sender")
# Simulated chips differ where a sender is in the rectangle but left out, so it sends to itself as well.
NOC_MULTICAST_TO_ALL, SEMAPHORE_MULTICAST_TO_ALL = _multicasts(
    "_to_all", _INCLUDED, " + 1", "one of which is the sender"
)

NOC_SEND_BLOCK = Op(
    "noc_send_block",
    (
        circular_buffer("cb"), slot("tiles", "cb"), circular_buffer("into", "write"), integer("x"), integer("y"),
    ),
    "noc.async_write({cb.buffer}, UnicastEndpoint{{}}, {tiles}, {{.offset_bytes = 0}}, "
    "{{.noc_x = {x}, .noc_y = {y}, .addr = {into.buffer}.get_write_ptr()}})",
    "api/dataflow/endpoints.h",
    "noc",
    role="writer",
    note="sends a block to a circular buffer of another core: to the place where this core's own has room, which is "
    "the same because the buffer holds one block and both push as many",
)  # fmt: skip

NOC_FULL_BARRIER = Op("noc_full_barrier", (), "noc.async_full_barrier()", "api/dataflow/noc.h", "noc", role="reader")

BLOCK_MULTICASTS = (NOC_MULTICAST, NOC_MULTICAST_TO_ALL)
SEMAPHORE_MULTICASTS = (SEMAPHORE_MULTICAST, SEMAPHORE_MULTICAST_TO_ALL)

SEMAPHORE_OPS = (
    SEMAPHORE_SET,
    SEMAPHORE_WAIT,
    SEMAPHORE_UP,
    RECEIVE_SENT,
    *BLOCK_MULTICASTS,
    *SEMAPHORE_MULTICASTS,
    NOC_SEND_BLOCK,
    NOC_FULL_BARRIER,
)
