"""Text that is safe to print: characters that would steer a terminal, or change how a line reads, are shown instead.

Kernel sources, names, messages and files come from anyone. What prints itself is :class:`Printed`, the command prints
with :func:`printable`, and views with :func:`ttexplore.views.markup.escape`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

# Control, format, surrogate, private use, unassigned (noncharacters are among them), line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_TAB = "    "
# Everything that may be hidden: most texts have nothing else.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


def visible(text: str) -> str:
    """`text` on one line with invisible characters written as ``⟨U+202E⟩`` and tabs as four spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_TAB if character == "\t" else _shown(character) for character in text)


def printable(text: str) -> str:
    """`text` for a terminal: its lines and tabs as they are, other invisible characters as ``⟨U+001B⟩``."""
    return _UNUSUAL.sub(lambda match: _shown(match[0]), text)


def _shown(character: str) -> str:
    hidden = unicodedata.category(character) in _HIDDEN_CATEGORIES
    return f"⟨U+{ord(character):04X}⟩" if hidden else character


class Printed:
    """What prints itself as its classes write it, with invisible characters shown: see :func:`printable`."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("__str__", "__repr__"):
            written = cls.__dict__.get(name)
            if written is not None:
                setattr(cls, name, _printing(written))


def _printing(write: Callable[[Any], str]) -> Callable[[Any], str]:
    @functools.wraps(write)
    def printing(self: Any) -> str:
        return printable(write(self))

    return printing
