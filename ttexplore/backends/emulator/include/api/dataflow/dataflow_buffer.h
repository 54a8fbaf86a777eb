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
    void finish() {}
};

template <>
struct noc_traits_t<DataflowBuffer> : EmulatorBufferTraits<DataflowBuffer> {};
