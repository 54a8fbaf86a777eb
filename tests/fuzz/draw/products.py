"""Matrix products over a loop, and two of them one after the other on chip."""

from __future__ import annotations

from tests.fuzz.description import Fill, Gemm, Loop, Statement
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import changed
from tests.fuzz.draw.grids import Axis
from tests.fuzz.draw.loops import forget

_ODD_DEPTHS = (16, 32, 48, 20)


def product(draft: Draft) -> None:
    """A matrix product over a loop, into a new accumulator or one that holds something."""
    if draft.is_vector:
        return
    held = [n for n in draft.defined(draft.block) if draft.buffers[n].dtype == "float32"]
    cleared = bool(held) and draft.chance(3)
    into = draft.one(held) if cleared else _accumulator(draft, draft.block)
    axis = _summed(draft)
    clear_in_gemm = not cleared and axis.count == 1 and not draft.loops and draft.chance(3)
    if not cleared and not clear_in_gemm:
        draft.add(Fill(into, 0.0))
    outside, draft.body = draft.body, []
    a, transpose_a = _factor(draft, draft.row, axis)
    b, transpose_b = _factor(draft, draft.column, axis, turned=True)
    draft.body.append(Gemm(a, b, into, transpose_a, transpose_b, clear_in_gemm))
    if draft.chance(5) and not clear_in_gemm:
        draft.body.append(Gemm(a, b, into, transpose_a, transpose_b))
    _loop(draft, axis, outside)
    draft.unstored[into] = None


def chain(draft: Draft) -> None:
    """Two products, one after the other in each turn of a loop: f(A @ B) @ D, whose intermediate stays on chip."""
    if draft.is_vector or draft.loops:
        return
    into = _accumulator(draft, draft.block)
    draft.add(Fill(into, 0.0))
    axis = _summed(draft)
    depth = 32 * draft.number(1, 2)
    inner = Axis("0", 1, depth, depth)
    middle = _accumulator(draft, (draft.block[0], axis.extent))
    made = draft.allocate((draft.block[0], axis.extent), draft.one(["bfloat16", "float32"]), "shared", "p")
    a, transpose_a = (draft.load([draft.row, inner]), False) if draft.chance(2) else ("", False)
    outside, draft.body = draft.body, []
    if not a:
        a, transpose_a = _factor(draft, draft.row, inner)
    b, transpose_b = _factor(draft, axis, inner, turned=True)
    draft.add(Fill(middle, 0.0))
    draft.add(Gemm(a, b, middle, transpose_a, transpose_b))
    changed(draft, middle, made)
    d, transpose_d = _factor(draft, draft.column, axis, turned=True)
    draft.body.append(Gemm(made, d, into, False, transpose_d))
    _loop(draft, axis, outside)
    for name in (middle, made):
        draft.unstored.pop(name, None)
    draft.unstored[into] = None


def _accumulator(draft: Draft, shape: tuple[int, ...]) -> str:
    return draft.allocate(shape, draft.one(["float32", "float32", "bfloat16"]), "fragment", "c")


def _summed(draft: Draft) -> Axis:
    """The axis that a product sums over, and its loop."""
    depth = draft.one(_ODD_DEPTHS) if draft.style == "odd" else 32 * draft.number(1, 2)
    return draft.along(draft.name("k"), depth)


def _loop(draft: Draft, axis: Axis, outside: list[Statement]) -> None:
    rest = draft.taken_apart(outside)
    blocks = [one.text for one in (draft.row, draft.column) if one.text.isidentifier()]
    keeps = not any(isinstance(one, Gemm) and one.clear for one in rest)
    own = f"{draft.one(blocks)}{draft.one(['', '', ' + 1'])}" if blocks and keeps and draft.chance(4) else ""
    made = Loop(axis.text, axis.count, draft.number(1, 3) if draft.chance(2) else None, rest, own=own)
    draft.add(made)
    forget(draft, made)


def _factor(draft: Draft, place: Axis, axis: Axis, *, turned: bool = False) -> tuple[str, bool]:
    """An operand of a product, along `place` and the summed `axis`, or (`turned`) the other way; or transposed."""
    transpose = draft.chance(3)
    axes = [axis, place] if transpose != turned else [place, axis]
    existing = [n for n in draft.defined(tuple(one.extent for one in axes)) if axis.count == 1]
    if existing and draft.chance(2):
        return draft.one(existing), transpose
    return draft.load(axes, "s"), transpose
