"""Predicted times as text."""

from __future__ import annotations

# From here on a time is in milliseconds.
_MILLISECONDS_FROM_US = 10_000


def duration(us: float) -> str:
    """A time to a tenth of a microsecond: ``213.9 µs``, ``12.43 ms``."""
    return f"{us / 1000:,.2f} ms" if us >= _MILLISECONDS_FROM_US else f"{us:,.1f} µs"


def plain_time(us: float) -> str:
    """The same in ASCII: ``213.9 us``."""
    return duration(us).replace("µ", "u")


def short_time(us: float) -> str:
    """``7.3 µs``, ``214 µs``, ``12.4 ms``: three digits, as an estimate has no more."""
    if us >= _MILLISECONDS_FROM_US:
        return f"{us / 1000:,.1f} ms"
    return f"{us:,.0f} µs" if us >= 100 else f"{us:.1f} µs"
