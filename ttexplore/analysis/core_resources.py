"""The resources of a core for circular buffers: buffer numbers and space in L1."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from ttexplore.analysis.place_tensors import l1_bytes_per_core
from ttexplore.errors import ResourceError
from ttexplore.ir.program import TirProgram
from ttexplore.plan import CircularBuffer, TensorLayout, chip_buffers
from ttexplore.target import Target

# The convention of the SDK's programming examples: inputs from 0, outputs from 16, intermediates from 24.
_FIRST_INPUT, _FIRST_OUTPUT, _FIRST_INTERMEDIATE = 0, 16, 24


def can_share(buffer: CircularBuffer) -> bool:
    """Whether D5 may let other buffers share this one: the compute kernel fills it, and the same kernel or the writer
    empties it, so that the blocks of several can follow one another in one order."""
    return buffer.producer == "compute" and buffer.consumer in ("compute", "writer") and not buffer.shard_of


def number_buffers(
    buffers: tuple[CircularBuffer, ...], target: Target, homes: Mapping[str, str] | None = None
) -> tuple[CircularBuffer, ...]:
    """The buffers, each with an index; existing indices are kept where there are enough for all.

    If there are not enough, those that :func:`can_share` get none until D5 has decided which of them share one: `homes`
    names, for each that gives its own up, the one whose index it gets. Raises ResourceError if the indices run out.
    """
    _check_count(buffers, target, homes)
    shared = homes or {}
    if len(buffers) - len(shared) > target.circular_buffers:
        waiting = {buffer.name for buffer in buffers if can_share(buffer)}
    else:
        waiting = set(shared)
    numbered = {
        buffer.name: dataclasses.replace(buffer, index=None) if buffer.name in waiting else buffer for buffer in buffers
    }
    used_indices = {buffer.index for buffer in numbered.values() if buffer.index is not None}
    for name, buffer in numbered.items():
        if buffer.index is not None or name in waiting:
            continue
        first = _FIRST_INTERMEDIATE
        if buffer.consumer == "writer":
            first = _FIRST_OUTPUT
        elif buffer.producer == "reader":
            first = _FIRST_INPUT
        order = [*range(first, target.circular_buffers), *range(first)]
        index = next(number for number in order if number not in used_indices)
        used_indices.add(index)
        numbered[name] = dataclasses.replace(buffer, index=index)
    for name, home in shared.items():
        numbered[name] = dataclasses.replace(numbered[name], index=numbered[home].index)
    return tuple(numbered.values())


def _check_count(buffers: tuple[CircularBuffer, ...], target: Target, homes: Mapping[str, str] | None) -> None:
    """Raise ResourceError if there are more buffers than a core has, although blocks share them: those of `homes`, or,
    before that is decided, all that could."""
    sharing: Collection[str] = homes or ()
    if homes is None:
        ways = {buffer.consumer: buffer.name for buffer in buffers if can_share(buffer)}
        sharing = [buffer.name for buffer in buffers if can_share(buffer) and buffer.name not in ways.values()]
    alone = [buffer for buffer in buffers if buffer.name not in sharing]
    if len(alone) <= target.circular_buffers:
        return
    # The first buffer without a number, or one before it: tiles of masks and scalers are of no line.
    order = [*alone[target.circular_buffers :], *reversed(alone[: target.circular_buffers])]
    first = next((buffer for buffer in order if buffer.origin is not None), order[0])
    raise ResourceError(
        "R002",
        f"{len(alone)} circular buffers are needed{', even where blocks share them' if sharing else ''}; a core of "
        f"{target.name} has {target.circular_buffers}",
        hint="use fewer staging buffers"
        if not can_share(first)
        else "use fewer staging buffers, or keep fewer values of a T.Parallel at a time: compute each right before "
        "its use",
        span=first.origin,
    )


def tensors_in_l1(program: TirProgram) -> tuple[TensorLayout, ...]:
    """The tensors to count in L1: none until B1 has decided which of their shards are circular buffers."""
    undecided = program.plan.partition is None and program.options.mode == "local_shard"
    return () if undecided else program.plan.layouts


def _in_l1(buffers: tuple[CircularBuffer, ...]) -> list[CircularBuffer]:
    """One buffer for each memory that is not a tensor's."""
    return [sharing[0] for sharing in chip_buffers(buffers) if not sharing[0].shard_of]


def _tensor_bytes(layouts: tuple[TensorLayout, ...], target: Target) -> dict[str, int]:
    return {layout.name: l1_bytes_per_core(layout, target) for layout in layouts if layout.memory == "l1"}


def missing_l1(buffers: tuple[CircularBuffer, ...], target: Target, layouts: tuple[TensorLayout, ...]) -> int:
    """By how many bytes buffers and tensors exceed the L1 of a core; negative where they leave some free."""
    used = sum(buffer.total_bytes for buffer in _in_l1(buffers)) + sum(_tensor_bytes(layouts, target).values())
    return used - target.l1_usable_bytes


def check_l1(
    buffers: tuple[CircularBuffer, ...], target: Target, layouts: tuple[TensorLayout, ...], *, decided: bool = False
) -> None:
    """Raise ResourceError, with a table of all uses, if buffers and tensors do not fit into the L1 of a core.

    Unless it is `decided` which buffers share their memory, all that can share are taken to.
    """
    tensors, in_l1 = _tensor_bytes(layouts, target), _in_l1(buffers)
    missing, spared = missing_l1(buffers, target, layouts), 0
    if not decided:
        sizes = [buffer.total_bytes for buffer in in_l1 if can_share(buffer)]
        spared = sum(sizes) - max(sizes, default=0)
    if missing > spared:
        used = missing + target.l1_usable_bytes
        largest = max(buffers, key=lambda buffer: buffer.total_bytes)
        rows = [
            (buffer.total_bytes, buffer.name, f"{buffer.block_pages:>5} tiles x {buffer.stages} stages")
            for buffer in in_l1
        ]
        rows += [(size, name, "its part of the tensor") for name, size in tensors.items()]
        table = "\n".join(
            f"    {name:<24} {description:<22} {size:>10,} B"
            for size, name, description in sorted(rows, key=lambda row: -row[0])
        )
        shrink = f"make the block of {largest.name} smaller, or use fewer stages"
        tensor = max(tensors, key=lambda name: tensors[name], default="")
        if tensor and tensors[tensor] > largest.total_bytes:
            hint = f"keep {tensor} in DRAM, or share it among more cores"
        else:
            hint = f"{shrink} and move a tensor to DRAM" if tensors else shrink
        raise ResourceError(
            "R001",
            f"the circular buffers {'and tensors ' if tensors else ''}need {used:,} B of L1; a core of {target.name} "
            f"has {target.l1_usable_bytes:,} B:\n{table}",
            hint=hint,
            span=largest.origin,
        )
    shared = {buffer.name: group[0].name for group in chip_buffers(buffers) for buffer in group[1:]}
    _check_count(buffers, target, shared if decided else None)
