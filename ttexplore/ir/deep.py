"""Recursion that may go deeper than Python's own stack."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Returned = TypeVar("Returned")
# A function that calls others by yielding them, and is sent what they return.
Deep = Generator["Deep[Returned]", Returned, Returned]


def deep(call: Deep[Returned]) -> Returned:
    """What `call` returns. The calls that it and those that it makes yield run one inside of the other, on a list."""
    calls: list[Deep[Returned]] = [call]
    # What the call that has just ended returned.
    returned: list[Returned] = []
    while True:
        try:
            inner = calls[-1].send(returned.pop()) if returned else next(calls[-1])
        except StopIteration as end:
            calls.pop()
            returned.append(end.value)
            if not calls:
                return returned.pop()
        else:
            calls.append(inner)
