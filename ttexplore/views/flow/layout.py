"""Where the nodes of a flow graph stand and how its edges run.

Edges run in channels: between two rows, and between two
columns, each on a track of its own, so that no two of them lie on one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ttexplore.views.flow.graph import FlowEdge, FlowGraph
from ttexplore.views.flow.grid import FlowGrid

NODE_WIDTH, NODE_HEIGHT, CHIP_HEIGHT = 152, 40, 18
BUFFER_HEIGHT = 36
SIDE_WIDTH, SIDE_HEIGHT, SIDE_GAP = 122, 50, 10
LABEL_HEIGHT = 24
_TRACK, _GAP, _CHANNEL, _INSET, _CLOSE = 8, 14, 12, 10, 8
_PORT = 14

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class PlacedGraph:
    """The boxes of nodes, frames, and of what is beside the kernel, and the corners of each edge: from left to right or
    from top to bottom, alternately. `inner` is the box around all nodes and frames."""

    nodes: tuple[Box, ...]
    frames: tuple[Box, ...]
    sides: Mapping[str, Box]
    routes: tuple[tuple[Point, ...], ...]
    inner: Box
    height: float


def laid_out(graph: FlowGraph, left: float, top: float) -> PlacedGraph:
    """The layout with buffers beside the kernel from the column `left` on, from the row `top` on."""
    grid = FlowGrid(graph)
    return _Router(grid, left, top).layout()


@dataclass
class _Track:
    """A part of an edge on a track: from one number to another along a channel."""

    edge: int
    part: int
    start: float
    end: float


def _tracks(segments: Iterable[_Track], apart: float = 0) -> tuple[dict[tuple[int, int], int], int]:
    """A track for each part such that those of one track do not meet, and how many tracks there are."""
    ends: list[float] = []
    track_of: dict[tuple[int, int], int] = {}
    for segment in sorted(segments, key=lambda segment: (segment.start, segment.end, segment.edge, segment.part)):
        track = next((number for number, end in enumerate(ends) if end + apart < segment.start), len(ends))
        if track == len(ends):
            ends.append(segment.end)
        else:
            ends[track] = segment.end
        track_of[segment.edge, segment.part] = track
    return track_of, len(ends)


@dataclass
class _Router:
    grid: FlowGrid
    left: float
    top: float

    def layout(self) -> PlacedGraph:
        """Channels between columns first, for they give the columns; then those between rows."""
        graph, rank, column = self.grid.graph, self.grid.rank, self.grid.column
        width = self.grid.width
        straight = [self.is_straight(edge) for edge in graph.edges]
        # Channels: 0 is left of all frames, 1 left of the first column, the last one right of all frames.
        channel_of: dict[int, int] = {}
        vertical: dict[int, list[_Track]] = {number: [] for number in range(width + 3)}
        for number, edge in enumerate(graph.edges):
            channel = self.channel(edge, straight[number])
            if channel is None:
                continue
            channel_of[number] = channel
            if isinstance(edge.source, str) or isinstance(edge.target, str):
                start, end = float(-number - 1), float(self.grid.rows + 1 + number)
            else:
                start, end = sorted((rank[edge.source] + 1.0, float(rank[edge.target])))
            vertical[channel].append(_Track(number, 1, start, end))
        track_x: dict[int, int] = {}
        tracks: dict[int, int] = {}
        for channel, segments in vertical.items():
            assigned, tracks[channel] = _tracks(segments)
            track_x.update({edge: track for (edge, _), track in assigned.items()})
        depth = self.depth()
        x = self.left + SIDE_WIDTH
        channel_x: dict[int, float] = {}
        column_x: dict[int, float] = {}
        frame_left = frame_right = x
        for channel in range(width + 3):
            channel_x[channel] = x + _CHANNEL
            x += _CHANNEL + _TRACK * max(0, tracks[channel] - 1) + _CHANNEL
            if channel == 0:
                frame_left = x - _CHANNEL / 2
                x += _INSET * depth
            elif channel <= width:
                column_x[channel - 1] = x
                x += NODE_WIDTH
            elif channel == width + 1:
                x += _INSET * depth
                frame_right = x
        right = x

        def track(edge: int) -> float:
            return channel_x[channel_of[edge]] + _TRACK * track_x[edge]

        ports = self.ports(straight, channel_of, column_x)
        # Rows
        horizontal: dict[int, list[_Track]] = {gap: [] for gap in range(self.grid.rows + 1)}
        for number, edge in enumerate(graph.edges):
            if straight[number]:
                continue
            exit_x, entry_x = ports.get((number, 0)), ports.get((number, 1))
            if isinstance(edge.source, int):
                gap = rank[edge.source] + 1
                to_x = track(number) if number in channel_of else entry_x
                assert exit_x is not None
                assert to_x is not None
                horizontal[gap].append(_Track(number, 0, min(exit_x, to_x), max(exit_x, to_x)))
            if isinstance(edge.target, int) and number in channel_of:
                from_x = track(number)
                assert entry_x is not None
                horizontal[rank[edge.target]].append(_Track(number, 2, min(from_x, entry_x), max(from_x, entry_x)))
        track_y: dict[tuple[int, int], float] = {}
        node_y: dict[int, float] = {}
        row_height = [max([BUFFER_HEIGHT, *(self.height(node) for node in row.values())]) for row in self.grid.cells]
        frame_top: dict[int, float] = {}
        frame_bottom: dict[int, float] = {}
        y = self.top
        for gap in range(self.grid.rows + 1):
            # What stays inside a frame that ends or begins here runs inside of it.
            phases: list[list[_Track]] = [[], [], []]
            for segment in horizontal[gap]:
                phases[self.phase(gap, graph.edges[segment.edge])].append(segment)
            for phase, segments in enumerate(phases):
                if phase == 1:
                    for frame in self.grid.closes.get(gap, ()):
                        y += _CLOSE
                        frame_bottom[frame] = y
                assigned, count = _tracks(segments, 6)
                first = y + _GAP / 2 + 2
                track_y.update({end: first + _TRACK * track for end, track in assigned.items()})
                if phase == 1 or count:
                    y += _GAP + _TRACK * max(0, count - 1) + (6 if count else 0)
                if phase == 1:
                    for frame in self.grid.opens.get(gap, ()):
                        frame_top[frame] = y
                        y += LABEL_HEIGHT
            if gap < self.grid.rows:
                node_y[gap] = y
                y += row_height[gap]
        boxes = tuple(
            Box(column_x[column[node]], node_y[rank[node]], NODE_WIDTH, self.height(node))
            for node in range(len(graph.nodes))
        )
        frames = tuple(
            Box(
                frame_left + _INSET * self.depth_of(number),
                frame_top[number],
                frame_right - frame_left - 2 * _INSET * self.depth_of(number),
                frame_bottom[number] - frame_top[number],
            )
            for number in range(len(graph.frames))
        )
        inner = Box(frame_left - 6, self.top - 4, frame_right - frame_left + 12, y - self.top + 8)
        sides = self.sides(boxes, right)
        routes: list[tuple[Point, ...]] = []
        side_ports = self.side_ports(sides)
        for number, edge in enumerate(graph.edges):
            source, target = edge.source, edge.target
            exit_x, entry_x = ports.get((number, 0)), ports.get((number, 1))
            points: list[Point] = []
            if isinstance(source, str):
                box = sides[source]
                start_x = box.x + box.width if box.x < inner.x else box.x
                points += [(start_x, side_ports[number]), (track(number), side_ports[number])]
            else:
                assert exit_x is not None
                points.append((exit_x, boxes[source].bottom))
            if straight[number]:
                assert isinstance(target, int)
                assert exit_x is not None
                routes.append((*points, (exit_x, boxes[target].y)))
                continue
            if isinstance(source, int):
                assert exit_x is not None
                y_out = track_y[number, 0]
                points.append((exit_x, y_out))
                bend = track(number) if number in channel_of else entry_x
                assert bend is not None
                points.append((bend, y_out))
            if isinstance(target, str):
                box = sides[target]
                end_x = box.x if box.x > inner.x else box.x + box.width
                points += [(track(number), side_ports[number]), (end_x, side_ports[number])]
            else:
                assert entry_x is not None
                if number in channel_of:
                    y_in = track_y[number, 2]
                    points += [(track(number), y_in), (entry_x, y_in)]
                points.append((entry_x, boxes[target].y))
            routes.append(tuple(points))
        bottom = max([inner.bottom, *(box.bottom for box in sides.values())])
        return PlacedGraph(boxes, frames, sides, tuple(routes), inner, bottom)

    def phase(self, gap: int, edge: FlowEdge) -> int:
        """Where an edge runs between two rows: before the frames that end there (0), after those that begin there (2),
        or between them."""
        frames = self.grid.graph.frames
        around: set[int] | None = None
        for end in (edge.source, edge.target):
            inside: set[int] = set()
            frame = self.grid.graph.nodes[end].frame if isinstance(end, int) else -1
            while frame >= 0:
                inside.add(frame)
                frame = frames[frame].parent
            around = inside if around is None else around & inside
        if around and around & {*self.grid.closes.get(gap, ())}:
            return 0
        return 2 if around and around & {*self.grid.opens.get(gap, ())} else 1

    def is_straight(self, edge: FlowEdge) -> bool:
        source, target = edge.source, edge.target
        if edge.carried or isinstance(source, str) or isinstance(target, str):
            return False
        grid = self.grid
        return (
            grid.column[source] == grid.column[target]
            and grid.rank[source] < grid.rank[target]
            and grid.is_straight(grid.cells, source, target)
        )

    def channel(self, edge: FlowEdge, straight: bool) -> int | None:
        """The channel in which an edge runs down, or up; None for one that needs none."""
        grid, source, target = self.grid, edge.source, edge.target
        for end in (source, target):
            if isinstance(end, str):
                return 0 if grid.graph.sides[end] == "left" else grid.width + 2
        assert isinstance(source, int)
        assert isinstance(target, int)
        if straight or grid.rank[target] == grid.rank[source] + 1:
            return None
        here, there = grid.column[source], grid.column[target]
        return there + 1 if there > here else there + 2

    def ports(
        self, straight: Sequence[bool], channel_of: Mapping[int, int], column_x: Mapping[int, float]
    ) -> dict[tuple[int, int], float]:
        """Where edges leave nodes (0) and come into them (1). The middle is for straight ones; ends of others stand
        at either side of it, those that leave between those that come in, so that none lies on another."""
        grid = self.grid
        ends: dict[tuple[int, int], list[tuple[float, int]]] = {}
        port: dict[tuple[int, int], float] = {}
        for number, edge in enumerate(grid.graph.edges):
            for which, node, far in ((0, edge.source, edge.target), (1, edge.target, edge.source)):
                if not isinstance(node, int):
                    continue
                middle = column_x[grid.column[node]] + NODE_WIDTH / 2
                if straight[number]:
                    port[number, which] = middle
                    continue
                if number in channel_of:
                    aim = channel_of[number] - grid.column[node] - 1.5
                else:
                    assert isinstance(far, int)
                    aim = float(grid.column[far] - grid.column[node])
                ends.setdefault((node, which), []).append((aim, number))
        for (node, which), leaving in ends.items():
            middle = column_x[grid.column[node]] + NODE_WIDTH / 2
            for sign in (-1, 1):
                mine = sorted(((abs(aim), number) for aim, number in leaving if (aim < 0) == (sign < 0)), reverse=True)
                step = min(_PORT, (NODE_WIDTH / 2 - 8) / max(1, len(mine)))
                for position, (_, number) in enumerate(reversed(mine)):
                    port[number, which] = middle + sign * step * (position + (1 if which == 0 else 0.5))
        return port

    def sides(self, boxes: Sequence[Box], right: float) -> dict[str, Box]:
        """What is beside the kernel, beside the first node that it goes to or comes from."""
        graph = self.grid.graph
        wishes: dict[str, float] = {}
        for edge in graph.edges:
            for side, node in ((edge.source, edge.target), (edge.target, edge.source)):
                if isinstance(side, str) and isinstance(node, int):
                    wishes[side] = min(wishes.get(side, boxes[node].middle), boxes[node].middle)
        placed: dict[str, Box] = {}
        for side, x in (("left", self.left), ("right", right)):
            names = sorted(
                (name for name in wishes if graph.sides[name] == side),
                key=lambda name: (wishes[name], list(graph.sides).index(name)),
            )
            least = self.top
            for name in names:
                y = max(least, wishes[name] - SIDE_HEIGHT / 2)
                placed[name] = Box(x, y, SIDE_WIDTH, SIDE_HEIGHT)
                least = y + SIDE_HEIGHT + SIDE_GAP
        return placed

    def side_ports(self, sides: Mapping[str, Box]) -> dict[int, float]:
        """The heights at which edges leave what is beside the kernel, or come to it."""
        graph = self.grid.graph
        edges_of: dict[str, list[int]] = {}
        for number, edge in enumerate(graph.edges):
            for end in (edge.source, edge.target):
                if isinstance(end, str):
                    edges_of.setdefault(end, []).append(number)
        heights: dict[int, float] = {}
        for name, numbers in edges_of.items():
            step = min(10.0, (SIDE_HEIGHT - 10) / max(1, len(numbers) - 1))
            for position, number in enumerate(numbers):
                heights[number] = sides[name].middle + step * (position - (len(numbers) - 1) / 2)
        return heights

    def height(self, node: int) -> int:
        flow_node = self.grid.graph.nodes[node]
        return BUFFER_HEIGHT if flow_node.store else NODE_HEIGHT + CHIP_HEIGHT * len(flow_node.within)

    def depth_of(self, frame: int) -> int:
        depth = 0
        while (frame := self.grid.graph.frames[frame].parent) >= 0:
            depth += 1
        return depth

    def depth(self) -> int:
        return 1 + max((self.depth_of(frame) for frame in range(len(self.grid.graph.frames))), default=-1)
