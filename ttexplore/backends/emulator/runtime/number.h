// Number formats as the chip treats them (metalium.md, section 5).
#pragma once
#include <stdint.h>
#include <string.h>

constexpr uint32_t TILE_ELEMENTS = 1024;
constexpr uint32_t FACE_ELEMENTS = 256;

inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// What a place holds that nothing was written to, and nothing may depend on: that of the interpreter.
constexpr uint32_t UNWRITTEN_NUMBER = 0x7FC00000u, UNWRITTEN_INTEGER = 0xDEADBEEFu;

// Where an element of a tile lies in its four faces.
constexpr uint32_t element_place(uint32_t row, uint32_t column) {
    return (row / 16 * 2 + column / 16) * FACE_ELEMENTS + row % 16 * 16 + column % 16;
}

inline float widen(uint16_t bfloat16) { return float_of(static_cast<uint32_t>(bfloat16) << 16); }

// To bfloat16, nearest, ties away from zero; denormals and -0 become +0, NaN stays NaN.
inline uint32_t round_ties_away_bits(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t rounded = magnitude > 0x7F800000u ? bits | 0x00400000u : bits + 0x8000u;
    return magnitude < 0x00800000u ? 0 : rounded & 0xFFFF0000u;
}

inline float round_ties_away(float value) { return float_of(round_ties_away_bits(bits_of(value))); }
inline uint16_t narrow_ties_away(float value) { return static_cast<uint16_t>(round_ties_away_bits(bits_of(value)) >> 16); }

// What the packer makes bfloat16 of a 32-bit DST: rounded as above, but NaN becomes infinity.
inline uint16_t narrow_packed(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t kept = (bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits & 0x80000000u) | 0x7F800000u : bits;
    return static_cast<uint16_t>(round_ties_away_bits(kept) >> 16);
}

// To bfloat16, nearest, ties to even: what SFPU kernels that round do.
inline float round_ties_even(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t rounded = (bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x00400000u : bits + 0x7FFFu + (bits >> 16 & 1u);
    return float_of(rounded & 0xFFFF0000u);
}

inline float truncate_to_bfloat16(float value) { return float_of(bits_of(value) & 0xFFFF0000u); }

// SrcA and SrcB hold 10 mantissa bits of a Float32 (TF32).
constexpr uint32_t TF32_MASK = 0xFFFFE000u;
// What the multiplier takes of its operands per fidelity phase (metalium.md 5.1): SrcA implicit + 4 bits, then 5 more;
// SrcB implicit + 6 bits, then the rest.
constexpr uint32_t SOURCE_A_MASK = 0xFFFFC000u;
constexpr uint32_t SOURCE_A_HIGH_MASK = 0xFFF80000u;
constexpr uint32_t SOURCE_B_HIGH_MASK = 0xFFFE0000u;

inline float masked(float value, uint32_t mask) { return float_of(bits_of(value) & mask); }

#if defined(__FMA__) || defined(__aarch64__)
inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
// The product is exact in double, so that results are those of other machines but for a rare second rounding.
inline float multiply_add(float a, float b, float c) {
    return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}
#endif
