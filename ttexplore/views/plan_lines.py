"""The plan as ``path: value`` lines, for reading and comparing."""

from __future__ import annotations

from typing import Any, cast

# A list or object of plain values stays on one line up to this width.
_LINE_WIDTH = 100


def flat_plan(plan: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The plan's JSON form as (path, value) pairs, in order; empty values are left out.

    Entries of a list go by their name, tensor or kernel; those without one, such as cores, stay on one line each.
    """
    found: list[tuple[str, str]] = []
    for key, value in plan.items():
        _flatten(key, value, found)
    return tuple(found)


def _flatten(path: str, value: Any, found: list[tuple[str, str]]) -> None:
    if value is None or value in ("", [], {}):
        return
    inline = inline_value(value)
    if not isinstance(value, dict | list) or _is_span(value) or (_is_flat(value) and len(inline) <= _LINE_WIDTH):
        found.append((path, inline))
    elif isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            _flatten(f"{path}.{key}", item, found)
    else:
        for position, item in enumerate(cast(list[Any], value)):
            _flatten_entry(path, position, item, found)


def _flatten_entry(path: str, position: int, item: Any, found: list[tuple[str, str]]) -> None:
    entry = cast(dict[str, Any], item) if isinstance(item, dict) else {}
    name = next((str(entry[key]) for key in ("name", "tensor", "kernel") if key in entry), None)
    if name is None:
        found.append((f"{path}[{position}]", inline_value(item)))
        return
    rest = {key: value for key, value in entry.items() if value != name}
    inline = inline_value(rest)
    if _is_flat(rest) and len(inline) <= _LINE_WIDTH:
        found.append((f"{path}[{name}]", inline))
    else:
        for key, value in rest.items():
            _flatten(f"{path}[{name}].{key}", value, found)


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and {"file", "line", "column"} <= cast(dict[str, Any], value).keys()


def _is_flat(value: Any) -> bool:
    items = cast(list[Any], list(cast(dict[str, Any], value).values()) if isinstance(value, dict) else value)
    return not any(isinstance(item, dict | list) and not _is_span(item) for item in items)


def inline_value(value: Any) -> str:
    """A JSON value on one line: ``[8, 8]``, ``x 0, y 1``, ``true``; a span as ``file:line``."""
    if isinstance(value, dict):
        entries = cast(dict[str, Any], value)
        if _is_span(entries):
            return f"{str(entries['file']).rpartition('/')[2]}:{entries['line']}"
        return ", ".join(f"{key} {_nested(item)}" for key, item in entries.items() if item not in (None, "", []))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_nested(item) for item in cast(list[Any], value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _nested(value: Any) -> str:
    return f"({inline_value(value)})" if isinstance(value, dict) and not _is_span(value) else inline_value(value)
