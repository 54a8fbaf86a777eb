"""Published times of silicon.

GEMMS: ``tech_reports/GEMM_FLOPS/GEMM_FLOPS.md`` of tt-metal (commit 06bd3735), out of the box, inputs and outputs in
DRAM, with trace: microseconds of one matmul, and the share of the compute peak that its math processors reach while
they run, in percent. The latter leaves out what the writers still have to do, and the launch.

PATTERNS: ``tt_metal/impl/experimental/noc_estimator/latencies/noc_latencies.yaml`` (commit 1bf49110): cycles of one
core that transfers 64, 2048 and 8192 bytes several times, with one barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.clock.sdk import multicasts, transfers
from ttexplore.clock.events import CoreClass
from ttexplore.target import TARGETS, Target

N150, P150 = TARGETS["wormhole_n150"], TARGETS["blackhole_p150"]
# A card with one harvested column and one that dispatches.
P150_13 = replace(P150, harvested=(16,), compute_grid=(13, 10))

# The bytes of a tile, and the fidelity that the report uses with it.
FORMATS = {"bf16": (2048, "HiFi2"), "bfp8": (1088, "LoFi"), "bfp4": (576, "LoFi")}

_WORMHOLE = {
    (512, 512, 512): ((19.97, 17.82), (14.21, 11.28), (12.26, 14.47)),
    (512, 1024, 1024): ((115.24, 9.00), (72.39, 7.03), (56.59, 8.70)),
    (512, 1024, 2048): ((140.73, 16.70), (86.52, 13.13), (61.96, 17.28)),
    (1024, 1024, 1024): ((68.98, 41.64), (40.97, 33.54), (27.22, 44.84)),
    (1024, 1024, 2048): ((113.06, 56.61), (66.07, 45.07), (44.86, 55.64)),
    (1024, 2048, 2048): ((159.68, 60.49), (89.85, 52.97), (63.50, 65.21)),
    (2048, 2048, 2048): ((298.92, 66.74), (155.98, 63.73), (114.89, 73.89)),
    (2048, 2048, 3072): ((450.65, 70.07), (235.43, 67.18), (173.37, 75.34)),
    (2048, 3072, 3072): ((576.86, 71.30), (297.12, 69.28), (231.66, 77.88)),
    (3072, 3072, 3072): ((886.18, 58.19), (438.80, 69.84), (336.38, 79.74)),
    (3072, 3072, 4096): ((1142.55, 60.97), (577.41, 71.69), (439.40, 80.73)),
    (3072, 4096, 4096): ((1458.79, 59.41), (729.21, 62.60), (558.75, 81.68)),
    (4096, 4096, 4096): ((2008.53, 59.46), (927.32, 64.35), (746.69, 82.24)),
}
_BLACKHOLE = {
    (640, 704, 704): ((15.70, 18.49), (13.04, 10.16), (11.67, 10.81)),
    (640, 1408, 1408): ((27.76, 41.64), (20.99, 24.75), (18.18, 26.89)),
    (640, 1408, 2816): ((46.13, 51.34), (32.78, 32.84), (26.29, 37.89)),
    (1280, 1408, 1408): ((41.37, 61.35), (27.32, 43.30), (21.36, 49.94)),
    (1280, 1408, 2816): ((72.48, 75.97), (43.47, 60.90), (33.80, 65.60)),
    (1280, 2816, 2816): ((108.11, 80.38), (60.83, 72.48), (51.70, 75.13)),
    (2560, 2816, 2816): ((203.18, 85.06), (107.69, 80.57), (93.38, 81.50)),
    (2560, 2816, 4224): ((291.09, 86.13), (153.75, 82.30), (131.63, 83.09)),
    (2560, 4224, 4224): ((392.01, 87.03), (206.96, 84.39), (184.48, 85.14)),
    (3840, 4224, 4224): ((588.30, 80.38), (301.24, 85.82), (270.50, 86.88)),
    (3840, 4224, 5632): ((792.54, 80.63), (406.24, 86.54), (366.71, 87.32)),
    (3840, 5632, 5632): ((1019.05, 80.27), (519.18, 80.60), (475.04, 88.12)),
    (5120, 5632, 5632): ((1356.12, 80.52), (688.16, 80.74), (627.70, 88.86)),
}
_BLACKHOLE_13 = {
    (640, 832, 832): ((18.07, 18.82), (15.18, 10.30), (13.51, 10.85)),
    (640, 1664, 1664): ((32.44, 41.08), (24.54, 25.19), (21.01, 27.51)),
    (640, 1664, 3328): ((54.37, 51.04), (38.17, 33.89), (30.77, 38.21)),
    (1280, 1664, 1664): ((48.28, 61.85), (31.89, 43.72), (25.05, 50.65)),
    (1280, 1664, 3328): ((84.85, 76.75), (50.69, 61.45), (39.49, 67.13)),
    (1280, 3328, 3328): ((127.11, 81.07), (72.80, 71.22), (60.27, 76.38)),
    (2560, 3328, 3328): ((239.68, 85.66), (126.97, 81.31), (110.04, 82.30)),
    (2560, 3328, 4992): ((343.86, 86.55), (181.51, 82.96), (156.94, 83.96)),
    (2560, 4992, 4992): ((465.24, 87.40), (243.88, 84.73), (219.64, 85.87)),
    (3840, 4992, 4992): ((699.43, 80.25), (358.22, 86.41), (324.72, 87.42)),
    (3840, 4992, 6656): ((941.22, 80.79), (480.14, 86.74), (435.39, 87.85)),
    (3840, 6656, 6656): ((1211.09, 79.98), (614.57, 80.84), (562.32, 88.62)),
    (5120, 6656, 6656): ((1609.77, 80.37), (812.78, 80.83), (743.99, 89.27)),
}


@dataclass(frozen=True, eq=False)
class Gemm:
    """A row of the report: sizes (M, K, N), microseconds, and the share of the peak in percent."""

    target: Target
    sizes: tuple[int, int, int]
    format: str
    us: float
    utilization: float


GEMMS = tuple(
    Gemm(target, sizes, name, us, utilization)
    for target, table in ((N150, _WORMHOLE), (P150, _BLACKHOLE), (P150_13, _BLACKHOLE_13))
    for sizes, row in table.items()
    for name, (us, utilization) in zip(FORMATS, row, strict=True)
)

SIZES = (64, 2048, 8192)


@dataclass(frozen=True)
class Pattern:
    """`count` transfers; `cycles` for each size."""

    name: str
    target: Target
    count: int
    cycles: tuple[int, int, int]
    receivers: int = 0

    def events(self, size: int) -> list[CoreClass]:
        if self.receivers:
            return multicasts(self.receivers, self.count, size)
        direction, memory = self.name.split()
        return transfers(direction, "l1" if memory == "l1" else "bank", self.count, size)


PATTERNS = (
    Pattern("read l1", N150, 1, (293, 366, 581)),
    Pattern("read l1", N150, 64, (1874, 4939, 18594)),
    Pattern("write l1", N150, 1, (293, 375, 613)),
    Pattern("write l1", N150, 64, (1684, 4611, 17250)),
    Pattern("read bank", N150, 1, (397, 478, 733)),
    Pattern("read bank", N150, 64, (1745, 6266, 23969)),
    Pattern("write bank", N150, 1, (409, 517, 763)),
    Pattern("write bank", N150, 64, (2024, 6348, 24298)),
    Pattern("multicast", N150, 16, (912, 1775, 4961), receivers=8),
    Pattern("multicast", N150, 16, (886, 1689, 4866), receivers=7),
    Pattern("read l1", P150, 1, (373, 414, 510)),
    Pattern("read l1", P150, 64, (2558, 2594, 8894)),
    Pattern("write l1", P150, 1, (358, 403, 510)),
    Pattern("write l1", P150, 64, (1811, 2541, 8805)),
    Pattern("read bank", P150, 1, (481, 538, 665)),
    Pattern("read bank", P150, 64, (1874, 3602, 12705)),
    Pattern("write bank", P150, 1, (381, 413, 523)),
    Pattern("write bank", P150, 64, (2027, 3223, 12671)),
    Pattern("multicast", P150, 16, (1076, 1424, 3005), receivers=11),
    Pattern("multicast", P150, 16, (1077, 1302, 2901), receivers=10),
    Pattern("multicast", P150, 16, (1668, 1724, 3021), receivers=64),
)
