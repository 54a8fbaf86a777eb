"""Index arithmetic as the kernels compute it: in 32-bit words, each signed or unsigned.

An index is a whole number within int32, as in TIR. What is never negative is a ``uint32_t`` of C++, the rest an
``int32_t``. Sums, differences, products and bits are right in either, modulo 2^32; divisions, comparisons, the lesser
of two and shifts to the right look at the number itself, so that their operands are converted to what holds it.

The emitter prints these words as C++ and the interpreter as Python that computes the same, wrapping included: a wrong
choice of a type gives another result in both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from ttexplore.errors import Unsupported
from ttexplore.ir.arithmetic.bounds import MAX_SIZE
from ttexplore.ir.arithmetic.index import (
    COMPARISONS,
    INT32_LEAST,
    INT32_MOST,
    SHIFTS,
    Binary,
    CoreItem,
    CoreValue,
    Expression,
    Key,
    Known,
    Range,
    Select,
    Unary,
    Unknown,
    Variable,
    learn_loop,
    operation_range,
    parts_of,
    reached,
    show,
    taken_where,
    truncated_quotient,
    truncated_rest,
    variables,
)
from ttexplore.ir.kernel import Bind, Body, Call, Loop, SourceLocation, walk
from ttexplore.record import Span

# What holds a word. A constant takes the type of what it meets.
Type = Literal["uint32", "int32", "bool", "constant"]

_MASK = (1 << 32) - 1
# The least and the greatest number.
_Numbers = tuple[int, int]
# Counts, starts and numbers of work items, which the host gives to the cores.
_FROM_HOST: _Numbers = (0, INT32_MOST)


@dataclass(frozen=True, slots=True)
class Word:
    """An operation on words: its symbol, the type of its result, its operands, and the range of the number that it
    stands for. ``convert`` changes the type alone; a constant has its number as range, and no operands."""

    symbol: str
    type: Type
    parts: tuple[Word, ...]
    low: int
    high: int
    variable: Variable | None = None

    @property
    def is_negative(self) -> bool:
        """Whether the number that it stands for can be negative."""
        return self.low < 0


def _constant(value: int, type: Type = "constant") -> Word:
    return Word("constant", type, (), value, value)


def _converted(word: Word, type: Type) -> Word:
    if word.type == type:
        return word
    if word.symbol == "constant" and not (word.low < 0 and type == "uint32"):
        return _constant(word.low, type)
    return Word("convert", type, (word,), word.low, word.high)


def as_unsigned(word: Word) -> Word:
    """The word as what the SDK's functions take: constants are that in C++ already."""
    return word if word.type == "constant" and not word.is_negative else _converted(word, "uint32")


def as_signed(word: Word) -> Word:
    return word if word.type == "constant" else _converted(word, "int32")


def _held(word: Word, type: Type) -> Word:
    """The word as the value of a variable."""
    return word if word.type == "constant" else _converted(word, type)


class Words:
    """The words of one kernel's expressions, given its statements in order: each loop and binding tells the range, and
    so the type, of its variable.

    A word is no form that an expression could have from the start: which type it has depends on the ranges of the
    variables around it, and the verifier reads the same expression with other ranges, and with sizes in their place.
    """

    def __init__(
        self, sizes: Sequence[Variable] = (), blocks: Mapping[Variable, Expression] | None = None,
        bound_sizes: Collection[Variable] = (),
    ) -> None:  # fmt: skip
        """`bound_sizes` are the variables that the kernel binds to sizes which the host gives."""
        self.known: dict[Key, Range] = {}
        self.types: dict[Variable, Type] = {}
        self.blocks, self.bound_sizes = blocks or {}, bound_sizes
        for size in sizes:
            self._declare(size, (1, MAX_SIZE - 1))

    def _declare(self, variable: Variable, bounds: _Numbers, *, signed: bool = False) -> Type:
        self.known[variable] = bounds
        self.types[variable] = "int32" if signed or bounds[0] < 0 else "uint32"
        return self.types[variable]

    # Statements

    def declare(self, body: Body) -> None:
        """Learn the variables of a whole body."""
        for statement in walk(body):
            if isinstance(statement, Loop):
                self.loop(statement)
            elif isinstance(statement, Bind):
                self.bind(statement)
            elif isinstance(statement, Call):
                self.result(statement)

    def result(self, call: Call) -> Type | None:
        """The type of the number that an operation gives; None of one that gives none."""
        return None if call.result is None else self._declare(call.result, (call.least, call.most))

    def loop(self, loop: Loop) -> tuple[Word, Word, Type]:
        """Where a loop starts and ends, and the type of its variable. One that may end before 0 counts in int32."""
        low, high = self.word(loop.low, loop.place), self.word(loop.end, loop.place)
        signed = low.is_negative or high.is_negative
        last = max(high.high - 1, low.low)
        type = self._declare(loop.variable, (low.low, last), signed=signed)
        learn_loop(self.known, loop.variable, loop.low, loop.extent)
        return _held(low, type), _held(high, type), type

    def bind(self, bind: Bind) -> tuple[Word | None, Type]:
        """The value of a binding and the type of its variable; None for a value that the host gives."""
        match bind.value:
            case CoreValue() | CoreItem():
                is_size = bind.variable in self.bound_sizes
                return None, self._declare(bind.variable, (1, MAX_SIZE - 1) if is_size else _FROM_HOST)
            case value:
                word = self.word(value, bind.place)
        bounds: _Numbers = (word.low, word.high)
        if bind.variable in self.blocks:
            bounds = self._block(self.blocks[bind.variable])
        if word.type == "bool":
            self.known[bind.variable], self.types[bind.variable] = bounds, "bool"
            return word, "bool"
        type = self._declare(bind.variable, bounds)
        return _held(word, type), type

    def _block(self, count: Expression) -> _Numbers:
        """The range of a block index. A kernel that names no size does not know how many blocks there are."""
        computable = variables(count) <= self.types.keys()
        return (0, max(self.word(count).high - 1, 0)) if computable else _FROM_HOST

    # Expressions

    def word(self, expression: Expression, site: SourceLocation | None = None) -> Word:
        """An expression as a word that has its number modulo 2^32. Raises Unsupported for what is none."""
        try:
            return self._word(expression, expression, self.known)
        except Unsupported as error:
            raise error.at(None if site is None else site.span) from None

    def unsigned(self, expression: Expression, site: SourceLocation | None = None) -> Word:
        """The word that the SDK's functions take."""
        return as_unsigned(self.word(expression, site))

    def signed(self, expression: Expression, site: SourceLocation | None = None) -> Word:
        return as_signed(self.word(expression, site))

    def condition(self, expression: Expression, site: SourceLocation | None = None) -> Word:
        return _truth(self.word(expression, site))

    def _word(self, e: Expression, root: Expression, facts: Known) -> Word:
        """`facts` is what holds where the expression is computed: C++ computes what a condition lets it, too."""
        match e:
            case int():
                return _constant(e)
            case Variable() if e in self.types:
                low, high = facts[e]
                return Word("variable", self.types[e], (), int(low), int(high), e)
            case Binary(symbol) | Unary(symbol):
                pass
            case Select():
                symbol = "select"
            case Variable() | float() | CoreValue() | CoreItem() | Unknown():
                raise _no_text(root)
            case _:
                assert_never(e)
        test, *operands = parts_of(e)
        words = [self._word(test, root, facts)]
        for operand, holds in zip(operands, taken_where(e), strict=True):
            there = facts if holds is None else reached(test, facts, holds=holds)
            # What no value comes to is never computed.
            words.append(_constant(0) if there is None else self._word(operand, root, there))
        interval = operation_range(e, [(word.low, word.high) for word in words], facts)
        if interval is None:
            raise _without_value(symbol, e, words)
        low, high = int(interval[0]), int(interval[1])
        if symbol == "<<" and not INT32_LEAST <= low <= high <= INT32_MOST:
            low, high = INT32_LEAST, INT32_MOST
        return _operation(symbol, words, (low, high))


def _no_text(expression: Expression) -> Unsupported:
    return Unsupported(
        "L012",
        f"the expression {show(expression)} has no C++ form",
        hint="index with + - * // and % of integers, T.min, T.max, T.clamp, T.if_then_else, comparisons and bits",
    )


def _without_value(symbol: str, e: Expression, words: list[Word]) -> Unsupported:
    if symbol in SHIFTS:
        return no_shift(show(e), words[1].low, words[1].high, None)
    return no_divisor(show(e), show(parts_of(e)[1]), None)


def no_shift(text: str, low: int, high: int, span: Span | None) -> Unsupported:
    return Unsupported("L015", f"{text} shifts by {low} to {high} bits", hint="shift by 0 to 31 bits", span=span)


def no_divisor(text: str, divisor: str, span: Span | None) -> Unsupported:
    return Unsupported(
        "L015", f"{text} divides by {divisor}, which can be 0", hint="divide by a positive number", span=span
    )


def not_held(dtype: str, number: int | None, span: Span | None) -> Unsupported:
    """What is told of a number; of one of the line, where it is not known which."""
    hint = "keep indices, and what they are computed from, within 31 bits: reduce before you multiply"
    which = "a number of this line" if number is None else f"the number {number}"
    return Unsupported("L015", f"{dtype} does not hold {which}", hint=hint, span=span)


def _truth(word: Word) -> Word:
    if word.type == "bool":
        return word
    if word.symbol == "constant":
        return _constant(int(word.low != 0), "bool")
    return Word("!=", "bool", (word, _constant(0)), 0, 1)


def _as_number(word: Word) -> Word:
    return _converted(word, "uint32") if word.type == "bool" else word


def _operation(symbol: str, words: list[Word], bounds: _Numbers) -> Word:
    """The word of an operation on words."""
    low, high = bounds
    if all(word.symbol == "constant" for word in words) and low == high:
        return _constant(low)
    if symbol == "not":
        return Word(symbol, "bool", (_truth(words[0]),), low, high)
    if symbol in ("and", "or"):
        return Word(symbol, "bool", tuple(map(_truth, words)), low, high)
    if symbol == "select":
        test, (chosen, otherwise) = _truth(words[0]), _alike(*map(_as_number, words[1:]))
        if test.symbol == "constant":
            return chosen if test.low else otherwise
        return Word(symbol, chosen.type, (test, chosen, otherwise), low, high)
    numbers = [_as_number(word) for word in words]
    if symbol == "~":
        return Word(symbol, numbers[0].type, (numbers[0],), low, high)
    left, right = numbers
    match symbol:
        case "+" | "-" | "*" | "&" | "|" | "^":
            if "uint32" in (left.type, right.type):
                return Word(symbol, "uint32", (left, right), low, high)
            if symbol in ("+", "-", "*") and (low < INT32_LEAST or high > INT32_MOST):
                # Unsigned numbers wrap around; of signed ones C++ does not say what becomes.
                return Word(symbol, "uint32", (_converted(left, "uint32"), right), low, high)
            return Word(symbol, "int32", (left, right), low, high)
        case "<<":
            # A shift of a negative number is not defined in C++17.
            return Word(symbol, "uint32", (_converted(left, "uint32"), as_unsigned(right)), low, high)
        case ">>":
            return _shifted_right(left, as_unsigned(right), bounds)
        case "min" | "max":
            return _extreme(symbol, left, right, bounds)
        case "//" | "%" | "truncdiv" | "truncmod":
            return _divided(symbol, left, right, bounds)
        case _:
            assert symbol in COMPARISONS, symbol
            # Compilers warn of some comparisons that are always false.
            if low == high:
                return _constant(low, "bool")
            if symbol in ("==", "!=") and (_differ_in_a_bit(left, right) or _differ_in_a_bit(right, left)):
                return _constant(int(symbol == "!="), "bool")
            return Word(symbol, "bool", _comparable(left, right), low, high)


def _differ_in_a_bit(word: Word, number: Word) -> bool:
    """Whether a mask fixes a bit of a word that a constant has otherwise, as in ``(x & 36) == 1``."""
    while word.symbol == "convert":
        word = word.parts[0]
    if word.symbol not in ("&", "|") or number.symbol != "constant" or number.low < 0:
        return False
    masks = [operand.low for operand in word.parts if operand.symbol == "constant" and operand.low >= 0]
    return any(number.low & ~mask if word.symbol == "&" else mask & ~number.low for mask in masks)


def _alike(left: Word, right: Word) -> tuple[Word, Word]:
    """Two words of one type that has the bits of both."""
    types = {left.type, right.type} - {"constant"}
    if types == {"uint32"} or len(types) > 1:
        return _converted(left, "uint32"), _converted(right, "uint32")
    if types == {"int32"} or left.is_negative or right.is_negative:
        return _converted(left, "int32"), _converted(right, "int32")
    return _converted(left, "uint32"), _converted(right, "uint32")


def _comparable(left: Word, right: Word) -> tuple[Word, Word]:
    """Two words of one type that has the numbers of both."""
    if left.is_negative or right.is_negative or {left.type, right.type} <= {"int32", "constant"}:
        return as_signed(left), as_signed(right)
    return as_unsigned(left), as_unsigned(right)


def _shifted_right(left: Word, right: Word, bounds: _Numbers) -> Word:
    left = as_signed(left) if left.is_negative else _converted(left, "uint32")
    return Word(">>", "int32" if left.is_negative else "uint32", (left, right), *bounds)


def _extreme(symbol: str, left: Word, right: Word, bounds: _Numbers) -> Word:
    simple = all(operand.symbol in ("variable", "constant") for operand in (left, right))
    if simple and "uint32" in (left.type, right.type) and not (left.is_negative or right.is_negative):
        return Word(symbol, "uint32", (as_unsigned(left), as_unsigned(right)), *bounds)
    # Of what is long, or can be negative, each part is computed once: by a function.
    return Word(symbol, "int32", (as_signed(left), as_signed(right)), *bounds)


def _divided(symbol: str, left: Word, right: Word, bounds: _Numbers) -> Word:
    if not (left.is_negative or right.is_negative):
        plain = "/" if symbol in ("//", "truncdiv") else "%"
        return Word(plain, "uint32", (_converted(left, "uint32"), as_unsigned(right)), *bounds)
    if symbol in ("truncdiv", "truncmod"):
        plain = "/" if symbol == "truncdiv" else "%"
        return Word(plain, "int32", (_converted(left, "int32"), as_signed(right)), *bounds)
    return Word(_FLOORED[symbol], "int32", (as_signed(left), as_signed(right)), *bounds)


_FLOORED = {"//": "floor_div", "%": "floor_mod"}

# C++

# How tightly each operator of C++ binds, loosest first; what stands alone binds tightest.
CHOICE, RELATION, SUM, PRODUCT, UNARY, ALONE = 0, 8, 9, 10, 11, 12
_STRENGTH = {
    "select": CHOICE, "or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "~": UNARY, "not": UNARY,
    "convert": ALONE,
}  # fmt: skip
_CPP_SYMBOLS = {"or": "||", "and": "&&"}
CPP_TYPES: dict[Type, str] = {"uint32": "uint32_t", "int32": "int32_t", "bool": "bool", "constant": "uint32_t"}
# The functions of our own (ops/functions.py) that the words of these symbols call.
CALLED = {"floor_div": "floor_div", "floor_mod": "floor_mod", "min": "lesser", "max": "greater"}
# Compilers warn of these without parentheses around an operator inside.
_STRICT = frozenset({"|", "^", "&", "<<", ">>"})


def functions_of(word: Word) -> Iterator[str]:
    """The functions of our own that the C++ text of a word calls."""
    if _calls(word):
        yield CALLED[word.symbol]
    for operand in word.parts:
        if operand.parts:
            yield from functions_of(operand)


def _calls(word: Word) -> bool:
    return word.symbol in CALLED and word.type == "int32"


def cpp(word: Word, name: Callable[[Variable], str], around: int = 0) -> str:
    """The C++ text of a word, with the parentheses that it needs between operators that bind as tightly as `around`."""
    symbol, operands = word.symbol, word.parts
    if symbol == "constant":
        return _literal(word.low, word.type)
    if word.variable is not None:
        return name(word.variable)
    if symbol == "convert":
        return f"static_cast<{CPP_TYPES[word.type]}>({cpp(operands[0], name)})"
    if _calls(word):
        # Its parameters are int32_t: they convert what they are given.
        unconverted = [operand.parts[0] if operand.symbol == "convert" else operand for operand in operands]
        return f"{CALLED[symbol]}({', '.join(cpp(operand, name) for operand in unconverted)})"
    if symbol in ("min", "max"):
        left, right = (cpp(operand, name, SUM) for operand in operands)
        text, strength = f"{left} {'>' if symbol == 'max' else '<'} {right} ? {left} : {right}", CHOICE
    elif symbol == "select":
        test, chosen, otherwise = (cpp(operand, name, 1) for operand in operands)
        text, strength = f"{test} ? {chosen} : {otherwise}", CHOICE
    elif symbol in ("not", "~"):
        strength = UNARY
        text = f"{'!' if symbol == 'not' else '~'}{cpp(operands[0], name, UNARY)}"
    else:
        strength = _STRENGTH[symbol]
        inner = UNARY if symbol in _STRICT else strength
        left = cpp(operands[0], name, _same(symbol, operands[0]) or inner)
        right = cpp(operands[1], name, 3 if symbol == "or" else max(inner, strength + 1))
        text = f"{left} {_CPP_SYMBOLS.get(symbol, symbol)} {right}"
    return f"({text})" if strength < around else text


def _same(symbol: str, operand: Word) -> int:
    """How tightly the left operand of an operator must bind where that is less than elsewhere: the same operator, of
    which the order from left to right is clear."""
    if symbol in ("|", "^", "&", "or") and operand.symbol == symbol:
        return _STRENGTH[symbol]
    return 3 if symbol == "or" else 0


def _literal(value: int, type: Type) -> str:
    if type == "bool":
        return "true" if value else "false"
    if value == INT32_LEAST:
        return "INT32_MIN"
    return f"{value}u" if type == "uint32" else str(value)


# Python


def python(word: Word, name: Callable[[Variable], str]) -> str:
    """Python that computes the word as C++ does: an int for each word, which wraps around as its type does."""
    symbol, operands = word.symbol, word.parts
    if symbol == "constant":
        return str(word.low)
    if word.variable is not None:
        return name(word.variable)
    texts = [python(operand, name) for operand in operands]
    match symbol:
        case "convert":
            text = f"int({texts[0]})" if operands[0].type == "bool" else texts[0]
            return _wrapped(text, word.type)
        case "select":
            return f"({texts[1]} if {texts[0]} else {texts[2]})"
        case "not":
            return f"(not {texts[0]})"
        case "~":
            return _wrapped(f"~{texts[0]}", word.type)
        case "min" | "max":
            return f"{symbol}({', '.join(texts)})"
        case "floor_div":
            return _wrapped(f"({texts[0]} // {texts[1]})", word.type)
        case "floor_mod":
            return f"({texts[0]} % {texts[1]})"
        case "/" | "%" if word.type == "int32":
            return f"truncated_{'quotient' if symbol == '/' else 'rest'}({', '.join(texts)})"
        case "/":
            return f"({texts[0]} // {texts[1]})"
        case "+" | "-" | "*" | "&" | "|" | "^" | "<<":
            return _wrapped(f"({texts[0]} {symbol} {texts[1]})", word.type)
        case _:
            return f"({texts[0]} {symbol} {texts[1]})"


def _wrapped(text: str, type: Type) -> str:
    return f"({text} & {_MASK})" if type == "uint32" else f"int32_word({text})"


def int32_word(value: int) -> int:
    """The number that the lowest 32 bits are as an int32."""
    return (value + (1 << 31) & _MASK) - (1 << 31)


# What the text of `python` calls.
PYTHON_FUNCTIONS: dict[str, Callable[..., object]] = {
    function.__name__: function for function in (int32_word, truncated_quotient, truncated_rest)
}
