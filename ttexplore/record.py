"""The record of a lowering as plain data: sources, listings, steps.

Uses only the standard library, so that a saved record opens without TVM. Every class is frozen and converts to JSON and
back with :func:`to_json` and :func:`from_json`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from ttexplore.characters import Printed

OriginKind = Literal["exact", "derived", "inferred"]
# What a line does for the kernel's own work or, where it is around that, what it belongs to: nothing, such as a brace.
Work = Literal["computes", "moves", "controls", "", "declarations", "init", "DST", "protocol"]
Recorded = TypeVar("Recorded")
# An object of JSON: its values are plain data, whose shape the reader knows.
JsonObject = dict[str, Any]
_Convert = Callable[[object], object]


def replaced(value: Recorded, **changes: object) -> Recorded:
    """As dataclasses.replace, of a value that is made again and again: several times as fast, without calling its
    constructor. The value has no slots."""
    assert changes.keys() <= vars(value).keys(), f"{type(value).__name__} has not all of {', '.join(changes)}"
    changed = object.__new__(type(value))
    vars(changed).update(vars(value), **changes)
    return changed


@dataclass(frozen=True, order=True, slots=True)
class Span(Printed):
    """A range of kernel source. Lines and columns count from 1; `end_column` is one past the last character.

    `file` is the path that the user gave, or ``"cell 3"`` for a notebook cell; never a temporary path.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Origin:
    """The kernel source that a line comes from. `exact`: the user's own statement; `derived`: made from that statement
    by a pass; `inferred`: taken from the enclosing statement because the line has no span of its own."""

    span: Span
    kind: OriginKind


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a listing. `node` is the pre-order number of the statement that the line prints; None for other text
    (braces, headers). `work` says what that statement does itself."""

    text: str
    origins: tuple[Origin, ...] = ()
    node: int | None = None
    work: Work = ""


@dataclass(frozen=True, slots=True)
class Listing(Printed):
    """A text with the origins of each line: the kernel source, the IR after a step, an emitted file."""

    language: Literal["python", "tir", "cpp", "json"]
    lines: tuple[Line, ...] = field(repr=False)
    name: str = ""

    @property
    def text(self) -> str:
        """The lines joined, with a final newline."""
        return "".join(line.text + "\n" for line in self.lines)

    @property
    def linked(self) -> tuple[int, int]:
        """How many lines of C++, CUDA or HIP are linked to lines of the kernel, and how many could be: all without
        blank lines, comments and preprocessor lines."""
        lines = [line for line in self.lines if line.text.strip() and not line.text.startswith(("//", "#"))]
        return sum(bool(line.origins) for line in lines), len(lines)

    def __str__(self) -> str:
        return self.text


def lines_of(text: str) -> list[str]:
    """The lines of a text as Python and C++ count them: unlike str.splitlines, without splitting at form feeds, U+0085
    and U+2028."""
    lines = re.split("\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


@dataclass(frozen=True, slots=True)
class EmittedPart:
    """What lines of an emitted kernel are, by their numbers from 1: the text of an operation, of a loop over work
    items, of a circular buffer, of a runtime argument, of a header that is included, or the start of the kernel.

    `name` is that of the operation in the IR or of the buffer, `times` how often all cores execute an operation and
    `bytes` what they move by it, None if elements of tensors decide that; if `most`, it is at most that often. `tiles`
    are the tiles, or the products of two, of one call.
    """

    role: str
    lines: tuple[int, ...]
    kind: Literal["operation", "work loop", "buffer", "argument", "header", "start"]
    name: str = ""
    times: int | None = 0
    bytes: int | None = 0
    most: bool = False
    tiles: int = 1


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An error as shown to the user: its kind, message, hint, kernel line, and diagnostic code."""

    kind: str
    message: str
    hint: str = ""
    span: Span | None = None
    code: str = ""

    @property
    def headline(self) -> str:
        """The kernel line, the first line of the message, and the code."""
        where = f"{self.span}: " if self.span else ""
        return f"{where}{self.message.partition(chr(10))[0].rstrip(':')} [{self.code}]"


@dataclass(frozen=True, slots=True)
class OptionForm:
    """The form of a pass option: the values that it accepts, if they are few, otherwise an example as text; and the
    policy that it requires, if any."""

    choices: tuple[object, ...] = ()
    example: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class FiringRecord:
    """The statements that a rule changed: `before` are those that it replaced or examined, `after` those that it made,
    by the :attr:`Line.node` of their lines."""

    rule: str
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The run of one step, and of its parts, if it has some. `plan_before` and `plan_after` are the plan in JSON form;
    `options` are the values used.

    `rules` has a sentence for each rule that made lines, `firings` the lines that each made: lines without a firing
    were kept.
    """

    index: int
    name: str
    letter: str
    stage: str
    summary: str
    docstring: str = field(repr=False)
    changed_ir: bool
    changed_plan: bool
    seconds: float
    before: Listing
    after: Listing
    plan_before: JsonObject = field(repr=False)
    plan_after: JsonObject = field(repr=False)
    options: JsonObject
    error: ErrorRecord | None = None
    rules: dict[str, str] = field(default_factory=dict[str, str])
    firings: tuple[FiringRecord, ...] = field(default=(), repr=False)
    parts: tuple[StepRecord, ...] = field(default=(), repr=False)

    @property
    def leaves(self) -> tuple[StepRecord, ...]:
        """The parts, or the step itself."""
        return self.parts or (self,)


@dataclass(frozen=True, slots=True)
class Trace:
    """A complete exploration as data: the kernel source, each step, the emitted files by name."""

    kernel: str
    target: str
    source: Listing
    steps: tuple[StepRecord, ...] = field(repr=False)
    files: dict[str, Listing] = field(repr=False)
    plan: JsonObject = field(repr=False)
    versions: dict[str, str]


def to_json(value: object) -> Any:
    """The plain JSON form of a record or plan value: objects for dataclasses, lists for tuples."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in cast(dict[object, object], value).items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in cast(list[object], value)]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: type[Recorded], data: object) -> Recorded:
    """Rebuild a value of type `kind` from the result of :func:`to_json`.

    Raises TypeError if the data does not match the type.
    """
    return cast(Recorded, _converter(kind)(data))


@functools.cache
def _converter(kind: object) -> _Convert:
    """The function that makes a value of a type. Each type is analysed once, for hundreds of thousands of values."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return _as_it_is
    if origin is Literal:
        return functools.partial(_one_of, arguments)
    if origin in (types.UnionType, typing.Union):
        inner = _converter(next(item for item in arguments if item is not type(None)))
        return functools.partial(_optional, inner) if type(None) in arguments else inner
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return functools.partial(_tuple_of, _converter(arguments[0]))
    if origin is tuple:
        return functools.partial(_fixed_tuple, tuple(map(_converter, arguments)))
    if origin is dict:
        return functools.partial(_values, _converter(arguments[1]))
    if not isinstance(kind, type):
        raise TypeError(f"{kind!r} is not a type of records")
    if dataclasses.is_dataclass(kind):
        return functools.partial(_made, kind)
    return functools.partial(_checked, kind)


def _as_it_is(data: object) -> object:
    return data


def _one_of(accepted: tuple[object, ...], data: object) -> object:
    if data not in accepted:
        raise TypeError(f"{data!r} is not one of {', '.join(map(repr, accepted))}")
    return data


def _optional(inner: _Convert, data: object) -> object:
    return None if data is None else inner(data)


def _items(data: object) -> list[object]:
    if not isinstance(data, list | tuple):
        raise TypeError(f"{data!r} is not a list")
    return cast(list[object], data)


def _fields(data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        raise TypeError(f"{data!r} is not an object")
    return cast(dict[str, object], data)


def _tuple_of(item: _Convert, data: object) -> tuple[object, ...]:
    return tuple(map(item, _items(data)))


def _fixed_tuple(items: tuple[_Convert, ...], data: object) -> tuple[object, ...]:
    return tuple(item(value) for item, value in zip(items, _items(data), strict=True))


def _values(value: _Convert, data: object) -> dict[str, object]:
    return {key: value(item) for key, item in _fields(data).items()}


def _made(kind: Callable[..., object], data: object) -> object:
    fields = _converters(kind)
    return kind(**{name: fields[name](item) for name, item in _fields(data).items()})


@functools.cache
def _converters(kind: object) -> dict[str, _Convert]:
    """The converters of a record's fields; found when the first one is made, because steps hold steps."""
    return {name: _converter(hint) for name, hint in typing.get_type_hints(kind).items()}


def _checked(kind: type, data: object) -> object:
    # True and False do not count as numbers here.
    fits = isinstance(data, kind) or (kind is float and isinstance(data, int))
    if not fits or (isinstance(data, bool) and kind is not bool):
        raise TypeError(f"{data!r} is not a {kind}")
    return data
