"""Copies that convert to a dtype of 8 bits or fewer, as copies that do not and a T.Parallel that casts.

Tiles store such numbers as bfloat16, and what moves tiles rounds to bfloat16 only: a cast is arithmetic on elements.
"""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.ir.adapter import call, line_of
from ttexplore.ir.arithmetic.sizes import matrix_extents
from ttexplore.ir.build import dtype_of, is_whole, parallel_nest, regions, runs, shape_of, whole_region
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.ops.small import is_small


def with_casts_for_copies(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without copies that convert to a dtype of 8 bits or fewer.

    T.copy(c, C[by * 32, bx * 32])  ==>  for i, j in T.Parallel(32, 32):
                                             c_cast[i, j] = T.cast(c[i, j], "float8_e4m3fn")
                                         T.copy(c_cast, C[by * 32, bx * 32])
    """
    return rewrite([CAST], _Casts(function, firings))


def _converts(statement: tirx.Stmt) -> bool:
    if not runs(statement, tl.COPY):
        return False
    before, after = (dtype_of(region.source) for region in regions(statement))
    return is_small(after) and before != after


class _Casts(NewBuffers):
    def copy(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not _converts(statement):
            return None
        source, target = regions(statement)
        shape = tuple(matrix_extents(source if is_on_chip(source.source) else target))
        statements: list[tirx.Stmt] = []
        cast_source, into = source.source, target.source
        if not _is_whole(source, shape):
            temporary = self.allocate(f"{cast_source.name}_cast", shape, dtype_of(cast_source))
            statements += [
                temporary,
                tirx.Evaluate(call(tl.COPY.name, [source, whole_region(temporary.buffer)]), statement.span),
            ]
            cast_source = temporary.buffer
        after: list[tirx.Stmt] = []
        if not _is_whole(target, shape):
            temporary = self.allocate(f"{source.source.name}_cast", shape, dtype_of(into))
            statements.append(temporary)
            after.append(tirx.Evaluate(call(tl.COPY.name, [whole_region(temporary.buffer), target]), statement.span))
            into = temporary.buffer
        dtype = ir.PrimType(dtype_of(into))
        cast = parallel_nest(into, lambda at: tirx.Cast(dtype, tirx.BufferLoad(cast_source, at)))
        return [*statements, cast, *after]


def _is_whole(region: ir.TensorRegion, shape: tuple[int, ...]) -> bool:
    """Whether a region is all of a block of this shape on the chip."""
    if not is_on_chip(region.source) or shape_of(region.source) != shape:
        return False
    return is_whole(region)


CAST = StatementRule(
    "cast for a copy", "A copy to a dtype of 8 bits or fewer casts each element, in a T.Parallel.", _Casts.copy
)


def note_on_cast(statement: tirx.Stmt) -> Note:
    """What the plan says about a copy that casts."""
    before, after = (region.source for region in regions(statement))
    names = {"source": str(before.name), "target": str(after.name)}
    return note("cast", **names, line=line_of(statement), dtype=dtype_of(after))
