"""What a lowering costs: the one place that a sweep asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttexplore.clock.estimate import LaunchEstimates
from ttexplore.errors import Unsupported, UsageError
from ttexplore.views.figures.l1_map import l1_used_bytes

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration


@dataclass(frozen=True, slots=True)
class LoweringFigures:
    """What is known of a lowering.

    `estimate_us` is the estimate of its time in microseconds (:meth:`Exploration.estimate`), `dram_bytes` what all
    cores read from DRAM and write to it. Both are None where elements of tensors decide how long the program runs.
    `l1_bytes` are those of the circular buffers of a core, `used_cores` those with work.
    """

    estimate_us: float | None
    dram_bytes: int | None
    l1_bytes: int
    used_cores: int


def figures(lowered: Exploration) -> LoweringFigures:
    """The figures of a lowering that has succeeded. Raises VerifyError for a program that never ends."""
    plans = [launch.plan for launch in lowered.launches]
    l1_bytes = max(map(l1_used_bytes, plans))
    cores = max(sum(1 for core in plan.partition.cores if core.items) if plan.partition else 0 for plan in plans)
    try:
        estimate = lowered.estimate()
    except (UsageError, Unsupported):
        return LoweringFigures(None, None, l1_bytes, cores)
    launches = estimate.launches if isinstance(estimate, LaunchEstimates) else (estimate,)
    dram_bytes = sum(launch.read_bytes + launch.written_bytes for launch in launches)
    return LoweringFigures(round(estimate.us, 3), dram_bytes, l1_bytes, cores)
