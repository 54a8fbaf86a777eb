"""Run groups of threads turn by turn, without their data: what happens before what, and whether accesses race.

Each group has a clock: how far it knows all groups and barriers to be. A wait learns what the arrivals of its phase
knew. Two accesses to one place, one of which writes, must be ordered by what the later one knows; else nothing orders
them on a GPU, whatever a run happens to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.build import arguments, op_name, scope_of
from ttexplore.ir.dataflow import AccessKind, is_on_chip
from ttexplore.ir.groups import (
    ARRIVE,
    AT_BARRIERS,
    COUNTS,
    GEMM_ARRIVE,
    GEMM_WAIT,
    SYNC,
    TENSOR_MEMORY,
    WAIT,
    ThreadGroups,
    is_asynchronous,
)
from ttexplore.passes.groups.tree import Axis, Branch, Item, Leaf, Loop, Tree, Values
from ttexplore.record import Span

# The turns of the loops around a statement, outermost first.
Turns = tuple[int, ...]
# A statement, by number, in some turns.
Step = tuple[int, Turns]
# More steps than this take too long to follow.
_MOST_STEPS = 400_000
_WAY_OUT = "write the loop once, for all threads, with T.Pipelined and T.copy: the reader then runs ahead by itself"


def runs(items: Sequence[Item], tree: Tree, values: Values, group: int | None = None) -> Iterator[tuple[Leaf, Turns]]:
    """The steps that a group, or the whole tree, makes, each with the turns of the loops around it."""
    yield from _runs(items, tree, values, group, ())


def _runs(
    items: Sequence[Item], tree: Tree, values: Values, group: int | None, turns: Turns
) -> Iterator[tuple[Leaf, Turns]]:  # fmt: skip
    numbers = tree.numbers
    for item in items:
        if group is not None and group not in item.groups:
            continue
        if any(
            bool(numbers.decided(condition, "the condition", tree.leaves[0].statement)(values)) != holds
            for condition, holds in item.guards
        ):
            continue
        match item:
            case Leaf():
                yield item, turns
            case Loop():
                first = item.loops[0]
                low, extent = (
                    numbers.decided(bound, "the length", first)(values) for bound in (first.min, first.extent)
                )
                slots = [numbers.slot(loop.loop_var) for loop in item.loops]
                for turn in range(low, low + extent):
                    for slot in slots:
                        values[slot] = turn
                    yield from _runs(item.body, tree, values, group, (*turns, turn))
            case Branch():
                holds = numbers.decided(item.statement.condition, "the condition", item.statement)(values)
                side = item.then if holds else item.otherwise or []
                yield from _runs(side, tree, values, group, turns)
            case _:
                raise AssertionError(item)


@dataclass(eq=False)
class Access:
    """One access, by a group at a step. It is over for those who know one of its `ends`: so far of a group or a
    barrier; and all of `also`, of the other groups that make it together."""

    leaf: Leaf
    turns: Turns
    group: int
    kind: AccessKind
    region: tuple[Axis, ...]
    ends: list[tuple[int, int]]
    also: list[tuple[int, int]]
    is_product: bool
    # Whether it may be over later than the step that begins it.
    is_later: bool
    barrier: _Barrier | None = None
    # Whether a later access stands for this one in all comparisons.
    is_past: bool = False

    def is_known(self, clock: Sequence[int]) -> bool:
        """Whether a group with this clock knows that it is over."""
        return any(clock[entry] >= value for entry, value in self.ends) and all(
            clock[entry] >= value for entry, value in self.also
        )


@dataclass(eq=False)
class _Wait:
    leaf: Leaf
    group: int
    step: int
    phase: int


@dataclass(eq=False)
class _Barrier:
    """One barrier. `clocks` are those of its phases that are over; `entry` is its place in clocks."""

    name: str
    entry: int
    count: int
    clocks: list[list[int]] = field(default_factory=list[list[int]])
    arrived: int = 0
    arrivals: list[tuple[int, Leaf, list[int]]] = field(default_factory=list[tuple[int, Leaf, list[int]]])
    copies: list[Access] = field(default_factory=list[Access])
    products: list[Access] = field(default_factory=list[Access])
    waits: list[_Wait] = field(default_factory=list[_Wait])
    # The groups that have waited at any time, and the buffers that waits told to be full, or to be empty.
    waiting: set[int] = field(default_factory=set[int])
    full: dict[str, None] = field(default_factory=dict[str, None])
    empty: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def over(self) -> int:
        return len(self.clocks)


@dataclass(eq=False)
class _Running:
    """A group on its way."""

    number: int
    steps: Iterator[tuple[Leaf, Turns]]
    values: Values
    clock: list[int]
    at: tuple[Leaf, Turns] | None = None
    products: list[list[Access]] = field(default_factory=list[list[Access]])
    done: list[Step] = field(default_factory=list[tuple[int, tuple[int, ...]]])
    # The waits so far: the clock before each, and the barrier.
    waits: list[tuple[list[int], _Barrier]] = field(default_factory=list[tuple[list[int], "_Barrier"]])

    def advance(self) -> None:
        if self.at is not None:
            self.done.append((min(self.at[0].leaves), self.at[1]))
        self.at = next(self.steps, None)

    @property
    def leaf(self) -> Leaf:
        assert self.at is not None
        return self.at[0]


# An earlier and a later access of two groups, each a step in turns.
Edge = tuple[int, Turns, int, Turns]


@dataclass(eq=False)
class Trace:
    """What the run of a tree's groups found: the `edges` between accesses of different groups."""

    tree: Tree
    values: Values
    edges: dict[Edge, None] = field(default_factory=dict[Edge, None])

    def __post_init__(self) -> None:
        self.found: ThreadGroups = self.tree.found
        groups = len(self.found.groups)
        self.barriers: dict[tuple[int, int], _Barrier] = {}
        for statement in self.tree.allocations:
            counts = dict(statement.annotations).get(COUNTS) or ()
            for number, count in enumerate(counts):
                name = str(statement.buffer.name) + (f"[{number}]" if len(counts) > 1 else "")
                key = identity(statement.buffer), number
                self.barriers[key] = _Barrier(name, groups + len(self.barriers), int(count))
        self.width = groups + len(self.barriers)
        self.live: dict[int, list[Access]] = {}
        self.owners: dict[int, Leaf] = {}
        self.shared = {
            identity(one.buffer) for one in self.tree.allocations
            if TENSOR_MEMORY in dict(one.annotations) or scope_of(one.buffer).startswith("shared")
        }  # fmt: skip
        # Nothing races for what is only read.
        self.written = {
            identity(touch.buffer) for leaf in self.tree.leaves for touch in leaf.accesses if touch.kind != "read"
        }
        self.missed: KernelError | None = None
        self.steps = 0
        # What each group does, in its order.
        self.done: list[list[Step]] = []

    def run(self) -> None:
        """Raises KernelError for accesses that race, and for waits that never end or can miss their phase."""
        running = [
            _Running(number, iter(()), [*self.values], [0] * self.width) for number in range(len(self.found.groups))
        ]
        for one in running:
            one.steps = runs(self.tree.items, self.tree, one.values, one.number)
            one.advance()
        self.done = [one.done for one in running]
        while True:
            went = False
            for one in running:
                while one.at is not None and self._step(one, running):
                    went = True
                    self.steps += 1
            if not went:
                break
            if self.steps > _MOST_STEPS:
                raise Unsupported(
                    "L017",
                    f"groups of threads with more than {_MOST_STEPS} steps",
                    hint="explore smaller sizes: " + _WAY_OUT,
                )
        if self.missed is not None:
            raise self.missed
        if any(one.at is not None for one in running):
            raise self._stuck([one for one in running if one.at is not None])
        for barrier in self.barriers.values():
            if barrier.copies:
                one = barrier.copies[0]
                raise KernelError(
                    "K016",
                    f"no thread arrives at {barrier.name} after this copy, so nothing says when it is over",
                    hint=f"write T.barrier_arrive({barrier.name}) after the copy",
                    span=span_of(one.leaf.statement),
                )

    # Steps

    def _step(self, one: _Running, running: Sequence[_Running]) -> bool:
        """Make a group's next step, if it can."""
        leaf = one.leaf
        name = op_name(leaf.statement)
        if name in AT_BARRIERS:
            return self._at_barrier(one, name, running)
        if len(leaf.groups) > 1:
            if not leaf.accesses:
                one.advance()
                return True
            if name == "tl.copy" and is_asynchronous(leaf.statement):
                # One thread begins it.
                if one.number == min(leaf.groups):
                    self._access(one, name)
                one.advance()
                return True
            return self._together(one, [other for other in running if other.number in leaf.groups], name)
        self._access(one, name)
        one.advance()
        return True

    def _together(self, one: _Running, members: Sequence[_Running], name: str) -> bool:
        """A step that several groups make together. A GPU's compiler keeps its order with what each of them does to the
        same blocks; of other blocks it says nothing, so the groups learn nothing of each other."""
        if any(other.at is None or other.at != one.at for other in members):
            return False
        for other in members:
            other.clock[other.number] += other is not members[0]
        self._access(members[0], name, members)
        for other in members:
            other.advance()
        return True

    def _meet(self, members: Sequence[_Running]) -> None:
        for member in members:
            member.clock[member.number] += 1
        joined = [max(parts) for parts in zip(*(member.clock for member in members), strict=True)]
        for member in members:
            member.clock = [*joined]

    def _barrier(self, one: _Running, load: ir.Expr) -> _Barrier:
        assert isinstance(load, ir.TensorLoad)
        number = self.tree.numbers.decided(load.indices[0], "the barrier", one.leaf.statement)(one.values)
        found = self.barriers.get((identity(load.source), number))
        if found is None:
            raise KernelError(
                "K003",
                f"{load.source.name} has no barrier {number}",
                hint="check the index",
                span=span_of(one.leaf.statement),
            )
        return found

    def _at_barrier(self, one: _Running, name: str, running: Sequence[_Running]) -> bool:
        statement = one.leaf.statement
        given = arguments(statement)
        match name:
            case "tl.barrier_wait":
                parity = self.tree.numbers.decided(given[1], "the parity", statement)(one.values)
                if not self._wait(one, self._barrier(one, given[0]), parity):
                    return False
            case "tl.barrier_arrive":
                one.clock[one.number] += 1
                threads = len(self.found.groups[one.number].threads)
                self._arrive(one, self._barrier(one, given[0]), threads)
            case "tl.gemm_arrive":
                one.clock[one.number] += 1
                self._arrive(one, self._barrier(one, given[0]), 1, products=True)
            case "tl.gemm_wait":
                one.clock[one.number] += 1
                pending = self.tree.numbers.decided(given[0], "the number", statement)(one.values)
                for accesses in one.products[: len(one.products) - pending]:
                    for access in accesses:
                        access.ends.append((one.number, one.clock[one.number]))
                one.products = one.products[max(len(one.products) - pending, 0) :]
            case "tl.sync_threads":
                return self._sync(one, running)
            case _:
                raise AssertionError(name)
        one.advance()
        return True

    def _sync(self, one: _Running, running: Sequence[_Running]) -> bool:
        given = [self.tree.numbers.decided(part, "the number", one.leaf.statement)([]) for part in arguments(
            one.leaf.statement)]  # fmt: skip
        total = given[1] if len(given) == 2 else self.found.threads
        members = [
            other for other in running
            if other.at is not None and op_name(other.leaf.statement) == SYNC
            and [self.tree.numbers.decided(part, "the number", other.leaf.statement)([])
                 for part in arguments(other.leaf.statement)] == given
        ]  # fmt: skip
        threads = sum(len(self.found.groups[other.number].threads) for other in members)
        if threads < total:
            return False
        if threads > total:
            raise KernelError(
                "K016",
                f"{threads} threads come to a T.sync_threads of {total}",
                hint="give arrive_count= the number of the threads that wait",
                span=span_of(one.leaf.statement),
            )
        self._meet(members)
        for other in members:
            other.advance()
        return True

    def _wait(self, one: _Running, barrier: _Barrier, parity: int) -> bool:
        if parity not in (0, 1):
            raise KernelError(
                "K016",
                f"the parity of this wait for {barrier.name} is {parity}",
                hint="phases have the parities 0 and 1 in turns: write (k // stages) % 2",
                span=span_of(one.leaf.statement),
            )
        # The least number of phases that may be over when it goes on: one more has the other parity.
        known = one.clock[barrier.entry]
        phase = known if known % 2 != parity else known + 1
        if barrier.over < phase:
            return False
        before = [*one.clock]
        one.clock[one.number] += 1
        if phase:
            one.clock = [*map(max, one.clock, barrier.clocks[phase - 1])]
        wait = _Wait(one.leaf, one.number, one.clock[one.number], phase)
        if barrier.over > phase:
            self._miss(barrier, wait)
        barrier.waits.append(wait)
        barrier.waiting.add(one.number)
        one.waits.append((before, barrier))
        return True

    def _miss(self, barrier: _Barrier, wait: _Wait) -> None:
        if self.missed is None:
            who = self.found.groups[wait.group]
            self.missed = KernelError(
                "K016",
                f"{who} can miss what they wait for: nothing keeps {barrier.name} from its next phase, which has the "
                "other parity, until they have seen this one",
                hint="let those who arrive wait for a second barrier, at which the waiting threads arrive",
                span=span_of(wait.leaf.statement),
            )

    def _arrive(self, one: _Running, barrier: _Barrier, threads: int, *, products: bool = False) -> None:
        statement = one.leaf.statement
        if barrier.arrived + threads > barrier.count:
            raise KernelError(
                "K016",
                f"{threads} threads arrive at {barrier.name}, where "
                f"{barrier.count - barrier.arrived} of {barrier.count} are missing",
                hint=f"allocate it for {barrier.arrived + threads} threads, or let fewer arrive",
                span=span_of(statement),
            )
        if threads < barrier.count and one.clock[barrier.entry] < barrier.over:
            raise KernelError(
                "K016",
                f"this may count for an earlier phase of {barrier.name}: nothing says that it is over",
                hint=f"wait for {barrier.name} before arriving again",
                span=span_of(statement),
            )
        if any(group == one.number for group, _, _ in barrier.arrivals):
            raise KernelError(
                "K016",
                f"the same threads arrive twice in one phase of {barrier.name}, which is for {barrier.count} threads",
                hint=f"allocate it for {threads} threads, or let the others arrive as well",
                span=span_of(statement),
            )
        barrier.arrived += threads
        barrier.arrivals.append((one.number, one.leaf, [*one.clock]))
        if products:
            one.products = [accesses for accesses in one.products if not all(access.is_past for access in accesses)]
            for accesses in one.products:
                barrier.products += accesses
        if barrier.arrived < barrier.count:
            return
        number = barrier.over + 1
        arrived = {group for group, _, _ in barrier.arrivals}
        clock = [max(parts) for parts in zip(*(known for _, _, known in barrier.arrivals), strict=True)]
        clock[barrier.entry] = number
        for copy in barrier.copies:
            if copy.group not in arrived:
                raise KernelError(
                    "K016",
                    f"{barrier.name} may be over before this copy begins: its threads do not arrive there",
                    hint=f"write T.barrier_arrive({barrier.name}) after the copy",
                    span=span_of(copy.leaf.statement),
                )
        for access in (*barrier.copies, *barrier.products):
            access.ends.append((barrier.entry, number))
        for wait in barrier.waits:
            if wait.phase == barrier.over and clock[wait.group] < wait.step:
                self._miss(barrier, wait)
        barrier.clocks.append(clock)
        barrier.arrived = 0
        barrier.arrivals, barrier.copies, barrier.products, barrier.waits = [], [], [], []

    # Accesses

    def _access(self, one: _Running, name: str, members: Sequence[_Running] = ()) -> None:
        """The accesses of a group's step, or of one that it makes with other `members`."""
        leaf, turns = one.at or (one.leaf, ())
        one.clock[one.number] += 1
        later = is_asynchronous(leaf.statement) if name else False
        is_product = later and name != "tl.copy"
        made: list[Access] = []
        for touch in leaf.accesses:
            ends = [] if later else [(one.number, one.clock[one.number])]
            also = [(other.number, other.clock[other.number]) for other in members if other is not one]
            access = Access(
                leaf, turns, one.number, touch.kind, touch.region(one.values), ends, also, is_product, later
            )
            made.append(access)
            self._check(members or (one,), touch.buffer, access)
        if not later:
            return
        given = arguments(leaf.statement)
        if name == "tl.copy":
            barrier = self._barrier(one, given[2])
            for access in made:
                access.barrier = barrier
            barrier.copies += made
        elif name == "tl.fill" or (one.products and op_name(one.products[-1][0].leaf.statement) == "tl.fill"):
            # The clearing of an accumulator is part of the product after it.
            one.products.append(made) if name == "tl.fill" else one.products[-1].extend(made)
        else:
            one.products.append(made)
        if name == "tl.gemm" and len(given) == 4:
            self._arrive(one, self._barrier(one, given[3]), 1, products=True)

    def _check(self, members: Sequence[_Running], buffer: tirx.Buffer, access: Access) -> None:
        self._check_owner(buffer, access.leaf)
        key = identity(buffer)
        if key not in self.written:
            return
        live = self.live.setdefault(key, [])
        kept: list[Access] = []
        for other in live:
            is_together = len(other.leaf.groups) > 1 or len(access.leaf.groups) > 1
            if (other.kind == access.kind == "read") or not _overlap(other.region, access.region):
                covered = other.kind == access.kind == "read" and other.leaf.groups <= access.leaf.groups
                other.is_past = covered and _covers(access.region, other.region)
                if not other.is_past:
                    kept.append(other)
                continue
            in_order = other.is_product and access.is_product and other.group == access.group
            # The compiler waits around what all make together, though not for copies and products under way.
            in_order |= is_together and bool(other.leaf.groups & access.leaf.groups) and not other.is_later
            if not in_order and not all(other.is_known(one.clock) for one in members):
                raise self._race(buffer, other, access)
            if other.leaf.groups != access.leaf.groups or other.group != access.group:
                edge = (min(other.leaf.leaves), other.turns, min(access.leaf.leaves), access.turns)
                self.edges[edge] = None
                _note(members[0], buffer, other)
            other.is_past = access.kind != "read" and _covers(access.region, other.region)
            if not other.is_past:
                kept.append(other)
        kept.append(access)
        self.live[key] = kept

    def _check_owner(self, buffer: tirx.Buffer, leaf: Leaf) -> None:
        """Raises KernelError for what lies in the registers of other threads."""
        key = identity(buffer)
        if not is_on_chip(buffer) or key in self.shared:
            return
        owner = self.owners.setdefault(key, leaf)
        if owner.groups != leaf.groups:
            line = span_of(owner.statement)
            raise KernelError(
                "K015",
                f"{buffer.name} lies in the registers of {self._names(owner.groups)}, which use it at line "
                f"{line.line if line else '?'}; here {self._names(leaf.groups)} do",
                hint="hand it over in a block that all threads see: T.alloc_shared",
                span=span_of(leaf.statement),
            )

    def _names(self, groups: frozenset[int]) -> str:
        return " and ".join(str(self.found.groups[one]) for one in sorted(groups))

    def _race(self, buffer: tirx.Buffer, other: Access, access: Access) -> KernelError:
        """Of two accesses that nothing orders."""
        told = "".join(f"\n  {self._told(one)}" for one in (other, access))
        if other.barrier is not None and access.group not in other.barrier.waiting:
            hint = f"wait for that copy first: T.barrier_wait({other.barrier.name}, parity)"
        elif other.barrier is not None:
            hint = f"wait for the phase of {other.barrier.name} in which that copy ends: check the parity"
        elif other.is_product and other.group == access.group:
            hint = "wait for that product first: T.wait_wgmma(0)"
        else:
            hint = (
                "let the threads of that line arrive at a barrier after it, and wait for it here with its parity: "
                "T.barrier_arrive(done), T.barrier_wait(done, k % 2)"
            )
        return KernelError(
            "K015",
            f"a race for {buffer.name}: nothing orders two accesses{told}",
            hint=hint,
            span=span_of(access.leaf.statement),
        )

    def _told(self, access: Access) -> str:
        """An access: line, turns of the loops around it, group and kind."""
        line = span_of(access.leaf.statement)
        verb = {"read": "read", "write": "write", "update": "change"}[access.kind]
        turns = [f"{loop.loop_var.name} = {turn}" for loop, turn in zip(access.leaf.loops, access.turns, strict=True)]
        where = "".join(f", {turn}" for turn in turns)
        return f"line {line.line if line else '?'}{where}: {self.found.groups[access.group]} {verb} it"

    def _stuck(self, waiting: Sequence[_Running]) -> KernelError:
        told: list[str] = []
        found: tuple[str, Span | None] | None = None
        for one in waiting:
            statement = one.leaf.statement
            span = span_of(statement)
            what = "for the other threads"
            if op_name(statement) == WAIT:
                barrier = self._barrier(one, arguments(statement)[0])
                parity = self.tree.numbers.decided(arguments(statement)[1], "the parity", statement)(one.values)
                what = f"for the phase of parity {parity} of {barrier.name}, "
                if not self._arrives(barrier):
                    what += "at which nobody arrives"
                    hint = f"let {barrier.count} threads arrive there: T.barrier_arrive({barrier.name})"
                    found = (hint, span)
                else:
                    what += f"where {barrier.arrived} of {barrier.count} threads have arrived and {barrier.over} "
                    what += f"phase{'s are' if barrier.over != 1 else ' is'} over"
                    hint = (
                        "check the parities: the first wait for what others fill has parity 0, the first wait for an "
                        "empty block parity 1"
                    )
                    if barrier.arrived:
                        missing = barrier.count - barrier.arrived
                        hint = f"allocate it for {barrier.arrived} threads, or let {missing} more arrive"
                    if found is None:
                        found = (hint, span)
            told.append(f"  {self.found.groups[one.number]} wait at line {span.line if span else '?'} {what}")
        hint, span = found or ("let all threads come there", span_of(waiting[0].leaf.statement))
        return KernelError("K016", "threads wait for ever:\n" + "\n".join(told), hint=hint, span=span)

    def _arrives(self, barrier: _Barrier) -> bool:
        """Whether any statement arrives at a barrier, of those that have one index."""
        names = {barrier.name, barrier.name.partition("[")[0]}
        for leaf in self.tree.leaves:
            name, given = op_name(leaf.statement), arguments(leaf.statement) if op_name(leaf.statement) else []
            if name in (ARRIVE, GEMM_ARRIVE) or (name == "tl.gemm" and len(given) == 4):
                load = given[-1]
                if isinstance(load, ir.TensorLoad) and str(load.source.name) in names:
                    index = self.tree.numbers.value(load.indices[0])
                    if not leaf.loops and index is not None and "[" in barrier.name:
                        if index(self.values) == int(barrier.name.partition("[")[2][:-1]):
                            return True
                        continue
                    return True
        return False


def _note(one: _Running, buffer: tirx.Buffer, other: Access) -> None:
    """Note what the barrier says at whose wait a group learned of another group's access."""
    teller: _Barrier | None = None
    for before, barrier in reversed(one.waits):
        teller = barrier
        if not other.is_known(before):
            break
    if teller is not None:
        known = teller.empty if other.kind == "read" else teller.full
        known[str(buffer.name)] = None


def _overlap(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    for a, b in zip(one, other, strict=True):
        if a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1]):
            return False
    return True


def _covers(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    """Whether a region has all of another one."""
    return all(
        a is None or (b is not None and a[0] == b[0] and a[1] <= b[1] and b[2] <= a[2])
        for a, b in zip(one, other, strict=True)
    )


__all__ = ["GEMM_WAIT", "Edge", "Trace", "Turns", "runs"]
