#include "fpu.h"

#include <algorithm>

// Everything works on rows of 16 elements, one face wide, in loops that compilers turn into vector instructions.
constexpr uint32_t LANES = 16;
constexpr int32_t EXPONENT_BIAS = 127;
// A phase that takes the low mantissa bits of SrcA or SrcB weighs its product so many binary places less.
constexpr int32_t LOW_A_PLACES = 5;
constexpr int32_t LOW_B_PLACES = 7;

static int32_t exponent_of(uint32_t bits) { return static_cast<int32_t>(bits >> 23 & 0xFF); }
static int32_t sign_mask(uint32_t bits) { return static_cast<int32_t>(bits) >> 31; }

// The hidden bit and 10 mantissa bits; an operand with exponent 0 counts as zero.
static int32_t mantissa11(uint32_t bits) {
    return exponent_of(bits) == 0 ? 0 : static_cast<int32_t>(bits >> 13 & 0x3FF) | 0x400;
}

static int32_t product_places(uint32_t phase) {
    return -EXPONENT_BIAS - (phase & 1 ? LOW_A_PLACES : 0) - (phase & 2 ? LOW_B_PLACES : 0);
}

// The 5 bits of SrcA and the 7 bits of SrcB that a phase multiplies.
static int32_t part_of_a(int32_t mantissa, uint32_t phase) { return phase & 1 ? mantissa >> 1 & 0x1F : mantissa >> 6; }
static int32_t part_of_b(int32_t mantissa, uint32_t phase) { return phase & 2 ? (mantissa & 0xF) << 3 : mantissa >> 4; }

// A term on its way into DST: sign as a mask, exponent, mantissa with 23 fraction bits.
struct Term {
    int32_t sign[LANES], exponent[LANES], mantissa[LANES];
};

// `value` shifted right by `places`, rounded half up, or half down where `lower` is -1; nothing is left after 31.
static inline int32_t shifted(int32_t value, int32_t places, int32_t lower) {
    const int32_t within = std::min(std::max(places, 1), 30);
    const int32_t rounded = (value + (1 << (within - 1)) + lower) >> within;
    return places == 0 ? value : places < 31 ? rounded : 0;
}

// Adds two terms to a row of DST: all are aligned to the largest exponent, summed as integers, normalised and rounded.
static inline void accumulate_row(const Term& first, const Term& second, float* dst, bool wide, bool wormhole) {
    for (uint32_t c = 0; c < LANES; ++c) {
        const uint32_t bits = bits_of(dst[c]);
        const int32_t dst_sign = sign_mask(bits), dst_exponent = exponent_of(bits);
        int32_t held = dst_exponent == 0 ? 0 : static_cast<int32_t>((bits & 0x7FFFFF) | 0x800000);
        const int32_t exponent = std::max(std::max(first.exponent[c], second.exponent[c]), dst_exponent);
        int32_t one = shifted(first.mantissa[c], exponent - first.exponent[c], first.sign[c]);
        int32_t two = shifted(second.mantissa[c], exponent - second.exponent[c], second.sign[c]);
        held = shifted(held, exponent - dst_exponent, 0);
        if (!wide) {
            one = (one + (1 << 12) + first.sign[c]) & ~0x1FFF;
            two = (two + (1 << 12) + second.sign[c]) & ~0x1FFF;
            held = (held + (1 << 12)) & ~0x1FFF;
        }
        const int32_t flip_one = first.sign[c] ^ dst_sign, flip_two = second.sign[c] ^ dst_sign;
        const int32_t sum = held + ((one ^ flip_one) - flip_one) + ((two ^ flip_two) - flip_two);
        const int32_t negative = sum >> 31;
        const int32_t sign = dst_sign ^ negative;
        const int32_t magnitude = (sum ^ negative) - negative;
        // The number of bits, by way of a conversion that cannot round up to the next power of two.
        const int32_t topmost = magnitude & ~(magnitude >> 1);
        const int32_t length = exponent_of(bits_of(static_cast<float>(topmost))) - 126;
        int32_t up = 24 - length;
        up -= wormhole && sign != 0 && magnitude == 1 ? 27 : 0;
        int32_t result_exponent = exponent - up;
        const int32_t places = wide ? up : up - 16;
        const int32_t down = std::min(std::max(-places, 1), 30);
        const int32_t left = std::min(std::max(places, 0), 30);
        int32_t mantissa = places < 0 ? (magnitude + (1 << (down - 1))) >> down : magnitude << left;
        mantissa = wide ? mantissa : mantissa << 16;
        result_exponent += mantissa >> 24 & 1;
        const uint32_t sign_bit = static_cast<uint32_t>(sign) & 0x80000000u;
        const uint32_t finite = static_cast<uint32_t>(result_exponent & 0xFF) << 23 | (mantissa & 0x7FFFFF);
        const uint32_t result = sign_bit | (result_exponent >= 255 ? 0x7F800000u : finite);
        const bool nothing = (exponent <= 0) | (sum == 0) | (result_exponent <= 0);
        dst[c] = float_of(nothing ? 0 : result);
    }
}

// ---- tile products

// The operands of a tile product, taken apart once.
struct Parts {
    int32_t sign[TILE_ELEMENTS], exponent[TILE_ELEMENTS], mantissa[TILE_ELEMENTS];
};

static void take_apart(const float* tile, Parts& parts) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const uint32_t bits = bits_of(tile[i]);
        parts.sign[i] = sign_mask(bits);
        parts.exponent[i] = exponent_of(bits);
        parts.mantissa[i] = mantissa11(bits);
    }
}

// The sum of eight products for a row of 16 columns: aligned to the largest exponent among them, each rounded half up.
static inline void sum_group(const Parts& b, uint32_t b_start, const Parts& a, uint32_t a_start, uint32_t phase,
                             Term& term) {
    const int32_t places = product_places(phase);
    int32_t exponents[8][LANES], largest[LANES];
    for (uint32_t c = 0; c < LANES; ++c) {
        largest[c] = INT32_MIN;
    }
    for (uint32_t k = 0; k < 8; ++k) {
        const int32_t b_exponent = b.exponent[b_start + k];
        const int32_t* a_exponent = a.exponent + a_start + k * LANES;
        for (uint32_t c = 0; c < LANES; ++c) {
            const bool zero = (a_exponent[c] == 0) | (b_exponent == 0);
            exponents[k][c] = zero ? 0 : a_exponent[c] + b_exponent + places;
            largest[c] = std::max(largest[c], exponents[k][c]);
        }
    }
    int32_t sums[LANES] = {};
    for (uint32_t k = 0; k < 8; ++k) {
        const int32_t b_part = part_of_b(b.mantissa[b_start + k], phase), b_sign = b.sign[b_start + k];
        const int32_t* a_mantissa = a.mantissa + a_start + k * LANES;
        const int32_t* a_sign = a.sign + a_start + k * LANES;
        for (uint32_t c = 0; c < LANES; ++c) {
            const int32_t product = part_of_a(a_mantissa[c], phase) * b_part;
            const int32_t shift = std::min(largest[c] - exponents[k][c], 30);
            const int32_t aligned = static_cast<int32_t>(
                (static_cast<uint32_t>(product << 1) + (1u << shift)) >> static_cast<uint32_t>(shift + 1));
            const int32_t flip = a_sign[c] ^ b_sign;
            sums[c] += (aligned ^ flip) - flip;
        }
    }
    for (uint32_t c = 0; c < LANES; ++c) {
        const bool live = largest[c] > 0;
        const int32_t sign = sums[c] >> 31;
        term.sign[c] = live ? sign : 0;
        term.exponent[c] = live ? largest[c] : 0;
        term.mantissa[c] = live ? ((sums[c] ^ sign) - sign) << 13 : 0;
    }
}

void fpu_multiply_tiles(const float* in0, const float* in1, float* result, FpuMode mode) {
    Parts b, a;
    take_apart(in0, b);
    take_apart(in1, a);
    for (uint32_t face = 0; face < 4; ++face) {
        for (uint32_t row = 0; row < 16; ++row) {
            float* dst = result + face * FACE_ELEMENTS + row * LANES;
            for (uint32_t phase = 0; phase < mode.phases; ++phase) {
                for (uint32_t half = 0; half < 2; ++half) {
                    const uint32_t b_start = ((face & 2) + half) * FACE_ELEMENTS + row * 16;
                    const uint32_t a_start = (half * 2 + (face & 1)) * FACE_ELEMENTS;
                    Term first, second;
                    sum_group(b, b_start, a, a_start, phase, first);
                    sum_group(b, b_start + 8, a, a_start + 8 * LANES, phase, second);
                    accumulate_row(first, second, dst, mode.wide, mode.wormhole);
                }
            }
        }
    }
}

// ---- element-wise operations: one term, and an empty one beside it

void fpu_add_tile(const float* a, const float* b, bool subtract, float* result, bool accumulate, FpuMode mode) {
    const Term none = {};
    for (uint32_t start = 0; start < TILE_ELEMENTS; start += LANES) {
        Term term;
        for (uint32_t c = 0; c < LANES; ++c) {
            uint32_t larger = bits_of(a[start + c]), smaller = bits_of(b[start + c]) ^ (subtract ? 0x80000000u : 0);
            larger = exponent_of(larger) == 0 ? 0 : larger;
            smaller = exponent_of(smaller) == 0 ? 0 : smaller;
            const bool swap = (larger & 0x7FFFFFFF) < (smaller & 0x7FFFFFFF);
            const uint32_t kept = larger;
            larger = swap ? smaller : larger;
            smaller = swap ? kept : smaller;
            // An 11-bit mantissa is gone after twelve places.
            const int32_t shift = std::min(exponent_of(larger) - exponent_of(smaller), 12);
            const int32_t aligned = (mantissa11(smaller) + (1 << shift >> 1)) >> shift;
            const int32_t flip = sign_mask(larger ^ smaller);
            term.sign[c] = sign_mask(larger);
            term.exponent[c] = exponent_of(larger);
            term.mantissa[c] = (mantissa11(larger) + ((aligned ^ flip) - flip)) << 13;
        }
        if (!accumulate) {
            memset(result + start, 0, LANES * sizeof(float));
        }
        accumulate_row(term, none, result + start, mode.wide, mode.wormhole);
    }
}

void fpu_multiply_elements(const float* a, const float* b, float* result, bool accumulate, FpuMode mode) {
    const Term none = {};
    for (uint32_t start = 0; start < TILE_ELEMENTS; start += LANES) {
        if (!accumulate) {
            memset(result + start, 0, LANES * sizeof(float));
        }
        for (uint32_t phase = 0; phase < mode.phases; ++phase) {
            Term term;
            for (uint32_t c = 0; c < LANES; ++c) {
                const uint32_t a_bits = bits_of(a[start + c]), b_bits = bits_of(b[start + c]);
                const int32_t exponent = exponent_of(a_bits) + exponent_of(b_bits) + product_places(phase);
                const bool live = (exponent_of(a_bits) != 0) & (exponent_of(b_bits) != 0) & (exponent > 0);
                const int32_t product = part_of_a(mantissa11(a_bits), phase) * part_of_b(mantissa11(b_bits), phase);
                term.mantissa[c] = live ? product << 13 : 0;
                term.sign[c] = term.mantissa[c] != 0 ? sign_mask(a_bits ^ b_bits) : 0;
                term.exponent[c] = live ? exponent : 0;
            }
            accumulate_row(term, none, result + start, mode.wide, mode.wormhole);
        }
    }
}
