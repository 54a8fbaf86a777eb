"""What the compiler has said before of the very same input: it is not asked again.

It is kept below .cache, by the hash of all that the compiler is given, as the emulator keeps compiled kernels.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.typecheck.headers import CACHE_FOLDER

KNOWN_FOLDER = CACHE_FOLDER / "checked"


def compiler() -> str:
    """The path of g++. Raises FileNotFoundError where none is installed."""
    path = shutil.which("g++")
    if path is None:
        raise FileNotFoundError("the type check of kernels needs g++; install it, for example: apt-get install g++")
    return path


def place(headers: Path, checker: str, parts: Sequence[object]) -> Path:
    """The file for what g++ says of an input: `headers` is the folder of the SDK's headers, `checker` the file of the
    Python that asks, `parts` what it is given."""
    found = [Path(path).resolve() for path in (compiler(), headers)]
    versions = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found]
    texts = [*versions, Path(checker).read_text(encoding="utf-8"), *map(repr, parts)]
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    return KNOWN_FOLDER / digest


def recall(path: Path) -> str | None:
    """What was kept there; None for nothing."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def keep(path: Path, said: str) -> None:
    """Keep what the compiler said, in one rename: several processes share the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    made.write_text(said, encoding="utf-8")
    made.rename(path)
