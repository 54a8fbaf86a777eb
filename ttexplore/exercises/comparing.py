"""Compares outputs of a learner's kernel with NumPy, and reports the first wrong element, its number, and the kernel
line that stores it; counts what a run moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import Events
from ttexplore.exploration import Exploration, explore
from ttexplore.session.results import Run

Array = NDArray[Any]
Reference = Callable[..., Array]

# The share of the largest wanted number by which an element may be off: bfloat16 rounds to 2^-8.
_TOLERANCE = 0.01
# A seed that no notebook uses.
SEED = 20


class Wrong(Exception):
    """The answer is wrong; the text says why, in the learner's terms."""


def lowered(kernel: Any, **arguments: Any) -> Exploration:
    """The exploration of a kernel. Raises the error of the pass that rejects it."""
    exploration = explore(kernel, **arguments)
    if exploration.error is not None:
        raise exploration.error
    return exploration


def run_and_compare(
    exploration: Exploration,
    reference: Reference,
    case: str,
    code: Mapping[str, str] | None = None,
    inputs: Callable[[list[Array]], list[Array]] | None = None,
    tolerance: float = _TOLERANCE,
) -> Run:
    """Run a kernel with one output on inputs that no notebook shows, and compare it with `reference`, which gets the
    inputs as float64 arrays. `case` names the sizes, `code` has texts in place of emitted ones, and `inputs` makes
    those of this run of what is drawn. An element may be off by `tolerance` of the largest. Raises Wrong."""
    drawn, partial = exploration.inputs(seed=SEED), _stored_in_part(exploration)
    if inputs is not None:
        # Each one again as its tensor holds it.
        drawn = [array.astype(before.dtype) for array, before in zip(inputs([*drawn]), drawn, strict=True)]
    # What is not stored shows as NaN.
    arrays = [np.full_like(array, np.nan) if keeps else array for array, keeps in zip(drawn, partial, strict=True)]
    run = exploration.run(arrays, code=code)
    if len(run.outputs) != 1:
        raise Wrong(f"The kernel stores {len(run.outputs)} tensors; the exercise asks for one.")
    expected = reference(*(array.astype(np.float64) for array, keeps in zip(arrays, partial, strict=True) if not keeps))
    with np.errstate(invalid="ignore"):  # a NaN of the chip may be a signalling one
        actual = run.outputs[0].astype(np.float64)
    compare(exploration, actual, expected, case, tolerance)
    return run


def _stored_in_part(exploration: Exploration) -> list[bool]:
    """Whether each input is one only because the kernel does not store all of it."""
    return [tensor.name in exploration.plan.notes_on_inputs for tensor in exploration._tensors(("input", "inout"))]


def check_shapes(exploration: Exploration, expected: dict[str, tuple[int, ...]], case: str) -> None:
    """Raises Wrong if the inputs of the kernel do not have these shapes."""
    inputs, partial = exploration.inputs(kind="ones"), _stored_in_part(exploration)
    shapes = [tensor.shape for tensor, keeps in zip(inputs, partial, strict=True) if not keeps]
    if shapes != list(expected.values()):
        asked = ", ".join(f"{name} {shape}" for name, shape in expected.items())
        listed = ", ".join(map(str, shapes)) or "none"
        raise Wrong(f"With {case}, the inputs have the shapes {listed}; the exercise asks for {asked}.")


def compare(exploration: Exploration, actual: Array, expected: Array, case: str, tolerance: float = _TOLERANCE) -> None:
    """Raises Wrong, with the first wrong element, if an element of `actual` is off by more than this share of the
    largest of `expected`."""
    name = exploration._output_names[0]
    if actual.shape != expected.shape:
        raise Wrong(f"With {case}, {name} has the shape {actual.shape}; the exercise asks for {expected.shape}.")
    bound = tolerance * float(np.abs(expected).max())
    # Comparisons with NaN, which unwritten elements are, give False.
    wrong = ~(np.abs(actual - expected) <= bound)
    if not wrong.any():
        return
    indices = np.argwhere(wrong)
    first = tuple(map(int, indices[0]))
    element = f"{name}[{', '.join(map(str, first))}]"
    number = float(actual[first])
    message = (
        f"{element} is NaN: it is never stored, or numbers overflow on the way to it"
        if np.isnan(number)
        else f"{element} is {number:.5g}, and NumPy gives {expected[first]:.5g}"
    )
    box = ", ".join(f"{low} to {high}" for low, high in zip(indices.min(axis=0), indices.max(axis=0), strict=True))
    count = f"{len(indices):,} of {wrong.size:,} elements are wrong, within [{box}]."
    raise Wrong(f"With {case}, {message}. {count}{_stored_by(exploration, name)}")


def _stored_by(exploration: Exploration, name: str) -> str:
    """The kernel line that stores the tensor, as a sentence; empty if no emitted line names it."""
    writes = re.compile(rf"async_write\(\w+, {re.escape(name)},")
    for line in exploration.code["writer"].lines:
        if writes.search(line.text) and line.origins:
            span = line.origins[0].span
            source = str(exploration.kernel.source).split("\n")[span.line - exploration.kernel.first_line]
            return f"\nLine {span.line} of {span.file} stores {name}: `{source.strip()}`"
    return ""


def moved(exploration: Exploration, run: Run, code: Mapping[str, str] | None = None) -> Counter[tuple[str, str]]:
    """How many transfers the emulator counted, by operation (read, write) and tensor. `code` has the texts that ran in
    place of emitted ones."""
    events = _events(run)
    counts: Counter[tuple[str, str]] = Counter()
    emitted = {kernel: exploration.code[kernel].text for kernel in events.kernels}
    texts = {kernel: text.split("\n") for kernel, text in (emitted | dict(code or {})).items()}
    for event in events.records:
        operation: str = events.operations[int(event["operation"])]
        if operation in ("read", "write"):
            lines = texts[events.kernels[int(event["kernel"])]]
            text = lines[int(event["line"]) - 1]
            # noc.async_read(tensor, buffer, ...) and noc.async_write(buffer, tensor, ...)
            if match := re.search(r"async_(?:read\((\w+),|write\(\w+, (\w+),)", text):
                counts[operation, match[1] or match[2]] += 1
    return counts


def happened(run: Run, operation: str) -> int:
    """How many events of an operation the emulator counted on all cores."""
    events = _events(run)
    return sum(events.operations[int(event["operation"])] == operation for event in events.records)


def _events(run: Run) -> Events:
    assert run.execution is not None
    assert run.execution.events is not None
    return run.execution.events
