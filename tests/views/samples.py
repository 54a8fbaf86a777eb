"""A small exploration of a GEMM, made by hand: what the views show must be what stands here."""

from __future__ import annotations

import dataclasses

from ttexplore.plan import (
    Accessor,
    CircularBuffer,
    ComputeConfig,
    CoreWork,
    GraphEdge,
    GraphNode,
    Partition,
    Plan,
    TensorLayout,
    TileGraph,
)
from ttexplore.record import ErrorRecord, Line, Listing, Origin, Span, StepRecord, Trace, to_json
from ttexplore.views.runs.estimate import Prediction, ProcessorBar

# Closes tags and quotes, reverses the reading direction, hides a character, rings the bell.
HOSTILE = "</td><script>alert('x')</script>\"&\u202e\u200b\x07"


def span(line: int) -> Span:
    return Span("gemm.py", line, 1, line, 20)


def line(text: str, number: int | None = None, kind: str = "exact") -> Line:
    return Line(text, () if number is None else (Origin(span(number), kind),))  # pyright: ignore


def layout(name: str, position: int, role: str, rows: int, columns: int) -> TensorLayout:
    return TensorLayout(name, position, role, (rows, columns), "bfloat16", "Float16_b", (rows, columns))  # pyright: ignore


def partition(columns: int = 8, rows: int = 8, items: int = 67) -> Partition:
    """`items` work items over all cores, the first ones doing one more, like pass B1."""
    cores = columns * rows
    work: list[CoreWork] = []
    start = 0
    for core in range(min(cores, items)):
        count = items // cores + (core < items % cores)
        work.append(CoreWork(core % columns, core // columns, count, {"work_start": start, "work_count": count}))
        start += count
    return Partition((items,), "contiguous", "global", (columns, rows), tuple(work), ("work_start", "work_count"))


BUFFERS = (
    CircularBuffer("A_shared", 4, 2, "Float16_b", "reader", "compute", 0, origin=span(14)),
    CircularBuffer("B_shared", 4, 3, "Float16_b", "reader", "compute", 1, origin=span(15)),
    CircularBuffer("C_local_out", 16, 2, "Float16_b", "compute", "writer", 16, origin=span(16)),
    CircularBuffer("C_local_partials", 16, 1, "Float32", "compute", "compute", 24, origin=span(16)),
)

GRAPH = TileGraph(
    (
        *(GraphNode(name, "tensor", "Float16_b") for name in "ABC"),
        *(GraphNode(name, "kernel") for name in ("reader", "compute", "writer")),
        *(GraphNode(buffer.name, "circular_buffer", buffer.data_format) for buffer in BUFFERS),
    ),
    (
        GraphEdge("A", "reader", 128),
        GraphEdge("reader", "A_shared", 128),
        GraphEdge("A_shared", "compute", 128),
        GraphEdge("B", "reader", 132),
        GraphEdge("reader", "B_shared", 132),
        GraphEdge("B_shared", "compute", 132),
        GraphEdge("compute", "C_local_partials"),
        GraphEdge("C_local_partials", "compute"),
        GraphEdge("compute", "C_local_out", 16),
        GraphEdge("C_local_out", "writer", 16),
        GraphEdge("writer", "C", 16),
    ),
)

START = Plan("matmul", "wormhole_n150", {"policy": "contiguous"})
PLAN = START.replace(
    layouts=(
        layout("A", 0, "input", 1024, 512),
        layout("B", 1, "input", 512, 2144),
        layout("C", 2, "output", 1024, 2144),
    ),
    buffers=BUFFERS,
    accessors=(Accessor("A", (32, 16), (16, 1), 2048, 512),),
    partition=partition(),
    graph=GRAPH,
    compute=ComputeConfig("HiFi4", True, False, False, 4, "reload", ("fp32 accumulator",)),
)

SOURCE = Listing(
    "python",
    (
        line("def matmul(A, B, C):", 5),
        line("    with T.Kernel(67) as bx:", 6),
        line("        T.copy(A[bx * 32, 0], A_shared)", 7),
        line("        T.gemm(A_shared, B_shared, C_local)", 8),
    ),
    "matmul",
)
BEFORE = Listing(
    "tir",
    (
        line("def matmul():", 5),
        line("    for bx in T.thread_binding(67):", 6),
        line("        T.copy(A[bx * 32 : +32, 0 : +512], A_shared)", 7),
        line("        T.gemm(A_shared, B_shared, C_local)", 8),
    ),
    "before",
)
AFTER = Listing(
    "tir",
    (
        line("def matmul():", 5),
        line('    work_start = tt.core_value("work_start")', 6, "derived"),
        line("    for item in range(work_count):", 6, "derived"),
        line("        bx = work_start + item", 6, "inferred"),
        line("        T.copy(A[bx * 64 : +64, 0 : +512], A_shared)", 7),
        line("            T.gemm(A_shared, B_shared, C_local)", 8),
    ),
    "after",
)
CPP = Listing(
    "cpp",
    (
        line("// reader"),
        line('#include "api.h"'),
        line("void kernel_main() {"),
        line("    read(0);", 7, "derived"),
        line("}"),
    ),
    "reader.cpp",
)


def step(
    index: int, letter: str, name: str, stage: str, before: Listing, after: Listing, old: Plan, new: Plan
) -> StepRecord:
    return StepRecord(
        index, name, letter, stage, f"Do {name}.", f"Do {name}.\n\nIn some detail.", before.text != after.text,
        old != new, 0.0012 * (index + 1), before, after, to_json(old), to_json(new),
        {"policy": "contiguous"} if letter == "B1" else {},
    )  # fmt: skip


DECIDE = step(0, "B1", "layout_aware_work_partition", "partition", BEFORE, BEFORE, START, PLAN.replace(graph=None))
REWRITE = step(
    1, "B2", "grid_to_core_grid", "partition", BEFORE, AFTER, PLAN.replace(graph=None), PLAN.replace(graph=None)
)
NOTHING = step(2, "C2", "lower_tt_tile_intrinsics", "tiles", AFTER, AFTER, PLAN, PLAN)
FAILED = dataclasses.replace(
    step(3, "D3", "lower_cb_intrinsics", "kernels", AFTER, AFTER, PLAN, PLAN),
    error=ErrorRecord("Unsupported", "T.atomic_add is not lowered\nat all", "use a reduction", span(8)),
)
TRACE = Trace("matmul", "wormhole_n150", SOURCE, (DECIDE, REWRITE, NOTHING), {"reader.cpp": CPP}, to_json(PLAN), {})


def hostile_trace() -> Trace:
    """The same with hostile text wherever a user's text can be."""
    listing = Listing("tir", (line(HOSTILE, 5), line(f"    x = {HOSTILE}", 6)), HOSTILE)
    plan = PLAN.replace(
        kernel=HOSTILE,
        layouts=tuple(dataclasses.replace(one, name=HOSTILE + one.name) for one in PLAN.layouts),
        buffers=tuple(dataclasses.replace(one, name=HOSTILE + one.name) for one in PLAN.buffers),
        graph=TileGraph((), (GraphEdge(HOSTILE + "A", "reader", 1), GraphEdge(HOSTILE, HOSTILE, 1))),
        compute=dataclasses.replace(PLAN.compute, reasons=(HOSTILE,)),  # pyright: ignore
    )
    hostile = StepRecord(
        0, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, True, True, 0.0, BEFORE, listing, to_json(START), to_json(plan),
        {HOSTILE: HOSTILE}, ErrorRecord(HOSTILE, HOSTILE, HOSTILE, Span(HOSTILE, 1, 1, 1, 1)),
    )  # fmt: skip
    return Trace(HOSTILE, HOSTILE, listing, (hostile,), {HOSTILE: listing}, to_json(plan), {HOSTILE: HOSTILE})


def long_trace(lines: int) -> Trace:
    """Fifteen steps that each replace all of `lines` long lines, and files of the same size."""
    listings = [
        Listing(
            "cpp", tuple(line(f'    call_{version}_{n}(buffer, {n}, "{"x" * 60}");', 5 + n) for n in range(lines)), "x"
        )
        for version in range(16)
    ]
    steps = tuple(step(i, f"S{i}", f"step_{i}", "stage", listings[i], listings[i + 1], START, PLAN) for i in range(15))
    files = {f"file_{i}.cpp": listings[i] for i in range(5)}
    return Trace("long", "wormhole_n150", listings[0], steps, files, to_json(PLAN), {})


PREDICTION = Prediction(
    "gemm on wormhole_n150", 100.0, "DRAM", {"NoC": 0.5, "DRAM": 40.0, "math": 10.0}, 25.0, 20.0,
    (
        ProcessorBar("reader", 10.0, {"buffer": 30.0, "read": 40.0}, 80.0),
        ProcessorBar("math", 50.0, {"registers": 40.0}, 90.0),
    ),
    (1, 2), 3, 4, (("error", "7%"),),
)  # fmt: skip
HOSTILE_PREDICTION = Prediction(
    HOSTILE, 9.0, HOSTILE, {HOSTILE: 5.0}, 1.0, 1.0, (ProcessorBar(HOSTILE, 1.0, {HOSTILE: 8.0}, 9.0),), (0, 0), 1, 1,
    ((HOSTILE, HOSTILE),),
)  # fmt: skip
