"""The interface of all backends: the program that they receive, the results that they return, the errors that they
raise.

Plain data only: texts, the plan and NumPy arrays, so that a saved exploration runs without TVM.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.characters import Printed
from ttexplore.errors import BackendError, UsageError
from ttexplore.ops import small
from ttexplore.plan import BLOCK_FLOAT, DATA_FORMATS, KernelRole, Plan, TensorLayout
from ttexplore.record import Span, lines_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Program:
    """An emitted program.

    `texts` holds the C++ text of each kernel ("reader", "compute", "writer"); `plan` is complete: signature, indexed
    circular buffers, accessors, partition, layouts and compute configuration.
    """

    texts: dict[str, str]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Events:
    """The events on the cores, in the order in which the emulator executed them.

    `records` is a structured array with the fields `time` (logical steps: each operation of a kernel takes one, and a
    wait ends no earlier than the push or pop that it waited for), `core` (index in the partition), `kernel` (index in
    `kernels`), `operation` (index in `operations`), `object` (circular buffer id, 255 for no buffer; for reads and
    writes, the upper byte has the tensor's index in `tensors`), `amount` (pages; for reads and writes, the page id) and
    `line` (of the kernel's C++ text).

    `total` counts all events. Beyond the limit of kept ones, only those of every `stride`-th core are kept, among them
    of `core`; where even those of one core are too many, its last `cut` are missing.
    """

    records: NDArray[np.void]
    total: int
    operations: tuple[str, ...]
    kernels: tuple[str, ...]
    tensors: tuple[str, ...]
    core: int = 0
    stride: int = 1
    cut: int = 0

    def has(self, core: int) -> bool:
        """Whether the events of a core, given by its index in the partition, are kept."""
        return core % self.stride == self.core % self.stride


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a run.

    `outputs` are the output and inout tensors in parameter order, in storage dtype (ml_dtypes' bfloat16, float32,
    int32; dtypes of 8 bits and fewer are converted back from bfloat16) and logical shape. `seconds` is the time of the
    kernels alone, without compilation and transfers: the time that this machine took to simulate them (of the emulator,
    the processor's), unless they ran `on_card`. `log_file` has all messages of a device and its SDK.
    `moves` are what :mod:`ttexplore.backends.moves` reads, if they were recorded.
    """

    outputs: tuple[Array, ...]
    seconds: float
    events: Events | None
    message: str
    log_file: Path | None = None
    on_card: bool = False
    moves: NDArray[np.void] | None = None


def simulation_time(seconds: float) -> str:
    """How long a simulation took, in words that nobody takes for the time of a device."""
    return f"simulated in {_time(seconds)} of this machine's time"


def card_time(seconds: float) -> str:
    """How long a card took."""
    return f"ran in {_time(seconds)}, from launch to end as the host sees it"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


@dataclass(frozen=True, slots=True)
class CppLocation:
    """A line of a kernel's text that an error is about, from 1, and what is wrong there; `stuck` if the kernel waits at
    it for ever."""

    kernel: KernelRole
    cpp_line: int
    what: str
    stuck: bool = False


# The code of a fault that says nothing of the program but that it took too long.
TIME_IS_OVER = "TTX-B003"


class KernelFault(BackendError):
    """A fault in the text of a kernel, found by a compiler or while it runs. `kernel` and `cpp_line` give its place, if
    known; `what` is wrong there, which is the message if it is empty."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        span: Span | None = None,
        kernel: KernelRole | None = None,
        cpp_line: int | None = None,
        what: str = "",
    ) -> None:
        super().__init__(code, message, hint=hint, span=span)
        self.kernel: KernelRole | None = kernel
        self.cpp_line = cpp_line
        self.what = what

    @property
    def places(self) -> tuple[CppLocation, ...]:
        """The lines that the error is about."""
        if self.kernel is None or self.cpp_line is None:
            return ()
        return (CppLocation(self.kernel, self.cpp_line, self.what or self.message),)


@dataclass(frozen=True, slots=True)
class BlockedKernel:
    """A blocked kernel: the call in which it waits, at `cpp_line` of its text.

    ``reserve_back`` waits for `needed` free pages of the circular buffer `number`, ``wait_front`` for `needed` pushed
    pages; there are `there` such pages, and the buffer holds `capacity`. ``semaphore`` waits until semaphore `number`
    has the value `needed`; its value is `there`, and it has no capacity. `what` says so in words.
    """

    kernel: KernelRole
    operation: Literal["reserve_back", "wait_front", "semaphore"]
    number: int
    needed: int
    there: int
    capacity: int
    cpp_line: int
    what: str


@dataclass(frozen=True, slots=True)
class AddedLine(Printed):
    """A change that lets a program end: `text`, a push or a pop, goes before line `line` (from 1) of a kernel's C++.
    `ran` is the whole text that was run without it."""

    kernel: KernelRole
    line: int
    text: str
    ran: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.kernel}.cpp gets `{self.text.strip()}` before line {self.line}"

    @property
    def around(self) -> list[str]:
        """The two lines between which the new one goes."""
        return lines_of(self.ran)[self.line - 2 : self.line]

    def apply(self, code: Mapping[str, str] | None = None) -> dict[str, str]:
        """The texts of kernels, by name, as the `code` of a run: those that were given to the run that failed, with
        the change. A text that is not among them is taken as it ran.

        Raises UsageError if the text has changed around the line.
        """
        code = code or {}
        lines = lines_of(code.get(self.kernel, self.ran))
        if lines[self.line - 2 : self.line] != self.around:
            raise UsageError(
                "U010",
                f"the {self.kernel} kernel is not the one that the fix is for: its lines around {self.line} are others",
                hint="run it as it is now; the error of that run has a fix of its own",
            )
        lines.insert(self.line - 1, self.text)
        return {**code, self.kernel: "".join(f"{line}\n" for line in lines)}


@dataclass(frozen=True, slots=True)
class DeeperBuffer(Printed):
    """A change that lets a program end: the circular buffer `buffer` holds `blocks` blocks, which are `pages` tiles
    instead of `pages_before`, and takes `more_bytes` more of L1. ``ex.fork(cb_depth={fix.buffer: fix.blocks})`` makes
    it."""

    buffer: str
    blocks: int
    pages: int
    pages_before: int
    more_bytes: int

    def __str__(self) -> str:
        return f"{self.buffer} holds {self.pages} tiles instead of {self.pages_before} ({self.more_bytes:,} B more L1)"


class Deadlock(KernelFault):
    """No kernel can proceed.

    `core` is the first blocked core's index in the partition, `waits` what its kernels wait for (a kernel without a
    wait has finished), and `stuck` the same of each blocked core; `events` are the events until then,
    `event_counts` the emulator's own counts of them. `svg`, if it was drawn, shows which kernel waits
    for which. `fix` is the smallest change with which the program ended on the emulator, None if none was found.
    """

    def __init__(
        self, message: str, *, hint: str, core: int, waits: tuple[BlockedKernel, ...],
        stuck: Mapping[int, tuple[BlockedKernel, ...]] | None = None, event_counts: str = "",
        events: Events | None = None, svg: str = "", fix: AddedLine | DeeperBuffer | None = None,
    ) -> None:  # fmt: skip
        told = next((wait for wait in waits if wait.operation == "reserve_back"), waits[0] if waits else None)
        super().__init__(
            "B011", message, hint=hint, kernel=told.kernel if told else None, cpp_line=told.cpp_line if told else None
        )
        self.core = core
        self.waits = waits
        self.stuck = stuck or {core: waits}
        self.event_counts = event_counts
        self.events = events
        self.svg = svg
        self.fix = fix

    @property
    def places(self) -> tuple[CppLocation, ...]:
        return tuple(CppLocation(wait.kernel, wait.cpp_line, wait.what, stuck=True) for wait in self.waits)

    def _repr_svg_(self) -> str | None:
        return self.svg or None


class Backend(Protocol):
    """The interface of a backend that runs emitted programs."""

    def run(
        self, program: Program, inputs: Sequence[Array], *, time_limit_seconds: float,
        cancel: threading.Event | None = None,
    ) -> Execution:  # fmt: skip
        """Run `program` on `inputs`: the input and inout tensors in parameter order. Setting `cancel` ends the run.

        Raises BackendError: missing components, a fault of the running program, the time limit, or Cancelled.
        """
        ...


def storage_dtype(layout: TensorLayout) -> np.dtype[Any]:
    """The NumPy dtype that the tensor has in device memory."""
    name = DATA_FORMATS[layout.data_format].dtype
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def on_host(layout: TensorLayout, array: Array) -> Array:
    """An output in storage dtype, except that one of 8 bits or fewer, stored as bfloat16, is converted back."""
    return small.on_host(array, layout.dtype) if small.is_small(layout.dtype) else array


def ordered_layouts(plan: Plan) -> tuple[TensorLayout, ...]:
    """The tensors of the plan in parameter order."""
    return tuple(sorted(plan.layouts, key=lambda layout: layout.position))


def checked_inputs(plan: Plan, inputs: Sequence[Array]) -> dict[str, Array]:
    """The inputs by tensor name, rounded to their own dtype and to storage dtype. Block-float tensors stay in float32
    until they are packed: rounding twice would change the result.

    Raises BackendError if the number of arrays or a shape does not match the plan.
    """
    layouts = [layout for layout in ordered_layouts(plan) if layout.role in ("input", "inout")]
    if len(inputs) != len(layouts):
        names = ", ".join(f"{layout.name} {layout.shape}" for layout in layouts)
        raise BackendError(
            "B005",
            f"the number of input arrays is {len(inputs)}, but the program has {len(layouts)} input tensors",
            hint=f"pass one array for each of: {names}" if layouts else "pass no arrays: this program has no inputs",
        )
    arrays: dict[str, Array] = {}
    for layout, array in zip(layouts, inputs, strict=True):
        if tuple(array.shape) != layout.shape:
            raise BackendError(
                "B005",
                f"the array for tensor {layout.name} has shape {tuple(array.shape)}, but the tensor {layout.shape}",
                hint="pass arrays of the shapes that the kernel was traced with",
            )
        if small.is_small(layout.dtype):
            array = small.rounded_to(array, layout.dtype)
        in_groups = layout.data_format == BLOCK_FLOAT and layout.dtype == "float32"
        arrays[layout.name] = np.ascontiguousarray(array, dtype=np.float32 if in_groups else storage_dtype(layout))
    return arrays
