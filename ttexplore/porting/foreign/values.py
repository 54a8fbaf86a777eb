"""What a foreign kernel computes, as values: each tensor that it stores to, and the expression of its elements.

A value is what one element of a block is made of; the thread or lane that computes it does not matter. Loops over
blocks are folded into what they add up. Names mean nothing, except those of the kernel's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ttexplore.porting.foreign import places
from ttexplore.porting.foreign.places import UNKNOWN, Place


@dataclass(frozen=True, slots=True)
class Input:
    """An element of a tensor. `axes` are the indices that choose it: ``p`` numbers of blocks, ``r`` the elements of a
    block, ``r0`` and ``r1`` its rows and columns. `part` tells loads from different places of a tensor apart. `place`
    is where it is, None where tiles are loaded by their coordinates; `beyond` stands for elements outside of the
    tensor, None where nothing is said of them."""

    tensor: str
    axes: frozenset[str] = frozenset()
    part: str = ""
    place: Place | None = None
    beyond: float | None = field(default=None, compare=False)


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
    place: Place = UNKNOWN


@dataclass(frozen=True, slots=True)
class Op:
    """A function of elements, by its name in TileLang, or an operator."""

    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Reduced:
    """A sum, maximum or minimum over the elements of a row. `together` is whether threads add up theirs."""

    kind: str
    value: Value
    together: bool = field(default=False, compare=False)


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
    place: Place | None = None


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
        case Reduced(kind, _, together):
            return Reduced(kind, parts[0], together)
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
                if isinstance(added, Number | Scalar | Index):
                    return Unread("a number of turns")
                total = added if isinstance(added, Reduced) else Reduced("sum", added)
                return total if initial == ZERO or isinstance(initial, Carried) else Op("+", (initial, total))
        case Op("max" | "min" as kind, (Carried(carried, _), taken)) | Op(
            "max" | "min" as kind, (taken, Carried(carried, _))
        ):
            if carried == name:
                best = taken if isinstance(taken, Reduced) else Reduced(kind, taken)
                return best if _is_end(kind, initial) else Op(kind, (best, initial))
        case _:
            pass
    return update


def last_turn(value: Value, turn: Place) -> Value:
    """A value after a loop, unless it is that of the last turn: then it is made of elements of that turn alone."""
    own = places.atoms(turn)

    def bare(one: Value) -> bool:
        match one:
            case Reduced() | Product():
                return False
            case Input(place=place):
                return place is not None and bool(places.atoms(place) & own)
            case _:
                return any(map(bare, parts_of(one)))

    carried = any(isinstance(one, Carried) for one in walk(value))
    return Unread("the last turn of a loop") if not carried and bare(value) else value


def read_back(element: Input, stores: list[Store]) -> Value:
    """An element of a tensor: what was stored there before, or what the tensor holds at first."""
    for store in reversed(stores):
        if store.tensor == element.tensor and element.place is not None:
            same = store.place == element.place
            return store.value if same else Unread(f"{element.tensor}, which is written before it is read")
    return element


def stored_in_turns(store: Store, turn: Place) -> Store:
    """A store in a loop. Where each turn stores to the same element, that of the last turn remains."""
    if store.place is None or places.atoms(store.place) & places.atoms(turn):
        return store
    match store.value:
        case Op("+", (Input(tensor), Product())) if tensor == store.tensor:
            return store
        case value if any(isinstance(one, Input) and one.tensor == store.tensor for one in walk(value)):
            return replace(store, value=Unread("a sum over turns of a loop"))
        case value:
            return replace(store, value=last_turn(value, turn))


_ENDS = {"INFINITY", "FLT_MAX", "CUDART_INF_F", "HUGE_VALF", "HUGE_VAL", "DBL_MAX"}


def _is_end(kind: str, initial: Value) -> bool:
    """Whether a maximum or minimum that begins with a value is that of the others alone."""
    match initial:
        case Number(number):
            return number == (float("-inf") if kind == "max" else float("inf"))
        case Op("*", (Number(-1.0), Scalar(name))):
            return kind == "max" and name in _ENDS
        case Scalar(name):
            return kind == "min" and name in _ENDS
        case Carried():
            return True
        case _:
            return False


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


def place_of(value: Value) -> Place:
    """A number made of indices and parameters, as a place."""
    match value:
        case Number(number):
            return places.number(number)
        case Scalar(name):
            return places.atom("s", name)
        case Index(_, _, place):
            return place
        case Op(name, (left, right)):
            return places.combined("//" if name == "/" else name, place_of(left), place_of(right))
        case _:
            return UNKNOWN


def is_bound(condition: Value) -> bool:
    """Whether a condition holds for indices inside of a tensor: each is less than a length, or not less than zero."""
    match condition:
        case Op("&", arguments):
            return all(map(is_bound, arguments))
        case Op("<" | "<=" as name, (left, right)):
            if any(isinstance(one, Input | Reduced | Unread | Carried | Product) for one in walk(condition)):
                return False
            if place_of(left) == places.NOWHERE and name == "<=":
                return is_index(right)
            room = places.plus(place_of(right), place_of(left), -1.0)
            if name == "<=":
                room = places.plus(room, places.number(1.0))
            lengths = places.distance(room)
            return (
                len(lengths) == 1
                and all(product and factor == 1 for product, factor in lengths)
                and room != lengths
                and all(factor < 0 for _, factor in room - lengths)
                and UNKNOWN not in (place_of(left), place_of(right))
                and not any(one[0] == "?" for one in places.atoms(room))
            )
        case Op(">" | ">=" as name, (left, right)):
            return is_bound(Op("<" if name == ">" else "<=", (right, left)))
        case _:
            return is_constant(condition)


def parts_of_lengths(condition: Value) -> set[str]:
    """The lengths that indices are compared with and that are parts of others, such as half of a row."""
    found = {name for one in walk(condition) for kind, name, _ in places.atoms(place_of(one)) if kind == "s"}
    return {name for name in found if " // " in name}


_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def negated(condition: Value) -> Value:
    """What holds if a condition does not."""
    match condition:
        case Op("not", (inner,)):
            return inner
        case Op("&" | "|" as name, arguments):
            return Op("|" if name == "&" else "&", tuple(map(negated, arguments)))
        case Op(name, arguments) if name in _NEGATED:
            return Op(_NEGATED[name], arguments)
        case Number(number):
            return Number(float(not number))
        case _:
            return Op("not", (condition,))


@dataclass
class Variants:
    """The variants of a kernel that its parameters choose: of each choice the first one, and the same one again."""

    taken: list[Value] = field(default_factory=list[Value])

    def first(self, condition: Value) -> bool:
        """Whether the variant where a condition holds is the one that is read."""
        if isinstance(condition, Number):
            return bool(condition.value)
        if condition in self.taken:
            return True
        if negated(condition) in self.taken or any(_excluded(condition, one) for one in self.taken):
            return False
        self.taken.append(condition)
        return True

    def never(self, condition: Value) -> None:
        """Take the variant where a condition does not hold."""
        self.taken.append(negated(condition))


def _excluded(condition: Value, taken: Value) -> bool:
    match condition, taken:
        case Op("==", (left, right)), Op("==", (other, third)):
            return left == other and right != third
        case Op("&", arguments), _:
            return any(negated(one) == taken or _excluded(one, taken) for one in arguments)
        case _:
            return False


def is_constant(condition: Value) -> bool:
    """Whether a condition is made of constants and parameters alone, so that it chooses a variant for all elements."""
    leaves = [one for one in walk(condition) if not parts_of(one)]
    return all(isinstance(one, Number | Scalar) for one in leaves)


def operation(name: str, *arguments: Value) -> Value:
    """An operation; of indices and parameters, an index again."""
    made = Op(name, arguments)
    if name in ("+", "-", "*", "//", "/", "%", "min", "max", "<<", ">>") and is_index(made):
        return Index(axes_of(made), scalars_of(made), place_of(made))
    match name, arguments:
        case "+" | "-" | "*", (Number(left), Number(right)):
            return Number(left + right if name == "+" else left - right if name == "-" else left * right)
        case "where", (Op(">" | ">=", (above, below)), then, otherwise) if (above, below) == (then, otherwise):
            return Op("max", (then, otherwise))
        case "where", (Op("<" | "<=", (below, above)), then, otherwise) if (below, above) == (then, otherwise):
            return Op("min", (then, otherwise))
        case _:
            pass
    for one in arguments:
        if isinstance(one, Unread):
            return one
    if name == "+" and ZERO in arguments:
        return arguments[1] if arguments[0] == ZERO else arguments[0]
    return made
