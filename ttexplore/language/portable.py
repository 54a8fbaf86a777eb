"""A traced kernel as texts and plain values, for a process that has TileLang: nothing of it is pickled.

The process executes the same text of the kernel's function. What the text names is sent along: numbers, texts, dtypes,
sizes, containers of these, functions and macros as their own texts, and the language by name.
"""

from __future__ import annotations

import ast
import math
import sys
import textwrap
import types
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx

import ttexplore.language as language
from ttexplore.errors import BackendError, UsageError, shown
from ttexplore.given import plain
from ttexplore.language.editing import OF_ALL_LAUNCHES
from ttexplore.language.guard.standins import StandInModule
from ttexplore.language.guard.surroundings import Surroundings, surroundings_of
from ttexplore.language.tracer.containers import is_dict, is_sequence
from ttexplore.language.tracer.dtypes import dtype
from ttexplore.language.tracer.kernel import Macro, TracedKernel
from ttexplore.language.tracer.spans import display_file, source_listing
from ttexplore.record import JsonObject, Span, lines_of

# Modules that a kernel may name, and that compute the same there.
_MODULES = ("math", "operator", "functools", "itertools", "typing", "numpy")


@dataclass(frozen=True, slots=True)
class TextLocation:
    """Where a sent text stands: `first_line` is the number of its first line in `file`."""

    file: str
    first_line: int

    def span(self, line: int) -> Span:
        """A line of the text, counted from 1."""
        number = self.first_line + line - 1
        return Span(self.file, number, 1, number, 1)


@dataclass(frozen=True, slots=True)
class PortableKernel:
    """`texts` are those of the kernel's function and of the functions that it calls, each with the values of its names;
    `places` are where they stand. `arguments` are those of an eager kernel."""

    texts: list[JsonObject]
    places: tuple[TextLocation, ...]
    arguments: JsonObject


@dataclass
class _Sending:
    texts: list[JsonObject] = field(default_factory=list[JsonObject])
    places: list[TextLocation] = field(default_factory=list[TextLocation])
    numbers: dict[types.CodeType, int] = field(default_factory=dict[types.CodeType, int])

    def text(self, name: str, text: str, origin: TextLocation, surroundings: Surroundings) -> int:
        number = len(self.texts)
        sent: JsonObject = {"name": name, "text": text, "flags": surroundings.flags, "names": {}}
        self.texts.append(sent)
        self.places.append(origin)
        for used, line in _used_names(text).items():
            for namespace in (surroundings.around, surroundings.module):
                if used in namespace and used != name:
                    sent["names"][used] = self.value(namespace[used], used, origin.span(line))
                    break
        return number

    def function(self, function: types.FunctionType) -> JsonObject:
        code = function.__code__
        if code not in self.numbers:
            file = display_file(function)
            listing, first = source_listing(function, file)
            # Known before its names are: it may name itself.
            self.numbers[code] = len(self.texts)
            text = "\n".join(line.text for line in listing.lines)
            self.text(function.__name__, text, TextLocation(file, first), surroundings_of(function, None))
        return {"function": self.numbers[code]}

    def value(self, value: Any, name: str, span: Span) -> JsonObject:
        if isinstance(value, dtype):
            return {"dtype": str(value)}
        value = plain(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {"number": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        if isinstance(value, tirx.Var):
            return {"size": str(value.name), "dtype": str(value.ty.dtype)}
        if is_sequence(value):
            items = [self.value(item, name, span) for item in value]
            return {"tuple": items} if isinstance(value, tuple) else {"list": items}
        if is_dict(value):
            pairs = value.items()
            return {"dict": [[self.value(key, name, span), self.value(item, name, span)] for key, item in pairs]}
        if isinstance(value, types.ModuleType):
            return self.module(value, name, span)
        language_name = next((key for key, exported in vars(language).items() if exported is value), None)
        if language_name is not None:
            return {"language": language_name}
        for module_name in _MODULES:
            members = vars(sys.modules[module_name]) if module_name in sys.modules else {}
            member = next((key for key, exported in members.items() if exported is value), None)
            if member is not None:
                return {"module": module_name, "member": member}
        if isinstance(value, Macro):
            return self.function(value.function)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        raise _cannot_be_sent(name, value, span)

    def module(self, module: types.ModuleType, name: str, span: Span) -> JsonObject:
        if module is language:
            return {"language": ""}
        if isinstance(module, StandInModule) and module.__name__ == "tilelang":
            return {"tilelang": True}
        if module.__name__ in _MODULES:
            return {"module": module.__name__}
        raise _cannot_be_sent(name, module, span)


def _cannot_be_sent(name: str, value: object, span: Span) -> BackendError:
    return BackendError(
        "B042",
        f"{name} is {shown(value)}, which cannot be sent to TileLang",
        hint="use numbers, texts, dtypes, tuples, lists, dictionaries and functions of these in the kernel",
        span=span,
    )


def _used_names(text: str) -> dict[str, int]:
    """The names that a function's text reads and does not bind, each with the first line that does, counted from 1."""
    tree = ast.parse(textwrap.dedent(text))
    bound: set[str] = set()
    used: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = min(node.lineno, used.get(name, node.lineno))
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case _:
                pass
    return {name: line for name, line in used.items() if name not in bound}


def portable(kernel: TracedKernel) -> PortableKernel:
    """The kernel for another process.

    Raises BackendError, at the line, for a name whose value is more than plain data, and UsageError for one launch of a
    kernel with several.
    """
    surroundings = kernel.surroundings
    if surroundings is None:
        raise UsageError(
            "U019",
            f"{kernel.name} cannot be lowered for a GPU alone: {OF_ALL_LAUNCHES}",
            hint="use ex.gpu() of the whole",
        )
    sending = _Sending()
    text = "\n".join(lines_of(kernel.source.text))
    origin = TextLocation(kernel.file, kernel.first_line)
    sending.text(kernel.source.name, text, origin, surroundings)
    span = origin.span(1)
    arguments = {name: sending.value(value, name, span) for name, value in surroundings.arguments.items()}
    return PortableKernel(sending.texts, tuple(sending.places), arguments)
