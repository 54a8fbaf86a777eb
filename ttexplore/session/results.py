"""The results of an exploration: code, drawings, differences, runs, checks. Each is shown as text in a terminal and as
HTML in a notebook. They are plain data and do not need TVM."""

from __future__ import annotations

import functools
import math
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray

from ttexplore.backends.base import Execution, card_time, simulation_time
from ttexplore.backends.compare import ULP_CLASSES, Comparison, NamedComparison, sides_text
from ttexplore.characters import Printed
from ttexplore.errors import BackendError, UsageError, unknown
from ttexplore.files import write_file
from ttexplore.given import path as path_of
from ttexplore.given import text as text_of
from ttexplore.record import Line, Listing, StepRecord, Trace
from ttexplore.views.figures.error_map import TileErrors
from ttexplore.views.runs.check import CheckRow, check_html
from ttexplore.views.runs.comparison import comparison_html, comparison_text
from ttexplore.views.runs.run import SideFigures, run_html
from ttexplore.views.steps.code import code_html
from ttexplore.views.steps.diff import diff_html, diff_text
from ttexplore.views.steps.step_changes import StepChanges, between, between_files, changed_files, step_changes

Array = NDArray[Any]


@dataclass(frozen=True)
class StepDiff(Printed):
    """The changes of a step; text in a terminal, a table in a notebook."""

    record: StepRecord

    def __str__(self) -> str:
        return diff_text(self.record)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return diff_html(self.record)


class Code(Printed, str):
    """An emitted text: a string whose `lines` have the kernel lines that they come from; highlighted in a notebook.

    Printing it shows invisible characters; `text` has them as they are.
    """

    listing: Listing

    def __new__(cls, listing: Listing) -> Code:
        code = super().__new__(cls, listing.text)
        code.listing = listing
        return code

    @property
    def text(self) -> str:
        return str.__str__(self)

    def __str__(self) -> str:
        return self.text

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.listing.lines

    def _repr_html_(self) -> str:
        return code_html(self.listing)


@dataclass(frozen=True)
class Drawing(Printed):
    """A picture as SVG text; drawn in a notebook."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<drawing, {len(self.svg)} characters of SVG>"


@dataclass(frozen=True)
class Graph(Printed):
    """A graph in Graphviz's language; drawn in a notebook if Graphviz's program ``dot`` is installed."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def svg(self) -> str:
        """The graph as SVG, drawn by ``dot``. Raises BackendError if ``dot`` is missing or fails."""
        program = shutil.which("dot")
        if program is None:
            raise BackendError("B032", "Graphviz's program dot is not installed", hint="run apt-get install graphviz")
        drawn = subprocess.run([program, "-Tsvg"], input=self.text, capture_output=True, text=True, check=False)
        if drawn.returncode:
            raise BackendError(
                "B032", f"dot failed to draw the graph: {drawn.stderr.strip()}", hint="use the text of the graph"
            )
        return drawn.stdout

    def save(self, path: str | Path) -> Path:
        """Write the graph: as a drawing if the name ends in .svg, otherwise as text. Raises UsageError if the file
        cannot be written, and what :meth:`svg` raises."""
        file = path_of("the file", path)
        return write_file(file, self.svg() if file.suffix == ".svg" else self.text)

    def _repr_svg_(self) -> str | None:
        # Without a drawing, a notebook shows the text.
        try:
            return self.svg()
        except BackendError:
            return None


@dataclass(frozen=True)
class Static(Printed):
    """A static page and a text, shown without widgets."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Run(Printed):
    """The result of a run, compared with the reference.

    `outputs` are the output tensors in order, in the kernel's own dtypes. `pcc` is the smallest Pearson correlation
    of an output with the reference, `max_rel_error` the largest error relative to the largest reference value.
    `seconds` is the time of the kernels alone, `time` says whose time that is: only a card's is that of a device.
    `sides` are the comparisons: with the reference and, for a run on a device, with the emulator. Without a reference
    for the inputs, the run is not `compared`: it has outputs, and `passed` is None.
    """

    backend: str
    outputs: tuple[Array, ...]
    passed: bool | None
    pcc: float
    max_rel_error: float
    seconds: float
    message: str
    comparison: Comparison
    execution: Execution | None = None
    sides: tuple[NamedComparison, ...] = ()

    @property
    def compared(self) -> bool:
        """Whether the outputs were compared with a reference."""
        return self.passed is not None

    @classmethod
    def alone(cls, backend: str, outputs: tuple[Array, ...], execution: Execution) -> Run:
        """A run that was not to be compared."""
        nothing = Comparison.of_nothing("the outputs were not to be compared")
        message = "\n".join(text for text in (execution.message, nothing.message) if text)
        return cls.of(backend, outputs, execution, (), nothing, message, passed=None)

    @classmethod
    def of(
        cls, backend: str, outputs: tuple[Array, ...], execution: Execution, sides: Sequence[NamedComparison],
        comparison: Comparison, message: str, *, passed: bool | None,
    ) -> Run:  # fmt: skip
        """A run with the comparisons of its outputs, of which `comparison` is the one that counts."""
        return cls(
            backend, outputs, passed, comparison.pcc, comparison.max_rel_error, execution.seconds, message, comparison,
            execution, tuple(sides),
        )  # fmt: skip

    @property
    def _verdict(self) -> str:
        if not self.compared:
            return "not compared"
        return "passed" if self.passed else "FAILED"

    def __str__(self) -> str:
        if not self.compared:
            return f"{self.backend}: {self._verdict}, {self.time}\n{self.message}"
        return (
            f"{self.backend}: {self._verdict}, PCC {self.pcc:.7f}, max relative error {self.max_rel_error:.2e}"
            + (f"\n{self.message}" if self.message else "")
            + (f"\n{sides_text(self.sides)}" if len(self.sides) > 1 else "")
        )

    def __repr__(self) -> str:
        if not self.compared:
            return f"<run on {self.backend}: {self._verdict}>"
        return f"<run on {self.backend}: {self._verdict}, PCC {self.pcc:.6f}>"

    def _repr_html_(self) -> str:
        # Times differ from run to run: do not show them, nor the execution's own message, which contains them.
        return self._card(detailed=False, timed=False)

    def card(self) -> str:
        """All comparisons as HTML, with the histogram and the map of errors, and the time."""
        return self._card(detailed=True, timed=True)

    @property
    def time(self) -> str:
        """How long the kernels took, and by which clock."""
        on_card = self.execution is not None and self.execution.on_card
        return card_time(self.seconds) if on_card else simulation_time(self.seconds)

    def _card(self, *, detailed: bool, timed: bool) -> str:
        pcc, max_rel_error = (self.pcc, self.max_rel_error) if self.compared else (None, None)
        return run_html(
            backend=self.backend, passed=self.passed, pcc=pcc, max_rel_error=max_rel_error,
            message=self.comparison.message, sides=tuple(map(_figures, self.sides)), detailed=detailed,
            time=self.time if timed else None,
        )  # fmt: skip


# What stands for a step where the kernel is compared with the user's own formula, before all steps.
KERNEL_ITSELF = "the kernel itself"


@dataclass(frozen=True)
class StepCheck:
    """The comparison of the interpreter's result after a step with the reference. `parts` are those of its parts. A
    step that changes nothing that is executed has the result of the step before, and is not `executed`."""

    step: str
    letter: str
    passed: bool
    pcc: float
    max_rel_error: float
    message: str
    executed: bool = True
    parts: tuple[StepCheck, ...] = ()

    @classmethod
    def of_parts(cls, step: str, letter: str, parts: Sequence[StepCheck]) -> StepCheck:
        """The result of a step that consists of parts: that of the first that fails, or of the last one."""
        shown = next((check for check in parts if not check.passed), parts[-1])
        message = shown.message if shown.passed else f"{shown.letter} {shown.step}: {shown.message}"
        return cls(
            step, letter, shown.passed, shown.pcc, shown.max_rel_error, message,
            any(check.executed for check in parts), tuple(parts),
        )  # fmt: skip

    @property
    def leaves(self) -> tuple[StepCheck, ...]:
        """The results of the step's parts, or the result itself."""
        return self.parts or (self,)

    @property
    def rows(self) -> tuple[StepCheck, ...]:
        """The result, and those of the parts that were executed or fail."""
        return (self, *(check for check in self.parts if check.executed or not check.passed))

    @property
    def headline(self) -> str:
        """The step and how it compares, in one line."""
        verdict = "equals" if self.passed else "differs from"
        return f"{self.letter} {self.step} {verdict} the reference, PCC {self.pcc:.7f}"


@dataclass(frozen=True)
class Check(Printed):
    """The execution of every step and of its parts. Truthy if all give the reference's result; `first_bad` names the
    first step, or part of one, that does not."""

    results: tuple[StepCheck, ...]

    @property
    def ok(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def first_bad(self) -> str | None:
        leaves = (leaf for result in self.results for leaf in result.leaves)
        return next((leaf.step for leaf in leaves if not leaf.passed), None)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def rows(self) -> tuple[StepCheck, ...]:
        """The results, each followed by those of its parts that were executed or fail."""
        return tuple(row for result in self.results for row in result.rows)

    def __str__(self) -> str:
        width = max((len(row.step) for row in self.rows), default=0)
        letters = max([3, *(len(row.letter) for row in self.rows)])
        lines = [f"{'':<{5 + letters}} {'step':<{width}}  {'PCC':<9}  max relative error"]
        for row in self.rows:
            verdict = f"{'ok' if row.passed else 'BAD':<3}  {row.letter:<{letters}}"
            lines.append(f"{verdict} {row.step:<{width}}  {row.pcc:.7f}  {row.max_rel_error:.2e}")
            # That of a step with parts is one of theirs.
            lines += [] if row.passed or len(row.rows) > 1 else [f"     {row.message}"]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return check_html([
            CheckRow(r.letter, r.step, r.passed, r.pcc, r.max_rel_error, r.message, len(r.rows) > 1) for r in self.rows
        ])  # fmt: skip


class LoweringComparison(Printed, str):
    """Two lowerings side by side: text in which differing lines begin with ``~``; a table in a notebook.

    `rows` are (what, first, second), `steps` say which steps do something else, `files` are the names of the emitted
    files that differ. :meth:`diff` gives a step or a file in full."""

    rows: tuple[tuple[str, str, str], ...]
    _sides: tuple[Trace, Trace]

    def __new__(cls, rows: Sequence[tuple[str, str, str]], sides: tuple[Trace, Trace]) -> LoweringComparison:
        text = super().__new__(cls, comparison_text(rows))
        text.rows = tuple(rows)
        text._sides = sides
        return text

    @functools.cached_property
    def steps(self) -> StepChanges:
        """For each step, whether it decides or rewrites differently, and the plan facts that differ."""
        first, second = self._sides
        return step_changes(first.steps, second.steps)

    @property
    def files(self) -> tuple[str, ...]:
        """The emitted files whose text differs, without the plan, which ``steps`` compares."""
        return changed_files(*self._sides)

    def diff(self, what: str) -> StepDiff:
        """The program and the plan after a step, by name or letter, or an emitted file: first and second side by side.

        Raises UsageError for any other name, and for a step that one of the lowerings did not reach.
        """
        what = text_of("a step or a file", what)
        steps = [[nested for step in side.steps for nested in (step, *step.parts)] for side in self._sides]
        records = [next((record for record in side if what in (record.letter, record.name)), None) for side in steps]
        if all(records):
            first, second = cast(list[StepRecord], records)
            return StepDiff(between(first, second))
        files = [side.files.get(what) for side in self._sides]
        if all(files):
            first, second = cast(list[Listing], files)
            return StepDiff(between_files(first, second))
        if any(records) or any(files):
            raise UsageError("U006", f"only one of the lowerings has {what}", hint="see the error of the other")
        names = [name for record in steps[0] for name in (record.letter, record.name)]
        raise unknown("step or file", what, [*names, *self._sides[0].files])

    def __str__(self) -> str:
        return str.__str__(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return comparison_html(self.rows)


def _figures(side: NamedComparison) -> SideFigures:
    figures = side.comparison
    tile = str(figures.worst_tile.index) if figures.worst_tile and figures.equal_share < 1 else "-"
    return SideFigures(
        side.name, figures.passed, figures.pcc, figures.max_rel_error, figures.max_ulp, figures.equal_share, tile,
        tuple(zip(ULP_CLASSES, figures.ulp_histogram, strict=True)), _tile_errors(side),
    )  # fmt: skip


def _tile_errors(side: NamedComparison) -> TileErrors | None:
    worst = side.comparison.worst_tile
    if worst is None or not side.worst_slice:
        return None
    leading, bound = ", ".join(map(str, worst.index[:-2])), math.inf if side.comparison.passed else worst.bound
    name = worst.name + (f", slice [{leading}]" if leading else "")
    return TileErrors(name, side.worst_slice, bound, (worst.output, *worst.index[:-2]))
