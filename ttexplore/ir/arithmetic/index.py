"""Index expressions as values, and what is known about their values.

A value range is a pair (lowest, highest) of ints or of NumPy arrays with one entry for each work item. Where both are
the same object the value is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, assert_never

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.ops.op import CORE_ITEM, CORE_VALUE

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Variables, core values and operations are named tuples: they are compared and hashed often. The fields of no two kinds
# can be equal.


class Variable(NamedTuple):
    """A variable of a kernel. The same variable has the same number in all kernels of a program."""

    number: int
    name: str

    def __str__(self) -> str:
        return self.name


class VariableNumbers:
    """Numbers the variables of a kernel in the order in which they are asked for, as `convert` needs it."""

    def __init__(self) -> None:
        self._of: dict[ir.Var, Variable] = {}

    def __call__(self, variable: ir.Var) -> Variable:
        return self._of.setdefault(variable, Variable(len(self._of), str(variable.name)))


class CoreValue(NamedTuple):
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
Key = Variable | CoreValue | CoreItem | _LinearSum | tuple[Literal["nonzero"], _Terms] | tuple[Literal["related"], None]
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
            converted = _cast(convert(e.value, number), str(e.value.ty.dtype), str(e.ty.dtype))
            return Unknown(str(e)) if converted is None else converted
        case tirx.Not():
            return Unary("not", convert(e.a, number))
        case tirx.BitwiseNot():
            # Of a condition it is the other one.
            return Unary("not" if str(e.ty.dtype) == "bool" else "~", convert(e.a, number))
        case tirx.FloatImm():
            return float(e.value)
        case tirx.Select():
            return Select(*(convert(operand, number) for operand in (e.condition, e.true_value, e.false_value)))
        case ir.Call() if e.op.name == CORE_VALUE:
            return CoreValue(_text(e.args[0]))
        case ir.Call() if e.op.name == CORE_ITEM:
            return CoreItem(_text(e.args[0]), convert(e.args[1], number))
        case ir.Call() if str(e.op.name).endswith(".if_then_else"):
            return Select(*(convert(argument, number) for argument in e.args))
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
    for value in values:  # noqa: SIM110
        if isinstance(value, np.ndarray):
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


def _where(test: Values, chosen: Values, otherwise: Values) -> Values:
    """Of Python's integers a Python integer: those of NumPy have an end."""
    if _are_numbers((test, chosen, otherwise)):
        return chosen if test else otherwise
    return np.where(test, chosen, otherwise)


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
    collected = set[Variable]()
    _add_variables(e, collected)
    return collected


def _add_variables(e: Expression, collected: set[Variable]) -> None:
    if isinstance(e, Variable):
        collected.add(e)
    else:
        for operand in parts_of(e):
            _add_variables(operand, collected)


# Under this the range of all that is listed is known, for those who do not look at each item.
ANY_ITEM = CoreItem("", 0)


def value_range(e: Expression, facts: Known, live: Values = True) -> Range | None:
    """The values that an expression takes while each variable and core value is in its range; None where one of
    them has no range.

    What a choice does not take has no part in it: `7 // b` under `b > 0` divides by 1 or more. `live` says whether, or
    for which of the entries, the value is asked for at all.
    """
    # The common ones first: this is the innermost function of the verifier.
    kind = type(e)
    if kind is Variable or kind is CoreValue:
        return facts.get(e)  # pyright: ignore[reportArgumentType]
    if kind is int:
        return e, e  # pyright: ignore[reportReturnType]
    if type(e) is Binary:
        symbol, left, right = e
        if symbol not in _TOTAL:
            return _of_several(e, facts, live)
        if (first := value_range(left, facts, live)) is None or (second := value_range(right, facts, live)) is None:
            return None
        if first[0] is first[1] and second[0] is second[1]:
            value = _EXACT[symbol](first[0], second[0])
            return value, value
        return operation_range(e, [first, second], facts, live)
    match e:
        case Binary() | Select():
            return _of_several(e, facts, live)
        case int():
            return e, e
        case Variable() | CoreValue():
            return facts.get(e)
        case CoreItem():
            return facts.get(ANY_ITEM)
        case Unary(symbol, operand):
            first = value_range(operand, facts, live)
            return None if first is None else range_of(symbol, [first])
        case float() | Unknown():
            return None
        case _:
            assert_never(e)


def _of_several(e: Binary | Select, facts: Known, live: Values) -> Range | None:
    test, *operands = parts_of(e)
    first = value_range(test, facts, live)
    if first is None:
        return None
    ranges: list[Range] = [first]
    if isinstance(e, Binary) and e.symbol not in ("and", "or"):
        second = value_range(e.right, facts, live)
        return None if second is None else operation_range(e, [first, second], facts, live)
    for operand, holds in zip(operands, taken_where(e), strict=True):
        interval = None if isinstance(e, Select) else value_range(operand, facts, live)
        if interval is None and holds is not None:
            there, asked = _under(test, first, facts, live, holds)
            interval = value_range(operand, there, asked) if _any(asked) else (0, 0)
        if interval is None:
            return None
        ranges.append(interval)
    return operation_range(e, ranges, facts, live)


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


def _under(test: Expression, test_range: Range, facts: Known, live: Values, holds: bool) -> tuple[Known, Values]:
    """What is known where a condition holds, or does not, and for which entries that can be."""
    surely, possibly = _truth(test_range)
    live = live & ((possibly != 0) if holds else (surely == 0))
    there = narrowed(test, facts, holds=holds)
    for key, (low, high) in there.items():
        # No value is left: it is not computed, whatever the rest says.
        if low is not high and key in facts and _any(low > high):
            live = live & (low <= high)
            there[key] = _where(low <= high, low, facts[key][0]), _where(low <= high, high, facts[key][1])
    return there, live


def reached(test: Expression, facts: Known, *, holds: bool) -> Known | None:
    """What is known where a condition holds, or does not; None where that is nowhere."""
    test_range = value_range(test, facts)
    there, live = _under(test, test_range or (0, 1), facts, True, holds)
    return there if _any(live) else None


def operation_range(e: Expression, ranges: list[Range], facts: Known, live: Values = True) -> Range | None:
    """The values of an operation whose operands have these ranges, with what is known of sums and of divisors; None
    where it has none, as of a division by 0."""
    symbol = e.symbol if isinstance(e, Binary | Unary) else "select"
    if symbol in _PARTIAL:
        left, (low, high) = ranges
        if not _all(live):
            instead = 0 if symbol in SHIFTS else 1
            live_low = _where(live, low, instead)
            low, high = live_low, live_low if low is high else _where(live, high, instead)
        if (
            symbol in DIVISIONS
            and low is not high
            and _any((low <= 0) & (high >= 0))
            and is_nonzero(parts_of(e)[1], facts)
        ):
            below = _combined(symbol, left, (_least(low, -1), -1)) if _any(low < 0) else None
            above = _combined(symbol, left, (1, _most(high, 1))) if _any(high > 0) else None
            halves = [half for half in (below, above) if half is not None]
            return (_least(*(a for a, _ in halves)), _most(*(b for _, b in halves))) if halves else None
        ranges = [left, (low, high)]
    interval = range_of(symbol, ranges)
    if interval is None or interval[0] is interval[1] or symbol not in ("+", "-") or facts.get(_RELATED) != _YES:
        return interval
    terms = terms_of(e)
    # Whether a number is negative is what matters, and nobody relates many.
    if _all(interval[0] >= 0) or len(terms) > _MOST_TERMS:
        return interval
    if all(_are_numbers(limits) for limits in facts.values()):
        numbers = frozenset((key, limits, limits[0] is limits[1]) for key, limits in facts.items())
        low, high = _limits_by_sums_of_numbers(frozenset(terms.items()), numbers)
    else:
        low, high = _limits_by_sums(terms, facts)
    return interval[0] if low is None else _most(interval[0], low), interval[1] if high is None else _least(
        interval[1], -high
    )


# Choices and conditions ask the same again for each of their parts. That the limits of a fact are the same object is
# part of it: what is computed with such a fact is exact, too.
@lru_cache(maxsize=1 << 12)
def _limits_by_sums_of_numbers(
    terms: _Terms, numbers: frozenset[tuple[Key, Range, bool]]
) -> tuple[Values | None, Values | None]:
    return _limits_by_sums(dict(terms), {key: limits for key, limits, _ in numbers})


def _limits_by_sums(terms: Mapping[Expression, int], facts: Known) -> tuple[Values | None, Values | None]:
    """The least values of a sum and of its opposite, by what is known of sums."""
    sums = [(key, limits) for key, limits in facts.items() if isinstance(key, _LinearSum)]
    lowest = _Lowest(sums, facts, terms)
    return lowest.of(terms), lowest.of({term: -factor for term, factor in terms.items()})


# What is known of sums, of the variables of loops and under conditions, lies among what is known of variables.

# Whether any sum is known; `_NO` says that none is asked for.
_RELATED: tuple[Literal["related"], None] = ("related", None)
_YES, _NO = (1, 1), (0, 0)
_MOST_TERMS = 8
_FAR = 1 << 40


def learn_loop(facts: dict[Key, Range], variable: Variable, start: Expression, count: Expression) -> None:
    """A variable counts up from a start: its range, where those of start and count are known, and what it is less
    than, and not less than."""
    low, turns = value_range(start, facts), value_range(count, facts)
    if low is not None and turns is not None:
        facts[variable] = (low[0], _most(low[1] + turns[1] - 1, low[0]))
    for limit in _limits("max", start):
        _learn_sum(facts, terms_of(Binary("-", variable, limit)), 0, _FAR, variable)
    for limit in _limits("min", canonical(Binary("+", start, count))):
        _learn_sum(facts, terms_of(Binary("-", variable, limit)), -_FAR, -1, variable)


def _limits(symbol: str, e: Expression) -> list[Expression]:
    if isinstance(e, Binary) and e.symbol == symbol:
        return [*_limits(symbol, e.left), *_limits(symbol, e.right)]
    return [e]


def _learn_sum(
    facts: dict[Key, Range], terms: Mapping[Expression, int], low: int, high: int, owner: Variable | None = None
) -> None:
    """A sum of several parts, or a part that is no variable, is at least `low` and at most `high`."""
    factors = {term: factor for term, factor in terms.items() if factor and term != 1}
    if not factors or (all(isinstance(term, Variable) for term in factors) and len(factors) == 1):
        return
    if facts.get(_RELATED) == _NO:
        return
    share = gcd(*factors.values())
    offset = terms.get(1, 0)
    key = _LinearSum(frozenset((term, factor // share) for term, factor in factors.items()), owner)
    before = facts.get(key, (-_FAR, _FAR))
    low = -_FAR if low == -_FAR else -((offset - low) // share)
    high = _FAR if high == _FAR else (high - offset) // share
    facts[key] = (_most(before[0], low), _least(before[1], high))
    facts[_RELATED] = _YES


class _Lowest:
    """The least values of sums: by the ranges of their parts, or by one known sum in it and what is left.

    Parts of the sum that is `asked` for are smaller than it. The others come from known sums, and these may hold each
    other: their ranges are taken without what is known of sums. What is left is often the same.
    """

    def __init__(
        self, sums: Sequence[tuple[_LinearSum, Range]], facts: Known, asked: Container[Expression]
    ) -> None:  # fmt: skip
        self.sums = [(key, dict(key.terms), limits) for key, limits in sums]
        self.facts, self.unrelated, self.asked = facts, {**facts, _RELATED: _NO}, asked
        self.ranges: dict[Expression, Range | None] = {}
        self.variables: dict[Expression, frozenset[Variable]] = {}
        self.values: dict[tuple[_Terms, frozenset[Variable], int], Values | None] = {}

    def of(
        self, terms: Mapping[Expression, int], visited: frozenset[Variable] = frozenset(), steps: int = 3
    ) -> Values | None:  # fmt: skip
        factors = {term: factor for term, factor in terms.items() if factor}
        for term in factors.keys() - self.ranges.keys():
            self.ranges[term] = value_range(term, self.facts if term in self.asked else self.unrelated)
            self.variables[term] = frozenset(variables(term))
        key = frozenset(factors.items()), visited.union(*(self.variables[term] for term in factors)), steps
        if key not in self.values:
            self.values[key] = self._of(factors, key[1], steps)
        return self.values[key]

    def _of(self, factors: Mapping[Expression, int], visited: frozenset[Variable], steps: int) -> Values | None:
        best: Values | None = 0
        for term, factor in factors.items():
            interval = self.ranges[term]
            best = None if interval is None or best is None else best + factor * interval[0 if factor > 0 else 1]
        operations = any(isinstance(term, Unary | Binary | Select) for term in factors)
        if not steps or (len(factors.keys() - {1}) < 2 and not operations):
            return best
        for key, inner, (low, high) in self.sums:
            if key.owner is not None and key.owner not in visited:
                continue
            for times in {
                factors[term] // inner[term] for term in inner if term in factors and not factors[term] % inner[term]
            }:
                limit = low if times > 0 else high
                if abs(limit) == _FAR:
                    continue
                rest = {
                    term: factors.get(term, 0) - times * inner.get(term, 0) for term in factors.keys() | inner.keys()
                }
                least = self.of(rest, visited, steps - 1)
                if least is not None:
                    best = least + times * limit if best is None else _most(best, least + times * limit)
        return best


def is_nonzero(e: Expression, facts: Known) -> bool:
    """Whether a condition around says that it is not 0."""
    return _nonzero(terms_of(e)) in facts


def _nonzero(terms: Mapping[Expression, int]) -> tuple[Literal["nonzero"], _Terms]:
    return "nonzero", min(
        (frozenset((term, sign * factor) for term, factor in terms.items() if factor) for sign in (1, -1)),
        key=lambda signed: sorted(map(str, signed)),
    )


def range_of(symbol: str, ranges: list[Range]) -> Range | None:
    """The values of an operation on parts with these ranges; None where it has none, as of a division by 0."""
    if symbol == "~":
        low, high = ranges[0]
        return _exactly(~low) if low is high else (~high, ~low)
    if symbol in ("not", "select"):
        interval = _not(ranges[0]) if symbol == "not" else _select(*ranges)
        return _exactly(interval[0]) if all(low is high for low, high in ranges) else interval
    return _combined(symbol, ranges[0], ranges[1])


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


def _bit_count(interval: Range) -> int:
    ends = int(np.min(interval[0])), int(np.max(interval[1]))
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


def _truth(interval: Range) -> Range:
    """0 or 1: whether a value is surely, and possibly, not zero."""
    low, high = interval
    return ((low > 0) | (high < 0)) + 0, ((low != 0) | (high != 0)) + 0


def _not(interval: Range) -> Range:
    surely, possibly = _truth(interval)
    return 1 - possibly, 1 - surely


def _select(test: Range, chosen: Range, otherwise: Range) -> Range:
    surely, possibly = _truth(test)
    low = _where(surely, chosen[0], _where(possibly, _least(chosen[0], otherwise[0]), otherwise[0]))
    high = _where(surely, chosen[1], _where(possibly, _most(chosen[1], otherwise[1]), otherwise[1]))
    return low, high


def decided(e: Expression, facts: Known) -> bool | None:
    """Whether a condition is true, false, or not decided by what is known."""
    interval = value_range(e, facts)
    if interval is None:
        return None
    surely, possibly = _truth(interval)
    if _all(surely):
        return True
    return None if _any(possibly) else False


# A condition on so many values of its variables is tried with each.
_TRIED = 1 << 13


def always(e: Expression, facts: Known) -> bool:
    """Whether a condition holds for all values that its variables can have, each for itself; False where that is not
    known."""
    used = variables(e)
    if not used <= facts.keys():
        return False
    return decided(e, facts) is True or _always_by_sides(e, facts) or tried(e, facts)


def tried(e: Expression, facts: Known) -> bool:
    """Whether a condition holds for all values of its variables, tried one after another; False where they are too
    many, or not known."""
    used = variables(e)
    if not used <= facts.keys():
        return False
    ranges = {variable: (int(np.min(facts[variable][0])), int(np.max(facts[variable][1]))) for variable in used}
    if prod(high - low + 1 for low, high in ranges.values()) > _TRIED:
        return False
    axes = np.ix_(*(np.arange(low, high + 1) for low, high in ranges.values()))
    return bool(decided(e, {variable: (values, values) for variable, values in zip(ranges, axes, strict=True)}))


def _always_by_sides(e: Expression, facts: Known) -> bool:
    match e:
        case Binary(">=" | ">" as symbol, a, b) | Binary("<=" | "<" as symbol, b, a):
            interval = close_range(Binary("-", a, b), facts)
            return interval is not None and _all(interval[0] >= (1 if symbol in "<>" else 0))
        case _:
            return False


def follows(e: Expression, conditions: Sequence[Expression], facts: Known) -> bool:
    """Whether a condition holds wherever all the given ones do, for all values that variables can have; False where
    that is not known."""
    there = where_all_hold(conditions, facts)
    if always(e, there):
        return True
    # What conditions say of several variables together shows where each of their values is tried.
    for condition in conditions:
        e = Binary("or", Unary("not", condition), e)
    return bool(conditions) and always(e, there)


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
            return Select(*(placed(operand, bound) for operand in e))
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
    texts = [_python(operand, names) for operand in parts_of(e)]
    if any(text is None for text in texts):
        return None
    match e:
        case int():
            return str(e)
        case Variable():
            return names.get(e)
        case Unary(symbol):
            return f"({symbol} {texts[0]})"
        case Select():
            return f"({texts[1]} if {texts[0]} else {texts[2]})"
        case Binary("min" | "max" as symbol):
            return f"{symbol}({texts[0]}, {texts[1]})"
        case Binary("truncdiv" | "truncmod" as symbol):
            return f"{'quotient' if symbol == 'truncdiv' else 'rest'}({texts[0]}, {texts[1]})"
        case Binary(symbol):
            return f"({texts[0]} {symbol} {texts[1]})"
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
        return (
            {variable: factor * scale.get(None, 0) for variable, factor in terms.items()}
            if scale.keys() <= {None}
            else None
        )
    sign = 1 if e.symbol == "+" else -1
    return {variable: left.get(variable, 0) + sign * right.get(variable, 0) for variable in left.keys() | right.keys()}


def canonical(e: Expression) -> Expression:
    """A sum in one of the ways to write it: functions simplify what they have in common apart."""
    terms = {term: factor for term, factor in terms_of(e).items() if factor}
    total: Expression = terms.pop(1, 0)
    for term in sorted(terms, key=lambda term: (isinstance(term, Variable), str(term))):
        scaled = term if terms[term] == 1 else Binary("*", term, terms[term])
        total = scaled if total == 0 else Binary("+", total, scaled)
    return total


def folded(e: Expression) -> Expression:
    """An expression in one of the ways to write it: operations on numbers are computed, sums are canonical."""
    match e:
        case Binary(symbol, left, right):
            rebuilt: Expression = Binary(symbol, folded(left), folded(right))
        case Unary(symbol, operand):
            rebuilt = Unary(symbol, folded(operand))
        case Select():
            rebuilt = Select(*(folded(operand) for operand in e))
            if isinstance(rebuilt.condition, int):
                return rebuilt.chosen if rebuilt.condition else rebuilt.other
        case _:
            return e
    if all(isinstance(operand, int) for operand in parts_of(rebuilt)):
        interval = value_range(rebuilt, {})
        return rebuilt if interval is None else int(interval[0])
    return canonical(rebuilt) if isinstance(rebuilt, Binary) and rebuilt.symbol in ("+", "-", "*") else rebuilt


def terms_of(e: Expression) -> dict[Expression, int]:
    """The factor of each part of a sum, that of 1 for its constant."""
    match e:
        case int():
            return {1: e}
        case Binary("+" | "-" as symbol):
            left, right = terms_of(e.left), terms_of(e.right)
            sign = 1 if symbol == "+" else -1
            return {term: left.get(term, 0) + sign * right.get(term, 0) for term in {**left, **right}}
        case Binary("*", int(scale), rest) | Binary("*", rest, int(scale)):
            return {term: factor * scale for term, factor in terms_of(rest).items()}
        case _:
            return {e: 1}


def close_range(e: Expression, facts: Known) -> Range | None:
    """As :func:`value_range`, closer for sums with a minimum, a maximum or a choice in them: each of its sides is
    looked at alone, so that what the sum takes away elsewhere cancels: n - max(n - 2, 0) is at least min(2, n)."""
    interval = value_range(e, facts)
    sides = _sides(e)
    if interval is None or len(sides) == 1:
        return interval
    ranges = [value_range(canonical(side), facts) for side in sides]
    if any(side_range is None for side_range in ranges):
        return interval
    low = _least(*(side_range[0] for side_range in ranges if side_range is not None))
    high = _most(*(side_range[1] for side_range in ranges if side_range is not None))
    return _most(interval[0], low), _least(interval[1], high)


# An expression has more sides than this only where nobody reads it any more.
_MOST_SIDES = 16


def _sides(e: Expression) -> list[Expression]:
    """Sums without minima, maxima and choices, of which an expression is one or the other; itself where they are too
    many, or where it is no sum."""
    combined: list[Expression]
    match e:
        case Binary("min" | "max", a, b) | Select(_, a, b):
            combined = [*_sides(a), *_sides(b)]
        case Binary("+" | "-" | "*" as symbol, a, b):
            combined = [Binary(symbol, first, second) for first in _sides(a) for second in _sides(b)]
        case _:
            return [e]
    return combined if len(combined) <= _MOST_SIDES else [e]


def narrowed(test: Expression, facts: Known, *, holds: bool) -> dict[Key, Range]:
    """The ranges where a condition holds, or where it does not."""
    narrower = dict(facts)
    if isinstance(test, Unary) and test.symbol == "not":
        return narrowed(test.operand, facts, holds=not holds)
    if isinstance(test, Variable):
        test = Binary("!=", test, 0)
    if not isinstance(test, Binary):
        return narrower
    symbol: str = test.symbol
    # Bits that two numbers have in common are bits of each.
    if symbol in (("and", "&") if holds else ("or", "|")):
        return narrowed(test.right, narrowed(test.left, facts, holds=holds), holds=holds)
    if symbol not in COMPARISONS:
        return narrower if symbol in _CONDITIONS else narrowed(Binary("!=", test, 0), facts, holds=holds)
    if not holds:
        symbol = _OPPOSITE[symbol]
    for variable, opposite, sense in ((test.left, test.right, symbol), (test.right, test.left, _MIRRORED[symbol])):
        limit = value_range(opposite, facts)
        if not isinstance(variable, Variable) or variable not in narrower or limit is None:
            continue
        low, high = narrower[variable]
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
        narrower[variable] = (low, high)
    # What depends on sizes is a number for each core: it counts like a variable that has its value already.
    _learn_difference(narrower, symbol, terms_of(Binary("-", test.left, test.right)))
    difference = affine(Binary("-", _named(test.left, narrower), _named(test.right, narrower)))
    if difference is not None and symbol in _BOUNDS:
        for sign, limit in _BOUNDS[symbol]:
            _bound(narrower, {variable: sign * factor for variable, factor in difference.items()}, limit)
    return narrower


def where_all_hold(tests: Sequence[Expression], facts: Known) -> Known:
    """The ranges where several conditions hold."""
    for test in tests:
        facts = narrowed(test, facts, holds=True)
    return facts


def _learn_difference(facts: dict[Key, Range], symbol: str, terms: Mapping[Expression, int]) -> None:
    if symbol == "!=":
        facts[_nonzero(terms)] = (1, 1)
    for sign, limit in _BOUNDS.get(symbol, ()):
        low, high = (-_FAR, limit) if sign > 0 else (-limit, _FAR)
        _learn_sum(facts, terms, low, high)


def _named(e: Expression, facts: dict[Key, Range]) -> Expression:
    """The expression with a variable for each part that is no sum and has exactly one value."""
    match e:
        case Binary("+" | "-" | "*" as symbol, left, right):
            return Binary(symbol, _named(left, facts), _named(right, facts))
        case int() | float() | Variable():
            return e
        case _:
            interval = value_range(e, facts)
    if interval is None or interval[0] is not interval[1]:
        return e
    name = Variable(-1 - len(facts), show(e))
    facts[name] = interval
    return name


def _bound(facts: dict[Key, Range], terms: dict[Variable | None, int], limit: int) -> None:
    """Narrow the variables that have no one value, where a sum is at most `limit`."""
    for variable, factor in terms.items():
        if variable is None or not factor or variable not in facts or facts[variable][0] is facts[variable][1]:
            continue
        least: Values = terms.get(None, 0)
        for other_variable, scale in terms.items():
            if other_variable is None or other_variable is variable:
                continue
            if other_variable not in facts:
                return
            least = least + scale * facts[other_variable][0 if scale > 0 else 1]
        low, high = facts[variable]
        # factor * one <= limit - least, rounded to where the product is still small enough
        if factor > 0:
            facts[variable] = (low, _least(high, (limit - least) // factor))
        else:
            facts[variable] = (_most(low, -((limit - least) // -factor)), high)


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
