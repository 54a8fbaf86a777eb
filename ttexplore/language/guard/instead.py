"""What to write instead of plain Python that fails on a value known only when the kernel runs.

The failing expression is found by its position in the source, and its operands in the frame that evaluates it, because
the messages of Python and NumPy differ from function to function.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Iterator

from ttexplore.ir.arithmetic.functions import FUNCTIONS
from ttexplore.language.guard.state import held, is_own
from ttexplore.language.tracer.builder import is_dynamic
from ttexplore.language.tracer.containers import is_sequence
from ttexplore.language.tracer.dtypes import DTYPES
from ttexplore.language.tracer.spans import frame_span

_LOOK_UP = "choose with T.if_then_else(x == 0, a, b), or pass the values to the kernel as a tensor and read an element"
_INSTEAD = {
    **{name: f"T.{name}(x)" for name in FUNCTIONS},
    **{name: f'T.cast(x, "{name}")' for name in DTYPES},
    "max": "T.max(x, y)", "maximum": "T.max(x, y)", "fmax": "T.max(x, y)",
    "min": "T.min(x, y)", "minimum": "T.min(x, y)", "fmin": "T.min(x, y)",
    "abs": "T.abs(x)", "fabs": "T.abs(x)", "absolute": "T.abs(x)",
    "round": "T.round(x)", "rint": "T.round(x)", "hypot": "T.hypot(x, y)",
    "pow": "T.pow(x, y)", "power": "T.pow(x, y)", "divmod": "x // y and x % y", "sum": "x + y",
    "float": 'T.cast(x, "float32")', "int": 'T.cast(x, "int32")', "index": 'T.cast(x, "int32")', "bool": "x != 0",
    "any": "T.any(x, y)", "all": "T.all(x, y)", "where": "T.if_then_else(condition, x, y)",
    "sorted": "T.min(x, y) and T.max(x, y)", "clip": "T.clamp(x, low, high)",
}  # fmt: skip


def hint_of(error: BaseException) -> str | None:
    """The hint for an exception in the user's Python, or None if it does not involve a value known only when the kernel
    runs."""
    location = _of_frame(*_place_of(error))
    return location if location is None else f"{location}: {_WHY}" if location else OPERATORS_AND_T


def decided_by(error: BaseException | None = None) -> str | None:
    """The hint for a function that decides by a value: where the error was raised, or else where the user's Python is
    now. None if the function is not known."""
    location = _of_frame(*(_place_of(error) if error is not None else _here()))
    return location or None


_WHY = "plain Python cannot compute with values known only when the kernel runs"
OPERATORS_AND_T = f"{_WHY}; use the operators + - * / and the functions of T, as T.exp(x)"

# A frame and the byte offset of the instruction that it is at.
_Place = tuple[types.FrameType | None, int]


def _place_of(error: BaseException) -> _Place:
    """The innermost frame of the user's code in a traceback."""
    frame_position: _Place = (None, 0)
    step = error.__traceback__
    while step is not None:
        if _is_users(step.tb_frame):
            frame_position = (step.tb_frame, step.tb_lasti)
        step = step.tb_next
    return frame_position


def _here() -> _Place:
    frame = sys._getframe(1)
    while frame is not None and not _is_users(frame):
        frame = frame.f_back
    return frame, frame.f_lasti if frame is not None else 0


def _is_users(frame: types.FrameType) -> bool:
    return is_own(str(frame.f_globals.get("__name__", "")))


def _of_frame(frame: types.FrameType | None, instruction: int) -> str | None:
    """What to write for the expression at an instruction; empty if nothing is known, None if the expression does not
    involve a value known only when the kernel runs."""
    expression = _expression(frame, instruction) if frame is not None else None
    if frame is None or expression is None or not any(map(_is_unknown, _values(expression, frame))):
        return None
    match expression:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"write {_INSTEAD[name]}" if name in _INSTEAD else ""
        case ast.BinOp(op=ast.Pow()):
            return "write x * x, or T.pow(x, y) of floating-point numbers"
        case ast.Subscript():
            return _LOOK_UP
        case _:
            return ""


def _expression(frame: types.FrameType, instruction: int) -> ast.expr | None:
    span = frame_span(frame, instruction, "")
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[span.line - 1 : span.end_line]
    if not lines:
        return None
    # Columns count bytes.
    encoded_lines = [line.encode() for line in lines]
    encoded_lines[-1] = encoded_lines[-1][: span.end_column - 1]
    encoded_lines[0] = encoded_lines[0][span.column - 1 :]
    try:
        return ast.parse(b"(" + b"".join(encoded_lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _values(expression: ast.expr, frame: types.FrameType) -> Iterator[object]:
    """The values of the names in an expression."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield held(frame.f_locals.get(node.id, frame.f_globals.get(node.id)))


def _is_unknown(value: object) -> bool:
    return any(map(_is_unknown, value)) if is_sequence(value) else is_dynamic(value)
