"""Scans of blocks as loops: each turn joins the elements at one place of an axis with those at the places after it."""

from __future__ import annotations

import math

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, line_of
from ttexplore.ir.build import (
    dtype_of,
    loop,
    number_of,
    parallel_nest,
    regions,
    shape_of,
    variable,
    whole_region,
)
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.scans import Scan, scan_of
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl

# What elements are joined as, by their dtype. Sums of integers of fewer bits would wrap around elsewhere.
_JOINED_AS = {"float32": "float32", "bfloat16": "float32", "float16": "float32", "int32": "int32"}
# Of the blocks that T.Parallel and reductions take.
_MOST_AXES = 2


def with_scans_as_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with scans of blocks as loops over the places of their axis.

    Elements are chosen and added in order: a product with ones and zeros on the matrix unit would cut float32, round
    what lies beside large elements, and make NaN of infinities. Raises Unsupported for tensors, for more than two
    dimensions, and for other dtypes than float32, bfloat16, float16 and int32.
    """
    return rewrite([SCAN], _Scans(function, firings))


class _Scans(NewBuffers):
    def scan(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        scan = scan_of(statement)
        if scan is None:
            return None
        source, target = regions(statement)
        _check(scan, source, target)
        name, values = str(source.source.name), source.source
        shape, dim = [number_of(interval.extent) for interval in source.region], scan.dim
        while len(shape) > _MOST_AXES:
            # A slot of a block of three dimensions.
            shape, dim = shape[1:], dim - 1
        dtype = _JOINED_AS[dtype_of(values)]
        scanned = self.allocate(f"{name}_scan", shape, dtype)
        masked = self.allocate(f"{name}_one", shape, dtype)
        reduced_block = self.allocate(f"{name}_part", [*shape[:dim], *shape[dim + 1 :]] or [1], dtype)
        statements: list[tirx.Stmt] = [scanned, masked, reduced_block]
        if shape != [*shape_of(values)]:
            # T.Parallel reads a block of its own here.
            copied_block = self.allocate(f"{name}_taken", shape, dtype_of(values))
            statements += [copied_block, _block(tl.COPY.name, source, whole_region(copied_block.buffer))]
            values = copied_block.buffer
        neutral = tirx.const(scan.joining.neutral_of(dtype), dtype)
        iteration, result = variable("place"), scanned.buffer
        position = iteration if not scan.reverse else tirx.const(shape[dim] - 1, "int32") - iteration

        def chosen(at: list[ir.Var]) -> ir.Expr:
            value: ir.Expr = tirx.BufferLoad(values, at)
            value = value if dtype_of(values) == dtype else tirx.Cast(ir.PrimType(dtype), value)
            return tirx.if_then_else(tirx.EQ(at[dim], position), value, neutral)

        def joined(at: list[ir.Var]) -> ir.Expr:
            before = tirx.BufferLoad(result, at)
            added = tirx.BufferLoad(reduced_block.buffer, [*at[:dim], *at[dim + 1 :]] or [tirx.const(0, "int32")])
            reached = tirx.LE(at[dim], position) if scan.reverse else tirx.GE(at[dim], position)
            return tirx.if_then_else(reached, scan.joining.expression(before, added), before)

        reduced = call(
            tl.REDUCE.name, [whole_region(masked.buffer), whole_region(reduced_block.buffer)],
            {"kind": scan.kind, "dim": dim, "clear": 1},
        )  # fmt: skip
        body = [parallel_nest(masked.buffer, chosen), tirx.Evaluate(reduced), parallel_nest(result, joined)]
        return [
            *statements,
            _block(tl.FILL.name, whole_region(result), neutral),
            loop(iteration, shape[dim], body),
            _block(tl.COPY.name, whole_region(result), target),
        ]


def _block(name: str, *arguments: ir.TensorRegion | ir.Expr) -> tirx.Stmt:
    return tirx.Evaluate(call(name, arguments))


def _check(scan: Scan, source: ir.TensorRegion, target: ir.TensorRegion) -> None:
    """Raises Unsupported for what no loop scans."""
    name, dtype = str(source.source.name), dtype_of(source.source)
    call_name = f"T.cum{scan.kind}"
    for region in (source, target):
        if not is_on_chip(region.source):
            raise Unsupported(
                "L010", f"{call_name} of {region.source.name}, which is a tensor",
                hint="copy the block into an on-chip buffer first: T.copy(...)",
            )  # fmt: skip
    if dtype not in _JOINED_AS:
        raise Unsupported(
            "L009", f"{call_name} of {name}, which is {dtype}", hint="copy it to a buffer of float32 or int32 first"
        )
    leading = [number_of(interval.extent) for interval in source.region[:-_MOST_AXES]]
    if scan.dim < len(leading):
        raise Unsupported(
            "L010", f"{call_name} of {name} along dimension {scan.dim} of {scan.rank}",
            hint="scan its matrices one after another, along one of the last two dimensions",
        )  # fmt: skip
    if (count := math.prod(leading)) != 1:
        indices = ", ".join([*"nmlk"[: len(leading)], ":", ":"])
        raise Unsupported(
            "L010", f"{call_name} of {name}, which is {count} matrices",
            hint=f"scan one matrix after another: in loops over n, {call_name}({name}[{indices}], ..., dim={scan.dim})",
        )  # fmt: skip


def note_on_scan(statement: tirx.Stmt) -> Note:
    """What the plan says about a scan."""
    scan, source = scan_of(statement), regions(statement)[0]
    assert scan is not None
    return note(
        "scan", operation=scan.kind, buffer=str(source.source.name), line=line_of(statement),
        turns=number_of(source.region[scan.dim].extent), dimension=scan.dim,
        dtype=_JOINED_AS[dtype_of(source.source)],
    )  # fmt: skip


SCAN = StatementRule(
    "scan as a loop", "A scan becomes a loop: each turn joins the elements at one place with those after it.",
    _Scans.scan,
)  # fmt: skip
