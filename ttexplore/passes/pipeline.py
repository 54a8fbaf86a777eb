"""The pipeline: read this first. Passes in five stages; those that do several things have parts.

Half of the passes decide facts and write them into the plan, half rewrite the IR. A pass is a function from program
to program; its keyword arguments are options, whose meanings and defaults :mod:`ttexplore.options` defines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ttexplore.ir.program import TirProgram
from ttexplore.options import Options
from ttexplore.passes.apply_defaults import PARTS as PARTS_OF_A0
from ttexplore.passes.apply_defaults import apply_defaults
from ttexplore.passes.attach_tensor_accessor import attach_tensor_accessor
from ttexplore.passes.build_tile_dfg import build_tile_dfg
from ttexplore.passes.configure_tensor_accessor import configure_tensor_accessor
from ttexplore.passes.finalize_persistent_signature import finalize_persistent_signature
from ttexplore.passes.grid_to_core_grid import grid_to_core_grid
from ttexplore.passes.infer_tt_layout import infer_tt_layout
from ttexplore.passes.insert_compute_init import insert_compute_init
from ttexplore.passes.insert_dst_management import PARTS as PARTS_OF_D5
from ttexplore.passes.insert_dst_management import insert_dst_management
from ttexplore.passes.layout_aware_work_partition import PARTS as PARTS_OF_B1
from ttexplore.passes.layout_aware_work_partition import layout_aware_work_partition
from ttexplore.passes.lower_cb_intrinsics import lower_cb_intrinsics
from ttexplore.passes.lower_shared_to_cb import lower_shared_to_cb
from ttexplore.passes.lower_tt_tile_intrinsics import fidelity_of_products, lower_tt_tile_intrinsics
from ttexplore.passes.propagate_tt_layout import PARTS as PARTS_OF_A2
from ttexplore.passes.propagate_tt_layout import propagate_tt_layout
from ttexplore.passes.running import Runner
from ttexplore.passes.split_device_kernel import PARTS as PARTS_OF_D1
from ttexplore.passes.split_device_kernel import split_device_kernel
from ttexplore.passes.step import Applied, Pass
from ttexplore.passes.verify.normal_form import BLOCKS_ARE_MATRICES, OF_BLOCK_OPERATIONS
from ttexplore.record import replaced
from ttexplore.target import Target

PIPELINE: tuple[Pass, ...] = (
    Pass("A0", "layout", apply_defaults, parts=PARTS_OF_A0),
    Pass("A1", "layout", infer_tt_layout, by_sizes=True, reads=("cores", "core_offset", "core_ranges")),
    Pass("A2", "layout", propagate_tt_layout, parts=PARTS_OF_A2),
    Pass("A3", "layout", attach_tensor_accessor, by_sizes=True),
    Pass("B1", "partition", layout_aware_work_partition, by_sizes=True, parts=PARTS_OF_B1),
    Pass("B2", "partition", grid_to_core_grid),
    Pass("C1", "tiles", lower_shared_to_cb, ends=(BLOCKS_ARE_MATRICES,)),
    Pass("C2", "tiles", lower_tt_tile_intrinsics, ends=OF_BLOCK_OPERATIONS, reads=fidelity_of_products),
    Pass("C3", "tiles", build_tile_dfg),
    Pass("D1", "kernels", split_device_kernel, parts=PARTS_OF_D1),
    Pass("D2", "kernels", configure_tensor_accessor),
    Pass("D3", "kernels", lower_cb_intrinsics),
    Pass("D4", "kernels", insert_compute_init),
    Pass("D5", "kernels", insert_dst_management, parts=PARTS_OF_D5),
    Pass("E1", "signature", finalize_persistent_signature),
)


def lower(
    program: TirProgram, target: Target, options: Mapping[str, Any], steps: Sequence[Pass] = PIPELINE,
    like: Iterable[Sequence[Applied]] = (),
) -> Iterator[Applied]:  # fmt: skip
    """Run the pipeline, or some of its steps, and verify the program after each step and each part of one. The first
    error ends the run and is part of its step. `options` are the requested options by name; the others have their
    defaults. Steps that did the same in one of the lowerings `like` this one do not run again (:class:`Runner`).
    """
    used = Options(**options)
    program = replaced(program.with_plan(options=used.plain), options=used)
    runner = Runner(target, used, PIPELINE, like)
    for step in steps:
        parts: list[Applied] = []
        for leaf in step.leaves:
            parts.append(runner.run(leaf, program))
            if parts[-1].error is not None:
                break
            program = parts[-1].after
            if program.firings:
                program = replaced(program, firings=())
        yield Applied.of_parts(step, parts, runner.by_name)
        if parts[-1].error is not None:
            return
