"""ttexplore lowers TileLang kernels to Tenstorrent chips, step by step, and shows, executes and exports every step."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ttexplore.pasting import accept_pasted_code

if TYPE_CHECKING:
    from ttexplore import porting
    from ttexplore.exercises.exercise import exercise
    from ttexplore.exploration import Check, Exploration, Run, Step, explore
    from ttexplore.exploration.rooflines import roofline
    from ttexplore.porting.port import port
    from ttexplore.session.reports import compare_explorations as compare
    from ttexplore.session.reports import report
    from ttexplore.session.store import SavedExploration, load
    from ttexplore.sweeping.result import Sweep
    from ttexplore.sweeping.sweep import sweep
    from ttexplore.validating.result import Validation
    from ttexplore.validating.validate import validate

__all__ = [
    "Check", "Exploration", "Run", "SavedExploration", "Step", "Sweep", "Validation", "compare", "exercise", "explore",
    "load", "port", "porting", "report", "roofline", "sweep", "validate",
]  # fmt: skip

# The module of each name, and its name there; a module is its own name.
_HOMES = {
    "Check": ("session.results", "Check"), "Exploration": ("exploration", "Exploration"),
    "Run": ("session.results", "Run"), "SavedExploration": ("session.store", "SavedExploration"),
    "Step": ("exploration", "Step"),
    "compare": ("session.reports", "compare_explorations"), "exercise": ("exercises.exercise", "exercise"),
    "explore": ("exploration", "explore"), "load": ("session.store", "load"),
    "port": ("porting.port", "port"), "porting": ("porting", ""),
    "report": ("session.reports", "report"), "roofline": ("exploration.rooflines", "roofline"),
    "Sweep": ("sweeping.result", "Sweep"), "sweep": ("sweeping.sweep", "sweep"),
    "Validation": ("validating.result", "Validation"), "validate": ("validating.validate", "validate"),
}  # fmt: skip


# In a notebook that imports ttexplore, `import tilelang` works, too, and errors are cards.
if (_shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()) is not None:
    from ttexplore.views.failures import show_cards

    accept_pasted_code()
    show_cards(_shell)


def load_ipython_extension(shell: Any) -> None:
    """Implements ``%load_ext ttexplore``: adds ``%%ttexplore`` cells, and TileLang's name."""
    from ttexplore import ipython

    ipython.load_ipython_extension(shell)


def __getattr__(name: str) -> Any:
    # TVM takes seconds to import, and may be missing: code that only reads plans and records must not import it.
    if name in _HOMES:
        import importlib

        module, own_name = _HOMES[name]
        loaded = importlib.import_module(f"ttexplore.{module}")
        return getattr(loaded, own_name) if own_name else loaded
    raise AttributeError(f"ttexplore has no {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
