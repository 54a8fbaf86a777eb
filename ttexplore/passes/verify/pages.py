"""Check the pages of tensors: all transfers stay within them, every page that the kernel stores is written, and no core
reads or writes a page that another core writes. Where a tensor is written in parts of pages, or element by element, the
same holds for its *pieces*: runs of 16 elements, or single elements.

The index expressions are evaluated for the work items of all cores at once. A loop of constant length is represented by
bounds, except in three cases in which it is followed iteration by iteration: for writes; if a condition depends on its
iterations and on those of a loop inside it; and if the bounds of a read exceed its tensor.

A page that two cores use is rejected because cores do not wait for each other. Only those do that hand on a block: the
first of them reads a page once, the last one writes it once, after that. :mod:`partial_sums` shows that both use the
same page at the same step.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ttexplore.control import look_around
from ttexplore.errors import KernelError, ResourceError, VerifyError
from ttexplore.ir.arithmetic.index import (
    Binary,
    CoreItem,
    CoreValue,
    Expression,
    Key,
    Range,
    Unary,
    Variable,
    narrowed,
    placed,
    show,
    value_range,
    variables,
)
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store, calls, kernel_name, walk
from ttexplore.ops import OPS
from ttexplore.ops.protocol import NOC_READ_ELEMENT, NOC_WRITE_ELEMENT
from ttexplore.plan import FACE, TILE_COLUMNS, TILE_ROWS, Accessor, Partition, Plan, TensorLayout

Rows = NDArray[np.int64]
# Of each piece of a tensor, the number of the core or work item that writes it.
Owners = NDArray[np.signedinteger[Any]]
# A set of pages of a tensor: one truth value for each page.
Pages = NDArray[np.bool_]
# More iterations than this are represented by bounds.
_MOST_ROWS = 1 << 26
# How many iterations are evaluated side by side.
_ROWS_AT_ONCE = 1 << 18
# Loops of more iterations are evaluated by themselves.
_LONG = 1 << 14
# The most pages, or elements, that the iterations that are evaluated side by side may store to.
_MOST_PAGES = 1 << 24
_OWN = "let one block own each element of {0}, or add to {0} with T.atomic_add"
# More bytes than any page has.
_ANY_SIZE = 1 << 40


@dataclass(frozen=True, slots=True)
class TransferRuns:
    """All runs of one transfer operation: for each row, the core (its position in the partition) and the page's range,
    and, if it is known, the number of the core's work items before this one.

    At most `count_bytes` (one number, or one per row) of a page are moved, from `offset_bytes`; without an offset, the
    whole page.
    """

    call: Call
    tensor: str
    writes: bool
    core: Rows
    page: Range
    offset_bytes: Range | None = None
    count_bytes: Rows | int = 0
    turn: Rows | None = None

    def parts(self, piece_bytes: int, pieces: int) -> Iterator[Rows]:
        """The pieces that it moves, if each page has `pieces` of them: one for each row at a time."""
        pages = np.broadcast_to(self.page[0], self.core.shape)
        if pieces == 1:
            yield pages
        elif self.offset_bytes is not None:
            # The last piece of a row can be shorter.
            first = self.offset_bytes[0] // piece_bytes
            last = np.minimum(first + -(-self.count_bytes // piece_bytes), pieces) - 1
            for number in range(int(np.max(last - first, initial=0)) + 1):
                yield pages * pieces + np.minimum(first + number, last)
        else:
            for number in range(pieces):
                yield pages * pieces + number

    def only(self, rows: Pages) -> TransferRuns:
        """Some of its rows."""
        offset = None if self.offset_bytes is None else _at_range(self.offset_bytes, rows)
        count = _at_rows(self.count_bytes, rows)
        return dataclasses.replace(
            self, core=self.core[rows], page=_at_range(self.page, rows), offset_bytes=offset, count_bytes=count,
            turn=None if self.turn is None else self.turn[rows],
        )  # fmt: skip

    @property
    def exact(self) -> bool:
        """Whether the page of each row is known exactly."""
        return self.page[0] is self.page[1]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """What is written of a tensor at once: whole pages, or parts of pages of so many elements."""

    accessor: Accessor
    layout: TensorLayout
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * self.layout.element_bytes or self.accessor.page_bytes

    @property
    def per_page(self) -> int:
        """The last piece of a row can be shorter."""
        return -(-self.accessor.page_bytes // self.bytes)

    def show(self, piece: int) -> str:
        page, element = divmod(piece, self.per_page)
        return f"element {element} of page {page}" if self.elements == 1 else f"page {page}"


def check_pages(
    kernels: Mapping[str, Kernel], plan: Plan, stored: Callable[[frozenset[str]], Mapping[str, Pages]]
) -> None:
    """Check all transfers. `stored` gives the pages that the kernel stores to, by tensor, where they are known: for
    those tensors whose names it is given, the elements of pages. Raises VerifyError."""
    assert plan.partition is not None
    writers: dict[str, Owners] = {}
    blocks: dict[str, Owners] = {}
    races: list[KernelError] = []
    last: dict[str, Call] = {}
    _check_movers(kernels)
    written, pieces = _written_tensors(kernels), _pieces(kernels, plan)
    read = {tensor for kernel in kernels.values() for tensor, _ in _transfers(kernel, writes=False)}
    unsure: set[str] = set()
    most = max(len(plan.partition.items_of(core)) for core in plan.partition.cores)

    def check(transfer: TransferRuns, role: str) -> None:
        accessor = plan.accessor(transfer.tensor)
        if not transfer.exact and _outside(transfer, accessor) is not None:
            unsure.add(transfer.tensor)
            return
        _inside(transfer, accessor, role)
        if transfer.writes:
            assert plan.partition is not None
            last[transfer.tensor] = transfer.call
            _claim(transfer, pieces[transfer.tensor], writers, plan.partition)
            if transfer.tensor not in read:
                races.extend(_races(transfer, pieces[transfer.tensor], blocks, plan.partition, most))

    for kernel in kernels.values():
        if _moves(kernel.names):
            follow = written
            walk = _TransferWalk(plan.partition, follow, check)
            walk.run(kernel)
            _shared_nowhere(kernel, walk.elsewhere, plan, pieces)
            while unsure:
                # Bounds of k and l do not show that k - l >= 0 where l <= k; following the iterations does.
                follow |= unsure
                unsure.clear()
                _TransferWalk(plan.partition, follow, check).run(kernel)
    blocks.clear()
    _not_read_elsewhere(kernels, plan, writers, pieces)
    in_place = {buffer.shard_of for buffer in plan.buffers}
    single = frozenset(tensor for tensor, tensor_pieces in pieces.items() if tensor_pieces.elements == 1)
    for tensor, expected in stored(single).items():
        if tensor in in_place:
            continue
        done = writers.get(tensor)
        is_written = (
            np.zeros(expected.size, bool) if done is None else np.any(done.reshape(expected.size, -1) >= 0, axis=1)
        )
        if tensor in single:
            # Strips of 16 elements reach into the padding, where nothing is.
            is_written &= _existing(tensor, plan)
        _same_places(tensor, pieces.get(tensor), expected, is_written, last.get(tensor))
    # The program does what the kernel says: if blocks race, these are the kernel's own.
    for race in races:
        raise race


def _check_movers(kernels: Mapping[str, Kernel]) -> None:
    """One kernel of a core reads and writes a tensor, because nothing orders the transfers of two. Raises
    VerifyError."""
    writers = {tensor: role for role, kernel in kernels.items() for tensor, _ in _transfers(kernel, writes=True)}
    for role, kernel in kernels.items():
        for tensor, call in _transfers(kernel, writes=False):
            if writers.get(tensor, role) != role:
                raise VerifyError(
                    "V014",
                    f"{kernel_name(role)} reads {tensor}, which {kernel_name(writers[tensor])} writes",
                    hint=f"let {kernel_name(writers[tensor])} read it: nothing orders the transfers of two kernels",
                    span=call.span,
                )


def _transfers(kernel: Kernel, *, writes: bool) -> list[tuple[str, Call]]:
    return [(tensor, call) for call in calls(kernel.body) for tensor, _, out in _moved(call) if out == writes]


def _moves(names: frozenset[str]) -> bool:
    return any(name.startswith("tt.noc_") for name in names)


def _written_tensors(kernels: Mapping[str, Kernel]) -> frozenset[str]:
    return frozenset(tensor for kernel in kernels.values() for tensor, _ in _transfers(kernel, writes=True))


def _pieces(kernels: Mapping[str, Kernel], plan: Plan, *, of_reads: bool = False) -> dict[str, _Pieces]:
    """The pieces of each tensor that is written; with `of_reads`, of each one that is read or written."""
    elements_of: dict[str, int] = {}
    for kernel in kernels.values():
        for call in calls(kernel.body):
            elements = (
                1
                if call.op in (NOC_READ_ELEMENT, NOC_WRITE_ELEMENT)
                else FACE
                if "page_offset_bytes" in call.values
                else 0
            )
            for tensor, _, writes in _moved(call):
                if writes or of_reads:
                    previous = elements_of.setdefault(tensor, elements)
                    elements_of[tensor] = min(previous, elements) if previous and elements else max(previous, elements)
    return {
        tensor: _Pieces(plan.accessor(tensor), plan.layout(tensor), elements)
        for tensor, elements in elements_of.items()
    }


def _moved(call: Call) -> list[tuple[str, Expression, bool]]:
    """The tensors that an operation reads or writes a page of, with the page."""
    if call.phase or call.op.engine != "noc":
        return []
    return [(call.buffer(of), call.values[name], writes) for name, of, writes in _pages(call.name)]


@functools.cache
def _pages(name: str) -> tuple[tuple[str, str, bool], ...]:
    """The page operands of an operation: the operand, the tensor operand that it is a page of, whether it writes."""
    operands = OPS[name].operands
    access = {operand.name: operand.access for operand in operands}
    return tuple(
        (operand.name, operand.of, access[operand.of] == "write") for operand in operands if operand.kind == "page"
    )


def _outside(transfer: TransferRuns, accessor: Accessor) -> int | None:
    """A page in the range of a transfer that the tensor does not have; None if there is none."""
    low, high = int(np.min(transfer.page[0])), int(np.max(transfer.page[1]))
    return low if low < 0 else high if high >= accessor.pages else None


def _inside(transfer: TransferRuns, accessor: Accessor, role: str) -> None:
    outside = _outside(transfer, accessor)
    if outside is not None:
        raise VerifyError(
            "V013",
            f"{kernel_name(role)} {'writes' if transfer.writes else 'reads'} page {outside} of "
            f"{transfer.tensor}, which has {accessor.pages}",
            hint="correct the page index, or skip the pages outside the tensor",
            span=transfer.call.span,
        )


def _claim(
    transfer: TransferRuns, pieces: _Pieces, writers: dict[str, Owners], partition: Partition
) -> None:  # fmt: skip
    """Record which core writes which page, or piece of a page. Raises VerifyError if another core has written it."""
    owner = _owners(writers, transfer.tensor, pieces, len(partition.cores))
    chunks = transfer.parts(pieces.bytes, pieces.per_page)
    clashes = (clash for chunk in chunks for clash in _clashes(owner, chunk, transfer.core))
    for piece, core in clashes:
        writer_names = [f"({work.x}, {work.y})" for work in (partition.cores[int(owner[piece])], partition.cores[core])]
        raise VerifyError(
            "V014",
            f"{pieces.show(piece)} of {transfer.tensor} is written by core {writer_names[0]} and by core "
            f"{writer_names[1]}: "
            "their order is undefined",
            hint=_OWN.format(transfer.tensor),
            span=transfer.call.span,
        )


def _races(
    transfer: TransferRuns, pieces: _Pieces, writers: dict[str, Owners], partition: Partition, most: int
) -> Iterator[KernelError]:
    """Record which work item, of at most so many of each core, writes which page, or piece of a page; an error where
    another one of the same core has written it: that the core runs them in order is nothing that the kernel asks
    for."""
    if transfer.turn is None:
        return
    items = transfer.core * most + transfer.turn
    owner = _owners(writers, transfer.tensor, pieces, most * len(partition.cores))
    chunks = transfer.parts(pieces.bytes, pieces.per_page)
    clashes = (clash for chunk in chunks for clash in _clashes(owner, chunk, items))
    for piece, item in clashes:
        numbers = sorted(divmod(number, most) for number in (int(owner[piece]), item))
        first_block, two = (
            _block(partition.items_of(partition.cores[core])[index], partition) for core, index in numbers
        )
        yield KernelError(
            "K017",
            f"{first_block} and {two} both write {pieces.show(piece)} of {transfer.tensor}: the result depends on "
            f"which comes "
            "last",
            hint=_OWN.format(transfer.tensor),
            span=transfer.call.span,
        )


def _owners(writers: dict[str, Owners], tensor: str, pieces: _Pieces, count: int) -> Owners:
    """Which of so many cores, or work items, writes each piece of a tensor; -1 where none has."""
    if tensor not in writers:
        writers[tensor] = np.full(pieces.accessor.pages * pieces.per_page, -1, np.min_scalar_type(-count))
    return writers[tensor]


def _block(item: int, partition: Partition) -> str:
    """A work item as the launch grid numbers it, along x first."""
    numbers = list[int]()
    for extent in partition.grid:
        item, number = divmod(item, extent)
        numbers.append(number)
    return f"block ({', '.join(map(str, numbers))})"


def _clashes(owner: Owners, pages: Rows, cores: Rows) -> Iterator[tuple[int, int]]:
    # Of several assignments to one page the last wins; a core that then finds another core there clashes.
    before = owner[pages]
    clashing = np.flatnonzero((before >= 0) & (before != cores))
    if not clashing.size:
        owner[pages] = cores
        clashing = np.flatnonzero(owner[pages] != cores)
    for row in clashing[:1]:
        yield int(pages[row]), int(cores[row])


def _not_read_elsewhere(
    kernels: Mapping[str, Kernel], plan: Plan, writers: Mapping[str, Owners], pieces: Mapping[str, _Pieces]
) -> None:  # fmt: skip
    """A page that one core writes is read only by that core. Raises VerifyError."""
    partition = plan.partition
    assert partition is not None

    numbers = {(core.x, core.y): number for number, core in enumerate(partition.cores)}
    # For each core that begins a chain, the one that ends it.
    ends = {sums.tensor: np.arange(len(partition.cores)) for sums in plan.partials}
    for sums in plan.partials:
        for chain in sums.chains:
            ends[sums.tensor][numbers[chain[0]]] = numbers[chain[-1]]
    all_pieces = _pieces(kernels, plan, of_reads=True) if ends else {}
    uses = {
        tensor: np.zeros(all_pieces[tensor].accessor.pages * all_pieces[tensor].per_page, np.int64)
        for tensor in ends if tensor in writers
    }  # fmt: skip

    def check(transfer: TransferRuns, role: str) -> None:
        if transfer.tensor in uses:
            tensor_pieces = all_pieces[transfer.tensor]
            for chunk in transfer.parts(tensor_pieces.bytes, tensor_pieces.per_page):
                _once(transfer, chunk, uses[transfer.tensor], tensor_pieces)
        if transfer.writes or transfer.tensor not in writers:
            return
        owners, written_pieces = writers[transfer.tensor], pieces[transfer.tensor]
        user = ends[transfer.tensor][transfer.core] if transfer.tensor in ends else transfer.core
        for chunk in transfer.parts(written_pieces.bytes, written_pieces.per_page):
            owner = owners[chunk]
            for row in np.flatnonzero((owner >= 0) & (owner != user))[:1]:
                reader, two = (partition.cores[int(index)] for index in (transfer.core[row], owner[row]))
                raise VerifyError(
                    "V014",
                    f"core ({reader.x}, {reader.y}) reads {written_pieces.show(int(chunk[row]))} of {transfer.tensor}, "
                    f"which "
                    f"core ({two.x}, {two.y}) writes",
                    hint="write to another tensor, or assign both work items to one core",
                    span=transfer.call.span,
                )

    for kernel in kernels.values():
        if any(tensor in writers and not writes for call in calls(kernel.body) for tensor, _, writes in _moved(call)):
            _TransferWalk(partition, frozenset(writers), check).run(kernel)


def _once(transfer: TransferRuns, chunk: Rows, uses: NDArray[np.int64], pieces: _Pieces) -> None:
    """Count one more read, or write, of some pieces that cores hand on. Raises VerifyError for a second one."""
    bit = 2 if transfer.writes else 1
    numbers = np.bincount(chunk, minlength=uses.size)
    again = np.flatnonzero((numbers > 1) | ((numbers > 0) & (uses & bit != 0)))
    for piece in again[:1]:
        raise VerifyError(
            "V014",
            f"{pieces.show(int(piece))} of {transfer.tensor} is {'written' if transfer.writes else 'read'} twice by "
            "cores that hand it on",
            hint="let each core update a block once",
            span=transfer.call.span,
        )
    uses[chunk] |= bit


# What the first element of a tensor that decides something is, and by how much each next one is more.
_TRIALS = ((0, 0), (0, 48), (21, 64))


def _shared_nowhere(kernel: Kernel, tensors: set[str], plan: Plan, pieces: Mapping[str, _Pieces]) -> None:
    """A tensor that is read and written at places that elements of tensors decide is used by one core at each place, as
    far as some elements show: sums there have one owner. Raises VerifyError."""
    both = {name for name, _ in _transfers(kernel, writes=True)} & {
        name for name, _ in _transfers(kernel, writes=False)
    }
    updated = frozenset(tensors & both)
    if not updated:
        return
    partition = plan.partition
    assert partition is not None
    users: dict[str, Owners] = {}

    def check(transfer: TransferRuns, role: str) -> None:
        if transfer.tensor in updated:
            pages = np.broadcast_to(transfer.page[0], transfer.core.shape)
            inside = (pages >= 0) & (pages < plan.accessor(transfer.tensor).pages)
            _claim(transfer.only(inside), pieces[transfer.tensor], users, partition)

    for trial in _TRIALS:
        _TransferWalk(partition, updated, check, trial).run(kernel)


def _same_places(tensor: str, pieces: _Pieces | None, expected: Pages, written: Pages, call: Call | None) -> None:
    """What the kernel stores of a tensor is what is written: elements, or else pages. Raises VerifyError."""
    if np.array_equal(expected, written):
        return
    span = call.span if call is not None else None
    missing, strange = np.flatnonzero(expected & ~written), np.flatnonzero(written & ~expected)
    single = pieces is not None and pieces.elements == 1

    def show(place: int) -> str:
        return pieces.show(place) if pieces is not None and single else f"page {place}"

    if missing.size:
        raise VerifyError(
            "V015",
            f"{show(int(missing[0]))} of {tensor} is never written: the kernel stores to {np.count_nonzero(expected)} "
            f"{'elements' if single else 'pages'}, and {missing.size} of them are missing",
            hint="assign every work item to a core, and write the whole block of each",
            span=span,
        )
    if strange.size:
        raise VerifyError(
            "V015",
            f"{show(int(strange[0]))} of {tensor} is written, but the kernel stores nothing there",
            hint="correct the page index",
            span=span,
        )


# Evaluating


class _TransferWalk:
    """Walks a kernel with the values of all cores and work items side by side, and passes each transfer to `take`, with
    the kernel's role. If there are many rows, a transfer comes several times, with different rows.

    Transfers whose places elements of tensors decide are left out, and `elsewhere` are their tensors; in a `trial`, the
    elements are numbers: the first one, and by how much each next one is more.
    """

    def __init__(
        self, partition: Partition, follow: frozenset[str], take: Callable[[TransferRuns, str], None],
        trial: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.partition, self.follow, self.take = partition, follow, take
        self.elsewhere = set[str]()
        self.trial = trial
        self.numbers: dict[Variable, int] = {}
        # The transfers in a loop with too many of them to follow each.
        self.many = 0
        # All rows, as a multiple of the part of them that is evaluated.
        self.times = 1.0
        self.core: Rows = np.arange(len(partition.cores))
        # How many work items the core has begun before; None where they are not told apart.
        self.turn: Rows | None = np.zeros(len(partition.cores), np.int64)
        # Names for the counts of work items that the cores are given.
        self.counts = set[Variable]()
        # Names that depend on elements of tensors. The places that they decide are checked when the kernel runs.
        self.decided = set[Variable]()
        self.known: dict[Key, Range] = {}
        core_values = [core.values for core in partition.cores]
        for name in dict.fromkeys(itertools.chain(*core_values)):
            numbers = [of_core.get(name, 0) for of_core in core_values]
            values = numbers[0] if len({*numbers}) == 1 else np.array(numbers)
            self.known[CoreValue(name)] = (values, values)

    def run(self, kernel: Kernel) -> None:
        """Pass on every transfer of a kernel. Raises VerifyError for a page that has no bound, ResourceError for a
        tensor whose transfers are followed and too many."""
        self.role, self.who = kernel.role, kernel_name(kernel.role)
        self.body(kernel.body)

    def body(self, body: Body) -> None:
        for statement in body:
            if not self.core.size:
                return
            match statement:
                case Call():
                    for tensor, page, writes in _moved(statement):
                        if self.depends(page, *statement.values.values()):
                            self.elsewhere.add(tensor)
                        else:
                            self.moved(statement, tensor, page, writes)
                    if statement.result is not None:
                        self.number(statement.result, statement.least, statement.most)
                case Bind():
                    self.bind(statement)
                case Loop():
                    if _moves(statement.names):
                        self.loop(statement)
                case Branch():
                    self.branch(statement)
                case Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)

    def number(self, name: Variable, least: int, most: int) -> None:
        """A name for an element of a tensor that decides something."""
        if self.trial is None:
            self.decided.add(name)
            return
        first, step = self.trial
        value = self.numbers.setdefault(name, min(max(first + step * len(self.numbers), least), most))
        self.known[name] = (value, value)

    def depends(self, *expressions: Expression) -> bool:
        return any(variables(expression) & self.decided for expression in expressions)

    def moved(self, call: Call, tensor: str, page: Expression, writes: bool) -> None:
        bounds = value_range(page, self.known)
        if bounds is None:
            raise VerifyError(
                "V016",
                f"{self.who}: page {show(page)} of {tensor} has no bound",
                hint="index with loop variables and values that the cores are given",
                span=call.span,
            )
        offset = call.values.get("page_offset_bytes")
        within = None if offset is None else value_range(offset, self.known)
        exact = bounds[0] is bounds[1] and (offset is None or (within is not None and within[0] is within[1]))
        if tensor in self.follow and not exact and self.many:
            raise ResourceError(
                "R014",
                f"{self.who}: {tensor} is used in {self.many:,} transfers; at most {_MOST_ROWS:,} are verified",
                hint='keep the tensor in tiles, page="tile", or move larger blocks',
                span=call.span,
            )
        if tensor in self.follow and not exact:
            raise VerifyError(
                "V016",
                f"{self.who}: the pages of {tensor} that are used are not known: {show(page)}",
                hint="use smaller blocks, or simpler indices",
                span=call.span,
            )
        # An unknown size is at most the rest of the page.
        size = value_range(call.values.get("count_bytes", 0), self.known) or (0, _ANY_SIZE)
        self.take(TransferRuns(call, tensor, writes, self.core, bounds, within, size[1], self.turn), self.role)

    def bind(self, bind: Bind) -> None:
        match bind.value:
            case CoreItem(_, position):
                at = value_range(position, self.known)
                if at is None:
                    return
                longest = max(len(core.listed) for core in self.partition.cores)
                table = np.array([[*core.listed, *[0] * (longest - len(core.listed))] for core in self.partition.cores])
                values = table[self.core, at[0]]
                self.known[bind.variable] = (values, values)
            case value:
                if isinstance(value, CoreValue) and value.name in self.partition.arguments:
                    self.counts.add(bind.variable)
                if self.depends(value):
                    self.decided.add(bind.variable)
                bounds = value_range(value, self.known)
                if bounds is not None:
                    self.known[bind.variable] = bounds

    def loop(self, loop: Loop) -> None:
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        if (low is None or extent is None) and self.depends(loop.low, loop.extent):
            self.decided.add(loop.variable)
            self.body(loop.body)
            return
        if low is None or extent is None:
            raise VerifyError(
                "V016",
                f"{self.who}: a loop of {show(loop.extent)} iterations moves pages, and its length has no bound",
                hint="use a constant, or a value that the cores are given",
                span=None,
            )
        exact = low[0] is low[1] and extent[0] is extent[1]
        follow = _is_tested(loop) or any(tensor in self.follow for tensor in _tensors(loop.body))
        rows = round(self.times * np.sum(np.broadcast_to(np.maximum(extent[1], 0), self.core.shape)))
        if exact and (loop.turns is None or follow) and rows <= _MOST_ROWS:
            self.expanded(loop, low[0], extent[0])
            return
        state = self.core, self.turn, self.known
        if exact and rows > _MOST_ROWS:
            self.many = max(self.many, rows)
        runs = np.broadcast_to(extent[1] > 0, self.core.shape)
        self.keep(runs)
        if self.counts_items(loop):
            self.turn = None
        self.known[loop.variable] = _at_range((low[0], low[1] + extent[1] - 1), runs)
        self.body(loop.body)
        self.core, self.turn, self.known = state

    def counts_items(self, loop: Loop) -> bool:
        """Whether the turns of a loop are work items of the core, or rows or columns of them."""
        return loop.extent in self.counts

    def expanded(self, loop: Loop, low: Rows | int, extent: Rows | int) -> None:
        core, item, ranges, times = self.core, self.turn, self.known, self.times
        turns = np.maximum(np.broadcast_to(extent, core.shape), 0)
        lows = np.broadcast_to(low, core.shape)
        total = int(np.sum(turns))
        for rows, number in _parts(turns):
            look_around()
            if isinstance(rows, int):
                self.keep_one(rows, number.size)
            else:
                self.keep(rows)
            iteration = number + lows[rows]
            if self.turn is not None and self.counts_items(loop):
                self.turn = self.turn * turns[rows] + number
            self.known[loop.variable] = (iteration, iteration)
            self.times = times * total / number.size
            self.body(loop.body)
            self.core, self.turn, self.known = core, item, ranges
        self.times = times

    def branch(self, branch: Branch) -> None:
        state = self.core, self.turn, self.known
        for arm, holds in ((branch.then, True), (branch.otherwise, False)):
            if not _tensors(arm):
                continue
            runs = np.broadcast_to(self.possible(branch.condition, holds=holds), self.core.shape)
            self.known = narrowed(branch.condition, self.known, holds=holds)
            self.keep(runs)
            self.body(arm)
            self.core, self.turn, self.known = state

    def possible(self, condition: Expression, *, holds: bool) -> Pages | bool:
        """The rows in which a condition can hold, or can fail: also by that part of it that is known."""
        bounds = value_range(condition, self.known)
        if bounds is not None:
            low, high = bounds
            return ((low != 0) | (high != 0)) if holds else ((low <= 0) & (high >= 0))
        match condition:
            case Unary("not", operand):
                return self.possible(operand, holds=not holds)
            case Binary("and", left, right) if holds:
                return self.possible(left, holds=True) & self.possible(right, holds=True)
            case Binary("or", left, right) if not holds:
                return self.possible(left, holds=False) & self.possible(right, holds=False)
            case _:
                return True

    def keep_one(self, row: int, times: int) -> None:
        """Continue with one of the rows, so many times."""
        self.known = {key: _at_row(bounds, row) for key, bounds in self.known.items()}
        self.core = np.broadcast_to(self.core[row], times)
        if self.turn is not None:
            self.turn = np.broadcast_to(self.turn[row], times)

    def keep(self, rows: Rows | Pages) -> None:
        """Continue with some of the rows, or with repeated rows."""
        look_around()
        if rows.dtype == bool and rows.all():
            return
        self.known = {key: _at_range(bounds, rows) for key, bounds in self.known.items()}
        self.core = self.core[rows]
        if self.turn is not None:
            self.turn = self.turn[rows]


def _parts(turns: Rows) -> Iterator[tuple[Rows | int, Rows]]:
    """The iterations of a loop that has so many in each row, in parts: the row and the number of each. If the rows are
    long, a part has one row, and what its iterations have in common is computed once."""
    ends = np.cumsum(turns)
    total = int(ends[-1])
    if total > max(_ROWS_AT_ONCE, _LONG * turns.size):
        for row, count in enumerate(turns.tolist()):
            for begin in range(0, count, _ROWS_AT_ONCE):
                yield row, np.arange(begin, min(count, begin + _ROWS_AT_ONCE))
        return
    for begin in range(0, total, _ROWS_AT_ONCE):
        positions = np.arange(begin, min(total, begin + _ROWS_AT_ONCE))
        rows = np.searchsorted(ends, positions, side="right")
        yield rows, positions - (ends - turns)[rows]


def _at_range(bounds: Range, rows: Rows | Pages) -> Range:
    low, high = bounds
    chosen = _at_rows(low, rows)
    return chosen, chosen if low is high else _at_rows(high, rows)


def _at_row(bounds: Range, row: int) -> Range:
    low, high = (int(values[row]) if isinstance(values, np.ndarray) and values.ndim else values for values in bounds)
    return low, low if bounds[0] is bounds[1] else high


def _at_rows(values: Rows | int, rows: Rows | Pages) -> Rows | int:
    return values[rows] if isinstance(values, np.ndarray) and values.ndim else values


def _is_tested(loop: Loop) -> bool:
    """Whether a condition in the loop tests its variable together with that of a loop inside: separate ranges of the
    two cannot express such a condition."""
    bound: dict[Variable, Expression] = {}
    inner: set[Variable] = set()
    tests: list[Expression] = []

    def visit(body: Body) -> None:
        for statement in body:
            match statement:
                case Bind():
                    bound[statement.variable] = statement.value
                case Loop():
                    inner.add(statement.variable)
                    visit(statement.body)
                case Branch():
                    tests.append(placed(statement.condition, bound))
                    visit(statement.then)
                    visit(statement.otherwise)
                case Call() | Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)

    visit(loop.body)
    return any(loop.variable in (used := variables(test)) and used & inner for test in tests)


def _tensors(body: Body) -> set[str]:
    return {tensor for call in calls(body) for tensor, _, _ in _moved(call)}


# What the kernel stores


def stored_pages(kernel: Kernel, plan: Plan, single: frozenset[str] = frozenset()) -> dict[str, Pages]:
    """The pages of each tensor that a kernel, before its grid is replaced, stores to with T.copy; for the tensors
    `single`, the elements of their pages, in the order of memory.

    A tensor with a store to an unknown place is left out.
    """
    pages_of: dict[str, Pages] = {}
    unknown: set[str] = set()
    _Stores(plan, pages_of, unknown, single).body(kernel.body)
    return {tensor: pages for tensor, pages in pages_of.items() if tensor not in unknown}


def _existing(tensor: str, plan: Plan) -> Pages:
    """Which elements of the pages are elements of the tensor, and not padding."""
    pages_of: dict[str, Pages] = {}
    unknown: set[str] = set()
    full_region = tuple((0, length) for length in plan.layout(tensor).shape)
    _Stores(plan, pages_of, unknown, frozenset({tensor})).store(tensor, full_region)
    return np.ones(1, bool) if tensor in unknown else pages_of[tensor]


class _Stores:
    def __init__(self, plan: Plan, pages_of: dict[str, Pages], unknown: set[str], single: frozenset[str]) -> None:
        self.plan, self.found, self.unknown, self.single = plan, pages_of, unknown, single
        self.known: dict[Key, Range] = {}
        # How many loops are around, and how many of their iterations are evaluated side by side.
        self.axes, self.around = 0, 1
        # The values of the conditions around.
        self.tests: list[Rows] = []

    def body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Store():
                    if statement.region is None:
                        self.unknown.add(statement.tensor)
                    else:
                        self.store(statement.tensor, statement.region)
                case Bind():
                    value = value_range(statement.value, self.known)
                    if value is not None:
                        self.known[statement.variable] = value
                case Loop():
                    self.loop(statement)
                case Branch():
                    self.branch(statement)
                case Call() | Allocation():
                    pass
                case _:
                    assert_never(statement)

    def loop(self, loop: Loop) -> None:
        if loop.turns is None or not isinstance(loop.low, int):
            self.unknown |= {statement.tensor for statement in walk([loop]) if isinstance(statement, Store)}
            return
        if loop.turns < 1:
            for statement in walk([loop]):
                if isinstance(statement, Store):
                    self.none_of(statement.tensor)
            return
        # Each loop has its own axis, so that the values of any two combine by broadcasting. Long ones come in parts.
        at_once = max(1, _ROWS_AT_ONCE // self.around)
        for begin in range(loop.low, loop.low + loop.turns, at_once):
            look_around()
            values = np.arange(begin, min(begin + at_once, loop.low + loop.turns)).reshape(-1, *[1] * self.axes)
            self.known[loop.variable] = (values, values)
            self.axes, self.around = self.axes + 1, self.around * values.size
            self.body(loop.body)
            self.axes, self.around = self.axes - 1, self.around // values.size
            del self.known[loop.variable]

    def branch(self, branch: Branch) -> None:
        bounds = value_range(branch.condition, self.known)
        if bounds is None or bounds[0] is not bounds[1]:
            self.unknown |= {statement.tensor for statement in walk([branch]) if isinstance(statement, Store)}
            return
        for arm, runs in ((branch.then, np.asarray(bounds[0]) != 0), (branch.otherwise, np.asarray(bounds[0]) == 0)):
            self.tests.append(runs)
            self.body(arm)
            self.tests.pop()

    def store(self, tensor: str, region: tuple[tuple[Expression, Expression], ...]) -> None:
        layout, accessor = self.plan.layout(tensor), self.plan.accessor(tensor)
        rank = len(layout.shape)
        page = (TILE_ROWS, TILE_COLUMNS) if layout.page == "tile" else (1, layout.shape[-1])
        tiles = (*[1] * (rank - 2), *page)[-rank:]
        single = tensor in self.single
        per_page = accessor.page_bytes // layout.element_bytes if single else 1
        # Where each element along an axis lies in its page.
        within = (_IN_TILE if layout.page == "tile" else (np.zeros(1, np.int64), np.arange(layout.shape[-1])))[-rank:]
        pages: Rows = np.zeros([1] * rank, np.int64)
        for axis, ((low, extent), length) in enumerate(zip(region, layout.shape, strict=True)):
            start = value_range(low, self.known)
            if start is None or start[0] is not start[1] or not isinstance(extent, int):
                self.unknown.add(tensor)
                return
            tile, stride = tiles[axis], accessor.page_strides[axis - rank]
            begin = np.asarray(start[0])[(..., *[None] * rank)]
            along = [-1 if a == axis else 1 for a in range(rank)]
            if single:
                positions = begin + np.arange(extent).reshape(along)
                inside = positions % tile
                if axis >= rank - len(within):
                    inside = within[axis - rank][inside]
                exists = (positions >= 0) & (positions < length)
                pages = pages + np.where(exists, positions // tile * stride * per_page + inside, _NOWHERE)
            else:
                # The tiles from the first to the last that the region overlaps within the tensor.
                first = np.maximum(begin, 0) // tile
                last = (np.minimum(begin + extent, length) - 1) // tile
                most = int(np.max(last - first, initial=-1)) + 1
                positions = first + np.arange(most).reshape(along)
                pages = pages + np.where(positions <= last, positions * stride, _NOWHERE)
            if pages.size > _MOST_PAGES:
                self.unknown.add(tensor)
                return
        for test in self.tests:
            pages = np.where(test[(..., *[None] * rank)], pages, _NOWHERE)
        self.none_of(tensor)[pages[pages >= 0]] = True

    def none_of(self, tensor: str) -> Pages:
        """The pages of a tensor that are stored to as far as known: at first none."""
        if tensor not in self.found:
            layout, accessor = self.plan.layout(tensor), self.plan.accessor(tensor)
            per_page = accessor.page_bytes // layout.element_bytes if tensor in self.single else 1
            self.found[tensor] = np.zeros(accessor.pages * per_page, bool)
        return self.found[tensor]


def _in_tile() -> tuple[Rows, Rows]:
    """Where the elements of the first column, and those of the first row, lie in the memory of a tile of four faces."""
    at = np.arange(TILE_ROWS)
    face = FACE * FACE
    return at // FACE * (2 * face) + at % FACE * FACE, at // FACE * face + at % FACE


_IN_TILE = _in_tile()
# Added to a page number, it stays below zero.
_NOWHERE = -(1 << 40)
