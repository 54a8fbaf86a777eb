"""Controlling a piece of work from outside: cancelling it, limiting its time, watching its progress."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass

from ttexplore.errors import BackendError, TTExploreError, UsageError, refuse_cancelled, shown
from ttexplore.given import seconds, wrong

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """What ends an execution before its time, and who hears of its progress.

    Setting `cancel` ends it; so do `seconds`, counted from `start` (of ``time.perf_counter``; None: from the start of
    each execution). Errors call what did not end `what`. `progress` is called with a line for each part of the work.
    """

    cancel: threading.Event | None = None
    seconds: float = math.inf
    progress: Progress | None = None
    what: str = "the program"
    start: float | None = None

    @classmethod
    def checked(
        cls, cancel: threading.Event | None, time_limit_seconds: float | None, progress: Progress | None
    ) -> Control:
        """Check what a user passes. Raises UsageError for wrong values."""
        limit = seconds("time_limit_seconds", time_limit_seconds)
        if progress is not None and not callable(progress):
            raise wrong("progress", progress, "a function that takes a string")
        if cancel is not None and not isinstance(cancel, threading.Event):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise wrong("cancel", cancel, "a threading.Event")
        return cls(cancel, math.inf if limit is None else limit, None if progress is None else _guarded(progress))

    def of(self, action: str, *, seconds: float | None = None, start: float | None = None) -> Control:
        """The same for one part of the work, with its own limit if one is given."""
        limit = self.seconds if seconds is None else seconds
        return dataclasses.replace(self, what=action, seconds=limit, start=self.start if start is None else start)

    @property
    def remaining(self) -> float:
        """The seconds that are left; without a `start`, all of them."""
        return self.seconds - (0.0 if self.start is None else time.perf_counter() - self.start)

    def timed_out(self, advice: str) -> BackendError:
        """The error of work whose time is over; `advice` is what else to do than to raise the limit."""
        return BackendError(
            "B003",
            f"{self.what} did not end within the time limit of {self.seconds:g} seconds",
            hint=f"raise the time limit (time_limit_seconds), or {advice}",
        )

    def tell(self, text: str) -> None:
        """Report that a part of the work begins or is done. Raises Cancelled."""
        refuse_cancelled(self.cancel)
        if self.progress is not None:
            self.progress(text)

    @contextlib.contextmanager
    def watched(self, action: str, *, start: float | None = None) -> Generator[None]:
        """Call the work in the block `action`; wherever it comes to :func:`look_around`, this control may end it."""
        if self.cancel is None and math.isinf(self.seconds):
            yield
            return
        began = time.perf_counter() if start is None else start
        token = _WATCHING.set((*_WATCHING.get(), self.of(action, start=began)))
        try:
            yield
        finally:
            _WATCHING.reset(token)


_WATCHING: ContextVar[tuple[Control, ...]] = ContextVar("what may end the work of this thread", default=())


def look_around() -> None:
    """Raise Cancelled, or BackendError where the time is over, if the work around is to end."""
    for control in _WATCHING.get():
        refuse_cancelled(control.cancel)
        assert control.start is not None, "it is watched from then on"
        if control.remaining < 0:
            raise control.timed_out("use larger blocks or smaller tensors")


def _guarded(progress: Progress) -> Progress:
    """`progress`, whose own exceptions become UsageError: they are no faults of the work."""

    def guarded(text: str) -> None:
        try:
            progress(text)
        except TTExploreError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(
                "U010", f"progress raised {shown(error)}", hint="pass a function that takes a string"
            ) from error

    return guarded


FREE = Control()
