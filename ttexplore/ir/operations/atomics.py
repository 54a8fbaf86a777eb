"""Additions to tensors that several blocks of the launch grid share, and their maxima and minima: in a store to an
element, its new value ``tl.atomic_add(old, value)``."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, tirx

from ttexplore.ir.adapter import call, elements, operation_name
from ttexplore.ir.dag import nodes_of, replaced, same_expression
from ttexplore.ops import language as tl

# The attribute of a copy between a tensor and a block that is part of such an update: a bit for its kind.
ATOMIC = "atomic"
# The attribute of a kernel that names the tensors whose updates several cores hand on to one another.
HANDED_ON = "tt.handed_on"
# How each one computes the new value of an element from the old one and what the kernel gives.
ATOMICS: Mapping[str, type[tirx.BinaryOpExpr]] = {
    tl.ATOMICS["add"]: tirx.Add, tl.ATOMICS["max"]: tirx.Max, tl.ATOMICS["min"]: tirx.Min,
}  # fmt: skip
# The update that joins what each kind of reduction does, and the kind of which each one is.
UPDATES: Mapping[str, str] = {"sum": "add", "max": "max", "min": "min"}
KINDS: Mapping[str, str] = {tl.ATOMICS[update]: kind for kind, update in UPDATES.items()}


def updated(kind: str, old: ir.Expr, value: ir.Expr) -> ir.Call:
    """The new value of an element: `kind` is ``add``, ``max`` or ``min``."""
    return call(tl.ATOMICS[kind], [old, value], dtype=str(old.ty.dtype))


def as_update(kind: str, old: ir.TensorLoad, value: ir.Expr) -> ir.Expr:
    """``old + x``, or the larger or smaller of both, as an update of an element; another value as it is."""
    inner = value.value if isinstance(value, tirx.Cast) else value
    if not isinstance(inner, ATOMICS[tl.ATOMICS[kind]]):
        return value
    for base, operand in ((inner.a, inner.b), (inner.b, inner.a)):
        if same_expression(base.value if isinstance(base, tirx.Cast) else base, old):
            return updated(kind, old, operand if operand.ty == old.ty else tirx.Cast(old.ty, operand))
    return value


def kinds_of(expression: ir.Expr) -> int:
    """A bit for each kind of update that a value is; 0 where it is no update, which another block may interrupt."""
    kinds = {operation_name(node) for node in nodes_of(expression) if isinstance(node, ir.Call)}
    return sum(1 << bit for bit, kind in enumerate(ATOMICS) if kind in kinds)


def updates(expression: ir.Expr) -> bool:
    """Whether a value is that of an element after an update that no other block interrupts."""
    return kinds_of(expression) != 0


def plain(expression: ir.Expr) -> ir.Expr:
    """The value as plain arithmetic, for a block that owns the element."""
    return replaced(expression, _plain)


def _plain(expr: ir.Expr) -> ir.Expr:
    if not isinstance(expr, ir.Call) or operation_name(expr) not in ATOMICS:
        return expr
    old, value = elements(expr.args)
    return ATOMICS[operation_name(expr)](old, value)
