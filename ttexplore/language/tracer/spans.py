"""Where kernel source is: definitions, display names of files and cells, and the source range of a frame."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ttexplore.errors import KernelError
from ttexplore.record import Line, Listing, Origin, Span, lines_of

# The nodes of a syntax tree that know their place.
Located = ast.expr | ast.stmt | ast.arg


def display_file(function: object) -> str:
    """The display name of a kernel's file: its path, or ``cell N`` in a notebook; never a temporary path.

    Raises KernelError for functions without Python source, such as built-in functions.
    """
    if not isinstance(function, types.FunctionType):
        raise KernelError(
            "K008",
            f"a kernel is made from {function!r}, which is not a Python function",
            hint="write @T.prim_func, @T.macro or @tilelang.jit above a def",
        )
    return display_name(function.__code__.co_filename)


def code_file(display: str, digest: str, *, edited: bool) -> str:
    """The code file of a text that stands for the one of a kernel in a file or cell. Lines of an edited text are no
    lines of that file, so they are displayed with another name."""
    return f"<{'edited' if edited else 'unedited'} {digest} {display}>"


def display_name(file: str) -> str:
    """The display name of a code file."""
    text = re.fullmatch(r"<(un)?edited \w+ (.*)>", file)
    if text:
        return text[2] if text[1] else f"{text[2]} (edited)"
    named = re.fullmatch(r"<ipython-input-(\d+)-.*>", file)
    if named:
        return f"cell {named[1]}"
    number = _cell_number(file)
    if number is not None:
        return f"cell {number}"
    if not re.search(r"ipykernel_\d+", file):
        return file
    # A cell that came from another process has brought its name along.
    cached = linecache.cache.get(file, ())
    return cached[3] if len(cached) == 4 and cached[3] != file else "cell"


def _shell() -> Any:
    """IPython's shell, or None outside IPython."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _cell_number(file: str) -> int | None:
    """The execution count of a cell's file; IPython's compiler knows it long after the cell ran."""
    shell = _shell()
    code_name = shell.compile.format_code_name(file) if hasattr(shell, "compile") else None
    counted = re.fullmatch(r"In\[(\d+)\]", code_name[1]) if code_name else None
    return int(counted[1]) if counted else None


@functools.lru_cache(maxsize=64)
def _definitions(file: str, text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Every function of a file by name and first line; decorators belong to their function."""
    definitions: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(ast.parse(text, file)):
        if isinstance(node, ast.FunctionDef):
            definitions[node.name, first_line(node)] = node
    return definitions


def first_line(node: ast.FunctionDef) -> int:
    """The first line of a function, including its decorators."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def source_text(function: types.FunctionType) -> str:
    """The text of the whole file of `function`; empty if there is none."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    return _cell_text(file, lines) or "".join(lines)


def _cell_text(file: str, lines: list[str]) -> str:
    """The text of a cell from IPython's history, if `lines` are the cell's: `lines` may also be split at a form feed
    and the like, which Python does not count as line ends. Empty for other files."""
    number = _cell_number(file)
    if number is None:
        return ""
    cells = _shell().history_manager.input_hist_parsed
    text = str(cells[number]) if number < len(cells) else ""
    return text if "".join(lines).rstrip("\n") == "\n".join(text.splitlines()).rstrip("\n") else ""


def definition(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with the line numbers of its file.

    The tree is shared: copy it before changing it. Raises KernelError if there is no source.
    """
    code, text = function.__code__, source_text(function)
    node = _definitions(code.co_filename, text).get((code.co_name, code.co_firstlineno)) if text else None
    if node is None:
        raise KernelError(
            "K011",
            f"the source of {code.co_name} cannot be found",
            hint="define the kernel in a file or a notebook cell (not in exec or a bare shell), and load the file "
            "again if it changed since it was imported",
        )
    return node


def source_listing(function: types.FunctionType, file: str) -> tuple[Listing, int]:
    """The text of a function as lines with their places, and the number of the first line."""
    node = definition(function)
    first = first_line(node)
    texts = lines_of(source_text(function))[first - 1 : node.end_lineno]
    return numbered_listing(texts, first, file, function.__name__), first


def numbered_listing(texts: Iterable[str], first: int, file: str, name: str) -> Listing:
    """Lines of Python that stand in `file` from line `first` on."""
    lines = tuple(
        Line(text, (Origin(Span(file, number, 1, number, len(text) + 1), "exact"),))
        for number, text in enumerate(texts, first)
    )
    return Listing("python", lines, name)


def node_span(file: str, node: Located, last: Located | None = None) -> Span:
    """The source range of a syntax tree node, or from it to the end of `last`."""
    end = node if last is None else last
    return Span(file, node.lineno, node.col_offset + 1, end.end_lineno or end.lineno, (end.end_col_offset or 0) + 1)


def frame_span(frame: types.FrameType, instruction: int, file: str) -> Span:
    """The source range of the instruction (a byte offset) in `frame`."""
    return _code_span(frame.f_code, frame.f_lineno, instruction, file)


def _code_span(code: types.CodeType, at: int, instruction: int, file: str) -> Span:
    line, column, end_line, end_column = at, 1, at, 1
    if instruction >= 0:
        positions = itertools.islice(code.co_positions(), instruction // 2, None)
        start, stop, begin, end = next(positions, (None,) * 4)
        line, end_line = start or line, stop or start or line
        column, end_column = (begin or 0) + 1, (end or 0) + 1
    return Span(file, line, column, end_line, end_column)


def error_span(error: BaseException, files: Mapping[str, str]) -> Span | None:
    """The innermost place in an error's traceback that is in one of `files` (code file to display name)."""
    span, step = None, error.__traceback__
    while step is not None:
        file = files.get(step.tb_frame.f_code.co_filename)
        if file is not None:
            span = frame_span(step.tb_frame, step.tb_lasti, file)
            # The line of the traceback entry, not the one that the frame reached later.
            if span.line != step.tb_lineno and step.tb_lineno:
                span = Span(file, step.tb_lineno, 1, step.tb_lineno, 1)
        step = step.tb_next
    return span


def caller_span(files: Mapping[str, str]) -> Span | None:
    """The current place of the innermost calling frame in one of `files`."""
    return caller_place(files)()


def caller_place(files: Mapping[str, str]) -> Callable[[], Span | None]:
    """The same, found when it is asked for: that takes long in a long function."""
    frame = sys._getframe(1)
    while frame is not None:
        file = files.get(frame.f_code.co_filename)
        if file is not None:
            return functools.partial(_code_span, frame.f_code, frame.f_lineno, frame.f_lasti, file)
        frame = frame.f_back
    return lambda: None
