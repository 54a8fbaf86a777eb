"""Each lint rule on a good kernel that is made bad in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typecheck.lint import lint

KERNELS_FOLDER = Path(__file__).parent / "kernels"

# (kernel, what stands there, what is planted, the complaint)
PLANTED = [
    ("compute", "copy_init(24)", "copy_tile_init(24)", "copy_tile_init is deprecated"),
    ("compute", "add_init(24, 2)", "add_tiles_init(24, 2)", "add_tiles_init was removed from the SDK"),
    ("compute", "add_init(24, 2)", "add_bcast_rows_init_short(24, 2)",
     "add_bcast_rows_init_short was removed from the SDK"),
    ("compute", "void kernel_main()", "void MAIN", "void MAIN: the entry is void kernel_main()"),
    ("compute", "api/compute/matmul.h", "compute_kernel_api/matmul.h",
     '#include "compute_kernel_api/matmul.h": headers lie below api/'),
    ("compute", "relu_tile_init();", "DPRINT << 1;", "DPRINT <<: DPRINT takes a format string"),
    ("compute", "    add_init(24, 2);\n", "", "add_tiles runs under matmul_block_init; it needs add_init"),
    ("compute", "            matmul_block_init(0, 1, 0, 1, 1, 1);\n", "",
     "matmul_block runs under copy_init; it needs matmul_block_init"),
    ("compute", "    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 24);\n", "",
     "compute_kernel_hw_startup must be called once, before any init"),
    ("compute", "add_init(24, 2)", "compute_kernel_hw_startup(24, 2, 16)",
     "compute_kernel_hw_startup must be called once, before any init"),
    ("compute", "relu_tile_init()", "reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(24, 2, 16)",
     "reduce_init without reduce_uninit"),
    ("compute", "    tile_regs_release();\n    out", "    out", "no tile_regs_release at the end of the last section"),
    ("compute", "tile_regs_commit();\n    tile_regs_wait();", "tile_regs_wait();",
     "tile_regs_wait where tile_regs_commit must come"),
    ("compute", "out(16)", "out(32)", "circular buffer 32; wormhole_b0 has 32"),
    ("compute", "pack_tile(0, 16)", "pack_tile(8, 16)", "DST tile 8; this configuration has 8"),
    ("reader", "        }\n        noc.async_read_barrier();", "            noc.async_read_barrier();\n        }",
     "a read barrier for each page; wait once for the block, before push_back"),
    ("reader", "        noc.async_read_barrier();\n", "", "push_back before async_read_barrier"),
    ("reader", "TensorAccessor(source_args, get_common_arg_val<uint32_t>(0))", "TensorAccessor()",
     "TensorAccessor(): an accessor needs its arguments"),
    ("reader", "Noc noc;", "InterleavedAddrGenFast<true> noc;",
     "InterleavedAddrGenFast is deprecated; use TensorAccessor"),
    ("writer", "noc.async_writes_flushed();", "noc.async_write_barrier();",
     "a write barrier in a loop; flush there, and wait once at the end"),
    ("writer", "        noc.async_writes_flushed();\n", "", "pop_front before async_writes_flushed"),
    ("writer", "    noc.async_write_barrier();\n", "", "no async_write_barrier before the kernel ends"),
]  # fmt: skip


@pytest.mark.parametrize(("role", "good", "bad", "complaint"), PLANTED, ids=[planted[3] for planted in PLANTED])
def test_planted_fault(role: str, good: str, bad: str, complaint: str) -> None:
    text = (KERNELS_FOLDER / f"{role}.cpp").read_text(encoding="utf-8")
    assert text.count(good) == 1
    messages = lint(text.replace(good, bad))
    assert complaint in [message.partition(": ")[2] for message in messages]


@pytest.mark.parametrize("role", ["reader", "compute", "writer"])
def test_good_kernel(role: str) -> None:
    assert lint((KERNELS_FOLDER / f"{role}.cpp").read_text(encoding="utf-8")) == []


def test_line_and_comments() -> None:
    assert lint("// mm_init\n/* mm_init\n*/\nmm_init(0, 1);\n") == ["line 4: mm_init was removed from the SDK"]


def test_limits_of_the_target() -> None:
    text = (KERNELS_FOLDER / "compute.cpp").read_text(encoding="utf-8").replace("out(16)", "out(40)")
    assert lint(text, arch="blackhole") == []
    assert lint(text.replace("pack_tile(0, 24)", "pack_tile(5, 24)"), arch="blackhole", dst_tiles=4) == [
        "line 39: DST tile 5; this configuration has 4"
    ]


def test_elements_that_are_written_by_a_function_are_waited_for() -> None:
    text = "void write_element() {\n async_write();\n}\nvoid kernel_main() {\n write_element(noc);\n a.pop_front(1);\n"
    end = " noc.async_write_barrier();\n}\n"
    assert lint(text + end) == ["line 6: pop_front before async_writes_flushed"]
    assert lint(text.replace(" a.", " noc.async_writes_flushed();\n a.") + end) == []
    assert lint(text.replace(" write_element(noc);\n", "") + end) == []
