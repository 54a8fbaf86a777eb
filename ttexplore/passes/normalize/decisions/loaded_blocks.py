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
        loads = (load for interval in self.region.region for load in loads_of(interval.min))
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
            tirx.Bind(tirx.Var("checked", "int32"), call(CHECK_READ.ir_name, [test], dtype="int32")) for test in tests
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
        return {buffer for statement in walk(self.function.body) for buffer in _written(statement)}

    @functools.cached_property
    def decided(self) -> set[ir.Expr]:
        """The names that elements of tensors decide."""
        return _decided(self.function)

    def element(self, load: ir.TensorLoad, around: list[tirx.Stmt], bounds: Bounds) -> Element | None:
        """The element of a tensor that an element of a block is; None where that is not known."""
        loaded = self._held(load.source, around)
        if loaded is None:
            return None
        region, block = loaded.region, load.source
        long = [extent for interval in region.region if (extent := constant(interval.extent)) != 1]
        if long != [extent for extent in shape_of(block) if extent != 1]:
            return None
        along = iter([index for index, extent in zip(load.indices, shape_of(block), strict=True) if extent != 1])
        indices: list[ir.Expr] = []
        past: list[ir.Expr] = []
        for interval, length in zip(region.region, extents_of(region.source), strict=True):
            index = interval.min if constant(interval.extent) == 1 else interval.min + next(along)
            indices.append(index)
            if not bounds.proves(interval.min + interval.extent <= length) and not bounds.proves(index < length):
                past.append(index >= length)
        value = tirx.BufferLoad(region.source, indices, load.span)
        checks = [
            test for index, extent in zip(load.indices, shape_of(block), strict=True)
            for test in (index >= 0, index < extent) if not bounds.proves(test)
        ]  # fmt: skip
        return Element(
            value if dtype_of(region.source) == dtype_of(block) else tirx.Cast(load.ty, value),
            tuple(checks),
            tuple(past),
            any(
                node in self.decided or isinstance(node, ir.TensorLoad) for index in indices for node in nodes_of(index)
            ),
        )

    def part(self, block: Quantified, around: list[tirx.Stmt], bounds: Bounds) -> ir.TensorRegion | None:
        """The region of a tensor that a part of a block is; None where that is not known."""
        load, extents, shape = block.first, block.extents, shape_of(block.source)
        loaded = self._held(load.source, around)
        if loaded is None or dtype_of(loaded.region.source) != dtype_of(load.source):
            return None
        for low, extent, length in zip(load.indices, extents, shape, strict=True):
            if not (bounds.proves(low >= 0) and bounds.proves(low + extent <= length)):
                return None
        long_axes = [axis for axis, length in enumerate(shape) if length != 1]
        if [number for interval in loaded.region.region if (number := constant(interval.extent)) != 1] != [
            shape[a] for a in long_axes
        ]:
            return None
        along, ranges = iter(long_axes), list[ir.Range]()
        for interval in loaded.region.region:
            if constant(interval.extent) == 1:
                ranges.append(interval)
                continue
            axis = next(along)
            low = sym.Analyzer().simplify(interval.min + load.indices[axis])
            ranges.append(ir.Range.from_min_extent(low, tirx.const(extents[axis], "int32")))
        return tirx.BufferRegion(loaded.region.source, ranges)

    def pass_by(self, statement: tirx.Stmt, around: list[tirx.Stmt]) -> None:
        """Take note of what a statement writes."""
        self.passed.append((statement, around))

    def _look_at(self, statement: tirx.Stmt, around: list[tirx.Stmt]) -> None:
        self.statement = statement
        source = None
        if runs(statement, tl.COPY) and not attribute(statement, "transpose"):
            source_block, target = regions(statement)
            if is_on_chip(target.source) and is_whole(target):
                source = self._source(source_block, target.source, around)
        inside = walk(statement) if isinstance(statement, tirx.For | tirx.While | tirx.IfThenElse) else [statement]
        for one in inside:
            for buffer in _written(one):
                self.held.pop(buffer, None)
                # A place that an element of it decided cannot be told any more.
                self.held = {block: loaded for block, loaded in self.held.items() if not loaded.depends_on(buffer)}
        if source is not None:
            self.held[regions(statement)[1].source] = _Held(source, tuple(around), self._arms(around))

    def _held(self, block: tirx.Buffer, around: list[tirx.Stmt]) -> _Held | None:
        passed, self.passed = self.passed, []
        for statement, around_it in passed:
            self._look_at(statement, around_it)
        loaded = self.held.get(block)
        if loaded is None or len(loaded.around) > len(around):
            return None
        if not all(a.same_as(b) for a, b in zip(loaded.around, around, strict=False)):
            return None
        return loaded if loaded.arms == self._arms(around[: len(loaded.around)]) else None

    def _arms(self, around: list[tirx.Stmt]) -> tuple[bool | None, ...]:
        """Of each of the branches around the statement, whether it is in the first arm; None where it is new."""
        arms_around: list[bool | None] = []
        for branch in around:
            if isinstance(branch, tirx.IfThenElse):
                arms = {True: branch.then_case, False: branch.else_case}
                of = [which for which, arm in arms.items() if arm is not None and self._is_in(arm)]
                arms_around.append(of[0] if of else None)
        return tuple(arms_around)

    def _is_in(self, arm: tirx.Stmt) -> bool:
        return any(node.same_as(self.statement) for node in walk(arm))

    def _source(
        self, region: ir.TensorRegion, block: tirx.Buffer, around: list[tirx.Stmt]
    ) -> ir.TensorRegion | None:  # fmt: skip
        if is_on_chip(region.source):
            loaded = self._held(region.source, around)
            same = dtype_of(region.source) == dtype_of(block) and shape_of(region.source) == shape_of(block)
            return loaded.region if loaded is not None and same and is_whole(region) else None
        floats = all("float" in dtype_of(buffer) for buffer in (region.source, block))
        if region.source in self.changed or not (floats or dtype_of(region.source) == dtype_of(block)):
            return None
        return region


def _decided(function: tirx.PrimFunc) -> set[ir.Expr]:
    decided = set[ir.Expr]()
    for statement in walk(function.body):
        match statement:
            case tirx.For():
                name, values = statement.loop_var, [statement.min, statement.extent]
            case tirx.Bind():
                name, values = statement.var, [statement.value]
            case _:
                continue
        if any(node in decided or isinstance(node, ir.TensorLoad) for value in values for node in nodes_of(value)):
            decided.add(name)
    return decided


def _written(statement: tirx.Stmt) -> list[tirx.Buffer]:
    """The buffers that a statement itself may write."""
    if type(statement) is tirx.BufferStore:
        return [statement.buffer]
    name = op_name(statement)
    if not name:
        return []
    operand_regions = regions(statement)
    return [region.source for region in (operand_regions[1:] if name == tl.COPY.name else operand_regions)]
