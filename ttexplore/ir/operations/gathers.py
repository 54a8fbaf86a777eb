"""Blocks whose elements are read from computed places of a tensor, or of another block."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.build import arguments, number_of, operands, regions, runs, shape_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ops import language as tl
from ttexplore.ops.blocks import READ_GATHERED, REARRANGE

GATHERS = (tl.GATHER.name, READ_GATHERED.ir_name, REARRANGE.ir_name)


@dataclass(frozen=True)
class Gathered:
    """The variables for the row and the column of an element of a block, and the rows and columns of the block."""

    variables: tuple[ir.Var, ir.Var]
    shape: tuple[int, int]


def gathered_block(statement: tirx.Stmt) -> Gathered:
    """What an operation of :data:`GATHERS` computes places from: two of its arguments are variables."""
    if runs(statement, tl.GATHER):
        row, column = arguments(statement)[2:4]
        rows, columns = (1, *shape_of(regions(statement)[1].source))[-2:]
    else:
        by_name = operands(statement)
        row, column = by_name["row_index"], by_name["column_index"]
        rows, columns = number_of(by_name["rows"]), number_of(by_name["columns"])
    assert isinstance(row, ir.Var)
    assert isinstance(column, ir.Var)
    return Gathered((row, column), (rows, columns))


def is_rearranged(statement: tirx.Stmt) -> bool:
    """Whether a statement makes a block from the elements of another one, at computed places."""
    return runs(statement, tl.GATHER) and is_on_chip(regions(statement)[0].source)


def places_of(statement: tirx.Stmt) -> list[ir.Expr]:
    """The indices of the elements that ``tl.gather`` reads."""
    return arguments(statement)[4:]
