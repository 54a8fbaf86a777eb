"""The GPU lane of a kernel: each pass of TileLang's pipeline as a step, and the generated source."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ttexplore.characters import Printed
from ttexplore.control import Control
from ttexplore.errors import BackendError, TTExploreError, UsageError, from_record, unknown
from ttexplore.given import path as path_of
from ttexplore.given import plain
from ttexplore.gpu.environment import read_environment
from ttexplore.gpu.process import ask
from ttexplore.gpu.ptx import Compiled, compile_ptx
from ttexplore.gpu.recorded import is_recorded, recorded, request_digest, unreadable
from ttexplore.plan import Plan
from ttexplore.record import JsonObject, Line, Listing, Origin, Span, StepRecord, Trace
from ttexplore.session.results import Code
from ttexplore.session.steps import RecordedStep, Steps
from ttexplore.views.markup import escape, plural, visible
from ttexplore.views.steps.exploration import exploration_html, exploration_text

TIME_LIMIT_SECONDS = 120.0
# The targets that TileLang lowers for, and a chip of each.
ARCHITECTURES = {
    "sm_80": "A100", "sm_86": "RTX 3090", "sm_89": "L40S, RTX 4090", "sm_90": "H100", "sm_90a": "H100",
    "sm_100a": "B200", "sm_120a": "RTX 5090", "gfx942": "MI300X",
}  # fmt: skip
_FIRST = "sm_90a"
# What TileLang prints of allocations, attributes and regions.
_DECLARATION = re.compile(r"T\.(alloc_|decl_|(attr|sblock_attr|reads|writes)\()")
_LETTERS = {"Semantic checks": "S", "LowerAndLegalize": "L", "OptimizeForTarget": "O", "Code generation": "G"}
_CUT = (
    '<p class="q">Diffs and files that are cut here are complete in <code>steps["LowerTileOp"].diff()</code> and '
    "<code>code</code>.</p>"
)


class _Place(Protocol):
    def span(self, line: int) -> Span: ...


@dataclass(frozen=True, eq=False, repr=False)
class GpuLane(Printed):
    """A kernel lowered for a GPU by TileLang, without a GPU.

    `seconds` is the time of the lowering; `versions` are those of TileLang and its TVM; `notes` say what TileLang does
    not know and was left out. If it was `recorded`, that is why the environment was not used, otherwise empty. `digest`
    is that of the kernel's texts and values: lanes of other sizes have another one.
    """

    kernel: str
    arch: str
    source: Listing
    records: tuple[StepRecord, ...]
    seconds: float
    versions: dict[str, str]
    notes: tuple[str, ...]
    recorded: str = ""
    digest: str = ""

    @property
    def steps(self) -> Steps[RecordedStep]:
        """The passes, by number, name or letter; of a name that occurs several times, the first. The letter is that of
        the stage, with the number of the pass in it: ``L22 LowerTileOp``."""
        return Steps([RecordedStep(record) for record in self.records])

    @property
    def error(self) -> TTExploreError | None:
        """The error of the pass that failed, None if none did."""
        return next((from_record(step.error) for step in self.records if step.error), None)

    @property
    def file(self) -> str:
        """The name of the generated source."""
        return "kernel.hip" if self.arch.startswith("gfx") else "kernel.cu"

    @functools.cached_property
    def code(self) -> Code:
        """The CUDA or HIP source. Its lines have the kernel lines that they come from. Raises the error of a pass."""
        if self.error is not None:
            raise self.error
        return Code(self.records[-1].after)

    def compile(
        self, *, environment: Path | None = None, time_limit_seconds: float = TIME_LIMIT_SECONDS,
        cancel: threading.Event | None = None,
    ) -> Compiled:  # fmt: skip
        """Compile the CUDA source to PTX, with the resources of the kernel: registers, spills, shared memory.

        Needs nvcc, and the environment for TileLang's headers. Raises BackendError if one is missing or nvcc fails, and
        UsageError for a lane of HIP.
        """
        folder = None if environment is None else path_of("the environment", environment)
        control = Control.checked(cancel, time_limit_seconds, None)
        source = self.code
        if self.arch.startswith("gfx"):
            raise UsageError("U010", f"{self.arch} has no PTX", hint='take a lane for CUDA: ex.gpu("sm_90a")')
        return compile_ptx(source, self.arch, read_environment(folder), control.seconds, cancel)

    @property
    def linked_share(self) -> float:
        """The share of the lines of the generated source that are linked to a line of the kernel: see
        :attr:`Listing.linked`."""
        linked, lines = self.code.listing.linked
        return linked / max(lines, 1)

    @functools.cached_property
    def trace(self) -> Trace:
        """The lane as plain data."""
        files = {} if self.error is not None else {self.file: self.code.listing}
        return Trace(self.kernel, self.arch, self.source, self.records, files, {}, self.versions)

    @property
    def remarks(self) -> list[str]:
        """What made the lane, and how much of its source is linked."""
        compilers = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        remarks = [f"lowered by {compilers} in {self.seconds:.1f} s, for {self.arch} ({ARCHITECTURES[self.arch]})"]
        if self.error is None:
            remarks.append(f"{100 * self.linked_share:.0f} % of the generated lines are linked to lines of the kernel")
        return remarks

    @property
    def _told(self) -> list[str]:
        return [*self.remarks, *([f"recorded: {self.recorded}"] if self.recorded else []), *self.notes]

    def __repr__(self) -> str:
        changed = sum(step.changed_ir for step in self.records)
        state = f"{plural(len(self.records), 'pass')}, {changed} change the program"
        failed = next((step for step in self.records if step.error), None)
        if failed:
            state = f"{failed.letter} {failed.name} failed"
        return f"<GPU lane of {self.kernel} for {self.arch}: {state}>"

    def __str__(self) -> str:
        text = exploration_text(self.trace, Plan(self.kernel, self.arch), times=True)
        return "\n".join([text, *(visible(remark) for remark in self._told)]) + "\n"

    def _repr_html_(self) -> str:
        remarks = "".join(f'<p class="q">{escape(remark)}</p>' for remark in self._told)
        return exploration_html(self.trace, None, Plan(self.kernel, self.arch), times=True, remarks=remarks, cut=_CUT)


def check_architecture(arch: object) -> str:
    """Raises UsageError if TileLang is not known to lower for it."""
    arch = plain(arch)
    if not isinstance(arch, str) or arch not in ARCHITECTURES:
        raise unknown("architecture", arch, ARCHITECTURES)
    return arch


def request_for(texts: list[JsonObject], arguments: JsonObject, arch: str) -> JsonObject:
    """The request to TileLang's process."""
    target = {"kind": "hip", "mcpu": arch} if arch.startswith("gfx") else {"kind": "cuda", "arch": arch}
    return {"texts": texts, "arguments": arguments, "target": target}


def lower(
    name: str, source: Listing, request: JsonObject, sources: Sequence[_Place], arch: str, folder: Path | None,
    control: Control,
) -> GpuLane:  # fmt: skip
    """Lower a kernel in TileLang's environment in `folder`; without one, take its recording.

    Raises BackendError if there is neither, if TileLang rejects the kernel, at the line, and what the process raises.
    """
    why = ""
    try:
        environment = read_environment(folder)
    except BackendError as error:
        answer = recorded(request)
        if answer is None:
            raise
        why = error.message
    else:
        control.tell(f"TileLang lowers {name} for {arch}")
        answer = ask(environment, request, control)
    lane = read_answer(name, source, answer, sources, arch, why)
    return dataclasses.replace(lane, digest=kernel_digest(request))


def architectures(texts: list[JsonObject], arguments: JsonObject) -> tuple[str, ...]:
    """The architectures for which there is a lane of a kernel: all of them in TileLang's environment, without it those
    of its recordings. The first is the one to begin with; there is one even if no lane is there."""
    try:
        read_environment()
        recorded = list(ARCHITECTURES)
    except BackendError:
        recorded = [arch for arch in ARCHITECTURES if is_recorded(request_for(texts, arguments, arch))]
    return tuple(sorted(recorded, key=lambda arch: arch != _FIRST)) or (_FIRST,)


def kernel_digest(request: JsonObject) -> str:
    """A digest of a request's texts and values, whatever the target is."""
    return request_digest({name: field for name, field in request.items() if name != "target"})


def read_answer(
    name: str, source: Listing, answer: JsonObject, sources: Sequence[_Place], arch: str, why: str = ""
) -> GpuLane:
    """The lane of an answer. Raises BackendError, at the line, for a kernel that TileLang rejects, and for an answer
    that is not one."""
    try:
        return _read_answer(name, source, answer, sources, arch, why)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise unreadable("the recorded lane" if why else "the answer of TileLang's process", error) from error


def _read_answer(
    name: str, source: Listing, answer: JsonObject, sources: Sequence[_Place], arch: str, why: str
) -> GpuLane:
    error: JsonObject | None = answer.get("error")
    failed: BackendError | None = None
    if error is not None:
        span = _span(error["where"], sources)
        if error["kind"] == "trace":
            raise BackendError(
                "B042", f"TileLang rejects the kernel: {error['text']}",
                hint="the kernel is right here; TileLang itself does not take it, so there is no GPU lane", span=span,
            )  # fmt: skip
        failed = BackendError(
            "B043", f"a pass of TileLang failed: {error['text']}", hint="try another arch, or other block sizes",
            span=span,
        )  # fmt: skip
    listings = [
        _listing(listing, sources, "cpp" if number == answer.get("source") else "tir", first=number == 0)
        for number, listing in enumerate(_objects(answer["listings"]))
    ]
    passes = _objects(answer["passes"])
    numbers = {stage: itertools.count(1) for stage in _LETTERS}
    records: list[StepRecord] = []
    around: list[str] = []
    for index, record in enumerate(passes):
        del around[_position(record["depth"]) :]
        inside = f"(inside of {around[-1]}) " if around else ""
        name_of_pass, does = _text(record["name"]), _text(record["summary"])
        around.append(name_of_pass)
        last = failed is not None and index == len(passes) - 1
        before, after = (listings[_position(record[side])] for side in ("before", "after"))
        letter = f"{_LETTERS[record['stage']]}{next(numbers[record['stage']])}"
        summary = inside + does
        records.append(
            StepRecord(
                index, name_of_pass, letter, record["stage"], summary, summary, record["before"] != record["after"],
                False,
                float(record["seconds"]), before, after, {}, {}, {}, failed.record() if failed and last else None,
            )
        )  # fmt: skip
    if failed is not None and not records:
        raise failed
    notes = tuple(_note(note, sources) for note in _objects(answer["notes"]))
    versions = {str(name): str(version) for name, version in answer["versions"].items()}
    return GpuLane(name, arch, source, tuple(records), float(answer["seconds"]), versions, notes, why)


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise TypeError(f"{data!r} is not a text")
    return data


def _position(data: object) -> int:
    if not isinstance(data, int) or data < 0:
        raise TypeError(f"{data!r} is not a position")
    return data


def _objects(data: Any) -> list[JsonObject]:
    return list(data)


def _note(note: JsonObject, sources: Sequence[_Place]) -> str:
    span = _span(note["where"], sources)
    return f"{span}: {note['text']}" if span else str(note["text"])


def _span(where: list[int] | None, sources: Sequence[_Place]) -> Span | None:
    return None if where is None else _span_at(sources, where[0], where[1])


def _span_at(sources: Sequence[_Place], index: object, line: object) -> Span:
    return sources[_position(index)].span(_position(line))


def _listing(data: JsonObject, sources: Sequence[_Place], language: Any, *, first: bool) -> Listing:
    """A listing of an answer. In IR, lines without a kernel line have that of the statement around them, inferred."""
    lines: list[Line] = []
    # The lines around, from the outermost: how far they are indented, and their origins.
    around: list[tuple[int, tuple[Origin, ...]]] = []
    for text, marks in zip(map(_text, data["text"]), data["places"], strict=True):
        indent = len(text) - len(text.lstrip())
        origins = tuple(
            Origin(
                sources[_position(index)].span(_position(line)),
                "inferred" if recovered else "exact" if first else "derived",
            )
            for index, line, recovered in marks
        )
        if language == "tir" and text.strip():
            while around and around[-1][0] >= indent:
                around.pop()
            if not origins and around:
                origins = tuple(Origin(statement.span, "inferred") for statement in around[-1][1])
            around.append((indent, origins))
        lines.append(Line(text, origins, work="declarations" if _DECLARATION.search(text) else ""))
    return Listing(language, tuple(lines))


__all__ = [
    "ARCHITECTURES",
    "GpuLane",
    "architectures",
    "check_architecture",
    "kernel_digest",
    "lower",
    "read_answer",
    "request_for",
]
