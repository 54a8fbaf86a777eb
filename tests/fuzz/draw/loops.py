"""Loops around other phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.description import Blocks, Copy, Fill, Loop, Parallel, Statement, Store, statements
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import loads
from tests.fuzz.draw.ranges import follow, is_tame


def loop(draft: Draft, phases: Sequence[Callable[[Draft], None]]) -> None:
    """Phases in a loop; its variable becomes an index of the tensors that they touch."""
    if draft.loops:
        return
    outside, ranges, before = draft.body, dict(draft.ranges), dict(draft.buffers)
    tensors, stored, unstored = list(draft.tensors), set(draft.stored), dict(draft.unstored)
    sizes, kept = list(draft.sizes), list(draft.body)
    axis = draft.steps(draft.name("k"), 2)
    draft.body, draft.loops = [], [axis]
    draft.load(draft.places)
    for _ in range(draft.number(1, 3)):
        draft.one(phases)(draft)
    draft.loops = []
    rest = draft.taken_apart(outside)
    stages = draft.number(1, 3) if draft.chance(2) else None
    made = Loop(axis.text, axis.count, stages, rest, draft.chance(4) and _fits_python(axis.count, rest))
    after = dict(ranges) | {t.name: draft.ranges[t.name] for t in draft.tensors if t.name in draft.ranges}
    follow(made, after)
    if all(is_tame(one) for one in after.values()):
        draft.body.append(made)
        draft.ranges = after
        forget(draft, made)
    else:
        draft.ranges, draft.buffers, draft.body = ranges, before, kept
        draft.tensors, draft.stored, draft.unstored, draft.sizes = tensors, stored, unstored, sizes


def _fits_python(count: int | Blocks, body: tuple[Statement, ...]) -> bool:
    """Whether a loop may be one of Python's: few turns, and no slices, which have to lie in their tensors there."""
    regions = [region for one in statements(body) if isinstance(one, Copy) for region in (one.source, one.target)]
    return isinstance(count, int) and count <= 3 and all(region.form != "slice" for region in regions)


def forget(draft: Draft, loop: Loop) -> None:
    """Let nothing use a block that the loop overwrites in every turn, or loads in turns that may not come."""
    for one in statements(loop.body):
        match one:
            case Copy(_, target) if loop.own:
                overwritten = [target.name]
            case Fill(buffer):
                overwritten = [buffer]
            case Parallel():
                stores = [store for store in one.body if isinstance(store, Store)]
                overwritten = [store.buffer for store in stores if store.buffer not in loads(store.value, {})]
            case _:
                overwritten = []
        for name in overwritten:
            if name in draft.buffers:
                draft.ranges.pop(name, None)
                draft.unstored.pop(name, None)
