"""What a diagnostic is, and how a message is recognised."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error that users can meet, under a code that stays.

    `code` is the letter of the kind of error and a number. `meaning` says what is wrong and why it is refused, `remedy`
    what to do. `messages` are the messages that it comes with, ``{}`` for what differs: a message belongs to the
    diagnostic whose text fits it with the most letters.
    """

    code: str
    title: str
    meaning: str
    remedy: str
    messages: tuple[str, ...]

    @property
    def kind(self) -> str:
        return KINDS[self.code.removeprefix(PREFIX)[0]]

    @property
    def text(self) -> str:
        """All that there is to say, for a terminal."""
        forms = "\n".join(f"  {line}" for message in self.messages for line in message.splitlines())
        return (
            f"{self.code} {self.title} ({self.kind})\n\n{self.meaning}\n\nWhat to do: {self.remedy}\n\n"
            f"It says:\n{forms.replace('{}', '...')}"
        )


PREFIX = "TTX-"
# The letter of each kind of error.
KINDS = {
    "U": "UsageError", "K": "KernelError", "L": "Unsupported", "R": "ResourceError", "V": "VerifyError",
    "B": "BackendError",
}  # fmt: skip


def diagnostic(code: str, title: str, meaning: str, remedy: str, *messages: str) -> Diagnostic:
    return Diagnostic(PREFIX + code, title, meaning, remedy, messages)


@functools.cache
def pattern(message: str) -> re.Pattern[str]:
    """What fits a message with ``{}`` in it."""
    return re.compile(".*".join(re.escape(part) for part in message.split("{}")), re.DOTALL)


def letters(message: str) -> int:
    """How much a message says by itself."""
    return len(message.replace("{}", ""))
