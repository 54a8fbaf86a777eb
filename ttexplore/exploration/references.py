"""What a kernel computes before any pass: the reference of its inputs, and which inputs it can have."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ttexplore.backends.compare import RoundingErrors
from ttexplore.control import FREE, Control
from ttexplore.exploration.lower import sizes_now
from ttexplore.given import flag
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.interpreter import check_places, valid_inputs
from ttexplore.passes.launches.splitting import old_contents
from ttexplore.session.archive import LARGEST_ARRAYS_BYTES, KeptRun
from ttexplore.session.inputs import Inputs
from ttexplore.session.lowering import READ, WRITTEN, chained

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

Array = NDArray[Any]


def reference(
    exploration: Exploration, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None,
    in_float64: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """The outputs of the traced kernel, before any pass, in storage dtype. With `in_float64`, all floating-point
    numbers of the kernel are float64: inputs are rounded to the dtypes of their tensors, nothing else is."""
    sized = exploration._sized(inputs, sizes)
    return reference_of(sized, sized._inputs(inputs, seed), FREE, rounds=not flag("in_float64", in_float64))


def reference_of(
    exploration: Exploration, arrays: tuple[Array, ...], control: Control, *, rounds: bool = True
) -> tuple[Array, ...]:
    def run(launch: Exploration, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        lowered = launch._lowered
        return lowered.run(lowered.first, inputs, control, rounds=rounds).outputs

    return chained(exploration, run, arrays)


def rounding_of(exploration: Exploration, arrays: tuple[Array, ...], control: Control = FREE) -> RoundingErrors:
    """The errors that rounding explains, by the unit of rounding: a launch has those of the launches before it."""

    @functools.cache
    def errors(unit: float) -> tuple[Array, ...]:
        errors_of: dict[str, Array] = {}

        def run(launch: Exploration, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
            lowered = launch._lowered
            result = lowered.run(lowered.first, inputs, control, unit=unit, errors=errors_of)
            errors_of.update(zip((tensor.name for tensor in launch._tensors(WRITTEN)), result.errors, strict=True))
            return result.outputs

        chained(exploration, run, arrays)
        return tuple(errors_of[tensor.name] for tensor in exploration._tensors(WRITTEN))

    return errors


def roles(exploration: Exploration) -> Mapping[str, str]:
    """The roles of the kernel's tensors for all launches together."""
    if not exploration._is_several:
        return exploration._lowered.roles
    lowerings = exploration._lowerings
    old = old_contents([lowering.kernel.function for lowering in lowerings])
    written = {name for lowering in lowerings for name, role in lowering.roles.items() if role != "input"}
    names = [str(p.name) for p in exploration.kernel.function.params if is_buffer(p)]
    return {name: "input" if name not in written else "inout" if name in old else "output" for name in names}


def valid(exploration: Exploration, arrays: tuple[Array, ...], seed: int) -> tuple[Array, ...]:
    """Drawn inputs, with such elements of index tensors as lie inside of the tensors that they index."""
    names = [tensor.name for tensor in exploration._tensors(READ)]
    shapes = {tensor.name: tensor.shape for lowering in exploration._lowerings for tensor in lowering.tensors}
    with errors_of_ours("making the inputs"):
        # After the first step what decides has names.
        launches = [(lowering.first.kernel, lowering.steps[0].after.kernel) for lowering in exploration._lowerings]
        sizes = {size.name: size.value for size in sizes_now(exploration)}
        drawn = valid_inputs(launches, sizes, shapes, dict(zip(names, arrays, strict=True)), seed)
    return tuple(drawn[name] for name in names)


def check_races(exploration: Exploration, arrays: tuple[Array, ...]) -> None:
    """Raise KernelError for inputs with which two blocks store to one place."""
    inputs = dict(zip((tensor.name for tensor in exploration._tensors(READ)), arrays, strict=True))
    with errors_of_ours("checking where blocks store"):
        for lowering in exploration._lowerings:
            shapes = {tensor.name: tensor.shape for tensor in lowering.tensors}
            check_places(lowering.steps[0].after.kernel, lowering.plan.size_values, shapes, inputs)


def kept(exploration: Exploration) -> KeptRun | None:
    """Inputs and reference with which a saved exploration is compared; None if they are too large."""
    elements = sum(prod(tensor.shape) for roles in (READ, WRITTEN) for tensor in exploration._tensors(roles))
    if exploration.error is not None or 4 * elements > LARGEST_ARRAYS_BYTES:
        return None
    arrays = exploration._inputs(None, 0)
    return KeptRun(arrays, reference_of(exploration, arrays, FREE))
