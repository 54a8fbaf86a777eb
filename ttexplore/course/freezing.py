"""Notebooks as documents: each explorer is replaced with the static page that it shows without a running kernel."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ttexplore.errors import UsageError
from ttexplore.files import write_file
from ttexplore.given import path as path_of

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def freeze(path: str | Path) -> int:
    """Remove widgets from a notebook's outputs that also contain a page or a picture, and widget state from its
    metadata. Returns the number of removed views.

    Raises UsageError if the file is not a notebook or cannot be written.
    """
    file = path_of("the notebook", path)
    # Unlike Path.is_file, this accepts names that no file system accepts.
    if not os.path.isfile(file):
        raise UsageError("U002", f"there is no file {path}", hint="give a notebook (.ipynb)")
    try:
        notebook: Any = json.loads(file.read_text(encoding="utf-8"))
        removed = 0
        for cell in notebook["cells"]:
            outputs = cell.get("outputs", [])
            for output in outputs:
                data = output.get("data", {})
                if WIDGET_VIEW in data and len(data) > 1:
                    del data[WIDGET_VIEW]
                    removed += 1
        had_state = notebook["metadata"].pop("widgets", None) is not None
    except OSError as error:
        raise UsageError(
            "U002", f"{path} cannot be read: {error.strerror or error}", hint="check its permissions"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UsageError("U018", f"{path} is not a notebook", hint="give a notebook (.ipynb)") from None
    if removed or had_state:
        write_file(file, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return removed
