"""The project's own C++ functions, which emitted kernels contain if they call them."""

from __future__ import annotations

FLOAT_BITS = """\
// The bits of the float32 of a whole number, exact up to 2^24: a compute kernel has no floating-point unit to ask.
static uint32_t float_bits(int32_t number) {
    if (number == 0) return 0;
    uint32_t magnitude = number < 0 ? 0u - static_cast<uint32_t>(number) : static_cast<uint32_t>(number);
    uint32_t exponent = 127 + 23;
    for (; magnitude >= 1u << 24; magnitude >>= 1) ++exponent;
    for (; magnitude < 1u << 23; magnitude <<= 1) --exponent;
    return (number < 0 ? 1u << 31 : 0u) | exponent << 23 | (magnitude & ((1u << 23) - 1));
}"""

WRITE_INDEX_TILE = """\
// Fills a bfloat16 tile with the row (axis 0) or column (axis 1) of each of its elements.
static void write_index_tile(uint32_t address, uint32_t axis) {
    volatile tt_l1_ptr uint16_t* tile = reinterpret_cast<volatile tt_l1_ptr uint16_t*>(address);
    for (uint32_t number = 0; number < 32; ++number) {
        const uint16_t value = static_cast<uint16_t>(float_bits(static_cast<int32_t>(number)) >> 16);
        for (uint32_t other = 0; other < 32; ++other) {
            const uint32_t row = axis == 0 ? number : other, column = axis == 0 ? other : number;
            tile[(row / 16 * 2 + column / 16) * 256 + row % 16 * 16 + column % 16] = value;
        }
    }
}"""

COPY_ELEMENT = """\
// Copies one element of 1, 2 or 4 bytes in L1.
static void copy_element(uint32_t source, uint32_t target, uint32_t bytes) {
    if (bytes == 1) {
        *reinterpret_cast<volatile tt_l1_ptr uint8_t*>(target) = *reinterpret_cast<volatile tt_l1_ptr uint8_t*>(source);
    } else if (bytes == 2) {
        *reinterpret_cast<volatile tt_l1_ptr uint16_t*>(target) =
            *reinterpret_cast<volatile tt_l1_ptr uint16_t*>(source);
    } else {
        *reinterpret_cast<volatile tt_l1_ptr uint32_t*>(target) =
            *reinterpret_cast<volatile tt_l1_ptr uint32_t*>(source);
    }
}"""

READ_ELEMENT = """\
// Reads one element of a page, wherever it lies: reads begin at aligned addresses, so that what follows the last such
// address goes to `around` first.
template <typename Tensor, typename Buffer>
static void read_element(
    const Noc& noc, const Tensor& tensor, uint32_t page, uint32_t offset, const Buffer& around, uint32_t place,
    uint32_t around_bytes, uint32_t target, uint32_t bytes) {
    const uint32_t first = offset / around_bytes * around_bytes;
    noc.async_read(
        tensor, around, offset - first + bytes, {.page_id = page, .offset_bytes = first}, {.offset_bytes = place});
    noc.async_read_barrier();
    copy_element(around.get_write_ptr() + place + (offset - first), target, bytes);
}"""

WRITE_ELEMENT = """\
// Writes one element of a page, wherever it lies, and nothing around it: both addresses of a write must be equal modulo
// 16, so the element is first copied to such a place behind `aligned`, which the write before has left by then.
template <typename Tensor>
static void write_element(
    const Noc& noc, uint32_t source, uint32_t aligned, const Tensor& tensor, uint32_t page, uint32_t offset,
    uint32_t bytes) {
    const uint32_t place = aligned + offset % 16;
    noc.async_writes_flushed();
    invalidate_l1_cache();
    copy_element(source, place, bytes);
    noc.async_write(
        CoreLocalMem<uint32_t>(place), tensor, bytes, {.offset_bytes = 0}, {.page_id = page, .offset_bytes = offset});
}"""

WHOLE_NUMBER = """\
// The whole number that a bfloat16 is.
static int32_t whole_number(uint32_t bits) {
    const int32_t exponent = static_cast<int32_t>(bits >> 7 & 255) - 127;
    const int32_t fraction = static_cast<int32_t>(bits & 127) + 128;
    if (exponent < 0) return 0;
    const int32_t size = exponent < 7 ? fraction >> (7 - exponent) : fraction << (exponent - 7);
    return (bits >> 15) != 0 ? -size : size;
}"""

READ_NUMBER = """\
// Reads the whole number that one element of a page is: an int32, or a bfloat16. What follows the last aligned address
// before it arrives first.
template <typename Tensor, typename Buffer>
static int32_t read_number(
    const Noc& noc, const Tensor& tensor, uint32_t page, uint32_t offset, const Buffer& around, uint32_t place,
    uint32_t around_bytes, uint32_t bytes) {
    const uint32_t first = offset / around_bytes * around_bytes;
    noc.async_read(
        tensor, around, offset - first + bytes, {.page_id = page, .offset_bytes = first}, {.offset_bytes = place});
    noc.async_read_barrier();
    const uint32_t source = around.get_write_ptr() + place + (offset - first);
    if (bytes == 2) return whole_number(*reinterpret_cast<volatile tt_l1_ptr uint16_t*>(source));
    return *reinterpret_cast<volatile tt_l1_ptr int32_t*>(source);
}"""

FLOOR_DIV = """\
// a / b, rounded down.
static constexpr int32_t floor_div(int32_t a, int32_t b) {
    const bool is_inexact = a % b != 0;
    return a / b - (is_inexact && (a < 0) != (b < 0) ? 1 : 0);
}"""

FLOOR_MOD = """\
// What a / b, rounded down, leaves of a.
static constexpr int32_t floor_mod(int32_t a, int32_t b) {
    const int32_t rest = a % b;
    return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}"""

LESSER = """\
static constexpr int32_t lesser(int32_t a, int32_t b) { return a < b ? a : b; }"""

GREATER = """\
static constexpr int32_t greater(int32_t a, int32_t b) { return a > b ? a : b; }"""

FUNCTIONS: dict[str, str] = {
    "float_bits": FLOAT_BITS, "write_index_tile": WRITE_INDEX_TILE, "floor_div": FLOOR_DIV, "floor_mod": FLOOR_MOD,
    "copy_element": COPY_ELEMENT, "read_element": READ_ELEMENT, "write_element": WRITE_ELEMENT,
    "whole_number": WHOLE_NUMBER, "read_number": READ_NUMBER, "lesser": LESSER,
    "greater": GREATER,
}  # fmt: skip
