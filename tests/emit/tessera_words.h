// Meanings of the words that the Tessera form uses, for one thread that executes a block after the other.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
using std::exp2, std::exp, std::erf, std::tanh, std::pow, std::floor;
#define __global__
#define __shared__

struct bf16 {
    uint16_t bits = 0;
    bf16() = default;
    bf16(float value) {
        uint32_t word;
        memcpy(&word, &value, 4);
        bits = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
    }
    operator float() const {
        const uint32_t word = static_cast<uint32_t>(bits) << 16;
        float value;
        memcpy(&value, &word, 4);
        return value;
    }
};

static struct {
    int x, y, z;
} blockIdx;

enum { row, col };
// What joins two values, in a reduction and by itself.
struct Sum {
    constexpr float operator()(float a, float b) const { return a + b; }
};
struct Max {
    constexpr float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Min {
    constexpr float operator()(float a, float b) const { return a < b ? a : b; }
};
inline constexpr Sum sum;
inline constexpr Max max;
inline constexpr Min min;

template <class T, int M, int N = 0>
struct tile {
    typedef T type;
    static constexpr int rows = M, columns = N == 0 ? 1 : N;
    T held[M * columns];
    T& operator()(int i) { return held[i]; }
    T& operator()(int i, int j) { return held[i * columns + j]; }
};
template <class Tile>
Tile tile_fill(float value) {
    Tile made;
    for (auto& one : made.held) one = typename Tile::type(value);
    return made;
}
template <class Tile>
Tile tile_zero() { return tile_fill<Tile>(0); }
template <class To, class From>
To tile_cast(From from) {
    To made;
    for (int i = 0; i < To::rows * To::columns; ++i) made.held[i] = typename To::type(from.held[i]);
    return made;
}
template <class T, int M, int N>
tile<T, N, M> transpose(tile<T, M, N> from) {
    tile<T, N, M> made;
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) made(j, i) = from(i, j);
    return made;
}

template <class Tile, int stages>
struct smem_t {
    Tile held[stages];
    Tile& operator[](int at) { return held[at]; }
};
template <class Tile>
Tile smem_load(Tile& from) { return from; }

// Copies land when they are waited for: a text that does not wait reads what was there before.
struct Landing {
    void* to;
    const void* from;
    int rows, columns, step, bytes;
};
static Landing landing[64];
static int landings = 0, committed = 0;
struct pipeline_t {
    void commit() { committed = landings; }
    void wait() {
        for (int n = 0; n < committed; ++n)
            for (int i = 0; i < landing[n].rows; ++i)
                memcpy(static_cast<char*>(landing[n].to) + i * landing[n].columns * landing[n].bytes,
                       static_cast<const char*>(landing[n].from) + static_cast<long>(i) * landing[n].step * landing[n].bytes,
                       static_cast<size_t>(landing[n].columns * landing[n].bytes));
        landings = committed = 0;
    }
};
// A block of one axis lies in one row.
template <class Tile>
constexpr int rows_of = Tile::columns == 1 ? 1 : Tile::rows;
template <class Tile>
constexpr int columns_of = Tile::columns == 1 ? Tile::rows : Tile::columns;
template <class Tile>
void async_copy_2d(Tile& to, const typename Tile::type* from, int step) {
    landing[landings++] = {to.held, from, rows_of<Tile>, columns_of<Tile>, step, sizeof(typename Tile::type)};
}
template <class Tile>
Tile global_load(const typename Tile::type* from, int step) {
    Tile made;
    for (int i = 0; i < rows_of<Tile>; ++i)
        for (int j = 0; j < columns_of<Tile>; ++j) made.held[i * columns_of<Tile> + j] = from[i * step + j];
    return made;
}
template <class Tile, class T>
void global_store(Tile from, T* to, int step) {
    for (int i = 0; i < rows_of<Tile>; ++i)
        for (int j = 0; j < columns_of<Tile>; ++j) to[i * step + j] = T(from.held[i * columns_of<Tile> + j]);
}

template <class C, class A, class B>
C mma_sync(C c, A a, B b) {
    static_assert(A::columns == B::rows && C::rows == A::rows && C::columns == B::columns);
    for (int i = 0; i < C::rows; ++i)
        for (int j = 0; j < C::columns; ++j)
            for (int k = 0; k < A::columns; ++k) c(i, j) = c(i, j) + float(a(i, k)) * float(b(k, j));
    return c;
}
template <int along, auto join, class T, int M, int N>
tile<T, along == row ? M : N> tile_reduce(tile<T, M, N> from) {
    tile<T, along == row ? M : N> made;
    for (int i = 0; i < (along == row ? M : N); ++i) {
        float value = along == row ? from(i, 0) : from(0, i);
        for (int k = 1; k < (along == row ? N : M); ++k)
            value = join(value, along == row ? from(i, k) : from(k, i));
        made(i) = value;
    }
    return made;
}
template <auto join, class Tile>
Tile tile_join(Tile a, Tile b) {
    for (int i = 0; i < Tile::rows * Tile::columns; ++i) a.held[i] = join(a.held[i], b.held[i]);
    return a;
}
template <int M, class Body>
void tile_for(Body body) {
    for (int i = 0; i < M; ++i) body(i);
}
template <int M, int N, class Body>
void tile_for(Body body) {
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) body(i, j);
}
template <class A, class B>
auto select(bool chosen, A a, B b) { return chosen ? float(a) : float(b); }
static inline float rsqrt(float value) { return 1 / std::sqrt(value); }
static inline float sigmoid(float value) { return 1 / (1 + std::exp(-value)); }
static inline int floor_div(int a, int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }
