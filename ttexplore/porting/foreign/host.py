"""Numbers that a kernel computes from its parameters alone, written before the kernel with the types of the source.

The source has them as float32 and, of whole parameters, as int32, which wraps around; Python would take others. What is
a constant of the compiler is computed as Python does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.values import Formula, Number, Scalar, Value, in_order, parts_of, scalars_of, walk
from ttexplore.porting.foreign.writing import (
    PythonText,
    SkeletonNames,
    applied,
    bare,
    code,
    joined,
    number,
    whole_number,
)

# A constant of the compiler, which may be whole or not or is known to be, a whole number, a float32, a parameter that
# is a float32, one without a type, what is made of such ones, or a condition.
_Kind = Literal[
    "constant",
    "whole constant",
    "real constant",
    "whole",
    "real",
    "real parameter",
    "untyped parameter",
    "untyped",
    "condition",
]
_CONSTANTS = {"constant", "whole constant", "real constant"}
_CONDITIONS = {"<", "<=", ">", ">=", "==", "!=", "&", "|"}
_OPERATORS = {"+", "-", "*", "/"} | _CONDITIONS
# What has more operations inside of each other gets a name of its own.
_DEEPEST = 12


def computed_parameters(kernel: ForeignKernel) -> frozenset[str]:
    """The parameters from which numbers are computed before an element comes in."""
    values = [term for store in kernel.stores for term in walk(store.value) if _is_computed(term, kernel)]
    return frozenset[str]().union(*map(scalars_of, values)) - kernel.lengths - _constants(kernel)


def _constants(kernel: ForeignKernel) -> frozenset[str]:
    return frozenset(parameter.name for parameter in kernel.parameters if parameter.kind == "constant")


def _is_computed(value: Value, kernel: ForeignKernel) -> bool:
    """Whether a value is computed from parameters alone, in another way than with its sign changed where it has a type:
    the least whole number has no opposite."""
    match value:
        case Formula("*", (Number(-1.0), Scalar(name))) if kernel.has_types or name in kernel.lengths:
            return False
        case Formula() if value.leaves <= {"Number", "Scalar"}:
            names, constants = scalars_of(value), _constants(kernel)
            parameters = {parameter.name for parameter in kernel.parameters if parameter.kind == "number"}
            operators = {term.name for term in walk(value) if isinstance(term, Formula)}
            return operators <= _OPERATORS and names <= parameters | constants and not names <= constants
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Written:
    """A value as text, what kind of number it is, the parameters on whose types its own depends, and how many
    operations it has inside of each other."""

    text: PythonText
    kind: _Kind
    untyped: tuple[str, ...] = ()
    depth: int = 0


@dataclass
class HostNumbers:
    """The writer of what is computed before the kernel. `leaf` is the text of a parameter."""

    kernel: ForeignKernel
    names: SkeletonNames
    leaf: Callable[[Value], PythonText | None]
    lines: list[PythonText] = field(default_factory=list[PythonText])
    # By their texts, the names of what was computed.
    named: dict[str, PythonText] = field(default_factory=dict[str, PythonText])
    results: dict[int, PythonText | None] = field(default_factory=dict[int, "PythonText | None"])

    @property
    def factory_lines(self) -> list[PythonText]:
        """The lines of the factory."""
        if not self.lines:
            return []
        told = code("# As the source has them: float32 or, made of whole parameters alone, int32, which wraps around.")
        return [told, code('with np.errstate(all="ignore"):'), *self.lines]

    def of(self, value: Value) -> PythonText | None:
        """The name of a number that is computed before the kernel; None for another value, and for whole numbers that
        do not wrap around."""
        if id(value) not in self.results:
            self.results[id(value)] = self.computed(value) if _is_computed(value, self.kernel) else None
        return self.results[id(value)]

    def computed(self, value: Value) -> PythonText | None:
        terms = in_order(value)
        uses = Counter(id(operand) for term in terms for operand in parts_of(term))
        texts: dict[int, _Written] = {}
        for term in terms:
            match term:
                case Number(constant, is_float):
                    is_real = is_float or not float(constant).is_integer()
                    text = number(constant) if is_real else whole_number(constant)
                    written = _Written(text, "real constant" if is_real else "whole constant")
                case Scalar(name):
                    kind = self.kind(name)
                    untyped = (name,) if kind in ("untyped parameter", "constant") else ()
                    written = _Written(self.leaf(term) or self.names.of(name), kind, untyped)
                case Formula(name, (first, second)):
                    written = self.operation(name, texts[id(first)], texts[id(second)])
                    if term is not value and (uses[id(term)] > 1 or written.depth >= _DEEPEST):
                        written = _Written(self.name(written.text), written.kind, written.untyped)
                case _:
                    raise AssertionError(f"{type(term).__name__} is nothing of parameters")
            texts[id(term)] = written
        result = texts[id(value)]
        match result.kind:
            case "condition":
                return self.name(code("bool({text})", text=bare(result.text)))
            case "real" | "untyped":
                return self.name(code("float({text})", text=bare(result.text)))
            case _:
                return None

    def operation(self, name: str, first: _Written, second: _Written) -> _Written:
        """An operation with two numbers, each with the type in which the source computes."""
        kinds: set[_Kind] = {first.kind, second.kind}
        depth = 1 + max(first.depth, second.depth)
        untyped = tuple(dict.fromkeys((*first.untyped, *second.untyped)))
        is_real = bool(kinds & {"real constant", "real", "real parameter"}) or name == "/"
        kind: _Kind
        if kinds <= _CONSTANTS:
            kind = "real constant" if is_real else "constant" if "constant" in kinds else "whole constant"
            texts = [first.text, second.text]
        elif name in ("&", "|"):
            kind, texts = "condition", [first.text, second.text]
        elif is_real:
            kind, untyped, texts = "real", (), [_real(side) for side in (first, second)]
        else:
            kind = "untyped" if kinds & {"untyped", "untyped parameter"} else "whole"
            texts = [self.alike(side, untyped) for side in (first, second)]
        return _Written(applied(name, texts), "condition" if name in _CONDITIONS else kind, untyped, depth)

    def alike(self, side: _Written, untyped: tuple[str, ...]) -> PythonText:
        """A number with the type that parameters have together of which none is known."""
        is_alike = side.kind == "untyped" and side.untyped == untyped
        if is_alike or side.kind not in ("untyped parameter", "untyped"):
            return side.text
        are_whole = [code("isinstance({name}, int)", name=self.names.of(name)) for name in untyped]
        condition = joined(" and ", are_whole)
        number_type = self.name(code("np.int32 if {condition} else np.float32", condition=condition), is_type=True)
        return code("{type}({text})", type=number_type, text=bare(side.text))

    def kind(self, name: str) -> _Kind:
        """What kind of number a parameter is."""
        if name in self.kernel.lengths:
            return "whole"
        parameter = next(each for each in self.kernel.parameters if each.name == name)
        if parameter.kind == "constant":
            return "constant"
        if not self.kernel.has_types:
            return "untyped parameter"
        return "whole" if parameter.dtype else "real parameter"

    def name(self, text: PythonText, *, is_type: bool = False) -> PythonText:
        """The name of a line of its own with a text."""
        if text.text not in self.named:
            name = self.names.claim("number_type" if is_type else "number")
            self.named[text.text] = name
            self.lines.append(code("    {name} = {text}", name=name, text=text))
        return self.named[text.text]


def _real(side: _Written) -> PythonText:
    return side.text if side.kind == "real" else code("np.float32({text})", text=bare(side.text))
