"""Where the values of a run came from: the recorded moves of the emulator, followed backwards.

The emulator records each move of values when it happens: a transfer of the NoC, an operation that unpacks a page to
DST or works in DST, a packed page, an element that a processor copies. Of each it knows the place that it takes from
and the place that it changes. What a place holds is therefore what the latest moves to it brought there.
"""

from __future__ import annotations

import heapq
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.functions import FUNCTIONS
from ttexplore.plan import KERNEL_ROLES, Plan

# In the order of runtime/machine.h.
Kind = Literal["constant", "reserved", "tensor", "l1", "dst"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_ALL_DST_TILES = 0xFFFF_FFFF
_WITH_BYTES = ("tensor", "l1")

# What reads and writes memory with the processor's own instructions, so that nothing of it is recorded; and what looks
# so in emitted kernels: the accesses to circular buffers that pass numbers on and hold no values, and the source of a
# multicast, whose moves are recorded.
_OWN_ACCESS = re.compile(r"reinterpret_cast|CoreLocalMem|tt_l1_ptr|get_unsafe_ptr")
_HARMLESS_ACCESS = re.compile(
    r"\*reinterpret_cast<volatile tt_l1_ptr uint32_t\*>\(numbers_for_\w+\.get_(write|read)_ptr\(\)"
    r"|\.async_write_multicast(<[^;()]*>)?\(CoreLocalMem<uint32_t>\(\w+\.get_write_ptr\(\)\)"
)
_NUMBER_READER = "read_number"


class ByteRange(NamedTuple):
    """Bytes `first` to `end` (exclusive) of a page of a tensor, or of the L1 of a core; a tile of the DST of a core has
    no bytes. `object` is the index of the tensor or of the core, `page` counts pages of a tensor or tiles of DST."""

    kind: Kind
    object: int
    page: int
    first: int
    end: int


class Move(NamedTuple):
    """A recorded move: in `operation`, line `line` of a kernel on the core with the index `core` took what was at
    `source` and changed `target`."""

    operation: int
    core: int
    kernel: int
    line: int
    source: ByteRange
    target: ByteRange


@dataclass(frozen=True, slots=True)
class Followed:
    """All moves that what is at a place came by, in order, and the pages of tensors that it began with, by the tensor's
    index.

    `decided` are the pages with numbers that kernels had read by then, to decide with them what they move. `lost` names
    the kernels (core, role) that can have stored values by themselves, which nothing records: all pages are named that
    these cores had read by then.
    """

    moves: tuple[Move, ...]
    pages: dict[int, set[int]]
    decided: dict[int, set[int]]
    lost: frozenset[tuple[int, int]]


@dataclass(slots=True)
class _TracedMoves:
    moves: dict[int, Move] = field(default_factory=dict[int, Move])
    pages: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    lost: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    # The latest operation on each core.
    cores: dict[int, int] = field(default_factory=dict[int, int])


class Moves:
    """The moves of one run of the kernels with these texts, by role."""

    def __init__(self, records: NDArray[np.void], plan: Plan, texts: Mapping[str, str]) -> None:
        self._records = records
        # L1 is divided into the pages of circular buffers, in the order of the emulator's job.
        sizes = (buffer.page_bytes for buffer in plan.on_chip.buffers for _ in range(buffer.pages))
        self._page_ends = list(itertools.accumulate(sizes))
        self._pages = tuple(buffer.pages for buffer in plan.on_chip.buffers)
        # The first move of the operation of each move.
        starts = np.diff(records["operation"].astype(np.int64), prepend=-1) != 0
        self._firsts = np.maximum.accumulate(np.where(starts, np.arange(len(records)), 0))
        self._columns = {name: records[name] for name in records.dtype.names or ()}
        self._buckets: dict[tuple[Kind, int], dict[int, list[int]]] = {}
        self._own_access = [role for role, name in enumerate(KERNEL_ROLES) if _accesses_memory(texts[name])]
        self._number_lines = [_lines_of_function(texts[name], _NUMBER_READER) for name in KERNEL_ROLES]

    def _bucket(self, location: ByteRange) -> list[int]:
        """The moves that change the page that a place is in, in order. An acquire changes all tiles of DST."""
        key = (location.kind, location.object)
        if key not in self._buckets:
            records = self._records
            arrivals = np.flatnonzero(_is(records, "to", location.kind) & (records["to_object"] == location.object))
            numbers_by_page: dict[int, list[int]] = {}
            if location.kind == "l1":
                starts = records["to_offset"][arrivals].astype(np.int64)
                firsts = np.searchsorted(self._page_ends, starts, "right").tolist()
                ends = starts + np.maximum(records["bytes"][arrivals].astype(np.int64), 1) - 1
                lasts = np.searchsorted(self._page_ends, ends, "right").tolist()
                for number, first, last in zip(arrivals.tolist(), firsts, lasts, strict=True):
                    for page in range(first, last + 1):
                        numbers_by_page.setdefault(page, []).append(number)
            else:
                for number, page in zip(arrivals.tolist(), records["to_page"][arrivals].tolist(), strict=True):
                    numbers_by_page.setdefault(page, []).append(number)
            if location.kind == "dst":
                acquired = numbers_by_page.pop(_ALL_DST_TILES, [])
                numbers_by_page = {page: sorted([*numbers, *acquired]) for page, numbers in numbers_by_page.items()}
            self._buckets[key] = numbers_by_page
        return self._buckets[key].get(self._page_of(location), [])

    def _page_of(self, location: ByteRange) -> int:
        return bisect_right(self._page_ends, location.first) if location.kind == "l1" else location.page

    def _by_page(self, location: ByteRange) -> Iterable[ByteRange]:
        """The place, divided at the ends of the pages of L1."""
        first = location.first
        while location.kind == "l1" and first < location.end:
            end = min(location.end, self._page_ends[bisect_right(self._page_ends, first)])
            yield location._replace(first=first, end=end)
            first = end
        if location.kind != "l1":
            yield location

    def _move(self, number: int) -> Move:
        at: dict[str, int] = {name: column.item(number) for name, column in self._columns.items()}

        def location(end: str) -> ByteRange:
            kind = _KINDS[at[f"{end}_kind"]]
            first, size = (at[f"{end}_offset"], at["bytes"]) if kind in _WITH_BYTES else (0, 0)
            return ByteRange(kind, at[f"{end}_object"], at[f"{end}_page"], first, first + size)

        return Move(at["operation"], at["core"], at["kernel"], at["line"], location("from"), location("to"))

    def writes(self, tensor: int) -> list[Move]:
        """The moves to a tensor, in order."""
        records = self._records
        to_tensor = _is(records, "to", "tensor") & (records["to_object"] == tensor)
        return [self._move(number) for number in np.flatnonzero(to_tensor).tolist()]

    def slot(self, location: ByteRange) -> tuple[int, int]:
        """The circular buffer, as its position in the plan's on-chip buffers, and the page of it, that a place in L1
        begins in."""
        page = self._page_of(location)
        for position, pages in enumerate(self._pages):
            if page < pages:
                return position, page
            page -= pages
        raise ValueError(f"{location} is outside of all circular buffers")

    def follow(self, locations: Iterable[ByteRange]) -> Followed:
        """Follow what is at `locations` of tensors at the end of the run back to where it came from."""
        trail = _TracedMoves()
        visited: set[tuple[ByteRange, int]] = set()
        heap: list[tuple[int, ByteRange]] = []

        def ask(location: ByteRange, before: int) -> None:
            for page_location in self._by_page(location):
                heapq.heappush(heap, (-before, page_location))

        for location in locations:
            ask(location, len(self._records))
        while heap:
            before, location = heapq.heappop(heap)
            if location.kind == "l1":
                trail.lost |= {(location.object, role) for role in self._own_access}
            bucket = self._bucket(location)
            at = bisect_left(bucket, -before) - 1
            while at >= 0 and not self._changes(bucket[at], location):
                at -= 1
            if at < 0:
                if location.kind == "tensor":
                    trail.pages.setdefault(location.object, set()).add(location.page)
                continue
            if (location, bucket[at]) in visited:
                continue
            visited.add((location, bucket[at]))
            first = self._firsts.item(bucket[at])
            rest = [location]
            while at >= 0 and bucket[at] >= first:
                if self._changes(bucket[at], location):
                    self._take(bucket[at], location, first, ask, trail)
                    if not self._columns["adds"].item(bucket[at]):
                        rest = [uncovered for piece in rest for uncovered in self._without(piece, bucket[at])]
                at -= 1
            for piece in rest:
                ask(piece, first)
        self._all_read({core for core, _ in trail.lost}, trail)
        decided: dict[int, set[int]] = {}
        for core, last in trail.cores.items():
            self._decided(core, last, decided)
        moves = tuple(trail.moves[number] for number in sorted(trail.moves))
        return Followed(moves, trail.pages, decided, frozenset(trail.lost))

    def _changes(self, number: int, location: ByteRange) -> bool:
        if location.kind == "dst":
            return True
        first = self._columns["to_offset"].item(number)
        return first < location.end and location.first < first + self._columns["bytes"].item(number)

    def _without(self, location: ByteRange, number: int) -> list[ByteRange]:
        """What is left of a place without the bytes that a move replaces; nothing of a tile of DST."""
        if location.kind == "dst":
            return []
        first = self._columns["to_offset"].item(number)
        end = first + self._columns["bytes"].item(number)
        pieces = [location._replace(end=min(location.end, first)), location._replace(first=max(location.first, end))]
        return [piece for piece in pieces if piece.first < piece.end]

    def _take(
        self, number: int, location: ByteRange, before: int, ask: Callable[[ByteRange, int], None], trail: _TracedMoves
    ) -> None:
        """Follow one move to a place: ask for what it took."""
        move = self._move(number)
        if move.source.kind == "reserved":
            # Nothing that is recorded has written here since: constants at most.
            return
        if move.target.kind == "dst" and move.target.page == _ALL_DST_TILES:
            return
        trail.moves[number] = move
        trail.cores[move.core] = max(trail.cores.get(move.core, 0), number)
        source, target = move.source, move.target
        if source.kind == "constant":
            return
        if source.kind in _WITH_BYTES and target.kind in _WITH_BYTES:
            first, end = max(location.first, target.first), min(location.end, target.end)
            moved = source.first - target.first
            source = source._replace(first=first + moved, end=end + moved)
        ask(source, before)

    def _all_read(self, cores: set[int], trail: _TracedMoves) -> None:
        """All pages that cores, and those that sent them something, had read until the last followed move."""
        rows = self._records[: max(trail.cores.values(), default=0)]
        to_l1 = _is(rows, "to", "l1")
        reached: set[int] = set()
        while cores - reached:
            reached |= cores
            arrivals = rows[to_l1 & np.isin(rows["to_object"], sorted(reached))]
            sent = arrivals[_is(arrivals, "from", "l1")]
            cores = {*reached, *sent["from_object"].tolist()}
            _add(arrivals[_is(arrivals, "from", "tensor")], trail.pages)

    def _decided(self, core: int, last: int, decided: dict[int, set[int]]) -> None:
        """The pages of which kernels of a core had read numbers."""
        rows = self._records[:last]
        for role, lines in enumerate(self._number_lines):
            if lines:
                reads = rows[(rows["core"] == core) & (rows["kernel"] == role) & _is(rows, "from", "tensor")]
                _add(reads[(reads["line"] >= lines[0]) & (reads["line"] < lines[1])], decided)


def _is(records: NDArray[np.void], end: Literal["from", "to"], kind: Kind) -> NDArray[np.bool_]:
    """Whether each move has an end of that kind."""
    return records[f"{end}_kind"] == _KINDS.index(kind)


def _add(records: NDArray[np.void], pages: dict[int, set[int]]) -> None:
    for tensor, page in zip(records["from_object"].tolist(), records["from_page"].tolist(), strict=True):
        pages.setdefault(tensor, set()).add(page)


def _accesses_memory(text: str) -> bool:
    """Whether a kernel reads or writes memory by itself, other than in the functions whose copies are recorded or that
    make constants."""
    for function in FUNCTIONS.values():
        text = text.replace(function, "")
    return bool(_OWN_ACCESS.search(_HARMLESS_ACCESS.sub("", text)))


def _lines_of_function(text: str, name: str) -> tuple[int, int] | None:
    """The lines of one of our functions in a kernel, from 1, the last exclusive."""
    before, function, _ = text.partition(FUNCTIONS[name])
    first = before.count("\n") + 1
    return (first, first + FUNCTIONS[name].count("\n") + 1) if function else None
