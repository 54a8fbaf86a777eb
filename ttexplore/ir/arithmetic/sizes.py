"""Tensor sizes that are known only at run time (T.dynamic): variables among a kernel's parameters.

A program is lowered once for all sizes; a plan is bound to one value of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import elements, is_buffer, span_of, with_variables
from ttexplore.ir.build import constant, number_of

# The attribute of a kernel that lists the names of its sizes.
BOUND_SIZES = "tt.sizes"


def size_variables(function: tirx.PrimFunc) -> list[ir.Var]:
    """The parameters of `function` that are sizes of its tensors or whole numbers of their own, in order."""
    parameters = elements(function.params)
    numbers = [p for p in parameters if not is_buffer(p)]
    if not numbers:
        return []
    extents = [extent for p in parameters if is_buffer(p) for extent in extents_of(p)]
    used = [extent for extent in extents if not isinstance(extent, int)]
    return [p for p in numbers if str(p.ty.dtype) == "int32" or any(p.same_as(variable) for variable in used)]


def bound_sizes(function: tirx.PrimFunc) -> list[ir.Var]:
    """The variables of a persistent kernel that stand for sizes which the host gives to each core."""
    sizes = function.attrs.get(BOUND_SIZES)
    return [] if sizes is None else list(sizes)


def extents_of(buffer: tirx.Buffer) -> tuple[int | ir.Var, ...]:
    """The extents of a buffer: ints, and the variables of T.dynamic sizes."""
    return tuple(extent if isinstance(extent, ir.Var) else number_of(extent) for extent in elements(buffer.ty.shape))


def constant_extents(region: ir.TensorRegion) -> list[int]:
    """The extents of a region, in elements. Raises Unsupported for one of variable size."""
    extents = [extent for axis in region.region if (extent := constant(axis.extent)) is not None]
    if len(extents) < len(region.region):
        raise variable_size(region.source)
    return extents


def matrix_extents(region: ir.TensorRegion) -> list[int]:
    """As :func:`constant_extents`, without leading axes of one element beyond those of a matrix."""
    extents = constant_extents(region)
    while len(extents) > 2 and extents[0] == 1:
        extents.pop(0)
    return extents


def variable_size(buffer: tirx.Buffer) -> Unsupported:
    """The refusal of a region of which the size is known only when the kernel runs."""
    return Unsupported("L006", f"{buffer.name}: a region of variable size", hint="use constant block sizes")


def evaluate(expression: ir.Expr | int, sizes: Mapping[str, int]) -> int:
    """Evaluate an expression of sizes. Raises KernelError if it depends on anything else."""
    if isinstance(expression, int):
        return expression
    value = constant(expression)
    if value is not None:
        return value

    def placed(variable: ir.Var) -> ir.Expr:
        return tirx.const(sizes[str(variable.name)], "int32") if str(variable.name) in sizes else variable

    value = constant(sym.Analyzer().simplify(with_variables(expression, placed)))
    if value is None:
        raise KernelError(
            "K013",
            f"{expression} is not known before the kernel runs",
            hint="use numbers and T.dynamic sizes of tensors",
            span=span_of(expression),
        )
    return value


def bound_shape(buffer: tirx.Buffer, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor, in elements, with these sizes."""
    return tuple(evaluate(extent, sizes) for extent in elements(buffer.ty.shape))
