"""Machine models: the resources and costs of each chip, as data.

Sources of the numbers, all from SDK 0.81.1 unless a line says otherwise:

- NoC grids and the role of each node: ``tt_metal/soc_descriptors/{wormhole_b0_80_arch,blackhole_140_arch}.yaml``;
- compute grids: ``tt_metal/core_descriptors/*.yaml``;
- the NoC node of each DRAM bank: ``dram_views`` of the soc descriptors (`worker_endpoint`, for NoC 0 and NoC 1);
- usable L1, DRAM bank sizes, alignments: read from the SDK's allocator on a mock device;
- rates of the matrix and vector units: tt-isa-documentation, ``MatrixUnit`` and ``VectorUnit``;
- NoC latencies, issue and payload rates: ``tt_metal/impl/experimental/noc_estimator/latencies/noc_latencies.yaml``,
  fitted: the model matches its entries for one read of 64 bytes within 3 %; multicasts, besides, to ``One to All
  Multicast Linked 11x10`` of the plots below;
- rate of one DRAM bank: ``tech_reports/Saturating_DRAM_bandwidth`` and its Blackhole counterpart (371 B/cycle for 8);
- what a core reads from interleaved pages: ``data_movement/documentation/perf_plots``, DRAM Interleaved Packet Sizes
  (Wormhole 22.3 B/cycle at any size, Blackhole 21.3 to 23.6 up to 16 KB);
- what a page adds to its bytes in DRAM: on Blackhole, an endpoint takes a request per 16.4 cycles, and pages of 576
  bytes reach 62 % of its peak (https://github.com/tenstorrent/tt-metal/issues/55898); with eight banks, 1.6 cycles are
  between that and what the small square matmuls tell. On Wormhole, with the rate of all banks, derived from four times
  of InterleavedToSharded (issue 6729 there), in pages of 2048 and of 1088 bytes;
- what is left of the rate where cores read and write at a time: AdamW with 346 GB/s on a p100a (pull request 39951).
  Eight banks move no more than seven: 313 GB/s of an activation (``tech_reports/Gemma4PrefillChunkSize``);
- what a page adds on a p100a: decoding with caches of three formats (https://github.com/tenstorrent/tt-metal/issues/57161);
- rates of writes, of the unpackers, and the time of a launch: derived once for each chip from the square rows of
  ``tech_reports/GEMM_FLOPS`` (docs/clock.md says how).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ttexplore.errors import UsageError, shown
from ttexplore.given import LARGEST, flag, named, plain, whole, wholes
from ttexplore.record import to_json

NodeKind = Literal["tensix", "dram", "ethernet", "arc", "pcie", "router", "harvested"]
Coordinates = tuple[int, int]


# The RISC-V processors of a Tensix core, by what each runs: the two kernels that move data, and the three parts of the
# compute kernel (metalium.md, section 1).
RISCV_PROCESSORS: Mapping[str, str] = {
    "writer": "BRISC", "reader": "NCRISC", "unpack": "TRISC0", "math": "TRISC1", "pack": "TRISC2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FloorplanNode:
    """A node of the NoC grid at column `x`, row `y` (NoC 0 counts both from the top left).

    `logical` are the coordinates that programs use, None if the node runs no kernels of ours; `channel` is the number
    of a dram node's channel. A `harvested` node is a worker that is switched off on this card.
    """

    x: int
    y: int
    kind: NodeKind
    logical: Coordinates | None = None
    channel: int | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of operations on one core in clock cycles, and transfer rates in bytes per cycle.

    `matmul_tile_cycles` is one 32x32x32 product by math fidelity: 16 cycles per fidelity phase, 2048 multiply-adds
    each (tt-isa-documentation, MVMUL). `multiply_tile_cycles` likewise for the element-wise product; sums and
    differences take `add_tile_cycles` at any fidelity (128 elements per cycle). `matmul_call_cycles` is added to each
    call of matmul_tiles (measured on Blackhole silicon: 34.7, 52.1 and 85.7 cycles at LoFi, HiFi2 and HiFi4);
    matmul_block incurs it once per sub-block. The vector unit processes `vector_lanes` elements per instruction.

    One NoC read takes ``noc_read_cycles + noc_hop_cycles * hops``, round trip, plus `dram_read_cycles` from DRAM, and
    a write `dram_write_cycles` to it. Issuing a transaction takes `noc_issue_cycles`, of a read from L1
    `l1_read_issue_cycles`, and finding the bank of a page `accessor_cycles`. A link moves `noc_bytes_per_cycle` in each
    direction, of which `noc_payload_bytes_per_cycle` arrive, at most `noc_packet_bytes` in a packet. One DRAM bank
    delivers `dram_bank_bytes_per_cycle`, and one core reads or writes `dram_core_bytes_per_cycle` of pages that lie in
    several. Cores all over the grid together read `dram_read_bytes_per_cycle` from all banks, which spend
    `dram_request_cycles` on each page besides, and write `dram_write_bytes_per_cycle`; while some read and others
    write, the banks reach `dram_mixed_share` of their rate. A multicast takes `multicast_cycles` and
    `multicast_receiver_cycles` for each receiver, until all have confirmed; the next one begins at least
    `multicast_issue_cycles`, and `multicast_issue_receiver_cycles` for each receiver, after it.

    Both unpackers together take `unpack_bytes_per_cycle` from L1. The math engine spends `matmul_tile_factor` times the
    cycles of each product. A call that reserves, pushes, waits or pops takes `buffer_call_cycles` (an estimate).
    Between two launches in a trace, and for the start of their kernels, `launch_cycles` go by.
    """

    noc_read_cycles: int
    noc_issue_cycles: int
    dram_read_cycles: int
    dram_write_cycles: int
    l1_read_issue_cycles: int
    accessor_cycles: int
    dram_bank_bytes_per_cycle: float
    dram_read_bytes_per_cycle: float
    dram_request_cycles: float
    dram_write_bytes_per_cycle: float
    dram_core_bytes_per_cycle: float
    noc_bytes_per_cycle: int
    noc_payload_bytes_per_cycle: float
    noc_packet_bytes: int
    multicast_cycles: int
    multicast_issue_cycles: float
    multicast_issue_receiver_cycles: float
    unpack_bytes_per_cycle: float
    launch_cycles: int
    multicast_receiver_cycles: int = 3
    noc_hop_cycles: int = 9
    matmul_tile_cycles: dict[str, int] = field(
        default_factory=lambda: {"LoFi": 16, "HiFi2": 32, "HiFi3": 48, "HiFi4": 64}
    )
    multiply_tile_cycles: dict[str, int] = field(
        default_factory=lambda: {"LoFi": 8, "HiFi2": 16, "HiFi3": 24, "HiFi4": 32}
    )
    matmul_call_cycles: int = 18
    matmul_tile_factor: float = 1.06
    add_tile_cycles: int = 8
    vector_lanes: int = 32
    # Four packers of 16 bytes each on Wormhole.
    pack_bytes_per_cycle: int = 64
    buffer_call_cycles: int = 15
    dram_mixed_share: float = 0.78


@dataclass(frozen=True, slots=True)
class Target:
    """A chip as the compiler sees it.

    `compute_grid` is (columns, rows) of the cores that run kernels, the logical coordinates (x, y) from (0, 0).
    `noc_grid` is (columns, rows) of the NoC; workers are at the intersections of `worker_columns` and `worker_rows`.
    `harvested` names the worker rows (Wormhole) or columns (Blackhole), in NoC coordinates, that are
    switched off. `dram_channels` lists the NoC nodes of each channel; memory is spread over `dram_banks` banks of
    `dram_bank_bytes`. `l1_usable_bytes` of a core's `l1_bytes` are available to circular buffers and L1 tensors.
    `max_kernel_arguments` counts the runtime and common arguments of one kernel on one core together, in 32-bit words.
    """

    name: str
    arch: Literal["wormhole_b0", "blackhole"]
    compute_grid: tuple[int, int]
    noc_grid: tuple[int, int]
    worker_columns: tuple[int, ...]
    worker_rows: tuple[int, ...]
    harvested: tuple[int, ...]
    dram_channels: tuple[tuple[Coordinates, ...], ...]
    ethernet_nodes: tuple[Coordinates, ...]
    arc_nodes: tuple[Coordinates, ...]
    pcie_nodes: tuple[Coordinates, ...]
    l1_bytes: int
    l1_usable_bytes: int
    circular_buffers: int
    dram_banks: int
    dram_bank_bytes: int
    dram_alignment_bytes: int
    clock_hz: float
    costs: Costs
    l1_alignment_bytes: int = 16
    semaphores: int = 16
    max_kernel_arguments: int = 4094

    @property
    def cores(self) -> int:
        """The number of cores that run kernels."""
        return self.compute_grid[0] * self.compute_grid[1]

    @property
    def worker_grid(self) -> tuple[int, int]:
        """(columns, rows) of the workers that are not harvested; some may dispatch instead of running kernels."""
        columns, rows = self._working()
        return len(columns), len(rows)

    @property
    def noc_round_trip_cycles(self) -> int:
        """From a core to another one and back. Both NoCs are rings along both axes, so the way goes once round each,
        however near the other core is.

        Source: ``noc_latencies.yaml`` of tt-metal.
        """
        return self.costs.noc_read_cycles + self.costs.noc_hop_cycles * sum(self.noc_grid)

    def dst_tiles(self, wide: bool, full_sync: bool = False) -> int:
        """The number of 32x32 tiles that DST holds: 8 of 16 bits or, if `wide`, 4 of 32 bits; twice as many with
        `full_sync`, in which math and pack do not overlap.

        Source: ``get_dest_max_tiles`` of tt-metal.
        """
        return (4 if flag("wide", wide) else 8) * (2 if flag("full_sync", full_sync) else 1)

    def physical(self, x: int, y: int) -> Coordinates:
        """The NoC 0 node of the logical core (`x`, `y`). Raises UsageError outside the compute grid."""
        x, y = self._core(x, y)
        columns, rows = self._working()
        return columns[x], rows[y]

    def translated(self, x: int, y: int) -> Coordinates:
        """The coordinates that a kernel uses to address the logical core (`x`, `y`) over the NoC.

        They do not depend on harvesting: Wormhole counts from (18, 18), Blackhole uses the columns of a full chip.
        Source: ``worker_core_from_logical_core`` on a mock device. Raises UsageError outside the compute grid.
        """
        x, y = self._core(x, y)
        match self.arch:
            case "wormhole_b0":
                return x + 18, y + 18
            case "blackhole":
                return self.worker_columns[x], self.worker_rows[y]

    def bank_nodes(self, noc: Literal[0, 1]) -> tuple[Coordinates, ...]:
        """The NoC 0 coordinates of the node over which a NoC reaches each DRAM bank. Which banks of a chip are switched
        off is not known: the last ones count as such."""
        noc = cast(Literal[0, 1], whole("noc", noc, 0, 1))
        nodes = [self.dram_channels[channel][ends[noc]] for channel, ends in _BANK_ENDPOINTS[self.arch]]
        return tuple(nodes[: self.dram_banks])

    def floorplan(self) -> tuple[FloorplanNode, ...]:
        """Every node of the NoC grid, row by row; workers of the compute grid carry their logical coordinates."""
        columns, rows = self.noc_grid
        logical = {
            self.physical(x, y): (x, y) for y in range(self.compute_grid[1]) for x in range(self.compute_grid[0])
        }
        return tuple(self._node(x, y, logical) for y in range(rows) for x in range(columns))

    def to_json(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return to_json(self)

    def _working(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        match self.arch:
            case "wormhole_b0":
                return self.worker_columns, tuple(row for row in self.worker_rows if row not in self.harvested)
            case "blackhole":
                return tuple(column for column in self.worker_columns if column not in self.harvested), self.worker_rows

    def _core(self, x: object, y: object) -> Coordinates:
        """The logical coordinates of a core. Raises UsageError if there is none."""
        columns, rows = self.compute_grid
        x, y = plain(x), plain(y)
        if not (isinstance(x, int) and isinstance(y, int) and 0 <= x < columns and 0 <= y < rows):
            raise UsageError(
                "U007",
                f"{self.name} has no core {shown((x, y))}",
                hint=f"use cores from (0, 0) to ({columns - 1}, {rows - 1})",
            )
        return x, y

    def _node(self, x: int, y: int, logical: dict[Coordinates, Coordinates]) -> FloorplanNode:
        if x in self.worker_columns and y in self.worker_rows:
            if (y if self.arch == "wormhole_b0" else x) in self.harvested:
                return FloorplanNode(x, y, "harvested")
            return FloorplanNode(x, y, "tensix", logical.get((x, y)))
        for channel, nodes in enumerate(self.dram_channels):
            if (x, y) in nodes:
                return FloorplanNode(x, y, "dram", channel=channel)
        if (x, y) in self.ethernet_nodes:
            return FloorplanNode(x, y, "ethernet")
        if (x, y) in self.arc_nodes:
            return FloorplanNode(x, y, "arc")
        return FloorplanNode(x, y, "pcie" if (x, y) in self.pcie_nodes else "router")


# Of each DRAM bank, its channel, and which of the channel's nodes NoC 0 and NoC 1 go to.
_BANK_ENDPOINTS: dict[str, tuple[tuple[int, tuple[int, int]], ...]] = {
    "wormhole_b0": tuple(
        (channel, (node, node))
        for channel, nodes in enumerate(((2, 1), (0, 2), (1, 2), (0, 1), (2, 0), (0, 2)))
        for node in nodes
    ),
    "blackhole": tuple((channel, (node, 1)) for channel, node in enumerate((2, 0, 0, 0, 2, 2, 2, 2))),
}

_WORMHOLE_COLUMNS = (1, 2, 3, 4, 6, 7, 8, 9)

_N150 = Target(
    name="wormhole_n150",
    arch="wormhole_b0",
    # One row of ten is harvested and one dispatches; the harvested row differs between n150 cards.
    compute_grid=(8, 8),
    noc_grid=(10, 12),
    worker_columns=_WORMHOLE_COLUMNS,
    worker_rows=(1, 2, 3, 4, 5, 7, 8, 9, 10, 11),
    harvested=(11,),
    dram_channels=(
        ((0, 0), (0, 1), (0, 11)),
        ((0, 5), (0, 6), (0, 7)),
        ((5, 0), (5, 1), (5, 11)),
        ((5, 2), (5, 9), (5, 10)),
        ((5, 3), (5, 4), (5, 8)),
        ((5, 5), (5, 6), (5, 7)),
    ),
    ethernet_nodes=tuple((x, y) for y in (0, 6) for x in _WORMHOLE_COLUMNS),
    arc_nodes=((0, 10),),
    pcie_nodes=((0, 3),),
    l1_bytes=1_499_136,
    l1_usable_bytes=1_393_312,
    circular_buffers=32,
    dram_banks=12,
    dram_bank_bytes=1_072_693_184,
    dram_alignment_bytes=32,
    clock_hz=1.0e9,
    costs=Costs(
        noc_read_cycles=95,
        noc_issue_cycles=22,
        l1_read_issue_cycles=27,
        dram_read_cycles=99,
        dram_write_cycles=112,
        accessor_cycles=2,
        dram_bank_bytes_per_cycle=24.0,
        dram_read_bytes_per_cycle=340.0,
        dram_request_cycles=2.0,
        dram_write_bytes_per_cycle=75.0,
        dram_core_bytes_per_cycle=22.3,
        noc_bytes_per_cycle=32,
        noc_payload_bytes_per_cycle=28.4,
        noc_packet_bytes=8192,
        multicast_cycles=400,
        multicast_issue_cycles=30.0,
        multicast_issue_receiver_cycles=0.46,
        unpack_bytes_per_cycle=58.0,
        launch_cycles=2500,
    ),
)

_BLACKHOLE_COLUMNS = (*range(1, 8), *range(10, 17))
# The three nodes of each channel in a DRAM column, the same in both columns.
_BLACKHOLE_DRAM_ROWS = ((0, 1, 11), (2, 10, 3), (9, 4, 8), (5, 7, 6))

_P150 = Target(
    name="blackhole_p150",
    arch="blackhole",
    # Cards report 120 to 140 workers, depending on firmware; all have two harvested columns and one that dispatches.
    compute_grid=(11, 10),
    noc_grid=(17, 12),
    worker_columns=_BLACKHOLE_COLUMNS,
    worker_rows=tuple(range(2, 12)),
    harvested=(15, 16),
    dram_channels=tuple(tuple((x, y) for y in rows) for x in (0, 9) for rows in _BLACKHOLE_DRAM_ROWS),
    ethernet_nodes=tuple((x, 1) for x in _BLACKHOLE_COLUMNS),
    arc_nodes=((8, 0),),
    pcie_nodes=((2, 0), (11, 0)),
    l1_bytes=1_572_864,
    l1_usable_bytes=1_461_120,
    circular_buffers=64,
    dram_banks=8,
    dram_bank_bytes=4_278_190_080,
    dram_alignment_bytes=64,
    clock_hz=1.35e9,
    costs=Costs(
        noc_read_cycles=112,
        noc_issue_cycles=22,
        l1_read_issue_cycles=38,
        dram_read_cycles=126,
        dram_write_cycles=15,
        accessor_cycles=8,
        dram_bank_bytes_per_cycle=47.0,
        dram_read_bytes_per_cycle=376.0,
        dram_request_cycles=1.6,
        dram_write_bytes_per_cycle=280.0,
        dram_core_bytes_per_cycle=22.0,
        noc_bytes_per_cycle=64,
        noc_payload_bytes_per_cycle=61.0,
        noc_packet_bytes=16384,
        multicast_cycles=450,
        multicast_issue_cycles=28.0,
        multicast_issue_receiver_cycles=0.65,
        unpack_bytes_per_cycle=80.0,
        launch_cycles=1600,
        dram_mixed_share=0.68,
    ),
)

DEFAULT_TARGET = _N150.name
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _N150,
        # One chip of the card, two rows harvested; ttnn dispatches from ethernet cores there, so all 8x8 run kernels.
        dataclasses.replace(_N150, name="wormhole_n300", harvested=(10, 11)),
        # One DRAM bank of eight is switched off.
        dataclasses.replace(
            _P150,
            name="blackhole_p100",
            dram_banks=7,
            costs=dataclasses.replace(
                _P150.costs,
                dram_read_bytes_per_cycle=376.0 * 7 / 8,
                dram_request_cycles=1.3,
                dram_mixed_share=0.78,
                dram_write_bytes_per_cycle=280.0 * 7 / 8,
            ),
        ),
        _P150,
    )
}


def get_target(
    target: str | Target, *, grid: tuple[int, int] | None = None, harvested: int | Sequence[int] | None = None
) -> Target:
    """Return a machine model by name, or a given one, optionally with other harvesting or another compute grid.

    `harvested` lists rows (Wormhole) or columns (Blackhole) in NoC coordinates, or counts them from the far end;
    the compute grid shrinks to the remaining cores. `grid` is the compute grid, (columns, rows). Raises UsageError for
    an unknown name, rows or columns without workers, and a grid larger than the chip's.
    """
    if not isinstance(target, Target):
        target = TARGETS[named("target", target, TARGETS)]
    if harvested is not None:
        target = _harvest(target, harvested)
    if grid is not None:
        columns, rows = target.worker_grid
        grid = cast("tuple[int, int]", wholes("grid", grid, 2))
        if not (1 <= grid[0] <= columns and 1 <= grid[1] <= rows):
            raise UsageError(
                "U011",
                f"{target.name} has {columns}x{rows} workers, not {grid[0]}x{grid[1]}",
                hint="use a grid within that, or change harvested",
            )
        target = dataclasses.replace(target, compute_grid=grid)
    return target


def _harvest(target: Target, harvested: int | Sequence[int]) -> Target:
    noun, lines = ("rows", target.worker_rows) if target.arch == "wormhole_b0" else ("columns", target.worker_columns)
    value = plain(list(harvested) if isinstance(harvested, set | frozenset) else harvested)
    if not isinstance(value, list | tuple):
        count = whole("harvested", value, -LARGEST)
        if not 0 <= count < len(lines):
            raise UsageError(
                "U011",
                f"{count} of {len(lines)} {noun} cannot be harvested",
                hint=f"use a number from 0 to {len(lines) - 1}",
            )
        chosen = lines[len(lines) - count :]
    else:
        chosen = tuple(sorted(set(wholes("harvested", cast(object, value))))) if value else ()
        if strange := [line for line in chosen if line not in lines]:
            raise UsageError(
                "U011",
                f"{noun} {strange} of {target.name} contain no workers",
                hint=f"use {noun} with workers: {', '.join(map(str, lines))}",
            )
        if len(chosen) == len(lines):
            raise UsageError(
                "U011", f"{target.name} would have no workers left", hint=f"keep at least one of its {noun}"
            )
    target = dataclasses.replace(target, harvested=chosen)
    columns, rows = target.worker_grid
    fitted = (min(target.compute_grid[0], columns), min(target.compute_grid[1], rows))
    return dataclasses.replace(target, compute_grid=fitted)
