"""What a diagnostic is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error that users can meet, under a code that stays.

    `code` is the letter of the kind of error and a number. `meaning` says what is wrong and why it is refused, `remedy`
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
        """All that there is to say, for a terminal."""
        return f"{self.code} {self.title} ({self.kind})\n\n{self.meaning}\n\nWhat to do: {self.remedy}"


PREFIX = "TTX-"
# The letter of each kind of error.
KINDS = {
    "U": "UsageError", "K": "KernelError", "L": "Unsupported", "R": "ResourceError", "V": "VerifyError",
    "B": "BackendError",
}  # fmt: skip


def diagnostic(code: str, title: str, meaning: str, remedy: str) -> Diagnostic:
    return Diagnostic(PREFIX + code, title, meaning, remedy)
