// The matrix unit, one element after the other in whole numbers: a reference for the emulator's vectors.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

namespace plain {

struct Mode {
    bool wide;
    unsigned phases;
    bool wormhole;
};

struct Term {
    bool negative = false;
    int exponent = 0;
    int64_t mantissa = 0;
};

inline uint32_t bits(float value) {
    uint32_t made;
    memcpy(&made, &value, 4);
    return made;
}
inline bool negative(float value) { return bits(value) >> 31; }
inline int exponent(float value) { return bits(value) >> 23 & 0xFF; }
inline int64_t significand(float value) { return exponent(value) ? (bits(value) & 0x7FFFFF) | 0x800000 : 0; }
inline int64_t eleven_bits(float value) { return significand(value) >> 13; }

inline int64_t part_of_a(float value, unsigned phase) {
    return phase % 2 ? eleven_bits(value) / 2 % 32 : eleven_bits(value) / 64;
}
inline int64_t part_of_b(float value, unsigned phase) {
    return phase / 2 ? eleven_bits(value) % 16 * 8 : eleven_bits(value) / 16;
}
inline int places_of(unsigned phase) { return -127 - (phase % 2 ? 5 : 0) - (phase / 2 ? 7 : 0); }

// Halves go up, those of negative terms down.
inline int64_t moved_down(int64_t value, int places, bool halves_down) {
    if (places == 0) return value;
    if (places > 30) return 0;
    return (value + (int64_t(1) << (places - 1)) - halves_down) >> places;
}

inline float add(const Term& one, const Term& two, float dst, Mode mode) {
    int common = exponent(dst);
    for (const Term& term : {one, two}) common = term.exponent > common ? term.exponent : common;
    const auto aligned = [&](int64_t value, int from, bool halves_down) {
        value = moved_down(value, common - from, halves_down);
        return mode.wide ? value : moved_down(value, 13, halves_down) * 8192;
    };
    int64_t sum = aligned(significand(dst), exponent(dst), false) * (negative(dst) ? -1 : 1);
    for (const Term& term : {one, two}) {
        sum += aligned(term.mantissa, term.exponent, term.negative) * (term.negative ? -1 : 1);
    }
    if (sum == 0 || common <= 0) return 0;
    int64_t magnitude = llabs(sum);
    int up = 24;
    for (int64_t rest = magnitude; rest; rest /= 2) --up;
    if (mode.wormhole && sum == -1) up -= 27;
    int raised = common - up;
    const int kept = mode.wide ? 0 : 16, places = up - kept;
    magnitude = places < 0 ? moved_down(magnitude, -places, false) : magnitude << places;
    magnitude <<= kept;
    raised += magnitude >> 24 & 1;
    if (raised <= 0) return 0;
    const uint32_t finite = uint32_t(raised) << 23 | (magnitude & 0x7FFFFF);
    const uint32_t made = (sum < 0 ? 0x80000000u : 0) | (raised >= 255 ? 0x7F800000u : finite);
    float result;
    memcpy(&result, &made, 4);
    return result;
}

// The products of eight numbers of SrcA and of SrcB in a phase.
inline Term group(const float* a, const float* b, unsigned phase) {
    int largest = 0;
    for (int k = 0; k < 8; ++k) {
        const int one = exponent(a[k]) && exponent(b[k]) ? exponent(a[k]) + exponent(b[k]) : 0;
        largest = one > largest ? one : largest;
    }
    Term term;
    if (largest + places_of(phase) <= 0) return term;
    int64_t sum = 0;
    for (int k = 0; k < 8; ++k) {
        if (!exponent(a[k]) || !exponent(b[k])) continue;
        const int shift = largest - exponent(a[k]) - exponent(b[k]);
        const int64_t product = moved_down(part_of_a(a[k], phase) * part_of_b(b[k], phase), shift, false);
        sum += negative(a[k]) != negative(b[k]) ? -product : product;
    }
    term.negative = sum < 0;
    term.exponent = largest + places_of(phase);
    term.mantissa = llabs(sum) * 8192;
    return term;
}

inline unsigned place(unsigned row, unsigned column) {
    return (row / 16 * 2 + column / 16) * 256 + row % 16 * 16 + column % 16;
}

// Adds a row of tile b (in0) times a column of tile a (in1), over a half of the depth in a phase.
inline float add_half(const float* b, const float* a, unsigned row, unsigned column, unsigned half, unsigned phase,
                      float dst, Mode mode) {
    float one[16], other[16];
    for (unsigned k = 0; k < 16; ++k) {
        one[k] = a[place(half * 16 + k, column)];
        other[k] = b[place(row, half * 16 + k)];
    }
    return add(group(one, other, phase), group(one + 8, other + 8, phase), dst, mode);
}

inline float product_element(const float* b, const float* a, unsigned row, unsigned column, float dst, Mode mode) {
    for (unsigned phase = 0; phase < mode.phases; ++phase) {
        for (unsigned half = 0; half < 2; ++half) dst = add_half(b, a, row, column, half, phase, dst, mode);
    }
    return dst;
}

// All phases of the upper half come first.
inline float column_sum(const float* tile, float factor, unsigned column, float dst, Mode mode) {
    const std::vector<float> factors(1024, factor);
    for (unsigned half = 0; half < 2; ++half) {
        for (unsigned phase = 0; phase < mode.phases; ++phase) {
            dst = add_half(factors.data(), tile, 0, column, half, phase, dst, mode);
        }
    }
    return dst;
}

inline float sum_element(float a, float b, float dst, Mode mode) {
    const auto magnitude = [](float value) { return exponent(value) ? bits(value) & 0x7FFFFFFF : 0; };
    const bool swap = magnitude(a) < magnitude(b);
    const float large = swap ? b : a, small = swap ? a : b;
    Term term;
    term.negative = magnitude(large) != 0 && negative(large);
    term.exponent = exponent(large);
    const int64_t moved = moved_down(eleven_bits(small), term.exponent - exponent(small), false);
    const bool opposite = magnitude(small) != 0 && negative(large) != negative(small);
    term.mantissa = (eleven_bits(large) + (opposite ? -moved : moved)) * 8192;
    return add(term, Term(), dst, mode);
}

inline float element_product(float a, float b, float dst, Mode mode) {
    for (unsigned phase = 0; phase < mode.phases; ++phase) {
        Term term;
        const int raised = exponent(a) + exponent(b) + places_of(phase);
        if (exponent(a) && exponent(b) && raised > 0) {
            term.exponent = raised;
            term.mantissa = part_of_a(a, phase) * part_of_b(b, phase) * 8192;
            term.negative = term.mantissa != 0 && negative(a) != negative(b);
        }
        dst = add(term, Term(), dst, mode);
    }
    return dst;
}

}  // namespace plain
