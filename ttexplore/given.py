"""Parsing and checking values from users: NumPy values count as Python values, and text is parsed in one way."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from ttexplore.errors import UsageError, shown, unknown

Name = TypeVar("Name", bound=str)
Part = TypeVar("Part")

# The limit for counts: sizes, depths, cores. Kernels take 32-bit numbers.
LARGEST = 2**31 - 1
# No valid value is nested deeper; deeper levels are not converted, and are rejected later.
_DEEPEST = 8


def plain(value: Any, depth: int = 0) -> Any:
    """Convert NumPy numbers, strings and arrays to Python values, also inside lists, tuples and dictionaries."""
    # If NumPy, which is slow to import, is not loaded, no value comes from it.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        value = value.tolist()
    if depth == _DEEPEST:
        return value
    match value:
        case str():
            return str(value)
        case int() | float() | None:
            return value
        case list() | tuple():
            items = [plain(one, depth + 1) for one in cast(Sequence[object], value)]
            return tuple(items) if isinstance(value, tuple) else items
        case Mapping():
            pairs = cast(Mapping[object, object], value).items()
            return {plain(key, depth + 1): plain(one, depth + 1) for key, one in pairs}
        case _:
            return value


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
        return tuple(read_text(part) for part in text.split(",") if part.strip())
    return text


def wrong(what: str, given: object, takes: str, meant: str = "") -> UsageError:
    """Return the error for a value that `what` does not take; `meant` is the closest value that it does take."""
    return UsageError(
        "U010", f"{what} is {shown(given)}", hint=f"{f'did you mean {meant}? ' if meant else ''}{what} takes {takes}"
    )


def whole(what: str, given: object, least: int = 1, most: int = LARGEST) -> int:
    """`given` as a whole number from `least` to `most`. Raises UsageError."""
    given = plain(given)
    if isinstance(given, int) and not isinstance(given, bool) and least <= given <= most:
        return given
    if most == LARGEST:
        raise wrong(what, given, f"a whole number of at least {least}", _nearest(given, least, most))
    raise wrong(what, given, f"a whole number from {least} to {most}", _nearest(given, least, most))


def _nearest(given: object, least: int, most: int) -> str:
    """The whole number within the bounds that is closest to a wrong number, as text."""
    match given:
        case int():
            return str(min(max(int(given), least), most))
        case float() if math.isfinite(given):
            return str(min(max(round(given), least), most))
        case _:
            return ""


def wholes(what: str, given: object, count: int | None = None, *, least: int = -LARGEST) -> tuple[int, ...]:
    """`given` as a tuple of `count` integers; a single number counts as a tuple of one. Raises UsageError."""
    given = plain(given)
    numbers = cast(Sequence[Any], given) if isinstance(given, list | tuple) else (given,)
    if (
        not numbers
        or count not in (None, len(numbers))
        or not all(isinstance(one, int) and not isinstance(one, bool) and least <= one <= LARGEST for one in numbers)
    ):
        from_here = f" of at least {least}" if least > -LARGEST else ""
        raise wrong(what, cast(object, given), f"{f'{count} ' if count is not None else ''}integers{from_here}")
    return tuple(numbers)


def flag(what: str, given: object) -> bool:
    """`given`, if it is true or false. Raises UsageError."""
    given = plain(given)
    if not isinstance(given, bool):
        raise wrong(
            what, given, "True or False", str(bool(given)) if isinstance(given, int | float) and given in (0, 1) else ""
        )
    return given


def named(what: str, given: object, accepted: Iterable[Name]) -> Name:
    """`given`, if it is one of the names. Raises UsageError."""
    given, names = plain(given), tuple(accepted)
    if not isinstance(given, str):
        raise wrong(what, given, f"one of {', '.join(names)}")
    if given not in names:
        raise unknown(what, given, names)
    return names[names.index(given)]


class Parts(dict[str, Part]):
    """The parts of something of ours, by name. A name that is none of them is an error that suggests the closest one.

    `what` is what messages call a part.
    """

    def __init__(self, what: str, parts: Mapping[str, Part]) -> None:
        super().__init__(parts)
        self._what = what

    def __getitem__(self, name: str) -> Part:
        """The part. Raises UsageError if there is none of this name."""
        return super().__getitem__(named(self._what, name, self))


def dictionary(what: str, given: object, keys: str, example: str) -> dict[str, Any]:
    """`given` as a dictionary with string keys and without NumPy values. Raises UsageError."""
    given = plain(given)
    if not isinstance(given, Mapping):
        raise wrong(what, given, f"a dictionary keyed by {keys}, for example {example}")
    for key in (made := dict(cast(Mapping[Any, Any], given))):
        if not isinstance(key, str):
            raise wrong(f"a key of {what}", key, f"{keys}, for example {example}")
    return made


def text(what: str, given: object, takes: str = "a string") -> str:
    """`given`, if it is a string. Raises UsageError."""
    given = plain(given)
    if not isinstance(given, str):
        raise wrong(what, given, takes)
    return given


def path(what: str, given: object) -> Path:
    """`given` as a path. Raises UsageError if it is not a path or string, or if it is empty, which would mean the
    current folder."""
    if not isinstance(given, str | os.PathLike) or not given:
        raise wrong(what, cast(object, given), "a path")
    try:
        return Path(cast("str | os.PathLike[str]", given))
    except TypeError:
        raise wrong(what, cast(object, given), "a path") from None


def seconds(what: str, given: object) -> float | None:
    """A time limit in seconds; None if none is given. Raises UsageError for any other value."""
    given = plain(given)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _LONGEST_SECONDS:
        raise wrong(what, given, f"a number of seconds above 0, at most {_LONGEST_SECONDS:,}")
    return float(given)


# A month; the system's clocks do not count much further.
_LONGEST_SECONDS = 2_592_000
