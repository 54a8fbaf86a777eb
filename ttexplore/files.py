"""Writing files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ttexplore.errors import UsageError
from ttexplore.record import Listing


def write_files(files: dict[str, Listing], folder: str | Path) -> list[Path]:
    """Write the files into a folder, all or none. Raises UsageError where the folder cannot be written."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as staging:
            for name, listing in files.items():
                (Path(staging) / name).write_text(listing.text, encoding="utf-8")
            for name in files:
                shutil.move(str(Path(staging) / name), str(target / name))
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror or error}", hint="choose a folder that you may write to"
        ) from error
    return [target / name for name in files]


def write_file(path: str | Path, text: str) -> Path:
    """Write one file. Raises UsageError where that cannot be."""
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror or error}", hint="choose a folder that you may write to"
        ) from error
    return target
