"""How one tile of an output was made: what was read, computed, packed and written for it, in a recorded run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttexplore.characters import Printed
from ttexplore.errors import UsageError
from ttexplore.plan import DATA_FORMATS, KERNEL_ROLES, TILE_COLUMNS, TILE_ROWS, Plan, TensorLayout, item_block
from ttexplore.record import Listing
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.steps.history import ranges
from ttexplore.views.theme import fragment

if TYPE_CHECKING:
    from ttexplore.backends.moves import ByteRange, Followed, Move, Moves

Index = tuple[int, ...]
Pages = dict[str, tuple[Index, ...]]

_HEADS = ("stop", "kernel", "what it did", "times", "C++ line")
_MOST_PARTS = 4
_HOST = "host"


@dataclass(frozen=True, slots=True)
class Stop:
    """What one line of the C++ did for the tile, in `turns` turns.

    `kernel` is the role of the kernel on the core with the logical coordinates `core`, or ``host`` where a shard lies
    in L1 before and after the kernels. `line` counts the lines of its C++ from 1; `text` is the line, `kernel_line` the
    line of the user's kernel that it came from, 0 for none. `does` says it in words. `pages` are the pages of tensors
    that it read or wrote.
    """

    kernel: str
    core: tuple[int, int]
    line: int
    text: str
    kernel_line: int
    turns: int
    does: str
    pages: Pages


@dataclass(frozen=True, slots=True)
class TileHistory(Printed):
    """How tile `tile` of the tensor `tensor` was made, on the core with the logical coordinates `core`.

    `item` is the work item, None where the run does not tell; `items` are all of the core's. `stops` are in the order
    in which the run came to them first. `pages` are the pages of each tensor that the tile was made of, as indices:
    those of leading dimensions, then the row and column of the tile; of a vector only the column; of a tensor that is
    stored by rows, the row of elements. `decided` are pages with numbers that kernels had read by then, to decide with
    them what they move. `notes` say what the recording does not tell.
    """

    tensor: str
    tile: Index
    core: tuple[int, int]
    item: int | None
    block: Index
    items: tuple[int, ...]
    stops: tuple[Stop, ...]
    pages: Pages
    decided: Pages
    notes: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether `pages` are those of the tile alone, and not all that a core had read by then."""
        return not self.notes

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Where it was made and of what, in words."""
        block = ", ".join(map(str, self.block))
        item = f"{self.item}, block ({block})" if self.item is not None else f"one of {ranges(sorted(self.items))}"
        rows = [("work item", item), ("core", f"({self.core[0]}, {self.core[1]})")]
        if self.pages:
            rows.append(("made of", _pages_text(self.pages)))
        if self.decided:
            rows.append(("places decided by", _pages_text(self.decided)))
        return rows

    @property
    def data(self) -> dict[str, Any]:
        """What the explorer shows, in JSON form."""
        return {
            "tensor": visible(self.tensor), "tile": list(self.tile),
            "facts": [list(fact) for fact in self.facts], "notes": list(self.notes),
            "stops": [
                {
                    "kernel": stop.kernel, "core": list(stop.core), "line": stop.line, "text": visible(stop.text),
                    "own": stop.kernel_line, "turns": stop.turns, "does": stop.does,
                }
                for stop in self.stops
            ],
        }  # fmt: skip

    @property
    def _title(self) -> str:
        return f"tile ({', '.join(map(str, self.tile))}) of {visible(self.tensor)}"

    def __str__(self) -> str:
        """The facts, then each stop with its C++ line."""
        rows = [self._title, *(f"  {name}: {text}" for name, text in self.facts), *(f"  {note}" for note in self.notes)]
        for number, stop in enumerate(self.stops, 1):
            turns = f" ({stop.turns} times)" if stop.turns > 1 else ""
            rows.append(f"{number:>3}  {stop.kernel:<7} {stop.does}{turns}")
            if stop.line:
                rows.append(f"     {stop.line:>7} {visible(stop.text)}")
        return "\n".join(rows)

    def __repr__(self) -> str:
        return f"<history of {self._title}: {plural(len(self.stops), 'stop')}>"

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>"
            for name, text in [*self.facts, *(("note", note) for note in self.notes)]
        )
        rows = "".join(
            f"<tr><td>{number}</td><td>{escape(stop.kernel)}</td><td>{escape(stop.does)}</td>"
            f'<td class="r">{stop.turns}</td>'
            f"<td><code>{stop.line or ''} {escape(stop.text)}</code></td></tr>"
            for number, stop in enumerate(self.stops, 1)
        )
        heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
        told = f'<table class="t facts"><tbody>{facts}</tbody></table>'
        stops = f'<table class="t"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        head = f'<div class="head"><h3>{escape(self._title)}</h3></div>'
        content = f'{head}{told}<div class="scroll">{stops}</div>'
        return fragment(content_id("ttx-tile", content), f"history of {self._title}", content)


def tile_grid(layout: TensorLayout) -> Index:
    """How many tiles a tensor has along each of its dimensions; the last two are cut into tiles."""
    if len(layout.shape) < 2:
        return (math.ceil(math.prod(layout.shape) / TILE_COLUMNS),)
    *leading, rows, columns = layout.shape
    return (*leading, math.ceil(rows / TILE_ROWS), math.ceil(columns / TILE_COLUMNS))


def tile_parts(layout: TensorLayout, tile: Index) -> list[tuple[int, int, int]]:
    """The parts of pages, (page, first byte, end), that a tile covers. A page of tiles is covered wholly.

    Raises UsageError for a tile that the tensor does not have.
    """
    grid = tile_grid(layout)
    if len(tile) != len(grid) or not all(0 <= at < most for at, most in zip(tile, grid, strict=True)):
        largest = ", ".join(f"0 to {most - 1}" for most in grid)
        raise UsageError(
            "U010", f"{visible(layout.name)} has no tile ({', '.join(map(str, tile))})",
            hint=f"give {plural(len(grid), 'number')}: {largest}",
        )  # fmt: skip
    if layout.page == "tile":
        number = 0
        for at, most in zip(tile, grid, strict=True):
            number = number * most + at
        return [(number, 0, DATA_FORMATS[layout.data_format].tile_bytes)]
    rows, columns = (1, *layout.shape)[-2:]
    matrix = 0
    for at, most in zip(tile[:-2], grid[:-2], strict=True):
        matrix = matrix * most + at
    *_, row, column = (0, *tile)
    top, first = row * TILE_ROWS, column * TILE_COLUMNS
    end = min(first + TILE_COLUMNS, columns)
    return [
        (matrix * rows + row, first * layout.element_bytes, end * layout.element_bytes)
        for row in range(top, min(top + TILE_ROWS, rows))
    ]


def page_index(layout: TensorLayout, page: int) -> Index:
    """The index of a page: its tile, or its row of elements, with leading dimensions first."""
    grid = tile_grid(layout) if layout.page == "tile" else layout.shape[:-1] or (1,)
    index: list[int] = []
    for most in reversed(grid):
        page, at = divmod(page, most)
        index.append(at)
    return tuple(reversed(index))


@dataclass(frozen=True, slots=True)
class _Words:
    """What names the places of a run."""

    plan: Plan
    layouts: Sequence[TensorLayout]
    moves: Moves

    def core(self, index: int) -> tuple[int, int]:
        assert self.plan.partition is not None, "a program that ran has a partition"
        core = self.plan.partition.cores[index]
        return core.x, core.y

    def pages(self, numbers: Mapping[int, Iterable[int]]) -> Pages:
        return {
            self.layouts[tensor].name: tuple(page_index(self.layouts[tensor], page) for page in sorted(set(of)))
            for tensor, of in sorted(numbers.items())
        }

    def places(self, locations: Iterable[ByteRange], core: int) -> str:
        """Places in words, as one who is on a core says them."""
        tensors: dict[int, set[int]] = {}
        slots: dict[tuple[int, int], set[int]] = {}
        tiles: set[int] = set()
        for location in locations:
            match location.kind:
                case "tensor":
                    tensors.setdefault(location.object, set()).add(location.page)
                case "l1":
                    position, slot = self.moves.slot(location)
                    slots.setdefault((location.object, position), set()).add(slot)
                case "dst":
                    tiles.add(location.page)
                case "constant" | "reserved":
                    pass
        texts = [_pages_text(self.pages(tensors))] if tensors else []
        for (owner, position), numbers in sorted(slots.items()):
            buffer = self.plan.on_chip.buffers[position]
            where = f" of core ({', '.join(map(str, self.core(owner)))})" if owner != core else ""
            pages = f"page{'s' if len(numbers) > 1 else ''} {ranges(sorted(numbers))}"
            texts.append(f"{visible(buffer.name)} (CB {buffer.index}){where}, {pages}")
        if tiles:
            texts.append(f"DST {ranges(sorted(tiles))}")
        return " and ".join(texts)


def tile_history(
    followed: Followed, moves: Moves, plan: Plan, layouts: Sequence[TensorLayout], layout: TensorLayout, tile: Index,
    files: Mapping[str, Listing],
) -> TileHistory:  # fmt: skip
    """The history of a tile that was followed. `layouts` are the tensors in parameter order, `files` the C++ of the
    kernels by role.

    Raises UsageError where nothing wrote the tile.
    """
    number = layouts.index(layout)
    pages = {page for page, _, _ in tile_parts(layout, tile)}
    writes = moves.writes(number)
    last = next((move for move in reversed(writes) if move.target.page in pages), None)
    if last is None:
        raise UsageError(
            "U010", f"nothing wrote tile ({', '.join(map(str, tile))}) of {visible(layout.name)}",
            hint="the kernel stores nothing there; choose another tile",
        )  # fmt: skip
    words = _Words(plan, layouts, moves)
    assert plan.partition is not None, "a program that ran has a partition"
    core = plan.partition.cores[last.core]
    items = plan.partition.items_of(core)
    item = _item(plan, layout, [move for move in writes if move.core == last.core], last, items)
    notes = [
        f"{KERNEL_ROLES[role]}.cpp accesses L1 by itself on core ({', '.join(map(str, words.core(at)))}), which is "
        "not recorded: the pages are all that this core had read by then"
        for at, role in sorted(followed.lost)
    ]
    return TileHistory(
        layout.name, tile, words.core(last.core), item,
        item_block(plan.partition.grid, item) if item is not None else (), tuple(items),
        _stops(followed.moves, words, files), words.pages(followed.pages), words.pages(followed.decided), tuple(notes),
    )  # fmt: skip


def _item(plan: Plan, layout: TensorLayout, writes: Sequence[Move], last: Move, items: Sequence[int]) -> int | None:
    """The work item of a write: known where the core has one, or where each writes as many pages as the plan says."""
    if len(items) == 1:
        return items[0]
    edges = plan.graph.edges if plan.graph else ()
    rate = next((edge.tiles_per_item for edge in edges if (edge.source, edge.target) == ("writer", layout.name)), None)
    if not rate or len(writes) != rate * len(items):
        return None
    return items[writes.index(last) // rate]


def _stops(moves: Sequence[Move], words: _Words, files: Mapping[str, Listing]) -> tuple[Stop, ...]:
    groups: dict[tuple[int, int, int], list[Move]] = {}
    for move in moves:
        # What the host places is before all else, what it takes after.
        line = move.line if move.kernel < len(KERNEL_ROLES) else -1 if move.source.kind == "tensor" else 0
        groups.setdefault((move.core, move.kernel, line), []).append(move)
    return tuple(
        _stop(core, kernel, max(line, 0), moves, words, files) for (core, kernel, line), moves in groups.items()
    )


def _stop(
    core: int, kernel: int, line: int, group: Sequence[Move], words: _Words, files: Mapping[str, Listing]
) -> Stop:  # fmt: skip
    role = KERNEL_ROLES[kernel] if kernel < len(KERNEL_ROLES) else _HOST
    cpp = files[role].lines[line - 1] if role in files and 0 < line <= len(files[role].lines) else None
    source = words.places((move.source for move in group), core)
    target = words.places((move.target for move in group), core)
    kinds = {(move.source.kind, move.target.kind) for move in group}
    where = f"on core ({', '.join(map(str, words.core(core)))}), " if core != group[-1].core else ""
    touched: dict[int, set[int]] = {}
    for move in group:
        for location in (move.source, move.target):
            if location.kind == "tensor":
                touched.setdefault(location.object, set()).add(location.page)
    return Stop(
        role, words.core(core), line, cpp.text.strip() if cpp else "",
        cpp.origins[0].span.line if cpp and cpp.origins else 0,
        len({move.operation for move in group}), where + _does(kinds, source, target), words.pages(touched),
    )  # fmt: skip


def _does(kinds: set[tuple[str, str]], source: str, target: str) -> str:
    if not source:
        return f"fills {target} with a constant"
    if any(kind == "tensor" for kind, _ in kinds):
        return f"reads {source} to {target}"
    if any(kind == "tensor" for _, kind in kinds):
        return f"writes {target} from {source}"
    if ("dst", "l1") in kinds:
        return f"packs {source} to {target}"
    if any(kind == "dst" for _, kind in kinds):
        return f"computes in {target}" + (f" with {source}" if source != target else "")
    return f"copies {source} to {target}"


def _pages_text(pages: Pages) -> str:
    return ", ".join(_of_tensor(visible(name), indices) for name, indices in pages.items())


def _of_tensor(name: str, indices: Sequence[Index]) -> str:
    """``A[3, 0–7]``: the axes where the indices are all of some rows and columns, else the runs of each row."""
    axes = [sorted(set(axis)) for axis in zip(*indices, strict=True)]
    if math.prod(map(len, axes)) == len(indices):
        return f"{name}[{', '.join(ranges(axis).replace(', ', ' and ') for axis in axes)}]"
    rows: dict[Index, list[int]] = {}
    for *row, column in indices:
        rows.setdefault(tuple(row), []).append(column)
    rows_text = [f"{name}[{', '.join((*map(str, row), ranges(of)))}]" for row, of in rows.items()]
    rest = f" and {plural(len(rows_text) - _MOST_PARTS, 'more row')}" if len(rows_text) > _MOST_PARTS else ""
    return ", ".join(rows_text[:_MOST_PARTS]) + rest
