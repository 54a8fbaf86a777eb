"""The errors that users see: one base class and a few kinds.

An error states what is wrong, at which kernel line, with which number, and how to fix it.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any

from ttexplore.characters import Printed
from ttexplore.diagnostics import PREFIX
from ttexplore.record import ErrorRecord, Span


class TTExploreError(Printed, Exception):
    """The base class of all errors. `message` states the problem and its numbers, `hint` what to do next, `span` the
    kernel line.

    `code` names the entry in the catalogue of diagnostics; it is raised as ``R001`` and shown as ``TTX-R001``.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(code, message, hint, span)
        self.code = code and PREFIX + code.removeprefix(PREFIX)
        self.message = message
        self.hint = hint
        self.span = span

    def at(self, span: Span | None) -> TTExploreError:
        """Set `span` if the error has none yet, and return the error."""
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
    """Append the error's code to the first line of a hint or message."""
    first, newline, rest = text.partition("\n")
    return f"{first} [{code}]{newline}{rest}" if code else text


class UsageError(TTExploreError):
    """Incorrect use of the API or the command: an unknown name, a missing argument, a wrong option value."""


def shown(value: object) -> str:
    """Format a user's value for an error message: on one line, and truncated if it is long."""
    # Python itself prints no numbers above 4,300 digits.
    text = _text(repr, value) or f"a {type_name(value)}"
    return text if len(text) <= _LONGEST_SHOWN and "\n" not in text else f"{' '.join(text.split())[:_LONGEST_SHOWN]}..."


_LONGEST_SHOWN = 100


def said(error: BaseException) -> str:
    """What an exception of the user's Python says, with its type."""
    text = _text(str, error)
    return f"{type_name(error)}: {'its text raises another error' if text is None else text}"


def type_name(value: object) -> str:
    """The name of a value's type, whatever the type of that says of it."""
    return type.__dict__["__name__"].__get__(type(value))


def name_of(value: object) -> str:
    """The name of a function or another object of the user's."""
    return _text(lambda named: getattr(named, "__name__", None) or type_name(named), value) or type_name(value)


def _text(read: Callable[[Any], str], value: object) -> str | None:
    """What repr or str gives for a user's value; None where that raises something, as the user's own methods may."""
    try:
        return str.__str__(read(value))
    except (Exception, SystemExit):
        return None


def unknown(kind: str, value: object, accepted: Iterable[str]) -> UsageError:
    """Return the error for a name that is not among the `accepted` ones; its hint suggests the closest one."""
    names = list(accepted)
    close = _meant(value, names)
    meant = f"did you mean {close[0]}? " if close else ""
    listed = f"use one of {', '.join(names)}" if names else "there are none"
    return UsageError("U001", f"there is no {kind} {shown(value)}", hint=meant + listed)


def _meant(value: object, names: list[str]) -> list[str]:
    """Return the name closest to the given one, ignoring case; an empty list if none is close."""
    if not isinstance(value, str):
        return []
    by_lower = {name.lower(): name for name in names}
    return [by_lower[name] for name in difflib.get_close_matches(value[:_LONGEST_SHOWN].lower(), by_lower, 1)]


class KernelError(TTExploreError):
    """The kernel is wrong: shapes that do not match, a region outside a tensor, a name that does not exist."""


class Unsupported(TTExploreError):
    """The kernel may be right, but no rule lowers this construct."""


class ResourceError(TTExploreError):
    """The kernel does not fit the target: L1, circular buffers, DST, arguments, cores."""


@contextlib.contextmanager
def memory_for(doing: str) -> Generator[None]:
    """Turn a MemoryError inside the block into a ResourceError; `doing` names the activity."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(doing) from error


def out_of_memory(doing: str, span: Span | None = None) -> ResourceError:
    return ResourceError(
        "R010", f"{doing} needs more memory than this machine has", hint="use smaller tensors or sizes", span=span
    )


# Of the calls inside one another that Python allows, more than reading and lowering needs: 300 suffice for the corpus.
_CALLS_NEEDED = 800


def caller_too_deep(doing: str, span: Span | None = None) -> ResourceError | None:
    """Return the error for a RecursionError that comes of the depth at which the caller is; None where he leaves enough
    room, so that what was done is at fault. To be called where the work began."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit, about = sys.getrecursionlimit(), round(depth, -2)
    if limit - depth >= _CALLS_NEEDED:
        return None
    return ResourceError(
        "R011",
        f"{doing} began about {about:,} calls deep, and Python allows {limit:,} calls inside one another",
        hint=f"do it in a thread of its own, or call sys.setrecursionlimit({about + 2 * _CALLS_NEEDED}) before",
        span=span,
    )


class VerifyError(TTExploreError):
    """The lowering violates one of its laws: an internal fault, reported with the step that caused it."""


class BackendError(TTExploreError):
    """A backend is missing, failed, exceeded its time limit, or found a fault in the running program."""


class Cancelled(BackendError):
    """The caller cancelled the run."""

    def __init__(self) -> None:
        super().__init__("B006", "the run was cancelled", hint="run it again if you need the result")


def refuse_cancelled(cancel: threading.Event | None) -> None:
    """Raises Cancelled if the event is set."""
    if cancel is not None and cancel.is_set():
        raise Cancelled


_KINDS = (UsageError, KernelError, Unsupported, ResourceError, VerifyError, BackendError)


def from_record(record: ErrorRecord) -> TTExploreError:
    """Rebuild the error from its record."""
    kind = next((kind for kind in _KINDS if kind.__name__ == record.kind), TTExploreError)
    return kind(record.code, record.message, hint=record.hint, span=record.span)
