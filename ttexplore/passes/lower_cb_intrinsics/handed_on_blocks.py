"""The protocol between cores that update the same blocks of a tensor: each hands a block on to the next one.

    tt.read_block(C, C_block, ...)     ==>  tt.cb_reserve_back(C_block, 4)
                                            if C_receives:  tt.semaphore_set(C_arrived, 0)
                                                            tt.semaphore_up(C_room, C_previous_x, C_previous_y)
                                            else:           tt.noc_read_tile(...)
                                            tt.noc_read_barrier()
                                            if C_receives:  tt.receive_sent(C_arrived, C_block, 4)
                                            tt.cb_push_back(C_block, 4)
    tt.write_block(C_block_2, C, ...)  ==>  tt.cb_wait_front(C_block_2, 4)
                                            if C_sends:     tt.semaphore_wait(C_room, 1)
                                                            tt.semaphore_set(C_room, 0)
                                                            tt.noc_send_block(C_block_2, 4, C_block, C_next_x, C_next_y)
                                            else:           tt.noc_write_tile(...)
                                            tt.noc_write_barrier()
                                            if C_sends:     tt.semaphore_up(C_arrived, C_next_x, C_next_y)
                                            tt.cb_pop_front(C_block_2, 4)

A core says that it has room before it computes, so that the core before need not wait for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.build import bind, op, variable, when
from ttexplore.ops.op import CORE_VALUE
from ttexplore.ops.semaphores import NOC_SEND_BLOCK, RECEIVE_SENT, SEMAPHORE_SET, SEMAPHORE_UP, SEMAPHORE_WAIT
from ttexplore.plan import PartialSums


class HandedOnBlocks:
    """A tensor whose blocks cores hand on, in the writer: its core values as variables, and the statements around its
    blocks. `into` is the circular buffer that the core before fills."""

    def __init__(self, sums: PartialSums, into: tirx.Buffer) -> None:
        self.sums, self.into = sums, into
        names = ("receives", "sends", *(f"{neighbour}_{axis}" for neighbour in ("previous", "next") for axis in "xy"))
        self.values: dict[str, ir.Var] = {name: variable(sums.named(name)) for name in names}

    @property
    def bindings(self) -> list[tirx.Stmt]:
        return [
            bind(core_value, call(CORE_VALUE, [str(core_value.name)], dtype="int32"))
            for core_value in self.values.values()
        ]

    def _is(self, name: str) -> ir.Expr:
        return tirx.NE(self.values[name], tirx.const(0, "int32"))

    def _at(self, neighbour: str) -> tuple[ir.Var, ir.Var]:
        return self.values[f"{neighbour}_x"], self.values[f"{neighbour}_y"]

    def loaded(self, transfers: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        """The transfers of the first core; the others tell the core before that they have room."""
        told = [
            op(SEMAPHORE_SET.name, self.sums.arrived, 0),
            op(SEMAPHORE_UP.name, self.sums.room, *self._at("previous")),
        ]
        return [when(self._is("receives"), told, otherwise=transfers)]

    def received(self, count: int) -> list[tirx.Stmt]:
        """All but the first core wait for the block."""
        arrived = [op(RECEIVE_SENT.name, self.sums.arrived, self.into, count)]
        return [when(self._is("receives"), arrived)]

    def stored(self, cb: tirx.Buffer, count: int, transfers: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        """The transfers of the last core; the others send the block as soon as the next one has room."""
        sent = [
            op(SEMAPHORE_WAIT.name, self.sums.room, 1), op(SEMAPHORE_SET.name, self.sums.room, 0),
            op(NOC_SEND_BLOCK.name, cb, count, self.into, *self._at("next")),
        ]  # fmt: skip
        return [when(self._is("sends"), sent, otherwise=transfers)]

    def told(self) -> list[tirx.Stmt]:
        """After the block has arrived, all but the last core say so."""
        return [when(self._is("sends"), [op(SEMAPHORE_UP.name, self.sums.arrived, *self._at("next"))])]
