"""The events of each core, read from the three kernels and the plan.

Cores that wait for each other are told apart by whom they wait for: see `classes_of`.

Elements of tensors may decide how often loops run. Then the events are those of a run with certain inputs, of which
the interpreter tells the numbers that operations gave.

Loops stay loops where each turn does the same: where no branch, no length and no count below depends on the loop's
variable. Otherwise each turn is looked at. Cores that give the kernels the same values, of those that decide anything,
do the same, so one of them is looked at.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter as Count
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, assert_never, cast

from ttexplore.clock.engines import Streams, filled, free, starting
from ttexplore.clock.events import (
    Complete,
    CoreClass,
    Counter,
    Direction,
    Event,
    Give,
    Memory,
    MulticastSend,
    ProcessorName,
    Put,
    Repeat,
    Signal,
    Transfer,
    Wait,
    Work,
)
from ttexplore.clock.rates import FLAG_BYTES
from ttexplore.control import look_around
from ttexplore.errors import Unsupported, UsageError
from ttexplore.ir.arithmetic.index import Expression, Variable
from ttexplore.ir.core_walk import CoreWalk, core_values
from ttexplore.ir.interpreter.machine import Numbers
from ttexplore.ir.kernel import Branch, Call, FunctionReader, Kernel, calls, giving, kernel_name
from ttexplore.ir.kernel import Loop as KernelLoop
from ttexplore.noc_links import Moved
from ttexplore.ops.costs import INIT_CYCLES, POOL_CYCLES, matmul_cycles, matmul_unpacked, pack_cycles
from ttexplore.ops.reduce import REDUCE_BLOCK_MAX_ROW
from ttexplore.ops.sfpu_cycles import Arch, sfpu_cycles
from ttexplore.plan import CoreWork, KernelRole, Loader, PartialSums, Plan, SharedInput, chip_buffers
from ttexplore.plan import Multicast as SentTo
from ttexplore.target import Target

Processors = Mapping[ProcessorName, tuple[Event, ...]]
Place = tuple[int, int]


def core_classes(
    functions: Mapping[str, Any], plan: Plan, target: Target,
    run: Callable[[], Mapping[Place, Numbers]] | None = None, *, marked: bool = False,
) -> list[CoreClass]:  # fmt: skip
    """The classes of cores of a program after the last pass. Where what a core does depends on elements of tensors,
    it is what it does in a `run`, which tells the numbers that the operations of each core gave. Raises UsageError
    where there is none, Unsupported for an operation of which no time is known. `marked` events tell the operations
    that they are of."""
    assert plan.partition is not None, "the program has been lowered"
    run = None if run is None else functools.cache(run)
    reader = FunctionReader()
    reader.sizes = {size.core_value: size.value for size in plan.sizes}
    kernels = [reader.read(role, function) for role, function in functions.items()]
    variants: list[list[_Known]] = [[] for _ in kernels]
    names: dict[Place, str] = {}
    processors_of: dict[str, Processors] = {}
    moved: dict[str, Moved] = {}
    depends: set[str] = set()
    for core in plan.partition.cores:
        look_around()
        chosen: list[_Known] = []
        for kernel, those in zip(kernels, variants, strict=True):
            numbers = None if run is None else functools.partial(_numbers, run, (core.x, core.y), kernel.role)
            variant = next(
                (candidate for candidate in those if _values(core, numbers, candidate.asked) == candidate.values), None
            )
            if variant is None:
                walker = _Walker(kernel, plan, target, core, numbers, marked)
                asked = frozenset(walker.run())
                processors = walker.streams.processors
                moves = walker.moves
                same = next(
                    (
                        candidate
                        for candidate in those
                        if (candidate.processors, candidate.moved) == (processors, moves)
                    ),
                    None,
                )
                number, processors = (len(those), processors) if same is None else (same.number, same.processors)
                variant = _Known(asked, _values(core, numbers, asked), number, processors, moves)
                those.append(variant)
            chosen.append(variant)
        name = names[core.x, core.y] = str([variant.number for variant in chosen])
        if any(_NUMBERS in variant.asked for variant in chosen):
            depends.add(name)
        if name not in processors_of:
            processors_of[name] = {
                processor: events for variant in chosen for processor, events in variant.processors.items()
            }
            moved[name] = {move: count for variant in chosen for move, count in variant.moved.items()}
    full_sync = plan.compute is not None and plan.compute.dst_full_sync_en
    room = {free(sharing[0].name): sharing[0].pages for sharing in chip_buffers(plan.buffers)}
    start: dict[Counter, int] = room | starting(full_sync)
    return [
        dataclasses.replace(group, moved=moved[names[group.cores[0]]], of_inputs=names[group.cores[0]] in depends)
        for group in classes_of(names, processors_of, plan.shared, start, plan.partials)
    ]


def classes_of(
    names: Mapping[Place, str], events: Mapping[str, Processors], shared: Sequence[SharedInput],
    start: Mapping[Counter, int], partials: Sequence[PartialSums] = (),
) -> list[CoreClass]:  # fmt: skip
    """The classes of cores, of which `names` tells whose `events` are the same. In a class, the senders of all cores
    are of one class, too, and so are their receivers, in the same numbers, and their neighbours in chains: then one
    core of each class stands for all."""
    groups = [
        {core: multicast for multicast in input_.multicasts for core in multicast.cores.cores} for input_ in shared
    ]
    chains = [sums.neighbours for sums in partials]
    kinds: dict[Place, object] = dict(names)
    count = 0
    while len({*kinds.values()}) > count:
        count = len({*kinds.values()})
        kinds = _numbered({
            core: (
                kinds[core], *(_around(core, group, kinds) for group in groups),
                *(tuple(kinds[neighbour] if neighbour else None for neighbour in chain[core]) for chain in chains),
            )
            for core in names
        })  # fmt: skip
    members: dict[object, list[Place]] = {}
    for core in names:
        members.setdefault(kinds[core], []).append(core)
    called = {kind: f"class {number}" for number, kind in enumerate(members)}
    classes: list[CoreClass] = []
    for kind, cores in members.items():
        targets: dict[str, Mapping[str, int]] = {}
        for input_, group in zip(shared, groups, strict=True):
            if (link := group.get(cores[0])) is not None:
                alike = Count(called[kinds[core]] for core in link.receivers)
                targets[input_.named(_SENDER)] = {called[kinds[link.sender]]: alike[called[kind]]}
                targets[input_.named(_RECEIVERS)] = alike
        for sums, chain in zip(partials, chains, strict=True):
            for name, link in zip(sums.places, chain[cores[0]], strict=True):
                targets[name] = {} if link is None else {called[kinds[link]]: 1}
        processors: dict[ProcessorName, tuple[Event, ...]] = {
            name: _sent(stream, targets) for name, stream in events[names[cores[0]]].items()
        }
        classes.append(CoreClass(called[kind], tuple(cores), processors, start))
    return classes


def _around(core: Place, group: Mapping[Place, SentTo], kinds: Mapping[Place, object]) -> object:
    """The kinds of the sender and of the receivers of a core's blocks."""
    multicast = group.get(core)
    return (
        None
        if multicast is None
        else (kinds[multicast.sender], frozenset(Count(kinds[to] for to in multicast.receivers).items()))
    )


def _numbered(kinds: Mapping[Place, object]) -> dict[Place, object]:
    numbers: dict[object, int] = {}
    return {core: numbers.setdefault(kind, len(numbers)) for core, kind in kinds.items()}


def _sent(events: tuple[Event, ...], targets: Mapping[str, Mapping[str, int]]) -> tuple[Event, ...]:
    """The events with classes in place of senders and receivers: the signal of one core is that of all of its class."""
    expanded: list[Event] = []
    for event in events:
        match event:
            case Repeat(turns, body):
                expanded.append(Repeat(turns, _sent(body, targets)))
            case Signal(counter, amount, to):
                expanded += [Signal(counter, amount * cores, name) for name, cores in targets[to].items()]
            case MulticastSend(count, transactions, receivers, counter, (to,)):
                expanded.append(MulticastSend(count, transactions, receivers, counter, tuple(targets[to])))
            case _:
                expanded.append(event)
    return tuple(expanded)


@dataclass(frozen=True, slots=True)
class _Known:
    """What cores do in one kernel to which they give these values; equal numbers are equal events."""

    asked: frozenset[str]
    values: tuple[object, ...]
    number: int
    processors: Processors
    moved: Moved


# The cores that an event of a shared input is for, named after its tensor until the classes are known.
_SENDER, _RECEIVERS = "sender", "receivers"
# Of a product of 32x32 tiles.
_TILE_FLOPS = 2 * 32**3
# The name of the numbers that a core's operations gave among its values.
_NUMBERS = "numbers of a run"
# The numbers that the operations of a core gave in one kernel.
KernelNumbers = Mapping[tuple[int, tuple[int, ...]], int]


def _numbers(run: Callable[[], Mapping[Place, Numbers]], core: Place, role: str) -> KernelNumbers:
    return run().get(core, {}).get(role, {})


def _values(core: CoreWork, numbers: Callable[[], KernelNumbers] | None, names: frozenset[str]) -> tuple[object, ...]:
    per_core = core_values(core, names - {_NUMBERS})
    if _NUMBERS not in names:
        return per_core
    assert numbers is not None, "a run has decided something"
    return *per_core, numbers()


class _Walker(CoreWalk):
    """The events of one kernel as one core runs it. `numbers` gives those of a run."""

    def __init__(
        self, kernel: Kernel, plan: Plan, target: Target, core: CoreWork, numbers: Callable[[], KernelNumbers] | None,
        marked: bool,
    ) -> None:  # fmt: skip
        super().__init__(kernel, core)
        self.plan, self.numbers = plan, numbers
        self.costs = target.costs
        assert plan.compute is not None
        self.fidelity = plan.compute.math_fidelity
        self.arch: Arch = target.arch
        self.dst_bits = 32 if plan.compute.fp32_dest_acc_en else 16
        self.pages = {buffer.name: buffer.page_bytes for buffer in plan.buffers}
        self.homes = {buffer.name: sharing[0].name for sharing in chip_buffers(plan.buffers) for buffer in sharing}
        self.memory: dict[str, Memory] = {layout.name: layout.memory for layout in plan.layouts}
        self.sent = {shared.buffer: shared.tensor for shared in plan.shared}
        self.handed_on = {sums.sent: sums.tensor for sums in plan.partials}
        # The compute kernel fills and empties these itself.
        self.private = frozenset(
            end(self.homes[buffer.name])
            for buffer in plan.buffers
            for end in (free, filled)
            if buffer.producer == buffer.consumer == kernel.role == "compute"
        )
        self.streams = Streams(self.costs, self.private)
        # What operations gave, with the turns of the loops around them, of which `turns` are those that run.
        self.read: dict[Variable, tuple[Call, Mapping[Variable, int]]] = {}
        self.turns: dict[Variable, int] = {}
        self.positions = {call: number for number, call in enumerate(giving(kernel.body))}
        self.sources = {call: number for number, call in enumerate(calls(kernel.body))} if marked else {}
        # What the number that is computed decides.
        self.at: KernelLoop | Branch | Call | None = None

    def run(self) -> set[str]:
        self.body(self.kernel.body)
        return self.asked

    @property
    def runner(self) -> Loader:
        """The processor that runs a kernel that moves data."""
        return "reader" if self.kernel.role == "reader" else "writer"

    @property
    def moves(self) -> Moved:
        return {(self.runner, *move): count for move, count in self.streams.moved.items()}

    # Statements

    def branch(self, branch: Branch) -> None:
        self.body(branch.then if self.value(branch.condition, branch) else branch.otherwise)

    def loop(self, loop: KernelLoop) -> None:
        turns = loop.turns if loop.turns is not None else self.value(loop.extent, loop)
        low = self.value(loop.low, loop)
        if turns < 1:
            return
        outside, self.used = self.used, set()
        first = self.turn(loop, low)
        if loop.variable not in self.used:
            self.streams.loop(turns, first)
        else:
            self.streams.loop(1, first)
            for number in range(low + 1, low + turns):
                self.streams.loop(1, self.turn(loop, number))
        self.used = outside | (self.used - {loop.variable})

    def turn(self, loop: KernelLoop, number: int) -> Streams:
        outer, self.streams = self.streams, Streams(self.costs, self.private)
        self.known[loop.variable] = self.turns[loop.variable] = number
        self.body(loop.body)
        del self.turns[loop.variable]
        inner, self.streams = self.streams, outer
        return inner

    # Numbers

    def value(self, e: Expression, at: KernelLoop | Branch | Call) -> int:
        """A number that decides what happens."""
        if isinstance(e, int):
            return e
        self.at = at
        number = self.computed(e)
        if number is None:
            raise Unsupported(
                "L001",
                f"the time of {kernel_name(self.kernel.role)} depends on a number that the clock cannot compute",
                hint="run it on a device: ttexplore run --backend ttnn",
                span=at.place.span,
            )
        return number

    def variable(self, variable: Variable) -> int | None:
        return self.number(*self.read[variable]) if variable in self.read else super().variable(variable)

    def number(self, source: Call, turns: Mapping[Variable, int]) -> int:
        """What an operation gave. In other turns of the loops around it, it may have given something else."""
        if self.numbers is None:
            raise self.depends(source)
        self.used |= turns.keys()
        self.asked.add(_NUMBERS)
        return self.numbers()[self.positions[source], tuple(turns.values())]

    def depends(self, source: Call) -> UsageError:
        at = self.at
        assert at is not None
        cause = (
            "the length of a loop"
            if isinstance(at, KernelLoop)
            else "a branch"
            if isinstance(at, Branch)
            else "a count"
        )
        return UsageError(
            "U022",
            f"{cause} in {kernel_name(self.kernel.role)} depends on elements of tensors, so that no time can be "
            "predicted without them",
            hint="predict it for certain inputs: ex.estimate(inputs=...)",
            span=at.place.span or source.span,
        )

    # Operations

    def add(self, *events: Event) -> None:
        self.streams.add(self.runner, *events)

    def page(self, call: Call, operand: str) -> int:
        return self.pages[call.buffer(operand)]

    def call(self, call: Call) -> None:
        if call.result is not None:
            self.read[call.result] = call, {**self.turns}
        if self.sources:
            self.streams.operation = cast("KernelRole", self.kernel.role), self.sources[call]
        if call.phase:
            self.streams.init()
            return
        match call.op.engine:
            case "sync":
                self.hand_over(call)
            case "fpu":
                self.multiply(call)
            case "sfpu":
                cycles = sfpu_cycles(call.op.name, self.arch, self.dst_bits)
                self.streams.add("math", Work("math", cycles, cycles))
            case "pack":
                cycles = pack_cycles(self.costs, self.page(call, call.op.packs), call.op.cycles)
                self.streams.add("pack", Work("pack", cycles))
            case "block":
                self.convert(call)
            case "config":
                if call.op.packs or "pack" in call.op.name:
                    self.streams.add("pack", Work("pack", INIT_CYCLES))
                else:
                    self.streams.init()
            case "noc":
                self.transfer(call)
            case "riscv":
                self.instructions(call)
            case "whole block":
                raise self.unknown(call)
            case _:
                assert_never(call.op.engine)

    def unknown(self, call: Call) -> Unsupported:
        return Unsupported(
            "L001",
            f"no time is known of {call.op.name}",
            hint="estimate the program after the last pass",
            span=call.span,
        )

    def hand_over(self, call: Call) -> None:
        name = call.op.name
        match name:
            case "tile_regs_acquire":
                self.streams.acquire()
            case "tile_regs_commit":
                self.streams.commit()
            case "tile_regs_wait":
                self.streams.wait_for_math()
            case "tile_regs_release":
                self.streams.release()
            case "semaphore_set":
                self.add(Put(self.semaphore(call), self.value(call.values["value"], call)))
            case "semaphore_wait":
                self.add(Wait(self.semaphore(call), self.value(call.values["value"], call)))
            case "semaphore_up":
                self.add(Signal(self.semaphore(call), 1, self.told(call)))
            case "receive_sent":
                self.add(Wait(self.semaphore(call), 1))
            case "cb_reserve_back" | "cb_push_back" | "cb_wait_front" | "cb_pop_front":
                buffer, count = self.homes[call.buffer("cb")], self.value(call.values["count"], call)
                at_back = name in ("cb_reserve_back", "cb_push_back")
                by: ProcessorName = (
                    self.runner if self.kernel.role != "compute" else "pack" if at_back else "unpack"
                )  # fmt: skip
                mine, theirs = (free(buffer), filled(buffer)) if at_back else (filled(buffer), free(buffer))
                self.streams.add(by, Work("riscv", self.costs.buffer_call_cycles))
                if call.op.waits:
                    self.streams.add(by, Wait(mine, count))
                else:
                    self.streams.add(by, Give(mine, -count), Give(theirs, count))
            case _:
                raise self.unknown(call)

    def told(self, call: Call) -> str:
        """The core whose semaphore is raised, until the classes are known."""
        number = call.number("semaphore")
        for sums in self.plan.partials:
            if number in (sums.room, sums.arrived):
                before, after = sums.places
                return before if number == sums.room else after
        return self.shared(call).named(_SENDER)

    def shared(self, call: Call) -> SharedInput:
        """The input whose blocks a semaphore is for."""
        number = call.number("semaphore")
        return next(sharing for sharing in self.plan.shared if number in (sharing.ready, sharing.valid))

    def semaphore(self, call: Call) -> Counter:
        return Counter(f"semaphore {call.number('semaphore')}", "semaphore")

    # The compute kernel

    def multiply(self, call: Call) -> None:
        """An operation of the FPU: the unpackers bring its tiles, but for those that are in DST."""
        op, costs = call.op, self.costs
        if op.name == "matmul_block":
            rows, columns = (self.value(call.values[name], call) for name in ("rt_dim", "ct_dim"))
            unpacked = matmul_unpacked(rows, columns, self.page(call, "in0"), self.page(call, "in1"))
            useful = costs.matmul_tile_cycles[self.fidelity] * rows * columns
            cycles = matmul_cycles(costs, self.fidelity, rows * columns)
            self.streams.source(unpacked, cycles, useful, _TILE_FLOPS * rows * columns)
            return
        sources = [operand.name for operand in op.operands if operand.kind == "cb"]
        cycles, tiles = op.cycles, 1
        if op == REDUCE_BLOCK_MAX_ROW:
            tiles = self.value(call.values["tiles"], call)
            cycles += (tiles - 1) * POOL_CYCLES
        if op.multiplies:
            cycles += costs.multiply_tile_cycles[self.fidelity] - costs.multiply_tile_cycles["HiFi4"]
        first, *further = (self.page(call, name) for name in sources)
        self.streams.source(tiles * first + sum(further), cycles, 0 if op.gives == "same" else cycles)

    def convert(self, call: Call) -> None:
        """Rows to tiles, or tiles to rows: each tile goes through DST in a section of its own."""
        packed = self.page(call, call.op.packs)
        streams = Streams(self.costs)
        streams.acquire()
        streams.source(self.page(call, call.op.source_a), self.costs.add_tile_cycles)
        streams.commit()
        streams.wait_for_math()
        streams.add("pack", Work("pack", pack_cycles(self.costs, packed, 0)))
        streams.release()
        self.streams.loop(self.value(call.values["tiles"], call), streams)

    def instructions(self, call: Call) -> None:
        """What processors do by themselves; a number that the unpackers' processor reads goes to all three."""
        processors: Sequence[ProcessorName] = (
            ("unpack", "math", "pack") if self.kernel.role == "compute" else (self.runner,)
        )  # fmt: skip
        for processor in processors:
            self.streams.add(processor, Work("riscv", call.op.cycles))

    # Reader and writer

    def started(self, call: Call, direction: Direction, count: int) -> None:
        tensor = call.buffer("source" if direction == "read" else "target")
        self.streams.moved[direction, tensor] += count
        self.add(Transfer(direction, self.memory[tensor], count, 1))

    def transfer(self, call: Call) -> None:
        name, issuing = call.op.name, Work("riscv", call.op.cycles)
        match name:
            case "noc_read_barrier" | "noc_zeros_barrier":
                self.add(Complete("read"))
            case "noc_writes_flushed":
                self.add(Complete("write", landed=False))
            case "noc_write_barrier":
                self.add(Complete("write"))
            case "noc_full_barrier":
                self.add(Complete("read"), Complete("write"))
            case "noc_multicast" | "noc_multicast_to_all":
                count = self.page(call, "cb") * self.value(call.values["tiles"], call)
                receivers = self.value(call.values["receivers"], call)
                self.streams.moved["multicast", self.sent[call.buffer("cb")]] += count
                self.add(MulticastSend(count, ceil(count / self.costs.noc_packet_bytes), receivers))
            case "semaphore_multicast" | "semaphore_multicast_to_all":
                receivers, to = self.value(call.values["receivers"], call), self.shared(call).named(_RECEIVERS)
                self.add(MulticastSend(FLAG_BYTES, 1, receivers, self.semaphore(call), (to,)))
            case "noc_send_block":
                count = self.page(call, "cb") * self.value(call.values["tiles"], call)
                self.streams.moved["hand on", self.handed_on[call.buffer("cb")]] += count
                self.add(Transfer("write", "l1", count, ceil(count / self.costs.noc_packet_bytes)))
            case "noc_read_tile":
                self.started(call, "read", self.page(call, "cb"))
            case "noc_write_tile":
                self.started(call, "write", self.page(call, "cb"))
            case "noc_write_zeros":
                self.add(Transfer("read", "l1", self.page(call, "cb"), 1))
            case "noc_read_part" | "noc_write_part":
                direction = "read" if name == "noc_read_part" else "write"
                self.started(call, direction, self.value(call.values["count_bytes"], call))
            case "noc_read_element" | "noc_read_number":
                # What lies around the element arrives first.
                self.started(call, "read", self.value(call.values["around_bytes"], call))
                self.add(Complete("read"), issuing)
            case "noc_write_element":
                # The element before has left the place where this one is copied to.
                self.add(Complete("write", landed=False), issuing)
                self.started(call, "write", self.value(call.values["count_bytes"], call))
            case _:
                raise self.unknown(call)
