"""Emulated bf16 GEMM of 1024^3 on 64 cores against NumPy's float32 product and a plain native tile loop, in one run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/emulator.py [--rounds N] [--no-events]

The program is written by hand in the emitted style (128x128 blocks, one K tile per step, partial sums accumulated in
L1); `compare_speed` takes any program. All three run in turns, so that a busy machine slows them alike; the ratios are
medians of the paired rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.backends.emulator.compiler import RUNNER_FLAGS, RUNTIME_FOLDER, find_compiler, processor_flags
from ttexplore.backends.emulator.tiles import tilize
from ttexplore.plan import (
    Accessor,
    Argument,
    CircularBuffer,
    ComputeConfig,
    CoreWork,
    KernelSignature,
    Partition,
    Plan,
    TensorLayout,
)

SIZE = 1024
TILE = 32
BLOCK_TILES = 4  # a core computes 4x4 tiles

READER = """#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr uint32_t block = get_compile_time_arg_val(0);
    constexpr uint32_t tiles = get_compile_time_arg_val(1);
    constexpr auto a_args = TensorAccessorArgs<2>();
    constexpr auto b_args = TensorAccessorArgs<a_args.next_compile_time_args_offset()>();
    const auto a = TensorAccessor(a_args, get_common_arg_val<uint32_t>(0));
    const auto b = TensorAccessor(b_args, get_common_arg_val<uint32_t>(1));
    const uint32_t row = get_arg_val<uint32_t>(0);
    const uint32_t column = get_arg_val<uint32_t>(1);
    Noc noc;
    DataflowBuffer a_buffer(0);
    DataflowBuffer b_buffer(1);
    for (uint32_t k = 0; k < tiles; ++k) {
        a_buffer.reserve_back(block);
        b_buffer.reserve_back(block);
        for (uint32_t i = 0; i < block; ++i) {
            noc.async_read(a, a_buffer, 2048, {.page_id = (row * block + i) * tiles + k}, {.offset_bytes = i * 2048});
            noc.async_read(b, b_buffer, 2048, {.page_id = k * tiles + column * block + i}, {.offset_bytes = i * 2048});
        }
        noc.async_read_barrier();
        a_buffer.push_back(block);
        b_buffer.push_back(block);
    }
}
"""

COMPUTE = """#include <cstdint>
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"
#include "api/dataflow/dataflow_buffer.h"

void kernel_main() {
    constexpr uint32_t block = get_compile_time_arg_val(0);
    constexpr uint32_t tiles = get_compile_time_arg_val(1);
    constexpr uint32_t sub = 2;
    DataflowBuffer a_buffer(0);
    DataflowBuffer b_buffer(1);
    DataflowBuffer partials(24);
    DataflowBuffer out_buffer(16);
    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 24);
    matmul_block_init(0, 1, 0, sub, sub, 1);
    partials.reserve_back(block * block);
    for (uint32_t k = 0; k < tiles; ++k) {
        a_buffer.wait_front(block);
        b_buffer.wait_front(block);
        pack_reconfig_l1_acc(k == 0 ? 0 : 1);
        for (uint32_t m = 0; m < block; m += sub) {
            for (uint32_t n = 0; n < block; n += sub) {
                tile_regs_acquire();
                matmul_block(0, 1, m, n, 0, 0, sub, sub, 1);
                tile_regs_commit();
                tile_regs_wait();
                for (uint32_t i = 0; i < sub; ++i) {
                    for (uint32_t j = 0; j < sub; ++j) {
                        pack_tile<true>(i * sub + j, 24, (m + i) * block + n + j);
                    }
                }
                tile_regs_release();
            }
        }
        a_buffer.pop_front(block);
        b_buffer.pop_front(block);
    }
    partials.push_back(block * block);
    pack_reconfig_l1_acc(0);
    pack_reconfig_data_format(24, 16);
    reconfig_data_format_srca(1, 24);
    copy_init(24);
    partials.wait_front(block * block);
    for (uint32_t t = 0; t < block * block; ++t) {
        out_buffer.reserve_back(1);
        tile_regs_acquire();
        copy_tile(24, t, 0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();
        out_buffer.push_back(1);
    }
    partials.pop_front(block * block);
}
"""

WRITER = """#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr uint32_t block = get_compile_time_arg_val(0);
    constexpr uint32_t tiles = get_compile_time_arg_val(1);
    constexpr auto out_args = TensorAccessorArgs<2>();
    const auto out = TensorAccessor(out_args, get_common_arg_val<uint32_t>(0));
    const uint32_t row = get_arg_val<uint32_t>(0);
    const uint32_t column = get_arg_val<uint32_t>(1);
    Noc noc;
    DataflowBuffer out_buffer(16);
    for (uint32_t m = 0; m < block; ++m) {
        out_buffer.wait_front(block);
        for (uint32_t n = 0; n < block; ++n) {
            noc.async_write(out_buffer, out, 2048, {.offset_bytes = n * 2048},
                            {.page_id = (row * block + m) * tiles + column * block + n});
        }
        noc.async_writes_flushed();
        out_buffer.pop_front(block);
    }
    noc.async_write_barrier();
}
"""

NATIVE_LOOP = """#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "matmul.h"

// The same product without cores, buffers and checks: per output tile a loop over K that widens both tiles, multiplies
// and at the end rounds. Tiles in face order.
static void widen_tile(const uint16_t* from, float* to) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) to[i] = widen(from[i]);
}

int main(int, char** arguments) {
    const int tiles = atoi(arguments[1]), rounds = atoi(arguments[2]);
    const size_t bytes = static_cast<size_t>(tiles) * tiles * 2048;
    std::vector<uint16_t> a(bytes / 2), b(bytes / 2), out(bytes / 2);
    FILE* file = fopen(arguments[3], "rb");
    if (!file || fread(a.data(), 1, bytes, file) != bytes || fread(b.data(), 1, bytes, file) != bytes) return 1;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < tiles; ++i) {
            for (int j = 0; j < tiles; ++j) {
                alignas(64) float left[TILE_ELEMENTS], right[TILE_ELEMENTS], sum[TILE_ELEMENTS];
                for (int k = 0; k < tiles; ++k) {
                    widen_tile(&a[static_cast<size_t>(i * tiles + k) * 1024], left);
                    widen_tile(&b[static_cast<size_t>(k * tiles + j) * 1024], right);
                    multiply_tiles(left, right, sum, 0, 32, k == 0);
                }
                uint16_t* target = &out[static_cast<size_t>(i * tiles + j) * 1024];
                for (uint32_t e = 0; e < TILE_ELEMENTS; ++e) target[e] = narrow_ties_away(sum[e]);
            }
        }
        printf("%.9f\\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
}
"""

Array = NDArray[Any]


def gemm_program(size: int = SIZE) -> Program:
    """out[size, size] = a @ b in bfloat16 on a square grid of cores, one block of 4x4 tiles each."""
    tiles = size // TILE
    grid = tiles // BLOCK_TILES
    names = ("a", "b", "out")
    layouts = tuple(
        TensorLayout(
            name, i, "output" if name == "out" else "input", (size, size), "bfloat16", "Float16_b", (size, size)
        )
        for i, name in enumerate(names)
    )
    shape = (Argument("block", "constant", value=BLOCK_TILES), Argument("tiles", "constant", value=tiles))
    place = (Argument("row", "core_value", "row"), Argument("column", "core_value", "column"))

    def accessors(*of: str) -> tuple[Argument, ...]:
        return tuple(Argument(f"{name}_accessor", "accessor", name) for name in of)

    def addresses(*of: str) -> tuple[Argument, ...]:
        return tuple(Argument(f"{name}_addr", "tensor_address", name) for name in of)

    plan = Plan(
        "gemm",
        "wormhole_n150",
        layouts=layouts,
        buffers=(
            CircularBuffer("a", BLOCK_TILES, 2, "Float16_b", "reader", "compute", 0),
            CircularBuffer("b", BLOCK_TILES, 2, "Float16_b", "reader", "compute", 1),
            CircularBuffer("out", BLOCK_TILES, 2, "Float16_b", "compute", "writer", 16),
            CircularBuffer("partials", BLOCK_TILES**2, 1, "Float32", "compute", "compute", 24, unpack_to_dest=True),
        ),
        accessors=tuple(Accessor(name, (tiles, tiles), (tiles, 1), 2048, tiles * tiles) for name in names),
        partition=Partition(
            (grid, grid),
            "contiguous",
            "global",
            (grid, grid),
            tuple(CoreWork(x, y, 1, {"row": y, "column": x}) for y in range(grid) for x in range(grid)),
            ("row", "column"),
        ),
        compute=ComputeConfig("HiFi4", True, False, False, 4, "l1"),
        signature=(
            KernelSignature("reader", (*shape, *accessors("a", "b")), addresses("a", "b"), place),
            KernelSignature("compute", shape, (), ()),
            KernelSignature("writer", (*shape, *accessors("out")), addresses("out"), place),
        ),
    )
    return Program({"reader": READER, "compute": COMPUTE, "writer": WRITER}, plan)


@dataclass(frozen=True)
class Speed:
    """Seconds per round of each contender, round by round."""

    emulator: list[float]
    numpy: list[float]
    native_loop: list[float]

    def lines(self, size: int) -> list[str]:
        operations = 2.0 * size**3
        rows = (("emulator", self.emulator), ("numpy float32", self.numpy), ("native tile loop", self.native_loop))
        texts = [
            f"{name:18} min {min(seconds) * 1e3:7.2f} ms, median {statistics.median(seconds) * 1e3:7.2f} ms, "
            f"{operations / min(seconds) / 1e9:6.1f} GF/s"
            for name, seconds in rows
        ]
        by_numpy = statistics.median(n / e for e, n in zip(self.emulator, self.numpy, strict=True))
        by_loop = statistics.median(e / n for e, n in zip(self.emulator, self.native_loop, strict=True))
        texts.append(f"speed relative to NumPy {by_numpy:.2f} (aim: 0.5 or more)")
        texts.append(f"time relative to the native loop {by_loop:.2f} (aim: 1.4 or less)")
        return texts


def compare_speed(program: Program, a: Array, b: Array, *, emulator: Emulator, rounds: int) -> Speed:
    """Times `program` (of inputs a and b), NumPy's product and the native loop in turns.

    Each turn takes the best of three runs in one process, so that start-up and page faults count for none of them.
    """
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    speed = Speed([], [], [])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loop = _native_loop(folder, a, b)
        for _ in range(rounds):
            speed.emulator.append(min(emulator.measure(program, [a, b], repeats=3)))
            times: list[float] = []
            for _ in range(3):
                start = time.perf_counter()
                np.matmul(wide_a, wide_b)
                times.append(time.perf_counter() - start)
            speed.numpy.append(min(times))
            done = subprocess.run(loop, check=True, capture_output=True, text=True)
            speed.native_loop.append(min(map(float, done.stdout.split())))
    return speed


def _native_loop(folder: Path, a: Array, b: Array) -> list[str]:
    compiler = find_compiler()
    if compiler is None:
        sys.exit("no C++ compiler")
    (folder / "loop.cpp").write_text(NATIVE_LOOP)
    with (folder / "data").open("wb") as file:
        tilize(a).tofile(file)
        tilize(b).tofile(file)
    sources = [str(folder / "loop.cpp"), str(RUNTIME_FOLDER / "matmul.cpp")]
    flags = [*RUNNER_FLAGS, *processor_flags(compiler), f"-I{RUNTIME_FOLDER}"]
    subprocess.run([*compiler.command, *flags, *sources, "-o", str(folder / "loop")], check=True)
    return [str(folder / "loop"), str(a.shape[0] // TILE), "3", str(folder / "data")]


def main() -> None:
    parser = argparse.ArgumentParser(description="emulated GEMM against NumPy and a native tile loop")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-events", action="store_true", help="record no events")
    options = parser.parse_args()
    emulator = Emulator(event_limit=0) if options.no_events else Emulator()
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(ml_dtypes.bfloat16) for _ in range(2))
    program = gemm_program()
    execution = emulator.run(program, [a, b])
    want = a.astype(np.float64) @ b.astype(np.float64)
    print(execution.message)
    print(compare(execution.outputs, [want]).message)
    if execution.events is not None:
        print(f"{execution.events.total} events")
    print("\n".join(compare_speed(program, a, b, emulator=emulator, rounds=options.rounds).lines(SIZE)))


if __name__ == "__main__":
    main()
