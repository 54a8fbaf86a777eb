"""D4: set the compute engine up for each operation, no more often than needed."""

from __future__ import annotations

from ttexplore.analysis.engine_setup import set_up
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings
from ttexplore.target import Target


def insert_compute_init(program: TirProgram, target: Target) -> TirProgram:
    """Insert the start-up of the compute engine and the init of each operation.

        for t in range(16):                         tt.compute_startup(A_shared, B_shared, C_shared)
            tt.add_tiles(A_shared, B_shared, ...)   tt.add_tiles_init(A_shared, B_shared)
                                               ==>  for t in range(16):
                                                        tt.add_tiles(A_shared, B_shared, ...)

    The engine starts once. An operation gets its init wherever another operation of the same engine ran last, because
    an init stays in force until the next init of its engine: FPU and SFPU do not disturb each other, two SFPU
    operations do. A change of data format needs a reconfiguration and a new init. An init is hoisted out of a loop that
    ends in the state in which it starts.

    The placement depends only on the operations. D5 replaces the operations by those of its sections, and computes the
    placement again for them.
    """
    firings = Firings()
    compute = set_up(program.functions["compute"], program.plan, firings)
    return program.with_functions({**program.functions, "compute": compute}, firings)
