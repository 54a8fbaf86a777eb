"""Recursion deeper than Python's own stack."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Returned = TypeVar("Returned")
# A generator that yields the calls that it makes, and is sent their results.
Deep = Generator["Deep[Returned]", Returned, Returned]


def deep(call: Deep[Returned]) -> Returned:
    """Run a generator and all calls that it yields, on a stack of its own, and return its result."""
    calls: list[Deep[Returned]] = [call]
    # The result of the call that has just ended.
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
