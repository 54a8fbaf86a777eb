#pragma once
#include "emulator/buffer.h"

struct DataflowBufferArgs : EmulatorBufferArgs {};

class DataflowBuffer : public EmulatorBuffer {
public:
    constexpr DataflowBuffer(uint16_t logical_dfb_id) : EmulatorBuffer(logical_dfb_id) {}
    uint32_t get_entry_size(EMULATOR_CALL_LINE) const { return emulator_page_bytes(id_, line.number); }
    uint32_t get_total_num_entries(EMULATOR_CALL_LINE) const { return emulator_buffer_pages(id_, line.number); }
    uint32_t get_total_size_bytes(EMULATOR_CALL_LINE) const {
        return emulator_buffer_pages(id_, line.number) * emulator_page_bytes(id_, line.number);
    }
    template <typename T = uint32_t>
    T read_tile_value(uint32_t tile, uint32_t place, EMULATOR_CALL_LINE) {
        static_assert(sizeof(T) == 4, "other sizes are not emulated");
        return static_cast<T>(emulator_tile_word(id_, tile, place, line.number));
    }
    void finish() {}
};

template <>
struct noc_traits_t<DataflowBuffer> : EmulatorBufferTraits<DataflowBuffer> {};
