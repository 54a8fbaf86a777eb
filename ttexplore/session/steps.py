"""The steps of a lowering: what each did, and how they are found by index, name or letter."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Self, TypeVar, cast

from ttexplore.characters import Printed
from ttexplore.errors import TTExploreError, UsageError, from_record, shown, unknown
from ttexplore.given import Parts, plain, whole, wrong
from ttexplore.plan import Plan
from ttexplore.record import Listing, StepRecord, from_json
from ttexplore.session.pass_names import pass_name
from ttexplore.session.results import StepDiff
from ttexplore.views.steps.diff import diff_html
from ttexplore.views.steps.step_changes import between
from ttexplore.views.steps.why import Why, why


class BaseStep(Printed, ABC):
    """The run of one pass."""

    @functools.cached_property
    @abstractmethod
    def record(self) -> StepRecord:
        """The step as plain data."""

    @property
    @abstractmethod
    def _pass(self) -> Any:
        """What has the name, letter, stage and summary of the pass."""

    @property
    def name(self) -> str:
        return self._pass.name

    @property
    def letter(self) -> str:
        return self._pass.letter

    @property
    def stage(self) -> str:
        return self._pass.stage

    @property
    def summary(self) -> str:
        return self._pass.summary

    @functools.cached_property
    @abstractmethod
    def listing(self) -> Listing:
        """The IR after the step, with the origins of each line."""

    @property
    @abstractmethod
    def error(self) -> TTExploreError | None: ...

    @functools.cached_property
    def parts(self) -> tuple[Self, ...]:
        """The steps that this one consists of, in order; none for most."""
        return ()

    @property
    def leaves(self) -> tuple[Self, ...]:
        """The parts of the step, or the step itself."""
        return self.parts or (self,)

    def diff(self, other: BaseStep | None = None) -> StepDiff:
        """The changes of the step, in the IR and in the plan; with another step, of this lowering or of another one,
        what differs from what that step left to what this step left.

        Raises UsageError if `other` is not a step.
        """
        if other is None:
            return StepDiff(self.record)
        if not isinstance(cast(object, other), BaseStep):
            raise wrong("the other step", other, 'a step, for example ex.steps["B2"]')
        return StepDiff(between(other.record, self.record))

    def why(self, line: int) -> Why:
        """The rules of the step that made a line of the program after it (counted from 1), and the lines before the
        step that they made it from.

        Raises UsageError for a line that the program does not have.
        """
        step = self.record
        return why(step, whole("a line of the program after the step", line, 1, len(step.after.lines)))

    def __str__(self) -> str:
        return f"{self.letter} {self.name}: {self.summary}\n\n{self.listing}"

    def __repr__(self) -> str:
        return f"<step {self.letter} {self.name}>"

    def _repr_html_(self) -> str:
        return diff_html(self.record)


class RecordedStep(BaseStep):
    """A step that is known from its record alone."""

    def __init__(self, record: StepRecord) -> None:
        self._record = record

    @functools.cached_property
    def record(self) -> StepRecord:
        return self._record

    @property
    def _pass(self) -> StepRecord:
        return self._record

    @property
    def index(self) -> int:
        return self._record.index

    @property
    def options(self) -> dict[str, Any]:
        """The options of this pass with the values that it used."""
        return Parts(f"option of {self.name}", self._record.options)

    @property
    def seconds(self) -> float:
        """The time of the pass, with the passes inside of it."""
        return self._record.seconds

    @property
    def plan(self) -> Plan:
        return from_json(Plan, self._record.plan_after)

    @functools.cached_property
    def parts(self) -> tuple[Self, ...]:
        """The steps that this one consists of, in order; none for most."""
        return tuple(map(type(self), self._record.parts))

    @functools.cached_property
    def listing(self) -> Listing:
        return self._record.after

    @property
    def error(self) -> TTExploreError | None:
        return from_record(self._record.error) if self._record.error else None


StepT = TypeVar("StepT", bound=BaseStep)


class Steps(Printed, Sequence[StepT], Generic[StepT]):
    """The steps of an exploration, by index, name or letter; ``steps.B1`` is ``steps["B1"]``. Parts of a step have
    names and letters, too: ``steps["A0.4"]``. Names from TileLang's documents are accepted
    (:mod:`ttexplore.session.pass_names`)."""

    def __init__(self, steps: Sequence[StepT], pipeline: Sequence[str] = ()) -> None:
        self._steps = tuple(steps)
        self._pipeline = tuple(pipeline)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[StepT]:
        return iter(self._steps)

    def __getitem__(self, key: Any) -> Any:
        """The step. Raises UsageError if there is no step with this index, name or letter."""
        key = plain(key)
        if isinstance(key, slice):
            return self._steps[key]
        if isinstance(key, int) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise UsageError("U001", f"there is no step {shown(key)}", hint=f"steps are 0 to {len(self) - 1}")
            return self._steps[key]
        if not isinstance(key, str):
            raise UsageError(
                "U001", f"there is no step {shown(key)}", hint="give a number, a name, or a letter such as B1"
            )
        for step in self._all():
            if key in (step.name, step.letter) or pass_name(key) == step.name:
                return step
        if key in self._pipeline or pass_name(key) in self._pipeline:
            failed = self._steps[-1].leaves[-1]
            raise UsageError("U006", f"step {key} was not reached: {failed.name} failed", hint=str(failed.error))
        letters = ", ".join(step.letter for step in self._steps)
        meant = unknown("step", key, self._names()).hint.partition("? ")
        hint = f"{meant[0]}? steps are {letters}" if meant[1] else f"steps are {letters}"
        raise UsageError("U001", f"there is no step {shown(key)}", hint=hint)

    def single(self, argument: str, key: object) -> StepT:
        """The step that an argument called `argument` names. Raises UsageError for any other value, and for a slice."""
        if isinstance(key, slice):
            raise wrong(argument, cast(object, key), "the number, name or letter of one step, for example B1")
        return self[key]

    def __getattr__(self, name: str) -> StepT:
        # Private names are protocol queries: whether this is a NumPy array, a widget.
        if not name.startswith("_"):
            for step in self._all():
                if name in (step.name, step.letter) or pass_name(name) == step.name:
                    return step
        raise AttributeError(f"there is no step {name!r}")

    def _all(self) -> Iterator[StepT]:
        """The steps, each followed by its parts."""
        for step in self._steps:
            yield step
            yield from step.parts

    def _names(self) -> list[str]:
        return [name for step in self._all() for name in (step.letter, step.name)]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names()]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return "\n".join(f"{step.letter}  {step.name}" for step in self._steps)
