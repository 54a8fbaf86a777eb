// Host program of plain for wormhole_n150, written by ttexplore from tt.plan.json.
// It uses the host API of tt-metal 0.81.1.
//
// main [--inputs FILE...] [--out FOLDER]
//   inputs, in order: A (128, 128), B (128, 128)
//   outputs: C (128, 128)
// A file holds one tensor, row-major and without a header, as numpy's tofile writes and fromfile reads it:
// float32. Inputs that are not given are random. Outputs are written to FOLDER/<name>.bin;
// FOLDER is the one of this file if not given.
//
// CMakeLists.txt, with the SDK installed:
//   cmake_minimum_required(VERSION 3.22)
//   project(main CXX)
//   find_package(TT-Metalium REQUIRED)
//   add_executable(main main.cpp)
//   target_link_libraries(main PRIVATE TT::Metalium)

#include <algorithm>
#include <array>
#include <cstdint>
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

namespace {

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
    std::printf("%s: %zu elements, %zu of them NaN or not written -> %s\n", name.c_str(), values.size(), unwritten,
                file.c_str());
}

void run(const Options& options) {
    if (options.inputs.size() > 2)
        throw std::runtime_error("plain has 2 inputs, more are given");
    auto device = distributed::MeshDevice::create_unit_mesh(0);
    if (device->arch() != tt::ARCH::WORMHOLE_B0)
        throw std::runtime_error("the program is for wormhole_n150, the device is another chip");
    Program program = CreateProgram();

    const Tiles A_tiles{1, 128, 128, 2048, false, false};
    const Place A_place{BufferType::DRAM};
    auto A_tensor =
        to_device(*device, A_tiles, A_place, pack(A_tiles, load(options, 0, A_tiles)));
    const Tiles B_tiles{1, 128, 128, 2048, false, false};
    const Place B_place{BufferType::DRAM};
    auto B_tensor =
        to_device(*device, B_tiles, B_place, pack(B_tiles, load(options, 1, B_tiles)));
    const Tiles C_tiles{1, 128, 128, 2048, false, false};
    const Place C_place{BufferType::DRAM};
    auto C_tensor =
        to_device(*device, C_tiles, C_place, pack(C_tiles, Words(C_tiles.elements(), UNWRITTEN)));

    const std::vector<CoreCoord> cores = {
        {0, 0}, {1, 0}, {2, 0}, {3, 0},
    };
    const CoreRangeSet all(std::vector<CoreRange>(cores.begin(), cores.end()));

    // c_out: compute -> writer
    CreateCircularBuffer(program, all, CircularBufferConfig(16384, {{16, tt::DataFormat::Float16_b}})
        .set_page_size(16, 2048));
    // a: reader -> compute
    CreateCircularBuffer(program, all, CircularBufferConfig(8192, {{0, tt::DataFormat::Float16_b}})
        .set_page_size(0, 2048));
    // b: writer -> compute
    CreateCircularBuffer(program, all, CircularBufferConfig(8192, {{1, tt::DataFormat::Float16_b}})
        .set_page_size(1, 2048));

    std::vector<uint32_t> reader_compile_args;
    TensorAccessorArgs(*A_tensor).append_to(reader_compile_args);
    const auto reader = CreateKernel(program, here / "reader.cpp", all, DataMovementConfig{
        .processor = DataMovementProcessor::RISCV_1,
        .noc = NOC::NOC_0,
        .compile_args = reader_compile_args,
    });
    SetCommonRuntimeArgs(program, reader, {
        static_cast<uint32_t>(A_tensor->address()),
    });
    // work_start, work_count of each core
    SetRuntimeArgs(program, reader, cores, {
        {0, 1},
        {1, 1},
        {2, 1},
        {3, 1},
    });

    const auto compute = CreateKernel(program, here / "compute.cpp", all, ComputeConfig{
        .math_fidelity = MathFidelity::HiFi4,
        .fp32_dest_acc_en = true,
        .dst_full_sync_en = false,
        .math_approx_mode = false,
    });
    // work_count of each core
    SetRuntimeArgs(program, compute, cores, {
        {1},
        {1},
        {1},
        {1},
    });

    std::vector<uint32_t> writer_compile_args;
    TensorAccessorArgs(*B_tensor).append_to(writer_compile_args);
    TensorAccessorArgs(*C_tensor).append_to(writer_compile_args);
    const auto writer = CreateKernel(program, here / "writer.cpp", all, DataMovementConfig{
        .processor = DataMovementProcessor::RISCV_0,
        .noc = NOC::NOC_1,
        .compile_args = writer_compile_args,
    });
    SetCommonRuntimeArgs(program, writer, {
        static_cast<uint32_t>(B_tensor->address()),
        static_cast<uint32_t>(C_tensor->address()),
    });
    // work_start, work_count of each core
    SetRuntimeArgs(program, writer, cores, {
        {0, 1},
        {1, 1},
        {2, 1},
        {3, 1},
    });

    distributed::MeshWorkload workload;
    workload.add_program(distributed::MeshCoordinateRange(device->shape()), std::move(program));
    distributed::EnqueueMeshWorkload(device->mesh_command_queue(), workload, false);
    distributed::Finish(device->mesh_command_queue());

    save(options, "C", unpack(C_tiles, from_device(*device, C_tensor)));
    device->close();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
