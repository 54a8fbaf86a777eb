// Arguments, circular buffers, NoC transfers and semaphores.
#include "machine.h"

// Reads from DRAM want the same position on both sides modulo 32 bytes on Wormhole and 64 on Blackhole, writes modulo 16
// (NOC_DRAM_READ_ALIGNMENT_BYTES, NOC_DRAM_WRITE_ALIGNMENT_BYTES of the SDK).
static uint32_t read_alignment_bytes() { return machine.wormhole ? 32 : 64; }
static constexpr uint32_t WRITE_ALIGNMENT_BYTES = 16;

static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }

// ---- arguments

static uint32_t argument_at(const std::vector<uint32_t>& values, uint32_t index, const char* call) {
    if (index >= values.size()) {
        kernel_fault("B015",
                     format_text("%s(%u), but the kernel has %zu such arguments", call, index, values.size()),
                     "pass one more argument from the host, or correct the index");
    }
    return values[index];
}

uint32_t emulator_argument(uint32_t index, uint32_t line) {
    at_line(line);
    return argument_at(running->arguments, index, "get_arg_val");
}

uint32_t emulator_common_argument(uint32_t index, uint32_t line) {
    at_line(line);
    return argument_at(machine.common_arguments[running->role], index, "get_common_arg_val");
}

uint32_t emulator_logical_x() { return running->core->x; }
uint32_t emulator_logical_y() { return running->core->y; }

// ---- circular buffers

static void check_role(int& role, uint32_t buffer, const char* action) {
    if (role < 0) {
        role = static_cast<int>(running->role);
    } else if (role != static_cast<int>(running->role)) {
        kernel_fault("B010",
                     format_text("%s is %s by the %s kernel and now also by the %s kernel", buffer_name(buffer).c_str(),
                                 action, KERNEL_NAMES[role], KERNEL_NAMES[running->role]),
                     "use one producer and one consumer per circular buffer: each kernel keeps its own position");
    }
}

static void check_amount(uint32_t buffer, uint32_t pages, const char* call) {
    if (pages > machine.buffers[buffer].pages) {
        kernel_fault("B010",
                     format_text("%s of %u tiles on %s, which holds %u", call, pages, buffer_name(buffer).c_str(),
                                 machine.buffers[buffer].pages),
                     "enlarge the circular buffer or ask for fewer tiles at a time: this would wait forever");
    }
}

static void check_straddle(uint32_t buffer, uint32_t position, uint32_t pages, const char* call) {
    const uint32_t capacity = machine.buffers[buffer].pages;
    if (position + pages > capacity) {
        kernel_fault("B010",
                     format_text("%s of %u tiles at position %u of %s straddles its end: it holds %u tiles", call, pages,
                                 position, buffer_name(buffer).c_str(), capacity),
                     "make the capacity a multiple of every push and pop: the chip does not wrap around inside a block");
    }
}

void emulator_reserve_back(uint32_t id, uint32_t pages, uint32_t line) {
    Core* core = at_line(line);
    Buffer& buffer = checked_buffer(id);
    check_role(buffer.producer, id, "filled");
    check_amount(id, pages, "reserve_back");
    const BufferConfig& config = machine.buffers[id];
    if (config.pages - buffer.available < pages) {
        block_until(Wait::Reserve, id, pages);
    }
    CoreMemory* memory = core->memory;
    for (uint32_t page = buffer.reserved; page < pages; ++page) {
        const uint32_t position = (buffer.write + page) % config.pages;
        memory->written[config.first_page + position] = 0;
        running->time = later(running->time, memory->popped_at[config.first_page + position]);
        if (!config.lies_there) {
            moved({Place::Reserved}, in_buffer(core, id, position), config.page_bytes);
        }
    }
    buffer.reserved = later(buffer.reserved, pages);
    record(Event_reserve, id, pages);
}

void emulator_push_back(uint32_t id, uint32_t pages, uint32_t line) {
    Core* core = at_line(line);
    Buffer& buffer = checked_buffer(id);
    check_role(buffer.producer, id, "filled");
    if (pages > buffer.reserved) {
        kernel_fault("B010",
                     format_text("push_back of %u tiles on %s, but %u are reserved", pages, buffer_name(id).c_str(),
                                 buffer.reserved),
                     format_text("call reserve_back(%u) before filling them", pages));
    }
    check_straddle(id, buffer.write, pages, "push_back");
    if (buffer.outstanding_reads) {
        kernel_fault("B010",
                     format_text("push_back on %s while %u NoC reads into it are in flight", buffer_name(id).c_str(),
                                 buffer.outstanding_reads),
                     "call noc.async_read_barrier() before push_back: the consumer would read stale memory");
    }
    const BufferConfig& config = machine.buffers[id];
    CoreMemory* memory = core->memory;
    for (uint32_t page = 0; page < pages; ++page) {
        const uint32_t index = config.first_page + buffer.write + page;
        if (!memory->written[index] && !buffer.raw_write && !config.lies_there) {
            kernel_fault("B010",
                         format_text("push_back of %u tiles on %s, but nothing was written to tile %u of them", pages,
                                     buffer_name(id).c_str(), page),
                         "read, pack or store to every tile before it is pushed");
        }
        forget_unpacked(core, index);
        memory->pushed_at[index] = running->time;
    }
    buffer.available += pages;
    buffer.reserved -= pages;
    buffer.write = (buffer.write + pages) % config.pages;
    buffer.packed = 0;
    buffer.raw_write = false;
    record(Event_push, id, pages);
}

void emulator_wait_front(uint32_t id, uint32_t pages, uint32_t line) {
    Core* core = at_line(line);
    Buffer& buffer = checked_buffer(id);
    check_role(buffer.consumer, id, "emptied");
    check_amount(id, pages, "wait_front");
    if (buffer.available < pages) {
        block_until(Wait::Front, id, pages);
    }
    if (pages) {
        const BufferConfig& config = machine.buffers[id];
        const uint32_t last = config.first_page + (buffer.read + pages - 1) % config.pages;
        running->time = later(running->time, core->memory->pushed_at[last]);
    }
    buffer.waited = later(buffer.waited, pages);
    record(Event_wait, id, pages);
}

void emulator_pop_front(uint32_t id, uint32_t pages, uint32_t line) {
    Core* core = at_line(line);
    Buffer& buffer = checked_buffer(id);
    check_role(buffer.consumer, id, "emptied");
    if (pages > buffer.waited) {
        kernel_fault("B010",
                     format_text("pop_front of %u tiles on %s, but %u were waited for (%u are there)", pages,
                                 buffer_name(id).c_str(), buffer.waited, buffer.available),
                     format_text("call wait_front(%u) first", pages));
    }
    check_straddle(id, buffer.read, pages, "pop_front");
    if (buffer.unflushed_writes) {
        kernel_fault("B010",
                     format_text("pop_front on %s while %u NoC writes from it are in flight", buffer_name(id).c_str(),
                                 buffer.unflushed_writes),
                     "call noc.async_writes_flushed() before pop_front: the producer would overwrite the tiles");
    }
    const BufferConfig& config = machine.buffers[id];
    for (uint32_t page = 0; page < pages; ++page) {
        core->memory->popped_at[config.first_page + buffer.read + page] = running->time;
    }
    buffer.available -= pages;
    buffer.waited -= pages;
    buffer.read = (buffer.read + pages) % config.pages;
    record(Event_pop, id, pages);
}

uint32_t emulator_write_pointer(uint32_t id, uint32_t line) {
    Core* core = at_line(line);
    Buffer& buffer = checked_buffer(id);
    const BufferConfig& config = machine.buffers[id];
    // A pointer that is taken again must not wipe out what was stored through the first one.
    for (uint32_t page = 0; page < buffer.reserved && !buffer.raw_write; ++page) {
        // What is stored through the pointer cannot be followed; what is not stored shall be seen as NaN.
        const uint32_t position = (buffer.write + page) % config.pages;
        if (!core->memory->written[config.first_page + position]) {
            memset(page_memory(core, id, position), 0xFF, config.page_bytes);
        }
    }
    if (buffer.reserved) {
        buffer.raw_write = true;
    }
    return core->memory->l1_address + config.l1_offset + buffer.write * config.page_bytes;
}

uint32_t emulator_read_pointer(uint32_t id, uint32_t line) {
    Core* core = at_line(line);
    const Buffer& buffer = checked_buffer(id);
    const BufferConfig& config = machine.buffers[id];
    if (!buffer.waited) {
        kernel_fault("B010",
                     format_text("the front of %s is read, but 0 tiles were waited for", buffer_name(id).c_str()),
                     "wait_front() first: what is there may not have arrived");
    }
    return core->memory->l1_address + config.l1_offset + buffer.read * config.page_bytes;
}

// On the chip the unpacker's processor reads the word, and the two others of the compute kernel get it from there.
uint32_t emulator_tile_word(uint32_t id, uint32_t tile, uint32_t place, uint32_t line) {
    Core* core = at_line(line);
    const Buffer& buffer = checked_buffer(id);
    const BufferConfig& config = machine.buffers[id];
    if (running->role != COMPUTE) {
        kernel_fault("B014", "read_tile_value in a data movement kernel", "read the memory at get_read_ptr()");
    }
    if (tile >= buffer.waited || (place + 1) * 4 > config.page_bytes) {
        kernel_fault("B010",
                     format_text("word %u of tile %u of %s is read, but %u tiles were waited for", place, tile,
                                 buffer_name(id).c_str(), buffer.waited),
                     "wait_front() first: what is there may not have arrived");
    }
    const uint8_t* page = page_memory(core, id, (buffer.read + tile) % config.pages);
    return reinterpret_cast<const uint32_t*>(page)[place];
}

void emulator_assertion(const char* condition, uint32_t line) {
    at_line(line);
    kernel_fault("B012", format_text("a place that elements of tensors decide is outside: not %s", condition),
                 "check the elements of the tensors that decide it, or test them in the kernel");
}

uint32_t emulator_page_bytes(uint32_t id, uint32_t line) {
    at_line(line);
    checked_buffer(id);
    return machine.buffers[id].page_bytes;
}

uint32_t emulator_buffer_pages(uint32_t id, uint32_t line) {
    at_line(line);
    checked_buffer(id);
    return machine.buffers[id].pages;
}

// ---- NoC transfers

static Tensor& tensor_at(uint32_t address) {
    for (Tensor& tensor : machine.tensors) {
        if (tensor.address == address) {
            return tensor;
        }
    }
    kernel_fault("B012",
                 format_text("a tensor accessor has address 0x%x, which is not the address of a tensor", address),
                 "pass the tensor's address as the accessor's second argument (check the argument order)");
}

static uint8_t* tensor_memory(const NocLocation& location, uint32_t bytes, Tensor*& tensor) {
    tensor = &tensor_at(location.address);
    if (location.page >= tensor->pages) {
        kernel_fault("B012",
                     format_text("page %u of tensor %s, which has %u pages", location.page, tensor->name.c_str(),
                                 tensor->pages),
                     "correct the page id: page ids count the tiles of the padded tensor row by row");
    }
    if (location.page_bytes != tensor->page_bytes || location.offset + bytes > tensor->page_bytes) {
        kernel_fault("B012",
                     format_text("a transfer of %u bytes at offset %u of a page of tensor %s with an accessor for pages "
                                 "of %u bytes; its pages have %u bytes",
                                 bytes, location.offset, tensor->name.c_str(), location.page_bytes, tensor->page_bytes),
                     "transfer within one page, and give each tensor its own TensorAccessorArgs offset");
    }
    return tensor->memory + static_cast<uint64_t>(location.page) * tensor->page_bytes + location.offset;
}

static uint8_t* l1_memory(Core* core, uint32_t address, uint32_t own_base, uint32_t bytes) {
    const uint32_t offset = address - own_base;
    if (address < own_base || offset + static_cast<uint64_t>(bytes) > machine.l1_bytes) {
        kernel_fault("B012",
                     format_text("a transfer of %u bytes at L1 address 0x%x, outside the circular buffers", bytes, address),
                     "take addresses from get_write_ptr() or get_read_ptr()");
    }
    return memory_of(core)->l1 + offset;
}

// Notes that `bytes` at `memory` of the core were written, for the pages of its circular buffers.
static void mark_written(Core* core, const uint8_t* memory, uint32_t bytes) {
    const uint32_t offset = static_cast<uint32_t>(memory - core->memory->l1);
    for (uint32_t id = 0; id < MAXIMUM_BUFFERS; ++id) {
        const BufferConfig& config = machine.buffers[id];
        if (!config.used || offset < config.l1_offset || offset >= config.l1_offset + config.pages * config.page_bytes) {
            continue;
        }
        const uint32_t first = (offset - config.l1_offset) / config.page_bytes;
        const uint32_t last = (offset - config.l1_offset + bytes - 1) / config.page_bytes;
        for (uint32_t page = first; page <= last && page < config.pages; ++page) {
            core->memory->written[config.first_page + page] = 1;
            forget_unpacked(core, config.first_page + page);
        }
    }
}

static uint8_t* buffer_source(const NocLocation& location, uint32_t bytes) {
    Core* core = running->core;
    Buffer& buffer = checked_buffer(location.address);
    const BufferConfig& config = machine.buffers[location.address];
    const uint64_t end = static_cast<uint64_t>(location.offset) + bytes;
    if (end > static_cast<uint64_t>(buffer.waited) * config.page_bytes) {
        kernel_fault("B012",
                     format_text("a transfer of bytes %u to %u of the front of %s, but %u tiles (%u bytes) were waited for",
                                 location.offset, location.offset + bytes, buffer_name(location.address).c_str(),
                                 buffer.waited, buffer.waited * config.page_bytes),
                     "wait_front() for all tiles that are sent; to send what was just filled, use "
                     "CoreLocalMem<uint32_t>(buffer.get_write_ptr())");
    }
    check_straddle(location.address, buffer.read, static_cast<uint32_t>((end + config.page_bytes - 1) / config.page_bytes),
                   "a transfer");
    return page_memory(core, location.address, buffer.read) + location.offset;
}

static uint8_t* buffer_target(const NocLocation& location, uint32_t bytes) {
    Core* core = running->core;
    Buffer& buffer = checked_buffer(location.address);
    const BufferConfig& config = machine.buffers[location.address];
    const uint64_t end = static_cast<uint64_t>(location.offset) + bytes;
    if (end > static_cast<uint64_t>(buffer.reserved) * config.page_bytes) {
        kernel_fault("B012",
                     format_text("a transfer to bytes %u to %u of the back of %s, but %u tiles (%u bytes) are reserved",
                                 location.offset, location.offset + bytes, buffer_name(location.address).c_str(),
                                 buffer.reserved, buffer.reserved * config.page_bytes),
                     "reserve_back() all tiles that are read before one push_back()");
    }
    check_straddle(location.address, buffer.write,
                   static_cast<uint32_t>((end + config.page_bytes - 1) / config.page_bytes), "a transfer");
    return page_memory(core, location.address, buffer.write) + location.offset;
}

static void check_alignment(uint32_t page_offset, const uint8_t* l1, uint32_t alignment) {
    const uint32_t l1_offset = static_cast<uint32_t>(l1 - running->core->memory->l1);
    if (page_offset % alignment != l1_offset % alignment) {
        kernel_fault("B012",
                     format_text("a transfer between byte %u of a page and byte %u of L1: they differ modulo %u", page_offset,
                                 l1_offset, alignment),
                     "make the DRAM and L1 addresses of a transfer equal modulo the alignment");
    }
}

static Core* remote_core(uint32_t x, uint32_t y) {
    Core* core = core_at(x, y);
    if (!core) {
        kernel_fault("B012",
                     format_text("a transfer to core (%u, %u), where no kernel of this program runs", x, y),
                     "use logical core coordinates: they are the NoC coordinates of the emulator");
    }
    return core;
}

// Notes a transfer to `to`, which is `target`, that the barrier of reads ends.
static void arriving(Core* core, const NocLocation& target, const uint8_t* to, uint32_t bytes) {
    ++running->outstanding_reads;
    if (target.kind != NocLocation::Buffer) {
        mark_written(core, to, bytes);
        return;
    }
    Buffer& buffer = core->buffers[target.address];
    const BufferConfig& config = machine.buffers[target.address];
    const uint32_t first = buffer.write + target.offset / config.page_bytes;
    const uint32_t last = buffer.write + (target.offset + bytes - 1) / config.page_bytes;
    for (uint32_t page = first; page <= last; ++page) {
        core->memory->written[config.first_page + page] = 1;
    }
    ++buffer.outstanding_reads;
    running->read_buffers |= 1ull << target.address;
}

// What a kernel reads of a tensor must not be on its way there, nor come from another core.
static void check_arrived(const Core* core, const Tensor& tensor, uint32_t page, uint32_t bytes) {
    if (!tensor.output) {
        return;
    }
    if (const uint16_t owner = tensor.written[page]; owner && owner != core->index + 1 && bytes == tensor.page_bytes) {
        const Core& other = machine.cores[owner - 1];
        kernel_fault("B012",
                     format_text("page %u of tensor %s is read, which core (%u, %u) has written", page,
                                 tensor.name.c_str(), other.x, other.y),
                     "let one core do all work that reads or writes a page: the order of the transfers is undefined");
    }
    if (running->unlanded_tensors & 1ull << (&tensor - machine.tensors.data()) % 64) {
        kernel_fault("B012",
                     format_text("tensor %s is read while writes to it are in flight", tensor.name.c_str()),
                     "call noc.async_write_barrier() before the read");
    }
}

void emulator_noc_read(const NocLocation* source, const NocLocation* target, uint32_t bytes, uint32_t line) {
    Core* core = at_line(line);
    const bool to_buffer = target->kind == NocLocation::Buffer;
    uint8_t* to = to_buffer ? buffer_target(*target, bytes)
                            : l1_memory(core, target->address + target->offset, core->memory->l1_address, bytes);
    uint32_t object = to_buffer ? target->address : 0xFF;
    Place place;
    switch (source->kind) {
        case NocLocation::Tensor: {
            Tensor* tensor = nullptr;
            const uint8_t* from = tensor_memory(*source, bytes, tensor);
            check_arrived(core, *tensor, source->page, bytes);
            check_alignment(source->offset, to, read_alignment_bytes());
            memcpy(to, from, bytes);
            object |= static_cast<uint32_t>(tensor - machine.tensors.data()) << 8;
            place = in_tensor(tensor, source->page, source->offset);
            break;
        }
        case NocLocation::Remote: {
            Core* other = remote_core(source->x, source->y);
            const uint8_t* from = l1_memory(other, source->address, core->memory->l1_address, bytes);
            memcpy(to, from, bytes);
            place = in_l1(other, from);
            break;
        }
        case NocLocation::Buffer:
        case NocLocation::Local: {
            const uint8_t* from = source->kind == NocLocation::Buffer
                                      ? buffer_source(*source, bytes)
                                      : l1_memory(core, source->address + source->offset, core->memory->l1_address, bytes);
            memcpy(to, from, bytes);
            place = in_l1(core, from);
            break;
        }
    }
    arriving(core, *target, to, bytes);
    moved(place, in_l1(core, to), bytes);
    record(Event_read, object, source->page);
}

// The firmware keeps zeros in L1, and this reads them; it ends with the barrier of reads.
void emulator_noc_write_zeros(const NocLocation* target, uint32_t bytes, uint32_t line) {
    Core* core = at_line(line);
    const bool to_buffer = target->kind == NocLocation::Buffer;
    uint8_t* to = to_buffer ? buffer_target(*target, bytes)
                            : l1_memory(core, target->address + target->offset, core->memory->l1_address, bytes);
    check_alignment(0, to, WRITE_ALIGNMENT_BYTES);
    memset(to, 0, bytes);
    arriving(core, *target, to, bytes);
    moved({}, in_l1(core, to), bytes);
    record(Event_zeros, to_buffer ? target->address : 0xFF, bytes);
}

void emulator_noc_write(const NocLocation* source, const NocLocation* target, uint32_t bytes, uint32_t line) {
    Core* core = at_line(line);
    const bool from_buffer = source->kind == NocLocation::Buffer;
    const uint8_t* from = from_buffer ? buffer_source(*source, bytes)
                                      : l1_memory(core, source->address + source->offset, core->memory->l1_address, bytes);
    uint32_t object = from_buffer ? source->address : 0xFF;
    if (target->kind == NocLocation::Tensor) {
        Tensor* tensor = nullptr;
        uint8_t* to = tensor_memory(*target, bytes, tensor);
        if (!tensor->output) {
            kernel_fault("B012",
                         format_text("a write to tensor %s, which is an input", tensor->name.c_str()),
                         "check the order of the address arguments, or declare the tensor an output");
        }
        check_alignment(target->offset, from, WRITE_ALIGNMENT_BYTES);
        uint16_t& owner = tensor->written[target->page];
        if (owner && owner != core->index + 1 && bytes == tensor->page_bytes) {
            const Core& other = machine.cores[owner - 1];
            kernel_fault("B012",
                         format_text("page %u of tensor %s is written again: core (%u, %u) has written it already",
                                     target->page, tensor->name.c_str(), other.x, other.y),
                         "let one core do all work that writes a page: the order of the writes is undefined");
        }
        memcpy(to, from, bytes);
        moved(in_l1(core, from), in_tensor(tensor, target->page, target->offset), bytes);
        owner = static_cast<uint16_t>(core->index + 1);
        running->unlanded_tensors |= 1ull << (tensor - machine.tensors.data()) % 64;
        object |= static_cast<uint32_t>(tensor - machine.tensors.data()) << 8;
    } else {
        const bool remote = target->kind == NocLocation::Remote;
        Core* other = remote ? remote_core(target->x, target->y) : core;
        if (!other->finished) {
            uint8_t* to = target->kind == NocLocation::Buffer
                              ? buffer_target(*target, bytes)
                              : l1_memory(other, target->address + target->offset, core->memory->l1_address, bytes);
            memmove(to, from, bytes);
            mark_written(other, to, bytes);
            moved(in_l1(core, from), in_l1(other, to), bytes);
        }
    }
    ++running->unlanded_writes;
    if (from_buffer) {
        ++core->buffers[source->address].unflushed_writes;
        running->written_buffers |= 1ull << source->address;
    }
    record(Event_write, object, target->page);
}

// The cores of a rectangle. NoC 0 (reader) routes right and down, NoC 1 (writer) left and up, and wants its corners so.
static std::vector<Core*> rectangle_cores(const NocRectangle& rectangle, uint32_t destinations, bool include_source) {
    const bool reverse = running->role == WRITER;
    const uint32_t x0 = reverse ? rectangle.x_end : rectangle.x_start, x1 = reverse ? rectangle.x_start : rectangle.x_end;
    const uint32_t y0 = reverse ? rectangle.y_end : rectangle.y_start, y1 = reverse ? rectangle.y_start : rectangle.y_end;
    if (x0 > x1 || y0 > y1) {
        kernel_fault("B012",
                     format_text("a multicast from corner (%u, %u) to (%u, %u) against the direction of NoC %u",
                                 rectangle.x_start, rectangle.y_start, rectangle.x_end, rectangle.y_end, reverse ? 1u : 0u),
                     "on NoC 0 (reader) start at the smallest coordinates, on NoC 1 (writer) at the largest");
    }
    std::vector<Core*> cores;
    for (uint32_t y = y0; y <= y1; ++y) {
        for (uint32_t x = x0; x <= x1; ++x) {
            Core* core = remote_core(x, y);
            if (core != running->core || include_source) {
                cores.push_back(core);
            }
        }
    }
    if (cores.size() != destinations) {
        kernel_fault("B012",
                     format_text("a multicast names %u destinations, but its rectangle has %zu", destinations, cores.size()),
                     "count the receivers: without MCAST_INCL_SRC the sender is not one of them");
    }
    return cores;
}

void emulator_noc_multicast(const NocLocation* source, const NocLocation* target, const NocRectangle* rectangle,
                            uint32_t bytes, uint32_t destinations, uint32_t include_source, uint32_t line) {
    Core* core = at_line(line);
    const bool from_buffer = source->kind == NocLocation::Buffer;
    const uint8_t* from = from_buffer ? buffer_source(*source, bytes)
                                      : l1_memory(core, source->address + source->offset, core->memory->l1_address, bytes);
    uint32_t address = target->address;
    if (target->kind == NocLocation::Buffer) {
        const Buffer& buffer = checked_buffer(target->address);
        const BufferConfig& config = machine.buffers[target->address];
        check_straddle(target->address, buffer.write,
                       (target->offset + bytes + config.page_bytes - 1) / config.page_bytes, "a multicast");
        address = core->memory->l1_address + config.l1_offset + buffer.write * config.page_bytes + target->offset;
    }
    for (Core* receiver : rectangle_cores(*rectangle, destinations, include_source)) {
        if (!receiver->finished) {
            uint8_t* to = l1_memory(receiver, address, core->memory->l1_address, bytes);
            memmove(to, from, bytes);
            mark_written(receiver, to, bytes);
            moved(in_l1(core, from), in_l1(receiver, to), bytes);
        }
    }
    ++running->unlanded_writes;
    if (from_buffer) {
        ++core->buffers[source->address].unflushed_writes;
        running->written_buffers |= 1ull << source->address;
    }
    record(Event_multicast, target->kind == NocLocation::Buffer ? target->address : 0xFF, destinations);
}

// A processor copies an element; only kernels that are recorded tell it.
void emulator_copied(uint32_t source, uint32_t target, uint32_t bytes) {
    Core* core = running->core;
    const uint32_t base = core->memory->l1_address;
    moved(in_l1(core, l1_memory(core, source, base, bytes)), in_l1(core, l1_memory(core, target, base, bytes)), bytes);
}

void emulator_noc_read_barrier(uint32_t line) {
    Core* core = at_line(line);
    running->outstanding_reads = 0;
    for (uint64_t mask = running->read_buffers; mask; mask &= mask - 1) {
        core->buffers[__builtin_ctzll(mask)].outstanding_reads = 0;
    }
    running->read_buffers = 0;
    record(Event_read_barrier, 0, 0);
}

static void flush_writes(Core* core) {
    for (uint64_t mask = running->written_buffers; mask; mask &= mask - 1) {
        core->buffers[__builtin_ctzll(mask)].unflushed_writes = 0;
    }
    running->written_buffers = 0;
}

void emulator_noc_write_barrier(uint32_t line) {
    flush_writes(at_line(line));
    running->unlanded_writes = 0;
    running->unlanded_tensors = 0;
    record(Event_write_barrier, 0, 0);
}

void emulator_noc_writes_flushed(uint32_t line) {
    flush_writes(at_line(line));
    record(Event_flush, 0, 0);
}

void emulator_noc_atomic_barrier(uint32_t line) {
    at_line(line);
    running->outstanding_atomics = 0;
}

// ---- semaphores

static uint32_t& semaphore_of(Core* core, uint32_t semaphore) {
    if (semaphore >= SEMAPHORES) {
        kernel_fault("B012", format_text("semaphore %u; a core has %u", semaphore, SEMAPHORES), "use ids 0 to 15");
    }
    return core->semaphores[semaphore];
}

void emulator_semaphore_set(uint32_t semaphore, uint32_t value, uint32_t line) {
    semaphore_of(at_line(line), semaphore) = value;
    record(Event_semaphore, semaphore, value);
}

void emulator_semaphore_add(uint32_t semaphore, int32_t value, uint32_t line) {
    semaphore_of(at_line(line), semaphore) += static_cast<uint32_t>(value);
    record(Event_semaphore, semaphore, semaphore_of(running->core, semaphore));
}

uint32_t emulator_semaphore_value(uint32_t semaphore, uint32_t line) { return semaphore_of(at_line(line), semaphore); }

void emulator_semaphore_wait(uint32_t semaphore, uint32_t value, uint32_t minimum_only, uint32_t line) {
    const uint32_t& current = semaphore_of(at_line(line), semaphore);
    if (minimum_only ? current < value : current != value) {
        block_until(minimum_only ? Wait::SemaphoreMinimum : Wait::Semaphore, semaphore, value);
    }
    record(Event_semaphore, semaphore, value);
}

void emulator_semaphore_up_remote(uint32_t semaphore, uint32_t x, uint32_t y, uint32_t value, uint32_t line) {
    at_line(line);
    semaphore_of(remote_core(x, y), semaphore) += value;
    ++running->outstanding_atomics;
    record(Event_semaphore, semaphore, value);
}

void emulator_semaphore_multicast(uint32_t semaphore, const NocRectangle* rectangle, uint32_t destinations,
                                  uint32_t include_source, uint32_t increment, uint32_t value, uint32_t line) {
    const uint32_t own = semaphore_of(at_line(line), semaphore);
    for (Core* receiver : rectangle_cores(*rectangle, destinations, include_source)) {
        uint32_t& target = semaphore_of(receiver, semaphore);
        target = increment ? target + value : own;
    }
    if (increment) {
        ++running->outstanding_atomics;
    } else {
        ++running->unlanded_writes;
    }
    record(Event_semaphore, semaphore, increment ? value : own);
}
