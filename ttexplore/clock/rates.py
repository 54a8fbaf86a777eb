"""How long each event takes on a target, and the same with one resource made free."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from ttexplore.clock.events import Direction, Engine, Memory
from ttexplore.target import Target

# What can be made free, and so what can bound a program.
Resource = Literal["DRAM", "NoC", "math", "pack", "unpack", "RISC-V", "latency"]
RESOURCES: tuple[Resource, ...] = ("DRAM", "NoC", "math", "pack", "unpack", "RISC-V", "latency")
UNLIMITED = 1e12


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates in bytes per cycle and latencies in cycles.

    `dram` are the rates of all banks together for many readers, for many writers, and for both. `latency` is from the
    start of a transfer until it has arrived, `issue` what the processor spends on each transaction. `busy` are the
    engines that take time.
    """

    link: float
    bank: float
    dram: dict[Direction | Literal["both"], float]
    latency: dict[tuple[Direction, Memory], int]
    issue: dict[tuple[Direction, Memory], int]
    signal: int
    multicast: int
    receiver: int
    busy: frozenset[Engine]

    def multicast_latency(self, receivers: int) -> int:
        """From the first byte until all receivers have confirmed."""
        return self.multicast + self.receiver * receivers


def rates_of(target: Target, free: Resource | None = None) -> Rates:
    """The rates of a target; those of a resource that is `free` are unlimited, and its engine takes no time."""
    costs = target.costs
    ring = target.noc_round_trip_cycles
    rates = Rates(
        link=costs.noc_payload_bytes_per_cycle,
        bank=costs.dram_bank_bytes_per_cycle,
        dram={
            "read": costs.dram_read_bytes_per_cycle,
            "write": costs.dram_write_bytes_per_cycle,
            "both": costs.dram_bank_bytes_per_cycle * target.dram_banks,
        },
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
        busy=frozenset[Engine](("unpack", "math", "pack", "riscv")),
    )  # fmt: skip
    match free:
        case None:
            return rates
        case "DRAM":
            unlimited = dict.fromkeys(rates.dram, UNLIMITED)
            return dataclasses.replace(rates, bank=UNLIMITED, dram=unlimited)
        case "NoC":
            return dataclasses.replace(rates, link=UNLIMITED, issue=dict.fromkeys(rates.issue, 0))
        case "math" | "pack" | "unpack":
            return dataclasses.replace(rates, busy=rates.busy - {free})
        case "RISC-V":
            return dataclasses.replace(rates, busy=rates.busy - {"riscv"})
        case "latency":
            none = dict.fromkeys(rates.latency, 0)
            return dataclasses.replace(rates, latency=none, signal=0, multicast=0, receiver=0)
