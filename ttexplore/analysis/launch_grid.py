"""The launch grid of a kernel: its loops and its block counts."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.sizes import evaluate
from ttexplore.ir.build import statements


def grid_loops(function: tirx.PrimFunc) -> list[tirx.For]:
    """The launch-grid loops of a kernel, x first. Raises KernelError where there are none."""
    loops: list[tirx.For] = []
    body = statements(function.body)
    while len(body) == 1 and isinstance(body[0], tirx.For) and body[0].kind == tirx.ForKind.THREAD_BINDING:
        loops.append(body[0])
        body = statements(body[0].body)
    if not loops:
        raise KernelError(
            "K005",
            "the kernel has no launch grid, or has statements outside it",
            hint="put the whole body into one `with T.Kernel(...) as (bx, by):`",
            span=span_of(function),
        )
    return loops


def grid_extents(function: tirx.PrimFunc, sizes: Mapping[str, int] | None = None) -> tuple[int, ...]:
    """The block counts along x, y, z with these sizes. Raises KernelError for a count that is not positive."""
    extents: list[int] = []
    for loop in grid_loops(function):
        try:
            extent = evaluate(loop.extent, sizes or {})
        except KernelError:
            extent = 0
        if extent < 1:
            raise KernelError(
                "K004",
                f"the launch grid has {loop.extent} blocks along {loop.loop_var.name}",
                hint="use block counts of at least 1, computed from numbers and T.dynamic sizes",
                span=span_of(loop),
            )
        extents.append(extent)
    return tuple(extents)
