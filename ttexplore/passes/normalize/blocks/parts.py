"""Parts of blocks: rows, columns, elements and regions of blocks on the chip, as whole blocks."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.arithmetic.sizes import constant_extents
from ttexplore.ir.build import (
    arguments,
    constant,
    is_whole,
    op_name,
    overwrites,
    parallel_loops,
    regions,
    runs,
    shape_of,
    whole_region,
    with_arguments,
)
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.nest_parts import PartRewriting


def with_whole_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose statements work on whole blocks.

    A row, a column or an element is chosen with a mask and a sum, which is exact: all other terms are zero. Regions
    that start at tiles move as tiles. What is stored to a part of a block is chosen there, and the rest of the block
    stays. What has another form is left as it is, for later passes to refuse.
    """
    context = _Operations(function, firings)
    return context.begun.filled(rewrite(_RULES, context), firings)


class _Operations(PartRewriting):
    """Operations on parts, as copies of the parts and operations on blocks of their own."""

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        name = op_name(statement)
        if not runs(statement, tl.COPY, tl.FILL, tl.GEMM, tl.REDUCE):
            return None
        operands = arguments(statement)
        operand_regions = regions(statement)
        if name == tl.COPY.name and all(is_on_chip(region.source) for region in operand_regions):
            source, target = operand_regions
            if is_whole(source) and is_whole(target) and shape_of(source.source) == shape_of(target.source):
                return None
            return self.copied(source, target, statement)
        if not any(is_on_chip(region.source) and not is_whole(region) for region in operand_regions):
            return None
        if name == tl.FILL.name:
            return self.stored(operand_regions[0], operands[1], statement)
        return self.staged(name, operands, operand_regions, statement)

    def staged(
        self, name: str, operands: list[ir.Expr], operand_regions: list[ir.TensorRegion], statement: tirx.Stmt
    ) -> list[tirx.Stmt]:
        """An operation on blocks in place of the parts."""
        before: list[tirx.Stmt] = []
        after: list[tirx.Stmt] = []
        for position, region in enumerate(operand_regions):
            if not is_on_chip(region.source) or is_whole(region):
                continue
            block = self.of(region.source, "part", constant_extents(region))
            block_region, writes = whole_region(block.buffer), position == len(operand_regions) - 1
            before.append(block)
            if not writes or not overwrites(statement):
                before += self.copied(region, block_region, statement)
            if writes:
                after += self.copied(block_region, region, statement)
            operands[position] = block_region
        return [*before, with_arguments(statement, operands), *after]

    def copied(self, source: ir.TensorRegion, target: ir.TensorRegion, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """The copy of a part of a block, as a T.Parallel over it."""
        driver, follower = (source, target) if is_whole(source) and not is_whole(target) else (target, source)
        axes = [*enumerate(constant_extents(driver))]
        if not is_whole(driver):
            axes = [(axis, extent) for axis, extent in axes if extent != 1] or axes[-1:]
        if len(axes) > 2:
            raise Unsupported(
                "L010",
                f"a copy of {len(axes)} axes of {driver.source.name}",
                hint="copy parts of at most two axes, in a loop over the others",
            )
        variables = [tirx.Var(name, "int32") for name, _ in zip("ij", axes, strict=False)]
        extents = [extent for _, extent in axes]
        driver_vars = dict(zip((axis for axis, _ in axes), variables, strict=True))
        longs = [variable for variable, extent in zip(variables, extents, strict=True) if extent != 1]
        theirs: dict[int, ir.Var] = {}
        for axis, extent in enumerate(constant_extents(follower)):
            if extent != 1:
                theirs[axis] = longs[len(theirs)]
        indices_of = {driver: _indices(driver, driver_vars), follower: _indices(follower, theirs)}
        value: ir.Expr = tirx.BufferLoad(source.source, indices_of[source], statement.span)
        if source.source.ty.dtype != target.source.ty.dtype:
            value = tirx.Cast(target.source.ty.dtype, value)
        store = tirx.BufferStore(target.source, value, indices_of[target], statement.span)
        return self.of_nest(parallel_loops(variables, extents, store), statement)

    def stored(self, target: ir.TensorRegion, value: ir.Expr, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """One value for all elements of a part of a block."""
        axes = [(axis, extent) for axis, extent in enumerate(constant_extents(target)) if extent != 1]
        axes = axes or [(len(target.region) - 1, 1)]
        variables = [tirx.Var(name, "int32") for name, _ in zip("ij", axes, strict=False)]
        axis_vars = dict(zip((axis for axis, _ in axes), variables, strict=True))
        store = tirx.BufferStore(target.source, value, _indices(target, axis_vars), statement.span)
        return self.of_nest(parallel_loops(variables, [extent for _, extent in axes], store), statement)


def _indices(region: ir.TensorRegion, variables: dict[int, ir.Var]) -> list[ir.Expr]:
    """The indices of the element of a region at loop variables, by axis."""
    return [
        interval.min if axis not in variables
        else variables[axis] if constant(interval.min) == 0
        else interval.min + variables[axis]
        for axis, interval in enumerate(region.region)
    ]  # fmt: skip


_RULES = (
    StatementRule(
        "part of a block", "An operation on a part of a block works on a block of its own.", _Operations.operation
    ),
    StatementRule(
        "parts of blocks", "A T.Parallel reads and stores whole blocks; masks choose their parts.", _Operations.nest
    ),
)  # fmt: skip
