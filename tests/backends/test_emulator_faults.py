"""Every fault that the emulator finds says what, where (kernel, core, line), with which numbers, and the way out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

from tests.backends.programs import (
    FLOAT32,
    Buffer,
    Compute,
    Kernel,
    Tensor,
    matmul_program,
    program,
    reader,
    tile_compute,
    tile_program,
    with_text,
    writer,
)
from ttexplore.backends.base import (
    BlockedKernel,
    CppLocation,
    Deadlock,
    KernelFault,
    Program,
    ordered_layouts,
    storage_dtype,
)
from ttexplore.backends.emulator import Emulator
from ttexplore.plan import CoreWork, KernelRole

COPY = "copy_init(0); copy_tile(0, t, 0);"
ADD = "add_init(0, 1); add_tiles(0, 1, t, t, 0);"
A, B = Tensor("a", (64, 64)), Tensor("b", (64, 64))
WIDE_A = Tensor("a", (64, 64), dtype=FLOAT32)


def add_program(body: str = ADD, compute: Compute | None = None) -> Program:
    return tile_program(body, [A, B], compute=compute)


def copy_program(body: str = COPY, before: str = "", compute: Compute | None = None) -> Program:
    return tile_program(body, [A], before=before, compute=compute)


def fault_of(broken: Program) -> KernelFault:
    layouts = [layout for layout in ordered_layouts(broken.plan) if layout.role != "output"]
    inputs = [np.ones(layout.shape, storage_dtype(layout)) for layout in layouts]
    with pytest.raises(KernelFault) as caught:
        Emulator().run(broken, inputs, time_limit_seconds=20)
    return caught.value


@dataclass(frozen=True)
class Case:
    program: Program
    message: str
    hint: str
    kernel: KernelRole | None = "compute"


def in_reader(old: str, new: str) -> Program:
    return with_text(copy_program(), "reader", old, new)


def in_writer(old: str, new: str) -> Program:
    return with_text(copy_program(), "writer", old, new)


def in_compute(old: str, new: str) -> Program:
    return with_text(copy_program(), "compute", old, new)


def shallow(pages: int) -> Program:
    """The copy program with `pages` pages in the input buffer."""
    return program(
        {"reader": reader({"a": 4}), "compute": tile_compute("(0, 16)", COPY, [0], 4), "writer": writer("out", 4)},
        [A, Tensor("out", (64, 64), "output")],
        [Buffer(0, pages), Buffer(16, 2)],
        [CoreWork(0, 0, 1, {"first": 0})],
    )


def straddling(pushed: int) -> Program:
    """Six tiles in blocks of `pushed`, taken in blocks of two, in a buffer of five."""
    read = reader({"a": pushed})
    start = read.text.index("    a_buffer.reserve_back")
    block = read.text[start : read.text.rindex("}")]
    consume = (
        "void kernel_main() {\n    DataflowBuffer a(0);\n" + 3 * "    a.wait_front(2);\n    a.pop_front(2);\n" + "}\n"
    )
    return program(
        {
            "reader": replace(read, text=read.text[:start] + 6 // pushed * f"    {{\n{block}    }}\n" + "}\n"),
            "compute": Kernel('#include "api/dataflow/dataflow_buffer.h"\n' + consume),
            "writer": Kernel("void kernel_main() {}\n"),
        },
        [A],
        [Buffer(0, 5)],
        [CoreWork(0, 0, 1, {"first": 0})],
    )


def after_barrier(statements: str) -> Program:
    """The copy program whose reader also does `statements` after its barrier."""
    return in_reader("noc.async_read_barrier();", f"noc.async_read_barrier();\n    {statements}")


def misplaced(statements: str) -> Program:
    """The copy program whose reader holds `statements` of a compute kernel."""
    includes = '#include "api/compute/eltwise_unary/relu.h"\n#include "api/compute/tile_move_copy.h"\n'
    main = in_reader("    Noc noc;", f"    {statements}\n    Noc noc;")
    return with_text(main, "reader", "#include <cstdint>\n", f"#include <cstdint>\n{includes}")


MAXIMA = (
    "sfpu_reduce_init<PoolType::MAX, DataFormat::{0}>(); "
    "sfpu_reduce<PoolType::MAX, DataFormat::{0}, ReduceDim::REDUCE_{1}>(0);"
)
INIT = "ReduceDim::REDUCE_ROW"
CASES: dict[str, Case] = {
    # circular buffers
    "wait for more than the buffer holds": Case(
        shallow(2),
        "reserve_back of 4 tiles on circular buffer 0 (cb0), which holds 2",
        "enlarge the circular buffer",
        "reader",
    ),
    "wait for more tiles than fit": Case(
        in_compute("DataflowBuffer(0).wait_front(4)", "DataflowBuffer(0).wait_front(5)"),
        "wait_front of 5 tiles on circular buffer 0 (cb0), which holds 4",
        "this would wait forever",
    ),
    "push without reserve": Case(
        in_reader("a_buffer.reserve_back(4);", ""),
        "a transfer to bytes 0 to 2048 of the back of circular buffer 0 (cb0), but 0 tiles (0 bytes) are reserved",
        "reserve_back()",
        "reader",
    ),
    "push of more than is reserved": Case(
        in_reader("push_back(4)", "push_back(5)"),
        "push_back of 5 tiles on circular buffer 0 (cb0), but 4 are reserved",
        "reserve_back(5)",
        "reader",
    ),
    "push of a tile that nobody wrote": Case(
        in_reader("t < 4", "t < 3"), "nothing was written to tile 3 of them", "before it is pushed", "reader"
    ),
    "block that straddles the end": Case(
        straddling(2),
        "a transfer of 2 tiles at position 4 of circular buffer 0 (cb0) straddles its end: it holds 5 tiles",
        "make the capacity a multiple of every push and pop",
        "reader",
    ),
    "pop that straddles the end": Case(
        straddling(1),
        "pop_front of 2 tiles at position 4 of circular buffer 0 (cb0) straddles its end: it holds 5 tiles",
        "make the capacity a multiple of every push and pop",
    ),
    "pop of more than was waited for": Case(
        in_compute("DataflowBuffer(0).pop_front(4)", "DataflowBuffer(0).pop_front(5)"),
        "pop_front of 5 tiles on circular buffer 0 (cb0), but 4 were waited for (4 are there)",
        "wait_front(5)",
    ),
    "reading a tile that was not waited for": Case(
        in_compute("DataflowBuffer(0).wait_front(4)", "DataflowBuffer(0).wait_front(1)"),
        "copy_tile reads tile 1 of circular buffer 0 (cb0), but 1 tiles were waited for",
        "wait_front(2)",
    ),
    "packing beyond what is reserved": Case(
        in_compute("pack_tile(0, 16)", "pack_tile(0, 16); pack_tile(0, 16)"),
        "pack_tile writes tile 1 of circular buffer 16 (cb16), but 1 tiles are reserved",
        "reserve_back(2)",
    ),
    "packing out of order beyond what is reserved": Case(
        in_compute("pack_tile(0, 16)", "pack_tile<true>(0, 16, 3)"), "pack_tile writes tile 3", "reserve_back(4)"
    ),
    "tiles left at the end": Case(
        in_compute("DataflowBuffer(0).pop_front(4)", "DataflowBuffer(0).pop_front(3)"),
        "core (0, 0) ends with 1 tiles left in circular buffer 0 (cb0)",
        "balance pushes and pops",
        None,
    ),
    "two producers": Case(
        in_compute(
            "DataflowBuffer(0).wait_front(4)", "DataflowBuffer(0).wait_front(4); DataflowBuffer(0).reserve_back(1)"
        ),
        "circular buffer 0 (cb0) is filled by the reader kernel and now also by the compute kernel",
        "one producer and one consumer",
    ),
    "a buffer that does not exist": Case(
        in_compute("pack_tile(0, 16)", "pack_tile(0, 17)"), "circular buffer 17 does not exist", "correct the id"
    ),
    # NoC
    "push before the read barrier": Case(
        in_reader("noc.async_read_barrier();", ""),
        "push_back on circular buffer 0 (cb0) while 4 NoC reads into it are in flight",
        "async_read_barrier()",
        "reader",
    ),
    "pop before the writes are flushed": Case(
        in_writer("noc.async_writes_flushed();", ""),
        "pop_front on circular buffer 16 (cb16) while 1 NoC writes from it are in flight",
        "async_writes_flushed()",
        "writer",
    ),
    "no read barrier at the end": Case(
        in_reader("noc.async_read_barrier();\n    a_buffer.push_back(4);", ""),
        "the kernel ends with 4 NoC reads in flight",
        "noc.async_read_barrier()",
        "reader",
    ),
    "no write barrier at the end": Case(
        in_writer("noc.async_write_barrier();", ""),
        "the kernel ends with 4 NoC writes in flight",
        "async_write_barrier",
        "writer",
    ),
    "page outside the tensor": Case(
        in_reader("first + t}", "first + t + 1}"), "page 4 of tensor a, which has 4 pages", "row by row", "reader"
    ),
    "more bytes than a page": Case(
        in_reader("a_buffer, a_bytes", "a_buffer, 2 * a_bytes"),
        "a transfer of 4096 bytes at offset 0 of a page of tensor a",
        "within one page",
        "reader",
    ),
    "an address where no tensor is": Case(
        in_reader("get_common_arg_val<uint32_t>(0)", "64"),
        "address 0x40, which is not the address of a tensor",
        "argument order",
        "reader",
    ),
    "a write to an input": Case(
        with_text(copy_program(), "writer", "get_common_arg_val<uint32_t>(0)", "0x20000000"),
        "a write to tensor a, which is an input",
        "address arguments",
        "writer",
    ),
    "unaligned transfer": Case(
        in_reader(
            "a_buffer, a_bytes, {.page_id = first + t}", "a_buffer, 64, {.page_id = first + t, .offset_bytes = 4}"
        ),
        "a transfer between byte 4 of a page and byte 0 of L1: they differ modulo 32",
        "alignment",
        "reader",
    ),
    "sending tiles that were not waited for": Case(
        in_writer("{.offset_bytes = 0}", "{.offset_bytes = 2048}"),
        "a transfer of bytes 2048 to 4096 of the front of circular buffer 16 (cb16), but 1 tiles (2048 bytes)",
        "wait_front()",
        "writer",
    ),
    # arguments
    "runtime argument out of range": Case(
        in_reader("get_arg_val<uint32_t>(0)", "get_arg_val<uint32_t>(1)"),
        "get_arg_val(1), but the kernel has 1 such arguments",
        "from the host",
        "reader",
    ),
    "common argument out of range": Case(
        in_writer("get_common_arg_val<uint32_t>(0)", "get_common_arg_val<uint32_t>(3)"),
        "get_common_arg_val(3), but the kernel has 1 such arguments",
        "from the host",
        "writer",
    ),
    # DST
    "DST tile beyond the capacity": Case(
        copy_program("copy_init(0); copy_tile(0, t, 4); copy_tile(0, t, 0);"),
        "copy_tile uses DST tile 4, but DST holds 4 tiles in this mode (32-bit)",
        "smaller sub-block",
    ),
    "sub-block beyond the capacity": Case(
        with_text(matmul_program(2, 2, 1), "compute", "0, 0, 2, 2, 1)", "1, 0, 2, 2, 1)"),
        "matmul_block of 2 x 2 tiles from DST tile 1, but DST holds 4 tiles",
        "smaller sub-block",
    ),
    "math outside a section": Case(
        in_compute("tile_regs_acquire();", ""), "copy_tile while DST is released", "between tile_regs_acquire()"
    ),
    "pack before the commit": Case(
        in_compute("tile_regs_commit();\n        tile_regs_wait();", ""),
        "pack_tile while DST is acquired",
        "tile_regs_wait()",
    ),
    "wait without commit": Case(
        in_compute("tile_regs_commit();", ""), "tile_regs_wait() while DST is acquired", "packer would wait forever"
    ),
    "release missing": Case(
        in_compute("tile_regs_release();", ""), "tile_regs_acquire() while DST is being packed", "tile_regs_release()"
    ),
    "release missing at the end": Case(
        with_text(tile_program(COPY, [Tensor("a", (32, 32))]), "compute", "tile_regs_release();", ""),
        "the kernel ends with DST in use",
        "tile_regs_release()",
    ),
    # FPU inits
    "no start-up": Case(
        in_compute("compute_kernel_hw_startup(0, 16);", ""),
        "before compute_kernel_hw_startup()",
        "first in kernel_main()",
    ),
    "SFPU before the start-up": Case(
        in_compute("compute_kernel_hw_startup(0, 16);", "relu_tile_init();"),
        "an SFPU operation before compute_kernel_hw_startup()",
        "first in kernel_main()",
    ),
    "FPU operation in the reader": Case(
        misplaced("copy_init(0);"), "a compute operation in a data movement kernel", "to the compute kernel", "reader"
    ),
    "SFPU operation in the reader": Case(
        misplaced("relu_tile_init();"),
        "an SFPU operation in a data movement kernel",
        "to the compute kernel",
        "reader",
    ),
    "no kernel_main": Case(
        in_compute("void kernel_main()", "void main_kernel()"),
        "the compute kernel cannot be loaded",
        "void kernel_main()",
        None,
    ),
    "second start-up": Case(
        in_compute(
            "compute_kernel_hw_startup(0, 16);", "compute_kernel_hw_startup(0, 16); compute_kernel_hw_startup(0, 16);"
        ),
        "a second compute_kernel_hw_startup()",
        "call it once",
    ),
    "no init": Case(copy_program("copy_tile(0, t, 0);"), "copy_tile without copy_init", "call copy_init"),
    "init of another operation": Case(
        add_program("add_init(0, 1); mul_tiles(0, 1, t, t, 0);"),
        "mul_tiles, but the last FPU init is add_init (line",
        "call mul_init again before it",
    ),
    "copy between init and operation": Case(
        add_program("add_init(0, 1); copy_init(0); copy_tile(0, t, 0); add_tiles(0, 1, t, t, 0);"),
        "add_tiles, but the last FPU init is copy_init",
        "inits overwrite each other",
    ),
    "broadcast init for a plain operation": Case(
        add_program("add_bcast_rows_init(0, 1); add_tiles(0, 1, t, t, 0);"),
        "add_tiles, but the last FPU init is add_bcast_rows_init",
        "call add_init again",
    ),
    "matmul init for another sub-block": Case(
        with_text(
            matmul_program(2, 2, 1),
            "compute",
            "matmul_block_init(0, 1, 0, 2, 2, 1)",
            "matmul_block_init(0, 1, 0, 1, 2, 1)",
        ),
        "matmul_block of 2 x 2 tiles (kt_dim 1), but its init",
        "ct_dim, rt_dim and kt_dim",
    ),
    "reduction without uninit": Case(
        add_program(
            f"reduce_init<PoolType::SUM, {INIT}>(0, 1, 16); reduce_tile<PoolType::SUM, {INIT}>(0, 1, t, t, 0); {COPY}"
        ),
        "pack_tile after a reduction without reduce_uninit()",
        "call reduce_uninit()",
    ),
    "minimum on the FPU": Case(
        add_program(
            f"reduce_init<PoolType::MIN, {INIT}>(0, 1, 16); reduce_tile<PoolType::MIN, {INIT}>(0, 1, t, t, 0);"
        ),
        "the FPU has no minimum",
        "negated",
    ),
    "maxima of rows in a tile that was used": Case(
        add_program(
            f"{COPY} reduce_init<PoolType::MAX, ReduceDim::REDUCE_ROW>(0, 1, 16); "
            "reduce_tile<PoolType::MAX, ReduceDim::REDUCE_ROW>(0, 1, t, t, 0);"
        ),
        "reduce_tile<PoolType::MAX> of rows into DST tile 0, which this section has used",
        "a tile that nothing has used",
    ),
    "broadcast without uninit": Case(
        copy_program(
            "unary_bcast_init<BroadcastType::COL>(0); unary_bcast<BroadcastType::COL>(0, t, 0); copy_init(0);"
        ),
        "copy_init after unary_bcast without unary_bcast_uninit",
        "unary_bcast_uninit",
    ),
    "broadcast not undone at the end": Case(
        copy_program("unary_bcast_init<BroadcastType::COL>(0); unary_bcast<BroadcastType::COL>(0, t, 0);"),
        "the kernel ends after unary_bcast without unary_bcast_uninit",
        "unary_bcast_uninit",
    ),
    "row broadcast of bfloat16 into a 32-bit DST": Case(
        copy_program("unary_bcast_init<BroadcastType::ROW>(0); unary_bcast<BroadcastType::ROW>(0, t, 0);"),
        "unary_bcast<BroadcastType::ROW> of circular buffer 0 (cb0) (Float16_b) into a 32-bit DST",
        "add_tiles_bcast_rows",
    ),
    # SFPU inits
    "no SFPU init": Case(
        copy_program(COPY + "relu_tile(0);"),
        "an SFPU operation of relu without relu_tile_init",
        "call relu_tile_init()",
    ),
    "SFPU init overwritten": Case(
        copy_program("exp_tile_init(); recip_tile_init();" + COPY + "exp_tile(0);"),
        "exp_tile after recip_tile_init, which overwrites what exp_tile_init has set",
        "again directly before it",
    ),
    "SFPU init with other template arguments": Case(
        copy_program(COPY + "gelu_tile_init<true>(); gelu_tile<false>(0);"),
        "gelu_tile with other template arguments than its gelu_tile_init",
        "same template arguments",
    ),
    "SFPU operation on no face": Case(
        copy_program(COPY + "exp_tile_init(); exp_tile(0, VectorMode::None);"), "vector mode 0", "use VectorMode::RC"
    ),
    "where for the other DST width": Case(
        copy_program(COPY + "where_tile_init(); where_tile<DataFormat::Float16_b>(0, 1, 2, 0);"),
        "where_tile<DataFormat::Float16_b> with a 32-bit DST",
        "name the width of DST",
    ),
    "reduction for the other DST width": Case(
        copy_program(COPY + MAXIMA.format("Float16_b", "ROW")),
        "sfpu_reduce in DataFormat::Float16_b with a 32-bit DST",
        "name the format in DST",
    ),
    "reduction of several tiles": Case(
        copy_program(COPY + MAXIMA.format("Float32", "ROW").replace("(0)", "(0, 2, 1)")),
        "sfpu_reduce of 2 tiles for PoolType 2 in DataFormat 0",
        "the emulator has it for one tile",
    ),
    "maxima of columns under the init of those of rows": Case(
        copy_program(
            COPY + MAXIMA.format("Float32", "ROW") + "sfpu_reduce<PoolType::MAX, DataFormat::Float32, "
            "ReduceDim::REDUCE_COL>(0);"
        ),
        "sfpu_reduce along columns after one along rows, which overwrites what sfpu_reduce_init has set",
        "again directly before it",
    ),
    "a reduction without its init": Case(
        copy_program(
            "sfpu_reduce_init<PoolType::SUM, DataFormat::Float32>();"
            + COPY
            + MAXIMA.format("Float32", "ROW").partition(";")[2]
        ),
        "sfpu_reduce with other template arguments than its sfpu_reduce_init",
        "same template arguments",
    ),
    "an operation after the init of a reduction": Case(
        copy_program("negative_tile_init();" + COPY + MAXIMA.format("Float32", "ROW") + "negative_tile(0);"),
        "negative_tile after sfpu_reduce_init, which overwrites what negative_tile_init has set",
        "again directly before it",
    ),
    "typecast with 16-bit DST": Case(
        copy_program(
            COPY + "typecast_tile_init<(uint32_t)DataFormat::Float16_b, (uint32_t)DataFormat::Float32>(); "
            "typecast_tile<(uint32_t)DataFormat::Float16_b, (uint32_t)DataFormat::Float32>(0);",
            compute=Compute(wide=False),
        ),
        "typecast_tile into a 16-bit DST",
        "fp32_dest_acc_en",
    ),
    # formats
    "source format not reconfigured": Case(
        tile_program(
            "add_init(0, 1); add_tiles(0, 1, t, t, 0);", [A, Tensor("b", (64, 64), dtype=FLOAT32)], startup="(0, 16)"
        ),
        "reads circular buffer 1 (cb1) (Float32) through SrcB, which is set to Float16_b",
        "reconfig_data_format_srcb(1)",
    ),
    "matmul start-up in the wrong order": Case(
        with_text(
            program(
                {
                    "reader": reader({"a": 1, "b": 1}),
                    "compute": tile_compute(
                        "<SrcOrder::Reverse>(0, 1, 16)", "matmul_init(0, 1); matmul_tiles(0, 1, 0, 0, 0);", [0, 1], 1
                    ),
                    "writer": writer("out", 1),
                },
                [Tensor("a", (32, 32)), Tensor("b", (32, 32), dtype=FLOAT32), Tensor("out", (32, 32), "output")],
                [Buffer(0, 1), Buffer(1, 1, FLOAT32), Buffer(16, 1)],
                [CoreWork(0, 0, 1, {"first": 0})],
            ),
            "compute",
            "<SrcOrder::Reverse>",
            "",
        ),
        "matmul_tiles reads circular buffer 1 (cb1) (Float32) through SrcA, which is set to Float16_b",
        "reconfig_data_format_srca(1)",
    ),
    "init was for another format": Case(
        tile_program(
            "add_init(0, 0); reconfig_data_format_srcb(1); add_tiles(0, 1, t, t, 0);",
            [A, Tensor("b", (64, 64), dtype=FLOAT32)],
            startup="(0, 16)",
        ),
        "add_tiles on circular buffer 0 (cb0) and circular buffer 1 (cb1), but its init",
        "add_init again",
    ),
    "pack format not reconfigured": Case(
        with_text(tile_program(COPY, [A], out_dtype=FLOAT32), "compute", "startup(0, 16)", "startup(0, 0)"),
        "pack_tile to circular buffer 16 (cb16) (Float32) while the packer is set to Float16_b",
        "pack_reconfig_data_format(16)",
    ),
    "a buffer unpacked to DST in the FPU": Case(
        tile_program(ADD, [WIDE_A, Tensor("b", (64, 64), dtype=FLOAT32)], unpack_to_dest=True),
        "reads circular buffer 0 (cb0), which is unpacked to DST, through the FPU",
        "copy it to DST instead",
    ),
    "unpack to a 16-bit DST": Case(
        tile_program(COPY, [WIDE_A], unpack_to_dest=True, compute=Compute(wide=False)),
        "copy_tile of circular buffer 0 (cb0), which is unpacked to DST, into a 16-bit DST",
        "fp32_dest_acc_en",
    ),
    "accumulating in L1 on nothing": Case(
        copy_program(before="pack_reconfig_l1_acc(1);"),
        "pack_tile adds to tile 0 of circular buffer 16 (cb16), where nothing was packed yet",
        "pack_reconfig_l1_acc(0) for the first block",
    ),
    # reductions
    "scaler that is not one value": Case(
        tile_program(
            f"reduce_init<PoolType::MAX, {INIT}>(0, 1, 16); reduce_tile<PoolType::MAX, {INIT}>(0, 1, t, t, 0);",
            [Tensor("a", (32, 32)), Tensor("s", (1, 32))],  # the padding is 0
        ),
        "the scaler tile in circular buffer 1 (cb1) is not the same value in row 0 of each of its four faces",
        "fill row 0 of every face",
    ),
    # multicast and semaphores
    "multicast with the wrong count": Case(
        after_barrier("Semaphore<> s(0); s.set_multicast(noc, 0, 0, 0, 0, 1);"),
        "a multicast names 1 destinations, but its rectangle has 0",
        "the sender is not one of them",
        "reader",
    ),
    "multicast against the NoC": Case(
        after_barrier("Semaphore<> s(0); s.set_multicast(noc, 1, 0, 0, 0, 1);"),
        "against the direction of NoC 0",
        "smallest coordinates",
        "reader",
    ),
    "a core that is not there": Case(
        after_barrier("Semaphore<>(0).up(noc, 7, 3, 1);"),
        "a transfer to core (7, 3), where no kernel of this program runs",
        "logical core coordinates",
        "reader",
    ),
    "semaphore out of range": Case(
        after_barrier("Semaphore<>(16).set(1);"),
        "semaphore 16; a core has 16",
        "0 to 15",
        "reader",
    ),
    "remote increment without a barrier": Case(
        after_barrier("Semaphore<>(0).up(noc, 0, 0, 1);"),
        "the kernel ends with 1 remote semaphore increments in flight",
        "async_atomic_barrier()",
        "reader",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_is_explained(name: str) -> None:
    case = CASES[name]
    fault = fault_of(case.program)
    assert case.message in fault.message
    assert case.hint in fault.hint
    assert fault.kernel == case.kernel
    if case.kernel is not None:
        assert fault.message.startswith(
            f"{case.kernel} kernel on core (0, 0), {case.kernel}.cpp line {fault.cpp_line}: "
        )


def test_a_maximum_takes_no_scaler() -> None:
    kind = f"PoolType::MAX, {INIT}"
    maximum = tile_program(
        f"reduce_init<{kind}>(0, 1, 16); reduce_tile<{kind}>(0, 1, t, t, 0);",
        [Tensor("a", (32, 32)), Tensor("s", (32, 32))],
    )
    halves = np.full((32, 32), 0.5, ml_dtypes.bfloat16)
    with pytest.raises(KernelFault) as caught:
        Emulator().run(maximum, [halves, halves])
    assert "reduce_tile<PoolType::MAX> with a scaler of 0.5" in caught.value.message
    assert caught.value.hint == "use a scaler of exactly 1 for MAX"


def test_the_line_is_the_line_of_the_call() -> None:
    broken = with_text(copy_program(), "writer", "out_buffer.pop_front(1);", "out_buffer.pop_front(2);")
    lines = broken.texts["writer"].splitlines()
    assert fault_of(broken).cpp_line == 1 + next(i for i, line in enumerate(lines) if "pop_front" in line)


def test_deadlock_names_each_kernel_and_what_would_free_it() -> None:
    broken = with_text(copy_program(), "reader", "push_back(4)", "push_back(2)")
    fault = fault_of(broken)
    assert fault.message.splitlines()[0] == "deadlock: no kernel can proceed. On core (0, 0):"
    assert "reader has finished" in fault.message
    assert "wait_front(4) on circular buffer 0 (cb0), which has 2 of 4 tiles" in fault.message
    assert "wait_front(1) on circular buffer 16 (cb16), which has 0 of 2 tiles" in fault.message
    assert "1 of 1 cores are blocked" in fault.message
    assert fault.hint.startswith(
        "to continue: 2 more tiles pushed to circular buffer 0 (cb0) (its producer: reader, which has finished); or "
    )
    assert isinstance(fault, Deadlock)
    texts = broken.texts
    assert fault.waits == (
        BlockedKernel("compute", "wait_front", 0, 4, 2, 4, line_of(texts["compute"], "wait_front(4)"),
             "wait_front(4) on circular buffer 0 (cb0), which has 2 of 4 tiles"),
        BlockedKernel("writer", "wait_front", 16, 1, 0, 2, line_of(texts["writer"], "wait_front"),
             "wait_front(1) on circular buffer 16 (cb16), which has 0 of 2 tiles"),
    )  # fmt: skip
    assert fault.places == tuple(CppLocation(one.kernel, one.cpp_line, one.what, stuck=True) for one in fault.waits)
    assert (fault.kernel, fault.cpp_line, fault.core) == ("compute", fault.waits[0].cpp_line, 0)
    assert fault.events is not None
    assert fault.events.total == len(fault.events.records) > 0
    finished = fault.events.records["operation"] == fault.events.operations.index("finish")
    assert fault.events.records["kernel"][finished].tolist() == [fault.events.kernels.index("reader")]


def line_of(text: str, part: str) -> int:
    return 1 + next(i for i, line in enumerate(text.splitlines()) if part in line)


def test_deadlock_of_a_full_buffer() -> None:
    broken = with_text(copy_program(), "writer", "t < 4", "t < 1")
    fault = fault_of(broken)
    assert "reserve_back(1) on circular buffer 16 (cb16), which has 0 of 2 tiles free" in fault.message
    assert "1 more tiles popped from circular buffer 16 (cb16) (its consumer: writer, which has finished)" in fault.hint
    assert isinstance(fault, Deadlock)
    assert [(wait.operation, wait.needed, wait.there, wait.capacity) for wait in fault.waits] == [
        ("reserve_back", 1, 0, 2)
    ]


def test_deadlock_of_a_semaphore() -> None:
    broken = with_text(copy_program(), "reader", "    Noc noc;", "    Noc noc;\n    Semaphore<>(3).wait(2);")
    fault = fault_of(broken)
    assert "semaphore 3 waits for 2, it is 0" in fault.message
    assert "semaphore 3 raised to 2" in fault.hint
    assert isinstance(fault, Deadlock)
    assert (fault.waits[0].operation, fault.waits[0].number, fault.waits[0].needed) == ("semaphore", 3, 2)


def test_what_was_never_written_is_nan_and_counted() -> None:
    partial = with_text(copy_program(), "writer", "noc.async_write(", "if (t != 2) noc.async_write(")
    execution = Emulator().run(partial, [np.ones((64, 64), ml_dtypes.bfloat16)])
    out = execution.outputs[0].astype(np.float32)
    assert np.isnan(out[32:, :32]).all()
    assert np.isfinite(out[:32]).all()
    assert execution.message.endswith("; 1 pages of out were never written")
