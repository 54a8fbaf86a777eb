"""The bytes over each link of both NoCs: all that cores read, write and send to others, on the ways that packets take.

NoC 0 is the reader's: its packets go right, then down. NoC 1 is the writer's: its packets go up, then left. Both are
rings along both axes. What a core reads comes over the NoC of its request. A multicast goes along the sender's row to
the first column of its rectangle, along that column through all rows, and through each of them: the links of this tree
carry the bytes once. Sources: ``NoC/RoutingPaths.md`` of tt-isa-documentation, and
``noc_nonblocking_api.h`` of tt-metal, which leaves ``NOC_CMD_BRCST_XY`` unset.
"""

from __future__ import annotations

import itertools
from collections import Counter as Count
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from ttexplore.characters import Printed
from ttexplore.plan import Loader, Plan, Sharding, TensorLayout
from ttexplore.target import Coordinates, Target

Noc = Literal[0, 1]
# The link from a node to the next one.
Step = Literal["right", "down", "left", "up"]
# Where bytes of a tensor go: from its memory to a core, back, from a core to others, or to the next one of its chain.
Way = Literal["read", "write", "multicast", "hand on"]
# The bytes of each tensor that the kernels of a core move in all, by the way that they go.
Moved = Mapping[tuple[Loader, Way, str], int]
_NOC_OF: dict[Loader, Noc] = {"reader": 0, "writer": 1}
_STEPS: dict[Noc, tuple[Step, Step]] = {0: ("right", "down"), 1: ("left", "up")}


@dataclass(frozen=True, slots=True, order=True)
class Link(Printed):
    """The link of a NoC from the router at column `x`, row `y`, in coordinates of NoC 0, to the next one."""

    noc: Noc
    x: int
    y: int
    step: Step

    def __str__(self) -> str:
        return f"NoC {self.noc} from ({self.x}, {self.y}) {self.step}"


@dataclass(frozen=True, slots=True)
class LinkLoads:
    """The bytes over each link of a target that carries any: the payload, without requests and signals, which are one
    flit each."""

    carried: Mapping[Link, int]
    target: Target = field(repr=False)

    @property
    def busiest(self) -> Link | None:
        """The link with the most bytes; None if no bytes go over a link."""
        return max(self.carried, key=lambda link: (self.carried[link], link), default=None)

    @property
    def most_bytes(self) -> int:
        return max(self.carried.values(), default=0)

    @property
    def cycles(self) -> int:
        """The cycles in which the busiest link moves its bytes: no program with these transfers is faster."""
        return ceil(self.most_bytes / self.target.costs.noc_payload_bytes_per_cycle)

    @property
    def us(self) -> float:
        """The same in microseconds."""
        return self.cycles / self.target.clock_hz * 1e6

    def leaving(self, core: Coordinates) -> dict[Link, int]:
        """The links from the router of a core, by its logical coordinates, the busiest first."""
        node = self.target.physical(*core)
        leaving = {link: count for link, count in self.carried.items() if (link.x, link.y) == node}
        return dict(sorted(leaving.items(), key=lambda link_and_count: -link_and_count[1]))


def link_loads(moves: Iterable[tuple[Sequence[Coordinates], Moved]], plan: Plan, target: Target) -> LinkLoads:
    """The bytes over each link, of cores that move the same each. A tensor counts as spread evenly over its banks, or
    over the cores that have its shards; with ``match_shard``, a core finds its part in its own shard. Who receives what
    others send is that of the plan."""
    return LinkLoads(_ways(moves, plan, target).carried(), target)


def busiest_cycles(moves: Iterable[tuple[Sequence[Coordinates], Moved]], plan: Plan, target: Target) -> int:
    """The cycles in which the busiest link moves its bytes, as those of ``link_loads``."""
    return ceil(_ways(moves, plan, target).most_bytes / target.costs.noc_payload_bytes_per_cycle)


def _ways(moves: Iterable[tuple[Sequence[Coordinates], Moved]], plan: Plan, target: Target) -> _Ways:
    layouts = {layout.name: layout for layout in plan.layouts}
    sends = {
        (shared.tensor, multicast.sender): shared.destinations(multicast)
        for shared in plan.shared
        for multicast in shared.multicasts
        if multicast.receivers
    }
    following = {
        (sums.tensor, core): after for sums in plan.partials for core, (_, after) in sums.neighbours.items() if after
    }
    ways = _Ways(target)
    # What each core moves, by the nodes that it moves it from or to.
    moved: dict[tuple[Noc, Literal["read", "write"], tuple[Coordinates, ...]], Count[Coordinates]] = {}
    for cores, bytes_moved in moves:
        nodes = [target.physical(*core) for core in cores]
        for (kernel, way, tensor), count in bytes_moved.items():
            noc = _NOC_OF[kernel]
            layout = layouts[tensor]
            if way in ("read", "write") and layout.sharding is None:
                # All cores find it at the same nodes.
                homes = _homes(layout, cores[0], noc, plan, target)
                moved.setdefault((noc, way, homes), Count()).update(dict.fromkeys(nodes, count))
                continue
            for core, node in zip(cores, nodes, strict=True):
                if way == "hand on":
                    ways.spread(noc, [target.physical(*following[tensor, core])], {node: count}, reads=False)
                elif way != "multicast":
                    homes = _homes(layout, core, noc, plan, target)
                    moved.setdefault((noc, way, homes), Count())[node] += count
                elif (tensor, core) in sends:
                    first, last = sends[tensor, core]
                    ways.multicast(noc, node, target.physical(*first), target.physical(*last), count)
    for (noc, way, homes), counts in moved.items():
        ways.spread(noc, homes, counts, reads=way == "read")
    return ways


def _homes(
    layout: TensorLayout, core: Coordinates, noc: Noc, plan: Plan, target: Target
) -> tuple[Coordinates, ...]:  # fmt: skip
    """The nodes that have the parts of a tensor that a core moves."""
    banks, sharding = target.bank_nodes(noc), layout.sharding
    if sharding is None:
        columns, rows = target.compute_grid
        cores = ((x, y) for y in range(rows) for x in range(columns))
        return banks if layout.memory == "dram" else tuple(target.physical(*multicast) for multicast in cores)
    if layout.memory == "dram":
        return tuple(banks[bank] for bank, _ in sharding.cores)
    if core in sharding.cores and sharding == _matched(plan):
        return (target.physical(*core),)
    return tuple(target.physical(*core) for core in sharding.cores)


def _matched(plan: Plan) -> Sharding | None:
    """The shards that decide which core does which work."""
    if plan.partition is None or plan.partition.policy != "match_shard":
        return None
    in_l1 = {
        layout.name: layout.sharding for layout in plan.layouts if layout.memory == "l1" and layout.sharding is not None
    }
    # If no option names it, there is only one.
    return in_l1.get(str(plan.options.get("match")), next(iter(in_l1.values()), None))


def _by_axis(nodes: Mapping[Coordinates, float], axis: Literal[0, 1]) -> Mapping[int, float]:
    """The sums of nodes with the same coordinate."""
    counts: defaultdict[int, float] = defaultdict(float)
    for node, count in nodes.items():
        counts[node[axis]] += count
    return counts


class _Ways:
    """Bytes on straight ways of a NoC. Many ways are the same, so their links are found at the end."""

    def __init__(self, target: Target) -> None:
        self.size = target.noc_grid
        # The bytes from one place to another of a row (0) or column (1), against the direction or not, with its number.
        self.straight: defaultdict[tuple[Noc, Literal[0, 1], int, int, int], float] = defaultdict(float)

    def along(self, noc: Noc, axis: Literal[0, 1], start: Coordinates, to: int, count: float) -> Coordinates:
        """Go along an axis, round the ring if need be."""
        self.straight[noc, axis, start[1 - axis], start[axis], to] += count
        return (to, start[1]) if axis == 0 else (start[0], to)

    def spread(
        self, noc: Noc, homes: Sequence[Coordinates], cores: Mapping[Coordinates, float], *, reads: bool
    ) -> None:  # fmt: skip
        """What cores read from nodes that have an even part of it each, or write to them."""
        shares = {node: count / len(homes) for node, count in Count(homes).items()}
        starts, ends = (shares, cores) if reads else (cores, shares)
        axis, other_axis = (0, 1) if noc == 0 else (1, 0)
        # First along one axis to the place of the end, then along the other.
        for (start, count), (to, share) in itertools.product(starts.items(), _by_axis(ends, axis).items()):
            self.straight[noc, axis, start[other_axis], start[axis], to] += count * share
        for (start, count), (to, share) in itertools.product(_by_axis(starts, other_axis).items(), ends.items()):
            self.straight[noc, other_axis, to[axis], start, to[other_axis]] += count * share

    def multicast(self, noc: Noc, start: Coordinates, first: Coordinates, last: Coordinates, count: float) -> None:
        """To the rectangle between two corners."""
        near, far = (first, last) if noc == 0 else (last, first)
        corner = self.along(noc, 0, start, near[0], count)
        rows = range(first[1], last[1] + 1)
        # Through all rows, of which the furthest is the last on the way round.
        furthest = max(rows, key=lambda row: self.distance(noc, 1, corner[1], row))
        self.along(noc, 1, corner, furthest, count)
        for row in rows:
            self.along(noc, 0, (corner[0], row), far[0], count)

    def distance(self, noc: Noc, axis: Literal[0, 1], start: int, to: int) -> int:
        return (to - start if noc == 0 else start - to) % self.size[axis]

    @property
    def most_bytes(self) -> int:
        """The bytes over the busiest link."""
        return round(max(itertools.chain.from_iterable(map(itertools.accumulate, self._lines().values())), default=0))

    def carried(self) -> dict[Link, int]:
        carried_by: dict[tuple[Noc, int, int, Step], int] = {}
        for (noc, axis, line), change in self._lines().items():
            positions = range(len(change)) if noc == 0 else reversed(range(len(change)))
            for at, carried in zip(positions, itertools.accumulate(change), strict=True):
                if count := round(carried):
                    carried_by[noc, *((at, line) if axis == 0 else (line, at)), _STEPS[noc][axis]] = count
        return {Link(*link): count for link, count in sorted(carried_by.items())}

    def _lines(self) -> dict[tuple[Noc, Literal[0, 1], int], list[float]]:
        """How much more each link of a row or column carries than the one before it, in the direction of the NoC from
        the edge on."""
        changes: dict[tuple[Noc, Literal[0, 1], int], list[float]] = {}
        for (noc, axis, line, start, to), count in self.straight.items():
            if start == to:
                continue
            if (change := changes.get((noc, axis, line))) is None:
                change = changes[noc, axis, line] = [0.0] * self.size[axis]
            if noc == 1:
                start, to = self.size[axis] - 1 - start, self.size[axis] - 1 - to
            change[start] += count
            change[to] -= count
            if to < start:
                # Round the edge.
                change[0] += count
        return changes
