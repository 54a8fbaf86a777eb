"""Running a skeleton: it is traced with sizes and interpreted as it stands, in float64 or rounded, without lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.control import Control
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.arithmetic.sizes import bound_shape
from ttexplore.ir.interpreter import interpret
from ttexplore.ir.program import KERNEL, TirProgram
from ttexplore.language.load import load_text
from ttexplore.language.machine import machine
from ttexplore.passes.launches.tensor_roles import tensor_roles
from ttexplore.plan import Plan
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.target import DEFAULT_TARGET, get_target

Array = NDArray[Any]
# Operations round to half of the last of 24 bits, functions by some more, and sums come in any order.
_UNIT = 2.0**-21


@dataclass(frozen=True)
class TracedSkeleton:
    """A skeleton with its sizes: the shapes of its tensors, and what it does with each."""

    program: TirProgram
    shapes: Mapping[str, tuple[int, ...]]
    roles: Mapping[str, str]

    @classmethod
    def of(cls, skeleton: Skeleton, arguments: Mapping[str, object]) -> TracedSkeleton:
        """Trace a skeleton with the arguments of its factory."""
        chip = get_target(DEFAULT_TARGET)
        with machine(chip):
            traced = load_text(skeleton.text, f"{skeleton.factory} (ported)", skeleton.factory, dict(arguments))
        buffers = [parameter for parameter in traced.function.params if is_buffer(parameter)]
        shapes = {str(buffer.name): bound_shape(buffer, {}) for buffer in buffers}
        program = TirProgram({KERNEL: traced.function}, Plan(traced.name, chip.name), traced.source)
        return cls(program, shapes, dict(tensor_roles(traced.function)))

    def run(self, inputs: Mapping[str, Array], control: Control, *, rounds: bool) -> dict[str, Array]:
        """The outputs by name, for inputs by name; in float64 where nothing `rounds`."""
        result = interpret(*self.arguments(inputs), control=control, rounds=rounds)
        return dict(zip(self.written, result.outputs, strict=True))

    def evaluated(self, inputs: Mapping[str, Array], control: Control) -> dict[str, tuple[Array, Array]]:
        """The outputs in float64, by name, and how far rounding in float32 may move each element."""
        with np.errstate(all="ignore"):
            result = interpret(*self.arguments(inputs), control=control, rounds=False, unit=_UNIT)
        errors = [np.max(both, axis=0).astype(np.float64) for both in result.errors]
        return dict(zip(self.written, zip(result.outputs, errors, strict=True), strict=True))

    @property
    def written(self) -> list[str]:
        return [name for name in self.shapes if self.roles[name] != "input"]

    def arguments(self, inputs: Mapping[str, Array]) -> tuple[Any, Plan, tuple[Array, ...], dict[str, str]]:
        """What the interpreter is given."""
        read = [name for name in self.shapes if self.roles[name] != "output"]
        arrays = tuple(np.ascontiguousarray(inputs[name]) for name in read)
        return self.program.functions, self.program.plan, arrays, dict(self.roles)
