#pragma once
#include "emulator/buffer.h"

class CircularBuffer : public EmulatorBuffer {
public:
    constexpr CircularBuffer(uint32_t cb_id) : EmulatorBuffer(cb_id) {}
    uint32_t get_cb_id() const { return id_; }
};

template <>
struct noc_traits_t<CircularBuffer> : EmulatorBufferTraits<CircularBuffer> {};
