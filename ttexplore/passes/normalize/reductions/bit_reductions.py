"""Reductions of bits as loops: each turn reduces one bit of all elements."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, sym, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, line_of
from ttexplore.ir.build import (
    dtype_of,
    loop,
    number_of,
    parallel_loops,
    parallel_nest,
    parallel_variables,
    regions,
    variable,
    whole_region,
)
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl

# How many bits of an int32 with the number of each dtype are to be joined: those above repeat the last one.
_BITS = {"bool": 1, "uint8": 8, "int8": 32, "int32": 32}


def with_bits_reduced(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with reductions of bits as loops over the bits.

        T.reduce_bitor(a, r, dim=1)  ==>  T.fill(a_joined, 0)
                                          for bit in range(32):
                                              for i, j in T.Parallel(32, 64):
                                                  a_bits[i, j] = (a[i, j] >> bit) & 1
                                              T.reduce_max(a_bits, a_part, dim=1)
                                              for i in T.Parallel(32):
                                                  a_joined[i] = a_joined[i] | (a_part[i] << bit)
                                          for i in T.Parallel(32):
                                              r[i] = a_joined[i]

    The chip joins the bits of two tiles, but not those of the elements of one. Of zeros and ones, "and" is the minimum,
    "or" the maximum and "exclusive or" the lowest bit of the sum. Raises Unsupported for integers of other sizes.
    """
    return rewrite([BITS], _Bits(function, firings))


class _Bits(NewBuffers):
    def reduction(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        reduction = reduction_of(statement)
        if reduction is None or not reduction.joining.of_bits:
            return None
        source, target = regions(statement)
        name, joining = str(source.source.name), reduction.joining
        count = _bits(reduction.kind, source.source, target.source)
        preceding: list[tirx.Stmt] = []
        extents = [number_of(interval.extent) for interval in source.region]
        if not is_on_chip(source.source):
            copied_block = self.allocate(f"{name}_taken", extents, dtype_of(source.source))
            preceding += [copied_block, _block(tl.COPY.name, source, whole_region(copied_block.buffer))]
            source = whole_region(copied_block.buffer)
        axes = [axis for axis, extent in enumerate(extents) if extent != 1 or axis == reduction.dim]
        shape, dim = [extents[axis] for axis in axes], axes.index(reduction.dim)
        outer_shape = [*shape[:dim], *shape[dim + 1 :]] or [1]
        bits = self.allocate(f"{name}_bits", shape, "int32")
        reduced_bit, joined = (self.allocate(f"{name}_{suffix}", outer_shape, "int32") for suffix in ("part", "joined"))
        bit, mask = variable("bit"), tirx.const(1, "int32")

        def taken_bit(at: list[ir.Var]) -> ir.Expr:
            value = _as_int32(tirx.BufferLoad(source.source, _places(source, axes, at)))
            return tirx.BitwiseAnd(tirx.RShift(value, bit), mask)

        def added(at: list[ir.Var]) -> ir.Expr:
            new: ir.Expr = tirx.BufferLoad(reduced_bit.buffer, at)
            if joining.pool == "sum":
                new = tirx.BitwiseAnd(new, mask)
            return tirx.BitwiseOr(tirx.BufferLoad(joined.buffer, at), tirx.LShift(new, bit))

        reduced = _block(
            tl.REDUCE.name, whole_region(bits.buffer), whole_region(reduced_bit.buffer),
            attrs={"kind": joining.pool, "dim": dim, "clear": 1},
        )  # fmt: skip
        bit_body = [parallel_nest(bits.buffer, taken_bit), reduced, parallel_nest(joined.buffer, added)]
        outer = parallel_variables(len(outer_shape))
        into = [axis for axis, extent in enumerate(target.region) if number_of(extent.extent) != 1]
        indices = _places(target, into, [at for at, length in zip(outer, outer_shape, strict=True) if length != 1])
        value: ir.Expr = tirx.BufferLoad(joined.buffer, outer)
        if not reduction.clear:
            value = joining.expression(_as_int32(tirx.BufferLoad(target.source, indices)), value)
        if dtype_of(target.source) != "int32":
            value = tirx.Cast(target.source.ty.dtype, value)
        result = parallel_loops(outer, outer_shape, tirx.BufferStore(target.source, value, indices))
        return [
            *preceding, bits, reduced_bit, joined,
            _block(tl.FILL.name, whole_region(joined.buffer), tirx.const(0, "int32")),
            loop(bit, count, bit_body),
            result,
        ]  # fmt: skip


def _as_int32(value: ir.Expr) -> ir.Expr:
    return value if str(value.ty.dtype) == "int32" else tirx.Cast(ir.PrimType("int32"), value)


def _places(region: ir.TensorRegion, axes: Sequence[int], variables: Sequence[ir.Var]) -> list[ir.Expr]:
    """The indices of an element of a region, for the variables that count along some of its axes."""
    var_of = dict(zip(axes, variables, strict=True))
    starts = [interval.min for interval in region.region]
    return [sym.Analyzer().simplify(low + var_of[axis]) if axis in var_of else low for axis, low in enumerate(starts)]


def _block(name: str, *arguments: ir.TensorRegion | ir.Expr, attrs: dict[str, object] | None = None) -> tirx.Stmt:
    return tirx.Evaluate(call(name, arguments, attrs or {}))


def _bits(kind: str, *blocks: tirx.Buffer) -> int:
    """How many bits the elements of the first block have. Raises Unsupported for those of other integers."""
    for block in blocks:
        if dtype_of(block) not in _BITS:
            raise Unsupported(
                "L009", f"T.reduce_{kind} of {block.name}, which is {dtype_of(block)}",
                hint=f"use blocks of {', '.join(_BITS)}",
            )  # fmt: skip
    return _BITS[dtype_of(blocks[0])]


def note_on_bits(statement: tirx.Stmt) -> Note:
    """What the plan says about a reduction of bits."""
    reduction, source = reduction_of(statement), regions(statement)[0]
    assert reduction is not None
    return note(
        "bits", operation=reduction.kind, buffer=str(source.source.name), line=line_of(statement),
        bits=_BITS[dtype_of(source.source)], joined=_OF_BITS[reduction.joining.pool],
    )  # fmt: skip


_OF_BITS = {"min": "smallest", "max": "largest", "sum": "lowest bit of the sum"}

BITS = StatementRule(
    "reduction of bits", "A reduction of bits becomes a loop: each turn reduces one bit of all elements.",
    _Bits.reduction,
)  # fmt: skip
