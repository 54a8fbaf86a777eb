"""The protocol between cores that share an input: one reads each block and sends it, the others receive it.

    tt.read_block(A, A_shared, ...)  ==>  tt.cb_reserve_back(A_shared, 4)
                                          if A_sends:  tt.noc_read_tile(...)
                                          else:        tt.semaphore_set(A_valid, 0)
                                                       tt.semaphore_up(A_ready, A_sender_x, A_sender_y)
                                          tt.noc_read_barrier()
                                          if A_sends:  tt.semaphore_wait(A_ready, A_receivers)
                                                       tt.semaphore_set(A_ready, 0)
                                                       tt.noc_multicast(A_shared, 4, A_first_x, ..., A_receivers)
                                                       tt.semaphore_set(A_valid, 1)
                                                       tt.semaphore_multicast(A_valid, A_first_x, ..., A_receivers)
                                          else:        tt.receive_sent(A_valid, A_shared, 4)
                                          tt.cb_push_back(A_shared, 4)

A receiver says that it has room before it waits for anything, so that blocks of several inputs are on their way at the
same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.build import bind, op, variable, when
from ttexplore.ops.op import CORE_VALUE, Op
from ttexplore.ops.semaphores import (
    NOC_MULTICAST,
    NOC_MULTICAST_TO_ALL,
    SEMAPHORE_MULTICAST,
    SEMAPHORE_MULTICAST_TO_ALL,
)
from ttexplore.plan import NOC_OF_ROLE, KernelRole, SharedInput


class SentBlocks:
    """A shared input in the kernel that loads it: its core values as variables, and the statements around its blocks.

    A multicast names the corners of its rectangle in the order in which its NoC comes to them.
    """

    def __init__(self, shared: SharedInput, role: KernelRole) -> None:
        self.shared = shared
        self.corners = ("first", "last") if NOC_OF_ROLE[role] == 0 else ("last", "first")
        names = (
            "sends",
            "receivers",
            *(f"{core_name}_{axis}" for core_name in ("sender", "first", "last") for axis in "xy"),
        )
        self.values: dict[str, ir.Var] = {name: variable(shared.named(name)) for name in names}

    @property
    def bindings(self) -> list[tirx.Stmt]:
        return [
            bind(core_value, call(CORE_VALUE, [str(core_value.name)], dtype="int32"))
            for core_value in self.values.values()
        ]

    @property
    def _sends(self) -> ir.Expr:
        return tirx.NE(self.values["sends"], tirx.const(0, "int32"))

    def moved(self, transfers: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        """The sender's transfers; a receiver tells the sender that it has room."""
        sender = (self.values["sender_x"], self.values["sender_y"])
        told = [op("semaphore_set", self.shared.valid, 0), op("semaphore_up", self.shared.ready, *sender)]
        return [when(self._sends, transfers, otherwise=told)]

    def handed_over(self, cb: tirx.Buffer, count: int) -> list[tirx.Stmt]:
        """The sender sends the block as soon as all receivers have room; a receiver waits for it."""
        ready, valid, receivers = self.shared.ready, self.shared.valid, self.values["receivers"]
        rectangle = [self.values[f"{corner}_{axis}"] for corner in self.corners for axis in "xy"]
        to_all = self.shared.includes_sender
        block, flag = (
            (NOC_MULTICAST_TO_ALL, SEMAPHORE_MULTICAST_TO_ALL) if to_all else (NOC_MULTICAST, SEMAPHORE_MULTICAST)
        )
        sent: list[tirx.Stmt] = [
            op("semaphore_wait", ready, receivers), op("semaphore_set", ready, 0),
            _op(block, cb, count, *rectangle, receivers), op("noc_writes_flushed"),
            op("semaphore_set", valid, 1), _op(flag, valid, *rectangle, receivers), op("noc_writes_flushed"),
        ]  # fmt: skip
        if not self.shared.always_sends:
            sent = [when(receivers > 0, sent)]
        return [when(self._sends, sent, otherwise=[op("receive_sent", valid, cb, count)])]


def _op(operation: Op, *values: ir.Expr | int) -> tirx.Stmt:
    return op(operation.name, *values)
