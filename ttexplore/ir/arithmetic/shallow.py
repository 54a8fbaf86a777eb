"""Expressions that are deep or large get names for their parts, so that what reads them may follow them by recursion.

What a Python function or `sum` makes of a thousand terms is one expression, a thousand operations deep. What it makes
of a value that it uses twice, again and again, is a tree of two to the power of its depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import identity
from ttexplore.ir.build import constant
from ttexplore.ir.dag import folded, nodes_of, parts_of, with_parts

# Operations inside one another, and operations of an expression written out, that every walk can bear.
LARGEST_DEPTH = 48
LARGEST_SIZE = 512
# The same where parts cannot get names.
_LARGEST_UNNAMED_DEPTH = 160
_LARGEST_UNNAMED_SIZE = 4096


@dataclass(frozen=True)
class _Extent:
    """How deep and how large an expression is; whether computing it may fail, unless a condition around it sees to it
    that it does not."""

    depth: int = 0
    size: int = 1
    may_fail: bool = False

    @classmethod
    def around(cls, node: ir.Expr, args: list[_Extent]) -> _Extent:
        divides = isinstance(node, tirx.FloorDiv | tirx.FloorMod | tirx.Mod | tirx.Div) and constant(node.b) is None
        return cls(
            1 + max((arg.depth for arg in args), default=-1), 1 + sum(arg.size for arg in args),
            (divides and not str(node.ty.dtype).startswith(("float", "bfloat"))) or any(arg.may_fail for arg in args),
        )  # fmt: skip


def shallow(value: ir.Expr, name: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """`value` with variables in place of parts where it is too deep or too large; `name` makes the variable of a part.

    Raises Unsupported where parts cannot be computed before the whole.
    """
    rebuilt: dict[int, ir.Expr] = {}
    extents: dict[int, _Extent] = {}
    for node in nodes_of(value):
        # The indices of a load say what it is.
        operands = [] if isinstance(node, ir.TensorLoad) else parts_of(node)
        keys = [identity(operand) for operand in operands]
        extent = _Extent.around(node, [extents[key] for key in keys])
        if extent.depth > LARGEST_DEPTH or extent.size > LARGEST_SIZE:
            for key in keys:
                if extents[key].depth and not extents[key].may_fail:
                    rebuilt[key], extents[key] = name(rebuilt[key]), _Extent()
            extent = _Extent.around(node, [extents[key] for key in keys])
        new = [rebuilt[key] for key in keys]
        same = all(a.same_as(b) for a, b in zip(operands, new, strict=True))
        rebuilt[identity(node)], extents[identity(node)] = node if same else with_parts(node, new), extent
    _refuse(extents[identity(value)])
    return rebuilt[identity(value)]


def refuse_deep(values: Sequence[ir.Expr]) -> None:
    """Raise Unsupported for an expression that is too deep or too large, where its parts cannot get names."""
    for value in values:
        if any(map(parts_of, parts_of(value))):
            _refuse(folded(value, _Extent.around))


def is_large(value: ir.Expr, depth: int = LARGEST_DEPTH) -> bool:
    """Whether an expression is larger, written out, than every walk can bear, or deeper than `depth`."""
    extent = folded(value, _Extent.around)
    return extent.depth > depth or extent.size > LARGEST_SIZE


def _refuse(extent: _Extent) -> None:
    if extent.depth > _LARGEST_UNNAMED_DEPTH or extent.size > _LARGEST_UNNAMED_SIZE:
        raise Unsupported(
            "L016",
            f"an expression of {extent.size} operations, nested {extent.depth} deep",
            hint=f"compute it in fewer steps: at most {_LARGEST_UNNAMED_SIZE} and {_LARGEST_UNNAMED_DEPTH} are lowered",
        )
