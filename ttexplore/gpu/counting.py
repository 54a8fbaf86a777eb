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


def _quotient(dividend: int, divisor: int) -> int:
    """C++ rounds towards zero."""
    return abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)


def _shift(number: int, bits: int) -> int:
    return number << bits if bits >= 0 else number >> -bits


_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda x, y: x - _quotient(x, y) * y,
    ast.LShift: _shift,
    ast.RShift: lambda x, y: _shift(x, -y),
    ast.BitAnd: lambda x, y: x & y,
    ast.BitOr: lambda x, y: x | y,
    ast.BitXor: lambda x, y: x ^ y,
    ast.Lt: lambda x, y: x < y,
    ast.LtE: lambda x, y: x <= y,
    ast.Gt: lambda x, y: x > y,
    ast.GtE: lambda x, y: x >= y,
    ast.Eq: lambda x, y: x == y,
    ast.NotEq: lambda x, y: x != y,
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


def _value(node: ast.expr | None, numbers: Mapping[str, int]) -> int:
    """The value of an expression. Raises _Unknown."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            if name in numbers:
                return numbers[name]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, numbers)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, numbers)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            try:
                return _OPERATORS[type(op)](_value(left, numbers), _value(right, numbers))
            except (ZeroDivisionError, ValueError, OverflowError) as error:
                raise _Unknown from error
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, numbers), _value(right, numbers))
        case ast.BoolOp(op=ast.And(), values=operands):
            return all(_value(operand, numbers) for operand in operands)
        case ast.BoolOp(op=ast.Or(), values=operands):
            return any(_value(operand, numbers) for operand in operands)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(left, numbers), _value(right, numbers))
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
        definition = _DEFINITION.fullmatch(self.text)
        return (definition[1], _expression(definition[2])) if definition else None

    @functools.cached_property
    def assigned(self) -> str | None:
        assignment = _ASSIGNED.fullmatch(self.text)
        return assignment[1] if assignment else None


@dataclass(frozen=True)
class SourceBlock:
    """Statements in braces, below a header: a loop, a branch, a function, or nothing."""

    line: int
    header: str
    inner: list[Statement | SourceBlock] = field(default_factory=list["Statement | SourceBlock"])

    @functools.cached_property
    def loop(self) -> tuple[str, _Expression, _Expression, _Expression] | None:
        header = _FOR.fullmatch(self.header)
        return (
            (header[1], _expression(header[2]), _expression(header[3]), _expression(header[4] or "1"))
            if header
            else None
        )

    @functools.cached_property
    def condition(self) -> _Expression | None:
        header = _IF.fullmatch(self.header)
        return _expression(header[2]) if header else None

    @functools.cached_property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(_statements(self.inner))

    @functools.cached_property
    def deciding(self) -> frozenset[str]:
        """The names on which bounds, conditions and amounts inside depend."""
        names: set[str] = set()
        for block in _blocks(self.inner):
            expressions = block.loop[1:] if block.loop else (block.condition,) if block.condition else ()
            names |= {name for expression in expressions for name in expression.names}
        definitions = [statement.defined for statement in self.statements if statement.defined]
        names |= {name for statement in self.statements if statement.amount for name in statement.amount.names}
        while True:
            more = {name for key, value in definitions if key in names for name in value.names} - names
            if not more:
                return frozenset(names)
            names |= more


def _statements(inner: Iterable[Statement | SourceBlock]) -> Iterator[Statement]:
    for node in inner:
        if isinstance(node, Statement):
            yield node
        else:
            yield from _statements(node.inner)


def _blocks(inner: Iterable[Statement | SourceBlock]) -> Iterator[SourceBlock]:
    for node in inner:
        if isinstance(node, SourceBlock):
            yield node
            yield from _blocks(node.inner)


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


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


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

    def walk(self, inner: Iterable[Statement | SourceBlock], values: dict[str, int], executed: _Repetitions) -> None:
        # Of a chain of branches: whether one was taken, None if that is not known, and the threads that are left.
        entered: bool | None = False
        remaining = executed.threads
        for node in inner:
            if isinstance(node, Statement):
                self.statement(node, values, executed)
                continue
            if node.loop is not None:
                self.loop(node, values, executed)
                continue
            if node.condition is None and node.header != "else":
                # Blocks of other loops are executed nobody knows how often.
                repeated = re.match(r"(?:for|while|do)\b", node.header)
                self.walk(node.inner, values, dataclasses.replace(executed, times=None) if repeated else executed)
                continue
            if not node.header.startswith("else"):
                entered, remaining = False, executed.threads
            entered, remaining = self.branch(node, values, executed, entered, remaining)

    def branch(
        self, block: SourceBlock, values: dict[str, int], executed: _Repetitions, entered: bool | None, remaining: int
    ) -> tuple[bool | None, int]:  # fmt: skip
        """Count a branch; returns whether it or one before it was taken, and the threads that are left."""
        if entered is True:
            return True, remaining
        here = dataclasses.replace(executed, threads=remaining, most=executed.most or entered is None)
        if block.condition is None:
            self.walk(block.inner, dict(values), here)
            return True, remaining
        header = _IF.fullmatch(block.header)
        text = _WORDS[0][0].sub(_WORDS[0][1], header[2]) if header else ""
        elected, chosen = _ELECTED.fullmatch(text), _THREADS.fullmatch(text)
        if elected or chosen:
            threads = min(int(chosen[1]), remaining) if chosen else 1
            if elected and int(elected[1]):
                threads = max(remaining // int(elected[1]), 1)
            self.walk(block.inner, dict(values), dataclasses.replace(here, threads=threads))
            return (False, remaining - threads) if remaining > threads else (True, 0)
        try:
            holds = bool(_value(block.condition.tree, values))
        except _Unknown:
            self.walk(block.inner, dict(values), dataclasses.replace(here, most=True))
            return None, remaining
        if holds:
            self.walk(block.inner, dict(values), here)
        return (True if holds and entered is False else entered), remaining

    def loop(self, block: SourceBlock, values: dict[str, int], executed: _Repetitions) -> None:
        assert block.loop is not None
        name, *bounds = block.loop
        inside = dict(values)
        for statement in block.statements:
            # What changes from turn to turn is not known at the first one.
            if statement.assigned is not None:
                inside.pop(statement.assigned, None)
        try:
            low, high, step = (_value(bound.tree, inside) for bound in bounds)
            turns = range(low, high, step)
        except (_Unknown, ValueError):
            inside.pop(name, None)
            self.walk(block.inner, inside, dataclasses.replace(executed, times=None))
            return
        if name in block.deciding and self.turns + len(turns) <= _MOST_TURNS:
            self.turns += len(turns)
            for value in turns:
                self.walk(block.inner, inside | {name: value}, executed)
            return
        inside.pop(name, None)
        times = None if executed.times is None else executed.times * len(turns)
        self.walk(block.inner, inside, dataclasses.replace(executed, times=times))

    def statement(self, statement: Statement, values: dict[str, int], executed: _Repetitions) -> None:
        if statement.defined is not None:
            name, value = statement.defined
            values.pop(name, None)
            with contextlib.suppress(_Unknown):
                values[name] = _value(value.tree, values)
        elif statement.assigned is not None:
            values.pop(statement.assigned, None)
        threads = None if executed.times is None else executed.times * executed.threads
        moved: int | None = 0
        if statement.amount is not None:
            try:
                moved = None if threads is None else threads * _value(statement.amount.tree, values)
            except _Unknown:
                moved = None
        self.found[statement.line] = self.found.get(statement.line, StatementCount()) + StatementCount(
            executed.times, threads, moved, executed.most
        )


def count_blocks(function: SourceBlock, grid: Mapping[str, int | None], threads: int) -> dict[int, StatementCount]:
    """The executions of the statements of a GPU's kernel, by line: all blocks of a grid, whose extents are by the name
    of the block index, such as ``blockIdx_x``."""
    counting = _StatementCounting()
    decided = [name for name, extent in grid.items() if name in function.deciding and extent is not None]
    blocks: int | None = 1
    for name, extent in grid.items():
        if name not in decided:
            blocks = None if blocks is None or extent is None else blocks * extent

    def every(names: list[str], values: dict[str, int]) -> None:
        if not names:
            counting.walk(function.inner, dict(values), _Repetitions(blocks, threads))
            return
        for value in range(grid[names[0]] or 0):
            every(names[1:], values | {names[0]: value})

    every(decided, {})
    return counting.found


def function_named(text: SourceBlock, pattern: str) -> SourceBlock | None:
    """The first function whose header matches a pattern."""
    return next(
        (block for block in text.inner if isinstance(block, SourceBlock) and re.search(pattern, block.header)), None
    )
