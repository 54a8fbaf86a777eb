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
            wanted = "the" if cores is None else f"{columns}x{rows}"
            raise ResourceError(
                "R005",
                f"{wanted} cores{at} are requested; {target.name} has {width}x{height}",
                hint="request fewer cores, or choose another target",
            )
        return (CoreRange((x, y), (x + columns - 1, y + rows - 1)),)
    if cores is not None or tuple(offset) != (0, 0):
        raise UsageError(
            "U007",
            "core_ranges and cores are both given",
            hint="give core_ranges alone: it replaces cores and core_offset",
        )
    made = tuple(CoreRange((left, top), (right, bottom)) for (left, top), (right, bottom) in ranges)
    if not made:
        raise UsageError("U007", "core_ranges is empty", hint="give at least one rectangle: [((0, 0), (3, 1))]")
    taken: set[Core] = set()
    for one in made:
        if not (0 <= one.first[0] <= one.last[0] < width and 0 <= one.first[1] <= one.last[1] < height):
            raise ResourceError(
                "R005",
                f"the cores {one.first} to {one.last} are requested; {target.name} has {width}x{height}",
                hint=f"give the upper left corner first, then the lower right one, at most ({width - 1}, {height - 1})",
            )
        if twice := sorted(taken & set(one.cores)):
            raise UsageError("U007", f"core {twice[0]} is in two of the core ranges", hint="make the ranges disjoint")
        taken |= set(one.cores)
    return made
