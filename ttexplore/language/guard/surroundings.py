"""What a kernel's text can name: the module that defines its function, and the functions around that."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttexplore.language.tracer.kernel import TracedKernel


@dataclass(frozen=True, eq=False, repr=False)
class Surroundings:
    """The names of the module, and those of the functions around the kernel's when it was defined. `flags` are those of
    its compilation; `folder` is that of a file which was loaded for its kernels; `arguments` are those of an eager
    kernel. `unedited` is the kernel as it was before its text was edited, None for itself."""

    module: dict[str, Any]
    around: dict[str, Any]
    flags: int
    folder: str | None = None
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    unedited: TracedKernel | None = None


def surroundings_of(function: types.FunctionType, folder: str | None) -> Surroundings:
    """The surroundings of a function, which is being defined or has been."""
    code = function.__code__
    around: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        # One that has no value yet is no name to be used.
        try:
            around[name] = cell.cell_contents
        except ValueError:
            continue
    frame = sys._getframe(1)
    while frame is not None:
        if any(constant is code for constant in frame.f_code.co_consts):
            # Its decorators and annotations use names that its own code does not.
            if frame.f_locals is not frame.f_globals:
                around |= frame.f_locals
            break
        frame = frame.f_back
    return Surroundings(function.__globals__, around, code.co_flags & annotations.compiler_flag, folder)
