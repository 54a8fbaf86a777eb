"""An example of each diagnostic: its cause and its message. The tests run them and write ``examples.json``."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("examples.json")


@dataclass(frozen=True, slots=True)
class Example:
    """An error with `message` and `hint`, at `line` of the kernel if that is known. `given` is its cause, as source
    text or a sentence; without a message, it says why there is no example."""

    given: str
    is_source: bool = False
    message: str = ""
    line: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """The example as text for a terminal."""
        lines = [*self.given.splitlines()]
        if self.message:
            where = f" at `{self.line}`" if self.line else ""
            lines += ["", f"message: {self.message}{where}", f"hint: {self.hint}"]
        return "\n".join(f"  {line}".rstrip() for line in lines)


@functools.cache
def examples() -> dict[str, Example]:
    """The examples by code."""
    return {code: Example(**fields) for code, fields in json.loads(FILE.read_text(encoding="utf-8")).items()}
