"""How long each event takes on a target, and the same with one resource made free."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ttexplore.clock.events import Direction, Engine, Memory
from ttexplore.target import Target

# What can be made free, and so what can bound a program.
Resource = Literal["DRAM", "NoC", "math", "pack", "unpack", "RISC-V", "latency"]
RESOURCES: tuple[Resource, ...] = ("DRAM", "NoC", "math", "pack", "unpack", "RISC-V", "latency")
UNLIMITED = 1e12
_ENGINES: tuple[Engine, ...] = ("unpack", "math", "pack", "riscv")
# Of the flag that follows a multicast.
FLAG_BYTES = 16
# Of the shorter one of the bytes of a multicast and the gap to the next one: fitted to noc_latencies.yaml and ``One to
# All Multicast Linked`` of tt-metal.
_NOT_OVERLAPPED = 0.3


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates in bytes per cycle and latencies in cycles.

    `dram` are the rates of all banks together for many readers, for many writers, and for both at a time; a page that
    is read takes `request` cycles of them besides its bytes. `core` is what one core moves of pages in several banks.
    `latency` is from the start of a transfer until it has arrived, `issue` what the processor spends on each
    transaction; `multicast_issue` is what passes between two multicasts, and what each receiver adds to that. `busy` is
    the part of its cycles that each engine takes.
    """

    link: float
    core: float
    bank: float
    dram: dict[Direction | Literal["both"], float]
    request: float
    latency: dict[tuple[Direction, Memory], int]
    issue: dict[tuple[Direction, Memory], int]
    signal: int
    multicast: int
    receiver: int
    multicast_issue: tuple[float, float]
    busy: Mapping[Engine, float]

    def multicast_latency(self, receivers: int) -> int:
        """From the first byte until all receivers have confirmed."""
        return self.multicast + self.receiver * receivers

    def reading(self, pages_per_byte: float) -> float:
        """The bytes per cycle that all banks together deliver to many cores, of so many pages in each byte."""
        return 1 / (1 / self.dram["read"] + self.request * pages_per_byte)

    def multicast_rate(self, receivers: int, size: float) -> float:
        """The bytes per cycle of multicasts of a size, one after another. What passes between two of them overlaps for
        the most part with their bytes."""
        each, receiver = self.multicast_issue
        gap, payload = each + receiver * receivers, size / self.link
        return size / (max(gap, payload) + _NOT_OVERLAPPED * min(gap, payload))


def rates_of(target: Target, free: Resource | None = None, times: float = math.inf) -> Rates:
    """The rates of a target; those of a resource that is `free` are so many times as high, and what it does by itself
    takes that much less: without `times`, no time at all."""
    costs = target.costs
    ring = target.noc_round_trip_cycles
    rates = Rates(
        link=costs.noc_payload_bytes_per_cycle,
        core=costs.dram_core_bytes_per_cycle,
        bank=costs.dram_bank_bytes_per_cycle,
        dram={
            "read": costs.dram_read_bytes_per_cycle,
            "write": costs.dram_write_bytes_per_cycle,
            "both": costs.dram_mixed_share * costs.dram_bank_bytes_per_cycle * target.dram_banks,
        },
        request=costs.dram_request_cycles,
        latency={
            ("read", "l1"): ring, ("write", "l1"): ring,
            ("read", "dram"): ring + costs.dram_read_cycles, ("read", "bank"): ring + costs.dram_read_cycles,
            ("write", "dram"): ring + costs.dram_write_cycles, ("write", "bank"): ring + costs.dram_write_cycles,
        },
        issue={
            ("read", "l1"): costs.l1_read_issue_cycles, ("write", "l1"): costs.noc_issue_cycles,
            ("read", "bank"): costs.noc_issue_cycles, ("write", "bank"): costs.noc_issue_cycles,
            ("read", "dram"): costs.noc_issue_cycles + costs.accessor_cycles,
            ("write", "dram"): costs.noc_issue_cycles + costs.accessor_cycles,
        },
        signal=ring // 2,
        multicast=costs.multicast_cycles,
        receiver=costs.multicast_receiver_cycles,
        multicast_issue=(costs.multicast_issue_cycles, costs.multicast_issue_receiver_cycles),
        busy=dict.fromkeys(_ENGINES, 1.0),
    )  # fmt: skip
    if free is None:
        return rates
    match free:
        case "DRAM":
            quick = {which: _quick(rate, times) for which, rate in rates.dram.items()}
            core, bank = _quick(rates.core, times), _quick(rates.bank, times)
            return dataclasses.replace(rates, core=core, bank=bank, dram=quick, request=rates.request / times)
        case "NoC":
            issue = {event: round(cycles / times) for event, cycles in rates.issue.items()}
            each, receiver = rates.multicast_issue
            gap = each / times, receiver / times
            return dataclasses.replace(rates, link=_quick(rates.link, times), issue=issue, multicast_issue=gap)
        case "math" | "pack" | "unpack":
            return dataclasses.replace(rates, busy={**rates.busy, free: 1 / times})
        case "RISC-V":
            return dataclasses.replace(rates, busy={**rates.busy, "riscv": 1 / times})
        case "latency":
            latency = {event: round(cycles / times) for event, cycles in rates.latency.items()}
            signal, multicast, receiver = (
                round(cycles / times) for cycles in (rates.signal, rates.multicast, rates.receiver)
            )
            return dataclasses.replace(rates, latency=latency, signal=signal, multicast=multicast, receiver=receiver)


def _quick(rate: float, times: float) -> float:
    return min(rate * times, UNLIMITED)
