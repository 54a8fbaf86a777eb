"""What a sweep found: a table, a drawing, and the best schedule as an exploration."""

from __future__ import annotations

import collections
import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ttexplore.characters import Printed
from ttexplore.errors import UsageError, from_record
from ttexplore.given import named, whole
from ttexplore.optional import install, optional
from ttexplore.session.results import Drawing
from ttexplore.sweeping.cost import LoweringFigures
from ttexplore.sweeping.evaluate import PointResult
from ttexplore.sweeping.space import Point
from ttexplore.target import Target
from ttexplore.views.figures.pareto import ParetoPoint, pareto_svg
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.theme import fragment

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

State = Literal["verified", "proven", "wrong", "refused", "not done"]
_FIGURES = tuple(field.name for field in dataclasses.fields(LoweringFigures))
# The columns that follow those of the space.
COLUMNS = ("state", *_FIGURES, "bound", "pcc", "code", "reason", "line")
# What can be drawn along an axis, and what it is called.
_AXES = {"l1_bytes": "bytes of L1 per core", "dram_bytes": "bytes from and to DRAM", "used_cores": "cores with work",
         "estimate_us": "estimated time, µs"}  # fmt: skip
SHOWN_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Printed):
    """The result of :func:`ttexplore.sweep`.

    `names` are those of the space, `points` the schedules in its order, `outcomes` what became of each; None for one
    that was not done because the sweep was stopped before, in which case it is not `complete`.
    """

    kernel: str
    names: tuple[str, ...]
    points: tuple[Point, ...]
    outcomes: tuple[PointResult | None, ...]
    complete: bool
    # What `explore` takes.
    source: Any

    def table(self) -> list[dict[str, Any]]:
        """One row for each point, in the order of the space, as plain values.

        After the values of the space, a row has the `state`: ``verified``; ``proven`` by a run on the emulator;
        ``wrong``, if that run gave another result than the kernel or ended with a fault; ``refused``; or ``not done``.
        `estimate_us` is the estimate of the time in microseconds, `dram_bytes` the bytes from and to DRAM, `l1_bytes`
        those of the circular buffers of a core, `used_cores` the cores with work, `bound` what bounds the time (of the
        ten best points, which are those that are printed), `pcc` that of the run. A refused row has the `code` and the
        `reason`, and the `line` of the kernel. What is not known is None.
        """
        return [self._row(number) for number in range(len(self.points))]

    def _row(self, number: int) -> dict[str, Any]:
        settings, outcome = self.points[number].given, self.outcomes[number] or PointResult()
        row: dict[str, Any] = {name: _plain(settings.get(name)) for name in self.names}
        row["state"] = self.state(number)
        row |= {name: getattr(outcome.figures, name, None) for name in _FIGURES}
        row["bound"] = outcome.bound
        row["pcc"] = outcome.proof.pcc if outcome.proof else None
        error = outcome.error
        row["code"], row["reason"] = (error.code, error.message) if error else (None, None)
        row["line"] = str(error.span) if error and error.span else None
        return row

    def frame(self) -> Any:
        """The table as a DataFrame of pandas. Raises BackendError if pandas is not installed."""
        return optional("pandas", install("pandas"), "use .table()").DataFrame(self.table())

    def state(self, number: int) -> State:
        """What became of the point of this number, counted from 0. Raises UsageError for other numbers."""
        outcome = self.outcomes[self._checked(number)]
        if outcome is None:
            return "not done"
        if outcome.figures is None:
            return "refused"
        match outcome.proof.passed if outcome.proof else None:
            case True:
                return "proven"
            case False:
                return "wrong"
            case None:
                return "verified"

    @functools.cached_property
    def ranking(self) -> tuple[int, ...]:
        """The numbers of the usable points, the best first: those with the shorter time, and of the same time those
        that need less L1. Points whose time is not known come last, and of several that are alike the first."""
        ranked: list[tuple[bool, float, int, int]] = []
        for number, outcome in enumerate(self.outcomes):
            if outcome is not None and outcome.figures is not None and self.state(number) != "wrong":
                time = outcome.figures.estimate_us
                ranked.append((time is None, time or 0.0, outcome.figures.l1_bytes, number))
        return tuple(row[-1] for row in sorted(ranked))

    @property
    def winner(self) -> int:
        """The number of the best point: the first of the ranking that is proven or, if none is, the first.

        Raises UsageError if no point of the space can be lowered.
        """
        if not self.ranking:
            if not any(self.outcomes):
                raise UsageError("U023", "no schedule of the space was tried", hint="the sweep was stopped before")
            errors = [outcome.error for outcome in self.outcomes if outcome and outcome.error]
            counted = collections.Counter(error.code for error in errors)
            first = next((error for error in errors if error.code == counted.most_common(1)[0][0]), None)
            why = f"the most frequent reason: {from_record(first)}" if first else "the sweep was stopped before"
            raise UsageError("U023", "no schedule of the space can be lowered", hint=why)
        return next((number for number in self.ranking if self.state(number) == "proven"), self.ranking[0])

    @functools.cached_property
    def best(self) -> Exploration:
        """The best schedule as an exploration. Raises UsageError if no point of the space can be lowered."""
        return self.explore(self.winner)

    def explore(self, number: int) -> Exploration:
        """The exploration of the point of this number, counted from 0. A refused one ends at its error.

        Raises UsageError for other numbers, and for a point that cannot be traced its error.
        """
        from ttexplore.exploration import explore

        point = self.points[self._checked(number)]
        arguments: dict[str, Any] = dict(point.arguments)
        return explore(self.source, target=point.target, options=point.options, **arguments)

    def _checked(self, number: int) -> int:
        return whole("the number of a point", number, 0, len(self.points) - 1)

    def pareto(self, x: str = "l1_bytes", y: str = "estimate_us") -> Drawing:
        """The usable points as a drawing, with the front of those that no other one beats in `x` and `y`.

        Both are one of ``l1_bytes``, ``dram_bytes``, ``used_cores`` and ``estimate_us``. Raises UsageError for others.
        """
        x, y = named("x", x, _AXES), named("y", y, _AXES)
        winner = self.winner if self.ranking else None
        plotted: list[ParetoPoint] = []
        for number in self.ranking:
            row = self._row(number)
            if row[x] is not None and row[y] is not None:
                plotted.append(ParetoPoint(float(row[x]), float(row[y]), self.schedule(number), number == winner))
        return Drawing(pareto_svg(plotted, _AXES[x], _AXES[y], f"schedules of {self.kernel}"))

    # Showing

    def schedule(self, number: int) -> str:
        """The values of a point as text: ``block_M=64 policy=strided``. Raises UsageError for numbers of no point."""
        settings = self.points[self._checked(number)].given
        return " ".join(f"{name}={visible(_text(settings[name]))}" for name in self.names if name in settings)

    @property
    def summary(self) -> str:
        """What became of the points, in one line."""
        counted = collections.Counter(self.state(number) for number in range(len(self.points)))
        verified = counted["verified"] + counted["proven"] + counted["wrong"]
        phrases = [f"{plural(len(self.points), 'point')}: {verified:,} verified"]
        phrases += [f"{counted[state]:,} {told}" for state, told in _COUNTED.items() if counted[state]]
        return ", ".join(phrases)

    def _best_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for rank, number in enumerate(self.ranking[:SHOWN_ROWS], 1):
            row = self._row(number)
            time = "–" if row["estimate_us"] is None else f"{row['estimate_us']:,.1f}"
            dram = "–" if row["dram_bytes"] is None else f"{row['dram_bytes'] / 1024:,.0f}"
            proven = "✓" if row["state"] == "proven" else ""
            l1 = f"{row['l1_bytes'] / 1024:,.0f}"
            rows.append((str(rank), proven, time, row["bound"] or "–", dram, l1, self.schedule(number)))
        return rows

    def _refusals(self) -> list[tuple[int, str, str]]:
        """How many points were refused with each code at each line, the first message, and the first such point."""
        groups: dict[tuple[str, str], list[int]] = {}
        for number, outcome in enumerate(self.outcomes):
            if outcome is not None and outcome.error is not None:
                groups.setdefault((outcome.error.code, str(outcome.error.span or "")), []).append(number)
        refusals: list[tuple[int, str, str]] = []
        for numbers in groups.values():
            first = self.outcomes[numbers[0]]
            assert first is not None, "it is one of the refused"
            assert first.error is not None, "it is one of the refused"
            refusals.append((len(numbers), first.error.headline, self.schedule(numbers[0])))
        return sorted(refusals, key=lambda refusal: -refusal[0])

    def __repr__(self) -> str:
        return f"<sweep of {self.kernel}, {self.summary}>"

    def __str__(self) -> str:
        lines = [f"{self.kernel}, {self.summary}", ""]
        rows = [_HEAD, *self._best_rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
        for row in rows:
            cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)]
            lines.append("  ".join([*cells, row[-1]]))
        if not self.ranking:
            lines[-1] = f"no schedule of the space {'can be lowered' if any(self.outcomes) else 'was tried'}"
        elif len(self.ranking) > SHOWN_ROWS:
            lines.append(f"and {len(self.ranking) - SHOWN_ROWS:,} more")
        for count, headline, schedule in self._refusals():
            lines += ["", f"{count:,} refused: {headline}", f"  the first: {schedule}"]
        for number, outcome in enumerate(self.outcomes):
            if outcome is not None and outcome.proof is not None and not outcome.proof.passed:
                lines += ["", f"not proven: {self.schedule(number)}", f"  {outcome.proof.message}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._best_rows())
        refused = "".join(
            f'<p>{count:,} refused: {escape(headline)} <span class="q">the first: {escape(schedule)}</span></p>'
            for count, headline, schedule in self._refusals()
        )
        drawn = f'<div class="scroll drawn">{self.pareto().svg}</div>' if self.ranking else ""
        content = (
            f'<div class="head"><h3>{escape(self.kernel)}</h3><span>{escape(self.summary)}</span></div>'
            f'<table class="t facts"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{refused}{drawn}'
        )
        return fragment(content_id("ttx-sweep", content), f"sweep of {self.kernel}", content)


_HEAD = ("#", "✓", "estimate µs", "bound", "DRAM KiB", "L1 KiB", "schedule")
_COUNTED: dict[State, str] = {
    "proven": "proven by a run", "wrong": "wrong in a run", "refused": "refused", "not done": "not done",
}  # fmt: skip


def _text(value: object) -> str:
    return str(_plain(value))


def _plain(value: object) -> object:
    """A value for a table: its name, where it is a target."""
    return value.name if isinstance(value, Target) else value
