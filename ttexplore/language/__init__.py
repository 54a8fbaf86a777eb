"""The TileLang-compatible kernel language: ``import ttexplore.language as T``.

TileLang names that cannot be lowered exist as well; a kernel that uses one is rejected at that line.
"""

from __future__ import annotations

from typing import NoReturn

from ttexplore.language.api.annotations import annotate_tt_layout, annotate_tt_schedule, annotate_tt_sharding
from ttexplore.language.api.atomics import KINDS as _KINDS
from ttexplore.language.api.atomics import atomic as _atomic
from ttexplore.language.api.atomics import vector_add as _vector_add
from ttexplore.language.api.loops import (
    Kernel,
    Parallel,
    Persistent,
    Pipelined,
    get_block_binding,
    get_block_bindings,
    grid,
    serial,
    unroll,
    vectorized,
)
from ttexplore.language.api.math import (
    Cast,
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    ceil,
    ceildiv,
    clamp,
    conjunction,
    copysign,
    cos,
    cosh,
    disjunction,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    floordiv,
    floormod,
    fmod,
    hypot,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    max,
    max_value,
    min,
    min_value,
    nearbyint,
    pow,
    reinterpret,
    round,
    rsqrt,
    shift_left,
    shift_right,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from ttexplore.language.api.memory import (
    Tensor,
    alloc_buffer,
    alloc_fragment,
    alloc_global,
    alloc_local,
    alloc_shared,
    alloc_var,
    dynamic,
    empty,
    reshape,
    view,
)
from ttexplore.language.api.quantifiers import all_of, any_of
from ttexplore.language.api.reducers import alloc_reducer, finalize_reducer, reducer_init, reducer_update
from ttexplore.language.api.scans import SCANS as _SCANS
from ttexplore.language.api.scans import scan as _scan
from ttexplore.language.api.schedulers import PersistentTileScheduler
from ttexplore.language.api.symbols import install as _install_symbols
from ttexplore.language.api.threads import (
    attr,
    comm_reducer,
    evaluate,
    get_thread_binding,
    get_thread_bindings,
    import_source,
    thread_binding,
    tvm_thread_allreduce,
)
from ttexplore.language.api.threads import warp_reduce as _warp_reduce
from ttexplore.language.api.tile import REDUCTIONS as _REDUCTIONS
from ttexplore.language.api.tile import GemmWarpPolicy, clear, copy, fill, gemm, im2col, reduce
from ttexplore.language.api.tile import block_region as region
from ttexplore.language.api.tile import reduction as _reduction
from ttexplore.language.api.warps import (
    alloc_barrier,
    alloc_tmem,
    barrier_arrive,
    barrier_wait,
    get_warp_group_idx,
    mbarrier_arrive_expect_tx,
    sync_grid,
    sync_threads,
    tcgen05_gemm,
    tcgen05_mma_arrive,
    tma_copy,
    wait_wgmma,
    wgmma_gemm,
    ws,
)
from ttexplore.language.guard.names import HINTS as _HINTS
from ttexplore.language.guard.names import IGNORED as _IGNORED
from ttexplore.language.guard.names import NOT_LOWERED as _NOT_LOWERED
from ttexplore.language.guard.names import Ignored as _Ignored
from ttexplore.language.guard.names import NotLowered as _NotLowered
from ttexplore.language.guard.names import UnknownName as _UnknownName
from ttexplore.language.guard.names import hint_only as _hint_only
from ttexplore.language.tracer.dtypes import ALIASES as _ALIASES
from ttexplore.language.tracer.dtypes import DTYPES as _DTYPES
from ttexplore.language.tracer.dtypes import dtype
from ttexplore.language.tracer.hooks import subscript as _subscript
from ttexplore.language.tracer.kernel import PrimFunc, const, jit, macro, prim_func
from ttexplore.layout_request import TTShard
from ttexplore.ops.language import OVER_THREADS as _OVER_THREADS

# Other names of the same things, as TileLang has them. Block annotations only tell a macro's reader what it takes.
Buffer = FragmentBuffer = SharedBuffer = LocalBuffer = Tensor
cdiv = ceildiv
And, Or, Not, all, any, Select = logical_and, logical_or, logical_not, conjunction, disjunction, if_then_else
power = pow
c2d_im2col = im2col
# The functions that are faster and less exact on a GPU; the chip has one of each.
globals().update({f"__{function.__name__}": function for function in (exp, exp10, log, log2, log10, sin, cos, tan)})
symbolic = dynamic
mbarrier_arrive, mbarrier_wait_parity = barrier_arrive, barrier_wait
parallel = Parallel
Serial = serial
Unroll = unroll
Vectorized = vectorized
bool = _DTYPES["bool"]

globals().update(_DTYPES)
globals().update({_alias: _DTYPES[_name] for _alias, _name in _ALIASES.items()})
globals().update({f"reduce_{_kind}": _reduction(_kind) for _kind in _REDUCTIONS})
globals().update({_name: _scan(_name) for _name in _SCANS})
globals().update({f"atomic_{_kind}": _atomic(_kind) for _kind in _KINDS})
globals().update({f"warp_reduce_{_kind}": _warp_reduce(_kind) for _kind in _OVER_THREADS})
globals().update({f"atomic_addx{_width}": _vector_add(_width) for _width in (2, 4)})
globals().update({_name: _Ignored(_name) for _name in _IGNORED})
globals().update({_name: _hint_only(_name) for _name in _HINTS})
globals().update({_name: _NotLowered(_name) for _name in _NOT_LOWERED})

_install_symbols(_subscript)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    raise _UnknownName(name, globals())


__all__ = [
    "And", "Cast", "GemmWarpPolicy", "Kernel", "Not", "Or", "Parallel", "Persistent", "PersistentTileScheduler",
    "Pipelined", "PrimFunc", "Select", "TTShard", "Tensor", "abs", "acos", "acosh", "all", "all_of", "alloc_barrier",
    "alloc_buffer", "alloc_fragment", "alloc_global", "alloc_local", "alloc_reducer", "alloc_shared", "alloc_tmem",
    "alloc_var", "annotate_tt_layout", "annotate_tt_schedule", "annotate_tt_sharding", "any", "any_of", "asin", "asinh",
    "atan", "atan2", "atanh", "attr", "barrier_arrive", "barrier_wait", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cast", "ceil", "ceildiv", "clamp", "clear", "comm_reducer", "const", "copy", "copysign", "cos",
    "cosh", "dtype", "dynamic", "empty", "erf", "evaluate", "exp", "exp2", "exp10", "fill", "finalize_reducer", "floor",
    "floordiv", "floormod", "fmod", "gemm", "get_block_binding", "get_block_bindings", "get_thread_binding",
    "get_thread_bindings", "get_warp_group_idx", "grid", "hypot", "if_then_else", "im2col", "import_source", "infinity",
    "isfinite", "isinf", "isnan", "jit", "log", "log1p", "log2", "log10", "logical_and", "logical_not", "logical_or",
    "macro", "max", "max_value", "mbarrier_arrive_expect_tx", "min", "min_value", "nearbyint", "pow", "prim_func",
    "reduce", "reducer_init", "reducer_update", "region", "reinterpret", "reshape", "round", "rsqrt", "serial",
    "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt", "symbolic", "sync_grid", "sync_threads", "tan",
    "tanh", "tcgen05_gemm", "tcgen05_mma_arrive", "thread_binding", "tma_copy", "trunc", "truncdiv", "truncmod",
    "tvm_thread_allreduce", "unroll", "vectorized", "view", "wait_wgmma", "wgmma_gemm", "ws",
]  # fmt: skip
