"""What is installed, what is missing, and the command that fixes it."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from importlib import metadata

from ttexplore.backends.finding import Finding
from ttexplore.backends.registry import BACKENDS
from ttexplore.gpu.findings import findings as gpu_findings
from ttexplore.optional import install, install_extra

# The versions that the package requires (pyproject.toml); None accepts any version.
REQUIRED_PACKAGES: dict[str, str | None] = {
    "apache-tvm": "0.27.0.post1",
    "apache-tvm-ffi": "0.1.14.post1",
    "numpy": None,
    "ml_dtypes": None,
}


def examine() -> tuple[Finding, ...]:
    """Check Python, the packages, each backend and the optional tools."""
    packages = tuple(_package(name, version) for name, version in REQUIRED_PACKAGES.items())
    return (_python(), *packages, *_backends(packages), *gpu_findings(), *_tools())


def _python() -> Finding:
    return Finding(
        "Python", sys.version_info >= (3, 11), True, platform.python_version(), "install Python 3.11 or newer"
    )


def _package(name: str, version: str | None) -> Finding:
    fix = install(f"{name}=={version}" if version else name)
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, False, True, "not installed", fix)
    if version not in (None, installed):
        return Finding(name, False, True, f"{installed} is installed, {version} is required", fix)
    return Finding(name, True, True, installed)


def _backends(packages: tuple[Finding, ...]) -> tuple[Finding, ...]:
    broken = next((package for package in packages if not package.ok), None)
    if broken is not None:
        return tuple(Finding(f"backend {name}", False, True, f"needs {broken.name}", broken.fix) for name in BACKENDS)
    return tuple(finding for backend in BACKENDS.values() for finding in backend.examine())


def _tools() -> tuple[Finding, ...]:
    lab = importlib.util.find_spec("jupyterlab") is not None
    dot = shutil.which("dot")
    version = metadata.version("jupyterlab") if lab else "for the notebooks"
    graphs = dot or "for drawing graphs"
    return (
        Finding("JupyterLab", lab, False, version, install_extra("lab")),
        Finding("dot (Graphviz)", dot is not None, False, graphs, "apt-get install graphviz"),
    )
