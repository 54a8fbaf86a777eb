"""PTX and the resources of a generated CUDA kernel, from nvcc and ptxas, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ttexplore.backends.process import finish, kill_group, workspace
from ttexplore.characters import Printed
from ttexplore.errors import BackendError
from ttexplore.gpu.environment import GpuEnvironment
from ttexplore.record import Line, Listing, lines_of
from ttexplore.session.results import Code
from ttexplore.views.markup import escape
from ttexplore.views.theme import fragment

_HOME = Path("/usr/local/cuda/bin/nvcc")


@dataclass(frozen=True)
class Resources:
    """What ptxas assigns to a kernel: registers of a thread, bytes of a thread that it spills and loads again, the
    stack of a thread, and bytes of shared memory that are known when it compiles (not those given at the launch)."""

    kernel: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    shared_bytes: int
    barriers: int


@dataclass(frozen=True)
class Compiled(Printed):
    """The PTX of a kernel, and the resources of its functions."""

    ptx: Code
    resources: tuple[Resources, ...]
    nvcc: str

    def _rows(self) -> list[tuple[str, ...]]:
        head = ("kernel", "registers", "spill stores", "spill loads", "stack", "static shared memory", "barriers")
        return [
            head,
            *(
                (
                    resources.kernel, str(resources.registers), f"{resources.spill_store_bytes} B",
                    f"{resources.spill_load_bytes} B",
                    f"{resources.stack_bytes} B", f"{resources.shared_bytes} B", str(resources.barriers),
                )
                for resources in self.resources
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, "", f"{len(self.ptx.lines)} lines of PTX, by {self.nvcc}"]) + "\n"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        table = f'<table class="t sides" aria-label="resources"><tr>{cells}</tr>{body}</table>'
        note = f'<p class="q">{len(self.ptx.lines)} lines of PTX, by {escape(self.nvcc)}</p>'
        return fragment("ttx-resources", "resources", table + note)


def find_nvcc() -> Path | None:
    """NVIDIA's compiler on the PATH or in its usual folder; None if it is not installed."""
    compiler = shutil.which("nvcc") or shutil.which(_HOME)
    return Path(compiler) if compiler else None


def compile_ptx(
    source: str, arch: str, environment: GpuEnvironment, seconds: float, cancel: threading.Event | None
) -> Compiled:
    """Compile a generated CUDA source. Raises BackendError if nvcc is missing or fails, or at the time limit."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise BackendError("B044", "nvcc is missing", hint="install the CUDA toolkit, or put its nvcc on the PATH")
    folders = [f"-I{folder}" for folder in environment.include_folders]
    with workspace() as folder:
        cuda, ptx = folder / "kernel.cu", folder / "kernel.ptx"
        cuda.write_text(source, encoding="utf-8")
        flags = ["-O3", "-std=c++17", "--expt-relaxed-constexpr", "-DENABLE_BF16", f"-arch={arch}", "--ptx"]
        _run([str(nvcc), *flags, *folders, "-o", str(ptx), str(cuda)], seconds, cancel)
        ptxas = nvcc.with_name("ptxas")
        said = _run([str(ptxas), "-v", f"-arch={arch}", "-o", "/dev/null", str(ptx)], seconds, cancel)
        version = _run([str(nvcc), "--version"], seconds, cancel)
        lines = tuple(Line(line) for line in lines_of(ptx.read_text(encoding="utf-8", errors="replace")))
    release = re.search(r"release [\d.]+, (V[\d.]+)", version)
    return Compiled(
        Code(Listing("cpp", lines, "kernel.ptx")), read_resources(said), f"nvcc {release[1] if release else ''}".strip()
    )


def read_resources(said: str) -> tuple[Resources, ...]:
    """The table in the words of ``ptxas -v``."""
    kernels: list[Resources] = []
    for report in re.split(r"(?=Compiling entry function)", said)[1:]:
        name = re.search(r"Compiling entry function '([^']*)'", report)

        def number(pattern: str, report: str = report) -> int:
            match = re.search(pattern, report)
            return int(match[1]) if match else 0

        kernels.append(
            Resources(
                name[1] if name else "", number(r"Used (\d+) registers"), number(r"(\d+) bytes spill stores"),
                number(r"(\d+) bytes spill loads"), number(r"(\d+) bytes stack frame"), number(r"(\d+) bytes smem"),
                number(r"used (\d+) barriers"),
            )
        )  # fmt: skip
    return tuple(kernels)


def _run(command: Sequence[str], seconds: float, cancel: threading.Event | None) -> str:
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise BackendError(
            "B044", f"{command[0]} does not start: {error.strerror}", hint="install the CUDA toolkit again"
        ) from error
    try:
        output, _ = finish(child, seconds, cancel)
    except subprocess.TimeoutExpired as error:
        raise BackendError(
            "B003", f"{Path(command[0]).name} did not end within {seconds:.0f} seconds", hint="raise the time limit"
        ) from error
    finally:
        kill_group(child)
        child.wait()
        if child.stdout:
            child.stdout.close()
    text = output.decode(errors="replace")
    if child.returncode:
        wrong = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()[-1:]
        raise BackendError(
            "B044", f"{Path(command[0]).name} failed: {wrong[0] if wrong else 'no output'}",
            hint="this version of the CUDA toolkit does not compile it; the CUDA source is complete",
        )  # fmt: skip
    return text
