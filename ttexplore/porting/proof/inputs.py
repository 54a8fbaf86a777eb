"""Inputs with which a source and its skeleton are tried: those that show wrong places and masks, lost maxima, and what
only numbers of some size show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.porting.foreign.families import Attention, Family
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.values import Reduced, walk

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
MAGNITUDES, INFINITE, HIDING = "all magnitudes", "infinite", "hiding"
# The lowest power of ten of numbers, the powers of those in float16, and how often inputs of one size are drawn.
_LOWEST, _POWERS_OF_HALF, _MOST_PARTS = -24.0, (-6.0, 4.0), 4
# How near to a constant that float32 does not hold.
_NEAR = 1 / 16


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


def _infinite(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows of one infinity, and of usual numbers."""
    rows = np.arange(math.prod(shape[:-1])).reshape((*shape[:-1], 1)) if len(shape) > 1 else np.asarray(2)
    return np.where(rows % 3 == 2, draw.normal(size=shape), np.where(rows % 3 == 0, -np.inf, np.inf))


def _hiding(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows of one sign, in each block of rows of one size, up to the largest float16: products of them are less than
    numbers that stand for hidden ones."""
    exponents = np.resize((4.8, 3.3, 2.2), shape[0]).reshape((-1, *(1 for _ in shape[1:])))
    return draw.choice([-1.0, 1.0], (*shape[:-1], 1)) * draw.uniform(0.5, 1.0, shape) * 10.0**exponents


INPUTS: dict[str, Draw] = {
    "distinct": _distinct,
    "positive": _positive,
    "negative": _negative,
    "large": _large,
    "ties": _ties,
    "zeros": _zeros,
    INFINITE: _infinite,
    HIDING: _hiding,
}
# Those of launches, in turn.
OF_LAUNCH = (
    ("distinct", "large"),
    ("distinct", "negative", "ties"),
    ("positive", "zeros", "distinct"),
    ("distinct", "negative", "ties", "zeros"),
)


def hostile_inputs(kernel: ForeignKernel, family: Family) -> str:
    """Inputs that show where a finite number stands for an infinite one, empty if none does."""
    if isinstance(family, Attention):
        return HIDING if math.isfinite(family.hidden) else ""
    values = [term for store in kernel.stores for term in walk(store.value)]
    return INFINITE if any(isinstance(term, Reduced) and term.kind != "sum" for term in values) else ""


@dataclass(frozen=True)
class Magnitudes:
    """Numbers of all sizes: in every other row its own size, which rows of other tensors share; in the others each its
    own, zeros of both signs, and the `constants` of the source with the numbers next to them. The largest are powers of
    ten of at most `highest`; of `part`, each has other constants and sizes."""

    constants: Sequence[float] = ()
    highest: float = 30.0
    part: int = 0

    def drawn(self, draw: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        low, high = _POWERS_OF_HALF if dtype == np.float16 else (_LOWEST, self.highest)
        high = min(high, self.highest)
        columns = shape[-1] if shape else 1
        rows = int(np.prod(shape)) // max(columns, 1)
        signs = draw.choice([-1.0, 1.0], (rows, columns))
        # The golden ratio takes rows all over the range.
        number = np.arange(rows)[:, None] + self.part * rows
        by_rows = draw.uniform(0.25, 2.0, (rows, columns)) * 10.0 ** (low + (high - low) * (0.618034 * number % 1.0))
        mixed = signs * 10.0 ** draw.uniform(low, high, (rows, columns))
        is_mixed = np.broadcast_to(np.arange(rows)[:, None] % 3 > 0 if rows > 2 else True, (rows, columns))
        # Every second one is a zero, a constant or next to one, in turn.
        is_near = is_mixed & (np.arange(rows * columns).reshape(rows, columns) % 2 == 1)
        near = self.neighbours(dtype)
        count = np.cumsum(is_near.ravel()).reshape(rows, columns) + self.part * np.count_nonzero(is_near)
        mixed = np.where(is_near, near[count % len(near)], mixed)
        return np.where(is_mixed, mixed, by_rows * signs).reshape(shape)

    def parts(self, elements: int) -> Iterator[Magnitudes]:
        """As many as it takes until tensors of that many elements have had all constants."""
        most = len(self.neighbours(np.dtype(np.float32)))
        for number in range(min(_MOST_PARTS, -(-3 * most // max(elements, 1)))):
            yield replace(self, part=number)

    def neighbours(self, dtype: np.dtype[Any]) -> Array:
        """Constants of both signs with what lies next to them, and zeros of both signs. Of a constant that float32 does
        not hold, float32 and float64 take different sides, and what is left of it near it has few bits: these are no
        elements."""
        numbers = [0.0, -0.0]
        for constant in self.constants:
            exact = np.float32(constant)
            near = [constant * (1 - _NEAR), constant * (1 + _NEAR)]
            if float(exact) == constant:
                # Rounded to fewer bits, the next numbers are the same.
                step = constant * (2.0**-7 if dtype.itemsize == 2 else 0.0)
                near = [constant, float(np.nextafter(exact, -np.inf)) - step, float(np.nextafter(exact, np.inf)) + step]
            numbers += [sign * number for sign in (1, -1) for number in near]
        largest = float(np.finfo(np.float16 if dtype == np.float16 else np.float32).max)
        return np.asarray([number for number in numbers if abs(number) <= largest])


def chosen(seed: int, shape: tuple[int, ...], count: int) -> Array:
    """Indices, each less than a count."""
    return np.random.default_rng(seed).integers(0, count, shape).astype(np.int32)


def drawn(kind: str | Magnitudes, seed: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The elements of a tensor, float32, which its dtype holds exactly: with all of their bits, so that a rounding on
    the way shows."""
    draw = np.random.default_rng(seed)
    elements = kind.drawn(draw, shape, dtype) if isinstance(kind, Magnitudes) else INPUTS[kind](draw, shape)
    return np.asarray(elements.astype(np.float32).astype(dtype), np.float32)
