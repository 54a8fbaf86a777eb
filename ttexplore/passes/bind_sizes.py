"""Rebind a lowered program to other T.dynamic sizes: decisions are made again, functions and texts stay."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping

from tvm import tirx

from ttexplore.errors import UsageError, shown
from ttexplore.given import dictionary
from ttexplore.ir.arithmetic.bounds import MAX_SIZE
from ttexplore.ir.arithmetic.sizes import size_variables
from ttexplore.ir.program import TirProgram
from ttexplore.passes.normalize.loops.integers import check_integers
from ttexplore.passes.step import Applied
from ttexplore.passes.verify import verify
from ttexplore.plan import Plan, Size
from ttexplore.target import Target

# Defaults for sizes that are not given: all different, and none a multiple of a tile, so that partial tiles show.
_FIRST_SIZE, _LESS_EACH, _SMALLEST = 200, 32, 40


def sizes_of(function: tirx.PrimFunc, requested: Mapping[str, object] | None = None) -> tuple[Size, ...]:
    """The sizes of a traced kernel, with the values that are `requested`.

    Raises UsageError for unknown names and for invalid values.
    """
    names = [str(variable.name) for variable in size_variables(function)]
    requested = dictionary("sizes", {} if requested is None else requested, "names", '{"n": 64}')
    for name, value in requested.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"it has {', '.join(names)}" if names else "give its tensors T.dynamic sizes"
            raise UsageError(
                "U015", f"the kernel has no size {name}", hint=f"did you mean {close[0]}?" if close else hint
            )
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < MAX_SIZE:
            raise UsageError("U010", f"the size {name} is {shown(value)}", hint=f"sizes are 1 to {MAX_SIZE - 1:,}")
    return tuple(
        Size(name, requested.get(name, max(_FIRST_SIZE - index * _LESS_EACH, _SMALLEST)))
        for index, name in enumerate(names)
    )


def bind_sizes(steps: Iterable[Applied], target: Target, sizes: tuple[Size, ...]) -> tuple[Applied, ...]:
    """The steps with their plans bound to other `sizes`.

    Raises the errors of the deciding passes and of the verifier if a size does not work.
    """
    bound_steps: list[Applied] = []
    now = Plan("", "")
    for applied in steps:
        before = _bound(applied.before, now, sizes)
        if not bound_steps:
            check_integers(before.kernel, before.plan.size_values)
        if applied.step.by_sizes:
            now = applied.step.function(before, target, **applied.options).plan
        after = _bound(applied.after, now, sizes)
        if applied.error is None:
            verify(after, target)
        # What the parts of a step decide by sizes is the same after each of them: nothing is shared then.
        parts = tuple(
            dataclasses.replace(
                applied_part,
                before=_bound(applied_part.before, now, sizes),
                after=_bound(applied_part.after, now, sizes),
            )
            for applied_part in applied.parts
        )
        bound_steps.append(dataclasses.replace(applied, before=before, after=after, inputs=None, parts=parts))
    return tuple(bound_steps)


def _bound(program: TirProgram, now: Plan, sizes: tuple[Size, ...]) -> TirProgram:
    """The program with the decisions of `now` for everything that its own plan has decided."""
    plan = program.plan
    bindings = {accessor.tensor: accessor.bindings for accessor in plan.accessors}
    accessors = tuple(
        dataclasses.replace(accessor, bindings=bindings[accessor.tensor])
        for accessor in now.accessors
        if accessor.tensor in bindings
    )
    return program.with_plan(
        sizes=sizes,
        layouts=now.layouts if plan.layouts else (),
        accessors=accessors,
        partition=now.partition if plan.partition is not None else None,
    )
