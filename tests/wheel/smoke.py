"""Use every call and every command of an installed ttexplore once; `python -m tests.wheel` runs this as a program.

    python smoke.py bare|whole

It runs in an empty folder, without the checkout: `bare` without the extras, to see that hints name what is missing,
`whole` with them.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import ttexplore as ttx
from ttexplore.cli import COMMANDS, lab_command, main
from ttexplore.control import FREE
from ttexplore.course import root as course
from ttexplore.course.gallery import read_gallery
from ttexplore.errors import BackendError, TTExploreError, UsageError
from ttexplore.exercises.checks import EXERCISES

KERNEL = '''
import tilelang.language as T

@T.prim_func
def twice(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32")):
    """Out = 2 * A"""
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 64), "float32")
        T.copy(A[bx * 32, 0], a)
        for i, j in T.Parallel(32, 64):
            a[i, j] = a[i, j] * 2.0
        T.copy(a, Out[bx * 32, 0])
'''
SAXPY = """
__global__ void saxpy(int n, float a, const float *x, const float *y, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
"""
TRITON = """
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
NOTEBOOK = {
    "cells": [{"cell_type": "code", "source": ["1"], "metadata": {}, "outputs": [], "execution_count": 1}],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip
# A profiler report: the kernels took 5 us, the reader 4 us.
PROFILED = (
    "OP CODE,DEVICE KERNEL DURATION [ns],DEVICE NCRISC KERNEL DURATION [ns],DEVICE BRISC KERNEL DURATION [ns],"
    "DEVICE TRISC0 KERNEL DURATION [ns],DEVICE TRISC1 KERNEL DURATION [ns],DEVICE TRISC2 KERNEL DURATION [ns]\n"
    "GenericOpDeviceOperation,5000,4000,,,,\n"
)
GEMM: dict[str, Any] = {"M": 64, "N": 64, "K": 64, "block_M": 32, "block_N": 32, "block_K": 32}


def raised(kind: type[TTExploreError], code: str, call: Callable[[], object]) -> TTExploreError:
    """The error of a call, which must have this code."""
    error: TTExploreError | None = None
    try:
        call()
    except kind as caught:
        error = caught
    assert error is not None, f"no {code} was raised"
    assert error.code == f"TTX-{code}", error
    return error


def command(*words: str, status: int = 0) -> str:
    """Run a command in this process, and return what it prints."""
    out, returned = io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            returned = main(words)
        except SystemExit as stop:  # --help
            returned = stop.code
    assert returned == status, f"{words}: exit status {returned}\n{out.getvalue()}"
    return out.getvalue()


def script(*words: str) -> str:
    """Run the installed script, and return what it prints."""
    program = str(Path(sys.executable).with_name("ttexplore"))
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def without_extras() -> None:
    """What works without the extras, and the hints of what does not."""
    assert ttx.explore("twice.py::twice").run().passed
    assert ttx.explore(ttx.port(TRITON)).run().passed
    error = raised(UsageError, "U027", lambda: ttx.port(SAXPY))
    assert error.hint == f"run {sys.executable} -m pip install 'tree-sitter>=0.26' 'tree-sitter-cuda>=0.21'"
    error = raised(BackendError, "B030", lambda: lab_command(None))
    assert error.hint == f"run {sys.executable} -m pip install 'jupyterlab>=4.4'"
    assert "MISSING" not in command("doctor")


def calls(ex: Any) -> None:
    """Every public name of an exploration."""
    fork = ex.fork(at="B1", policy="strided")
    used: dict[str, Callable[[], object]] = {
        "backends": lambda: ex.backends, "code": lambda: ex.code["reader"], "core_map": lambda: ex.core_map,
        "data": lambda: ex.data, "dataflow": lambda: ex.dataflow, "error": lambda: ex.error is None,
        "estimated": lambda: ex.estimated, "files": lambda: ex.files["compute.cpp"], "kernel": lambda: ex.kernel.source,
        "l1_map": lambda: ex.l1_map, "launches": lambda: ex.launches is not None, "link_map": lambda: ex.link_map,
        "missing": lambda: ex.missing is not None, "option_forms": lambda: ex.option_forms,
        "options": lambda: ex.options is not None, "plan": lambda: ex.plan.buffers,
        "ported": lambda: ex.ported is None, "settings": lambda: ex.settings,
        "steps": lambda: [*ex.steps][-1].letter == "E1",
        "target": lambda: ex.target, "trace": lambda: ex.trace, "work_map": lambda: ex.work_map,
        "beside": lambda: raised(BackendError, "B040", lambda: ex.beside()),
        "gpu": lambda: raised(BackendError, "B040", lambda: ex.gpu()),
        "gpu_data": lambda: raised(BackendError, "B040", lambda: ex.gpu_data("sm_90a", FREE)),
        "check": lambda: ex.check(), "dot": lambda: ex.dot().text + ex.dot("passes").text,
        "edited": lambda: ex.edited(ex.kernel.source.text).error is None,
        "estimate": lambda: str(ex.estimate()) + str(ex.estimate().beside("ops_perf.csv")),
        "estimate_data": lambda: ex.estimate_data(), "export": lambda: len(ex.export("out", dot=True)) > 6,
        "find": lambda: str(ex.find("copy")), "fork": lambda: fork.run().passed,
        "history": lambda: str(ex.history(5)),
        "inputs": lambda: ex.inputs(seed=1), "lanes_data": lambda: ex.lanes_data() is not None,
        "lower_again": lambda: ex.lower_again({"policy": "strided"}, None, FREE).error is None,
        "lower_text": lambda: ex.lower_text(ex.kernel.source.text, FREE).error is None,
        "porting_checks": lambda: str(ex.porting_checks()), "reference": lambda: ex.reference(),
        "report": lambda: ex.report("report.html").is_file(), "run": lambda: all(runs(ex)),
        "save": lambda: saved(ex), "static": lambda: ex.static(),
        "tile": lambda: str(ex.tile("Out", 0, 0)), "timeline": lambda: str(ex.timeline()),
        "trace_data": lambda: ex.trace_data((0, 0)), "costs_data": lambda: ex.costs_data(),
        "advice_data": lambda: str(ex.advice_data()),
        "view": lambda: ex.view(step="C1"), "widget": lambda: ex.widget(),
        "with_options": lambda: ex.with_options({"stages": 1}).error is None,
        "with_sizes": lambda: raised(UsageError, "U015", lambda: ex.with_sizes(n=3)),
    }  # fmt: skip
    public = {name for name in dir(ex) if not name.startswith("_")}
    assert public == set(used), f"not tried, or not there: {sorted(public ^ set(used))}"
    for name, use in used.items():
        assert use(), f"{name} gives nothing"
    assert str(ex.steps["C1"].diff())
    assert str(ex.steps["C1"].why(3))
    assert str(ttx.compare(ex, fork))
    assert ttx.report("both.html", ex, fork).is_file()
    assert ttx.roofline({"here": ex})


def runs(ex: Any) -> list[bool]:
    """Whether each backend gives NumPy's result, or, without the SDK, says what to do."""
    (a,) = ex.inputs()
    raised(BackendError, "B020", lambda: ex.run(backend="ttnn", device="wolfpine"))
    results = [ex.run([a], backend=backend) for backend in ("reference", "interpreter", "emulator")]
    return [bool(np.array_equal(result.outputs[0], 2 * a)) and result.passed is not False for result in results]


def saved(ex: Any) -> bool:
    """Whether a saved exploration runs and shows."""
    loaded = ttx.load(ex.save("twice.ttx"))
    return bool(loaded.run().passed) and "twice" in repr(loaded)


def programs() -> None:
    """What works on more than one lowering."""
    sweep = ttx.sweep("twice.py::twice", {"policy": ["contiguous", "strided"]}, workers=2, prove=1, progress=None)
    assert len(sweep.table()) == 2
    assert ttx.validate("twice.py::twice", progress=None)
    entries = list(read_gallery())
    assert len(entries) > 50
    assert ttx.explore(f"{entries[0].file}::{entries[0].name}").run().passed
    assert ttx.porting.table().search("cp.async")
    assert ttx.port(SAXPY, prove=False).kernels[0].draft
    assert ttx.explore(ttx.port(TRITON)).run().passed
    assert "all_cores" in EXERCISES
    for name in EXERCISES:
        exercise = ttx.exercise(name)
        assert exercise.hint()
        assert exercise.solution()
        unsolved = exercise.check(*(... for _ in inspect.signature(EXERCISES[name].check).parameters))
        assert unsolved.state == "unsolved"
    kernel = ttx.explore(f"{course.course_root()}/notebooks/kernels/gemm.py::matmul", **GEMM)
    assert kernel.check()
    assert kernel.run().passed


def commands() -> None:
    """Every command."""
    kernel = "twice.py::twice"
    used = {
        "show": lambda: command("show", kernel, "--step", "C1"), "run": lambda: command("run", kernel),
        "check": lambda: command("check", kernel, "--json"),
        "estimate": lambda: command("estimate", kernel) + command("estimate", kernel, "--beside", "ops_perf.csv"),
        "compare": lambda: command("compare", kernel, "--with", "policy=strided"),
        "sweep": lambda: command("sweep", kernel, "--space", "policy=contiguous,strided", "--workers", "2"),
        "validate": lambda: command("validate", kernel), "timeline": lambda: command("timeline", kernel),
        "export": lambda: command("export", kernel, "-o", "exported"),
        "save": lambda: command("save", kernel, "-o", "saved.ttx") + command("show", "saved.ttx"),
        "report": lambda: command("report", kernel, "-o", "page.html"),
        "freeze": lambda: command("freeze", "a.ipynb"),
        "gallery": lambda: command("gallery") + command("gallery", "softmax"),
        "explain": lambda: command("explain", "L010") + command("explain", "circular buffer"),
        "doctor": lambda: command("doctor"), "setup": lambda: command("setup", "device", "--help"),
        "lab": lambda: command("lab", "--help"),
    }  # fmt: skip
    assert set(used) == set(COMMANDS)
    for name, use in used.items():
        assert use(), f"{name} prints nothing"
    assert "usage" in script("--help")
    assert "passed" in script("run", kernel)
    # The notebooks of the package are copied to a folder of the user's.
    _, root = lab_command(None)
    assert root == (Path.cwd() / course.COPY).resolve()
    assert (root / "docs" / "glossary.md").is_file()


def main_program() -> None:
    package = Path(ttx.__file__).parent
    assert "site-packages" in package.parts, f"{package} is not an installed package"
    Path("twice.py").write_text(KERNEL, encoding="utf-8")
    Path("ops_perf.csv").write_text(PROFILED, encoding="utf-8")
    Path("a.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    if sys.argv[1:] == ["bare"]:
        without_extras()
    else:
        assert all(callable(getattr(ttx, name)) or name == "porting" for name in ttx.__all__)
        calls(ttx.explore("twice.py::twice"))
        programs()
        commands()
    version = metadata.version("ttexplore")
    print(f"ttexplore {version} on Python {sys.version.split()[0]}: {' '.join(sys.argv[1:])} works")


if __name__ == "__main__":
    main_program()
