"""What lanes of a warp, and warps of a block, have of what they join: a row of which each thread has some elements.

Each thread has a part of a reduction. Shuffles join those of a warp, in all of its lanes or in the first one alone.
Warps leave theirs in an array, from which the lanes of a warp take and join them. `Reduced.together` says who has what;
only where each thread that uses a value has all of a row, it is that of the row.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ttexplore.porting.foreign.places import NOWHERE, Place, atom, combined, number, plus
from ttexplore.porting.foreign.values import Formula, Input, Number, Reduced, Value, in_order, place_of, replaced

# All lanes of each warp, or its first one alone, have that of the warp; an array has that of each warp; each lane has
# that of the warp with its number, but for lanes beyond them; all have one, in all warps or in the first one alone.
OF_WARPS, FIRST_OF_WARPS, IN_ARRAY, UNCHECKED = "of warps", "first lanes", "in an array", "lanes and others"
LANES, FIRST_LANES = "lanes", "lanes of the first warp"
# The first thread, the first warp or an array has that of all.
FIRST, FIRST_WARP, TOTAL = "the first thread", "the first warp", "all in an array"

_LANES = number(32.0)
_THREAD = atom("r", "threadIdx.x")
_LANE, _WARP = combined("%", _THREAD, _LANES), combined("//", _THREAD, _LANES)
_THREADS = atom("s", "blockDim.x")
_WARPS = (combined("//", _THREADS, _LANES), combined("//", plus(_THREADS, number(31.0)), _LANES))
_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}


def chosen_threads(condition: Value) -> str:
    """The threads of which a condition holds: the first one, or the first lanes or warp; empty for others."""
    match condition:
        case Formula("==", (index, Number(0.0))):
            return {_THREAD: "thread", _LANE: "lane", _WARP: "warp"}.get(place_of(index), "")
        case Formula("<", (index, Number(32.0))) if place_of(index) == _THREAD:
            return "warp"
        case _:
            return ""


def is_first_thread(chosen: list[str]) -> bool:
    """Whether conditions inside of each other choose the first thread of a block."""
    return "" not in chosen and ("thread" in chosen or {"lane", "warp"} <= {*chosen})


def joined(kind: str, value: Value, step: str, down: bool) -> Value | None:
    """What lanes have after shuffles, of elements in steps of the threads of a warp or of a block; None where that is
    not known. Shuffles `down` leave it in the first lane alone."""
    if isinstance(value, Reduced) and isinstance(value.together, str):
        together = {LANES: FIRST if down else True, FIRST_LANES: FIRST if down else FIRST_WARP}.get(value.together)
        return replace(value, together=together) if together and value.kind == kind else None
    if isinstance(value, Formula) and value.name == kind in ("max", "min") and isinstance(value.arguments[0], Reduced):
        # It began with a number.
        best = joined(kind, value.arguments[0], step, down)
        return None if best is None else Formula(kind, (best, value.arguments[1]))
    of_thread = in_order(value, until=lambda term: isinstance(term, Reduced) and bool(term.together))
    if not any(isinstance(term, Input) for term in of_thread):
        # Joined before.
        return None
    inner = value.value if isinstance(value, Reduced) and value.kind == kind else value
    match step:
        case "32":
            return Reduced(kind, inner, FIRST if down else True)
        case "blockDim.x":
            return Reduced(kind, inner, FIRST_OF_WARPS if down else OF_WARPS)
        case _:
            return None


def is_join(before: Value, after: Value) -> bool:
    """Whether shuffles make one value of another."""
    return any(
        joined(kind, before, step, down) == after
        for kind in _NEUTRAL
        for step in ("32", "blockDim.x")
        for down in (False, True)
    )


def after_branch(value: Value, chosen: list[str], shared: bool, at: tuple[Place, ...]) -> Value | None:
    """What a variable has after a branch that some threads take, and that sets it, in shared memory at an index; None
    where that is not known."""
    is_first = is_first_thread(chosen)
    if not isinstance(value, Reduced):
        # A variable of all threads, which the first one sets.
        return of_first_thread(value) if shared and is_first and not at else None
    together: bool | str = ""
    if shared and is_first and at in ((), (NOWHERE,)) and value.together in (True, FIRST, FIRST_WARP):
        together = TOTAL
    elif shared and chosen == ["lane"] and at == (_WARP,) and value.together in (OF_WARPS, FIRST_OF_WARPS):
        together = IN_ARRAY
    elif not shared and chosen == ["warp"]:
        after = {True: FIRST_WARP, FIRST_WARP: FIRST_WARP, FIRST: FIRST, LANES: FIRST_LANES, FIRST_LANES: FIRST_LANES}
        together = after.get(value.together, "")
    return replace(value, together=together) if together else None


def element(value: Reduced, at: tuple[Place, ...]) -> Value | None:
    """What a thread reads of shared memory at an index; None where that is not known."""
    if value.together == TOTAL and at in ((), (NOWHERE,)):
        return replace(value, together=True)
    return replace(value, together=UNCHECKED) if value.together == IN_ARRAY and at == (_LANE,) else None


def of_lanes(condition: Value, value: Reduced, otherwise: float | None) -> Value | None:
    """What lanes have that take an element where there is a warp with their number, and otherwise a number."""
    match condition:
        case Formula("<", (index, count)) if place_of(count) in _WARPS and otherwise == _NEUTRAL[value.kind]:
            together = {_THREAD: FIRST_LANES, _LANE: LANES}.get(place_of(index))
            return replace(value, together=together) if together else None
        case _:
            return None


def of_first_thread(value: Value) -> Value:
    """A value as the first thread has it."""

    def change(term: Value) -> Value | None:
        return (
            replace(term, together=True) if isinstance(term, Reduced) and term.together in (FIRST, FIRST_WARP) else None
        )

    return replaced(value, change)
