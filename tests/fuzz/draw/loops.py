"""Loops around other phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fuzz.description import (
    Blocks,
    Branch,
    Copy,
    Fill,
    Loop,
    Parallel,
    Reduce,
    Scalar,
    Statement,
    Store,
    loaded,
    statements,
)
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import loads
from tests.fuzz.draw.ranges import follow, is_tame


def loop(draft: Draft, phases: Sequence[Callable[[Draft], None]]) -> None:
    """Phases in a loop; its variable becomes an index of the tensors that they touch."""
    if draft.loops:
        return
    outside, ranges, before = draft.body, dict(draft.ranges), dict(draft.buffers)
    tensors, stored, unstored = list(draft.tensors), set(draft.stored), dict(draft.unstored)
    sizes, kept, forms = list(draft.sizes), list(draft.body), dict(draft.forms)
    variable = draft.name("k")
    axis = draft.steps(variable, 2)
    shift = _shift(draft) if draft.chance(3) else ""
    if shift:
        axis = replace(axis, text=f"({variable} - ({shift}))")
    draft.body, draft.loops = [], [axis]
    draft.load(draft.places)
    for _ in range(draft.number(1, 3)):
        draft.one(phases)(draft)
    draft.loops = []
    rest = draft.taken_apart(outside)
    stages = draft.number(1, 3) if draft.chance(2) else None
    in_python = not shift and draft.chance(4) and _fits_python(axis.count, rest)
    made = Loop(variable, axis.count, stages, rest, in_python, shift=shift)
    after = dict(ranges) | {t.name: draft.ranges[t.name] for t in draft.tensors if t.name in draft.ranges}
    follow(made, after)
    if all(is_tame(one) for one in after.values()):
        draft.body.append(made)
        draft.ranges = after
        forget(draft, made)
    else:
        draft.ranges, draft.buffers, draft.body = ranges, before, kept
        draft.tensors, draft.stored, draft.unstored, draft.sizes = tensors, stored, unstored, sizes
        draft.forms = forms


def branched(draft: Draft, phases: Sequence[Callable[[Draft], None]]) -> None:
    """Phases under a condition, others where it does not hold."""
    if draft.branching:
        return
    outside, forms, ranges = draft.body, dict(draft.forms), dict(draft.ranges)
    indices = [axis.text for axis in draft.loops] or draft.block_indices()
    test = branch(draft, draft.one(indices or ["1"]))
    sides: list[tuple[Statement, ...]] = []
    draft.branching = True
    for _ in range(draft.number(1, 2)):
        tensors = {one.name: draft.ranges[one.name] for one in draft.tensors if one.name in draft.ranges}
        draft.body, draft.ranges, draft.forms = [], ranges | tensors, dict(forms)
        for _ in range(draft.number(1, 2)):
            draft.one(phases)(draft)
        sides.append(draft.taken_apart(outside))
        outside = draft.body
    draft.branching = False
    tensors = {one.name: draft.ranges[one.name] for one in draft.tensors if one.name in draft.ranges}
    draft.body, draft.ranges, draft.forms = outside, ranges | tensors, forms
    if not any(sides):
        return
    made = Branch(test, sides[0], sides[1] if len(sides) > 1 else ())
    draft.add(made)
    # A loop in a branch leaves what it overwrites to nobody.
    forget(draft, made)


def _shift(draft: Draft) -> str:
    """Where a loop begins that counts its turns from another number, which may be negative."""
    less = draft.number(1, 3)
    # A proof that the turns begin at index 0 sees through sums alone.
    return draft.one([f"(-{less})", *(f"{text} - {less}" for text in draft.block_indices())])


def branch(draft: Draft, variable: str) -> str:
    """The condition under which a turn is taken: of indices, or an element of a tensor."""
    block = draft.one(draft.block_indices() or ["0"])
    if draft.chance(2):
        tests = (
            f"({variable} + {block}) % 2 == 0", f"{variable} != {block}", f"{block} > 0", f"not {variable} > {block}",
            f"{variable} % 2 == 1 or {block} == 0", f"{variable} > 0 and {block} < 2", f"({variable} + {block}) % 3",
        )  # fmt: skip
        return draft.one(tests)
    flags = draft.input((4, 4), draft.one(["int32", "uint8"]))
    element = f"{flags}[{block} % 4, {variable} % 4]"
    tests = (element, f"{element} > 0", f"{variable} < 1 or {element} > 20", f"{block} < 2 and {element} != 0")
    return draft.one(tests)


def signed_bounds(text: str, less: int) -> tuple[str, ...]:
    """Bounds of loops that are, or that are computed from, negative numbers."""
    return (
        f"{text} - {less}", f"T.max({text} - {less}, 0)", f"T.min({text} - {less}, 0)",
        f"T.clamp({text} - {less}, -1, 1)", f"({text} - {less}) // 2", f'T.cast({text} - {less}, "int8")',
    )  # fmt: skip


def _fits_python(count: int | Blocks, body: tuple[Statement, ...]) -> bool:
    """Whether a loop may be one of Python's: few turns, and no slices, which have to lie in their tensors there."""
    regions = [region for one in statements(body) if isinstance(one, Copy) for region in (one.source, one.target)]
    return isinstance(count, int) and count <= 3 and all(region.form != "slice" for region in regions)


def forget(draft: Draft, around: Loop | Branch) -> None:
    """Let nothing use a block that a loop overwrites in every turn, or loads in turns that may not come."""
    inside = list(statements((around,)))[1:]
    for one in inside:
        if isinstance(one, Loop):
            forget(draft, one)
    if isinstance(around, Branch):
        return
    for one in inside:
        match one:
            case Copy(_, target) if around.own or around.first or around.test:
                overwritten = [target.name]
            case Fill(buffer) | Reduce(target=buffer, clear=True):
                overwritten = [buffer]
            case Parallel():
                stores = [store for store in one.body if isinstance(store, Store)]
                overwritten = [
                    store.buffer
                    for store in stores
                    if store.buffer not in loads(store.value, {}) and (store.test is None or store.other is not None)
                ]
            case Scalar(name, value, "variable"):
                overwritten = [] if name in loaded(value) else [name]
            case _:
                overwritten = []
        for name in overwritten:
            draft.forms.pop(name, None)
            if name in draft.buffers:
                draft.ranges.pop(name, None)
                draft.unstored.pop(name, None)
