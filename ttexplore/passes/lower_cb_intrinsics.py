"""D3: blocks are handed over by the circular-buffer protocol, and moved by the NoC."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, loop, op, op_name, statements, variable, with_body, with_function_body
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import stamp, walk
from ttexplore.ops import OPS
from ttexplore.plan import Plan
from ttexplore.target import Target


def lower_cb_intrinsics(program: Program, target: Target) -> Program:
    """Reserve, move and push in the producer; wait, use and pop in the consumer.

        tt.read_block(A, A_shared, p, 4, 1, ...)  ==>  tt.cb_reserve_back(A_shared, 4)
                                                       for r in range(4):
                                                           tt.noc_read_tile(A, p + r * 32, A_shared, r)
                                                       tt.noc_read_barrier()
                                                       tt.cb_push_back(A_shared, 4)

    Neighbouring loads share one barrier, so that all their transfers are under way together. A block is popped after
    its last use in the sequence that it arrived in.
    """
    functions = {
        "reader": with_function_body(
            program.functions["reader"], _reader(statements(program.functions["reader"].body))
        ),
        "compute": _compute(program.functions["compute"], program.plan),
        "writer": with_function_body(program.functions["writer"], _writer_kernel(program.functions["writer"])),
    }
    return Program(functions, program.plan, program.source)


def _tile_loops(rows: int, columns: int, make: Any) -> list[Any]:
    """Loops over the tiles of a block; a loop of one turn is left out."""
    r, c = variable("r"), variable("c")
    zero = tirx.const(0, "int32")
    inner = [make(r if rows > 1 else zero, c if columns > 1 else zero)]
    if columns > 1:
        inner = [loop(c, columns, inner)]
    return [loop(r, rows, inner)] if rows > 1 else inner


# Reader


def _reader(body: list[Any]) -> list[Any]:
    made: list[Any] = []
    group: list[Any] = []

    def flush() -> None:
        made.extend(_read(group))
        group.clear()

    for statement in body:
        if op_name(statement) == "tt.read_block":
            if any(arguments(other)[1].same_as(arguments(statement)[1]) for other in group):
                flush()
            group.append(statement)
            continue
        flush()
        if op_name(statement) == "tt.index_block":
            cb, axis = arguments(statement)
            parts = [op("cb_reserve_back", cb, 1), op("write_index_tile", cb, 0, axis), op("cb_push_back", cb, 1)]
            made += [_stamped(part, statement) for part in parts]
            continue
        made.append(
            with_body(statement, _reader(statements(statement.body))) if isinstance(statement, tirx.For) else statement
        )
    flush()
    return made


def _read(group: list[Any]) -> list[Any]:
    if not group:
        return []
    reserves: list[Any] = []
    moves: list[Any] = []
    pushes: list[Any] = []
    for statement in group:
        tensor, cb, page, rows, columns, row_pages, column_slots, row_slots = arguments(statement)
        count = int(rows.value) * int(columns.value)
        transfers = _tile_loops(
            int(rows.value),
            int(columns.value),
            lambda r, c, a=(tensor, page, cb, row_pages, row_slots, column_slots): op(
                "noc_read_tile", a[0], a[1] + r * a[3] + c, a[2], r * a[4] + c * a[5]
            ),
        )
        parts = [op("cb_reserve_back", cb, count), *transfers, op("cb_push_back", cb, count)]
        for part in parts:
            stamp(part, statement.span)
        reserves.append(parts[0])
        moves += parts[1:-1]
        pushes.append(parts[-1])
    barrier = op("noc_read_barrier")
    stamp(barrier, group[-1].span)
    return [*reserves, *moves, barrier, *pushes]


# Writer


def _writer_kernel(function: Any) -> list[Any]:
    """The writer, which leaves only when everything it sent has arrived."""
    stores = [statement for statement in walk(function.body) if op_name(statement) == "tt.write_block"]
    body = _writer(statements(function.body))
    return [*body, _stamped(op("noc_write_barrier"), stores[-1])] if stores else body


def _writer(body: list[Any]) -> list[Any]:
    made: list[Any] = []
    for statement in body:
        if isinstance(statement, tirx.For):
            made.append(with_body(statement, _writer(statements(statement.body))))
        elif op_name(statement) == "tt.write_block":
            cb, tensor, page, rows, columns, row_pages = arguments(statement)
            count, width = int(rows.value) * int(columns.value), int(columns.value)
            transfers = _tile_loops(
                int(rows.value),
                width,
                lambda r, c, a=(cb, width, tensor, page, row_pages): op(
                    "noc_write_tile", a[0], r * a[1] + c, a[2], a[3] + r * a[4] + c
                ),
            )
            parts = [
                op("cb_wait_front", cb, count), *transfers, op("noc_writes_flushed"), op("cb_pop_front", cb, count)
            ]  # fmt: skip
            for part in parts:
                stamp(part, statement.span)
            made += parts
        else:
            made.append(statement)
    return made


# Compute


def _compute(function: Any, plan: Plan) -> Any:
    totals: dict[str, int] = {}
    for statement in walk(function.body):
        for name in _reads(statement):
            totals[name] = totals.get(name, 0) + 1
    return with_function_body(function, _Compute(plan, totals).body(statements(function.body)))


def _reads(statement: Any) -> list[str]:
    """The circular buffers that an operation reads tiles of."""
    known = OPS.get(op_name(statement))
    if known is None or known.engine == "sync":
        return []
    names: list[str] = []
    values = iter(arguments(statement))
    for operand in known.operands:
        value = next(values)
        if operand.kind == "dst":
            next(values)
        if operand.kind == "cb" and operand.access == "read":
            names.append(str(value.name))
    return names


def _reads_inside(statement: Any) -> list[str]:
    return [name for inner in walk(statement) for name in _reads(inner)]


class _Compute:
    def __init__(self, plan: Plan, totals: dict[str, int]) -> None:
        self.plan, self.totals = plan, totals

    def body(self, body: list[Any]) -> list[Any]:
        before: dict[int, list[Any]] = {}
        after: dict[int, list[Any]] = {}
        children = [with_body(s, self.body(statements(s.body))) if isinstance(s, tirx.For) else s for s in body]
        for position, statement in enumerate(body):
            arrived = self._arrives(statement)
            if arrived is not None:
                self._consume(arrived, position, body, before, after)
            packed = self._packs(statement)
            if packed is not None:
                count = self.plan.buffer(str(packed.name)).block_pages
                before.setdefault(position, []).append(_stamped(op("cb_reserve_back", packed, count), statement))
                after.setdefault(position, []).insert(0, _stamped(op("cb_push_back", packed, count), statement))
        made: list[Any] = []
        for position, child in enumerate(children):
            made += before.get(position, [])
            if op_name(child) not in ("tt.receive_block", "tt.send_block"):
                made.append(child)
            made += after.get(position, [])
        return made

    def _packs(self, statement: Any) -> Any:
        """The circular buffer that a tile loop packs into, else None."""
        if not isinstance(statement, tirx.For):
            return None
        inner = statements(statement.body)
        return arguments(inner[0])[2] if len(inner) == 1 and op_name(inner[0]) == "tt.pack_tile" else None

    def _arrives(self, statement: Any) -> Any:
        """The circular buffer whose block is complete after this statement and is the compute kernel's to use."""
        if op_name(statement) == "tt.receive_block":
            return arguments(statement)[0]
        packed = self._packs(statement)
        if packed is not None and self.plan.buffer(str(packed.name)).consumer == "compute":
            return packed
        return None

    def _consume(
        self, cb: Any, position: int, body: list[Any], before: dict[int, list[Any]], after: dict[int, list[Any]]
    ) -> None:
        name = str(cb.name)
        users = [i for i in range(position + 1, len(body)) if name in _reads_inside(body[i])]
        seen = sum(_reads_inside(body[i]).count(name) for i in users)
        if seen != self.totals.get(name, 0):
            raise Unsupported(
                f"{name} is used outside of the loop that fills it, or before it is filled again",
                hint="fill it in the same loop body that uses it",
                span=span_of(body[position]),
            )
        count = self.plan.buffer(name).block_pages
        first, last = (users[0], users[-1]) if users else (position, position)
        wait, pop = op("cb_wait_front", cb, count), op("cb_pop_front", cb, count)
        if not users:
            after.setdefault(position, []).extend([_stamped(wait, body[position]), _stamped(pop, body[position])])
            return
        before.setdefault(first, []).append(_stamped(wait, body[first]))
        after.setdefault(last, []).append(_stamped(pop, body[last]))


def _stamped(made: Any, statement: Any) -> Any:
    stamp(made, statement.span)
    return made
