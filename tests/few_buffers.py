"""Kernels on chips that have no more circular buffers than these kernels cannot do without: buffers must share."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import ttexplore as ttx
from ttexplore.exploration import Exploration
from ttexplore.target import get_target


def with_few_buffers(
    kernel: Any, target: str = "wormhole_n150", options: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Exploration:  # fmt: skip
    """The kernel for the smallest number of circular buffers that it can be lowered for."""
    chip = get_target(target)
    count = 1
    while True:
        # The refusal says how many are needed at least, as far as it is known where the lowering stops.
        small = dataclasses.replace(chip, circular_buffers=count)
        found = ttx.explore(kernel, target=small, options=options, sizes=sizes)
        told = None if found.error is None else re.match(r"(\d+) circular buffers are needed", found.error.message)
        if told is None:
            return found
        assert int(told[1]) > count
        count = int(told[1])
