"""Recursion that may go deeper than Python's own stack."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

# A function that calls others by yielding them, and is sent what they return.
Deep = Generator[Any, Any, Any]


def deep(call: Deep) -> Any:
    """What `call` returns. The calls that it and those that it makes yield run one inside of the other, on a list."""
    calls, value = [call], None
    while calls:
        try:
            inner = calls[-1].send(value)
        except StopIteration as end:
            calls.pop()
            value = end.value
        else:
            calls.append(inner)
            value = None
    return value
