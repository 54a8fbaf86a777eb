"""TileLang code pasted into a notebook: there, as in kernel files, `tilelang` is this project's kernel language.

An installed TileLang takes precedence. Nothing else is replaced, and nothing is imported until a cell imports it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any


class _TileLangFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tilelang` and its submodules, after all other finders."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname.partition(".")[0] == "tilelang":
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        from ttexplore.language.tilelang import made_module

        return made_module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        from ttexplore.language.tilelang import put_in_place

        put_in_place(module)


def accept_pasted_code() -> None:
    """Make `import tilelang` import this project's kernel language, unless TileLang is installed."""
    if not any(isinstance(finder, _TileLangFinder) for finder in sys.meta_path):
        sys.meta_path.append(_TileLangFinder())
