"""Import `tilelang` as this language while a file that uses it is loaded.

Modules that TileLang's examples import and that are not installed (torch, einops, ...) are replaced by stand-ins for
the same time. Installed modules are used as they are.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Generator, Sequence
from pathlib import Path

from ttexplore.ir.adapter import older_names
from ttexplore.language.guard.names import STAND_INS
from ttexplore.language.guard.standins import StandInModule
from ttexplore.language.tilelang import made_module, put_in_place, tilelang_modules
from ttexplore.language.tracer.kernel import loading_file

# What is changed inside of tilelang_alias belongs to the whole process, so files load one after another. A file may
# itself explore a kernel of another one.
_LOADING = threading.RLock()


class _StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find a stand-in for modules that no other finder knows, in the thread that loads a file."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] in STAND_INS and threading.get_ident() == self._thread:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return made_module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        put_in_place(module)


@contextlib.contextmanager
def stand_ins() -> Generator[None]:
    """Replace modules that are not installed by stand-ins inside the `with` block; those of TileLang remain afterwards.
    Other threads wait for their turn."""
    with _LOADING:
        before, finder = set(sys.modules), _StandInFinder()
        sys.meta_path.append(finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in set(sys.modules) - before:
                if isinstance(sys.modules[name], StandInModule) and not _is_tilelang(name):
                    del sys.modules[name]


@contextlib.contextmanager
def tilelang_alias(folder: Path) -> Generator[None]:
    """Make `tilelang` this language, and files in `folder` importable, inside the `with` block. Other threads wait for
    their turn."""
    with _LOADING:
        yield from _alias(folder)


def _alias(folder: Path) -> Generator[None]:
    before, ours = set(sys.modules), tilelang_modules()
    finder, search_path = _StandInFinder(), str(folder)
    # There are over a thousand modules; those of a package come after it.
    hidden = {name: sys.modules[name] for name in before if _is_tilelang(name)} if "tilelang" in before else {}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(ours)
    sys.meta_path.append(finder)
    sys.path.insert(0, search_path)
    token = loading_file.set(True)
    try:
        with older_names():
            yield
    finally:
        loading_file.reset(token)
        sys.path.remove(search_path)
        sys.meta_path.remove(finder)
        for name in {*ours, *(sys.modules.keys() - before)}:
            if name in sys.modules and (_is_tilelang(name) or _is_temporary(sys.modules[name], folder)):
                del sys.modules[name]
        sys.modules.update(hidden)


def _is_tilelang(name: str) -> bool:
    return name == "tilelang" or name.startswith("tilelang.")


def _is_temporary(module: types.ModuleType, folder: Path) -> bool:
    """Whether a module is a stand-in, or a file next to the kernel's file that has seen stand-ins."""
    if isinstance(module, StandInModule):
        return True
    file = vars(module).get("__file__")
    return isinstance(file, str) and Path(file).is_relative_to(folder)
