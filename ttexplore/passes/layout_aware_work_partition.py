"""B1: which core does which work items."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.errors import KernelError, ResourceError, UsageError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import constant, statements
from ttexplore.ir.program import Program
from ttexplore.plan import CoreWork, Partition
from ttexplore.target import Target

POLICIES = ("contiguous", "strided", "rectangular")


def layout_aware_work_partition(
    program: Program, target: Target, *, policy: str = "contiguous", cores: tuple[int, int] | None = None
) -> Program:
    """Decide which core does which work items; each item exactly once.

        with T.Kernel(8, 8) as (bx, by):       64 work items
    ==> core (0, 0): work_start 0, work_count 1; core (1, 0): work_start 1, ...

    `policy`: ``contiguous`` gives each core a run of items, ``strided`` deals them out in turn, ``rectangular`` gives
    each core a rectangle of the grid. `cores` is (columns, rows), by default the target's whole compute grid.
    """
    if policy not in POLICIES:
        raise UsageError(f"there is no policy {policy!r}", hint=f"use one of {', '.join(POLICIES)}")
    columns, rows = cores or target.compute_grid
    if not (1 <= columns <= target.compute_grid[0] and 1 <= rows <= target.compute_grid[1]):
        raise ResourceError(
            f"{columns}x{rows} cores are asked for; {target.name} has "
            f"{target.compute_grid[0]}x{target.compute_grid[1]}",
            hint="ask for fewer cores or another target",
        )
    grid = grid_extents(program.kernel)
    match policy:
        case "rectangular":
            work, arguments = _rectangles(grid, columns, rows)
        case _:
            work, arguments = _runs(grid, columns, rows, policy)
    made = Partition(grid, policy, "global", (columns, rows), work, arguments, reason="option" if cores else "default")
    return program.with_plan(partition=made)


def grid_loops(function: Any) -> list[Any]:
    """The launch-grid loops of a kernel, x first. Raises KernelError where there are none."""
    loops: list[Any] = []
    body = statements(function.body)
    while len(body) == 1 and isinstance(body[0], tirx.For) and body[0].kind == tirx.ForKind.THREAD_BINDING:
        loops.append(body[0])
        body = statements(body[0].body)
    if not loops:
        raise KernelError(
            "the kernel has no launch grid, or statements outside of it",
            hint="put everything into one `with T.Kernel(...) as (bx, by):`",
            span=span_of(function),
        )
    return loops


def grid_extents(function: Any) -> tuple[int, ...]:
    """The block counts along x, y, z. Raises KernelError where one is no positive constant."""
    extents: list[int] = []
    for loop in grid_loops(function):
        extent = constant(loop.extent)
        if extent is None or extent < 1:
            raise KernelError(
                f"the launch grid has {loop.extent} blocks along {loop.loop_var.name}",
                hint="give constant block counts of at least 1",
                span=span_of(loop),
            )
        extents.append(extent)
    return tuple(extents)


def _runs(grid: tuple[int, ...], columns: int, rows: int, policy: str) -> tuple[tuple[CoreWork, ...], tuple[str, ...]]:
    items = 1
    for extent in grid:
        items *= extent
    used = min(items, columns * rows)
    base, more = divmod(items, used)
    work: list[CoreWork] = []
    start = 0
    for core in range(used):
        count = base + (core < more)
        values = {"work_start": start if policy == "contiguous" else core, "work_count": count}
        work.append(CoreWork(core % columns, core // columns, count, values))
        start += count
    return tuple(work), ("work_start", "work_count")


def _rectangles(grid: tuple[int, ...], columns: int, rows: int) -> tuple[tuple[CoreWork, ...], tuple[str, ...]]:
    blocks_x, blocks_y = grid[0], grid[1] if len(grid) > 1 else 1
    depth = grid[2] if len(grid) > 2 else 1
    work: list[CoreWork] = []
    for y, (y_start, y_count) in enumerate(_even(blocks_y, min(rows, blocks_y))):
        for x, (x_start, x_count) in enumerate(_even(blocks_x, min(columns, blocks_x))):
            values = {"x_start": x_start, "x_count": x_count}
            if len(grid) > 1:
                values |= {"y_start": y_start, "y_count": y_count}
            work.append(CoreWork(x, y, x_count * y_count * depth, values))
    return tuple(work), tuple(work[0].values)


def _even(total: int, parts: int) -> list[tuple[int, int]]:
    """Start and length of `parts` runs of nearly equal length."""
    base, more = divmod(total, parts)
    lengths = [base + (part < more) for part in range(parts)]
    return [(sum(lengths[:part]), length) for part, length in enumerate(lengths)]


def items_of(partition: Partition, core: CoreWork) -> list[int]:
    """The work items of a core, in order: what the values of its arguments mean."""
    values = core.values
    match partition.policy:
        case "contiguous":
            return list(range(values["work_start"], values["work_start"] + values["work_count"]))
        case "strided":
            step = len(partition.cores)
            return list(range(values["work_start"], values["work_start"] + values["work_count"] * step, step))
        case "rectangular":
            grid_x, grid_y = partition.grid[0], partition.grid[1] if len(partition.grid) > 1 else 1
            depth = partition.grid[2] if len(partition.grid) > 2 else 1
            y_start, y_count = values.get("y_start", 0), values.get("y_count", 1)
            return [
                (z * grid_y + y) * grid_x + x
                for z in range(depth)
                for y in range(y_start, y_start + y_count)
                for x in range(values["x_start"], values["x_start"] + values["x_count"])
            ]
