"""Scalars that are operands: names, scalar variables and single elements of blocks, outside of T.Parallel."""

from __future__ import annotations

from tests.fuzz.description import Allocate, Call, Constant, Expression, Load, Named, Position, Scalar, ScalarForm
from tests.fuzz.draw.draft import DTYPES, Draft
from tests.fuzz.draw.elementwise import BINARY, COMPARISONS, UNARY, guarded, tame

_FORMS: tuple[ScalarForm, ...] = ("name", "variable", "variable", "element", "block")


def scalar(draft: Draft) -> None:
    """A scalar that T.Parallel and later scalars may use, or an element of a block that is stored alone."""
    # A name of the body of a loop or branch is gone after it.
    form = "variable" if draft.loops or draft.branching else draft.one(_FORMS)
    value = _value(draft, draft.number(0, 2))
    if form == "block":
        for buffer in draft.defined(draft.block)[:1]:
            draft.add(Scalar(buffer, value, form, _place(draft, draft.block)))
        return
    known = [name for name, one in draft.forms.items() if one == form]
    if form == "variable" and known and draft.chance(2):
        name = draft.one(known)
        value = Call(draft.one(["max", "min"]), (Named(name), value))
    else:
        name = draft.name("x")
        if form != "name":
            scope = "var" if form == "variable" else "local"
            draft.body.append(Allocate(name, (1,), draft.one(["float32", "bfloat16"]), scope))
    draft.add(Scalar(name, value, form, ("0",) if form == "element" else ()))
    draft.forms[name] = form


def _value(draft: Draft, depth: int) -> Expression:
    if depth == 0:
        return _leaf(draft)
    if draft.chance(4):
        sides = [_value(draft, depth - 1) for _ in range(3)]
        test = Call(draft.one(COMPARISONS), (_leaf(draft, known=False), sides.pop()))
        return Call("select", (test, *sides))
    if draft.chance(3):
        name = draft.one(UNARY)
        operand = _leaf(draft, known=False) if depth == 1 else _value(draft, depth - 1)
        return tame(draft, Call(name, (guarded(draft, name, operand),)))
    name = draft.one(BINARY)
    left, right = _leaf(draft, known=False), _value(draft, depth - 1)
    return tame(draft, Call(name, (left, guarded(draft, name, right))))


def _leaf(draft: Draft, *, known: bool = True) -> Expression:
    """An element, an earlier scalar, a number made of block indices, or, if `known`, a constant."""
    ways: list[Expression] = [Load(name, _place(draft, draft.block)) for name in draft.defined(draft.block)[-2:]]
    ways += [
        Load(one.name, _place(draft, one.shape))
        for one in draft.tensors
        if one.dtype in DTYPES and one.name not in draft.stored
    ][-1:]
    ways += draft.scalars()
    ways += [Position(f"{index} * 3 - 2") for index in draft.block_indices()]
    if (known and draft.chance(4)) or not ways:
        return Constant(draft.number(-16, 16) / 4)
    return draft.one(ways)


def _place(draft: Draft, shape: tuple[int | str, ...]) -> tuple[str, ...]:
    """An element of a block or tensor."""
    return tuple(str(draft.number(0, extent - 1)) if isinstance(extent, int) else "0" for extent in shape)
