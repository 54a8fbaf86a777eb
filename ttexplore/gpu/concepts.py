"""The concept map: what each idea of one machine is called on the other, with what the two programs at hand do.

The numbers and lines of the GPU's side are read from the generated CUDA or HIP and from the program that it was written
from; ours are those of the operations of our three kernels, and of the plan.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ttexplore.characters import Printed
from ttexplore.errors import unknown
from ttexplore.gpu.chips import CHIPS
from ttexplore.gpu.programs import TILE_ELEMENTS, Fact, GpuProgram, TileProgram
from ttexplore.ops.small import numpy_dtype
from ttexplore.plan import Plan, chip_buffers
from ttexplore.target import Target
from ttexplore.views.figures.l1_map import l1_used_bytes
from ttexplore.views.markup import byte_size, content_id, escape, plural, visible
from ttexplore.views.theme import fragment

_WAYS_IN = ("TMA load", "cp.async", "load")
_WAYS_OUT = ("TMA store", "store")
_LISTED_LINES = 6
# In a cell of what a program does not do.
NOTHING = "not in this program"
# What the page's style has not: two equal columns, and lines of the kernel with none below.
STYLE = """<style>
.ttx table.beside{table-layout:fixed}
.ttx table.t.beside>tbody>tr>td{padding:0 14px 6px 0}
.ttx table.t.beside th[scope=row]{padding-top:6px;border-top:1px solid var(--ttx-line);white-space:normal}
.ttx table.beside th b{color:var(--ttx-text)}
.ttx .links .unlinked{padding-left:14px;color:var(--ttx-muted)}
.ttx .links summary .pre{white-space:pre}
</style>"""


@dataclass(frozen=True, slots=True)
class Concept:
    """One row: what the idea is called on both sides, a sentence on both, and what the programs do; nothing, where a
    program does nothing of it."""

    gpu_name: str
    name: str
    sentence: str
    gpu: tuple[Fact, ...]
    ours: tuple[Fact, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ConceptMap(Printed):
    """The concepts of a GPU's program beside ours; ``concepts["shared memory"]`` is the row with that name."""

    kernel: str
    arch: str
    target: str
    rows: tuple[Concept, ...]

    def __getitem__(self, name: str) -> Concept:
        """The row with a name, of either side. Raises UsageError."""
        for row in self.rows:
            if name in (row.gpu_name, row.name):
                return row
        raise unknown("concept", name, [name for row in self.rows for name in (row.gpu_name, row.name)])

    def __repr__(self) -> str:
        return f"<concepts of {self.kernel}: {self.arch} beside {self.target}, {len(self.rows)} rows>"

    def __str__(self) -> str:
        texts = [f"{visible(self.kernel)}: {self.arch} beside {self.target}"]
        for row in self.rows:
            texts += ["", f"{row.gpu_name}  |  {row.name}", f"  {row.sentence}"]
            for side, facts in ((self.arch, row.gpu), (self.target, row.ours)):
                texts += [f"  {side:<14}{visible(fact)}" for fact in facts_text(facts) or [NOTHING]]
        return "\n".join(texts) + "\n"

    def _repr_html_(self) -> str:
        head = f'<div class="head"><h3>{escape(self.kernel)}</h3><span class="q">what stands for what</span></div>'
        content = STYLE + head + concepts_table(self)
        return fragment(content_id("ttx-concepts", content), f"concepts of {self.kernel}", content)


def facts_text(facts: Sequence[Fact]) -> list[str]:
    """A text for each fact, with its figures and lines."""
    return [_fact(fact) for fact in facts]


def _fact(fact: Fact) -> str:
    lines = _lines(fact.lines)
    return figures(fact) + (f"  [{lines}]" if lines else "")


def figures(fact: Fact) -> str:
    """What a fact says, without its lines."""
    most = "at most " if fact.most else ""
    if fact.count is None:
        return f"unknown: {fact.what}" if fact.bytes is None else f"{most}{byte_size(fact.bytes)} {fact.what}"
    return f"{most}{fact.count:,} × {fact.what}" + (f", {byte_size(fact.bytes)}" if fact.bytes else "")


def _lines(lines: Iterable[tuple[str, int]]) -> str:
    """``kernel.cu 46–48, 51; reader.cpp 33``"""
    return "; ".join(f"{file} {runs(numbers)}" for file, numbers in lines_by_file(lines).items())


def lines_by_file(lines: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The lines of each file, in the order of the files."""
    numbers: dict[str, list[int]] = {}
    for file, line in lines:
        numbers.setdefault(file, []).append(line)
    return numbers


def runs(numbers: Iterable[int]) -> str:
    """``3, 5–7``: the first runs of some lines, and how many more there are."""
    shown_runs, hidden = first_runs(numbers)
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in shown_runs]
    return ", ".join(shown) + (f" and {plural(hidden, 'more line')}" if hidden else "")


def first_runs(numbers: Iterable[int]) -> tuple[list[tuple[int, int]], int]:
    """The first runs of some lines, each from its first to its last, and how many lines are in the others."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans[:_LISTED_LINES], sum(last - first + 1 for first, last in spans[_LISTED_LINES:])


def concept_map(gpu: GpuProgram, ours: TileProgram, arch: str, target: Target) -> ConceptMap:
    """All rows for two programs of one kernel."""
    rows = (
        _grid(gpu, ours, target),
        _roles(gpu, ours),
        _memory(gpu, ours),
        _copies_in(gpu, ours),
        _copies_out(gpu, ours),
        _signals(gpu, ours),
        _waits(gpu, ours),
        _registers(gpu, ours),
        _products(gpu, ours),
        _elements(gpu, ours),
        _reductions(gpu, ours),
        _occupancy(gpu, ours, arch, target),
        _reuse(gpu, ours, arch),
    )
    return ConceptMap(ours.plan.kernel, arch, target.name, rows)


def _present(*facts: Fact) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact.lines)


def _grid(gpu: GpuProgram, ours: TileProgram, target: Target) -> Concept:
    partition = ours.plan.partition
    assert partition is not None, "what is emitted has been distributed"
    extents = "×".join("?" if extent is None else str(extent) for extent in gpu.extents("blockIdx").values())
    working = [core.items for core in partition.cores if core.items]
    loops = ours.lines("work loop")
    items = f"work items on {len(working)} of {target.cores} cores, at most {max(working)} each"
    return Concept(
        "grid", "persistent loop",
        "A GPU starts a block of threads for each block of the grid, and its hardware schedules them; here each core "
        "is assigned blocks before the launch, and runs a loop over them.",
        (Fact(f"blocks of {plural(gpu.threads, 'thread')} ({extents})", gpu.blocks,
              lines=gpu.lines(r"__launch_bounds__")),),
        (Fact(items, partition.work_items, lines=loops),),
    )  # fmt: skip


def _roles(gpu: GpuProgram, ours: TileProgram) -> Concept:
    branches = [branch for branch in gpu.blocks_below_threads if branch[1]]
    facts = tuple(
        Fact(f"warps of the block ({threads} threads) {role}", threads // 32, lines=((gpu.file, line),))
        for line, threads, role in branches
    )
    alike = Fact("threads of a block, which all do the same", gpu.threads, lines=gpu.lines(r"__launch_bounds__"))
    kernels = Fact("kernels on each core: reader, compute, writer", len(ours.files), lines=ours.lines("start"))
    return Concept(
        "warps", "reader, compute, writer",
        "Where TileLang specialises warps, some copy and others compute; here that is always so: two processors of a "
        "core move data, three compute, each with one thread.",
        facts or (alike,), (kernels,),
    )  # fmt: skip


def _memory(gpu: GpuProgram, ours: TileProgram) -> Concept:
    buffers = gpu.lines(r"buf_dyn_shmem \+|extern __shared__ (?!.*buf_dyn_shmem)")
    barriers = gpu.lines(r"__shared__ .*mbarrier_mem")
    facts = [Fact("buffers in the shared memory of a block", len(buffers), gpu.shared_bytes, buffers)]
    size = sum(int(match[1]) for _, line in barriers
               if (match := re.search(r"mbarrier_mem\[(\d+)\]", gpu.source.lines[line - 1].text)))  # fmt: skip
    if size:
        facts.append(Fact("barriers in it", size, 8 * size, barriers))
    our_facts: list[Fact] = []
    for shared in chip_buffers(ours.plan.buffers):
        names = [buffer.name for buffer in shared]
        largest = max(shared, key=lambda each: each.total_bytes)
        blocks = f"{plural(largest.stages, 'block')} of {plural(largest.block_pages, 'tile')}"
        description = f"for {blocks}: {', '.join(names)}, {largest.producer} to {largest.consumer}"
        our_facts.append(Fact(description, None, largest.total_bytes, ours.lines("buffer", *names)))
    return Concept(
        "shared memory", "circular buffers",
        "Both are fast memory beside the processor, filled by the program, not by a cache; a circular buffer has in "
        "addition a kernel that fills it, one that empties it, and the count of pages between them.",
        tuple(facts) if gpu.shared_bytes or buffers else (), tuple(our_facts),
    )  # fmt: skip


def _moves(gpu: GpuProgram, ways: Sequence[str]) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for way in ways:
        statements = [statement for statement in gpu.statements if gpu.way(statement.text) == way]
        if not statements:
            continue
        fact = gpu.gather(_WAY_NAMES[way], statements, threads=True)
        if way == "TMA load":
            # A barrier is told how many bytes will arrive.
            fact = dataclasses.replace(fact, bytes=gpu.where("expect").bytes)
        facts.append(fact)
    return tuple(facts)


_WAY_NAMES = {
    "TMA load": "TMA copies", "TMA store": "TMA stores", "cp.async": "cp.async copies by a thread",
    "load": "loads by a thread", "store": "stores by a thread",
}  # fmt: skip


def _copies_in(gpu: GpuProgram, ours: TileProgram) -> Concept:
    return Concept(
        "cp.async, TMA", "NoC reads",
        "Both copies run while the program goes on: TMA copies a box of a tensor, cp.async a few bytes for each "
        "thread, and the reader a tile from a DRAM bank, over the network on chip (NoC).",
        _moves(gpu, _WAYS_IN), ours.copies("async_read"),
    )  # fmt: skip


def _copies_out(gpu: GpuProgram, ours: TileProgram) -> Concept:
    return Concept(
        "stores to global memory", "NoC writes",
        "Threads store elements of their fragments; here compute packs whole tiles into a circular buffer, and the "
        "writer sends them.",
        _moves(gpu, _WAYS_OUT), ours.copies("async_write"),
    )  # fmt: skip


def _signals(gpu: GpuProgram, ours: TileProgram) -> Concept:
    arrive = gpu.where(r"mbarrier\[.*\]\.arrive(?:_and_expect_tx)?\(")
    commit = gpu.where(r"cp_async_commit\(")
    return Concept(
        "mbarrier arrive, commit", "push and pop",
        "The producer signals that data have arrived, and the consumer that their memory is free: on a GPU with "
        "barriers, whose phases the program counts, here with the page counts of a circular buffer.",
        _present(_named(arrive, "arrive at an mbarrier"), _named(commit, "commit a group of cp.async")),
        _present(
            ours.calls("push_back"), ours.calls("pop_front"),
            ours.calls("up", "set", "set_multicast", what="semaphore set or raised"),
        ),
    )  # fmt: skip


def _waits(gpu: GpuProgram, ours: TileProgram) -> Concept:
    return Concept(
        "__syncthreads and waits", "waits for pages",
        "__syncthreads stops all threads of a block until the last one is there; no such thing exists here: each "
        "kernel waits only for the pages, the registers or the transfers that it needs.",
        _present(
            _named(gpu.where(r"__syncthreads\(\)"), "__syncthreads"),
            _named(gpu.where(r"mbarrier\[.*\]\.wait\("), "wait at an mbarrier"),
            _named(gpu.where(r"cp_async_wait<"), "wait for cp.async"),
            _named(gpu.where(r"warpgroup_wait<"), "wait for wgmma"),
        ),
        _present(
            ours.calls("wait_front"), ours.calls("reserve_back"),
            ours.gather("barrier of transfers", lambda op: op.engine == "noc" and not op.operands),
            ours.calls("tile_regs_wait"), ours.calls("wait", what="wait at a semaphore"),
        ),
    )  # fmt: skip


def _registers(gpu: GpuProgram, ours: TileProgram) -> Concept:
    arrays = gpu.arrays()
    size = sum(array[2] for array in arrays)
    names = ", ".join(name for _, name, _, _ in arrays)
    compute = ours.plan.compute
    facts: list[Fact] = []
    if compute is not None:
        width = 4 if compute.fp32_dest_acc_en else 2
        acquired = ours.calls("tile_regs_acquire", what="times acquired")
        description = f"tiles of {8 * width} bits in DST"
        facts = [
            Fact(description, compute.dst_tiles, compute.dst_tiles * TILE_ELEMENTS * width, acquired.lines), acquired,
        ]  # fmt: skip
    return Concept(
        "fragments", "DST",
        "A fragment is spread over the registers of the threads of a block; here the registers of the matrix unit hold "
        "whole tiles, for all of the core, and what is larger is kept in circular buffers in between.",
        (Fact(f"fragments of a thread ({names})", len(arrays), size, tuple((gpu.file, line) for *_, line in arrays)),)
        if arrays else (),
        tuple(facts) if facts and facts[1].lines else (),
    )  # fmt: skip


def _products(gpu: GpuProgram, ours: TileProgram) -> Concept:
    def fact(counted: Fact, multiplied: int | None) -> Fact:
        told = "" if multiplied is None else f", {multiplied:,} multiply-adds"
        return Fact(f"{counted.what}{told}", counted.count, None, counted.lines, counted.most)

    called, total = ours.products
    return Concept(
        "tensor cores", "matrix unit",
        "A warp or four of them multiply pieces of a size of the instruction; here one call multiplies tiles of "
        "32x32, and a block of tiles at once.",
        tuple(fact(*product) for product in gpu.products), (fact(called, total),) if called.lines else (),
    )  # fmt: skip


def _elements(gpu: GpuProgram, ours: TileProgram) -> Concept:
    return Concept(
        "functions of elements", "operations on tiles",
        "Each thread computes its elements with instructions of its own; here the vector unit takes all 1,024 elements "
        "of a tile in DST for a call.",
        tuple(_named(function, f"{function.what} of an element") for function in gpu.functions),
        tuple(operation for operation in ours.operations if "reduce" not in operation.what),
    )  # fmt: skip


def _reductions(gpu: GpuProgram, ours: TileProgram) -> Concept:
    return Concept(
        "reductions across threads", "reductions of tiles",
        "A thread reduces its elements, then threads exchange their results by shuffles or shared memory; here a call "
        "reduces the rows or columns of a tile.",
        _present(_named(gpu.where(r"tl::AllReduce<", threads=True), "AllReduce by a thread")),
        tuple(operation for operation in ours.operations if "reduce" in operation.what),
    )  # fmt: skip


def _occupancy(gpu: GpuProgram, ours: TileProgram, arch: str, target: Target) -> Concept:
    partition, chip = ours.plan.partition, CHIPS.get(arch)
    assert partition is not None, "what is emitted has been distributed"
    working = sum(core.items > 0 for core in partition.cores)
    facts: list[Fact] = []
    if chip is not None:
        block_bytes = gpu.shared_bytes + chip.block_bytes
        at_once = min(
            chip.blocks, chip.threads // gpu.threads, chip.shared_bytes // block_bytes if block_bytes else chip.blocks
        )
        description = f"blocks at once on each {chip.processor} of {chip.name}, by threads and shared memory"
        facts.append(Fact(description, at_once, lines=gpu.lines(r"__launch_bounds__"), most=True))
        if gpu.blocks is not None:
            used = min(gpu.blocks, chip.processors)
            facts.append(Fact(f"of {chip.processors} {chip.processor}s get a block", used))
    return Concept(
        "occupancy", "core use",
        "A processor of a GPU runs several blocks and hides the latency of one behind others; a core runs one kernel "
        "of each kind, and hides latency by blocks that the reader fetches ahead. Idle cores are idle.",
        tuple(facts),
        (Fact(f"of {target.cores} cores work", working), Fact("of L1 on each core", None, l1_used_bytes(ours.plan))),
    )  # fmt: skip


def _reuse(gpu: GpuProgram, ours: TileProgram, arch: str) -> Concept:
    chip, plan = CHIPS.get(arch), ours.plan
    tensors = _input_bytes(plan)
    read = _total(_moves(gpu, _WAYS_IN))
    lines = tuple(line for move in _moves(gpu, _WAYS_IN) for line in move.lines)
    l2 = f"; L2 of {chip.name} has {chip.l2_bytes >> 20} MiB" if chip else ""
    copies = ours.copies("async_read")
    sent = sum(shared.saved_bytes for shared in plan.shared)
    facts = [
        Fact(
            f"read by all cores, of inputs of {byte_size(tensors)}",
            None,
            _total(copies),
            tuple(line for copy in copies for line in copy.lines),
        )
    ]
    if sent:
        multicast = ours.calls("async_write_multicast").lines
        facts.append(Fact("received from other cores by multicast", None, sent, multicast))
    if plan.partials:
        facts.append(
            Fact("partial sums sent from core to core", None, sum(partial.sent_bytes for partial in plan.partials))
        )
    return Concept(
        "L2", "multicast",
        "Blocks that read the same data find them in L2, without being asked; there is no such cache here: either each "
        "core reads its own copy, or one core reads and sends to a rectangle of cores.",
        (Fact(f"read by all blocks, of inputs of {byte_size(tensors)}{l2}", None, read, lines),) if lines else (),
        tuple(facts),
    )  # fmt: skip


def _input_bytes(plan: Plan) -> int:
    sizes = [
        prod(layout.shape) * np.dtype(numpy_dtype(layout.dtype)).itemsize
        for layout in plan.layouts
        if layout.role != "output"
    ]
    return sum(sizes)


def _total(facts: Iterable[Fact]) -> int | None:
    total: int | None = 0
    for fact in facts:
        total = None if total is None or fact.bytes is None else total + fact.bytes
    return total


def _named(fact: Fact, meaning: str) -> Fact:
    return dataclasses.replace(fact, what=meaning, bytes=None)


def concepts_table(concepts: ConceptMap) -> str:
    """The map as an HTML table."""

    def side(facts: Sequence[Fact]) -> str:
        if not facts:
            return f'<span class="q">{NOTHING}</span>'
        return "".join(
            f'<div>{escape(figures(fact))} <span class="q">{escape(_lines(fact.lines))}</span></div>' for fact in facts
        )

    rows = [
        (f"<b>{escape(row.gpu_name)} → {escape(row.name)}</b>: {escape(row.sentence)}", side(row.gpu), side(row.ours))
        for row in concepts.rows
    ]
    return beside_table("concepts", concepts.arch, concepts.target, rows)


def beside_table(label: str, arch: str, target: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """A table of both sides; each row has a heading and two cells, as HTML."""
    head = f"<tr><th>{escape(arch)}</th><th>{escape(target)}</th></tr>"
    body = "".join(
        f'<tr><th scope="row" colspan="2">{heading}</th></tr><tr><td>{gpu}</td><td>{ours}</td></tr>'
        for heading, gpu, ours in rows
    )
    return f'<table class="t beside" aria-label="{escape(label)}">{head}{body}</table>'
