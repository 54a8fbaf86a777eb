#pragma once
#include "api/compile_time_args.h"
#include "emulator/interface.h"

template <typename T>
T get_arg_val(int arg_idx, EMULATOR_CALL_LINE) {
    static_assert(sizeof(T) == 4, "arguments are 4-byte words");
    const uint32_t word = emulator_argument(static_cast<uint32_t>(arg_idx), line.number);
    T value;
    __builtin_memcpy(&value, &word, 4);
    return value;
}

template <typename T>
T get_common_arg_val(int arg_idx, EMULATOR_CALL_LINE) {
    static_assert(sizeof(T) == 4, "arguments are 4-byte words");
    const uint32_t word = emulator_common_argument(static_cast<uint32_t>(arg_idx), line.number);
    T value;
    __builtin_memcpy(&value, &word, 4);
    return value;
}

inline uint8_t get_absolute_logical_x() { return static_cast<uint8_t>(emulator_logical_x()); }
inline uint8_t get_absolute_logical_y() { return static_cast<uint8_t>(emulator_logical_y()); }
inline uint8_t get_relative_logical_x() { return static_cast<uint8_t>(emulator_logical_x()); }
inline uint8_t get_relative_logical_y() { return static_cast<uint8_t>(emulator_logical_y()); }

inline void cb_reserve_back(int32_t id, int32_t pages, EMULATOR_CALL_LINE) { emulator_reserve_back(static_cast<uint32_t>(id), static_cast<uint32_t>(pages), line.number); }
inline void cb_push_back(int32_t id, int32_t pages, EMULATOR_CALL_LINE) { emulator_push_back(static_cast<uint32_t>(id), static_cast<uint32_t>(pages), line.number); }
inline void cb_wait_front(int32_t id, int32_t pages, EMULATOR_CALL_LINE) { emulator_wait_front(static_cast<uint32_t>(id), static_cast<uint32_t>(pages), line.number); }
inline void cb_pop_front(int32_t id, int32_t pages, EMULATOR_CALL_LINE) { emulator_pop_front(static_cast<uint32_t>(id), static_cast<uint32_t>(pages), line.number); }
inline uint32_t get_write_ptr(uint32_t id, EMULATOR_CALL_LINE) { return emulator_write_pointer(id, line.number); }
inline uint32_t get_read_ptr(uint32_t id, EMULATOR_CALL_LINE) { return emulator_read_pointer(id, line.number); }
// Only chips have a cache.
inline void invalidate_l1_cache() {}
inline uint32_t get_tile_size(uint32_t id, EMULATOR_CALL_LINE) { return emulator_page_bytes(id, line.number); }
