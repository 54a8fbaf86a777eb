"""The cores of a chip and how many work items each one does, drawn on the NoC floorplan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from ttexplore.noc_links import Step
from ttexplore.plan import CoreWork, Multicast, PartialSums, Partition, SharedInput
from ttexplore.target import FloorplanNode, NodeKind, Target
from ttexplore.views.figures.svg import drawing, hatch_pattern, path, rectangle, text, tooltip
from ttexplore.views.markup import content_id, plural
from ttexplore.views.theme import HEAT, heat_step

_CELL = 36
_GAP = 2
_LEFT = 30
_TOP = 62
# Where all cores do the same, one quiet step of the scale says so.
_EVEN_STEP = 2
_LARGEST_LEGEND = 7
_LEGEND_ROW = 21
# About the width of a small character.
_CHARACTER = 5.7
# Lines of shared inputs: their distance from the edge of a cell, and from each other.
_NEAR, _NEXT_LINE = 2, 4
# So many chains of cores are drawn: each bends at another place of a cell.
_MOST_CHAINS = 7
# An edge of a cell that is a link: its width, most of it inside, so that the label has room.
_EDGE = 4
# How many items of a list the tooltip names.
_LISTED = 12

_LETTERS: dict[NodeKind, str] = {
    "tensix": "–", "dram": "D", "ethernet": "E", "arc": "A", "pcie": "P", "router": "", "harvested": "×",
}  # fmt: skip
# What the legend calls them.
_LABELS: dict[NodeKind, str] = {
    "dram": "DRAM", "ethernet": "Ethernet", "arc": "ARC", "pcie": "PCIe", "tensix": "dispatch",
    "harvested": "harvested", "router": "router",
}  # fmt: skip
_NAMES: dict[NodeKind, str] = {
    "tensix": "worker outside the compute grid", "dram": "DRAM", "ethernet": "Ethernet", "arc": "ARC", "pcie": "PCIe",
    "router": "router", "harvested": "harvested",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measure:
    """A number for each core of a partition: as text, as label on the map (empty for 0), and as index into HEAT; and
    the `legend` of the map that is coloured by it, in SVG."""

    name: str
    shown: tuple[str, ...]
    labels: tuple[str, ...]
    steps: tuple[int, ...]
    legend: str


def core_map_svg(
    target: Target | None, partition: Partition, shared: Sequence[SharedInput] = (), measure: Measure | None = None,
    partials: Sequence[PartialSums] = (),
) -> str:  # fmt: skip
    """The map of cores, with lines from each core that reads a shared input to those that receive it, and from core to
    core where partial sums are handed on. Without a target, only the compute grid of the partition is drawn.

    Each working core shows its number of work items, or a `measure`; hovering gives the values of its runtime
    arguments. Logical coordinates stand above and to the left, NoC coordinates below and to the right.
    """
    nodes = target.floorplan() if target else _logical_nodes(partition)
    work = {(core.x, core.y): core for core in partition.cores}
    items = [core.items for core in partition.cores if core.items]
    shown = (partition, *shared, *partials, *([measure] if measure else []))
    identifier = content_id("ttx-cores", target.name if target else "", *map(repr, shown))
    columns, rows = 1 + max(node.x for node in nodes), 1 + max(node.y for node in nodes)
    shapes = [
        f"<defs>{hatch_pattern(identifier + '-h')}</defs>",
        *_heading(target, partition),
        *_axes(nodes, target),
    ]
    coloured = measure or _work_items(partition)
    colours = {at: number for number, at in enumerate(work)}
    for node in nodes:
        core = work.get(node.logical) if node.logical else None
        number = colours[core.x, core.y] if core else 0
        colour = (coloured.steps[number], coloured.labels[number], coloured.shown[number] if measure else "")
        shapes.append(_node(node, core, colour, f"url(#{identifier}-h)"))
    nodes_of = {node.logical: (node.x, node.y) for node in nodes if node.logical}
    for number, sent in enumerate(shared):
        # Lines of one topology stand beside each other; those of others cross them.
        shapes += _sent(
            sent, nodes_of, _NEXT_LINE * [earlier.topology for earlier in shared[:number]].count(sent.topology)
        )
    chains = [chain for sums in partials for chain in sums.chains if len(chain) > 1]
    for number, chain in enumerate(chains[:_MOST_CHAINS]):
        shapes += _handed_on(chain, nodes_of, number)
    legend_y = _legend_y(rows)
    shapes.append(f'<g class="legend" transform="translate({_LEFT} {legend_y})">{coloured.legend}</g>')
    legend, legend_width = _legend(nodes, items, legend_y + _LEGEND_ROW, f"url(#{identifier}-h)")
    shapes.append(legend)
    described = summary(partition)
    bottom = legend_y + _LEGEND_ROW
    lines = [*map(_told, shared), *map(_told_of_sums, partials)]
    if len(chains) > _MOST_CHAINS:
        lines.append(f"the first {_MOST_CHAINS} of {len(chains)} chains are drawn")
    for sent in lines:
        bottom += _LEGEND_ROW
        shapes += [*_line(_LEFT + 4, bottom - 4, "h26"), text(_LEFT + 38, bottom, sent, "s", "t")]
    told = [_LEFT + 38 + int(_CHARACTER * len(line)) for line in lines]
    width = max(_LEFT + columns * _CELL + 30, legend_width, 440, int(_CHARACTER * len(described)), *told)
    title = f"{measure.name if measure else 'Work items per core'}{' of ' + target.name if target else ''}"
    return drawing(identifier, title, described, width, bottom + 14, "".join(shapes))


def _sent(shared: SharedInput, nodes_of: Mapping[tuple[int, int], tuple[int, int]], inset: int) -> Iterator[str]:
    """A line along each row or column of cores that share, a frame around each rectangle; a dot is at the sender."""
    for multicast in shared.multicasts:
        if not multicast.receivers:
            continue
        (left, top), (right, bottom) = (
            (_LEFT + x * _CELL + inset, _TOP + y * _CELL + inset) for x, y in (nodes_of[at] for at in _ends(multicast))
        )
        far = _CELL - _GAP - 2 * inset
        match shared.topology:
            case "row":
                yield from _line(left + _NEAR, top + _NEAR, f"H{right + far - _NEAR}")
            case "column":
                yield from _line(left + _NEAR, top + _NEAR, f"V{bottom + far - _NEAR}")
            case "grid":
                x, y, width, height = left + _NEAR, top + _NEAR, right - left + far - _NEAR, bottom - top + far - _NEAR
                yield from _line(x, y, f"h{width}v{height}h-{width}z")
            case _:
                assert_never(shared.topology)


def _handed_on(
    chain: Sequence[tuple[int, int]], nodes_of: Mapping[tuple[int, int], tuple[int, int]], number: int
) -> Iterator[str]:  # fmt: skip
    """A line through the cores of a chain, from the first one, which a dot marks, to the last one."""
    inset = _NEAR + (_CELL - _GAP - 2 * _NEAR) * (number + 1) // (_MOST_CHAINS + 1)
    (x, y), *following = (
        (_LEFT + x * _CELL + inset, _TOP + y * _CELL + inset) for x, y in (nodes_of[at] for at in chain)
    )
    yield from _line(x, y, "".join(f"L{to_x} {to_y}" for to_x, to_y in following))


def _ends(multicast: Multicast) -> tuple[tuple[int, int], tuple[int, int]]:
    return multicast.cores.first, multicast.cores.last


def _line(x: float, y: float, way: str) -> Iterator[str]:
    """A line from a sender, which a dot marks. It has a halo, because cells may be as dark as it is."""
    yield path(f"M{x} {y}{way}", "edge", extra=' style="stroke:var(--ttx-surface);stroke-width:3"')
    yield path(f"M{x} {y}{way}", "edge")
    yield f'<circle cx="{x}" cy="{y}" r="4" class="surface"/><circle cx="{x}" cy="{y}" r="3" class="tip"/>'


def _told(shared: SharedInput) -> str:
    """``A: multicast to the cores of its row, 1,024 bytes read instead of 2,048``."""
    read = shared.read_bytes - shared.saved_bytes
    around = {"row": "the cores of its row", "column": "the cores of its column", "grid": "a rectangle of cores"}
    return (
        f"{shared.tensor}: multicast to {around[shared.topology]}, {read:,} bytes read instead of {shared.read_bytes:,}"
    )


def _told_of_sums(sums: PartialSums) -> str:
    """``C: handed on from core to core, by up to 4 cores, 12,288 bytes sent``."""
    return (
        f"{sums.tensor}: handed on from core to core, by up to {max(map(len, sums.chains))} cores, "
        f"{sums.sent_bytes:,} bytes sent"
    )


def summary(partition: Partition) -> str:
    """``48 of 64 cores work (16 idle), 1 item each, contiguous``, and how unevenly those share the work."""
    items = [core.items for core in partition.cores if core.items]
    cores = core_count(partition)
    if not items:
        return f"none of {plural(cores, 'core')} works"
    text = f"{working_cores(partition)} {'works' if len(items) == 1 else 'work'}"
    text += f" ({cores - len(items)} idle)" if len(items) < cores else ""
    text += f", {each(items)}, {how(partition)}"
    # Balanced items take different times: their number says nothing of the work.
    if min(items) != max(items) and partition.policy != "balanced":
        text += f", busiest core {max(items) * len(items) / sum(items):.2f} times the mean of those that work"
    return text


def working_cores(partition: Partition) -> str:
    """``48 of 64 cores``: how many of those that may be used have work."""
    return f"{sum(1 for core in partition.cores if core.items)} of {plural(core_count(partition), 'core')}"


def each(items: Sequence[int]) -> str:
    """``1 item each``, ``1 to 2 items each``, of the number of work items of each core."""
    low, high = min(items), max(items)
    return f"{plural(high, 'item')} each" if low == high else f"{low:,} to {high:,} items each"


def how(partition: Partition) -> str:
    """The policy, and the order where it is another than row-major: ``strided, column-major``."""
    order = partition.order.replace("_", "-") + (f" by {partition.order_block}" if partition.order_block else "")
    if partition.policy == partition.order:
        return order
    return partition.policy.replace("_", "-") + ("" if partition.order == "row_major" else f", {order}")


def core_count(partition: Partition) -> int:
    """How many cores may be used."""
    if partition.core_ranges:
        return sum(len(core_range.cores) for core_range in partition.core_ranges)
    return partition.core_grid[0] * partition.core_grid[1]


def _logical_nodes(partition: Partition) -> tuple[FloorplanNode, ...]:
    columns, rows = partition.core_grid
    return tuple(FloorplanNode(x, y, "tensix", (x, y)) for y in range(rows) for x in range(columns))


def _heading(target: Target | None, partition: Partition) -> list[str]:
    grid = " × ".join(str(extent) for extent in partition.grid)
    name = f"{target.name}  ·  " if target else ""
    work = f"grid {grid} = {plural(partition.work_items, 'work item')}"
    return [text(2, 16, f"{name}{work}", "b", "t"), text(2, 33, summary(partition), "s")]


def _axes(nodes: tuple[FloorplanNode, ...], target: Target | None) -> list[str]:
    placed = [(node, node.logical) for node in nodes if node.logical]
    columns = sorted({(node.x, logical[0]) for node, logical in placed})
    rows = sorted({(node.y, logical[1]) for node, logical in placed})
    labels = [text(_LEFT - 10, _TOP - 6, "x,y", "s", anchor="end")]
    labels += [text(_center(_LEFT, x), _TOP - 6, str(label), "s", anchor="middle") for x, label in columns]
    labels += [text(_LEFT - 8, _center(_TOP, y) + 4, str(label), "s", anchor="end") for y, label in rows]
    if target:
        right, bottom = _LEFT + target.noc_grid[0] * _CELL + 6, _TOP + target.noc_grid[1] * _CELL + 13
        labels += [text(_center(_LEFT, x), bottom, str(x), "s", anchor="middle") for x in range(target.noc_grid[0])]
        labels += [text(right, _center(_TOP, y) + 4, str(y), "s") for y in range(target.noc_grid[1])]
        labels.append(text(right, bottom, "NoC", "s", "t"))
    return labels


def _center(start: int, cell: int) -> float:
    return start + cell * _CELL + (_CELL - _GAP) / 2


def core_steps(values: Iterable[int], working: Sequence[int]) -> list[int]:
    """The indices into :data:`HEAT` of the values of cores, among those of the cores that work."""
    least, most = min(working, default=0), max(working, default=0)
    return [_EVEN_STEP if least == most else heat_step(value, most) for value in values]


def _work_items(partition: Partition) -> Measure:
    counts = [core.items for core in partition.cores]
    items = [count for count in counts if count]
    shown = [f"{count:,}" for count in items]
    legend = measure_legend("work items", shown, items, core_steps(items, items))
    steps = (step if count else 0 for count, step in zip(counts, core_steps(counts, items), strict=True))
    return Measure("work items", tuple(map(str, counts)), tuple(map(str, counts)), tuple(steps), legend)


def _legend_y(rows: int) -> int:
    return _TOP + rows * _CELL + 34


def links_svg(carried: Iterable[tuple[int, int, Step, int]], rows: int) -> str:
    """Links of the NoCs as edges of the cells that they leave, coloured by their bytes: the column and row of the cell
    in NoC coordinates, the edge, and the bytes of each. It is a part of the legend of a map with so many rows."""
    ways = [*carried]
    most = max((count for *_, count in ways), default=0)
    edges: dict[int, str] = {}
    for column, row, step, count in ways:
        x, y = _LEFT + column * _CELL, _TOP + row * _CELL
        far, inside = _CELL - _GAP, _EDGE // 2 - _GAP // 2
        match step:
            case "right":
                way = f"M{x + far - inside} {y}v{far}"
            case "left":
                way = f"M{x + inside} {y}v{far}"
            case "down":
                way = f"M{x} {y + far - inside}h{far}"
            case "up":
                way = f"M{x} {y + inside}h{far}"
            case _:
                assert_never(step)
        colour = heat_step(count, most)
        edges[colour] = edges.get(colour, "") + way
    drawn = "".join(f'<path d="{way}" stroke="{HEAT[colour]}"/>' for colour, way in sorted(edges.items()))
    return f'<g transform="translate({-_LEFT} {-_legend_y(rows)})" stroke-width="{_EDGE}">{drawn}</g>'


def _node(node: FloorplanNode, core: CoreWork | None, colour: tuple[int, str, str], hatch: str) -> str:
    """A node; `colour` are the step of the heat, the label, and what a tooltip adds, of a core with work."""
    x, y = _LEFT + node.x * _CELL, _TOP + node.y * _CELL
    if node.logical and core and core.items:
        step, shown, told = colour
        values = "".join(f", {name} {value}" for name, value in core.values.items())
        if core.listed:
            rest = "" if len(core.listed) <= _LISTED else f" and {len(core.listed) - _LISTED} more"
            values += f", items {', '.join(map(str, core.listed[:_LISTED]))}{rest}"
        more = f"; {told}" if told else ""
        label = f"core {node.logical}: {plural(core.items, 'item')}{values}; NoC ({node.x}, {node.y}){more}"
        return _cell(x, y, label, f"f{step}", shown, f"n h{step}", core=node.logical)
    if node.logical:
        label = f"core {node.logical}: no work; NoC ({node.x}, {node.y})"
        return _cell(x, y, label, "idle", "", "", f' fill="{hatch}"', core=node.logical)
    if node.kind == "router":
        return f'<path class="panel" d="{_square(x, y)}"/>'
    channel = "" if node.channel is None else f" channel {node.channel}"
    letter = _LETTERS[node.kind] + ("" if node.channel is None else str(node.channel))
    return _cell(x, y, f"{_NAMES[node.kind]}{channel}; NoC ({node.x}, {node.y})", "panel", letter, "n s")


def _cell(
    x: int, y: int, label: str, shape_class: str, content: str, text_class: str, extra: str = "",
    core: tuple[int, int] | None = None,
) -> str:  # fmt: skip
    # Short on purpose: a chip has some two hundred of these. The explorer finds a core by its coordinates.
    which = f' data-core="{core[0]},{core[1]}"' if core else ""
    middle = (_CELL - _GAP) // 2
    shown = f'<text class="{text_class}" x="{x + middle}" y="{y + middle + 4}">{content}</text>' if content else ""
    return f'<g{which}>{tooltip(label)}<path class="{shape_class}" d="{_square(x, y)}"{extra}/>{shown}</g>'


def _square(x: int, y: int) -> str:
    return f"M{x} {y}h{_CELL - _GAP}v{_CELL - _GAP}h-{_CELL - _GAP}z"


def measure_legend(
    name: str, shown: Sequence[str], values: Sequence[int], steps: Sequence[int], largest: int = _LARGEST_LEGEND
) -> str:
    """What the colours of the cores with work mean: some of the values of a measure, as they are shown, in order, at
    most the `largest` number."""
    shapes: list[str] = []
    x = 0
    distinct = sorted({(value, text, step) for value, text, step in zip(values, shown, steps, strict=True) if value})
    if len(distinct) > largest:
        distinct = [distinct[position * (len(distinct) - 1) // (largest - 1)] for position in range(largest)]
    for _, label, step in distinct:
        width = max(18, 7 * len(label) + 8)
        shapes.append(rectangle(x, -11, width, 15, radius=2, fill=HEAT[step]))
        shapes.append(text(x + width / 2, 0, label, f"h{step}", anchor="middle"))
        x += width + 3
    if distinct:
        shapes.append(text(x + 3, 0, name, "s", "t"))
    return "".join(shapes)


def _legend(nodes: tuple[FloorplanNode, ...], items: list[int], y: int, hatch: str) -> tuple[str, int]:
    shapes: list[str] = []
    x = _LEFT
    if len(items) < sum(1 for node in nodes if node.logical):
        shapes.append(rectangle(x, y - 11, 18, 15, radius=2, fill=hatch))
        shapes.append(rectangle(x + 0.5, y - 10.5, 17, 14, "rule", radius=2))
        shapes.append(text(x + 23, y, "no work", "s"))
        x += 78
    kinds = {node.kind for node in nodes if not node.logical}
    for kind, label in _LABELS.items():
        if kind not in kinds:
            continue
        if letter := _LETTERS[kind]:
            shapes.append(text(x, y, letter, "b", "s"))
        else:
            shapes.append(f'<path class="panel" d="M{x} {y - 10}h10v12h-10z"/>')
        shapes.append(text(x + 13, y, label, "s", "t"))
        x += 20 + sum(9 if letter.isupper() else 6 for letter in label)
    return "".join(shapes), x + 8
