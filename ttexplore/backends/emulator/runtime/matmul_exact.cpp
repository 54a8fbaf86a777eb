#include "matmul_exact.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#include <immintrin.h>

// Adding to 1.5 * 2^(e + 13), where float32 keeps multiples of 2^(e - 10), rounds a product to the 10 places below its
// group's largest exponent e, as the matrix unit does, in the one rounding of a fused multiply-add. The unit rounds ties
// away from zero: one operand is a little too large in magnitude, which decides ties and nothing else.
constexpr int32_t HEADROOM = 13;
constexpr float NUDGE = 1.0f + 1.0f / 65536.0f;

constexpr int32_t MANTISSA_BITS = 23;
constexpr int32_t EXPONENT_BIAS = 127;
// A phase that takes the low mantissa bits of SrcA or SrcB weighs its product so many binary places less.
constexpr int32_t LOW_A_PLACES = 5, LOW_B_PLACES = 7;
// A 16-bit DST takes terms to so many places less.
constexpr int32_t NARROW_PLACES = 13;

// Biased exponents of products and of DST for which no value on the way leaves the range of float32, and of operands
// for which their low bits are no denormals.
constexpr int32_t LEAST_EXPONENT = 40, LARGEST_EXPONENT = 225, LEAST_OPERAND_EXPONENT = 24;
constexpr int32_t NO_EXPONENT = -4000;  // of zero: below any sum of two exponents

constexpr uint32_t LANES = 16;
// Rows of the result that are worked on at once: their chains of additions hide each other's latency.
constexpr uint32_t ROWS = 4;

static __m512i all(int32_t value) { return _mm512_set1_epi32(value); }
static __m512i exponent_field(__m512i bits) { return _mm512_and_si512(bits, all(0xFF << MANTISSA_BITS)); }
static __m512 as_float(__m512i bits) { return _mm512_castsi512_ps(bits); }

// A tile as one side of the multiplier takes it.
struct Operand {
    alignas(64) float part[2][TILE_ELEMENTS];            // the values of its high and of its low mantissa bits, by face
    alignas(64) int16_t exponent[TILE_ELEMENTS];         // in rows of 32 columns
    alignas(64) uint32_t exponent_twice[TILE_ELEMENTS];  // in both halves of a word, by face
    int32_t least, largest;                              // of the exponents that are not those of zeros
};

static void take_apart(const float* tile, uint32_t mask, uint32_t high_mask, float factor, Operand& operand) {
    __m512i least = all(0xFF << MANTISSA_BITS), largest = _mm512_setzero_si512();
    for (uint32_t i = 0; i < TILE_ELEMENTS; i += LANES) {
        const __m512i bits = _mm512_loadu_si512(tile + i), exponent = exponent_field(bits);
        const __mmask16 live = _mm512_test_epi32_mask(exponent, exponent);
        least = _mm512_mask_min_epi32(least, live, least, exponent);
        largest = _mm512_max_epi32(largest, exponent);
        const __m512 full = as_float(_mm512_maskz_and_epi32(live, bits, all(static_cast<int32_t>(mask))));
        const __m512 high = as_float(_mm512_maskz_and_epi32(live, bits, all(static_cast<int32_t>(high_mask))));
        _mm512_store_ps(operand.part[0] + i, _mm512_mul_ps(high, _mm512_set1_ps(factor)));
        _mm512_store_ps(operand.part[1] + i, _mm512_mul_ps(_mm512_sub_ps(full, high), _mm512_set1_ps(factor)));
        const __m512i number = _mm512_mask_srli_epi32(all(NO_EXPONENT), live, exponent, MANTISSA_BITS);
        const uint32_t face = i / FACE_ELEMENTS, row = (face & 2) * 8 + i % FACE_ELEMENTS / LANES;
        int16_t* place = operand.exponent + row * 32 + (face & 1) * LANES;
        _mm256_store_si256(reinterpret_cast<__m256i*>(place), _mm512_cvtepi32_epi16(number));
        const __m512i low = _mm512_and_si512(number, all(0xFFFF));
        _mm512_store_si512(operand.exponent_twice + i, _mm512_or_si512(low, _mm512_slli_epi32(low, 16)));
    }
    operand.least = _mm512_reduce_min_epi32(least) >> MANTISSA_BITS;
    operand.largest = _mm512_reduce_max_epi32(largest) >> MANTISSA_BITS;
}

static bool in_range(const float* result) {
    __mmask16 outside = 0;
    for (uint32_t i = 0; i < TILE_ELEMENTS; i += LANES) {
        const __m512i exponent = exponent_field(_mm512_loadu_si512(result + i));
        const __m512i above = _mm512_sub_epi32(exponent, all(LEAST_EXPONENT << MANTISSA_BITS));
        const __m512i span = all((LARGEST_EXPONENT - LEAST_EXPONENT) << MANTISSA_BITS);
        outside |= _mm512_mask_cmpgt_epu32_mask(_mm512_test_epi32_mask(exponent, exponent), above, span);
    }
    return outside == 0;
}

// The largest exponent of eight products for 32 columns, at the place of float32's exponent. Groups of zeros get the
// least exponent, which moves nothing else.
static inline void largest_exponents(const uint32_t* b, const int16_t* a, __m512i* left, __m512i* right) {
    __m512i largest = _mm512_set1_epi16(2 * NO_EXPONENT);
    for (uint32_t k = 0; k < 8; ++k) {
        const __m512i sum = _mm512_add_epi16(_mm512_load_si512(a + k * 32), all(static_cast<int32_t>(b[k])));
        largest = _mm512_max_epi16(largest, sum);
    }
    largest = _mm512_sub_epi16(largest, _mm512_set1_epi16(EXPONENT_BIAS));
    largest = _mm512_max_epi16(largest, _mm512_set1_epi16(LEAST_EXPONENT + LOW_A_PLACES + LOW_B_PLACES));
    *left = _mm512_slli_epi32(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(largest)), MANTISSA_BITS);
    *right = _mm512_slli_epi32(_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(largest, 1)), MANTISSA_BITS);
}

// The sum of a group of products, and the number that its additions started from.
struct Group {
    __m512 sum;
    __m512i largest, start;
};

// A group's sum in units of 1 / scale, rounded half up.
static inline __m512i aligned(const Group& group, __m512 scale) {
    const __m512 sum = _mm512_sub_ps(group.sum, as_float(group.start));
    return _mm512_cvt_roundps_epi32(_mm512_fmadd_ps(sum, scale, _mm512_set1_ps(0.5f)),
                                    _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// DST in units of 1 / scale, rounded half away from zero.
static inline __m512i aligned(__m512 dst, __m512 scale) {
    const __m512 half = _mm512_or_ps(_mm512_and_ps(dst, _mm512_set1_ps(-0.0f)), _mm512_set1_ps(0.5f));
    return _mm512_cvttps_epi32(_mm512_fmadd_round_ps(dst, scale, half, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}

static inline __m512i plus(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }

// DST plus two group sums: all three are rounded to the last place of the largest exponent among them, summed as
// integers, and rounded again. `places` is what the phase takes from the groups' exponents.
template <bool wide, bool wormhole>
static inline __m512 accumulated(__m512 dst, const Group& one, const Group& two, __m512i places) {
    const __m512i largest = plus(_mm512_max_epi32(one.largest, two.largest), places);
    const __m512i exponent = _mm512_max_epi32(largest, exponent_field(_mm512_castps_si512(dst)));
    const __m512i inverse = _mm512_sub_epi32(all((2 * EXPONENT_BIAS + MANTISSA_BITS) << MANTISSA_BITS), exponent);
    const __m512i first = aligned(one, as_float(inverse)), second = aligned(two, as_float(inverse));
    if (!wide) {
        const __m512i half = all(1 << (NARROW_PLACES - 1));
        const __m512i coarse = _mm512_sub_epi32(inverse, all(NARROW_PLACES << MANTISSA_BITS));
        const __m512i terms = plus(_mm512_srai_epi32(plus(first, half), NARROW_PLACES),
                                   _mm512_srai_epi32(plus(second, half), NARROW_PLACES));
        const __m512 total = _mm512_cvtepi32_ps(plus(terms, aligned(dst, as_float(coarse))));
        const __m512i unit = _mm512_sub_epi32(exponent, all((MANTISSA_BITS - NARROW_PLACES) << MANTISSA_BITS));
        const __m512i exact = _mm512_castps_si512(_mm512_mul_ps(total, as_float(unit)));
        return as_float(_mm512_and_si512(plus(exact, all(0x8000)), all(static_cast<int32_t>(0xFFFF0000u))));
    }
    const __m512i total = plus(plus(first, second), aligned(dst, as_float(inverse)));
    // Half away from zero: what is left when the total is cut to 24 bits, added once more, reaches the next value.
    const __m512i cut = _mm512_cvttps_epi32(_mm512_cvt_roundepi32_ps(total, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    const __m512i more = _mm512_sub_epi32(plus(total, total), cut);
    const __m512 rounded = _mm512_cvt_roundepi32_ps(more, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m512 result = _mm512_mul_ps(rounded, as_float(_mm512_sub_epi32(exponent, all(MANTISSA_BITS << MANTISSA_BITS))));
    if (wormhole) {
        // Wormhole normalises a total of -1 wrongly, by 27 places.
        const __mmask16 minus_one = _mm512_cmpeq_epi32_mask(total, all(-1));
        const __m512i wrong = plus(exponent, all(4 << MANTISSA_BITS));
        return as_float(_mm512_mask_or_epi32(_mm512_castps_si512(result), minus_one, wrong, all(INT32_MIN)));
    }
    return result;
}

template <bool wide, bool wormhole>
static void multiply(const Operand& b, const Operand& a, float* result, uint32_t phases) {
    for (uint32_t row = 0; row < 32; row += ROWS) {
        const uint32_t face = row / 16 * 2;
        float* place = result + face * FACE_ELEMENTS + row % 16 * LANES;
        __m512 dst[ROWS][2];
        __m512i largest[2][2][ROWS][2];  // by half of the depth, group, row, half of the columns
        for (uint32_t r = 0; r < ROWS; ++r) {
            dst[r][0] = _mm512_loadu_ps(place + r * LANES);
            dst[r][1] = _mm512_loadu_ps(place + FACE_ELEMENTS + r * LANES);
            for (uint32_t half = 0; half < 2; ++half) {
                const uint32_t* b_row = b.exponent_twice + (face + half) * FACE_ELEMENTS + (row % 16 + r) * LANES;
                for (uint32_t group = 0; group < 2; ++group) {
                    __m512i* pair = largest[half][group][r];
                    largest_exponents(b_row + group * 8, a.exponent + (half * 16 + group * 8) * 32, &pair[0], &pair[1]);
                }
            }
        }
        for (uint32_t phase = 0; phase < phases; ++phase) {
            const int32_t less = (phase & 1 ? LOW_A_PLACES : 0) + (phase & 2 ? LOW_B_PLACES : 0);
            const __m512i places = all(-less * (1 << MANTISSA_BITS));
            const __m512i start = plus(places, all((HEADROOM << MANTISSA_BITS) | 1 << (MANTISSA_BITS - 1)));
            for (uint32_t half = 0; half < 2; ++half) {
                const float* b_part = b.part[phase >> 1] + (face + half) * FACE_ELEMENTS + row % 16 * LANES;
                const float* a_part = a.part[phase & 1] + half * 2 * FACE_ELEMENTS;
                Group groups[2][ROWS][2];
                for (uint32_t group = 0; group < 2; ++group) {
                    for (uint32_t r = 0; r < ROWS; ++r) {
                        for (uint32_t side = 0; side < 2; ++side) {
                            const __m512i exponent = largest[half][group][r][side], from = plus(exponent, start);
                            groups[group][r][side] = {as_float(from), exponent, from};
                        }
                    }
                    for (uint32_t k = group * 8; k < group * 8 + 8; ++k) {
                        const __m512 left = _mm512_load_ps(a_part + k * LANES);
                        const __m512 right = _mm512_load_ps(a_part + FACE_ELEMENTS + k * LANES);
                        for (uint32_t r = 0; r < ROWS; ++r) {
                            const __m512 factor = _mm512_set1_ps(b_part[r * LANES + k]);
                            Group* pair = groups[group][r];
                            pair[0].sum = _mm512_fmadd_ps(factor, left, pair[0].sum);
                            pair[1].sum = _mm512_fmadd_ps(factor, right, pair[1].sum);
                        }
                    }
                }
                for (uint32_t r = 0; r < ROWS; ++r) {
                    for (uint32_t side = 0; side < 2; ++side) {
                        dst[r][side] =
                            accumulated<wide, wormhole>(dst[r][side], groups[0][r][side], groups[1][r][side], places);
                    }
                }
            }
        }
        for (uint32_t r = 0; r < ROWS; ++r) {
            _mm512_storeu_ps(place + r * LANES, dst[r][0]);
            _mm512_storeu_ps(place + FACE_ELEMENTS + r * LANES, dst[r][1]);
        }
    }
}

void multiply_tiles_exactly(const float* in0, const float* in1, float* result, FpuMode mode) {
    Operand b, a;
    take_apart(in0, 0xFFFFFFFFu, SOURCE_B_HIGH_MASK, NUDGE, b);
    take_apart(in1, SOURCE_A_MASK, SOURCE_A_HIGH_MASK, 1.0f, a);
    const int32_t least = a.least + b.least - EXPONENT_BIAS - LOW_A_PLACES - LOW_B_PLACES;
    const int32_t largest = a.largest + b.largest - EXPONENT_BIAS;
    const bool operands = a.least >= LEAST_OPERAND_EXPONENT && b.least >= LEAST_OPERAND_EXPONENT;
    if (!operands || least < LEAST_EXPONENT || largest > LARGEST_EXPONENT || !in_range(result)) {
        fpu_multiply_tiles(in0, in1, result, mode);
    } else if (!mode.wide) {
        multiply<false, false>(b, a, result, mode.phases);
    } else if (mode.wormhole) {
        multiply<true, true>(b, a, result, mode.phases);
    } else {
        multiply<true, false>(b, a, result, mode.phases);
    }
}

#else

void multiply_tiles_exactly(const float* in0, const float* in1, float* result, FpuMode mode) {
    fpu_multiply_tiles(in0, in1, result, mode);
}

#endif
