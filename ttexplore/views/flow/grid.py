"""The rows and columns of a flow graph: in rows, the order of the program from top to bottom.

A frame has rows of its own, so that frames never overlap. Nothing depends on the order of a set: the same graph always
looks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ttexplore.views.flow.graph import End, FlowGraph, frame_item

# More nodes do not stand beside each other.
_MOST_COLUMNS = 4
_SWEEPS = 12
# An edge that cannot run straight down costs as much as so many columns.
_BENT = 0.6


@dataclass
class FlowGrid:
    """The row (`rank`) and the column of each node, and between which rows frames begin and end."""

    graph: FlowGraph
    rank: dict[int, int] = field(default_factory=dict[int, int])
    column: dict[int, int] = field(default_factory=dict[int, int])
    opens: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    closes: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def __post_init__(self) -> None:
        self.rows = self.place_frame(-1, 0)
        self.place_columns(self.rows)

    # Rows

    def place_frame(self, frame: int, start: int) -> int:
        """Gives rows from `start` on to what is in a frame; returns the row after them."""
        above: dict[int, list[int]] = {}
        for edge in self.graph.edges:
            if not edge.carried and isinstance(edge.source, int) and isinstance(edge.target, int):
                above.setdefault(edge.target, []).append(edge.source)
        end = first = start
        population: dict[int, int] = {}
        for item in self.graph.order.get(frame, ()):
            if item >= 0:
                row = max([first, *(self.rank[node] + 1 for node in above.get(item, ()) if node in self.rank)])
                while population.get(row, 0) >= _MOST_COLUMNS:
                    row += 1
                population[row] = population.get(row, 0) + 1
                self.rank[item] = row
                end = max(end, row + 1)
                continue
            inner = frame_item(item)
            self.opens.setdefault(end, []).append(inner)
            end = first = self.place_frame(inner, end)
            self.closes.setdefault(end, []).insert(0, inner)
        return end

    # Columns

    def place_columns(self, rows: int) -> None:
        """Columns in which edges are short and many of them straight: from those of the nodes above, then improved by
        exchanges within a row."""
        grid: list[dict[int, int]] = [{} for _ in range(rows)]
        width = max([1, *(sum(row == rank for rank in self.rank.values()) for row in range(rows))])
        neighbours: dict[int, list[tuple[End, bool]]] = {node: [] for node in self.rank}
        for edge in self.graph.edges:
            if isinstance(edge.source, int):
                neighbours[edge.source].append((edge.target, edge.carried))
            if isinstance(edge.target, int):
                neighbours[edge.target].append((edge.source, edge.carried))
        for node in sorted(self.rank, key=lambda node: (self.rank[node], node)):
            row = grid[self.rank[node]]
            columns = sorted(self.column[end] for end, _ in neighbours[node] if end in self.column)
            wish = columns[len(columns) // 2] if columns else 0
            free = [column for column in range(width) if column not in row]
            self.column[node] = min(free, key=lambda column: (abs(column - wish), column))
            row[self.column[node]] = node

        def cost(node: int) -> float:
            total = 0.0
            for end, carried in neighbours[node]:
                if isinstance(end, str):
                    side = -1 if self.graph.sides[end] == "left" else width
                    total += 0.5 * abs(self.column[node] - side)
                    continue
                apart = abs(self.column[node] - self.column[end])
                total += apart if apart else 0 if self.is_straight(grid, node, end) and not carried else _BENT
            return total

        for _ in range(_SWEEPS):
            improved = False
            for node in sorted(self.rank, key=lambda node: (self.rank[node], node)):
                row = grid[self.rank[node]]
                for column in range(width):
                    here = self.column[node]
                    if column == here:
                        continue
                    there = row.get(column)
                    before = cost(node) + (cost(there) if there is not None else 0)
                    self.exchange(row, node, there, here, column)
                    after = cost(node) + (cost(there) if there is not None else 0)
                    if after < before - 1e-9:
                        improved = True
                    else:
                        self.exchange(row, node, there, column, here)
            if not improved:
                break
        self.cells = grid
        self.width = width

    def exchange(self, row: dict[int, int], node: int, there: int | None, here: int, column: int) -> None:
        row[column] = node
        self.column[node] = column
        if there is None:
            row.pop(here)
        else:
            row[here] = there
            self.column[there] = here

    def is_straight(self, grid: Sequence[Mapping[int, int]], node: int, end: int) -> bool:
        """Whether nothing stands between two nodes of one column."""
        upper, lower = sorted((self.rank[node], self.rank[end]))
        return upper < lower and all(self.column[node] not in grid[row] for row in range(upper + 1, lower))
