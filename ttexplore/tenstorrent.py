"""The functions by which TileLang's documents lower a kernel for Tenstorrent chips, over this pipeline.

    mod = apply_tt_defaults(gemm)
    mod = apply_tt_metadata_passes(mod)
    artifacts = emit_tt_artifacts(run_pipeline(mod))

A kernel or what one of these functions returned can be given to any of them. To look at each step, execute it and ask
what if, use `ttexplore.explore`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ttexplore.emit import emit
from ttexplore.errors import UsageError
from ttexplore.files import write_files
from ttexplore.ir.program import KERNEL, Program
from ttexplore.language.annotations import annotate_tt_layout, annotate_tt_schedule, annotate_tt_sharding
from ttexplore.language.kernel import trace
from ttexplore.layout_request import TTShard
from ttexplore.options import parse_options
from ttexplore.passes.bind_sizes import sizes_of
from ttexplore.passes.pipeline import PIPELINE, lower, with_annotations
from ttexplore.passes.verify import verify
from ttexplore.plan import Plan
from ttexplore.target import Target, get_target

_DEFAULTS_END = 1
_METADATA_END = 1 + [step.name for step in PIPELINE].index("layout_aware_work_partition")


@dataclass(frozen=True)
class Module:
    """A kernel on its way: the program, and how many steps of the pipeline it has gone through."""

    program: Program
    target: Target
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steps: int = 0

    @property
    def plan(self) -> Plan:
        return self.program.plan


def apply_tt_defaults(
    mod: Any, *, target: str | Target = "wormhole_n150", options: Mapping[str, Any] | None = None
) -> Module:
    """The kernel with the target's defaults: contiguous row-major work, tensors in DRAM, interleaved, 32x32 tiles.

    `mod` is a T.prim_func or another kernel that needs no arguments; `options` are those of `ttexplore.explore`, and
    win over the kernel's annotations. Raises UsageError for what is no kernel, and what lowering raises.
    """
    return _through(_module(mod, target, options), _DEFAULTS_END)


def apply_tt_metadata_passes(mod: Any) -> Module:
    """The kernel with all that is decided before its code changes: layouts, circular buffers, accessors, partition.

    Raises what the passes raise, with the kernel's line.
    """
    return _through(_module(mod), _METADATA_END)


def run_pipeline(mod: Any) -> Module:
    """The kernel after all passes: reader, compute and writer. Raises what the passes raise, with the kernel's line."""
    return _through(_module(mod), len(PIPELINE))


def verify_tt_ir(mod: Any) -> Module:
    """`mod`, if all laws hold that can be checked without running. Raises VerifyError or ResourceError."""
    made = _module(mod)
    verify(made.program, made.target)
    return made


def emit_tt_artifacts(mod: Any) -> dict[str, str]:
    """The files of the program by name: three kernels, host program, plan, runner. Raises what lowering raises."""
    made = run_pipeline(mod)
    return {name: listing.text for name, listing in emit(made.program.functions, made.plan).items()}


def write_artifacts_to_disk(artifacts: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write the files into a folder, all or none. Raises UsageError for a name that leads elsewhere, and where the
    folder or a file in it cannot be written."""
    return write_files(artifacts, folder)


def _module(mod: Any, target: str | Target = "wormhole_n150", options: Mapping[str, Any] | None = None) -> Module:
    if isinstance(mod, Module):
        return mod
    if isinstance(mod, Program):
        raise UsageError(
            "a program of ttexplore.explore has gone through its steps already", hint="give the kernel itself"
        )
    asked = parse_options(options)
    traced = trace(mod)
    merged, annotations = with_annotations(traced.annotations, asked)
    chip = get_target(target)
    plan = Plan(traced.name, chip.name, notes=traced.notes, annotations=annotations, sizes=sizes_of(traced.function))
    return Module(Program({KERNEL: traced.function}, plan, traced.source), chip, merged)


def _through(module: Module, end: int) -> Module:
    """The module after the steps before `end` that it has not gone through yet."""
    program = module.program
    for applied in lower(program, module.target, module.options, steps=PIPELINE[module.steps : end]):
        if applied.error is not None:
            raise applied.error
        program = applied.after
    return dataclasses.replace(module, program=program, steps=max(end, module.steps))


__all__ = [
    "Module",
    "TTShard",
    "annotate_tt_layout",
    "annotate_tt_schedule",
    "annotate_tt_sharding",
    "apply_tt_defaults",
    "apply_tt_metadata_passes",
    "emit_tt_artifacts",
    "run_pipeline",
    "verify_tt_ir",
    "write_artifacts_to_disk",
]
