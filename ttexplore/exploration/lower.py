"""Lowering the launches of a kernel, and lowering them again: other options, another target or text, other sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ttexplore.control import FREE, Control
from ttexplore.errors import UsageError
from ttexplore.exploration.lowered import Lowered, steps_of
from ttexplore.given import dictionary
from ttexplore.given import text as text_of
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.arithmetic.sizes import extents_of, size_variables
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.program import KERNEL, TirProgram
from ttexplore.language.editing import edited as edited_kernel
from ttexplore.language.machine import machine
from ttexplore.language.tracer.kernel import TracedKernel
from ttexplore.options import OPTIONS, parse_options
from ttexplore.passes.bind_sizes import bind_sizes, sizes_of
from ttexplore.passes.launches.requested import with_annotations
from ttexplore.passes.launches.splitting import launches_of, used_names
from ttexplore.passes.launches.tensor_roles import tensor_roles
from ttexplore.passes.pipeline import lower
from ttexplore.passes.step import Applied
from ttexplore.plan import Plan, Size
from ttexplore.session.inputs import Inputs, given_inputs
from ttexplore.session.lowering import READ, reasons
from ttexplore.target import Target, get_target

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration


class _Fields(TypedDict):
    """What an exploration has of its launches."""

    kernel: TracedKernel
    _lowerings: tuple[Lowered, ...]
    _is_several: bool


def lowered(
    traced: TracedKernel, target: Target, options: dict[str, Any], sizes: tuple[Size, ...], control: Control,
    like: Iterable[Lowered] = (),
) -> _Fields:  # fmt: skip
    """Lower each launch of the kernel; of a kernel with one launch, which then stands for the kernel, with the steps
    that are those of other lowerings (`like`)."""
    with errors_of_ours("splitting the kernel into its launches"):
        launches = launches_of(traced)
    if len(launches) == 1 and not traced.allocated:
        alone = _lowered(launches[0], target, options, sizes, control, like)
        return _Fields(kernel=launches[0], _lowerings=(alone,), _is_several=False)
    used = [used_names(launch) for launch in launches]
    inputs = [{name for name, role in tensor_roles(launch.function).items() if role == "input"} for launch in launches]
    by_name = (("layouts", used), ("cb_depth", used), ("multicast", inputs), ("loaded_by", inputs))
    lowerings: list[Lowered] = []
    for number, launch in enumerate(launches):
        chosen = dict(options)
        for option, named in by_name:
            # All launches have what names nothing.
            value: object = options.get(option)
            if value and not isinstance(value, str):
                asked = dictionary(option, value, "names", OPTIONS[option].example).items()
                chosen[option] = {n: value for n, value in asked if number in _concerned(n, named, used)}
        size_names = {str(variable.name) for variable in size_variables(launch.function)}
        own_sizes = tuple(size for size in sizes if size.name in size_names)
        lowerings.append(_lowered(launch, target, chosen, own_sizes, control))
    return _Fields(kernel=traced, _lowerings=tuple(lowerings), _is_several=True)


def _concerned(name: str, *named: Sequence[Collection[str]]) -> list[int]:
    """The launches that have a name in the first sense in which any has it; where none has it, the first refuses it."""
    for names in named:
        if launches := [number for number, names_of_launch in enumerate(names) if name in names_of_launch]:
            return launches
    return [0]


def _lowered(
    traced: TracedKernel, target: Target, options: dict[str, Any], sizes: tuple[Size, ...], control: Control,
    like: Iterable[Lowered] = (),
) -> Lowered:  # fmt: skip
    chosen, annotations = with_annotations(traced.annotations, options)
    plan = Plan(traced.name, target.name, notes=traced.notes, annotations=annotations, sizes=sizes)
    applied: list[Applied] = []
    earlier = [[step.applied for step in lowering.steps] for lowering in like if lowering.target == target]
    for step in lower(TirProgram({KERNEL: traced.function}, plan, traced.source), target, chosen, like=earlier):
        control.tell(f"{step.step.letter} {step.step.name}")
        applied.append(step)
    return Lowered(traced, target, options, steps_of(applied))


def fork(
    exploration: Exploration, at: str | int | None = None, *, target: str | Target | None = None, **options: Any
) -> Exploration:
    """Lower again, all launches, with other options, those of step `at`, or with another target. The passes before the
    first that looks at one of these options do not run again.

    Raises UsageError for an option that the step does not have, and for a step of several launches.
    """
    if at is not None:
        step = exploration.steps.single("at", at)
        for name in options:
            if name not in step.options:
                hint = f"use one of {', '.join(step.options)}" if step.options else "this pass has no options"
                raise UsageError("U001", f"{step.name} has no option {name!r}", hint=hint)
    return lower_again(exploration, options, target, FREE)


def lower_again(
    exploration: Exploration,
    options: Mapping[str, Any],
    target: str | Target | None,
    control: Control,
    arguments: Mapping[str, int] | None = None,
) -> Exploration:
    """As :func:`fork`; `control` ends it after the step that runs, and hears of each step. With `arguments`, the kernel
    is traced again with these numbers among its arguments."""
    asked = parse_options(options)
    unchanged = {name: value for name, value in exploration.options.items() if name not in options}
    chip = exploration.target if target is None else get_target(target)
    with control.watched("the lowering"):
        traced = exploration.kernel
        if arguments:
            assert traced.traced_with is not None, "arguments are offered where a kernel is traced again with them"
            with machine(chip), errors_of_ours("reading the kernel"):
                traced = traced.traced_with(arguments)
        return _with(exploration, traced, chip, unchanged | asked, control, [exploration])


def with_options(exploration: Exploration, options: Mapping[str, Any], like: Iterable[Exploration] = ()) -> Exploration:
    """Lower the same kernel for the same target and sizes with these options alone. A pass that gave the same here,
    or in one of the explorations `like` this one, does not run again."""
    asked = parse_options(options)
    return _with(exploration, exploration.kernel, exploration.target, asked, FREE, [*like, exploration])


def edited(exploration: Exploration, text: str) -> Exploration:
    """Lower the kernel with another text of its function, which ``ex.kernel.source`` shows, with the same
    arguments, options, target and sizes. Nothing of the notebook and of the kernel's file changes.

    The text, with its decorators, is executed where the kernel was defined: it sees the same names of the module or
    notebook, and those of the functions around it. The first text gives the first kernel again.

    Raises KernelError, at its line, for a text that is not valid Python, defines no kernel or raises, and
    UsageError for a launch, for a kernel whose text alone does not define it, and for options that do not fit.
    """
    return lower_text(exploration, text_of("the text of the kernel", text), FREE)


def lower_text(
    exploration: Exploration, text: str, control: Control, of: tuple[Exploration, int] | None = None
) -> Exploration:
    """As :func:`edited`, ended by `control`. Where the exploration is one of a launch, `of` is that of the whole
    kernel, whose text it is, and the position of the launch; if there are fewer then, the last takes its place."""
    all_launches, number = of or (exploration, 0)
    with control.watched("the lowering"):
        with machine(exploration.target), errors_of_ours("reading the kernel"):
            traced = edited_kernel(all_launches.kernel, text)
            if of:
                launches = launches_of(traced)
                traced = launches[min(number, len(launches) - 1)]
        return _with(exploration, traced, exploration.target, exploration.options, control)


def _with(
    exploration: Exploration, traced: TracedKernel, target: Target, options: dict[str, Any], control: Control,
    like: Iterable[Exploration] = (),
) -> Exploration:  # fmt: skip
    """A kernel with another text, target or options, and the sizes of this one that it has."""
    names = {str(variable.name) for variable in size_variables(traced.function)}
    values = {size.name: size.value for size in sizes_now(exploration) if size.name in names}
    before = [exploration._lowerings[0] for exploration in like if not exploration._is_several]
    sizes = sizes_of(traced.function, values)
    fields = lowered(traced, target, options, sizes, control, before)
    return dataclasses.replace(exploration, target=target, options=options, **fields)


def sizes_now(exploration: Exploration) -> tuple[Size, ...]:
    """The T.dynamic sizes of the kernel, with their values."""
    values = {size.name: size.value for lowering in exploration._lowerings for size in lowering.plan.sizes}
    return sizes_of(exploration.kernel.function, values)


def with_sizes(exploration: Exploration, /, **sizes: int) -> Exploration:
    """The same lowering for other values of the kernel's T.dynamic sizes: only the plan changes, not steps or code.

    Raises UsageError for unknown names and for values below 1, and what the passes raise for unsuitable sizes.
    """
    current = {size.name: size.value for size in sizes_now(exploration)}
    asked = {size.name: size.value for size in sizes_of(exploration.kernel.function, {**current, **sizes})}
    if asked == current:
        return exploration
    lowerings = tuple(_bound(lowering, asked) for lowering in exploration._lowerings)
    return dataclasses.replace(exploration, _lowerings=lowerings)


def _bound(lowering: Lowered, values: Mapping[str, int]) -> Lowered:
    """The lowering for these of the values that it has a size for."""
    current = {size.name: values[size.name] for size in lowering.plan.sizes}
    asked = sizes_of(lowering.kernel.function, current)
    if asked == lowering.plan.sizes:
        return lowering
    with errors_of_ours("binding the sizes"):
        applied = bind_sizes((step.applied for step in lowering.steps), lowering.target, asked)
    return dataclasses.replace(lowering, steps=steps_of(applied))


def sized(exploration: Exploration, inputs: Inputs, sizes: Mapping[str, int] | None) -> Exploration:
    """The exploration for the given sizes, or for those of the inputs."""
    asked = dictionary("sizes", {} if sizes is None else sizes, "names", '{"n": 64}')
    parameters = [p for p in exploration.kernel.function.params if is_buffer(p)]
    tensors = [p for p in parameters if exploration._roles.get(str(p.name)) in READ]
    arrays = given_inputs(inputs, exploration._tensors(READ), reasons(exploration)) or ()
    for position, (array, tensor) in enumerate(zip(arrays, tensors, strict=False)):
        for extent, symbolic in zip(np.shape(array), extents_of(tensor), strict=False):
            name = "" if isinstance(symbolic, int) else str(symbolic.name)
            if name and asked.setdefault(name, extent) != extent:
                raise UsageError(
                    "U010",
                    f"input {position} has {name} = {extent}, but {name} is already {asked[name]}",
                    hint=f"pass sizes that agree: {tensor.name} has the shape "
                    f"({', '.join(map(str, extents_of(tensor)))})",
                )
    return exploration.with_sizes(**asked)
