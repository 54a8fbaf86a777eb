#include "fpu.h"

// Everything works on rows of 16 elements, one face wide, in vectors that compilers split as the processor needs.
constexpr uint32_t LANES = 16;
typedef int32_t Row __attribute__((vector_size(LANES * 4)));
typedef uint32_t UnsignedRow __attribute__((vector_size(LANES * 4)));
typedef float FloatRow __attribute__((vector_size(LANES * 4)));

uint64_t misnormalised_sums = 0;

constexpr int32_t EXPONENT_BIAS = 127;
// A phase that takes the low mantissa bits of SrcA or SrcB weighs its product so many binary places less.
constexpr int32_t LOW_A_PLACES = 5;
constexpr int32_t LOW_B_PLACES = 7;

static inline Row load(const void* from) {
    Row row;
    memcpy(&row, from, sizeof row);
    return row;
}
static inline Row larger_of(Row a, Row b) { return a > b ? a : b; }
static inline Row smaller_of(Row a, Row b) { return a < b ? a : b; }
static inline Row all(int32_t value) { return Row{} + value; }
static inline bool any(Row mask) {
    typedef int64_t Halves __attribute__((vector_size(LANES * 4)));
    const Halves halves = reinterpret_cast<Halves>(mask);
    return (halves[0] | halves[1] | halves[2] | halves[3] | halves[4] | halves[5] | halves[6] | halves[7]) != 0;
}
// `value` negated where `mask` is -1.
static inline Row negate_where(Row value, Row mask) { return (value ^ mask) - mask; }

static inline Row exponent_of(Row bits) { return bits >> 23 & 0xFF; }
static inline Row sign_mask(Row bits) { return bits >> 31; }
// The hidden bit and 10 mantissa bits; an operand with exponent 0 counts as zero.
static inline Row mantissa11(Row bits) { return exponent_of(bits) == 0 ? Row{} : (bits >> 13 & 0x3FF) | 0x400; }

static int32_t product_places(uint32_t phase) {
    return -EXPONENT_BIAS - (phase & 1 ? LOW_A_PLACES : 0) - (phase & 2 ? LOW_B_PLACES : 0);
}

// The 5 bits of SrcA and the 7 bits of SrcB that a phase multiplies.
template <class Mantissa>
static inline Mantissa part_of_a(Mantissa mantissa, uint32_t phase) {
    return phase & 1 ? mantissa >> 1 & 0x1F : mantissa >> 6;
}
template <class Mantissa>
static inline Mantissa part_of_b(Mantissa mantissa, uint32_t phase) {
    return phase & 2 ? (mantissa & 0xF) << 3 : mantissa >> 4;
}

// A term on its way into DST: sign as a mask, exponent, mantissa with 23 fraction bits.
struct Term {
    Row sign, exponent, mantissa;
};

// `value` shifted right by `places`, rounded half up, or half down where `lower` is -1; nothing is left after 31.
static inline Row shifted(Row value, Row places, Row lower) {
    const Row within = smaller_of(larger_of(places, all(1)), all(30));
    const Row rounded = (value + (all(1) << (within - 1)) + lower) >> within;
    return places == 0 ? value : places < 31 ? rounded : Row{};
}

// Adds two terms to a row of DST: all are aligned to the largest exponent, summed as integers, normalised and rounded.
static inline Row accumulated(const Term& first, const Term& second, Row dst, bool wide, bool wormhole) {
    const Row dst_sign = sign_mask(dst), dst_exponent = exponent_of(dst);
    const Row exponent = larger_of(larger_of(first.exponent, second.exponent), dst_exponent);
    Row one = shifted(first.mantissa, exponent - first.exponent, first.sign);
    Row two = shifted(second.mantissa, exponent - second.exponent, second.sign);
    Row held = shifted(dst_exponent == 0 ? Row{} : (dst & 0x7FFFFF) | 0x800000, exponent - dst_exponent, Row{});
    if (!wide) {
        one = (one + (1 << 12) + first.sign) & ~0x1FFF;
        two = (two + (1 << 12) + second.sign) & ~0x1FFF;
        held = (held + (1 << 12)) & ~0x1FFF;
    }
    const Row sum = held + negate_where(one, first.sign ^ dst_sign) + negate_where(two, second.sign ^ dst_sign);
    const Row sign = dst_sign ^ sign_mask(sum);
    const Row magnitude = negate_where(sum, sign_mask(sum));
    // The number of bits, by way of a conversion that cannot round up to the next power of two.
    const FloatRow topmost = __builtin_convertvector(magnitude & ~(magnitude >> 1), FloatRow);
    Row up = 24 - (exponent_of(reinterpret_cast<Row>(topmost)) - 126);
    if (wormhole) {
        const Row wrong = (sign != 0) & (magnitude == 1);
        up -= wrong & 27;
        if (any(wrong)) {
            for (uint32_t lane = 0; lane < LANES; ++lane) {
                misnormalised_sums += wrong[lane] & 1;
            }
        }
    }
    Row result_exponent = exponent - up;
    const Row places = wide ? up : up - 16;
    const Row down = smaller_of(larger_of(-places, all(1)), all(30));
    const Row left = smaller_of(larger_of(places, Row{}), all(30));
    Row mantissa = places < 0 ? (magnitude + (all(1) << (down - 1))) >> down : magnitude << left;
    mantissa = wide ? mantissa : mantissa << 16;
    result_exponent += mantissa >> 24 & 1;
    const Row finite = (result_exponent & 0xFF) << 23 | (mantissa & 0x7FFFFF);
    const Row result = (sign & INT32_MIN) | (result_exponent >= 255 ? all(0x7F800000) : finite);
    return ((exponent <= 0) | (sum == 0) | (result_exponent <= 0)) ? Row{} : result;
}

// ---- tile products

// The operands of a tile product, taken apart once: rows of 16 elements in face order. `part` are the mantissa bits
// that a phase takes, the high ones and the low ones.
struct Parts {
    Row sign[TILE_ELEMENTS / LANES], exponent[TILE_ELEMENTS / LANES], part[2][TILE_ELEMENTS / LANES];
};

static void take_apart(const float* tile, bool is_a, Parts& parts) {
    for (uint32_t row = 0; row < TILE_ELEMENTS / LANES; ++row) {
        const Row bits = load(tile + row * LANES), mantissa = mantissa11(bits);
        parts.sign[row] = sign_mask(bits);
        parts.exponent[row] = exponent_of(bits);
        parts.part[0][row] = is_a ? part_of_a(mantissa, 0) : part_of_b(mantissa, 0);
        parts.part[1][row] = is_a ? part_of_a(mantissa, 1) : part_of_b(mantissa, 2);
    }
}

// Eight products for a row of 16 columns: the places by which each is shifted to the largest exponent among them, and
// their signs. They are the same in all phases, since a phase moves all exponents alike.
struct Group {
    UnsignedRow shift[8], half[8];
    Row sign[8], largest;
};

// `b_row` and `start` say where the eight elements of SrcB lie, `a_row` is the first of the eight rows of SrcA.
static inline void align_group(const Parts& b, uint32_t b_row, uint32_t start, const Parts& a, uint32_t a_row,
                               Group& group) {
    Row exponents[8], largest = {};
    for (uint32_t k = 0; k < 8; ++k) {
        const int32_t b_exponent = b.exponent[b_row][start + k];
        const Row live = b_exponent == 0 ? Row{} : a.exponent[a_row + k] != 0;
        // A zero takes no part in the alignment of a group whose sum is not zero.
        exponents[k] = (a.exponent[a_row + k] + b_exponent) & live;
        largest = larger_of(largest, exponents[k]);
        group.sign[k] = a.sign[a_row + k] ^ b.sign[b_row][start + k];
    }
    group.largest = largest;
    for (uint32_t k = 0; k < 8; ++k) {
        group.shift[k] = reinterpret_cast<UnsignedRow>(smaller_of(largest - exponents[k], all(30)));
        group.half[k] = (UnsignedRow{} + 1u) << group.shift[k];
        group.shift[k] += 1u;
    }
}

// The sum of the eight products in a phase, each rounded half up. `b_part` are eight elements of SrcB.
template <uint32_t phase>
static inline Term group_sum(const Group& group, const int32_t* b_part, const Row* a_part) {
    Row sum = {};
    for (uint32_t k = 0; k < 8; ++k) {
        const UnsignedRow doubled = reinterpret_cast<UnsignedRow>(a_part[k] * (b_part[k] << 1));
        const Row aligned = reinterpret_cast<Row>((doubled + group.half[k]) >> group.shift[k]);
        sum += negate_where(aligned, group.sign[k]);
    }
    const Row exponent = group.largest + product_places(phase);
    const Row live = exponent > 0, sign = sign_mask(sum);
    return {sign & live, exponent & live, negate_where(sum, sign) << 13 & live};
}

// Adds in a phase, if the mode has it, what a row of a face of SrcB and a face of SrcA give.
template <uint32_t phase>
static inline Row face_sum(const Group (&groups)[2], const Parts& b, uint32_t b_row, const Parts& a, uint32_t a_row, Row dst,
                           FpuMode mode) {
    if (phase >= mode.phases) {
        return dst;
    }
    int32_t b_part[LANES];
    memcpy(b_part, &b.part[phase >> 1][b_row], sizeof b_part);
    const Row* a_part = &a.part[phase & 1][a_row];
    const Term first = group_sum<phase>(groups[0], b_part, a_part);
    const Term second = group_sum<phase>(groups[1], b_part + 8, a_part + 8);
    return accumulated(first, second, dst, mode.wide, mode.wormhole);
}

static inline void align_face(const Parts& b, uint32_t b_row, const Parts& a, uint32_t a_row, Group (&groups)[2]) {
    align_group(b, b_row, 0, a, a_row, groups[0]);
    align_group(b, b_row, 8, a, a_row + 8, groups[1]);
}

template <uint32_t phase>
static inline Row phase_sum(const Group (&groups)[2][2], const Parts& b, const Parts& a, uint32_t face, uint32_t row, Row dst,
                            FpuMode mode) {
    for (uint32_t half = 0; half < 2; ++half) {
        dst = face_sum<phase>(groups[half], b, ((face & 2) + half) * 16 + row, a, (half * 2 + (face & 1)) * 16, dst, mode);
    }
    return dst;
}

void fpu_multiply_tiles(const float* in0, const float* in1, float* result, FpuMode mode) {
    Parts b, a;
    take_apart(in0, false, b);
    take_apart(in1, true, a);
    for (uint32_t face = 0; face < 4; ++face) {
        for (uint32_t row = 0; row < 16; ++row) {
            Group groups[2][2];
            for (uint32_t half = 0; half < 2; ++half) {
                align_face(b, ((face & 2) + half) * 16 + row, a, (half * 2 + (face & 1)) * 16, groups[half]);
            }
            float* place = result + face * FACE_ELEMENTS + row * LANES;
            Row dst = load(place);
            dst = phase_sum<0>(groups, b, a, face, row, dst, mode);
            dst = phase_sum<1>(groups, b, a, face, row, dst, mode);
            dst = phase_sum<2>(groups, b, a, face, row, dst, mode);
            dst = phase_sum<3>(groups, b, a, face, row, dst, mode);
            memcpy(place, &dst, sizeof dst);
        }
    }
}

// Unlike in a product, all phases of an upper face come before those of the face below it.
void fpu_sum_columns(const float* tile, float factor, float* result, FpuMode mode) {
    float factors[TILE_ELEMENTS];
    for (float& one : factors) {
        one = factor;
    }
    Parts b, a;
    take_apart(factors, false, b);
    take_apart(tile, true, a);
    for (uint32_t face = 0; face < 2; ++face) {
        Row dst = load(result + face * FACE_ELEMENTS);
        for (uint32_t a_row = face * LANES; a_row < TILE_ELEMENTS / LANES; a_row += 2 * LANES) {
            Group groups[2];
            align_face(b, 0, a, a_row, groups);
            dst = face_sum<0>(groups, b, 0, a, a_row, dst, mode);
            dst = face_sum<1>(groups, b, 0, a, a_row, dst, mode);
            dst = face_sum<2>(groups, b, 0, a, a_row, dst, mode);
            dst = face_sum<3>(groups, b, 0, a, a_row, dst, mode);
        }
        memcpy(result + face * FACE_ELEMENTS, &dst, sizeof dst);
    }
}

// ---- element-wise operations: one term, and an empty one beside it

void fpu_add_tile(const float* a, const float* b, bool subtract, float* result, bool accumulate, FpuMode mode) {
    const Term none = {};
    for (uint32_t start = 0; start < TILE_ELEMENTS; start += LANES) {
        const Row one = load(a + start), other = load(b + start) ^ (subtract ? INT32_MIN : 0);
        const Row first = exponent_of(one) == 0 ? Row{} : one, second = exponent_of(other) == 0 ? Row{} : other;
        const Row swap = (first & INT32_MAX) < (second & INT32_MAX);
        const Row larger = swap ? second : first, smaller = swap ? first : second;
        // An 11-bit mantissa is gone after twelve places.
        const Row shift = smaller_of(exponent_of(larger) - exponent_of(smaller), all(12));
        const Row aligned = (mantissa11(smaller) + (all(1) << shift >> 1)) >> shift;
        const Row sum = mantissa11(larger) + negate_where(aligned, sign_mask(larger ^ smaller));
        const Term term = {sign_mask(larger), exponent_of(larger), sum << 13};
        const Row dst = accumulated(term, none, accumulate ? load(result + start) : Row{}, mode.wide, mode.wormhole);
        memcpy(result + start, &dst, sizeof dst);
    }
}

void fpu_multiply_elements(const float* a, const float* b, float* result, bool accumulate, FpuMode mode) {
    const Term none = {};
    for (uint32_t start = 0; start < TILE_ELEMENTS; start += LANES) {
        const Row one = load(a + start), other = load(b + start);
        Row dst = accumulate ? load(result + start) : Row{};
        for (uint32_t phase = 0; phase < mode.phases; ++phase) {
            const Row exponent = exponent_of(one) + exponent_of(other) + product_places(phase);
            const Row live = (exponent_of(one) != 0) & (exponent_of(other) != 0) & (exponent > 0);
            const Row product = part_of_a(mantissa11(one), phase) * part_of_b(mantissa11(other), phase);
            const Row mantissa = product << 13 & live;
            const Term term = {sign_mask(one ^ other) & (mantissa != 0), exponent & live, mantissa};
            dst = accumulated(term, none, dst, mode.wide, mode.wormhole);
        }
        memcpy(result + start, &dst, sizeof dst);
    }
}
