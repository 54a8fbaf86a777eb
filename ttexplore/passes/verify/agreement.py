"""What the checks of cores that send blocks to each other share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ttexplore.errors import VerifyError
from ttexplore.ir.kernel import Call
from ttexplore.plan import Partition

# A core, in logical coordinates.
Place = tuple[int, int]


def disagreement(message: str, hint: str, at: Call | None = None) -> VerifyError:
    return VerifyError("V017", message, hint=hint, span=None if at is None else at.span)


def check_core_values(
    expected: Mapping[Place, Mapping[str, int]], tensor: str, group: Literal["chain", "rectangle"], partition: Partition
) -> None:  # fmt: skip
    """Cores know their part in their groups. Raises VerifyError."""
    running = {(work.x, work.y): work.values for work in partition.cores}
    for core, values in expected.items():
        actual = running[core]
        if wrong := [name for name, value in values.items() if actual.get(name) != value]:
            raise disagreement(
                f"core {core} has {wrong[0]} = {actual.get(wrong[0])}; with the {group}s of {tensor} it is "
                f"{values[wrong[0]]}",
                f"give each core the values of its {group}",
            )
