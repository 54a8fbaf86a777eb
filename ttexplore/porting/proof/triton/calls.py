"""Calls of Triton's language: their arguments by the names of parameters, and the program that makes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttexplore.porting.proof.triton.blocks import Arithmetic, Block, Unrunnable, is_block, is_integer, is_tuple
from ttexplore.porting.proof.triton.memory import CheckedMemory

# The most elements that a block of the language may have.
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the values of its arguments by the names of the parameters, and its line."""

    name: str
    values: Mapping[str, Any]
    line: int

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


@dataclass(frozen=True, slots=True)
class ProgramInstance:
    """One program of a grid, and what it computes with."""

    index: tuple[int, int, int]
    grid: tuple[int, int, int]
    memory: CheckedMemory
    arithmetic: Arithmetic


def bound(
    name: str, parameters: Sequence[str], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by the names of the parameters; of one that ends with ``*`` all that are left, a name with ``?`` may
    lack. Raises Unrunnable."""
    values: dict[str, Any] = {}
    rest = list(positional)
    for parameter in parameters:
        plain = parameter.rstrip("?*")
        if parameter.endswith("*"):
            if rest:
                values[plain] = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else tuple(rest)
            rest = []
        elif rest:
            values[plain] = rest.pop(0)
        if plain in keywords:
            if plain in values:
                raise Unrunnable(f"two values of {plain} of {name}")
            values[plain] = keywords[plain]
        if plain not in values and not parameter.endswith("?"):
            raise Unrunnable(f"{name} without {plain}")
    unknown = keywords.keys() - {parameter.rstrip("?*") for parameter in parameters} - _HINTS
    if rest or unknown:
        raise Unrunnable(f"{name} with {'more arguments' if rest else min(unknown)}")
    return values


# What changes nothing of what is computed.
_HINTS = {
    "cache_modifier",
    "eviction_policy",
    "volatile",
    "allow_tf32",
    "input_precision",
    "max_num_imprecise_acc",
    "sem",
    "scope",
    "num_stages",
    "loop_unroll_factor",
    "flatten",
    "warp_specialize",
    "disallow_acc_multi_buffer",
    "order",
}


def integer(value: Any) -> int:
    """A number of elements or of an axis. Raises Unrunnable for what is no integer."""
    if isinstance(value, bool | int):
        return int(value)
    if is_block(value) and value.ndim == 0 and is_integer(value):
        return int(value)
    raise Unrunnable("a size or an axis that is no integer")


def integers(values: Any) -> tuple[int, ...]:
    return tuple(map(integer, values)) if is_tuple(values) else (integer(values),)


def block_shape(values: Any) -> tuple[int, ...]:
    """The extents of a block. Raises Unrunnable for one that is too large."""
    shape = integers(values)
    if math.prod(shape) > _LARGEST or min(shape, default=1) < 0:
        raise Unrunnable(f"a block of {' x '.join(map(str, shape))} elements")
    return shape


def chosen_elements(mask: Any) -> Block | None:
    """Which elements a mask chooses; None without a mask."""
    return None if mask is None or mask is True else np.asarray(mask) != 0
