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

from ttexplore.errors import TTExploreError
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
    """One run of a pass: the program before and after, or the error that stopped it. `looked_at` are all options that
    it looked at, its own and those of other passes; None if that is not known."""

    step: Pass
    before: Program
    after: Program
    options: dict[str, Any]
    seconds: float
    error: TTExploreError | None = None
    looked_at: Mapping[str, object] | None = None


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
    target: a pass that found there the same program, and looked at no option that differs, gives the same again, and
    does not run. What it gives is verified nevertheless.
    """
    used = Options(**options)
    program = dataclasses.replace(program.with_plan(options=used.plain), options=used)
    by_name = used.by_name
    verifier = Verifier(target)
    alike = [one for one in like if one and _starts_with(one[0].before, program)]
    for number, step in enumerate(steps):
        own = {name: by_name[name] for name in step.options}
        alike = [one for one in alike if number < len(one) and _gives_the_same(one[number], step, by_name)]
        start = time.perf_counter()
        looking = _Looking(used, own)
        try:
            with errors_of_ours(f"the step {step.letter} {step.name}"):
                if alike:
                    after = alike[0][number].after.with_plan(options=program.plan.options)
                else:
                    seen = dataclasses.replace(program, options=cast(Options, looking))
                    after = step.function(seen, target, **own) if not _is_choice(step, own) else _chosen(seen, target)
                after = dataclasses.replace(after, options=used)
                verifier.check(after)
        except TTExploreError as error:
            error.at(_annotation_line(program, own))
            yield Applied(step, program, program, own, time.perf_counter() - start, error)
            return
        looked_at = alike[0][number].looked_at if alike else looking.at
        yield Applied(step, program, after, own, time.perf_counter() - start, looked_at=looked_at)
        program = dataclasses.replace(after, firings=())


def _is_choice(step: Pass, options: Mapping[str, object]) -> bool:
    return step is PIPELINE[0] and options["partials"] == "auto"


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
    """Options that note which of them a pass looks at."""

    def __init__(self, options: Options, own: Mapping[str, object]) -> None:
        self._options = options
        self.at = dict(own)

    def __getattr__(self, name: str) -> object:
        value = getattr(self._options, name)
        self.at |= {name: value} if name in self._options.by_name else self._options.by_name
        return value


def _starts_with(first: Program, program: Program) -> bool:
    return first.shares_functions(program) and first.plan.replace(options=program.plan.options) == program.plan


def _gives_the_same(one: Applied, step: Pass, by_name: Mapping[str, object]) -> bool:
    if one.step is not step or one.error is not None or one.looked_at is None:
        return False
    # By their texts, which also tell dictionaries in another order apart.
    return all(repr(by_name[name]) == repr(value) for name, value in one.looked_at.items())


def _annotation_line(program: Program, options: Mapping[str, Any]) -> Span | None:
    """The line of the first annotation that set one of these options."""
    taken = (one for one in program.plan.annotations if one.taken and one.option in options and not one.tensor)
    return next((one.origin for one in taken if one.origin is not None), None)
