"""A3: decide how kernels address the pages of each tensor."""

from __future__ import annotations

from ttexplore.analysis.accessors import accessor_of, check_dram
from ttexplore.ir.program import TirProgram
from ttexplore.target import Target


def attach_tensor_accessor(program: TirProgram, target: Target) -> TirProgram:
    """Decide the tile grid and the page strides of each tensor.

        C: (2, 1024, 512)
    ==> tile grid (2, 32, 16), page of tile (b, r, c) = b * 512 + r * 16 + c

    In a row-major tensor each row is a page. Kernels compute page numbers with these strides, and the tensor accessor
    turns a page number into an address. Raises ResourceError for tensors that do not fit into DRAM.
    """
    check_dram(program.plan.layouts, target)
    return program.with_plan(accessors=tuple(accessor_of(layout) for layout in program.plan.layouts))
