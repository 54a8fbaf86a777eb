"""Blocks of tiles, cut into sub-blocks that fit in DST, and the indices of their tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.ir.adapter import to_expr, with_variables
from ttexplore.ir.build import constant, loop, variable

# The number of a tile, of a part or of a slot.
Index = ir.Expr | int


@dataclass(frozen=True)
class SubBlock:
    """A block of `block_rows` x `block_columns` tiles cut into parts of `rows` x `columns`."""

    block_rows: int
    block_columns: int
    rows: int
    columns: int

    @property
    def tiles(self) -> int:
        return self.rows * self.columns

    @property
    def block_tiles(self) -> int:
        return self.block_rows * self.block_columns

    @property
    def turns(self) -> int:
        return self.block_tiles // self.tiles

    @property
    def is_linear(self) -> bool:
        """Whether the tiles of a part are contiguous in the block."""
        return self.rows == 1 or self.columns == self.block_columns

    def place_in_parts(self, tile: ir.Expr) -> ir.Expr:
        """The position of tile number `tile` of the block in a buffer that holds one part after another."""
        if self.is_linear:
            return tile
        row, column = tirx.floordiv(tile, self.block_columns), tirx.floormod(tile, self.block_columns)
        across = self.block_columns // self.columns
        sub_block = tirx.floordiv(row, self.rows) * across + tirx.floordiv(column, self.columns)
        return (
            sub_block * self.tiles + tirx.floormod(row, self.rows) * self.columns + tirx.floormod(column, self.columns)
        )


def sub_blocks(block: tuple[int, int], room: int) -> list[SubBlock]:
    """All ways to cut a block into equal parts of at most `room` tiles."""
    rows, columns = block
    return [
        SubBlock(rows, columns, r, c)
        for r in range(1, min(room, rows) + 1)
        if rows % r == 0
        for c in range(1, min(room // r, columns) + 1)
        if columns % c == 0
    ]


@dataclass(frozen=True)
class BlockPart:
    """One part of a block: `row` and `column` count parts, constants or loop variables."""

    shape: SubBlock
    row: Index = 0
    column: Index = 0

    @classmethod
    def loops(cls, shape: SubBlock) -> tuple[BlockPart, Callable[[Sequence[tirx.Stmt]], Sequence[tirx.Stmt]]]:
        """The part of the current iteration, and a function that puts the loops over all parts around statements."""
        row, column = variable("sm"), variable("sn")
        turns = (shape.block_rows // shape.rows, shape.block_columns // shape.columns)

        def around(body: Sequence[tirx.Stmt]) -> Sequence[tirx.Stmt]:
            if turns[1] > 1:
                body = [loop(column, turns[1], body)]
            return [loop(row, turns[0], body)] if turns[0] > 1 else body

        return cls(shape, row if turns[0] > 1 else 0, column if turns[1] > 1 else 0), around

    def first_in_parts(self) -> Index:
        """The number of the part's first tile in a buffer that holds one part after another."""
        across = self.shape.block_columns // self.shape.columns
        return plus(times(self.row, across * self.shape.tiles), times(self.column, self.shape.tiles))

    def each(self, make: Callable[[Index, Index], list[tirx.Stmt]]) -> list[tirx.Stmt]:
        """Loops over the part's tiles. `make` gets a tile's number in the block and its number in the part. A part of
        one tile needs no loop."""
        shape = self.shape
        if shape.is_linear:
            first = plus(times(self.row, shape.rows * shape.block_columns), times(self.column, shape.columns))
            if shape.tiles == 1:
                return make(first, 0)
            t = variable("t")
            return [loop(t, shape.tiles, make(plus(t, first), t))]
        r, c = variable("r"), variable("c")
        rows = plus(r, times(self.row, shape.rows))
        if shape.columns == 1:
            return [loop(r, shape.rows, make(plus(times(rows, shape.block_columns), self.column), r))]
        columns = plus(c, times(self.column, shape.columns))
        inner = make(plus(times(rows, shape.block_columns), columns), plus(times(r, shape.columns), c))
        return [loop(r, shape.rows, [loop(c, shape.columns, inner)])]


def plus(a: Index, b: Index) -> Index:
    """a + b, without adding zero."""
    for operand, counterpart in ((a, b), (b, a)):
        if operand == 0 if isinstance(operand, int) else constant(operand) == 0:
            return counterpart
    return a + b


def times(a: Index, factor: int) -> Index:
    """a * factor, without multiplying by one."""
    return a * factor if isinstance(a, int) or factor != 1 else a


def substituted(expression: ir.Expr, values: Mapping[ir.Var, Index], *, simplify: bool = True) -> ir.Expr:
    """An expression with variables replaced, and simplified if a value is constant."""
    if isinstance(expression, tirx.FloatImm | tirx.IntImm):
        return expression
    if isinstance(expression, ir.Var):
        return to_expr(values.get(expression, expression))
    rewritten = with_variables(expression, lambda var: to_expr(values.get(var, var)))
    constants = simplify and any(isinstance(value, int | tirx.IntImm) for value in values.values())
    return sym.Analyzer().simplify(rewritten) if constants else rewritten
