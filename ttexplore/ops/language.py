"""The operations of the kernel language as values: what a kernel runs until C2 gives it operations of the device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanguageOp:
    """An operation of the kernel language. `regions` names the regions of buffers among its arguments, in their order;
    `target` is the position of the one that it writes, -1 for none. What it computes is joined to the old content of
    its target unless the attribute `overwrites` is set; an operation without this attribute always overwrites."""

    name: str
    regions: tuple[str, ...] = ()
    target: int = -1
    overwrites: str = ""


_PREFIX = "tl."

COPY = LanguageOp("tl.copy", ("source", "target"), 1)
COPY_TILES = LanguageOp("tl.copy_tiles", ("tiles", "target"), 1)
FILL = LanguageOp("tl.fill", ("target",), 0)
GATHER = LanguageOp("tl.gather", ("source", "target"), 1)
GEMM = LanguageOp("tl.gemm", ("A", "B", "C"), 2, "clear_accum")
REDUCE = LanguageOp("tl.reduce", ("reduced", "target"), 1, "clear")
SCAN = LanguageOp("tl.scan", ("source", "target"), 1)
# What groups of threads do at barriers, and all blocks of a launch.
BARRIER_ARRIVE = LanguageOp("tl.barrier_arrive")
BARRIER_WAIT = LanguageOp("tl.barrier_wait")
GEMM_ARRIVE = LanguageOp("tl.gemm_arrive")
GEMM_WAIT = LanguageOp("tl.gemm_wait")
RENDEZVOUS = LanguageOp("tl.rendezvous")
SYNC_GRID = LanguageOp("tl.sync_grid")
SYNC_THREADS = LanguageOp("tl.sync_threads")

# Those that are statements, by name.
STATEMENTS: dict[str, LanguageOp] = {
    op.name: op
    for op in (
        COPY, COPY_TILES, FILL, GATHER, GEMM, REDUCE, SCAN, BARRIER_ARRIVE, BARRIER_WAIT, GEMM_ARRIVE, GEMM_WAIT,
        RENDEZVOUS, SYNC_GRID, SYNC_THREADS,
    )
}  # fmt: skip

# Those that write a block.
BLOCKS: dict[str, LanguageOp] = {name: op for name, op in STATEMENTS.items() if op.target >= 0}

# Those that are expressions: the index of a thread, the condition of a store, a question to all elements of a block,
# and what updates of an element join.
THREAD_INDEX = "tl.thread_index"
STORED_IF = "tl.stored_if"
QUANTIFIED = "tl.quantified"
ATOMICS = {kind: f"tl.atomic_{kind}" for kind in ("add", "max", "min")}
# What the threads along an axis of a block join their values to.
OVER_THREADS = {kind: f"tl.{kind}_over_threads" for kind in ("sum", "max", "min")}

# The attribute of a product, or of the clearing that belongs to one, that is over later.
ASYNCHRONOUS = "asynchronous"
# The attribute of a kernel that names the tensors that it gives.
OUTPUTS = "tl.outs"


def is_language(name: str) -> bool:
    """Tell whether a name is that of an operation or expression of the kernel language."""
    return name.startswith(_PREFIX)
