"""Where backends keep what can be made again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def default_cache_folder() -> Path:
    """The platform's folder for what can be made again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ttexplore"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ttexplore"
