"""The work of reading a foreign source: what ends it, and how a kernel is refused."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ttexplore.control import FREE, Control
from ttexplore.errors import refuse_cancelled

# How many statements and expressions of one kernel are read, loops and functions that are called counted each time, and
# how deep they may lie inside of each other.
MOST_STEPS = 100_000
DEEPEST = 100
# What else to do where a port takes too long.
PORT_ONE = "port one kernel of the source"


class Refused(Exception):
    """A construct that no rule understands: the kernel gets no skeleton."""

    def __init__(self, construct: str, line: int) -> None:
        super().__init__(f"{construct} (line {line}) is not understood")


class TooLarge(Refused):
    """A kernel that has more than a limit allows."""

    def __init__(self, reason: str) -> None:
        Exception.__init__(self, reason)


def short(node: ast.AST) -> str:
    """The first line of a piece of Python, for an error."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        text = type(node).__name__
    return f"`{text.split(chr(10))[0][:60]}`"


def is_large(nodes: Iterable[object]) -> bool:
    """Whether a function has more statements and expressions than are read."""
    return next(itertools.islice(iter(nodes), MOST_STEPS, None), None) is not None


def refuse_large(name: str, nodes: Iterable[object], depth: Callable[[], int]) -> None:
    """Refuse a function before it is read, if it nests too deep or has more statements and expressions than are read.
    Raises TooLarge."""
    if is_large(nodes):
        raise TooLarge(f"{name} has {_MOST}")
    if depth() > DEEPEST:
        raise TooLarge(f"{name} nests more than {DEEPEST} deep")


_MOST = f"more than {MOST_STEPS:,} statements and expressions, loops and calls written out"


@dataclass
class SourceWork:
    """The work on one source; it ends as `control` says."""

    control: Control = FREE
    steps: int = 0

    def begin(self) -> None:
        """Begin with another kernel."""
        self.steps = 0
        self.check()

    def step(self) -> None:
        """Count another statement or expression. Raises TooLarge, Cancelled, or BackendError where the time is over."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLarge(f"it has {_MOST}")
        if self.steps % 256 == 0:
            self.check()

    def check(self) -> None:
        """Raises Cancelled, or BackendError where the time is over."""
        refuse_cancelled(self.control.cancel)
        if self.control.remaining < 0:
            raise self.control.timed_out(PORT_ONE)
