"""Masks that hold for most blocks as a whole, as a causal mask for all blocks but those on the diagonal."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from math import prod

from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import substituted
from ttexplore.ir.adapter import choice_of
from ttexplore.ir.arithmetic.index import Binary, VariableNumbers, affine, convert, folded
from ttexplore.ir.branches import branch
from ttexplore.ir.build import constant, regions, runs, shape_of
from ttexplore.ir.dag import nodes_of, same_expressions
from ttexplore.ir.dataflow import parallel_body
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.ops import language as tl

_Comparison = tirx.GE | tirx.GT | tirx.LE | tirx.LT
_OPPOSITES: dict[type[_Comparison], type[_Comparison]] = {
    tirx.GE: tirx.LT, tirx.GT: tirx.LE, tirx.LE: tirx.GT, tirx.LT: tirx.GE,
}  # fmt: skip


def with_partial_masks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a branch around each T.Parallel in a loop that leaves elements of a product as they are where a
    condition holds: it runs only for blocks in which the condition fails for some element."""
    products = {regions(statement)[2].source for statement in walk(function.body) if runs(statement, tl.GEMM)}
    products = {product for product in products if prod(tile_grid(shape_of(product))) > 1}
    return rewrite(_RULES, _PartialMasks(function, firings, products)) if products else function


class _PartialMasks(Context):
    """`products` are the blocks of several tiles that hold results of products. Those leave DST anyway, or limit the
    sub-blocks of the product if a mask runs in its sections; other blocks stay in DST, tile by tile, while a mask and
    what else is done to them run, unless a branch comes between."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, products: Collection[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.products = products


def _masked(context: _PartialMasks, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    loops, body = parallel_body(statement)
    conditions = _kept_where(body, context.products)
    extents = [constant(loop.extent) for loop in loops]
    if not conditions or None in extents or any(constant(loop.min) != 0 for loop in loops):
        return None
    last = {loop.loop_var: int(extent or 1) - 1 for loop, extent in zip(loops, extents, strict=True)}
    somewhere = [_fails_somewhere(condition, last) for condition in conditions]
    tests = [failing for failing in somewhere if failing is not None]
    if len(tests) < len(somewhere):
        return None
    test = functools.reduce(tirx.Or, tests)
    # In another place, a core looks at the condition once for each work item, and mostly at blocks that it is for.
    around = [
        loop.loop_var for loop in context.around if isinstance(loop, tirx.For) and loop.kind == tirx.ForKind.SERIAL
    ]  # fmt: skip
    if not any(node.same_as(variable) for node in nodes_of(test) for variable in around):
        return None
    return [branch(test, [statement], statement.span)]


def _kept_where(body: Sequence[tirx.Stmt], products: Collection[tirx.Buffer]) -> list[ir.Expr]:
    """The conditions that together say that an element of a product keeps its value; none for another store."""
    store = body[0] if len(body) == 1 else None
    if not isinstance(store, tirx.BufferStore) or store.buffer not in products:
        return []
    if (choice := choice_of(store.value)) is None:
        return []
    condition, then, otherwise = choice

    def is_same(value: ir.Expr) -> bool:
        return (
            isinstance(value, ir.TensorLoad)
            and value.source.same_as(store.buffer)
            and same_expressions([*value.indices], [*store.indices])
        )

    if is_same(then):
        return _all_of(condition)
    if is_same(otherwise) and (opposite := _opposite(condition)) is not None:
        return [opposite]
    return []


def _all_of(condition: ir.Expr) -> list[ir.Expr]:
    """The conditions that must all hold, of ``and`` as of ``&``."""
    if isinstance(condition, tirx.And | tirx.BitwiseAnd):
        return [*_all_of(condition.a), *_all_of(condition.b)]
    return [condition]


def _opposite(condition: ir.Expr) -> ir.Expr | None:
    if not isinstance(condition, _Comparison):
        return None
    return _OPPOSITES[type(condition)](condition.a, condition.b)


def _fails_somewhere(condition: ir.Expr, last: Mapping[ir.Var, int]) -> ir.Expr | None:
    """Whether a comparison fails for some element of a nest, as a condition without the variables of the nest, which go
    from 0 to `last`; None where these do not add up in it. The comparison fails first where the smaller side is
    largest and the larger side smallest."""
    if not isinstance(condition, _Comparison):
        return None
    number = VariableNumbers()
    difference = Binary("-", convert(condition.a, number), convert(condition.b, number))
    factors = affine(folded(difference))
    if factors is None:
        return None
    sign = 1 if isinstance(condition, tirx.GE | tirx.GT) else -1
    ends = {variable: 0 if sign * factors.get(number(variable), 0) >= 0 else end for variable, end in last.items()}
    return _opposite(type(condition)(substituted(condition.a, ends), substituted(condition.b, ends)))


_RULES = (
    StatementRule(
        "mask on some blocks",
        "A mask that leaves a product as it is where its condition holds runs only for blocks that it changes.",
        _masked,
    ),
)
