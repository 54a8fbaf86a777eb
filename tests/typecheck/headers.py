"""Fetches the device headers that emitted kernels are type-checked against: ``python -m tests.typecheck.headers``.

They come out of the ttnn wheel (Apache-2.0, about 100 MB), which pip downloads; only the folders that a kernel can
include are kept, below .cache of the repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TTNN_VERSION = "0.81.1"
CACHE_FOLDER = Path(__file__).parents[2] / ".cache"
HEADERS_FOLDER = CACHE_FOLDER / f"ttnn-headers-{TTNN_VERSION}"

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
    """Why the headers are not there and how to get them, or an empty text."""
    if HEADERS_FOLDER.is_dir():
        return ""
    return f"the device headers of ttnn {TTNN_VERSION} are not there; run: make headers"


def fetch_headers(folder: Path = HEADERS_FOLDER) -> None:
    """Downloads the wheel and unpacks its headers into `folder`, which appears only when it is complete."""
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
        if folder.exists():
            shutil.rmtree(folder)
        unpacked.rename(folder)


if __name__ == "__main__" and headers_missing():
    fetch_headers()
