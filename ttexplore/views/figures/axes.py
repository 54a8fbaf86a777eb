"""Logarithmic axes of drawings, with round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.figures.svg import path, text


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic scale from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> LogAxis:
        low, high = math.log(min(values)), math.log(max(values))
        # Some room around, and around a single value.
        room = max(0.06 * (high - low), 0.1)
        return cls(low - room, high + room, start, end)

    def at(self, value: float) -> float:
        return self.start + (math.log(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Up to eight round numbers."""
        first, last = math.floor(self.low / math.log(10)), math.ceil(self.high / math.log(10))
        for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1,)):
            ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            shown = [value for value in ticks if self.low <= math.log(value) <= self.high]
            if len(shown) <= 8:
                return shown
        return shown[:: math.ceil(len(shown) / 8)]


def grid(x: LogAxis, y: LogAxis) -> list[str]:
    """The lines at the round numbers of both axes, `x` below and `y` at the left, with these numbers."""
    left, right = sorted((x.start, x.end))
    top, bottom = sorted((y.start, y.end))
    lines = [f"M{x.at(tick):.1f} {top:.0f}V{bottom:.0f}" for tick in x.ticks()]
    lines += [f"M{left:.0f} {y.at(tick):.1f}H{right:.0f}" for tick in y.ticks()]
    labels = [text(x.at(tick), bottom + 15, axis_number(tick), "s", anchor="middle") for tick in x.ticks()]
    labels += [text(left - 6, y.at(tick) + 4, axis_number(tick), "s", anchor="end") for tick in y.ticks()]
    return [path("".join(lines), "rule"), *labels]


def axis_number(value: float) -> str:
    """A number in three digits, or all of a larger one."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
