"""Controlling a piece of work from outside: cancelling it, limiting its time, watching its progress."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ttexplore.errors import refuse_cancelled
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
        return cls(cancel, math.inf if limit is None else limit, progress)

    def of(self, what: str, *, seconds: float | None = None, start: float | None = None) -> Control:
        """The same for one part of the work, with its own limit if one is given."""
        limit = self.seconds if seconds is None else seconds
        return dataclasses.replace(self, what=what, seconds=limit, start=self.start if start is None else start)

    def tell(self, text: str) -> None:
        """Report that a part of the work begins or is done. Raises Cancelled."""
        refuse_cancelled(self.cancel)
        if self.progress is not None:
            self.progress(text)


FREE = Control()
