"""The emulator: compiles the emitted C++ for this machine and runs it on all simulated cores in a child process."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttexplore.backends.base import (
    Array,
    BlockedKernel,
    Deadlock,
    Events,
    Execution,
    KernelFault,
    Program,
    checked_inputs,
    ordered_layouts,
    simulation_time,
)
from ttexplore.backends.cache import default_cache_folder
from ttexplore.backends.emulator.compiler import (
    HOW_TO_GET_A_COMPILER,
    Toolchain,
    find_compiler,
)
from ttexplore.backends.emulator.job import kernel_sources, read_outputs, write_job
from ttexplore.backends.process import (
    LONGEST_SECONDS,
    finish,
    is_full,
    kill_group,
    start,
    unusable_workspace,
    workspace,
)
from ttexplore.backends.registry import EMULATOR_SECONDS, Arithmetic
from ttexplore.errors import BackendError
from ttexplore.plan import KERNEL_ROLES, KernelRole
from ttexplore.record import lines_of

# The records of runtime/machine.h, struct Event and enum EventOperation.
EVENT_DTYPE = np.dtype(
    [
        ("time", "<u4"),
        ("amount", "<u4"),
        ("core", "<u2"),
        ("line", "<u2"),
        ("object", "<u2"),
        ("kernel", "u1"),
        ("operation", "u1"),
    ]
)
EVENT_OPERATIONS = (
    "reserve_back",
    "push_back",
    "wait_front",
    "pop_front",
    "read",
    "write",
    "read_barrier",
    "write_barrier",
    "writes_flushed",
    "acquire",
    "commit",
    "wait",
    "release",
    "fpu",
    "sfpu",
    "pack",
    "semaphore",
    "multicast",
    "zeros",
    "finish",
)

# The records of runtime/machine.h, struct Move.
MOVE_DTYPE = np.dtype(
    [
        ("operation", "<u4"),
        ("bytes", "<u4"),
        ("from_page", "<u4"),
        ("from_offset", "<u4"),
        ("to_page", "<u4"),
        ("to_offset", "<u4"),
        ("core", "<u2"),
        ("line", "<u2"),
        ("from_object", "<u2"),
        ("to_object", "<u2"),
        ("from_kind", "u1"),
        ("to_kind", "u1"),
        ("kernel", "u1"),
        ("adds", "u1"),
    ]
)

SEPARATOR = "\x1e"
GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """Runs programs on simulated cores at native speed.

    `arithmetic` is ``exact``: sums and products of the matrix unit and the SFPU agree bit for bit with the simulated
    chips; or ``fast``: this machine's float32. With ``fast``, large matrix products are 10 to 20 times faster, with
    errors of at most a few units of TF32's last place; SFPU functions are about 50 times faster, with errors of a few
    units of float32's last place.

    Approximate variants of SFPU operations compute the exact function; NoC coordinates are logical coordinates.
    `cache_folder` keeps compiled files (default: the platform's cache folder); at most `event_limit` events are kept
    (16 bytes each, 0 for none), see :class:`Events`: those of the core with the index `event_core` in any case. At most
    `move_limit` moves of values are kept (36 bytes each). `progress` is called with progress messages.
    """

    cache_folder: Path | None = None
    event_limit: int = 1_000_000
    event_core: int = 0
    move_limit: int = 0
    arithmetic: Arithmetic = "exact"
    progress: Callable[[str], None] | None = None

    def missing(self) -> str | None:
        """What is missing and how to install it, in one line; None if there is a C++ compiler."""
        if find_compiler() is None:
            return f"no C++ compiler (c++, g++, clang++ or the ziglang wheel): {HOW_TO_GET_A_COMPILER}"
        return None

    def run(
        self, program: Program, inputs: Sequence[Array], *, time_limit_seconds: float = EMULATOR_SECONDS,
        cancel: threading.Event | None = None,
    ) -> Execution:  # fmt: skip
        """Compile and run `program`, checking each operation. Setting `cancel` ends the run.

        `inputs` are the input and inout tensors in parameter order, in their logical shapes. Raises BackendError (no
        compiler, a text that does not compile, wrong inputs, the time limit) and its subclasses Cancelled and
        KernelFault (a deadlock, a wrong order of calls, an access out of bounds, or a crash of the running program).
        """
        times, execution = self._execute(program, inputs, time_limit_seconds, cancel, repeats=1)
        del times
        return execution

    def measure(
        self,
        program: Program,
        inputs: Sequence[Array],
        *,
        repeats: int,
        time_limit_seconds: float = EMULATOR_SECONDS,
    ) -> tuple[float, ...]:
        """Measure the seconds of each of `repeats` runs in one process. Raises as :meth:`run` does."""
        times, execution = self._execute(program, inputs, time_limit_seconds, None, repeats=repeats)
        del execution
        return times

    def toolchain(self) -> Toolchain:
        """The compiler and its cache. Raises BackendError if there is no compiler."""
        compiler = find_compiler()
        if compiler is None:
            raise BackendError(
                "B001", "the emulator needs a C++ compiler, and none was found", hint=HOW_TO_GET_A_COMPILER
            )
        return Toolchain(compiler, (self.cache_folder or default_cache_folder()).absolute(), self._tell)

    def _tell(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)

    def _execute(
        self, program: Program, inputs: Sequence[Array], time_limit_seconds: float,
        cancel: threading.Event | None, *, repeats: int,
    ) -> tuple[tuple[float, ...], Execution]:  # fmt: skip
        arrays = checked_inputs(program.plan, inputs)
        toolchain = self.toolchain()
        runner = toolchain.runner(cancel)
        sources = kernel_sources(program.texts, program.plan, tell_copies=self.move_limit > 0)
        kernels = toolchain.kernels(sources, cancel)
        with workspace() as folder:
            write_job(
                folder,
                program.plan,
                arrays,
                kernels,
                self.event_limit,
                repeats,
                exact=self.arithmetic == "exact",
                event_core=self.event_core,
                move_limit=self.move_limit,
            )
            self._tell(f"simulating {_cores(program)}")
            try:
                fields = run_child(runner, folder, time_limit_seconds, cancel)
            except Deadlock as deadlock:
                deadlock.events = self._read_events(folder, program, deadlock.event_counts)
                raise
            seconds, event_counts, unwritten, misnormalised = fields
            self._tell("reading the outputs")
            times = tuple(float(word) for word in seconds.split())
            execution = Execution(
                outputs=read_outputs(folder, program.plan),
                seconds=times[-1],
                events=self._read_events(folder, program, event_counts),
                message=_message(program, times[-1], unwritten, int(misnormalised)),
                moves=np.fromfile(folder / "moves.bin", dtype=MOVE_DTYPE) if self.move_limit else None,
            )
        return times, execution

    def _read_events(self, folder: Path, program: Program, counts: str) -> Events | None:
        if self.event_limit == 0:
            return None
        records = np.fromfile(folder / "events.bin", dtype=EVENT_DTYPE)
        tensors = tuple(layout.name for layout in ordered_layouts(program.plan))
        total, stride, cut = map(int, counts.split())
        return Events(records, total, EVENT_OPERATIONS, KERNEL_ROLES, tensors, self.event_core, stride, cut)


def run_child(
    runner: Path, folder: Path, time_limit_seconds: float, cancel: threading.Event | None = None
) -> tuple[str, str, str, str]:  # fmt: skip
    """Run the child process and return the fields of its result. Raises unless it succeeds."""
    result_file = folder / "result.txt"
    in_time, complaint = True, b""
    with _started(runner, folder, time_limit_seconds) as child:
        try:
            _, complaint = finish(child, time_limit_seconds, cancel)
        except subprocess.TimeoutExpired:
            in_time = False
            child.terminate()  # the runner then reports the line that it is executing
            with contextlib.suppress(subprocess.TimeoutExpired):
                finish(child, GRACE_SECONDS, cancel)
        finally:
            kill_group(child)
    result = result_file.read_text(encoding="utf-8", errors="replace") if result_file.exists() else ""
    match result.split(SEPARATOR):
        case ["ok", seconds, event_counts, unwritten, misnormalised]:
            return seconds, event_counts, unwritten, misnormalised
        case ["fault", _, message, _, _, _] if message.startswith("the emulator's job is broken: cannot write"):
            raise unusable_workspace(os.strerror(errno.ENOSPC) if is_full(folder) else message)
        case ["fault", code, message, hint, kernel, line]:
            role = _role(kernel)
            raise KernelFault(code, message, hint=hint, kernel=role, cpp_line=int(line) if role else None)
        case ["deadlock", message, hint, core, event_counts, waits]:
            stuck: dict[int, tuple[BlockedKernel, ...]] = {}
            for line in lines_of(waits):
                index, wait = _wait(line)
                stuck[index] = (*stuck.get(index, ()), wait)
            raise Deadlock(
                message, hint=hint, core=int(core), waits=stuck[int(core)], stuck=stuck, event_counts=event_counts
            )
        case ["timeout", where, _, kernel, line]:
            raise KernelFault(
                "B003",
                f"the program did not end within the time limit of {time_limit_seconds:g} seconds: {where}",
                hint="look for an endless loop after that line, or raise the time limit (time_limit_seconds)",
                kernel=_role(kernel), cpp_line=int(line) or None,
                what="the last call before the time limit",
            )  # fmt: skip
        case ["crash", where, signal, kernel, line]:
            raise KernelFault(
                "B004",
                f"the program crashed ({signal}): {where}",
                hint="look for stores through a pointer or deep recursion after that line",
                kernel=_role(kernel), cpp_line=int(line) or None,
                what=f"the last call before the program crashed ({signal})",
            )  # fmt: skip
        case _ if is_full(folder):
            raise unusable_workspace(os.strerror(errno.ENOSPC))
        case _ if not in_time:
            raise KernelFault(
                "B003",
                f"the program did not end within the time limit of {time_limit_seconds:g} seconds, nor when it was "
                "asked where it is",
                hint="look for code that handles signals itself, or raise the time limit (time_limit_seconds)",
            )
        case _:
            detail = complaint.decode(errors="replace").strip()[:500]
            raise BackendError(
                "B004",
                f"the emulator's process ended without a result (exit status {child.returncode}) {detail}".rstrip(),
                hint="if it was killed for memory, use fewer cores or smaller tensors",
            )


def _started(runner: Path, folder: Path, time_limit_seconds: float) -> subprocess.Popen[bytes]:
    """Start the runner. It ends itself some time after the limit, and when this process ends.

    Raises BackendError if it cannot be started.
    """
    limit = str(math.ceil(min(time_limit_seconds, LONGEST_SECONDS) + 2 * GRACE_SECONDS))
    return start([str(runner), "job.txt", limit, str(os.getpid())], folder, subprocess.DEVNULL, subprocess.DEVNULL)


def _wait(line: str) -> tuple[int, BlockedKernel]:
    """The index of a core, and what one of its kernels waits for."""
    core, kernel, operation, *numbers, description = line.split(maxsplit=8)
    role = _role(kernel)
    assert role is not None, "only kernels wait"
    assert operation in ("reserve_back", "wait_front", "semaphore"), "see explain_deadlock in runner.cpp"
    number, needed, there, capacity, cpp_line = map(int, numbers)
    return int(core), BlockedKernel(role, operation, number, needed, there, capacity, cpp_line, description)


def _role(name: str) -> KernelRole | None:
    return next((role for role in KERNEL_ROLES if role == name), None)


def _cores(program: Program) -> str:
    partition = program.plan.partition
    cores = len(partition.cores) if partition else 0
    return f"{cores} {'core' if cores == 1 else 'cores'}"


def _message(program: Program, seconds: float, unwritten: str, misnormalised: int) -> str:
    text = f"{_cores(program)}, {simulation_time(seconds)}"
    for line in unwritten.splitlines():
        name, count = line.split()
        if int(count):
            text += f"; {count} pages of {name} were never written"
    if misnormalised:
        sums = "1 sum" if misnormalised == 1 else f"{misnormalised:,} sums"
        text += (
            f"\nthe matrix unit of Wormhole took {sums} of -1 in the last place for -2^27, as the chip does; "
            "Blackhole's does not, nor does a 16-bit DST (accumulate_dtype='bfloat16')"
        )
    return text
