"""The index of a thread, and values that are joined over threads."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.adapter import call, elements, operation_name
from ttexplore.ir.build import constant
from ttexplore.ops import language as tl

# In place of an axis: the number of a thread among all of its block, those along the first axis next to each other.
ALL_AXES = -1
_KINDS = {name: kind for kind, name in tl.OVER_THREADS.items()}


def thread_index(axis: int = 0) -> ir.Expr:
    """The index of a thread in its block, along an axis."""
    return call(tl.THREAD_INDEX, [axis] if axis else [], dtype="int32")


def is_thread_index(expr: ir.Expr) -> bool:
    return type(expr) is ir.Call and operation_name(expr) == tl.THREAD_INDEX


def joined_over_threads(kind: str, value: ir.Expr, axis: int) -> ir.Call:
    """The sum, the largest or the smallest of the values that the threads along an axis have."""
    return call(tl.OVER_THREADS[kind], [value, tirx.const(axis, "int32")], dtype=str(value.ty.dtype))


def over_threads(expr: ir.Expr) -> tuple[str, ir.Expr, int] | None:
    """What :func:`joined_over_threads` was given for this expression; None for another one."""
    if type(expr) is not ir.Call or operation_name(expr) not in _KINDS:
        return None
    value, axis = elements(expr.args)
    number = constant(axis)
    assert number is not None
    return _KINDS[operation_name(expr)], value, number


def thread_axis(expr: ir.Expr) -> int:
    """The axis of which a value is the index of a thread."""
    assert isinstance(expr, ir.Call)
    numbers = [constant(argument) for argument in elements(expr.args)]
    return (numbers[0] or 0) if numbers else 0
