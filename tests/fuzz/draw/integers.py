"""Blocks of integers: element-wise blocks of int32, masks of uint8 that choose between numbers, and bytes that wrap
around in every intermediate."""

from __future__ import annotations

from tests.fuzz.description import Call, Constant, Expression, Load, Parallel, Store
from tests.fuzz.draw.draft import Draft
from tests.fuzz.draw.elementwise import COMPARISONS
from tests.fuzz.draw.ranges import expression_range, value_range

_OPERATIONS = ("add", "subtract", "multiply", "max", "min", "abs", "select")
_OF_BYTES = (
    "add", "subtract", "subtract", "multiply", "max", "min", "negative", "floor_divide", "remainder", "bit_and",
    "bit_or", "bit_xor", "shift_left", "shift_right", "select",
)  # fmt: skip
# The least and the largest second operand, which is a number.
_BY_NUMBERS = {"floor_divide": (1, 40), "remainder": (1, 40), "shift_left": (0, 7), "shift_right": (0, 7)}
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


def wrapping(draft: Draft) -> None:
    """A block of bytes that is loaded, computed with and stored, as bytes or as numbers."""
    loaded = draft.load_as(draft.places, "uint8", "b")
    variables = ("i", "j")[-len(draft.block) :]
    value = _bytes(draft, loaded, variables, draft.number(1, 3))
    dtype = draft.one(["uint8", "uint8", "float32"])
    target = draft.target(draft.block, dtype, "w")
    stored = Call("float32", (value,)) if dtype == "float32" else value
    draft.add(Parallel(variables, draft.block, (Store(target, stored),)))
    # Whatever was computed on the way.
    draft.ranges[target] = value_range(0, 255)
    draft.store(target, dtype)


def _bytes(draft: Draft, loaded: str, variables: tuple[str, ...], depth: int) -> Expression:
    """Bytes, with elements in every operation."""
    if depth == 0:
        return Load(draft.one([loaded, *draft.defined(draft.block, "uint8")]), variables)
    first = _bytes(draft, loaded, variables, depth - 1)
    name = draft.one(_OF_BYTES)
    if name == "negative":
        return Call(name, (first,))
    if name in _BY_NUMBERS:
        return Call(name, (first, Constant(draft.number(*_BY_NUMBERS[name]))))
    second = _bytes(draft, loaded, variables, depth - 1)
    if name == "select":
        return Call(name, (Call(draft.one(COMPARISONS), (first, second)), second, first))
    number = Constant(draft.number(0, 255))
    return Call(name, draft.one([(first, second), (first, number), (number, second)]))


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
