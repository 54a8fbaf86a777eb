"""Parsing and checking values from users: NumPy values count as Python values, and text is parsed in one way."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from ttexplore.errors import TTExploreError, UsageError, said, shown, type_name, unknown

Name = TypeVar("Name", bound=str)
Part = TypeVar("Part")

# The limit for counts: sizes, depths, cores. Kernels take 32-bit numbers.
LARGEST = 2**31 - 1
# No valid value is nested deeper; deeper levels are not converted, and are rejected later.
_DEEPEST = 8


def plain(value: Any, depth: int = 0) -> Any:
    """Convert NumPy numbers, strings and arrays to Python values, also inside lists, tuples and dictionaries. Values of
    the user's subclasses of Python's types become those of Python's, so that no method of theirs is called later.

    Raises UsageError where a value raises something when it is read.
    """
    return readable("a value", value, lambda: _plain(value, depth))


def readable(argument: str, value: object, read: Callable[[], Part]) -> Part:
    """What `read` gives, which calls methods of the user's. Raises UsageError for what they raise."""
    try:
        return read()
    except TTExploreError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            "U010",
            f"{argument}, of the type {type_name(value)}, raises {said(error)}",
            hint="give numbers, texts and arrays, or lists and dictionaries of them",
        ) from error


def _plain(value: Any, depth: int) -> Any:
    # If NumPy, which is slow to import, is not loaded, no value comes from it.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        value = value.tolist()
    if depth == _DEEPEST:
        return value
    match value:
        case str():
            return str.__str__(value)
        case bool() | None:
            return value
        case int():
            return int.__pos__(value)
        case float():
            return float.__pos__(value)
        case list():
            return [_plain(item, depth + 1) for item in _ITEMS_OF_LIST(value)]
        case tuple():
            return tuple(_plain(item, depth + 1) for item in _ITEMS_OF_TUPLE(value))
        case Mapping():
            return {
                _plain(key, depth + 1): _plain(item, depth + 1)
                for key, item in pairs_of(cast(Mapping[object, object], value))
            }
        case _:
            return value


# The methods of Python's types, where the user's may have others.
_ITEMS_OF_LIST: Callable[[Any], Iterable[Any]] = list[Any].__iter__
_ITEMS_OF_TUPLE: Callable[[Any], Iterable[Any]] = tuple[Any, ...].__iter__
_PAIRS_OF_DICTIONARY: Callable[[Any], Iterable[tuple[Any, Any]]] = dict[Any, Any].items


def pairs_of(mapping: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """The keys and values of a mapping, of a dictionary without its own methods."""
    return _PAIRS_OF_DICTIONARY(mapping) if isinstance(mapping, dict) else mapping.items()


def read_text(text: str) -> Any:
    """Parse a text as JSON or Python; ``8x4`` and ``8,4`` are tuples, any other text is itself, an empty one None."""
    text = text.strip()
    if not text:
        return None
    if size := re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text):
        return int(size[1]), int(size[2])
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return read(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if "," in text and text[0] not in "([{":
        return tuple(read_text(word) for word in text.split(",") if word.strip())
    return text


def wrong(argument: str, value: object, takes: str, meant: str = "") -> UsageError:
    """Return the error for a value that `argument` does not take; `meant` is the closest value that it does take."""
    return UsageError(
        "U010",
        f"{argument} is {shown(value)}",
        hint=f"{f'did you mean {meant}? ' if meant else ''}{argument} takes {takes}",
    )


def whole(argument: str, value: object, least: int = 1, most: int = LARGEST) -> int:
    """`value` as a whole number from `least` to `most`. Raises UsageError."""
    value = plain(value)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    if most == LARGEST:
        raise wrong(argument, value, f"a whole number of at least {least}", _nearest(value, least, most))
    raise wrong(argument, value, f"a whole number from {least} to {most}", _nearest(value, least, most))


def _nearest(value: object, least: int, most: int) -> str:
    """The whole number within the bounds that is closest to a wrong number, as text."""
    match value:
        case int():
            return str(min(max(int(value), least), most))
        case float() if math.isfinite(value):
            return str(min(max(round(value), least), most))
        case _:
            return ""


def wholes(argument: str, value: object, count: int | None = None, *, least: int = -LARGEST) -> tuple[int, ...]:
    """`value` as a tuple of `count` integers; a single number counts as a tuple of one. Raises UsageError."""
    value = plain(value)
    numbers = cast(Sequence[Any], value) if isinstance(value, list | tuple) else (value,)
    if (
        not numbers
        or count not in (None, len(numbers))
        or not all(
            isinstance(number, int) and not isinstance(number, bool) and least <= number <= LARGEST
            for number in numbers
        )
    ):
        from_here = f" of at least {least}" if least > -LARGEST else ""
        raise wrong(argument, cast(object, value), f"{f'{count} ' if count is not None else ''}integers{from_here}")
    return tuple(numbers)


def flag(argument: str, value: object) -> bool:
    """`value`, if it is true or false. Raises UsageError."""
    value = plain(value)
    if not isinstance(value, bool):
        raise wrong(
            argument,
            value,
            "True or False",
            str(bool(value)) if isinstance(value, int | float) and value in (0, 1) else "",
        )
    return value


def named(argument: str, value: object, accepted: Iterable[Name]) -> Name:
    """`value`, if it is one of the names. Raises UsageError."""
    value, names = plain(value), tuple(accepted)
    if not isinstance(value, str):
        raise wrong(argument, value, f"one of {', '.join(names)}")
    if value not in names:
        raise unknown(argument, value, names)
    return names[names.index(value)]


class Parts(dict[str, Part]):
    """The parts of something of ours, by name. A name that is none of them is an error that suggests the closest one.

    `what` is what messages call a part.
    """

    def __init__(self, noun: str, parts: Mapping[str, Part]) -> None:
        super().__init__(parts)
        self._what = noun

    def __getitem__(self, name: str) -> Part:
        """The part. Raises UsageError if there is none of this name."""
        return super().__getitem__(named(self._what, name, self))


def dictionary(argument: str, value: object, keys: str, example: str) -> dict[str, Any]:
    """`value` as a dictionary with string keys and without NumPy values. Raises UsageError."""
    value = plain(value)
    if not isinstance(value, Mapping):
        raise wrong(argument, value, f"a dictionary keyed by {keys}, for example {example}")
    for key in (items := dict(cast(Mapping[Any, Any], value))):
        if not isinstance(key, str):
            raise wrong(f"a key of {argument}", key, f"{keys}, for example {example}")
    return items


def text(argument: str, value: object, takes: str = "a string") -> str:
    """`value`, if it is a string. Raises UsageError."""
    value = plain(value)
    if not isinstance(value, str):
        raise wrong(argument, value, takes)
    return value


def path(argument: str, value: object) -> Path:
    """`value` as a path. Raises UsageError if it is not a path or string, or if it is empty, which would mean the
    current folder."""
    value = plain(value)
    if not isinstance(value, str | os.PathLike) or (isinstance(value, str) and not value):
        raise wrong(argument, cast(object, value), "a path")
    try:
        return Path(cast("str | os.PathLike[str]", value))
    except (Exception, SystemExit):  # The user's __fspath__ may raise anything.
        raise wrong(argument, cast(object, value), "a path") from None


def seconds(argument: str, value: object) -> float | None:
    """A time limit in seconds; None if none is given. Raises UsageError for any other value."""
    value = plain(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_SECONDS:
        raise wrong(argument, value, f"a number of seconds above 0, at most {_LONGEST_SECONDS:,}")
    return float(value)


# A month; the system's clocks do not count much further.
_LONGEST_SECONDS = 2_592_000
