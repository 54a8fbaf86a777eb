"""Tensors of int64, such as the indices that PyTorch makes: the chip has them as int32, and no arithmetic in int64."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import choice_of, identity, span_of
from ttexplore.ir.build import expressions_of
from ttexplore.ir.dag import folded
from ttexplore.ir.dataflow import regions_used
from ttexplore.ir.rewrite import walk
from ttexplore.record import Span


def wide_element(load: ir.Expr) -> ir.Expr:
    """An element of such a tensor in the dtype that it has for the kernel."""
    return tirx.Cast(ir.PrimType("int64"), load)


def narrow_element(value: ir.Expr) -> ir.Expr:
    """An element of int32 that is cast to int64 and then to int32, or an index, as it is; another value as it is. Casts
    of elements of other dtypes round, or make arithmetic wider."""
    match value:
        case tirx.Cast(value=ir.TensorLoad() as load) if (str(value.ty.dtype), str(load.ty.dtype)) == (
            "int64",
            "int32",
        ):
            return load
        case _:
            return value


class _Element(NamedTuple):
    """A number made of an element of a tensor, and whether it may need more than 32 bits."""

    tensor: str
    exceeds: bool


# The lowest 32 bits of what these give depend on no other bits of their operands.
_SUMS = (tirx.Add, tirx.Sub, tirx.Mul, tirx.LShift)
_BITS = (tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.BitwiseNot)
_FITTING = frozenset({"int32", "int16", "int8", "uint16", "uint8", "bool"})


def check_wide_tensors(body: Iterable[tirx.Stmt], tensors: Set[tirx.Buffer]) -> None:
    """Raise Unsupported where a kernel stores to one of such tensors, or needs more than 32 bits of a number.

    The chip has the lowest 32 bits of sums and products with elements. They are enough for an index or an int32, but
    not for a quotient, a comparison or a float.
    """
    # By identity: while a kernel is traced, comparing is part of it.
    variables: dict[int, _Element | None] = {}
    for statement in (inner for outer in body for inner in walk(outer)):
        span = span_of(statement)
        stored = [statement.buffer] if isinstance(statement, tirx.BufferStore) else []
        stored += [region.source for region, kind in regions_used(statement) if kind != "read"]
        for buffer in stored:
            if buffer in tensors:
                raise Unsupported(
                    "L009",
                    f"storing to {buffer.name}, which is int64: no tile format supports this dtype",
                    hint="use int32: integers of other sizes above 8 bits have no tiles",
                    span=span,
                )
        for value in expressions_of(statement):
            element = folded(value, partial(_element, variables, span))
            if isinstance(statement, tirx.Bind):
                variables[identity(statement.var)] = element


def _element(
    variables: Mapping[int, _Element | None], span: Span | None, node: ir.Expr, operands: Sequence[_Element | None]
) -> _Element | None:
    """What a part of an expression is, by its operands. The indices of a load may have any bits above 32."""
    if isinstance(node, ir.TensorLoad):
        return _Element(str(node.source.name), exceeds=False)
    elements = [operand for operand in operands if operand is not None]
    if not elements:
        return variables.get(identity(node)) if isinstance(node, ir.Var) else None
    dtype, exceeding = str(node.ty.dtype), next((element for element in elements if element.exceeds), None)
    is_sum = isinstance(node, _SUMS)
    is_widened = isinstance(node, tirx.Cast) and str(node.value.ty.dtype) not in (*_FITTING, "int64")
    has_lowest_bits = is_sum or isinstance(node, (*_BITS, tirx.Cast)) or choice_of(node) is not None
    if exceeding is not None and not (has_lowest_bits and (dtype == "int64" or dtype in _FITTING)):
        raise Unsupported(
            "L009",
            f"arithmetic in int64 with an element of {exceeding.tensor}",
            hint="if the numbers fit into int32, cast the element first: T.cast(element, T.int32)",
            span=span,
        )
    return _Element(elements[0].tensor, dtype == "int64" and (is_sum or is_widened or exceeding is not None))
