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
from ttexplore.passes.unseen import CHOICES, FIDELITY, NOTES, Facts, Unseen, hidden
from ttexplore.passes.verify import Verifier
from ttexplore.record import Span, replaced
from ttexplore.target import Target


class Runner:
    """Runs the steps of one lowering, one after another.

    `like` are lowerings for the same target: a pass that got there the same program, but for facts that it did not look
    at, and looked at no option that differs, gives the same again, and does not run. A program that was verified there,
    after the same programs, is not verified again; no check looks at those facts. `pipeline` is where steps that lower
    on trial find those after them.
    """

    def __init__(
        self, target: Target, options: Options, pipeline: Sequence[Pass], like: Iterable[Sequence[Applied]]
    ) -> None:
        self.target, self.options = target, options
        self.by_name = options.by_name
        self.pipeline = [leaf for step in pipeline for leaf in step.leaves]
        self.verifier = Verifier(target)
        self.looking = _Looking(options)
        # The program before the step, and what the step sees of it.
        self.seen: tuple[TirProgram, TirProgram] | None = None
        # The runs of the lowerings whose programs were the same so far, but for the facts.
        self.alike = [[leaf for one in lowering for leaf in one.leaves] for lowering in like if lowering]
        self.number = 0

    def run(self, step: Pass, program: TirProgram) -> Applied:
        """Run a step without parts. An error of it, or of the verifier, is part of the answer.

        Raises BackendError at the time limit and where the lowering is cancelled.
        """
        if not self.number:
            self.alike = [one for one in self.alike if _is_alike(one[0].before, program)]
        number = self.number
        self.number += 1
        own = {name: self.by_name[name] for name in step.options}
        others = [one[number] for one in self.alike if number < len(one) and _can_be_shared(one[number], step)]
        start = time.perf_counter()
        looking = self.looking
        looking.begin(own)
        try:
            with errors_of_ours(f"the step {step.letter} {step.name}"):
                facts = Facts.of(program.plan)
                same = next((one for one in others if _gives_the_same(one, self.by_name | facts.by_place)), None)
                if same is not None:
                    after, handed_on, looked_at = same.after, same.facts, same.looked_at
                else:
                    self.verifier.contracts.before(step, program.functions)
                    seen = self._seen(program, facts)
                    after = self._applied(step, seen, looking.own)
                    handed_on, looked_at = Facts.of(after.plan), looking.at
                    if after is seen and not others and number:
                        # Nothing is new, and all of it is verified.
                        self.alike = []
                        self._establish(step, program)
                        seconds = time.perf_counter() - start
                        return Applied(step, program, program, own, seconds, None, looked_at, handed_on, self.verifier)
                others = [one for one in others if one is same or _is_alike(one.after, after)]
                assert handed_on is not None, "others whose facts are not known are not shared"
                # The plan of one that is alike, so that what follows sees at once that it is.
                values = self.by_name | facts.by_place
                plan = handed_on.known(values).put_into(others[0].after.plan if others else after.plan)
                after = replaced(after, plan=plan, options=self.options)
                if others and others[0].verifier is not None:
                    self.verifier = others[0].verifier
                else:
                    self.verifier = self.verifier.copy()
                    self._establish(step, after)
                    self.verifier.check(replaced(after, plan=hidden(plan)))
        except BackendError:
            # The lowering was cancelled, or is at its time limit: the kernel is not at fault.
            raise
        except TTExploreError as error:
            error.at(_annotation_line(program, own))
            if not isinstance(error, VerifyError):
                _tell(error, self.verifier.contracts.left_by(error))
            return Applied(step, program, program, own, time.perf_counter() - start, error)
        self.alike = [one for one in self.alike if any(one[number] is other for other in others if number < len(one))]
        seconds = time.perf_counter() - start
        return Applied(step, program, after, own, seconds, None, looked_at, handed_on, self.verifier)

    def _seen(self, program: TirProgram, facts: Facts) -> TirProgram:
        """What steps see of a program, of which no step has changed anything since the last one saw it."""
        if self.seen is None or self.seen[0] is not program:
            plan = facts.unseen(self.looking.looked).put_into(program.plan)
            self.seen = program, replaced(program, plan=plan, options=cast(Options, self.looking))
        return self.seen[1]

    def _establish(self, step: Pass, program: TirProgram) -> None:
        if self.verifier.contracts.are_kept_by(step, program.functions):
            return
        contracts = self.verifier.contracts.copy()
        contracts.after(step, program.functions)
        self.verifier = self.verifier.with_contracts(contracts)

    def _applied(self, step: Pass, program: TirProgram, own: Mapping[str, object]) -> TirProgram:
        if not step.trial_until:
            return step.function(program, self.target, **own)
        return step.function(program, self.target, self._trial(step, program, own), **own)

    def _trial(self, step: Pass, program: TirProgram, own: Mapping[str, object]) -> Callable[..., TirProgram]:
        """A function that lowers on trial, with other options of the step, and without verifying."""
        letters = [one.letter for one in self.pipeline]
        later = self.pipeline[letters.index(step.letter) + 1 : letters.index(step.trial_until) + 1]

        def lowered(**changed: object) -> TirProgram:
            after = step.function(program, self.target, lowered, **{**own, **changed})
            for one in later:
                options = {name: getattr(program.options, name) for name in one.options}
                options |= {name: value for name, value in changed.items() if name in options}
                after = one.function(after, self.target, **options)
            return after

        return lowered


class _Looking:
    """Options that note which of them a pass looks at; `own` are those that it gets as arguments. The math fidelity can
    be handed on without that."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._fidelity = Unseen(FIDELITY, options.math_fidelity, self.looked)
        self.begin({})

    def begin(self, own: Mapping[str, object]) -> None:
        """Note from here on what the next pass looks at."""
        self.at = {name: value for name, value in own.items() if name != FIDELITY}
        self.own = {**own, FIDELITY: self._fidelity} if FIDELITY in own else own

    def looked(self, place: str, value: object) -> None:
        self.at[place] = value

    def __getattr__(self, name: str) -> object:
        if name == FIDELITY:
            return self._fidelity
        value = getattr(self._options, name)
        self.at |= {name: value} if name in self._options.by_name else self._options.by_name
        return value


def _is_alike(one: TirProgram, other: TirProgram) -> bool:
    """Whether two programs are the same, but for the facts that most passes hand on."""
    return (
        one.shares_functions(other) and one.staging is other.staging and one.moves is other.moves
        and hidden(one.plan) == hidden(other.plan)
    )  # fmt: skip


def _can_be_shared(one: Applied, step: Pass) -> bool:
    return one.step is step and one.error is None and one.looked_at is not None


def _gives_the_same(one: Applied, values: Mapping[str, object]) -> bool:
    """Whether a pass that ran on such a program gives the same with these options and facts."""
    assert one.looked_at is not None, "it can be shared"
    plan = one.before.plan
    if (len(plan.notes), len(plan.choices)) != (values[NOTES], values[CHOICES]):
        return False
    # By their texts, which also tell dictionaries in another order apart.
    return all(repr(values[name]) == repr(value) for name, value in one.looked_at.items())


def _tell(error: TTExploreError, reasons: Iterable[str]) -> None:
    """Add to an error's hint which steps could have made the kernel lowerable, and what stopped them."""
    error.hint = "\n".join([*([error.hint] if error.hint else []), *(f"why: {one}" for one in reasons)])


def _annotation_line(program: TirProgram, options: Mapping[str, Any]) -> Span | None:
    """The line of the first annotation that set one of these options."""
    taken = (one for one in program.plan.annotations if one.taken and one.option in options and not one.tensor)
    return next((one.origin for one in taken if one.origin is not None), None)
