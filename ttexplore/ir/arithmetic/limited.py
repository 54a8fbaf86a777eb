"""Stores of a part of a block: its first rows or columns, as many as are known when the kernel runs.

In T.Parallel, a store to a tensor under a condition has the value ``tl.stored_if(condition, value)``. In a copy to a
tensor, an extent that is a name says how many elements of the block along that axis are stored.
"""

from __future__ import annotations

from tvm import ir

from ttexplore.ir.adapter import call, elements, operation_name
from ttexplore.ir.build import constant
from ttexplore.ops import language as tl


def stored_if(condition: ir.Expr, value: ir.Expr) -> ir.Expr:
    """The value of a store that is left out where a condition does not hold."""
    return call(tl.STORED_IF, [condition, value], dtype=str(value.ty.dtype))


def condition_of(value: ir.Expr) -> ir.Expr | None:
    """The condition of a store, by its value; None where it stores in any case."""
    return elements(value.args)[0] if isinstance(value, ir.Call) and operation_name(value) == tl.STORED_IF else None


def value_of(value: ir.Expr) -> ir.Expr:
    """The value of a store, without its condition."""
    return value if condition_of(value) is None else elements(value.args)[1] if isinstance(value, ir.Call) else value


def is_limited(region: ir.TensorRegion) -> bool:
    """Whether a copy to a region stores a part of its block."""
    return any(constant(axis.extent) is None for axis in region.region)


def full_extents(region: ir.TensorRegion, block: tuple[int, ...]) -> list[int] | None:
    """The extents of a region that holds the whole of a block; None where they do not fit together."""
    long = iter([extent for extent in block if extent != 1])
    extents: list[int] = []
    for axis in region.region:
        extent = constant(axis.extent)
        if extent != 1:
            full_extent = next(long, None)
            if extent is None and full_extent is None:
                return None
            extent = full_extent if extent is None else extent
        assert extent is not None
        extents.append(extent)
    return extents
