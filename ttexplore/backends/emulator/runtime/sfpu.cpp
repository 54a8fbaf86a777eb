// The SFPU: element-wise functions on DST, in float32.
#include <math.h>

#include "machine.h"
#include "sfpu_functions.h"


#define EMULATOR_NAME(name, constants) #name,
static constexpr const char* NAMES[] = {EMULATOR_SFPU_OPERATIONS(EMULATOR_NAME)};
#undef EMULATOR_NAME

#define EMULATOR_CONSTANTS(name, constants) constants,
static constexpr bool USES_CONSTANTS[] = {EMULATOR_SFPU_OPERATIONS(EMULATOR_CONSTANTS)};
#undef EMULATOR_CONSTANTS

// ---- functions

// Objects, because what is given as a pointer to a function is called for each element.
static constexpr auto larger_of = [](float x, float y) { return float_of(larger(bits_of(x), bits_of(y))); };
static constexpr auto smaller_of = [](float x, float y) { return float_of(smaller(bits_of(x), bits_of(y))); };

// A product that is zero is +0.
static constexpr auto product_of = [](float x, float y) { return x * y + 0.0f; };

// The SFPU's x * y + z keeps the product to 26 places below the sum of the operands' exponents and whether something is
// left, and only then adds: where the sum cancels, that shows. All but the final rounding is exact in double.
static inline float sfpu_multiply_add(float x, float y, float z) {
    const double product = static_cast<double>(x) * static_cast<double>(y);
    uint64_t bits;
    memcpy(&bits, &product, 8);
    const int32_t exponents = static_cast<int32_t>(bits_of(x) >> 23 & 0xFF) + static_cast<int32_t>(bits_of(y) >> 23 & 0xFF);
    const int32_t exponent = static_cast<int32_t>(bits >> 52 & 0x7FF) - 1023 + 254;
    const uint64_t dropped = exponent > exponents ? (1ull << 25) - 1 : (1ull << 26) - 1;
    const uint64_t kept = (bits & ~dropped) | (bits & dropped ? dropped + 1 : 0);
    double cut;
    memcpy(&cut, &kept, 8);
    return static_cast<float>(cut + static_cast<double>(z));
}

// exp_tile with a 32-bit DST: range reduction in two steps and a polynomial of degree 6 (ckernel_sfpu_exp.h).
static constexpr auto exponential = [](float x) {
    const float clamped = x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x;
    // To the nearest whole number, halves away from zero.
    const float quotient = clamped * 1.442695f, whole = __builtin_truncf(quotient);
    const float steps = whole + (__builtin_fabsf(quotient - whole) >= 0.5f ? __builtin_copysignf(1.0f, quotient) : 0.0f);
    float rest = multiply_add(steps, -6.93145752e-1f, clamped);
    rest = sfpu_multiply_add(steps, -1.42860677e-6f, rest);
    float sum = multiply_add(1.37805939e-3f, rest, 8.37312452e-3f);
    sum = multiply_add(sum, rest, 4.16695364e-2f);
    sum = multiply_add(sum, rest, 1.66664720e-1f);
    sum = multiply_add(sum, rest, 4.99999851e-1f);
    sum = multiply_add(sum, rest, 1.0f);
    sum = multiply_add(sum, rest, 1.0f);
    const int32_t exponent = static_cast<int32_t>(bits_of(sum) >> 23) + static_cast<int32_t>(steps);
    const float result = float_of((bits_of(sum) & 0x7FFFFFu) | static_cast<uint32_t>(exponent & 0xFF) << 23);
    const float limited = exponent >= 255 ? INFINITY : exponent < 1 ? 0.0f : result;
    return x != x ? x : limited;
};

// exp_tile with a 16-bit DST: the bits of 127 + x / ln 2 as a number of 8 whole and 23 fraction bits are the exponent
// and, put through a polynomial, the mantissa of the result. Rounded to bfloat16, ties away from zero.
static constexpr auto exponential_16_bit = [](float x) {
    const float unlimited = sfpu_multiply_add(x, 1.4426950216293335f, 127.0f);
    const float above = unlimited < 255.0f ? unlimited : 255.0f;
    const float limited = above > 0.0f ? above : 0.0f;
    const uint32_t fixed = static_cast<uint32_t>(static_cast<int32_t>(limited * 8388608.0f));
    const float fraction = static_cast<float>(static_cast<int32_t>(fixed & 0x7FFFFFu));
    const float inner = multiply_add(fraction, float_of(0x27ACA418), float_of(0x33A85ADA));
    const float mantissa = multiply_add(inner, fraction, 1.001953125f);
    const float result = float_of((bits_of(mantissa) & 0x7FFFFFu) | (fixed & 0x7F800000u));
    return fixed >= 0x7F800000u ? INFINITY : round_ties_away(result);
};

// Stores to a 16-bit DST cut values off. Operations that round before are given as rounding(function).
template <class Function>
static auto rounding(Function function) {
    const bool narrow = !machine.wide_dst;
    return [=](auto... values) {
        const float result = function(values...);
        return narrow ? round_ties_even(result) : result;
    };
}

template <class Function>
static void apply(float* tile, uint32_t faces, Function function) {
    for (uint32_t face = 0; face < 4; ++face) {
        if (!(faces >> face & 1)) {
            continue;
        }
        float* values = tile + face * FACE_ELEMENTS;
        if (machine.wide_dst) {
            for (uint32_t i = 0; i < FACE_ELEMENTS; ++i) {
                values[i] = function(values[i]);
            }
        } else {
            for (uint32_t i = 0; i < FACE_ELEMENTS; ++i) {
                values[i] = truncate_to_bfloat16(function(values[i]));
            }
        }
    }
}

template <class Function>
static void apply_binary(const float* a, const float* b, float* out, uint32_t faces, Function function) {
    for (uint32_t face = 0; face < 4; ++face) {
        if (!(faces >> face & 1)) {
            continue;
        }
        const uint32_t first = face * FACE_ELEMENTS, end = first + FACE_ELEMENTS;
        if (machine.wide_dst) {
            for (uint32_t i = first; i < end; ++i) {
                out[i] = function(a[i], b[i]);
            }
        } else {
            for (uint32_t i = first; i < end; ++i) {
                out[i] = truncate_to_bfloat16(function(a[i], b[i]));
            }
        }
    }
}

// Calls `use` with the functions of the chip, DST width and arithmetic at hand.
template <bool EXACT, class Use>
static void with_functions_of(Use use) {
    if (machine.wormhole) {
        machine.wide_dst ? use(Sfpu<true, true, EXACT>{}) : use(Sfpu<true, false, EXACT>{});
    } else {
        machine.wide_dst ? use(Sfpu<false, true, EXACT>{}) : use(Sfpu<false, false, EXACT>{});
    }
}
template <class Use>
static void with_functions(Use use) {
    machine.exact ? with_functions_of<true>(use) : with_functions_of<false>(use);
}

// Like those above, but no call is left in the loop: that makes vectors of it. The exact arithmetic has branches, and
// would only become longer.
template <class Function>
__attribute__((flatten)) static void apply_inlined(float* tile, uint32_t faces, Function function) {
    apply(tile, faces, function);
}
template <class Function>
__attribute__((flatten)) static void apply_binary_inlined(const float* a, const float* b, float* out, uint32_t faces,
                                                          Function function) {
    apply_binary(a, b, out, faces, function);
}

// `function` takes the functions and the bits of a value, or of two.
template <class Function>
static void apply_bits(float* tile, uint32_t faces, Function function) {
    with_functions([=](auto sfpu) {
        const auto of_value = [=](float x) { return float_of(function(sfpu, bits_of(x))); };
        if constexpr (sfpu.IS_EXACT) {
            apply(tile, faces, of_value);
        } else {
            apply_inlined(tile, faces, of_value);
        }
    });
}
template <class Function>
static void apply_bits(const float* a, const float* b, float* out, uint32_t faces, Function function) {
    with_functions([=](auto sfpu) {
        const auto of_values = [=](float x, float y) { return float_of(function(sfpu, bits_of(x), bits_of(y))); };
        if constexpr (sfpu.IS_EXACT) {
            apply_binary(a, b, out, faces, of_values);
        } else {
            apply_binary_inlined(a, b, out, faces, of_values);
        }
    });
}

// Bit mask of the faces that a vector mode covers: R rows of the upper faces, C columns of the left faces.
static uint32_t faces_of(uint32_t vector_mode) {
    switch (vector_mode) {
        case 1: return 0b0011;
        case 2: return 0b0101;
        case 4: return 0b1111;
        default: kernel_fault("B014", format_text("vector mode %u", vector_mode), "use VectorMode::RC, R or C");
    }
}

// ---- initialisation state

static ComputeState& started_state(uint32_t line) {
    at_line(line);
    if (running->role != COMPUTE) {
        kernel_fault("B014", "an SFPU operation in a data movement kernel", "move it to the compute kernel");
    }
    ComputeState& state = running->core->compute;
    if (!state.started_up) {
        kernel_fault("B014",
                     "an SFPU operation before compute_kernel_hw_startup()",
                     "call compute_kernel_hw_startup(in, out) first in kernel_main()");
    }
    return state;
}

static std::string call_name(uint32_t operation) {
    return operation == Sfpu_reduce ? "sfpu_reduce" : std::string(NAMES[operation]) + "_tile";
}
static std::string init_name(uint32_t operation) { return call_name(operation) + "_init"; }

void emulator_sfpu_init(uint32_t operation, uint32_t variant, uint32_t line) {
    ComputeState& state = started_state(line);
    if (state.fpu == Fpu_reduce_block) {
        state.fpu = Fpu_none;
    }
    state.latest_sfpu = operation;
    state.sfpu_seen[operation] = true;
    state.sfpu_variants[operation] = variant;
    state.rows_of_extreme = false;
}

void emulator_exp_scale(uint32_t bits) { running->core->compute.exp_scale = float_of(bits); }

// SFPU inits overwrite each other's constants (op-truth.md, trap 2). That of a reduction also sets which of two numbers
// a compare-and-swap puts first, for all that come after.
static void check_init(const ComputeState& state, uint32_t operation, uint32_t variant) {
    const std::string name = NAMES[operation];
    if (!state.sfpu_seen[operation]) {
        kernel_fault("B014",
                     format_text("an SFPU operation of %s without %s", name.c_str(), init_name(operation).c_str()),
                     "call " + init_name(operation) + "() before it");
    }
    if ((USES_CONSTANTS[operation] || state.latest_sfpu == Sfpu_reduce) && state.latest_sfpu != operation) {
        kernel_fault("B014",
                     format_text("%s after %s, which overwrites what %s has set", call_name(operation).c_str(),
                                 init_name(state.latest_sfpu).c_str(), init_name(operation).c_str()),
                     "call " + init_name(operation) + "() again directly before it");
    }
    if (state.sfpu_variants[operation] != variant) {
        kernel_fault("B014",
                     format_text("%s with other template arguments than its %s", call_name(operation).c_str(),
                                 init_name(operation).c_str()),
                     "give init and call the same template arguments");
    }
}

// ---- operations

static void scalar_operation(float* tile, uint32_t faces, uint32_t operation, float scalar) {
    switch (operation) {
        case ScalarAdd: return apply(tile, faces, [=](float x) { return x + scalar; });
        case ScalarSub: return apply(tile, faces, [=](float x) { return x - scalar; });
        // div_unary_tile multiplies: its argument is the reciprocal.
        case ScalarMul:
        case ScalarDiv: return apply(tile, faces, [=](float x) { return product_of(x, scalar); });
        case ScalarRsub: return apply(tile, faces, rounding([=](float x) { return scalar - x; }));
        default: kernel_fault("B019", "an unknown scalar operation", "use add, sub, mul, div or rsub_unary_tile");
    }
}

static void rounding_operation(float* tile, uint32_t faces, uint32_t kind, int32_t decimals) {
    switch (kind) {
        case RoundingFloor: return apply(tile, faces, [](float x) { return floorf(x); });
        case RoundingCeil: return apply(tile, faces, [](float x) { return ceilf(x); });
        case RoundingTrunc: return apply(tile, faces, [](float x) { return truncf(x); });
        case RoundingNearest:
            if (decimals != 0) {
                kernel_fault("B019",
                             format_text("round_tile to %d decimals", decimals), "use 0 decimals: the emulator rounds only to whole numbers");
            }
            return apply(tile, faces, [](float x) { return rintf(x); });
        default: kernel_fault("B019", "an unknown rounding", "use floor, ceil, trunc or round_tile");
    }
}

// Comparisons give 1 or 0. Both zeros are equal; a NaN is not equal to anything and not ordered.
template <class Compare>
static auto as_number(Compare compare) {
    return [=](auto... values) { return compare(values...) ? 1.0f : 0.0f; };
}

static void typecast(float* tile, uint32_t faces, uint32_t from, uint32_t to) {
    constexpr uint32_t INT32 = static_cast<uint32_t>(DataFormat::Int32);
    constexpr uint32_t BFLOAT16 = static_cast<uint32_t>(DataFormat::Float16_b);
    if (!machine.wide_dst) {
        kernel_fault("B014",
                     "typecast_tile into a 16-bit DST: the chip silently gives wrong values",
                     "use fp32_dest_acc_en for typecasts");
    }
    if (from == INT32 && to != INT32) {
        apply(tile, faces, [](float x) { return static_cast<float>(static_cast<int32_t>(bits_of(x))); });
        if (to == BFLOAT16) {
            apply(tile, faces, [](float x) { return float_of(to_bfloat16(bits_of(x))); });
        }
    } else if (to == INT32) {
        apply(tile, faces, [](float x) { return float_of(to_int32(bits_of(x))); });
    } else if (to == BFLOAT16 && from != BFLOAT16) {
        apply(tile, faces, [](float x) { return float_of(to_bfloat16_even(bits_of(x))); });
    }
}

void emulator_sfpu_unary(uint32_t operation, uint32_t variant, uint32_t dst, uint32_t parameter, uint32_t second,
                         uint32_t vector_mode, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, operation, variant);
    const uint32_t faces = faces_of(vector_mode);
    constexpr uint32_t INT32 = static_cast<uint32_t>(DataFormat::Int32);
    const bool of_integers = (operation == Sfpu_typecast && parameter == INT32) || (operation == Sfpu_fill && second) ||
                             (operation == Sfpu_bitwise && variant == BitwiseOr);
    float* tile = dst_for_math(state, dst, operation == Sfpu_fill, NAMES[operation], of_integers);
    const float value = float_of(parameter), other = float_of(second);
    switch (operation) {
        case Sfpu_exp:
            if (variant) {
                const float scale = state.exp_scale;
                apply_bits(tile, faces, [=](auto sfpu, Bits x) { return sfpu.exp_fast_tile(x, scale); });
                break;
            }
            machine.wide_dst ? apply(tile, faces, exponential) : apply(tile, faces, exponential_16_bit);
            break;
        case Sfpu_exp2: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.exp2_tile(x); }); break;
        case Sfpu_expm1: apply(tile, faces, rounding([](float x) { return expm1f(x); })); break;
        case Sfpu_log: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.log_tile(x); }); break;
        case Sfpu_log_with_base: 
            second ? apply_bits(tile, faces, [=](auto sfpu, Bits x) { return sfpu.log2_tile(x, parameter); })
                   : apply_bits(tile, faces, [=](auto sfpu, Bits x) { return sfpu.log_with_base_tile(x, parameter); });
            break;
        case Sfpu_power: apply_bits(tile, faces, [=](auto sfpu, Bits x) { return sfpu.power_tile(x, parameter); }); break;
        case Sfpu_sqrt: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.sqrt_tile(x); }); break;
        case Sfpu_rsqrt: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.rsqrt_tile(x); }); break;
        case Sfpu_recip: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.recip_tile(x); }); break;
        case Sfpu_sin: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.sin_tile(x); }); break;
        case Sfpu_cos: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.cos_tile(x); }); break;
        case Sfpu_erf:
            second ? apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.accurate_erf_tile(x); })
                   : apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.erf_tile(x); });
            break;
        case Sfpu_relu: apply(tile, faces, [](float x) { return larger_of(x, 0.0f); }); break;
        case Sfpu_relu_max:
            apply(tile, faces, [=](float x) { return x > value ? value : x > 0.0f ? x : 0.0f; });
            break;
        case Sfpu_relu_min: apply(tile, faces, [=](float x) { return x > value ? x : value; }); break;
        case Sfpu_leaky_relu: apply_bits(tile, faces, [=](auto sfpu, Bits x) { return sfpu.leaky_relu_tile(x, parameter); }); break;
        case Sfpu_abs: apply(tile, faces, [](float x) { return __builtin_fabsf(x); }); break;
        case Sfpu_negative: apply(tile, faces, [](float x) { return -x; }); break;
        case Sfpu_sign:
            apply(tile, faces, [](float x) { return magnitude(bits_of(x)) ? __builtin_copysignf(1.0f, x) : 0.0f; });
            break;
        case Sfpu_square: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.square_tile(x); }); break;
        case Sfpu_logical_not: apply(tile, faces, as_number([](float x) { return x == 0.0f; })); break;
        case Sfpu_rounding_op: rounding_operation(tile, faces, second, static_cast<int32_t>(parameter)); break;
        case Sfpu_gtz: apply(tile, faces, as_number([](float x) { return x > 0.0f; })); break;
        case Sfpu_gez: apply(tile, faces, as_number([](float x) { return x >= 0.0f; })); break;
        case Sfpu_ltz: apply(tile, faces, as_number([](float x) { return x < 0.0f; })); break;
        case Sfpu_lez: apply(tile, faces, as_number([](float x) { return x <= 0.0f; })); break;
        case Sfpu_eqz: apply(tile, faces, as_number([](float x) { return x == 0.0f; })); break;
        case Sfpu_nez: apply(tile, faces, as_number([](float x) { return x != 0.0f; })); break;
        case Sfpu_unary_gt: apply(tile, faces, as_number([=](float x) { return x > value; })); break;
        case Sfpu_unary_ge: apply(tile, faces, as_number([=](float x) { return x >= value; })); break;
        case Sfpu_unary_lt: apply(tile, faces, as_number([=](float x) { return x < value; })); break;
        case Sfpu_unary_le: apply(tile, faces, as_number([=](float x) { return x <= value; })); break;
        case Sfpu_unary_eq: apply(tile, faces, as_number([=](float x) { return x == value; })); break;
        case Sfpu_unary_ne: apply(tile, faces, as_number([=](float x) { return x != value; })); break;
        case Sfpu_sigmoid: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.sigmoid_tile(x); }); break;
        case Sfpu_tanh: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.tanh_tile(x); }); break;
        case Sfpu_gelu: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.gelu_tile(x); }); break;
        case Sfpu_silu: apply_bits(tile, faces, [](auto sfpu, Bits x) { return sfpu.silu_tile(x); }); break;
        case Sfpu_clamp:
            apply(tile, faces, [=](float x) { return smaller_of(larger_of(x, value), other); });
            break;
        case Sfpu_bitwise:
            if (variant == BitwiseAnd) {
                apply(tile, faces, [=](float x) { return float_of(bits_of(x) & parameter); });
            } else if (parameter) {
                kernel_fault("B019", "bitwise_or_tile with bits to set", "use the API as emitted kernels do");
            }
            state.dst_integers = (state.dst_integers & ~(1u << dst)) | (second ? 1u << dst : 0u);
            break;
        case Sfpu_fill: apply(tile, faces, [=](float) { return value; }); break;
        case Sfpu_typecast:
            typecast(tile, faces, parameter, second);
            state.dst_integers = (state.dst_integers & ~(1u << dst)) | (second == INT32 ? 1u << dst : 0u);
            break;
        case Sfpu_binop_with_scalar: scalar_operation(tile, faces, second, value); break;
        case Sfpu_unary_max: apply(tile, faces, [=](float x) { return larger_of(x, value); }); break;
        case Sfpu_unary_min: apply(tile, faces, [=](float x) { return smaller_of(x, value); }); break;
        default: kernel_fault("B019",
                              format_text("SFPU operation %u is not unary", operation), "use the API of the SDK's headers");
    }
    moved(operation == Sfpu_fill ? Place{} : in_dst(dst), in_dst(dst), 0, operation != Sfpu_fill);
    record(Event_sfpu, dst, operation);
}

void emulator_sfpu_binary(uint32_t operation, uint32_t dst0, uint32_t dst1, uint32_t out, uint32_t vector_mode,
                          uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, operation, 0);
    const uint32_t faces = faces_of(vector_mode);
    const float* a = dst_for_math(state, dst0, false, NAMES[operation]);
    const float* b = dst_for_math(state, dst1, false, NAMES[operation]);
    const bool overwritten = faces == 0b1111 && out != dst0 && out != dst1;
    float* target = dst_for_math(state, out, overwritten, NAMES[operation]);
    switch (operation) {
        case Sfpu_add_binary: apply_binary(a, b, target, faces, [](float x, float y) { return x + y; }); break;
        case Sfpu_sub_binary: apply_binary(a, b, target, faces, [](float x, float y) { return x - y; }); break;
        case Sfpu_rsub_binary: apply_binary(a, b, target, faces, [](float x, float y) { return y - x; }); break;
        case Sfpu_mul_binary: apply_binary(a, b, target, faces, rounding(product_of)); break;
        case Sfpu_div_binary: 
            apply_bits(a, b, target, faces, [](auto sfpu, Bits x, Bits y) { return sfpu.div_binary_tile(x, y); });
            break;
        case Sfpu_power_binary: 
            apply_bits(a, b, target, faces, [](auto sfpu, Bits x, Bits y) { return sfpu.power_binary_tile(x, y); });
            break;
        case Sfpu_binary_max: apply_binary(a, b, target, faces, larger_of); break;
        case Sfpu_binary_min: apply_binary(a, b, target, faces, smaller_of); break;
        case Sfpu_gt_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x > y; })); break;
        case Sfpu_ge_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x >= y; })); break;
        case Sfpu_lt_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x < y; })); break;
        case Sfpu_le_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x <= y; })); break;
        case Sfpu_eq_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x == y; })); break;
        case Sfpu_ne_binary: apply_binary(a, b, target, faces, as_number([](float x, float y) { return x != y; })); break;
        default: kernel_fault("B019",
                              format_text("SFPU operation %u is not binary", operation), "use the API of the SDK's headers");
    }
    moved(in_dst(dst0), in_dst(out), 0, faces != 0b1111);
    moved(in_dst(dst1), in_dst(out), 0, faces != 0b1111, true);
    record(Event_sfpu, out, operation);
}

static Bits integer_result(uint32_t operation, uint32_t kind, Bits a, Bits b) {
    const int32_t x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
    switch (operation) {
        case Sfpu_add_int: return a + b;
        case Sfpu_sub_int: return a - b;
        case Sfpu_mul_int: return a * b;
        case Sfpu_binary_max_int32: return x > y ? a : b;
        case Sfpu_binary_min_int32: return x < y ? a : b;
        case Sfpu_gt_int: return x > y;
        case Sfpu_ge_int: return x >= y;
        case Sfpu_lt_int: return x < y;
        case Sfpu_le_int: return x <= y;
        case Sfpu_eq_int: return x == y;
        case Sfpu_ne_int: return x != y;
        case Sfpu_binary_bitwise: return kind == BitwiseAnd ? a & b : kind == BitwiseOr ? a | b : a ^ b;
        // Nothing is left of what is shifted by more than 31 places, or by less than none.
        case Sfpu_binary_shift: return b > 31 ? 0 : kind == ShiftLeft ? a << b : static_cast<Bits>(x >> b);
        case Sfpu_bitwise_not: return ~a;
        case Sfpu_abs: return x < 0 ? 0u - a : a;
        default: kernel_fault("B019",
                              format_text("SFPU operation %u is not one of integers", operation), "use the API of the SDK's headers");
    }
}

void emulator_sfpu_integer(uint32_t operation, uint32_t kind, uint32_t dst0, uint32_t dst1, uint32_t out, uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, operation, 0);
    if (!machine.wide_dst) {
        kernel_fault("B019",
                     format_text("%s_tile on a 16-bit DST, which holds no 32-bit integers", NAMES[operation]),
                     "use fp32_dest_acc_en for integers");
    }
    const float* a = dst_for_math(state, dst0, false, NAMES[operation], true);
    const float* b = dst_for_math(state, dst1, false, NAMES[operation], true);
    float* target = dst_for_math(state, out, true, NAMES[operation], true);
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        target[i] = float_of(integer_result(operation, kind, bits_of(a[i]), bits_of(b[i])));
    }
    moved(in_dst(dst0), in_dst(out), 0);
    moved(in_dst(dst1), in_dst(out), 0, false, true);
    record(Event_sfpu, out, operation);
}

// Whether a DST tile holds integers.
static bool holds_integers(const ComputeState& state, uint32_t dst) { return state.dst_integers >> dst & 1; }

void emulator_sfpu_ternary(uint32_t operation, uint32_t wide, uint32_t dst0, uint32_t dst1, uint32_t dst2, uint32_t out,
                           uint32_t line) {
    ComputeState& state = started_state(line);
    check_init(state, operation, 0);
    if ((wide != 0) != machine.wide_dst) {
        kernel_fault("B014",
                     format_text("%s_tile<DataFormat::%s> with a %u-bit DST: the chip silently gives wrong values",
                                 NAMES[operation], wide ? "Float32" : "Float16_b", machine.wide_dst ? 32u : 16u),
                     "name the width of DST: Float32 with fp32_dest_acc_en, otherwise Float16_b");
    }
    // where_tile moves bits: of integers as well.
    const bool moves = operation == Sfpu_where, integers = moves && holds_integers(state, dst1);
    const float* a = dst_for_math(state, dst0, false, NAMES[operation], moves && holds_integers(state, dst0));
    const float* b = dst_for_math(state, dst1, false, NAMES[operation], integers);
    const float* c = dst_for_math(state, dst2, false, NAMES[operation], integers);
    float* target = dst_for_math(state, out, true, NAMES[operation], integers);
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        const float value = operation == Sfpu_where ? (bits_of(a[i]) ? b[i] : c[i]) : multiply_add(a[i], b[i], c[i]);
        target[i] = machine.wide_dst ? value : round_ties_even(value);
    }
    moved(in_dst(dst0), in_dst(out), 0);
    moved(in_dst(dst1), in_dst(out), 0, false, true);
    moved(in_dst(dst2), in_dst(out), 0, false, true);
    record(Event_sfpu, out, operation);
}

// ---- reductions

// Loops go over many rows or columns at once, so that compilers make vectors of them.

// The 32 numbers of each row: even and odd columns of the left and of the right face, eight lanes each, are added, then
// the lanes that lie 4, 2 and 1 apart, of which only those that lane 0 depends on are needed.
template <class Functions>
static void add_rows(Functions sfpu, const float* tile, Bits* results) {
    Bits lanes[32 * 8];
    for (uint32_t half = 0; half < 2; ++half) {
        const float *left = tile + half * 2 * FACE_ELEMENTS, *right = left + FACE_ELEMENTS;
        for (uint32_t i = 0; i < 16 * 8; ++i) {
            const Bits in_right = sfpu.add(bits_of(right[2 * i]), bits_of(right[2 * i + 1]));
            lanes[half * 16 * 8 + i] = sfpu.add(bits_of(left[2 * i]), sfpu.add(bits_of(left[2 * i + 1]), in_right));
        }
    }
    for (uint32_t row = 0; row < 32; ++row) {
        const Bits* lane = lanes + row * 8;
        const Bits even = sfpu.add(sfpu.add(lane[0], lane[4]), sfpu.add(lane[6], lane[2]));
        const Bits odd = sfpu.add(sfpu.add(lane[7], lane[3]), sfpu.add(lane[5], lane[1]));
        results[row] = sfpu.add(even, odd);
    }
}

// The 32 numbers of each column: four rows that lie 4 apart in each face, upper and lower face, then four neighbours.
template <class Functions>
static void add_columns(Functions sfpu, const float* tile, Bits* results) {
    const bool in_pairs = machine.wormhole;
    for (uint32_t column = 0; column < 32; ++column) {
        const float *upper = tile + element_place(0, column), *lower = tile + element_place(16, column);
        Bits parts[4];
        for (uint32_t row = 0; row < 4; ++row) {
            const auto in_face = [=](const float* face) {
                const Bits last = sfpu.add(bits_of(face[(row + 8) * 16]), bits_of(face[(row + 12) * 16]));
                return sfpu.add(bits_of(face[row * 16]), sfpu.add(bits_of(face[(row + 4) * 16]), last));
            };
            parts[row] = sfpu.add(in_face(upper), in_face(lower));
        }
        const Bits first = sfpu.add(parts[0], parts[1]), last = sfpu.add(parts[2], parts[3]);
        results[column] = in_pairs ? sfpu.add(first, last) : sfpu.add(parts[0], sfpu.add(parts[1], last));
    }
}

// What `take` leaves of the numbers of each row or column, in any order.
template <class Take>
static void take_rows(const float* tile, Bits* results, Take take) {
    Bits kept[512], other[256];
    for (uint32_t half = 0; half < 2; ++half) {
        const float *left = tile + half * 2 * FACE_ELEMENTS, *right = left + FACE_ELEMENTS;
        for (uint32_t i = 0; i < FACE_ELEMENTS; ++i) {
            kept[half * FACE_ELEMENTS + i] = take(bits_of(left[i]), bits_of(right[i]));
        }
    }
    const auto take_neighbours = [=](const Bits* from, Bits* to, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) {
            to[i] = take(from[2 * i], from[2 * i + 1]);
        }
    };
    take_neighbours(kept, other, 256);
    take_neighbours(other, kept, 128);
    take_neighbours(kept, other, 64);
    take_neighbours(other, results, 32);
}
template <class Take>
static void take_columns(const float* tile, Bits* results, Take take) {
    for (uint32_t side = 0; side < 32; side += 16) {
        for (uint32_t column = 0; column < 16; ++column) {
            results[side + column] = bits_of(tile[element_place(0, side) + column]);
        }
        for (uint32_t row = 1; row < 32; ++row) {
            for (uint32_t column = 0; column < 16; ++column) {
                results[side + column] = take(results[side + column], bits_of(tile[element_place(row, side) + column]));
            }
        }
    }
}
template <class Take>
static void take_of(bool rows, const float* tile, Bits* results, Take take) {
    rows ? take_rows(tile, results, take) : take_columns(tile, results, take);
}

static void reduce_integers(PoolType pool, bool rows, const float* tile, Bits* results) {
    switch (pool) {
        case PoolType::SUM: return take_of(rows, tile, results, [](Bits x, Bits y) { return x + y; });
        case PoolType::MAX:
            return take_of(rows, tile, results, [](Bits x, Bits y) { return static_cast<int32_t>(x) > static_cast<int32_t>(y) ? x : y; });
        default:
            return take_of(rows, tile, results, [](Bits x, Bits y) { return static_cast<int32_t>(x) < static_cast<int32_t>(y) ? x : y; });
    }
}

static void reduce_numbers(PoolType pool, bool rows, const float* tile, Bits* results) {
    switch (pool) {
        case PoolType::SUM: break;
        case PoolType::MAX: return take_of(rows, tile, results, [](Bits x, Bits y) { return larger(x, y); });
        default: return take_of(rows, tile, results, [](Bits x, Bits y) { return smaller(x, y); });
    }
    with_functions([=](auto sfpu) { rows ? add_rows(sfpu, tile, results) : add_columns(sfpu, tile, results); });
    for (uint32_t at = 0; at < 32 && !machine.wide_dst; ++at) {
        results[at] &= 0xFFFF0000u;
    }
}

void emulator_sfpu_reduce(uint32_t pool_number, uint32_t dimension, uint32_t data_format, uint32_t dst, uint32_t tiles,
                          uint32_t line) {
    ComputeState& state = started_state(line);
    const PoolType pool = static_cast<PoolType>(pool_number);
    const DataFormat format = static_cast<DataFormat>(data_format);
    const bool rows = dimension == static_cast<uint32_t>(ReduceDim::REDUCE_ROW), integers = format == DataFormat::Int32;
    const bool known = integers || format == DataFormat::Float32 || format == DataFormat::Float16_b;
    if (pool == PoolType::AVG || !known || tiles != 1) {
        kernel_fault("B019",
                     format_text("sfpu_reduce of %u tiles for PoolType %u in DataFormat %u", tiles, pool_number, data_format),
                     "the emulator has it for one tile, SUM, MAX and MIN, in Float32, Float16_b and Int32");
    }
    check_init(state, Sfpu_reduce, emulator_sfpu_reduce_variant(pool, format));
    if ((format != DataFormat::Float16_b) != machine.wide_dst) {
        kernel_fault("B014",
                     format_text("sfpu_reduce in DataFormat::%s with a %u-bit DST: the chip silently gives wrong values",
                                 integers ? "Int32" : machine.wide_dst ? "Float16_b" : "Float32", machine.wide_dst ? 32u : 16u),
                     "name the format in DST: Float32 or Int32 with fp32_dest_acc_en, otherwise Float16_b");
    }
    const bool extreme = pool != PoolType::SUM;
    if (extreme && !rows && state.rows_of_extreme) {
        kernel_fault("B014",
                     "sfpu_reduce along columns after one along rows, which overwrites what sfpu_reduce_init has set",
                     "call sfpu_reduce_init() again directly before it");
    }
    state.rows_of_extreme = extreme && rows;
    float* tile = dst_for_math(state, dst, false, "sfpu_reduce", integers);
    Bits results[32];
    integers ? reduce_integers(pool, rows, tile, results) : reduce_numbers(pool, rows, tile, results);
    for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) {
        tile[i] = float_of(integers ? UNWRITTEN_INTEGER : UNWRITTEN_NUMBER);
    }
    for (uint32_t at = 0; at < 32; ++at) {
        tile[rows ? element_place(at, 0) : element_place(0, at)] = float_of(results[at]);
    }
    moved(in_dst(dst), in_dst(dst), 0, true);
    record(Event_sfpu, dst, Sfpu_reduce);
}
