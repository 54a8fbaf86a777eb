"""The numbers in a source: what it does may change where a length goes beyond a whole one, and where an element reaches
any of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.proof.cuda.tokens import without_comments
from ttexplore.porting.proof.launches import LONGEST

_WHOLE = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?:[uUlL]*|\.0*[fF]?)(?![\w.])")
_ANY = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?=[fFuUlL]*(?![\w.]))")
_SHIFTED = re.compile(r"(?<![\w.])(\d{1,2})[uUlL]*\s*<<\s*(\d{1,2})(?!\w)")
# Of the constants, those that float32 holds, and how many are tried.
_SMALLEST, _LARGEST, _MOST_CONSTANTS = 1e-37, 3e38, 24


def numbers_of(language: Language, text: str, kernel: ForeignKernel) -> tuple[int, ...]:
    """The whole numbers of a kernel and of what it uses, from the largest on, those that a length can go beyond."""
    numbers = _of_python(text, kernel.name) if language == "Triton" else _of_text(without_comments(text))
    numbers |= {value for name, value in kernel.constants.items() if re.search(rf"\b{re.escape(name)}\b", text)}
    return tuple(sorted((number for number in numbers if 2 <= number < LONGEST), reverse=True))


def constants_of(language: Language, text: str, kernel: ForeignKernel) -> tuple[float, ...]:
    """The numbers of a kernel and of what it uses that are elements of tensors at most by chance: neither 0 nor 1."""
    if language == "Triton":
        values = [node.value for node in _nodes(text, kernel.name) if isinstance(node, ast.Constant)]
        numbers = {float(value) for value in values if isinstance(value, int | float)}
    else:
        numbers = {float(digits) for digits in _ANY.findall(without_comments(text))}
    numbers |= {float(number) for number in numbers_of(language, text, kernel)}
    return tuple(sorted(number for number in numbers if _SMALLEST < number < _LARGEST and number != 1))[
        :_MOST_CONSTANTS
    ]


def _of_text(text: str) -> set[int]:
    numbers = {int(digits, 16 if digits[:2] in ("0x", "0X") else 10) for digits in _WHOLE.findall(text)}
    return numbers | {int(number) << int(shift) for number, shift in _SHIFTED.findall(text)}


def _of_python(text: str, kernel: str) -> set[int]:
    numbers = set[int]()
    for node in _nodes(text, kernel):
        match node:
            case ast.Constant(int() | float() as value) if value == value // 1 and abs(value) <= LONGEST:
                numbers.add(int(value))
            case ast.BinOp(ast.Constant(int() as first), operator, ast.Constant(int() as second)):
                numbers |= _result(first, operator, second)
            case _:
                pass
    return numbers


def _nodes(text: str, kernel: str) -> Iterator[ast.AST]:
    """The nodes of a function and of the functions and constants of the module that it names."""
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in ast.parse(text).body:
        match statement:
            case ast.FunctionDef(name):
                definitions[name] = statement.body
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                definitions[name] = [statement]
            case _:
                pass
    pending, reached = [kernel], {kernel}
    while pending:
        for node in (node for statement in definitions.get(pending.pop(), ()) for node in ast.walk(statement)):
            yield node
            if isinstance(node, ast.Name) and node.id not in reached:
                reached.add(node.id)
                pending.append(node.id)


def _result(first: int, operator: ast.operator, second: int) -> set[int]:
    match operator:
        case ast.Mult():
            return {first * second}
        case ast.LShift() if 0 <= second < 32:
            return {first << second}
        case ast.Pow() if 0 <= second < 32 and abs(first) < 64:
            return {first**second}
        case ast.Add():
            return {first + second}
        case _:
            return set()
