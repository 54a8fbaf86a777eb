"""Porting the text of a kernel: its constructs beside ours, and the same kernel in TileLang."""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ttexplore.characters import Printed
from ttexplore.control import Control
from ttexplore.errors import UsageError
from ttexplore.given import flag, named, plain, wrong
from ttexplore.given import text as text_of
from ttexplore.porting.foreign.cuda import read_cuda
from ttexplore.porting.foreign.families import Family, Outside, family_of
from ttexplore.porting.foreign.marks import ForeignKernel, Language, Mark, Reading
from ttexplore.porting.foreign.skeletons import Skeleton, skeleton
from ttexplore.porting.foreign.triton import read_triton
from ttexplore.porting.foreign.work import SourceWork
from ttexplore.porting.pattern import Pattern, patterns
from ttexplore.porting.proof.page import proof_html
from ttexplore.porting.proof.proving import prove_kernel
from ttexplore.porting.proof.results import NOT_RUN, Difference, Draft, PortProof
from ttexplore.porting.table import Table
from ttexplore.porting.ways import way_of
from ttexplore.record import Span, lines_of
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.theme import fragment

_TRITON = re.compile(r"^\s*(import|from)\s+triton\b|@triton\.jit|@jit\b", re.MULTILINE)
_CUDA = re.compile(r"__global__|__device__|#include\s*[<\"]")


# Both texts side by side where there is room, else one below the other; lines of code are not folded.
_STYLE = """<style>
.ttx .ported{display:flex;flex-wrap:wrap;gap:0 2em;align-items:flex-start}
.ttx .ported>div{flex:1 1 42em;min-width:0;overflow-x:auto}
.ttx .ported pre{white-space:pre;margin:0;padding:0;background:none;overflow:visible;font-family:var(--ttx-code)}
.ttx .ported td .q{padding-left:4ch;white-space:nowrap}
.ttx .ported td{padding-bottom:0;vertical-align:top}
</style>"""


@dataclass(frozen=True, slots=True)
class PortedDraft:
    """The text of a kernel in TileLang that is not proved to be that of the source, as a module with the function
    `factory`, and why: `difference` is the first element that differs, if there is one."""

    text: str
    factory: str
    reason: str
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class PortedKernel:
    """A kernel of a foreign source. `family` is the row of the porting table that it is. `skeleton` is the same kernel
    in TileLang, as the text of a module with the function `factory`, if running the source has shown that it is the
    same (`proof`); otherwise there is a `draft`, or `outside` says why there is none, and `way` says how to write it by
    hand. `numbers` are the parameters of the factory that are numbers of the source, with the dtypes of those that are
    whole numbers or bools there."""

    name: str
    line: int
    family: str = ""
    skeleton: str = ""
    factory: str = ""
    outside: str = ""
    proof: PortProof | None = None
    draft: PortedDraft | None = None
    way: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])

    def checked(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return arguments for the factory. Raises UsageError for those that parameters of the source cannot have."""
        return {
            name: _number(name, value, self.numbers[name]) if name in self.numbers else value
            for name, value in arguments.items()
        }


def _number(name: str, value: object, dtype: str) -> int | float:
    number = plain(value)
    if not isinstance(number, int | float):
        raise wrong(name, number, "a number")
    if dtype:
        least, most = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        if not (least <= number <= most and number == int(number)):
            raise wrong(name, number, f"what {dtype} holds: a whole number from {least} to {most}")
    return number


@dataclass(frozen=True, repr=False)
class Port(Printed):
    """What is known of a foreign source: its constructs (`marks`), in the order of the text, and its `kernels`."""

    language: Language
    text: str
    marks: tuple[Mark, ...]
    kernels: tuple[PortedKernel, ...]

    def __getitem__(self, name: str) -> Port:
        """The port with only the kernel of this name to explore. Raises UsageError if the source has none."""
        by_name = {kernel.name: kernel for kernel in self.kernels}
        chosen = by_name[named("kernel", name, by_name)]
        return dataclasses.replace(self, kernels=(chosen,))

    @property
    def unknown(self) -> tuple[Mark, ...]:
        """The constructs that no row of the porting table is about."""
        return tuple(mark for mark in self.marks if not mark.row)

    @property
    def table(self) -> Table:
        """The rows of the porting table that its constructs belong to."""
        rows = dict.fromkeys(mark.row for mark in self.marks if mark.row)
        return Table(tuple(patterns()[name] for name in rows), f"porting: constructs of {self.language}")

    def pattern(self, mark: Mark) -> Pattern | None:
        """The row of the porting table that a construct belongs to, None for an unknown one."""
        if not isinstance(mark, Mark):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise wrong("the mark", mark, "one of port.marks")
        return patterns().get(mark.row)

    @property
    def skeleton(self) -> str:
        """The first kernel that is written in TileLang: ``ttx.explore(port)`` explores it.

        Raises UsageError if there is none; `kernels` has drafts, `marks` what was recognized.
        """
        return self.written.skeleton

    @property
    def proof(self) -> PortProof | None:
        """How the first kernel that is written was compared with its source, None if there is none."""
        return next((kernel.proof for kernel in self.kernels if kernel.skeleton), None)

    @property
    def written(self) -> PortedKernel:
        """The first kernel that is written in TileLang, and proved, which ``ttx.explore(port)`` explores.

        Raises UsageError as `skeleton` does.
        """
        for kernel in self.kernels:
            if kernel.skeleton:
                return kernel
        drafts = [kernel for kernel in self.kernels if kernel.draft is not None]
        if drafts:
            reasons = "; ".join(f"{kernel.name}: {kernel.draft.reason}" for kernel in drafts if kernel.draft)
            raise UsageError(
                "U027",
                f"no kernel of the source is written, but there {_are(drafts)} ({reasons})",
                hint=f'port["{drafts[0].name}"].kernels[0].draft.text is a draft: check it against the source before '
                "you use it",
            )
        reasons = "; ".join(f"{kernel.name}: {kernel.outside}" for kernel in self.kernels) or "the source has no kernel"
        by_hand = "".join(f"; by hand, {kernel.name}: {kernel.way}" for kernel in self.kernels)
        raise UsageError(
            "U027", f"no kernel of the source is of a known family ({reasons})",
            hint="families are GEMM with epilogue, element-wise kernels, reductions, scans, norms, softmax, RoPE, "
            "gathered rows and attention forward; .marks has the constructs that were recognized"
            f"{by_hand}",
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """How much was written and recognized, in one line."""
        recognized = len(self.marks) - len(self.unknown)
        written = sum(bool(kernel.skeleton) for kernel in self.kernels)
        drafts = sum(kernel.draft is not None for kernel in self.kernels)
        of_drafts = f", {plural(drafts, 'draft')}" if drafts else ""
        return (
            f"{self.language}: {written} of {plural(len(self.kernels), 'kernel')} written in TileLang"
            f"{of_drafts}; "
            f"{recognized} of {plural(len(self.marks), 'construct')} recognized"
        )

    def __repr__(self) -> str:
        return f"<port of {self.summary}>"

    def __str__(self) -> str:
        rows = [self.summary]
        for mark in self.marks:
            row = self.pattern(mark)
            ours = ", ".join(row.tilelang or row.metalium) if row else ""
            told = f"{mark.row}{f': {ours}' if ours else ''}" if row else "unknown"
            rows.append(f"{mark.line:>5}  {visible(mark.text)[:40]:<40}  {told}")
        for kernel in self.kernels:
            rows.append(f"{kernel.name} (line {kernel.line}): {_told(kernel)}")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        marked: dict[int, list[Mark]] = {}
        for mark in self.marks:
            marked.setdefault(mark.line, []).append(mark)
        rows: list[str] = []
        for number, line in enumerate(lines_of(self.text), 1):
            marks = marked.get(number, [])
            row_names = dict.fromkeys(mark.row for mark in marks if mark.row)
            unknown = dict.fromkeys(mark.text for mark in marks if not mark.row)
            told = ", ".join(
                f'<abbr tabindex="0" title="{escape(patterns()[row].note)}">{escape(row)}</abbr>' for row in row_names
            )
            told += "".join(f' <span class="bad">✖</span> <code>{escape(word)}</code> is unknown' for word in unknown)
            below = f'<div class="q">{told}</div>' if told else ""
            rows.append(f'<tr><td class="q">{number}</td><td><pre>{escape(line) or " "}</pre>{below}</td></tr>')
        title = f"{escape(self.language)}, and rows of the porting table"
        heads = f'<th scope="col">line</th><th scope="col">{title}</th>'
        source_html = (
            f'<table class="t facts" aria-label="constructs"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table>"
        )
        ours: list[str] = []
        for kernel in self.kernels:
            family = f": {escape(kernel.family)}" if kernel.family else ""
            if kernel.draft is not None:
                told = f"<p>A draft: {escape(kernel.draft.reason)}.</p><pre>{_lines(kernel.draft.text)}</pre>"
            elif kernel.proof is not None:
                told = f"<pre>{_lines(kernel.skeleton)}</pre>{proof_html(kernel.proof)}"
            else:
                told = f"<p>No skeleton: {escape(kernel.outside)}.</p><p>By hand: {escape(kernel.way)}.</p>"
            ours.append(f"<h4>{escape(kernel.name)}{family}</h4>{told}")
        content = (
            f'{_STYLE}<div class="head"><h3>port</h3><span>{escape(self.summary)}</span></div>'
            f'<div class="ported"><div>{source_html}</div><div>{"".join(ours)}</div></div>'
        )
        return fragment(content_id("ttx-port", content), "port of a kernel", content)


def port(
    source: str, *, file: str = "source", prove: bool = True, time_limit_seconds: float | None = None,
    cancel: threading.Event | None = None,
) -> Port:  # fmt: skip
    """Read a kernel of Triton, CUDA C++ or ThunderKittens, mark its constructs with their rows of the porting table,
    write it in TileLang, and run both to prove that they are the same.

    `source` is the text of a module or file, `file` what messages call it. A kernel gets a skeleton if its values are
    those of a family that docs/porting.md lists under "Reading kernels"; sizes and blocks are parameters of the
    skeleton and not those of the source. The source is run with small sizes, and its results are compared with those of
    the skeleton: where they differ, or the source cannot be run, the skeleton is a draft, as all are if you do not let
    it `prove` them. Setting `cancel` ends the work, and so does `time_limit_seconds`, by default none.

    Raises UsageError for a text that is in none of these languages or has no valid syntax, and if the packages that
    read C++ are not installed (extra `port`); Cancelled, and BackendError where the time is over.
    """
    text = _readable(text_of("the source of a kernel", source), text_of("the name of a file", file))
    is_proving = flag("prove", prove)
    control = Control.checked(cancel, time_limit_seconds, None).of("the port", start=time.perf_counter())
    work = SourceWork(control)
    work.check()
    reading = _read(text, file, work)
    kernels: list[PortedKernel] = []
    for kernel in reading.kernels:
        work.check()
        family = family_of(kernel)
        if isinstance(family, Outside):
            way = way_of(_text_of(text, kernel, reading.kernels), family.reason)
            kernels.append(PortedKernel(kernel.name, kernel.line, outside=family.reason, way=way))
            continue
        written = skeleton(kernel, family)
        result = prove_kernel(reading.language, text, kernel, family, written, control) if is_proving else NOT_RUN
        if isinstance(result, PortProof) and result.equal_sizes:
            written = skeleton(kernel, family, result.equal_sizes)
        kernels.append(_ported(kernel, family, written, result))
    return Port(reading.language, text, reading.marks, tuple(kernels))


def _ported(kernel: ForeignKernel, family: Family, written: Skeleton, result: PortProof | Draft) -> PortedKernel:
    if isinstance(result, PortProof):
        numbers = {
            written.names[parameter.name]: parameter.dtype
            for parameter in kernel.parameters
            if parameter.kind == "number" and parameter.name in written.names
        }
        text, factory = written.text, written.factory
        return PortedKernel(kernel.name, kernel.line, family.row, text, factory, proof=result, numbers=numbers)
    draft = PortedDraft(written.text, written.factory, result.reason, result.difference)
    return PortedKernel(kernel.name, kernel.line, family.row, draft=draft)


def _are(drafts: Sequence[PortedKernel]) -> str:
    return f"{'is' if len(drafts) == 1 else 'are'} {plural(len(drafts), 'draft')}"


def _told(kernel: PortedKernel) -> str:
    """What is known of a kernel, in a line."""
    if kernel.draft is not None:
        return f"{kernel.family}, a draft: {visible(kernel.draft.reason)}"
    if kernel.proof is not None:
        return f"{kernel.family}; {kernel.proof.summary}"
    return f"no skeleton: {visible(kernel.outside)}; by hand: {kernel.way}"


def _text_of(text: str, kernel: ForeignKernel, kernels: Sequence[ForeignKernel]) -> str:
    """The text of a kernel of a source; with all before the next one, the functions that it calls may be among it."""
    lines = lines_of(text)
    begins = sorted(sibling.line for sibling in kernels)
    first = 0 if kernel.line == begins[0] else kernel.line - 1
    end = next((line - 1 for line in begins if line > kernel.line), len(lines))
    return "\n".join(lines[first:end])


def _readable(text: str, file: str) -> str:
    """The text, in which each character can be encoded. Raises UsageError."""
    if unreadable := re.search("[\\0\ud800-\udfff]", text):
        line, column = (
            text.count("\n", 0, unreadable.start()) + 1,
            unreadable.start() - text.rfind("\n", 0, unreadable.start()),
        )
        raise UsageError(
            "U027", f"the source has a character that no text has: U+{ord(unreadable[0]):04X}",
            hint="read the file as UTF-8", span=Span(file, line, column, line, column + 1),
        )  # fmt: skip
    return text


def _read(text: str, file: str, work: SourceWork) -> Reading:
    if _TRITON.search(text):
        return read_triton(text, file, work)
    if _CUDA.search(text):
        return read_cuda(text, file, work)
    raise UsageError(
        "U027", "the source is neither Triton nor CUDA C++",
        hint="give the whole file: with its imports of triton, or with its __global__ functions",
    )  # fmt: skip


def _lines(text: str) -> str:
    return "\n".join(escape(line) for line in lines_of(text))
