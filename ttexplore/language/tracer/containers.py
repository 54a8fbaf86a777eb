"""Type guards for Python's containers: they tell the type checker that the items may be any objects."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_tuple(value: object) -> TypeIs[tuple[object, ...]]:
    return isinstance(value, tuple)


def is_exactly_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether a value is a tuple, and not a named tuple."""
    return type(value) is tuple


def is_sequence(value: object) -> TypeIs[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def is_ordered(value: object) -> TypeIs[list[object] | deque[object] | tuple[object, ...]]:
    return isinstance(value, list | deque | tuple)


def is_dict(value: object) -> TypeIs[dict[object, object]]:
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeIs[Mapping[object, object]]:
    return isinstance(value, Mapping)


def is_set(value: object) -> TypeIs[set[object] | frozenset[object]]:
    return isinstance(value, set | frozenset)


def is_container(
    value: object,
) -> TypeIs[list[object] | tuple[object, ...] | set[object] | frozenset[object] | dict[object, object] | range]:
    return isinstance(value, list | tuple | set | frozenset | dict | range)


def is_slice(value: object) -> TypeIs[slice[object, object, object]]:
    return isinstance(value, slice)


def items_of(value: object) -> tuple[object, ...]:
    """The items of a list or tuple; any other value is one item."""
    return tuple(value) if is_sequence(value) else (value,)
