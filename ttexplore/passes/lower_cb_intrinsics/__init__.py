"""D3: insert the circular-buffer protocol and the NoC transfers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tvm import ir, sym, tirx

from ttexplore.analysis.core_resources import check_l1, number_buffers
from ttexplore.analysis.kernel_statements import packed_by, pruned
from ttexplore.analysis.regions import byte_in_tile
from ttexplore.analysis.tile_graph import tile_graph_with
from ttexplore.ir.adapter import call, with_variables
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    bound_form,
    buffer_of,
    constant,
    dtype_of,
    loop,
    number_of,
    op,
    op_name,
    operands,
    statements,
    variable,
    when,
    with_body,
    with_function_body,
)
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.gathers import gathered_block
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Context, Firings, Rule, walk
from ttexplore.ops import FORMS
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
)
from ttexplore.ops.op import CB_SCOPE, Op
from ttexplore.ops.scalars import L1_NUMBER, NOC_READ_NUMBER, READ_ANY, READ_NUMBERS, RECEIVE_NUMBER, SEND_NUMBER
from ttexplore.passes.lower_cb_intrinsics.handed_on_blocks import HandedOnBlocks
from ttexplore.passes.lower_cb_intrinsics.sent_blocks import SentBlocks
from ttexplore.plan import DATA_FORMATS, FACE, KERNEL_ROLES, TILE_COLUMNS, TILE_ROWS, CircularBuffer, KernelRole, Plan
from ttexplore.target import Target


def lower_cb_intrinsics(program: TirProgram, target: Target) -> TirProgram:
    """Insert the circular-buffer protocol and the NoC transfers.

        tt.read_block(A, A_shared, p, 4, 1, ...)  ==>  tt.cb_reserve_back(A_shared, 4)
                                                       for r in range(4):
                                                           tt.noc_read_tile(A, p + r * 32, A_shared, r)
                                                       tt.noc_read_barrier()
                                                       tt.cb_push_back(A_shared, 4)

    The producer of a block reserves room, moves the block and pushes it; the consumer waits for it, uses it and pops
    it.

    A tile outside the tensor is filled with zeros instead of read, and is not stored. Parts of tiles are read into
    tiles that have been filled with zeros. Elements that move one by one need a circular buffer of one page, which
    gives them an address that the memory can be read or written at. Rows of a row-major tensor move either in runs of
    16 elements, between their page and their face of a tile, or as whole rows that the compute kernel converts to
    tiles:

        tt.tilize(A_rows, A_shared)  ==>  for n in range(4):
                                              tt.cb_wait_front(A_rows, 2); tt.cb_reserve_back(A_shared, 2)
                                              tt.tilize_block(A_rows, A_shared, 2)
                                              tt.cb_push_back(A_shared, 2); tt.cb_pop_front(A_rows, 2)

    If a circular buffer is the shard of a tensor, its blocks are in place and nothing moves. Adjacent loads share one
    barrier, so that their transfers overlap. A block is popped after its last use in the sequence of statements in
    which it arrived.

    Of an input that cores share, one reads each block and sends it to the others. A block that several cores update
    goes from core to core: only the first one reads it, and only the last one stores it.
    """
    firings = Firings()
    functions: dict[str, tirx.PrimFunc] = {}
    added: list[CircularBuffer] = []
    for role in KERNEL_ROLES:
        function = program.functions[role]
        if role == "compute":
            functions[role] = _compute(function, program.plan, firings)
            continue
        moves = _Movement(function, firings, program.plan, target, role)
        # A block that is in place leaves bindings unused.
        moved = _moved(moves)
        body = pruned([*moves.allocations, *moves.bindings, *moved], set())
        functions[role] = with_function_body(function, body)
        remaining = {statement.var for statement in walk(functions[role].body) if isinstance(statement, tirx.Bind)}
        for statement in walk(function.body):
            if isinstance(statement, tirx.Bind) and statement.var not in remaining:
                firings.made(_UNUSED, statement, [])
        if moves.element_buffer is not None:
            name, reason = str(moves.element_buffer.name), _BESIDE[role][1]
            added.append(CircularBuffer(name, 1, 1, "Float16_b", role, role, reason=reason))
        if moves.answer_buffer is not None:
            reason = "whether any element of a block is true, or all are"
            added.append(CircularBuffer(str(moves.answer_buffer.name), 1, 1, "Int32", role, role, reason=reason))
    program = program.with_functions(functions, firings)
    if not added:
        return program
    buffers = number_buffers((*program.plan.buffers, *added), target)
    check_l1(buffers, target, program.plan.layouts)
    return program.with_plan(buffers=buffers, graph=tile_graph_with(program.plan.graph, buffers))


_RESERVE = Rule("reserve", "The producer waits until a circular buffer has room for a block.")
_PUSH = Rule("push", "The producer hands over a complete block.")
_UNUSED = Rule("unused name", "A name that no statement of the kernel uses any more is left out.")
_MARKER = Rule(
    "protocol for a block", "Waiting for a block and freeing it take the place of saying that it is received or sent."
)
_WAIT = Rule("wait", "The consumer waits until a block has arrived.")
_POP = Rule("pop", "The consumer frees the room of a block after its last use in the sequence.")
_TRANSFERS = Rule("transfers", "A block moves over the NoC, tile by tile or in parts of tiles.")
_ZEROS = Rule("zeros", "Zeros fill the part of a block that has no elements, or lies outside the tensor.")
_REARRANGED = Rule("rearranged", "The elements of a block are copied to their places in another one, one by one.")
_BARRIER = Rule("barrier", "A kernel waits until its transfers have completed; adjacent blocks share the wait.")
_NUMBERS = Rule("tile of constants", "The reader writes a tile of row or column numbers itself.")
_AROUND = Rule(
    "buffer for elements",
    "An element that moves by itself needs a place where its address is one that memory is read or written at.",
)
_ANSWER = Rule("buffer for an answer", "What the reader finds of a block needs a place, which a loop changes.")
_SHARED = Rule("shared block", "Of cores that need the same block, one reads it and sends it to the others.")
_HANDED_ON = Rule(
    "partial sums", "Of cores that update the same block, the first reads it, each hands it on, and the last stores it."
)
_NUMBER = Rule("number of a tensor", "The reader reads an element that decides something, and hands it on.")
_CONVERSION = Rule("tiles of rows", "Rows are converted to tiles, or tiles to rows, one row of tiles at a time.")


# Blocks


class _Movement(Context):
    """A kernel that moves blocks. `element_buffer` is for single elements, where there are some;
    `allocations` is its allocation. `read` are the names of the tensors that it reads. `sent` are the inputs that it
    shares with other cores, `handed_on` the tensors whose blocks it gets from other cores and hands on to them, both by
    circular buffer, and `bindings` their core values."""

    def __init__(
        self, function: tirx.PrimFunc, firings: Firings, plan: Plan, target: Target, role: KernelRole
    ) -> None:  # fmt: skip
        super().__init__(function, firings)
        self.plan, self.target = plan, target
        self.allocations: list[tirx.Stmt] = []
        self.element_buffer: tirx.Buffer | None = None
        self.read = {
            buffer_of(operands(statement)["source"]).name
            for statement in walk(function.body)
            if op_name(statement) in _LOADS or _reads_number(statement)
        }
        self.sent: dict[str, SentBlocks] = {}
        self.bindings: list[tirx.Stmt] = []
        for shared in plan.shared:
            if plan.buffer(shared.buffer).producer != role:
                continue
            loads = [statement for statement in walk(function.body) if op_name(statement) in _LOADS]
            first = next(statement for statement in loads if buffer_of(operands(statement)["cb"]).name == shared.buffer)
            self.sent[shared.buffer] = SentBlocks(shared, role)
            self.bindings += firings.made(_SHARED, first, self.sent[shared.buffer].bindings)
        self.handed_on: dict[str, HandedOnBlocks] = {}
        for sums in plan.partials if role == "writer" else ():
            load = next(
                statement for statement in walk(function.body)
                if op_name(statement) in _LOADS and buffer_of(operands(statement)["cb"]).name == sums.received
            )  # fmt: skip
            added = HandedOnBlocks(sums, buffer_of(operands(load)["cb"]))
            self.handed_on |= {sums.received: added, sums.sent: added}
            self.bindings += firings.made(_HANDED_ON, load, added.bindings)
        first = next(filter(_moves_elements, walk(function.body)), None)
        if first is not None:
            name = unused_name(_BESIDE[role][0], {named.name for named in (*plan.buffers, *plan.layouts)})
            added = allocation(name, (1, 32, 32), "bfloat16", CB_SCOPE)
            self.allocations = firings.made(_AROUND, first, [added])
            self.element_buffer = added.buffer
        asked = next((statement for statement in walk(function.body) if _reads_number(statement, READ_ANY)), None)
        self.answer_buffer: tirx.Buffer | None = None
        if asked is not None:
            name = unused_name("answer", {named.name for named in (*plan.buffers, *plan.layouts)})
            added = allocation(name, (1, 32, 32), "int32", CB_SCOPE)
            self.allocations += firings.made(_ANSWER, asked, [added])
            self.answer_buffer = added.buffer


# The buffer for single elements of the kernels that move blocks, and what it is for.
_BESIDE = {
    "reader": ("around", "what lies around an element that is read by itself"),
    "writer": ("aligned", "an element that is written by itself, at its address modulo 16"),
}


def _moves_elements(statement: tirx.Stmt) -> bool:
    """Whether elements are moved one by one."""
    if op_name(statement) == READ_GATHERED.ir_name:
        return number_of(operands(statement)["unit"]) == 1
    return _reads_number(statement) or op_name(statement) in (READ_ELEMENTS.ir_name, WRITE_ELEMENTS.ir_name)


def _reads_number(statement: tirx.Stmt, *operations: Op) -> TypeGuard[tirx.Bind]:
    form = bound_form(statement) if isinstance(statement, tirx.Bind) else None
    return form is not None and form.op in (operations or READ_NUMBERS)


@dataclass(frozen=True)
class _Transfers:
    """The transfers of one block: loops of transfers, statements that first fill its tiles with zeros, and whether
    some tiles are filled with zeros instead of read."""

    loops: Sequence[tirx.Stmt]
    clears: Sequence[tirx.Stmt]
    fills: bool


class _BlockMove:
    """A statement that moves a block between a tensor and a circular buffer; see BlockRegion for the operands."""

    def __init__(self, statement: tirx.Stmt, context: _Movement) -> None:
        plan, self.bounds = context.plan, context.bounds
        self.element_buffer = context.element_buffer
        self.around_bytes = context.target.dram_alignment_bytes
        self.reads = op_name(statement).startswith("tt.read")
        self.strips = op_name(statement).endswith("strips")
        self.elements = op_name(statement).endswith("elements")
        self.statement = statement
        operand_values = operands(statement)
        self.tensor, self.cb = (
            buffer_of(operand_values["source" if self.reads else "target"]),
            buffer_of(operand_values["cb"]),
        )
        self.layout = plan.layout(self.tensor.name)
        buffer = plan.buffer(self.cb.name)
        self.count, self.in_place = buffer.block_pages, buffer.shard_of == self.tensor.name
        self.row_tiles = buffer.row_tiles
        if self.strips:
            self.unit, self.matrix_stride = number_of(operand_values["unit"]), operand_values["matrix_stride"]
            self.matrix_rows = number_of(operand_values["matrix_rows"])
            self.row, self.column = operand_values["row"], operand_values["column"]
        self.places: tuple[ir.Var, ...] = ()
        if op_name(statement) == READ_GATHERED.ir_name:
            self.places, self.unit = gathered_block(statement).variables, number_of(operand_values["unit"])
            self.row, self.column = operand_values["row"], operand_values["column"]
        if self.elements:
            self.row, self.column = operand_values["row"], operand_values["column"]
            self.steps = {
                axis: tuple(operand_values[f"{axis}_{coordinate}_step"] for coordinate in ("page", "row", "column"))
                for axis in ("row", "column")
            }
        self.page, self.row_stride = operand_values["page"], operand_values["row_stride"]
        self.rows, self.columns = number_of(operand_values["rows"]), number_of(operand_values["columns"])
        # Tiles lie in rows of tiles.
        self.row_slots = number_of(operand_values["row_slots"]) if "row_slots" in operand_values else self.columns
        self.column_slots = number_of(operand_values["column_slots"]) if "column_slots" in operand_values else 1
        self.row_guard, self.column_guard = (
            [operand_values[bound] for bound in guard if bound in operand_values]
            for guard in (("row_low", "row_end"), ("column_low", "column_end"))
        )
        self.condition = operand_values.get("condition")
        # Elements per row of a row-major tensor: a number, or the end of the columns if it is a T.dynamic size.
        self.row_length: ir.Expr | int = extents_of(self.tensor)[-1]
        by_length = self.layout.page == "row" and (self.row_tiles or self.strips)
        if by_length and not isinstance(self.row_length, int):
            self.row_length = self.column_guard[1]

    def transfers(self) -> _Transfers:
        """The transfers; none for a block that is in place because the circular buffer is the shard."""
        if self.in_place:
            return _Transfers([], [], False)
        if self.row_tiles:
            return self._rows()
        if self.elements:
            return self._elements()
        if self.places:
            return self._gathered()
        return self._strips() if self.strips else self._tiles()

    def _tiles(self) -> _Transfers:
        def move(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
            slot = r * self.row_slots + c * self.column_slots
            page = self.page + r * self.row_stride + c
            if not self.reads:
                return [op("noc_write_tile", self.cb, slot, self.tensor, page)]
            return [op("noc_read_tile", self.tensor, page, self.cb, slot)]

        def guarded(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
            test = self._test(r, 1, self.rows, c, 1, self.columns)
            if test is None:
                return move(r, c)
            slot = r * self.row_slots + c * self.column_slots
            otherwise = [op("noc_write_zeros", self.cb, slot)] if self.reads else None
            return [when(test, move(r, c), otherwise=otherwise)]

        loops = _loops(self.rows, self.columns, guarded)
        return _Transfers(loops, [], self.reads and bool(self.row_guard))

    def _strips(self) -> _Transfers:
        unit, element, by_rows = self.unit, self.layout.element_bytes, self.layout.page == "row"
        # A row can end inside a run of elements; tiles cannot.
        length = self.row_length
        ends = by_rows and not (isinstance(length, int) and length % FACE == 0)
        rows, columns = -(-self.rows // unit), -(-self.columns // FACE)

        def move(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
            analyzer = _known((r, rows), (c, columns))
            # If the rows of the block come from several matrices, they are the same rows of each.
            matrix, row = self._row(r * unit)
            column = self.column + c * FACE
            page, offset = self.page + matrix * self.matrix_stride, column * element
            if by_rows:
                page = page + row * self.row_stride
            else:
                row_tile, column_tile = tirx.floordiv(row, TILE_ROWS), tirx.floordiv(column, TILE_COLUMNS)
                page = page + row_tile * self.row_stride + column_tile
                offset = byte_in_tile(row, column, element)
            column = analyzer.simplify(column)
            # The numbers are unsigned: never subtract the larger one.
            fits = column + FACE <= length if ends else None
            tail = length % FACE if isinstance(length, int) else length - column
            row, column = r * unit, c * FACE
            row_tile, column_tile = tirx.floordiv(row, TILE_ROWS), tirx.floordiv(column, TILE_COLUMNS)
            slot = row_tile * self.row_slots + column_tile * self.column_slots
            within = byte_in_tile(row, column, element)
            page, offset, slot, within = (analyzer.simplify(expression) for expression in (page, offset, slot, within))

            def transfer(elements: ir.Expr | int) -> tirx.Stmt:
                size = elements * element
                if self.reads:
                    return op("noc_read_part", self.tensor, page, offset, self.cb, slot, within, size)
                return op("noc_write_part", self.cb, slot, within, self.tensor, page, offset, size)

            if fits is None or analyzer.can_prove(fits):
                statement = transfer(unit * FACE)
            elif analyzer.can_prove(tirx.Not(fits)):
                statement = transfer(tail)
            else:
                statement = when(fits, [transfer(FACE)], otherwise=[transfer(tail)])
            test = self._test(r, unit, rows, c, FACE, columns)
            return [statement] if test is None else [when(test, [statement])]

        full = self.rows % TILE_ROWS == 0 and self.columns % TILE_COLUMNS == 0 and not self.row_guard and not ends
        clears = self._zeros() if self.reads and not full else []
        return _Transfers(_loops(rows, columns, move), clears, False)

    def _elements(self) -> _Transfers:
        """One element after the other: each is read with what lies around it, and written by itself."""
        element, by_rows = self.layout.element_bytes, self.layout.page == "row"
        beside = self.element_buffer
        assert beside is not None

        def move(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
            analyzer = _known((r, self.rows), (c, self.columns))
            page, row, column = (
                start + r * along_rows + c * along_columns
                for start, along_rows, along_columns in zip(
                    (self.page, self.row, self.column), self.steps["row"], self.steps["column"], strict=True
                )
            )
            offset = column * element
            if not by_rows:
                page = page + tirx.floordiv(row, TILE_ROWS) * self.row_stride + tirx.floordiv(column, TILE_COLUMNS)
                offset = byte_in_tile(row, column, element)
            slot = tirx.floordiv(r, TILE_ROWS) * self.row_slots + tirx.floordiv(c, TILE_COLUMNS) * self.column_slots
            within = byte_in_tile(r, c, element)
            page, offset, slot, within = (analyzer.simplify(expression) for expression in (page, offset, slot, within))
            if self.reads:
                statement = op("noc_read_element", self.tensor, page, offset, self.cb, slot, within, beside, 0,
                          self.around_bytes, element)  # fmt: skip
            else:
                statement = op(
                    "noc_write_element", self.cb, slot, within, beside, 0, self.tensor, page, offset, element
                )
            test = self._test(r, 1, self.rows, c, 1, self.columns)
            return [statement] if test is None else [when(test, [statement])]

        full = self.rows % TILE_ROWS == 0 and self.columns % TILE_COLUMNS == 0 and not self.row_guard
        clears = [] if not self.reads or (full and self.condition is None) else self._zeros()
        loops = self._with_beside(_loops(self.rows, self.columns, move), bool(self.row_guard))
        return _Transfers(loops, clears, False)

    def _with_beside(self, loops: list[tirx.Stmt], may_be_empty: bool) -> list[tirx.Stmt]:
        """Loops that move single elements, with the place that these need."""
        beside = self.element_buffer
        assert beside is not None
        before = [op("cb_reserve_back", beside, 1)]
        if may_be_empty:
            # Perhaps no element of the block exists, and what is pushed must have been written.
            before += [op("noc_write_zeros", beside, 0), op("noc_zeros_barrier")]
            before += [] if self.reads else [op("noc_read_barrier")]
        given_back = [op(name, beside, 1) for name in ("cb_push_back", "cb_wait_front", "cb_pop_front")]
        return [*before, *loops, op("noc_read_barrier" if self.reads else "noc_writes_flushed"), *given_back]

    def _gathered(self) -> _Transfers:
        """Elements, or runs of them, at places that the kernel computes."""
        element, unit = self.layout.element_bytes, self.unit

        def move(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
            analyzer = _known((r, self.rows), (c, self.columns // unit))
            first = c * unit
            values: dict[ir.Var, ir.Expr] = {self.places[0]: r, self.places[1]: first}

            def placed(expression: ir.Expr) -> ir.Expr:
                return analyzer.simplify(with_variables(expression, lambda var: values.get(var, var)))

            row, column = placed(self.row), placed(self.column)
            page = placed(self.page)
            page = page + tirx.floordiv(row, TILE_ROWS) * self.row_stride + tirx.floordiv(column, TILE_COLUMNS)
            slot = tirx.floordiv(r, TILE_ROWS) * self.row_slots + tirx.floordiv(first, TILE_COLUMNS) * self.column_slots
            offset, within = byte_in_tile(row, column, element), byte_in_tile(r, first, element)
            page, offset, slot, within = (analyzer.simplify(expression) for expression in (page, offset, slot, within))
            if unit == 1:
                assert self.element_buffer is not None
                statement = op(
                    "noc_read_element", self.tensor, page, offset, self.cb, slot, within, self.element_buffer, 0,
                    self.around_bytes, element,
                )  # fmt: skip
            else:
                statement = op("noc_read_part", self.tensor, page, offset, self.cb, slot, within, unit * element)
            return [statement] if self.condition is None else [when(placed(self.condition), [statement])]

        full = self.rows % TILE_ROWS == 0 and self.columns % TILE_COLUMNS == 0 and self.condition is None
        clears = [] if full else self._zeros()
        loops = _loops(self.rows, self.columns // unit, move)
        return _Transfers(self._with_beside(loops, self.condition is not None) if unit == 1 else loops, clears, False)

    def _rows(self) -> _Transfers:
        """Transfers of whole rows, or of `row_tiles` tiles' worth of each row, to or from 32 rows of memory."""
        element, step = self.layout.element_bytes, self.row_tiles * TILE_COLUMNS
        proofs, ranges = self.bounds.proofs, self.bounds.ranges
        ends: list[bool] = []

        def pieces(first: int, turns: int, elements: int) -> list[tirx.Stmt]:
            """The parts of `elements` elements of each row."""

            def move(r: ir.Expr, at: ir.Expr) -> list[tirx.Stmt]:
                for index, extent in ((r, self.rows), (at, turns)):
                    if isinstance(index, ir.Var):
                        for analyzer in (proofs, ranges):
                            analyzer.bind(index, ir.Range.from_min_extent(_int(0), _int(extent)))
                c = at + first
                matrix, row = self._row(r)
                page = self.page + matrix * self.matrix_stride + row * self.row_stride
                column = self.column + c * step
                row_tile = tirx.floordiv(r, TILE_ROWS)
                slot = row_tile * self.row_slots + c * (self.row_tiles * self.column_slots)
                within = tirx.floormod(r, TILE_ROWS) * (step * element)
                page, column, offset, slot, within = (
                    ranges.simplify(expression) for expression in (page, column, column * element, slot, within)
                )

                def moved(count: ir.Expr | int) -> tirx.Stmt:
                    size = count * element
                    if self.reads:
                        return op("noc_read_part", self.tensor, page, offset, self.cb, slot, within, size)
                    return op("noc_write_part", self.cb, slot, within, self.tensor, page, offset, size)

                length = self.row_length
                fits = column + elements <= length
                if self.bounds.proves_in_loops(fits):
                    statement = moved(elements)
                else:
                    ends.append(True)
                    remaining = length - column
                    if isinstance(length, int) and length % elements and self.bounds.is_multiple(column, elements):
                        remaining = length % elements
                    rest = moved(remaining)
                    statement = when(ranges.simplify(fits), [moved(elements)], otherwise=[rest])
                    if proofs.can_prove(tirx.Not(fits)):
                        statement = rest
                tests = [] if self.condition is None else [self.condition]
                for guard, index, size in ((self.row_guard, r, 1), (self.column_guard, c, step)):
                    conditions = self._within(guard, index * size)
                    tests += [ranges.simplify(test) for test in conditions if not proofs.can_prove(test)]
                return [when(functools.reduce(tirx.And, tests), [statement])] if tests else [statement]

            return _loops(self.rows, turns, move)

        turns, rest = divmod(self.columns, step)
        moves = [*(pieces(0, turns, step) if turns else []), *(pieces(turns, 1, rest) if rest else [])]
        full = self.rows % TILE_ROWS == 0 and self.columns % TILE_COLUMNS == 0 and not self.row_guard and not ends
        clears = self._zeros() if self.reads and not full else []
        return _Transfers(moves, clears, False)

    def _row(self, row: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        """The matrix of a row of the block, and its row there."""
        if constant(self.matrix_stride) == 0:
            return _int(0), self.row + row
        if self.matrix_rows == 1:
            return row, self.row
        return tirx.floordiv(row, self.matrix_rows), self.row + tirx.floormod(row, self.matrix_rows)

    def _zeros(self) -> list[tirx.Stmt]:
        """Statements that fill all tiles of the block with zeros."""

        def zeros(t: ir.Expr, _: ir.Expr) -> list[tirx.Stmt]:
            return [op("noc_write_zeros", self.cb, t)]

        return [*_loops(self.count, 1, zeros), op("noc_zeros_barrier")]

    def _test(self, r: ir.Expr, row_step: int, rows: int, c: ir.Expr, column_step: int, columns: int) -> ir.Expr | None:
        """The condition under which a tile or strip exists in the tensor; None if it always does."""
        analyzer = _known((r, rows), (c, columns))
        tests = [] if self.condition is None else [self.condition]
        for guard, index, step in ((self.row_guard, r, row_step), (self.column_guard, c, column_step)):
            for test in self._within(guard, index * step):
                if not analyzer.can_prove(test):
                    tests.append(analyzer.simplify(test))
        return functools.reduce(tirx.And, tests) if tests else None

    def _within(self, guard: list[ir.Expr], offset: ir.Expr) -> list[ir.Expr]:
        """The conditions under which a part of a block lies between the start and the end of the tensor."""
        if not guard:
            return []
        start = [] if self.bounds.proves(guard[0] >= 0) else [guard[0] + offset >= 0]
        return [*start, guard[0] + offset < guard[1]]


def _known(*loops: tuple[ir.Expr, int]) -> sym.Analyzer:
    """An analyzer that knows the loops over a block, given as index and extent of each."""
    analyzer = sym.Analyzer()
    for index, extent in loops:
        if isinstance(index, ir.Var):
            analyzer.bind(index, ir.Range.from_min_extent(_int(0), _int(extent)))
    return analyzer


def _int(value: int) -> tirx.IntImm:
    return tirx.const(value, "int32")


def _loops(rows: int, columns: int, make: Callable[[ir.Expr, ir.Expr], list[tirx.Stmt]]) -> list[tirx.Stmt]:
    """Loops over the rows and columns of a block; a loop of one iteration is left out."""
    r, c = variable("r"), variable("c")
    inner: list[tirx.Stmt] = make(r if rows > 1 else _int(0), c if columns > 1 else _int(0))
    if columns > 1:
        inner = [loop(c, columns, inner)]
    return [loop(r, rows, inner)] if rows > 1 else inner


# Reader and writer


def _moved(context: _Movement) -> list[tirx.Stmt]:
    """The statements of a kernel that moves blocks. It ends only when all its writes have completed."""
    body = statements(context.function.body)
    stores = [statement for statement in walk(context.function.body) if op_name(statement) in _STORES]
    if context.sent or context.handed_on:
        return [*_moved_body(body, context), *context.made(_BARRIER, body[-1], [op("noc_full_barrier")])]
    waiting = [store for store in stores if _barrier(_BlockMove(store, context), context) == ["noc_writes_flushed"]]
    lowered = _moved_body(body, context)
    return [*lowered, *context.made(_BARRIER, waiting[-1], [op("noc_write_barrier")])] if waiting else lowered


def _moved_body(body: list[tirx.Stmt], context: _Movement) -> list[tirx.Stmt]:
    lowered: list[tirx.Stmt] = []
    group: list[_BlockMove] = []

    def flush() -> None:
        lowered.extend(_read(group, context))
        group.clear()

    for statement in body:
        if op_name(statement) in _LOADS:
            block = _BlockMove(statement, context)
            if any(member.cb.same_as(block.cb) for member in group):
                flush()
            group.append(block)
            continue
        flush()
        if op_name(statement) == INDEX_BLOCK.ir_name:
            cb, axis = operands(statement).values()
            steps = [op("cb_reserve_back", cb, 1), op("write_index_tile", cb, 0, axis), op("cb_push_back", cb, 1)]
            lowered += context.made(_NUMBERS, statement, steps)
            continue
        if op_name(statement) == REARRANGE.ir_name:
            lowered += _rearranged(statement, context)
            continue
        if op_name(statement) in _STORES:
            lowered += _stored(statement, context)
            continue
        if op_name(statement) == SEND_NUMBER.ir_name:
            cb, number = operands(statement).values()
            steps = [op("cb_reserve_back", cb, 1), op("write_number", cb, 0, number), op("cb_push_back", cb, 1)]
            lowered += context.made(_NUMBER, statement, steps)
            continue
        received = _received(context.firings, statement, "l1_number")
        if received is not None:
            lowered += received
            continue
        if isinstance(statement, tirx.For):
            statement = context.inside(statement, lambda inner: _moved_body(inner, context))
        elif isinstance(statement, tirx.Bind):
            context.enter(statement)
            if _reads_number(statement):
                lowered += (_answer if _reads_number(statement, READ_ANY) else _number)(context, statement)
                continue
        lowered.append(statement)
    flush()
    return lowered


def _rearranged(statement: tirx.Stmt, context: _Movement) -> list[tirx.Stmt]:
    """Copy the elements of a block to their places in another one."""
    operand_values, variables = operands(statement), gathered_block(statement).variables
    source, cb = buffer_of(operand_values["source"]), buffer_of(operand_values["cb"])
    source_buffer, filled = context.plan.buffer(source.name), context.plan.buffer(cb.name)
    element = DATA_FORMATS[filled.data_format].tile_bytes // (TILE_ROWS * TILE_COLUMNS)
    rows, columns = number_of(operand_values["rows"]), number_of(operand_values["columns"])
    across = number_of(operand_values["source_row_slots"])
    lengths = source_buffer.block_pages // across * TILE_ROWS, across * TILE_COLUMNS

    def move(r: ir.Expr, c: ir.Expr) -> list[tirx.Stmt]:
        analyzer = _known((r, rows), (c, columns))
        for index, extent in ((r, rows), (c, columns)):
            if isinstance(index, ir.Var):
                context.bounds.known.counts(index, _int(0), _int(extent))
        values: dict[ir.Var, ir.Expr] = dict(zip(variables, (r, c), strict=True))
        row, column = (
            _seen_within(
                analyzer.simplify(with_variables(operand_values[name], lambda var: values.get(var, var))),
                length,
                context,
            )
            for name, length in zip(("row", "column"), lengths, strict=True)
        )
        positions = [
            analyzer.simplify(expression)
            for y, x, down, across in (
                (row, column, operand_values["source_row_slots"], 1),
                (r, c, operand_values["row_slots"], operand_values["column_slots"])
            )
            for expression in (
                tirx.floordiv(y, TILE_ROWS) * down + tirx.floordiv(x, TILE_COLUMNS) * across,
                byte_in_tile(y, x, element),
            )
        ]  # fmt: skip
        return [op("move_element", source, *positions[:2], cb, *positions[2:], element)]

    def zeros(t: ir.Expr, _: ir.Expr) -> list[tirx.Stmt]:
        return [op("noc_write_zeros", cb, t)]

    fills = [] if rows % TILE_ROWS == 0 and columns % TILE_COLUMNS == 0 else [
        *_loops(filled.block_pages, 1, zeros), op("noc_zeros_barrier"), op("noc_read_barrier"),
    ]  # fmt: skip
    return [
        *context.made(_WAIT, statement, [op("cb_wait_front", source, source_buffer.block_pages)]),
        *context.made(_RESERVE, statement, [op("cb_reserve_back", cb, filled.block_pages)]),
        *context.made(_ZEROS, statement, fills),
        *context.made(_REARRANGED, statement, [op("refresh_l1"), *_loops(rows, columns, move)]),
        *context.made(_PUSH, statement, [op("cb_push_back", cb, filled.block_pages)]),
        *context.made(_POP, statement, [op("cb_pop_front", source, source_buffer.block_pages)]),
    ]


def _seen_within(index: ir.Expr, length: int, context: _Movement) -> ir.Expr:
    """An index that is inside, in a form that shows it."""
    if context.bounds.is_seen_within(index, length):
        return index
    return tirx.Min(tirx.Max(index, _int(0)), _int(length - 1))


def _element(context: _Movement, statement: tirx.Bind, dtype: str) -> ir.Expr:
    """An element of a tensor, for which the buffer for single elements has room."""
    operand_values, around = operands(statement), context.element_buffer
    assert around is not None
    tensor = buffer_of(operand_values["source"])
    return call(
        NOC_READ_NUMBER.ir_name,
        [tensor, operand_values["page"], operand_values["page_offset_bytes"], around, 0,
         context.target.dram_alignment_bytes, context.plan.layout(tensor.name).element_bytes],
        dtype=dtype,
    )  # fmt: skip


def _number(context: _Movement, statement: tirx.Bind) -> list[tirx.Stmt]:
    """Read the element that a name stands for."""
    around = context.element_buffer
    assert around is not None
    steps = [
        op("cb_reserve_back", around, 1),
        tirx.Bind(statement.var, _element(context, statement, str(statement.var.ty.dtype)), statement.span),
        op("noc_read_barrier"),
        *_handed_back(around),
    ]  # fmt: skip
    return context.made(_NUMBER, statement, steps)


def _handed_back(around: tirx.Buffer) -> list[tirx.Stmt]:
    return [op(name, around, 1) for name in ("cb_push_back", "cb_wait_front", "cb_pop_front")]


def _answer(context: _Movement, statement: tirx.Bind) -> list[tirx.Stmt]:
    """Look at the elements of a block, one after another, until it is known whether any is true, or all are."""
    operand_values, around, answer = operands(statement), context.element_buffer, context.answer_buffer
    assert around is not None
    assert answer is not None
    of_all, index, inside = (
        number_of(operand_values["of_all"]),
        operand_values["index"],
        operand_values.get("condition"),
    )
    assert isinstance(index, ir.Var)
    tensor = buffer_of(operand_values["source"])
    dtype = dtype_of(tensor)
    value = tirx.Var(f"{tensor.name}_value", dtype)
    holds = value if dtype == "bool" else tirx.NE(value, tirx.const(0, dtype))
    decided = op("write_number", answer, 0, 1 - of_all)
    read: list[tirx.Stmt] = [
        tirx.Bind(value, _element(context, statement, dtype), statement.span),
        when(tirx.Not(holds) if of_all else holds, [decided]),
    ]
    if inside is not None:
        # What lies outside of the tensor is not true.
        read = [when(inside, read, otherwise=[decided] if of_all else None)]
    steps = [
        op("cb_reserve_back", answer, 1), op("write_number", answer, 0, of_all), op("cb_reserve_back", around, 1),
        op("noc_write_zeros", around, 0), op("noc_zeros_barrier"),
        loop(index, operand_values["count"], read), op("noc_read_barrier"), *_handed_back(around),
        op("cb_push_back", answer, 1), op("cb_wait_front", answer, 1),
        tirx.Bind(statement.var, call(L1_NUMBER.ir_name, [answer, 0], dtype="int32"), statement.span),
        op("cb_pop_front", answer, 1),
    ]  # fmt: skip
    return context.made(_NUMBER, statement, steps)


def _received(firings: Firings, statement: tirx.Stmt, name: str) -> list[tirx.Stmt] | None:
    """The statements that take a number from the reader, in another kernel."""
    form = bound_form(statement) if isinstance(statement, tirx.Bind) else None
    if form is None or form.op is not RECEIVE_NUMBER or not isinstance(statement, tirx.Bind):
        return None
    cb = buffer_of(operands(statement)["cb"])
    value = call(f"tt.{name}", [cb, 0], dtype=str(statement.var.ty.dtype))
    steps = [op("cb_wait_front", cb, 1), tirx.Bind(statement.var, value, statement.span), op("cb_pop_front", cb, 1)]
    return firings.made(_NUMBER, statement, steps)


def _read(group: list[_BlockMove], context: _Movement) -> list[tirx.Stmt]:
    if not group:
        return []
    reserves: list[tirx.Stmt] = []
    clears: list[tirx.Stmt] = []
    moves: list[tirx.Stmt] = []
    pushes: list[tirx.Stmt] = []
    filled: tirx.Stmt | None = None
    moved: tirx.Stmt | None = None
    for block in group:
        transfers = block.transfers()
        moved = moved if block.in_place else block.statement
        sent = context.sent.get(str(block.cb.name))
        loops, handed_over = transfers.loops, list[tirx.Stmt]()
        if sent is not None:
            loops, handed_over = sent.moved(loops), sent.handed_over(block.cb, block.count)
        handed_on = context.handed_on.get(str(block.cb.name))
        if handed_on is not None:
            loops, handed_over = handed_on.loaded(loops), handed_on.received(block.count)
        rule = _SHARED if sent is not None else _HANDED_ON if handed_on is not None else _TRANSFERS
        phases = (
            (reserves, _RESERVE, [op("cb_reserve_back", block.cb, block.count)]), (clears, _ZEROS, transfers.clears),
            (moves, rule, loops), (pushes, rule, handed_over),
            (pushes, _PUSH, [op("cb_push_back", block.cb, block.count)]),
        )  # fmt: skip
        for collected, its_rule, added in phases:
            collected += context.firings.made(its_rule, block.statement, added)
        filled = block.statement if transfers.fills else filled
    if filled is not None:
        moves += context.firings.made(_BARRIER, filled, [op("noc_zeros_barrier")])
    barrier = [] if moved is None else context.firings.made(_BARRIER, moved, [op("noc_read_barrier")])
    return [*reserves, *clears, *moves, *barrier, *pushes]


_STORES = (WRITE_BLOCK.ir_name, WRITE_STRIPS.ir_name, WRITE_ELEMENTS.ir_name)


_LOADS = (READ_BLOCK.ir_name, READ_STRIPS.ir_name, READ_ELEMENTS.ir_name, READ_GATHERED.ir_name)


def _stored(statement: tirx.Stmt, context: _Movement) -> list[tirx.Stmt]:
    block = _BlockMove(statement, context)
    handed_on, rule = context.handed_on.get(str(block.cb.name)), _TRANSFERS
    loops, told = block.transfers().loops, list[tirx.Stmt]()
    if handed_on is not None:
        loops, told, rule = handed_on.stored(block.cb, block.count, loops), handed_on.told(), _HANDED_ON
    return [
        *context.made(_WAIT, statement, [op("cb_wait_front", block.cb, block.count)]),
        *context.made(rule, statement, loops),
        *context.made(_BARRIER, statement, [op(barrier) for barrier in _barrier(block, context)]),
        *context.made(rule, statement, told),
        *context.made(_POP, statement, [op("cb_pop_front", block.cb, block.count)]),
    ]


def _barrier(block: _BlockMove, context: _Movement) -> list[str]:
    """What the writer waits for after it has stored a block."""
    if block.in_place:
        return []
    # What the writer may load again must have arrived; otherwise it need only have left.
    return ["noc_write_barrier" if block.tensor.name in context.read else "noc_writes_flushed"]


# Compute


def _compute(function: tirx.PrimFunc, plan: Plan, firings: Firings) -> tirx.PrimFunc:
    converted = {
        buffer_of(operands(statement)["source"]).name
        for statement in walk(function.body)
        if op_name(statement) in _CONVERSIONS
    }
    return with_function_body(function, _Compute(plan, converted, firings).body(statements(function.body)))


# The operation that converts a block of rows, or of tiles.
_CONVERSIONS = {TILIZE.ir_name: "tilize_block", UNTILIZE.ir_name: "pack_untilize_block"}


def _reads(statement: tirx.Stmt) -> list[str]:
    """The circular buffers from which an operation reads tiles."""
    form = FORMS.get(op_name(statement))
    if form is None or form.phase or form.op.engine in ("sync", "whole block"):
        return []
    return [
        buffer_of(argument.value).name for argument in form.given(arguments(statement))
        if argument.operand.kind == "cb" and argument.operand.access == "read"
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Used:
    """The circular buffers that a statement reads, and those that it fills before it reads them."""

    read: set[str]
    filled: set[str]


def _used(statement: tirx.Stmt) -> _Used:
    read: set[str] = set()
    filled: set[str] = set()
    for inner in walk(statement):
        packed = packed_by(inner)
        if packed is not None and packed.name not in read:
            filled.add(packed.name)
        read.update(_reads(inner))
    return _Used(read, filled)


class _Compute:
    """`converted` are the circular buffers whose blocks are converted to tiles or to rows."""

    def __init__(self, plan: Plan, converted: set[str], firings: Firings) -> None:
        self.plan, self.converted, self.firings = plan, converted, firings

    def body(self, body: list[tirx.Stmt]) -> list[tirx.Stmt]:
        before: dict[int, list[tirx.Stmt]] = {}
        after: dict[int, list[tirx.Stmt]] = {}
        children: list[list[tirx.Stmt]] = [
            [with_body(s, self.body(statements(s.body))) if isinstance(s, tirx.For) else s] for s in body
        ]
        arrivals = [self._arrives(statement) for statement in body]
        used = [_used(statement) for statement in body] if any(arrival is not None for arrival in arrivals) else []
        for position, (statement, arrived) in enumerate(zip(body, arrivals, strict=True)):
            received = _received(self.firings, statement, "tile_number")
            if received is not None:
                children[position] = received
                continue
            if arrived is not None:
                self._consume(arrived, position, body, used, before, after)
            packed = packed_by(statement)
            if op_name(statement) in _CONVERSIONS:
                children[position] = self._convert(statement)
            elif packed is not None:
                count = self.plan.buffer(packed.name).block_pages
                before.setdefault(position, []).extend(
                    self.made(_RESERVE, statement, op("cb_reserve_back", packed, count))
                )
                after.setdefault(position, [])[:0] = self.made(_PUSH, statement, op("cb_push_back", packed, count))
        lowered: list[tirx.Stmt] = []
        for position, (statement, child) in enumerate(zip(body, children, strict=True)):
            lowered += before.get(position, [])
            is_marker = op_name(statement) in (RECEIVE_BLOCK.ir_name, SEND_BLOCK.ir_name)
            lowered += self.made(_MARKER, statement) if is_marker else child
            lowered += after.get(position, [])
        return lowered

    def _convert(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """Convert rows to tiles, or tiles to rows: one row of tiles of the buffer of rows at a time."""
        source, target = map(buffer_of, arguments(statement))
        by_rows = [buffer for buffer in (source, target) if self.plan.buffer(buffer.name).row_tiles]
        buffer = self.plan.buffer(by_rows[0].name)
        count = buffer.row_tiles
        made: list[tirx.Stmt] = [
            op("cb_wait_front", source, count), op("cb_reserve_back", target, count),
            op(_CONVERSIONS[op_name(statement)], source, target, count),
            op("cb_push_back", target, count), op("cb_pop_front", source, count),
        ]  # fmt: skip
        turns = buffer.block_pages // count
        made = made if turns == 1 else [loop(variable("n"), turns, made)]
        return self.made(_CONVERSION, statement, *made)

    def made(self, rule: Rule, source: tirx.Stmt, *replacements: tirx.Stmt) -> list[tirx.Stmt]:
        return self.firings.made(rule, source, replacements)

    def _arrives(self, statement: tirx.Stmt) -> tirx.Buffer | None:
        """The circular buffer whose block is complete after this statement and is used by the compute kernel. A block
        that is converted as a whole is excluded: the conversion waits for it and pops it."""
        arrived = packed_by(statement)
        if op_name(statement) == RECEIVE_BLOCK.ir_name:
            arrived = buffer_of(operands(statement)["cb"])
        if arrived is None or self.plan.buffer(arrived.name).consumer != "compute":
            return None
        return None if arrived.name in self.converted else arrived

    def _consume(
        self, cb: tirx.Buffer, position: int, body: list[tirx.Stmt], used: list[_Used],
        before: dict[int, list[tirx.Stmt]], after: dict[int, list[tirx.Stmt]],
    ) -> None:  # fmt: skip
        name = cb.name
        # A buffer that is filled for one use after another is empty between them.
        again = (i for i in range(position + 1, len(body)) if name in used[i].filled)
        users = [i for i in range(position + 1, next(again, len(body))) if name in used[i].read]
        count = self.plan.buffer(name).block_pages
        first, last = (users[0], users[-1]) if users else (position, position)
        wait, pop = op("cb_wait_front", cb, count), op("cb_pop_front", cb, count)
        if not users:
            source = body[position]
            after.setdefault(position, []).extend([*self.made(_WAIT, source, wait), *self.made(_POP, source, pop)])
            return
        before.setdefault(first, []).extend(self.made(_WAIT, body[first], wait))
        after.setdefault(last, []).extend(self.made(_POP, body[last], pop))
