"""The lowered launches of a kernel, their tensors, and what goes from launch to launch."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import ordered_layouts, storage_dtype
from ttexplore.backends.compare import RoundingErrors
from ttexplore.control import Control
from ttexplore.errors import TTExploreError, memory_for
from ttexplore.given import dictionary, whole
from ttexplore.ops.small import numpy_dtype
from ttexplore.ops.storage import rounded
from ttexplore.plan import Plan, Precision
from ttexplore.record import Listing, Trace
from ttexplore.session.archive import KeptRun
from ttexplore.session.inputs import Inputs, Tensor, arrays_for, make_inputs
from ttexplore.target import Target

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored

READ, WRITTEN = ("input", "inout"), ("output", "inout")


class Lowering(ABC):
    """The steps, plan and files of one launch."""

    # The kernel: its name, its source as a listing, its file and its first line there.
    kernel: Any
    target: Target
    steps: tuple[Any, ...]
    # The names and letters of all steps that there could be, as far as they are known.
    pipeline: Sequence[str] = ()

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The plan after the last step that ran."""

    @functools.cached_property
    @abstractmethod
    def files(self) -> dict[str, Listing]:
        """All files that export writes, by name. Raises the lowering's error, if it failed."""

    @property
    def kept(self) -> KeptRun | None:
        """The inputs and the reference of a file; None of what was lowered here."""
        return None

    @functools.cached_property
    @abstractmethod
    def trace(self) -> Trace:
        """The lowering as plain data."""

    @functools.cached_property
    @abstractmethod
    def roles(self) -> Mapping[str, str]:
        """The role of each tensor, in parameter order: input, output or inout."""

    @property
    @abstractmethod
    def tensors(self) -> Sequence[Tensor]:
        """The tensors, in parameter order."""

    @property
    def error(self) -> TTExploreError | None:
        """The error that ended the lowering, None if it succeeded."""
        return self.steps[-1].error

    @property
    def state(self) -> str:
        """How far the lowering came."""
        return f"failed at {self.steps[-1].letter}" if self.error else f"{len(self.steps)} steps"


Array = NDArray[Any]
ExploredT = TypeVar("ExploredT", bound="Explored")

# The kind of inputs that a run has where nothing is said.
_RANDOM = "random"
# From the highest to the lowest.
_PRECISIONS: tuple[Precision, ...] = ("exact", "full", "tf32", "bfloat16", "block_float", "fast", "low_fidelity")


def roles_of(explored: Explored) -> Mapping[str, str]:
    """The roles of the kernel's tensors, in parameter order, for all launches together."""
    if explored._is_several:
        return explored._with_kernel("the role of a tensor")._roles
    return explored._lowerings[0].roles


def tensors(explored: Explored, roles: Sequence[str]) -> list[Tensor]:
    """The tensors with these roles, in parameter order."""
    by_name = {tensor.name: tensor for lowering in explored._lowerings for tensor in lowering.tensors}
    return [by_name[name] for name, role in roles_of(explored).items() if role in roles]


def reasons(explored: Explored) -> tuple[str, ...]:
    """Why outputs are inputs, too."""
    notes = {name: note for lowering in explored._lowerings for name, note in lowering.plan.notes_on_inputs.items()}
    return tuple(notes[tensor.name] for tensor in tensors(explored, READ) if tensor.name in notes)


def precisions(explored: Explored) -> tuple[Precision, ...]:
    """The precision that each output is held to: of several launches the lowest of those that it is computed in,
    because errors are passed on."""
    lowest: dict[str, Precision] = {}
    for lowering in explored._lowerings:
        plan = lowering.plan
        outputs = [layout.name for layout in ordered_layouts(plan) if layout.role in WRITTEN]
        inputs = {sources.tensor: sources.inputs for sources in plan.sources}
        before = dict(lowest)
        for name, precision in zip(outputs, plan.precisions, strict=True):
            passed_on = [before[read] for read in inputs.get(name, before) if read in before]
            lowest[name] = max([precision, *passed_on], key=_PRECISIONS.index)
    return tuple(lowest[tensor.name] for tensor in tensors(explored, WRITTEN))


def in_own_dtypes(explored: Explored, outputs: Sequence[Array]) -> tuple[Array, ...]:
    written = tensors(explored, WRITTEN)
    return tuple(o.astype(numpy_dtype(tensor.dtype)) for o, tensor in zip(outputs, written, strict=True))


@memory_for("making the inputs")
def inputs(explored: Explored, seed: int = 0, kind: str = "random") -> tuple[Array, ...]:
    """Generate inputs in the tensors' own dtypes and the sizes of the plan.

    `kind` is ``random`` (normally distributed, int32 from -1000 to 1000, half of uint8 zero), ``uniform`` (from 0
    to 1), ``ones``, ``counting`` (0, 1, 2 ... 250, repeated), ``identity`` (1 on the diagonal of the last two
    dimensions) or ``extreme`` (zeros, small and large magnitudes). Raises UsageError for any other kind.

    ``random`` integers that decide places or loops are such that these stay inside of their tensors.
    """
    arrays = make_inputs(kind, tensors(explored, READ), seed)
    return _valid(explored, arrays, seed) if kind == _RANDOM else arrays


@memory_for("making the inputs")
def stored_inputs(explored: Explored, inputs: Inputs, seed: int) -> tuple[Array, ...]:
    """The inputs in storage precision, as float32 or int32. Raises UsageError for invalid inputs, and KernelError
    for those with which the result depends on the order of the blocks."""
    read = tensors(explored, READ)
    arrays = arrays_for(inputs, read, seed, reasons(explored))
    if inputs is None or (isinstance(inputs, str) and inputs == _RANDOM):
        arrays = _valid(explored, arrays, seed)
    if explored._has_kernel:
        explored._with_kernel("where blocks store")._check_races(arrays)
    return tuple(rounded(array, tensor.dtype) for array, tensor in zip(arrays, read, strict=True))


def _valid(explored: Explored, arrays: tuple[Array, ...], seed: int) -> tuple[Array, ...]:
    """Drawn inputs, with such elements of index tensors as lie inside of the tensors that they index. Of a file, they
    are those that it keeps, for every seed: tensors that were drawn otherwise there."""
    if explored._has_kernel:
        return explored._with_kernel("what indexes")._valid(arrays, seed)
    stored = explored._lowerings[0].kept
    if stored is None:
        return arrays
    read = tensors(explored, READ)
    first = (rounded(array, tensor.dtype) for array, tensor in zip(make_inputs(_RANDOM, read), read, strict=True))
    return tuple(
        array if np.array_equal(of_file, of_seed_0) else of_file.astype(array.dtype)
        for array, of_file, of_seed_0 in zip(arrays, stored.inputs, first, strict=True)
    )


def sized(explored: ExploredT, inputs: Inputs, sizes: Mapping[str, int] | None) -> ExploredT:
    """The exploration for the given sizes, or for those of the inputs."""
    if explored._has_kernel:
        return cast(ExploredT, explored._with_kernel("other sizes")._sized(inputs, sizes))
    new_sizes = dictionary("sizes", {} if sizes is None else sizes, "names", '{"n": 64}')
    if any(whole(f"the size {name}", new_sizes[name]) != explored.plan.size_values.get(name) for name in new_sizes):
        explored._with_kernel("a lowering for other sizes")
    return explored


def reference_of(explored: Explored, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...] | None:
    """The outputs of the traced kernel for these inputs; of a file, those that it keeps, for its own inputs only."""
    if explored._has_kernel:
        return explored._with_kernel("the reference")._reference(arrays, control)
    stored = explored._lowerings[0].kept
    if stored is None or not all(map(np.array_equal, arrays, stored.inputs)):
        return None
    layouts = [layout for layout in ordered_layouts(explored.plan) if layout.role in WRITTEN]
    return tuple(array.astype(storage_dtype(layout)) for array, layout in zip(stored.reference, layouts, strict=True))


def rounding_of(explored: Explored, arrays: tuple[Array, ...], control: Control) -> RoundingErrors | None:
    """The errors that rounding explains in the outputs for these inputs; None without the kernel."""
    return explored._with_kernel("the errors")._rounding(arrays, control) if explored._has_kernel else None


def chained(
    explored: ExploredT, run: Callable[[ExploredT, tuple[Array, ...]], tuple[Array, ...]], arrays: tuple[Array, ...]
) -> tuple[Array, ...]:
    """The outputs of the kernel for its inputs in storage precision, where `run` gives those of a launch for its own:
    what one launch writes, a later one reads."""
    if not explored._is_several:
        return run(explored, arrays)
    contents = dict(zip((tensor.name for tensor in tensors(explored, READ)), arrays, strict=True))
    for launch in explored.launches:
        # What nothing has been stored to holds zeros.
        read = tuple(contents[t.name] if t.name in contents else np.zeros(t.shape) for t in tensors(launch, READ))
        outputs = run(launch, stored_inputs(launch, read, 0))
        contents |= zip((tensor.name for tensor in tensors(launch, WRITTEN)), outputs, strict=True)
    return tuple(contents[tensor.name] for tensor in tensors(explored, WRITTEN))
