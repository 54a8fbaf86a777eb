"""The pipeline: read this first. `apply_defaults`, then 14 passes in five stages.

Half of the passes decide facts and write them into the plan, half rewrite the IR. A pass is a function from program
to program; its keyword arguments are the options that a user can change at that step. :mod:`ttexplore.options` defines
their meanings and defaults.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ttexplore.errors import BackendError, TTExploreError
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.program import Program
from ttexplore.options import Options, Partials
from ttexplore.passes.apply_defaults import apply_defaults
from ttexplore.passes.attach_tensor_accessor import attach_tensor_accessor
from ttexplore.passes.build_tile_dfg import build_tile_dfg
from ttexplore.passes.chosen_partials import with_chosen_partials
from ttexplore.passes.configure_tensor_accessor import configure_tensor_accessor
from ttexplore.passes.finalize_persistent_signature import finalize_persistent_signature
from ttexplore.passes.grid_to_core_grid import grid_to_core_grid
from ttexplore.passes.infer_tt_layout import infer_tt_layout
from ttexplore.passes.insert_compute_init import insert_compute_init
from ttexplore.passes.insert_dst_management import insert_dst_management
from ttexplore.passes.layout_aware_work_partition import layout_aware_work_partition
from ttexplore.passes.lower_cb_intrinsics import lower_cb_intrinsics
from ttexplore.passes.lower_shared_to_cb import lower_shared_to_cb
from ttexplore.passes.lower_tt_tile_intrinsics import lower_tt_tile_intrinsics
from ttexplore.passes.propagate_tt_layout import propagate_tt_layout
from ttexplore.passes.split_device_kernel import split_device_kernel
from ttexplore.passes.unseen import FIDELITY, NOTES, Facts, Unseen, hidden
from ttexplore.passes.verify import Verifier
from ttexplore.record import Span
from ttexplore.target import Target


@dataclass(frozen=True)
class Pass:
    """A step of the pipeline: its letter, its stage, its function, and whether it runs again for other sizes."""

    letter: str
    stage: str
    function: Callable[..., Program]
    by_sizes: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def docstring(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def summary(self) -> str:
        return self.docstring.partition("\n")[0]

    @functools.cached_property
    def options(self) -> tuple[str, ...]:
        """The names of the options; :class:`Options` has their types and defaults."""
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)


PIPELINE: tuple[Pass, ...] = (
    Pass("A0", "layout", apply_defaults),
    Pass("A1", "layout", infer_tt_layout, by_sizes=True),
    Pass("A2", "layout", propagate_tt_layout),
    Pass("A3", "layout", attach_tensor_accessor, by_sizes=True),
    Pass("B1", "partition", layout_aware_work_partition, by_sizes=True),
    Pass("B2", "partition", grid_to_core_grid),
    Pass("C1", "tiles", lower_shared_to_cb),
    Pass("C2", "tiles", lower_tt_tile_intrinsics),
    Pass("C3", "tiles", build_tile_dfg),
    Pass("D1", "kernels", split_device_kernel),
    Pass("D2", "kernels", configure_tensor_accessor),
    Pass("D3", "kernels", lower_cb_intrinsics),
    Pass("D4", "kernels", insert_compute_init),
    Pass("D5", "kernels", insert_dst_management),
    Pass("E1", "signature", finalize_persistent_signature),
)


@dataclass(frozen=True)
class Applied:
    """One run of a pass: the program before and after, or the error that stopped it.

    What another lowering may take from it: `looked_at` are all options that the pass looked at, its own and those of
    other passes, and the facts that most passes hand on (:mod:`ttexplore.passes.unseen`), by place; `facts` are these
    facts after it, which stand for those before it where they were handed on; `verifier` has checked the program after
    it. None if that is not known.
    """

    step: Pass
    before: Program
    after: Program
    options: dict[str, Any]
    seconds: float
    error: TTExploreError | None = None
    looked_at: Mapping[str, object] | None = None
    facts: Facts | None = None
    verifier: Verifier | None = None


def lower(
    program: Program,
    target: Target,
    options: Mapping[str, Any],
    steps: Sequence[Pass] = PIPELINE,
    like: Iterable[Sequence[Applied]] = (),
) -> Iterator[Applied]:
    """Run the pipeline, or some of its steps, and verify the program after each. The first error ends the run and is
    part of its step.

    `options` are the requested options by name; the others have their defaults. `like` are lowerings for the same
    target: a pass that found there the same program, but for facts that it did not look at, and looked at no option
    that differs, gives the same again, and does not run. A program that was verified there, after the same programs,
    is not verified again; no check looks at those facts.
    """
    used = Options(**options)
    program = dataclasses.replace(program.with_plan(options=used.plain), options=used)
    by_name = used.by_name
    verifier = Verifier(target)
    # Those whose programs were the same so far, but for the facts.
    alike = [one for one in like if one and _is_alike(one[0].before, program)]
    for number, step in enumerate(steps):
        own = {name: by_name[name] for name in step.options}
        others = [one[number] for one in alike if number < len(one) and _can_be_shared(one[number], step)]
        facts = Facts.of(program.plan)
        values = by_name | facts.by_place
        start = time.perf_counter()
        looking = _Looking(used, own)
        try:
            with errors_of_ours(f"the step {step.letter} {step.name}"):
                same = next((one for one in others if _gives_the_same(one, values)), None)
                if same is not None:
                    after, given, looked_at = same.after, same.facts, same.looked_at
                else:
                    plan = facts.unseen(looking.looked).put_into(program.plan)
                    seen = dataclasses.replace(program, plan=plan, options=cast(Options, looking))
                    after = _applied(step, seen, target, looking.own)
                    given, looked_at = Facts.of(after.plan), looking.at
                others = [one for one in others if one is same or _is_alike(one.after, after)]
                assert given is not None, "others whose facts are not known are not shared"
                # The plan of one that is alike, so that what follows sees at once that it is.
                plan = given.known(values).put_into(others[0].after.plan if others else after.plan)
                after = dataclasses.replace(after, plan=plan, options=used)
                if others and others[0].verifier is not None:
                    verifier = others[0].verifier
                else:
                    verifier = verifier.copy()
                    verifier.check(dataclasses.replace(after, plan=hidden(plan)))
        except BackendError:
            # The lowering was cancelled, or is at its time limit: the kernel is not at fault.
            raise
        except TTExploreError as error:
            error.at(_annotation_line(program, own))
            yield Applied(step, program, program, own, time.perf_counter() - start, error)
            return
        alike = [one for one in alike if any(one[number] is other for other in others if number < len(one))]
        yield Applied(
            step, program, after, own, time.perf_counter() - start, None, looked_at, given, verifier
        )  # fmt: skip
        program = dataclasses.replace(after, firings=())


def _applied(step: Pass, program: Program, target: Target, own: Mapping[str, object]) -> Program:
    if step is PIPELINE[0] and own["partials"] == "auto":
        return _chosen(program, target)
    return step.function(program, target, **own)


def _chosen(program: Program, target: Target) -> Program:
    """The program after A0, for which B1 is tried: what A0 does with partial sums decides which cores have work."""
    until = 1 + next(number for number, step in enumerate(PIPELINE) if step.function is layout_aware_work_partition)

    def lowered(partials: Partials, steps: Sequence[Pass]) -> Program:
        made = program
        for step in steps:
            own = {name: getattr(program.options, name) for name in step.options if name != "partials"}
            given = {"partials": partials} if "partials" in step.options else {}
            made = step.function(made, target, **own, **given)
        return made

    return with_chosen_partials(
        program, target, lambda partials: lowered(partials, PIPELINE[:until]),
        lambda partials: lowered(partials, PIPELINE[:1]),
    )  # fmt: skip


class _Looking:
    """Options that note which of them a pass looks at; `own` are those that it gets as arguments. The math fidelity can
    be handed on without that."""

    def __init__(self, options: Options, own: Mapping[str, object]) -> None:
        self._options = options
        self.at = {name: value for name, value in own.items() if name != FIDELITY}
        self._fidelity = Unseen(FIDELITY, options.math_fidelity, self.looked)
        self.own = {**own, FIDELITY: self._fidelity} if FIDELITY in own else own

    def looked(self, place: str, value: object) -> None:
        self.at[place] = value

    def __getattr__(self, name: str) -> object:
        if name == FIDELITY:
            return self._fidelity
        value = getattr(self._options, name)
        self.at |= {name: value} if name in self._options.by_name else self._options.by_name
        return value


def _is_alike(one: Program, other: Program) -> bool:
    """Whether two programs are the same, but for the facts that most passes hand on."""
    return (
        one.shares_functions(other) and one.staging is other.staging and hidden(one.plan) == hidden(other.plan)
    )  # fmt: skip


def _can_be_shared(one: Applied, step: Pass) -> bool:
    return one.step is step and one.error is None and one.looked_at is not None


def _gives_the_same(one: Applied, values: Mapping[str, object]) -> bool:
    """Whether a pass that ran on such a program gives the same with these options and facts."""
    assert one.looked_at is not None, "it can be shared"
    if len(one.before.plan.notes) != values[NOTES]:
        return False
    # By their texts, which also tell dictionaries in another order apart.
    return all(repr(values[name]) == repr(value) for name, value in one.looked_at.items())


def _annotation_line(program: Program, options: Mapping[str, Any]) -> Span | None:
    """The line of the first annotation that set one of these options."""
    taken = (one for one in program.plan.annotations if one.taken and one.option in options and not one.tensor)
    return next((one.origin for one in taken if one.origin is not None), None)
