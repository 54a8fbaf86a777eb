"""Both lanes beside each other: the generators share nothing but the kernel, so that equal figures check both."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from benchmarks.gpu_lanes import KERNELS, TARGETS
from tests.corpus.explored import explored
from ttexplore.clock.estimate import Estimate
from ttexplore.emit.kernels import emitted_parts
from ttexplore.errors import BackendError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.gpu.aligned import former_passes, purposes
from ttexplore.gpu.beside import Beside
from ttexplore.gpu.concepts import Concept
from ttexplore.gpu.programs import TileProgram
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.plan import DATA_FORMATS, KERNEL_ROLES, KernelRole
from ttexplore.record import Listing
from ttexplore.target import TARGETS as CHIPS
from ttexplore.views.markup import escape

NONE = Path("nowhere")
# The multiplications and additions of both products of attention: full, and below the diagonal in blocks of 32.
PRODUCTS = {
    "matmul": 256**3,
    "softmax": 0,
    "full_attention": 2 * 2 * 128 * 128 * 64,
    "causal_attention": 2 * 2 * 10 * 32**2 * 64,
}


def kernel(name: str) -> Exploration:
    reference, arguments = KERNELS[name]
    return ttx.explore(reference, **arguments)


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return kernel("matmul")


@pytest.fixture(scope="module")
def both(gemm: Exploration) -> Beside:
    return gemm.beside(gemm.gpu(environment=NONE))


def total(facts: tuple[Any, ...]) -> int:
    return sum(one.bytes or 0 for one in facts)


def multiplied(row: Concept) -> tuple[int, int]:
    """The multiplications and additions of both sides."""

    def side(facts: tuple[Any, ...]) -> int:
        found = [re.search(r"([\d,]+) multiply-adds", one.what) for one in facts]
        return sum(int(one[1].replace(",", "")) for one in found if one)

    return side(row.gpu), side(row.ours)


@pytest.mark.parametrize("name", KERNELS)
def test_both_programs_move_and_multiply_the_same(name: str) -> None:
    ours = kernel(name)
    predicted = ours.estimate()
    assert isinstance(predicted, Estimate)
    for target in TARGETS:
        lane = ours.gpu(target, environment=NONE)
        if lane.error is not None:
            continue
        concepts = ours.beside(lane).concepts
        reads, writes = concepts["cp.async, TMA"], concepts["NoC writes"]
        assert (total(reads.gpu), total(reads.ours)) == (predicted.read_bytes, predicted.read_bytes)
        assert (total(writes.gpu), total(writes.ours)) == (predicted.written_bytes, predicted.written_bytes)
        assert multiplied(concepts["tensor cores"]) == (PRODUCTS[name], PRODUCTS[name])
        assert not any(one.most for row in (reads, writes) for one in (*row.gpu, *row.ours))


def test_each_cited_line_does_what_its_row_says(both: Beside, gemm: Exploration) -> None:
    words = {
        "async_read": "async_read(", "async_write": "async_write(", "TMA copies": "tl::tma_load(",
        "wait_front": ".wait_front(", "push_back": ".push_back(", "__syncthreads": "__syncthreads()",
        "wait at an mbarrier": "].wait(", "wait for wgmma": "warpgroup_wait<0>", "tile_regs_wait": "tile_regs_wait(",
        "stores by a thread": "*(uint1*)(C +", "times acquired": "tile_regs_acquire()",
    }  # fmt: skip
    texts = {"kernel.cu": both.lane.code.lines, **{name: listing.lines for name, listing in gemm.files.items()}}
    seen: set[str] = set()
    for row in both.concepts.rows:
        for one in (*row.gpu, *row.ours):
            lines = [texts[file][number - 1].text for file, number in one.lines]
            if one.what in words:
                seen.add(one.what)
                assert lines
                assert all(words[one.what] in line for line in lines), (one.what, lines)
            if one.what.startswith("wgmma 64×128×16"):
                assert all("wgmma_ss<" in line and "64, 128, 16" in line for line in lines)
    assert seen == set(words)


def test_the_figures_of_the_gemm(both: Beside) -> None:
    """By hand: 4 blocks of 128x128, 8 steps of 32, 4x1 and 1x4 tiles each; 2 groups of 128 threads."""
    found = {one.what: (one.count, one.bytes) for row in both.concepts.rows for one in (*row.gpu, *row.ours)}
    for what, figures in {
        "blocks of 256 threads (2×2)": (4, None),
        "work items on 4 of 64 cores, at most 1 each": (4, None),
        "buffers in the shared memory of a block": (2, 2 * 2 * 128 * 32 * 2),
        "TMA copies": (4 * 8 * 3, 4 * 8 * 2 * 128 * 32 * 2),
        "async_read": (4 * 8 * 8, 4 * 8 * 8 * 2048),
        "arrive at an mbarrier": (4 * 8 * 2, None),
        "fragments of a thread (C_local)": (1, 128 * 128 * 4 // 128),
        "of 132 SMs get a block": (4, None),
        "of 64 cores work": (4, None),
        "blocks at once on each SM of H100, by threads and shared memory": (228 // 33, None),
        "tiles of 32 bits in DST": (4, 4 * 4096),
    }.items():
        assert found[what] == figures, what


def test_multicast_takes_the_place_of_reads(gemm: Exploration) -> None:
    shared = gemm.fork(multicast="all")
    lane = shared.gpu(environment=NONE)
    row, before = shared.beside(lane).concepts["multicast"], gemm.beside(lane).concepts["L2"]
    read, received = (one.bytes for one in row.ours)
    predicted = shared.estimate()
    assert isinstance(predicted, Estimate)
    assert read == predicted.read_bytes < 524288
    assert [one.bytes for one in before.ours] == [(read or 0) + (received or 0)]
    assert all("async_write_multicast" in shared.files[file].lines[line - 1].text for file, line in row.ours[1].lines)


@pytest.mark.parametrize(
    "name",
    ["rectangles_column_major", "work_lists", "multicast_rows_and_columns", "multicast_uneven", "turns_causal_factor",
     "gathered", "split_k_over_the_noc_with_tails"],
)  # fmt: skip
def test_reads_of_other_kernels_are_those_of_the_estimate(name: str) -> None:
    ours = explored(name)
    predicted = ours.estimate()
    assert isinstance(predicted, Estimate)
    files: dict[KernelRole, Listing] = {role: ours.files[f"{role}.cpp"] for role in KERNEL_ROLES}
    program = TileProgram(files, emitted_parts(ours.steps[-1].after.functions, ours.plan), ours.plan)
    for call, expected in (("async_read", predicted.read_bytes), ("async_write", predicted.written_bytes)):
        copies = program.copies(call)
        if any(one.bytes is None for one in copies):
            assert any("a few elements" in one.what for one in copies)
        else:
            assert total(copies) == expected


# Links


def test_lines_of_both_programs_have_one_kernel_line(both: Beside, gemm: Exploration) -> None:
    source = {row.line: row for row in both.links.rows}
    gemm_line = next(row for row in source.values() if "T.gemm(" in row.text)
    cuda = both.lane.code.lines
    assert any("wgmma_ss" in cuda[number - 1].text for number in gemm_line.gpu)
    assert (gemm_line.ours["reader"], gemm_line.ours["writer"]) == ((), ())
    compute = gemm.files["compute.cpp"].lines
    assert any("matmul_block(" in compute[number - 1].text for number in gemm_line.ours["compute"])
    # And back: each line is linked to the kernel line that it says.
    for row in source.values():
        for number in row.gpu:
            assert row.line in {origin.span.line for origin in cuda[number - 1].origins}
    assert both.links[gemm_line.line] is gemm_line
    assert both.links.gpu_share == both.lane.linked_share
    assert both.links.our_share > 0.9


def test_unknown_lines_and_concepts(both: Beside) -> None:
    with pytest.raises(UsageError, match="line 9 is not in the kernel") as caught:
        both.links[9]
    assert caught.value.hint == "its lines are 10 to 31"
    with pytest.raises(UsageError, match="there is no concept 'share memory'") as caught:
        both.concepts["share memory"]
    assert "did you mean shared memory?" in caught.value.hint


# Passes


def test_every_pass_has_one_purpose() -> None:
    named = [name for one in purposes() for name in one.gpu]
    assert len(named) == len(set(named))
    recorded: set[str] = set()
    for name in KERNELS:
        ours = kernel(name)
        recorded |= {step.name for target in TARGETS for step in ours.gpu(target, environment=NONE).steps}
    assert set(named) == recorded
    assert {letter for one in purposes() for letter in one.ours} == {step.letter for step in PIPELINE}
    assert set(former_passes()).isdisjoint(recorded)
    assert {name for name in former_passes().values() if name} <= recorded


def test_rows_have_the_steps_of_both_lanes(both: Beside, gemm: Exploration) -> None:
    rows = {row.purpose.name: row for row in both.passes.rows}
    tiles = rows["lower tile operations"]
    assert [(step.letter, step.changed_ir) for step in (*tiles.gpu, *tiles.ours)] == [("L23", True), ("C2", True)]
    listed = [step.index for row in both.passes.rows for step in row.gpu]
    assert sorted(listed) == list(range(len(both.lane.steps)))
    assert {step.letter for row in both.passes.rows for step in row.ours} == {step.letter for step in gemm.steps}


# The documents: passes that the analysis of both pipelines lists, and where it stands them side by side.

GPU_PASSES = (
    "BindTarget", "LetInline", "AddWrapperForSingleBufStore", "InjectAssumes", "Simplify", "LayoutReducer",
    "LayoutInference", "LowerTileOp", "LowerL2Persistent", "LegalizeVectorizedLoop", "LegalizeSafeMemoryAccess",
    "LoopVectorizeDynamic", "LowerSharedBarrier", "LowerSharedTmem", "IfStmtBinding", "MultiVersionBuffer",
    "WarpSpecialized", "InjectTmaBarrier", "AnnotateWarpGroupRegAlloc", "PipelinePlanning",
    "InjectSoftwarePipeline", "LowerOpaqueBlock", "MergeIfStmt", "RewriteWgmmaSync", "InjectFenceProxy",
    "PlanAndUpdateBufferAllocationLocation", "NarrowDataType", "FlattenBuffer", "ConfigIndexBitwidth",
    "VectorizeLoop", "StorageRewrite", "UnrollLoop", "RenormalizeSplitPattern", "RemoveNoOp", "RewriteUnsafeSelect",
    "HoistIfThenElse", "VerifyMemory", "AnnotateEntryFunc", "InferFragment", "LowerThreadAllreduce",
    "LowerHopperIntrin", "ThreadSync", "AnnotateDeviceRegions", "SplitHostDevice", "MergeSharedMemoryAllocations",
    "InjectPTXAsyncCopy", "MakePackedAPI", "LowerDeviceKernelLaunch", "PersistThreadblock",
    "LowerDeviceStorageAccessInfo", "LowerIntrin",
)  # fmt: skip
PAIRS = (
    ("LayoutInference", "A1"), ("LowerTileOp", "C2"), ("WarpSpecialized", "D1"), ("SplitHostDevice", "D1"),
    ("InjectSoftwarePipeline", "A2"), ("InjectSoftwarePipeline", "D3"), ("InferFragment", "D4"),
    ("InferFragment", "D5"),
)  # fmt: skip


def test_the_passes_of_the_documents() -> None:
    known = {name: one for one in purposes() for name in one.gpu}
    for name in GPU_PASSES:
        assert name in known or name in former_passes(), name
    for name, letter in PAIRS:
        assert letter in known[former_passes().get(name, name)].ours, (name, letter)


@pytest.mark.parametrize("name", KERNELS)
def test_where_the_documents_differ_from_tilelang_today(name: str) -> None:
    """They say that InferFragment finds the tensor cores, and SplitHostDevice splits: both leave the program as it is;
    LowerTileOp and LowerHopperIntrin write the products, Filter separates host and device."""
    lanes = [kernel(name).gpu(target, environment=NONE) for target in TARGETS]
    lowered = [lane for lane in lanes if lane.error is None]
    assert lowered
    for lane in lowered:
        changed = {step.name for step in lane.steps if step.record.changed_ir}
        assert {"InferFragment", "SplitHostDevice"} <= {step.name for step in lane.steps} - changed
        assert {"LowerTileOp", "Filter"} <= changed
        assert ("LowerHopperIntrin" in changed) is lane.arch.startswith("sm_")


def test_where_the_products_of_hopper_come_from(both: Beside) -> None:
    assert "wgmma" in both.lane.steps["LowerHopperIntrin"].record.before.text


# The documents' tables, row by row: what they state, as words that the cells of these programs must have.
TOPICS = {
    "authoring": {
        "Launch unit": ("blocks of 256 threads", "work items on 4 of 64 cores"),
        "Kernel body indexers": ("blockIdx.*threadIdx", "arguments of each core"),
        "Thread-level parallelism": ("warps of the block.*compute", "reader, compute, writer"),
        "Persistent execution": ("MaterializeKernelLaunch", "at most 1 each.*grid_to_core_grid"),
        "Data staging": ("TMA copies.*shared memory", "async_read.*compute to writer.*A_shared, reader to compute"),
        "SW pipelining": ("shared memory.*InjectSoftwarePipeline", "2 blocks deep: A_shared"),
        "Block / tile size": ("wgmma 64×128×16", "tiles of 32×32 Float16_b, 2,048 bytes"),
        "Work distribution": ("blocks of 256 threads", "contiguous: 1 to 1 work items on each of 4 cores"),
        "Multicast / reuse": ("L2 of H100", "read by all cores"),
        "Synchronization": ("__syncthreads.*mbarrier", "wait_front.*push_back"),
        "Tuning knobs": ("blocks at once on each SM.*256 threads.*32 KiB", "of 64 cores work.*math_fidelity=HiFi4"),
        "Annotations (TileLang)": ("none of ours", "none in the kernel"),
        "Fallbacks / libraries": ("TileLang's templates", "headers of the SDK"),
        "Debugging": ("[0-9]+ passes", f"{len(PIPELINE)} steps.*tt.plan.json"),
    },
    "execution": {
        "Execution": ("blocks of 256 threads", "at most 1 each"),
        "Parallelism": ("blocks at once.*132 SMs", "4 × of 64 cores work"),
        "Memory": ("shared memory.*L2 of H100", "A_shared, reader to compute"),
        "Data Movement": ("TMA copies", "async_read.*async_write"),
        "Tile Size": ("fragments of a thread", "tiles of 32×32"),
        "Compute": ("wgmma", "matmul_block"),
        "Synchronization": ("__syncthreads", "reserve_back.*pop_front"),
        "Programming Model": ("128 threads", "3 × kernels on each core"),
    },
    "tensor cores": {
        "Pattern Detection": ("by L23 LowerTileOp$", "lower_tt_tile_intrinsics"),
        "Annotation Method": ("fragments of a thread.*LayoutInference", "DST"),
        "Intrinsic Insertion": ("wgmma.*LowerHopperIntrin", "matmul_block.*lower_tt_tile_intrinsics"),
        "Codegen Role": ("kernel.cu, [0-9]+ lines.*codegen", "reader.cpp.*compute.cpp.*writer.cpp"),
        "IR Representation": ("wgmma", "insert_compute_init, D5 insert_dst_management"),
        "Device Splitting": ("Filter", "D1 split_device_kernel"),
    },
}


@pytest.mark.parametrize("table", TOPICS)
def test_the_tables_of_the_documents(both: Beside, table: str) -> None:
    found = both.tables[table]
    assert [row.name for row in found.rows] == list(TOPICS[table])
    for name, (gpu, ours) in TOPICS[table].items():
        row = found[name]
        assert re.search(gpu, " ".join(row.gpu)), (name, row.gpu)
        assert re.search(ours, " ".join(row.ours)), (name, row.ours)
    assert f"{table}: sm_90a beside wormhole_n150" in str(found)
    assert all(escape(one) in found._repr_html_() for row in found.rows for one in (*row.gpu, *row.ours))
    with pytest.raises(UsageError, match="there is no topic 'Debuging'"):
        found["Debuging"]


@pytest.mark.parametrize("name", KERNELS)
def test_the_tables_of_all_lanes(name: str) -> None:
    """Blocks and work items are as many; only what a kernel does not do is empty: softmax multiplies no matrices, and
    its threads do not wait for one another."""
    nothing: set[str] = {"IR Representation", "Synchronization"} if name == "softmax" else set()
    ours = kernel(name)
    assert ours.plan.partition is not None
    for target in TARGETS:
        lane = ours.gpu(target, environment=NONE)
        if lane.error is not None:
            continue
        tables = ours.beside(lane).tables
        launched = tables["authoring"]["Launch unit"]
        for cell in (launched.gpu, launched.ours):
            assert int(cell[0].partition(" ×")[0]) == ours.plan.partition.work_items
        empty = {row.name for table in tables.values() for row in table.rows if not row.gpu or not row.ours}
        assert empty == nothing, target


def test_the_numbers_of_the_documents(both: Beside) -> None:
    """Tiles of 32x32 with 2 KB for 16 bits, and 64 to 120 cores; L1 has more than the 1 MB that they say."""
    assert DATA_FORMATS["Float16_b"].tile_bytes == 32 * 32 * 2
    assert all(64 <= chip.cores <= 120 for chip in CHIPS.values())
    assert all(chip.l1_bytes > 1 << 20 for chip in CHIPS.values())


# What is refused, and what is shown


def test_lanes_of_other_kernels_are_refused(gemm: Exploration, both: Beside) -> None:
    other = ttx.explore(KERNELS["matmul"][0], M=256, N=256, K=512)
    with pytest.raises(UsageError, match="the lane is of another kernel than matmul, or of one with other arguments"):
        other.beside(both.lane)
    with pytest.raises(UsageError, match="the lane is 3"):
        gemm.beside(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="there is no architecture"):
        gemm.beside("sm_1")
    assert gemm.fork(target="blackhole_p150").beside(both.lane).concepts["grid"].ours[0].what.startswith("work items")


def test_a_kernel_with_several_launches_has_no_one_program() -> None:
    from tests.corpus.launches import two_products

    with pytest.raises(UsageError, match="each with files of its own"):
        ttx.explore(two_products()).beside()


def test_of_a_failed_lane_the_passes_are_known() -> None:
    ours = kernel("causal_attention")
    found = ours.beside(ours.gpu("sm_80", environment=NONE))
    assert any(row.gpu and row.gpu[-1].error for row in found.passes.rows)
    for name in ("links", "concepts"):
        with pytest.raises(BackendError, match="a pass of TileLang failed"):
            getattr(found, name)


def test_texts_and_pages(both: Beside) -> None:
    text = str(both)
    for part in (
        "96 × TMA copies, 512 KiB  [kernel.cu 47, 51]", "matmul_block, 16,777,216 multiply-adds", "not in this program",
        "● L23 LowerTileOp", "of the lines for sm_90a", "T.gemm(A_shared, B_shared, C_local)",
    ):  # fmt: skip
        assert part in text, part
    html = both._repr_html_()
    for part in ("TMA copies", "multiply-adds", "LowerTileOp", "tl::wgmma_ss&lt;", "<summary>"):
        assert part in html, part
    assert len(html.encode()) < 120_000
    assert repr(both) == "<matmul for sm_90a beside wormhole_n150>"
    assert repr(both.concepts) == "<concepts of matmul: sm_90a beside wormhole_n150, 13 rows>"
    assert repr(both.links) == "<links of 22 lines: 6 in both programs>"
    for part in (both.concepts, both.links, both.passes):
        assert part._repr_html_().startswith('<div class="ttx"')


def test_names_of_a_kernel_cannot_break_the_page(both: Beside) -> None:
    rows = tuple(dataclasses.replace(row, text="<script>") for row in both.links.rows)
    assert "<script>" not in dataclasses.replace(both.links, rows=rows)._repr_html_()
