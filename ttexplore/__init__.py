"""ttexplore lowers TileLang kernels to Tenstorrent chips, step by step, and shows, executes and exports every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttexplore.exploration import Check, Exploration, Run, Step, explore
    from ttexplore.exploration import compare_explorations as compare

__all__ = ["Check", "Exploration", "Run", "Step", "compare", "explore"]

_HOMES = {"compare": "compare_explorations"}


def __getattr__(name: str) -> Any:
    # TVM takes seconds to import: what only reads plans and records does not wait for it.
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("ttexplore.exploration"), _HOMES.get(name, name))
    raise AttributeError(f"ttexplore has no {name!r}")
