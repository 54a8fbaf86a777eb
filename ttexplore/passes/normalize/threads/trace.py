"""Run groups of threads turn by turn, without their data: what happens before what, and whether accesses race.

Each group has a clock: how far it knows all groups and barriers to be. A wait learns what the arrivals of its phase
knew. Two accesses to one place, one of which writes, must be ordered by what the later one knows; else nothing orders
them on a GPU, whatever a run happens to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.build import arguments, op_name
from ttexplore.ir.operations.by_thread import is_asynchronous
from ttexplore.ir.operations.groups import AT_BARRIERS, COUNTS, ThreadGroups
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.threads.races import Races
from ttexplore.passes.normalize.threads.state import GroupAccess, GroupBarrier, GroupWait, Running
from ttexplore.passes.normalize.threads.steps import Step, runs
from ttexplore.passes.normalize.threads.tree import Tree, Values
from ttexplore.record import Span

# More steps than this take too long to follow.
_MOST_STEPS = 400_000


@dataclass(eq=False)
class GroupTrace:
    """A run of a tree's groups, from the values of block indices that decide what they do."""

    tree: Tree
    values: Values

    def __post_init__(self) -> None:
        self.grouping: ThreadGroups = self.tree.grouping
        groups = len(self.grouping.groups)
        self.barriers: dict[tuple[int, int], GroupBarrier] = {}
        for statement in self.tree.allocations:
            counts = dict(statement.annotations).get(COUNTS) or ()
            for number, count in enumerate(counts):
                name = str(statement.buffer.name) + (f"[{number}]" if len(counts) > 1 else "")
                key = identity(statement.buffer), number
                self.barriers[key] = GroupBarrier(name, groups + len(self.barriers), int(count))
        self.width = groups + len(self.barriers)
        self.races = Races(self.tree)
        self.missed: KernelError | None = None
        self.steps = 0
        # What each group does, in its order.
        self.done: list[list[Step]] = []

    def run(self) -> None:
        """Raises KernelError for accesses that race, and for waits that never end or can miss their phase."""
        running = [
            Running(number, iter(()), [*self.values], [0] * self.width) for number in range(len(self.grouping.groups))
        ]
        for runner in running:
            runner.steps = runs(self.tree.items, self.tree, runner.values, runner.number)
            runner.advance()
        self.done = [runner.done for runner in running]
        while True:
            went = False
            for runner in running:
                while runner.at is not None and self._step(runner, running):
                    went = True
                    self.steps += 1
            if not went:
                break
            if self.steps > _MOST_STEPS:
                raise Unsupported(
                    "L017",
                    f"groups of threads with more than {_MOST_STEPS} steps",
                    hint="explore smaller sizes, or write the loop once, for all threads, with T.Pipelined and T.copy",
                )
        if self.missed is not None:
            raise self.missed
        if any(runner.at is not None for runner in running):
            raise self._stuck([runner for runner in running if runner.at is not None])
        for barrier in self.barriers.values():
            if barrier.copies:
                access = barrier.copies[0]
                raise KernelError(
                    "K016",
                    f"no thread arrives at {barrier.name} after this copy, so nothing says when it is over",
                    hint=f"write T.barrier_arrive({barrier.name}) after the copy",
                    span=span_of(access.leaf.statement),
                )

    # Steps

    def _step(self, runner: Running, running: Sequence[Running]) -> bool:
        """Make a group's next step, if it can."""
        leaf = runner.leaf
        name = op_name(leaf.statement)
        if name in AT_BARRIERS:
            return self._at_barrier(runner, name, running)
        if len(leaf.groups) > 1:
            if not leaf.accesses:
                runner.advance()
                return True
            if name == tl.COPY.name and is_asynchronous(leaf.statement):
                # One thread begins it.
                if runner.number == min(leaf.groups):
                    self._access(runner, name)
                runner.advance()
                return True
            return self._together(runner, [member for member in running if member.number in leaf.groups], name)
        self._access(runner, name)
        runner.advance()
        return True

    def _together(self, runner: Running, members: Sequence[Running], name: str) -> bool:
        """A step that several groups make together. A GPU's compiler keeps its order with what each of them does to the
        same blocks; of other blocks it says nothing, so the groups learn nothing of each other."""
        if any(member.at is None or member.at != runner.at for member in members):
            return False
        for member in members:
            member.clock[member.number] += member is not members[0]
        self._access(members[0], name, members)
        for member in members:
            member.advance()
        return True

    def _meet(self, members: Sequence[Running]) -> None:
        for member in members:
            member.clock[member.number] += 1
        joined = [max(clocks) for clocks in zip(*(member.clock for member in members), strict=True)]
        for member in members:
            member.clock = [*joined]

    def _barrier(self, runner: Running, load: ir.Expr) -> GroupBarrier:
        assert isinstance(load, ir.TensorLoad)
        number = self.tree.numbers.decided(load.indices[0], "the barrier", runner.leaf.statement)(runner.values)
        barrier = self.barriers.get((identity(load.source), number))
        if barrier is None:
            raise KernelError(
                "K003",
                f"{load.source.name} has no barrier {number}",
                hint="check the index",
                span=span_of(runner.leaf.statement),
            )
        return barrier

    def _at_barrier(self, runner: Running, name: str, running: Sequence[Running]) -> bool:
        statement = runner.leaf.statement
        operands = arguments(statement)
        match name:
            case tl.BARRIER_WAIT.name:
                parity = self.tree.numbers.decided(operands[1], "the parity", statement)(runner.values)
                if not self._wait(runner, self._barrier(runner, operands[0]), parity):
                    return False
            case tl.BARRIER_ARRIVE.name:
                runner.clock[runner.number] += 1
                threads = len(self.grouping.groups[runner.number].threads)
                self._arrive(runner, self._barrier(runner, operands[0]), threads)
            case tl.GEMM_ARRIVE.name:
                runner.clock[runner.number] += 1
                self._arrive(runner, self._barrier(runner, operands[0]), 1, products=True)
            case tl.GEMM_WAIT.name:
                runner.clock[runner.number] += 1
                pending = self.tree.numbers.decided(operands[0], "the number", statement)(runner.values)
                for accesses in runner.products[: len(runner.products) - pending]:
                    for access in accesses:
                        access.ends.append((runner.number, runner.clock[runner.number]))
                runner.products = runner.products[max(len(runner.products) - pending, 0) :]
            case tl.SYNC_THREADS.name:
                return self._sync(runner, running)
            case _:
                raise AssertionError(name)
        runner.advance()
        return True

    def _sync(self, runner: Running, running: Sequence[Running]) -> bool:
        numbers = [self.tree.numbers.decided(operand, "the number", runner.leaf.statement)([]) for operand in arguments(
            runner.leaf.statement)]  # fmt: skip
        total = numbers[1] if len(numbers) == 2 else self.grouping.threads
        members = [
            candidate for candidate in running
            if candidate.at is not None and op_name(candidate.leaf.statement) == tl.SYNC_THREADS.name
            and [self.tree.numbers.decided(operand, "the number", candidate.leaf.statement)([])
                 for operand in arguments(candidate.leaf.statement)] == numbers
        ]  # fmt: skip
        threads = sum(len(self.grouping.groups[member.number].threads) for member in members)
        if threads < total:
            return False
        if threads > total:
            raise KernelError(
                "K016",
                f"{threads} threads come to a T.sync_threads of {total}",
                hint="give arrive_count= the number of the threads that wait",
                span=span_of(runner.leaf.statement),
            )
        self._meet(members)
        for member in members:
            member.advance()
        return True

    def _wait(self, runner: Running, barrier: GroupBarrier, parity: int) -> bool:
        if parity not in (0, 1):
            raise KernelError(
                "K016",
                f"the parity of this wait for {barrier.name} is {parity}",
                hint="phases have the parities 0 and 1 in turns: write (k // stages) % 2",
                span=span_of(runner.leaf.statement),
            )
        # The least number of phases that may be over when it goes on: one more has the other parity.
        phases = runner.clock[barrier.entry]
        phase = phases if phases % 2 != parity else phases + 1
        if barrier.over < phase:
            return False
        before = [*runner.clock]
        runner.clock[runner.number] += 1
        if phase:
            runner.clock = [*map(max, runner.clock, barrier.clocks[phase - 1])]
        wait = GroupWait(runner.leaf, runner.number, runner.clock[runner.number], phase)
        if barrier.over > phase:
            self._miss(barrier, wait)
        barrier.waits.append(wait)
        barrier.waiting.add(runner.number)
        runner.waits.append((before, barrier))
        return True

    def _miss(self, barrier: GroupBarrier, wait: GroupWait) -> None:
        if self.missed is None:
            who = self.grouping.groups[wait.group]
            self.missed = KernelError(
                "K016",
                f"{who} can miss what they wait for: nothing keeps {barrier.name} from its next phase, which has the "
                "other parity, until they have seen this one",
                hint="let those who arrive wait for a second barrier, at which the waiting threads arrive",
                span=span_of(wait.leaf.statement),
            )

    def _arrive(self, runner: Running, barrier: GroupBarrier, threads: int, *, products: bool = False) -> None:
        statement = runner.leaf.statement
        if barrier.arrived + threads > barrier.count:
            raise KernelError(
                "K016",
                f"{threads} threads arrive at {barrier.name}, where "
                f"{barrier.count - barrier.arrived} of {barrier.count} are missing",
                hint=f"allocate it for {barrier.arrived + threads} threads, or let fewer arrive",
                span=span_of(statement),
            )
        if threads < barrier.count and runner.clock[barrier.entry] < barrier.over:
            raise KernelError(
                "K016",
                f"this may count for an earlier phase of {barrier.name}: nothing says that it is over",
                hint=f"wait for {barrier.name} before arriving again",
                span=span_of(statement),
            )
        if any(group == runner.number for group, _, _ in barrier.arrivals):
            raise KernelError(
                "K016",
                f"the same threads arrive twice in one phase of {barrier.name}, which is for {barrier.count} threads",
                hint=f"allocate it for {threads} threads, or let the others arrive as well",
                span=span_of(statement),
            )
        barrier.arrived += threads
        barrier.arrivals.append((runner.number, runner.leaf, [*runner.clock]))
        if products:
            runner.products = [
                accesses for accesses in runner.products if not all(access.is_past for access in accesses)
            ]
            for accesses in runner.products:
                barrier.products += accesses
        if barrier.arrived < barrier.count:
            return
        number = barrier.over + 1
        arrived = {group for group, _, _ in barrier.arrivals}
        clock = [
            max(counts) for counts in zip(*(arrival_clock for _, _, arrival_clock in barrier.arrivals), strict=True)
        ]
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

    def _access(self, runner: Running, name: str, members: Sequence[Running] = ()) -> None:
        """The accesses of a group's step, or of one that it makes with other `members`."""
        leaf, turns = runner.at or (runner.leaf, ())
        runner.clock[runner.number] += 1
        later = is_asynchronous(leaf.statement) if name else False
        is_product = later and name != tl.COPY.name
        accesses: list[GroupAccess] = []
        for touch in leaf.accesses:
            ends = [] if later else [(runner.number, runner.clock[runner.number])]
            also = [(member.number, member.clock[member.number]) for member in members if member is not runner]
            access = GroupAccess(
                leaf, turns, runner.number, touch.kind, touch.region(runner.values), ends, also, is_product, later
            )
            accesses.append(access)
            self.races.check(members or (runner,), touch.buffer, access)
        if not later:
            return
        operands = arguments(leaf.statement)
        if name == tl.COPY.name:
            barrier = self._barrier(runner, operands[2])
            for access in accesses:
                access.barrier = barrier
            barrier.copies += accesses
        elif name == tl.FILL.name or (
            runner.products and op_name(runner.products[-1][0].leaf.statement) == tl.FILL.name
        ):
            # The clearing of an accumulator is part of the product after it.
            runner.products.append(accesses) if name == tl.FILL.name else runner.products[-1].extend(accesses)
        else:
            runner.products.append(accesses)
        if name == tl.GEMM.name and len(operands) == 4:
            self._arrive(runner, self._barrier(runner, operands[3]), 1, products=True)

    def _stuck(self, waiting: Sequence[Running]) -> KernelError:
        told: list[str] = []
        explanation: tuple[str, Span | None] | None = None
        for runner in waiting:
            statement = runner.leaf.statement
            span = span_of(statement)
            awaited = "for the other threads"
            if op_name(statement) == tl.BARRIER_WAIT.name:
                barrier = self._barrier(runner, arguments(statement)[0])
                parity = self.tree.numbers.decided(arguments(statement)[1], "the parity", statement)(runner.values)
                awaited = f"for the phase of parity {parity} of {barrier.name}, "
                if not self._arrives(barrier):
                    awaited += "at which nobody arrives"
                    hint = f"let {barrier.count} threads arrive there: T.barrier_arrive({barrier.name})"
                    explanation = (hint, span)
                else:
                    awaited += f"where {barrier.arrived} of {barrier.count} threads have arrived and {barrier.over} "
                    awaited += f"phase{'s are' if barrier.over != 1 else ' is'} over"
                    hint = (
                        "check the parities: the first wait for what others fill has parity 0, the first wait for an "
                        "empty block parity 1"
                    )
                    if barrier.arrived:
                        missing = barrier.count - barrier.arrived
                        hint = f"allocate it for {barrier.arrived} threads, or let {missing} more arrive"
                    if explanation is None:
                        explanation = (hint, span)
            told.append(f"  {self.grouping.groups[runner.number]} wait at line {span.line if span else '?'} {awaited}")
        hint, span = explanation or ("let all threads come there", span_of(waiting[0].leaf.statement))
        return KernelError("K016", "threads wait for ever:\n" + "\n".join(told), hint=hint, span=span)

    def _arrives(self, barrier: GroupBarrier) -> bool:
        """Whether any statement arrives at a barrier, of those that have one index."""
        key = next(key for key, candidate in self.barriers.items() if candidate is barrier)
        for leaf in self.tree.leaves:
            name, operands = op_name(leaf.statement), arguments(leaf.statement) if op_name(leaf.statement) else []
            if name not in (tl.BARRIER_ARRIVE.name, tl.GEMM_ARRIVE.name) and not (
                name == tl.GEMM.name and len(operands) == 4
            ):
                continue
            load = operands[-1]
            assert isinstance(load, ir.TensorLoad)
            index = None if leaf.loops else self.tree.numbers.value(load.indices[0])
            if identity(load.source) == key[0] and (index is None or index(self.values) == key[1]):
                return True
        return False
