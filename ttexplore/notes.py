"""What the plan notes besides its facts: kinds with values. ``notes.toml`` has the sentence of each kind."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ttexplore.characters import Printed


@dataclass(frozen=True, repr=False)
class Note(Printed):
    """Something that is not among the other facts of a plan: its kind, its values by name, and its sentence."""

    kind: str
    values: dict[str, Any] = field(hash=False)
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)

    def __contains__(self, text: str) -> bool:
        return text in self.text


def note(kind: str, **values: object) -> Note:
    """The note of a kind with these values: numbers, texts, lists of them, and None for what there is not."""
    return Note(kind, values, _sentences()[kind].format(**{name: _Value(value) for name, value in values.items()}))


@functools.cache
def _sentences() -> dict[str, str]:
    import tomllib  # only where a note is made: reading a saved plan makes none

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class _Value:
    """A value in a sentence."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __format__(self, form: str) -> str:
        if self.value is None:
            return ""
        if "#" not in form:
            return format(self.value, form)
        return form.replace("#", str(self.value))
