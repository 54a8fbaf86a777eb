"""The text of skeletons: what a foreign source says enters it only as checked names and numbers, or in a comment.

A skeleton is executed, so its text is no place for a word of somebody else. Templates are literals, which the type
checker sees, and their fields are `PythonText`, which only the functions here make.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import LiteralString

_LONGEST_NAME = 60
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words of the templates, which a name of the source must not shadow; tests/porting/test_writing.py has all of them.
_WORDS = (
    "T np numpy ttexplore language rows columns depth block block_depth dtype kernel heads length dim half i j k n bx "
    "by bh acc key_heads q_block k_block v_block scores weights largest before part total scale"
)
RESERVED = frozenset({*_WORDS.split(" "), *keyword.kwlist, *keyword.softkwlist, *dir(builtins)})

_INFIX: dict[str, LiteralString] = {
    "+": "({left} + {right})", "-": "({left} - {right})", "*": "({left} * {right})", "/": "({left} / {right})",
    "<": "({left} < {right})", "<=": "({left} <= {right})", ">": "({left} > {right})", ">=": "({left} >= {right})",
    "==": "({left} == {right})", "!=": "({left} != {right})", "&": "({left} & {right})", "|": "({left} | {right})",
}  # fmt: skip
_CALLS: dict[str, LiteralString] = {
    "exp": "T.exp({inner})", "exp2": "T.exp2({inner})", "log": "T.log({inner})", "log2": "T.log2({inner})",
    "sqrt": "T.sqrt({inner})",
    "rsqrt": "T.rsqrt({inner})", "sin": "T.sin({inner})", "cos": "T.cos({inner})", "abs": "T.abs({inner})",
    "tanh": "T.tanh({inner})",
    "sigmoid": "T.sigmoid({inner})", "erf": "T.erf({inner})", "floor": "T.floor({inner})", "ceil": "T.ceil({inner})",
    "sinh": "T.sinh({inner})", "cosh": "T.cosh({inner})",
}  # fmt: skip
_BINARY: dict[str, LiteralString] = {
    "max": "T.max({left}, {right})", "min": "T.min({left}, {right})", "pow": "T.pow({left}, {right})",
}  # fmt: skip
# The functions and operators that can be written, and how many values they take; sums up to each element are blocks.
WRITTEN = dict.fromkeys((*_CALLS, "cumsum"), 1) | dict.fromkeys((*_INFIX, *_BINARY), 2) | {"where": 3}


@dataclass(frozen=True, slots=True)
class PythonText:
    """Python text that was made here."""

    text: str


def code(template: LiteralString, **pieces: PythonText) -> PythonText:
    """A template with its fields in braces filled in."""
    return PythonText(template.format(**{name: piece.text for name, piece in pieces.items()}))


def joined(separator: LiteralString, pieces: Iterable[PythonText]) -> PythonText:
    """Several texts in a row."""
    return PythonText(separator.join(piece.text for piece in pieces))


def number(value: float) -> PythonText:
    """A number, which may be infinite."""
    if math.isnan(value):
        raise AssertionError("a number that cannot be read has no text")
    if math.isinf(value):
        return PythonText(f'{"-" if value < 0 else ""}T.infinity("float32")')
    return PythonText(repr(float(value)))


def whole_number(value: float) -> PythonText:
    """A number that is whole."""
    return PythonText(repr(int(value)))


def applied(name: str, operands: list[PythonText]) -> PythonText:
    """A function or operator of `WRITTEN`, applied to expressions."""
    match operands:
        case [inner] if name in _CALLS:
            return code(_CALLS[name], inner=inner)
        case [left, right] if name in _INFIX:
            return code(_INFIX[name], left=left, right=right)
        case [left, right] if name in _BINARY:
            return code(_BINARY[name], left=left, right=right)
        case [condition, then, otherwise] if name == "where":
            return code("T.if_then_else({test}, {then}, {other})", test=condition, then=then, other=otherwise)
        case _:
            raise AssertionError(f"{name} of {len(operands)} values cannot be written")


def comment(text: str) -> PythonText:
    """A comment of one line with a foreign text: what is not plain ASCII is written as an escape."""
    return PythonText(f"# {text.encode('unicode_escape').decode('ascii')}")


def assigned(name: str, value: str) -> PythonText:
    """An assignment of a word of the templates to another."""
    if not {name, value} <= RESERVED:
        raise AssertionError(f"{name} or {value} is no word of skeletons")
    return PythonText(f"{name} = {value}")


def without(parameters: PythonText, names: Container[str]) -> PythonText:
    """Parameters with defaults but those of these names."""
    every = parameters.text.split(", ")
    return PythonText(", ".join(each for each in every if each.partition("=")[0] not in names))


def is_name(text: str) -> bool:
    """Whether a text is a plain identifier of ASCII letters and digits."""
    return _IDENTIFIER.fullmatch(text) is not None


def bare(expression: PythonText) -> PythonText:
    """An expression without parentheses around all of it."""
    text = expression.text
    if text.startswith("(") and text.endswith(")"):
        depth = 0
        for position, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if depth == 0:
                return PythonText(text[1:-1]) if position == len(text) - 1 else expression
    return expression


@dataclass
class SkeletonNames:
    """The names of a skeleton: each name of the source has one, and no two have the same."""

    of_source: dict[str, PythonText] = field(default_factory=dict[str, PythonText])
    claimed: set[str] = field(default_factory=set[str])

    def of(self, name: str) -> PythonText:
        """What a name of the source is called."""
        if name not in self.of_source:
            self.of_source[name] = self.claim(name)
        return self.of_source[name]

    def derived(self, name: PythonText, suffix: LiteralString) -> PythonText:
        """A name for what belongs to another name."""
        return self.claim(f"{name.text}_{suffix}")

    def claim(self, preferred_name: str) -> PythonText:
        """A name like `preferred_name` that nothing else has."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", preferred_name[:_LONGEST_NAME]).strip("_") or "x"
        plain = f"x{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in RESERVED else plain
        name, count = plain, 1
        while name in self.claimed or name in RESERVED:
            count += 1
            name = f"{plain}_{count}"
        if not is_name(name):
            raise AssertionError(f"{name!r} is no name")
        self.claimed.add(name)
        return PythonText(name)


@dataclass
class Lines:
    """The lines of a module, each with its indentation."""

    lines: list[str] = field(default_factory=list[str])

    def add(self, depth: int, *lines: PythonText) -> None:
        """Add lines. A text with a line end in it is none."""
        for line in lines:
            if line.text.splitlines() not in ([], [line.text]):
                raise AssertionError("a line of a skeleton has a line end in it")
            self.lines.append(f"{'    ' * depth}{line.text}".rstrip())

    def text(self) -> str:
        """The text of the module."""
        return "\n".join([*self.lines, ""])
