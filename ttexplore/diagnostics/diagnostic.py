"""The entries of the catalogue of diagnostics."""

from __future__ import annotations

from dataclasses import dataclass


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


PREFIX = "TTX-"
# The letter of each kind of error.
KINDS = {
    "U": "UsageError", "K": "KernelError", "L": "Unsupported", "R": "ResourceError", "V": "VerifyError",
    "B": "BackendError",
}  # fmt: skip


def diagnostic(code: str, title: str, meaning: str, remedy: str) -> Diagnostic:
    return Diagnostic(PREFIX + code, title, meaning, remedy)
