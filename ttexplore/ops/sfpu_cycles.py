"""How long calls of the SFPU's operations take, in cycles of the math processor for one tile.

COUNTED is what the code of a call comes to: that of SDK 0.81.1, compiled by the SDK's own compiler for each chip and
width of DST, and executed instruction by instruction (``python -m benchmarks.sfpu_cycles``). The vector unit starts one
instruction in a cycle; a compare-and-swap takes two, and on Blackhole so does what reads the result of the multiply-add
before it; the processor that issues them takes a cycle for each of its own instructions; and a call takes `CALL_CYCLES`
more, fitted to MEASURED. Against that, the count is 4 % off in the median, 14 % at most.

MEASURED has the silicon's own figures, of tt-metal's performance tests (MATH_ISOLATE), where the code that was measured
is that of SDK 0.81.1. Slower versions were measured as well, such as exp with 1150 cycles and tanh with 764 on
Blackhole: these operations are counted.
"""

from __future__ import annotations

from typing import Literal

Arch = Literal["wormhole_b0", "blackhole"]
CALL_CYCLES = 8

# On Wormhole with a DST of 16 and of 32 bits, on Blackhole likewise; where one width is wrong, the other's.
COUNTED: dict[str, tuple[int, int, int, int]] = {
    "abs_int32_tile": (169, 169, 147, 147),
    "abs_tile": (150, 150, 147, 147),
    "add_binary_tile": (214, 214, 211, 211),
    "add_int_tile": (182, 182, 179, 179),
    "add_unary_tile": (182, 182, 179, 179),
    "binary_left_shift_tile": (342, 342, 315, 315),
    "binary_max_int32_tile": (202, 202, 199, 199),
    "binary_max_tile": (154, 154, 151, 151),
    "binary_min_int32_tile": (202, 202, 199, 199),
    "binary_min_tile": (154, 154, 151, 151),
    "binary_right_shift_tile": (726, 726, 347, 347),
    "bitwise_and_binary_tile": (182, 182, 179, 179),
    "bitwise_not_tile": (236, 236, 233, 233),
    "bitwise_or_binary_tile": (182, 182, 179, 179),
    "bitwise_xor_binary_tile": (182, 182, 179, 179),
    "ceil_tile": (540, 540, 485, 485),
    "clamp_tile": (438, 438, 435, 435),
    "cos_tile": (1006, 1050, 1003, 1043),
    "div_binary_tile": (1452, 1612, 1139, 1299),
    "eq_binary_tile": (501, 501, 498, 498),
    "eq_int_tile": (275, 275, 272, 272),
    "eqz_tile": (232, 232, 229, 229),
    "erf_tile": (2582, 2582, 2387, 2387),
    "exp2_tile": (854, 1004, 873, 1001),
    "exp_fast_tile": (310, 310, 307, 307),
    "exp_tile": (746, 1442, 579, 1385),
    "fill_int_tile": (90, 90, 87, 87),
    "fill_tile": (86, 86, 83, 83),
    "floor_tile": (540, 540, 485, 485),
    "ge_binary_tile": (570, 570, 466, 466),
    "ge_int_tile": (333, 333, 330, 330),
    "gelu_tile": (2646, 3158, 2451, 2899),
    "gez_tile": (364, 364, 361, 361),
    "gt_binary_tile": (506, 506, 400, 400),
    "gt_int_tile": (333, 333, 330, 330),
    "gtz_tile": (300, 300, 297, 297),
    "le_binary_tile": (570, 570, 466, 466),
    "le_int_tile": (333, 333, 330, 330),
    "leaky_relu_tile": (182, 182, 179, 179),
    "lez_tile": (364, 364, 361, 361),
    "log2_tile": (1014, 1366, 1011, 1363),
    "log_tile": (854, 1206, 851, 1203),
    "log_with_base_tile": (854, 1206, 851, 1203),
    "logical_not_tile": (232, 232, 229, 229),
    "lt_binary_tile": (506, 506, 400, 400),
    "lt_int_tile": (333, 333, 330, 330),
    "ltz_tile": (300, 300, 297, 297),
    "mul_binary_tile": (748, 214, 681, 211),
    "mul_int_tile": (1005, 1005, 314, 314),
    "mul_unary_tile": (118, 118, 115, 115),
    "ne_binary_tile": (501, 501, 498, 498),
    "ne_int_tile": (275, 275, 272, 272),
    "negative_tile": (150, 150, 147, 147),
    "nez_tile": (232, 232, 229, 229),
    "power_binary_tile": (3532, 5974, 3219, 5395),
    "power_of_two_tile": (154, 154, 151, 151),
    "power_tile": (3362, 5378, 3163, 4671),
    "recip_tile": (566, 662, 283, 215),
    "reinterpret_fp32_to_int32_tile": (154, 154, 151, 151),
    "reinterpret_int32_to_fp32_tile": (150, 150, 147, 147),
    "relu_tile": (222, 222, 179, 179),
    "round_tile": (486, 486, 339, 339),
    "rsqrt_tile": (1142, 1110, 1075, 1043),
    "rsub_binary_tile": (214, 214, 211, 211),
    "rsub_unary_tile": (470, 182, 435, 179),
    "sfpu_reduce_max_col": (142, 142, 162, 162),
    "sfpu_reduce_max_col_bf16": (142, 142, 162, 162),
    "sfpu_reduce_max_col_int32": (312, 312, 310, 310),
    "sfpu_reduce_max_row": (239, 239, 213, 213),
    "sfpu_reduce_max_row_bf16": (239, 239, 213, 213),
    "sfpu_reduce_max_row_int32": (471, 471, 444, 444),
    "sfpu_reduce_min_col": (142, 142, 162, 162),
    "sfpu_reduce_min_col_bf16": (142, 142, 162, 162),
    "sfpu_reduce_min_col_int32": (312, 312, 310, 310),
    "sfpu_reduce_min_row": (242, 242, 213, 213),
    "sfpu_reduce_min_row_bf16": (242, 242, 213, 213),
    "sfpu_reduce_min_row_int32": (474, 474, 444, 444),
    "sfpu_reduce_sum_col": (126, 126, 115, 115),
    "sfpu_reduce_sum_col_bf16": (126, 126, 115, 115),
    "sfpu_reduce_sum_col_int32": (114, 114, 115, 115),
    "sfpu_reduce_sum_row": (219, 219, 192, 192),
    "sfpu_reduce_sum_row_bf16": (219, 219, 192, 192),
    "sfpu_reduce_sum_row_int32": (231, 231, 192, 192),
    "sigmoid_tile": (1462, 1974, 1267, 1747),
    "sign_tile": (428, 428, 425, 425),
    "silu_tile": (1526, 2038, 1331, 1811),
    "sin_tile": (878, 922, 875, 915),
    "sqrt_tile": (1078, 1046, 1011, 979),
    "square_tile": (310, 118, 275, 115),
    "sub_binary_tile": (214, 214, 211, 211),
    "sub_int_tile": (182, 182, 179, 179),
    "sub_unary_tile": (182, 182, 179, 179),
    "tanh_tile": (526, 1644, 523, 1481),
    "trunc_tile": (428, 428, 389, 389),
    "typecast_bf16_to_int32_tile": (552, 552, 549, 549),
    "typecast_fp32_to_bf16_tile": (364, 364, 329, 329),
    "typecast_fp32_to_int32_tile": (552, 552, 549, 549),
    "typecast_int32_to_bf16_tile": (201, 201, 198, 198),
    "typecast_int32_to_fp32_tile": (197, 197, 194, 194),
    "unary_eq_tile": (310, 310, 307, 307),
    "unary_ge_tile": (310, 310, 275, 275),
    "unary_gt_tile": (310, 310, 275, 275),
    "unary_le_tile": (310, 310, 275, 275),
    "unary_lt_tile": (310, 310, 275, 275),
    "unary_max_tile": (122, 122, 119, 119),
    "unary_min_tile": (122, 122, 119, 119),
    "unary_ne_tile": (310, 310, 307, 307),
    "where_bf16_tile": (150, 150, 139, 139),
    "where_tile": (150, 150, 139, 139),
}

_PULL = "https://github.com/tenstorrent/tt-metal/pull/"
# Cycles and where they were published, by operation, chip and the bits of DST.
MEASURED: dict[tuple[str, Arch, int], tuple[int, str]] = {
    ("abs_tile", "blackhole", 16): (146, _PULL + "57292"),
    ("abs_int32_tile", "blackhole", 32): (135, _PULL + "49820"),
    ("add_int_tile", "blackhole", 32): (178, _PULL + "49826"),
    ("bitwise_and_binary_tile", "blackhole", 32): (178, _PULL + "49820"),
    ("recip_tile", "blackhole", 16): (288, _PULL + "45660"),
    ("sub_int_tile", "blackhole", 32): (178, _PULL + "49820"),
    ("ceil_tile", "blackhole", 16): (476, _PULL + "49926"),
    ("floor_tile", "blackhole", 16): (476, _PULL + "49926"),
    ("gelu_tile", "blackhole", 16): (2847, _PULL + "49926"),
    ("sigmoid_tile", "blackhole", 16): (1247, _PULL + "49926"),
    ("tanh_tile", "blackhole", 32): (1344, _PULL + "48299"),
    ("ceil_tile", "wormhole_b0", 16): (520, _PULL + "48925"),
    ("ceil_tile", "wormhole_b0", 32): (522, _PULL + "48925"),
    ("cos_tile", "wormhole_b0", 16): (966, _PULL + "48925"),
    ("div_binary_tile", "wormhole_b0", 16): (1475, _PULL + "48925"),
    ("exp_tile", "wormhole_b0", 16): (748, _PULL + "43973"),
    ("exp2_tile", "wormhole_b0", 16): (863, _PULL + "48925"),
    ("floor_tile", "wormhole_b0", 16): (520, _PULL + "48925"),
    ("floor_tile", "wormhole_b0", 32): (522, _PULL + "48925"),
    ("silu_tile", "wormhole_b0", 16): (1387, _PULL + "48925"),
    ("sin_tile", "wormhole_b0", 16): (838, _PULL + "48925"),
    ("tanh_tile", "wormhole_b0", 32): (1440, _PULL + "48299"),
    ("trunc_tile", "wormhole_b0", 16): (408, _PULL + "48925"),
}


def counted_cycles(name: str, arch: Arch, dst_bits: int) -> int:
    """The cycles of a call by its instructions."""
    return COUNTED[name][2 * (arch == "blackhole") + (dst_bits == 32)]


def sfpu_cycles(name: str, arch: Arch = "wormhole_b0", dst_bits: int | None = None) -> int:
    """The cycles of a call with a DST of so many bits, 16 if that is left open: measured ones where there are any."""
    bits = dst_bits or 16
    measured = MEASURED.get((name, arch, bits))
    return counted_cycles(name, arch, bits) if measured is None else measured[0]
