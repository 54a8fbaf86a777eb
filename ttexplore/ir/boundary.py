"""Convert exceptions of TVM, of NumPy and of bugs in this project to the project's own errors."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Generator

from tvm import ir, tirx

from ttexplore.errors import TTExploreError, VerifyError, caller_too_deep, out_of_memory
from ttexplore.ir.adapter import span_of
from ttexplore.record import Span

# Of what an exception says: TVM adds a trace of its own.
_LONGEST = 300


@contextlib.contextmanager
def errors_of_ours(doing: str) -> Generator[None]:
    """Convert exceptions raised inside to the project's own errors, with the kernel's line if one is known.

    `doing` describes the work. Raises VerifyError for a mistake of the project, ResourceError where memory does
    not suffice, and errors of ours as they are.
    """
    try:
        yield
    except TTExploreError:
        raise
    except Exception as error:
        raise internal_error(error, doing) from error


def internal_error(error: Exception, doing: str) -> TTExploreError:
    """Return the project's error for an exception raised while `doing` something."""
    span = _line(error)
    if isinstance(error, MemoryError):
        return out_of_memory(doing, span)
    if isinstance(error, RecursionError) and (of_the_caller := caller_too_deep(doing)):
        return of_the_caller
    said = str(error).strip().partition("\n")[0][:_LONGEST]
    return VerifyError(
        "V060",
        f"{doing} failed inside ttexplore: {type(error).__name__}: {said}",
        hint="this is an error of ttexplore itself: please report it with the kernel; another way to write the "
        "line may avoid it",
        span=span,
    )


def _line(error: Exception) -> Span | None:
    """The kernel's line of what was at work: the last variable of the innermost function that holds a node with one."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        if frame.f_code.co_name == "__init__":
            # What failed to be made is no node yet: TVM crashes where it is asked for its span.
            continue
        for value in reversed(list(frame.f_locals.values())):
            span = _span(value)
            if span is not None:
                return span
    return None


def _span(value: object) -> Span | None:
    return span_of(value) if isinstance(value, ir.Expr | tirx.Stmt) else None
