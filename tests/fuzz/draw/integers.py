"""Blocks of integers: element-wise blocks of int32, and masks of uint8 that choose between numbers."""

from __future__ import annotations

from tests.fuzz.description import Call, Constant, Expression, Load, Parallel, Store
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import COMPARISONS
from tests.fuzz.draw.ranges import expression_range

_OPERATIONS = ("add", "subtract", "multiply", "max", "min", "abs", "select")
# What float32 holds exactly, as the model computes in numbers.
_LARGEST = 2**22


def integers(draft: Draft) -> None:
    """A block of int32 that is loaded, computed with and stored."""
    loaded = draft.load_as(draft.places, "int32", "n")
    variables = ("i", "j")[-len(draft.block) :]
    target = draft.target(draft.block, "int32", "o")
    draft.add(Parallel(variables, draft.block, (Store(target, _expression(draft, loaded, variables, 2)),)))
    draft.store(target, draft.one(["int32", "float32"]))


def mask(draft: Draft) -> None:
    """A block of numbers where a loaded mask is not zero, another one elsewhere; the mask may be stored as well."""
    loaded = draft.load_as(draft.places, "uint8", "m")
    variables = ("i", "j")[-len(draft.block) :]
    test = Call(draft.one(["not_equal", "greater"]), (Load(loaded, variables), Constant(draft.number(0, 9))))
    sides = [Call("float32", (_number(draft, variables),)) for _ in range(2)]
    target = draft.target(draft.block, draft.one(["bfloat16", "float32"]), "r")
    draft.add(Parallel(variables, draft.block, (Store(target, Call("select", (test, *sides))),)))
    if draft.chance(3):
        draft.store(loaded, "uint8")


def _number(draft: Draft, variables: tuple[str, ...]) -> Expression:
    names = draft.defined(draft.block)
    return Load(draft.one(names), variables) if names else Constant(draft.number(-8, 8) / 4)


def _expression(draft: Draft, loaded: str, variables: tuple[str, ...], depth: int) -> Expression:
    """Integers that stay small enough."""
    if depth == 0:
        names = [name for name in draft.defined(draft.block, "int32") if float(draft.ranges[name].size) <= _LARGEST]
        return Load(draft.one([loaded, *names]), variables)
    name = draft.one(_OPERATIONS)
    first, second = (_expression(draft, loaded, variables, depth - 1) for _ in range(2))
    match name:
        case "abs":
            made = Call(name, (first,))
        case "select":
            made = Call(name, (Call(draft.one(COMPARISONS), (first, second)), second, first))
        case _:
            made = Call(name, (first, second if draft.chance(2) else Constant(draft.number(-9, 9))))
    return made if float(expression_range(made, draft.ranges, {}).size) <= _LARGEST else first
