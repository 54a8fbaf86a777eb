# pyright: basic
"""BackendError. The examples of faulty programs are those of tests/faults."""

from __future__ import annotations

import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.backends.programs import Tensor, tile_program, with_text
from tests.corpus import gemm
from tests.faults.kernels import difference
from tests.gpu.fakes import FAILED, answering, fake_environment
from ttexplore import cli
from ttexplore.backends.emulator import Emulator, compiler
from ttexplore.backends.ttnn.backend import check_fit, program_too_large, read_outputs
from ttexplore.backends.ttnn.environment import DeviceEnvironment
from ttexplore.backends.ttnn.hang import describe_hang
from ttexplore.backends.ttnn.session import DeviceHang
from ttexplore.backends.ttnn.setup import set_up
from ttexplore.gpu import ptx
from ttexplore.installation import verification
from ttexplore.optional import install, optional
from ttexplore.sweeping.evaluate import Task, evaluate
from ttexplore.sweeping.shipping import shipped_file
from ttexplore.sweeping.workers import connected

COPY = tile_program("copy_init(0); copy_tile(0, t, 0);", [Tensor("a", (32, 32))])
INPUTS = [np.ones((32, 32), np.float32)]


def b001(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A run without a C++ compiler and without the package ziglang."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    return Emulator().run(COPY, INPUTS)


def b002() -> Any:
    """A writer that contains `Nok noc;`."""
    return Emulator().run(with_text(COPY, "writer", "    Noc noc;", "    Nok noc;"), INPUTS)


def b003() -> Any:
    """A run with a time limit, of a reader that contains `for (volatile bool on = true; on;) {}`."""
    endless = with_text(COPY, "reader", "    Noc noc;", "    Noc noc;\n    for (volatile bool on = true; on;) {}")
    return Emulator().run(endless, INPUTS, time_limit_seconds=0.5)


def b004() -> Any:
    """A writer that contains `*reinterpret_cast<volatile uint32_t*>(4) = 1;`."""
    store = "    Noc noc;\n    *reinterpret_cast<volatile uint32_t*>(4) = 1;"
    return Emulator().run(with_text(COPY, "writer", "    Noc noc;", store), INPUTS)


def b005() -> Any:
    """A run without inputs, of a program that has one."""
    return Emulator().run(COPY, [])


def b006() -> Any:
    """A run on the emulator while another thread sets its `cancel`."""
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    endless = with_text(COPY, "reader", "    Noc noc;", "    Noc noc;\n    for (volatile bool on = true; on;) {}")
    return Emulator().run(endless, INPUTS, cancel=cancel)


def b007(tmp_path: Path) -> Any:
    """A run with a file in place of the cache folder."""
    (tmp_path / "cache").touch()
    return Emulator(cache_folder=tmp_path / "cache").run(COPY, INPUTS)


def b008(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A run for which the system kills the compiler, for want of memory."""
    runner = Emulator().toolchain().runner()
    monkeypatch.setattr(compiler.Toolchain, "runner", lambda *_: runner)
    killed = tmp_path / "c++"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return Emulator(tmp_path).run(COPY, INPUTS)


def b015() -> Any:
    """A writer that reads argument 7 but has only one."""
    return Emulator().run(with_text(COPY, "writer", "get_arg_val<uint32_t>(0)", "get_arg_val<uint32_t>(7)"), INPUTS)


def b019() -> Any:
    """A writer that calls an undefined function."""
    text = with_text(COPY, "writer", "void kernel_main() {", "void nowhere();\nvoid kernel_main() {\n    nowhere();")
    return Emulator().run(text, INPUTS)


def b020(tmp_path: Path) -> Any:
    """`exploration.run(backend="ttnn")` before `ttexplore setup device`."""
    return ttx.explore(difference()).run(backend="ttnn", environment=tmp_path)


def b021(tmp_path: Path) -> Any:
    """`ttexplore setup device` with a folder that is a file."""
    (tmp_path / "device").touch()
    return set_up(tmp_path / "device", report=lambda text: None)


def b022() -> Any:
    """A program for Wormhole on a Blackhole device."""
    return check_fit({"architecture": "blackhole", "grid": [13, 10]}, ttx.explore(difference()).plan)


def b023(tmp_path: Path) -> Any:
    """The device's process reports success but writes no result."""
    return read_outputs(tmp_path, ttx.explore(difference()).plan)


def b024() -> Any:
    """A program hangs on a card, and neither a simulator's report nor the watcher shows where."""
    raise describe_hang(DeviceHang(60, "", ""), lambda: None)


def b025() -> Any:
    """Partial sums in L1 (`accumulate="l1"`) on wolfpine's simulated chip."""
    kernel = gemm(128, 128, 128, 128, 128, 32)
    return ttx.explore(kernel, options={"accumulate": "l1", "cores": (1, 1)}).run(backend="ttnn", device="wolfpine")


def b026() -> Any:
    """Kernels for Wormhole with 62 different element functions."""
    error = program_too_large(
        "Program size (95280) too large for kernel config buffer (70656) on TENSIX, 24624 B over:\n"
        "brisc 636 B\nncrisc 764 B\ntrisc0 8592 B\ntrisc1 62404 B\ntrisc2 22544 B"
    )
    assert error is not None
    raise error


def b030(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ttexplore lab` without JupyterLab."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return cli.lab_command(None)


def b031(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """`ttexplore setup device` when the chip gives a wrong sum."""

    class Wrong:
        passed, message = False, "the largest error is 1"

    class Explored:
        def run(self, **_: Any) -> Wrong:
            return Wrong()

    monkeypatch.setattr(verification, "explore", lambda *_, **__: Explored())
    none = DeviceEnvironment(
        folder=tmp_path, python=Path("python"), ttnn_version="", sdk_folder=tmp_path, sfpi_folder=tmp_path,
        compiler_version="", wolfpine_folders={}, ttsim_folder=None, managed=True,
    )  # fmt: skip
    return verification.verify(none)


def b032(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`exploration.dot().save("dataflow.svg")` without Graphviz."""
    exploration = ttx.explore(difference())
    monkeypatch.setattr("shutil.which", lambda name: None)
    return exploration.dot().save("dataflow.svg")


def b033() -> Any:
    """A task of a sweep, on a worker that has another version of ttexplore."""
    return evaluate(Task(shipped_file("kernels.py::gemm"), (), "another version")).checked()


def b034(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ttx.sweep(kernel, {"stages": [2, 3]}, scheduler="tcp://10.0.0.1:8786")`"""
    distributed = types.ModuleType("distributed")

    def client(*_: object, **__: object) -> Any:
        raise OSError("Timed out trying to connect to tcp://10.0.0.1:8786 after 10 s")

    vars(distributed)["Client"] = client
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    with connected("tcp://10.0.0.1:8786") as cluster:
        return cluster


def b035(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`sweep.frame()` without pandas."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    return optional("pandas", install("pandas"), "use .table()")


def b040(tmp_path: Path) -> Any:
    """`exploration.gpu()` before `ttexplore setup gpu`, of a kernel without a recorded lane."""
    return ttx.explore(difference()).gpu(environment=tmp_path)


def b041(tmp_path: Path) -> Any:
    """`exploration.gpu()` when TileLang's process is killed."""
    fake_environment(tmp_path, "kill -KILL $$")
    return ttx.explore(difference()).gpu(environment=tmp_path)


def b042(tmp_path: Path) -> Any:
    """A kernel that calls a function which TileLang lacks."""
    (tmp_path / "gpu").mkdir()
    error = {"kind": "trace", "text": "TileLang 0.1.15 has no T.sigmoid", "where": [0, 1]}
    answering(tmp_path / "gpu", {"error": error})
    return ttx.explore(difference()).gpu(environment=tmp_path / "gpu")


def b043(tmp_path: Path) -> Any:
    """The code of a lane that ended with a pass that failed."""
    (tmp_path / "gpu").mkdir()
    answering(tmp_path / "gpu", FAILED)
    return ttx.explore(difference()).gpu(environment=tmp_path / "gpu").code


def b044(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """`lane.compile()` without nvcc."""
    monkeypatch.setattr(ptx, "find_nvcc", lambda: None)
    return ptx.compile_ptx("", "sm_90a", fake_environment(tmp_path / "gpu", "true"), 1, None)
