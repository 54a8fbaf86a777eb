"""Launch the places of T.Persistent instead of one block for each core."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.ir.adapter import for_of, variables_of
from ttexplore.ir.arithmetic.waves import Waves, waves_of
from ttexplore.ir.build import constant, sequence, statements, with_function_body
from ttexplore.ir.rewrite import Firings, Rule, inherit_places

# Of a launch grid.
_MOST_AXES = 3

_LAUNCHED = Rule("launched places", "The places of T.Persistent are the launch grid, which cores loop over anyway.")


def with_launched_places(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with its launch grid over the places of T.Persistent, where it launches one block for each core.

    The options policy and order then say which core takes which place. Kernels that do more than this loop keep it.
    """
    loops = grid_loops(function)
    body = statements(loops[-1].body)
    allocations = [one for one in body if isinstance(one, tirx.AllocBuffer)]
    rest = [one for one in body if not isinstance(one, tirx.AllocBuffer)]
    made = waves_of(rest[0]) if len(rest) == 1 and len(loops) == 1 else None
    if made is None or len(made.places) > _MOST_AXES:
        return function
    block, blocks = loops[0].loop_var, constant(loops[0].extent)
    if (
        not made.index.same_as(block)
        or blocks is None
        or constant(made.size) != blocks
        or {block, made.wave} & _used(made)
    ):
        return function
    nest = sequence([*allocations, *made.body])
    for place, extent in reversed([*zip(made.places, made.extents, strict=True)]):
        nest = for_of(place, tirx.const(0, "int32"), extent, loops[0], nest)
    launched = firings.made(_LAUNCHED, loops[0], [nest])
    inherit_places(loops[0], launched)
    return with_function_body(function, launched)


def _used(made: Waves) -> set[ir.Var]:
    """The variables in what is done for each place, and in the number of places."""
    return {one for part in (*made.body, *made.extents) for one in variables_of(part)}
