"""Compiling, caching, and what happens when a program hangs, crashes or cannot be built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore.backends.emulator.compiler as compiler
from tests.backends.programs import Tensor, tile_program, with_text
from ttexplore.backends.base import Backend, KernelFault, Program
from ttexplore.backends.emulator import Emulator, backend
from ttexplore.errors import BackendError

A = Tensor("a", (32, 32))
COPY = tile_program("copy_init(0); copy_tile(0, t, 0);", [A])
ONES = [np.ones((32, 32), ml_dtypes.bfloat16)]


def error_of(program: Program, **options: Any) -> BackendError:
    with pytest.raises(BackendError) as caught:
        Emulator().run(program, ONES, **options)
    return caught.value


def test_a_kernel_that_does_not_end_is_stopped_and_named() -> None:
    endless = with_text(COPY, "reader", "    Noc noc;", "    Noc noc;\n    for (volatile bool on = true; on;) {}")
    error = error_of(endless, time_limit_seconds=0.5)
    line = 1 + next(i for i, text in enumerate(endless.texts["reader"].splitlines()) if "get_arg_val" in text)
    assert "did not end within the time limit of 0.5 seconds" in error.message
    assert error.message.endswith(f"the reader kernel on core (0, 0) was running, last call in reader.cpp line {line}")
    assert "a loop that does not end" in error.hint


def test_a_crash_of_the_program_is_an_error() -> None:
    crash = with_text(COPY, "writer", "    Noc noc;", "    Noc noc;\n    *reinterpret_cast<volatile uint32_t*>(4) = 1;")
    error = error_of(crash)
    assert isinstance(error, KernelFault)
    assert error.message.startswith("the program crashed (signal 11): the writer kernel on core (0, 0) was running")
    assert "stores through a pointer" in error.hint


def test_a_child_that_ends_without_a_result_is_an_error(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\necho out of memory >&2\nkill -9 $$\n")
    killed.chmod(0o755)
    with pytest.raises(BackendError) as caught:
        backend.run_child(killed, tmp_path, 5.0)
    assert "ended without a result (exit status -9) out of memory" in caught.value.message
    assert "fewer cores" in caught.value.hint


def test_a_stack_overflow_is_a_crash_too() -> None:
    deep = (
        "uint32_t deep(uint32_t n) {\n    volatile uint32_t q[64] = {n};\n    return n ? deep(n - 1) + q[0] : 0;\n}\n"
    )
    overflow = with_text(COPY, "compute", "void kernel_main() {", f"{deep}void kernel_main() {{\n    deep(1000000);")
    assert error_of(overflow).message.startswith("the program crashed (signal 11): the compute kernel on core (0, 0)")


@pytest.mark.parametrize(
    ("role", "old", "new", "line"),
    [
        ("compute", "copy_tile(0, t, 0)", "copy_tile(0, t)", "copy_tile"),
        ("compute", "copy_tile(0, t, 0)", "copy_tile(0, t, 0, 1)", "copy_tile"),
        ("compute", "copy_init(0)", "mm_init(0, 1, 16)", "mm_init"),
        ("reader", ".page_id = first + t", ".page = first + t", "page"),
        ("reader", "TensorAccessorArgs<0>", "TensorAccessorArgs<7>", "Index out of range"),
        ("reader", "push_back", "push", "push"),
        ("compute", '#include "api/compute/matmul.h"', '#include "compute_kernel_api/matmul.h"', "matmul.h"),
    ],
)
def test_wrong_use_of_the_api_does_not_compile(role: Any, old: str, new: str, line: str) -> None:
    error = error_of(with_text(COPY, role, old, new))
    assert error.message.startswith(f"{role}.cpp does not compile against the emulator's headers:\n")
    assert line in error.message
    assert "ttnn 0.81.1" in error.hint


def test_the_compiler_error_names_the_line_of_the_text() -> None:
    broken = with_text(COPY, "writer", "    Noc noc;", "    Nok noc;")
    line = 1 + broken.texts["writer"].splitlines().index("    Nok noc;")
    assert f"writer.cpp:{line}:" in error_of(broken).message


def test_compiled_kernels_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    source = compiler.KernelSource("writer", "void kernel_main() {}\n", ("NOC_INDEX=1",))
    first = toolchain.kernels([source])["writer"]
    made = first.stat().st_mtime_ns
    assert toolchain.kernels([source])["writer"] == first
    assert first.stat().st_mtime_ns == made
    assert toolchain.kernels([replace(source, text="void kernel_main() { }\n")])["writer"] != first
    assert toolchain.kernels([replace(source, macros=("NOC_INDEX=0",))])["writer"] != first
    assert [path.suffix for path in (tmp_path / "emulator").iterdir()] == [".so"] * 3
    monkeypatch.setattr(compiler, "_compile", lambda command: pytest.fail("a cached kernel was compiled again"))
    toolchain.kernels([source])


def test_a_failed_compilation_leaves_nothing_behind(tmp_path: Path) -> None:
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    with pytest.raises(BackendError):
        toolchain.kernels([compiler.KernelSource("writer", "void kernel_main( {}\n", ("NOC_INDEX=1",))])
    assert list((tmp_path / "emulator").iterdir()) == []


def test_a_cache_folder_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(BackendError) as caught:
        Emulator(cache_folder=file).run(COPY, ONES)
    assert "cannot be written" in caught.value.message
    assert "cache_folder" in caught.value.hint


def test_without_a_compiler_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    missing = Emulator().missing()
    assert missing is not None
    assert "no C++ compiler" in missing
    assert "pip install ziglang" in missing
    assert "\n" not in missing
    error = error_of(COPY)
    assert "needs a C++ compiler" in error.message
    assert "pip install ziglang" in error.hint


def test_the_ziglang_wheel_is_the_second_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    class Specification:
        origin = "ziglang/__init__.py"

    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: Specification())
    found = compiler.find_compiler()
    assert found is not None
    assert found.command[1:] == ("-m", "ziglang", "c++")
    assert Emulator().missing() is None


def test_wrong_inputs() -> None:
    with pytest.raises(BackendError) as caught:
        Emulator().run(COPY, [])
    assert "0 input arrays for a program with 1 input tensors" in caught.value.message
    assert "a (32, 32)" in caught.value.hint
    with pytest.raises(BackendError) as caught:
        Emulator().run(COPY, [np.ones((32, 33), np.float32)])
    assert "the array for tensor a has shape (32, 33), the tensor (32, 32)" in caught.value.message


def test_a_plan_that_is_not_complete() -> None:
    with pytest.raises(BackendError) as caught:
        Emulator().run(Program(COPY.texts, COPY.plan.replace(partition=None)), ONES)
    assert "the plan is not complete" in caught.value.message
    unnumbered = tuple(replace(buffer, index=None) for buffer in COPY.plan.buffers)
    with pytest.raises(BackendError) as caught:
        Emulator().run(Program(COPY.texts, COPY.plan.replace(buffers=unnumbered)), ONES)
    assert "circular buffer cb0 has no index" in caught.value.message
    with pytest.raises(BackendError) as caught:
        Emulator().run(Program({"reader": COPY.texts["reader"]}, COPY.plan), ONES)
    assert "the program has no compute kernel" in caught.value.message


def test_inputs_are_rounded_to_the_storage_dtype() -> None:
    a = np.full((32, 32), 1.001)
    out = Emulator().run(COPY, [a]).outputs[0]
    np.testing.assert_array_equal(out, a.astype(ml_dtypes.bfloat16))


def test_the_emulator_is_a_backend_and_can_be_timed() -> None:
    emulator: Backend = Emulator()
    assert emulator.name == "emulator"
    assert emulator.missing() is None
    times = Emulator().measure(COPY, ONES, repeats=3)
    assert len(times) == 3
    assert all(seconds > 0 for seconds in times)
