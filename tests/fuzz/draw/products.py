"""Matrix products over a loop, and two of them one after the other on chip."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz.description import Fill, Gemm, Loop, Statement
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import changed
from tests.fuzz.draw.grids import Axis
from tests.fuzz.draw.loops import branch, forget, signed_bounds

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
    axis, loop = _turns(draft, axis, some=not clear_in_gemm)
    outside, draft.body = draft.body, []
    a, transpose_a = _factor(draft, draft.row, axis)
    b, transpose_b = _factor(draft, draft.column, axis, turned=True)
    draft.body.append(Gemm(a, b, into, transpose_a, transpose_b, clear_in_gemm))
    if draft.chance(5) and not clear_in_gemm:
        draft.body.append(Gemm(a, b, into, transpose_a, transpose_b))
    _loop(draft, loop, outside)
    draft.unstored[into] = None


def chain(draft: Draft) -> None:
    """Two products, one after the other in each turn of a loop: f(A @ B) @ D, whose intermediate stays on chip."""
    if draft.is_vector or draft.loops:
        return
    into = _accumulator(draft, draft.block)
    axis, loop = _turns(draft, _summed(draft))
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
    # Only now, so that no turn multiplies what the one before has added up: that grows without end.
    inside, draft.body = draft.body, outside
    draft.add(Fill(into, 0.0))
    outside, draft.body = draft.body, inside
    _loop(draft, loop, outside)
    for name in (middle, made):
        draft.unstored.pop(name, None)
    draft.unstored[into] = None


def _accumulator(draft: Draft, shape: tuple[int, ...]) -> str:
    return draft.allocate(shape, draft.one(["float32", "float32", "bfloat16"]), "fragment", "c")


def _summed(draft: Draft) -> Axis:
    """The axis that a product sums over, and its loop."""
    depth = draft.one(_ODD_DEPTHS) if draft.style == "odd" else 32 * draft.number(1, 2)
    return draft.along(draft.name("k"), depth)


def _turns(draft: Draft, axis: Axis, *, some: bool = True) -> tuple[Axis, Loop]:
    """The loop along an axis, still empty, and the axis with the index that stands for it there. Only where the loop
    may run through `some` of the axis it has bounds of a block's own: such that may be negative have their index
    brought back into the axis."""
    blocks = draft.block_indices() if some else []
    own = f"{draft.one(blocks)}{draft.one(['', '', ' + 1'])}" if blocks and draft.chance(4) else ""
    first = draft.one(signed_bounds(draft.one(blocks), draft.number(1, 3))) if blocks and draft.chance(3) else ""
    test = branch(draft, axis.text) if some and draft.chance(4) else ""
    stages = draft.number(1, 3) if draft.chance(2) else None
    loop = Loop(axis.text, axis.count, stages, (), own=own, first=first, test=test)
    if not first or first.startswith("T.max"):
        return axis, loop
    index = [f"T.max({axis.text}, 0)"]
    if isinstance(axis.count, int):
        index.append(f"T.if_then_else({axis.text} < 0, 0, {axis.text})")
    if isinstance(axis.count, int) and axis.count > 1:
        index += [f"T.clamp({axis.text}, 0, {axis.count - 1})", f"({axis.text} % {axis.count})"]
    return replace(axis, text=draft.one(index)), loop


def _loop(draft: Draft, loop: Loop, outside: list[Statement]) -> None:
    made = replace(loop, body=draft.taken_apart(outside))
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
