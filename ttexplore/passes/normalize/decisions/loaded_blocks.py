"""Which blocks hold a part of a tensor, as it is, at each statement of a rewrite."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.arithmetic.bounds import Bounds
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import attribute, constant, dtype_of, is_whole, op_name, regions, runs, shape_of
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, loads_of
from ttexplore.ir.operations.quantified import Quantified
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.ops.scalars import CHECK_READ


@dataclass(frozen=True)
class _Held:
    """The region of a tensor that a block holds, the loops and branches around the copy, and the arms of these."""

    region: ir.TensorRegion
    around: tuple[tirx.Stmt, ...]
    arms: tuple[bool | None, ...]

    def depends_on(self, buffer: tirx.Buffer) -> bool:
        """Whether an element of a buffer decides the region."""
        loads = (load for part in self.region.region for load in loads_of(part.min))
        return any(load.source.same_as(buffer) for load in loads)


@dataclass(frozen=True)
class Element:
    """An element of a tensor that an element of a block is.

    `checks` must hold for it to be one of the block; where one of `past` holds, it lies past the end of the tensor and
    is 0. `is_decided` says whether elements of tensors decide which one it is.
    """

    value: ir.Expr
    checks: tuple[ir.Expr, ...]
    past: tuple[ir.Expr, ...]
    is_decided: bool

    def checked(self, asked: ir.Expr | None = None) -> list[tirx.Stmt]:
        """The checks, as statements; `asked` is the condition under which anybody wants the element."""
        tests = (test if asked is None else tirx.Or(tirx.Not(asked), test) for test in self.checks)
        return [
            tirx.Bind(tirx.Var("checked", "int32"), call(CHECK_READ.ir_name, [one], dtype="int32")) for one in tests
        ]


class LoadedBlocks:
    """What blocks hold. `pass_by` is told each statement before it is looked into, in order; they are looked at when
    somebody asks for a block, which few kernels do."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.function = function
        self.held: dict[tirx.Buffer, _Held] = {}
        self.passed: list[tuple[tirx.Stmt, list[tirx.Stmt]]] = []
        self.statement: tirx.Stmt | None = None

    @functools.cached_property
    def changed(self) -> set[tirx.Buffer]:
        """The buffers that the kernel writes."""
        return {one for statement in walk(self.function.body) for one in _written(statement)}

    @functools.cached_property
    def decided(self) -> set[ir.Expr]:
        """The names that elements of tensors decide."""
        return _decided(self.function)

    def element(self, load: ir.TensorLoad, around: list[tirx.Stmt], bounds: Bounds) -> Element | None:
        """The element of a tensor that an element of a block is; None where that is not known."""
        found = self._held(load.source, around)
        if found is None:
            return None
        region, block = found.region, load.source
        long = [extent for part in region.region if (extent := constant(part.extent)) != 1]
        if long != [extent for extent in shape_of(block) if extent != 1]:
            return None
        along = iter([index for index, extent in zip(load.indices, shape_of(block), strict=True) if extent != 1])
        places: list[ir.Expr] = []
        past: list[ir.Expr] = []
        for part, length in zip(region.region, extents_of(region.source), strict=True):
            place = part.min if constant(part.extent) == 1 else part.min + next(along)
            places.append(place)
            if not bounds.proves(part.min + part.extent <= length) and not bounds.proves(place < length):
                past.append(place >= length)
        value = tirx.BufferLoad(region.source, places, load.span)
        checks = [
            test for index, extent in zip(load.indices, shape_of(block), strict=True)
            for test in (index >= 0, index < extent) if not bounds.proves(test)
        ]  # fmt: skip
        return Element(
            value if dtype_of(region.source) == dtype_of(block) else tirx.Cast(load.ty, value),
            tuple(checks),
            tuple(past),
            any(one in self.decided or isinstance(one, ir.TensorLoad) for place in places for one in nodes_of(place)),
        )

    def part(self, block: Quantified, around: list[tirx.Stmt], bounds: Bounds) -> ir.TensorRegion | None:
        """The region of a tensor that a part of a block is; None where that is not known."""
        load, extents, shape = block.first, block.extents, shape_of(block.source)
        found = self._held(load.source, around)
        if found is None or dtype_of(found.region.source) != dtype_of(load.source):
            return None
        for low, extent, length in zip(load.indices, extents, shape, strict=True):
            if not (bounds.proves(low >= 0) and bounds.proves(low + extent <= length)):
                return None
        own = [axis for axis, length in enumerate(shape) if length != 1]
        if [number for part in found.region.region if (number := constant(part.extent)) != 1] != [
            shape[a] for a in own
        ]:
            return None
        along, ranges = iter(own), list[ir.Range]()
        for part in found.region.region:
            if constant(part.extent) == 1:
                ranges.append(part)
                continue
            axis = next(along)
            low = sym.Analyzer().simplify(part.min + load.indices[axis])
            ranges.append(ir.Range.from_min_extent(low, tirx.const(extents[axis], "int32")))
        return tirx.BufferRegion(found.region.source, ranges)

    def pass_by(self, statement: tirx.Stmt, around: list[tirx.Stmt]) -> None:
        """Take note of what a statement writes."""
        self.passed.append((statement, around))

    def _look_at(self, statement: tirx.Stmt, around: list[tirx.Stmt]) -> None:
        self.statement = statement
        source = None
        if runs(statement, tl.COPY) and not attribute(statement, "transpose"):
            part, target = regions(statement)
            if is_on_chip(target.source) and is_whole(target):
                source = self._source(part, target.source, around)
        inside = walk(statement) if isinstance(statement, tirx.For | tirx.While | tirx.IfThenElse) else [statement]
        for one in inside:
            for buffer in _written(one):
                self.held.pop(buffer, None)
                # A place that an element of it decided cannot be told any more.
                self.held = {block: held for block, held in self.held.items() if not held.depends_on(buffer)}
        if source is not None:
            self.held[regions(statement)[1].source] = _Held(source, tuple(around), self._arms(around))

    def _held(self, block: tirx.Buffer, around: list[tirx.Stmt]) -> _Held | None:
        passed, self.passed = self.passed, []
        for statement, around_it in passed:
            self._look_at(statement, around_it)
        found = self.held.get(block)
        if found is None or len(found.around) > len(around):
            return None
        if not all(a.same_as(b) for a, b in zip(found.around, around, strict=False)):
            return None
        return found if found.arms == self._arms(around[: len(found.around)]) else None

    def _arms(self, around: list[tirx.Stmt]) -> tuple[bool | None, ...]:
        """Of each of the branches around the statement, whether it is in the first arm; None where it is new."""
        found: list[bool | None] = []
        for branch in around:
            if isinstance(branch, tirx.IfThenElse):
                arms = {True: branch.then_case, False: branch.else_case}
                of = [which for which, arm in arms.items() if arm is not None and self._is_in(arm)]
                found.append(of[0] if of else None)
        return tuple(found)

    def _is_in(self, arm: tirx.Stmt) -> bool:
        return any(one.same_as(self.statement) for one in walk(arm))

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


def _decided(function: tirx.PrimFunc) -> set[ir.Expr]:
    found = set[ir.Expr]()
    for one in walk(function.body):
        match one:
            case tirx.For():
                name, values = one.loop_var, [one.min, one.extent]
            case tirx.Bind():
                name, values = one.var, [one.value]
            case _:
                continue
        if any(part in found or isinstance(part, ir.TensorLoad) for value in values for part in nodes_of(value)):
            found.add(name)
    return found


def _written(statement: tirx.Stmt) -> list[tirx.Buffer]:
    """The buffers that a statement itself may write."""
    if type(statement) is tirx.BufferStore:
        return [statement.buffer]
    name = op_name(statement)
    if not name:
        return []
    parts = regions(statement)
    return [one.source for one in (parts[1:] if name == tl.COPY.name else parts)]
