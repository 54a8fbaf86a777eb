"""Small programs in the emitted style, with plans made by hand, for the tests of the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ttexplore.backends.base import Program
from ttexplore.plan import (
    DATA_FORMATS,
    Accessor,
    Argument,
    CircularBuffer,
    ComputeConfig,
    CoreWork,
    KernelRole,
    KernelSignature,
    Partition,
    Plan,
    TensorLayout,
)

DATAFLOW = """#include <cstdint>
#include "api/core_local_mem.h"
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/endpoints.h"
#include "api/dataflow/noc.h"
#include "api/dataflow/noc_semaphore.h"
#include "api/tensor/noc_traits.h"
"""

COMPUTE = """#include <cstdint>
#include "api/compute/bcast.h"
#include "api/compute/binary_max_min.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/eltwise_unary/binop_with_scalar.h"
#include "api/compute/eltwise_unary/clamp.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/eltwise_unary/fill.h"
#include "api/compute/eltwise_unary/gelu.h"
#include "api/compute/eltwise_unary/mac.h"
#include "api/compute/eltwise_unary/negative.h"
#include "api/compute/eltwise_unary/recip.h"
#include "api/compute/eltwise_unary/relu.h"
#include "api/compute/eltwise_unary/rsqrt.h"
#include "api/compute/eltwise_unary/sqrt.h"
#include "api/compute/eltwise_unary/typecast.h"
#include "api/compute/eltwise_unary/where.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/compute/reduce.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"
#include "api/compute/transpose.h"
#include "api/dataflow/dataflow_buffer.h"
"""

BFLOAT16, FLOAT32, INT32 = "bfloat16", "float32", "int32"
FORMATS = {BFLOAT16: "Float16_b", FLOAT32: "Float32", INT32: "Int32"}


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    role: Literal["input", "output", "inout"] = "input"
    dtype: str = BFLOAT16

    @property
    def padded(self) -> tuple[int, ...]:
        rows, columns = (1, *self.shape)[-2:]
        return (*self.shape[:-2], -(-rows // 32) * 32, -(-columns // 32) * 32)

    @property
    def pages(self) -> int:
        total = 1
        for extent in self.padded:
            total *= extent
        return total // 1024


@dataclass(frozen=True)
class Buffer:
    index: int
    pages: int
    dtype: str = BFLOAT16
    unpack_to_dest: bool = False


@dataclass(frozen=True)
class Kernel:
    text: str
    compile_time: tuple[Argument, ...] = ()
    common: tuple[Argument, ...] = ()
    runtime: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Compute:
    wide: bool = True
    fidelity: Literal["LoFi", "HiFi2", "HiFi3", "HiFi4"] = "HiFi4"
    tiles: int = field(default=0)

    @property
    def config(self) -> ComputeConfig:
        return ComputeConfig(
            self.fidelity, self.wide, False, False, self.tiles or (4 if self.wide else 8), accumulate="reload"
        )


def address(name: str) -> Argument:
    return Argument(f"{name}_addr", "tensor_address", name)


def accessor(name: str) -> Argument:
    return Argument(f"{name}_accessor", "accessor", name)


def constant(name: str, value: int) -> Argument:
    return Argument(name, "constant", value=value)


def core_value(name: str) -> Argument:
    return Argument(name, "core_value", name)


def program(
    kernels: dict[KernelRole, Kernel],
    tensors: Sequence[Tensor],
    buffers: Sequence[Buffer],
    cores: Sequence[CoreWork] = (CoreWork(0, 0, 1, {}),),
    compute: Compute | None = None,
) -> Program:
    """A program with a plan that holds what the emulator reads."""
    layouts = tuple(
        TensorLayout(t.name, i, t.role, t.shape, t.dtype, FORMATS[t.dtype], t.padded) for i, t in enumerate(tensors)
    )
    circular_buffers = tuple(
        CircularBuffer(
            f"cb{b.index}", b.pages, 1, FORMATS[b.dtype], "reader", "compute", b.index, unpack_to_dest=b.unpack_to_dest
        )
        for b in buffers
    )
    accessors = tuple(
        Accessor(t.name, (t.pages,), (1,), DATA_FORMATS[FORMATS[t.dtype]].tile_bytes, t.pages) for t in tensors
    )
    grid = (max(core.x for core in cores) + 1, max(core.y for core in cores) + 1)
    names = tuple(cores[0].values)
    partition = Partition((len(cores),), "contiguous", "global", grid, tuple(cores), names)
    signature = tuple(KernelSignature(role, k.compile_time, k.common, k.runtime) for role, k in kernels.items())
    plan = Plan(
        "hand_made",
        "wormhole_n150",
        layouts=layouts,
        buffers=circular_buffers,
        accessors=accessors,
        partition=partition,
        compute=(compute or Compute()).config,
        signature=signature,
    )
    return Program({role: kernel.text for role, kernel in kernels.items()}, plan)


def reader(tiles_of: dict[str, int]) -> Kernel:
    """Reads so many pages of each tensor into circular buffers 0, 1, ... as one block each."""
    lines = ["void kernel_main() {", "    const uint32_t first = get_arg_val<uint32_t>(0);", "    Noc noc;"]
    offset = "0"
    for index, (name, tiles) in enumerate(tiles_of.items()):
        lines += [
            f"    constexpr auto {name}_args = TensorAccessorArgs<{offset}>();",
            f"    const auto {name} = TensorAccessor({name}_args, get_common_arg_val<uint32_t>({index}));",
            f"    DataflowBuffer {name}_buffer({index});",
            f"    const uint32_t {name}_bytes = {name}_buffer.get_tile_size();",
            f"    {name}_buffer.reserve_back({tiles});",
            f"    for (uint32_t t = 0; t < {tiles}; ++t) {{",
            f"        noc.async_read({name}, {name}_buffer, {name}_bytes, {{.page_id = first + t}}, "
            f"{{.offset_bytes = t * {name}_bytes}});",
            "    }",
            "    noc.async_read_barrier();",
            f"    {name}_buffer.push_back({tiles});",
        ]
        offset = f"{name}_args.next_compile_time_args_offset()"
    return Kernel(
        DATAFLOW + "\n".join([*lines, "}", ""]),
        tuple(accessor(name) for name in tiles_of),
        tuple(address(name) for name in tiles_of),
        (core_value("first"),),
    )


def writer(name: str, tiles: int, buffer: int = 16) -> Kernel:
    """Writes `tiles` pages of circular buffer `buffer` to the tensor."""
    body = f"""void kernel_main() {{
    const uint32_t first = get_arg_val<uint32_t>(0);
    constexpr auto out_args = TensorAccessorArgs<0>();
    const auto out = TensorAccessor(out_args, get_common_arg_val<uint32_t>(0));
    Noc noc;
    DataflowBuffer out_buffer({buffer});
    const uint32_t bytes = out_buffer.get_tile_size();
    for (uint32_t t = 0; t < {tiles}; ++t) {{
        out_buffer.wait_front(1);
        noc.async_write(out_buffer, out, bytes, {{.offset_bytes = 0}}, {{.page_id = first + t}});
        noc.async_writes_flushed();
        out_buffer.pop_front(1);
    }}
    noc.async_write_barrier();
}}
"""
    return Kernel(DATAFLOW + body, (accessor(name),), (address(name),), (core_value("first"),))


def tile_compute(startup: str, body: str, inputs: Sequence[int], tiles: int, *, before: str = "") -> Kernel:
    """Per tile t: waits for nothing, runs `body` in a DST section, packs DST tile 0 to buffer 16."""
    waits = "\n".join(f"    DataflowBuffer({i}).wait_front({tiles});" for i in inputs)
    pops = "\n".join(f"    DataflowBuffer({i}).pop_front({tiles});" for i in inputs)
    text = f"""void kernel_main() {{
    DataflowBuffer out_buffer(16);
    compute_kernel_hw_startup{startup};
    {before}
{waits}
    for (uint32_t t = 0; t < {tiles}; ++t) {{
        out_buffer.reserve_back(1);
        tile_regs_acquire();
        {body}
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();
        out_buffer.push_back(1);
    }}
{pops}
}}
"""
    return Kernel(COMPUTE + text)


def tile_program(
    body: str,
    inputs: Sequence[Tensor],
    *,
    out_dtype: str = BFLOAT16,
    startup: str = "",
    before: str = "",
    compute: Compute | None = None,
    cores: int = 1,
    unpack_to_dest: bool = False,
) -> Program:
    """Each core takes its share of the tiles of equally tiled `inputs`; DST tile 0 after `body` is the output tile."""
    tiles = inputs[0].pages // cores
    out = Tensor("out", inputs[0].shape, "output", out_dtype)
    startup = startup or ("(0, 16)" if len(inputs) == 1 else "(0, 1, 16)")
    names = [tensor.name for tensor in inputs]
    return program(
        {
            "reader": reader(dict.fromkeys(names, tiles)),
            "compute": tile_compute(startup, body, range(len(inputs)), tiles, before=before),
            "writer": writer("out", tiles),
        },
        [*inputs, out],
        [*(Buffer(i, tiles, t.dtype, unpack_to_dest) for i, t in enumerate(inputs)), Buffer(16, 2, out_dtype)],
        [CoreWork(i % 8, i // 8, tiles, {"first": i * tiles}) for i in range(cores)],
        compute,
    )


def with_text(original: Program, role: KernelRole, old: str, new: str) -> Program:
    """`original` with `old` replaced in one kernel's text; `old` must be there."""
    text = original.texts[role]
    assert old in text, f"{role}.cpp does not hold {old!r}"
    return Program({**original.texts, role: text.replace(old, new)}, original.plan)


MATMUL_COMPUTE = """void kernel_main() {{
    DataflowBuffer a_buffer(0);
    DataflowBuffer b_buffer(1);
    DataflowBuffer out_buffer(16);
    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 16);
    matmul_block_init(0, 1, {transpose}, {n}, {m}, {k});
    a_buffer.wait_front({a_tiles});
    b_buffer.wait_front({b_tiles});
    out_buffer.reserve_back({out_tiles});
    tile_regs_acquire();
    for (uint32_t k = 0; k < {k}; ++k) {{
        matmul_block(0, 1, k, k * {n}, 0, {transpose}, {n}, {m}, {k});
    }}
    tile_regs_commit();
    tile_regs_wait();
    for (uint32_t t = 0; t < {out_tiles}; ++t) {{
        pack_tile(t, 16);
    }}
    tile_regs_release();
    out_buffer.push_back({out_tiles});
    a_buffer.pop_front({a_tiles});
    b_buffer.pop_front({b_tiles});
}}
"""


def matmul_program(
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = BFLOAT16,
    out_dtype: str = FLOAT32,
    transpose: bool = False,
    compute: Compute | None = None,
) -> Program:
    """One core, one block of m x n output tiles over k tiles of depth, all in DST.

    With `transpose` each 32x32 tile of the second operand is taken transposed.
    """
    a, b = Tensor("a", (32 * m, 32 * k), dtype=dtype), Tensor("b", (32 * k, 32 * n), dtype=dtype)
    out = Tensor("out", (32 * m, 32 * n), "output", out_dtype)
    text = COMPUTE + MATMUL_COMPUTE.format(
        m=m, n=n, k=k, a_tiles=m * k, b_tiles=k * n, out_tiles=m * n, transpose=int(transpose)
    )
    return program(
        {"reader": reader({"a": m * k, "b": k * n}), "compute": Kernel(text), "writer": writer("out", m * n)},
        [a, b, out],
        [Buffer(0, m * k, dtype), Buffer(1, k * n, dtype), Buffer(16, m * n, out_dtype)],
        [CoreWork(0, 0, 1, {"first": 0})],
        compute,
    )
