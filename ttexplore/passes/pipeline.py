"""The pipeline: read this first. `apply_defaults`, then 14 passes in five stages.

Half of the passes decide facts and write them into the plan, half rewrite the IR. A pass is a function from program
to program; its keyword arguments are the options that a user can change at that step.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttexplore.errors import TTExploreError, UsageError
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.program import Program
from ttexplore.language.annotations import Annotation
from ttexplore.layout_request import LayoutRequest, layout_request
from ttexplore.passes.apply_defaults import apply_defaults
from ttexplore.passes.attach_tensor_accessor import attach_tensor_accessor
from ttexplore.passes.build_tile_dfg import build_tile_dfg
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
from ttexplore.plan import KernelAnnotation
from ttexplore.record import Span, to_json
from ttexplore.target import Target


@dataclass(frozen=True)
class Pass:
    """A step of the pipeline: its letter, its stage and its function."""

    letter: str
    stage: str
    function: Callable[..., Program]

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
    def options(self) -> dict[str, Any]:
        """The options and their defaults."""
        return dict(_options_of(self.function))


@functools.cache
def _options_of(function: Callable[..., Program]) -> tuple[tuple[str, Any], ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple((p.name, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY)


PIPELINE: tuple[Pass, ...] = (
    Pass("A0", "layout", apply_defaults),
    Pass("A1", "layout", infer_tt_layout),
    Pass("A2", "layout", propagate_tt_layout),
    Pass("A3", "layout", attach_tensor_accessor),
    Pass("B1", "partition", layout_aware_work_partition),
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
    """A pass as it ran: the program before and after, or the error that stopped it."""

    step: Pass
    before: Program
    after: Program
    options: dict[str, Any]
    seconds: float
    error: TTExploreError | None = None


def known_options() -> dict[str, str]:
    """Every option of the pipeline and the pass that it belongs to."""
    return {name: step.name for step in PIPELINE for name in step.options}


def lower(
    program: Program, target: Target, options: Mapping[str, Any], steps: Sequence[Pass] = PIPELINE
) -> Iterator[Applied]:
    """Run the pipeline, or some of its steps, verifying after each. The first error ends it and is part of its step.

    `options` are those of :func:`parse_options`.
    """
    used = {name: value for step in PIPELINE for name, value in step.options.items()} | dict(options)
    program = program.with_plan(options={name: _plain(value) for name, value in used.items()})
    verifier = Verifier(target)
    for step in steps:
        own = {name: used[name] for name in step.options}
        start = time.perf_counter()
        try:
            with errors_of_ours(f"the step {step.letter} {step.name}"):
                after = step.function(program, target, **own)
                verifier.check(after)
        except TTExploreError as error:
            error.at(_annotation_line(program, own))
            yield Applied(step, program, program, own, time.perf_counter() - start, error)
            return
        yield Applied(step, program, after, own, time.perf_counter() - start)
        program = after


def _annotation_line(program: Program, options: Mapping[str, Any]) -> Span | None:
    """The line of the first annotation that set one of these options."""
    taken = (one for one in program.plan.annotations if one.taken and one.option in options and not one.tensor)
    return next((one.origin for one in taken if one.origin is not None), None)


def with_annotations(
    annotations: Iterable[Annotation], options: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[KernelAnnotation, ...]]:
    """The options with what the kernel asks for where they are silent, and what became of each annotation.

    A policy, an order or work lists among the options replace the kernel's whole schedule of that kind. Raises
    UsageError where the kernel asks for two different things, at the second one's line.
    """
    given_layouts = dict(options.get("layouts") or {})
    replaced = {name for name, whole in _REPLACES.items() if options.get(name) is not None for name in whole}
    made: dict[str, Any] = {}
    layouts: dict[str, LayoutRequest] = {}
    told: list[KernelAnnotation] = []
    for one in annotations:
        taken = one.option not in options and one.option not in replaced
        if one.option == "layouts":
            taken = one.tensor not in given_layouts
            layouts[one.tensor] = layouts.get(one.tensor, LayoutRequest()).merged(one.value)
        elif taken and made.setdefault(one.option, one.value) != one.value:
            raise UsageError(
                f"the kernel asks for {one.option} {made[one.option]!r} and {one.value!r}",
                hint="ask once",
                span=one.span,
            )
        told.append(KernelAnnotation(one.option, _text(one.value), one.tensor, one.span, taken))
    merged = made | dict(options)
    if layouts:
        asked = {name: layout_request(name, value) for name, value in given_layouts.items()}
        merged["layouts"] = {**layouts, **{n: layouts.get(n, LayoutRequest()).merged(a) for n, a in asked.items()}}
    return merged, tuple(told)


# What of the kernel's own schedule an option of the user replaces.
_SCHEDULE = ("policy", "order", "rectangle", "stride", "match")
_REPLACES: dict[str, tuple[str, ...]] = {"policy": _SCHEDULE, "work_lists": _SCHEDULE, "order": ("policy", "order")}


def _text(value: Any) -> str:
    if not isinstance(value, LayoutRequest):
        return str(value)
    default = LayoutRequest()
    shown = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name != "span"}
    return ", ".join(f"{name} {one}" for name, one in shown.items() if one != getattr(default, name))


def _plain(value: Any) -> Any:
    """An option as the plan keeps it: what has no JSON form as text."""
    try:
        return to_json(value)
    except TypeError:
        return repr(value)
