// What kernels in CUDA C++ use, on the CPU: a thread is a fiber of the runner. Needs no other header.
#pragma once

#include "machine.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__
#define __inline__
#define __inline
#define __noinline__
#define __restrict__
#define __restrict
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __constant__
#define __managed__
#define __shared__ static MACHINE_SECTION

// A variable that has its value before the program starts.
#ifdef __clang__
#define TTX_CONSTINIT [[clang::require_constant_initialization]]
#else
#define TTX_CONSTINIT __constinit
#endif

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-016
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define INT8_MAX 127
#define INT8_MIN (-128)
#define INT16_MAX 32767
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT8_MAX 255
#define UINT32_MAX UINT_MAX
#define INT64_MAX LLONG_MAX
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_PI_F 3.14159274101257f
#define NULL nullptr
#define assert(...) ((__VA_ARGS__) ? (void)0 : ttx_machine::refuse(__builtin_LINE(), "an assert does not hold"))
#define printf(...) ((void)0)

// All of this has internal linkage, as the source has, so that nothing of it is another library's.
namespace {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)0 - (char*)0);
using intptr_t = long;
using uintptr_t = unsigned long;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned;
using ulong = unsigned long;

#define TTX_INLINE [[maybe_unused]] inline

// Vectors: as large and as aligned as CUDA's.

#define TTX_VECTORS(T, name, align2, align4)                                                    \
    struct name##1 {                                                                            \
        T x;                                                                                    \
    };                                                                                          \
    struct alignas(align2) name##2 {                                                            \
        T x, y;                                                                                 \
    };                                                                                          \
    TTX_VECTOR3(T, name)                                                                        \
    struct alignas(align4) name##4 {                                                            \
        T x, y, z, w;                                                                           \
    };                                                                                          \
    TTX_INLINE name##1 make_##name##1(T x) { return {x}; }                                      \
    TTX_INLINE name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
    TTX_INLINE name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                      \
    TTX_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define TTX_VECTOR3(T, name) \
    struct name##3 {         \
        T x, y, z;           \
    };
TTX_VECTORS(signed char, char, 2, 4)
TTX_VECTORS(unsigned char, uchar, 2, 4)
TTX_VECTORS(short, short, 4, 8)
TTX_VECTORS(unsigned short, ushort, 4, 8)
TTX_VECTORS(int, int, 8, 16)
TTX_VECTORS(long long, longlong, 16, 16)
TTX_VECTORS(unsigned long long, ulonglong, 16, 16)
TTX_VECTORS(float, float, 8, 16)
TTX_VECTORS(double, double, 16, 16)
#undef TTX_VECTOR3
#define TTX_VECTOR3(T, name) using uint3 = ::uint3;
TTX_VECTORS(unsigned, uint, 8, 16)
#undef TTX_VECTOR3
#undef TTX_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

static const uint3& threadIdx = ttx_machine::thread;
static const uint3& blockIdx = ttx_machine::block;
static const uint3& blockDim = ttx_machine::threads;
static const uint3& gridDim = ttx_machine::blocks;
static constexpr int warpSize = ttx_machine::WARP;

// Numbers.

template <class T, class U>
TTX_INLINE T ttx_bits(U value) {
    static_assert(sizeof(T) == sizeof(U), "");
    T result;
    __builtin_memcpy(&result, &value, sizeof(T));
    return result;
}

#define TTX_1(name) \
    TTX_INLINE constexpr float name##f(float x) { return __builtin_##name##f(x); } \
    TTX_INLINE double name(double x) { return __builtin_##name(x); } \
    TTX_INLINE float name(float x) { return __builtin_##name##f(x); }    \
    TTX_INLINE double name(int x) { return __builtin_##name(x); }
#define TTX_2(name) \
    TTX_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
    TTX_INLINE double name(double x, double y) { return __builtin_##name(x, y); } \
    TTX_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }
TTX_1(exp) TTX_1(exp2) TTX_1(expm1) TTX_1(log) TTX_1(log2) TTX_1(log10) TTX_1(log1p) TTX_1(sqrt) TTX_1(cbrt)
TTX_1(sin) TTX_1(cos) TTX_1(tan) TTX_1(asin) TTX_1(acos) TTX_1(atan) TTX_1(sinh) TTX_1(cosh) TTX_1(tanh)
TTX_1(asinh) TTX_1(acosh) TTX_1(atanh) TTX_1(erf) TTX_1(erfc) TTX_1(tgamma) TTX_1(lgamma) TTX_1(floor) TTX_1(ceil)
TTX_1(trunc) TTX_1(round) TTX_1(rint) TTX_1(nearbyint) TTX_1(fabs) TTX_1(logb)
TTX_2(pow) TTX_2(atan2) TTX_2(fmod) TTX_2(hypot) TTX_2(copysign) TTX_2(fdim) TTX_2(remainder) TTX_2(fmax) TTX_2(fmin)
TTX_2(nextafter)
TTX_INLINE float powf(float x, int y) { return __builtin_powf(x, (float)y); }
TTX_INLINE double pow(float x, int y) { return __builtin_powf(x, (float)y); }
TTX_INLINE double pow(double x, int y) { return __builtin_pow(x, y); }
TTX_INLINE double pow(int x, int y) { return __builtin_pow(x, y); }
TTX_INLINE double pow(float x, double y) { return __builtin_pow(x, y); }
TTX_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TTX_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
TTX_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TTX_INLINE float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
TTX_INLINE float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
TTX_INLINE double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
TTX_INLINE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
TTX_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
TTX_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
TTX_INLINE float exp10f(float x) { return (float)__builtin_pow(10.0, x); }
TTX_INLINE float exp10(float x) { return exp10f(x); }
TTX_INLINE float normcdff(float x) { return 0.5f * __builtin_erfcf(-x * 0.70710678f); }
TTX_INLINE float sinpif(float x) { return (float)__builtin_sin(M_PI * x); }
TTX_INLINE float cospif(float x) { return (float)__builtin_cos(M_PI * x); }
TTX_INLINE void sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x); *c = __builtin_cosf(x); }
TTX_INLINE void sincos(double x, double* s, double* c) { *s = __builtin_sin(x); *c = __builtin_cos(x); }
TTX_INLINE bool isnan(double x) { return __builtin_isnan(x); }
TTX_INLINE bool isinf(double x) { return __builtin_isinf(x); }
TTX_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
TTX_INLINE bool signbit(double x) { return __builtin_signbit(x); }
TTX_INLINE long lrintf(float x) { return __builtin_lrintf(x); }
TTX_INLINE long lrint(double x) { return __builtin_lrint(x); }
TTX_INLINE long lroundf(float x) { return __builtin_lroundf(x); }
TTX_INLINE long lround(double x) { return __builtin_lround(x); }
TTX_INLINE long long llrintf(float x) { return __builtin_llrintf(x); }
TTX_INLINE int abs(int x) { return x < 0 ? -x : x; }
TTX_INLINE long abs(long x) { return x < 0 ? -x : x; }
TTX_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
TTX_INLINE float abs(float x) { return __builtin_fabsf(x); }
TTX_INLINE double abs(double x) { return __builtin_fabs(x); }
TTX_INLINE long labs(long x) { return x < 0 ? -x : x; }
TTX_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }

#define TTX_LEAST(T)                                              \
    TTX_INLINE constexpr T min(T x, T y) { return y < x ? y : x; } \
    TTX_INLINE constexpr T max(T x, T y) { return x < y ? y : x; }
TTX_LEAST(int) TTX_LEAST(unsigned) TTX_LEAST(long) TTX_LEAST(unsigned long) TTX_LEAST(long long)
TTX_LEAST(unsigned long long)
#undef TTX_LEAST
// A mix of signs is unsigned, as CUDA has it.
TTX_INLINE constexpr unsigned min(int x, unsigned y) { return min((unsigned)x, y); }
TTX_INLINE constexpr unsigned min(unsigned x, int y) { return min(x, (unsigned)y); }
TTX_INLINE constexpr unsigned max(int x, unsigned y) { return max((unsigned)x, y); }
TTX_INLINE constexpr unsigned max(unsigned x, int y) { return max(x, (unsigned)y); }
TTX_INLINE float min(float x, float y) { return __builtin_fminf(x, y); }
TTX_INLINE float max(float x, float y) { return __builtin_fmaxf(x, y); }
TTX_INLINE double min(double x, double y) { return __builtin_fmin(x, y); }
TTX_INLINE double max(double x, double y) { return __builtin_fmax(x, y); }
TTX_INLINE double min(float x, double y) { return __builtin_fmin(x, y); }
TTX_INLINE double max(float x, double y) { return __builtin_fmax(x, y); }
TTX_INLINE double min(double x, float y) { return __builtin_fmin(x, y); }
TTX_INLINE double max(double x, float y) { return __builtin_fmax(x, y); }
TTX_INLINE int umin(unsigned x, unsigned y) { return min(x, y); }
TTX_INLINE int umax(unsigned x, unsigned y) { return max(x, y); }

// Functions of the GPU that are less exact there.
TTX_INLINE float __expf(float x) { return __builtin_expf(x); }
TTX_INLINE float __exp10f(float x) { return exp10f(x); }
TTX_INLINE float __logf(float x) { return __builtin_logf(x); }
TTX_INLINE float __log2f(float x) { return __builtin_log2f(x); }
TTX_INLINE float __log10f(float x) { return __builtin_log10f(x); }
TTX_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
TTX_INLINE float __sinf(float x) { return __builtin_sinf(x); }
TTX_INLINE float __cosf(float x) { return __builtin_cosf(x); }
TTX_INLINE float __tanf(float x) { return __builtin_tanf(x); }
TTX_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
TTX_INLINE float __tanhf(float x) { return __builtin_tanhf(x); }
TTX_INLINE float __fdividef(float x, float y) { return x / y; }
TTX_INLINE float fdividef(float x, float y) { return x / y; }
TTX_INLINE float __frcp_rn(float x) { return 1.0f / x; }
TTX_INLINE float __frsqrt_rn(float x) { return 1.0f / __builtin_sqrtf(x); }
TTX_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
TTX_INLINE float __fadd_rn(float x, float y) { return x + y; }
TTX_INLINE float __fsub_rn(float x, float y) { return x - y; }
TTX_INLINE float __fmul_rn(float x, float y) { return x * y; }
TTX_INLINE float __fdiv_rn(float x, float y) { return x / y; }
TTX_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TTX_INLINE double __dadd_rn(double x, double y) { return x + y; }
TTX_INLINE double __dmul_rn(double x, double y) { return x * y; }
TTX_INLINE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// A conversion to a whole number gives the nearest one that there is, and 0 for NaN.
template <class T>
TTX_INLINE T ttx_whole(double x) {
    constexpr bool is_signed = T(-1) < T(0);
    constexpr int bits = 8 * sizeof(T) - is_signed;
    const double most = __builtin_ldexp(1.0, bits), least = is_signed ? -most : 0;
    const T largest = T(~0ull >> (64 - bits));
    return x != x ? T(0) : x >= most ? largest : x <= least ? T(is_signed ? -largest - 1 : 0) : T(x);
}
#define TTX_WHOLE(from, F, to, T)                                                                    \
    TTX_INLINE T __##from##2##to##_rn(F x) { return ttx_whole<T>(__builtin_rint((double)x)); }        \
    TTX_INLINE T __##from##2##to##_rz(F x) { return ttx_whole<T>(__builtin_trunc((double)x)); }       \
    TTX_INLINE T __##from##2##to##_rd(F x) { return ttx_whole<T>(__builtin_floor((double)x)); }       \
    TTX_INLINE T __##from##2##to##_ru(F x) { return ttx_whole<T>(__builtin_ceil((double)x)); }
TTX_WHOLE(float, float, int, int) TTX_WHOLE(float, float, uint, unsigned) TTX_WHOLE(float, float, ll, long long)
TTX_WHOLE(double, double, int, int) TTX_WHOLE(double, double, uint, unsigned)
TTX_INLINE float __int2float_rn(int x) { return (float)x; }
TTX_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
TTX_INLINE float __ll2float_rn(long long x) { return (float)x; }
TTX_INLINE double __int2double_rn(int x) { return x; }
TTX_INLINE float __double2float_rn(double x) { return (float)x; }
TTX_INLINE int __float_as_int(float x) { return ttx_bits<int>(x); }
TTX_INLINE unsigned __float_as_uint(float x) { return ttx_bits<unsigned>(x); }
TTX_INLINE float __int_as_float(int x) { return ttx_bits<float>(x); }
TTX_INLINE float __uint_as_float(unsigned x) { return ttx_bits<float>(x); }
TTX_INLINE long long __double_as_longlong(double x) { return ttx_bits<long long>(x); }
TTX_INLINE double __longlong_as_double(long long x) { return ttx_bits<double>(x); }

TTX_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
TTX_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
TTX_INLINE int __clz(int x) { return x ? __builtin_clz(x) : 32; }
TTX_INLINE int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
TTX_INLINE int __ffs(int x) { return __builtin_ffs(x); }
TTX_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
TTX_INLINE unsigned __brev(unsigned x) {
    unsigned result = 0;
    for (int bit = 0; bit < 32; ++bit) {
        result |= (x >> bit & 1) << (31 - bit);
    }
    return result;
}
TTX_INLINE int __mul24(int x, int y) { return (int)((long long)(x << 8 >> 8) * (y << 8 >> 8)); }
TTX_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
TTX_INLINE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
TTX_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
TTX_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
TTX_INLINE int __dp4a(int x, int y, int sum) {
    for (int byte = 0; byte < 4; ++byte) {
        sum += (int8_t)(x >> 8 * byte) * (int8_t)(y >> 8 * byte);
    }
    return sum;
}
TTX_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const unsigned nibble = selector >> 4 * byte & 0xf;
        unsigned value = (unsigned)(both >> 8 * (nibble & 7)) & 0xff;
        value = nibble & 8 ? (value & 0x80 ? 0xff : 0) : value;
        result |= value << 8 * byte;
    }
    return result;
}
TTX_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
TTX_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

// Numbers of 16 bits.

TTX_INLINE float ttx_half_to_float(unsigned short h) {
    const unsigned sign = (unsigned)(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, mantissa = h & 0x3ff;
    if (exponent == 0) {
        const float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    const unsigned wide = exponent == 31 ? 0xff : exponent + 112;
    return ttx_bits<float>(sign | wide << 23 | mantissa << 13);
}
TTX_INLINE unsigned short ttx_float_to_half(float f) {
    const unsigned bits = ttx_bits<unsigned>(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return (unsigned short)(sign | 0x7fff);
    }
    if (magnitude >= 0x477ff000) {  // 65520 and more round to infinity
        return (unsigned short)(sign | 0x7c00);
    }
    if (magnitude < 0x38800000) {  // subnormal: a multiple of 2^-24
        return (unsigned short)(sign | (unsigned)__builtin_rintf(ttx_bits<float>(magnitude) * 0x1p24f));
    }
    const unsigned rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (unsigned short)(sign | ((rounded - 0x38000000) >> 13));
}
TTX_INLINE float ttx_bfloat_to_float(unsigned short b) { return ttx_bits<float>((unsigned)b << 16); }
TTX_INLINE unsigned short ttx_float_to_bfloat(float f) {
    const unsigned bits = ttx_bits<unsigned>(f);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return 0x7fff;
    }
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define TTX_NARROW(Type, to_float, from_float)                                            \
    struct alignas(2) Type {                                                              \
        unsigned short ttx_value;                                                         \
        Type() = default;                                                                 \
        Type(float f) : ttx_value(from_float(f)) {}                                       \
        Type(double d) : Type((float)d) {}                                                \
        Type(int i) : Type((float)i) {}                                                   \
        Type(unsigned i) : Type((float)i) {}                                              \
        Type(long i) : Type((float)i) {}                                                  \
        Type(unsigned long i) : Type((float)i) {}                                         \
        Type(long long i) : Type((float)i) {}                                             \
        operator float() const { return to_float(ttx_value); }                            \
        Type& operator+=(Type b) { return *this = Type((float)*this + (float)b); }        \
        Type& operator-=(Type b) { return *this = Type((float)*this - (float)b); }        \
        Type& operator*=(Type b) { return *this = Type((float)*this * (float)b); }        \
        Type& operator/=(Type b) { return *this = Type((float)*this / (float)b); }        \
    };                                                                                    \
    TTX_INLINE Type operator+(Type a, Type b) { return Type((float)a + (float)b); }       \
    TTX_INLINE Type operator-(Type a, Type b) { return Type((float)a - (float)b); }       \
    TTX_INLINE Type operator*(Type a, Type b) { return Type((float)a * (float)b); }       \
    TTX_INLINE Type operator/(Type a, Type b) { return Type((float)a / (float)b); }       \
    TTX_INLINE Type operator-(Type a) { return Type(-(float)a); }                         \
    TTX_INLINE bool operator<(Type a, Type b) { return (float)a < (float)b; }             \
    TTX_INLINE bool operator>(Type a, Type b) { return (float)a > (float)b; }             \
    TTX_INLINE bool operator<=(Type a, Type b) { return (float)a <= (float)b; }           \
    TTX_INLINE bool operator>=(Type a, Type b) { return (float)a >= (float)b; }           \
    TTX_INLINE bool operator==(Type a, Type b) { return (float)a == (float)b; }           \
    TTX_INLINE bool operator!=(Type a, Type b) { return (float)a != (float)b; }           \
    struct alignas(4) Type##2 {                                                           \
        Type x, y;                                                                        \
        Type##2() = default;                                                              \
        Type##2(Type x, Type y) : x(x), y(y) {}                                           \
    };                                                                                    \
    TTX_INLINE Type##2 operator+(Type##2 a, Type##2 b) { return {a.x + b.x, a.y + b.y}; } \
    TTX_INLINE Type##2 operator-(Type##2 a, Type##2 b) { return {a.x - b.x, a.y - b.y}; } \
    TTX_INLINE Type##2 operator*(Type##2 a, Type##2 b) { return {a.x * b.x, a.y * b.y}; } \
    TTX_INLINE Type##2 operator/(Type##2 a, Type##2 b) { return {a.x / b.x, a.y / b.y}; } \
    TTX_INLINE Type __hadd(Type a, Type b) { return a + b; }                              \
    TTX_INLINE Type __hsub(Type a, Type b) { return a - b; }                              \
    TTX_INLINE Type __hmul(Type a, Type b) { return a * b; }                              \
    TTX_INLINE Type __hdiv(Type a, Type b) { return a / b; }                              \
    TTX_INLINE Type __hneg(Type a) { return -a; }                                         \
    TTX_INLINE Type __habs(Type a) { return Type(__builtin_fabsf(a)); }                   \
    TTX_INLINE Type __hfma(Type a, Type b, Type c) {                                      \
        return Type((float)__builtin_fma((double)(float)a, (double)(float)b, (double)(float)c)); \
    }                                                                                     \
    TTX_INLINE Type __hmax(Type a, Type b) { return Type(__builtin_fmaxf(a, b)); }        \
    TTX_INLINE Type __hmin(Type a, Type b) { return Type(__builtin_fminf(a, b)); }        \
    TTX_INLINE bool __hgt(Type a, Type b) { return a > b; }                               \
    TTX_INLINE bool __hlt(Type a, Type b) { return a < b; }                               \
    TTX_INLINE bool __hge(Type a, Type b) { return a >= b; }                              \
    TTX_INLINE bool __hle(Type a, Type b) { return a <= b; }                              \
    TTX_INLINE bool __heq(Type a, Type b) { return a == b; }                              \
    TTX_INLINE bool __hne(Type a, Type b) { return a != b; }                              \
    TTX_INLINE bool __hisnan(Type a) { return (float)a != (float)a; }                     \
    TTX_INLINE Type hexp(Type a) { return Type(__builtin_expf(a)); }                      \
    TTX_INLINE Type hexp2(Type a) { return Type(__builtin_exp2f(a)); }                    \
    TTX_INLINE Type hlog(Type a) { return Type(__builtin_logf(a)); }                      \
    TTX_INLINE Type hlog2(Type a) { return Type(__builtin_log2f(a)); }                    \
    TTX_INLINE Type hsqrt(Type a) { return Type(__builtin_sqrtf(a)); }                    \
    TTX_INLINE Type hrsqrt(Type a) { return Type(rsqrtf(a)); }                            \
    TTX_INLINE Type hrcp(Type a) { return Type(1.0f / (float)a); }                        \
    TTX_INLINE Type htanh(Type a) { return Type(__builtin_tanhf(a)); }                    \
    TTX_INLINE Type hsin(Type a) { return Type(__builtin_sinf(a)); }                      \
    TTX_INLINE Type hcos(Type a) { return Type(__builtin_cosf(a)); }                      \
    TTX_INLINE Type hfloor(Type a) { return Type(__builtin_floorf(a)); }                  \
    TTX_INLINE Type hceil(Type a) { return Type(__builtin_ceilf(a)); }                    \
    TTX_INLINE Type##2 __hadd2(Type##2 a, Type##2 b) { return a + b; }                    \
    TTX_INLINE Type##2 __hsub2(Type##2 a, Type##2 b) { return a - b; }                    \
    TTX_INLINE Type##2 __hmul2(Type##2 a, Type##2 b) { return a * b; }                    \
    TTX_INLINE Type##2 __h2div(Type##2 a, Type##2 b) { return a / b; }                    \
    TTX_INLINE Type##2 __hneg2(Type##2 a) { return {-a.x, -a.y}; }                        \
    TTX_INLINE Type##2 __habs2(Type##2 a) { return {__habs(a.x), __habs(a.y)}; }          \
    TTX_INLINE Type##2 __hmax2(Type##2 a, Type##2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
    TTX_INLINE Type##2 __hmin2(Type##2 a, Type##2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
    TTX_INLINE Type##2 __hfma2(Type##2 a, Type##2 b, Type##2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    TTX_INLINE Type##2 h2exp(Type##2 a) { return {hexp(a.x), hexp(a.y)}; }                \
    TTX_INLINE Type##2 h2rsqrt(Type##2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }          \
    TTX_INLINE Type##2 h2sqrt(Type##2 a) { return {hsqrt(a.x), hsqrt(a.y)}; }             \
    TTX_INLINE Type __low2##Type(Type##2 a) { return a.x; }                               \
    TTX_INLINE float __low2float(Type##2 a) { return a.x; }                               \
    TTX_INLINE float __high2float(Type##2 a) { return a.y; }
TTX_NARROW(__half, ttx_half_to_float, ttx_float_to_half)
TTX_NARROW(__nv_bfloat16, ttx_bfloat_to_float, ttx_float_to_bfloat)
#undef TTX_NARROW
using half = __half;
using half2 = __half2;
using __nv_bfloat162 = __nv_bfloat162;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
TTX_INLINE half __float2half(float f) { return half(f); }
TTX_INLINE half __float2half_rn(float f) { return half(f); }
TTX_INLINE half __double2half(double d) { return half(d); }
TTX_INLINE float __half2float(half h) { return h; }
TTX_INLINE half __int2half_rn(int i) { return half(i); }
TTX_INLINE half __uint2half_rn(unsigned i) { return half(i); }
TTX_INLINE half __short2half_rn(short i) { return half((int)i); }
TTX_INLINE int __half2int_rn(half h) { return __float2int_rn(h); }
TTX_INLINE int __half2int_rz(half h) { return __float2int_rz(h); }
TTX_INLINE half __ushort_as_half(unsigned short bits) { return ttx_bits<half>(bits); }
TTX_INLINE unsigned short __half_as_ushort(half h) { return h.ttx_value; }
TTX_INLINE half __low2half(half2 a) { return a.x; }
TTX_INLINE half __high2half(half2 a) { return a.y; }
TTX_INLINE half2 __halves2half2(half a, half b) { return {a, b}; }
TTX_INLINE half2 __half2half2(half a) { return {a, a}; }
TTX_INLINE half2 make_half2(half a, half b) { return {a, b}; }
TTX_INLINE half2 __floats2half2_rn(float a, float b) { return {half(a), half(b)}; }
TTX_INLINE half2 __float2half2_rn(float a) { return {half(a), half(a)}; }
TTX_INLINE half2 __float22half2_rn(float2 a) { return {half(a.x), half(a.y)}; }
TTX_INLINE float2 __half22float2(half2 a) { return {(float)a.x, (float)a.y}; }
TTX_INLINE __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
TTX_INLINE __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
TTX_INLINE __nv_bfloat16 __double2bfloat16(double d) { return __nv_bfloat16(d); }
TTX_INLINE __nv_bfloat16 __int2bfloat16_rn(int i) { return __nv_bfloat16(i); }
TTX_INLINE float __bfloat162float(__nv_bfloat16 b) { return b; }
TTX_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return ttx_bits<__nv_bfloat16>(bits); }
TTX_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.ttx_value; }
TTX_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
TTX_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
TTX_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
TTX_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
TTX_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
TTX_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
TTX_INLINE __nv_bfloat162 __float2bfloat162_rn(float a) { return {__nv_bfloat16(a), __nv_bfloat16(a)}; }
TTX_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)}; }
TTX_INLINE float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }

// Memory.

template <class T> TTX_INLINE T __ldg(const T* p) { return *p; }
template <class T> TTX_INLINE T __ldca(const T* p) { return *p; }
template <class T> TTX_INLINE T __ldcg(const T* p) { return *p; }
template <class T> TTX_INLINE T __ldcs(const T* p) { return *p; }
template <class T> TTX_INLINE T __ldcv(const T* p) { return *p; }
template <class T> TTX_INLINE T __ldlu(const T* p) { return *p; }
template <class T, class U> TTX_INLINE void __stwb(T* p, U v) { *p = v; }
template <class T, class U> TTX_INLINE void __stcg(T* p, U v) { *p = v; }
template <class T, class U> TTX_INLINE void __stcs(T* p, U v) { *p = v; }
template <class T, class U> TTX_INLINE void __stwt(T* p, U v) { *p = v; }
TTX_INLINE void* memcpy(void* to, const void* from, size_t bytes) { return __builtin_memcpy(to, from, bytes); }
TTX_INLINE void* memset(void* to, int value, size_t bytes) { return __builtin_memset(to, value, bytes); }
TTX_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    __builtin_memcpy(to, from, bytes - zeros);
    __builtin_memset((char*)to + bytes - zeros, 0, zeros);
}
TTX_INLINE void __pipeline_commit() {}
TTX_INLINE void __pipeline_wait_prior(size_t) {}
TTX_INLINE void __threadfence() {}
TTX_INLINE void __threadfence_block() {}
TTX_INLINE void __threadfence_system() {}
TTX_INLINE size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }

#define TTX_ATOMIC(name, value) \
    template <class T, class U> \
    TTX_INLINE T name(T* p, U given) { \
        const T old = *p; \
        const T operand = (T)given; \
        *p = value; \
        return old; \
    } \
    template <class T, class U> \
    TTX_INLINE T name##_block(T* p, U given) { return name(p, given); }
TTX_ATOMIC(atomicAdd, old + operand)
TTX_ATOMIC(atomicSub, old - operand)
TTX_ATOMIC(atomicExch, operand)
TTX_ATOMIC(atomicMax, old < operand ? operand : old)
TTX_ATOMIC(atomicMin, operand < old ? operand : old)
TTX_ATOMIC(atomicAnd, old & operand)
TTX_ATOMIC(atomicOr, old | operand)
TTX_ATOMIC(atomicXor, old ^ operand)
TTX_ATOMIC(atomicInc, old >= operand ? T(0) : T(old + 1))
TTX_ATOMIC(atomicDec, old == 0 || old > operand ? operand : T(old - 1))
#undef TTX_ATOMIC
template <class T, class U, class V>
TTX_INLINE T atomicCAS(T* p, U compare, V value) {
    const T old = *p;
    if (old == (T)compare) {
        *p = (T)value;
    }
    return old;
}

// Threads that meet. The line is that of the call.

#define TTX_LINE int line = __builtin_LINE()

TTX_INLINE void __syncthreads(TTX_LINE) { ttx_machine::block_meets(line, false, nullptr); }
TTX_INLINE int __syncthreads_count(int predicate, TTX_LINE) { return ttx_machine::block_meets(line, predicate, nullptr); }
TTX_INLINE int __syncthreads_or(int predicate, TTX_LINE) { return ttx_machine::block_meets(line, predicate, nullptr) > 0; }
TTX_INLINE int __syncthreads_and(int predicate, TTX_LINE) {
    unsigned present;
    const unsigned holding = ttx_machine::block_meets(line, predicate, &present);
    return holding == present;
}

constexpr unsigned TTX_ALL = 0xffffffffu;

TTX_INLINE void ttx_nothing(void* const*) {}
TTX_INLINE void __syncwarp(unsigned mask = TTX_ALL, TTX_LINE) {
    char none;
    ttx_machine::lanes_meet(mask, line, &none, ttx_nothing);
}

template <class T>
struct ttx_Shuffled {
    T value, result;
    int source;
};
template <class T>
void ttx_shuffle(void* const* lanes) {
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        auto* slot = (ttx_Shuffled<T>*)lanes[lane];
        if (slot) {
            const auto* from = (const ttx_Shuffled<T>*)lanes[slot->source];
            if (from) {
                slot->result = from->value;
            } else {
                __builtin_memset((void*)&slot->result, 0xff, sizeof(T));  // CUDA leaves it undefined
            }
        }
    }
}
template <class T>
TTX_INLINE T ttx_shuffled(unsigned mask, T value, int source, int line) {
    ttx_Shuffled<T> slot;
    slot.value = value;
    slot.source = source;
    ttx_machine::lanes_meet(mask, line, &slot, ttx_shuffle<T>);
    return slot.result;
}
TTX_INLINE int ttx_width(int width, int line) {
    if (width < 1 || width > 32 || (width & (width - 1))) {
        ttx_machine::refuse(line, "the width of a shuffle is no power of two up to 32");
    }
    return width;
}
TTX_INLINE int ttx_source(int source, int width) {
    return ((int)ttx_machine::lane & ~(width - 1)) | (source & (width - 1));
}
TTX_INLINE int ttx_up(unsigned delta, int width) {
    const int lane = (int)ttx_machine::lane, within = lane & (width - 1);
    return within < (int)delta || delta > 31 ? lane : lane - (int)delta;
}
TTX_INLINE int ttx_down(unsigned delta, int width) {
    const int lane = (int)ttx_machine::lane, within = lane & (width - 1);
    return delta > 31 || within + (int)delta >= width ? lane : lane + (int)delta;
}
TTX_INLINE int ttx_xor(int mask, int width) {
    const int lane = (int)ttx_machine::lane, source = lane ^ mask;
    // A group of lanes reads those before it, not those after it.
    return source < 0 || source > 31 || source / width > lane / width ? lane : source;
}
#define TTX_SHUFFLES(name, Second, second, where) \
    template <class T> \
    TTX_INLINE T name##_sync(unsigned mask, T value, Second second, int width = 32, TTX_LINE) { \
        width = ttx_width(width, line); \
        return ttx_shuffled<T>(mask, value, where, line); \
    } \
    template <class T> \
    TTX_INLINE T name(T value, Second second, int width = 32, TTX_LINE) { \
        width = ttx_width(width, line); \
        return ttx_shuffled<T>(TTX_ALL, value, where, line); \
    }
TTX_SHUFFLES(__shfl, int, source, ttx_source(source, width))
TTX_SHUFFLES(__shfl_up, unsigned, delta, ttx_up(delta, width))
TTX_SHUFFLES(__shfl_down, unsigned, delta, ttx_down(delta, width))
TTX_SHUFFLES(__shfl_xor, int, lane_mask, ttx_xor(lane_mask, width))
#undef TTX_SHUFFLES

struct ttx_Voted {
    int predicate;
    unsigned ballot, present;
};
TTX_INLINE void ttx_vote(void* const* lanes) {
    unsigned ballot = 0, present = 0;
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (lanes[lane]) {
            present |= 1u << lane;
            ballot |= (((ttx_Voted*)lanes[lane])->predicate ? 1u : 0u) << lane;
        }
    }
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (lanes[lane]) {
            ((ttx_Voted*)lanes[lane])->ballot = ballot;
            ((ttx_Voted*)lanes[lane])->present = present;
        }
    }
}
TTX_INLINE ttx_Voted ttx_voted(unsigned mask, int predicate, int line) {
    ttx_Voted slot{predicate, 0, 0};
    ttx_machine::lanes_meet(mask, line, &slot, ttx_vote);
    return slot;
}
TTX_INLINE unsigned __ballot_sync(unsigned mask, int p, TTX_LINE) { return ttx_voted(mask, p, line).ballot; }
TTX_INLINE int __any_sync(unsigned mask, int p, TTX_LINE) { return ttx_voted(mask, p, line).ballot != 0; }
TTX_INLINE int __all_sync(unsigned mask, int p, TTX_LINE) {
    const ttx_Voted votes = ttx_voted(mask, p, line);
    return votes.ballot == votes.present;
}
TTX_INLINE unsigned __ballot(int p, TTX_LINE) { return ttx_voted(TTX_ALL, p, line).ballot; }
TTX_INLINE int __any(int p, TTX_LINE) { return ttx_voted(TTX_ALL, p, line).ballot != 0; }
TTX_INLINE int __all(int p, TTX_LINE) { return __all_sync(TTX_ALL, p, line); }

template <class T>
struct ttx_Matched {
    T value;
    unsigned result;
};
template <class T>
void ttx_match(void* const* lanes) {
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        auto* slot = (ttx_Matched<T>*)lanes[lane];
        for (int peer = 0; slot && peer < ttx_machine::WARP; ++peer) {
            const auto* compared = (const ttx_Matched<T>*)lanes[peer];
            slot->result |= compared && compared->value == slot->value ? 1u << peer : 0u;
        }
    }
}
template <class T>
TTX_INLINE unsigned __match_any_sync(unsigned mask, T value, TTX_LINE) {
    ttx_Matched<T> slot{value, 0};
    ttx_machine::lanes_meet(mask, line, &slot, ttx_match<T>);
    return slot.result;
}

// Reductions and scans of lanes: `Operation` joins two values, in the order of the lanes.
template <class T, class Operation>
struct ttx_Joined {
    T value, result, before;
    Operation operation;
};
template <class T, class Operation>
void ttx_join(void* const* lanes) {
    bool is_first = true;
    T sum{};
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (auto* slot = (ttx_Joined<T, Operation>*)lanes[lane]) {
            slot->before = sum;
            sum = is_first ? slot->value : (T)slot->operation(sum, slot->value);
            slot->result = sum;
            is_first = false;
        }
    }
}
template <class T, class Operation>
void ttx_join_all(void* const* lanes) {
    ttx_join<T, Operation>(lanes);
    T sum{};
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        sum = lanes[lane] ? ((ttx_Joined<T, Operation>*)lanes[lane])->result : sum;
    }
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (lanes[lane]) {
            ((ttx_Joined<T, Operation>*)lanes[lane])->result = sum;
        }
    }
}
struct ttx_Sum { template <class T> T operator()(T a, T b) const { return a + b; } };
struct ttx_Least { template <class T> T operator()(T a, T b) const { return b < a ? b : a; } };
struct ttx_Greatest { template <class T> T operator()(T a, T b) const { return a < b ? b : a; } };
struct ttx_And { template <class T> T operator()(T a, T b) const { return a & b; } };
struct ttx_Or { template <class T> T operator()(T a, T b) const { return a | b; } };
struct ttx_Xor { template <class T> T operator()(T a, T b) const { return a ^ b; } };
template <class Operation, class T>
TTX_INLINE T ttx_joined(unsigned mask, T value, Operation operation, int line) {
    ttx_Joined<T, Operation> slot{value, value, value, operation};
    ttx_machine::lanes_meet(mask, line, &slot, ttx_join_all<T, Operation>);
    return slot.result;
}
#define TTX_REDUCE(name, Operation) \
    TTX_INLINE unsigned name(unsigned mask, unsigned value, TTX_LINE) { return ttx_joined(mask, value, Operation{}, line); } \
    TTX_INLINE int name(unsigned mask, int value, TTX_LINE) { return ttx_joined(mask, value, Operation{}, line); }
TTX_REDUCE(__reduce_add_sync, ttx_Sum)
TTX_REDUCE(__reduce_min_sync, ttx_Least)
TTX_REDUCE(__reduce_max_sync, ttx_Greatest)
TTX_REDUCE(__reduce_and_sync, ttx_And)
TTX_REDUCE(__reduce_or_sync, ttx_Or)
TTX_REDUCE(__reduce_xor_sync, ttx_Xor)
#undef TTX_REDUCE

TTX_INLINE long long clock64() { return (long long)++ttx_machine::clock; }

// What kernels use of the standard library.

namespace std {
using ::size_t;
using ::int8_t;
using ::uint8_t;
using ::int16_t;
using ::uint16_t;
using ::int32_t;
using ::uint32_t;
using ::int64_t;
using ::uint64_t;
using ::ptrdiff_t;
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> TTX_INLINE T exp(T x) { return ::exp(x); }
template <class T> TTX_INLINE T log(T x) { return ::log(x); }
template <class T> TTX_INLINE T sqrt(T x) { return ::sqrt(x); }
template <class T> TTX_INLINE T abs(T x) { return ::abs(x); }
template <class T> TTX_INLINE T tanh(T x) { return ::tanh(x); }
template <class T, class U> TTX_INLINE T pow(T x, U y) { return (T)::pow(x, (T)y); }
template <class T> constexpr T&& move(T& x) { return static_cast<T&&>(x); }
template <class T> void swap(T& a, T& b) { T kept = a; a = b; b = kept; }
template <class T, T v> struct integral_constant {
    static constexpr T value = v;
    using type = integral_constant;
    constexpr operator T() const { return v; }
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct numeric_limits;
#define TTX_LIMITS(T, least, greatest)               \
    template <> struct numeric_limits<T> {           \
        static constexpr T lowest() { return least; } \
        static constexpr T max() { return greatest; } \
        static constexpr T min() { return least; }    \
    };
TTX_LIMITS(int, INT_MIN, INT_MAX)
TTX_LIMITS(unsigned, 0, UINT_MAX)
TTX_LIMITS(long long, LLONG_MIN, LLONG_MAX)
TTX_LIMITS(unsigned long long, 0, ULLONG_MAX)
TTX_LIMITS(long, LLONG_MIN, LLONG_MAX)
TTX_LIMITS(unsigned long, 0, ULLONG_MAX)
TTX_LIMITS(signed char, -128, 127)
TTX_LIMITS(unsigned char, 0, 255)
TTX_LIMITS(short, -32768, 32767)
TTX_LIMITS(unsigned short, 0, 65535)
#undef TTX_LIMITS
#define TTX_LIMITS(T, least, greatest, smallest, infinite, nan, step)  \
    template <> struct numeric_limits<T> {                             \
        static constexpr T lowest() { return least; }                  \
        static constexpr T max() { return greatest; }                  \
        static constexpr T min() { return smallest; }                  \
        static constexpr T infinity() { return infinite; }             \
        static constexpr T quiet_NaN() { return nan; }                 \
        static constexpr T epsilon() { return step; }                  \
    };
TTX_LIMITS(float, -FLT_MAX, FLT_MAX, FLT_MIN, __builtin_inff(), __builtin_nanf(""), FLT_EPSILON)
TTX_LIMITS(double, -DBL_MAX, DBL_MAX, DBL_MIN, __builtin_inf(), __builtin_nan(""), DBL_EPSILON)
#undef TTX_LIMITS
}  // namespace std
namespace cuda {
namespace std = ::std;
}

namespace cooperative_groups {
struct thread_block {
    void sync(TTX_LINE) const { __syncthreads(line); }
    static unsigned thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
TTX_INLINE thread_block this_thread_block() { return {}; }
template <unsigned N, class Parent = void>
struct thread_block_tile {
    static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "a tile has a power of two up to 32 threads");
    thread_block_tile() = default;
    template <class Other> thread_block_tile(const thread_block_tile<N, Other>&) {}
    static unsigned thread_rank() { return ttx_machine::lane % N; }
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    static unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
    static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
    static unsigned ttx_mask() {
        return N == 32 ? TTX_ALL : ((1u << N % 32) - 1) << (ttx_machine::lane / N * N);
    }
    void sync(TTX_LINE) const { __syncwarp(ttx_mask(), line); }
    template <class T> T shfl(T v, int source, TTX_LINE) const { return __shfl_sync(ttx_mask(), v, source, N, line); }
    template <class T> T shfl_up(T v, unsigned d, TTX_LINE) const { return __shfl_up_sync(ttx_mask(), v, d, N, line); }
    template <class T> T shfl_down(T v, unsigned d, TTX_LINE) const { return __shfl_down_sync(ttx_mask(), v, d, N, line); }
    template <class T> T shfl_xor(T v, int m, TTX_LINE) const { return __shfl_xor_sync(ttx_mask(), v, m, N, line); }
    int any(int p, TTX_LINE) const { return __any_sync(ttx_mask(), p, line); }
    int all(int p, TTX_LINE) const { return __all_sync(ttx_mask(), p, line); }
    unsigned ballot(int p, TTX_LINE) const {
        return __ballot_sync(ttx_mask(), p, line) >> (ttx_machine::lane / N * N) & (N == 32 ? TTX_ALL : (1u << N % 32) - 1);
    }
};
template <unsigned N, class Parent>
TTX_INLINE thread_block_tile<N, Parent> tiled_partition(const Parent&) { return {}; }
template <class Group> TTX_INLINE void sync(const Group& group, TTX_LINE) { group.sync(line); }
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
template <unsigned N, class P, class T, class Operation>
TTX_INLINE T reduce(const thread_block_tile<N, P>& tile, T value, Operation operation, TTX_LINE) {
    return ttx_joined(tile.ttx_mask(), value, operation, line);
}
template <unsigned N, class P, class T, class Operation = plus<T>>
TTX_INLINE T inclusive_scan(const thread_block_tile<N, P>& tile, T value, Operation operation = {}, TTX_LINE) {
    ttx_Joined<T, Operation> slot{value, value, value, operation};
    ttx_machine::lanes_meet(tile.ttx_mask(), line, &slot, ttx_join<T, Operation>);
    return slot.result;
}
template <unsigned N, class P, class T, class Operation = plus<T>>
TTX_INLINE T exclusive_scan(const thread_block_tile<N, P>& tile, T value, Operation operation = {}, TTX_LINE) {
    ttx_Joined<T, Operation> slot{value, value, value, operation};
    ttx_machine::lanes_meet(tile.ttx_mask(), line, &slot, ttx_join<T, Operation>);
    return slot.before;
}
}  // namespace cooperative_groups

// Matrix fragments: which lane has which elements is not specified; here each has those of a few rows.
namespace nvcuda {
namespace wmma {
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int M, int N, int K> struct ttx_Shape;
template <int M, int N, int K> struct ttx_Shape<matrix_a, M, N, K> { static constexpr int rows = M, columns = K; };
template <int M, int N, int K> struct ttx_Shape<matrix_b, M, N, K> { static constexpr int rows = K, columns = N; };
template <int M, int N, int K> struct ttx_Shape<accumulator, M, N, K> { static constexpr int rows = M, columns = N; };
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    static_assert(M * N * K == 4096 && (M == 8 || M == 16 || M == 32), "shapes are 16x16x16, 32x8x16 and 8x32x16");
    static constexpr int ttx_rows = ttx_Shape<Use, M, N, K>::rows, ttx_columns = ttx_Shape<Use, M, N, K>::columns;
    static constexpr int num_elements = ttx_rows * ttx_columns / 32;
    T x[num_elements];
};
template <class U, int M, int N, int K, class T, class L, class V>
TTX_INLINE void fill_fragment(fragment<U, M, N, K, T, L>& f, V value) {
    for (int i = 0; i < f.num_elements; ++i) {
        f.x[i] = (T)value;
    }
}
// Moves the lane's elements between memory and a fragment.
template <bool STORES, class F, class P>
TTX_INLINE void ttx_move(F& f, P* memory, unsigned stride, bool by_rows) {
    for (int i = 0; i < f.num_elements; ++i) {
        const unsigned element = ttx_machine::lane * f.num_elements + i;
        const unsigned row = element / f.ttx_columns, column = element % f.ttx_columns;
        const size_t at = by_rows ? (size_t)row * stride + column : (size_t)column * stride + row;
        if constexpr (STORES) {
            memory[at] = f.x[i];
        } else {
            f.x[i] = memory[at];
        }
    }
}
template <class U, int M, int N, int K, class T, class L>
TTX_INLINE void load_matrix_sync(fragment<U, M, N, K, T, L>& f, const T* p, unsigned stride, TTX_LINE) {
    static_assert(!std::is_same_v<U, accumulator>, "an accumulator is loaded with its layout");
    __syncwarp(TTX_ALL, line);
    ttx_move<false>(f, p, stride, std::is_same_v<L, row_major>);
}
template <int M, int N, int K, class T>
TTX_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* p, unsigned stride, layout_t layout, TTX_LINE) {
    __syncwarp(TTX_ALL, line);
    ttx_move<false>(f, p, stride, layout == mem_row_major);
}
template <int M, int N, int K, class T>
TTX_INLINE void store_matrix_sync(T* p, const fragment<accumulator, M, N, K, T>& f, unsigned stride, layout_t layout, TTX_LINE) {
    __syncwarp(TTX_ALL, line);
    ttx_move<true>(f, p, stride, layout == mem_row_major);
    __syncwarp(TTX_ALL, line);
}
template <class A, class B, class C, class D>
struct ttx_Product {
    const A* a;
    const B* b;
    const C* c;
    D* d;
    int line;
};
template <class A, class B, class C, class D>
void ttx_multiply(void* const* lanes) {
    using Slot = ttx_Product<A, B, C, D>;
    constexpr int rows = A::ttx_rows, inner = A::ttx_columns, columns = B::ttx_columns;
    static float a[rows][inner], b[inner][columns];
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        const auto* slot = (const Slot*)lanes[lane];
        if (!slot) {
            const int line = ((const Slot*)lanes[ttx_machine::lane])->line;
            ttx_machine::refuse(line, "mma_sync needs all 32 lanes of the warp");
        }
        for (int i = 0; i < A::num_elements; ++i) {
            const int element = lane * A::num_elements + i;
            a[element / inner][element % inner] = (float)slot->a->x[i];
        }
        for (int i = 0; i < B::num_elements; ++i) {
            const int element = lane * B::num_elements + i;
            b[element / columns][element % columns] = (float)slot->b->x[i];
        }
    }
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        const auto* slot = (const Slot*)lanes[lane];
        for (int i = 0; i < D::num_elements; ++i) {
            const int element = lane * D::num_elements + i;
            double sum = (double)slot->c->x[i];
            for (int k = 0; k < inner; ++k) {
                sum += (double)a[element / columns][k] * b[k][element % columns];
            }
            using T = decltype(slot->d->x[0] + 0);
            slot->d->x[i] = (T)sum;
        }
    }
}
template <int M, int N, int K, class T, class U, class V, class W, class LA, class LB>
TTX_INLINE void mma_sync(
    fragment<accumulator, M, N, K, V>& d, const fragment<matrix_a, M, N, K, T, LA>& a,
    const fragment<matrix_b, M, N, K, U, LB>& b, const fragment<accumulator, M, N, K, W>& c, TTX_LINE) {
    using A = fragment<matrix_a, M, N, K, T, LA>;
    using B = fragment<matrix_b, M, N, K, U, LB>;
    using C = fragment<accumulator, M, N, K, W>;
    using D = fragment<accumulator, M, N, K, V>;
    ttx_Product<A, B, C, D> slot{&a, &b, &c, &d, line};
    ttx_machine::lanes_meet(TTX_ALL, line, &slot, ttx_multiply<A, B, C, D>);
}
}  // namespace wmma
}  // namespace nvcuda

#undef TTX_1
#undef TTX_2
#undef TTX_WHOLE

// The arguments of a kernel, by the types of its parameters.

template <class T> struct ttx_KindOf {
    static constexpr unsigned value = 0;
};
#define TTX_KIND(T, kind)         \
    template <>                   \
    struct ttx_KindOf<T> {        \
        static constexpr unsigned value = ttx_machine::kind; \
    };
TTX_KIND(float, FLOAT) TTX_KIND(float2, FLOAT) TTX_KIND(float3, FLOAT) TTX_KIND(float4, FLOAT)
TTX_KIND(half, HALF) TTX_KIND(half2, HALF) TTX_KIND(__nv_bfloat16, BFLOAT) TTX_KIND(__nv_bfloat162, BFLOAT)
TTX_KIND(double, DOUBLE) TTX_KIND(double2, DOUBLE) TTX_KIND(signed char, I8) TTX_KIND(char, I8) TTX_KIND(char4, I8)
TTX_KIND(char2, I8) TTX_KIND(unsigned char, U8) TTX_KIND(uchar4, U8) TTX_KIND(uchar3, U8) TTX_KIND(short, I16)
TTX_KIND(unsigned short, U16) TTX_KIND(int, I32) TTX_KIND(int2, I32) TTX_KIND(int4, I32) TTX_KIND(unsigned, U32)
TTX_KIND(uint2, U32) TTX_KIND(uint4, U32) TTX_KIND(long, I64) TTX_KIND(long long, I64) TTX_KIND(unsigned long, U64)
TTX_KIND(unsigned long long, U64) TTX_KIND(bool, BOOLEAN)
#undef TTX_KIND

template <class T> struct ttx_Argument {
    static T of(int index) {
        static_assert(ttx_KindOf<T>::value != 0, "a parameter of this type has no argument here");
        if constexpr (T(0.5) != T(0)) {
            return (T)ttx_machine::float_argument(index);
        } else {
            return (T)ttx_machine::integer_argument(index);
        }
    }
};
template <> struct ttx_Argument<half> {
    static half of(int index) { return half(ttx_machine::float_argument(index)); }
};
template <> struct ttx_Argument<__nv_bfloat16> {
    static __nv_bfloat16 of(int index) { return __nv_bfloat16(ttx_machine::float_argument(index)); }
};
template <class T> struct ttx_Argument<T*> {
    static_assert(ttx_KindOf<T>::value != 0, "a pointer to this type has no argument here");
    static T* of(int index) { return (T*)ttx_machine::pointer_argument(index, ttx_KindOf<T>::value, sizeof(T)); }
};
template <class T> struct ttx_Argument<const T*> {
    static_assert(ttx_KindOf<T>::value != 0, "a pointer to this type has no argument here");
    static const T* of(int index) { return (const T*)ttx_machine::pointer_argument(index, ttx_KindOf<T>::value, sizeof(T)); }
};
template <> struct ttx_Argument<void*> {
    static void* of(int index) { return ttx_machine::pointer_argument(index, ttx_machine::ANY, 1); }
};
template <> struct ttx_Argument<const void*> {
    static const void* of(int index) { return ttx_machine::pointer_argument(index, ttx_machine::ANY, 1); }
};

template <int... I> struct ttx_Indices {};
template <int N, int... I> struct ttx_Counted : ttx_Counted<N - 1, N - 1, I...> {};
template <int... I> struct ttx_Counted<0, I...> { using type = ttx_Indices<I...>; };
template <class... P, int... I>
TTX_INLINE void ttx_call(void (*kernel)(P...), ttx_Indices<I...>) {
    kernel(ttx_Argument<P>::of(I)...);
}
template <class... P>
TTX_INLINE void ttx_call(void (*kernel)(P...)) {
    ttx_call(kernel, typename ttx_Counted<sizeof...(P)>::type{});
}
// Takes the arguments once, to find those that do not fit.
template <class... T>
TTX_INLINE void ttx_nothing_of(const T&...) {}
template <class... P, int... I>
TTX_INLINE void ttx_fit(void (*)(P...), ttx_Indices<I...>) {
    ttx_nothing_of(ttx_Argument<P>::of(I)...);
}
template <class... P>
TTX_INLINE void ttx_fit(void (*kernel)(P...)) {
    ttx_fit(kernel, typename ttx_Counted<sizeof...(P)>::type{});
}
template <class T>
TTX_INLINE T& ttx_dynamic() {
    return *reinterpret_cast<T*>(ttx_machine::dynamic_shared);
}

}  // namespace
