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
// A phase that takes the low mantissa bits of SrcA or SrcB weighs its product so many binary places less. Here it is
// DST that weighs more in such a phase: then all phases of a group share the largest exponent.
constexpr int32_t LOW_A_PLACES = 5, LOW_B_PLACES = 7;
constexpr float LOW_A_FACTOR = 1 << LOW_A_PLACES, LOW_B_FACTOR = 1 << LOW_B_PLACES;
// A 16-bit DST takes terms to so many places less.
constexpr int32_t NARROW_PLACES = 13;

// The exponent of a group of zeros: below that of all numbers in DST, yet large enough for its last place.
constexpr int32_t ZERO_EXPONENT = 26;
// Biased exponents of products and of DST for which no value on the way leaves the range of float32, and of operands
// for which their low bits are no denormals.
constexpr int32_t LEAST_EXPONENT = ZERO_EXPONENT + MANTISSA_BITS, LARGEST_EXPONENT = 215;
constexpr int32_t LEAST_OPERAND_EXPONENT = 24, LARGEST_OPERAND_EXPONENT = 240;

// Exponents of operands are bytes, relative to the largest one of the tile; sums of two fit in a byte as well. Those of
// zeros stay below all others, also with the largest one beside them.
constexpr int32_t LEAST_BYTE = -64, LARGEST_BYTE = 63, ZERO_BYTE = -128;

// ---- vectors: the few operations that the processors have under different names

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)

constexpr uint32_t LANES = 16;
typedef __m512 Floats;
typedef __m512i Wholes;

static inline Wholes all(int32_t value) { return _mm512_set1_epi32(value); }
static inline Floats all(float value) { return _mm512_set1_ps(value); }
static inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
static inline Wholes load(const int8_t* from) { return _mm512_load_si512(from); }
static inline void store(float* to, Floats value) { _mm512_storeu_ps(to, value); }
static inline Floats as_float(Wholes bits) { return _mm512_castsi512_ps(bits); }
static inline Wholes as_bits(Floats value) { return _mm512_castps_si512(value); }
static inline Wholes plus(Wholes a, Wholes b) { return _mm512_add_epi32(a, b); }
static inline Wholes minus(Wholes a, Wholes b) { return _mm512_sub_epi32(a, b); }
static inline Wholes masked(Wholes a, Wholes b) { return _mm512_and_si512(a, b); }
static inline Wholes larger(Wholes a, Wholes b) { return _mm512_max_epi32(a, b); }
static inline Wholes larger_unsigned(Wholes a, Wholes b) { return _mm512_max_epu32(a, b); }
static inline Wholes sums_of_bytes(Wholes a, Wholes b) { return _mm512_adds_epi8(a, b); }
static inline Wholes larger_bytes(Wholes a, Wholes b) { return _mm512_max_epi8(a, b); }
static inline Wholes all_bytes(int32_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
// A byte of each word of four moved to its top, above zeros.
static inline Wholes byte_on_top(Wholes bytes, int32_t number) {
    const __m128i control = _mm_add_epi32(_mm_setr_epi32(0, 4 << 24, 8 << 24, 12 << 24), _mm_set1_epi32(number << 24 | 0x808080));
    return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(control));
}
template <uint32_t places>
static inline Wholes down(Wholes a) { return _mm512_srai_epi32(a, places); }
static inline Floats minus(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
static inline Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
static inline Floats times_plus(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
static inline Floats to_float(Wholes value) { return _mm512_cvtepi32_ps(value); }
static inline Wholes truncated(Floats value) { return _mm512_cvttps_epi32(value); }

// The largest whole number that is not above `value`.
static inline Wholes whole_below(Floats value) {
    return _mm512_cvt_roundps_epi32(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// `to` with the sign of `from`.
static inline Floats with_sign(Floats to, Floats from) {
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(as_bits(from), all(INT32_MIN), as_bits(to), 0xEA));
}

// A whole number of at most 30 bits as a float, halves away from zero: what is left when it is cut to 24 bits, added
// once more, reaches the next value.
static inline Floats rounded_away(Wholes value) {
    const Wholes cut = _mm512_cvttps_epi32(_mm512_cvt_roundepi32_ps(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    return _mm512_cvt_roundepi32_ps(minus(plus(value, value), cut), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

constexpr int32_t ROUNDED_PLACES = 0;

// `value`, but plus `more` where `total` is -1.
static inline Wholes plus_at_minus_one(Wholes total, Wholes value, Wholes more) {
    return _mm512_mask_add_epi32(value, _mm512_cmpeq_epi32_mask(total, all(-1)), value, more);
}
static inline uint32_t minus_ones(Wholes a) { return __builtin_popcount(_mm512_cmpeq_epi32_mask(a, all(-1))); }

#else

constexpr uint32_t LANES = 8;
typedef __m256 Floats;
typedef __m256i Wholes;

static inline Wholes all(int32_t value) { return _mm256_set1_epi32(value); }
static inline Floats all(float value) { return _mm256_set1_ps(value); }
static inline Floats load(const float* from) { return _mm256_loadu_ps(from); }
static inline Wholes load(const int8_t* from) { return _mm256_load_si256(reinterpret_cast<const Wholes*>(from)); }
static inline void store(float* to, Floats value) { _mm256_storeu_ps(to, value); }
static inline Floats as_float(Wholes bits) { return _mm256_castsi256_ps(bits); }
static inline Wholes as_bits(Floats value) { return _mm256_castps_si256(value); }
static inline Wholes plus(Wholes a, Wholes b) { return _mm256_add_epi32(a, b); }
static inline Wholes minus(Wholes a, Wholes b) { return _mm256_sub_epi32(a, b); }
static inline Wholes masked(Wholes a, Wholes b) { return _mm256_and_si256(a, b); }
static inline Wholes larger(Wholes a, Wholes b) { return _mm256_max_epi32(a, b); }
static inline Wholes larger_unsigned(Wholes a, Wholes b) { return _mm256_max_epu32(a, b); }
static inline Wholes sums_of_bytes(Wholes a, Wholes b) { return _mm256_adds_epi8(a, b); }
static inline Wholes larger_bytes(Wholes a, Wholes b) { return _mm256_max_epi8(a, b); }
static inline Wholes all_bytes(int32_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
static inline Wholes byte_on_top(Wholes bytes, int32_t number) {
    const __m128i control = _mm_add_epi32(_mm_setr_epi32(0, 4 << 24, 8 << 24, 12 << 24), _mm_set1_epi32(number << 24 | 0x808080));
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(control));
}
template <uint32_t places>
static inline Wholes down(Wholes a) { return _mm256_srai_epi32(a, places); }
static inline Floats minus(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
static inline Floats times(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
static inline Floats times_plus(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
static inline Floats to_float(Wholes value) { return _mm256_cvtepi32_ps(value); }
static inline Wholes truncated(Floats value) { return _mm256_cvttps_epi32(value); }
static inline Wholes whole_below(Floats value) { return _mm256_cvttps_epi32(_mm256_floor_ps(value)); }
static inline Floats with_sign(Floats to, Floats from) {
    return _mm256_or_ps(_mm256_and_ps(from, all(-0.0f)), to);
}

// Twice the number has room for a little more in magnitude, which decides ties, where the number has more than 24 bits.
static inline Floats rounded_away(Wholes value) {
    const Wholes above = _mm256_cmpgt_epi32(value, all((1 << 24) - 1));
    const Wholes below = _mm256_cmpgt_epi32(all(1 - (1 << 24)), value);
    return to_float(plus(minus(plus(value, value), above), below));
}
constexpr int32_t ROUNDED_PLACES = 1;  // that it gives twice the number

static inline Wholes plus_at_minus_one(Wholes total, Wholes value, Wholes more) {
    return plus(value, masked(_mm256_cmpeq_epi32(total, all(-1)), more));
}
static inline uint32_t minus_ones(Wholes a) {
    return __builtin_popcount(_mm256_movemask_ps(as_float(_mm256_cmpeq_epi32(a, all(-1)))));
}

#endif

// A row of 32 columns as vectors, and where the columns of each begin in a tile in face order.
constexpr uint32_t SIDES = 32 / LANES;
static constexpr uint32_t column_of(uint32_t side) { return side * LANES / 16 * FACE_ELEMENTS + side * LANES % 16; }
// Vectors of bytes for the exponents of a row for both groups of eight of a half of the depth.
constexpr uint32_t BYTE_VECTORS = SIDES / 2;
// Rows of the result that are worked on at once: their chains of additions hide each other's latency.
constexpr uint32_t ROWS = 4;
// And vectors of their columns. With a 16-bit DST two are no faster than one.
static constexpr uint32_t vectors_at_once(bool wide) { return wide ? 2 : 1; }

// ---- operands

static int32_t exponent_of(float value) { return static_cast<int32_t>(bits_of(value) >> MANTISSA_BITS & 0xFF); }

static void find_range(const float* tile, int32_t& least, int32_t& largest) {
    least = 0xFF, largest = 0;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t exponent = exponent_of(tile[i]), raised = exponent == 0 ? 0xFF : exponent;
        least = raised < least ? raised : least;
        largest = exponent > largest ? exponent : largest;
    }
    if (largest == 0) {
        least = largest = EXPONENT_BIAS;  // any will do for a tile of zeros
    }
}

// The values of the high and of the low bits of `mask`, and exponents as bytes.
static void take_apart(const float* __restrict tile, uint32_t mask, uint32_t high_mask, float high_factor, float low_factor,
                       int32_t largest, float* __restrict high_part, float* __restrict low_part,
                       int8_t* __restrict exponents) {
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t exponent = exponent_of(tile[i]);
        const uint32_t live = exponent == 0 ? 0 : 0xFFFFFFFFu;
        const float high = masked(tile[i], high_mask & live);
        high_part[i] = high * high_factor;
        low_part[i] = (masked(tile[i], mask & live) - high) * low_factor;
    }
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const int32_t exponent = exponent_of(tile[i]);
        exponents[i] = static_cast<int8_t>(exponent == 0 ? ZERO_BYTE : exponent - largest + LARGEST_BYTE);
    }
}

void take_left(MatmulOperand& operand) {
    int8_t exponents[TILE_ELEMENTS];
    find_range(operand.tile, operand.least, operand.largest);
    take_apart(operand.tile, 0xFFFFFFFFu, SOURCE_B_HIGH_MASK, NUDGE, NUDGE * LOW_B_FACTOR, operand.largest,
               operand.part[0], operand.part[1], exponents);
    for (uint32_t row = 0; row < TILE_ELEMENTS / 16; ++row) {
        for (uint32_t k = 0; k < 8; ++k) {
            const uint32_t one = static_cast<uint8_t>(exponents[row * 16 + k]);
            const uint32_t other = static_cast<uint8_t>(exponents[row * 16 + 8 + k]);
            operand.left_exponents[row * 8 + k] = (one | other << 8) * 0x10001u;
        }
    }
}

void take_right(MatmulOperand& operand) {
    int8_t exponents[TILE_ELEMENTS];
    find_range(operand.tile, operand.least, operand.largest);
    take_apart(operand.tile, SOURCE_A_MASK, SOURCE_A_HIGH_MASK, 1.0f, LOW_A_FACTOR, operand.largest, operand.part[0],
               operand.part[1], exponents);
    for (uint32_t place = 0; place < 16; ++place) {
        const int8_t* from = exponents + place / 8 * 2 * FACE_ELEMENTS + place % 8 * 16;
        int8_t* to = operand.right_exponents + place * 64;
        for (uint32_t vector = 0; vector < BYTE_VECTORS; ++vector) {
            for (uint32_t lane = 0; lane < LANES; ++lane) {
                for (uint32_t byte = 0; byte < 4; ++byte) {
                    to[(vector * LANES + lane) * 4 + byte] = from[column_of(vector * 2 + byte / 2) + lane + byte % 2 * 128];
                }
            }
        }
    }
}

// Whether the exponents of all numbers but zeros are such that no value on the way leaves the range of float32.
static bool in_range(const float* result) {
    constexpr uint32_t ONE = 1u << (MANTISSA_BITS + 1);  // of an exponent, where the sign is shifted out
    uint32_t largest = 0, least = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const uint32_t magnitude = bits_of(result[i]) << 1;
        largest = magnitude > largest ? magnitude : largest;
        least = magnitude - ONE < least ? magnitude - ONE : least;  // of a zero that of the largest exponent
    }
    return largest < (LARGEST_EXPONENT + 1) * ONE && least >= (ZERO_EXPONENT - 1) * ONE;
}

// ---- the product

// What the sums of two groups of eight products start from, and the larger of their exponents.
struct Starts {
    Wholes sum[2], largest;
};

// Those of a row and a half of the depth, for all columns. `base` is the exponent that a byte of 0 stands for.
static inline void find_starts(const uint32_t* left, const int8_t* right, int32_t base, Starts* starts) {
    const Wholes to_sum = all((base + HEADROOM) * (1 << MANTISSA_BITS) + (1 << (MANTISSA_BITS - 1)));
    const Wholes to_exponent = all(base * (1 << MANTISSA_BITS));
    for (uint32_t vector = 0; vector < BYTE_VECTORS; ++vector) {
        Wholes bytes = all_bytes(ZERO_EXPONENT - base);
        for (uint32_t k = 0; k < 8; ++k) {
            const Wholes columns = load(right + k * 64 + vector * LANES * 4);
            bytes = larger_bytes(bytes, sums_of_bytes(columns, all(static_cast<int32_t>(left[k]))));
        }
        for (uint32_t side = 0; side < 2; ++side) {
            const Wholes one = down<1>(byte_on_top(bytes, side * 2)), two = down<1>(byte_on_top(bytes, side * 2 + 1));
            starts[vector * 2 + side] = {{plus(one, to_sum), plus(two, to_sum)}, plus(larger(one, two), to_exponent)};
        }
    }
}

// A group's sum in units of 1 / scale, rounded half up.
static inline Wholes aligned(Floats sum, Wholes start, Floats scale) {
    return whole_below(times_plus(minus(sum, as_float(start)), scale, all(0.5f)));
}

// value * scale as a whole number, halves away from zero; at most 24 bits. What is added is just below a half, so that
// the rounding of the addition does not reach the next whole number.
static inline Wholes whole_nearest(Floats value, Floats scale) {
    return truncated(times_plus(value, scale, with_sign(all(0.49999997f), value)));
}

// What becomes of a total of -1. Wormhole normalises it wrongly, by 27 places; because it hardly ever occurs, products
// only watch for it at first.
enum class MinusOne { Right, Watched, Wrong };

// DST plus two group sums: all three are rounded to the last place of the largest exponent among them, summed as
// integers, and rounded again. The result weighs `more` places more. `totals` gets the largest of the totals, unsigned.
template <bool wide, MinusOne minus_one>
static inline Floats accumulated(Floats dst, Floats one, Floats two, const Starts& starts, int32_t more,
                                 Wholes& totals) {
    const Wholes dst_exponent = masked(as_bits(dst), all(0xFF << MANTISSA_BITS));
    const Wholes exponent = larger(starts.largest, dst_exponent);
    const Wholes inverse = minus(all((2 * EXPONENT_BIAS + MANTISSA_BITS) << MANTISSA_BITS), exponent);
    const Wholes first = aligned(one, starts.sum[0], as_float(inverse));
    const Wholes second = aligned(two, starts.sum[1], as_float(inverse));
    if (!wide) {
        const Wholes half = all(1 << (NARROW_PLACES - 1));
        const Wholes terms = plus(down<NARROW_PLACES>(plus(first, half)), down<NARROW_PLACES>(plus(second, half)));
        const Wholes coarse = minus(inverse, all(NARROW_PLACES << MANTISSA_BITS));
        const Floats total = to_float(plus(terms, whole_nearest(dst, as_float(coarse))));
        const Wholes unit = minus(exponent, all((MANTISSA_BITS - NARROW_PLACES - more) * (1 << MANTISSA_BITS)));
        const Wholes exact = as_bits(times(total, as_float(unit)));
        return as_float(masked(plus(exact, all(0x8000)), all(static_cast<int32_t>(0xFFFF0000u))));
    }
    const Wholes total = plus(plus(first, second), whole_nearest(dst, as_float(inverse)));
    Wholes unit = minus(exponent, all((MANTISSA_BITS + ROUNDED_PLACES - more) << MANTISSA_BITS));
    if (minus_one == MinusOne::Wrong) {
        unit = plus_at_minus_one(total, unit, all(27 << MANTISSA_BITS));
        misnormalised_sums += minus_ones(total);
    } else if (minus_one == MinusOne::Watched) {
        totals = larger_unsigned(totals, total);
    }
    return times(rounded_away(total), as_float(unit));
}

// The groups of some rows and vectors of the result over a half of the depth, and what the sums of each started from.
template <bool wide>
struct Groups {
    Floats sum[2][ROWS][vectors_at_once(wide)];
    const Starts (*starts)[SIDES];
};

// Multiplies a half of the depth and meanwhile, if it `adds`, adds to DST what came before: the one waits for
// multiplications, the other for conversions.
template <bool wide, MinusOne minus_one, bool adds>
static inline __attribute__((always_inline)) void multiply_half(const float* left, const float* right,
                                                                const Starts (*starts)[SIDES], uint32_t side,
                                                                Groups<wide>& groups, const Groups<wide>& earlier,
                                                                int32_t more, Floats (*dst)[vectors_at_once(wide)],
                                                                Wholes& totals) {
    constexpr uint32_t VECTORS = vectors_at_once(wide), STEPS = 16 / (ROWS * VECTORS);  // from one addition to the next
    groups.starts = starts;
#pragma GCC unroll 4
    for (uint32_t row = 0; row < ROWS; ++row) {
#pragma GCC unroll 2
        for (uint32_t vector = 0; vector < VECTORS; ++vector) {
            groups.sum[0][row][vector] = as_float(starts[row][side + vector].sum[0]);
            groups.sum[1][row][vector] = as_float(starts[row][side + vector].sum[1]);
        }
    }
#pragma GCC unroll 16
    for (uint32_t k = 0; k < 16; ++k) {
        Floats columns[VECTORS];
#pragma GCC unroll 2
        for (uint32_t vector = 0; vector < VECTORS; ++vector) {
            columns[vector] = load(right + column_of(vector) + k * 16);
        }
#pragma GCC unroll 4
        for (uint32_t row = 0; row < ROWS; ++row) {
            const Floats factor = all(left[row * 16 + k]);
#pragma GCC unroll 2
            for (uint32_t vector = 0; vector < VECTORS; ++vector) {
                Floats& sum = groups.sum[k / 8][row][vector];
                sum = times_plus(factor, columns[vector], sum);
            }
        }
        if (adds && k % STEPS == STEPS - 1) {
            const uint32_t row = k / STEPS / VECTORS, vector = k / STEPS % VECTORS;
            dst[row][vector] = accumulated<wide, minus_one>(dst[row][vector], earlier.sum[0][row][vector],
                                                            earlier.sum[1][row][vector],
                                                            earlier.starts[row][side + vector], more, totals);
        }
    }
}

// Some vectors of some rows of the result, at `place`. False, and nothing is stored, if there was a total of -1 that it
// watched for.
template <bool wide, MinusOne minus_one>
static inline __attribute__((always_inline)) bool multiply_vectors(const float* const* left, const float* const* right,
                                                                   const Starts (*starts)[ROWS][SIDES], uint32_t side,
                                                                   float* place, uint32_t phases) {
    constexpr float UNWEIGHTED[4] = {1.0f, 1.0f / LOW_A_FACTOR, 1.0f / LOW_B_FACTOR,
                                     1.0f / (LOW_A_FACTOR * LOW_B_FACTOR)};
    constexpr uint32_t VECTORS = vectors_at_once(wide);
    Floats dst[ROWS][VECTORS];
    for (uint32_t row = 0; row < ROWS; ++row) {
        for (uint32_t vector = 0; vector < VECTORS; ++vector) {
            dst[row][vector] = load(place + row * 16 + column_of(vector));
        }
    }
    Wholes totals = all(0);
    Groups<wide> upper, lower;
    for (uint32_t phase = 0; phase < phases; ++phase) {
        const float* rows = left[phase >> 1];
        const float* columns = right[phase & 1];
        if (phase == 0) {
            multiply_half<wide, minus_one, false>(rows, columns, starts[0], side, upper, lower, 0, dst, totals);
        } else {
            const int32_t more = phase == 2 ? LOW_B_PLACES - LOW_A_PLACES : LOW_A_PLACES;
            multiply_half<wide, minus_one, true>(rows, columns, starts[0], side, upper, lower, more, dst, totals);
        }
        multiply_half<wide, minus_one, true>(rows + FACE_ELEMENTS, columns + 2 * FACE_ELEMENTS, starts[1], side, lower,
                                             upper, 0, dst, totals);
    }
    for (uint32_t row = 0; row < ROWS; ++row) {
        for (uint32_t vector = 0; vector < VECTORS; ++vector) {
            dst[row][vector] = accumulated<wide, minus_one>(dst[row][vector], lower.sum[0][row][vector],
                                                            lower.sum[1][row][vector],
                                                            lower.starts[row][side + vector], 0, totals);
        }
    }
    if (minus_one == MinusOne::Watched && minus_ones(totals)) {
        return false;
    }
    const Floats unweighted = all(UNWEIGHTED[phases - 1]);
    for (uint32_t row = 0; row < ROWS; ++row) {
        for (uint32_t vector = 0; vector < VECTORS; ++vector) {
            store(place + row * 16 + column_of(vector), times(dst[row][vector], unweighted));
        }
    }
    return true;
}

template <bool wide, bool wormhole>
static void multiply(const MatmulOperand& left, const MatmulOperand& right, float* result, uint32_t phases) {
    const int32_t base = left.largest + right.largest - 2 * LARGEST_BYTE - EXPONENT_BIAS;
    for (uint32_t first = 0; first < 32; first += ROWS) {
        const uint32_t row_face = first / 16 * 2 * FACE_ELEMENTS, row_start = row_face + first % 16 * 16;
        Starts starts[2][ROWS][SIDES];
        for (uint32_t half = 0; half < 2; ++half) {
            for (uint32_t row = 0; row < ROWS; ++row) {
                const uint32_t* exponents = left.left_exponents + (row_start + half * FACE_ELEMENTS + row * 16) / 2;
                find_starts(exponents, right.right_exponents + half * 8 * 64, base, starts[half][row]);
            }
        }
        const float* rows[2] = {left.part[0] + row_start, left.part[1] + row_start};
        for (uint32_t side = 0; side < SIDES; side += vectors_at_once(wide)) {
            const float* columns[2] = {right.part[0] + column_of(side), right.part[1] + column_of(side)};
            float* place = result + row_start + column_of(side);
            constexpr MinusOne minus_one = wormhole ? MinusOne::Watched : MinusOne::Right;
            if (!multiply_vectors<wide, minus_one>(rows, columns, starts, side, place, phases)) {
                multiply_vectors<wide, MinusOne::Wrong>(rows, columns, starts, side, place, phases);
            }
        }
    }
}

static bool bytes_hold(const MatmulOperand& operand) {
    return operand.least >= LEAST_OPERAND_EXPONENT && operand.largest <= LARGEST_OPERAND_EXPONENT &&
           operand.largest - operand.least <= LARGEST_BYTE - LEAST_BYTE;
}

void multiply_tiles_exactly(const MatmulOperand& left, const MatmulOperand& right, float* result, FpuMode mode) {
    const int32_t least = left.least + right.least - EXPONENT_BIAS - LOW_A_PLACES - LOW_B_PLACES;
    const int32_t largest = left.largest + right.largest - EXPONENT_BIAS;
    if (!bytes_hold(left) || !bytes_hold(right) || least < LEAST_EXPONENT || largest > LARGEST_EXPONENT ||
        !in_range(result)) {
        fpu_multiply_tiles(left.tile, right.tile, result, mode);
    } else if (!mode.wide) {
        multiply<false, false>(left, right, result, mode.phases);
    } else if (mode.wormhole) {
        multiply<true, true>(left, right, result, mode.phases);
    } else {
        multiply<true, false>(left, right, result, mode.phases);
    }
}

#else

void take_left(MatmulOperand&) {}
void take_right(MatmulOperand&) {}
void multiply_tiles_exactly(const MatmulOperand& left, const MatmulOperand& right, float* result, FpuMode mode) {
    fpu_multiply_tiles(left.tile, right.tile, result, mode);
}

#endif

void multiply_tiles_exactly(const float* in0, const float* in1, float* result, FpuMode mode) {
    MatmulOperand left, right;
    memcpy(left.tile, in0, sizeof left.tile);
    memcpy(right.tile, in1, sizeof right.tile);
    take_left(left);
    take_right(right);
    multiply_tiles_exactly(left, right, result, mode);
}
