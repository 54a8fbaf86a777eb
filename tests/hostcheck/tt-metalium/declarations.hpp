// The part of the host API of tt-metal 0.81.1 that an emitted main.cpp uses: names, types and signatures, written down
// from the API, with no layout and no behaviour of it. The SDK's own headers are not in the ttnn wheel; its shared
// libraries are, so tests/emit/test_host_symbols.py compiles main.cpp against this and asks for every symbol there.
// An object made from it must not be run: members of the structs are only those that main.cpp names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

// These are in the wheel.
#include <hostdevcommon/tensor_accessor/arg_config.hpp>
#include <tt-metalium/buffer_types.hpp>
#include <tt-metalium/circular_buffer_constants.h>

namespace ttsl {
template <typename Value, typename Tag>
class StrongType;
}

namespace tt {
enum class ARCH { WORMHOLE_B0, BLACKHOLE };
enum class DataFormat : uint8_t { Float32, Float16_b, Bfp8_b };
struct xy_pair {
    size_t x, y;
};
}  // namespace tt

namespace tt::tt_metal {

using CoreCoord = xy_pair;
using KernelHandle = uint32_t;
using CBHandle = uintptr_t;
struct SubDeviceIdTag;
using SubDeviceId = ttsl::StrongType<uint8_t, SubDeviceIdTag>;

enum class MathFidelity : uint8_t { LoFi, HiFi2, HiFi3, HiFi4 };
enum class UnpackToDestMode : uint8_t { UnpackToDestFp32, Default };
enum class DataMovementProcessor { RISCV_0, RISCV_1 };
enum NOC : uint8_t { NOC_0, NOC_1 };

class CoreRange {
public:
    CoreRange(const CoreCoord& core);
    CoreRange(const CoreCoord& first, const CoreCoord& last);
};

class CoreRangeSet {
public:
    CoreRangeSet(std::vector<CoreRange>&& ranges);
    CoreRangeSet(const CoreRangeSet& other);
};

struct ShardSpecBuffer {
    ShardSpecBuffer(
        const CoreRangeSet& cores, const std::array<uint32_t, 2>& shard_shape, const ShardOrientation& order,
        const std::array<uint32_t, 2>& page_shape, const std::array<uint32_t, 2>& grid_in_pages) :
        cores(cores) {}  // inline in the SDK too
    CoreRangeSet cores;
};

class BufferShardingArgs {
public:
    BufferShardingArgs() = default;  // inline in the SDK too
    BufferShardingArgs(ShardSpecBuffer shards, TensorMemoryLayout kind) : shards(shards) {}
    std::optional<ShardSpecBuffer> shards;
};

using Cores = std::variant<CoreCoord, CoreRange, CoreRangeSet>;

class Buffer;

class Program {
public:
    Program(Program&& other) noexcept;
    ~Program() noexcept;
};

struct DataMovementConfig {
    DataMovementProcessor processor{};
    NOC noc{};
    std::vector<uint32_t> compile_args{};
};

struct ComputeConfig {
    MathFidelity math_fidelity{};
    bool fp32_dest_acc_en{};
    bool dst_full_sync_en{};
    std::vector<UnpackToDestMode> unpack_to_dest_mode{};
    bool math_approx_mode{};
    std::vector<uint32_t> compile_args{};
};

class CircularBufferConfig {
public:
    CircularBufferConfig(uint32_t total_bytes, const std::map<uint8_t, DataFormat>& formats);
    CircularBufferConfig& set_page_size(uint8_t index, uint32_t bytes);
    CircularBufferConfig& set_globally_allocated_address(const Buffer& buffer);
};

Program CreateProgram();
CBHandle CreateCircularBuffer(Program& program, const Cores& cores, const CircularBufferConfig& config);
uint32_t CreateSemaphore(Program& program, const std::variant<CoreRange, CoreRangeSet>& cores, uint32_t initial_value);
KernelHandle CreateKernel(
    Program& program, const std::string& file, const Cores& cores,
    const std::variant<DataMovementConfig, ComputeConfig>& config);
void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel, std::initializer_list<uint32_t> words);
void SetRuntimeArgs(
    const Program& program, KernelHandle kernel, const std::vector<CoreCoord>& cores,
    const std::vector<std::vector<uint32_t>>& words);

class DispatchCoreConfig {};

namespace distributed {

class MeshShape;
class MeshBuffer;
class MeshCommandQueue {};

class MeshDevice {
public:
    static std::shared_ptr<MeshDevice> create_unit_mesh(
        int device, size_t l1_small_bytes = 0, size_t trace_bytes = 0, size_t queues = 1,
        const DispatchCoreConfig& dispatch = {}, std::span<const uint32_t> l1_bank_remap = {},
        size_t worker_l1_bytes = 0);
    ARCH arch() const;
    const MeshShape& shape() const;
    MeshCommandQueue& mesh_command_queue(std::optional<uint8_t> queue = std::nullopt) const;
    bool close();
    CoreCoord worker_core_from_logical_core(const CoreCoord& logical_core) const;
};

struct ReplicatedBufferConfig {
    uint64_t size{};
};
struct ShardedBufferConfig {};
struct DeviceLocalBufferConfig {
    uint64_t page_size{};
    BufferType buffer_type{};
    BufferShardingArgs sharding_args{};
};

class MeshBuffer {
public:
    static std::shared_ptr<MeshBuffer> create(
        const std::variant<ReplicatedBufferConfig, ShardedBufferConfig>& buffer, const DeviceLocalBufferConfig& local,
        MeshDevice* device, std::optional<uint64_t> address = std::nullopt);
    ~MeshBuffer();
    uint64_t address() const { return 0; }  // inline in the SDK too
    Buffer* get_backing_buffer() const;
};

class MeshCoordinateRange {
public:
    explicit MeshCoordinateRange(const MeshShape& shape);
};

class MeshWorkload {
public:
    MeshWorkload();
    ~MeshWorkload();
    void add_program(const MeshCoordinateRange& devices, Program&& program);
};

void EnqueueMeshWorkload(MeshCommandQueue& queue, MeshWorkload& workload, bool blocking);
void Finish(MeshCommandQueue& queue, std::span<const SubDeviceId> sub_devices = {});

// The SDK's templates call these virtual methods; what the libraries export is what overrides them.
class MeshCommandQueueBase : public MeshCommandQueue {
public:
    void enqueue_write_mesh_buffer(const std::shared_ptr<MeshBuffer>& buffer, const void* source, bool blocking);
    void enqueue_read_mesh_buffer(void* target, const std::shared_ptr<MeshBuffer>& buffer, bool blocking);
};

template <typename Value>
void EnqueueWriteMeshBuffer(
    MeshCommandQueue& queue, std::shared_ptr<MeshBuffer>& buffer, const std::vector<Value>& source, bool blocking) {
    static_cast<MeshCommandQueueBase&>(queue).enqueue_write_mesh_buffer(buffer, source.data(), blocking);
}

template <typename Value>
void EnqueueReadMeshBuffer(
    MeshCommandQueue& queue, std::vector<Value>& target, std::shared_ptr<MeshBuffer>& buffer, bool blocking) {
    static_cast<MeshCommandQueueBase&>(queue).enqueue_read_mesh_buffer(target.data(), buffer, blocking);
}

}  // namespace distributed

class TensorAccessorArgs {
public:
    explicit TensorAccessorArgs(
        const distributed::MeshBuffer& buffer, tensor_accessor::ArgsConfig config = tensor_accessor::ArgConfig::None);
    void append_to(std::vector<uint32_t>& compile_args) const;
};

}  // namespace tt::tt_metal
