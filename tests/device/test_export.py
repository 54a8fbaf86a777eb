"""The exported folder on its own: elsewhere, run by a Python that has only ttnn and numpy."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import elementwise
from tests.corpus.launches import two_products
from ttexplore.backends.ttnn.backend import device_variables
from ttexplore.backends.ttnn.environment import read_environment
from ttexplore.backends.ttnn.session import tagged_processes

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.xdist_group("wormhole_n150")]


def run_exported(script: Path, environment: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the script in another folder, as a user would, on the simulated Wormhole."""
    found = read_environment(environment)
    elsewhere = script.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    tag = f"ttexplore-{uuid.uuid4().hex}"
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TT_", "PYTHON"))},
        **device_variables("wolfpine", "wormhole", found),
        "TT_METAL_CACHE": str(environment / "cache" / "wolfpine-wormhole"),
        "TT_SIM_RUN_TAG": tag,
    }
    try:
        # -I: neither this repository nor anything of the user's can be imported.
        return subprocess.run(
            [str(found.python), "-I", str(script), *words],
            cwd=elsewhere, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip
    finally:
        for process in tagged_processes(tag):
            os.kill(process, signal.SIGKILL)


def test_the_exported_runner_runs_in_a_foreign_folder(environment: Path, tmp_path: Path) -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a - b), options={"cores": (1, 1)})
    exploration.export(tmp_path / "out")
    inputs = exploration.inputs(seed=3)
    for name, array in zip("AB", inputs, strict=True):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    done = run_exported(
        tmp_path / "out" / "run_ttnn.py", environment,
        "--inputs", str(tmp_path / "A.npy"), str(tmp_path / "B.npy"), "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"C (128, 64) -> {tmp_path / 'C.npy'}" in done.stdout
    expected = exploration.run(inputs).outputs[0].astype(np.float32)
    np.testing.assert_array_equal(np.load(tmp_path / "C.npy"), expected)


def test_several_launches_run_one_after_another(environment: Path, tmp_path: Path) -> None:
    exploration = ttx.explore(two_products(m=32, k=32, n=64), options={"cores": (1, 1)})
    inputs = exploration.inputs(seed=3)
    run = exploration.run(inputs, backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, str(run)
    equal = {side.name: side.comparison.equal_share for side in run.sides if side.name.endswith("against emulator")}
    assert equal == {"kernel_1: ttnn against emulator": 1.0, "kernel_2: ttnn against emulator": 1.0}
    exploration.export(tmp_path / "out")
    for name, array in zip("ABC", inputs, strict=True):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    files = [str(tmp_path / f"{name}.npy") for name in "ABC"]
    script = tmp_path / "out" / "run_launches.py"
    done = run_exported(script, environment, "--inputs", *files, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), run.outputs[0])


def test_a_program_for_another_chip_is_refused(environment: Path, tmp_path: Path) -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a - b), target="blackhole_p150", options={"cores": (1, 1)})
    exploration.export(tmp_path / "out")
    done = run_exported(tmp_path / "out" / "run_ttnn.py", environment)
    assert done.returncode == 1
    assert "the program is for blackhole_p150, the device is a wormhole_b0" in done.stderr
