// The emulated chip: tensors in DRAM, cores with circular buffers, DST and three kernels.
#pragma once
#include <stdint.h>
#include <string>
#include <vector>

#include "../include/emulator/interface.h"
#include "number.h"

// In the order of job.py.
enum class Format : uint32_t { Bfloat16, Float32, Int32, Bfp8 };

// Source: metalium.md 2.1 and 3.2. Blackhole's count; the plan's verifier knows the target's own limit.
constexpr uint32_t MAXIMUM_BUFFERS = 64;
constexpr uint32_t SEMAPHORES = 16;
constexpr uint32_t KERNELS = 3;
constexpr const char* KERNEL_NAMES[KERNELS] = {"reader", "compute", "writer"};
enum : uint32_t { READER, COMPUTE, WRITER };
constexpr uint32_t MAXIMUM_DST_TILES = 16;

struct Tensor {
    std::string name;
    uint32_t address;
    uint32_t page_bytes;
    uint32_t pages;
    bool output, integers;
    std::string input_file, output_file;
    uint8_t* memory = nullptr;
    std::vector<uint16_t> written;  // of each page: the last core that wrote it, counted from 1; 0 for none
};

struct BufferConfig {
    bool used = false;
    std::string name;
    uint32_t pages = 0, page_bytes = 0;
    Format format = Format::Bfloat16;
    bool unpack_to_dest = false;
    uint32_t l1_offset = 0;
    uint32_t first_page = 0;  // of this buffer in the core's per-page arrays
    bool lies_there = false;  // it is a shard that holds its tiles before the program starts
};

// A circular buffer that is a shard: the tensor's pages, in order, or -1 for none.
struct Shard {
    uint32_t buffer = 0, tensor = 0;
    bool output = false;
    std::vector<int32_t> pages;
};

// A circular buffer on one core, in pages. Source: DataflowBuffer's protocol, metalium.md 1.8.
struct Buffer {
    uint32_t read = 0, write = 0;      // positions
    uint32_t available = 0;            // pushed and not popped
    uint32_t reserved = 0, waited = 0; // what the producer and the consumer have asked for and not used up
    uint32_t packed = 0;               // pages packed in order since the last push
    uint32_t outstanding_reads = 0;    // NoC reads into this buffer without a barrier
    uint32_t unflushed_writes = 0;     // NoC writes from this buffer without a flush
    bool raw_write = false;            // its write pointer was taken: stores cannot be followed
    int producer = -1, consumer = -1;
};

enum class Wait : uint32_t { Nothing, Reserve, Front, Semaphore, SemaphoreMinimum };

struct Core;

struct Kernel {
    Core* core = nullptr;
    uint32_t role = 0;
    void (*entry)() = nullptr;
    void* fiber = nullptr;
    uint32_t line = 0;
    Wait wait = Wait::Nothing;
    uint32_t wait_object = 0, wait_amount = 0;
    uint32_t time = 0;  // logical steps
    uint32_t outstanding_reads = 0, unlanded_writes = 0, outstanding_atomics = 0;
    // The tensors with writes in flight, one bit for each.
    uint64_t unlanded_tensors = 0;
    uint64_t read_buffers = 0, written_buffers = 0;  // bit masks: circular buffers that such transfers touch
    bool started = false, finished = false;
    std::vector<uint32_t> arguments;
};

// What the FPU, unpackers, packer and SFPU of a core are set up for.
struct ComputeState {
    bool started_up = false;
    uint32_t source_a = 0, source_b = 0, pack = 0;  // format keys
    FpuOperation fpu = Fpu_none;
    uint32_t fpu_variant = 0, fpu_line = 0;
    uint32_t fpu_format0 = 0, fpu_format1 = 0;
    uint32_t matmul_transpose = 0, matmul_columns = 0, matmul_rows = 0, matmul_inner = 0;
    bool reduce_mask = false, bcast_pending = false;
    uint32_t bcast_variant = 0;
    FpuOperation rows_pending = Fpu_none;  // tilize or untilize, until it is undone
    uint32_t latest_sfpu = SfpuOperationCount;
    uint32_t sfpu_variants[SfpuOperationCount] = {};
    bool sfpu_seen[SfpuOperationCount] = {};
    float exp_scale = 1.0f;
    bool rows_of_extreme = false;  // the latest SFPU operation was a row-wise maximum or minimum
    bool pack_accumulate = false;
    uint32_t relu_mode = 0, relu_threshold = 0;
    enum Section : uint32_t { Free, Acquired, Committed, Packing } section = Free;
    uint32_t section_line = 0;
    uint32_t dst_touched = 0;   // bit mask of slots written since the acquire; the others count as zero
    uint32_t dst_integers = 0;  // bit mask of slots that hold 32-bit integers
};

struct MatmulOperand;

// What `sources` and `operands` hold of a page of a core, 0 for nothing.
struct UnpackedPage {
    uint16_t core = 0;
    uint8_t source = 0, left = 0, right = 0;
};

// Memory that a core holds only while it runs: cores that do not talk to each other share one.
struct CoreMemory {
    uint8_t* l1 = nullptr;
    uint32_t l1_address = 0;
    std::vector<uint8_t> written;        // per page: filled since it was reserved
    std::vector<uint32_t> pushed_at, popped_at;
    float* dst = nullptr;
};

struct Core {
    uint32_t index = 0, x = 0, y = 0;
    bool started = false, finished = false;
    bool recorded = false;  // its events are kept
    Buffer buffers[MAXIMUM_BUFFERS];
    Kernel kernels[KERNELS];
    uint32_t semaphores[SEMAPHORES] = {};
    ComputeState compute;
    CoreMemory* memory = nullptr;
    std::vector<Shard> shards;
};

// Read by backend.py. `object` is a circular buffer id; of a transfer also the tensor's index, in the upper byte.
// `amount` is a number of pages, of a transfer the tensor's page id.
struct Event {
    uint32_t time, amount;
    uint16_t core, line, object;
    uint8_t kernel, operation;
};
static_assert(sizeof(Event) == 16, "backend.py reads records of 16 bytes");

enum EventOperation : uint8_t {
    Event_reserve, Event_push, Event_wait, Event_pop, Event_read, Event_write, Event_read_barrier, Event_write_barrier,
    Event_flush, Event_acquire, Event_commit, Event_wait_registers, Event_release, Event_fpu, Event_sfpu, Event_pack,
    Event_semaphore, Event_multicast, Event_zeros, Event_finish,
};

// Where a value is. `object` is a tensor's index, or a core's; `page` a page of a tensor or a DST tile; `offset` counts
// bytes in a page or in L1.
struct Place {
    enum Kind : uint8_t { Constant, Reserved, Tensor, L1, Dst } kind = Constant;
    uint16_t object = 0;
    uint32_t page = 0, offset = 0;
};
constexpr uint32_t ALL_DST_TILES = 0xFFFFFFFF;
constexpr uint32_t HOST = KERNELS;

// Read by backend.py. What was at `from` before operation number `operation` is part of what is at `to` after it, of
// which only a move that `adds` leaves something. Kernel HOST is the host, before and after the kernels.
struct Move {
    uint32_t operation, bytes, from_page, from_offset, to_page, to_offset;
    uint16_t core, line, from_object, to_object;
    uint8_t from_kind, to_kind, kernel, adds;
};
static_assert(sizeof(Move) == 36, "backend.py reads records of 36 bytes");

struct Machine {
    std::vector<Tensor> tensors;
    BufferConfig buffers[MAXIMUM_BUFFERS];
    uint32_t l1_bytes = 0, total_pages = 0;
    // Unpacked tiles, per page: that of the core which used the page of this number last. Cores take turns, mostly when
    // they are done with a page, and the processor's cache holds the tiles of one core, not of all.
    std::vector<UnpackedPage> unpacked;
    float* sources = nullptr;           // as SrcA or SrcB holds it
    MatmulOperand* operands = nullptr;  // as right and as left side of an exact product
    std::vector<Core> cores;
    std::vector<uint32_t> common_arguments[KERNELS];
    void (*entries[KERNELS])() = {};
    bool wide_dst = true;  // fp32_dest_acc_en
    uint32_t dst_tiles = 4;
    uint32_t fidelity = 4;
    bool exact = true;     // the arithmetic of matrix unit and SFPU bit for bit, else fused multiply-adds
    bool wormhole = true;  // else Blackhole
    // Where there are more events than the limit, only those of every so many-th core are kept, of `event_core` in any
    // case; of one core too many, the first ones.
    uint64_t event_limit = 0, event_count = 0, events_cut = 0;
    uint32_t event_core = 0, event_stride = 1;
    Event* events = nullptr;
    Event* event_cursor = nullptr;
    Event* event_end = nullptr;
    uint64_t move_limit = 0;  // 0: moves are not recorded
    uint32_t operation = 0;
    Move* moves = nullptr;
    Move* move_cursor = nullptr;
    Move* move_end = nullptr;
};

extern Machine machine;
extern Kernel* running;

// Ends the run. `code` is the entry in the catalogue of diagnostics, `hint` says what would make it work.
[[noreturn]] void fault(const char* code, const std::string& message, const std::string& hint);
// Like fault(), naming the running kernel, its core and line.
[[noreturn]] void kernel_fault(const char* code, const std::string& message, const std::string& hint);

std::string format_text(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

// Suspends the running kernel until what it waits for is there.
void block_until(Wait wait, uint32_t object, uint32_t amount);

Core* core_at(uint32_t x, uint32_t y);
// What is unpacked of a page of the core is out of date.
inline void forget_unpacked(const Core* core, uint32_t page) {
    if (machine.unpacked[page].core == core->index) {
        machine.unpacked[page] = {};
    }
}

// Gives the core its memory, if it has none yet.
CoreMemory* memory_of(Core* core);

std::string buffer_name(uint32_t buffer);
[[noreturn]] void missing_buffer(uint32_t buffer);
// The buffer's state on the running core; faults where the program has no such buffer.
inline Buffer& checked_buffer(uint32_t buffer) {
    if (buffer >= MAXIMUM_BUFFERS || !machine.buffers[buffer].used) {
        missing_buffer(buffer);
    }
    return running->core->buffers[buffer];
}
inline uint8_t* page_memory(Core* core, uint32_t buffer, uint32_t page) {
    const BufferConfig& config = machine.buffers[buffer];
    return core->memory->l1 + config.l1_offset + page * config.page_bytes;
}

// The kernel enters an API call at `line`.
inline Core* at_line(uint32_t line) {
    running->line = line;
    return running->core;
}

float* dst_for_math(ComputeState& state, uint32_t slot, bool overwritten, const char* call, bool integers = false);

// Drops the events of every second of the recorded cores while there is no room for another event. False if the event
// of the running core is not to be kept.
bool made_room_for_event();

inline void record(EventOperation operation, uint32_t object, uint32_t amount) {
    const uint32_t time = running->time++;
    if (running->core->recorded && (machine.event_cursor != machine.event_end || made_room_for_event())) {
        *machine.event_cursor++ = {time, amount, static_cast<uint16_t>(running->core->index),
                                   static_cast<uint16_t>(running->line), static_cast<uint16_t>(object),
                                   static_cast<uint8_t>(running->role), operation};
    }
    ++machine.event_count;
}

inline Place in_tensor(const Tensor* tensor, uint32_t page, uint32_t offset) {
    return {Place::Tensor, static_cast<uint16_t>(tensor - machine.tensors.data()), page, offset};
}
inline Place in_l1(const Core* core, uint32_t offset) {
    return {Place::L1, static_cast<uint16_t>(core->index), 0, offset};
}
inline Place in_l1(const Core* core, const uint8_t* memory) {
    return in_l1(core, static_cast<uint32_t>(memory - core->memory->l1));
}
inline Place in_buffer(const Core* core, uint32_t buffer, uint32_t page) {
    return in_l1(core, machine.buffers[buffer].l1_offset + page * machine.buffers[buffer].page_bytes);
}
inline Place in_dst(uint32_t tile) { return {Place::Dst, static_cast<uint16_t>(running->core->index), tile, 0}; }

// Several moves are one operation where all but the first are `also` part of it.
void keep_move(const Place& from, const Place& to, uint32_t bytes, bool adds, bool also);
inline void moved(const Place& from, const Place& to, uint32_t bytes, bool adds = false, bool also = false) {
    if (machine.moves) {
        keep_move(from, to, bytes, adds, also);
    }
}
