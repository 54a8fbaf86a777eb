"""Where the lines of a text are in another version of it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def moved_lines(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """For each line, from 0, the line that it has become, -1 if there is none: of lines that were rewritten together,
    the first becomes the first, and so on."""
    moved = [-1] * len(before)
    for _, first, last, at, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if end > at:
            for line in range(first, last):
                moved[line] = min(at + line - first, end - 1)
    return moved
