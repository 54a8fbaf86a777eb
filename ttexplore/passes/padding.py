"""What lies in the last tiles of a block beyond its shape, and who needs zeros there.

A block of (33, 50) elements takes 2x2 tiles. What a kernel says ends at the block's shape, but a product adds up whole
tiles: along the axis that it sums over, whatever lies beyond the shape must be zero in both operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, attribute, op_name, shape_of
from ttexplore.ir.dataflow import Web, is_on_chip, is_parallel, parallel_nest, webs
from ttexplore.passes.regions import BlockRegion
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS

# The functions that are zero at zero, exactly.
_KEEP_ZERO = ("abs", "fabs")


@dataclass(frozen=True)
class Padding:
    """Whether zeros lie below (`rows`) and to the right (`columns`) of a block in its own tiles."""

    rows: bool
    columns: bool

    def __and__(self, other: Padding) -> Padding:
        return Padding(self.rows and other.rows, self.columns and other.columns)


def check_padding(function: Any, loads: Mapping[Any, BlockRegion]) -> None:
    """Check that each product finds zeros where it needs them. `loads` are the regions of copies from tensors.

    Raises Unsupported, at the product's line.
    """
    facts = _Facts(function, loads)
    for web in facts.webs:
        for statement, role in web.reads:
            if role not in ("A", "B"):
                continue
            turned = attribute(statement, f"transpose_{role}")
            along_columns = (role == "A") != bool(turned)
            found = facts.of[id(web)]
            if not (found.columns if along_columns else found.rows):
                shape = shape_of(web.buffer)
                extent, tile = (shape[1], TILE_COLUMNS) if along_columns else (shape[0], TILE_ROWS)
                raise Unsupported(
                    f"{web.buffer.name} is {shape}: the product adds up whole tiles of {tile}, and what lies in "
                    f"the last one beyond {extent} is not known to be zero",
                    hint=f"make {extent} a multiple of {tile}: what a copy takes from behind a tensor is zero",
                    span=span_of(statement),
                )


class _Facts:
    """The padding of each web: a fixed point, because loops feed values back."""

    def __init__(self, function: Any, loads: Mapping[Any, BlockRegion]) -> None:
        self.webs, self.loads = webs(function), loads
        self.of = {id(web): Padding(True, True) for web in self.webs}
        self.seen: dict[tuple[Any, Any], list[Web]] = {}
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
        whole = Padding(rows % TILE_ROWS == 0, columns % TILE_COLUMNS == 0)
        found = Padding(True, True)
        for write in web.writes:
            found = found & self._written(write, web.buffer)
        return Padding(found.rows or whole.rows, found.columns or whole.columns)

    def _value(self, statement: Any, buffer: Any) -> Padding:
        """What a statement finds in a buffer, or leaves there: both, where it does both."""
        found = Padding(True, True)
        for web in self.seen.get((statement, buffer), []):
            found = found & self.of[id(web)]
        return found

    def _written(self, statement: Any, buffer: Any) -> Padding:
        if is_parallel(statement):
            return self._stored(statement, buffer)
        parts = arguments(statement)
        match op_name(statement):
            case "tl.copy" if statement in self.loads:
                block = self.loads[statement]
                return Padding(block.zero_rows, block.zero_columns)
            case "tl.copy" if is_on_chip(parts[0].source):
                return self._value(statement, parts[0].source)
            case "tl.fill":
                zero = isinstance(parts[1], tirx.FloatImm | tirx.IntImm) and float(parts[1].value) == 0.0
                return Padding(zero, zero)
            case _:
                # A product of zeros with what is no number is none.
                return Padding(False, False)

    def _stored(self, statement: Any, buffer: Any) -> Padding:
        loops, body = parallel_nest(statement)
        variables = [loop.loop_var for loop in loops]
        found = Padding(True, True)
        for store in body:
            if store.buffer.same_as(buffer):
                found = found & Padding(
                    self._is_zero(store.value, statement, variables, -2),
                    self._is_zero(store.value, statement, variables, -1),
                )
        return found

    def _is_zero(self, value: Any, statement: Any, variables: list[Any], axis: int) -> bool:
        """Whether an expression is zero beyond the block along an axis: -2 of the rows, -1 of the columns."""

        def zero(part: Any) -> bool:
            return self._is_zero(part, statement, variables, axis)

        match value:
            case tirx.FloatImm() | tirx.IntImm():
                return float(value.value) == 0.0
            case ir.TensorLoad():
                indices = list(value.indices)
                if len(indices) < -axis or len(variables) < -axis or not indices[axis].same_as(variables[axis]):
                    return False
                found = self._value(statement, value.source)
                return found.rows if axis == -2 else found.columns
            case tirx.Cast():
                return zero(value.value)
            case tirx.Add() | tirx.Sub() | tirx.Max() | tirx.Min():
                return zero(value.a) and zero(value.b)
            case tirx.Mul():
                numbers = (tirx.FloatImm, tirx.IntImm)
                return all(zero(part) or isinstance(part, numbers) for part in (value.a, value.b)) and (
                    zero(value.a) or zero(value.b)
                )
            case ir.Call() if str(value.op.name).rpartition(".")[2] in _KEEP_ZERO:
                return zero(value.args[0])
            case _:
                return False
