"""The doctor's findings about TileLang's environment."""

from __future__ import annotations

from ttexplore.backends.finding import Finding
from ttexplore.errors import BackendError
from ttexplore.gpu.environment import read_environment
from ttexplore.gpu.ptx import find_nvcc


def findings() -> tuple[Finding, ...]:
    """Check TileLang and nvcc, which are optional."""
    nvcc = find_nvcc()
    compiler = Finding(
        "  nvcc", nvcc is not None, False, str(nvcc or "for PTX of GPU lanes"), "install the CUDA toolkit"
    )
    try:
        environment = read_environment()
    except BackendError as error:
        return Finding("GPU lane", False, False, error.message, error.hint), compiler
    return (
        Finding("GPU lane", True, False, str(environment.folder)),
        Finding("  TileLang", True, False, environment.tilelang_version),
        compiler,
    )
