"""The whole numbers in a source: what it does may change where a length goes beyond one of them."""

from __future__ import annotations

import ast
import re

from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.proof.cuda.tokens import without_comments
from ttexplore.porting.proof.launches import LONGEST

_WHOLE = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?:[uUlL]*|\.0*[fF]?)(?![\w.])")
_SHIFTED = re.compile(r"(?<![\w.])(\d{1,2})[uUlL]*\s*<<\s*(\d{1,2})(?!\w)")


def numbers_of(language: Language, text: str, kernel: ForeignKernel) -> tuple[int, ...]:
    """The whole numbers of a kernel and of what it uses, from the largest on, those that a length can go beyond."""
    numbers = _of_python(text, kernel.name) if language == "Triton" else _of_text(without_comments(text))
    numbers |= {value for name, value in kernel.constants.items() if re.search(rf"\b{re.escape(name)}\b", text)}
    return tuple(sorted((number for number in numbers if 2 <= number < LONGEST), reverse=True))


def _of_text(text: str) -> set[int]:
    numbers = {int(digits, 16 if digits[:2] in ("0x", "0X") else 10) for digits in _WHOLE.findall(text)}
    return numbers | {int(number) << int(shift) for number, shift in _SHIFTED.findall(text)}


def _of_python(text: str, kernel: str) -> set[int]:
    """The numbers of a function and of the functions and constants of the module that it names."""
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in ast.parse(text).body:
        match statement:
            case ast.FunctionDef(name):
                definitions[name] = statement.body
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                definitions[name] = [statement]
            case _:
                pass
    numbers = set[int]()
    pending, reached = [kernel], {kernel}
    while pending:
        for node in (node for statement in definitions.get(pending.pop(), ()) for node in ast.walk(statement)):
            match node:
                case ast.Constant(int() | float() as value) if value == value // 1 and abs(value) <= LONGEST:
                    numbers.add(int(value))
                case ast.BinOp(ast.Constant(int() as first), operator, ast.Constant(int() as second)):
                    numbers |= _result(first, operator, second)
                case ast.Name(name) if name not in reached:
                    reached.add(name)
                    pending.append(name)
                case _:
                    pass
    return numbers


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
