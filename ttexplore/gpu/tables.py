"""The tables that TileLang's documents put both machines into, side by side, filled from the two programs at hand.

The documents state what holds in general; here each cell is what this kernel's programs do, with counts, bytes and
lines, out of the concept map, the aligned passes and the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ttexplore.characters import Printed
from ttexplore.errors import unknown
from ttexplore.gpu.concepts import NOTHING, STYLE, ConceptMap, beside_table, facts_text
from ttexplore.gpu.lane import GpuLane
from ttexplore.gpu.programs import Fact, GpuProgram, TileProgram
from ttexplore.plan import DATA_FORMATS, KERNEL_ROLES, TILE_COLUMNS, TILE_ROWS
from ttexplore.record import StepRecord
from ttexplore.views.markup import byte_size, content_id, escape, plural, visible
from ttexplore.views.theme import fragment

Texts = tuple[str, ...]
# The passes for one purpose: TileLang's, and ours.
Steps = tuple[tuple[StepRecord, ...], tuple[StepRecord, ...]]


@dataclass(frozen=True, slots=True)
class Programs:
    """What the cells are made from."""

    lane: GpuLane
    gpu: GpuProgram
    ours: TileProgram
    concepts: ConceptMap
    passes: Mapping[str, Steps]


def _nothing(_: Programs) -> Texts:
    return ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A row of a document's table: the rows of the concept map and the purposes of passes that fill it, and what the
    two programs have besides."""

    name: str
    concepts: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ()
    gpu: Callable[[Programs], Texts] = field(default=_nothing)
    ours: Callable[[Programs], Texts] = field(default=_nothing)


# What neither the concept map nor the passes have.


def _lines(description: str, lines: tuple[tuple[str, int], ...]) -> Texts:
    """How many lines have something, and which."""
    return tuple(facts_text([Fact(description, len(lines), None, lines)])) if lines else ()


def _gpu_indices(both: Programs) -> Texts:
    blocks, threads = both.gpu.lines("blockIdx"), both.gpu.lines("threadIdx")
    return *_lines("lines with blockIdx", blocks), *_lines("lines with threadIdx", threads)


def _our_indices(both: Programs) -> Texts:
    return _lines("arguments of each core", both.ours.lines("argument"))


def _gpu_tiles(both: Programs) -> Texts:
    return tuple(f"pieces of an instruction: {fact.what}" for fact, _ in both.gpu.products)


def _our_tiles(both: Programs) -> Texts:
    formats = {buffer.data_format: None for buffer in both.ours.plan.buffers}
    return tuple(
        f"tiles of {TILE_ROWS}×{TILE_COLUMNS} {name}, {DATA_FORMATS[name].tile_bytes:,} bytes" for name in formats
    )


def _our_carve(both: Programs) -> Texts:
    partition = both.ours.plan.partition
    assert partition is not None, "what is emitted has been distributed"
    per_core = [core.items for core in partition.cores if core.items]
    return (f"{partition.policy}: {min(per_core)} to {max(per_core)} work items on each of {len(per_core)} cores",)


def _gpu_knobs(both: Programs) -> Texts:
    return f"{both.gpu.threads} threads in a block", f"{byte_size(both.gpu.shared_bytes)} of shared memory for a block"


def _our_knobs(both: Programs) -> Texts:
    plan = both.ours.plan
    return (", ".join(f"{name}={value}" for name, value in plan.options.items() if value is not None),)


def _gpu_buffers(both: Programs) -> Texts:
    return tuple(facts_text(both.concepts["shared memory"].gpu))


def _our_staging(both: Programs) -> Texts:
    """The circular buffers by which blocks come from DRAM and go back."""
    return tuple(
        f"{plural(buffer.stages, 'block')} of {plural(buffer.block_pages, 'tile')} in L1: {buffer.name}, "
        f"{buffer.producer} to "
        f"{buffer.consumer}"
        for buffer in both.ours.plan.buffers
        if buffer.producer == "reader" or buffer.consumer == "writer"
    )


def _our_depth(both: Programs) -> Texts:
    return tuple(
        f"{plural(buffer.stages, 'block')} deep: {buffer.name}"
        for buffer in both.ours.plan.buffers
        if buffer.stages > 1
    )


def _gpu_source(both: Programs) -> Texts:
    return (f"{both.gpu.file}, {plural(len(both.gpu.source.lines), 'line')}",)


def _our_source(both: Programs) -> Texts:
    return tuple(f"{role}.cpp, {plural(len(both.ours.files[role].lines), 'line')}" for role in KERNEL_ROLES)


def _gpu_annotations(both: Programs) -> Texts:
    return both.lane.notes or ("none of ours in the kernel",)


def _our_annotations(both: Programs) -> Texts:
    texts = [
        f"{annotation.option}={annotation.value}{f' for {annotation.tensor}' if annotation.tensor else ''}"
        f"{'' if annotation.taken else ', not used'}{f' ({annotation.origin})' if annotation.origin else ''}"
        for annotation in both.ours.plan.annotations
    ]
    return tuple(texts) or ("none in the kernel: defaults and options",)


def _gpu_recorded(both: Programs) -> Texts:
    return (f"{plural(len(both.lane.records), 'pass')}, each with the program before and after",)


def _our_recorded(both: Programs) -> Texts:
    steps = {step.letter for _, ours in both.passes.values() for step in ours}
    return f"{plural(len(steps), 'step')}, each executed and compared", "tt.plan.json, the plan as data"


# The names and the order are those of the documents; what a row is filled with is ours.
AUTHORING = (
    Topic("Launch unit", ("grid",)),
    Topic("Kernel body indexers", gpu=_gpu_indices, ours=_our_indices),
    Topic("Thread-level parallelism", ("warps",)),
    Topic("Persistent execution", ("persistent loop",), ("distribute the blocks",)),
    Topic(
        "Data staging",
        ("cp.async, TMA", "stores to global memory"),
        gpu=_gpu_buffers,
        ours=_our_staging,
    ),
    Topic(
        "SW pipelining",
        ("mbarrier arrive, commit",),
        ("overlap copies and computation",),
        gpu=_gpu_buffers,
        ours=_our_depth,
    ),
    Topic("Block / tile size", ("fragments",), gpu=_gpu_tiles, ours=_our_tiles),
    Topic("Work distribution", ("grid",), ("distribute the blocks",), ours=_our_carve),
    Topic("Multicast / reuse", ("L2",)),
    Topic("Synchronization", ("__syncthreads and waits", "mbarrier arrive, commit"), ("synchronise",)),
    Topic("Tuning knobs", ("occupancy",), gpu=_gpu_knobs, ours=_our_knobs),
    Topic("Annotations (TileLang)", gpu=_gpu_annotations, ours=_our_annotations),
    Topic(
        "Fallbacks / libraries",
        gpu=lambda both: _lines("headers of TileLang's templates", both.gpu.lines("#include <tl_templates")),
        ours=lambda both: _lines("headers of the SDK", both.ours.lines("header")),
    ),
    Topic("Debugging", gpu=_gpu_recorded, ours=_our_recorded),
)
EXECUTION = (
    Topic("Execution", ("grid",), ("distribute the blocks",)),
    Topic("Parallelism", ("grid", "occupancy")),
    Topic("Memory", ("shared memory", "L2"), ("allocate on-chip memory",)),
    Topic("Data Movement", ("cp.async, TMA", "stores to global memory")),
    Topic("Tile Size", ("fragments",), gpu=_gpu_tiles, ours=_our_tiles),
    Topic("Compute", ("tensor cores", "functions of elements", "reductions across threads")),
    Topic("Synchronization", ("__syncthreads and waits", "mbarrier arrive, commit"), ("synchronise",)),
    Topic("Programming Model", ("warps",)),
)
TENSOR_CORES = (
    Topic("Pattern Detection", (), ("lower tile operations", "use the registers of the matrix unit")),
    Topic("Annotation Method", ("fragments",), ("decide where elements lie",)),
    Topic("Intrinsic Insertion", ("tensor cores",), ("lower tile operations", "choose instructions")),
    Topic("Codegen Role", (), ("write the source",), gpu=_gpu_source, ours=_our_source),
    Topic("IR Representation", ("tensor cores",), ("use the registers of the matrix unit",)),
    Topic("Device Splitting", ("warps",), ("divide the work among threads or kernels", "make the kernel callable")),
)
TABLES = {"authoring": AUTHORING, "execution": EXECUTION, "tensor cores": TENSOR_CORES}


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A row that is filled: what the program of the GPU does, and what ours does."""

    name: str
    gpu: Texts
    ours: Texts


@dataclass(frozen=True, eq=False, repr=False)
class SideBySideTable(Printed):
    """A table of the documents with the figures of two programs; ``table["Data staging"]`` is the row with that
    name."""

    name: str
    arch: str
    target: str
    rows: tuple[SideBySide, ...]

    def __getitem__(self, name: str) -> SideBySide:
        """The row with a name. Raises UsageError."""
        for row in self.rows:
            if row.name == name:
                return row
        raise unknown("topic", name, [row.name for row in self.rows])

    def __repr__(self) -> str:
        return f"<{self.name}: {self.arch} beside {self.target}, {plural(len(self.rows), 'row')}>"

    def __str__(self) -> str:
        texts = [f"{self.name}: {self.arch} beside {self.target}"]
        for row in self.rows:
            texts += ["", row.name]
            for side, cell in ((self.arch, row.gpu), (self.target, row.ours)):
                texts += [f"  {side:<14}{visible(text)}" for text in cell or (NOTHING,)]
        return "\n".join(texts) + "\n"

    def _repr_html_(self) -> str:
        content = STYLE + side_by_side_html(self)
        return fragment(content_id("ttx-side-by-side", content), f"{self.name}, side by side", content)


def side_by_side(name: str, topics: Sequence[Topic], both: Programs) -> SideBySideTable:
    """The table of these topics, filled."""

    def cell(topic: Topic, *, ours: bool) -> Texts:
        rows = [both.concepts[concept] for concept in topic.concepts]
        facts = [fact for row in rows for fact in (row.ours if ours else row.gpu)]
        own_texts = topic.ours(both) if ours else topic.gpu(both)
        return *facts_text(facts), *own_texts, *_changing(both, topic, ours=ours)

    rows = tuple(SideBySide(topic.name, cell(topic, ours=False), cell(topic, ours=True)) for topic in topics)
    return SideBySideTable(name, both.concepts.arch, both.concepts.target, rows)


def _changing(both: Programs, topic: Topic, *, ours: bool) -> Texts:
    """The passes of the topic that change something."""
    steps = [step for purpose in topic.purposes for step in both.passes[purpose][ours]]
    names = [f"{step.letter} {step.name}" for step in steps if step.changed_ir or step.changed_plan]
    return (f"by {', '.join(names)}",) if names else ()


def side_by_side_html(table: SideBySideTable) -> str:
    """The table as HTML."""

    def cell(texts: Texts) -> str:
        if not texts:
            return f'<span class="q">{NOTHING}</span>'
        return "".join(f"<div>{escape(text)}</div>" for text in texts)

    rows = [(f"<b>{escape(row.name)}</b>", cell(row.gpu), cell(row.ours)) for row in table.rows]
    return beside_table(table.name, table.arch, table.target, rows)
