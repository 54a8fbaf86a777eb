"""Notifies an explorer in a notebook when a later cell changes its kernel."""

from __future__ import annotations

import weakref
from typing import Any

from ttexplore.widget import ExplorerWidget, notebook_shell

MAGIC = "%%ttexplore"


def watch_cells(widget: ExplorerWidget) -> None:
    """Notify `widget` of each cell that runs from now on, as long as it is open. Does nothing outside IPython."""
    shell = notebook_shell()
    if shell is None:
        return
    watched = weakref.ref(widget)

    def cell_has_run(result: Any) -> None:
        explorer = watched()
        if explorer is None or explorer.comm is None:
            shell.events.unregister("post_run_cell", cell_has_run)
            return
        text = str(result.info.raw_cell or "")
        explorer.kernel_changed(shell.transform_cell(text.partition("\n")[2] if text.startswith(MAGIC) else text))

    shell.events.register("post_run_cell", cell_has_run)
