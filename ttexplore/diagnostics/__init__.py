"""The catalogue of diagnostics: every error that users can see, with its code, its meaning, its remedy and an example.

Each raise statement names its code. A test finds all of them, and fails if ``catalogue.toml`` lacks the code or if the
code belongs to another kind of error. The tests also run the examples and write ``examples.json``.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

PREFIX = "TTX-"
# The kind of error by the first letter of its code.
KINDS = dict(U="UsageError", K="KernelError", L="Unsupported", R="ResourceError", V="VerifyError", B="BackendError")
EXAMPLES = Path(__file__).with_name("examples.json")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error that users can see, with a permanent code.

    `code` is a letter for the kind of error and a number. `meaning` says what is wrong and why it is rejected, `remedy`
    what to do.
    """

    code: str
    title: str
    meaning: str
    remedy: str

    @property
    def kind(self) -> str:
        return KINDS[self.code.removeprefix(PREFIX)[0]]

    @property
    def text(self) -> str:
        """The entry as text for a terminal."""
        return f"{self.code} {self.title} ({self.kind})\n\n{self.meaning}\n\nWhat to do: {self.remedy}"


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
def catalogue() -> dict[str, Diagnostic]:
    """The entries by code. Raises TypeError if an entry lacks a field, or has an unknown one."""
    import tomllib  # compiling its patterns takes longer than reading the entries

    entries = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    return {
        PREFIX + code: Diagnostic(PREFIX + code, **{name: " ".join(text.split()) for name, text in fields.items()})
        for code, fields in entries.items()
    }


@functools.cache
def examples() -> dict[str, Example]:
    """The examples by code."""
    return {code: Example(**fields) for code, fields in json.loads(EXAMPLES.read_text(encoding="utf-8")).items()}
