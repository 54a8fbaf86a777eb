"""Where a run is: the core, its kernel and the statement, and what ends the run before its time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ttexplore.control import Control
from ttexplore.errors import BackendError, VerifyError, refuse_cancelled
from ttexplore.ir.kernel import SourceLocation
from ttexplore.plan import CoreWork
from ttexplore.record import Span

# The cores that have ended are reported at most once in this time.
_TELL_SECONDS = 0.5


@dataclass
class Limits:
    """What ends a run before its time, as `control` says: its limit counts from `start`. `ended` of the run's `cores`
    have ended, which was last `told` then."""

    control: Control
    start: float
    cores: int
    ended: int = 0
    told: float = field(default_factory=time.perf_counter)

    def check(self, core: CoreWork | None, site: SourceLocation) -> None:
        """Raises Cancelled, or BackendError where the time is over."""
        refuse_cancelled(self.control.cancel)
        if time.perf_counter() - self.start > self.control.seconds:
            where = "it was at this line"
            if core is not None:
                where = f"core ({core.x}, {core.y}) was at this line, {self.ended} of {self.cores} cores had ended"
            raise BackendError(
                "B003",
                f"{self.control.what} did not end within the time limit of {self.control.seconds:g} seconds: {where}",
                hint="raise the time limit (time_limit_seconds), run smaller sizes, or use the emulator: it is faster",
                span=site.span,
            )

    def core_ended(self) -> None:
        """Another core has ended. Raises Cancelled."""
        self.ended += 1
        now = time.perf_counter()
        if self.ended < self.cores and now - self.told > _TELL_SECONDS:
            self.told = now
            self.control.tell(f"cores that have ended: {self.ended} of {self.cores}")


@dataclass(slots=True)
class Where:
    """Where one core is: the kernel that runs, `role`, and the statement that it came to. What goes wrong, goes wrong
    there. A program that `is_split` tells which of its kernels it was."""

    work: CoreWork | None
    is_split: bool
    limits: Limits
    role: str = ""
    place: SourceLocation | None = None

    @property
    def core(self) -> str:
        return "the core" if self.work is None else f"core ({self.work.x}, {self.work.y})"

    @property
    def span(self) -> Span | None:
        return None if self.place is None else self.place.span

    def reach(self, site: SourceLocation) -> None:
        """Come to a statement. Raises Cancelled, or BackendError where the time is over."""
        self.place = site
        self.limits.check(self.work, site)

    def fault(self, code: str, message: str, hint: str) -> VerifyError:
        on = "" if self.work is None else f" on {self.core}"
        return VerifyError(code, f"{self.role}{on}: {message}" if self.is_split else message, hint=hint, span=self.span)
