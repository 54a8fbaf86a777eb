"""One launch, lowered here: its steps can be executed, and its time predicted."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from numpy.typing import NDArray

from ttexplore.backends.base import Execution, simulation_time
from ttexplore.backends.registry import BACKENDS, BackendEntry
from ttexplore.clock.estimate import Estimate, estimate
from ttexplore.clock.program import core_classes
from ttexplore.control import FREE, Control
from ttexplore.emit import emit
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.given import Parts
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.arithmetic.sizes import bound_shape
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.build import dtype_of
from ttexplore.ir.interpreter import Interpretation, interpret
from ttexplore.ir.listing import program_listing
from ttexplore.ir.made import firing_records
from ttexplore.ir.program import TirProgram
from ttexplore.ir.tessera import tessera
from ttexplore.language.tracer.kernel import TracedKernel
from ttexplore.passes.launches.tensor_roles import Role, tensor_roles
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.passes.step import Applied, Pass
from ttexplore.plan import Plan
from ttexplore.porting.checks import LaunchFacts
from ttexplore.record import Listing, StepRecord, Trace, to_json
from ttexplore.session.inputs import Tensor
from ttexplore.session.lowering import READ, WRITTEN, Lowering
from ttexplore.session.steps import BaseStep
from ttexplore.target import Target


@dataclass(frozen=True, eq=False, repr=False)
class Step(BaseStep):
    """The run of one pass: the program and plan before and after, its options, and the time that it took."""

    index: int
    applied: Applied
    previous: Step | None = None

    @property
    def _pass(self) -> Pass:
        return self.applied.step

    @property
    def options(self) -> dict[str, Any]:
        """The options of this pass with the values that it used."""
        return Parts(f"option of {self.name}", self.applied.options)

    @property
    def seconds(self) -> float:
        return self.applied.seconds

    @property
    def error(self) -> TTExploreError | None:
        return self.applied.error

    @property
    def before(self) -> TirProgram:
        return self.applied.before

    @property
    def after(self) -> TirProgram:
        return self.applied.after

    @functools.cached_property
    def parts(self) -> tuple[Step, ...]:
        """The steps that this one consists of, in order; none for most."""
        return steps_of(self.applied.parts, self.previous)

    @property
    def plan(self) -> Plan:
        return self.after.plan

    @functools.cached_property
    def listing(self) -> Listing:
        """The IR after the step, with the origins of each line."""
        if self.after.shares_functions(self.before):
            return self._listing_before
        return program_listing(self.after, self.name)

    @functools.cached_property
    def _listing_before(self) -> Listing:
        if self.previous is not None and self.previous.after.shares_functions(self.before):
            return dataclasses.replace(self.previous.listing, name=self.name)
        return program_listing(self.before, self.name)

    @functools.cached_property
    def record(self) -> StepRecord:
        """The step as plain data."""
        before, after = self._listing_before, self.listing
        firings = firing_records(self.before, self.after, (before, after))
        sentences = {rule.rule.name: rule.rule.sentence for rule in self.after.firings}
        plans = [to_json(program.plan) for program in (self.before, self.after)]
        return StepRecord(
            self.index, self.name, self.letter, self.stage, self.summary, self.applied.step.docstring,
            before.text != after.text, plans[0] != plans[1], self.seconds, before, after, plans[0], plans[1],
            to_json(self.options), self.error.record() if self.error else None,
            {firing.rule: sentences[firing.rule] for firing in firings}, firings,
            tuple(firing.record for firing in self.parts),
        )  # fmt: skip


def steps_of(applied: Iterable[Applied], before: Step | None = None) -> tuple[Step, ...]:
    steps: list[Step] = []
    for index, step in enumerate(applied):
        steps.append(Step(index, step, steps[-1] if steps else before))
    return tuple(steps)


Array = NDArray[Any]
_PIPELINE = tuple(name for step in PIPELINE for row in (step, *step.parts) for name in (row.name, row.letter))


@dataclass(frozen=True, eq=False)
class Lowered(Lowering):
    """A launch with the steps of its lowering, and the options that it was lowered with."""

    kernel: TracedKernel
    target: Target
    options: dict[str, Any]
    steps: tuple[Step, ...]
    pipeline = _PIPELINE

    @property
    def plan(self) -> Plan:
        return self.steps[-1].after.plan

    @property
    def first(self) -> TirProgram:
        """The program before any step."""
        return self.steps[0].before

    @property
    def final(self) -> TirProgram:
        """The program after the last step. Raises the lowering's error, if it failed."""
        if self.error is not None:
            raise self.error
        return self.steps[-1].after

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        final = self.final
        with errors_of_ours("writing the C++"):
            return Parts("file", emit(final.functions, final.plan))

    @functools.cached_property
    def roles(self) -> dict[str, Role]:
        return tensor_roles(self.kernel.function)

    @property
    def tensors(self) -> list[Tensor]:
        return [
            Tensor(str(p.name), bound_shape(p, self.plan.size_values), dtype_of(p))
            for p in self.kernel.function.params
            if is_buffer(p)
        ]

    def run(
        self, program: TirProgram, arrays: tuple[Array, ...], control: Control = FREE, *, unit: float | None = None,
        errors: Mapping[str, Array] | None = None, rounds: bool = True, numbers: bool = False,
    ) -> Interpretation:  # fmt: skip
        """Interpret a step's program with tensors in the formats of the final plan: early plans lack layouts."""
        plan = program.plan if program.plan.layouts else program.plan.replace(layouts=self.plan.layouts)
        with errors_of_ours("interpreting the kernel"):
            return interpret(
                program.functions, plan, arrays, dict(self.roles),
                control=control, unit=unit, errors=errors, rounds=rounds, numbers=numbers,
            )  # fmt: skip

    def interpreted(self, backend: BackendEntry, arrays: tuple[Array, ...], control: Control) -> Execution:
        """A run on a backend that executes the kernel or its IR."""
        result = self.run(self.first if backend is BACKENDS["reference"] else self.final, arrays, control)
        return Execution(result.outputs, result.seconds, None, simulation_time(result.seconds))

    def in_tessera(self) -> str:
        """The kernel in the style of Tessera."""
        with errors_of_ours("writing the kernel in Tessera"):
            return tessera(self.kernel.function, self.kernel.name, self._names(WRITTEN))

    @functools.cached_property
    def estimate(self) -> Estimate:
        """The predicted time, which no elements decide."""
        return self._predicted(None)

    def estimate_for(self, arrays: tuple[Array, ...], control: Control) -> Estimate:
        """The estimate for these inputs: the final program runs if elements decide something."""
        return self.estimate_by(lambda: self.run(self.final, arrays, control, numbers=True))

    def estimate_by(self, run: Callable[[], Interpretation]) -> Estimate:
        """The estimate for the inputs of a `run` of the final program, which happens if elements decide something."""
        return self._predicted(run)

    def _predicted(self, run: Callable[[], Interpretation] | None) -> Estimate:
        final, numbers = self.final, None if run is None else lambda: run().numbers
        with errors_of_ours("predicting the time"):
            classes = functools.partial(core_classes, final.functions, final.plan, self.target, numbers)
            return estimate(classes(), final.plan, self.target, lambda: classes(marked=True))

    def porting_facts(self, checked: str | None) -> LaunchFacts:
        """What the porting checklist asks about; `checked` is the first step that differs from the reference."""
        predicted, why = None, None
        try:
            predicted = self.estimate
        except UsageError as error:
            why = error.record()
        spans = {str(p.name): span_of(p) for p in self.kernel.function.params if is_buffer(p)}
        return LaunchFacts(
            self.plan, self.target, self.steps[0].record.before, self.files["compute.cpp"],
            {name: span for name, span in spans.items() if span is not None},
            tuple(self._names(READ)), tuple(self._names(WRITTEN)), predicted, why, checked,
        )  # fmt: skip

    def _names(self, roles: Sequence[str]) -> list[str]:
        return [name for name, role in self.roles.items() if role in roles]

    @functools.cached_property
    def trace(self) -> Trace:
        files = {} if self.error is not None else self.files
        versions = {name: metadata.version(name) for name in ("apache-tvm", "numpy")}
        return Trace(
            self.kernel.name, self.target.name, self.kernel.source, tuple(step.record for step in self.steps), files,
            to_json(self.plan), versions,
        )  # fmt: skip
