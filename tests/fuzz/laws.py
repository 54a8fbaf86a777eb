"""The laws of the lowering, on one kernel with one schedule."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx
from tests.few_buffers import with_few_buffers
from tests.fuzz.description import Kernel, Schedule, inputs, outputs
from tests.fuzz.meaning import REFERENCE, Interval, device_precision, expected, random_inputs
from tests.fuzz.source import source_text
from tests.typecheck.lint import lint
from tests.typecheck.typecheck import typecheck
from ttexplore.backends.base import Program
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import KernelError, ResourceError, TTExploreError, Unsupported, UsageError
from ttexplore.exploration import Exploration
from ttexplore.ir.interpreter import runs_alike
from ttexplore.plan import BLOCK_FLOAT, KERNEL_ROLES

# What may be refused: a name to count by, the kind, and what the message says. Everything else that is refused breaks
# a law.
REFUSALS: tuple[tuple[str, type[TTExploreError], str], ...] = (
    ("DST is too small", ResourceError, r"DST holds \d+ tiles"),
    ("too many circular buffers", ResourceError, r"circular buffers are needed"),
    ("L1 is too small", ResourceError, r"B of L1; a core of"),
    ("more shards than cores", ResourceError, r"shards? for \d+ cores"),
    ("a block is neither tiles nor strips", Unsupported, r"cannot be (loaded|stored): |: axis \d+ would become the "),
    ("numbers of indices are too large", Unsupported, r" is between -?\d+ and -?\d+$"),
    ("numbers of indices must be exact", Unsupported, r"of index values in 16-bit DST$"),
    ("uint8 does not hold indices", Unsupported, r" is between -?\d+ and -?\d+, which uint8 does not hold$"),
    ("small floats need a wide DST", Unsupported, r"a cast to float\d_\w+ in 16-bit DST$"),
    ("sums of 8 bits are taken in wider blocks", Unsupported, r"^T\.reduce_(sum|abssum|absmax) of \w+ into \w+$"),
    ("integers need more passes", UsageError, r"which leaves out bits of \w+, of u?int8$"),
    ("no core works on its own shard in order", UsageError, r"no shard can be a circular buffer"),
    (
        "blocks at run-time values are matched",
        Unsupported,
        r"cannot be assigned: their positions depend on run-time values$",
    ),
    (
        "work items are balanced by times that are known",
        Unsupported,
        r"^the policy balanced for a kernel whose work items take times that are known only when it runs$",
    ),
    (
        "the FPU cuts float32, so it is not compared",
        Unsupported,
        r"^a comparison of elements of float32 with each other",
    ),
    ("rows are not read element by element", Unsupported, r"is read at computed places, and it is not kept in tiles"),
    ("a loop is alone in a T.Parallel", Unsupported, r"^a loop inside T\.Parallel is not lowered$"),
    (
        "names are not between loops of a T.Parallel",
        Unsupported,
        r"^\w+\[\w+, \d+\] in a T\.Parallel over \(\w+(, \w+)?\)$",
    ),
    ("a slice of constants leaves its tensor", KernelError, r"is outside of its extent \d+$"),
)


_NO_CRASH, _TYPES, _DETERMINISM = "no crash", "emitted text type-checks", "two lowerings are equal"
_EMULATED = ("the emulator runs the program", "the emulator gives the result", "every page is written")


class LawBroken(AssertionError):
    """`law` is the short name of the law, `what` says where and how much."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law, self.what = law, what


@dataclass(frozen=True)
class Checks:
    """Which of the costly laws are checked: the emitted program on the emulator, two lowerings being equal, and the
    emitted text against the SDK's headers in this folder."""

    emulator: Emulator | None = None
    determinism: bool = False
    headers: Path | None = None

    def finding(self, law: str) -> Checks:
        """These without the costly laws that take no part in finding this one broken; anything may crash."""
        return Checks(
            self.emulator if law in (*_EMULATED, _NO_CRASH) else None,
            self.determinism and law in (_DETERMINISM, _NO_CRASH),
            self.headers if law == _TYPES else None,
        )


def check(kernel: Kernel, schedule: Schedule, checks: Checks, seed: int = 0) -> str:
    """Holds the product to every law; gives "" or the name of what was refused. Raises LawBroken."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(source_text(kernel), encoding="utf-8")
        try:
            exploration = _explored(path, kernel, schedule)
            error = exploration.error
        except TTExploreError as refused:
            exploration, error = None, refused
        except Exception as crash:
            raise LawBroken(_NO_CRASH, f"{type(crash).__name__}: {crash}") from crash
        if exploration is None or error is not None:
            assert error is not None
            return _refusal(error, lambda: expected(kernel, random_inputs(kernel, seed), REFERENCE))
        updated = _updated(exploration, kernel)
        arrays = random_inputs(kernel, seed, updated)
        bounds = expected(kernel, arrays, REFERENCE, _block_floats(exploration), updated)
        _keeps_the_rest(kernel, arrays, updated, bounds)
        _inside("the reference is right", exploration.reference(arrays), bounds)
        check_exploration(exploration, kernel, arrays, checks)
        if kernel.sizes:
            later = kernel.later()
            try:
                sized = exploration.with_sizes(**{size.name: size.value for size in later.sizes})
            except TTExploreError as refused:
                return _refusal(refused, lambda: ())
            updated = _updated(sized, later)
            others = random_inputs(later, seed, updated)
            bounds = expected(later, others, REFERENCE, _block_floats(sized), updated)
            _keeps_the_rest(later, others, updated, bounds)
            _inside("the reference is right", sized.reference(others), bounds)
            check_exploration(sized, later, others, Checks(checks.emulator))
        if checks.determinism:
            _same(exploration, _explored(path, kernel, schedule))
    return ""


def _block_floats(exploration: Exploration) -> frozenset[str]:
    return frozenset(one.name for one in exploration.plan.layouts if one.data_format == BLOCK_FLOAT)


def _updated(exploration: Exploration, kernel: Kernel) -> frozenset[str]:
    """The tensors that are stored in part, as far as the product can tell: inputs that it stores to."""
    given = {unicodedata.normalize("NFKC", name) for name, role in exploration._roles.items() if role == "inout"}
    return frozenset(one.name for one in outputs(kernel) if unicodedata.normalize("NFKC", one.name) in given)


def _keeps_the_rest(
    kernel: Kernel, arrays: Sequence[NDArray[Any]], updated: Collection[str], bounds: Sequence[Interval]
) -> None:
    """Whether all is stored of outputs that are no inputs: an element that is not stored is NaN, and would be what it
    was if they were inputs. One that is NaN then, too, is computed: 0 / 0 in the rest of a block, and its sum."""
    if not any(np.isnan(bound.value).any() for bound in bounds):
        return
    given = {tensor.name: array for tensor, array in zip(inputs(kernel, updated), arrays, strict=True)}
    every = frozenset(tensor.name for tensor in outputs(kernel))
    before = [given.get(tensor.name, np.zeros(kernel.shape(tensor), np.float32)) for tensor in inputs(kernel, every)]
    completed = expected(kernel, before, REFERENCE, updated=every)
    for tensor, bound, kept in zip(outputs(kernel), bounds, completed, strict=True):
        if (np.isnan(bound.value) & ~np.isnan(kept.value)).any():
            raise LawBroken("a tensor that is stored in part is an input", tensor.name)


def _explored(path: Path, kernel: Kernel, schedule: Schedule) -> Exploration:
    sizes = {size.name: size.value for size in kernel.sizes}
    if schedule.few_buffers:
        return with_few_buffers(f"{path}::{kernel.name}", schedule.target, schedule.options, sizes)
    return ttx.explore(f"{path}::{kernel.name}", target=schedule.target, options=schedule.options, sizes=sizes)


def check_exploration(
    exploration: Exploration, kernel: Kernel, arrays: Sequence[NDArray[Any]], checks: Checks
) -> None:  # fmt: skip
    compute = exploration.plan.compute
    assert compute is not None
    exact = device_precision(wide=compute.fp32_dest_acc_en, fidelity="HiFi4")
    coarse, updated = _block_floats(exploration), _updated(exploration, kernel)
    bounds = expected(kernel, arrays, exact, coarse, updated)
    for step in exploration.steps:
        # A step that changes no function has the lines of the step before it, and mostly its result as well.
        if step.index == 0 or not step.after.shares_functions(step.before):
            _origins(exploration, step)
        if step.index > 0 and runs_alike(step.before, step.after):
            continue
        law = f"step {step.letter} gives the reference's result"
        try:
            result = exploration._lowered.run(step.after, tuple(arrays))
        except TTExploreError as error:
            raise LawBroken(law, str(error)) from error
        except Exception as crash:
            raise LawBroken(_NO_CRASH, f"{step.letter}: {type(crash).__name__}: {crash}") from crash
        _inside(law, result.outputs, bounds)
    for role in KERNEL_ROLES:
        text = exploration.code[role].text
        if found := lint(text, arch=exploration.target.arch, dst_tiles=compute.dst_tiles):
            raise LawBroken("emitted text is clean", f"{role}: {found}\n{text}")
        if checks.headers is not None:
            _typechecks(exploration, role, text, checks.headers)
    if checks.emulator is not None:
        texts = {role: exploration.code[role].text for role in KERNEL_ROLES}
        try:
            run = checks.emulator.run(Program(texts, exploration.plan), arrays)
        except TTExploreError as error:
            raise LawBroken(_EMULATED[0], str(error)) from error
        precision = device_precision(
            wide=compute.fp32_dest_acc_en, fidelity=compute.math_fidelity, fast=bool(compute.fast)
        )  # fmt: skip
        reached = bounds if precision == exact else expected(kernel, arrays, precision, coarse, updated)
        _inside(_EMULATED[1], run.outputs, reached)
        if "never written" in run.message and not updated:
            raise LawBroken(_EMULATED[2], run.message)


def _refusal(error: TTExploreError, meaning: Callable[[], Sequence[Interval]]) -> str:
    # What an option asks for has no line of the kernel.
    if (error.span is None and not isinstance(error, UsageError)) or not error.hint:
        raise LawBroken("a refusal has a line and a hint", str(error)) from error
    for name, kind, message in REFUSALS:
        if isinstance(error, kind) and re.search(message, error.message):
            return name
    if any(np.isnan(one.value).any() for one in meaning()):
        # What a kernel is made small to, not what is drawn.
        raise LawBroken("a kernel has a meaning", str(error)) from error
    raise LawBroken("a refusal is expected", f"{type(error).__name__}: {error}") from error


def _inside(law: str, outputs: Sequence[NDArray[Any]], bounds: Sequence[Interval]) -> None:
    if len(outputs) != len(bounds):
        raise LawBroken(law, f"{len(outputs)} outputs, {len(bounds)} are expected")
    for number, (output, bound) in enumerate(zip(outputs, bounds, strict=True)):
        if output.shape != bound.value.shape:
            raise LawBroken(law, f"output {number} is {output.shape}, expected is {bound.value.shape}")
        wrong = ~bound.contains(output)
        if wrong.any():
            at = tuple(int(place[0]) for place in np.nonzero(wrong))
            raise LawBroken(
                law,
                f"{int(wrong.sum())} of {wrong.size} elements of output {number} are outside of their bounds; at {at} "
                f"{float(output[at])!r}, expected {bound.value[at]!r} from {bound.low[at]!r} to {bound.high[at]!r}",
            )


def _origins(exploration: Exploration, step: Any) -> None:
    lines = {origin.span.line for line in exploration.kernel.source.lines for origin in line.origins}
    for line in step.listing.lines:
        if line.node is not None and "alloc_buffer" not in line.text and not line.origins:
            raise LawBroken("origins never shrink", f"{step.letter}: {line.text.strip()}")
        if any(origin.span.line not in lines for origin in line.origins):
            raise LawBroken("origins are lines of the kernel", f"{step.letter}: {line.text.strip()}")


def _typechecks(exploration: Exploration, role: Any, text: str, headers: Path) -> None:
    plan = exploration.plan
    assert plan.compute is not None
    formats = {buffer.index: buffer.data_format for buffer in plan.buffers if buffer.index is not None}
    words = [2, 2048] * len(plan.kernel_signature(role).compile_time)
    found = typecheck(
        text, role=role, arch=exploration.target.arch, compile_time_args=words, named={}, formats=formats,
        fp32_dest_acc=plan.compute.fp32_dest_acc_en, headers=headers,
    )  # fmt: skip
    if found:
        raise LawBroken(_TYPES, f"{role}: {found}\n{text}")


def _same(first: Exploration, second: Exploration) -> None:
    if [step.listing.text for step in first.steps] != [step.listing.text for step in second.steps]:
        raise LawBroken(_DETERMINISM, "the listings differ")
    if {name: file.text for name, file in first.files.items()} != {n: file.text for n, file in second.files.items()}:
        raise LawBroken(_DETERMINISM, "the files differ")
