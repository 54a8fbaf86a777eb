"""Reductions of blocks along one axis, and blocks that are computed with their results."""

from __future__ import annotations

from tests.fuzz.description import Call, Load, Parallel, Reduce, Store
from tests.fuzz.draw.draft import DTYPES, Draft
from tests.fuzz.draw.elementwise import tame
from tests.fuzz.draw.ranges import value_range
from tests.fuzz.meaning import BITS


def reduction(draft: Draft) -> None:
    """A statistic of a block's rows or columns, used with a block of the same shape."""
    defined = draft.defined(draft.block)
    if draft.is_vector or not defined:
        return
    source, dim = draft.one(defined), draft.one([0, 1])
    target = draft.target(draft.block[1 - dim : 2 - dim], draft.one(DTYPES), "q")
    clear = target not in draft.ranges or draft.chance(2)
    kind = draft.one(["sum", "max", "min", "abssum", "absmax"])
    draft.add(Reduce(kind, source, target, dim, clear))
    into, statistic = draft.target(draft.block, draft.one(DTYPES), "r"), Load(target, ("i",) if dim else ("j",))
    value = Call(draft.one(["subtract", "max", "add"]), (Load(draft.one(defined), ("i", "j")), statistic))
    draft.values = {}
    draft.add(Parallel(("i", "j"), draft.block, (Store(into, tame(draft, value)),)))


def bits(draft: Draft) -> None:
    """Bits that the rows or columns of a block of integers have, joined with those of each element."""
    if draft.is_vector:
        return
    dtype, dim = draft.one(["int32", "int32", "uint8"]), draft.one([0, 1])
    loaded = draft.load_as(draft.places, dtype, "n")
    target = draft.target(draft.block[1 - dim : 2 - dim], dtype, "q")
    clear = target not in draft.ranges or draft.chance(2)
    draft.add(Reduce(draft.one(list(BITS)), loaded, target, dim, clear))
    into, statistic = draft.target(draft.block, dtype, "o"), Load(target, ("i",) if dim else ("j",))
    value = Call(draft.one(["bit_and", "bit_or", "bit_xor"]), (Load(loaded, ("i", "j")), statistic))
    draft.add(Parallel(("i", "j"), draft.block, (Store(into, value),)))
    draft.ranges[into] = value_range(-256 if dtype == "int32" else 0, 255)
    draft.store(into, dtype)
