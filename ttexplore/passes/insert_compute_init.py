"""D4: the compute engine is set up before each operation, and not more often than needed."""

from __future__ import annotations

from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import Firings
from ttexplore.passes.engine_setup import set_up
from ttexplore.target import Target


def insert_compute_init(program: Program, target: Target) -> Program:
    """Start the engine once, and put the init of an operation before it where another one ran last.

        for t in range(16):                         tt.compute_startup(A_shared, B_shared, C_shared)
            tt.add_tiles(A_shared, B_shared, ...)   tt.add_tiles_init(A_shared, B_shared)
                                               ==>  for t in range(16):
                                                        tt.add_tiles(A_shared, B_shared, ...)

    An init stays in force until another one of its engine: FPU and SFPU do not disturb each other, two SFPU
    operations do. A change of data format needs a reconfiguration, and the init again. Inits leave a loop where it
    starts with the state that it ends with.

    Where inits stand follows from the operations alone. D5 writes other operations, those of its sections, and asks in
    the same way where theirs stand.
    """
    firings = Firings()
    compute = set_up(program.functions["compute"], program.plan, firings)
    return program.with_functions({**program.functions, "compute": compute}, firings)
