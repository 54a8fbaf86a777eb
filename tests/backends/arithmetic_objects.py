"""The exact arithmetic of the emulator's runner, compiled for kinds of processors: the compiler takes long for it."""

from __future__ import annotations

import functools
import platform
import subprocess
import tempfile
from pathlib import Path

import pytest

from ttexplore.backends.emulator.compiler import RUNNER_FLAGS, RUNTIME_FOLDER, find_compiler, processor_flags

KINDS = ("this processor", "AVX2", "any processor")
# The tests of a kind run in one process. Without vectors compilers take longest.
PARAMETERS = {
    kind: pytest.param(
        kind,
        marks=[
            pytest.mark.xdist_group(f"arithmetic for {kind}"),
            *([pytest.mark.thorough] if kind == "any processor" else []),
        ],
    )
    for kind in KINDS
}


def run_with_arithmetic(kind: str, text: str, folder: Path) -> str:
    """Compile a program against the arithmetic for a kind of processor, run it, and return what it prints."""
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    source, program = folder / "main.cpp", folder / "program"
    source.write_text(text, encoding="utf-8")
    folders = (f"-I{RUNTIME_FOLDER}", f"-I{Path(__file__).parent}")
    command = [*compiler.command, *RUNNER_FLAGS, *_flags(kind), *folders, str(source), *_objects(kind)]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=300).stdout


@functools.cache
def _objects(kind: str) -> tuple[str, ...]:
    compiler = find_compiler()
    assert compiler is not None
    folder = _folder().name
    files: list[str] = []
    for name in ("fpu", "matmul_exact"):
        files.append(f"{folder}/{name} for {kind}.o")
        command = [*compiler.command, *RUNNER_FLAGS, *_flags(kind), "-c", str(RUNTIME_FOLDER / f"{name}.cpp")]
        subprocess.run([*command, "-o", files[-1]], check=True, capture_output=True)
    return tuple(files)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _flags(kind: str) -> tuple[str, ...]:
    compiler = find_compiler()
    assert compiler is not None
    if kind == "any processor":
        return ()
    if kind == "this processor":
        return processor_flags(compiler)
    try:
        if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8") or platform.machine() != "x86_64":
            pytest.skip("this processor has no AVX2")
    except OSError:
        pytest.skip("nothing tells whether this processor has AVX2")
    return ("-mavx2", "-mfma")
