"""The cores that may work, from the options `cores`, `core_offset` and `core_ranges`."""

from __future__ import annotations

from collections.abc import Sequence

from ttexplore.errors import ResourceError, UsageError
from ttexplore.options import Core, Options
from ttexplore.plan import CoreRange
from ttexplore.target import Target


def ranges_of_options(target: Target, options: Options) -> tuple[CoreRange, ...]:
    """The cores that the options allow. Raises the errors of :func:`core_ranges`."""
    return core_ranges(target, options.cores, options.core_offset, options.core_ranges)


def core_ranges(
    target: Target, cores: tuple[int, int] | None, offset: Core, ranges: Sequence[tuple[Core, Core]] | None
) -> tuple[CoreRange, ...]:
    """The rectangles of cores that may be used.

    Raises ResourceError for cores outside the target's compute grid, UsageError for options that contradict each other.
    """
    width, height = target.compute_grid
    if ranges is None:
        (x, y), (columns, rows) = offset, cores or (width - offset[0], height - offset[1])
        if not (x >= 0 and y >= 0 and 1 <= columns <= width - x and 1 <= rows <= height - y):
            at = f" from ({x}, {y}) on" if (x, y) != (0, 0) else ""
            requested = "the" if cores is None else f"{columns}x{rows}"
            raise ResourceError(
                "R005",
                f"{requested} cores{at} are requested; {target.name} has {width}x{height}",
                hint="request fewer cores, or choose another target",
            )
        return (CoreRange((x, y), (x + columns - 1, y + rows - 1)),)
    if cores is not None or tuple(offset) != (0, 0):
        raise UsageError(
            "U007",
            "core_ranges and cores are both given",
            hint="give core_ranges alone: it replaces cores and core_offset",
        )
    rectangles = tuple(CoreRange((left, top), (right, bottom)) for (left, top), (right, bottom) in ranges)
    if not rectangles:
        raise UsageError("U007", "core_ranges is empty", hint="give at least one rectangle: [((0, 0), (3, 1))]")
    covered: set[Core] = set()
    for rectangle in rectangles:
        if not (
            0 <= rectangle.first[0] <= rectangle.last[0] < width
            and 0 <= rectangle.first[1] <= rectangle.last[1] < height
        ):
            raise ResourceError(
                "R005",
                f"the cores {rectangle.first} to {rectangle.last} are requested; {target.name} has {width}x{height}",
                hint=f"give the upper left corner first, then the lower right one, at most ({width - 1}, {height - 1})",
            )
        if twice := sorted(covered & set(rectangle.cores)):
            raise UsageError("U007", f"core {twice[0]} is in two of the core ranges", hint="make the ranges disjoint")
        covered |= set(rectangle.cores)
    return rectangles
