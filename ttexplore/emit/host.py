"""The host program in C++, from the plan alone.

Its calls follow the host API of tt-metal 0.81.1. The ttnn wheel has that API's shared libraries but not its headers:
tests/emit/test_host_symbols.py compares the signatures. `run_ttnn.py` does the same in Python, with the same command
line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.small import FLOATS, is_small
from ttexplore.plan import (
    BLOCK_FLOAT,
    TILE_COLUMNS,
    TILE_ROWS,
    Argument,
    CircularBuffer,
    CoreWork,
    KernelSignature,
    Plan,
    TensorLayout,
    chip_buffers,
)

_PROCESSORS = {
    "reader": ("RISCV_1", "NOC_0"),
    "writer": ("RISCV_0", "NOC_1"),
}
_CHIPS = {"wormhole": "WORMHOLE_B0", "blackhole": "BLACKHOLE"}
_CORES_PER_LINE = 8


def emit_host(plan: Plan) -> str:
    """The text of main.cpp. Variables of a tensor end in _tensor or _tiles, so that its name cannot collide."""
    shards = _SHARDS if any(layout.sharding for layout in plan.layouts) else ""
    block_floats = _BLOCK_FLOATS if any(layout.data_format == BLOCK_FLOAT for layout in plan.layouts) else ""
    small = _SMALL if any(is_small(layout.dtype) for layout in _inputs(plan)) else ""
    return "\n".join([_head(plan), _SUPPORT + shards + _BYTES + block_floats + small + _TRANSFERS, *_run(plan), _MAIN])


def _head(plan: Plan) -> str:
    inputs = ", ".join(f"{layout.name} {layout.shape}" for layout in _inputs(plan))
    outputs = ", ".join(f"{layout.name} {layout.shape}" for layout in _outputs(plan))
    return f"""// Host program of {plan.kernel} for {plan.target}, written by ttexplore from tt.plan.json.
// It uses the host API of tt-metal 0.81.1.
//
// main [--inputs FILE...] [--out FOLDER]
//   inputs, in order: {inputs or "none"}
//   outputs: {outputs}
// A file holds one tensor, row-major and without a header, as numpy's tofile writes and fromfile reads it:
// float32{_integers(plan)}. Inputs that are not given are random. Outputs are written to FOLDER/<name>.bin;
// FOLDER is the one of this file if not given.{_small(plan)}
//
// CMakeLists.txt, with the SDK installed:
//   cmake_minimum_required(VERSION 3.22)
//   project(main CXX)
//   find_package(TT-Metalium REQUIRED)
//   add_executable(main main.cpp)
//   target_link_libraries(main PRIVATE TT::Metalium)

#include <algorithm>
#include <array>
{_mathematics(plan)}#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>

using namespace tt::tt_metal;
"""


def _integers(plan: Plan) -> str:
    names = [layout.name for layout in plan.layouts if layout.data_format == "Int32"]
    return f", of {', '.join(names)} int32" if names else ""


def _mathematics(plan: Plan) -> str:
    return "#include <cmath>\n" if _small(plan) else ""


def _small(plan: Plan) -> str:
    names = [f"{layout.name} to {layout.dtype}" for layout in _inputs(plan) if is_small(layout.dtype)]
    return f"\n// Inputs are converted as by a cast: {', '.join(names)}." if names else ""


_SUPPORT = """namespace {

// The kernels lie beside this file.
const std::filesystem::path here = std::filesystem::absolute(__FILE__).parent_path();

struct Options {
    std::vector<std::string> inputs;
    std::filesystem::path out = here;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc;) {
        const std::string flag = argv[i++];
        if (flag == "--inputs") {
            while (i < argc && argv[i][0] != '-') options.inputs.emplace_back(argv[i++]);
        } else if (flag == "--out" && i < argc) {
            options.out = argv[i++];
        } else {
            throw std::runtime_error("usage: main [--inputs FILE...] [--out FOLDER]");
        }
    }
    return options;
}

// The bits of float32 or int32 numbers.
using Words = std::vector<uint32_t>;

// What an output holds where no kernel writes: not a number, or a conspicuous integer.
constexpr uint32_t UNWRITTEN = 0x7fc00000;

// A tensor as the device stores it: matrices in tiles of 32x32, a page each, padded with zeros to whole tiles; or row
// by row, a page each.
struct Tiles {
    size_t matrices, rows, columns, page_bytes;
    bool integers, by_rows;

    size_t elements() const { return matrices * rows * columns; }
    size_t element_bytes() const { return page_bytes / (by_rows ? columns : 1024); }
    size_t pages() const { return matrices * (by_rows ? rows : ((rows + 31) / 32) * ((columns + 31) / 32)); }
    size_t bytes() const { return pages() * page_bytes; }
};

// Visits the elements in the order of the device: tile after tile, in each the four 16x16 faces.
template <typename Visit>
void for_each_element(const Tiles& tiles, Visit visit) {
    if (tiles.by_rows) {
        for (size_t index = 0; index < tiles.elements(); ++index) visit(index * tiles.element_bytes(), index);
        return;
    }
    size_t place = 0;
    for (size_t matrix = 0; matrix < tiles.matrices; ++matrix)
        for (size_t tile_row = 0; tile_row < tiles.rows; tile_row += 32)
            for (size_t tile_column = 0; tile_column < tiles.columns; tile_column += 32)
                for (size_t face = 0; face < 4; ++face)
                    for (size_t i = 0; i < 256; ++i, ++place) {
                        const size_t row = tile_row + face / 2 * 16 + i / 16;
                        const size_t column = tile_column + face % 2 * 16 + i % 16;
                        if (row < tiles.rows && column < tiles.columns)
                            visit(place * tiles.element_bytes(), (matrix * tiles.rows + row) * tiles.columns + column);
                    }
}

// Where a tensor lies on the device.
struct Place {
    BufferType memory = BufferType::DRAM;
    BufferShardingArgs sharding{};
};
"""

_SHARDS = """
// Shards on these cores, or banks of DRAM, in order: elements of a shard, tiles of the tensor.
BufferShardingArgs shards(
    TensorMemoryLayout kind, std::vector<CoreRange> cores, std::array<uint32_t, 2> shard_shape,
    std::array<uint32_t, 2> tile_grid, ShardOrientation order) {
    const CoreRangeSet all(std::move(cores));
    return BufferShardingArgs(ShardSpecBuffer(all, shard_shape, order, {32, 32}, tile_grid), kind);
}
"""

_BYTES = """
// The bytes of a tensor on the device.
using Bytes = std::vector<uint8_t>;

[[maybe_unused]] Bytes pack(const Tiles& tiles, const Words& values) {
    Bytes bytes(tiles.bytes());
    for_each_element(tiles, [&](size_t byte, size_t index) {
        uint32_t bits = values[index];
        // bfloat16 is the upper half of a float32, rounded to the nearest, ties to even.
        if (tiles.element_bytes() == 2) bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        std::memcpy(&bytes[byte], &bits, tiles.element_bytes());
    });
    return bytes;
}

[[maybe_unused]] Words unpack(const Tiles& tiles, const Bytes& bytes) {
    Words values(tiles.elements());
    for_each_element(tiles, [&](size_t byte, size_t index) {
        std::memcpy(&values[index], &bytes[byte], tiles.element_bytes());
        if (tiles.element_bytes() == 2) values[index] <<= 16;
    });
    return values;
}
"""

_BLOCK_FLOATS = """
// Bfp8_b: a tile is the exponents of its 64 groups of 16 elements, then a sign and 7 bits of each element.
constexpr size_t GROUP = 16, GROUPS = 64, ELEMENTS = GROUP * GROUPS;

// Rounded to the nearest, ties to even, but not beyond the largest magnitude.
[[maybe_unused]] Bytes pack_block_floats(const Tiles& tiles, const Words& values) {
    Words ordered(tiles.bytes() / tiles.page_bytes * ELEMENTS);
    for_each_element(tiles, [&](size_t place, size_t index) { ordered[place] = values[index]; });
    Bytes bytes(tiles.bytes());
    for (size_t first = 0; first < ordered.size(); first += GROUP) {
        uint8_t* page = &bytes[first / ELEMENTS * tiles.page_bytes];
        const size_t place = first % ELEMENTS;
        uint32_t exponent = 0;
        for (size_t i = 0; i < GROUP; ++i) exponent = std::max(exponent, ordered[first + i] >> 23 & 0xff);
        page[place / GROUP] = exponent;
        for (size_t i = 0; i < GROUP; ++i) {
            const uint32_t bits = ordered[first + i], own = bits >> 23 & 0xff;
            const uint32_t moved = own ? ((bits & 0x7fffff) | 0x800000) >> std::min(exponent - own, 31u) : 0;
            const uint32_t magnitude = std::min((moved + 0xffff + (moved >> 17 & 1)) >> 17, 0x7fu);
            page[GROUPS + place + i] = magnitude ? bits >> 31 << 7 | magnitude : 0;
        }
    }
    return bytes;
}

[[maybe_unused]] Words unpack_block_floats(const Tiles& tiles, const Bytes& bytes) {
    Words values(tiles.elements());
    for_each_element(tiles, [&](size_t place, size_t index) {
        const uint8_t* page = &bytes[place / ELEMENTS * tiles.page_bytes];
        const uint32_t element = page[GROUPS + place % ELEMENTS];
        uint32_t exponent = page[place % ELEMENTS / GROUP], magnitude = element & 0x7f;
        if (magnitude == 0) return;
        for (; magnitude < 0x40; magnitude <<= 1) --exponent;
        values[index] = element >> 7 << 31 | (exponent & 0xff) << 23 | (magnitude & 0x3f) << 17;
    });
    return values;
}
"""

_SMALL = """
// Casts to a dtype of 8 bits or fewer, which the device stores as bfloat16.
template <typename Cast>
Words cast(Words values, Cast to) {
    for (auto& bits : values) {
        float value;
        std::memcpy(&value, &bits, 4);
        value = to(value);
        std::memcpy(&bits, &value, 4);
    }
    return values;
}

// To the nearest floating-point number, ties to even, but not beyond the largest magnitude.
[[maybe_unused]] Words cast_to_floats(Words values, int fraction_bits, int least_exponent, float largest) {
    return cast(std::move(values), [=](float value) {
        if (std::isnan(value)) return value;
        const float inside = std::clamp(value, -largest, largest);
        int exponent = 0;
        std::frexp(inside, &exponent);
        const float step = std::ldexp(1.0f, std::max(exponent - 1, least_exponent) - fraction_bits);
        return std::nearbyint(inside / step) * step;
    });
}

// The lowest bits of the integer.
[[maybe_unused]] Words cast_to_integers(Words values, int32_t low, int32_t high) {
    return cast(std::move(values), [=](float value) {
        const auto whole = static_cast<int64_t>(std::clamp(value, -2147483648.0f, 2147483520.0f));
        return static_cast<float>(((whole - low) & (high - low)) + low);
    });
}

[[maybe_unused]] Words cast_to_bool(Words values) {
    return cast(std::move(values), [](float value) { return value != 0 ? 1.0f : 0.0f; });
}
"""

_TRANSFERS = """
std::shared_ptr<distributed::MeshBuffer> to_device(
    distributed::MeshDevice& device, const Tiles& tiles, const Place& place, const Bytes& bytes) {
    auto buffer = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = tiles.bytes()},
        distributed::DeviceLocalBufferConfig{
            .page_size = tiles.page_bytes, .buffer_type = place.memory, .sharding_args = place.sharding},
        &device);
    distributed::EnqueueWriteMeshBuffer(device.mesh_command_queue(), buffer, bytes, true);
    return buffer;
}

Bytes from_device(distributed::MeshDevice& device, std::shared_ptr<distributed::MeshBuffer>& buffer) {
    Bytes bytes;
    distributed::EnqueueReadMeshBuffer(device.mesh_command_queue(), bytes, buffer, true);
    return bytes;
}

[[maybe_unused]] Words load(const Options& options, size_t index, const Tiles& tiles) {
    Words values(tiles.elements());
    if (index >= options.inputs.size()) {
        std::mt19937 random(index);
        std::normal_distribution<float> normal;
        for (auto& value : values) {
            const float number = normal(random);
            std::memcpy(&value, &number, 4);
            if (tiles.integers) value = static_cast<uint32_t>(static_cast<int32_t>(1000 * number));
        }
        return values;
    }
    const auto& file = options.inputs[index];
    const size_t bytes = 4 * values.size();
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(file + " cannot be read");
    if (const auto found = std::filesystem::file_size(file); found != bytes)
        throw std::runtime_error(
            file + " has " + std::to_string(found) + " bytes, its tensor " + std::to_string(bytes) +
                                 (tiles.integers ? " of int32" : " of float32"));
    stream.read(reinterpret_cast<char*>(values.data()), bytes);
    return values;
}

void save(const Options& options, const std::string& name, const Words& values) {
    const auto file = options.out / (name + ".bin");
    std::ofstream stream(file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    if (!stream.flush()) throw std::runtime_error(file.string() + " cannot be written");
    size_t unwritten = 0;
    for (const auto value : values) unwritten += value == UNWRITTEN;
    std::printf("%s: %zu elements, %zu of them NaN or not written -> %s\\n", name.c_str(), values.size(), unwritten,
                file.c_str());
}
"""

_MAIN = """}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\\n", error.what());
        return 1;
    }
}
"""


def _run(plan: Plan) -> list[str]:
    assert plan.partition is not None
    inputs = _inputs(plan)
    chip = _CHIPS[plan.target.partition("_")[0]]
    lines = [
        "void run(const Options& options) {",
        f"    if (options.inputs.size() > {len(inputs)})",
        f'        throw std::runtime_error("{plan.kernel} has {len(inputs)} inputs, more are given");',
        "    auto device = distributed::MeshDevice::create_unit_mesh(0);",
        f"    if (device->arch() != tt::ARCH::{chip})",
        f'        throw std::runtime_error("the program is for {plan.target}, the device is another chip");',
        "    Program program = CreateProgram();",
        "",
    ]
    for layout in plan.layouts:
        lines += _tensor(layout, plan)
    cores = [f"{{{core.x}, {core.y}}}" for core in plan.partition.cores]
    rows = [cores[start : start + _CORES_PER_LINE] for start in range(0, len(cores), _CORES_PER_LINE)]
    lines += [
        "",
        "    const std::vector<CoreCoord> cores = {",
        *(f"        {', '.join(row)}," for row in rows),
        "    };",
        "    const CoreRangeSet all(std::vector<CoreRange>(cores.begin(), cores.end()));",
        "",
    ]
    for sharing in chip_buffers(plan.buffers):
        lines += _circular_buffer(sharing)
    lines += _semaphores(plan)
    lines.append("")
    for signature in plan.signature:
        lines += _kernel(signature, plan)
    lines += [
        "    distributed::MeshWorkload workload;",
        "    workload.add_program(distributed::MeshCoordinateRange(device->shape()), std::move(program));",
        "    distributed::EnqueueMeshWorkload(device->mesh_command_queue(), workload, false);",
        "    distributed::Finish(device->mesh_command_queue());",
        "",
    ]
    for layout in _outputs(plan):
        name = layout.name
        values = f"unpack{_packing(layout)}({name}_tiles, from_device(*device, {name}_tensor))"
        lines.append(f'    save(options, "{name}", {values});')
    return [*lines, "    device->close();", "}", ""]


def _inputs(plan: Plan) -> list[TensorLayout]:
    return [layout for layout in plan.layouts if layout.role != "output"]


def _outputs(plan: Plan) -> list[TensorLayout]:
    return [layout for layout in plan.layouts if layout.role != "input"]


def _tensor(layout: TensorLayout, plan: Plan) -> list[str]:
    name = layout.name
    # A vector is stored as the first row of one row of tiles.
    *batch, rows, columns = (1, *layout.shape)
    values = f"Words({name}_tiles.elements(), UNWRITTEN)"
    if layout.role != "output":
        index = [other.name for other in _inputs(plan)].index(name)
        values = _cast(layout.dtype, f"load(options, {index}, {name}_tiles)")
    integers, by_rows = (str(one).lower() for one in (layout.data_format == "Int32", layout.page == "row"))
    shape = f"{prod(batch)}, {rows}, {columns}, {plan.accessor(name).page_bytes}"
    return [
        f"    const Tiles {name}_tiles{{{shape}, {integers}, {by_rows}}};",
        *_place(layout),
        f"    auto {name}_tensor =",
        f"        to_device(*device, {name}_tiles, {name}_place, pack{_packing(layout)}({name}_tiles, {values}));",
    ]


def _cast(dtype: str, values: str) -> str:
    """What the host stores of numbers that are given for a tensor of a kernel dtype."""
    if dtype in FLOATS:
        known = FLOATS[dtype]
        return f"cast_to_floats({values}, {known.fraction_bits}, {known.least_exponent}, {known.largest}f)"
    if dtype == "bool":
        return f"cast_to_bool({values})"
    return f"cast_to_integers({values}, {', '.join(map(str, SMALL_INTEGERS[dtype]))})" if is_small(dtype) else values


def _packing(layout: TensorLayout) -> str:
    """The suffix of the functions that pack and unpack the tensor."""
    return "_block_floats" if layout.data_format == BLOCK_FLOAT else ""


def _place(layout: TensorLayout) -> list[str]:
    memory = f"BufferType::{layout.memory.upper()}"
    sharding = layout.sharding
    if sharding is None:
        return [f"    const Place {layout.name}_place{{{memory}}};"]
    cores = [f"CoreRange({{{x}, {y}}})" for x, y in sharding.cores]
    if sharding.kind == "block":
        (left, top), (right, bottom) = sharding.cores[0], sharding.cores[-1]
        cores = [f"CoreRange({{{left}, {top}}}, {{{right}, {bottom}}})"]
    rows = [cores[start : start + _CORES_PER_LINE // 2] for start in range(0, len(cores), _CORES_PER_LINE // 2)]
    height, width = sharding.shard_shape
    tile_rows, tile_columns = prod(layout.padded_shape[:-1]) // TILE_ROWS, layout.padded_shape[-1] // TILE_COLUMNS
    order = {"row_major": "ROW_MAJOR", "column_major": "COL_MAJOR"}[sharding.order]
    return [
        f"    const Place {layout.name}_place{{{memory}, shards(",
        f"        TensorMemoryLayout::{sharding.kind.upper()}_SHARDED, {{",
        *(f"            {', '.join(row)}," for row in rows),
        f"        }}, {{{height}, {width}}}, {{{tile_rows}, {tile_columns}}}, ShardOrientation::{order})}};",
    ]


def _circular_buffer(sharing: Sequence[CircularBuffer]) -> list[str]:
    buffer = sharing[0]
    data_format = f"{{{{{buffer.index}, tt::DataFormat::{buffer.data_format}}}}}"
    place = f", in the shards of {buffer.shard_of}" if buffer.shard_of else ""
    size = f"        .set_page_size({buffer.index}, {buffer.page_bytes})"
    address = f"        .set_globally_allocated_address(*{buffer.shard_of}_tensor->get_backing_buffer())"
    return [
        f"    // {', '.join(one.name for one in sharing)}: {buffer.producer} -> {buffer.consumer}{place}",
        f"    CreateCircularBuffer(program, all, CircularBufferConfig({buffer.total_bytes}, {data_format})",
        *([size, address + ");"] if buffer.shard_of else [size + ");"]),
    ]


def _semaphores(plan: Plan) -> list[str]:
    """The semaphores, and what finds the coordinates of a core on the NoC."""
    lines: list[str] = []
    for number, name in plan.semaphores:
        lines += [
            f"    if (CreateSemaphore(program, all, 0) != {number})",
            f'        throw std::runtime_error("the semaphore {name} has another number than {number}");',
        ]
    if lines:
        lines += [
            "    const auto noc_x = [&](size_t x, size_t y) {",
            "        return static_cast<uint32_t>(device->worker_core_from_logical_core({x, y}).x);",
            "    };",
            "    const auto noc_y = [&](size_t x, size_t y) {",
            "        return static_cast<uint32_t>(device->worker_core_from_logical_core({x, y}).y);",
            "    };",
        ]
    return lines


def _word(argument: Argument) -> str:
    match argument.source:
        case "tensor_address":
            return f"static_cast<uint32_t>({argument.of}_tensor->address())"
        case "constant":
            return str(argument.value)
        case source:
            raise ValueError(f"{argument.name}: {source} is not a common argument")


def _runtime_words(signature: KernelSignature, core: CoreWork) -> list[str]:
    words: list[str] = []
    for argument in signature.runtime:
        match argument.source:
            case "core_value":
                words.append(str(core.values[argument.of]))
            case "noc_x" | "noc_y":
                x, y = argument.place(core.values)
                words.append(f"{argument.source}({x}, {y})")
            case "core_list":
                words += map(str, core.listed)
            case source:
                raise ValueError(f"{argument.name}: {source} is not a per-core argument")
    return words


def _list(items: Iterable[str], indent: str) -> str:
    return "".join(f"\n{indent}{item}," for item in items)


def _kernel(signature: KernelSignature, plan: Plan) -> list[str]:
    assert plan.partition is not None
    role = signature.kernel
    lines: list[str] = []
    if signature.compile_time:
        lines.append(f"    std::vector<uint32_t> {role}_compile_args;")
    lines += [
        f"    TensorAccessorArgs(*{argument.of}_tensor).append_to({role}_compile_args);"
        for argument in signature.compile_time
    ]
    handle = f"const auto {role} = " if signature.common_runtime or signature.runtime else ""
    create = f'    {handle}CreateKernel(program, here / "{role}.cpp", all, '
    lines += _compute_kernel(create, plan) if role == "compute" else _data_movement_kernel(create, role)
    if signature.compile_time:
        lines.append(f"        .compile_args = {role}_compile_args,")
    lines.append("    });")
    if signature.common_runtime:
        words = _list(map(_word, signature.common_runtime), " " * 8)
        lines.append(f"    SetCommonRuntimeArgs(program, {role}, {{{words}\n    }});")
    if signature.runtime:
        rows = (f"{{{', '.join(_runtime_words(signature, core))}}}" for core in plan.partition.cores)
        lines += [
            f"    // {', '.join(argument.name for argument in signature.runtime)} of each core",
            f"    SetRuntimeArgs(program, {role}, cores, {{{_list(rows, ' ' * 8)}\n    }});",
        ]
    return [*lines, ""]


def _data_movement_kernel(create: str, role: str) -> list[str]:
    processor, noc = _PROCESSORS[role]
    return [
        f"{create}DataMovementConfig{{",
        f"        .processor = DataMovementProcessor::{processor},",
        f"        .noc = NOC::{noc},",
    ]


def _compute_kernel(create: str, plan: Plan) -> list[str]:
    compute = plan.compute
    assert compute is not None
    exact = [sharing[0] for sharing in chip_buffers(plan.buffers) if sharing[0].unpack_to_dest]
    lines: list[str] = []
    if exact:
        lines = [
            "    std::vector<UnpackToDestMode> unpack_modes(NUM_CIRCULAR_BUFFERS, UnpackToDestMode::Default);",
            *(f"    unpack_modes[{buffer.index}] = UnpackToDestMode::UnpackToDestFp32;" for buffer in exact),
        ]
    return [
        *lines,
        f"{create}ComputeConfig{{",
        f"        .math_fidelity = MathFidelity::{compute.math_fidelity},",
        f"        .fp32_dest_acc_en = {str(compute.fp32_dest_acc_en).lower()},",
        f"        .dst_full_sync_en = {str(compute.dst_full_sync_en).lower()},",
        *(["        .unpack_to_dest_mode = unpack_modes,"] if exact else []),
        f"        .math_approx_mode = {str(compute.math_approx_mode).lower()},",
    ]
