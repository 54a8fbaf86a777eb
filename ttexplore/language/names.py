"""Names of TileLang's language that no rule lowers yet: they exist, and a kernel that uses one is rejected at that
line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Protocol

from ttexplore.errors import Unsupported


class Noting(Protocol):
    """The kernel being traced (a ttexplore.language.builder.Builder), as far as this module needs it."""

    def note(self, text: str) -> None: ...


CURRENT: ContextVar[Noting | None] = ContextVar("kernel being traced", default=None)
# The name by which the rewritten code of a kernel knows its hooks.
HOOKS = "__hooks"

HINT_CONSTANT_SIZES = "give the kernel constant sizes: pass them as arguments of a factory, or use T.const"
_BARRIERS = (
    "leave it out: the reader, the compute kernel and the writer hand blocks over through circular buffers, which wait "
    "by themselves"
)
_COPIES = "use T.copy: the reader and the writer move blocks over the NoC, ahead of the compute kernel"
_NO_THREADS = "a Tensix core has no threads or warps: write the block with T.Parallel"
_ROLES = (
    "leave it out: the kernel is always split into a reader, a compute kernel and a writer that run at the same time; "
    "write the loop with T.Pipelined"
)
_MATRIX = "use T.gemm on whole blocks: the matrix unit is lowered from it"
_PACKED = "write the arithmetic on elements with + - * / in T.Parallel; the vector unit takes 32 of them at once anyway"
_ONE_OWNER = "let one block own each output element, and loop over the parts of its sum"
_PERSISTENT = (
    "launch one block for each piece of work with T.Kernel: each core gets a loop over its blocks, and the options "
    "policy and order say which"
)
_PRODUCT_OF_ONES = "a running sum is a product with a triangle of ones, and a sum one with ones: T.gemm"
_MEMORY = "allocate with T.alloc_shared or T.alloc_fragment, and move with T.copy"
_RESHAPE = "give the tensor this shape on the host, or index it so that T.copy moves blocks of two dimensions"
_LANGUAGE = "write it in the language itself"
_HOST = "leave it out of the kernel: check or compute it on the host"

# What takes the place of a name here, by the beginnings of names. The first that fits counts.
_HINTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("print", "start_profile", "end_profile"),
        "leave it out: ex.run() gives the outputs, ex.timeline() what happened, and ex.check() every step",
    ),
    (("device_assert", "Assert", "assume", "likely"), _HOST),
    (("BaseTileScheduler", "clc_", "ClusterKernel"), _PERSISTENT),
    (("ws", "WS", "WarpSpecialize", "annotate_ws", "annotate_producer", "annotate_consumer"), _ROLES),
    (
        (
            "sync",
            "mbarrier",
            "barrier",
            "named_barrier",
            "alloc_barrier",
            "alloc_cluster_barrier",
            "create_barriers",
            "cluster_",
            "fence_proxy",
            "ptx_arrive",
            "ptx_init_barrier",
            "ptx_wait",
            "ptx_commit",
            "ptx_cp_async_barrier",
            "cp_async_barrier",
            "wait_wgmma",
            "tvm_storage_sync",
            "ptx_fence",
        ),
        _BARRIERS,
    ),
    (
        ("tma_", "create_tma", "async_copy", "copy_cluster", "ptx_cp_async", "ldg", "stg", "lds", "sts", "__ldg"),
        _COPIES,
    ),
    (
        (
            "wgmma",
            "tcgen05",
            "mma",
            "ptx_",
            "tvm_mma",
            "tvm_bmma",
            "tvm_load_matrix",
            "tvm_store_matrix",
            "gemm_sp",
            "tvm_fill_fragment",
            "TensorCore",
            "WGMMA",
            "TCGEN05",
            "Sparse",
            "WGSparse",
            "initialize_",
            "increase_desc",
            "alloc_tmem",
            "deallocate_tmem",
            "alloc_descriptor",
            "alloc_tcgen05",
            "alloc_wgmma",
            "make_blockscaled",
            "make_mma",
            "get_mma",
            "get_ldmatrix",
            "get_swizzle",
            "compute_gmma",
            "compute_umma",
            "mfma",
            "tvm_mfma",
            "tvm_rdna",
        ),
        _MATRIX,
    ),
    (
        ("warp_reduce", "comm_reducer", "tvm_thread_allreduce"),
        "add in T.Parallel to an accumulator that a loop carries; " + _PRODUCT_OF_ONES,
    ),
    (
        (
            "get_thread",
            "get_warp",
            "get_lane",
            "get_block_extent",
            "launch_thread",
            "thread",
            "warp",
            "shfl",
            "shuffle",
            "ballot",
            "activemask",
            "any_sync",
            "all_sync",
            "match_a",
            "tvm_warp",
            "tvm_thread",
            "env_thread",
            "block_rank",
            "elect",
        ),
        _NO_THREADS,
    ),
    (("atomic",), _ONE_OWNER),
    (("add2", "sub2", "mul2", "fma2", "max2", "min2", "abs2", "vector", "Ramp", "Broadcast"), _PACKED),
    (("ieee_", "fast_rcp"), "use + - * / and T.sqrt: the chip has one way to compute each"),
    (("transpose",), "T.gemm takes transpose_A and transpose_B; other blocks: transpose them on the host"),
    (("StridedTensor", "make_tensor"), _RESHAPE),
    (("rng_",), "pass random numbers as a tensor"),
    (("alloc_", "allocate", "alloc", "decl_buffer", "match_buffer", "buffer_store", "sblock", "block"), _MEMORY),
    (("address_of", "access_ptr", "ptr", "tvm_access_ptr", "handle", "isnullptr"), "index the tensor itself"),
    (("call_", "import_source", "CUDASourceCodeKernel", "tvm_call", "__ffs", "__fns"), _LANGUAGE),
    (("loop_break",), "give the loop its length, or use T.if_then_else on elements"),
    (("While",), "use a loop with a constant length"),
    (("If", "Then", "Else"), "write a Python if"),
    (("let", "bind", "Var", "IntImm", "StringImm"), "write a Python name"),
    (("float32x", "float16x", "bfloat16x", "float8_", "float4_"), "use T.bfloat16 or T.float32"),
)
_OTHERS = "write this part with copies, gemm and T.Parallel"


class NotLowered:
    """A name of the language that is not lowered. Using it inside a kernel raises Unsupported at that line; outside
    kernels (decorators, module-level values of an example file) it stands for itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> NotLowered:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()
        return NotLowered(f"{self.name}.{name}")

    def __call__(self, *args: object, **options: object) -> object:
        self.refuse()
        if len(args) == 1 and not options and callable(args[0]):
            return args[0]
        return NotLowered(self.name)

    def __mro_entries__(self, _bases: object) -> tuple[type, ...]:
        return (object,)

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def hint(self) -> str:
        """What to write instead."""
        name = self.name.partition(".")[0]
        return next((hint for beginnings, hint in _HINTS if name.startswith(beginnings)), _OTHERS)

    def refuse(self) -> None:
        """Raise Unsupported if a kernel is being traced."""
        if CURRENT.get() is not None:
            raise Unsupported("L001", f"T.{self.name} is not lowered", hint=self.hint)


def _operator(self: NotLowered, *_operands: object) -> NotLowered:
    self.refuse()
    return self


for _name in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "matmul",
    "rmatmul",
    "neg",
    "pos",
    "invert",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "getitem",
    "setitem",
    "lt",
    "le",
    "gt",
    "ge",
    "enter",
]:
    setattr(NotLowered, f"__{_name}__", _operator)


class UnknownName(AttributeError):
    """A name that the language does not have. `hint` may suggest another."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        close = difflib.get_close_matches(name, [key for key in known if not key.startswith("_")], 1)
        self.hint = f"did you mean T.{close[0]}?" if close else "see the names in dir(ttexplore.language)"
        super().__init__(f"T.{name} does not exist; {self.hint}" if close else f"T.{name} does not exist")
        self.message = f"T.{name} does not exist"


def hint_only(name: str) -> Callable[..., None]:
    """A name that only informs a GPU compiler and does not change results: accepted, with a note."""

    def hint(*_args: object, **_options: object) -> None:
        builder = CURRENT.get()
        if builder is not None:
            builder.note(f"T.{name} is a GPU hint without meaning here")

    hint.__name__ = hint.__qualname__ = name
    return hint


class Ignored:
    """A name that describes to a GPU compiler how a kernel is to be scheduled: it can be called, asked for attributes,
    and used in ``with``, and has no effect on what the kernel computes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Ignored:
        if name.startswith("__"):
            raise AttributeError(name)
        return Ignored(f"{self.name}.{name}")

    def __call__(self, *_args: object, **_options: object) -> Ignored:
        builder = CURRENT.get()
        if builder is not None:
            builder.note(f"T.{self.name} is a GPU hint without meaning here")
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"T.{self.name}"


# The schedule of a kernel over warps, beside the statements of one sequence.
IGNORED = ("WSID", "WSPipeline", "WSRole", "WSSchedule", "WSScope", "WSSync", "annotate_ws_schedule", "ws_op")

HINTS = tuple(
    [
        "Fragment",
        "Layout",
        "annotate_compile_flags",
        "annotate_consumer_reg_alloc",
        "annotate_l2_hit_ratio",
        "annotate_layout",
        "annotate_min_blocks_per_sm",
        "annotate_pass_configs",
        "annotate_producer_reg_dealloc",
        "annotate_restrict_buffers",
        "disable_warp_group_reg_alloc",
        "fence_proxy_async",
        "no_set_max_nreg",
        "pdl_sync",
        "pdl_trigger",
        "set_max_nreg",
        "dec_max_nreg",
        "inc_max_nreg",
        "use_swizzle",
    ]
)

NOT_LOWERED = tuple(
    [
        "Any",
        "BaseTileScheduler",
        "CUDASourceCodeKernel",
        "ClusterKernel",
        "IntImm",
        "JITFunc",
        "KernelLaunchFrame",
        "PrimExpr",
        "Ref",
        "Shuffle",
        "SparseTensorCoreIntrinEmitter",
        "StridedTensor",
        "StringImm",
        "TCGEN05DescriptorParams",
        "TCGEN05TensorCoreIntrinEmitter",
        "TVMBackendAllocWorkspace",
        "TVMBackendFreeWorkspace",
        "TensorCoreIntrinEmitter",
        "TensorCoreIntrinEmitterSM120",
        "TensorCoreIntrinEmitterWithLadderTransform",
        "WGMMADescriptorParams",
        "WGMMATensorCoreIntrinEmitter",
        "WGSparseTensorCoreIntrinEmitter",
        "WSInstr",
        "WSOpRef",
        "WSSyncKind",
        "WarpSpecialize",
        "WarpSpecializeFrame",
        "abs2",
        "access_ptr",
        "activemask",
        "add2",
        "address_of",
        "align_up",
        "all_sync",
        "alloc_buffer",
        "alloc_cluster_barrier",
        "alloc_descriptor",
        "alloc_tcgen05_instr_desc",
        "alloc_tcgen05_instruction_desc",
        "alloc_tcgen05_smem_desc",
        "alloc_wgmma_desc",
        "allocate",
        "annotate_safe_value",
        "any_sync",
        "anylist_getitem",
        "anylist_resetitem",
        "anylist_setitem_call_cpacked",
        "anylist_setitem_call_packed",
        "arange",
        "assume",
        "async_copy",
        "atomic_load",
        "atomic_or",
        "atomic_store",
        "attr",
        "ballot",
        "ballot_sync",
        "block_attr",
        "block_rank_in_cluster",
        "call_cpacked",
        "call_cpacked_lowered",
        "call_extern",
        "call_intrin",
        "call_llvm_intrin",
        "call_llvm_pure_intrin",
        "call_packed",
        "call_packed_lowered",
        "call_pure_extern",
        "clc_get_first_ctaid_x",
        "clc_get_first_ctaid_y",
        "clc_get_first_ctaid_z",
        "clc_is_canceled",
        "clc_try_cancel",
        "clc_try_cancel_multicast",
        "cluster_arrive",
        "cluster_arrive_relaxed",
        "cluster_sync",
        "cluster_wait",
        "clz",
        "comm_reducer",
        "compute_gmma_descriptor",
        "compute_umma_descriptor",
        "contiguous",
        "copy_cluster",
        "cp_async_barrier_noinc",
        "create_barriers",
        "create_tma_descriptor",
        "deallocate_tmem",
        "decl_buffer",
        "device_assert",
        "dp4a",
        "end_profile_intrinsic",
        "evaluate",
        "extract_lane",
        "fast_rcp",
        "fma2",
        "func_attr",
        "gemm_sp",
        "get_block_extent",
        "get_block_extents",
        "get_lane_idx",
        "get_ldmatrix_offset",
        "get_let_value",
        "get_mma_micro_size",
        "get_swizzle_layout",
        "get_thread_bindings",
        "get_thread_extent",
        "get_thread_extents",
        "get_warp_idx",
        "get_warp_idx_sync",
        "handle",
        "has_let_value",
        "ieee_add",
        "ieee_fdiv",
        "ieee_fmaf",
        "ieee_frcp",
        "ieee_frsqrt",
        "ieee_fsqrt",
        "ieee_mul",
        "ieee_sub",
        "import_source",
        "increase_descriptor_offset",
        "index_to_coordinates",
        "init",
        "initialize_tcgen05_descriptor",
        "initialize_wgmma_descriptor",
        "inline",
        "isnullptr",
        "launch_thread",
        "ldexp",
        "ldg128",
        "ldg256",
        "ldg32",
        "ldg64",
        "lds128",
        "lds32",
        "lds64",
        "likely",
        "lookup_param",
        "loop_break",
        "make_blockscaled_gemm_layout",
        "make_mma_swizzle_layout",
        "make_tensor",
        "make_tensor_from_addr",
        "match_all_sync",
        "match_any_sync",
        "match_buffer",
        "max2",
        "mbarrier_expect_tx",
        "meta_class",
        "min2",
        "mma_gemm_blockscaled",
        "mma_store_index_map",
        "mul2",
        "named_barrier_arrive",
        "nextafter",
        "popcount",
        "print",
        "ptr",
        "ptx_arrive_barrier",
        "ptx_arrive_barrier_expect_tx",
        "ptx_arrive_cluster_barrier",
        "ptx_commit_group",
        "ptx_cp_async",
        "ptx_cp_async_barrier",
        "ptx_cp_async_bulk",
        "ptx_init_barrier_thread_count",
        "ptx_ldmatrix",
        "ptx_mma",
        "ptx_mma_sm70",
        "ptx_mma_sp",
        "ptx_tcgen05_mma_blockscaled_ss",
        "ptx_tcgen05_mma_ss",
        "ptx_tcgen05_mma_ts",
        "ptx_wait_group",
        "ptx_wgmma_rs",
        "ptx_wgmma_sp_rs",
        "ptx_wgmma_sp_ss",
        "ptx_wgmma_ss",
        "q_multiply_shift",
        "q_multiply_shift_per_axis",
        "reads",
        "ret",
        "rng_init",
        "rng_rand",
        "rng_rand_float",
        "shfl_down",
        "shfl_sync",
        "shfl_up",
        "shfl_xor",
        "shuffle_elect",
        "start_profile_intrinsic",
        "stg128",
        "stg256",
        "stg32",
        "stg64",
        "sts128",
        "sts32",
        "sts64",
        "sub2",
        "sync_global",
        "sync_warp",
        "syncthreads_and",
        "syncthreads_count",
        "syncthreads_or",
        "target",
        "tcgen05_after_thread_sync",
        "tcgen05_before_thread_sync",
        "tcgen05_cp_warpx4",
        "tcgen05_gemm_blockscaled",
        "tcgen05_gemm_sp",
        "tcgen05_mma",
        "tcgen05_mma_blockscaled",
        "tcgen05_sf_warp_transpose",
        "thread_binding",
        "tma_gather4",
        "tma_gather4_bytes",
        "tma_load",
        "tma_load_2sm",
        "tma_scatter4",
        "tma_store_arrive",
        "tma_store_wait",
        "transpose",
        "tvm_access_ptr",
        "tvm_bmma_sync",
        "tvm_fill_fragment",
        "tvm_load_matrix_sync",
        "tvm_mma_sync",
        "tvm_stack_alloca",
        "tvm_stack_make_array",
        "tvm_stack_make_shape",
        "tvm_storage_sync",
        "tvm_store_matrix_sync",
        "tvm_struct_get",
        "tvm_struct_set",
        "tvm_thread_allreduce",
        "tvm_thread_invariant",
        "tvm_throw_last_error",
        "tvm_tuple",
        "tvm_warp_activemask",
        "tvm_warp_shuffle",
        "tvm_warp_shuffle_down",
        "tvm_warp_shuffle_up",
        "undef",
        "vectorcombine",
        "vectorhigh",
        "vectorlow",
        "vscale",
        "warp_reduce_bitand",
        "warp_reduce_bitor",
        "warp_reduce_max",
        "warp_reduce_min",
        "warp_reduce_sum",
        "warpgroup_arrive",
        "warpgroup_commit_batch",
        "warpgroup_fence_operand",
        "warpgroup_wait",
        "wgmma_gemm_sp",
        "wgmma_mma",
        "writes",
        "float4_e2m1_unpacked",
        "Assert",
        "Broadcast",
        "Else",
        "If",
        "Ramp",
        "Then",
        "Var",
        "While",
        "__ldg",
        "bfloat16x2",
        "bind",
        "block",
        "buffer_store",
        "env_thread",
        "float16x2",
        "float32x2",
        "float32x4",
        "float32x8",
        "let",
        "mfma",
        "ptx_fence_barrier_init",
        "sblock",
        "thread_return",
        "tvm_call_cpacked",
        "tvm_mfma",
    ]
)
