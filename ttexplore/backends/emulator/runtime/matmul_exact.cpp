#include "matmul_exact.h"

#if (defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)) || (defined(__AVX2__) && defined(__FMA__))
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

// ---- vectors: the few operations that the processors have under different names

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)

constexpr uint32_t LANES = 16;
// Rows of the result that are worked on at once: their chains of additions hide each other's latency.
constexpr uint32_t ROWS = 4;
typedef __m512 Floats;
typedef __m512i Wholes;

static inline Wholes all(int32_t value) { return _mm512_set1_epi32(value); }
static inline Floats all(float value) { return _mm512_set1_ps(value); }
static inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
static inline void store(float* to, Floats value) { _mm512_storeu_ps(to, value); }
static inline Floats as_float(Wholes bits) { return _mm512_castsi512_ps(bits); }
static inline Wholes as_bits(Floats value) { return _mm512_castps_si512(value); }
static inline Wholes plus(Wholes a, Wholes b) { return _mm512_add_epi32(a, b); }
static inline Wholes minus(Wholes a, Wholes b) { return _mm512_sub_epi32(a, b); }
static inline Wholes masked(Wholes a, Wholes b) { return _mm512_and_si512(a, b); }
static inline Wholes larger(Wholes a, Wholes b) { return _mm512_max_epi32(a, b); }
static inline Wholes without_places(Wholes a) { return _mm512_srai_epi32(a, NARROW_PLACES); }
static inline Floats minus(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
static inline Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
static inline Floats times_plus(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
static inline Floats to_float(Wholes value) { return _mm512_cvtepi32_ps(value); }

// The largest whole number that is not above `value`.
static inline Wholes whole_below(Floats value) {
    return _mm512_cvt_roundps_epi32(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// value * scale as a whole number, halves away from zero; at most 24 bits.
static inline Wholes whole_nearest(Floats value, Floats scale) {
    const Floats half = _mm512_or_ps(_mm512_and_ps(value, all(-0.0f)), all(0.5f));
    return _mm512_cvttps_epi32(_mm512_fmadd_round_ps(value, scale, half, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}

// A whole number of at most 30 bits as a float, halves away from zero: what is left when it is cut to 24 bits, added
// once more, reaches the next value.
static inline Floats rounded_away(Wholes value) {
    const Wholes cut = _mm512_cvttps_epi32(_mm512_cvt_roundepi32_ps(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    return _mm512_cvt_roundepi32_ps(minus(plus(value, value), cut), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

// `value`, but `other` where `total` is -1.
static inline Floats unless_minus_one(Wholes total, Floats value, Floats other) {
    return _mm512_mask_mov_ps(value, _mm512_cmpeq_epi32_mask(total, all(-1)), other);
}

// The largest sums of an exponent of `b` with one of each of 32 columns of `a`, over eight rows.
static inline void largest_sums(const uint32_t* b, const int16_t* a, Wholes* sums) {
    Wholes largest = _mm512_set1_epi16(2 * NO_EXPONENT);
    for (uint32_t k = 0; k < 8; ++k) {
        const Wholes sum = _mm512_add_epi16(_mm512_load_si512(a + k * 32), all(static_cast<int32_t>(b[k])));
        largest = _mm512_max_epi16(largest, sum);
    }
    sums[0] = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(largest));
    sums[1] = _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(largest, 1));
}
static inline Wholes in_exponent_place(Wholes value) { return _mm512_slli_epi32(value, MANTISSA_BITS); }

#else

constexpr uint32_t LANES = 8;
constexpr uint32_t ROWS = 2;
typedef __m256 Floats;
typedef __m256i Wholes;

static inline Wholes all(int32_t value) { return _mm256_set1_epi32(value); }
static inline Floats all(float value) { return _mm256_set1_ps(value); }
static inline Floats load(const float* from) { return _mm256_loadu_ps(from); }
static inline void store(float* to, Floats value) { _mm256_storeu_ps(to, value); }
static inline Floats as_float(Wholes bits) { return _mm256_castsi256_ps(bits); }
static inline Wholes as_bits(Floats value) { return _mm256_castps_si256(value); }
static inline Wholes plus(Wholes a, Wholes b) { return _mm256_add_epi32(a, b); }
static inline Wholes minus(Wholes a, Wholes b) { return _mm256_sub_epi32(a, b); }
static inline Wholes masked(Wholes a, Wholes b) { return _mm256_and_si256(a, b); }
static inline Wholes larger(Wholes a, Wholes b) { return _mm256_max_epi32(a, b); }
static inline Wholes without_places(Wholes a) { return _mm256_srai_epi32(a, NARROW_PLACES); }
static inline Floats minus(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
static inline Floats times(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
static inline Floats times_plus(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
static inline Floats to_float(Wholes value) { return _mm256_cvtepi32_ps(value); }
static inline Wholes whole_below(Floats value) { return _mm256_cvttps_epi32(_mm256_floor_ps(value)); }

static inline Wholes whole_nearest(Floats value, Floats scale) {
    const Floats scaled = times(value, scale);
    const Wholes cut = _mm256_cvttps_epi32(scaled);
    const Floats rest = minus(scaled, to_float(cut));
    return plus(cut, _mm256_cvttps_epi32(_mm256_add_ps(rest, rest)));
}

// In double nothing is lost, and a little more in magnitude decides ties.
static inline Floats rounded_away(Wholes value) {
    const __m256d nudge = _mm256_set1_pd(1.0 + 1.0 / (1ll << 40));
    const __m256d low = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(value)), nudge);
    const __m256d high = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(value, 1)), nudge);
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

static inline Floats unless_minus_one(Wholes total, Floats value, Floats other) {
    return _mm256_blendv_ps(value, other, as_float(_mm256_cmpeq_epi32(total, all(-1))));
}

static inline void largest_sums(const uint32_t* b, const int16_t* a, Wholes* sums) {
    for (uint32_t half = 0; half < 2; ++half) {
        Wholes largest = _mm256_set1_epi16(2 * NO_EXPONENT);
        for (uint32_t k = 0; k < 8; ++k) {
            const Wholes row = _mm256_load_si256(reinterpret_cast<const Wholes*>(a + k * 32 + half * 16));
            largest = _mm256_max_epi16(largest, _mm256_add_epi16(row, all(static_cast<int32_t>(b[k]))));
        }
        sums[half * 2] = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(largest));
        sums[half * 2 + 1] = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(largest, 1));
    }
}
static inline Wholes in_exponent_place(Wholes value) { return _mm256_slli_epi32(value, MANTISSA_BITS); }

#endif

constexpr uint32_t SIDES = 32 / LANES;
// Where columns of a row begin, of a tile in face order.
static constexpr uint32_t column_of(uint32_t side) { return side * LANES / 16 * FACE_ELEMENTS + side * LANES % 16; }

// ---- operands

// A tile as one side of the multiplier takes it.
struct Operand {
    alignas(64) float part[2][TILE_ELEMENTS];            // the values of its high and of its low mantissa bits, by face
    alignas(64) int16_t exponent[TILE_ELEMENTS];         // in rows of 32 columns
    alignas(64) uint32_t exponent_twice[TILE_ELEMENTS];  // in both halves of a word, by face
    int32_t least, largest;                              // of the exponents that are not those of zeros
};

static int32_t exponent_of(float value) { return static_cast<int32_t>(bits_of(value) >> MANTISSA_BITS & 0xFF); }

static void take_apart(const float* tile, uint32_t mask, uint32_t high_mask, float factor, Operand& operand) {
    int32_t exponents[TILE_ELEMENTS];
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t exponent = exponent_of(tile[i]);
        const uint32_t live = exponent == 0 ? 0 : 0xFFFFFFFFu;
        const float high = masked(tile[i], high_mask & live);
        operand.part[0][i] = high * factor;
        operand.part[1][i] = (masked(tile[i], mask & live) - high) * factor;
        exponents[i] = exponent;
    }
    int32_t least = 0xFF, largest = 0;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t raised = exponents[i] == 0 ? 0xFF : exponents[i];
        least = raised < least ? raised : least;
        largest = exponents[i] > largest ? exponents[i] : largest;
    }
    operand.least = least;
    operand.largest = largest;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t number = exponents[i] == 0 ? NO_EXPONENT : exponents[i];
        operand.exponent_twice[i] = (static_cast<uint32_t>(number) & 0xFFFF) | static_cast<uint32_t>(number) << 16;
    }
    for (uint32_t row = 0; row < TILE_ELEMENTS / 16; ++row) {
        const uint32_t face = row / 16;
        int16_t* place = operand.exponent + ((face & 2) * 8 + row % 16) * 32 + (face & 1) * 16;
        for (uint32_t column = 0; column < 16; ++column) {
            place[column] = static_cast<int16_t>(operand.exponent_twice[row * 16 + column]);
        }
    }
}

static bool in_range(const float* result) {
    uint32_t outside = 0;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t exponent = exponent_of(result[i]);
        outside |= exponent != 0 && (exponent < LEAST_EXPONENT || exponent > LARGEST_EXPONENT);
    }
    return outside == 0;
}

// ---- the product

// The largest exponent of eight products for 32 columns, at the place of float32's exponent. Groups of zeros get the
// least exponent, which moves nothing else.
static inline void largest_exponents(const uint32_t* b, const int16_t* a, Wholes* largest) {
    largest_sums(b, a, largest);
    for (uint32_t side = 0; side < SIDES; ++side) {
        const Wholes exponent = minus(largest[side], all(EXPONENT_BIAS));
        largest[side] = in_exponent_place(larger(exponent, all(LEAST_EXPONENT + LOW_A_PLACES + LOW_B_PLACES)));
    }
}

// The sum of a group of products, and the number that its additions started from.
struct Group {
    Floats sum;
    Wholes largest, start;
};

// A group's sum in units of 1 / scale, rounded half up.
static inline Wholes aligned(const Group& group, Floats scale) {
    return whole_below(times_plus(minus(group.sum, as_float(group.start)), scale, all(0.5f)));
}

// DST plus two group sums: all three are rounded to the last place of the largest exponent among them, summed as
// integers, and rounded again. `places` is what the phase takes from the groups' exponents.
template <bool wide, bool wormhole>
static inline Floats accumulated(Floats dst, const Group& one, const Group& two, Wholes places) {
    const Wholes dst_exponent = masked(as_bits(dst), all(0xFF << MANTISSA_BITS));
    const Wholes exponent = larger(plus(larger(one.largest, two.largest), places), dst_exponent);
    const Wholes inverse = minus(all((2 * EXPONENT_BIAS + MANTISSA_BITS) << MANTISSA_BITS), exponent);
    const Wholes first = aligned(one, as_float(inverse)), second = aligned(two, as_float(inverse));
    if (!wide) {
        const Wholes half = all(1 << (NARROW_PLACES - 1));
        const Wholes terms = plus(without_places(plus(first, half)), without_places(plus(second, half)));
        const Wholes coarse = minus(inverse, all(NARROW_PLACES << MANTISSA_BITS));
        const Floats total = to_float(plus(terms, whole_nearest(dst, as_float(coarse))));
        const Wholes unit = minus(exponent, all((MANTISSA_BITS - NARROW_PLACES) << MANTISSA_BITS));
        const Wholes exact = as_bits(times(total, as_float(unit)));
        return as_float(masked(plus(exact, all(0x8000)), all(static_cast<int32_t>(0xFFFF0000u))));
    }
    const Wholes total = plus(plus(first, second), whole_nearest(dst, as_float(inverse)));
    const Floats result = times(rounded_away(total), as_float(minus(exponent, all(MANTISSA_BITS << MANTISSA_BITS))));
    if (wormhole) {
        // Wormhole normalises a total of -1 wrongly, by 27 places.
        return unless_minus_one(total, result, as_float(plus(exponent, all(INT32_MIN | 4 << MANTISSA_BITS))));
    }
    return result;
}

template <bool wide, bool wormhole>
static void multiply(const Operand& b, const Operand& a, float* result, uint32_t phases) {
    for (uint32_t row = 0; row < 32; row += ROWS) {
        const uint32_t face = row / 16 * 2;
        float* place = result + face * FACE_ELEMENTS + row % 16 * 16;
        Floats dst[ROWS][SIDES];
        Wholes largest[2][2][ROWS][SIDES];  // by half of the depth, group, row, columns
        for (uint32_t r = 0; r < ROWS; ++r) {
            for (uint32_t side = 0; side < SIDES; ++side) {
                dst[r][side] = load(place + column_of(side) + r * 16);
            }
            for (uint32_t half = 0; half < 2; ++half) {
                const uint32_t* b_row = b.exponent_twice + (face + half) * FACE_ELEMENTS + (row % 16 + r) * 16;
                for (uint32_t group = 0; group < 2; ++group) {
                    const int16_t* a_rows = a.exponent + (half * 16 + group * 8) * 32;
                    largest_exponents(b_row + group * 8, a_rows, largest[half][group][r]);
                }
            }
        }
        for (uint32_t phase = 0; phase < phases; ++phase) {
            const int32_t less = (phase & 1 ? LOW_A_PLACES : 0) + (phase & 2 ? LOW_B_PLACES : 0);
            const Wholes places = all(-less * (1 << MANTISSA_BITS));
            const Wholes start = plus(places, all((HEADROOM << MANTISSA_BITS) | 1 << (MANTISSA_BITS - 1)));
            for (uint32_t half = 0; half < 2; ++half) {
                const float* b_part = b.part[phase >> 1] + (face + half) * FACE_ELEMENTS + row % 16 * 16;
                const float* a_part = a.part[phase & 1] + half * 2 * FACE_ELEMENTS;
                Group groups[2][ROWS][SIDES];
                for (uint32_t group = 0; group < 2; ++group) {
                    for (uint32_t r = 0; r < ROWS; ++r) {
                        for (uint32_t side = 0; side < SIDES; ++side) {
                            const Wholes exponent = largest[half][group][r][side], from = plus(exponent, start);
                            groups[group][r][side] = {as_float(from), exponent, from};
                        }
                    }
                    for (uint32_t k = group * 8; k < group * 8 + 8; ++k) {
                        for (uint32_t side = 0; side < SIDES; ++side) {
                            const Floats factor = load(a_part + column_of(side) + k * 16);
                            for (uint32_t r = 0; r < ROWS; ++r) {
                                Group& one = groups[group][r][side];
                                one.sum = times_plus(all(b_part[r * 16 + k]), factor, one.sum);
                            }
                        }
                    }
                }
                for (uint32_t r = 0; r < ROWS; ++r) {
                    for (uint32_t side = 0; side < SIDES; ++side) {
                        dst[r][side] =
                            accumulated<wide, wormhole>(dst[r][side], groups[0][r][side], groups[1][r][side], places);
                    }
                }
            }
        }
        for (uint32_t r = 0; r < ROWS; ++r) {
            for (uint32_t side = 0; side < SIDES; ++side) {
                store(place + column_of(side) + r * 16, dst[r][side]);
            }
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
