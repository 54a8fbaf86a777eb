"""What a foreign kernel computes, as values: each tensor that it stores to, and the expression of its elements.

A value is what one element of a block is made of; the thread or lane that computes it does not matter. Loops over
blocks are folded into what they add up. Names mean nothing, except those of the kernel's own parameters.
"""

from __future__ import annotations

import ast
import hashlib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from ttexplore.porting.foreign import places
from ttexplore.porting.foreign.places import UNKNOWN, Place


class _Keyed:
    """A value that is compared by a digest of what it is made of: as a tree, it may be exponentially large."""

    __slots__ = ()
    key: bytes
    # The names of the classes of its leaves.
    leaves: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def digest(self, *components: object) -> None:
        texts = [
            component.key.hex() if isinstance(component, _Keyed) else repr(component)
            for component in (type(self).__name__, *components)
        ]
        key = hashlib.blake2b("\0".join(texts).encode("utf-8", "backslashreplace"), digest_size=16).digest()
        parts_leaves = [component.leaves for component in components if isinstance(component, _Keyed)]
        leaves = frozenset[str]().union(*parts_leaves) if parts_leaves else frozenset({type(self).__name__})
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "leaves", leaves)


def _key() -> bytes:
    return field(init=False, repr=False, compare=False)


def _leaves() -> frozenset[str]:
    return field(init=False, repr=False, compare=False)


def _ordered(position: Place | None) -> object:
    return position if position is None else sorted(position, key=repr)


@dataclass(frozen=True, slots=True, eq=False)
class Input(_Keyed):
    """An element of a tensor. `axes` are the indices that choose it: ``p`` numbers of blocks, ``r`` the elements of a
    block, ``r0`` and ``r1`` its rows and columns. `part` tells loads from different places of a tensor apart. `place`
    is where it is, None where tiles are loaded by their coordinates; `beyond` stands for elements outside of the
    tensor, None where nothing is said of them; `by` is the element of another tensor that is an index in `place`."""

    tensor: str
    axes: frozenset[str] = frozenset()
    part: str = ""
    place: Place | None = None
    beyond: float | None = field(default=None, compare=False)
    by: Input | None = None
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.tensor, sorted(self.axes), self.part, _ordered(self.place), self.by)


@dataclass(frozen=True, slots=True, eq=False)
class Scalar(_Keyed):
    """A parameter that is one number."""

    name: str
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Number(_Keyed):
    """A constant. `is_float` is whether what is computed with it is no whole number any more."""

    value: float
    is_float: bool = field(default=False, compare=False)
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(float(self.value) + 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Index(_Keyed):
    """A number made of indices of blocks, rows and columns."""

    axes: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    place: Place = UNKNOWN
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(sorted(self.axes), sorted(self.scalars), _ordered(self.place))


@dataclass(frozen=True, slots=True, eq=False)
class Formula(_Keyed):
    """A function of elements, by its name in TileLang, or an operator."""

    name: str
    arguments: tuple[Value, ...]
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.name, *self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced(_Keyed):
    """A sum, maximum or minimum over the elements of a row. `together` is whether threads add up theirs, or who has
    what of it (``warps``)."""

    kind: str
    value: Value
    together: bool | str = field(default=False, compare=False)
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.kind, self.value, self.together if isinstance(self.together, str) else "")


@dataclass(frozen=True, slots=True, eq=False)
class MatMul(_Keyed):
    """A matrix product, summed over K."""

    a: Value
    b: Value
    transposed: bool = False
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.a, self.b, self.transposed)


@dataclass(frozen=True, slots=True, eq=False)
class Carried(_Keyed):
    """The value of a variable before a turn of a loop."""

    name: str
    initial: Value
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.name, self.initial)
        # Whatever it began with, it is no constant.
        object.__setattr__(self, "leaves", self.leaves | {"Carried"})


@dataclass(frozen=True, slots=True, eq=False)
class Unread(_Keyed):
    """What cannot be read, and why."""

    reason: str
    key: bytes = _key()
    leaves: frozenset[str] = _leaves()

    def __post_init__(self) -> None:
        self.digest(self.reason)


Value = Input | Scalar | Number | Index | Formula | Reduced | MatMul | Carried | Unread
ZERO = Number(0.0)
# The number of the column of an element.
COLUMN = Index(frozenset({"column"}))


@dataclass(frozen=True, slots=True)
class Output:
    """What a kernel stores: the tensor, the indices of the element, the value."""

    tensor: str
    axes: frozenset[str]
    value: Value
    part: str = ""
    place: Place | None = None


SCAN = "cumsum"


def is_over_row(value: Value) -> bool:
    """Whether a value takes the elements of a row together: a reduction, or sums of all elements up to each."""
    return isinstance(value, Reduced) or (isinstance(value, Formula) and value.name == SCAN)


def parts_of(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of directly."""
    match value:
        case Formula(_, arguments):
            return arguments
        case Reduced(_, inner):
            return (inner,)
        case MatMul(a, b, _):
            return a, b
        case Carried(_, initial):
            return (initial,)
        case Input(by=Input() as index):
            return (index,)
        case _:
            return ()


def walk(value: Value) -> Iterator[Value]:
    """The value and all that it is made of, each once, from left to right."""
    pending, visited = [value], set[int]()
    while pending:
        term = pending.pop()
        if id(term) not in visited:
            visited.add(id(term))
            yield term
            pending += reversed(parts_of(term))


def in_order(*values: Value, until: Callable[[Value], bool] | None = None) -> list[Value]:
    """All that values are made of, each once, and each after its parts; those of which `until` holds count as without
    parts."""
    ordered, visited = list[Value](), set[int]()
    pending = [(value, False) for value in reversed(values)]
    while pending:
        term, is_done = pending.pop()
        if is_done:
            ordered.append(term)
        elif id(term) not in visited:
            visited.add(id(term))
            pending.append((term, True))
            if until is None or not until(term):
                pending += [(operand, False) for operand in reversed(parts_of(term))]
    return ordered


def replaced(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """The value with parts that `change` replaces; None leaves one as it is."""
    new: dict[int, Value] = {}
    changed: dict[int, Value | None] = {}

    def is_changed(term: Value) -> bool:
        changed[id(term)] = change(term)
        return changed[id(term)] is not None

    for term in in_order(value, until=is_changed):
        new[id(term)] = changed[id(term)] or _with_parts(term, tuple(new[id(operand)] for operand in parts_of(term)))
    return new[id(value)]


def _with_parts(value: Value, operands: tuple[Value, ...]) -> Value:
    if all(new is old for new, old in zip(operands, parts_of(value), strict=True)):
        return value
    match value:
        case Formula(name, _):
            return Formula(name, operands)
        case Reduced(kind, _, together):
            return Reduced(kind, operands[0], together)
        case MatMul(_, _, transposed):
            return MatMul(operands[0], operands[1], transposed)
        case Carried(name, _):
            return Carried(name, operands[0])
        case Input():
            # What its index is now, its place does not say.
            return replace(value, place=UNKNOWN)
        case _:
            return value


def after_loop(name: str, initial: Value, update: Value, iteration: Place) -> Value:
    """The value of a variable after a loop whose turns make `update` of it.

    A sum of products is a product over more of K, if it is that of each turn, as it is or times a number. What adds up
    elements is a sum of them, what takes the larger of two is a maximum. Other values are those of the last turn; what
    they carry from turn to turn stays visible in them.
    """
    match update:
        case Formula("+", (Carried(carried, _), added)) | Formula("+", (added, Carried(carried, _))) if carried == name:
            if not any(isinstance(term, Carried) and term.name == name for term in walk(added)):
                if any(isinstance(term, MatMul) for term in walk(added)):
                    product = _product_of(added)
                    if product is None:
                        return Unread("a sum of what each turn makes of a product")
                    if not all(_is_of_turn(factor, iteration) for factor in (product.a, product.b)):
                        return Unread("a number of turns")
                    return added if initial == ZERO else Formula("+", (initial, added))
                if not _is_of_turn(added, iteration):
                    return Unread("a number of turns")
                total = added if isinstance(added, Reduced) else Reduced("sum", added)
                return total if initial == ZERO or isinstance(initial, Carried) else Formula("+", (initial, total))
        case Formula("max" | "min" as kind, (Carried(carried, _), candidate)) | Formula(
            "max" | "min" as kind, (candidate, Carried(carried, _))
        ):
            if carried == name:
                best = candidate if isinstance(candidate, Reduced) else Reduced(kind, candidate)
                return best if _is_end(kind, initial) else Formula(kind, (best, initial))
        case _:
            pass
    return last_turn(update, iteration)


def _product_of(value: Value) -> MatMul | None:
    """The product that a value is, as it is or times a number; None for another value."""
    match value:
        case MatMul():
            return value
        case (
            Formula("*", (inner, Number() | Scalar()))
            | Formula("*", (Number() | Scalar(), inner))
            | Formula("/", (inner, Number() | Scalar()))
        ):
            return _product_of(inner)
        case _:
            return None


def _is_of_turn(value: Value, iteration: Place) -> bool:
    """Whether a value is made of elements of one turn of a loop, or of elements of which no place is known."""
    inputs = [term for term in walk(value) if isinstance(term, Input)]
    iteration_atoms = places.atoms(iteration)
    return any(
        term.place is None or places.atoms(term.place) & (iteration_atoms | places.atoms(UNKNOWN)) for term in inputs
    )


def last_turn(value: Value, iteration: Place) -> Value:
    """A value after a loop, unless it is that of the last turn: then it is made of elements of that turn alone."""
    iteration_atoms = places.atoms(iteration)

    def is_of_turn(term: Value) -> bool:
        return isinstance(term, Input) and term.place is not None and bool(places.atoms(term.place) & iteration_atoms)

    carried = any(isinstance(term, Carried) for term in walk(value))
    return Unread("the last turn of a loop") if not carried and any(map(is_of_turn, walk(value))) else value


def read_back(element: Input, stores: list[Output]) -> Value:
    """An element of a tensor: what was stored there before, or what the tensor holds at first."""
    for store in reversed(stores):
        if store.tensor == element.tensor and element.place is not None:
            same = store.place == element.place
            return store.value if same else Unread(f"{element.tensor}, which is written before it is read")
    return element


def stored_in_turns(store: Output, iteration: Place) -> Output:
    """A store in a loop. Where each turn stores to the same element, that of the last turn remains."""
    if store.place is None or places.atoms(store.place) & places.atoms(iteration):
        return store
    match store.value:
        case Formula("+", (Input(tensor), MatMul())) if tensor == store.tensor:
            return store
        case value if any(isinstance(term, Input) and term.tensor == store.tensor for term in walk(value)):
            return replace(store, value=Unread("a sum over turns of a loop"))
        case value:
            return replace(store, value=last_turn(value, iteration))


# As float32, the largest float64 is infinite.
_ENDS = {"INFINITY", "CUDART_INF_F", "HUGE_VALF", "HUGE_VAL", "DBL_MAX"}


def _is_end(kind: str, initial: Value) -> bool:
    """Whether a maximum or minimum that begins with a value is that of the others alone."""
    match initial:
        case Number(number):
            return number == (float("-inf") if kind == "max" else float("inf"))
        case Formula("*", (Number(-1.0), Scalar(name))):
            return kind == "max" and name in _ENDS
        case Scalar(name):
            return kind == "min" and name in _ENDS
        case Carried():
            return True
        case _:
            return False


def axes_of(value: Value) -> frozenset[str]:
    """The indices that a value depends on."""
    axes: set[str] = set()
    for term in walk(value):
        if isinstance(term, Index | Input):
            axes |= term.axes
    return frozenset(axes)


def scalars_of(value: Value) -> frozenset[str]:
    """The parameters of one number that a value depends on."""
    scalars: set[str] = set()
    for term in walk(value):
        if isinstance(term, Scalar):
            scalars.add(term.name)
        elif isinstance(term, Index):
            scalars |= term.scalars
    return frozenset(scalars)


def is_index(value: Value) -> bool:
    """Whether a value is made of indices, parameters and constants only, and of an index at least."""
    return "Index" in value.leaves and value.leaves <= {"Index", "Number", "Scalar"}


def place_of(value: Value) -> Place:
    """A number made of indices and parameters, as a place."""
    if not value.leaves <= {"Index", "Number", "Scalar"}:
        return UNKNOWN
    positions: dict[int, Place] = {}
    for term in in_order(value):
        match term:
            case Number(number, is_float):
                # As a float, an index is rounded.
                position = UNKNOWN if is_float else places.number(number)
            case Scalar(name):
                position = places.atom("s", name)
            case Index(_, _, position):
                pass
            case Formula(name, (left, right)):
                position = places.combined(name, positions[id(left)], positions[id(right)])
            case _:
                position = UNKNOWN
        positions[id(term)] = position
    return positions[id(value)]


def is_bound(condition: Value) -> bool:
    """Whether a condition holds for indices inside of a tensor: each is less than a length, or not less than zero."""
    match condition:
        case Formula("&", arguments):
            return all(map(is_bound, arguments))
        case Formula("<" | "<=" as name, (left, right)):
            if not condition.leaves <= {"Index", "Number", "Scalar"}:
                return False
            if place_of(left) == places.NOWHERE and name == "<=":
                return is_index(right) and _goes_on_by_one(place_of(right))
            return _bound(name, left, right) is not None
        case Formula(">" | ">=" as name, (left, right)):
            return is_bound(Formula("<" if name == ">" else "<=", (right, left)))
        case Number(value):
            return bool(value)
        case _:
            return False


def bounds_of(condition: Value) -> list[tuple[Place, Place]]:
    """The indices that a bound is about, each with its length."""
    match condition:
        case Formula("&", arguments):
            return [bound for argument in arguments for bound in bounds_of(argument)]
        case Formula("<" | "<=" as name, (left, right)):
            bound = _bound(name, left, right)
            return [] if bound is None else [bound]
        case Formula(">" | ">=" as name, (left, right)):
            return bounds_of(Formula("<" if name == ">" else "<=", (right, left)))
        case _:
            return []


def _bound(name: str, index_side: Value, length_side: Value) -> tuple[Place, Place] | None:
    """The index that is less than a length, and the length. Elements of a block are counted one by one in it."""
    room = places.plus(place_of(length_side), place_of(index_side), -1.0)
    if name == "<=":
        room = places.plus(room, places.number(1.0))
    length = places.distance(room)
    index = places.plus(places.NOWHERE, frozenset(room - length), -1.0)
    if UNKNOWN in (place_of(index_side), place_of(length_side)) or any(atom[0] in "?w" for atom in places.atoms(room)):
        return None
    if len(length) != 1 or not index or not all(product and factor == 1 for product, factor in length):
        return None
    if not all(factor > 0 for _, factor in index):
        return None
    return (index, length) if _goes_on_by_one(index) else None


def _goes_on_by_one(index: Place) -> bool:
    """Whether an index counts the elements of a block one by one, perhaps by vectors; a multiple of it may not fit its
    type."""
    inside = {product: factor for product, factor in index if any(atom[0] == "r" for atom in product)}
    width = places.lanes(index)
    return all(
        factor == (1.0 if places.lanes(frozenset({(product, 1.0)})) > 1 else width)
        for product, factor in inside.items()
    )


def is_number_beyond(value: Value) -> bool:
    """Whether a value may stand for elements beyond the edge."""
    return isinstance(value, Number) and value.value in (0.0, float("inf"), float("-inf"))


def edge(value: Value, beyond: Value) -> Value:
    """A value of an element inside of a tensor, and `beyond` outside of it."""
    match value, beyond:
        case Input(), Number(number):
            return replace(value, beyond=number)
        case Number(), _:
            return value if value == beyond else Formula("edge", (value, beyond))
        case _:
            return Formula("edge", (value, beyond))


def inside(value: Value, beyond: Value | None = None) -> Value:
    """A value without what stands for elements outside of a tensor, if that is `beyond` or anything."""
    match value:
        case Formula("edge", (inner, fill)) if beyond is None or fill == beyond:
            return inner
        case _:
            return value


def is_rounded(value: Value) -> TypeGuard[Formula]:
    """Whether a value is a rounding to 16 bits."""
    return isinstance(value, Formula) and value.name == "rounded"


def without_edges(value: Value) -> Value:
    """A value whose elements all are inside of their tensors."""
    while (stripped := replaced(value, lambda term: inside(term) if inside(term) is not term else None)) is not value:
        value = stripped
    return value


def parts_of_lengths(condition: Value) -> set[str]:
    """The lengths that indices are compared with and that are parts of others, such as half of a row."""
    lengths = {name for term in walk(condition) for kind, name, _ in places.atoms(place_of(term)) if kind == "s"}
    return {name for name in lengths if " // " in name or " cdiv " in name}


_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def negated(condition: Value) -> Value:
    """What holds if a condition does not. Of NaN, neither `<` nor `>=` holds, so that comparisons of elements stay."""
    is_ordered = condition.leaves <= {"Index", "Number", "Scalar"}
    match condition:
        case Formula("not", (inner,)):
            return inner
        case Formula("&" | "|" as name, arguments) if is_ordered:
            return Formula("|" if name == "&" else "&", tuple(map(negated, arguments)))
        case Formula(name, arguments) if name in _NEGATED and (is_ordered or name in ("==", "!=")):
            return Formula(_NEGATED[name], arguments)
        case Number(number):
            return Number(float(not number))
        case _:
            return Formula("not", (condition,))


# What `not` before a text takes as a whole.
_CLOSED = re.compile(r"\w+|\([^()]*\)")


@dataclass
class Variants:
    """The variants of a kernel that its constants choose: of each choice the first one, and the same one again. `texts`
    say what was taken to hold."""

    taken: list[Value] = field(default_factory=list[Value])
    texts: list[str] = field(default_factory=list[str])
    # What constants are where nothing else is said.
    defaults: dict[str, Value] = field(default_factory=dict[str, Value])
    # How many conditions were decided because they were met first, or by defaults.
    decisions: int = 0

    def holds(self, condition: Value, text: str, never: bool = False) -> bool | None:
        """Whether a condition holds in the variant that is read; one that was not met before does, or does not if it
        should `never`. None if it is about constants that others are about too, and does not follow from them."""
        before = self.decisions
        holds = self._decided(condition, never)
        if holds is not None and self.decisions > before:
            self.tell(text, holds)
        return holds

    def tell(self, text: str, holds: bool) -> None:
        """Say what was taken: that a condition of the source holds, or that it does not."""
        denied = f"not {text}" if _CLOSED.fullmatch(text) else f"not ({text})"
        told = text if holds else denied
        self.texts += [told] if told not in self.texts else []

    def _decided(self, condition: Value, never: bool) -> bool | None:
        match condition:
            case Number(value):
                return bool(value)
            case Formula("&" | "|" as name, (left, right)):
                sides = [self._decided(left, never)]
                if sides[0] is not None and sides[0] == (name == "&"):
                    sides.append(self._decided(right, never))
                return None if None in sides else all(sides) if name == "&" else any(sides)
            case Formula("not", (inner,)):
                holds = self._decided(inner, not never)
                return None if holds is None else not holds
            case _:
                pass
        if (holds := _by_default(condition, self.defaults)) is not None:
            self.decisions += 1
            return holds
        if condition in self.taken:
            return True
        if negated(condition) in self.taken or any(_excluded(condition, assumed) for assumed in self.taken):
            return False
        if any(scalars_of(assumed) & scalars_of(condition) for assumed in self.taken):
            return None
        self.taken.append(negated(condition) if never else condition)
        self.decisions += 1
        return not never

    def state(self) -> tuple[list[Value], list[str]]:
        """What was taken so far."""
        return list(self.taken), list(self.texts)

    def reset(self, state: tuple[list[Value], list[str]]) -> None:
        """Forget what was taken since."""
        self.taken, self.texts = state


def _by_default(condition: Value, defaults: Mapping[str, Value]) -> bool | None:
    """Whether a condition holds for the defaults of the constants in it; None if one has no default."""
    values: dict[int, float | str | None] = {}
    for term in in_order(condition):
        match defaults.get(term.name, term) if isinstance(term, Scalar) else term:
            case Number(number):
                values[id(term)] = number
            case Scalar() as word if is_literal(word):
                values[id(term)] = ast.literal_eval(word.name) if word.name[:1] in ("'", '"') else None
            case Formula("==" | "!=" as name, (left, right)):
                values[id(term)] = float((values[id(left)] == values[id(right)]) == (name == "=="))
            case Formula(name, (left, right)) if name in _COMPARED or name in _ARITHMETIC:
                first, second = values[id(left)], values[id(right)]
                if not isinstance(first, float) or not isinstance(second, float) or (name in "//%" and not second):
                    return None
                values[id(term)] = float((_COMPARED.get(name) or _ARITHMETIC[name])(first, second))
            case _:
                return None
    return bool(values[id(condition)])


def _excluded(condition: Value, assumed: Value) -> bool:
    match condition, assumed:
        case Formula("==", (left, right)), Formula("==", (assumed_left, third)):
            return left == assumed_left and right != third and is_literal(right) and is_literal(third)
        case _:
            return False


def is_literal(value: Value) -> bool:
    """Whether a value is a number, or a constant text or name of its own."""
    return isinstance(value, Number) or (isinstance(value, Scalar) and value.name[:1] in ("'", '"', "N"))


def is_constant(condition: Value) -> bool:
    """Whether a condition is made of constants and parameters alone, so that it chooses a variant for all elements."""
    return condition.leaves <= {"Number", "Scalar"}


def overflowing(value: Value) -> frozenset[str]:
    """The parameters that a product multiplies with a whole number of 16 bits or more: 32 bits may not hold it."""
    if not isinstance(value, Formula) or value.name not in ("*", "<<") or not is_constant(value):
        return frozenset()
    multiple: float = 1.0
    names = frozenset[str]()
    pending: list[Value] = [value]
    while pending:
        match pending.pop():
            case Formula("*", factors):
                pending += factors
            case Formula("<<", (inner, Number(shift))):
                multiple *= 2.0 ** min(shift, 64.0)
                pending.append(inner)
            case Number(number, is_float):
                if is_float:
                    return frozenset()
                multiple *= number
            case factor:
                names |= scalars_of(factor)
    return names if abs(multiple) >= _BEYOND_16_BITS else frozenset()


_BEYOND_16_BITS = 2.0**15
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b,
    "%": operator.mod,
}


def operation(name: str, *arguments: Value) -> Value:
    """An operation; of indices and parameters, an index again."""
    result = Formula(name, arguments)
    if name in ("+", "-", "*", "//", "/", "%", "min", "max", "<<", ">>") and is_index(result):
        return Index(axes_of(result), scalars_of(result), place_of(result))
    match name, arguments:
        case "+" | "-" | "*", (Number(first, first_is_float), Number(second, second_is_float)):
            result_is_float = first_is_float or second_is_float
            number = first + second if name == "+" else first - second if name == "-" else first * second
            return Number(number, result_is_float)
        case _, (Number(left), Number(right)) if name in _COMPARED:
            return Number(float(_COMPARED[name](left, right)))
        case "where", (Formula("not", (condition,)), then, otherwise):
            return operation("where", condition, otherwise, then)
        case "where", (Formula(">" | ">=", (above, below)), then, otherwise) if (above, below) == (then, otherwise):
            return Formula("max", (then, otherwise))
        case "where", (Formula("<" | "<=", (below, above)), then, otherwise) if (below, above) == (then, otherwise):
            return Formula("min", (then, otherwise))
        case _:
            pass
    for argument in arguments:
        if isinstance(argument, Unread):
            return argument
    if name == "+" and ZERO in arguments:
        addend = arguments[1] if arguments[0] == ZERO else arguments[0]
        # A sum that begins at zero is none; another negative zero becomes a positive one.
        return addend if isinstance(addend, MatMul | Number) else result
    return result
