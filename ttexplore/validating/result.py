"""What a validation found: a table and a drawing."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any, Literal

from ttexplore.backends.base import TIME_IS_OVER
from ttexplore.characters import Printed
from ttexplore.errors import TTExploreError, from_record
from ttexplore.given import whole
from ttexplore.optional import install, optional
from ttexplore.record import ErrorRecord
from ttexplore.session.results import Drawing
from ttexplore.validating.cases import Case
from ttexplore.views.figures.errors_by_case import CaseErrors, errors_by_case_svg
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.theme import fragment

# A program that takes longer than its limit may be right.

State = Literal["passed", "failed", "refused", "not done"]


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """What the runs of a case gave.

    `max_ulp`, `max_rel_error` and `pcc` compare with float64 (:class:`Comparison` says what they are); `runs` is how
    often it ran, `cores` on how many cores, the first of which are those of the kernel as it is lowered. `shapes` are
    those of the inputs. `us` is the predicted time and `roofline_us` that of the roofline, None where elements of
    tensors decide how long it runs. `message` says what is wrong.
    """

    passed: bool
    max_ulp: float
    max_rel_error: float
    pcc: float
    runs: int
    cores: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    us: float | None
    roofline_us: float | None
    message: str
    explained: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case: its figures, or the error with which it was refused or, after it was `lowered`, failed."""

    figures: CaseFigures | None = None
    error: ErrorRecord | None = None
    lowered: bool = False

    @property
    def state(self) -> State:
        if self.figures is not None:
            return "passed" if self.figures.passed else "failed"
        if self.error is not None and self.error.code == TIME_IS_OVER:
            return "not done"
        return "failed" if self.lowered else "refused"


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Printed):
    """The result of :func:`ttexplore.validate`. Truthy if it is complete, no case failed, and one passed.

    `cases` are in order, `findings` what became of each; None for one that was not done because the validation was
    stopped before, in which case it is not `complete`. `names` are the arguments that are not the same in all cases.
    With `by_reference`, the numbers are compared with those of a given reference.
    """

    kernel: str
    names: tuple[str, ...]
    cases: tuple[Case, ...]
    findings: tuple[CaseResult | None, ...]
    complete: bool
    by_reference: bool

    def __bool__(self) -> bool:
        states = [self._state(finding) for finding in self.findings]
        return self.complete and "failed" not in states and "passed" in states

    def table(self) -> list[dict[str, Any]]:
        """One row for each case, in order, as plain values.

        `case` is what it is called, `target` the name of the target; then come the arguments that vary, and the
        `state`: ``passed``, ``failed``, ``refused`` or ``not done``. `max_ulp`, `max_rel_error` and `pcc` compare with
        float64; `runs` and `cores` say how often it ran, and on how many cores, with the same numbers if it passed.
        `estimate_us` is the predicted time, `roofline_us` that of the roofline. A failed row has the `reason`, a
        refused one also the `code` and the `line` of the kernel; a passed one has a `reason` where rounding explains
        what its figures alone would not allow. What is not known is None.
        """
        return [self._row(case, finding) for case, finding in zip(self.cases, self.findings, strict=True)]

    def frame(self) -> Any:
        """The table as a DataFrame of pandas. Raises BackendError if pandas is not installed."""
        return optional("pandas", install("pandas"), "use .table()").DataFrame(self.table())

    def _row(self, case: Case, finding: CaseResult | None) -> dict[str, Any]:
        figures, error = (finding.figures, finding.error) if finding is not None else (None, None)
        row: dict[str, Any] = {"case": case.called, "target": case.target.name}
        row |= {name: case.arguments.get(name) for name in self.names}
        row["state"] = self._state(finding)
        for name in ("max_ulp", "max_rel_error", "pcc", "runs", "cores"):
            row[name] = getattr(figures, name, None)
        row["estimate_us"], row["roofline_us"] = (figures.us, figures.roofline_us) if figures else (None, None)
        row["code"] = error.code if error else None
        why = figures.message or figures.explained if figures else None
        row["reason"] = error.message if error else why or None
        row["line"] = str(error.span) if error and error.span else None
        return row

    @staticmethod
    def _state(finding: CaseResult | None) -> State:
        return "not done" if finding is None else finding.state

    def plot(self) -> Drawing:
        """The largest relative error of each case, on each target, as a drawing."""
        rows: dict[str, list[tuple[str, float | None, str]]] = {}
        for case, finding in zip(self.cases, self.findings, strict=True):
            figures = finding.figures if finding is not None else None
            error = figures.max_rel_error if figures is not None else None
            rows.setdefault(case.called, []).append((case.target.name, error, self._state(finding)))
        return Drawing(
            errors_by_case_svg([CaseErrors(called, tuple(row)) for called, row in rows.items()], self.kernel)
        )

    # Showing

    @property
    def summary(self) -> str:
        """What became of the cases, in one line."""
        counted = collections.Counter(map(self._state, self.findings))
        phrases = [f"{counted['passed']:,} of {plural(len(self.cases), 'case')} passed"]
        states: tuple[State, ...] = ("failed", "refused", "not done")
        return ", ".join([*phrases, *(f"{counted[state]:,} {state}" for state in states if counted[state])])

    @property
    def against(self) -> str:
        """What the errors are those of."""
        return "the given reference" if self.by_reference else "the kernel in float64"

    def _rows(self) -> list[tuple[str, ...]]:
        """The cells of the table that is shown: a row for each case, with its times on each target."""
        targets = list(dict.fromkeys(case.target.name for case in self.cases))
        findings_of: dict[str, dict[str, CaseResult | None]] = {}
        for case, finding in zip(self.cases, self.findings, strict=True):
            findings_of.setdefault(case.called, {})[case.target.name] = finding
        heads = [head for name in targets for head in (f"{name} µs", "of roofline")]
        rows: list[tuple[str, ...]] = [(*_HEAD, *heads)]
        for called, findings in findings_of.items():
            measured = [
                finding.figures for finding in findings.values() if finding is not None and finding.figures is not None
            ]
            state = _WORST[min(_WORST.index(self._state(finding)) for finding in findings.values())]
            shapes = " ".join("x".join(map(str, shape)) for shape in measured[0].shapes) if measured else "–"
            worst = ("–",) * 3
            if measured:
                cores = dict.fromkeys(", ".join(map(str, figures.cores)) for figures in measured)
                worst = (
                    _ulps(max(figures.max_ulp for figures in measured)),
                    f"{max(figures.max_rel_error for figures in measured):.1e}",
                    " / ".join(cores),
                )  # fmt: skip
            times = [cell for name in targets for cell in _times(findings.get(name), self._state(findings.get(name)))]
            rows.append((_GLYPHS[state], visible(called), shapes, *worst, *times))
        return rows

    def _complaints(self) -> list[str]:
        """What is to say of cases, and of how many, those that failed first."""
        cases_of: dict[tuple[State, str], list[str]] = {}
        for case, finding in zip(self.cases, self.findings, strict=True):
            if finding is None:
                continue
            figures = finding.figures
            why = finding.error.headline if finding.error else (figures.message or figures.explained) if figures else ""
            if finding.state == "passed" and not why:
                continue
            cases_of.setdefault((finding.state, why), []).append(f"{case.called} on {case.target.name}")
        told = sorted(cases_of.items(), key=lambda complaint: complaint[0][0] != "failed")
        return [f"{len(cases)} {state}, {visible(cases[0])} first: {visible(why)}" for (state, why), cases in told]

    def error(self, number: int) -> TTExploreError | None:
        """Why the case of this number, counted from 0, was refused or did not run to its end. Raises UsageError for
        numbers of no case."""
        finding = self.findings[whole("the number of a case", number, 0, len(self.cases) - 1)]
        return from_record(finding.error) if finding is not None and finding.error is not None else None

    def __repr__(self) -> str:
        return f"<validation of {self.kernel}: {self.summary}>"

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.kernel}: {self.summary}", f"errors are those against {self.against}", ""]
        for row in rows:
            cells = [_padded(cell, width, column) for column, (cell, width) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *(line for complaint in self._complaints() for line in ("", complaint))])

    def _repr_html_(self) -> str:
        heads, *cells = self._rows()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        wrong = "".join(f"<p>{escape(complaint)}</p>" for complaint in self._complaints())
        content = (
            f'<div class="head"><h3>{escape(self.kernel)}</h3><span>{escape(self.summary)}</span>'
            f'<span class="q">errors are those against {self.against}</span></div>'
            f'<div class="scroll"><table class="t facts sides"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
            f"</table></div>{wrong}"
            f'<div class="scroll drawn">{self.plot().svg}</div>'
        )
        return fragment(content_id("ttx-validation", content), f"validation of {self.kernel}", content)


_GLYPHS: dict[State, str] = {"passed": "✓", "failed": "✗ failed", "refused": "– refused", "not done": "… not done"}
_WORST: tuple[State, ...] = ("failed", "not done", "refused", "passed")
_HEAD = ("", "case", "inputs", "max ULP", "max rel error", "cores")
_LEFT_COLUMNS = 3
_MANY_ULPS = 1000


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < _LEFT_COLUMNS else cell.rjust(width)


def _times(finding: CaseResult | None, state: State) -> tuple[str, str]:
    """The predicted time on a target, and how much of it the roofline is."""
    figures = finding.figures if finding is not None else None
    if figures is None or figures.us is None or figures.roofline_us is None:
        return ("–" if figures is not None else state, "–")
    return f"{figures.us:,.1f}", f"{figures.roofline_us / figures.us:.0%}"


def _ulps(count: float) -> str:
    """Last places, exactly where they are few."""
    return f"{count:,.1f}" if count < _MANY_ULPS else f"{count:.1e}"
