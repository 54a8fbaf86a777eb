// The functions that the SDK's kernels make of SFPU instructions, step by step, on the bits of float32 values.
//
// Where a result is bit-equal to the simulated chips' or not is measured (docs/numerics.md). The algorithms and their
// coefficients are facts of the SDK's release 0.81.1 (ckernel_sfpu_*.h).
#pragma once
#include "number.h"

using Bits = uint32_t;

constexpr Bits of(float value) { return __builtin_bit_cast(Bits, value); }

constexpr Bits SIGN = 0x80000000u, EXPONENT = 0x7F800000u, MANTISSA = 0x007FFFFFu;
constexpr Bits ZERO = 0, ONE = of(1.0f), MINUS_ONE = of(-1.0f), HALF = of(0.5f), INFINITE = EXPONENT;
constexpr Bits NOT_A_NUMBER = 0x7FC00000u;

// ---- single instructions

inline int32_t biased_exponent(Bits x) { return static_cast<int32_t>(x >> 23 & 0xFFu); }
inline int32_t exponent(Bits x) { return biased_exponent(x) - 127; }
inline Bits with_exponent(Bits x, int32_t biased) {
    return (x & ~EXPONENT) | (static_cast<Bits>(biased) & 0xFFu) << 23;
}
inline Bits with_sign_of(Bits x, Bits sign) { return (x & ~SIGN) | (sign & SIGN); }
inline Bits magnitude(Bits x) { return x & ~SIGN; }
inline Bits negated(Bits x) { return x ^ SIGN; }
// Adds to the exponent, wrapping; infinities and NaN stay.
inline Bits scaled(Bits x, int32_t steps) {
    return biased_exponent(x) == 255 ? x : with_exponent(x, biased_exponent(x) + steps);
}
inline bool negative(Bits x) { return x >> 31; }

// The order of numbers of sign and magnitude: -NaN below all, -0 below 0, NaN above all.
inline int32_t order_of_bits(Bits x) {
    const int32_t bits = static_cast<int32_t>(x);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}
inline Bits larger(Bits x, Bits y) { return order_of_bits(x) < order_of_bits(y) ? y : x; }
inline Bits smaller(Bits x, Bits y) { return order_of_bits(x) < order_of_bits(y) ? x : y; }
inline Bits clamped(Bits x, Bits low, Bits high) { return smaller(larger(x, low), high); }

inline Bits shifted(Bits x, int32_t amount) {
    return amount >= 0 ? x << (amount & 31) : x >> (-amount & 31);
}

// To the nearest integer, ties away from zero, as a magnitude of at most `limit`; 2^16 and above give the limit. All steps
// are exact, and there are no branches, so that compilers make vectors of it.
inline int32_t rounded_magnitude(Bits x, int32_t limit) {
    const float size = float_of(magnitude(x)), held = size < 65536.0f ? size : 65536.0f;
    const int32_t below = static_cast<int32_t>(held), whole = below + (held - static_cast<float>(below) >= 0.5f);
    return whole > limit ? limit : whole;
}
// To a signed 16-bit integer of sign and magnitude, so at most 32767.
inline int32_t rounded_to_int16(Bits x) {
    const int32_t whole = rounded_magnitude(x, 32767);
    return negative(x) ? -whole : whole;
}
// To a 32-bit integer towards zero; what is out of range, and NaN, gives the limit of its sign.
inline Bits to_int32(Bits x) {
    const int32_t e = exponent(x);
    const Bits size = e < 0 ? 0 : e > 30 ? SIGN : shifted(0x800000u | (x & MANTISSA), e - 23);
    return negative(x) ? 0 - size : size == SIGN ? 0x7FFFFFFFu : size;
}
// An integer as float32, to nearest, ties to even.
inline Bits to_float(int32_t value) { return of(static_cast<float>(value)); }

// To bfloat16 by the rounding instruction: ties away from zero, denormals to +0, NaN to infinity.
inline Bits to_bfloat16(Bits x) {
    const int32_t e = biased_exponent(x);
    return e == 0 ? ZERO : e == 255 ? x & (SIGN | EXPONENT) : (x + 0x8000u) & 0xFFFF0000u;
}
// To bfloat16 by integer instructions: ties to even.
inline Bits to_bfloat16_even(Bits x) { return (x + 0x7FFFu + (x >> 16 & 1u)) & 0xFFFF0000u; }

// x * y + z as the multiply-add unit rounds: the product keeps 26 fraction bits and a sticky bit, the smaller of the two
// summands is shifted with a sticky bit (which is lost if nothing else is left of it), three bits decide the rounding.
// Denormals count as zero. Wormhole has fewer sticky bits after a carry and its own zeros and NaN.
template <bool WORMHOLE>
__attribute__((noinline)) Bits multiply_add_model(Bits x, Bits y, Bits z) {
    const int32_t x_exponent = biased_exponent(x), y_exponent = biased_exponent(y), z_exponent = biased_exponent(z);
    const uint64_t x_mantissa = x_exponent ? 0x800000u | (x & MANTISSA) : 0, y_mantissa = y_exponent ? 0x800000u | (y & MANTISSA) : 0;
    uint32_t sum_z = (z_exponent ? 0x800000u | (z & MANTISSA) : 0) << 3;
    const Bits z_sign = z & SIGN, p_sign = (x ^ y) & SIGN;
    const uint64_t product = x_mantissa * y_mantissa << 3;
    uint64_t sum_p = product >> 23 | ((product & MANTISSA) != 0);
    int32_t p_exponent = x_exponent + y_exponent - 127;
    Bits not_a_number = 0;
    if (x_exponent == 255 || y_exponent == 255 || p_exponent >= 255 || z_exponent == 255) {
        const bool invalid_product = (x_exponent == 255 && (x_mantissa != 0x800000u || !y_mantissa)) ||
                                     (y_exponent == 255 && (y_mantissa != 0x800000u || !x_mantissa));
        const bool z_infinite = z_exponent == 255 && sum_z == 0x4000000u, z_invalid = z_exponent == 255 && !z_infinite;
        const bool infinite_product = x_exponent == 255 || y_exponent == 255 || (WORMHOLE && p_exponent >= 255);
        const bool opposed = z_infinite && infinite_product && z_sign != p_sign;
        if (!(invalid_product || z_invalid || opposed)) {
            return z_exponent == 255 ? z : p_sign | INFINITE;
        }
        if (!WORMHOLE) {
            return NOT_A_NUMBER;
        }
        // Wormhole goes on computing: bits of the result stay in the NaN.
        not_a_number = (invalid_product || opposed ? p_sign : z_sign) | 0x7F800001u;
        p_exponent = p_exponent > 255 ? 255 : p_exponent;
    }
    if (!sum_p || p_exponent < 0) {
        if (!not_a_number) {
            return sum_z ? z : WORMHOLE ? ZERO : z_sign & p_sign;
        }
        sum_p = 0;
        p_exponent = 0;
    }
    int32_t result_exponent = p_exponent > z_exponent ? p_exponent : z_exponent;
    const int32_t p_shift = result_exponent - p_exponent, z_shift = result_exponent - z_exponent;
    if (p_shift) {
        const uint64_t kept = p_shift > 63 ? 0 : sum_p >> p_shift;
        sum_p = kept | (kept && kept << p_shift != sum_p);
    }
    if (z_shift) {
        const uint32_t kept = z_shift > 31 ? 0 : sum_z >> z_shift;
        sum_z = kept | (kept && kept << z_shift != sum_z);
    }
    const Bits sign = sum_p >= sum_z ? p_sign : z_sign;
    uint32_t sum = static_cast<uint32_t>(p_sign == z_sign ? sum_p + sum_z : sum_p >= sum_z ? sum_p - sum_z : sum_z - sum_p);
    if (!sum) {
        return WORMHOLE ? not_a_number : z_sign & p_sign;
    }
    int32_t right = 5 - __builtin_clz(sum);
    result_exponent += right;
    if (result_exponent >= 255) {
        return not_a_number ? not_a_number : sign | INFINITE;
    }
    if (WORMHOLE) {
        if (result_exponent < 0) {
            return not_a_number;
        }
    } else if (result_exponent <= 0) {
        ++right;
        result_exponent = 0;
    }
    if (right <= 0) {
        sum <<= -right;
    } else {
        sum = sum >> right | (WORMHOLE ? sum & 1u : (sum & (static_cast<uint32_t>(right) | 1u)) != 0);
    }
    Bits result = (static_cast<Bits>(result_exponent) << 23) + (sum >> 3 & MANTISSA);
    result += (sum & 7u) + (result & 1u) > 4u;
    if (!(result >> 23)) {
        return WORMHOLE ? not_a_number : sign;
    }
    return (not_a_number ? not_a_number : sign) | result;
}

// The functions as a chip computes them. WIDE: with a 32-bit DST; else most results are rounded to bfloat16. EXACT: with
// the multiply-add unit's own rounding; else with that of the machine that emulates.
template <bool WORMHOLE, bool WIDE, bool EXACT>
struct Sfpu {
    static constexpr bool IS_EXACT = EXACT;

    // x * y + z. The model rounds as IEEE does where only one summand has a sticky bit and nothing cancels: so where the
    // product is at most 4 times the larger summand.
    static Bits mad(Bits x, Bits y, Bits z) {
        if (!EXACT) {
            return of(multiply_add(float_of(x), float_of(y), float_of(z)));
        }
        const uint32_t x_exponent = x >> 23 & 0xFFu, y_exponent = y >> 23 & 0xFFu, z_exponent = z >> 23 & 0xFFu;
        const uint32_t gap = z_exponent + 127u - x_exponent - y_exponent + 2u;
        if (gap < 26u && x_exponent + y_exponent >= 127u && x_exponent - 1u < 254u && y_exponent - 1u < 254u && z_exponent - 1u < 253u) {
            const Bits result = of(multiply_add(float_of(x), float_of(y), float_of(z)));
            const uint32_t result_exponent = result >> 23 & 0xFFu;
            const uint32_t largest = gap >= 2u ? z_exponent : x_exponent + y_exponent - 127u;
            if (result_exponent - largest <= 1u && result_exponent < 255u) {
                return result;
            }
        }
        return multiply_add_model<WORMHOLE>(x, y, z);
    }
    // A product alone is rounded as IEEE does unless it leaves the normal range.
    static Bits mul(Bits x, Bits y) {
        if (!EXACT) {
            return of(float_of(x) * float_of(y));
        }
        const uint32_t x_exponent = x >> 23 & 0xFFu, y_exponent = y >> 23 & 0xFFu;
        if (x_exponent - 1u < 254u && y_exponent - 1u < 254u && x_exponent + y_exponent >= 127u) {
            const Bits result = of(float_of(x) * float_of(y));
            if ((result >> 23 & 0xFFu) - 1u < 254u) {
                return result;
            }
        }
        return multiply_add_model<WORMHOLE>(x, y, ZERO);
    }
    // So is a sum in which nothing cancels, or of numbers that three more bits align.
    static Bits add(Bits x, Bits y) {
        if (!EXACT) {
            return of(float_of(x) + float_of(y));
        }
        const uint32_t x_exponent = x >> 23 & 0xFFu, y_exponent = y >> 23 & 0xFFu;
        const uint32_t largest = x_exponent > y_exponent ? x_exponent : y_exponent;
        const uint32_t gap = 2u * largest - x_exponent - y_exponent;
        if (gap < 24u && x_exponent - 1u < 253u && y_exponent - 1u < 253u) {
            const Bits result = of(float_of(x) + float_of(y));
            const uint32_t result_exponent = result >> 23 & 0xFFu;
            if (gap <= 3u ? result_exponent - 1u < 254u : result_exponent - largest <= 1u && result_exponent < 255u) {
                return result;
            }
        }
        return multiply_add_model<WORMHOLE>(x, ONE, y);
    }
    static Bits sub(Bits x, Bits y) { return add(negated(y), x); }
    // z - x * y: Wormhole's multiply-add cannot negate, so it takes two instructions that round.
    static Bits minus_product(Bits z, Bits x, Bits y) { return WORMHOLE ? sub(z, mul(x, y)) : mad(negated(x), y, z); }
    static bool less(Bits x, Bits y) { return negative(sub(x, y)); }

    // A polynomial, coefficients from the highest power on.
    static Bits horner(Bits, Bits sum) { return sum; }
    template <class... Rest>
    static Bits horner(Bits x, Bits sum, Bits next, Rest... rest) { return horner(x, mad(sum, x, next), rest...); }

    static Bits stored(Bits x) { return WIDE ? x : to_bfloat16(x); }

    // 1 / x to 7 bits, from a table; Blackhole only.
    static Bits reciprocal_estimate(Bits x) {
        // As wide as the numbers, so that vectors can look it up.
        static constexpr Bits TABLE[128] = {
            127, 125, 123, 121, 119, 117, 116, 114, 112, 110, 109, 107, 105, 104, 102, 100, 99, 97, 96, 94, 93, 91,
            90, 88, 87, 85, 84, 83, 81, 80, 79, 77, 76, 75, 74, 72, 71, 70, 69, 68, 66, 65, 64, 63, 62, 61, 60, 59, 58,
            57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 40, 39, 38, 37, 36, 35, 35, 34, 33,
            32, 31, 31, 30, 29, 28, 28, 27, 26, 25, 25, 24, 23, 23, 22, 21, 21, 20, 19, 19, 18, 17, 17, 16, 15, 15, 14,
            14, 13, 12, 12, 11, 11, 10, 9, 9, 8, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0};
        const Bits size = magnitude(x), sign = x & SIGN;
        const Bits estimate = (253u - (size >> 23)) << 23 | TABLE[size >> 16 & 0x7Fu] << 16;
        return sign | (size < 0x800000u ? INFINITE : size >= 0x7E800000u ? ZERO : estimate);
    }

    // 1 / x by Newton's method from a quadratic estimate (Wormhole) or from the table (Blackhole). `normalized` says
    // that the exponent is 0.
    static Bits reciprocal(Bits x, int steps, bool normalized = false, bool for_bfloat16 = false) {
        if (WORMHOLE) {
            const Bits k0 = of(for_bfloat16 ? 0.32133400440216064453125f : 0.3232325017452239990234375f);
            const Bits k1 = of(for_bfloat16 ? 1.4514148235321044921875f : 1.4545459747314453125f);
            const Bits k2 = of(for_bfloat16 ? 2.1200883388519287109375f : 2.121212482452392578125f);
            const Bits minus = MINUS_ONE | (x & MANTISSA);
            Bits y = mad(mad(k0, minus, k1), minus, k2);
            for (int step = 0; step < steps; ++step) {
                y = mad(y, mad(minus, y, ONE), y);
            }
            if (for_bfloat16) {
                y = to_bfloat16(y);
            }
            return with_sign_of(normalized ? y : mul(y, mul(~x & ~MANTISSA, HALF)), x);
        }
        const Bits minus_two = of(-2.0f);
        const Bits estimate = reciprocal_estimate(x), t = mad(x, estimate, minus_two);
        const Bits first = mad(estimate, negated(t), SIGN);
        const Bits result = steps > 1 ? mad(first, negated(mad(x, first, minus_two)), SIGN) : first;
        return !negative(t) && !normalized ? estimate : result;  // t is NaN: x is zero or infinite
    }

    static Bits recip_tile(Bits x) {
        if (WORMHOLE) {
            return WIDE ? reciprocal(x, 2) : reciprocal(x, 1, false, true);
        }
        const Bits y = reciprocal_estimate(x);
        if (WIDE) {
            const Bits e = mad(negated(x), y, ONE), t = mad(mad(e, e, e), e, e);
            return mad(smaller(t, ONE), y, y);
        }
        const Bits patched = (y & 0xFFFF0000u) | 0x8000u;
        const Bits e = mad(add(x, ZERO), patched, MINUS_ONE);
        return patched + (e >> 16);
    }

    // ---- exponentials

    // 2^k * r, r near 1 and k such that the exponent may leave the range: infinity above, 0 below.
    static Bits exponential_of(Bits overflowed, Bits r, int32_t steps) {
        const int32_t e = biased_exponent(r) + steps;
        return e >= 255 ? overflowed : e < 1 ? ZERO : with_exponent(r, e);
    }

    // e^x in two steps of range reduction and a polynomial of degree 6.
    static Bits exp_wide(Bits x) {
        const int32_t whole = rounded_to_int16(mul(of(1.442695f), x));
        const Bits steps = to_float(whole);
        const Bits f = mad(steps, of(-1.42860677e-6f), mad(steps, of(-6.93145752e-1f), x));
        const Bits y = horner(f, of(1.37805939e-3f), of(8.37312452e-3f), of(4.16695364e-2f), of(1.66664720e-1f),
                              of(4.99999851e-1f), ONE);
        const Bits result = exponential_of(INFINITE, mad(y, f, ONE), whole);
        return magnitude(x) > INFINITE ? x : result;
    }

    // 2^(l - 127): l as a number of 8 whole and 23 fraction bits is exponent and, through a polynomial, mantissa.
    static Bits exp_of_fixed(Bits l) {
        const Bits fixed = shifted(0x800000u | (l & MANTISSA), exponent(l));
        const Bits fraction = to_float(static_cast<int32_t>(fixed & MANTISSA));
        const Bits mantissa = horner(fraction, of(4.791750143340323e-15f), of(7.839635491371155e-08f), of(1.0017248f));
        return with_exponent(mantissa, biased_exponent(fixed));
    }
    static Bits exp_narrow(Bits x) {
        return exp_of_fixed(clamped(mad(x, of(1.4426950216293334961f), of(127.0f)), ZERO, of(255.0f)));
    }

    // e^(x * scale) by Schraudolph: the bits of a float, read as a number, are nearly linear in its logarithm. So are the
    // upper 16 of them without the sign, a whole number that the rounding instruction makes. Numbers below -88.5 become
    // that, and the magnitude of what is below zero is a denormal.
    static Bits exp_fast_tile(Bits x, float scale) {
        const float slope = 256.0f * 1.4426950408889634f;
        const Bits limited = larger(x, of(-88.5f / scale));
        const Bits y = mad(of(slope * scale), limited, of(32500.818359375f)) & ~SIGN;
        const Bits result = static_cast<Bits>(rounded_magnitude(y, 65535)) << 15;
        return WIDE || result & EXPONENT ? result : ZERO;
    }

    static Bits exp2_tile(Bits x) {
        if (!WIDE) {
            return to_bfloat16(exp_of_fixed(clamped(add(x, of(127.0f)), ZERO, of(255.0f))));
        }
        const int32_t whole = rounded_to_int16(x);
        const Bits f = sub(x, to_float(whole));
        const Bits y = horner(f, of(0x1.41cp-13f), of(0x1.5f4p-10f), of(0x1.3b4p-7f), of(0x1.c6afd8p-5f));
        const Bits r = horner(f, y, of(0x1.ebfba0p-3f), of(0x1.62e42ep-1f), ONE);
        const Bits overflowed = mul(y, INFINITE);
        const Bits result = exponential_of(overflowed, r, whole);
        return negative(x) && magnitude(x) > INFINITE ? overflowed : result;
    }

    static Bits sigmoid(Bits x) {
        const Bits e = WIDE ? exp_wide(negated(x)) : exp_narrow(negated(x));
        return reciprocal(add(e, ONE), WIDE ? 2 : 1);
    }
    static Bits sigmoid_tile(Bits x) { return stored(sigmoid(x)); }
    static Bits silu_tile(Bits x) { return stored(mul(x, sigmoid(x))); }

    // ---- logarithms

    enum class Base { E, Two, Scaled };
    static Bits logarithm(Bits input, Base base, Bits scale) {
        const Bits x = add(input, ZERO);
        const Bits e = (x - of(0.75f)) & (SIGN | EXPONENT);
        const Bits m = add(x - e, MINUS_ONE);
        if (negative(x)) {
            return NOT_A_NUMBER;
        }
        const Bits s = mul(m, m);
        const int32_t whole = static_cast<int32_t>(e);
        const Bits steps = with_sign_of(to_float(whole < 0 ? -whole : whole), e);
        Bits r = WIDE ? horner(m, of(-0x1.92cp-5f), of(0x1.b84p-4f), of(-0x1.0c4p-3f), of(0x1.274p-3f), of(-0x1.55p-3f),
                               of(0x1.998p-3f), of(-0x1.00001ap-2f), of(0x1.555572p-2f), of(-0.5f))
                      : horner(m, of(-0.25f), of(0x1.744p-2f), of(-0x1.008p-1f));
        r = mad(r, s, m);
        Bits result;
        if (base == Base::Two) {
            result = mad(steps, of(1.19209290e-7f), mul(r, scale));
        } else {
            result = mad(steps, of(0.693147182f * 1.19209290e-7f), r);
            result = base == Base::Scaled ? mul(result, scale) : result;
        }
        // Zero has wrapped to an infinity here.
        const Bits halved = scaled(x, -1);
        return biased_exponent(halved) == 255 ? mul(result, halved) : result;
    }
    static Bits log_tile(Bits x) { return stored(logarithm(x, Base::E, ONE)); }
    static Bits log2_tile(Bits x, Bits scale) { return stored(logarithm(x, Base::Two, scale)); }
    static Bits log_with_base_tile(Bits x, Bits scale) { return stored(logarithm(x, Base::Scaled, scale)); }

    // ---- roots

    // The estimate of 1 / sqrt(x) after one step, and x times it.
    static void root_estimate(Bits x, Bits& y, Bits& xy) {
        y = 0x5F1110A0u - (x >> 1);
        xy = mul(x, y);
        const Bits c = mul(negated(y), xy);
        y = mul(y, mad(c, add(c, of(2.2533049f)), of(2.2825186f)));
        xy = mul(x, y);
    }
    static Bits sqrt_tile(Bits x) {
        Bits y, xy;
        root_estimate(x, y, xy);
        const Bits rest = mad(negated(y), xy, ONE);
        Bits result = xy;
        if (static_cast<int32_t>(x - INFINITE) < 0) {
            result = mad(rest, mul(HALF, xy), xy);
        }
        if (!magnitude(x)) {
            result = x;
        } else if (negative(x)) {
            result = NOT_A_NUMBER;
        }
        return stored(result);
    }
    static Bits rsqrt_tile(Bits x) {
        Bits y, xy;
        root_estimate(x, y, xy);
        const Bits rest = mad(negated(y), xy, ONE);
        Bits result = INFINITE - x;
        if (result && magnitude(x)) {
            result = negative(x) ? NOT_A_NUMBER : mad(rest, scaled(y, -1), y);
        }
        return stored(result);
    }

    // ---- hyperbolic tangent, error function, gelu

    static Bits tanh_tile(Bits x) {
        if (!WIDE) {
            const Bits a = magnitude(x);
            const Bits r = mul(horner(a, of(5.876733921468257904052734375e-3f), of(-6.6649019718170166015625e-2f),
                                      of(0.281917631626129150390625f), of(-0.4890659749507904052734375f),
                                      of(3.0897438526153564453125e-2f), of(0.999004364013671875f)),
                               a);
            return to_bfloat16(with_sign_of(smaller(r, ONE), x));
        }
        const int32_t whole = rounded_magnitude(mul(x, of(2.0f * 1.442695f)), 255);
        Bits a = magnitude(add(x, x));
        const Bits f = mad(to_float(whole), of(-0.6931471805599453f), a);
        Bits r = horner(f, of(1.974105835e-04f), of(1.393318176e-3f), of(8.331298828e-3f), of(4.166680202e-2f),
                        of(1.666667163e-1f), HALF);
        r = mad(r, mul(f, f), f);
        const Bits scale = with_exponent(ZERO, whole + 126);
        const Bits x0 = mad(r, scale, sub(scale, HALF)), x1 = add(x0, ONE);
        const Bits limit = with_sign_of(mad(a - 1u, ZERO, ONE), x);
        Bits estimate, y0, t;
        if (WORMHOLE) {  // an estimate of -1 / x1
            estimate = 0xFEF30000u - x1;
            t = mad(x1, estimate, ONE);
            t = mad(t, t, t);
            estimate = mad(estimate, t, estimate);
            y0 = mul(x0, estimate);
            t = mad(x1, y0, x0);
        } else {
            estimate = reciprocal_estimate(x1);
            t = mad(negated(x1), estimate, ONE);
            estimate = mad(estimate, t, estimate);
            y0 = mul(x0, estimate);
            t = mad(negated(x1), y0, x0);
        }
        const Bits result = with_sign_of(mad(t, estimate, y0), x);
        return whole >= 61 ? limit : biased_exponent(x) < 115 ? x : result;
    }

    // An odd polynomial of x by an even one, between -1 and 1.
    static Bits error_function(Bits x) {
        const Bits s = mul(x, x);
        const Bits above = horner(s, of(-2.8632063387e-10f), of(2.7384647439e-08f), of(1.7678321456e-05f), of(6.1307044234e-04f),
                                  of(5.6230435148e-03f), of(6.2133435160e-02f), of(2.1477432549e-01f), of(1.1283791065f));
        const Bits below = horner(s, of(-6.7350725691e-12f), of(-3.5153888689e-09f), of(1.3156344494e-06f), of(1.3179056987e-04f),
                                  of(1.9545555115e-03f), of(1.9642570987e-02f), of(1.2961706519e-01f), of(5.2367275953e-01f), ONE);
        return clamped(mul(mul(above, x), reciprocal(below, 2)), MINUS_ONE, ONE);
    }
    static Bits within_ten(Bits x) { return with_sign_of(smaller(magnitude(x), of(10.0f)), x); }
    static Bits accurate_erf_tile(Bits x) { return error_function(within_ten(x)); }
    // With coefficients for bfloat16.
    static Bits erf_tile(Bits x) {
        const Bits a = within_ten(x), s = mul(a, a);
        const Bits above = horner(s, of(7.4481184425e-04f), of(4.5400281738e-02f), of(2.7609212279e-01f), of(1.1280932447f));
        const Bits below = horner(s, of(2.4813862145e-05f), of(8.2844606784e-03f), of(1.3675764810e-01f), of(5.7439188334e-01f), ONE);
        return clamped(mul(mul(above, a), reciprocal(below, 2)), MINUS_ONE, ONE);
    }

    static Bits gelu_tile(Bits x) {
        if (WIDE) {
            const Bits error = error_function(smaller(mul(x, of(0.7071067811865475f)), of(10.0f)));
            const Bits share = error == MINUS_ONE ? of(2.9802322387695313e-08f) : mad(HALF, error, HALF);
            const Bits result = mul(x, share);
            return less(of(-5.54259443f), x) ? result : sub(x, x);
        }
        const Bits s = mul(x, x);
        if (!less(of(-5.54259443f), x)) {
            return ZERO;
        }
        if (!less(x, of(2.78125f))) {
            return to_bfloat16(x);
        }
        if (!less(x, of(-3.125f))) {
            const Bits odd = horner(s, of(7.9821413868e-08f), of(-3.8082057209e-06f), of(8.1812159812e-05f), of(-1.0717806322e-03f),
                                    of(9.7720050615e-03f), of(-6.6361041488e-02f), of(3.9894227818e-01f));
            return to_bfloat16(mul(x, mad(x, odd, HALF)));
        }
        const Bits e = exp_of_fixed(mad(s, of(-0.72134752044f), of(127.0f)));
        const Bits h = mul(e, horner(x, of(7.5950479368e-04f), of(1.3809983619e-02f), of(9.5413386822e-02f), of(3.0369991064e-01f)));
        const Bits grid = of(0.375f);
        return to_bfloat16(mul(x, sub(add(h, grid), grid)));
    }

    // ---- sine and cosine

    // sin(a) or, for odd `turns`, -sin(a); |a| at most pi / 2.
    static Bits sine_of_reduced(Bits a, Bits turns) {
        const Bits s = mul(a, a), b = a ^ turns << 31, c = mul(b, s);
        const Bits r = WIDE ? horner(s, of(0x1.5dc908p-19f), of(-0x1.9f70fp-13f), of(0x1.110edap-7f), of(-0x1.55554cp-3f))
                            : horner(s, of(-0x1.8b10a4p-13f), of(0x1.10c2a2p-7f), of(-0x1.5554a4p-3f));
        return stored(mad(r, c, b));
    }
    static Bits sin_tile(Bits x) {
        const Bits bias = of(0x1.8p23f), turns = mad(x, of(0.31830987334251404f), bias), j = sub(turns, bias);
        Bits a = mad(j, of(-0x1.92p+1f), x);
        a = mad(j, of(-0x1.fbp-11f), a);
        a = mad(j, of(-0x1.51p-21f), a);
        a = mad(j, of(-0x1.0b4612p-33f), a);
        return sine_of_reduced(a, turns);
    }
    static Bits cos_tile(Bits x) {
        const Bits bias = of(12582912.0f), turns = add(mad(x, of(0.31830987334251404f), HALF), bias);
        const Bits j = mad(sub(turns, bias), of(2.0f), MINUS_ONE);
        Bits a = mad(j, of(-0x1.92p+0f), x);
        a = mad(j, of(-0x1.fbp-12f), a);
        a = mad(j, of(-0x1.51p-22f), a);
        a = mad(j, of(-0x1.0b4612p-34f), a);
        return sine_of_reduced(a, turns);
    }

    // ---- powers

    // The integer part of a number that is not negative; 2^31 and above give the largest integer.
    static Bits whole_part(Bits x) {
        const int32_t e = exponent(x);
        return e < 0 ? 0 : e > 30 ? 0x7FFFFFFFu : shifted(0x800000u | (x & MANTISSA), e - 23);
    }
    // The sign of an integer power of a negative base; NaN for a power that is not an integer.
    static Bits signed_power(Bits y, Bits power) {
        const int32_t whole = rounded_to_int16(power);
        return to_float(whole) == power || (!whole && !magnitude(power)) ? with_sign_of(y, static_cast<Bits>(whole) << 31) : NOT_A_NUMBER;
    }
    // |base|^power with the accuracy of bfloat16.
    static Bits power_narrow(Bits base, Bits power, Bits one_over_ln_2) {
        const Bits x = with_exponent(magnitude(base), 127);
        const Bits series = horner(x, of(0x2.44734p-4f), of(-0xd.e712ap-4f), of(0x2.4f5388p+0f), of(-0x1.952992p+0f));
        Bits z = mul(power, mad(series, one_over_ln_2, to_float(exponent(base))));
        const Bits lowest = of(-127.0f);
        z = scaled(less(z, lowest) ? lowest : z, 23);
        const Bits fixed = whole_part(add(z, of(1065353216.0f)));
        const int32_t fraction = static_cast<int32_t>(fixed & MANTISSA);
        const Bits d2 = mul(of(0.40196114e-7f), to_float(0xF94EE7 + fraction)), d3 = to_float(0x560E + fraction);
        return with_exponent(whole_part(mul(d2, d3)), 127 + exponent(fixed));
    }
    // log2 of |base| times power in two parts whose sum is exact enough for float32.
    static void power_parts(Bits base, Bits power, Bits first, Bits second, Bits one_over_ln_2, Bits& high, Bits& low) {
        const Bits a = magnitude(base);
        Bits m = with_exponent(a, 127);
        int32_t e = exponent(a);
        if (!less(m, of(1.4142135381698608f))) {
            m = scaled(m, -1);
            ++e;
        }
        const Bits next = add(m, ONE), two = of(2.0f);
        Bits estimate = minus_product(first, second, next);
        for (int step = 0; step < 3; ++step) {
            estimate = mul(estimate, minus_product(two, next, estimate));
        }
        const Bits z = mul(add(m, MINUS_ONE), estimate), s = mul(z, z);
        const Bits p = horner(s, of(0.09090909090909091f), of(0.1111111111111111f), of(0.14285714285714285f), of(0.2f),
                              of(0.3333333333333333f), ONE);
        const Bits logarithm_of_m = mul(two, mul(z, p)), steps = to_float(e);
        const Bits split = mul(power, of(4097.0f)), power_high = sub(split, sub(split, power)), power_low = sub(power, power_high);
        high = mul(power_high, steps);
        low = mad(power_low, steps, mul(power, mul(logarithm_of_m, one_over_ln_2)));
    }
    // To the nearest integer, ties to even, by a bias that pushes the fraction out.
    static Bits rounded_by_bias(Bits x, int32_t& whole) {
        const Bits bias = of(12582912.0f), biased = add(x, bias);
        whole = static_cast<int32_t>(biased - bias);
        return sub(biased, bias);
    }
    static Bits power_tile(Bits base, Bits power) {
        const bool zero = !magnitude(base);
        if (WORMHOLE && WIDE && magnitude(base) > INFINITE) {
            return NOT_A_NUMBER;
        }
        Bits y;
        if (WIDE) {
            Bits high, low;
            power_parts(base, power, of(1.003f), of(0.244f), of(1.4426950408889634f), high, low);
            Bits s = add(high, low);
            const Bits rest = sub(low, sub(s, high));
            s = larger(s, of(-0x7e.ffff8p0f));
            int32_t whole;
            const Bits k = rounded_by_bias(s, whole);
            const Bits f = add(sub(s, k), rest);
            const Bits r = mad(f, of(0.693359375f), mul(f, of(-2.12194440e-4f)));
            Bits p = horner(r, of(1.0f / 5040.0f), of(1.0f / 720.0f), of(1.0f / 120.0f), of(1.0f / 24.0f), of(1.0f / 6.0f));
            // The compiler makes two instructions of this step for Wormhole.
            p = horner(r, WORMHOLE ? add(mul(p, r), HALF) : mad(p, r, HALF), ONE, ONE);
            y = less(s, of(128.0f)) ? with_exponent(p, biased_exponent(p) + whole) : INFINITE;
        } else {
            y = power_narrow(base, power, of(1.4426950408889634f));
        }
        if (negative(base)) {
            y = signed_power(y, power);
        }
        if (zero && !less(power, ZERO)) {
            y = magnitude(power) ? ZERO : y;
        } else if (zero) {
            y = NOT_A_NUMBER;
        }
        return stored(y);
    }
    static Bits power_binary_tile(Bits base, Bits power) {
        const bool zero = !magnitude(base);
        if (WORMHOLE && WIDE && (magnitude(base) > INFINITE || magnitude(power) > INFINITE)) {
            return NOT_A_NUMBER;
        }
        if (!WIDE) {
            Bits y = power_narrow(base, power, of(1.442695f));
            if (negative(base)) {
                y = signed_power(y, power);
            }
            if (zero && power) {
                y = negative(power) ? NOT_A_NUMBER : ZERO;
            }
            return to_bfloat16(y);
        }
        Bits high, low;
        power_parts(base, power, ONE, of(0.2426406871192851f), of(1.442695f), high, low);
        const Bits lowest = of(-127.0f);
        Bits s = add(high, low), rest = sub(low, sub(s, high));
        if (less(s, lowest)) {
            s = lowest;
            rest = ZERO;
        }
        int32_t whole;
        const Bits k = rounded_by_bias(s, whole);
        Bits y = exp_wide(mul(add(sub(s, k), rest), of(0.693147180559945309f)));
        const int32_t e = biased_exponent(y) + whole;
        y = e >= 255 ? INFINITE : with_exponent(y, e);
        const Bits size = magnitude(power);
        if (negative(base)) {
            y = signed_power(y, size);
        }
        if (zero && size) {
            y = with_sign_of(negative(power) ? INFINITE : ZERO, y);
        }
        return y;
    }

    // ---- quotients and products

    static Bits square_tile(Bits x) { return WIDE ? mul(x, x) : to_bfloat16_even(mul(x, x)); }

    static Bits div_binary_tile(Bits a, Bits b) {
        if (!WIDE) {
            Bits result = mul(a, reciprocal(b, 2));
            // The comparisons are of bits: -0 is not zero to them.
            if (!b) {
                result = a ? with_sign_of(INFINITE, a) : NOT_A_NUMBER;
            }
            return to_bfloat16_even(result);
        }
        const int32_t a_exponent = biased_exponent(a), b_exponent = biased_exponent(b);
        const bool ordinary = (a_exponent >= 1) & (a_exponent < 255) & (b_exponent >= 1) & (b_exponent < 255);
        const Bits limit = magnitude(b) > INFINITE ? b : mul(a, (b & (SIGN | EXPONENT)) ^ INFINITE);
        const Bits x = with_exponent(a, 127), y = with_exponent(b, 127), r = reciprocal(y, 1, true);
        Bits q = mul(x, r);
        q = mad(mad(q, negated(y), x), r, q);
        // The exponent of the quotient may be out of range: two factors make it.
        const int32_t e = a_exponent - (b_exponent - 127) + biased_exponent(q);
        const int32_t half = static_cast<int32_t>(static_cast<uint32_t>(e) >> 1);
        const Bits quotient = mul(with_exponent(q, half), with_exponent(ONE, e - half));
        return ordinary ? quotient : limit;
    }

    static Bits leaky_relu_tile(Bits x, Bits slope) { return negative(x) ? mul(x, slope) : x; }
};
