"""What each operation of the kernels costs on a core: the time in which processors work for it, and wait in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ttexplore.clock.events import CoreClass, ProcessorName
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import MOVES, WORKS, replay
from ttexplore.plan import KernelRole
from ttexplore.target import Target


@dataclass(frozen=True, slots=True)
class OperationCost:
    """What one processor spends on an operation, which has a position among those of its kernel, in all iterations:
    microseconds of work, of waiting by what it waits for, and the bytes of the transfers that it starts."""

    kernel: KernelRole
    operation: int
    processor: ProcessorName
    busy_us: float
    waits_us: Mapping[str, float]
    moved_bytes: int


def operation_costs(classes: Sequence[CoreClass], target: Target) -> tuple[OperationCost, ...]:
    """The costs on a core that ends last, of classes whose events are marked. What repeats is counted, not replayed,
    as in the estimate: both come to the same."""
    replayed = replay(classes, rates_of(target), with_costs=True)
    last = max(range(len(classes)), key=lambda number: max(time.end for time in replayed.processors[number].values()))
    to_us = 1e6 / target.clock_hz
    costs: list[OperationCost] = []
    for processor, charged in replayed.costs[last].items():
        by_source: dict[tuple[KernelRole, int], dict[str, float]] = {}
        for (source, label), amount in charged.items():
            if source is not None:
                by_source.setdefault(source, {})[label] = amount
        for (kernel, operation), amounts in by_source.items():
            waits = {label: amount * to_us for label, amount in amounts.items() if label not in (WORKS, MOVES)}
            costs.append(
                OperationCost(
                    kernel, operation, processor, amounts.get(WORKS, 0) * to_us, waits, int(amounts.get(MOVES, 0))
                )
            )
    return tuple(sorted(costs, key=lambda cost: (cost.kernel, cost.operation, cost.processor)))
