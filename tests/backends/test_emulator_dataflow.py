"""Data that moves: partial sums in L1 and through buffers, multicast, core to core, stores through pointers, events."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.backends.programs import (
    COMPUTE,
    DATAFLOW,
    FLOAT32,
    Buffer,
    Kernel,
    Tensor,
    accessor,
    address,
    constant,
    core_value,
    program,
    reader,
    tile_compute,
    tile_program,
    writer,
)
from ttexplore.backends.base import KernelFault, Program
from ttexplore.backends.emulator import Emulator
from ttexplore.plan import CoreWork

BF16 = ml_dtypes.bfloat16
Array = NDArray[Any]

K_TILES = 6

ACCUMULATE = {
    "l1": """
    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 24);
    matmul_block_init(0, 1, 0, 2, 2, 1);
    partials.reserve_back(4);
    for (uint32_t k = 0; k < k_tiles; ++k) {
        a_buffer.wait_front(2);
        b_buffer.wait_front(2);
        pack_reconfig_l1_acc(k == 0 ? 0 : 1);
        tile_regs_acquire();
        matmul_block(0, 1, 0, 0, 0, 0, 2, 2, 1);
        tile_regs_commit();
        tile_regs_wait();
        for (uint32_t t = 0; t < 4; ++t) pack_tile<true>(t, 24, t);
        tile_regs_release();
        a_buffer.pop_front(2);
        b_buffer.pop_front(2);
    }
    partials.push_back(4);
    pack_reconfig_l1_acc(0);
    pack_reconfig_data_format(24, 16);
    reconfig_data_format_srca(1, 24);
    copy_init(24);
    partials.wait_front(4);
    out_buffer.reserve_back(4);
    tile_regs_acquire();
    for (uint32_t t = 0; t < 4; ++t) copy_tile(24, t, t);
    tile_regs_commit();
    tile_regs_wait();
    for (uint32_t t = 0; t < 4; ++t) pack_tile(t, 16);
    tile_regs_release();
    out_buffer.push_back(4);
    partials.pop_front(4);
""",
    "reload": """
    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 24);
    matmul_block_init(0, 1, 0, 2, 2, 1);
    for (uint32_t k = 0; k < k_tiles; ++k) {
        const bool last = k + 1 == k_tiles;
        a_buffer.wait_front(2);
        b_buffer.wait_front(2);
        if (last) pack_reconfig_data_format(24, 16);
        tile_regs_acquire();
        if (k > 0) {
            reconfig_data_format_srca(1, 24);
            copy_init(24);
            partials.wait_front(4);
            for (uint32_t t = 0; t < 4; ++t) copy_tile(24, t, t);
            partials.pop_front(4);
            reconfig_data_format_srca(24, 1);
            matmul_block_init(0, 1, 0, 2, 2, 1);
        }
        matmul_block(0, 1, 0, 0, 0, 0, 2, 2, 1);
        tile_regs_commit();
        DataflowBuffer& destination = last ? out_buffer : partials;
        destination.reserve_back(4);
        tile_regs_wait();
        for (uint32_t t = 0; t < 4; ++t) pack_tile(t, last ? 16 : 24);
        tile_regs_release();
        destination.push_back(4);
        a_buffer.pop_front(2);
        b_buffer.pop_front(2);
    }
""",
}


def accumulating_program(how: str) -> Program:
    """64x64 = 64x192 @ 192x64 on one core, one K tile per step."""
    read = """void kernel_main() {
    constexpr uint32_t k_tiles = get_compile_time_arg_val(0);
    static_assert(k_tiles == get_named_compile_time_arg_val("k_tiles"), "the same argument by index and by name");
    constexpr auto a_args = TensorAccessorArgs<1>();
    constexpr auto b_args = TensorAccessorArgs<a_args.next_compile_time_args_offset()>();
    const auto a = TensorAccessor(a_args, get_common_arg_val<uint32_t>(0));
    const auto b = TensorAccessor(b_args, get_common_arg_val<uint32_t>(1));
    Noc noc;
    DataflowBuffer a_buffer(0);
    DataflowBuffer b_buffer(1);
    for (uint32_t k = 0; k < k_tiles; ++k) {
        a_buffer.reserve_back(2);
        b_buffer.reserve_back(2);
        for (uint32_t i = 0; i < 2; ++i) {
            noc.async_read(a, a_buffer, 2048, {.page_id = i * k_tiles + k}, {.offset_bytes = i * 2048});
            noc.async_read(b, b_buffer, 2048, {.page_id = k * 2 + i}, {.offset_bytes = i * 2048});
        }
        noc.async_read_barrier();
        a_buffer.push_back(2);
        b_buffer.push_back(2);
    }
}
"""
    compute = (
        "void kernel_main() {\n    constexpr uint32_t k_tiles = get_compile_time_arg_val(0);\n"
        + "".join(f"    DataflowBuffer {n}({i});\n" for n, i in (("a_buffer", 0), ("b_buffer", 1), ("out_buffer", 16)))
        + f"    DataflowBuffer partials(24);{ACCUMULATE[how]}}}\n"
    )
    k_tiles = constant("k_tiles", K_TILES)
    return program(
        {
            "reader": Kernel(DATAFLOW + read, (k_tiles, accessor("a"), accessor("b")), (address("a"), address("b"))),
            "compute": Kernel(COMPUTE + compute, (k_tiles,)),
            "writer": writer("out", 4),
        },
        [
            Tensor("a", (64, 32 * K_TILES)),
            Tensor("b", (32 * K_TILES, 64)),
            Tensor("out", (64, 64), "output", FLOAT32),
        ],
        [Buffer(0, 4), Buffer(1, 4), Buffer(16, 4, FLOAT32), Buffer(24, 4, FLOAT32, unpack_to_dest=True)],
        [CoreWork(0, 0, 1, {"first": 0})],
    )


@pytest.mark.parametrize("how", ACCUMULATE)
def test_partial_sums_in_float32(how: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 32 * K_TILES)).astype(BF16)
    b = rng.standard_normal((32 * K_TILES, 64)).astype(BF16)
    out = Emulator(arithmetic="fast").run(accumulating_program(how), [a, b]).outputs[0]
    assert np.abs(out - a.astype(np.float64) @ b.astype(np.float64)).max() < 2e-5


MULTICAST = """void kernel_main() {
    constexpr auto a_args = TensorAccessorArgs<0>();
    const auto a = TensorAccessor(a_args, get_common_arg_val<uint32_t>(0));
    Noc noc;
    DataflowBuffer buffer(0);
    Semaphore<> ready(0), valid(1);
    for (uint32_t step = 0; step < 3; ++step) {
        buffer.reserve_back(2);
        if (get_absolute_logical_x() == 0) {
            for (uint32_t t = 0; t < 2; ++t) {
                noc.async_read(a, buffer, 2048, {.page_id = step * 2 + t}, {.offset_bytes = t * 2048});
            }
            noc.async_read_barrier();
            ready.wait(3);
            ready.set(0);
            noc.async_write_multicast(CoreLocalMem<uint32_t>(buffer.get_write_ptr()), buffer, 4096, 3,
                {.offset_bytes = 0}, {.noc_x_start = 1, .noc_y_start = 0, .noc_x_end = 3, .noc_y_end = 0}, true);
            noc.async_writes_flushed();
            valid.set(1);
            valid.set_multicast(noc, 1, 0, 3, 0, 3);
            noc.async_writes_flushed();
        } else {
            valid.set(0);
            ready.up(noc, 0, 0, 1);
            valid.wait(1);
        }
        buffer.push_back(2);
    }
    noc.async_full_barrier();
}
"""


def test_a_row_of_cores_gets_what_one_core_read() -> None:
    a = np.random.default_rng(0).standard_normal((32, 192)).astype(BF16)
    compute = tile_compute("(0, 16)", "copy_init(0); copy_tile(0, t % 2, 0);", [], 6)
    body = compute.text.replace(
        "out_buffer.reserve_back(1);",
        "if (t % 2 == 0) DataflowBuffer(0).wait_front(2);\n        out_buffer.reserve_back(1);",
    )
    body = body.replace(
        "out_buffer.push_back(1);", "out_buffer.push_back(1);\n        if (t % 2 == 1) DataflowBuffer(0).pop_front(2);"
    )
    four_cores = program(
        {
            "reader": Kernel(DATAFLOW + MULTICAST, (accessor("a"),), (address("a"),)),
            "compute": Kernel(body),
            "writer": writer("out", 6),
        },
        [Tensor("a", (32, 192)), Tensor("out", (4, 32, 192), "output")],
        [Buffer(0, 4), Buffer(16, 2)],
        [CoreWork(x, 0, 1, {"first": 6 * x}) for x in range(4)],
    )
    out = Emulator().run(four_cores, [a]).outputs[0]
    for core in range(4):
        np.testing.assert_array_equal(out[core].astype(np.float32), a.astype(np.float32))


GATHER = """void kernel_main() {
    constexpr auto a_args = TensorAccessorArgs<0>();
    const auto a = TensorAccessor(a_args, get_common_arg_val<uint32_t>(0));
    const uint32_t me = get_arg_val<uint32_t>(0);
    Noc noc;
    DataflowBuffer slots(0);
    Semaphore<> arrived(0);
    if (me == 0) {
        slots.reserve_back(3);
        arrived.wait(3);
        slots.push_back(3);
    } else {
        DataflowBuffer own(1);
        own.reserve_back(1);
        noc.async_read(a, own, 2048, {.page_id = me - 1}, {.offset_bytes = 0});
        noc.async_read_barrier();
        noc.async_write(CoreLocalMem<uint32_t>(own.get_write_ptr()), UnicastEndpoint{}, 2048, {.offset_bytes = 0},
                        {.noc_x = 0, .noc_y = 0, .addr = slots.get_write_ptr() + (me - 1) * 2048});
        noc.async_write_barrier();
        arrived.up(noc, 0, 0, 1);
        noc.async_atomic_barrier();
    }
}
"""


def test_cores_send_their_tiles_to_one_that_adds_them() -> None:
    a = np.random.default_rng(0).integers(-8, 8, (32, 96)).astype(BF16)
    on_root = "if (get_arg_val<uint32_t>(0) != 0) return;\n"
    add = """add_init(0, 0);
        add_tiles(0, 0, 0, 1, 0);
        add_reuse_dest_init<EltwiseBinaryReuseDestType::DEST_TO_SRCA>(0);
        add_reuse_dest_tiles<EltwiseBinaryReuseDestType::DEST_TO_SRCA>(0, 2, 0);"""
    compute = tile_compute("(0, 16)", add, [], 1, before="DataflowBuffer(0).wait_front(3);").text
    compute = compute.replace("kernel_main() {\n", f"kernel_main() {{\n    {on_root}")
    compute = compute[: compute.rindex("}")] + "    DataflowBuffer(0).pop_front(3);\n}\n"
    write = writer("out", 1)
    gather = program(
        {
            "reader": Kernel(DATAFLOW + GATHER, (accessor("a"),), (address("a"),), (core_value("me"),)),
            "compute": Kernel(compute, runtime=(core_value("me"),)),
            "writer": Kernel(
                write.text.replace("kernel_main() {\n", f"kernel_main() {{\n    {on_root}"),
                write.compile_time,
                write.common,
                (core_value("me"),),
            ),
        },
        [Tensor("a", (32, 96)), Tensor("out", (32, 32), "output")],
        [Buffer(0, 3), Buffer(1, 1), Buffer(16, 1)],
        [CoreWork(x % 2, x // 2, 1, {"me": x}) for x in range(4)],
    )
    out = Emulator().run(gather, [a]).outputs[0]
    np.testing.assert_array_equal(out.astype(np.float32), a.astype(np.float32).reshape(32, 3, 32).sum(axis=1))


def test_a_reader_can_fill_a_tile_through_a_pointer() -> None:
    fill = """
    DataflowBuffer mask(1);
    mask.reserve_back(1);
    volatile tt_l1_ptr uint16_t* p = reinterpret_cast<volatile tt_l1_ptr uint16_t*>(mask.get_write_ptr());
    for (uint32_t row = 0; row < 32; ++row)
        for (uint32_t col = 0; col < 32; ++col)
            p[(row / 16 * 2 + col / 16) * 256 + row % 16 * 16 + col % 16] = col <= row ? 0x3F80 : 0;
    mask.push_back(1);
}
"""
    read = reader({"a": 1})
    text = read.text[: read.text.rindex("}")] + fill
    masked = program(
        {
            "reader": Kernel(text, read.compile_time, read.common, read.runtime),
            "compute": tile_compute("(0, 1, 16)", "mul_init(0, 1); mul_tiles(0, 1, 0, 0, 0);", [0, 1], 1),
            "writer": writer("out", 1),
        },
        [Tensor("a", (32, 32)), Tensor("out", (32, 32), "output")],
        [Buffer(0, 1), Buffer(1, 1), Buffer(16, 1)],
        [CoreWork(0, 0, 1, {"first": 0})],
    )
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(BF16)
    out = Emulator().run(masked, [a]).outputs[0]
    np.testing.assert_array_equal(out.astype(np.float32), np.tril(a.astype(np.float32)))


def doubled(*cores: CoreWork) -> Program:
    """Pages of one tensor that cores read and write."""
    return program(
        {
            "reader": reader({"a": 1}),
            "compute": tile_compute("(0, 16)", "add_init(0, 0); add_tiles(0, 0, 0, 0, 0);", [0], 1),
            "writer": writer("a", 1),
        },
        [Tensor("a", (32, 32), "inout")],
        [Buffer(0, 1), Buffer(16, 1)],
        [*cores],
    )


def test_an_inout_tensor_is_read_and_written() -> None:
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(BF16)
    out = Emulator().run(doubled(CoreWork(0, 0, 1, {"first": 0})), [a]).outputs[0]
    np.testing.assert_array_equal(out.astype(np.float32), 2 * a.astype(np.float32))


def test_a_page_that_another_core_has_written_is_not_read() -> None:
    both = doubled(CoreWork(0, 0, 1, {"first": 0}), CoreWork(1, 0, 1, {"first": 0}))
    with pytest.raises(KernelFault, match=r"page 0 of tensor a is read, which core \(0, 0\) has written"):
        Emulator().run(both, [np.ones((32, 32), BF16)])


def test_events_tell_who_did_what_where() -> None:
    emulator = Emulator()
    add = tile_program("copy_init(0); copy_tile(0, t, 0);", [Tensor("a", (64, 64))])
    events = emulator.run(add, [np.ones((64, 64), BF16)]).events
    assert events is not None
    records = events.records
    assert events.total == len(records)
    reads = records[records["operation"] == events.operations.index("read")]
    assert reads["amount"].tolist() == [0, 1, 2, 3]
    assert set(reads["object"]) == {events.tensors.index("a") << 8}
    assert set(reads["kernel"]) == {events.kernels.index("reader")}
    line = 1 + next(i for i, text in enumerate(add.texts["reader"].splitlines()) if "async_read(" in text)
    assert set(reads["line"]) == {line}
    for name in events.kernels:
        own = records[records["kernel"] == events.kernels.index(name)]
        assert (np.diff(own["time"].astype(int)) >= 1).all()
        assert events.operations[own["operation"][-1]] == "finish"
    push = records[(records["operation"] == events.operations.index("push_back")) & (records["object"] == 0)][0]
    wait = records[(records["operation"] == events.operations.index("wait_front")) & (records["object"] == 0)][0]
    assert wait["time"] >= push["time"]


def test_events_stop_at_the_limit_and_can_be_turned_off() -> None:
    copy = tile_program("copy_init(0); copy_tile(0, t, 0);", [Tensor("a", (64, 64))])
    a = np.ones((64, 64), BF16)
    few = Emulator(event_limit=5).run(copy, [a]).events
    assert few is not None
    assert len(few.records) == 5
    assert few.total > 5
    assert Emulator(event_limit=0).run(copy, [a]).events is None
