// Bfp8_b tiles: 64 exponents, then 1024 elements of a sign and 7 bits (ops/block_float.py). A group of 16 elements, a
// row of a face, shares an exponent.
#pragma once
#include "number.h"

constexpr uint32_t GROUP = 16;
constexpr uint32_t GROUPS = TILE_ELEMENTS / GROUP;

// To the bits of a float32; 0 where the leading one lies below the smallest exponent.
inline uint32_t block_float_bits(uint8_t exponent, uint8_t element) {
    const uint32_t magnitude = element & 0x7F;
    if (magnitude == 0) return 0;
    const uint32_t shift = static_cast<uint32_t>(__builtin_clz(magnitude)) - 25;  // of 32 bits, 7 are used
    if (shift >= exponent) return 0;
    return static_cast<uint32_t>(element >> 7) << 31 | (exponent - shift) << 23 | (magnitude << (shift + 1) & 0x7F) << 16;
}

inline void unpack_block_floats(const uint8_t* page, uint32_t mask, float* tile) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        tile[i] = float_of(block_float_bits(page[i / GROUP], page[GROUPS + i]) & mask);
    }
}

// To the bits of the nearest float32 with 7 significant bits, ties away from zero; denormals become 0, NaN infinity.
inline uint32_t round_to_seven_bits(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7FFFFFFFu, sign = bits & 0x80000000u;
    if (magnitude < 0x00800000u) return 0;
    return sign | (magnitude >= 0x7F800000u ? 0x7F800000u : (magnitude + 0x10000u) & 0xFFFE0000u);
}

// What the packer makes of a tile of DST. It rounds twice, ties away from zero: each number to 7 bits, and these where
// they move down to the largest exponent of their group. (Equal to what ttsim's Blackhole does from DST of
// 16 and of 32 bits, and its Wormhole from 16.)
inline void pack_block_floats(const float* tile, uint8_t* page) {
    for (uint32_t group = 0; group < GROUPS; ++group) {
        uint32_t numbers[GROUP], shared = 0;
        for (uint32_t i = 0; i < GROUP; ++i) {
            numbers[i] = round_to_seven_bits(bits_of(tile[group * GROUP + i]));
            const uint32_t exponent = numbers[i] >> 23 & 0xFF;
            shared = exponent > shared ? exponent : shared;
        }
        page[group] = static_cast<uint8_t>(shared);
        for (uint32_t i = 0; i < GROUP; ++i) {
            const uint32_t exponent = numbers[i] >> 23 & 0xFF, shift = shared - exponent;
            const uint32_t significand = exponent ? 0x40u | (numbers[i] >> 17 & 0x3F) : 0;
            const uint32_t magnitude = shift == 0 ? significand : shift > 7 ? 0 : ((significand >> (shift - 1)) + 1) >> 1;
            page[GROUPS + group * GROUP + i] = static_cast<uint8_t>(magnitude ? numbers[i] >> 31 << 7 | magnitude : 0);
        }
    }
}
