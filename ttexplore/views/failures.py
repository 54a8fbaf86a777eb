"""Errors of ttexplore in notebooks: a card in place of a traceback.

``except`` sees the error as always, and ``%tb`` prints the whole traceback.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ttexplore.characters import Printed
from ttexplore.errors import TTExploreError, from_record
from ttexplore.record import ErrorRecord


@dataclass(frozen=True)
class ErrorCard(Printed):
    """An error, shown in place of a traceback."""

    record: ErrorRecord

    def _repr_html_(self) -> str:
        # Each notebook that imports ttexplore imports this module, and few show a card.
        from ttexplore.views.markup import content_id
        from ttexplore.views.steps.diff import error_html
        from ttexplore.views.theme import fragment

        label = f"error {self.record.code}".strip()
        card = error_html(self.record)
        return fragment(content_id("ttx-error", card), label, card)

    def __repr__(self) -> str:
        return f"{self.record.kind}: {from_record(self.record)}"


def show_cards(shell: Any) -> None:
    """Show the errors of ttexplore that end a cell as cards, unless the shell has a way of its own or is a terminal."""
    if shell is not None and hasattr(shell, "kernel") and not shell.custom_exceptions:
        shell.set_custom_exc((TTExploreError,), _show)


def _show(shell: Any, kind: type, error: TTExploreError, where: TracebackType, tb_offset: int | None = None) -> None:
    from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

    display(ErrorCard(error.record()))
    # The line of the cell; what is below it is of ttexplore, which the card speaks for.
    cell = next((frame for frame in traceback.extract_tb(where) if _in_cell(shell, frame.filename)), None)
    line = f", at line {cell.lineno}: {linecache.getline(cell.filename, cell.lineno or 1).strip()}" if cell else ""
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, where
    shell._showtraceback(kind, error, [f"✖ {kind.__name__}, see above{line}. %tb prints the traceback."])


def _in_cell(shell: Any, file: str) -> bool:
    return shell.compile.format_code_name(file) is not None
