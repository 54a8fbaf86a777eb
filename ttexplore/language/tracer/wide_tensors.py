"""Tensors of int64, such as the indices that PyTorch makes: the chip has them as int32, and no arithmetic in int64."""

from __future__ import annotations

from collections.abc import Iterable, Set

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import expressions_of
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import regions_used
from ttexplore.ir.rewrite import walk


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


def check_wide_tensors(body: Iterable[tirx.Stmt], tensors: Set[tirx.Buffer]) -> None:
    """Raise Unsupported where a kernel computes with elements of such tensors in int64, or stores to one."""
    for statement in (inner for outer in body for inner in walk(outer)):
        stored = [statement.buffer] if isinstance(statement, tirx.BufferStore) else []
        stored += [region.source for region, kind in regions_used(statement) if kind != "read"]
        for buffer in stored:
            if buffer in tensors:
                raise Unsupported(
                    "L009",
                    f"storing to {buffer.name}, which is int64: no tile format supports this dtype",
                    hint="use int32: integers of other sizes above 8 bits have no tiles",
                    span=span_of(statement),
                )
        for node in (node for value in expressions_of(statement) for node in nodes_of(value)):
            if (
                (load := narrow_element(node)) is not node
                and isinstance(load, ir.TensorLoad)
                and load.source in tensors
            ):
                raise Unsupported(
                    "L009",
                    f"arithmetic in int64 with an element of {load.source.name}",
                    hint="cast the element first: T.cast(element, T.int32)",
                    span=span_of(statement),
                )
