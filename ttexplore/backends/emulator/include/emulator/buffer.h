// What DataflowBuffer and CircularBuffer share.
#pragma once
#include "api/dataflow/noc.h"

class EmulatorBuffer {
public:
    explicit constexpr EmulatorBuffer(uint32_t id) : id_(static_cast<uint16_t>(id)) {}
    void reserve_back(uint16_t pages, EMULATOR_CALL_LINE) { emulator_reserve_back(id_, pages, line.number); }
    void push_back(uint16_t pages, EMULATOR_CALL_LINE) { emulator_push_back(id_, pages, line.number); }
    void wait_front(uint16_t pages, EMULATOR_CALL_LINE) { emulator_wait_front(id_, pages, line.number); }
    void pop_front(uint16_t pages, EMULATOR_CALL_LINE) { emulator_pop_front(id_, pages, line.number); }
    uint32_t get_write_ptr(EMULATOR_CALL_LINE) const { return emulator_write_pointer(id_, line.number); }
    uint32_t get_read_ptr(EMULATOR_CALL_LINE) const { return emulator_read_pointer(id_, line.number); }
    uint32_t get_tile_size(EMULATOR_CALL_LINE) const { return emulator_page_bytes(id_, line.number); }
    uint32_t get_tile_hw() const { return 1024; }
    uint16_t get_id() const { return id_; }

protected:
    uint16_t id_;
};

struct EmulatorBufferArgs {
    uint32_t offset_bytes{};
};

struct EmulatorBufferMulticastArgs {
    uint32_t noc_x_start{};
    uint32_t noc_y_start{};
    uint32_t noc_x_end{};
    uint32_t noc_y_end{};
    uint32_t offset_bytes{};
};

// A buffer as source is its read position, as target its write position.
template <typename Buffer>
struct EmulatorBufferTraits {
    using src_args_type = EmulatorBufferArgs;
    using dst_args_type = EmulatorBufferArgs;
    using dst_args_mcast_type = EmulatorBufferMulticastArgs;
    static NocLocation source(const Buffer& buffer, const src_args_type& args, uint32_t) {
        return {NocLocation::Buffer, buffer.get_id(), 0, 0, args.offset_bytes, 0, 0};
    }
    static NocLocation target(const Buffer& buffer, const dst_args_type& args, uint32_t line) {
        return source(buffer, args, line);
    }
    static NocLocation target_mcast(const Buffer& buffer, const dst_args_mcast_type& args, uint32_t) {
        return {NocLocation::Buffer, buffer.get_id(), 0, 0, args.offset_bytes, 0, 0};
    }
};
