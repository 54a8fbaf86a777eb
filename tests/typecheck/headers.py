"""Fetches what emitted code is checked against from the ttnn wheel: ``python -m tests.typecheck.headers``.

pip downloads the wheel (Apache-2.0, about 100 MB). Kept below .cache of the repository are the folders that a kernel
can include and, for the host program, the names of the symbols that the SDK's shared libraries export.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

TTNN_VERSION = "0.81.1"
CACHE_FOLDER = Path(__file__).parents[2] / ".cache"
HEADERS_FOLDER = CACHE_FOLDER / f"ttnn-headers-{TTNN_VERSION}"

# One mangled name a line, sorted.
SYMBOLS_FILE = HEADERS_FOLDER / "exported_symbols.txt"

LIBRARIES_FOLDER = "ttnn/build/lib/"
KEPT_FOLDERS = (
    "ttnn/tt_metal/hw/inc/",
    "ttnn/tt_metal/hw/ckernels/",
    "ttnn/tt_metal/hw/firmware/src/tt-1xx/",
    "ttnn/tt_metal/hostdevcommon/",
    "ttnn/tt_metal/api/",
    "ttnn/tt_metal/tt-llk/",
)
KEPT_SUFFIXES = (".h", ".hpp", ".inl", ".cc", ".cpp", ".def", ".inc")


def headers_missing() -> str:
    """Why they are not there and how to get them, or an empty text."""
    if SYMBOLS_FILE.is_file():
        return ""
    return f"the headers and symbols of ttnn {TTNN_VERSION} are not there; run: make headers"


def fetch_headers(folder: Path = HEADERS_FOLDER) -> None:
    """Downloads the wheel and unpacks it into `folder`, which appears only when it is complete."""
    if shutil.which("nm") is None:
        raise SystemExit("no nm, which lists the symbols of a library; it comes with g++: make compiler")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        # The SDK has wheels for two Python versions; the headers in them are the same.
        download += ["--python-version", "3.12", "--platform", "manylinux_2_34_x86_64", "--dest", temporary]
        subprocess.run([*download, f"ttnn=={TTNN_VERSION}"], check=True)
        (wheel,) = Path(temporary).glob("ttnn-*.whl")
        unpacked = Path(temporary) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(KEPT_FOLDERS) and name.endswith(KEPT_SUFFIXES):
                    archive.extract(name, unpacked)
            libraries = [
                archive.extract(name, temporary)
                for name in archive.namelist()
                if name.startswith(LIBRARIES_FOLDER) and name.endswith(".so")
            ]
        (unpacked / SYMBOLS_FILE.name).write_text("\n".join(exported_symbols(libraries)) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        unpacked.rename(folder)


def exported_symbols(libraries: Sequence[str | Path]) -> list[str]:
    """The mangled names that the shared libraries define for others, sorted; `nm` comes with the compiler."""
    command = ["nm", "--dynamic", "--defined-only", "--just-symbols", *map(str, libraries)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = (line.partition("@")[0] for line in listing.splitlines() if line and not line.endswith(":"))
    return sorted(set(names))


if __name__ == "__main__" and headers_missing():
    fetch_headers()
