"""The host's C++ compiler: finding it, building the runner and compiling kernels, both cached by content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ttexplore.backends.base import KernelFault
from ttexplore.backends.cache import make_private, not_executable, refuse_foreign, unusable
from ttexplore.backends.emulator.sealing import is_linked, is_whole, seal
from ttexplore.backends.process import finish, is_full, kill_group, unusable_workspace, workspace
from ttexplore.errors import BackendError
from ttexplore.plan import KERNEL_ROLES, KernelRole

PACKAGE_FOLDER = Path(__file__).parent
INCLUDE_FOLDER = PACKAGE_FOLDER / "include"
RUNTIME_FOLDER = PACKAGE_FOLDER / "runtime"

COMPILER_NAMES = ("c++", "g++", "clang++")
HOW_TO_GET_A_COMPILER = (
    "install one (Debian: apt install g++; macOS: xcode-select --install) or the compiler's wheel: pip install ziglang"
)

# -ffp-contract=off: results must not depend on where the compiler fuses multiplications and additions.
# The others change no result: they allow vectors where a function sets errno or an unused result would raise a flag.
RUNNER_FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")

# The warnings that are errors in the SDK's build, so that texts that compile here also compile there.
KERNEL_FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-fno-exceptions",
    "-fno-sanitize=undefined",  # zig turns it on by itself
    "-Wall",
    "-Werror",
    "-Wno-unknown-pragmas",
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-parentheses",
    "-Wno-int-to-pointer-cast",
    "-Wno-c++20-designator",
    "-Wno-unknown-warning-option",
    "-Wno-error=deprecated-declarations",
)

COMPILE_LIMIT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: its command, a text that identifies its version, and its flags for generic tuning."""

    command: tuple[str, ...]
    identity: str
    tuning: tuple[str, ...]


def find_compiler() -> Compiler | None:
    """The first of c++, g++, clang++ on the PATH, otherwise this Python's ziglang wheel, otherwise None."""
    for name in COMPILER_NAMES:
        path = shutil.which(name)
        if path:
            status = os.stat(path)
            return Compiler(
                (path,), f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}", ("-mtune=generic",)
            )
    specification = importlib.util.find_spec("ziglang")
    if specification is not None:
        return Compiler((sys.executable, "-m", "ziglang", "c++"), f"ziglang {specification.origin}", ())
    return None


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel to compile: its text, and the macros for its compile-time arguments and configuration."""

    role: KernelRole
    text: str
    macros: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler with a cache folder.

    Compiled files are named after the hash of all their inputs and put in place by a single rename, so that several
    processes can share the folder. Each file ends with the hash of its name and content: damaged files, and those in
    the place of others, are compiled again. `progress` is called with progress messages.
    """

    compiler: Compiler
    cache_folder: Path
    progress: Callable[[str], None] = lambda text: None

    def runner(self, cancel: threading.Event | None = None) -> Path:
        """The executable that runs kernels; built on first use with this compiler and processor.

        Raises BackendError if it cannot be built or started, Cancelled if `cancel` is set.
        """
        if "\n" in str(self.cache_folder):
            # The runner reads one path per line.
            raise unusable(self.cache_folder, "its name has a line break")
        for folder in (self.cache_folder, self.cache_folder / "emulator"):
            refuse_foreign(folder)
        sources = sorted(RUNTIME_FOLDER.glob("*.cpp"))
        flags = (*RUNNER_FLAGS, *processor_flags(self.compiler))
        texts = [self.compiler.identity, _processor_identity(), *flags, _folder_text(RUNTIME_FOLDER), _interface_text()]
        target = self.cache_folder / "emulator" / f"runner-{_digest(texts)}"
        if not is_whole(target):
            self.progress("building the emulator, once for this machine")
            self._make_folder()
            with workspace() as folder:
                objects = [folder / f"{source.stem}.o" for source in sources]
                with ThreadPoolExecutor(max_workers=2) as pool:
                    commands = [
                        (*self.compiler.command, *flags, "-c", str(source), "-o", str(object_file))
                        for source, object_file in zip(sources, objects, strict=True)
                    ]
                    for outcome in pool.map(_compile, commands, itertools.repeat(cancel)):
                        if outcome is not None:
                            raise _runner_error(outcome)
                command = (*self.compiler.command, *map(str, objects), *_link_flags())
                outcome = self._build(command, target, folder, cancel)
            if outcome is not None:
                raise _runner_error(outcome)
        if not os.access(target, os.X_OK):
            with contextlib.suppress(OSError):
                target.chmod(0o755)
            if not os.access(target, os.X_OK):
                raise not_executable(target.parent, os.strerror(errno.EACCES))
        return target

    def kernels(
        self, sources: Sequence[KernelSource], cancel: threading.Event | None = None
    ) -> dict[KernelRole, Path]:  # fmt: skip
        """The shared object of each kernel. Those that are not in the cache are compiled in parallel.

        Raises KernelFault with the compiler's first error if a text does not compile, BackendError if the compiler
        itself fails, Cancelled if `cancel` is set.
        """
        headers = _headers_text()
        targets: dict[KernelRole, Path] = {s.role: self._kernel_target(s, headers) for s in sources}
        uncached = [source for source in sources if not is_whole(targets[source.role])]
        if uncached:
            self.progress(f"compiling {', '.join(f'{source.role}.cpp' for source in uncached)}")
        with ThreadPoolExecutor(max_workers=len(KERNEL_ROLES)) as pool:
            libraries = [targets[source.role] for source in uncached]
            outcomes = list(pool.map(self._compile_kernel, uncached, libraries, itertools.repeat(cancel)))
        for source, outcome in zip(uncached, outcomes, strict=True):
            if outcome is not None:
                raise _kernel_fault(source.role, outcome)
        return targets

    def linked(
        self,
        name: str,
        texts: Sequence[str],
        commands: Callable[[Path], Sequence[Sequence[str]]],
        cancel: threading.Event | None = None,
        *,
        seconds: float = COMPILE_LIMIT_SECONDS,
    ) -> Path | str:
        """Return another compiled file called `name`, of which `texts` are all that decides what is in it.

        `commands` takes a folder, writes there what the compiler reads, and returns the command lines, to the last of
        which the output file is added. Returns the compiler's messages where one fails. Raises BackendError if the
        compiler does not start or end, Cancelled if `cancel` is set.
        """
        refuse_foreign(self.cache_folder)
        refuse_foreign(self.cache_folder / "emulator")
        target = self.cache_folder / "emulator" / f"{name}-{_digest([self.compiler.identity, *texts])}"
        if not is_whole(target):
            with workspace() as folder:
                *first, last = commands(folder)
                for command in first:
                    outcome = _compile(command, cancel, seconds)
                    if outcome is not None:
                        return outcome
                outcome = self._build(last, target, folder, cancel)
                if outcome is not None:
                    return outcome
        return target

    def _kernel_target(self, source: KernelSource, headers: str) -> Path:
        texts = [self.compiler.identity, *KERNEL_FLAGS, *source.macros, source.role, source.text, headers]
        return self.cache_folder / "emulator" / f"{source.role}-{_digest(texts)}.so"

    def _compile_kernel(self, source: KernelSource, target: Path, cancel: threading.Event | None) -> str | None:
        with workspace() as folder:
            file = folder / f"{source.role}.cpp"
            # The compiler itself rejects texts that are not valid UTF-8.
            file.write_text(source.text, encoding="utf-8", errors="surrogatepass")
            macros = [f"-D{macro}" for macro in source.macros]
            include = f"-I{INCLUDE_FOLDER}"
            prefix_map = f"-ffile-prefix-map={folder}=."
            command = (*self.compiler.command, *KERNEL_FLAGS, prefix_map, include, *macros, *_plugin_flags(), str(file))
            outcome = self._build(command, target, folder, cancel)
            return outcome.replace(f"{folder}{os.sep}", "") if outcome is not None else None

    def _make_folder(self) -> None:
        """Raises BackendError if the folder cannot be written."""
        folder = self.cache_folder / "emulator"
        try:
            make_private(folder)
            tempfile.TemporaryFile(dir=folder).close()
            for unfinished in folder.glob(f"{_UNFINISHED}*"):
                # Those of other processes come and go.
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - unfinished.stat().st_mtime > _ABANDONED_SECONDS:
                        unfinished.unlink()
        except OSError as error:
            raise unusable(folder, error.strerror or str(error)) from error

    def _build(
        self, command: Sequence[str], target: Path, folder: Path, cancel: threading.Event | None
    ) -> str | None:  # fmt: skip
        """Run `command` with an output file in `folder`, a temporary one, that becomes `target`. Returns the compiler's
        messages if it fails."""
        self._make_folder()
        output = folder / "made"
        outcome = _compile((*command, "-o", str(output)), cancel)
        if outcome is None:
            content = output.read_bytes() if output.exists() else b""
            if not is_linked(content):
                raise compiler_failed(f"it ended without an error, but its output of {len(content):,} B is cut off")
            self._put(content + seal(target.name, content), target)
        return outcome

    def _put(self, content: bytes, target: Path) -> None:
        """Write a compiled file. Raises BackendError if it cannot be written."""
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=_UNFINISHED)
            unfinished = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                unfinished.chmod(0o755)
                if target.is_dir():
                    # The name is reserved for us: nobody puts a folder there on purpose.
                    shutil.rmtree(target)
                unfinished.replace(target)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(target.parent, error.strerror or str(error)) from error


# Files that are being written, for a moment; older ones are of processes that were killed.
_UNFINISHED, _ABANDONED_SECONDS = "making-", 3600


def _compile(
    command: Sequence[str], cancel: threading.Event | None, seconds: float = COMPILE_LIMIT_SECONDS
) -> str | None:
    """Run the compiler and return its messages if it fails.

    Raises BackendError if the disk is full, and if the compiler was killed or does not start or end; and Cancelled.
    """
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as child:  # fmt: skip
            try:
                out, messages = finish(child, seconds, cancel)
            except BaseException:
                kill_group(child)
                raise
    except subprocess.TimeoutExpired:
        raise compiler_failed(f"it did not end within {seconds:g} seconds") from None
    except OSError as error:
        raise compiler_failed(f"it cannot be started: {error}") from error
    if not child.returncode:
        return None
    said = (messages or out).decode(errors="replace")
    if os.strerror(errno.ENOSPC) in said and is_full(Path(tempfile.gettempdir())):
        raise unusable_workspace(os.strerror(errno.ENOSPC))
    if child.returncode < 0 or (_KILLED.search(said) and not _AT_A_LINE.search(said)):
        raise compiler_failed(_shown(said) or f"it was ended by signal {-child.returncode}")
    return said or f"exit status {child.returncode}"


# What the drivers of GCC and Clang say of the programs that they start, and what these say of memory.
_KILLED = re.compile(
    r"Killed|Terminated|signal terminated program|failed due to signal|virtual memory exhausted|out of memory"
    r"|Cannot allocate memory|bad_alloc"
)
# An error at a line of a file; others are no fault of the text.
_AT_A_LINE = re.compile(r":\d+: (fatal |internal compiler )?error: ", re.IGNORECASE)


def compiler_failed(reason: str) -> BackendError:
    """Return the error for a compiler that failed for another reason than its text."""
    return BackendError(
        "B008",
        f"the C++ compiler failed: {reason}",
        hint="nothing of it is kept: free memory and space for temporary files, and run again",
    )


def _runner_error(messages: str) -> BackendError:
    return BackendError(
        "B001",
        f"the emulator's runner cannot be built:\n{_shown(messages)}",
        hint="use a compiler with C++17: " + HOW_TO_GET_A_COMPILER,
    )


def _kernel_fault(role: KernelRole, messages: str) -> KernelFault:
    """The error for a kernel that does not compile, at the line of its text; that of an include for an error in a
    header. Raises BackendError for messages that name no line."""
    if not _AT_A_LINE.search(messages):
        raise compiler_failed(_shown(messages))
    lines, start = _first_error(messages)
    matches = [re.search(rf"\b{role}\.cpp:(\d+)", line) for line in lines[: start + 1]]
    last_match = next((match for match in reversed(matches) if match), None)
    return KernelFault(
        "B002",
        f"{role}.cpp does not compile against the emulator's headers:\n{_shown(messages)}",
        hint="use the signatures of ttnn 0.81.1; headers that are not found are not emulated",
        kernel=role, cpp_line=int(last_match[1]) if last_match else None, what=lines[start].partition("error: ")[2],
    )  # fmt: skip


def _shown(messages: str) -> str:
    """The first error with its source lines, without the notes that follow."""
    lines, start = _first_error(messages)
    return "\n".join(lines[start : start + 4])


def _first_error(messages: str) -> tuple[list[str], int]:
    """The lines of a compiler's messages, and where among them the first error is."""
    lines = messages.strip().splitlines()
    return lines, next((index for index, line in enumerate(lines) if "error" in line), 0)


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _folder_text(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))
    return "\0".join(f"{path.relative_to(folder)}\0{path.read_text(encoding='utf-8')}" for path in files)


def _headers_text() -> str:
    return _folder_text(INCLUDE_FOLDER)


def _interface_text() -> str:
    return (INCLUDE_FOLDER / "emulator" / "interface.h").read_text(encoding="utf-8")


def processor_flags(compiler: Compiler) -> tuple[str, ...]:
    """The flags for this processor's instructions. Tuning for it as well makes g++ 12's matrix product up to 1.5x
    slower."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return ("-march=native", *compiler.tuning)
    return ()


def _processor_identity() -> str:
    """A text that identifies the processor for which the runner is compiled: machines may share a cache folder."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line}"
    except OSError:
        pass
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


def _plugin_flags() -> tuple[str, ...]:
    return ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()


def _link_flags() -> tuple[str, ...]:
    # -rdynamic: the kernels link to the emulator's functions in the executable that loads them.
    return () if sys.platform == "darwin" else ("-rdynamic", "-ldl")
