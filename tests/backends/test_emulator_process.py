"""Compiling, caching, and what happens when a program hangs, crashes or cannot be built."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

import ttexplore.backends.emulator.compiler as compiler
from tests.backends.programs import Tensor, tile_program, with_text
from ttexplore.backends import cache, process
from ttexplore.backends.base import CppLocation, KernelFault, Program
from ttexplore.backends.emulator import Emulator, backend, sealing
from ttexplore.backends.emulator.job import kernel_sources, write_job
from ttexplore.errors import BackendError, Cancelled

A = Tensor("a", (32, 32))
COPY = tile_program("copy_init(0); copy_tile(0, t, 0);", [A])
ONES = [np.ones((32, 32), ml_dtypes.bfloat16)]
# What ends at once takes some hundredths of a second, but on a busy machine.
PATIENCE_SECONDS = 30.0
ENDLESS = with_text(COPY, "reader", "    Noc noc;", "    Noc noc;\n    for (volatile bool on = true; on;) {}")


def error_of(program: Program, **options: Any) -> BackendError:
    with pytest.raises(BackendError) as caught:
        Emulator().run(program, ONES, **options)
    return caught.value


def test_a_kernel_that_does_not_end_is_stopped_and_named() -> None:
    error = error_of(ENDLESS, time_limit_seconds=0.5)
    line = 1 + next(i for i, text in enumerate(ENDLESS.texts["reader"].splitlines()) if "get_arg_val" in text)
    assert "did not end within the time limit of 0.5 seconds" in error.message
    assert error.message.endswith(f"the reader kernel on core (0, 0) was running, last call in reader.cpp line {line}")
    assert "an endless loop" in error.hint
    assert isinstance(error, KernelFault)
    assert error.places == (CppLocation("reader", line, "the last call before the time limit"),)


def test_a_crash_of_the_program_is_an_error() -> None:
    crash = with_text(COPY, "writer", "    Noc noc;", "    Noc noc;\n    *reinterpret_cast<volatile uint32_t*>(4) = 1;")
    error = error_of(crash)
    assert isinstance(error, KernelFault)
    assert error.message.startswith("the program crashed (signal 11): the writer kernel on core (0, 0) was running")
    assert "stores through a pointer" in error.hint
    (place,) = error.places
    assert place.kernel == "writer"
    assert f"last call in writer.cpp line {place.cpp_line}" in error.message


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
    broken = with_text(COPY, role, old, new)
    error = error_of(broken)
    assert error.message.startswith(f"{role}.cpp does not compile against the emulator's headers:\n")
    assert line in error.message
    # An error in a header is at the line that led there.
    (place,) = cast("KernelFault", error).places
    assert (place.kernel, place.stuck) == (role, False)
    assert new in broken.texts[role].splitlines()[place.cpp_line - 1]
    assert place.what
    assert place.what in error.message
    assert "ttnn 0.81.1" in error.hint


def test_the_compiler_error_names_the_line_of_the_text() -> None:
    broken = with_text(COPY, "writer", "    Noc noc;", "    Nok noc;")
    line = 1 + broken.texts["writer"].splitlines().index("    Nok noc;")
    error = error_of(broken)
    assert f"writer.cpp:{line}:" in error.message
    assert isinstance(error, KernelFault)
    (place,) = error.places
    assert (place.kernel, place.cpp_line, place.stuck) == ("writer", line, False)
    assert "Nok" in place.what


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
    monkeypatch.setattr(compiler, "_compile", lambda command, cancel: pytest.fail("a cached kernel was compiled again"))
    toolchain.kernels([source])


BAD_COMPILERS = {
    "cut off": "cp {whole} $o; truncate -s -64 $o",
    "empty": ": > $o",
    "half": "head -c 3000 {whole} > $o",
    "a text": "echo no program > $o",
    "nothing": "exit 0",
    "killed": "kill -9 $$",
    "its part killed": "echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
    "out of memory": "echo 'reader.cpp:3:1: virtual memory exhausted: Cannot allocate memory' >&2; exit 1",
    "no word": "exit 1",
}


@pytest.mark.parametrize("way", BAD_COMPILERS)
def test_what_a_failing_compiler_gives_is_not_kept(tmp_path: Path, way: str) -> None:
    """Nor is it the kernel's fault, which a sweep would keep."""
    whole = Emulator().toolchain()
    source = compiler.KernelSource("writer", "void kernel_main() {}\n", ("NOC_INDEX=1",))
    linked = whole.kernels([source])["writer"].read_bytes()[: -sealing.SEAL_BYTES]
    (tmp_path / "whole").write_bytes(linked)
    bad = tmp_path / "c++"
    action = BAD_COMPILERS[way].format(whole=tmp_path / "whole")
    bad.write_text(f"#!/bin/sh\nfor word; do o=$word; done\n{action}\n")
    bad.chmod(0o755)
    toolchain = compiler.Toolchain(replace(whole.compiler, command=(str(bad),)), tmp_path / "cache")
    with pytest.raises(BackendError, match=r"the C\+\+ compiler failed: ") as caught:
        toolchain.kernels([source])
    assert (caught.value.code, isinstance(caught.value, KernelFault)) == ("TTX-B008", False)
    assert list((tmp_path / "cache" / "emulator").iterdir()) == []
    # The same inputs are compiled again.
    again = compiler.Toolchain(whole.compiler, tmp_path / "cache").kernels([source])["writer"]
    assert sealing.is_whole(again)


def test_a_compiled_file_in_the_place_of_another_is_found(tmp_path: Path) -> None:
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    sources = [compiler.KernelSource("writer", f"void kernel_main() {{{' ' * n}}}\n", ()) for n in range(2)]
    one, other = (toolchain.kernels([source])["writer"] for source in sources)
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert not sealing.is_whole(one)
    assert not sealing.is_whole(other)
    toolchain.kernels(sources[:1])
    assert (one.read_bytes(), sealing.is_whole(one)) == (contents[0], True)


def test_unfinished_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / "emulator").mkdir()
    old, new = tmp_path / "emulator" / "making-old", tmp_path / "emulator" / "making-new"
    for file in (old, new):
        file.write_bytes(b"")
    os.utime(old, (0, time.time() - 7200))
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    toolchain.kernels([compiler.KernelSource("writer", "void kernel_main() {}\n", ())])
    assert (old.exists(), new.exists()) == (False, True)
    # One that its process has just put in place is found no longer.
    (tmp_path / "emulator" / "making-gone").symlink_to(tmp_path / "missing")
    toolchain.kernels([compiler.KernelSource("writer", "void kernel_main() { }\n", ())])


@pytest.mark.parametrize("part", [".", "emulator"])
@pytest.mark.parametrize(
    ("mode", "used"), [(0o700, True), (0o755, True), (0o777, False), (0o757, False), (0o1777, False)]
)
def test_a_cache_that_others_can_write_to_is_not_used(
    filled_cache: Path, tmp_path: Path, mode: int, used: bool, part: str
) -> None:
    folder = tmp_path / "it's a cache"
    shutil.copytree(filled_cache, folder)
    (folder / part).chmod(mode)
    if used:
        assert Emulator(folder).run(COPY, ONES).outputs
        return
    with pytest.raises(BackendError) as caught:
        Emulator(folder).run(COPY, ONES)
    assert caught.value.message == f"the cache folder {folder / part} is not used: other users can write to it"
    command = re.match("run (chmod .*), or set XDG_CACHE_HOME to ", caught.value.hint)
    assert command is not None
    # What the hint says helps.
    subprocess.run(command[1], shell=True, check=True)
    assert Emulator(folder).run(COPY, ONES).outputs


def test_a_cache_that_a_group_can_write_to(filled_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(filled_cache, folder)
    folder.chmod(0o770)
    own = cache.pwd.getpwuid(os.geteuid()).pw_name
    group = cache.grp.getgrgid(folder.stat().st_gid)
    for name, used in ((own, True), ("staff", False)):
        monkeypatch.setattr(cache.grp, "getgrgid", lambda _, name=name: group.__class__((name, *tuple(group)[1:])))
        if used:
            assert Emulator(folder).run(COPY, ONES).outputs
        else:
            with pytest.raises(BackendError, match="other users can write to it"):
                Emulator(folder).run(COPY, ONES)


def test_a_cache_of_another_user_is_not_used(filled_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = filled_cache.stat().st_uid + 4321
    monkeypatch.setattr(cache.os, "geteuid", lambda: number)
    if filled_cache.stat().st_uid == 0:
        # One of the system's is as good as one's own.
        assert Emulator(filled_cache).run(COPY, ONES).outputs
        monkeypatch.setattr(Path, "stat", lambda path, stat=Path.stat, **_: _owned_by(stat(path, **_), 77))
    with pytest.raises(BackendError, match=r"the cache folder .* is not used: it belongs to the user ") as caught:
        Emulator(filled_cache).run(COPY, ONES)
    assert caught.value.hint.startswith("set XDG_CACHE_HOME to ")


def _owned_by(status: os.stat_result, number: int) -> os.stat_result:
    return os.stat_result([number if index == 4 else value for index, value in enumerate(tuple(status))])


def test_folders_of_the_cache_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path / "a" / "ttexplore")
        toolchain.kernels([compiler.KernelSource("writer", "void kernel_main() {}\n", ())])
    finally:
        os.umask(before)
    for folder in (tmp_path / "a" / "ttexplore", tmp_path / "a" / "ttexplore" / "emulator"):
        assert folder.stat().st_mode & 0o777 == 0o700


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
    assert caught.value.message == f"the cache folder {file}/emulator cannot be written: Not a directory"
    assert "set XDG_CACHE_HOME" in caught.value.hint
    assert "cache_folder" in caught.value.hint


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    # Building the runner takes long: one that is built already is taken.
    (folder / "emulator").mkdir()
    shutil.copy2(Emulator().toolchain().runner(), folder / "emulator")
    Emulator(cache_folder=folder).run(COPY, ONES)
    return folder


def damaged(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    return [b"", content[: len(content) // 2], content[:-1], bytes(flipped), b"text", content + b"\n"]


@pytest.mark.parametrize("name", ["runner", "compute"])
@pytest.mark.parametrize("way", range(6))
def test_what_is_damaged_in_the_cache_is_made_again(
    filled_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: int
) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(filled_cache, folder)
    file = next((folder / "emulator").glob(f"{name}-*"))
    content = file.read_bytes()
    file.write_bytes(damaged(content)[way])
    if name == "runner":
        # Building it takes long: that it is asked for is enough.
        monkeypatch.setattr(compiler, "_compile", lambda command, cancel: "error: built again")
        with pytest.raises(BackendError, match="error: built again"):
            Emulator(cache_folder=folder).run(COPY, ONES)
        return
    np.testing.assert_array_equal(Emulator(cache_folder=folder).run(COPY, ONES).outputs[0], ONES[0])
    assert file.read_bytes() == content
    assert {path.name for path in (folder / "emulator").iterdir()} == {
        path.name for path in (filled_cache / "emulator").iterdir()
    }


def test_a_folder_in_a_compiled_files_place_is_replaced(filled_cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(filled_cache, folder)
    file = next((folder / "emulator").glob("compute-*"))
    file.unlink()
    (file / "inner").mkdir(parents=True)
    np.testing.assert_array_equal(Emulator(cache_folder=folder).run(COPY, ONES).outputs[0], ONES[0])
    assert file.is_file()


def test_a_cache_folder_with_a_line_break_in_its_name(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        Emulator(cache_folder=tmp_path / "a\nb").run(COPY, ONES)
    assert caught.value.message.endswith("a b cannot be written: its name has a line break")
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert not (tmp_path / "a\nb").exists()


def test_a_cache_that_is_whole_need_not_be_writable(
    filled_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor does anything look for a folder to write to."""
    monkeypatch.setattr(compiler.tempfile, "mkstemp", lambda **_: pytest.fail("the cache was written"))
    assert Emulator(cache_folder=filled_cache).run(COPY, ONES).outputs
    # The kernels' folder is not the one of this process.
    monkeypatch.chdir(filled_cache.parent)
    assert Emulator(cache_folder=Path(filled_cache.name)).run(COPY, ONES).outputs


def test_a_cache_whose_programs_do_not_run(filled_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(filled_cache, folder)
    runner = next((folder / "emulator").glob("runner-*"))
    # A mount with noexec says so when it is asked, some network file systems only when the program starts.
    access = os.access
    monkeypatch.setattr(compiler.os, "access", lambda path, mode: "runner-" not in str(path) and access(path, mode))
    with pytest.raises(BackendError) as asked:
        Emulator(cache_folder=folder).run(COPY, ONES)
    monkeypatch.undo()
    # A right that was taken away is given back.
    runner.chmod(0o644)
    assert Emulator(cache_folder=folder).run(COPY, ONES).outputs
    runner.chmod(0o644)
    monkeypatch.setattr(compiler.os, "access", lambda path, mode: True)
    with pytest.raises(BackendError) as started:
        Emulator(cache_folder=folder).run(COPY, ONES)
    for caught in (asked, started):
        assert (
            caught.value.message == f"programs in the cache folder {runner.parent} cannot be started: Permission denied"
        )
        assert "noexec" in caught.value.hint
        assert "set XDG_CACHE_HOME" in caught.value.hint


def test_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache.sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative", "./relative", "~/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache.default_cache_folder() == tmp_path / ".cache" / "ttexplore"
    monkeypatch.setenv("XDG_CACHE_HOME", "/absolute")
    assert cache.default_cache_folder() == Path("/absolute/ttexplore")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.default_cache_folder() == tmp_path / ".cache" / "ttexplore"
    monkeypatch.setattr(cache.sys, "platform", "darwin")
    assert cache.default_cache_folder() == tmp_path / "Library" / "Caches" / "ttexplore"

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", homeless)
    with pytest.raises(BackendError, match="there is no home folder for compiled files") as caught:
        cache.default_cache_folder()
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_no_room_for_temporary_files(filled_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever needs it first: the folder of a run, its tensors, the compiler, the runner."""
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(BackendError) as caught:
        Emulator(cache_folder=filled_cache).run(COPY, ONES)
    told = f"the folder for temporary files {tmp_path}/missing cannot be used: No such file or directory"
    assert caught.value.message == told
    assert "set TMPDIR" in caught.value.hint
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))

    def full(path: Path, content: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(BackendError, match=r"temporary files .* cannot be used: No space left on device"):
            Emulator(cache_folder=filled_cache).run(COPY, ONES)
    monkeypatch.setattr(process, "_LEAST_FREE_BYTES", 1 << 60)
    crowded = tmp_path / "c++"
    crowded.write_text("#!/bin/sh\necho 'fatal error: writing to /tmp/x.s: No space left on device' >&2\nexit 1\n")
    crowded.chmod(0o755)
    with pytest.raises(BackendError, match=r"temporary files .* cannot be used: No space left on device"):
        compiler._compile([str(crowded)], None)
    with pytest.raises(BackendError, match=r"temporary files .* cannot be used: No space left on device"):
        backend.run_child(crowded, tmp_path, 5.0)
    (tmp_path / "result.txt").write_text(
        "\x1e".join(["fault", "the emulator's job is broken: cannot write output0.bin", "", "", ""])
    )
    with pytest.raises(BackendError, match=r"temporary files .* cannot be used: No space left on device"):
        backend.run_child(crowded, tmp_path, 5.0)
    toolchain = compiler.Toolchain(compiler.Compiler((str(crowded),), "", ()), tmp_path / "cache")
    with pytest.raises(BackendError, match=r"temporary files .* cannot be used: No space left on device"):
        toolchain.kernels([compiler.KernelSource("writer", "", ())])


def test_no_room_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compiler.os, "fdopen", full)
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    with pytest.raises(BackendError, match=r"the cache folder .* cannot be written: No space left on device"):
        toolchain.kernels([compiler.KernelSource("writer", "void kernel_main() {}\n", ())])
    assert list((tmp_path / "emulator").iterdir()) == []


def test_compiling_at_once_leaves_one_file(tmp_path: Path) -> None:
    toolchain = compiler.Toolchain(Emulator().toolchain().compiler, tmp_path)
    source = compiler.KernelSource("writer", "void kernel_main() {}\n", ("NOC_INDEX=1",))
    with ThreadPoolExecutor(4) as pool:
        (made,) = {tuple(one.items()) for one in pool.map(lambda _: toolchain.kernels([source]), range(4))}
    assert sealing.is_whole(made[0][1])
    assert list((tmp_path / "emulator").iterdir()) == [made[0][1]]


def cancelled_once(is_there: Callable[[], Any], run: Callable[[threading.Event], Any]) -> None:
    """Cancels what runs, half a second after something is there, and sees that it ends at once."""
    cancel = threading.Event()
    at: list[float] = []

    def set_it() -> None:
        while not is_there():
            time.sleep(0.01)
        time.sleep(0.5)
        at.append(time.monotonic())
        cancel.set()

    threading.Thread(target=set_it, daemon=True).start()
    with pytest.raises(Cancelled, match="the run was cancelled") as caught:
        run(cancel)
    assert caught.value.hint
    assert time.monotonic() - at[0] < PATIENCE_SECONDS


def test_a_run_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []
    started = backend._started
    monkeypatch.setattr(backend, "_started", lambda *_: children.append(started(*_)) or children[-1])
    cancelled_once(lambda: children, lambda cancel: Emulator().run(ENDLESS, ONES, cancel=cancel))
    (child,) = children
    assert child.returncode == -9


def test_compiling_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that the compiler has started."""
    slow = tmp_path / "c++"
    slow.write_text(f"#!/bin/sh\nsleep 600 & echo $! >> {tmp_path}/children\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    file = tmp_path / "children"
    cancelled_once(
        lambda: file.exists() and file.read_text(), lambda cancel: Emulator(tmp_path).run(COPY, ONES, cancel=cancel)
    )
    children = file.read_text().split()
    assert children
    assert all(gone(int(child)) for child in children)
    assert list(tmp_path.glob("emulator/*")) == []


def gone(process_id: int) -> bool:
    """Whether a process ends at once."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


RUN_AND_TELL = """
import sys, subprocess
from pathlib import Path
from ttexplore.backends.emulator import backend
child = backend._started(Path(sys.argv[1]), Path(sys.argv[2]), 60.0)
print(child.pid, flush=True)
child.wait()
"""


def endless_job(folder: Path) -> Path:
    """A job that does not end, in `folder`; the runner."""
    toolchain = Emulator().toolchain()
    kernels = toolchain.kernels(kernel_sources(ENDLESS.texts, ENDLESS.plan))
    write_job(folder, ENDLESS.plan, {"a": ONES[0]}, kernels, 0, 1, exact=True)
    return toolchain.runner()


def test_a_run_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN_AND_TELL, str(endless_job(tmp_path)), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.3)
        assert Path(f"/proc/{child}/stat").exists()
        parent.kill()
    assert gone(child)


def forking(folder: Path, then: str) -> Program:
    """A reader that starts another process, which says its number in `folder` and ignores what asks it to end."""
    started = f"""
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) {{
        FILE* file = fopen("{folder}/started", "w");
        fprintf(file, "%d", static_cast<int>(getpid()));
        fclose(file);
        for (int i = 0; i < 600; ++i) {{
            sleep(1);
        }}
        _exit(0);
    }}
    while (access("{folder}/started", 0) != 0) {{
        usleep(1000);
    }}
    {then}"""
    text = COPY.texts["reader"].replace("    Noc noc;", f"    Noc noc;{started}", 1)
    heads = "".join(f"#include <{name}>\n" for name in ("signal.h", "stdio.h", "unistd.h"))
    return Program({**COPY.texts, "reader": heads + text}, COPY.plan)


def started_in(folder: Path) -> int:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if (folder / "started").exists() and (number := (folder / "started").read_text()):
            return int(number)
        time.sleep(0.02)
    raise AssertionError("nothing was started")


def test_what_a_program_starts_ends_with_its_run(tmp_path: Path) -> None:
    start = time.monotonic()
    np.testing.assert_array_equal(Emulator().run(forking(tmp_path, ""), ONES).outputs[0], ONES[0])
    assert gone(started_in(tmp_path))
    # The other process holds the pipes of the runner, for ten minutes.
    assert time.monotonic() - start < 300


def test_a_program_that_ignores_the_time_limit_ends_with_all_it_started(tmp_path: Path) -> None:
    error = error_of(forking(tmp_path, "for (volatile bool on = true; on;) {}"), time_limit_seconds=1)
    assert error.code == "TTX-B003"
    assert error.message == (
        "the program did not end within the time limit of 1 seconds, nor when it was asked where it is"
    )
    assert gone(started_in(tmp_path))


def test_a_process_that_left_the_group_of_its_child_is_not_waited_for() -> None:
    """It holds the child's pipes open; what the child itself has written is there."""
    code = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as child:
        written, _ = process.finish(child, 300, None)
    os.kill(int(written), signal.SIGKILL)  # it is still there


def test_what_a_program_starts_ends_when_its_run_is_cancelled(tmp_path: Path) -> None:
    program = forking(tmp_path, "for (volatile bool on = true; on;) {}")
    Emulator().toolchain().kernels(kernel_sources(program.texts, program.plan))
    cancelled_once(lambda: started_in(tmp_path), lambda cancel: Emulator().run(program, ONES, cancel=cancel))
    assert gone(started_in(tmp_path))


def test_what_a_program_starts_ends_with_the_process_that_started_the_run(tmp_path: Path) -> None:
    program = forking(tmp_path, "for (volatile bool on = true; on;) {}")
    toolchain = Emulator().toolchain()
    kernels = toolchain.kernels(kernel_sources(program.texts, program.plan))
    write_job(tmp_path, program.plan, {"a": ONES[0]}, kernels, 0, 1, exact=True)
    command = [sys.executable, "-c", RUN_AND_TELL, str(toolchain.runner()), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child, other = int(parent.stdout.readline()), started_in(tmp_path)
        parent.kill()
    assert gone(child)
    assert gone(other)


HOLD_A_FOLDER = """
import time
from ttexplore.backends.process import workspace
with workspace() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
    foreign = tmp_path / "ttexplore-of-an-older-version"
    foreign.mkdir()
    command = [sys.executable, "-c", HOLD_A_FOLDER]
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
        ) as one,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
        ) as two,
    ):
        assert one.stdout is not None
        assert two.stdout is not None
        first, second = Path(one.stdout.readline().strip()), Path(two.stdout.readline().strip())
        (first / "tensor").write_bytes(b"0" * 100)
        one.kill()
        one.wait()
        with process.workspace() as own, process.workspace():
            assert own.is_dir()
            assert not first.exists()
            assert second.is_dir()
            assert foreign.is_dir()
        two.kill()
        two.wait()
        monkeypatch.setattr(process.os, "getuid", lambda: 12345)
        with process.workspace():
            assert second.is_dir()
        monkeypatch.undo()
        monkeypatch.setattr(process.tempfile, "tempdir", str(tmp_path))
        with process.workspace():
            assert not second.exists()
    assert list(tmp_path.iterdir()) == [foreign]


def test_a_run_keeps_its_time_limit_by_itself(tmp_path: Path) -> None:
    """As on a system that does not tell it that its parent has ended."""
    runner = endless_job(tmp_path)
    start = time.monotonic()
    subprocess.run([str(runner), "job.txt", "1", str(os.getpid())], cwd=tmp_path, timeout=60, check=True)
    assert time.monotonic() - start > 0.9
    assert (tmp_path / "result.txt").read_text().startswith("timeout\x1ethe reader kernel on core (0, 0) was running")
    # Started for a process that has ended already, it does nothing.
    done = subprocess.run([str(runner), "job.txt", "1", "1"], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 3


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
    assert "the number of input arrays is 0, but the program has 1 input tensors" in caught.value.message
    assert "a (32, 32)" in caught.value.hint
    with pytest.raises(BackendError) as caught:
        Emulator().run(COPY, [np.ones((32, 33), np.float32)])
    assert "the array for tensor a has shape (32, 33), but the tensor (32, 32)" in caught.value.message


def test_a_plan_that_is_not_complete() -> None:
    with pytest.raises(BackendError) as caught:
        Emulator().run(Program(COPY.texts, COPY.plan.replace(partition=None)), ONES)
    assert "the plan is incomplete" in caught.value.message
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


def test_the_emulator_can_be_timed() -> None:
    emulator = Emulator()
    assert emulator.missing() is None
    times = emulator.measure(COPY, ONES, repeats=3)
    assert len(times) == 3
    assert all(seconds > 0 for seconds in times)
