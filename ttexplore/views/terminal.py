"""Texts for terminals: lines that are too long for one are folded, and nothing is left out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

# Begins what continues a line of code, or a word that was cut.
CONTINUED = "↪ "

# Columns are separated by two spaces or more; a text that is folded goes on below where its column begins.
_COLUMN = re.compile(r"\S {2,}(?=\S)")
# What stands before the code in a row of a diff.
_CODE_START = re.compile(r"[-+~≈⇄]? *")
_CODE_INDENT = 2
# With fewer, what continues a line is no shorter than the line.
_FEWEST_COLUMNS = 8


def terminal_columns() -> int:
    """The columns of the terminal, or as many as COLUMNS says; 0 where the output is no terminal but a file or pipe."""
    return shutil.get_terminal_size((0, 0)).columns


def fold(text: str, columns: int, *, code: bool = False) -> str:
    """`text` in lines of at most `columns` characters, but not fewer than 8; 0 for any number.

    A table's row, a fact or a sentence goes on below the last column that begins in the left half. `code` goes on with
    more indentation, after :data:`CONTINUED`, because the end of a line means something there.
    """
    if not columns:
        return text
    columns = max(columns, _FEWEST_COLUMNS)
    return "\n".join(piece for line in text.split("\n") for piece in _folded(line, columns, code))


def _folded(line: str, columns: int, code: bool) -> Iterator[str]:
    before = start = _start(line, columns, code)
    while len(line) > columns:
        # What a part begins with has no end: it would not become shorter.
        space = line.rfind(" ", before, columns + 1)
        marked = code or space < 0
        head = " " * start + (CONTINUED if marked else "")
        cut = columns if space < 0 else space
        yield line[:cut].rstrip()
        # Spaces mean nothing but in code.
        rest = line[cut:] if space < 0 else line[cut + 1 :] if code else line[cut:].lstrip()
        line, before = head + rest, len(head)
    yield line


def _start(line: str, columns: int, code: bool) -> int:
    """Where the continuations of a line begin."""
    if code:
        prefix = _CODE_START.match(line)
        start = (prefix.end() if prefix else 0) + _CODE_INDENT
    else:
        ends = [match.end() for match in _COLUMN.finditer(line) if match.end() <= columns // 2]
        start = ends[-1] if ends else len(line) - len(line.lstrip()) + _CODE_INDENT
    return min(start, columns // 2)
