"""Puts the modules and the style into one file each, minified: ``python widgets/build.py``.

Needs npm, to fetch esbuild; using and testing the widget does not, because what this writes is committed. A test
compares the digest of the sources in it with the sources.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ttexplore.views.assets import sources_digest

ESBUILD = "esbuild@0.28.2"


def main() -> None:
    """Writes `dist/explorer.js` and `dist/explorer.css`. Raises CalledProcessError where esbuild fails."""
    folder = Path(__file__).parent
    banner = f"/* ttexplore, made of sources with digest {sources_digest(folder)} */"
    for suffix in ("js", "css"):
        command = ["npx", "--yes", ESBUILD, f"explorer.{suffix}", "--bundle", "--minify", "--charset=utf8"]
        command += ["--format=esm", "--target=es2022"] if suffix == "js" else []
        made = subprocess.run([*command, f"--banner:{suffix}={banner}"], cwd=folder, check=True, stdout=subprocess.PIPE)
        (folder / "dist").mkdir(exist_ok=True)
        (folder / "dist" / f"explorer.{suffix}").write_bytes(made.stdout)
        print(f"explorer.{suffix}: {len(made.stdout):,} bytes")


if __name__ == "__main__":
    main()
