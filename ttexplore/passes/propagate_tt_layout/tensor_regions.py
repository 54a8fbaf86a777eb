"""The regions of tensors that copies move, and what is noted of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tvm import tirx

from ttexplore.analysis.accessors import accessor_of
from ttexplore.analysis.expressions import check_indices
from ttexplore.analysis.regions import BlockRegion, block_region, check_on_chip, gathered_region
from ttexplore.analysis.staging import check_block
from ttexplore.errors import TTExploreError
from ttexplore.ir.adapter import line_of, span_of
from ttexplore.ir.arithmetic.bounds import Bounds
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import constant, op_name, regions, shape_of, statements
from ttexplore.ir.dataflow import blocks, is_on_chip, is_parallel
from ttexplore.ir.operations.gathers import is_rearranged
from ttexplore.ir.program import TirProgram
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.target import Target


def tensor_regions(program: TirProgram, target: Target) -> tuple[dict[tirx.Stmt, BlockRegion], list[Note]]:
    """The tensor region that each copy moves, by statement, and notes on those that no block can fill and on what moves
    element by element.

    Raises the errors of :func:`block_region`, at the kernel's line, for a region that neither tiles nor strips express.
    """
    block_regions: dict[tirx.Stmt, BlockRegion] = {}
    outside: list[Note] = []
    bounds = Bounds(program.kernel)

    def visit(body: tirx.Stmt) -> None:
        for statement in statements(body):
            bounds.enter(statement)
            try:
                for block in _regions(statement, bounds, program, target):
                    block_regions[statement] = block
            except TTExploreError as error:
                raise error.at(span_of(statement)) from None
            if op_name(statement) == tl.COPY.name:
                outside.extend(_outside_notes(statement, bounds))
            if isinstance(statement, tirx.For):
                if not is_parallel(statement):
                    visit(statement.body)
                bounds.leave(statement)

    visit(program.kernel.body)
    return block_regions, [*outside, *_elementwise_notes(block_regions), *_rearranged_notes(program.kernel)]


def _outside_notes(statement: tirx.Stmt, bounds: Bounds) -> Iterator[Note]:
    """The axes along which a part of a copied block is outside of the tensor wherever the block is, though blocks do
    not stand side by side: it may have been meant for another axis."""
    for region in regions(statement):
        lengths = extents_of(region.source)
        for axis, (interval, length) in enumerate(zip(region.region, lengths, strict=True)):
            extent = constant(interval.extent) or 0
            if isinstance(length, int) and extent > length and not bounds.is_multiple(interval.min, extent):
                values = {"axis": axis, "extent": extent, "length": length, "outside": extent - length}
                yield note("always outside", tensor=str(region.source.name), line=line_of(statement), **values)


def _regions(statement: tirx.Stmt, bounds: Bounds, program: TirProgram, target: Target) -> list[BlockRegion]:
    if is_parallel(statement):
        check_indices(statement, bounds)
    name = op_name(statement)
    if name not in tl.STATEMENTS:
        return []
    moved = regions(statement)
    tensors = [region for region in moved if not is_on_chip(region.source)]
    for region in moved:
        if is_on_chip(region.source):
            check_block(region.source)
            check_on_chip(region)
    block_regions: list[BlockRegion] = []
    if is_rearranged(statement):
        return []
    if name == tl.GATHER.name:
        layout = program.plan.layout(str(tensors[0].source.name))
        return [gathered_region(statement, layout, accessor_of(layout), bounds, target.dram_alignment_bytes)]
    for region in tensors:
        write = region.same_as(moved[1])
        block = shape_of(moved[0 if write else 1].source)
        layout = program.plan.layout(str(region.source.name))
        alignment = target.dram_alignment_bytes
        block_regions.append(block_region(region, block, layout, accessor_of(layout), bounds, alignment, write=write))
    return block_regions


def _elementwise_notes(moved: Mapping[tirx.Stmt, BlockRegion]) -> Iterator[Note]:
    """The blocks that are read or stored element by element, and what that costs."""
    for statement, block in moved.items():
        if block.steps:
            source, target = (region.source for region in regions(statement))
            kind, tensor = ("elements stored", target) if is_on_chip(source) else ("elements read", source)
            count = block.rows * block.columns
            yield note(kind, tensor=str(tensor.name), line=line_of(statement), count=count)
        elif block.places is not None:
            kind, tensor = "gathered runs" if block.unit > 1 else "gathered elements", regions(statement)[0].source
            count = block.rows * block.columns // block.unit
            yield note(kind, tensor=str(tensor.name), line=line_of(statement), count=count)


def _rearranged_notes(kernel: tirx.PrimFunc) -> Iterator[Note]:
    """The blocks whose elements the writer moves one by one, and what that costs."""
    for statement in filter(is_rearranged, blocks(kernel.body)):
        source, target = (region.source for region in regions(statement))
        count = math.prod(shape_of(target))
        yield note("rearranged", buffer=str(source.name), line=line_of(statement), count=count)
