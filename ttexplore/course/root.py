"""Where the notebooks are, with their kernels and the documents that they link to."""

from __future__ import annotations

import shutil
from pathlib import Path

# What belongs together: links between these folders are relative.
_FOLDERS = ("notebooks", "docs")
FIRST_NOTEBOOK = Path("notebooks") / "00_start.ipynb"
# The folder below the current one to which those of an installed package are copied, because notebooks are written to.
COPY = Path("ttexplore-course")

# The installed package has them inside, a checkout has them beside the package.
_PACKAGE = Path(__file__).parents[1]
ROOTS = (Path(), _PACKAGE.parent, _PACKAGE)


def course_root(file: Path = FIRST_NOTEBOOK) -> Path | None:
    """Return the folder that has `notebooks` and `docs`, given a file that must be there: the current folder, the
    checkout that ttexplore runs from, or the installed package. None if there is none."""
    return next((root for root in ROOTS if (root / file).is_file()), None)


def writable_root() -> Path | None:
    """Return the folder to serve: as :func:`course_root`, but instead of the installed package its copy in COPY, which
    is made if it is not there."""
    if (COPY / FIRST_NOTEBOOK).is_file():
        return COPY
    root = course_root()
    if root is not _PACKAGE:
        return root
    for folder in _FOLDERS:
        shutil.copytree(_PACKAGE / folder, COPY / folder, dirs_exist_ok=True)
    return COPY
