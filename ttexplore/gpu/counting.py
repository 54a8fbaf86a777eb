"""How often each statement of TileLang's generated text is executed, found by reading its loops and branches.

Its loops have plain bounds: numbers and block indices. The text is read as blocks and statements; loops on which no
other bound or condition depends count their statements at once, of others each iteration is looked at. What the text
alone does not decide is said: a number is then not known, or the most that it can be.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ttexplore.record import Line

# With more turns than this, loops are no longer gone through one by one.
_MOST_TURNS = 300_000
_FOR = re.compile(r"for \([\w ]*?\b(\w+) = (.+?); \1 < (.+?); (?:\+\+\1|\1\+\+|\1 \+= (.+))\)")
_IF = re.compile(r"(else )?if \((.*)\)", re.DOTALL)
_DEFINITION = re.compile(r"(?:static |constexpr |const )*(?:auto|u?int\d*(?:_t)?|bool|size_t) (\w+) = (.+)", re.DOTALL)
_ASSIGNED = re.compile(r"(?:\+\+|--)?(\w+)(?: (?:[-+*/%&|^]|<<|>>)?= .+|\+\+|--)?", re.DOTALL)
_THREADS = re.compile(r"\(?threadIdx_x < (\d+)\)?")
_ELECTED = re.compile(r"tl::tl_shuffle_elect<(\d+)>\(\)")
# C++ to Python, for what bounds are made of.
_WORDS = (
    (re.compile(r"\(?\(int\)((?:block|thread)Idx)\.([xyz])\)?"), r"\1_\2"),
    (re.compile(r"static_cast<u?int\d+_t>"), ""),
    (re.compile(r"\b(0x[0-9a-fA-F]+|\d+)[uU]\b"), r"\1"),
    (re.compile("&&"), " and "),
    (re.compile(r"\|\|"), " or "),
    (re.compile(r"!(?!=)"), " not "),
    (re.compile("/"), "//"),
)


def _quotient(one: int, other: int) -> int:
    """C++ rounds towards zero."""
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _shift(one: int, other: int) -> int:
    return one << other if other >= 0 else one >> -other


_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda one, other: one - _quotient(one, other) * other,
    ast.LShift: _shift,
    ast.RShift: lambda one, other: _shift(one, -other),
    ast.BitAnd: lambda one, other: one & other,
    ast.BitOr: lambda one, other: one | other,
    ast.BitXor: lambda one, other: one ^ other,
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"min": min, "max": max}


class _Unknown(Exception):
    """A text does not say what a value is."""


@dataclass(frozen=True)
class _Expression:
    """A bound or a condition; `tree` is None for one that is not made of whole numbers."""

    tree: ast.expr | None

    @functools.cached_property
    def names(self) -> frozenset[str]:
        if self.tree is None:
            return frozenset()
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))


@functools.lru_cache(maxsize=4096)
def _expression(text: str) -> _Expression:
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    try:
        return _Expression(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return _Expression(None)


def _value(node: ast.expr | None, known: Mapping[str, int]) -> int:
    """The value of an expression. Raises _Unknown."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            if name in known:
                return known[name]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, known)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, known)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            try:
                return _OPERATORS[type(op)](_value(left, known), _value(right, known))
            except (ZeroDivisionError, ValueError, OverflowError) as error:
                raise _Unknown from error
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, known) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, known) for part in parts)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(left, known), _value(right, known))
        case _:
            pass
    raise _Unknown


@dataclass(frozen=True)
class Statement:
    """A statement: the number of its first line, from 1, its text on one line, and the bytes that it moves."""

    line: int
    text: str
    amount: _Expression | None = None

    @functools.cached_property
    def defined(self) -> tuple[str, _Expression] | None:
        found = _DEFINITION.fullmatch(self.text)
        return (found[1], _expression(found[2])) if found else None

    @functools.cached_property
    def assigned(self) -> str | None:
        found = _ASSIGNED.fullmatch(self.text)
        return found[1] if found else None


@dataclass(frozen=True)
class SourceBlock:
    """Statements in braces, below a header: a loop, a branch, a function, or nothing."""

    line: int
    header: str
    inner: list[Statement | SourceBlock] = field(default_factory=list["Statement | SourceBlock"])

    @functools.cached_property
    def loop(self) -> tuple[str, _Expression, _Expression, _Expression] | None:
        found = _FOR.fullmatch(self.header)
        return (found[1], _expression(found[2]), _expression(found[3]), _expression(found[4] or "1")) if found else None

    @functools.cached_property
    def condition(self) -> _Expression | None:
        found = _IF.fullmatch(self.header)
        return _expression(found[2]) if found else None

    @functools.cached_property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(_statements(self.inner))

    @functools.cached_property
    def deciding(self) -> frozenset[str]:
        """The names on which bounds, conditions and amounts inside depend."""
        names: set[str] = set()
        for block in _blocks(self.inner):
            parts = block.loop[1:] if block.loop else (block.condition,) if block.condition else ()
            names |= {name for part in parts for name in part.names}
        definitions = [one.defined for one in self.statements if one.defined]
        names |= {name for one in self.statements if one.amount for name in one.amount.names}
        while True:
            more = {name for key, value in definitions if key in names for name in value.names} - names
            if not more:
                return frozenset(names)
            names |= more


def _statements(inner: Iterable[Statement | SourceBlock]) -> Iterator[Statement]:
    for one in inner:
        if isinstance(one, Statement):
            yield one
        else:
            yield from _statements(one.inner)


def _blocks(inner: Iterable[Statement | SourceBlock]) -> Iterator[SourceBlock]:
    for one in inner:
        if isinstance(one, SourceBlock):
            yield one
            yield from _blocks(one.inner)


def read_text(lines: Iterable[Line], amount: Callable[[str], str | None]) -> SourceBlock:
    """The blocks of a C++ text. `amount` gives the bytes that a statement moves, as C++, None for others."""
    top = SourceBlock(0, "")
    around, pending, first, depth = [top], "", 0, 0

    def end() -> None:
        nonlocal pending
        text, pending = " ".join(pending.split()), ""
        if text:
            moved = amount(text)
            around[-1].inner.append(Statement(first, text, None if moved is None else _expression(moved)))

    for number, line in enumerate(lines, 1):
        text = re.sub(r"/\*.*?\*/", "", line.text)
        text = text.partition("//")[0]
        if text.lstrip().startswith("#"):
            continue
        for character in text:
            if not pending.strip() and not character.isspace():
                first = number
            depth += (character == "(") - (character == ")")
            if depth == 0 and character == "{":
                header, pending = " ".join(pending.split()), ""
                block = SourceBlock(first or number, header)
                around[-1].inner.append(block)
                around.append(block)
            elif depth == 0 and character == "}":
                end()
                if len(around) > 1:
                    around.pop()
            elif depth == 0 and character == ";":
                end()
            else:
                pending += character
        pending += " "
    end()
    return top


@dataclass(frozen=True, slots=True)
class StatementCount:
    """How often a statement is executed: `times` by a block of threads, `threads` by all of its threads, and the bytes
    that it moves; None if the text does not say. If `most`, it is at most that often."""

    times: int | None = 0
    threads: int | None = 0
    bytes: int | None = 0
    most: bool = False

    def __add__(self, other: StatementCount) -> StatementCount:
        return StatementCount(
            _sum(self.times, other.times), _sum(self.threads, other.threads), _sum(self.bytes, other.bytes),
            self.most or other.most,
        )  # fmt: skip


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class _Repetitions:
    """What is known where a statement stands: how often it is reached, and by how many threads."""

    times: int | None
    threads: int
    most: bool = False


@dataclass
class _StatementCounting:
    found: dict[int, StatementCount] = field(default_factory=dict[int, StatementCount])
    turns: int = 0

    def walk(self, inner: Iterable[Statement | SourceBlock], known: dict[str, int], turn: _Repetitions) -> None:
        # Of a chain of branches: whether one was taken, None if that is not known, and the threads that are left.
        taken: bool | None = False
        left = turn.threads
        for one in inner:
            if isinstance(one, Statement):
                self.statement(one, known, turn)
                continue
            if one.loop is not None:
                self.loop(one, known, turn)
                continue
            if one.condition is None and one.header != "else":
                # Blocks of other loops are executed nobody knows how often.
                repeated = re.match(r"(?:for|while|do)\b", one.header)
                self.walk(one.inner, known, dataclasses.replace(turn, times=None) if repeated else turn)
                continue
            if not one.header.startswith("else"):
                taken, left = False, turn.threads
            taken, left = self.branch(one, known, turn, taken, left)

    def branch(
        self, block: SourceBlock, known: dict[str, int], turn: _Repetitions, taken: bool | None, left: int
    ) -> tuple[bool | None, int]:  # fmt: skip
        """Count a branch; returns whether it or one before it was taken, and the threads that are left."""
        if taken is True:
            return True, left
        here = dataclasses.replace(turn, threads=left, most=turn.most or taken is None)
        if block.condition is None:
            self.walk(block.inner, dict(known), here)
            return True, left
        header = _IF.fullmatch(block.header)
        text = _WORDS[0][0].sub(_WORDS[0][1], header[2]) if header else ""
        elected, chosen = _ELECTED.fullmatch(text), _THREADS.fullmatch(text)
        if elected or chosen:
            part = min(int(chosen[1]), left) if chosen else 1
            if elected and int(elected[1]):
                part = max(left // int(elected[1]), 1)
            self.walk(block.inner, dict(known), dataclasses.replace(here, threads=part))
            return (False, left - part) if left > part else (True, 0)
        try:
            holds = bool(_value(block.condition.tree, known))
        except _Unknown:
            self.walk(block.inner, dict(known), dataclasses.replace(here, most=True))
            return None, left
        if holds:
            self.walk(block.inner, dict(known), here)
        return (True if holds and taken is False else taken), left

    def loop(self, block: SourceBlock, known: dict[str, int], turn: _Repetitions) -> None:
        assert block.loop is not None
        name, *bounds = block.loop
        inside = dict(known)
        for one in block.statements:
            # What changes from turn to turn is not known at the first one.
            if one.assigned is not None:
                inside.pop(one.assigned, None)
        try:
            low, high, step = (_value(one.tree, inside) for one in bounds)
            turns = range(low, high, step)
        except (_Unknown, ValueError):
            inside.pop(name, None)
            self.walk(block.inner, inside, dataclasses.replace(turn, times=None))
            return
        if name in block.deciding and self.turns + len(turns) <= _MOST_TURNS:
            self.turns += len(turns)
            for value in turns:
                self.walk(block.inner, inside | {name: value}, turn)
            return
        inside.pop(name, None)
        times = None if turn.times is None else turn.times * len(turns)
        self.walk(block.inner, inside, dataclasses.replace(turn, times=times))

    def statement(self, one: Statement, known: dict[str, int], turn: _Repetitions) -> None:
        if one.defined is not None:
            name, value = one.defined
            known.pop(name, None)
            with contextlib.suppress(_Unknown):
                known[name] = _value(value.tree, known)
        elif one.assigned is not None:
            known.pop(one.assigned, None)
        threads = None if turn.times is None else turn.times * turn.threads
        moved: int | None = 0
        if one.amount is not None:
            try:
                moved = None if threads is None else threads * _value(one.amount.tree, known)
            except _Unknown:
                moved = None
        self.found[one.line] = self.found.get(one.line, StatementCount()) + StatementCount(
            turn.times, threads, moved, turn.most
        )


def count_blocks(function: SourceBlock, grid: Mapping[str, int | None], threads: int) -> dict[int, StatementCount]:
    """The executions of the statements of a GPU's kernel, by line: all blocks of a grid, whose extents are by the name
    of the block index, such as ``blockIdx_x``."""
    counting = _StatementCounting()
    decided = [name for name, extent in grid.items() if name in function.deciding and extent is not None]
    whole: int | None = 1
    for name, extent in grid.items():
        if name not in decided:
            whole = None if whole is None or extent is None else whole * extent

    def every(names: list[str], known: dict[str, int]) -> None:
        if not names:
            counting.walk(function.inner, dict(known), _Repetitions(whole, threads))
            return
        for value in range(grid[names[0]] or 0):
            every(names[1:], known | {names[0]: value})

    every(decided, {})
    return counting.found


def function_named(text: SourceBlock, pattern: str) -> SourceBlock | None:
    """The first function whose header matches a pattern."""
    return next((one for one in text.inner if isinstance(one, SourceBlock) and re.search(pattern, one.header)), None)
