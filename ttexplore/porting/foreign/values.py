"""What a foreign kernel computes, as values: each tensor that it stores to, and the expression of its elements.

A value is what one element of a block is made of; the thread or lane that computes it does not matter. Loops over
blocks are folded into what they add up. Names mean nothing, except those of the kernel's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Input:
    """An element of a tensor. `axes` are the indices that choose it: ``p`` numbers of blocks, ``r`` the elements of a
    block, ``r0`` and ``r1`` its rows and columns. `part` tells loads from different places of a tensor apart."""

    tensor: str
    axes: frozenset[str] = frozenset()
    part: str = ""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter that is one number."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Index:
    """A number made of indices of blocks, rows and columns."""

    axes: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Op:
    """A function of elements, by its name in TileLang, or an operator."""

    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Reduced:
    """A sum, maximum or minimum over the elements of a row."""

    kind: str
    value: Value


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product, summed over K."""

    a: Value
    b: Value
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """The value of a variable before a turn of a loop."""

    name: str
    initial: Value


@dataclass(frozen=True, slots=True)
class Unread:
    """What cannot be read, and why."""

    reason: str


Value = Input | Scalar | Number | Index | Op | Reduced | Product | Carried | Unread
ZERO = Number(0.0)


@dataclass(frozen=True, slots=True)
class Store:
    """What a kernel stores: the tensor, the indices of the element, the value."""

    tensor: str
    axes: frozenset[str]
    value: Value
    part: str = ""


def parts_of(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of directly."""
    match value:
        case Op(_, arguments):
            return arguments
        case Reduced(_, inner):
            return (inner,)
        case Product(a, b, _):
            return a, b
        case Carried(_, initial):
            return (initial,)
        case _:
            return ()


def walk(value: Value) -> Iterator[Value]:
    """The value and all that it is made of, each once, from left to right."""
    pending, seen = [value], set[int]()
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += reversed(parts_of(one))


def replaced(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """The value with parts that `change` replaces; None leaves one as it is."""
    known: dict[int, Value] = {}

    def visit(one: Value) -> Value:
        if id(one) not in known:
            known[id(one)] = change(one) or _with_parts(one, tuple(map(visit, parts_of(one))))
        return known[id(one)]

    return visit(value)


def _with_parts(value: Value, parts: tuple[Value, ...]) -> Value:
    if parts == parts_of(value):
        return value
    match value:
        case Op(name, _):
            return Op(name, parts)
        case Reduced(kind, _):
            return Reduced(kind, parts[0])
        case Product(_, _, transposed):
            return Product(parts[0], parts[1], transposed)
        case Carried(name, _):
            return Carried(name, parts[0])
        case _:
            return value


def after_loop(name: str, initial: Value, update: Value) -> Value:
    """The value of a variable after a loop whose turns make `update` of it.

    A sum of products is a product over more of K. What adds up elements is a sum of them, what takes the larger of two
    is a maximum. Other values are those of the last turn; what they carry from turn to turn stays visible in them.
    """
    match update:
        case Op("+", (Carried(carried, _), added)) | Op("+", (added, Carried(carried, _))) if carried == name:
            if not any(isinstance(one, Carried) and one.name == name for one in walk(added)):
                if any(isinstance(one, Product) for one in walk(added)):
                    return added if initial == ZERO else Op("+", (initial, added))
                if isinstance(added, Reduced | Number | Scalar | Index):
                    return added
                return Reduced("sum", added)
        case Op("max" | "min" as kind, (Carried(carried, _), taken)) | Op(
            "max" | "min" as kind, (taken, Carried(carried, _))
        ):
            if carried == name and not isinstance(taken, Reduced):
                return Reduced(kind, taken)
            if carried == name:
                return taken
        case _:
            pass
    return update


def axes_of(value: Value) -> frozenset[str]:
    """The indices that a value depends on."""
    found: set[str] = set()
    for one in walk(value):
        if isinstance(one, Index | Input):
            found |= one.axes
    return frozenset(found)


def scalars_of(value: Value) -> frozenset[str]:
    """The parameters of one number that a value depends on."""
    found: set[str] = set()
    for one in walk(value):
        if isinstance(one, Scalar):
            found.add(one.name)
        elif isinstance(one, Index):
            found |= one.scalars
    return frozenset(found)


def is_index(value: Value) -> bool:
    """Whether a value is made of indices, parameters and constants only, and of an index at least."""
    leaves = [one for one in walk(value) if not parts_of(one)]
    return any(isinstance(one, Index) for one in leaves) and all(
        isinstance(one, Index | Number | Scalar) for one in leaves
    )


def is_constant(condition: Value) -> bool:
    """Whether a condition is made of constants and parameters alone, so that it chooses a variant for all elements."""
    leaves = [one for one in walk(condition) if not parts_of(one)]
    return all(isinstance(one, Number | Scalar) for one in leaves)


def operation(name: str, *arguments: Value) -> Value:
    """An operation; of indices and parameters, an index again."""
    made = Op(name, arguments)
    if name in ("+", "-", "*", "//", "/", "%", "min", "max", "<<", ">>") and is_index(made):
        return Index(axes_of(made), scalars_of(made))
    for one in arguments:
        if isinstance(one, Unread):
            return one
    if name == "+" and ZERO in arguments:
        return arguments[1] if arguments[0] == ZERO else arguments[0]
    return made
