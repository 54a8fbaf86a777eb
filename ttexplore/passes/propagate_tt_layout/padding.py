"""Mask operands of matrix products and reductions whose last tiles may hold padding that changes the result.

A block of (33, 50) elements occupies 2x2 tiles. The kernel's operations end at the shape of the block, but a matrix
product sums over whole tiles: along the summed axis, the padding of both operands must be zero. A reduction also takes
whole tiles: along the reduced axis, the padding must be the neutral element, such as 0 for a sum. Where that is not
known, the operation reads a masked copy of the operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import AddedBuffers
from ttexplore.ir.adapter import line_of
from ttexplore.ir.build import (
    arguments,
    attribute,
    dtype_of,
    op_name,
    parallel_nest,
    regions,
    shape_of,
    with_arguments,
)
from ttexplore.ir.dag import folded
from ttexplore.ir.dataflow import Web, is_on_chip, is_parallel, nest_of, webs
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.operations.storage import TensorMove
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS

# Functions that map zero to exactly zero.
_KEEP_ZERO = ("abs", "fabs")


@dataclass(frozen=True)
class Padding:
    """Whether the padding of a block below (`rows`) and to the right (`columns`) is zero."""

    rows: bool
    columns: bool

    def __and__(self, other: Padding) -> Padding:
        return Padding(self.rows and other.rows, self.columns and other.columns)


def with_masks(
    function: tirx.PrimFunc, loads: Mapping[tirx.Stmt, TensorMove], firings: Firings
) -> tuple[tirx.PrimFunc, tuple[Note, ...]]:  # fmt: skip
    """The kernel with masked operands where a product or a reduction would take in padding, and a note for each mask.

    The condition holds for all elements of the block, but not for the padding of its last tiles. The mask selects 0
    instead of multiplying by 0, because that would keep NaN and infinity. `loads` says what copies leave zero.
    """
    facts = _PaddingFacts(function, loads)
    masks = _Masks(function, firings)
    notes: list[Note] = []
    for web in facts.webs:
        padding, buffer = facts.of[id(web)], web.buffer
        for statement, role in web.reads:
            needed = _needed(statement, role, buffer)
            if needed is None:
                continue
            axis, neutral = needed
            extent, tile = shape_of(buffer)[axis], _tile(axis)
            if extent % tile == 0 or (neutral == 0 and (padding.columns if axis == -1 else padding.rows)):
                continue
            copy = masks.like(buffer, f"{buffer.name}_masked")
            masks.operands.setdefault(statement, {})[role] = (buffer, copy, axis, neutral)
            notes.append(_note(buffer, str(copy.name), axis, statement, neutral))

    return (rewrite(_RULES, masks), tuple(notes)) if notes else (function, ())


def _needed(statement: tirx.Stmt, role: str, buffer: tirx.Buffer) -> tuple[int, float] | None:
    """Along which axis a statement takes whole tiles of an operand, and what must lie beyond the block there."""
    if role in ("A", "B"):
        return -1 if (role == "A") != bool(attribute(statement, f"transpose_{role}")) else -2, 0.0
    reduction = reduction_of(statement)
    if role != "reduced" or reduction is None:
        return None
    return reduction.dim - reduction.rank, reduction.joining.neutral_of(dtype_of(buffer))


def _tile(axis: int) -> int:
    return (TILE_ROWS, TILE_COLUMNS)[axis]


class _Masks(AddedBuffers):
    """The masked copies: `operands` holds, by statement and operand, the original, the copy, the axis of the mask and
    the number that replaces the padding."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.operands: dict[tirx.Stmt, dict[str, tuple[tirx.Buffer, tirx.Buffer, int, float]]] = {}

    def product(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if statement not in self.operands:
            return None
        operands = arguments(statement)
        nests: list[tirx.Stmt] = []
        for role, (source, target, axis, neutral) in self.operands[statement].items():
            nests.append(_mask(source, target, axis, neutral))
            position = {"A": 0, "B": 1, "reduced": 0}[role]
            operands[position] = tirx.BufferRegion(target, list(regions(statement)[position].region))
        return [*nests, with_arguments(statement, operands)]


_RULES = (
    StatementRule("buffer for a masked copy", "The masked copy of an operand needs a buffer.", _Masks.allocation),
    StatementRule(
        "masked operand",
        "Products and reductions take whole tiles, so the neutral element replaces the padding of the block.",
        _Masks.product,
    ),
)


def _mask(source: tirx.Buffer, target: tirx.Buffer, axis: int, neutral: float) -> tirx.Stmt:
    number, extent = tirx.const(neutral, source.ty.dtype), shape_of(source)[axis]
    return parallel_nest(
        target, lambda at: tirx.if_then_else(at[axis] < extent, tirx.BufferLoad(source, at), number)
    )  # fmt: skip


def _note(buffer: tirx.Buffer, name: str, axis: int, statement: tirx.Stmt, neutral: float) -> Note:
    return note(
        "mask of a product" if reduction_of(statement) is None else "mask of a reduction", mask=name,
        buffer=str(buffer.name), line=line_of(statement), extent=shape_of(buffer)[axis], tile=_tile(axis),
        neutral=f"{neutral:g}",
    )  # fmt: skip


class _PaddingFacts:
    """The padding of each web, as a fixed point, because loops carry values over."""

    def __init__(self, function: tirx.PrimFunc, loads: Mapping[tirx.Stmt, TensorMove]) -> None:
        self.webs, self.loads = webs(function), loads
        self.of = {id(web): Padding(True, True) for web in self.webs}
        self.seen: dict[tuple[tirx.Stmt, tirx.Buffer], list[Web]] = {}
        for web in self.webs:
            for statement in [*web.writes, *(read for read, _ in web.reads)]:
                self.seen.setdefault((statement, web.buffer), []).append(web)
        while True:
            before = dict(self.of)
            for web in self.webs:
                self.of[id(web)] = self._web(web)
            if before == self.of:
                return

    def _web(self, web: Web) -> Padding:
        rows, columns = (1, *shape_of(web.buffer))[-2:]
        aligned = Padding(rows % TILE_ROWS == 0, columns % TILE_COLUMNS == 0)
        padding = Padding(True, True)
        for write in web.writes:
            padding = padding & self._written(write, web.buffer)
        return Padding(padding.rows or aligned.rows, padding.columns or aligned.columns)

    def _value(self, statement: tirx.Stmt, buffer: tirx.Buffer) -> Padding:
        """The padding of the values of a buffer that a statement reads or writes."""
        padding = Padding(True, True)
        for web in self.seen.get((statement, buffer), []):
            padding = padding & self.of[id(web)]
        return padding

    def _written(self, statement: tirx.Stmt, buffer: tirx.Buffer) -> Padding:
        if is_parallel(statement):
            return self._stored(statement, buffer)
        match op_name(statement):
            case tl.COPY.name | tl.GATHER.name if statement in self.loads:
                move = self.loads[statement]
                return Padding(move.zero_rows, move.zero_columns)
            case tl.GATHER.name:
                # The writer fills the tiles of a rearranged block with zeros first.
                return Padding(True, True)
            case tl.COPY.name if is_on_chip(regions(statement)[0].source):
                return self._value(statement, regions(statement)[0].source)
            case tl.FILL.name:
                number = arguments(statement)[1]
                zero = isinstance(number, tirx.FloatImm | tirx.IntImm) and float(number.value) == 0.0
                return Padding(zero, zero)
            case _:
                # Zero times NaN is NaN.
                return Padding(False, False)

    def _stored(self, statement: tirx.Stmt, buffer: tirx.Buffer) -> Padding:
        loops, body = nest_of(statement)
        variables = [loop.loop_var for loop in loops]
        names: dict[ir.Var, Padding] = {}
        padding = Padding(True, True)
        for inner in body:
            elements = folded(
                inner.value, lambda expr, paddings: self._elements(expr, paddings, statement, variables, names)
            )
            if isinstance(inner, tirx.Bind):
                names[inner.var] = elements
            elif inner.buffer.same_as(buffer):
                padding = padding & elements
        return padding

    def _elements(
        self,
        value: ir.Expr,
        paddings: list[Padding],
        statement: tirx.Stmt,
        variables: list[ir.Var],
        names: dict[ir.Var, Padding],
    ) -> Padding:
        """Where the padding of an expression is zero, given the padding of its parts."""
        neither = Padding(False, False)
        match value:
            case tirx.FloatImm() | tirx.IntImm():
                zero = float(value.value) == 0.0
                return Padding(zero, zero)
            case ir.Var():
                return names.get(value, neither)
            case ir.TensorLoad():
                padding = self._value(statement, value.source)
                indices = list(value.indices)
                rows, columns = (
                    len(indices) >= -axis and len(variables) >= -axis and bool(indices[axis].same_as(variables[axis]))
                    for axis in (-2, -1)
                )
                return Padding(padding.rows and rows, padding.columns and columns)
            case tirx.Cast():
                return paddings[0]
            case tirx.Add() | tirx.Sub() | tirx.Max() | tirx.Min():
                return paddings[0] & paddings[1]
            case tirx.Mul():
                # Zero times NaN is NaN.
                numbers = [isinstance(operand, tirx.FloatImm | tirx.IntImm) for operand in (value.a, value.b)]
                a, b = paddings
                return Padding(
                    *(
                        (x or y) and all(zero or number for zero, number in zip((x, y), numbers, strict=True))
                        for x, y in ((a.rows, b.rows), (a.columns, b.columns))
                    )
                )
            case ir.Call() if str(value.op.name).rpartition(".")[2] in _KEEP_ZERO:
                return paddings[0]
            case _:
                return neither
