"""Random kernels and schedules.

A kernel is drawn phase by phase, as a user writes one: loads, element-wise blocks, matrix products, loops, stores; each
kind of construct has a module. What is drawn is meaningful: buffers are written before they are read, blocks do not
overlap in an output, and values stay where functions are defined and finite (their ranges are followed along).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.description import Kernel, Schedule
from tests.fuzz.draw.blocks import fill, load, move, store, vector
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import direct, parallel
from tests.fuzz.draw.formats import product_of_bytes, small_floats
from tests.fuzz.draw.integers import integers, mask, wrapping
from tests.fuzz.draw.loops import branched, loop
from tests.fuzz.draw.options import OPTIONS, scheduled
from tests.fuzz.draw.parameters import hostile, unused
from tests.fuzz.draw.products import chain, product
from tests.fuzz.draw.reductions import bits, reduction
from tests.fuzz.draw.scalars import scalar

_ANYWHERE = (parallel, parallel, product, reduction, vector, load, move, scalar)


def _branch(draft: Draft) -> None:
    # Every element of an output is stored, so no branch stores.
    branched(draft, (*_ANYWHERE, fill))


_IN_LOOPS = (*_ANYWHERE, store, direct, _branch)


def _loop(draft: Draft) -> None:
    loop(draft, _IN_LOOPS)


_PHASES: tuple[Callable[[Draft], None], ...] = (
    *_IN_LOOPS, fill, chain, _loop, integers, mask, wrapping, bits, small_floats, product_of_bytes,
)  # fmt: skip


def case(numbers: random.Random) -> tuple[Kernel, Schedule]:
    """A kernel, a target, and a value for some of the options."""
    draft = Draft(numbers)
    if draft.chance(8):
        fill(draft)
    else:
        load(draft)
    for _ in range(draft.number(1, 6)):
        draft.one(_PHASES)(draft)
    for name in [one for one in draft.defined(draft.block) if one in draft.unstored]:
        if not draft.stored or draft.chance(2):
            draft.store(name)
    if not draft.stored:
        draft.store((draft.defined(draft.block) or [draft.load(draft.places)])[0])
    if draft.chance(6):
        unused(draft)
    kernel = hostile(draft, draft.kernel()) if draft.chance(6) else draft.kernel()
    return scheduled(draft, kernel, shards=draft.style == "shards")


__all__ = ["OPTIONS", "case"]
