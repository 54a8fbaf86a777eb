"""Tensors of 8 bits: blocks of float8 that are computed with as numbers and rounded again, and products of int8."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz.description import Call, Copy, Expression, Fill, Gemm, Load, Loop, Parallel, Store
from tests.fuzz.draw.draft import SMALL_FLOATS, Draft
from tests.fuzz.draw.loops import forget
from tests.fuzz.draw.ranges import expression_range, is_tame


def small_floats(draft: Draft) -> None:
    """A block of float8 that is loaded, or copied from numbers; computed with; and stored, as float8 or as numbers."""
    dtype = draft.one(SMALL_FLOATS)
    names = draft.defined(draft.block)
    if names and draft.chance(2):
        loaded = draft.target(draft.block, dtype, "e")
        draft.add(Copy(draft.whole(draft.one(names)), draft.whole(loaded)))
    else:
        loaded = draft.load_as(draft.places, dtype, "e")
    if draft.chance(3):
        draft.store(loaded, dtype)
        return
    variables = ("i", "j")[-len(draft.block) :]
    value: Expression = Call("float32", (Load(loaded, variables),))
    if names:
        other = Call("float32", (Load(draft.one(names), variables),))
        joined = Call(draft.one(["add", "subtract", "multiply", "max"]), (value, other))
        value = joined if is_tame(expression_range(joined, draft.ranges, {})) else value
    out = draft.one(["float32", "bfloat16", *SMALL_FLOATS])
    target = draft.target(draft.block, out, "w")
    draft.add(Parallel(variables, draft.block, (Store(target, value),)))
    draft.store(target, draft.one([out, *SMALL_FLOATS]))


def product_of_bytes(draft: Draft) -> None:
    """A product of int8, or of it and uint8, over a loop, into int32."""
    if draft.is_vector or draft.loops:
        return
    into = draft.allocate(draft.block, "int32", "fragment", "c")
    draft.add(Fill(into, 0))
    axis = draft.along(draft.name("k"), 32 * draft.number(1, 2))
    loop = Loop(axis.text, axis.count, draft.number(1, 3) if draft.chance(2) else None, ())
    outside, draft.body = draft.body, []
    transpose_a, transpose_b = draft.chance(3), draft.chance(2)
    a = draft.load_as([axis, draft.row] if transpose_a else [draft.row, axis], draft.one(["int8", "uint8"]), "s")
    b = draft.load_as([draft.column, axis] if transpose_b else [axis, draft.column], "int8", "s")
    draft.body.append(Gemm(a, b, into, transpose_a, transpose_b))
    made = replace(loop, body=draft.taken_apart(outside))
    draft.add(made)
    forget(draft, made)
    draft.store(into, "int32")
