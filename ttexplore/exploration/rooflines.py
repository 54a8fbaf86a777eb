"""Lowerings beside the roofline, in one drawing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ttexplore.clock.estimate import Estimate, LaunchEstimates
from ttexplore.exploration import Exploration
from ttexplore.given import dictionary, wrong
from ttexplore.session.results import Drawing
from ttexplore.views.runs.estimate import RoofPoint, roofline_svg


def roofline(
    lowerings: Mapping[str, Exploration | Estimate | LaunchEstimates], marks: Mapping[str, float] | None = None
) -> Drawing:
    """Draw the predicted times of lowerings, in their order, beside the roofline: the time at the peak of DRAM for what
    each transfers, and the time at the compute peak of its math fidelity.

    `lowerings` are explorations or their estimates by label; a path leads from each to the next. `marks` are times of
    others in microseconds, such as published ones, by label. Raises UsageError for other values, and what
    :meth:`Exploration.estimate` raises.
    """
    by_label = dictionary("lowerings", lowerings, "labels", '{"first": ex}')
    if not by_label:
        raise wrong("lowerings", lowerings, "at least one exploration or estimate, by its label")
    points: list[RoofPoint] = []
    for label, lowering in by_label.items():
        estimate: Any = lowering.estimate() if isinstance(lowering, Exploration) else lowering
        if not isinstance(estimate, Estimate | LaunchEstimates):
            raise wrong(f"the lowering {label!r}", lowering, "an exploration, or the result of its estimate()")
        points.append(RoofPoint(label, estimate.us, estimate.traffic_us, estimate.compute_peak_us))
    times = dictionary("marks", {} if marks is None else marks, "labels", '{"measured": 69.0}')
    for label, us in times.items():
        if isinstance(us, bool) or not isinstance(us, int | float) or not 0 < us <= sys.float_info.max:
            raise wrong(f"the mark {label!r}", us, "a time in microseconds, above 0")
    return Drawing(roofline_svg(points, [*times.items()]))
