"""Run one step of a lowering and verify the program after it, or take both from another lowering that is alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ttexplore.errors import BackendError, TTExploreError, VerifyError
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.program import TirProgram
from ttexplore.options import Options
from ttexplore.passes.step import Applied, Pass
from ttexplore.passes.undeclared import DeclaredOptions, declared, hidden, shown_options, with_facts
from ttexplore.passes.verify import Verifier
from ttexplore.record import Span, replaced
from ttexplore.target import Target


class Runner:
    """Runs the steps of one lowering, one after another.

    `like` are lowerings for the same target: a step that got there the same program, but for facts that it does not
    read, and the same of what it declares to read, gives the same again, and does not run. A program that was verified
    there, after the same programs, is not verified again; no check reads those facts. `pipeline` is where steps that
    lower on trial find those after them.
    """

    def __init__(
        self, target: Target, options: Options, pipeline: Sequence[Pass], like: Iterable[Sequence[Applied]]
    ) -> None:
        self.target, self.options = target, options
        self.by_name = options.by_name
        self.pipeline = [leaf for step in pipeline for leaf in step.leaves]
        self.verifier = Verifier(target)
        # The program before the step, what the step reads besides, and what it sees of the program.
        self.shown: tuple[TirProgram, set[str], TirProgram] | None = None
        # The runs of the lowerings whose programs were the same so far, but for the facts.
        self.alike = [[leaf for applied in lowering for leaf in applied.leaves] for lowering in like if lowering]
        self.number = 0

    def run(self, step: Pass, program: TirProgram) -> Applied:
        """Run a step without parts. An error of it, or of the verifier, is part of the answer.

        Raises BackendError at the time limit and where the lowering is cancelled.
        """
        if not self.number:
            self.alike = [lowering for lowering in self.alike if _is_alike(lowering[0].before, program)]
        number = self.number
        self.number += 1
        own_options = {name: self.by_name[name] for name in step.options}
        alike = [
            lowering[number]
            for lowering in self.alike
            if number < len(lowering) and _can_be_shared(lowering[number], step)
        ]
        reads = {name for applied in (step, *self._later(step)) for name in applied.inputs(program)}
        inputs = declared(self.by_name, program.plan, reads)
        start = time.perf_counter()
        try:
            with errors_of_ours(f"the step {step.letter} {step.name}"):
                same = next((earlier for earlier in alike if _gives_the_same(earlier, inputs)), None)
                if same is not None:
                    after, shown_plan = same.after, same.plan
                else:
                    self.verifier.contracts.before(step, program.functions)
                    shown = self._shown(program, reads)
                    after = self._applied(step, shown, shown_options(own_options, reads))
                    shown_plan = after.plan
                    if after is shown and not alike and number:
                        # Nothing is new, and all of it is verified.
                        self.alike = []
                        self._establish(step, program)
                        seconds = time.perf_counter() - start
                        return Applied(
                            step, program, program, own_options, seconds, None, inputs, shown_plan, self.verifier
                        )
                alike = [applied for applied in alike if applied is same or _is_alike(applied.after, after)]
                assert shown_plan is not None, "others whose plan is not known are not shared"
                # The plan of one that is alike, so that what follows sees at once that it is.
                plan = with_facts(alike[0].after.plan if alike else shown_plan, shown_plan, program.plan, self.options)
                after = replaced(after, plan=plan, options=self.options)
                if alike and alike[0].verifier is not None:
                    self.verifier = alike[0].verifier
                else:
                    self.verifier = self.verifier.copy()
                    self._establish(step, after)
                    self.verifier.check(replaced(after, plan=hidden(plan)))
        except BackendError:
            # The lowering was cancelled, or is at its time limit: the kernel is not at fault.
            raise
        except TTExploreError as error:
            error.at(_annotation_line(program, own_options))
            if not isinstance(error, VerifyError):
                _tell(error, self.verifier.contracts.left_by(error))
            return Applied(step, program, program, own_options, time.perf_counter() - start, error)
        self.alike = [
            lowering
            for lowering in self.alike
            if any(lowering[number] is applied for applied in alike if number < len(lowering))
        ]
        seconds = time.perf_counter() - start
        return Applied(step, program, after, own_options, seconds, None, inputs, shown_plan, self.verifier)

    def _shown(self, program: TirProgram, reads: set[str]) -> TirProgram:
        """What a step with these inputs sees of a program: the same as the step before, if that has changed nothing."""
        if self.shown is None or self.shown[0] is not program or self.shown[1] != reads:
            options = cast(Options, DeclaredOptions(self.by_name, reads))
            self.shown = program, reads, replaced(program, plan=hidden(program.plan, reads), options=options)
        return self.shown[2]

    def _establish(self, step: Pass, program: TirProgram) -> None:
        if self.verifier.contracts.are_kept_by(step, program.functions):
            return
        contracts = self.verifier.contracts.copy()
        contracts.after(step, program.functions)
        self.verifier = self.verifier.with_contracts(contracts)

    def _applied(self, step: Pass, program: TirProgram, own_options: Mapping[str, object]) -> TirProgram:
        if not step.trial_until:
            return step.function(program, self.target, **own_options)
        return step.function(program, self.target, self._trial(step, program, own_options), **own_options)

    def _later(self, step: Pass) -> Sequence[Pass]:
        """The steps that a step lowers on trial."""
        if not step.trial_until:
            return ()
        letters = [leaf.letter for leaf in self.pipeline]
        return self.pipeline[letters.index(step.letter) + 1 : letters.index(step.trial_until) + 1]

    def _trial(self, step: Pass, program: TirProgram, own_options: Mapping[str, object]) -> Callable[..., TirProgram]:
        """A function that lowers on trial, with other options of the step, and without verifying."""
        later = self._later(step)

        def lowered(**changed: object) -> TirProgram:
            after = step.function(program, self.target, lowered, **{**own_options, **changed})
            for leaf in later:
                options = {name: getattr(program.options, name) for name in leaf.options}
                options |= {name: value for name, value in changed.items() if name in options}
                after = leaf.function(after, self.target, **options)
            return after

        return lowered


def _is_alike(first: TirProgram, second: TirProgram) -> bool:
    """Whether two programs are the same, but for the facts that most passes hand on."""
    return (
        first.shares_functions(second) and first.staging is second.staging and first.moves is second.moves
        and hidden(first.plan) == hidden(second.plan)
    )  # fmt: skip


def _can_be_shared(applied: Applied, step: Pass) -> bool:
    return applied.step is step and applied.error is None and applied.inputs is not None


def _gives_the_same(applied: Applied, inputs: Mapping[str, object]) -> bool:
    """Whether a step that ran on such a program gives the same for these inputs."""
    assert applied.inputs is not None, "it can be shared"
    # By their texts, which also tell dictionaries in another order apart.
    return all(repr(inputs[name]) == repr(value) for name, value in applied.inputs.items())


def _tell(error: TTExploreError, reasons: Iterable[str]) -> None:
    """Add to an error's hint which steps could have made the kernel lowerable, and what stopped them."""
    error.hint = "\n".join([*([error.hint] if error.hint else []), *(f"why: {reason}" for reason in reasons)])


def _annotation_line(program: TirProgram, options: Mapping[str, Any]) -> Span | None:
    """The line of the first annotation that set one of these options."""
    effective = (
        annotation
        for annotation in program.plan.annotations
        if annotation.taken and annotation.option in options and not annotation.tensor
    )
    return next((annotation.origin for annotation in effective if annotation.origin is not None), None)
