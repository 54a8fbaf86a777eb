"""Inputs with which a source and its skeleton are tried: those that show wrong places and masks, and lost maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _distinct(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw.normal(size=shape)


def _positive(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw.uniform(0.25, 2.0, shape)


def _negative(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw.uniform(-9.0, -1.0, shape)


def _large(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw.normal(size=shape) * 60.0


def _ties(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw.integers(-1, 2, shape).astype(np.float64)


def _zeros(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape)


INPUTS: dict[str, Draw] = {
    "distinct": _distinct,
    "positive": _positive,
    "negative": _negative,
    "large": _large,
    "ties": _ties,
    "zeros": _zeros,
}
# Those of launches, in turn.
OF_LAUNCH = (
    ("distinct", "large"),
    ("distinct", "negative", "ties"),
    ("positive", "zeros", "distinct"),
    ("distinct", "negative", "ties", "zeros"),
)


def drawn(kind: str, seed: int, shape: tuple[int, ...]) -> Array:
    """The elements of a tensor, rounded to bfloat16, which every dtype of floating-point numbers holds exactly."""
    elements = INPUTS[kind](np.random.default_rng(seed), shape).astype(np.float32)
    # The upper half of the bits of a float32 is a bfloat16.
    return (elements.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
