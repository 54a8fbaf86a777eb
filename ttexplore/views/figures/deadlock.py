"""Who waits for whom in a deadlock: the kernels of a core and the circular buffers that hold them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ttexplore.plan import KERNEL_ROLES, Plan
from ttexplore.record import Listing, Span
from ttexplore.views.figures.svg import arrow_marker, drawing, path, rectangle, text, tooltip
from ttexplore.views.markup import content_id, plural, shortened, visible
from ttexplore.views.theme import VERMILLION

if TYPE_CHECKING:
    from ttexplore.backends.base import BlockedKernel

_WIDTH, _BOX_WIDTH, _BOX, _GAP = 780, 400, 64, 44
_LANES = 34


def deadlock_svg(
    waits: Sequence[BlockedKernel], plan: Plan, listings: Mapping[str, Listing], lines: Mapping[str, Span | None]
) -> str:
    """The kernels one below another, each with the C++ line that it is at, and an arrow from each that waits to the one
    that it waits for, with what it needs and what is there. `lines` are the kernel lines by kernel."""
    waiting = {wait.kernel: wait for wait in waits}
    buffers = {buffer.index: buffer for buffer in plan.on_chip.buffers}
    identifier = content_id("ttx-deadlock", repr(waits), *[buffer.described for buffer in plan.buffers])
    arrow = f' marker-end="url(#{identifier}-a)"'
    top = {role: 30 + position * (_BOX + _GAP) for position, role in enumerate(KERNEL_ROLES)}
    shapes = [
        f"<defs>{arrow_marker(identifier + '-a')}</defs>",
        text(4, 16, "Deadlock: which kernel waits for which", "b", "t"),
    ]
    for role in KERNEL_ROLES:
        wait, y = waiting.get(role), top[role]
        state = "finished" if wait is None else f"{role}.cpp line {wait.cpp_line}"
        line = lines.get(role)
        kernel = f", kernel line {line.line}" if line else ""
        source = ""
        if wait is not None and role in listings and 1 <= wait.cpp_line <= len(listings[role].lines):
            source = listings[role].lines[wait.cpp_line - 1].text.strip()
        shapes.append(
            f"<g>{tooltip(source or state)}"
            f"{rectangle(4.5, y + 0.5, _BOX_WIDTH, _BOX - 1, 'panel' if wait is None else 'box', radius=4)}"
            f"{text(16, y + 20, role, 'b')}{text(84, y + 20, state + kernel, 's')}"
            f"{text(16, y + 44, shortened(source, 58), 'm')}</g>"
        )
    waits_for = {
        wait.kernel: buffer.producer if wait.operation == "wait_front" else buffer.consumer
        for wait in waits
        if wait.operation != "semaphore" and (buffer := buffers.get(wait.number))
    }
    for position, wait in enumerate(waits):
        if wait.kernel not in waits_for:
            continue
        front, awaited, buffer = wait.operation == "wait_front", waits_for[wait.kernel], buffers[wait.number]
        start, end = top[wait.kernel] + _BOX / 2 - 9, top[awaited] + _BOX / 2 + 9
        x = 4 + _BOX_WIDTH + _LANES * (position + 1) / 2
        there = f"{wait.there} of {wait.capacity} {'available' if front else 'free'}"
        tiles = plural(wait.needed, "tile")
        need = f"needs {f'{tiles} of' if front else f'room for {tiles} in'} {visible(buffer.name)}"
        middle = (start + end) / 2
        # An edge of the cycle is thick: the kernel waits for one that, at last, waits for it.
        cycle = _follows(waits_for, awaited, wait.kernel)
        style = f' style="stroke:{VERMILLION};stroke-width:2.5"' if cycle else ""
        head, detail = f"{wait.kernel} waits for {awaited}", f"{need}; {there}"
        curve = path(f"M{4 + _BOX_WIDTH} {start:g}H{x:g}V{end:g}H{6 + _BOX_WIDTH}", "edge", extra=arrow + style)
        x_told, y_told = _BOX_WIDTH + 64, middle + 36 * position - 34
        told = text(x_told, y_told, head, *("b",) if cycle else ()) + text(x_told, y_told + 15, detail, "s")
        shapes.append(f"<g>{tooltip(f'{head}: {detail}')}{curve}{told}</g>")
    height = 30 + 3 * _BOX + 2 * _GAP + 28
    shapes.append(
        text(
            4,
            height - 8,
            "Thick arrows: the cycle, in which each kernel waits for the next. Thin ones: other waits.",
            "s",
        )
    )
    description = "; ".join(f"{wait.kernel} is at {wait.operation}" for wait in waits)
    return drawing(identifier, "Deadlock", description, _WIDTH + 160, height, "".join(shapes))


def _follows(waits_for: Mapping[str, str], start: str, goal: str) -> bool:
    """Whether following who waits for whom from `start` comes to `goal`."""
    visited: set[str] = set()
    while start in waits_for and start not in visited:
        if start == goal:
            return True
        visited.add(start)
        start = waits_for[start]
    return start == goal
