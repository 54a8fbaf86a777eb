"""Names of TileLang's language that no rule lowers yet: they exist, and a kernel that uses one is rejected at that
line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from ttexplore.errors import Unsupported
from ttexplore.language.guard.standins import ARITHMETIC, COMPARISONS


class Noting(Protocol):
    """The kernel being traced (a ttexplore.language.tracer.builder.Builder), as far as this module needs it."""

    def leave_out(self, feature: str) -> None: ...


CURRENT: ContextVar[Noting | None] = ContextVar("kernel being traced", default=None)
# The name by which the rewritten code of a kernel knows its hooks.
HOOKS = "__hooks"

HINT_CONSTANT_SIZES = "give the kernel constant sizes: pass them as arguments of a factory, or use T.const"


def _read(text: str, level: str) -> list[tuple[str, tuple[str, ...]]]:
    """The sections of this level: the heading of each, and its words."""
    sections = (section.split("\n", 1) for section in text.split(f"\n{level} ")[1:])
    return [(heading, tuple(words.split())) for heading, words in sections]


_LISTS, _HINTS = Path(__file__).with_name("names.md").read_text(encoding="utf-8").split("\n## Hints", 1)
IGNORED, HINTS, NOT_LOWERED, STAND_INS = (names for _, names in _read(_LISTS, "##"))
# What to write instead of a name, and beginnings of names; the last hint is for all others.
*INSTEAD, (_OTHERWISE, _) = _read(_HINTS, "###")


class NotLowered:
    """A name of the language that is not lowered. Using it inside a kernel raises Unsupported at that line; outside
    kernels (decorators, module-level values of an example file) it stands for itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> NotLowered:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()
        return NotLowered(f"{self.name}.{name}")

    def __call__(self, *args: object, **options: object) -> object:
        self.refuse()
        if len(args) == 1 and not options and callable(args[0]):
            return args[0]
        return NotLowered(self.name)

    def __mro_entries__(self, _bases: object) -> tuple[type, ...]:
        return (object,)

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def hint(self) -> str:
        """What to write instead."""
        name = self.name.partition(".")[0]
        return next((hint for hint, beginnings in INSTEAD if name.startswith(beginnings)), _OTHERWISE)

    def refuse(self) -> None:
        """Raise Unsupported if a kernel is being traced."""
        if CURRENT.get() is not None:
            raise Unsupported("L001", f"T.{self.name} is not lowered", hint=self.hint)


def _operator(self: NotLowered, *_operands: object) -> NotLowered:
    self.refuse()
    return self


for _name in [*ARITHMETIC, *COMPARISONS, "setitem", "enter"]:
    setattr(NotLowered, f"__{_name}__", _operator)


class UnknownName(AttributeError):
    """A name that the language does not have. `hint` may suggest another."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        close = difflib.get_close_matches(name, [key for key in names if not key.startswith("_")], 1)
        self.hint = f"did you mean T.{close[0]}?" if close else "see the names in dir(ttexplore.language)"
        super().__init__(f"T.{name} does not exist; {self.hint}" if close else f"T.{name} does not exist")
        self.message = f"T.{name} does not exist"


def hint_only(name: str) -> Callable[..., None]:
    """A name that only informs a GPU compiler and does not change results: accepted, with a note."""

    def hint(*_args: object, **_options: object) -> None:
        builder = CURRENT.get()
        if builder is not None:
            builder.leave_out(f"T.{name}")

    hint.__name__ = hint.__qualname__ = name
    return hint


class Ignored:
    """A name that describes to a GPU compiler how a kernel is to be scheduled: it can be called, asked for attributes,
    and used in ``with``, and has no effect on what the kernel computes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Ignored:
        if name.startswith("__"):
            raise AttributeError(name)
        return Ignored(f"{self.name}.{name}")

    def __call__(self, *_args: object, **_options: object) -> Ignored:
        builder = CURRENT.get()
        if builder is not None:
            builder.leave_out(f"T.{self.name}")
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"T.{self.name}"
