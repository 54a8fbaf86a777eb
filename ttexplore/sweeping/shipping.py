"""How a kernel reaches another process: as the name of its file, or as its function with the text that it is from."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.metadata
import io
import linecache
import os
import pickle
import platform
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ttexplore


@dataclass(frozen=True)
class Shipped:
    """A kernel as plain data. `reference` is what the user calls it.

    A kernel of a file is its `path`, absolute, so that it does not matter where a process was started, with the
    kernel's `name` in it. Any other is `pickled`, and `texts` holds the texts of its functions that are in no file:
    nobody else has the cells of a notebook. `spelled` gives the files in messages the names that the user knows.

    `digest` is a hash of the sources: of the kernel's, of those that it imports, and of ttexplore. It is empty where
    they are not known; nothing is kept then.
    """

    reference: str
    path: str = ""
    name: str = ""
    pickled: bytes = b""
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    spelled: tuple[tuple[str, str], ...] = ()
    digest: str = ""


def shipped_file(path_and_name: str) -> Shipped:
    """The kernel ``file.py::name``. Raises UsageError if the file cannot be read."""
    file, separator, name = path_and_name.rpartition("::")
    if not separator:
        file, name = path_and_name, ""
    path = os.path.abspath(file)
    try:
        sources = sorted({Path(path), *_imported(Path(path))})
        digest = _digest([path_and_name, ttexplore_digest()], sources)
    except (OSError, ValueError):
        # Loading it says what is wrong with it.
        digest = ""
    return Shipped(path_and_name, path, name, spelled=((path, file),), digest=digest)


def shipped_object(kernel: object) -> Shipped | None:
    """A kernel of this process; None if it cannot leave it, as a T.prim_func, which has been traced already."""
    from ttexplore.language.tracer.kernel import JitKernel, Tuned
    from ttexplore.language.tracer.spans import display_name

    if not isinstance(kernel, types.FunctionType | JitKernel | Tuned):
        return None
    try:
        # It has no types; where it is not installed, the kernel stays here.
        cloudpickle: Any = importlib.import_module("cloudpickle")
        pickled = bytes(cloudpickle.dumps(kernel))
    except Exception:  # What is pickled is the user's, and may raise anything.
        return None
    if not is_loadable(pickled):
        return None
    # The code of a function comes along with the name of its file. Macros may be from other cells than the kernel.
    cells = [file for file in list(linecache.cache) if file.encode("utf-8", "surrogatepass") in pickled]
    texts = {file: "".join(linecache.getlines(file)) for file in cells if not os.path.exists(file)}
    name = str(getattr(kernel, "__name__", type(kernel).__name__))
    spelled = tuple((file, display_name(file)) for file in texts)
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    own_files = sorted({Path(file) for file in loaded if isinstance(file, str) and _is_own(Path(file))})
    try:
        digest = _digest([hashlib.sha256(pickled).hexdigest(), ttexplore_digest()], own_files)
    except OSError:
        digest = ""
    return Shipped(name, pickled=pickled, texts=texts, spelled=spelled, digest=digest)


def received(kernel: Shipped) -> Any:
    """The kernel in the process that it was shipped to: what :func:`ttexplore.language.load.find_kernel` gives.

    Raises UsageError if its file is missing there or cannot be loaded.
    """
    # What is pickled may hold values of TVM, with the operations that are registered when all is imported.
    importlib.import_module("ttexplore.exploration")
    from ttexplore.language.load import FoundKernel, find_kernel

    if kernel.path:
        return find_kernel(f"{kernel.path}::{kernel.name}" if kernel.name else kernel.path)
    names = dict(kernel.spelled)
    for file, text in kernel.texts.items():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), names[file])
    return FoundKernel(pickle.loads(kernel.pickled), "", Path.cwd())


def is_loadable(pickled: bytes) -> bool:
    """Whether other processes can load this: classes and functions of the running program are there only by name."""
    try:
        _PickledNames(io.BytesIO(pickled)).load()
    except pickle.UnpicklingError:
        return False
    return True


class _PickledNames(pickle.Unpickler):
    """Reads the names in a pickle, and makes nothing of it. Raises UnpicklingError for one that cannot be imported."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        package = module_name.partition(".")[0]
        if package == "__main__" or not any(
            finder.find_spec(package, None) for finder in sys.meta_path if hasattr(finder, "find_spec")
        ):
            raise pickle.UnpicklingError(f"{module_name} cannot be imported")
        return _Anything


class _Called(type):
    def __call__(cls, *_: object, **__: object) -> Any:
        return cls

    def __setitem__(cls, key: object, value: object) -> None: ...


class _Anything(metaclass=_Called):
    """Stands for all classes and functions in a pickle, and for what they make: it is called, and changed, in vain."""

    def __new__(cls, *_: object, **__: object) -> Any:
        return cls

    @classmethod
    def __setstate__(cls, state: object) -> None: ...

    append = extend = add = __setstate__


# What is hashed

_SOURCES = (".py", ".h", ".cpp")
_COMPUTES_WITH = ("apache-tvm", "apache-tvm-ffi", "numpy", "ml-dtypes")


@functools.cache
def ttexplore_digest() -> str:
    """A hash of ttexplore's own sources, those of the emulator among them, and of the versions of Python and of what it
    computes with: others may lower or prove in another way."""
    folder = Path(ttexplore.__file__).parent
    sources = sorted(file for file in folder.rglob("*") if file.suffix in _SOURCES)
    versions = [importlib.metadata.version(name) for name in _COMPUTES_WITH]
    return _digest([platform.python_implementation(), platform.python_version(), *versions], sources, folder)


def _digest(texts: Iterable[str], files: Iterable[Path], folder: Path | None = None) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    for file in files:
        content = file.read_bytes()
        name = str(file.relative_to(folder) if folder else file)
        digest.update(f"{name}:{len(content)}:".encode("utf-8", "surrogatepass"))
        digest.update(content)
    return digest.hexdigest()


_PACKAGES = frozenset({"site-packages", "dist-packages"})
_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_own(file: Path) -> bool:
    """Whether a Python file is the user's: neither installed, in whichever folder, nor of ttexplore."""
    if file.suffix != ".py" or not file.is_file():
        return False
    resolved = file.resolve()
    if not _PACKAGES.isdisjoint((*file.parts, *resolved.parts)):
        return False
    return not any(resolved.is_relative_to(folder) for folder in (*_INSTALLED, Path(ttexplore.__file__).parent))


def _imported(file: Path) -> set[Path]:
    """The user's own files that a file imports, and those that these import. Of a package, all files.

    Raises OSError for a file that cannot be read, and ValueError for a name that no file can have.
    """
    imported: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in imported:
            continue
        imported.add(path)
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError):
            # It imports nothing. If the kernel needs it, loading the kernel says what is wrong with it.
            continue
        for name in _top_names(tree):
            spec = importlib.machinery.PathFinder.find_spec(name, [str(file.parent), *sys.path])
            waiting += _files_of(spec)
    return imported


def _top_names(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module.partition(".")[0])
            case _:
                pass
    return names


def _files_of(spec: importlib.machinery.ModuleSpec | None) -> list[Path]:
    if spec is None:
        return []
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in folder.rglob("*.py")] if folders else [Path(spec.origin or "")]
    return [file for file in files if _is_own(file)]
