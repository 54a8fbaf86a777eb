"""What kernels that store to a part of a tensor leave of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import ttexplore as ttx

Numbers = np.ndarray[Any, Any]


def only_read(exploration: ttx.Exploration, inputs: Sequence[Numbers]) -> list[Numbers]:
    """Of the inputs of a kernel those of tensors that are no outputs."""
    roles = exploration._roles
    tensors = exploration._tensors(("input", "inout"))
    return [array for tensor, array in zip(tensors, inputs, strict=True) if roles[tensor.name] == "input"]


def with_old(exploration: ttx.Exploration, inputs: Sequence[Numbers], stored: Numbers) -> Numbers:
    """The first output after a run: what is stored and, where that is NaN, what the inputs hold."""
    output = exploration._tensors(("output", "inout"))[0].name
    tensors = exploration._tensors(("input", "inout"))
    old = [array for tensor, array in zip(tensors, inputs, strict=True) if tensor.name == output]
    return np.where(np.isnan(stored), np.asarray(old[0], np.float64), stored) if old else stored
