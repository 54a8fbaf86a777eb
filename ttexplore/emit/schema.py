"""The JSON Schema of tt.plan.json, generated from the plan's types and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from typing import Any, Literal

from ttexplore.plan import Plan

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """The schema: one definition for each type of the plan."""
    definitions: dict[str, Any] = {}
    _type_schema(Plan, definitions)
    plan = definitions.pop("Plan")
    properties = {"version": {"type": "integer", "const": 2}, **plan["properties"]}
    return {
        "$schema": SCHEMA_ID,
        "title": "tt.plan.json",
        "description": plan["description"],
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The schema as the text of its file."""
    return json.dumps(plan_schema(), indent=1, sort_keys=True) + "\n"


def _type_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_type_schema(argument, definitions) for argument in arguments]}
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": _type_schema(arguments[0], definitions)}
        schemas = [_type_schema(argument, definitions) for argument in arguments]
        return {"type": "array", "prefixItems": schemas, "minItems": len(schemas), "maxItems": len(schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], definitions)}
    if dataclasses.is_dataclass(kind):
        return _dataclass_schema(kind, definitions)
    simple = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    if kind not in simple:
        raise TypeError(f"{kind} has no JSON schema")
    return {"type": simple[kind]}


def _dataclass_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        hints = typing.get_type_hints(kind)
        properties = {field.name: _type_schema(hints[field.name], definitions) for field in dataclasses.fields(kind)}
        definitions[name] = {
            "type": "object",
            "description": inspect.cleandoc(kind.__doc__ or ""),
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
