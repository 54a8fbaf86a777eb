"""What the checks of cores that send blocks to each other share."""

from __future__ import annotations

from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Call

# A core, in logical coordinates.
Place = tuple[int, int]


def disagreement(message: str, hint: str, at: Call | None = None) -> VerifyError:
    return VerifyError("V017", message, hint=hint, span=None if at is None else at.span)
