"""The user's own formula of what a kernel computes: a second reference, which shares no mistake with the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.compare import NamedComparison, RoundingErrors
from ttexplore.errors import UsageError, said
from ttexplore.given import wrong
from ttexplore.plan import Precision

Array = NDArray[Any]
Formula = Callable[..., object]
# Kinds of dtypes that are no real numbers: text, and complex numbers, objects and times.
_TEXT, _NO_REAL_NUMBERS = "US", "cOMm"
# What messages call it.
FORMULA = "your reference"


def checked_formula(reference: object) -> Formula | None:
    """`reference`, if it can be called. Raises UsageError."""
    if reference is not None and not callable(reference):
        raise wrong("reference", reference, "a function of the inputs that returns the outputs")
    return reference


def compared_with_formula(
    name: str,
    outputs: Sequence[Array],
    expected: Sequence[Array],
    precisions: Sequence[Precision],
    rounding: RoundingErrors | None,
    names: Sequence[str],
) -> NamedComparison:
    """Outputs beside those of a formula. `rounding` is that of the kernel, None where that is not there. Its result may
    lie on the other side of a step than the formula's, so what explains an error on one side explains one on the
    other."""

    def either_side(unit: float) -> tuple[Array, ...]:
        assert rounding is not None, "it is asked for where there is one"
        return tuple(np.broadcast_to(sides.max(axis=0), sides.shape) for sides in rounding(unit))

    explained = None if rounding is None else either_side
    with np.errstate(over="ignore", invalid="ignore"):  # a formula may return any number
        return NamedComparison.of(name, outputs, expected, precisions, explained, names)


def by_formula(formula: Formula, inputs: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> tuple[Array, ...]:
    """The outputs in float64 that a formula gives for the inputs, which it gets in float64 unless they are integers.
    `shapes` are those of the outputs. Raises UsageError where the formula raises something, or returns other shapes."""
    try:
        returned = formula(*(array if array.dtype.kind in "iub" else array.astype(np.float64) for array in inputs))
        outputs = cast("tuple[object, ...]", returned) if isinstance(returned, tuple) else (returned,)
        arrays = [np.asarray(output) for output in outputs]
        # NumPy refuses text that is no number.
        expected = tuple(
            array if array.dtype.kind in _NO_REAL_NUMBERS else array.astype(np.float64) for array in arrays
        )
    except (Exception, SystemExit) as error:  # It is the user's, and may raise anything.
        raise UsageError(
            "U026",
            f"the given reference raises {said(error)}",
            hint=f"it is called with the inputs, of the shapes {', '.join(str(array.shape) for array in inputs)}",
        ) from error
    if any(array.dtype.kind in _TEXT + _NO_REAL_NUMBERS for array in arrays):
        dtypes = ", ".join(str(array.dtype) for array in arrays)
        raise UsageError("U026", f"the given reference returns {dtypes}", hint="return arrays of real numbers")
    if [output.shape for output in expected] != [*shapes]:
        returned_shapes = ", ".join(str(output.shape) for output in expected) or "no outputs"
        hint = f"the outputs are {', '.join(map(str, shapes))}"
        raise UsageError("U026", f"the given reference returns {returned_shapes}", hint=hint)
    return expected
