"""Every error that a user can meet: one base class and a handful of kinds.

An error says what is wrong, at which kernel line, with which number, and what would make it work.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Generator, Iterable

from ttexplore.diagnostics.diagnostic import PREFIX
from ttexplore.record import ErrorRecord, Span


class TTExploreError(Exception):
    """Base of all. `message` says what and how much, `hint` what to do next, `span` the kernel line.

    `code` is the entry in the catalogue of diagnostics that says more; it is raised as ``R001`` and shown as
    ``TTX-R001``.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(code, message, hint, span)
        self.code = code and PREFIX + code.removeprefix(PREFIX)
        self.message = message
        self.hint = hint
        self.span = span

    def at(self, span: Span | None) -> TTExploreError:
        """This error with `span` filled in, if it has none yet."""
        if self.span is None:
            self.span = span
        return self

    def record(self) -> ErrorRecord:
        return ErrorRecord(type(self).__name__, self.message, self.hint, self.span, self.code)

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        if not self.hint:
            return f"{where}{coded(self.message, self.code)}"
        return f"{where}{self.message}\n  hint: {coded(self.hint, self.code)}"


def coded(text: str, code: str) -> str:
    """A hint or message with the error's code at the end of the first line."""
    first, newline, rest = text.partition("\n")
    return f"{first} [{code}]{newline}{rest}" if code else text


class UsageError(TTExploreError):
    """Wrong use of the API or the command: an unknown name, a missing argument, a bad option."""


def shown(value: object) -> str:
    """A value that a user gave, as an error shows it: on one line, long ones cut."""
    try:
        text = repr(value)
    except Exception:  # Whatever a stranger's __repr__ raises; Python itself writes no numbers of 4,300 digits.
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN and "\n" not in text else f"{' '.join(text.split())[:_LONGEST_SHOWN]}..."


_LONGEST_SHOWN = 100


def unknown(what: str, given: object, accepted: Iterable[str]) -> UsageError:
    """The error for a name that is none of the `accepted` ones; names the one that was probably meant."""
    names = list(accepted)
    close = _meant(given, names)
    meant = f"did you mean {close[0]}? " if close else ""
    listed = f"use one of {', '.join(names)}" if names else "there are none"
    return UsageError("U001", f"there is no {what} {shown(given)}", hint=meant + listed)


def _meant(given: object, names: list[str]) -> list[str]:
    """The name that is nearest to what was given, whatever its case; none where no name is near."""
    if not isinstance(given, str):
        return []
    by_lower = {name.lower(): name for name in names}
    return [by_lower[one] for one in difflib.get_close_matches(given[:_LONGEST_SHOWN].lower(), by_lower, 1)]


class KernelError(TTExploreError):
    """The kernel is wrong: shapes that do not match, a region outside a tensor, a name that does not exist."""


class Unsupported(TTExploreError):
    """The kernel may be right, but no rule lowers this construct."""


class ResourceError(TTExploreError):
    """The kernel does not fit the target: L1, circular buffers, DST, arguments, cores."""


@contextlib.contextmanager
def memory_for(doing: str) -> Generator[None]:
    """Tells as ResourceError that `doing` something inside needs more memory than there is."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(doing) from error


def out_of_memory(doing: str, span: Span | None = None) -> ResourceError:
    return ResourceError(
        "R010", f"{doing} needs more memory than this machine has", hint="use smaller tensors or sizes", span=span
    )


class VerifyError(TTExploreError):
    """A law of the lowering is broken: an internal fault, shown with the step that caused it."""


class BackendError(TTExploreError):
    """A backend is missing, failed, ran out of time or found a fault in the program as it ran."""


class Cancelled(BackendError):
    """The run was cancelled by who asked for it."""

    def __init__(self) -> None:
        super().__init__("B006", "the run was cancelled", hint="run it again when you like")


def refuse_cancelled(cancel: threading.Event | None) -> None:
    """Raises Cancelled where the event is set."""
    if cancel is not None and cancel.is_set():
        raise Cancelled


_KINDS = (UsageError, KernelError, Unsupported, ResourceError, VerifyError, BackendError)


def from_record(record: ErrorRecord) -> TTExploreError:
    """The error that was recorded."""
    kind = next((kind for kind in _KINDS if kind.__name__ == record.kind), TTExploreError)
    return kind(record.code, record.message, hint=record.hint, span=record.span)
