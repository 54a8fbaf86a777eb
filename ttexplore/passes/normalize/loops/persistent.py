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
    allocations = [statement for statement in body if isinstance(statement, tirx.AllocBuffer)]
    rest = [statement for statement in body if not isinstance(statement, tirx.AllocBuffer)]
    waves = waves_of(rest[0]) if len(rest) == 1 and len(loops) == 1 else None
    if waves is None or len(waves.places) > _MOST_AXES:
        return function
    block, blocks = loops[0].loop_var, constant(loops[0].extent)
    if (
        not waves.index.same_as(block)
        or blocks is None
        or constant(waves.size) != blocks
        or {block, waves.wave} & _used(waves)
    ):
        return function
    nest = sequence([*allocations, *waves.body])
    for coordinate, extent in reversed([*zip(waves.places, waves.extents, strict=True)]):
        nest = for_of(coordinate, tirx.const(0, "int32"), extent, loops[0], nest)
    launched = firings.made(_LAUNCHED, loops[0], [nest])
    inherit_places(loops[0], launched)
    return with_function_body(function, launched)


def _used(waves: Waves) -> set[ir.Var]:
    """The variables in what is done for each place, and in the number of places."""
    return {var for node in (*waves.body, *waves.extents) for var in variables_of(node)}
