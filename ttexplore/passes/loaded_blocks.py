"""Which blocks hold a part of a tensor, as it is, at each statement of a rewrite."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.build import attribute, constant, dtype_of, is_whole, op_name, regions, shape_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.rewrite import walk


@dataclass(frozen=True)
class _Held:
    """The region of a tensor that a block holds, and the loops and branches around the copy."""

    region: ir.TensorRegion
    around: tuple[tirx.Stmt, ...]


class LoadedBlocks:
    """What blocks hold. `pass_by` is told each statement before it is looked into, in order."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.held: dict[tirx.Buffer, _Held] = {}
        self.changed = {one for statement in walk(function.body) for one in _written(statement)}

    def element(self, load: ir.TensorLoad, around: list[tirx.Stmt]) -> ir.Expr | None:
        """The element of a tensor that an element of a block is; None where that is not known."""
        found = self._held(load.source, around)
        if found is None:
            return None
        region, block = found.region, load.source
        long = [extent for part in region.region if (extent := constant(part.extent)) != 1]
        if long != [extent for extent in shape_of(block) if extent != 1]:
            return None
        along = iter([index for index, extent in zip(load.indices, shape_of(block), strict=True) if extent != 1])
        places = [part.min if constant(part.extent) == 1 else part.min + next(along) for part in region.region]
        value = tirx.BufferLoad(region.source, places, load.span)
        return value if dtype_of(region.source) == dtype_of(block) else tirx.Cast(load.ty, value)

    def pass_by(self, statement: tirx.Stmt, around: list[tirx.Stmt]) -> None:
        """Take note of what a statement writes."""
        source = None
        if op_name(statement) == "tl.copy" and not attribute(statement, "transpose"):
            part, target = regions(statement)
            if is_on_chip(target.source) and is_whole(target):
                source = self._source(part, target.source, around)
        inside = walk(statement) if isinstance(statement, tirx.For | tirx.While | tirx.IfThenElse) else [statement]
        for one in inside:
            for buffer in _written(one):
                self.held.pop(buffer, None)
        if source is not None:
            self.held[regions(statement)[1].source] = _Held(source, tuple(around))

    def _held(self, block: tirx.Buffer, around: list[tirx.Stmt]) -> _Held | None:
        found = self.held.get(block)
        if found is None or len(found.around) > len(around):
            return None
        return found if all(a.same_as(b) for a, b in zip(found.around, around, strict=False)) else None

    def _source(
        self, part: ir.TensorRegion, block: tirx.Buffer, around: list[tirx.Stmt]
    ) -> ir.TensorRegion | None:  # fmt: skip
        if is_on_chip(part.source):
            found = self._held(part.source, around)
            same = dtype_of(part.source) == dtype_of(block) and shape_of(part.source) == shape_of(block)
            return found.region if found is not None and same and is_whole(part) else None
        floats = all("float" in dtype_of(one) for one in (part.source, block))
        if part.source in self.changed or not (floats or dtype_of(part.source) == dtype_of(block)):
            return None
        return part


def _written(statement: tirx.Stmt) -> list[tirx.Buffer]:
    """The buffers that a statement itself may write."""
    if isinstance(statement, tirx.BufferStore):
        return [statement.buffer]
    if not op_name(statement):
        return []
    parts = regions(statement)
    return [one.source for one in (parts[1:] if op_name(statement) == "tl.copy" else parts)]
