"""One trial: the same elements for a source and for its skeleton, and what both make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.control import Control
from ttexplore.porting.proof.comparing import BothOutputs, Evaluated
from ttexplore.porting.proof.inputs import MAGNITUDES, Magnitudes, chosen, drawn
from ttexplore.porting.proof.launches import PlacedTensor, TrialLaunch
from ttexplore.porting.proof.running import Argument, SourceRunner, element_dtype
from ttexplore.porting.proof.skeletons import TracedSkeleton

Array = NDArray[Any]
# How far rounding to 16 bits moves a number, relative to it.
_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclass
class PairedTrial:
    """A launch with inputs of a kind. `names` are those of the source's tensors in the skeleton, `dtypes` those of the
    source's parameters."""

    traced: TracedSkeleton
    names: Mapping[str, str]
    launch: TrialLaunch
    dtypes: Mapping[str, str]
    inputs: str
    magnitudes: Magnitudes

    @cached_property
    def elements(self) -> dict[str, Array]:
        """The elements of the tensors that are read, by their names in the skeleton."""
        kind = self.magnitudes if self.inputs == MAGNITUDES else self.inputs
        elements: dict[str, Array] = {}
        for seed, tensor in enumerate(self.launch.layouts):
            name = self.names[tensor]
            if self.traced.roles[name] != "output":
                shape, dtype = self.traced.shapes[name], element_dtype(self.dtypes[tensor])
                count = self.launch.choices.get(tensor)
                elements[name] = chosen(seed, shape, count) if count else drawn(kind, seed, shape, dtype)
        return elements

    def arguments(self) -> dict[str, Argument]:
        """What the source is launched with: what no input fills is NaN."""
        arguments: dict[str, Argument] = {}
        for tensor, layout in self.launch.layouts.items():
            array = _unfilled(layout.length, element_dtype(self.dtypes[tensor]))
            if self.names[tensor] in self.elements:
                _view(array, layout)[...] = self.elements[self.names[tensor]].reshape(layout.shape)
            arguments[tensor] = array
        for tensor, length in self.launch.left_out.items():
            arguments[tensor] = _unfilled(length, element_dtype(self.dtypes[tensor]))
        return arguments | dict(self.launch.numbers)

    def run(self, runner: SourceRunner, control: Control, *, rounds: bool) -> BothOutputs:
        """The run of the source, and the outputs of both; as they round, or in float64."""
        results = self.elements | self.traced.run(self.elements, control, rounds=rounds)
        run = runner.run(self.launch.launch, self.arguments(), control)
        of_skeleton: dict[str, Array] = {}
        of_source: dict[str, Array] = {}
        problem = ""
        for tensor, layout in self.launch.layouts.items():
            if tensor in run.races:
                problem = problem or f"a race for {tensor}: {run.races[tensor]}"
            name = self.names[tensor]
            after = run.arrays[tensor].astype(np.float64)
            of_source[tensor] = _view(after, layout).reshape(self.traced.shapes[name]).copy()
            elements = results[name]
            if rounds:
                with np.errstate(over="ignore"):
                    elements = elements.astype(run.arrays[tensor].dtype)
            of_skeleton[tensor] = elements.astype(np.float64)
            # What lies between the elements belongs to no tensor.
            unfilled = _unfilled(1, run.arrays[tensor].dtype).astype(np.float64)
            _view(after, layout)[...] = unfilled
            if not np.array_equal(after, np.broadcast_to(unfilled, after.shape), equal_nan=True):
                problem = problem or f"it writes between the elements of {tensor}"
        dtypes = {tensor: run.stored.get(tensor, run.arrays[tensor].dtype) for tensor in of_source}
        return BothOutputs(run, of_source, of_skeleton, problem, dtypes)

    def evaluated(self, control: Control) -> Evaluated:
        """What the skeleton gives in float64, with its error."""
        exact = {name: (elements, 0.0 * elements) for name, elements in self.elements.items()}
        results = exact | self.traced.evaluated(self.elements, control)
        by_tensor = {tensor: results[self.names[tensor]] for tensor in self.launch.layouts}
        values = {tensor: value.astype(np.float64) for tensor, (value, _) in by_tensor.items()}
        return Evaluated(values, {tensor: error for tensor, (_, error) in by_tensor.items()})

    def rounded_mean(self, tensor: str) -> float:
        """How far a mean of elements of a tensor moves where its weights are rounded to the dtype of the tensor."""
        unit = _UNITS.get(self.dtypes[tensor], 0.0)
        return unit * float(np.max(np.abs(self.elements[self.names[tensor]])))


def _unfilled(length: int, dtype: np.dtype[Any]) -> Array:
    """What no input fills: NaN, or the least whole number."""
    return np.full(length, np.iinfo(dtype).min if dtype.kind in "iu" else np.nan, dtype)


def _view(array: Array, layout: PlacedTensor) -> Array:
    """The elements of a tensor in its array."""
    strides = tuple(stride * array.itemsize for stride in layout.strides)
    return np.lib.stride_tricks.as_strided(array, layout.shape, strides)
