"""How to write by hand the kernels that are not written, as ``ways.toml`` has it."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Way:
    """What to write in place of a kernel whose text has all of `text`, and which was refused for `reason`; `kernel`, of
    the gallery or the porting table, does it."""

    hint: str
    kernel: str
    text: tuple[str, ...] = ()
    reason: str = ""

    def fits(self, text: str, reason: str) -> bool:
        return all(re.search(pattern, text) for pattern in self.text) and re.search(self.reason, reason) is not None

    @property
    def words(self) -> str:
        """The hint, and the kernel."""
        return f"{self.hint}, as {self.kernel} does"


@functools.cache
def ways() -> tuple[Way, ...]:
    """All ways, in the order in which they are looked at; the last one fits to every kernel."""
    rows = tomllib.loads(Path(__file__).with_name("ways.toml").read_text(encoding="utf-8"))["way"]
    return tuple(Way(**row | {"text": tuple(row.get("text", ()))}) for row in rows)


def way_of(text: str, reason: str) -> str:
    """How to write by hand a kernel that has this text, and that was not written for this reason."""
    return next(way for way in ways() if way.fits(text, reason)).words
