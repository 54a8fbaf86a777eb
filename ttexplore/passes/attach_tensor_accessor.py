"""A3: how the pages of each tensor are addressed."""

from __future__ import annotations

from ttexplore.ir.program import Program
from ttexplore.passes.accessors import accessor_of
from ttexplore.target import Target


def attach_tensor_accessor(program: Program, target: Target) -> Program:
    """Decide the tile grid and the page strides of each tensor.

        C: (2, 1024, 512)
    ==> tile grid (2, 32, 16), page of tile (b, r, c) = b * 512 + r * 16 + c

    Of a row-major tensor each row is a page.
    """
    return program.with_plan(accessors=tuple(accessor_of(layout) for layout in program.plan.layouts))
