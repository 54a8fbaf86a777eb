"""What the generators must draw: for each feature of `pairs.py` the attributes that a rewriting can drop, and for each
name of the language the generator that draws it.

A feature that is right in float32, in one tile and at its first use can be wrong in bool, in 512 elements, without an
iteration, below zero, reversed, in place or at its second use. `test_pairs.py` fails for a pair that is never drawn and
for a name without a home.
"""

from __future__ import annotations

from ttexplore.ir.operations.reductions import JOININGS

_SIZES = ("one element", "odd sizes", "512 elements")
_LARGE = (*_SIZES, "many tiles")
_WHOLES = ("int32", "int8", "uint8", "bool")
_FLOATS = ("float32", "bfloat16")
_ALL = (*_FLOATS, *_WHOLES)

PAIRS: dict[str, tuple[str, ...]] = {
    "view": (
        *_ALL, "rank 1", "rank 2", "rank 3", "rank 4", "view of rank 1", "view of rank 2", "view of rank 3",
        "odd sizes", "last axis changed",
        "last axis kept", "stored", "read", "by elements", "512 elements", "many tiles",
    ),
    "reduction": (
        *_ALL, "float8_e4m3fn", *JOININGS, *_SIZES,
        "last axis", "other axis", "negative axis", "negative values", "target kept", "rank 2", "rank 3", "rank 4",
        "many tiles",
    ),
    "scan": (*_FLOATS, "int32", "cumsum", "cummax", "reversed", "in place", "last axis", "other axis", *_SIZES),
    "quantifier": (*_WHOLES, *_SIZES, "negative values", "through a block", "rank 1", "rank 2"),
    "loop": (
        *_FLOATS, "int32", "zero iterations", "nested", "copy", "elements", "partly", "cast", "T.serial", "T.Pipelined",
        "range", "T.unroll", "T.serial from", "odd sizes", "512 elements", "many tiles",
    ),
    "element": (
        *_WHOLES, "branch", "length", "place", "rows", "choice", "arithmetic", "zero iterations", "negative values",
    ),
    "shift": ("int32", "int8", "uint8", "left", "right", "shifts by the width", "negative values", *_LARGE),
    "arithmetic": (*_FLOATS, "int32", "int8", "uint8", "in place", "several uses", "negative values", *_LARGE),
    "cast": (
        *_ALL, *(f"to {dtype}" for dtype in (*_ALL, "float8_e4m3fn")), "elements", "copy", "negative values", *_LARGE,
    ),
    "gather": (
        *_FLOATS, "int32", "int8", "uint8", "reversed", "strided", "turned", "shifted", "before the start",
        *_SIZES, "negative values",
    ),
    "part": (*_ALL, "float8_e4m3fn", "row", "column", "element", "in place", "new", "negative values", *_LARGE),
    "product": (
        *_FLOATS, "int8", "uint8", "first turned", "second turned", "several steps", "one step", "odd sizes",
        "512 elements", "many tiles", "negative values",
    ),
    "fill": (*_ALL, "float8_e4m3fn", "negative values", *_LARGE),
    "variable": (*_FLOATS, "int32", "branch", "not stored before", "zero iterations", "negative values", *_LARGE),
    "partly stored": (
        *_FLOATS, "int32", "uint8", "old contents", "constant", "element", "branch", "rows", "loop", "zero iterations",
        "odd sizes", "512 elements",
    ),
    "mixed atomics": ("float32",),
    "scattered updates": (
        "float32", "int32", "add", "max", "min", "all", "some", "neighbours", "several blocks", "negative values",
    ),
    "shifted in place": (*_FLOATS, "int32", "left", "right", "up", "down", "reversed"),
    "function": (*_FLOATS, "int32", "int8", "uint8", "negative values", *_LARGE),
    "reducer": ("float32", "int32", "sum", "max", "min", "rows", "columns", "zero iterations", "odd sizes", *_LARGE),
    "form of loop": (*_FLOATS, "int32", "grid", "vectorized", "unroll", "Persistent", "local", "odd sizes"),
    "branched nest": (
        *_FLOATS, "int32", "two loops", "three loops", "branch around a loop", "branch", "else", "else with a loop",
        "name", "name beside a loop", "several loops", "store beside a loop", "negative values", "odd sizes",
        "512 elements", "many tiles", *(f"decided by {what}" for what in
                        ("index", "element", "scalar", "both", "either", "block index", "own")),
    ),
}  # fmt: skip

# The generators that draw each name: features of `pairs.py`, or modules of this folder, whose texts have it.
NAMES: dict[str, str] = {
    **dict.fromkeys(("reshape", "view"), "view"),
    **dict.fromkeys((f"reduce_{kind}" for kind in JOININGS), "reduction"),
    **dict.fromkeys(("cumsum", "cummax"), "scan"), **dict.fromkeys(("any_of", "all_of"), "quantifier"),
    **dict.fromkeys(("serial", "Pipelined", "unroll"), "loop"),
    **dict.fromkeys(("max", "min", "abs", "if_then_else", "logical_and"), "arithmetic"), "cast": "cast",
    **dict.fromkeys(("copy", "Parallel", "alloc_shared", "prim_func", "Kernel", "Tensor"), "gather"),
    **dict.fromkeys(("gemm", "clear", "alloc_fragment"), "product"), "fill": "fill", "alloc_var": "variable",
    **dict.fromkeys(("atomic_add", "atomic_max", "atomic_min"), "mixed atomics"),
    **dict.fromkeys(
        ("floor", "ceil", "trunc", "nearbyint", "round", "clamp", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_not", "floordiv", "floormod", "shift_left", "shift_right", "logical_or", "logical_not", "min_value",
         "max_value", "infinity", "Cast", "reinterpret"), "function"),
    **dict.fromkeys(("alloc_reducer", "reducer_init", "reducer_update", "finalize_reducer"), "reducer"),
    **dict.fromkeys(("grid", "vectorized", "Persistent", "alloc_local"), "form of loop"),
    **dict.fromkeys(
        ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "sin", "cos"), "meaning.py"),
    **dict.fromkeys(("ceildiv", "truncdiv", "truncmod"), "indices.py"),
    **dict.fromkeys(
        ("dynamic", "annotate_tt_layout", "annotate_tt_schedule", "annotate_tt_sharding", "TTShard", "macro"), "."),
    **dict.fromkeys(("sync_grid", "alloc_global"), "launches.py"),
    **dict.fromkeys(("alloc_barrier", "barrier_arrive", "barrier_wait", "tma_copy", "ws"), "groups.py"),
    **dict.fromkeys(("region", "conjunction", "const", "dtype"), "."),
}  # fmt: skip

# What no generator draws, and what tests it instead.
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        ("exp10", "log10", "log1p", "tan", "sinh", "cosh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh",
         "hypot", "pow", "fmod", "copysign", "isnan", "isinf", "isfinite"),
        "tests/backends/accuracy.py, tests/language/test_all_names.py: no whole numbers, or no rule lowers them"),
    **dict.fromkeys(("PrimFunc", "jit", "empty", "GemmWarpPolicy"), "tests/language: ways to write a kernel"),
    **dict.fromkeys(
        ("get_block_binding", "get_block_bindings", "get_warp_group_idx",
         "PersistentTileScheduler"), "tests/language, tests/passes/test_persistent.py: names of indices"),
    **dict.fromkeys(
        ("alloc_tmem", "mbarrier_arrive_expect_tx", "sync_threads", "tcgen05_gemm", "tcgen05_mma_arrive",
         "wait_wgmma", "wgmma_gemm"), "tests/corpus/groups.py: other names of what groups.py draws"),
    **dict.fromkeys(
        ("attr", "comm_reducer", "get_thread_bindings", "tvm_thread_allreduce", "warp_reduce_max", "warp_reduce_sum"),
        "threads"),
    **dict.fromkeys(
        ("evaluate", "get_thread_binding", "thread_binding", "warp_reduce_min"),
        "tests/corpus/gemv.py, tests/language/test_threads.py: other names of what threads.py draws"),
    **dict.fromkeys(("import_source", "alloc_buffer"), "tests/language/test_threads.py: nothing new to draw"),
    **dict.fromkeys(("im2col", "disjunction", "reduce", "atomic_addx2", "atomic_addx4"), "tests/corpus"),
}  # fmt: skip
