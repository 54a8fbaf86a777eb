"""Blocks whose elements are read from computed places of a tensor."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.build import arguments, number_of, op_name, operands, regions, shape_of


@dataclass(frozen=True)
class Gathered:
    """The variables for the row and the column of an element of a block, and the rows and columns of the block."""

    variables: tuple[ir.Var, ir.Var]
    shape: tuple[int, int]


def gathered_block(statement: tirx.Stmt) -> Gathered:
    """What ``tl.gather`` or ``tt.read_gathered`` computes places from: two of its arguments are variables."""
    if op_name(statement) == "tl.gather":
        row, column = arguments(statement)[2:4]
        rows, columns = (1, *shape_of(regions(statement)[1].source))[-2:]
    else:
        given = operands(statement)
        row, column = given["row_index"], given["column_index"]
        rows, columns = number_of(given["rows"]), number_of(given["columns"])
    assert isinstance(row, ir.Var)
    assert isinstance(column, ir.Var)
    return Gathered((row, column), (rows, columns))


def places_of(statement: tirx.Stmt) -> list[ir.Expr]:
    """The indices of the elements that ``tl.gather`` reads."""
    return arguments(statement)[4:]
