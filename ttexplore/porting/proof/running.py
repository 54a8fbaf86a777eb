"""What running a foreign source means, whatever its language: how a kernel is launched, and what comes of it.

A runner knows nothing of what the reader made of the source: it has the text alone, so that each finds the other's
mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.control import FREE, Control

Argument = NDArray[Any] | int | float | bool | str


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is started: the numbers of its blocks along up to three axes, and in CUDA those of the threads of a
    block and the bytes of its dynamic shared memory. A runner that takes one block after the other takes the last one
    first where it `is_reversed`."""

    grid: tuple[int, ...]
    threads: tuple[int, ...] = ()
    shared_bytes: int = 0
    is_reversed: bool = False


@dataclass(frozen=True, slots=True)
class OutsideAccess:
    """An access outside of a tensor: the place that was asked for, counted in elements from the tensor's first one, and
    the line of the source, 0 where it is not known."""

    kind: Literal["read", "write"]
    tensor: str
    index: int
    line: int = 0


@dataclass(frozen=True, slots=True)
class SourceRun:
    """What a run left: the arrays of all tensors by the names of their parameters, with the dtypes and lengths that
    they were given with, and the accesses outside of them, each tensor's first read and first write. What is read
    outside is NaN, or the smallest number of an integer dtype; what is written there goes nowhere. `lines` are those of
    the last stores to each tensor, where they are known."""

    arrays: Mapping[str, NDArray[Any]]
    outside: tuple[OutsideAccess, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    races: Mapping[str, str] = field(default_factory=dict[str, str])
    # The dtypes of what was stored, where they have fewer bits than those of the arrays.
    stored: Mapping[str, np.dtype[Any]] = field(default_factory=dict[str, np.dtype[Any]])


def element_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of the elements of a tensor."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


class CannotRun(Exception):
    """A construct that cannot be run, so that nothing is known of the kernel, and its line, 0 where it has none."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"{reason} (line {line})" if line else reason)
        self.line = line


class SourceRunner(Protocol):
    """A kernel of a source, ready to be run with any sizes."""

    def run(self, launch: Launch, arguments: Mapping[str, Argument], control: Control = FREE) -> SourceRun:
        """Run the kernel once. `arguments` are by the names of the kernel's parameters, and of template parameters and
        constants that the launch decides: flat arrays for tensors, which are not changed, numbers for the others.

        Raises CannotRun, Cancelled, and BackendError at the time limit.
        """
        ...
