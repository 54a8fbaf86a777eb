"""Runs a CUDA kernel on the CPU: its text, compiled against our header, in a process of its own that can only compute.

Each launch runs twice: blocks and threads in ascending and in descending order, between the points where they meet.
What then differs depends on an order that a GPU does not have.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.cache import default_cache_folder
from ttexplore.backends.emulator.compiler import HOW_TO_GET_A_COMPILER, RUNTIME_FOLDER, Toolchain, find_compiler
from ttexplore.backends.process import finish, kill_group, start, workspace
from ttexplore.control import FREE, Control
from ttexplore.errors import BackendError
from ttexplore.porting.foreign.work import PORT_ONE
from ttexplore.porting.proof.cuda.text import SOURCE, Translation, translated
from ttexplore.porting.proof.cuda.tokens import INCLUDE_FOLDER
from ttexplore.porting.proof.running import Argument, CannotRun, Launch, OutsideAccess, SourceRun, element_dtype

Array = NDArray[Any]

_PROGRAM = Path(__file__).parent / "runtime" / "launch.cpp"
_PROGRAM_FLAGS = ("-std=c++17", "-O2", "-fno-exceptions")
# What CUDA leaves undefined shows: variables without a value, indices outside of arrays, unaligned addresses.
_CHECKS = (
    "-ftrivial-auto-var-init=pattern -fsanitize=bounds,alignment,integer-divide-by-zero -fno-sanitize-recover=all "
    "-fstack-clash-protection -Werror=uninitialized"
)
# The compiler works for the text, too: how much, has limits.
_FLAGS = (
    "-std=c++17 -O1 -g1 -nostdinc -nostdinc++ -fno-exceptions -fno-rtti -fwrapv -fno-strict-aliasing -ffp-contract=off "
    "-fno-math-errno -fno-threadsafe-statics -fno-asynchronous-unwind-tables -ftemplate-depth=128 -fconstexpr-depth=128"
)
_ONLY_GCC = "-fconstexpr-ops-limit=4000000 -fmax-errors=1 -fno-diagnostics-show-caret"
_COMPILE_SECONDS, _RUN_SECONDS = 20, 10
_LIMITED = 'ulimit -t 20; ulimit -v 3000000; ulimit -f 131072; exec "$@"'
# The types of elements, in the order in which the header numbers them.
_TYPES: Mapping[str, str] = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "__nv_bfloat16",
    "float64": "double",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "bool": "bool",
}
_KINDS: Mapping[str, int] = {name: number for number, name in enumerate(_TYPES, 1)}
_SEPARATOR = "\x1e"
_ARRAY, _NUMBER = 0, 2
# What the order of atomic additions may change, of the largest number of an array.
_ROUNDING: Mapping[str, float] = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-2, "bfloat16": 5e-2}


def cuda_runner(text: str, kernel_name: str, control: Control = FREE) -> CudaRunner:
    """A kernel of a source, ready to be run. Raises CannotRun for what cannot be run, at its line."""
    compiler = find_compiler()
    if compiler is None:
        raise CannotRun(f"running CUDA needs a C++ compiler, and none was found: {HOW_TO_GET_A_COMPILER}")
    toolchain = Toolchain(compiler, default_cache_folder().absolute(), control.tell)
    return CudaRunner(translated(text, kernel_name), toolchain)


@dataclass
class CudaRunner:
    """A kernel in CUDA C++. It is compiled at the first run, and again for other arguments of its template."""

    translation: Translation
    toolchain: Toolchain
    programs: dict[tuple[str, ...], Path] = field(default_factory=dict[tuple[str, ...], Path])
    # The dtypes of parameters whose arrays have another one.
    dtypes: dict[str, np.dtype[Any]] = field(default_factory=dict[str, np.dtype[Any]])

    def run(self, launch: Launch, arguments: Mapping[str, Argument], control: Control = FREE) -> SourceRun:
        """Run the kernel once. Raises as :meth:`SourceRunner.run` does."""
        program = self.program(arguments, control)
        names = self.translation.parameters
        if missing := [name for name in names if name not in arguments]:
            raise CannotRun(f"no argument for the parameter {missing[0]}")
        while True:
            converted = {name: self.converted(name, arguments[name]) for name in names}
            try:
                runs = _run_both(program, launch, converted, control)
            except _OtherDtype as error:
                name = names[error.index]
                if name in self.dtypes:
                    raise CannotRun(f"the argument {name} has another type than its parameter") from None
                self.dtypes[name] = error.dtype
                continue
            break
        first, second = runs
        if first.outside or second.outside:
            return first if first.outside else second
        _refuse_races(first.arrays, second.arrays, exact="atomic" not in self.translation.text)
        dtypes = {name: np.asarray(arguments[name]).dtype for name in first.arrays}
        arrays = {name: array.astype(dtypes[name], copy=False) for name, array in first.arrays.items()}
        return SourceRun(arrays, lines=self.translation.lines)

    def converted(self, name: str, argument: Argument) -> Argument:
        if isinstance(argument, np.ndarray) and name in self.dtypes:
            return argument.astype(self.dtypes[name])
        return argument

    def program(self, arguments: Mapping[str, Argument], control: Control) -> Path:
        """The compiled program for the arguments of the template among `arguments`."""
        template: list[str] = []
        for parameter in self.translation.template:
            if parameter.name not in arguments:
                if parameter.is_optional:
                    break
                raise CannotRun(f"no argument for the parameter {parameter.name} of the template")
            template.append(_template_argument(parameter.name, arguments[parameter.name], parameter.is_type))
        key = tuple(template)
        if key not in self.programs:
            self.programs[key] = _compiled(self.translation, key, self.toolchain, control)
        return self.programs[key]


def _template_argument(name: str, argument: object, is_type: bool) -> str:
    if is_type:
        dtype = argument if isinstance(argument, str) else getattr(argument, "name", "")
        if dtype not in _TYPES:
            raise CannotRun(f"the type {name} of the template cannot be {argument}")
        return _TYPES[dtype]
    if isinstance(argument, bool):
        return str(argument).lower()
    if isinstance(argument, int) and abs(argument) < 2**31:
        return str(argument)
    raise CannotRun(f"the parameter {name} of the template cannot be {argument}")


# ---- compiling ----


def _compiled(translation: Translation, template: Sequence[str], toolchain: Toolchain, control: Control) -> Path:
    """The program of a kernel. Raises CannotRun for a text that does not compile, with the compiler's sentence."""
    kernel = f"{translation.name}<{', '.join(template)}>" if template else translation.name
    text = (
        f'#include "cuda.h"\nnamespace {{\n{translation.text}\n#line 1 "launch"\n}}\n'
        f'extern "C" void ttx_thread() {{ ttx_call({kernel}); }}\n'
        f'extern "C" void ttx_check() {{ ttx_fit({kernel}); }}\n'
    )
    headers = [path.read_text(encoding="utf-8") for path in sorted(INCLUDE_FOLDER.glob("*.h"))]
    machine = _machine(toolchain, headers, control)
    link_flags = () if os.uname().sysname == "Darwin" else ("-no-pie",)
    messages = ""
    # Older compilers, and others, lack some.
    for words in (f"{_FLAGS} {_CHECKS} {_ONLY_GCC}", f"{_FLAGS} {_CHECKS}", _FLAGS):
        flags = (*words.split(), f"-I{INCLUDE_FOLDER}", *([] if not link_flags else ["-fno-pie"]))

        def commands(folder: Path, flags: Sequence[str] = flags) -> list[tuple[str, ...]]:
            (folder / "kernel.cpp").write_text(text, encoding="utf-8")
            limited = ("/bin/sh", "-c", _LIMITED, "sh", *toolchain.compiler.command)
            return [
                (*limited, *flags, "-c", str(folder / "kernel.cpp"), "-o", str(folder / "kernel.o")),
                (*toolchain.compiler.command, *link_flags, str(folder / "kernel.o"), str(machine), "-lm"),
            ]

        seconds = _seconds(control, _COMPILE_SECONDS)
        try:
            texts = [text, *headers, *flags, machine.name]
            outcome = toolchain.linked("cuda", texts, commands, control.cancel, seconds=seconds)
        except BackendError as error:
            _seconds(control, _COMPILE_SECONDS)
            if error.code != "B008":
                raise
            raise CannotRun(f"the compiler does not come to an end: {error.message}") from error
        if isinstance(outcome, Path):
            return outcome
        messages = outcome
        if not re.search(r"unrecognized|unknown argument|unsupported", messages):
            break
    raise _not_compiled(messages)


def _machine(toolchain: Toolchain, headers: Sequence[str], control: Control) -> Path:
    """The object file of the runner's own part."""
    texts = [*headers, _PROGRAM.read_text(encoding="utf-8"), (RUNTIME_FOLDER / "fiber.cpp").read_text(encoding="utf-8")]
    flags = (*_PROGRAM_FLAGS, f"-I{INCLUDE_FOLDER}", f"-I{RUNTIME_FOLDER}")
    command = (*toolchain.compiler.command, *flags, "-c", str(_PROGRAM))
    outcome = toolchain.linked("launch", [*texts, *_PROGRAM_FLAGS], lambda _: [command], control.cancel)
    if isinstance(outcome, str):
        raise CannotRun(f"the runner for CUDA does not compile: {outcome[:500]}")
    return outcome


def _not_compiled(messages: str) -> CannotRun:
    """The compiler's first sentence, at the line of the source that led to it."""
    lines = messages.splitlines()
    if missing := re.search(rf"(?:{SOURCE}:(\d+): )?undefined reference to `([^']*)'", messages):
        name = missing[2].replace("(anonymous namespace)::", "")
        return CannotRun(f"{name} is declared, but has no definition", int(missing[1] or 0))
    first = next((index for index, line in enumerate(lines) if re.search(r"\berror: ", line)), None)
    if first is None:
        return CannotRun(f"the compiler failed: {messages.strip()[:300]}")
    sentence = lines[first].partition("error: ")[2]
    sentence = (
        re.sub(r" \[-W[^\]]*\]$", "", sentence).replace("{anonymous}::", "").replace("(anonymous namespace)::", "")
    )
    # An error in the header belongs to what led there.
    mentions = [re.search(rf"\b{SOURCE}:(\d+)", line) for line in lines]
    before = next((match for match in reversed(mentions[: first + 1]) if match), None)
    match = before or next((match for match in mentions[first:] if match), None)
    return CannotRun(sentence, int(match[1]) if match else 0)


# ---- running ----


class _OtherDtype(Exception):
    """A parameter points to numbers of another dtype than its array has."""

    def __init__(self, index: int, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self.index, self.dtype = index, dtype


def _run_both(
    program: Path, launch: Launch, arguments: Mapping[str, Argument], control: Control
) -> tuple[SourceRun, SourceRun]:
    seconds = math.ceil(_seconds(control, _RUN_SECONDS))
    deadline = time.monotonic() + seconds + 2
    with workspace() as folder, contextlib.ExitStack() as ended:
        children: list[subprocess.Popen[bytes]] = []
        for descending in (0, 1):
            job, result = folder / f"job{descending}", folder / f"result{descending}"
            job.write_bytes(_job(launch, arguments, descending))
            with job.open("rb") as read, result.open("wb") as written:
                child = start([str(program), str(seconds), str(os.getpid())], folder, read, written)
            children.append(ended.enter_context(child))
            ended.callback(kill_group, child)
        try:
            for child in children:
                finish(child, max(0.0, deadline - time.monotonic()), control.cancel)
        except subprocess.TimeoutExpired:
            _seconds(control, _RUN_SECONDS)
            raise _too_slow(0) from None
        _seconds(control, _RUN_SECONDS)
        first, second = (
            _outcome(program, child, (folder / f"result{number}").read_bytes(), arguments)
            for number, child in enumerate(children)
        )
    return first, second


def _seconds(control: Control, most: float) -> float:
    """How long a part of the work may take. Raises BackendError where the time of all is over."""
    remaining = control.remaining
    if remaining <= 0:
        raise control.timed_out(PORT_ONE)
    return min(most, remaining)


def _job(launch: Launch, arguments: Mapping[str, Argument], descending: int) -> bytes:
    blocks, threads = ((*sizes, 1, 1, 1)[:3] for sizes in (launch.grid, launch.threads))
    if math.prod(threads) > 1024 or not all(0 < size < 2**31 for size in (*blocks, *threads)):
        raise CannotRun(f"a launch of {blocks} blocks of {threads} threads is not possible")
    head = struct.pack("<6IQ2I", *blocks, *threads, launch.shared_bytes, descending, len(arguments))
    contents: list[bytes] = []
    for name, argument in arguments.items():
        if isinstance(argument, np.ndarray):
            if argument.dtype.name not in _KINDS:
                raise CannotRun(f"the argument {name} has the dtype {argument.dtype}")
            contents.append(np.ascontiguousarray(argument).tobytes())
            head += struct.pack("<2IQqd", _ARRAY, _KINDS[argument.dtype.name], len(contents[-1]), 0, 0.0)
        else:
            number = float(argument)
            is_whole = number.is_integer() and abs(number) < 2**63
            head += struct.pack("<2IQqd", _NUMBER, is_whole, 0, int(argument) if is_whole else 0, number)
    return b"".join([head, *contents])


def _outcome(
    program: Path, child: subprocess.Popen[bytes], result: bytes, arguments: Mapping[str, Argument]
) -> SourceRun:
    if result[:1] == b"K":
        position, arrays = 1, dict[str, Array]()
        for name, argument in arguments.items():
            if isinstance(argument, np.ndarray):
                arrays[name] = np.frombuffer(result, argument.dtype, argument.size, position).reshape(argument.shape)
                position += argument.nbytes
        if position == len(result):
            return SourceRun(arrays)
    if result[:1] == b"F":
        _, kind, line, code, text = result.decode("utf-8", "replace").split(_SEPARATOR, 4)
        return _fault(kind, int(line) or _line_of(program, int(code, 16)), text, arguments)
    if child.returncode == -signal.SIGSYS:
        raise CannotRun("it was ended: its code called the operating system")
    if child.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        raise _too_slow(0)
    raise CannotRun(f"its process ended without a result (exit status {child.returncode})")


def _fault(kind: str, line: int, text: str, arguments: Mapping[str, Argument]) -> SourceRun:
    names = [*arguments]
    match kind:
        case "time":
            raise _too_slow(line)
        case "kind":
            index, number, _ = map(int, text.split(","))
            dtype = next(name for name, code in _KINDS.items() if code == number)
            raise _OtherDtype(index, element_dtype(dtype))
        case "pointer":
            raise CannotRun(f"the argument {names[int(text)]} must be an array")
        case "number":
            raise CannotRun(f"the argument {names[int(text)]} must be a number")
        case "whole":
            raise CannotRun(f"the argument {names[int(text)]} must be a whole number")
        case "outside":
            index, access, offset, size, thread = text.split(",", 4)
            if int(index) < 0:
                raise CannotRun(f"{thread} {access} byte {offset} of the dynamic shared memory, which has {size}", line)
            array = arguments[names[int(index)]]
            assert isinstance(array, np.ndarray), "only arrays have an outside"
            element = int(offset) // array.itemsize
            access_kind = "write" if access == "writes" else "read"
            unchanged = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
            return SourceRun(unchanged, (OutsideAccess(access_kind, names[int(index)], element, line),))
        case _:
            raise CannotRun(text, line)


def _too_slow(line: int) -> CannotRun:
    return CannotRun(f"it did not end within {_RUN_SECONDS} seconds on the CPU", line)


# GCC gives the text the name of its file in some tables.
_LINE = re.compile(rf"(?:^|/)(?:{SOURCE}|kernel\.cpp):(\d+)", re.MULTILINE)


def _line_of(program: Path, code: int) -> int:
    """The line of the source that an address of the program belongs to, 0 if that cannot be told."""
    tool = shutil.which("addr2line")
    if not code or tool is None:
        return 0
    try:
        said = subprocess.run(
            [tool, "-i", "-e", str(program), hex(code)], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _LINE.search(said)
    return int(match[1]) if match else 0


def _refuse_races(first: Mapping[str, Array], second: Mapping[str, Array], *, exact: bool) -> None:
    """Refuse results that depend on the order of threads, but for what the order of atomic additions rounds."""
    for name, array in first.items():
        reordered = second[name]
        if array.tobytes() == reordered.tobytes():
            continue
        differs = np.flatnonzero(_differs(array.ravel(), reordered.ravel(), exact))
        if differs.size:
            index = int(differs[0])
            values = f"{array.ravel()[index]} or {reordered.ravel()[index]}"
            raise CannotRun(f"its threads race: {name}[{index}] is {values}, as their order is")


def _differs(first: Array, second: Array, exact: bool) -> NDArray[np.bool_]:
    tolerance = _ROUNDING.get(first.dtype.name, 0.0)
    if exact or not tolerance:
        return (first != second) & ~((first != first) & (second != second))
    ascending, descending = first.astype(np.float64), second.astype(np.float64)
    scale = np.max(np.abs(ascending[np.isfinite(ascending)]), initial=0.0)
    with np.errstate(invalid="ignore"):
        close = np.abs(ascending - descending) <= tolerance * scale
    return ~(close | (ascending == descending) | (np.isnan(ascending) & np.isnan(descending)))
