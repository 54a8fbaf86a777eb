"""The exercises that ask for blocks and options: a schedule that is fast enough, or moves little enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from ttexplore.errors import shown
from ttexplore.exercises.comparing import Array, Wrong, happened, lowered, run_and_compare
from ttexplore.exercises.written import causal_softmax, product
from ttexplore.exploration import Exploration
from ttexplore.views.markup import plural


def cores_of(exploration: Exploration) -> tuple[Any, ...]:
    """The cores of a program."""
    assert exploration.plan.partition is not None, "what is lowered is partitioned"
    return exploration.plan.partition.cores


def _check_dictionaries(**answers: object) -> None:
    for name, value in answers.items():
        if not isinstance(value, dict):
            raise Wrong(f"{name} is {shown(value)}; a dictionary is asked for.")


def faster(kernel: Any, blocks: Any, options: Any) -> str:
    """Blocks and options with which a product of 512 x 512 x 4096 takes at most 130 µs."""
    _check_dictionaries(blocks=blocks, options=options)
    mine = lowered(kernel, M=512, N=512, K=4096, **blocks, options=options)
    estimate: Any = mine.estimate()
    said = f"{estimate.us:.1f} µs on {plural(len(cores_of(mine)), 'core')}, bound by {estimate.bound}"
    if estimate.us > 130:
        raise Wrong(f"Too slow: {said}. At most 130 µs are asked for.")
    # The same blocks and options, with few enough steps along K to run.
    small = lowered(kernel, M=512, N=512, K=max(256, 2 * blocks.get("block_K", 32)), **blocks, options=options)
    run_and_compare(small, product, "a shorter K")
    return f"{said}."


def tuned(kernel: Any, blocks: Any, options: Any) -> str:
    """Blocks and options with which causal attention takes 72 % of its time, and keeps its numbers."""
    _check_dictionaries(blocks=blocks, options=options)
    size = {"heads": 16, "seq_len": 512, "dim": 64}
    asked = 0.72 * lowered(kernel, **size, block_M=64, block_N=64).estimate().us
    us = lowered(kernel, **size, **blocks, options=options).estimate().us
    if us > asked:
        raise Wrong(f"Too slow: {us:.1f} µs. At most {asked:.1f} µs are asked for, 72 % of what it takes.")
    # The same blocks and options, with few enough heads to run.
    small = lowered(kernel, **{**size, "heads": 2}, **blocks, options=options)
    run_and_compare(small, _causal_attention, "2 heads", tolerance=0.02)
    return f"{us:.1f} µs where {asked:.1f} are asked for, and the numbers are near those of NumPy."


def stays_home(kernel: Any, blocks: Any, options: Any) -> str:
    """Blocks and options with which a sum of 4096 x 128 moves nothing between cores and memory."""
    _check_dictionaries(blocks=blocks, options=options)
    mine = lowered(kernel, M=4096, N=128, **blocks, options=options)
    run = run_and_compare(mine, _sum, "M=4096, N=128")
    reads, writes = happened(run, "read"), happened(run, "write")
    if reads or writes:
        moved = f"{plural(reads, 'read')} and {plural(writes, 'write')}"
        raise Wrong(f"The numbers are right, but the program makes {moved}. None is asked for.")
    return f"{plural(len(cores_of(mine)), 'core')} add up what they have, and nothing moves."


def _causal_attention(Q: Array, K: Array, V: Array) -> Array:
    return causal_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V


def _sum(A: Array, B: Array) -> Array:
    return A + B
