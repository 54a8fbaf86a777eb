"""Explorers that follow the cells of a notebook: they notice that a cell changes their kernel, and one that replaces
another, because its cell runs again, opens where that one was left."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ttexplore.session.answers import notebook_shell
from ttexplore.session.widget import ExplorerWidget

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored

MAGIC = "%%ttexplore"


class _Cells:
    """The explorers that the cells of a notebook have made. It belongs to the shell, whose events call it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._open: list[weakref.ref[ExplorerWidget]] = []
        # The explorers that the running cell has made so far, and those of each cell when it ran last.
        self._new: list[weakref.ref[ExplorerWidget]] = []
        self._of_cells: dict[str, list[weakref.ref[ExplorerWidget]]] = {}
        self._cell: str | None = None
        shell.events.register("pre_run_cell", self.cell_runs)
        shell.events.register("post_run_cell", self.cell_has_run)

    def cell_runs(self, info: Any) -> None:
        self._cell, self._new = getattr(info, "cell_id", None), []

    def cell_has_run(self, result: Any) -> None:
        cell = getattr(result.info, "cell_id", None)
        # A cell that failed has shown none: its next run continues what was there before.
        if cell and self._new:
            self._of_cells[cell] = self._new
        self._cell, self._new = None, []
        text = str(result.info.raw_cell or "")
        text = self._shell.transform_cell(text.partition("\n")[2] if text.startswith(MAGIC) else text)
        self._open = [ref for ref in self._open if (explorer := ref()) is not None and explorer.comm is not None]
        for ref in self._open:
            if (explorer := ref()) is not None:
                explorer.kernel_changed(text)

    def left(self, exploration: Explored) -> dict[str, str]:
        """Where the reader has left the explorer that this one replaces: the first, second ... of the same kernel that
        the cell made when it ran before."""
        name = str(exploration.kernel.name)
        before = [ref() for ref in self._of_cells.get(self._cell or "", [])]
        same = [widget for widget in before if widget is not None and widget.kernel_name == name]
        count = sum((explorer := ref()) is not None and explorer.kernel_name == name for ref in self._new)
        return same[count].left_for(exploration) if count < len(same) else {}

    def add(self, explorer: ExplorerWidget) -> None:
        self._open.append(weakref.ref(explorer))
        self._new.append(weakref.ref(explorer))


def watched_explorer(exploration: Explored, location: dict[str, str] | None) -> ExplorerWidget:
    """An explorer at a place, by default the one where that which it replaces was left. In a notebook, it notices which
    cells run from now on, as long as it is open."""
    shell = notebook_shell()
    if shell is None:
        return ExplorerWidget(exploration, location)
    owners = (getattr(callback, "__self__", None) for callback in shell.events.callbacks["post_run_cell"])
    cells = next((owner for owner in owners if isinstance(owner, _Cells)), None) or _Cells(shell)
    explorer = ExplorerWidget(exploration, location or cells.left(exploration))
    cells.add(explorer)
    return explorer
