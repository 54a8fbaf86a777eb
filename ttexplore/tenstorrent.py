"""The functions with which TileLang's documents lower a kernel for Tenstorrent chips, implemented by this pipeline.

    mod = tvm.IRModule.from_expr(gemm)
    mod = apply_tt_defaults(mod)
    mod = apply_tt_metadata_passes(mod)
    artifacts = emit_tt_artifacts(mod)

Each function takes a kernel, a TVM module made from a kernel, or the result of another of these functions. The
documents' pass names are such functions, too: ``grid_to_persistent_tt(mod)`` lowers up to and including that pass. A
result displays itself, and ``mod.explore()`` opens it with `ttexplore.explore`, where each step can be read and
executed.
"""

from __future__ import annotations

import dataclasses
import difflib
import dis
import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ttexplore.characters import Printed
from ttexplore.emit import emit
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration, explore
from ttexplore.files import write_files
from ttexplore.ir.listing import program_listing
from ttexplore.ir.program import KERNEL, TirProgram
from ttexplore.language.api.annotations import annotate_tt_layout, annotate_tt_schedule, annotate_tt_sharding
from ttexplore.language.tracer.kernel import TracedKernel, trace
from ttexplore.layout_request import TTShard
from ttexplore.options import parse_options
from ttexplore.passes.bind_sizes import sizes_of
from ttexplore.passes.launches.requested import with_annotations
from ttexplore.passes.launches.splitting import launches_of
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.verify import verify
from ttexplore.plan import Plan
from ttexplore.session.pass_names import OLDER, pass_name
from ttexplore.target import DEFAULT_TARGET, Target, get_target
from ttexplore.views.markup import escape, plural
from ttexplore.views.steps.code import code_html

_PASSES = [step.name for step in PIPELINE]


@dataclass(frozen=True, repr=False)
class Module(Printed):
    """A partly lowered kernel: the program, and the number of pipeline steps that have run. `options` are the user's;
    `merged` also includes the kernel's annotations."""

    kernel: TracedKernel
    program: TirProgram
    target: Target
    options: Mapping[str, object]
    merged: Mapping[str, object]
    steps: int = 0

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def explore(self) -> Exploration:
        """Explore this kernel with all steps, for the same target and options."""
        return explore(self.kernel, target=self.target, options=self.options)

    def __repr__(self) -> str:
        done = f"{self.steps} of {len(PIPELINE)} steps"
        after = f", after {PIPELINE[self.steps - 1].letter} {_PASSES[self.steps - 1]}" if self.steps else ""
        return f"<module of {self.kernel.name} for {self.target.name}: {done}{after}>"

    def __str__(self) -> str:
        return f"{self!r}\n\n{program_listing(self.program)}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{code_html(program_listing(self.program))}"


def apply_tt_defaults(
    mod: object, *, target: str | Target = DEFAULT_TARGET, options: Mapping[str, object] | None = None
) -> Module:
    """Give the kernel the target's defaults: contiguous row-major work, tensors in DRAM, interleaved, 32x32 tiles.

    `mod` is a T.prim_func or another kernel that needs no arguments; `options` are those of `ttexplore.explore`, and
    override the kernel's annotations. Raises UsageError if `mod` is not a kernel, and what lowering raises.
    """
    return _through(_module(mod, target, options), 1)


def apply_layout_aware_metadata_passes(mod: object) -> Module:
    """Run the passes that decide facts before the code changes: layouts, circular buffers, accessors, partition.

    Raises what the passes raise, with the kernel's line.
    """
    return _up_to(mod, "layout_aware_work_partition")


def apply_tt_metadata_passes(mod: object) -> Module:
    """Lower the kernel to a loop over the work items of a core, with circular buffers: run
    :func:`apply_layout_aware_metadata_passes`, then the first two passes that change the code.

    Raises what the passes raise, with the kernel's line.
    """
    return _up_to(mod, "lower_shared_to_cb")


def run_pipeline(mod: object) -> Module:
    """Run all passes; the result is reader, compute and writer. Raises what the passes raise, at the kernel's line."""
    return _through(_module(mod), len(PIPELINE))


def verify_tt_ir(mod: object) -> Module:
    """Check all laws that can be checked without running, after each step so far and after the remaining ones, because
    only the last shows whether the program fits the chip; return `mod` unchanged.

    Raises VerifyError or ResourceError if a law is violated, and what lowering raises.
    """
    program = _module(mod)
    lowered = run_pipeline(program)
    verify(lowered.program, lowered.target)
    return program


def emit_tt_artifacts(mod: object) -> dict[str, str]:
    """Return the program's files by name: three kernels, host program, plan, runner. Raises what lowering raises."""
    result = run_pipeline(mod)
    return {name: listing.text for name, listing in emit(result.program.functions, result.plan).items()}


def write_artifacts_to_disk(artifacts: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write the files to a folder, all or none. Raises UsageError for a name outside the folder, and if the folder or a
    file in it cannot be written."""
    return write_files(artifacts, folder)


def _module(mod: object, target: str | Target = DEFAULT_TARGET, options: Mapping[str, object] | None = None) -> Module:
    if isinstance(mod, Module):
        return mod
    if isinstance(mod, TirProgram):
        raise UsageError("U006", "a program from ttexplore.explore is lowered already", hint="pass the kernel itself")
    asked = parse_options(options)
    traced = trace(mod)
    launches = launches_of(traced)
    if len(launches) != 1 or traced.allocated:
        raise UsageError(
            "U019",
            f"{traced.name} has {plural(len(launches), 'launch')}, and a module holds one",
            hint="explore it: ttexplore.explore(kernel).launches",
        )
    (traced,) = launches
    merged, annotations = with_annotations(traced.annotations, asked)
    chip = get_target(target)
    plan = Plan(traced.name, chip.name, notes=traced.notes, annotations=annotations, sizes=sizes_of(traced.function))
    return Module(traced, TirProgram({KERNEL: traced.function}, plan, traced.source), chip, asked, merged)


def _up_to(mod: object, name: str) -> Module:
    """Lower up to and including the pass of this name."""
    return _through(_module(mod), _PASSES.index(name) + 1)


def _through(module: Module, end: int) -> Module:
    """Run the remaining steps before step number `end`."""
    program = module.program
    for applied in lower(program, module.target, module.merged, steps=PIPELINE[module.steps : end]):
        if applied.error is not None:
            raise applied.error
        program = applied.after
    return dataclasses.replace(module, program=program, steps=max(end, module.steps))


def __getattr__(name: str) -> Callable[[object], Module]:
    """A pass by one of the documents' names. Raises AttributeError for other names, or ImportError if the name is
    imported."""
    if not name.startswith("_") and pass_name(name) in _PASSES:
        lowered = functools.partial(_up_to, name=pass_name(name))
        lowered.__doc__ = f"Run the passes up to {pass_name(name)}. Raises what they raise, at the kernel's line."
        return lowered
    close = difflib.get_close_matches(name, [*__all__, *_PASSES, *OLDER], 1)
    meant = f"did you mean {close[0]}?" if close else f"use one of {', '.join(__all__)}"
    asking, message = sys._getframe(1), f"ttexplore.tenstorrent has no {name!r}; {meant}"
    if asking.f_code.co_code[asking.f_lasti] == dis.opmap["IMPORT_FROM"]:
        # `from ... import` would hide the message of an AttributeError.
        raise ImportError(message, name=__name__)
    raise AttributeError(message)


__all__ = [
    "Module",
    "TTShard",
    "annotate_tt_layout",
    "annotate_tt_schedule",
    "annotate_tt_sharding",
    "apply_layout_aware_metadata_passes",
    "apply_tt_defaults",
    "apply_tt_metadata_passes",
    "emit_tt_artifacts",
    "run_pipeline",
    "verify_tt_ir",
    "write_artifacts_to_disk",
]
