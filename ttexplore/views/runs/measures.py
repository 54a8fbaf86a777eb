"""The numbers that the explorer shows of a lowering: of each core, to colour the map by, and of the whole."""

from __future__ import annotations

from ttexplore.plan import Plan
from ttexplore.record import Trace
from ttexplore.views.figures.core_map import Measure, core_steps, measure_legend, working_cores
from ttexplore.views.figures.l1_map import l1_used_bytes
from ttexplore.views.figures.ulp_histogram import compact_count
from ttexplore.views.markup import byte_size

_KERNEL_FILES = ("reader.cpp", "compute.cpp", "writer.cpp")
_UNKNOWN = "–"


def core_measures(plan: Plan) -> tuple[Measure, ...]:
    """The measures that are known, in the order of the partition's cores; none before there is a partition."""
    items = [core.items for core in plan.partition.cores] if plan.partition else []
    if not items:
        return ()
    tiles = tiles_per_item(plan)
    measures = [_measure("work items", items)]
    if tiles is not None:
        page_bytes = {accessor.tensor: accessor.page_bytes for accessor in plan.accessors}
        item_bytes = sum(count * page_bytes[name] for name, count in tiles.items())
        measures.append(_measure("tiles moved", [count * sum(tiles.values()) for count in items]))
        measures.append(_measure("bytes moved", [count * item_bytes for count in items], sizes=True))
    used = l1_used_bytes(plan)
    measures.append(_measure("L1 in use", [used if count else 0 for count in items], sizes=True))
    working = sum(1 for count in items if count)
    shares = [round(100 * count * working / max(1, sum(items))) for count in items]
    measures.append(_measure("share of the mean", shares, unit=" %"))
    return tuple(measures)


def _measure(name: str, values: list[int], *, sizes: bool = False, unit: str = "") -> Measure:
    shown = tuple(byte_size(value) if sizes else f"{value:,}{unit}" for value in values)
    # Cores without work have no colour.
    working = [value for value in values if value]
    among = core_steps(values, working)
    steps = tuple(step if value else 0 for value, step in zip(values, among, strict=True))
    labels = tuple(compact_count(value) if value else "" for value in values)
    return Measure(name, shown, labels, steps, measure_legend(name, shown, values, steps))


def tiles_per_item(plan: Plan) -> dict[str, int] | None:
    """Tiles that move between each tensor and L1 per work item; None where loops vary or C3 has not run."""
    if plan.graph is None:
        return None
    names = {layout.name for layout in plan.layouts}
    tiles: dict[str, int] = {}
    for edge in plan.graph.edges:
        for name in names & {edge.source, edge.target}:
            if edge.tiles_per_item is None:
                return None
            tiles[name] = tiles.get(name, 0) + edge.tiles_per_item
    return tiles


def figures(trace: Trace, plan: Plan) -> list[tuple[str, str]]:
    """The whole lowering in a few numbers, to compare two of them; ``–`` for what is not known."""
    items = [core.items for core in plan.partition.cores] if plan.partition else []
    tiles = tiles_per_item(plan)
    return [
        ("cores in use", working_cores(plan.partition) if plan.partition and items else _UNKNOWN),
        ("items on the busiest core", f"{max(items):,}" if items else _UNKNOWN),
        ("circular buffers", str(len(plan.on_chip.buffers)) if plan.buffers else _UNKNOWN),
        ("L1 per core", byte_size(l1_used_bytes(plan)) if plan.buffers else _UNKNOWN),
        ("tiles per item", _UNKNOWN if tiles is None else f"{sum(tiles.values()):,}"),
        *((f"lines of {name}", f"{len(trace.files[name].lines):,}" if name in trace.files else _UNKNOWN)
          for name in _KERNEL_FILES),
    ]  # fmt: skip
