"""The steps of a lowering: the passes, the sub-steps of those that do several things, and their runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttexplore.errors import TTExploreError
from ttexplore.ir.program import TirProgram
from ttexplore.passes.undeclared import FIDELITY
from ttexplore.passes.verify import Verifier
from ttexplore.passes.verify.predicates import Predicate
from ttexplore.plan import Plan
from ttexplore.record import replaced


@dataclass(frozen=True)
class Pass:
    """A step of the pipeline: its letter, its stage and its function, whose keyword arguments are its options.

    With `parts`, it does several things, one after another, each a step of its own; `function` then does them all.
    `by_sizes` steps run again for other sizes. `requires` must hold of the program before the step, `establishes` holds
    after it and after each later step, until one `ends` it; the verifier checks all three. A function with
    `trial_until` gets, as its third argument, a function that lowers on trial up to the step of this letter, for other
    options of its own.

    `reads` are the names of what it reads besides the program and its own options: options of other steps, and facts
    that most steps hand on unread (:mod:`ttexplore.passes.undeclared`); a function where the program decides that.
    Reading another one is an error.
    """

    letter: str
    stage: str
    function: Callable[..., TirProgram]
    by_sizes: bool = False
    parts: tuple[Pass, ...] = ()
    requires: tuple[Predicate, ...] = ()
    establishes: tuple[Predicate, ...] = ()
    ends: tuple[Predicate, ...] = ()
    trial_until: str = ""
    reads: tuple[str, ...] | Callable[[TirProgram], tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def docstring(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def summary(self) -> str:
        return self.docstring.partition("\n")[0]

    @property
    def leaves(self) -> tuple[Pass, ...]:
        """The steps that change the program: its parts, or the step itself."""
        return self.parts or (self,)

    def inputs(self, program: TirProgram) -> tuple[str, ...]:
        """The names of what it reads besides the program; its own options too, but for the math fidelity."""
        reads = self.reads(program) if callable(self.reads) else self.reads
        return (*reads, *(name for name in self.options if name != FIDELITY))

    @functools.cached_property
    def options(self) -> tuple[str, ...]:
        """The names of the options; :class:`Options` has their types and defaults."""
        if self.parts:
            return tuple(dict.fromkeys(name for step_part in self.parts for name in step_part.options))
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Applied:
    """One run of a step: the program before and after, or the error that stopped it; `parts` are the runs of its parts.

    What another lowering may take from it: `inputs` are the values of what the step declares to read, by name; `plan`
    is the one that it made, without what it handed on unread (:mod:`ttexplore.passes.undeclared`); `verifier` has
    checked the program after it. None if that is not known.
    """

    step: Pass
    before: TirProgram
    after: TirProgram
    options: dict[str, Any]
    seconds: float
    error: TTExploreError | None = None
    inputs: Mapping[str, object] | None = None
    plan: Plan | None = None
    verifier: Verifier | None = None
    parts: tuple[Applied, ...] = ()

    @property
    def leaves(self) -> tuple[Applied, ...]:
        """The runs of the parts, or the run itself."""
        return self.parts or (self,)

    @classmethod
    def of_parts(cls, step: Pass, parts: Sequence[Applied], options: Mapping[str, Any]) -> Applied:
        """The run of a step as the sum of the runs of its parts; of a step without parts, the run itself."""
        if not step.parts:
            (alone,) = parts
            return alone
        before, last = parts[0].before, parts[-1]
        firings = tuple(firing for step_run in parts for firing in step_run.after.firings)
        after = before if last.error else replaced(last.after, firings=firings)
        own_options = {name: options[name] for name in step.options}
        seconds = sum(step_run.seconds for step_run in parts)
        return cls(step, before, after, own_options, seconds, last.error, parts=tuple(parts))
