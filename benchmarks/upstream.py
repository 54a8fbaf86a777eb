"""The kernels of TileLang's own examples, unmodified: which run, and what stops the others.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.upstream CHECKOUT [WORD ...] [--emulate] [--output FILE]

CHECKOUT is a clone of tile-ai/tilelang. `upstream.json` beside this file lists its kernels with small arguments; WORDs
select those whose ``file::name`` contains one of them. Each kernel is lowered and every step is compared with the
reference, in a process of its own with limits of time and memory, so that nothing stops the table. It ends as

  runs      lowered, and every step (with --emulate, the emulated program too) equals the reference; a kernel that
            does not fit a Wormhole core is tried on Blackhole
  refused   by an error at the kernel's line, counted by construct: the code, and the message without names and numbers
  wrong     a step that differs
  crash     an internal error, an exception of Python, or a dead process
  slow      not finished within the limit

The exit status is 1 if a kernel is wrong or crashed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import re
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np

import ttexplore as ttx
from ttexplore.errors import ResourceError, TTExploreError, UsageError, VerifyError
from ttexplore.exploration import Exploration
from ttexplore.language.load import load_module
from ttexplore.record import Span

KERNELS = Path(__file__).with_suffix(".json")
KINDS = ("runs", "refused", "wrong", "crash", "slow")
MEMORY_BYTES = 6 << 30
TARGET, LARGER_TARGET = "wormhole_n150", "blackhole_p150"


@dataclass(frozen=True)
class Kernel:
    """A kernel of the list. `sizes` are those of T.dynamic, `constants` smaller values for constants of its file.

    `inputs` has the tensors for which any number will not do, such as indices: their elements, or the bounds
    ``{"from": 0, "below": 4}`` of random ones.
    """

    file: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variant: str = ""

    @property
    def label(self) -> str:
        return f"{self.file}::{self.name}" + (f" ({self.variant})" if self.variant else "")


@dataclass(frozen=True)
class Result:
    """What became of a kernel. `construct` is the group of a refusal, `notes` how many notes the plan has, `target` the
    chip that it was lowered for."""

    kind: str
    seconds: float
    construct: str = ""
    detail: str = ""
    notes: int = 0
    target: str = TARGET


def read_kernels(path: Path = KERNELS) -> list[Kernel]:
    listed: list[dict[str, Any]] = json.loads(path.read_text())["kernels"]
    return [Kernel(**one) for one in listed]


# -- one kernel ------------------------------------------------------------------------------------------------------


def run_kernel(kernel: Kernel, examples: Path, emulate: bool) -> Result:
    """Lower and check one kernel. Never raises."""
    start = time.perf_counter()

    def result(kind: str, construct: str = "", detail: str = "", notes: int = 0, target: str = TARGET) -> Result:
        return Result(kind, time.perf_counter() - start, construct, detail, notes, target)

    try:
        explored = _explore(kernel, examples)
        if isinstance(explored.error, ResourceError):
            # Blackhole has twice as many circular buffers, and more L1.
            explored = explored.fork(target=LARGER_TARGET)
        if explored.error is not None:
            raise explored.error
        arrays = inputs_of(explored, kernel)
        failed = [step for step in explored.check(arrays).results if not step.passed]
        if failed:
            return result("wrong", detail=f"{failed[0].letter} {failed[0].step}: {failed[0].message}")
        if emulate:
            run = explored.run(arrays, backend="emulator")
            if not run.passed:
                return result("wrong", detail=f"emulator: {run.message}")
        notes = sum(len(launch.plan.notes) for launch in explored.launches)
        return result("runs", target=explored.target.name, notes=notes)
    except VerifyError as error:
        return result("crash", detail=str(error))
    except TTExploreError as error:
        where = _source(error.span, examples)
        names = "the arguments are wrong, or the file cannot be loaded" if isinstance(error, UsageError) else ""
        return result("refused", names or f"{error.code} {_class(error, where)}", f"{error}\n    {where}".rstrip())
    except MemoryError:
        return result("crash", detail="out of memory")
    except Exception:
        return result("crash", detail=traceback.format_exc(limit=-3))


def _explore(kernel: Kernel, examples: Path) -> Exploration:
    sizes = {"sizes": kernel.sizes} if kernel.sizes else {}
    path = examples / kernel.file
    if not kernel.constants:
        return ttx.explore(f"{path}::{kernel.name}", **sizes, **kernel.args)
    module = load_module(path)
    vars(module).update(kernel.constants)
    return ttx.explore(vars(module)[kernel.name], **sizes, **kernel.args)


def inputs_of(explored: Exploration, kernel: Kernel) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs of a kernel by name: drawn ones, and those that the list gives."""
    tensors = explored._tensors(("input", "inout"))
    random = np.random.default_rng(0)
    made = {tensor.name: array for tensor, array in zip(tensors, explored.inputs(), strict=True)}
    for tensor in tensors:
        given = kernel.inputs.get(tensor.name)
        match given:
            case None:
                continue
            case {"from": low, "below": high}:
                made[tensor.name] = random.integers(low, high, tensor.shape)
            case _:
                made[tensor.name] = np.broadcast_to(np.array(given), tensor.shape)
    return made


def _source(span: Span | None, examples: Path) -> str:
    """The line of an error, as the example has it."""
    if span is None or not Path(span.file).is_relative_to(examples):
        return ""
    return Path(span.file).read_text().split("\n")[span.line - 1].strip()


def _class(error: TTExploreError, line: str) -> str:
    """A message without the names of its kernel and without numbers: equal for equal reasons."""
    names = set(re.findall(r"[A-Za-z_]\w*", line)) - {"T", "if", "for", "in", "while", "a", "is", "not", "and", "or"}
    words = re.sub(r"(?<!\w)T\.(\w+)", r"T\1", error.message)

    def word(match: re.Match[str]) -> str:
        found = match[0]
        named = found in names or re.search(r"_|\d|^[A-Z]\w*[A-Z]", found)
        return found if found.startswith("T") and found[1:] in names else "_" if named else found

    words = re.sub(r"[A-Za-z_]\w*", word, words)
    words = re.sub(r"-?\d[\d,.]*", "N", words)
    words = re.sub(r"[\[(][_N, +*/%:\-]*[\])]|(?<!\w)_(?:[_\s,.+*/%:\-]*_)+", "_", words)
    return re.sub(r"\s+", " ", words)[:160]


# -- all of them -----------------------------------------------------------------------------------------------------


def _worker(kernel: Kernel, examples: Path, emulate: bool, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with open(os.devnull, "w") as quiet:
        os.dup2(quiet.fileno(), 1)
        os.dup2(quiet.fileno(), 2)
    answer.send(run_kernel(kernel, examples, emulate))


def run_all(
    kernels: Iterable[Kernel], examples: Path, *, emulate: bool, workers: int, seconds: float
) -> Iterable[tuple[Kernel, Result]]:
    """The result of each kernel, as they end."""
    # Forked, a process has the compiler loaded already.
    context = multiprocessing.get_context("fork")
    waiting = list(kernels)[::-1]
    running: dict[Connection, tuple[Kernel, BaseProcess, float]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            kernel = waiting.pop()
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=_worker, args=(kernel, examples, emulate, send), daemon=True)
            process.start()
            send.close()
            running[receive] = kernel, process, time.monotonic()
        ready = {one for one in wait(list(running), timeout=1) if isinstance(one, Connection)}
        for receive, (kernel, process, start) in list(running.items()):
            spent = time.monotonic() - start
            if receive in ready:
                result = None
                with contextlib.suppress(EOFError):
                    result = receive.recv()
                process.join()
                result = result or Result("crash", spent, detail=f"the process died with status {process.exitcode}")
            elif spent > seconds:
                process.kill()
                process.join()
                result = Result("slow", spent, detail=f"not finished after {seconds:g} s")
            else:
                continue
            receive.close()
            del running[receive]
            yield kernel, result


def table(results: Iterable[tuple[Kernel, Result]]) -> str:
    """The text of the table: counts, refusals by construct with the most frequent first, then what runs."""
    pairs = sorted(results, key=lambda pair: pair[0].label)
    counts = collections.Counter(result.kind for _, result in pairs)
    lines = [f"{len(pairs)} kernels: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)]
    for kind in ("wrong", "crash", "slow"):
        for kernel, result in pairs:
            if result.kind == kind:
                lines.append(f"\n{kind.upper()} {kernel.label}\n    " + result.detail.replace("\n", "\n    "))
    constructs = collections.defaultdict[str, list[tuple[Kernel, Result]]](list)
    for kernel, result in pairs:
        if result.kind == "refused":
            constructs[result.construct].append((kernel, result))
    lines.append("\n== Refused, by construct")
    ordered = sorted(constructs.items(), key=lambda item: (-len(item[1]), item[0]))
    lines += [f"{len(members):4}  {construct}" for construct, members in ordered]
    for construct, members in ordered:
        lines.append(f"\n-- {len(members)}: {construct}")
        for kernel, result in members:
            lines.append(f"  {kernel.label}\n    " + result.detail.replace("\n", "\n    "))
    lines.append("\n== Runs")
    lines += [
        f"{result.seconds:6.1f} s  {kernel.label}"
        + (f"  ({result.notes} notes)" if result.notes else "")
        + (f"  on {result.target}" if result.target != TARGET else "")
        for kernel, result in pairs
        if result.kind == "runs"
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--emulate", action="store_true", help="run the emitted programs on the emulator too")
    parser.add_argument("--seconds", type=float, default=120, help="the limit of each kernel")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="where to write the table; otherwise it is printed")
    given = parser.parse_args()
    examples = (given.checkout / "examples").resolve()
    kernels = [one for one in read_kernels() if not given.words or any(word in one.label for word in given.words)]
    results: list[tuple[Kernel, Result]] = []
    for kernel, result in run_all(
        kernels, examples, emulate=given.emulate, workers=given.workers, seconds=given.seconds
    ):
        results.append((kernel, result))
        print(f"{len(results)}/{len(kernels)} {result.kind:8} {result.seconds:6.1f} s  {kernel.label}", file=sys.stderr)
    text = table(results)
    if given.output is None:
        print(text, end="")
    else:
        given.output.write_text(text)
    return 1 if any(result.kind in ("wrong", "crash") for _, result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
