"""The resources of a core for circular buffers: buffer numbers and space in L1."""

from __future__ import annotations

import dataclasses

from ttexplore.errors import ResourceError
from ttexplore.ir.program import Program
from ttexplore.passes.place_tensors import l1_bytes_per_core
from ttexplore.plan import CircularBuffer, TensorLayout
from ttexplore.target import Target

# The convention of the SDK's programming examples: inputs from 0, outputs from 16, intermediates from 24.
_FIRST_INPUT, _FIRST_OUTPUT, _FIRST_INTERMEDIATE = 0, 16, 24


def number_buffers(buffers: tuple[CircularBuffer, ...], target: Target) -> tuple[CircularBuffer, ...]:
    """The buffers, each with an index; existing indices are kept. Raises ResourceError if the indices run out."""
    taken = {buffer.index for buffer in buffers if buffer.index is not None}
    made: list[CircularBuffer] = []
    for buffer in buffers:
        if buffer.index is not None:
            made.append(buffer)
            continue
        first = _FIRST_INTERMEDIATE
        if buffer.consumer == "writer":
            first = _FIRST_OUTPUT
        elif buffer.producer == "reader":
            first = _FIRST_INPUT
        order = [*range(first, target.circular_buffers), *range(first)]
        index = next((number for number in order if number not in taken), None)
        if index is None:
            raise ResourceError(
                "R002",
                f"{len(buffers)} circular buffers are needed; a core of {target.name} has {target.circular_buffers}",
                hint="use fewer staging buffers"
                if buffer.producer != "compute" or buffer.consumer != "compute"
                else "use fewer staging buffers, or keep fewer values of a T.Parallel at a time: compute each right "
                "before its use",
                span=buffer.origin,
            )
        taken.add(index)
        made.append(dataclasses.replace(buffer, index=index))
    return tuple(made)


def tensors_in_l1(program: Program) -> tuple[TensorLayout, ...]:
    """The tensors to count in L1: none until B1 has decided which of their shards are circular buffers."""
    undecided = program.plan.partition is None and program.options.mode == "local_shard"
    return () if undecided else program.plan.layouts


def check_l1(buffers: tuple[CircularBuffer, ...], target: Target, layouts: tuple[TensorLayout, ...]) -> None:
    """Raise ResourceError, with a table of all uses, if buffers and tensors do not fit into the L1 of a core."""
    tensors = {layout.name: l1_bytes_per_core(layout, target) for layout in layouts if layout.memory == "l1"}
    used = sum(buffer.total_bytes for buffer in buffers if not buffer.shard_of) + sum(tensors.values())
    if used > target.l1_usable_bytes:
        largest = max(buffers, key=lambda buffer: buffer.total_bytes)
        rows = [
            (buffer.total_bytes, buffer.name, f"{buffer.block_pages:>5} tiles x {buffer.stages} stages")
            for buffer in buffers
            if not buffer.shard_of
        ]
        rows += [(part, name, "its part of the tensor") for name, part in tensors.items()]
        table = "\n".join(
            f"    {name:<24} {what:<22} {part:>10,} B" for part, name, what in sorted(rows, key=lambda row: -row[0])
        )
        others = " and move a tensor to DRAM" if tensors else ""
        raise ResourceError(
            "R001",
            f"the circular buffers {'and tensors ' if tensors else ''}need {used:,} B of L1; a core of {target.name} "
            f"has {target.l1_usable_bytes:,} B:\n{table}",
            hint=f"make the block of {largest.name} smaller, or use fewer stages{others}",
            span=largest.origin,
        )
    if len(buffers) > target.circular_buffers:
        raise ResourceError(
            "R002",
            f"{len(buffers)} circular buffers are needed; a core of {target.name} has {target.circular_buffers}",
            hint="use fewer staging buffers",
            # The first buffer without a number.
            span=next((one.origin for one in buffers[target.circular_buffers :] if one.origin is not None), None),
        )
