"""Index expressions as values, and what is known about their values.

A value range is a pair (lowest, highest) of ints or of NumPy arrays with one entry for each work item. Where both are
the same object the value is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, assert_never

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.ops.names import CORE_ITEM, CORE_VALUE

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Variables and operations are named tuples: they are compared and hashed often. The fields of no two kinds can be
# equal.


class Variable(NamedTuple):
    """A variable of a kernel. The same variable has the same number in all kernels of a program."""

    number: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CoreValue:
    """A value that the host gives to each core."""

    name: str


@dataclass(frozen=True, slots=True)
class CoreItem:
    """The number in a place of the list of numbers that the host gives to each core."""

    name: str
    position: Expression


@dataclass(frozen=True, slots=True)
class Unknown:
    """What has no place in an index; its text is for messages."""

    text: str


UnarySymbol = Literal["not", "~"]
BinarySymbol = Literal[
    "+", "-", "*", "//", "%", "min", "max", "<", "<=", ">", ">=", "==", "!=", "and", "or", "truncdiv", "truncmod", "&",
    "|", "^", "<<", ">>",
]  # fmt: skip


class Unary(NamedTuple):
    symbol: UnarySymbol
    operand: Expression


class Binary(NamedTuple):
    symbol: BinarySymbol
    left: Expression
    right: Expression


class Select(NamedTuple):
    condition: Expression
    chosen: Expression
    other: Expression


# What a kernel computes with; a float stands where an operation takes a scalar.
Expression = int | float | Variable | CoreValue | CoreItem | Unknown | Unary | Binary | Select
# A number, or one for each work item.
Values = int | NDArray[Any]
Range = tuple[Values, Values]

# The parts of a sum, each with its factor.
_Terms = frozenset[tuple[Expression, int]]


@dataclass(frozen=True, slots=True)
class _LinearSum:
    """A sum of parts, each with its factor. What a loop says of it holds while its variable, the `owner`, counts."""

    terms: _Terms
    owner: Variable | None = None


# What ranges are known of: variables and the values of a core, sums, sums that are not 0, and whether there are sums.
Key = Variable | CoreValue | CoreItem | _LinearSum | tuple[Literal["nonzero"], _Terms] | tuple[Literal["related"]]
# The ranges that are known.
Known = Mapping[Key, Range]

SYMBOLS: dict[type[ir.Expr], BinarySymbol] = {
    tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.FloorDiv: "//", tirx.FloorMod: "%", tirx.Min: "min",
    tirx.Max: "max", tirx.LT: "<", tirx.LE: "<=", tirx.GT: ">", tirx.GE: ">=", tirx.EQ: "==", tirx.NE: "!=",
    tirx.And: "and", tirx.Or: "or", tirx.Div: "truncdiv", tirx.Mod: "truncmod", tirx.BitwiseAnd: "&",
    tirx.BitwiseOr: "|", tirx.BitwiseXor: "^", tirx.LShift: "<<", tirx.RShift: ">>",
}  # fmt: skip


def is_binary(e: ir.Expr) -> TypeIs[tirx.BinaryOpExpr]:
    """Whether a TIR expression is an operation on two operands."""
    return type(e) in SYMBOLS


def truncated_quotient(a: Values, b: Values) -> Values:
    """``a / b`` without what is behind the point, as in C++; ``//`` rounds down."""
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def truncated_rest(a: Values, b: Values) -> Values:
    """What ``a / b`` leaves of a in C++: it has the sign of a."""
    return a - b * truncated_quotient(a, b)


_EXACT: dict[str, Callable[[Values, Values], Values]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": lambda a, b: _least(a, b),
    "max": lambda a, b: _most(a, b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "truncdiv": truncated_quotient,
    "truncmod": truncated_rest,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "and": lambda a, b: (a != 0) & (b != 0),
    "or": lambda a, b: (a != 0) | (b != 0),
}
_CONDITIONS = frozenset({"and", "or", "&", "|"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
DIVISIONS = frozenset({"//", "%", "truncdiv", "truncmod"})
SHIFTS = frozenset({"<<", ">>"})
_PARTIAL = DIVISIONS | SHIFTS
# Operations that have a value for all operands, which are always computed.
_TOTAL = _EXACT.keys() - _PARTIAL - {"and", "or"}
WORD_BITS = 32
INT32_LEAST, INT32_MOST = -(1 << 31), (1 << 31) - 1
# What whole numbers of each dtype can be, as far as int32 holds them: indices are no more.
RANGES: dict[str, tuple[int, int]] = {
    "bool": (0, 1), "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
    "int32": (INT32_LEAST, INT32_MOST), "int64": (INT32_LEAST, INT32_MOST),
    "uint32": (0, INT32_MOST), "uint64": (0, INT32_MOST),
}  # fmt: skip
# The dtypes of indices: of each only the numbers that int32 holds, too, so that casts between them change none.
WHOLE = frozenset({"int32", "int64", "uint32", "uint64"})


def convert(e: ir.Expr, number: Callable[[ir.Var], Variable]) -> Expression:
    """A TIR expression as a value. What has no place in an index becomes Unknown."""
    if type(e) is tirx.IntImm:
        return int(e.value)
    if type(e) is ir.Var:
        return number(e)
    if is_binary(e):
        return Binary(SYMBOLS[type(e)], convert(e.a, number), convert(e.b, number))
    match e:
        case tirx.Cast():
            made = _cast(convert(e.value, number), str(e.value.ty.dtype), str(e.ty.dtype))
            return Unknown(str(e)) if made is None else made
        case tirx.Not():
            return Unary("not", convert(e.a, number))
        case tirx.BitwiseNot():
            # Of a condition it is the other one.
            return Unary("not" if str(e.ty.dtype) == "bool" else "~", convert(e.a, number))
        case tirx.FloatImm():
            return float(e.value)
        case tirx.Select():
            return Select(*(convert(part, number) for part in (e.condition, e.true_value, e.false_value)))
        case ir.Call() if e.op.name == CORE_VALUE:
            return CoreValue(_text(e.args[0]))
        case ir.Call() if e.op.name == CORE_ITEM:
            return CoreItem(_text(e.args[0]), convert(e.args[1], number))
        case ir.Call() if str(e.op.name).endswith(".if_then_else"):
            return Select(*(convert(part, number) for part in e.args))
        case _:
            return Unknown(str(e))


def _text(e: ir.Expr) -> str:
    assert isinstance(e, ir.StringImm), "the name of a value of a core"
    return str(e.value)


def _cast(value: Expression, source: str, target: str) -> Expression | None:
    """What a cast makes of a whole number: of narrow integers the lowest bits. None where it is another number."""
    if source == target or (target in WHOLE and not source.startswith(("float", "bfloat"))):
        return value
    if source == "bool" and target.startswith(("int", "uint")):
        return value
    if target == "bool":
        return Binary("!=", value, 0)
    bits = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16}.get(target)
    if bits is None or not source.startswith(("int", "uint")):
        return None
    lowest = (1 << bits) - 1
    if target.startswith("uint"):
        return Binary("&", value, lowest)
    half = 1 << bits - 1
    return Binary("-", Binary("&", Binary("+", value, half), lowest), half)


def _are_numbers(values: Sequence[Values]) -> TypeGuard[Sequence[int]]:
    """Whether none of some values is an array."""
    for one in values:  # noqa: SIM110
        if isinstance(one, np.ndarray):
            return False
    return True


def _all(values: Values) -> bool:
    """Whether a condition holds, for all entries where it has several. NumPy takes long for one."""
    return bool(values.all() if isinstance(values, np.ndarray) else values)


def _any(values: Values) -> bool:
    return bool(values.any() if isinstance(values, np.ndarray) else values)


def _least(*values: Values) -> Values:
    return min(values) if _are_numbers(values) else reduce(np.minimum, values)


def _most(*values: Values) -> Values:
    return max(values) if _are_numbers(values) else reduce(np.maximum, values)


def _where(test: Values, chosen: Values, other: Values) -> Values:
    """Of Python's integers a Python integer: those of NumPy have an end."""
    if _are_numbers((test, chosen, other)):
        return chosen if test else other
    return np.where(test, chosen, other)


def parts_of(e: Expression) -> tuple[Expression, ...]:
    """The operands of an operation; none of what is no operation of these."""
    match e:
        case Binary(_, left, right):
            return left, right
        case Unary(_, operand):
            return (operand,)
        case Select():
            return e
        case int() | float() | Variable() | CoreValue() | CoreItem() | Unknown():
            return ()
        case _:
            assert_never(e)


def variables(e: Expression) -> set[Variable]:
    """The variables in an expression."""
    found = set[Variable]()
    _add_variables(e, found)
    return found


def _add_variables(e: Expression, found: set[Variable]) -> None:
    if isinstance(e, Variable):
        found.add(e)
    else:
        for part in parts_of(e):
            _add_variables(part, found)


# Under this the range of all that is listed is known, for those who do not look at each item.
ANY_ITEM = CoreItem("", 0)


def value_range(e: Expression, known: Known, live: Values = True) -> Range | None:
    """The values that an expression takes while each variable and core value is in its range; None where one of
    them has no range.

    What a choice does not take has no part in it: `7 // b` under `b > 0` divides by 1 or more. `live` says whether, or
    for which of the entries, the value is asked for at all.
    """
    # The common ones first: this is the innermost function of the verifier.
    kind = type(e)
    if kind is Variable or kind is CoreValue:
        return known.get(e)  # pyright: ignore[reportArgumentType]
    if kind is int:
        return e, e  # pyright: ignore[reportReturnType]
    match e:
        case Binary(symbol, left, right) if symbol in _TOTAL:
            if (one := value_range(left, known, live)) is None:
                return None
            if (other := value_range(right, known, live)) is None:
                return None
            if one[0] is one[1] and other[0] is other[1]:
                value = _EXACT[symbol](one[0], other[0])
                return value, value
            return operation_range(e, [one, other], known, live)
        case Binary() | Select():
            return _of_several(e, known, live)
        case int():
            return e, e
        case Variable() | CoreValue():
            return known.get(e)
        case CoreItem():
            return known.get(ANY_ITEM)
        case Unary(symbol, operand):
            one = value_range(operand, known, live)
            return None if one is None else range_of(symbol, [one])
        case float() | Unknown():
            return None
        case _:
            assert_never(e)


def _of_several(e: Binary | Select, known: Known, live: Values) -> Range | None:
    test, *others = parts_of(e)
    first = value_range(test, known, live)
    if first is None:
        return None
    parts: list[Range] = [first]
    if isinstance(e, Binary) and e.symbol not in ("and", "or"):
        second = value_range(e.right, known, live)
        return None if second is None else operation_range(e, [first, second], known, live)
    for part, holds in zip(others, taken_where(e), strict=True):
        one = None if isinstance(e, Select) else value_range(part, known, live)
        if one is None and holds is not None:
            there, asked = _under(test, first, known, live, holds)
            one = value_range(part, there, asked) if _any(asked) else (0, 0)
        if one is None:
            return None
        parts.append(one)
    return operation_range(e, parts, known, live)


def taken_where(e: Expression) -> tuple[bool | None, ...]:
    """For each operand but the first: what the first one must be for it to be computed; None where it always is."""
    match e:
        case Select():
            return True, False
        case Binary("and"):
            return (True,)
        case Binary("or"):
            return (False,)
        case _:
            return (None,) * (len(parts_of(e)) - 1)


def _under(test: Expression, found: Range, known: Known, live: Values, holds: bool) -> tuple[Known, Values]:
    """What is known where a condition holds, or does not, and for which entries that can be."""
    surely, possibly = _truth(found)
    live = live & ((possibly != 0) if holds else (surely == 0))
    there = narrowed(test, known, holds=holds)
    for one, (low, high) in there.items():
        # No value is left: it is not computed, whatever the rest says.
        if low is not high and one in known and _any(low > high):
            live = live & (low <= high)
            there[one] = _where(low <= high, low, known[one][0]), _where(low <= high, high, known[one][1])
    return there, live


def reached(test: Expression, known: Known, *, holds: bool) -> Known | None:
    """What is known where a condition holds, or does not; None where that is nowhere."""
    found = value_range(test, known)
    there, live = _under(test, found or (0, 1), known, True, holds)
    return there if _any(live) else None


def operation_range(e: Expression, parts: list[Range], known: Known, live: Values = True) -> Range | None:
    """The values of an operation whose operands have these ranges, with what is known of sums and of divisors; None
    where it has none, as of a division by 0."""
    symbol = e.symbol if isinstance(e, Binary | Unary) else "select"
    if symbol in _PARTIAL:
        left, (low, high) = parts
        if not _all(live):
            instead = 0 if symbol in SHIFTS else 1
            made = _where(live, low, instead)
            low, high = made, made if low is high else _where(live, high, instead)
        if (
            symbol in DIVISIONS
            and low is not high
            and _any((low <= 0) & (high >= 0))
            and is_nonzero(parts_of(e)[1], known)
        ):
            below = _combined(symbol, left, (_least(low, -1), -1)) if _any(low < 0) else None
            above = _combined(symbol, left, (1, _most(high, 1))) if _any(high > 0) else None
            given = [one for one in (below, above) if one is not None]
            return (_least(*(a for a, _ in given)), _most(*(b for _, b in given))) if given else None
        parts = [left, (low, high)]
    found = range_of(symbol, parts)
    if found is None or found[0] is found[1] or symbol not in ("+", "-") or known.get(_RELATED) != _YES:
        return found
    terms = terms_of(e)
    # Whether a number is negative is what matters, and nobody relates many.
    if _all(found[0] >= 0) or len(terms) > _MOST_TERMS:
        return found
    sums = [(key, limits) for key, limits in known.items() if isinstance(key, _LinearSum)]
    low = _lowest(terms, sums, known, terms)
    high = _lowest({part: -factor for part, factor in terms.items()}, sums, known, terms)
    return found[0] if low is None else _most(found[0], low), found[1] if high is None else _least(found[1], -high)


# What is known of sums, of the variables of loops and under conditions, lies among what is known of variables.

# Whether any sum is known; `_NO` says that none is asked for.
_RELATED: tuple[Literal["related"]] = ("related",)
_YES, _NO = (1, 1), (0, 0)
_MOST_TERMS = 8
_FAR = 1 << 40


def learn_loop(known: dict[Key, Range], variable: Variable, start: Expression, count: Expression) -> None:
    """A variable counts up from a start: its range, where those of start and count are known, and what it is less
    than, and not less than."""
    low, turns = value_range(start, known), value_range(count, known)
    if low is not None and turns is not None:
        known[variable] = (low[0], _most(low[1] + turns[1] - 1, low[0]))
    for one in _limits("max", start):
        _learn_sum(known, terms_of(Binary("-", variable, one)), 0, _FAR, variable)
    for one in _limits("min", canonical(Binary("+", start, count))):
        _learn_sum(known, terms_of(Binary("-", variable, one)), -_FAR, -1, variable)


def _limits(symbol: str, e: Expression) -> list[Expression]:
    if isinstance(e, Binary) and e.symbol == symbol:
        return [*_limits(symbol, e.left), *_limits(symbol, e.right)]
    return [e]


def _learn_sum(
    known: dict[Key, Range], terms: Mapping[Expression, int], low: int, high: int, owner: Variable | None = None
) -> None:
    """A sum of several parts, or a part that is no variable, is at least `low` and at most `high`."""
    parts = {part: factor for part, factor in terms.items() if factor and part != 1}
    if not parts or (all(isinstance(part, Variable) for part in parts) and len(parts) == 1):
        return
    if known.get(_RELATED) == _NO:
        return
    share = gcd(*parts.values())
    offset = terms.get(1, 0)
    key = _LinearSum(frozenset((part, factor // share) for part, factor in parts.items()), owner)
    before = known.get(key, (-_FAR, _FAR))
    low = -_FAR if low == -_FAR else -((offset - low) // share)
    high = _FAR if high == _FAR else (high - offset) // share
    known[key] = (_most(before[0], low), _least(before[1], high))
    known[_RELATED] = _YES


def _lowest(
    terms: Mapping[Expression, int], sums: Sequence[tuple[_LinearSum, Range]], known: Known,
    asked: Container[Expression], seen: frozenset[Variable] = frozenset(), steps: int = 3,
) -> Values | None:  # fmt: skip
    """The least value of a sum: by the ranges of its parts, or by one known sum in it and what is left.

    Parts of the sum that is `asked` for are smaller than it. The others come from known sums, and these may hold each
    other: their ranges are taken without what is known of sums.
    """
    parts = {part: factor for part, factor in terms.items() if factor}
    seen = seen.union(*(variables(part) for part in parts))
    best: Values | None = 0
    for part, factor in parts.items():
        one = value_range(part, known if part in asked else {**known, _RELATED: _NO})
        best = None if one is None or best is None else best + factor * one[0 if factor > 0 else 1]
    operations = any(isinstance(part, Unary | Binary | Select) for part in parts)
    if not steps or (len(parts.keys() - {1}) < 2 and not operations):
        return best
    for key, (low, high) in sums:
        if key.owner is not None and key.owner not in seen:
            continue
        inner = dict(key.terms)
        for times in {parts[part] // inner[part] for part in inner if part in parts and not parts[part] % inner[part]}:
            limit = low if times > 0 else high
            if abs(limit) == _FAR:
                continue
            rest = {part: parts.get(part, 0) - times * inner.get(part, 0) for part in parts.keys() | inner.keys()}
            least = _lowest(rest, sums, known, asked, seen, steps - 1)
            if least is not None:
                best = least + times * limit if best is None else _most(best, least + times * limit)
    return best


def is_nonzero(e: Expression, known: Known) -> bool:
    """Whether a condition around says that it is not 0."""
    return _nonzero(terms_of(e)) in known


def _nonzero(terms: Mapping[Expression, int]) -> tuple[Literal["nonzero"], _Terms]:
    return "nonzero", min(
        (frozenset((part, sign * factor) for part, factor in terms.items() if factor) for sign in (1, -1)),
        key=lambda one: sorted(map(str, one)),
    )


def range_of(symbol: str, parts: list[Range]) -> Range | None:
    """The values of an operation on parts with these ranges; None where it has none, as of a division by 0."""
    if symbol == "~":
        low, high = parts[0]
        return _exactly(~low) if low is high else (~high, ~low)
    if symbol in ("not", "select"):
        made = _not(parts[0]) if symbol == "not" else _select(*parts)
        return _exactly(made[0]) if all(low is high for low, high in parts) else made
    return _combined(symbol, parts[0], parts[1])


def _exactly(value: Values) -> Range:
    return value, value


def _combined(symbol: str, left: Range, right: Range) -> Range | None:
    (a, b), (c, d) = left, right
    if symbol in SHIFTS and not (_all(c >= 0) and _all(d < WORD_BITS)):
        return None
    if a is b and c is d:
        if symbol in DIVISIONS and not _all(c):
            return None
        return _exactly(_EXACT[symbol](a, c))
    if symbol in COMPARISONS:
        return _compared(symbol, left, right)
    match symbol:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            ends = (a * c, a * d, b * c, b * d)
            return _least(*ends), _most(*ends)
        case "min":
            return _least(a, c), _least(b, d)
        case "max":
            return _most(a, c), _most(b, d)
        case "//" | "truncdiv" if _all(c > 0) or _all(d < 0):
            exact = _EXACT[symbol]
            ends = (exact(a, c), exact(a, d), exact(b, c), exact(b, d))
            return _least(*ends), _most(*ends)
        case "%" if _all(c > 0):
            # Within one period the remainder runs from that of the lowest to that of the highest.
            same = (a // c == b // c) & (c == d)
            return _where(same, a % c, 0), _where(same, b % c, d - 1)
        case "%" if _all(d < 0):
            return c + 1, d - d
        case "truncmod" if _all(c > 0) or _all(d < 0):
            # It has the sign of what is divided, and is no further from 0.
            most = _most(d, -c) - 1
            return _where(a < 0, _most(a, -most), 0), _where(b > 0, _least(b, most), 0)
        case "<<" | ">>":
            exact = _EXACT[symbol]
            ends = (exact(a, c), exact(a, d), exact(b, c), exact(b, d))
            return _least(*ends), _most(*ends)
        case "&" | "|" | "^":
            return _of_bits(symbol, left, right)
        case "and":
            return _least(_truth(left)[0], _truth(right)[0]), _least(_truth(left)[1], _truth(right)[1])
        case "or":
            return _most(_truth(left)[0], _truth(right)[0]), _most(_truth(left)[1], _truth(right)[1])
        case _:
            return None


def _of_bits(symbol: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    # All are at least -span and less than span, and so is what becomes of their bits.
    span = 1 << max(_bit_count(left), _bit_count(right))
    match symbol:
        case "&":
            # A number that is not negative leaves at most itself.
            high = _where(a >= 0, _where(c >= 0, _least(b, d), b), _where(c >= 0, d, _most(b, d)))
            return _where((a < 0) & (c < 0), -span, 0), high
        case "|":
            return _least(a, c), _where((b < 0) | (d < 0), -1, span - 1)
        case _:
            return _where((a < 0) | (c < 0), -span, 0), span - 1


def _bit_count(one: Range) -> int:
    ends = int(np.min(one[0])), int(np.max(one[1]))
    return max((~end if end < 0 else end).bit_length() for end in ends)


def _compared(symbol: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    match symbol:
        case "<":
            return (b < c) + 0, (a < d) + 0
        case "<=":
            return (b <= c) + 0, (a <= d) + 0
        case ">":
            return (a > d) + 0, (b > c) + 0
        case ">=":
            return (a >= d) + 0, (b >= c) + 0
        case "==":
            return ((a == b) & (c == d) & (a == c)) + 0, ((a <= d) & (c <= b)) + 0
        case _:
            return 1 - (((a <= d) & (c <= b)) + 0), 1 - (((a == b) & (c == d) & (a == c)) + 0)


def _truth(one: Range) -> Range:
    """0 or 1: whether a value is surely, and possibly, not zero."""
    low, high = one
    return ((low > 0) | (high < 0)) + 0, ((low != 0) | (high != 0)) + 0


def _not(one: Range) -> Range:
    surely, possibly = _truth(one)
    return 1 - possibly, 1 - surely


def _select(test: Range, chosen: Range, other: Range) -> Range:
    surely, possibly = _truth(test)
    low = _where(surely, chosen[0], _where(possibly, _least(chosen[0], other[0]), other[0]))
    high = _where(surely, chosen[1], _where(possibly, _most(chosen[1], other[1]), other[1]))
    return low, high


def decided(e: Expression, known: Known) -> bool | None:
    """Whether a condition is true, false, or not decided by what is known."""
    found = value_range(e, known)
    if found is None:
        return None
    surely, possibly = _truth(found)
    if _all(surely):
        return True
    return None if _any(possibly) else False


# A condition on so many values of its variables is tried with each.
_TRIED = 1 << 13


def always(e: Expression, known: Known) -> bool:
    """Whether a condition holds for all values that its variables can have, each for itself; False where that is not
    known."""
    used = variables(e)
    if not used <= known.keys():
        return False
    return decided(e, known) is True or _always_by_sides(e, known) or tried(e, known)


def tried(e: Expression, known: Known) -> bool:
    """Whether a condition holds for all values of its variables, tried one after another; False where they are too
    many, or not known."""
    used = variables(e)
    if not used <= known.keys():
        return False
    ranges = {one: (int(np.min(known[one][0])), int(np.max(known[one][1]))) for one in used}
    if prod(high - low + 1 for low, high in ranges.values()) > _TRIED:
        return False
    axes = np.ix_(*(np.arange(low, high + 1) for low, high in ranges.values()))
    return bool(decided(e, {one: (values, values) for one, values in zip(ranges, axes, strict=True)}))


def _always_by_sides(e: Expression, known: Known) -> bool:
    match e:
        case Binary(">=" | ">" as symbol, a, b) | Binary("<=" | "<" as symbol, b, a):
            found = close_range(Binary("-", a, b), known)
            return found is not None and _all(found[0] >= (1 if symbol in "<>" else 0))
        case _:
            return False


def follows(e: Expression, given: Sequence[Expression], known: Known) -> bool:
    """Whether a condition holds wherever all the given ones do, for all values that variables can have; False where
    that is not known."""
    there = where_all_hold(given, known)
    if always(e, there):
        return True
    # What conditions say of several variables together shows where each of their values is tried.
    for one in given:
        e = Binary("or", Unary("not", one), e)
    return bool(given) and always(e, there)


def placed(e: Expression, bound: Mapping[Variable, Expression]) -> Expression:
    """An expression with what its variables stand for in their place."""
    match e:
        case Variable():
            return placed(bound[e], bound) if e in bound else e
        case Binary(symbol, left, right):
            return Binary(symbol, placed(left, bound), placed(right, bound))
        case Unary(symbol, operand):
            return Unary(symbol, placed(operand, bound))
        case Select():
            return Select(*(placed(part, bound) for part in e))
        case int() | float() | CoreValue() | CoreItem() | Unknown():
            return e
        case _:
            assert_never(e)


def compiled(
    expressions: Sequence[Expression], parameters: str, names: Mapping[Variable, str]
) -> Callable[..., tuple[int, ...]] | None:
    """A function of these parameters that computes the expressions, as a tuple of ints; None where a variable has no
    name or a part is no arithmetic."""
    texts = [_python(e, names) for e in expressions]
    if any(text is None for text in texts):
        return None
    scope = {"quotient": truncated_quotient, "rest": truncated_rest}
    return eval(f"lambda {parameters}: ({', '.join(map(str, texts))},)", scope)


def _python(e: Expression, names: Mapping[Variable, str]) -> str | None:
    parts = [_python(part, names) for part in parts_of(e)]
    if any(part is None for part in parts):
        return None
    match e:
        case int():
            return str(e)
        case Variable():
            return names.get(e)
        case Unary(symbol):
            return f"({symbol} {parts[0]})"
        case Select():
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        case Binary("min" | "max" as symbol):
            return f"{symbol}({parts[0]}, {parts[1]})"
        case Binary("truncdiv" | "truncmod" as symbol):
            return f"{'quotient' if symbol == 'truncdiv' else 'rest'}({parts[0]}, {parts[1]})"
        case Binary(symbol):
            return f"({parts[0]} {symbol} {parts[1]})"
        case float() | CoreValue() | CoreItem() | Unknown():
            return None
        case _:
            assert_never(e)


def affine(e: Expression) -> dict[Variable | None, int] | None:
    """The factor of each variable in a sum, with the constant under None; None for anything else."""
    if isinstance(e, int):
        return {None: e}
    if isinstance(e, Variable):
        return {e: 1}
    if not isinstance(e, Binary) or e.symbol not in ("+", "-", "*"):
        return None
    left, right = affine(e.left), affine(e.right)
    if left is None or right is None:
        return None
    if e.symbol == "*":
        scale, terms = (left, right) if left.keys() <= {None} else (right, left)
        return {one: factor * scale.get(None, 0) for one, factor in terms.items()} if scale.keys() <= {None} else None
    sign = 1 if e.symbol == "+" else -1
    return {one: left.get(one, 0) + sign * right.get(one, 0) for one in left.keys() | right.keys()}


def canonical(e: Expression) -> Expression:
    """A sum in one of the ways to write it: functions simplify what they have in common apart."""
    terms = {part: factor for part, factor in terms_of(e).items() if factor}
    made: Expression = terms.pop(1, 0)
    for part in sorted(terms, key=lambda one: (isinstance(one, Variable), str(one))):
        one = part if terms[part] == 1 else Binary("*", part, terms[part])
        made = one if made == 0 else Binary("+", made, one)
    return made


def folded(e: Expression) -> Expression:
    """An expression in one of the ways to write it: operations on numbers are computed, sums are canonical."""
    match e:
        case Binary(symbol, left, right):
            made: Expression = Binary(symbol, folded(left), folded(right))
        case Unary(symbol, operand):
            made = Unary(symbol, folded(operand))
        case Select():
            made = Select(*(folded(part) for part in e))
            if isinstance(made.condition, int):
                return made.chosen if made.condition else made.other
        case _:
            return e
    if all(isinstance(part, int) for part in parts_of(made)):
        found = value_range(made, {})
        return made if found is None else int(found[0])
    return canonical(made) if isinstance(made, Binary) and made.symbol in ("+", "-", "*") else made


def terms_of(e: Expression) -> dict[Expression, int]:
    """The factor of each part of a sum, that of 1 for its constant."""
    match e:
        case int():
            return {1: e}
        case Binary("+" | "-" as symbol):
            left, right = terms_of(e.left), terms_of(e.right)
            sign = 1 if symbol == "+" else -1
            return {part: left.get(part, 0) + sign * right.get(part, 0) for part in {**left, **right}}
        case Binary("*", int(scale), rest) | Binary("*", rest, int(scale)):
            return {part: factor * scale for part, factor in terms_of(rest).items()}
        case _:
            return {e: 1}


def close_range(e: Expression, known: Known) -> Range | None:
    """As :func:`value_range`, closer for sums with a minimum, a maximum or a choice in them: each of its sides is
    looked at alone, so that what the sum takes away elsewhere cancels: n - max(n - 2, 0) is at least min(2, n)."""
    found = value_range(e, known)
    sides = _sides(e)
    if found is None or len(sides) == 1:
        return found
    ranges = [value_range(canonical(side), known) for side in sides]
    if any(one is None for one in ranges):
        return found
    low = _least(*(one[0] for one in ranges if one is not None))
    high = _most(*(one[1] for one in ranges if one is not None))
    return _most(found[0], low), _least(found[1], high)


# An expression has more sides than this only where nobody reads it any more.
_MOST_SIDES = 16


def _sides(e: Expression) -> list[Expression]:
    """Sums without minima, maxima and choices, of which an expression is one or the other; itself where they are too
    many, or where it is no sum."""
    made: list[Expression]
    match e:
        case Binary("min" | "max", a, b) | Select(_, a, b):
            made = [*_sides(a), *_sides(b)]
        case Binary("+" | "-" | "*" as symbol, a, b):
            made = [Binary(symbol, one, other) for one in _sides(a) for other in _sides(b)]
        case _:
            return [e]
    return made if len(made) <= _MOST_SIDES else [e]


def narrowed(test: Expression, known: Known, *, holds: bool) -> dict[Key, Range]:
    """The ranges where a condition holds, or where it does not."""
    made = dict(known)
    if isinstance(test, Unary) and test.symbol == "not":
        return narrowed(test.operand, known, holds=not holds)
    if isinstance(test, Variable):
        test = Binary("!=", test, 0)
    if not isinstance(test, Binary):
        return made
    symbol: str = test.symbol
    # Bits that two numbers have in common are bits of each.
    if symbol in (("and", "&") if holds else ("or", "|")):
        return narrowed(test.right, narrowed(test.left, known, holds=holds), holds=holds)
    if symbol not in COMPARISONS:
        return made if symbol in _CONDITIONS else narrowed(Binary("!=", test, 0), known, holds=holds)
    if not holds:
        symbol = _OPPOSITE[symbol]
    for one, other, sense in ((test.left, test.right, symbol), (test.right, test.left, _MIRRORED[symbol])):
        limit = value_range(other, known)
        if not isinstance(one, Variable) or one not in made or limit is None:
            continue
        low, high = made[one]
        if low is high:
            # It has one value, which the condition does not change.
            continue
        match sense:
            case "<":
                high = _least(high, limit[1] - 1)
            case "<=":
                high = _least(high, limit[1])
            case ">":
                low = _most(low, limit[0] + 1)
            case ">=":
                low = _most(low, limit[0])
            case "==":
                low, high = _most(low, limit[0]), _least(high, limit[1])
            case "!=" if limit[0] is limit[1]:
                low, high = low + (low == limit[0]), high - (high == limit[0])
            case _:
                continue
        made[one] = (low, high)
    # What depends on sizes is a number for each core: it counts like a variable that has its value already.
    _learn_difference(made, symbol, terms_of(Binary("-", test.left, test.right)))
    difference = affine(Binary("-", _named(test.left, made), _named(test.right, made)))
    if difference is not None and symbol in _BOUNDS:
        for sign, limit in _BOUNDS[symbol]:
            _bound(made, {one: sign * factor for one, factor in difference.items()}, limit)
    return made


def where_all_hold(tests: Sequence[Expression], known: Known) -> Known:
    """The ranges where several conditions hold."""
    for one in tests:
        known = narrowed(one, known, holds=True)
    return known


def _learn_difference(known: dict[Key, Range], symbol: str, terms: Mapping[Expression, int]) -> None:
    if symbol == "!=":
        known[_nonzero(terms)] = (1, 1)
    for sign, limit in _BOUNDS.get(symbol, ()):
        low, high = (-_FAR, limit) if sign > 0 else (-limit, _FAR)
        _learn_sum(known, terms, low, high)


def _named(e: Expression, known: dict[Key, Range]) -> Expression:
    """The expression with a variable for each part that is no sum and has exactly one value."""
    match e:
        case Binary("+" | "-" | "*" as symbol, left, right):
            return Binary(symbol, _named(left, known), _named(right, known))
        case int() | float() | Variable():
            return e
        case _:
            found = value_range(e, known)
    if found is None or found[0] is not found[1]:
        return e
    name = Variable(-1 - len(known), show(e))
    known[name] = found
    return name


def _bound(known: dict[Key, Range], terms: dict[Variable | None, int], limit: int) -> None:
    """Narrow the variables that have no one value, where a sum is at most `limit`."""
    for one, factor in terms.items():
        if one is None or not factor or one not in known or known[one][0] is known[one][1]:
            continue
        least: Values = terms.get(None, 0)
        for other, scale in terms.items():
            if other is None or other is one:
                continue
            if other not in known:
                return
            least = least + scale * known[other][0 if scale > 0 else 1]
        low, high = known[one]
        # factor * one <= limit - least, rounded to where the product is still small enough
        if factor > 0:
            known[one] = (low, _least(high, (limit - least) // factor))
        else:
            known[one] = (_most(low, -((limit - least) // -factor)), high)


# sign * (left - right) <= limit
_BOUNDS: dict[str, tuple[tuple[int, int], ...]] = {
    "<": ((1, -1),), "<=": ((1, 0),), ">": ((-1, -1),), ">=": ((-1, 0),), "==": ((1, 0), (-1, 0)),
}  # fmt: skip
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


_LOOSEST = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "//": 6, "%": 6} | dict.fromkeys(COMPARISONS, 4)


def show(e: Expression, outer: int = 0) -> str:
    """The text of an expression for a message."""
    match e:
        case int() | float() | Variable():
            return str(e)
        case CoreValue(name) | CoreItem(name):
            return name
        case Unknown(text):
            return text
        case Binary(symbol, left, right) if symbol in _LOOSEST:
            strength = _LOOSEST[symbol]
            text = f"{show(left, strength)} {symbol} {show(right, strength + 1)}"
            return f"({text})" if strength < outer else text
        case Binary(symbol) | Unary(symbol):
            return f"{symbol}({', '.join(map(show, parts_of(e)))})"
        case Select():
            return f"select({', '.join(map(show, e))})"
        case _:
            assert_never(e)
