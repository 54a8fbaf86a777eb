"""Loops of T.Persistent: each block of the launch grid takes every so many-th of the places of a domain."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.adapter import to_expr
from ttexplore.ir.build import bind, loop, statements, variable, when

_MARK = "persistent"


@dataclass(frozen=True)
class Waves:
    """The `places` of a domain, one index for each axis, that a block with this `index` of `size` blocks goes over;
    `body` is done for each, and `wave` counts them."""

    wave: ir.Var
    places: tuple[ir.Var, ...]
    extents: tuple[ir.Expr, ...]
    size: ir.Expr
    index: ir.Expr
    body: list[tirx.Stmt]


def waves(
    coordinates: Sequence[ir.Var], domain: Sequence[int | ir.Expr], size: int | ir.Expr, index: int | ir.Expr,
    body: Sequence[tirx.Stmt], span: ir.Span | None, wave: ir.Var | None = None,
) -> tirx.For:  # fmt: skip
    """The loop over the waves of a domain, the last axis fastest; `wave` is its variable if it has one already."""
    total: int | ir.Expr = math.prod(domain) if all(isinstance(extent, int) for extent in domain) else functools.reduce(
        lambda a, b: to_expr(a) * b, domain
    )  # fmt: skip
    wave, position = variable("wave", span) if wave is None else wave, variable("place", span)
    inner: list[tirx.Stmt] = []
    rest: ir.Expr = position
    for axis in reversed(range(len(coordinates))):
        value = tirx.floormod(rest, domain[axis]) if axis else rest
        inner.insert(0, bind(coordinates[axis], value, span))
        rest = tirx.floordiv(rest, domain[axis])
    inside = when(position < total, [*inner, *body], span)
    count = tirx.floordiv(to_expr(total) + (size - 1), to_expr(size))
    mark = {_MARK: [*map(to_expr, (size, index, *domain))]}
    return loop(wave, count, [bind(position, wave * size + index, span), inside], annotations=mark, span=span)


def waves_of(statement: tirx.Stmt) -> Waves | None:
    """What :func:`waves` made a loop of; None for other statements."""
    if not isinstance(statement, tirx.For) or _MARK not in statement.annotations:
        return None
    size, index, *domain = statement.annotations[_MARK]
    inside = statements(statement.body)[-1]
    assert isinstance(inside, tirx.IfThenElse)
    body = statements(inside.then_case)
    coordinates = tuple(binding.var for binding in body[: len(domain)] if isinstance(binding, tirx.Bind))
    return Waves(statement.loop_var, coordinates, tuple(domain), size, index, body[len(domain) :])
