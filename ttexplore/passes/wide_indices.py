"""Widen starts, bounds, conditions and indices in narrow integer types to int32.

TVM's proofs stop at a cast that may change its operand, such as a narrow cast of a block index or a loop variable, or
take it for a number that both types hold: of a cast of -1 to uint8, that there is none, so that anything follows.
Values that the kernel computes in a narrow type do not overflow (`integers` has checked), and a cast keeps the low
bits, so int32 arithmetic gives the same results.

    for k in range(T.int8(bx * 100), 4)    ==>    for k in range((bx * 100 + 128) % 256 - 128, 4)
"""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.adapter import elements
from ttexplore.ir.build import arguments, regions, with_arguments, with_value
from ttexplore.ir.dag import folded, nodes_of, replaced, with_parts
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk

_BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16}


def with_wide_indices(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with region starts, loop bounds, conditions and indices of elements in int32."""
    if not any(_is_narrow(e) for one in walk(function.body) for e in _indices(one)):
        return function
    return rewrite([_WIDE], Context(function, firings))


def _indices(statement: tirx.Stmt) -> list[ir.Expr]:
    match statement:
        case tirx.For():
            return [statement.min, statement.extent]
        case tirx.IfThenElse():
            return [statement.condition]
        case tirx.Evaluate(value=ir.Call()):
            return [part.min for region in regions(statement) for part in elements(region.region)]
        case tirx.BufferStore():
            return [*elements(statement.indices), *_inner(statement.value)]
        case tirx.Bind():
            return _inner(statement.value)
        case _:
            return []


def _inner(value: ir.Expr) -> list[ir.Expr]:
    """The indices of elements in a value."""
    return [index for one in nodes_of(value) if isinstance(one, ir.TensorLoad) for index in elements(one.indices)]


def _is_narrow(e: ir.Expr) -> bool:
    """Whether an expression contains a cast to a narrow type and no elements."""
    nodes = nodes_of(e)
    narrow = any(isinstance(one, tirx.Cast) and str(one.ty.dtype) in _BITS for one in nodes)
    return narrow and not any(isinstance(one, ir.TensorLoad) for one in nodes)


def _widest(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not any(map(_is_narrow, _indices(statement))):
        return None
    match statement:
        case tirx.For() | tirx.IfThenElse():
            inner = context.inside(statement, lambda body: rewrite_body(body, [_WIDE], context))
            return [_with_wide_bounds(inner)]
        case tirx.BufferStore():
            return [with_value(statement, _with_wide_parts(statement.value), [_wide(i) for i in statement.indices])]
        case tirx.Bind():
            return [with_value(statement, _with_wide_parts(statement.value))]
        case _:
            parts = [_region(one) if isinstance(one, ir.TensorRegion) else one for one in arguments(statement)]
            return [with_arguments(statement, parts)]


def _with_wide_bounds(statement: tirx.For | tirx.IfThenElse) -> tirx.Stmt:
    if isinstance(statement, tirx.IfThenElse):
        return tirx.IfThenElse(_wide(statement.condition), statement.then_case, statement.else_case, statement.span)
    return tirx.For(
        statement.loop_var, _wide(statement.min), _wide(statement.extent), statement.kind, statement.body,
        statement.thread_binding, statement.annotations, statement.step, statement.span,
    )  # fmt: skip


def _with_wide_parts(value: ir.Expr) -> ir.Expr:
    def wide(one: ir.Expr) -> ir.Expr:
        if not isinstance(one, ir.TensorLoad):
            return one
        return with_parts(one, [_wide(index) for index in elements(one.indices)])

    return replaced(value, wide)


_WIDE = StatementRule(
    "indices in int32", "Starts, bounds, conditions and indices in narrow integer types are computed in int32.", _widest
)


def _region(region: ir.TensorRegion) -> ir.TensorRegion:
    parts = [ir.Range.from_min_extent(_wide(part.min), part.extent) for part in region.region]
    return tirx.BufferRegion(region.source, parts)


def _wide(e: ir.Expr) -> ir.Expr:
    return folded(e, _widened) if _is_narrow(e) else e


def _widened(e: ir.Expr, parts: list[ir.Expr]) -> ir.Expr:
    dtype = str(e.ty.dtype)
    match e:
        case tirx.Cast() if dtype in _BITS and str(parts[0].ty.dtype) == "int32":
            count = 1 << _BITS[dtype]
            if dtype.startswith("u"):
                return tirx.floormod(parts[0], count)
            return tirx.floormod(parts[0] + count // 2, count) - count // 2
        case tirx.Cast() if str(parts[0].ty.dtype) == dtype:
            return parts[0]
        case tirx.IntImm() if dtype in _BITS:
            return tirx.const(int(e.value), "int32")
        case ir.Call() if dtype in _BITS:
            return ir.Call(e.op, parts, attrs=e.attrs, span=e.span, ret_ty=parts[-1].ty)
        case _ if not parts:
            return tirx.Cast(ir.PrimType("int32"), e) if dtype in _BITS else e
        case _:
            return with_parts(e, parts)
