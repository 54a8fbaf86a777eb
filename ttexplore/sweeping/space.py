"""A space of schedules: the values of a kernel's arguments, of the options of the passes and of the target."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass
from typing import Any, cast

from ttexplore.errors import UsageError, shown
from ttexplore.given import plain, wrong
from ttexplore.options import OPTIONS, parse_options
from ttexplore.target import DEFAULT_TARGET, Target, get_target

TARGET = "target"
# Nobody waits for more, and their table would not fit a screen of any size.
MOST_POINTS = 100_000
_EXAMPLE = "{'block_M': [32, 64], 'policy': ['contiguous', 'strided']}"


@dataclass(frozen=True, eq=False)
class Point:
    """One schedule: the arguments of the kernel, the options of the passes (parsed), and the target.

    `given` are the values of the space that make it, as they were given.
    """

    given: Mapping[str, object]
    arguments: Mapping[str, object]
    options: Mapping[str, Any]
    target: Target


@dataclass(frozen=True, eq=False)
class Space:
    """The points of a space, in order: the last name varies fastest. `names` are those of the values, in order."""

    names: tuple[str, ...]
    points: tuple[Point, ...]


def space_of(
    space: object, target: str | Target | None, options: Mapping[str, Any] | None, arguments: Mapping[str, object]
) -> Space:  # fmt: skip
    """The points of `space`: a dictionary with the values of each name, of which each combination is a point, or a list
    of such dictionaries, one after the other; a point of several counts once, where it comes first. Names are those of
    options, ``target``, and arguments of the kernel; what the space leaves out has the value that `target` (None is the
    default one), `options` and `arguments` give.

    Raises UsageError for a space without points or with too many, for names that are given twice, for unknown targets,
    for wrong values of options, and for values that cannot be printed. Whether the kernel takes the arguments is not
    checked here.
    """
    space = plain(space)
    spaces = cast(Sequence[object], space) if isinstance(space, list | tuple) else [space]
    if not spaces or not all(isinstance(mapping, Mapping) for mapping in spaces):
        raise wrong("the space", cast(object, space), f"a dictionary of names and their values, for example {_EXAMPLE}")
    chip, asked = get_target(DEFAULT_TARGET if target is None else target), parse_options(options)
    for name, value in arguments.items():
        _key(name, value)
    names: dict[str, None] = {}
    points: list[Point] = []
    for mapping in cast(Sequence[Mapping[object, object]], spaces):
        axes = {_name(name): _values(_name(name), values) for name, values in mapping.items()}
        _refuse_twice(axes, asked, arguments)
        names |= dict.fromkeys(axes)
        count = math.prod(map(len, axes.values())) + len(points)
        if count > MOST_POINTS:
            raise UsageError(
                "U023",
                f"the space has {count:,} points",
                hint=f"at most {MOST_POINTS:,} are searched: give fewer values",
            )
        points += _points(axes, chip, asked, arguments)
    if target is not None and all(TARGET in mapping for mapping in cast(Sequence[Mapping[object, object]], spaces)):
        raise _in_two_places(TARGET)
    if not names:
        raise UsageError("U023", "the space is empty", hint=f"name what varies, and its values: {_EXAMPLE}")
    return Space(tuple(names), tuple(_merged(points)))


def _merged(points: Iterable[Point]) -> Iterator[Point]:
    """Each schedule once, where it comes first."""
    # There are few targets, and each has hundreds of numbers.
    targets: list[Target] = []
    numbers: dict[int, int] = {}
    keys: set[tuple[object, ...]] = set()
    for point in points:
        target = point.target
        if id(target) not in numbers:
            targets += [] if target in targets else [target]
            numbers[id(target)] = targets.index(target)
        values = (sorted((name, _key(name, value)) for name, value in settings.items())
                  for settings in (point.arguments, point.options))  # fmt: skip
        key = (numbers[id(target)], *map(tuple, values))
        if key not in keys:
            keys.add(key)
            yield point


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise wrong("a name of the space", name, f"the name of an argument of the kernel or of an option: {_EXAMPLE}")
    return name


def _values(name: str, candidates: object) -> tuple[object, ...]:
    """The values of one name; a value that is no list is the only one."""
    if isinstance(candidates, Set | Iterator | ValuesView):
        raise wrong(
            f"the space for {name}",
            cast(object, candidates),
            "a list or a range: a set has no order, and a generator gives its values once",
        )
    candidates = _plain(candidates)
    if isinstance(candidates, tuple) and _is_value(name, cast(object, candidates)):
        raise UsageError(
            "U023",
            f"the space for {name} is {shown(cast(object, candidates))}, which is one value",
            hint=f"list the values: {{{name!r}: [{shown(cast(object, candidates))}]}}",
        )
    items = cast(Sequence[object], candidates) if isinstance(candidates, list | tuple | range) else (candidates,)
    values = tuple(_plain(value) for value in itertools.islice(items, MOST_POINTS + 1))
    if len(values) > MOST_POINTS:
        raise UsageError(
            "U023",
            f"the space has more than {MOST_POINTS:,} values for {name}",
            hint=f"at most {MOST_POINTS:,} points are searched: give fewer values",
        )
    if not values:
        raise UsageError("U023", f"the space has no values for {name}", hint=f"list them: {_EXAMPLE}")
    # True and 1 are two values, though they are equal; not all values can be in a set.
    keys: set[str] = set()
    for value in values:
        key = _key(name, value)
        if key in keys:
            raise UsageError("U023", f"the space lists {shown(value)} for {name} twice", hint="list each value once")
        keys.add(key)
    return values


def _is_value(name: str, candidate: object) -> bool:
    """Whether an option takes what is given as its value."""
    try:
        return bool(parse_options({name: candidate}))
    except UsageError:
        return False


def _plain(value: object) -> object:
    """Numbers and arrays of NumPy as numbers and lists of Python."""
    return plain(value) if hasattr(value, "tolist") else value


def _key(name: str, value: object) -> str:
    """A text that no other value has. Raises UsageError for a value without one."""
    try:
        return f"{type(value).__name__} {value!r}"
    except Exception:  # A user's __repr__ may raise anything; Python itself prints no numbers above 4,300 digits.
        raise UsageError(
            "U023", f"a value of {name} cannot be printed: {shown(value)}", hint="give values that repr() can print"
        ) from None


def _refuse_twice(axes: Mapping[str, object], options: Mapping[str, Any], arguments: Mapping[str, object]) -> None:
    for name in axes:
        if name in options or name in arguments:
            raise _in_two_places(name)


def _in_two_places(name: str) -> UsageError:
    return UsageError(
        "U023", f"{name} is in the space, and has a value besides", hint="give it in one of the two places"
    )


def _points(
    axes: Mapping[str, tuple[object, ...]], target: Target, options: Mapping[str, Any], arguments: Mapping[str, object]
) -> Iterator[Point]:  # fmt: skip
    # Each value is read once, before anything is lowered.
    chips = [get_target(cast("str | Target", value)) for value in axes.get(TARGET, ())]
    parsed = {
        (name, number): parse_options({name: value})
        for name, values in axes.items()
        if name in OPTIONS
        for number, value in enumerate(values)
    }
    for chosen in itertools.product(*(range(len(values)) for values in axes.values())):
        at = dict(zip(axes, chosen, strict=True))
        settings = {name: axes[name][number] for name, number in at.items()}
        point_options = dict(options)
        for choice in at.items():
            point_options |= parsed.get(choice, {})
        kernel_arguments = {name: value for name, value in settings.items() if name not in OPTIONS and name != TARGET}
        yield Point(
            settings, {**arguments, **kernel_arguments}, point_options, chips[at[TARGET]] if TARGET in at else target
        )
