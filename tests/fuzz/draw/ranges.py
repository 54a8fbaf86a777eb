"""The ranges of values: what is drawn stays where functions are defined, finite and tame."""

from __future__ import annotations

import numpy as np

from tests.fuzz.description import (
    Allocate,
    Bind,
    Branch,
    Call,
    Constant,
    Copy,
    Expression,
    Fill,
    Gemm,
    Load,
    Loop,
    Named,
    Parallel,
    Reduce,
    Scalar,
    Statement,
)
from tests.fuzz.meaning import BITS, OPERATIONS, Interval, Precision

LARGEST_VALUE = 1e4
# Turns of a loop over a T.dynamic size, for what they add up to.
MOST_TURNS = 4
# Turns before 0 of a loop that begins there.
MOST_BEFORE = 3

_EXACT = Precision(0.0, 0.0, 60, keeps_more=False)


def value_range(low: float, high: float) -> Interval:
    return Interval(np.float64((low + high) / 2), np.float64(low), np.float64(high))  # pyright: ignore


def is_tame(interval: Interval) -> bool:
    return bool(np.isfinite(interval.size)) and float(interval.size) <= LARGEST_VALUE


def expression_range(expression: Expression, ranges: dict[str, Interval], named: dict[str, Interval]) -> Interval:
    match expression:
        case Load(buffer, _):
            return ranges[buffer]
        case Constant(value):
            return value_range(value, value)
        case Named(name):
            return named[name] if name in named else ranges[name]
        case Call(name, arguments):
            with np.errstate(all="ignore"):
                return OPERATIONS[name].meaning(_EXACT, *(expression_range(one, ranges, named) for one in arguments))
        case _:
            return value_range(-128, 128)


def follow(statement: Statement, ranges: dict[str, Interval]) -> None:
    """What the statement does to the ranges of buffers and tensors."""
    match statement:
        case Copy(source, target):
            ranges[target.name] = joined(ranges[source.name], value_range(0, 0))
        case Fill(buffer, value):
            ranges[buffer] = value_range(value, value)
        case Gemm(a, b, c, _, _, clear):
            bound = 64.0 * float(ranges[a].size) * float(ranges[b].size)
            old = value_range(0, 0) if clear or c not in ranges else ranges[c]
            ranges[c] = value_range(float(old.low) - bound, float(old.high) + bound)
        case Reduce(kind, source, target) if kind in BITS:
            # No number has more bits than those that it is made of.
            bound = 2 * float(joined(ranges[source], ranges.get(target, ranges[source])).size)
            ranges[target] = value_range(-bound, bound)
        case Reduce(kind, source, target, _, clear):
            bound = float(ranges[source].size) * (256.0 if kind.endswith("sum") else 1.0)
            old = 0.0 if clear or target not in ranges else float(ranges[target].size)
            bound = bound + old if kind.endswith("sum") else max(bound, old)
            ranges[target] = value_range(-bound, bound)
        case Parallel():
            named: dict[str, Interval] = {}
            for one in statement.body:
                found = expression_range(one.value, ranges, named)
                if isinstance(one, Bind):
                    named[one.name] = found
                    continue
                if one.test is not None:
                    other = ranges[one.buffer] if one.other is None else expression_range(one.other, ranges, named)
                    found = joined(found, other)
                ranges[one.buffer] = found
        case Scalar(name, value):
            found = expression_range(value, ranges, {})
            ranges[name] = joined(ranges[name], found) if statement.form == "block" else found
        case Loop():
            turns = statement.extent if isinstance(statement.extent, int) else MOST_TURNS
            for _ in range(turns + (MOST_BEFORE if statement.first else 0)):
                for one in statement.body:
                    follow(one, ranges)
        case Branch(_, body, other):
            sides = [dict(ranges), dict(ranges)]
            for side, inner in zip(sides, (body, other), strict=True):
                for one in inner:
                    follow(one, side)
            # What one side alone writes holds nothing after it.
            ranges |= {name: joined(found, sides[1][name]) for name, found in sides[0].items() if name in sides[1]}
        case Allocate():
            pass


def joined(one: Interval, other: Interval) -> Interval:
    return value_range(float(min(one.low, other.low)), float(max(one.high, other.high)))
