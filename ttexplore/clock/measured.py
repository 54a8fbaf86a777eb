"""Measured times beside predicted ones: the SDK's profiler writes them, for each operation of a run, to a file
`ops_perf_results*.csv`."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from ttexplore.characters import Printed
from ttexplore.clock.events import PROCESSORS, ProcessorName
from ttexplore.errors import UsageError, shown
from ttexplore.given import path as path_of
from ttexplore.record import to_json
from ttexplore.target import RISCV_PROCESSORS
from ttexplore.views.markup import plural
from ttexplore.views.runs.measured import MeasuredTable, measured_html, measured_text
from ttexplore.views.runs.times import plain_time

if TYPE_CHECKING:
    from ttexplore.clock.estimate import Estimate, ProcessorEstimate

# Columns of the report, as tracy/process_ops_logs.py of ttnn 0.81.1 names them. The time of a processor is from where
# its kernel starts on the first core to where it ends on the last one.
_OPERATION, _KERNELS = "OP CODE", "DEVICE KERNEL DURATION [ns]"
_DURATIONS = {name: f"DEVICE {RISCV_PROCESSORS[name]} KERNEL DURATION [ns]" for name in PROCESSORS}
_CHIP, _CORES = "DEVICE ARCH", "CORE COUNT"
_SOURCES = ("COMPUTE KERNEL SOURCE", "DATA MOVEMENT KERNEL SOURCE")
# What ttnn.generic_op, which starts all programs of ours, is called in the report.
_GENERIC = "GenericOp"
# Processors whose difference is at least this part of the largest one are named with it.
_NEARLY = 0.9
_OUR_ROWS = "give the report of a run of this program alone, or only its rows, with the head of the table"


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """A predicted time and a measured one in microseconds; `measured_us` is None if the report has none."""

    predicted_us: float
    measured_us: float | None

    @property
    def ratio(self) -> float | None:
        """The predicted time as a part of the measured one."""
        return None if self.measured_us is None else self.predicted_us / self.measured_us

    @property
    def difference_us(self) -> float:
        """How much longer it takes than predicted; 0 if it was not measured."""
        return 0.0 if self.measured_us is None else self.measured_us - self.predicted_us


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """The times of a launch, medians of its `runs`: of all `kernels`, and until the end of each of the `processors`.
    `predicted` is what each of these does until then, on the core where it ends last."""

    kernel: str
    runs: int
    kernels: MeasuredTime
    processors: Mapping[ProcessorName, MeasuredTime]
    predicted: Mapping[ProcessorName, ProcessorEstimate]

    @property
    def furthest(self) -> ProcessorName | None:
        """The processor whose predicted end is furthest from the measured one; None if none was measured."""
        timed: list[ProcessorName] = [name for name, time in self.processors.items() if time.measured_us is not None]
        return max(timed, key=lambda name: abs(self.processors[name].difference_us), default=None)

    @property
    def summary(self) -> str:
        """The processor that is furthest from its prediction, and what it does by the model, in one sentence."""
        if self.furthest is None:
            return f"the kernels take {_difference(self.kernels)}; the report has no times of processors"
        furthest, predicted = self.processors[self.furthest], self.predicted[self.furthest]
        reason = max(predicted.waits_us, key=lambda why: predicted.waits_us[why], default=None)
        waits = f" (most: {reason})" if reason is not None and predicted.waits_us[reason] else ""
        alike = [
            name for name, time in self.processors.items()
            if name != self.furthest and time.difference_us / (furthest.difference_us or 1) >= _NEARLY
        ]  # fmt: skip
        behind = f"; {', '.join(alike)} nearly as much, as processors wait for one another" if alike else ""
        return (
            f"the {self.furthest} takes {_difference(furthest)}, of which it works {plain_time(predicted.busy_us)} and "
            f"waits {plain_time(sum(predicted.waits_us.values()))}{waits}{behind}"
        )

    @property
    def table(self) -> MeasuredTable:
        """What is shown, as text."""
        rows = [("all kernels", *_cells(self.kernels), "", "")]
        for name, time in self.processors.items():
            predicted = self.predicted[name]
            waits = plain_time(sum(predicted.waits_us.values()))
            rows.append((f"{name} ({RISCV_PROCESSORS[name]})", *_cells(time), plain_time(predicted.busy_us), waits))
        of_runs = f"median of {self.runs} runs" if self.runs > 1 else "one run"
        return MeasuredTable(f"{self.kernel}, {of_runs}", tuple(rows))


@dataclass(frozen=True, slots=True)
class Measured(Printed):
    """The times of a profiler report beside the predicted ones, by launch."""

    kernel: str
    file: str
    launches: tuple[MeasuredLaunch, ...]

    @property
    def summary(self) -> str:
        """The largest difference, in one sentence."""

        def off_us(launch: MeasuredLaunch) -> float:
            name = launch.furthest
            return abs((launch.kernels if name is None else launch.processors[name]).difference_us)

        furthest = max(self.launches, key=off_us)
        number = f"in launch {self.launches.index(furthest)} " if len(self.launches) > 1 else ""
        return f"largest difference: {number}{furthest.summary}"

    def to_json(self) -> dict[str, Any]:
        """All times as plain JSON values."""
        return {**to_json(self), "summary": self.summary}

    def __str__(self) -> str:
        return measured_text(f"{self.kernel} beside {self.file}", self.summary, self._tables)

    def __repr__(self) -> str:
        return f"<{self.kernel} beside {self.file}; {self.summary}>"

    def _repr_html_(self) -> str:
        return measured_html(f"{self.kernel} beside {self.file}", self.summary, self._tables)

    @property
    def _tables(self) -> list[MeasuredTable]:
        if len(self.launches) == 1:
            return [self.launches[0].table]
        tables = enumerate(launch.table for launch in self.launches)
        return [MeasuredTable(f"launch {number}: {table.title}", table.rows) for number, table in tables]


def beside(kernel: str, launches: Sequence[Estimate], path: object) -> Measured:
    """The predicted launches beside the rows of a report that are generic ops: on each device, these are the launches
    in their order, once for each run. Raises UsageError for a file that is no such report, or one of another program.
    """
    file = path_of("path", path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            reader = csv.DictReader(text, restval="")
            rows = [(reader.line_num, row) for row in reader if (row.get(_OPERATION) or "").startswith(_GENERIC)]
            columns = reader.fieldnames or ()
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(
            "U029",
            f"{file} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="give the ops_perf_results*.csv of the SDK's profiler",
        ) from error
    missing = [column for column in (_OPERATION, _KERNELS, *_DURATIONS.values()) if column not in columns]
    if missing:
        raise UsageError(
            "U029",
            f"{file.name} has no column {', '.join(missing)}",
            hint="give the ops_perf_results*.csv of the SDK's profiler, with all its columns",
        )
    runs_of: list[list[_ReportRow]] = [[] for _ in launches]
    by_device: dict[str, list[_ReportRow]] = {}
    for line, row in rows:
        by_device.setdefault(row.get("DEVICE ID", ""), []).append(_ReportRow(file.name, line, row))
    for runs in by_device.values():
        for number, run in enumerate(runs):
            runs_of[number % len(launches)].append(run)
    if not rows or any(len(runs) % len(launches) for runs in by_device.values()):
        raise UsageError(
            "U029",
            f"{file.name} has {plural(len(rows), 'row')} of generic ops, which are not whole runs of "
            f"{plural(len(launches), 'launch')}",
            hint=_OUR_ROWS,
        )
    measured = (_launch(launch, runs) for launch, runs in zip(launches, runs_of, strict=True))
    return Measured(kernel, file.name, tuple(measured))


@dataclass(frozen=True, slots=True)
class _ReportRow:
    """A row of a report."""

    file: str
    line: int
    row: Mapping[str, str]

    def us(self, column: str) -> float | None:
        """A time in microseconds; None if the cell is blank."""
        cell = self.row[column].strip()
        if not cell:
            return None
        try:
            ns = float(cell)
        except ValueError:
            ns = math.nan
        if not (math.isfinite(ns) and ns > 0):
            raise self.wrong(f"{column} is {shown(cell)}", "a time is a number above 0; make the report again")
        return ns / 1000

    def wrong(self, complaint: str, hint: str) -> UsageError:
        return UsageError("U029", f"line {self.line} of {self.file}: {complaint}", hint=hint)


def _launch(estimate: Estimate, runs: Sequence[_ReportRow]) -> MeasuredLaunch:
    _check_program(estimate, runs)
    kernels: list[float] = []
    for run in runs:
        us = run.us(_KERNELS)
        if us is None:
            raise run.wrong(f"there is no {_KERNELS}", "profile the device too: python -m tracy -r run_ttnn.py")
        kernels.append(us)
    processors: dict[ProcessorName, MeasuredTime] = {}
    predicted: dict[ProcessorName, ProcessorEstimate] = {}
    for name in PROCESSORS:
        ends = [group.processors[name] for group in estimate.cores if name in group.processors]
        if ends:
            predicted[name] = max(ends, key=lambda processor: processor.end_us)
            measured = [us for run in runs if (us := run.us(_DURATIONS[name])) is not None]
            processors[name] = MeasuredTime(predicted[name].end_us, median(measured) if measured else None)
    return MeasuredLaunch(
        estimate.kernel, len(runs), MeasuredTime(estimate.kernels_us, median(kernels)), processors, predicted
    )


def _check_program(estimate: Estimate, runs: Sequence[_ReportRow]) -> None:
    """Raises UsageError if a row is that of another chip, other cores, or another program than the first row."""
    architecture, cores = estimate.target.partition("_")[0], sum(len(group.cores) for group in estimate.cores)
    for run in runs:
        chip, count = (run.row.get(column, "").strip() for column in (_CHIP, _CORES))
        if chip and architecture not in chip.lower():
            raise run.wrong(f"{_CHIP} is {shown(chip)}, the prediction is for {estimate.target}", _OUR_ROWS)
        if count and count.removesuffix(".0") != str(cores):
            raise run.wrong(f"{_CORES} is {shown(count)}, {estimate.kernel} runs on {cores}", _OUR_ROWS)
        for column in _SOURCES:
            cell, first = run.row.get(column, ""), runs[0].row.get(column, "")
            if cell and first and cell != first:
                raise run.wrong(f"{column} is not that of line {runs[0].line}", _OUR_ROWS)


def _difference(time: MeasuredTime) -> str:
    way = "longer" if time.difference_us >= 0 else "less"
    return f"{plain_time(abs(time.difference_us))} {way} than the predicted {plain_time(time.predicted_us)}"


def _cells(time: MeasuredTime) -> Iterator[str]:
    yield plain_time(time.predicted_us)
    yield "-" if time.measured_us is None else plain_time(time.measured_us)
    yield "-" if time.ratio is None else f"{time.ratio:.2f}"
