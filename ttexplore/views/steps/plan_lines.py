"""The plan as ``path: value`` lines, for reading and comparing."""

from __future__ import annotations

from typing import Any, cast

from ttexplore.record import Line, Origin, Span, from_json

# A list or object of plain values stays on one line up to this width.
_LINE_WIDTH = 100
# What does not, is wrapped to lines that an explorer shows whole on a screen of 1400 pixels.
_WRAPPED_WIDTH = 80


def flat_plan(plan: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The plan's JSON form as (path, value) pairs, in order; empty values are left out.

    Entries of a list go by their name, tensor or kernel; those without one, such as cores, stay on one line each
    unless it is too wide.
    """
    rows: list[tuple[str, str]] = []
    for key, value in plan.items():
        _flatten(key, [note["text"] for note in value] if key == "notes" else value, rows)
    return tuple(rows)


def plan_lines(plan: dict[str, Any]) -> tuple[Line, ...]:
    """The plan's lines with the kernel line that each decision is about; a reason is what a decision says first."""
    origins: dict[str, tuple[Origin, ...]] = {}
    for key, value in plan.items():
        entries = cast(list[Any], value if isinstance(value, list) else [])
        for position, entry in enumerate(entries):
            fields = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
            spans = [from_json(Span, field) for field in fields.values() if _is_span(field)]
            origins[_entry_path(key, position, fields)] = tuple(Origin(span, "derived") for span in spans)
    return tuple(
        Line(
            f"{path}: {value}", origins.get(path.partition("].")[0].removesuffix("]") + "]", ()),
            work="computes" if path.endswith(".reason") else "controls",
        )
        for path, value in flat_plan(plan)
    )  # fmt: skip


def _flatten(path: str, value: Any, rows: list[tuple[str, str]]) -> None:
    if value is None or value in ("", [], {}):
        return
    inline = inline_value(value)
    if not isinstance(value, dict | list) or _is_span(value) or (_is_flat(value) and len(inline) <= _LINE_WIDTH):
        rows.append((path, inline))
    elif isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            _flatten(f"{path}.{key}", item, rows)
    else:
        for position, item in enumerate(cast(list[Any], value)):
            _flatten_entry(path, position, item, rows)


def _flatten_entry(path: str, position: int, item: Any, rows: list[tuple[str, str]]) -> None:
    entry = cast(dict[str, Any], item) if isinstance(item, dict) else {}
    name, entry_path = _entry_name(entry), _entry_path(path, position, entry)
    if name is None:
        _flatten_nameless(entry_path, item, entry, rows)
        return
    rest = {key: value for key, value in entry.items() if value != name}
    inline = inline_value(rest)
    if _is_flat(rest) and len(inline) <= _LINE_WIDTH:
        rows.append((entry_path, inline))
    else:
        for key, value in rest.items():
            _flatten(f"{entry_path}.{key}", value, rows)


def _flatten_nameless(path: str, item: Any, entry: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    """One line; if that is too wide, one for the plain fields, and for each object as many as its fields need."""
    if not entry or len(inline_value(entry)) <= _LINE_WIDTH:
        rows.append((path, inline_value(item)))
        return
    objects = {
        key: cast(dict[str, Any], value)
        for key, value in entry.items()
        if isinstance(value, dict) and not _is_span(cast(Any, value))
    }
    rows.append((path, inline_value({key: value for key, value in entry.items() if key not in objects})))
    for name, fields in objects.items():
        width = _WRAPPED_WIDTH - len(f"{path}.{name} (1 of 9): ")
        texts = [""]
        for key, value in fields.items():
            text = inline_value({key: value})
            longer = f"{texts[-1]}, {text}" if texts[-1] else text
            if len(longer) <= width:
                texts[-1] = longer
            else:
                texts.append(text)
        for number, text_of_row in enumerate(texts, start=1):
            of = f" ({number} of {len(texts)})" if len(texts) > 1 else ""
            rows.append((f"{path}.{name}{of}", text_of_row))


def _entry_name(entry: dict[str, Any]) -> str | None:
    return next((str(entry[key]) for key in ("name", "tensor", "kernel") if key in entry), None)


def _entry_path(path: str, position: int, entry: dict[str, Any]) -> str:
    return f"{path}[{_entry_name(entry) or position}]"


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
