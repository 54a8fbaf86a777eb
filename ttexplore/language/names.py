"""Names of TileLang's language that no rule lowers yet: they exist, and are refused where a kernel uses them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from ttexplore.errors import Unsupported

# The builder of the kernel that is being traced, a ttexplore.language.builder.Builder.
CURRENT: ContextVar[Any] = ContextVar("kernel being traced", default=None)

HINT_CONSTANT_SIZES = "give the kernel constant sizes: pass them as arguments of a factory, or use T.const"
_HINTS = {
    "get_thread_binding": "a Tensix core has no threads: write the block with T.Parallel",
    "sync_threads": "leave it out: copies and circular buffers order themselves on a Tensix core",
    "atomic_add": "let one block own each output element, and loop over the parts of its sum",
    "call_extern": "write it in the language itself",
}


class NotLowered:
    """A name of the language that is not lowered. Using it inside a kernel raises Unsupported at that line; outside
    of kernels (decorators, module-level values of an example file) it stands for itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()
        return NotLowered(f"{self.name}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.refuse()
        if len(args) == 1 and not options and callable(args[0]):
            return args[0]
        return NotLowered(self.name)

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return (object,)

    def __repr__(self) -> str:
        return f"T.{self.name}"

    @property
    def hint(self) -> str:
        """What to write instead."""
        return _HINTS.get(self.name.partition(".")[0], "write this part with copies, gemm and T.Parallel")

    def refuse(self) -> None:
        """Raises Unsupported where a kernel is being traced."""
        if CURRENT.get() is not None:
            raise Unsupported(f"T.{self.name} is not lowered", hint=self.hint)


def _operator(self: NotLowered, *_operands: Any) -> NotLowered:
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
setattr(NotLowered, "__exit__", lambda *_: None)  # noqa: B010 - beside __enter__, made above


class UnknownName(AttributeError):
    """A name that the language does not have. `hint` may say what was meant."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        close = difflib.get_close_matches(name, [key for key in known if not key.startswith("_")], 1)
        self.hint = f"did you mean T.{close[0]}?" if close else "see the names in dir(ttexplore.language)"
        super().__init__(f"T.{name} does not exist; {self.hint}" if close else f"T.{name} does not exist")
        self.message = f"T.{name} does not exist"


def hint_only(name: str) -> Callable[..., None]:
    """A name that tells a GPU compiler something and changes no result: accepted, with a note."""

    def hint(*_args: Any, **_options: Any) -> None:
        builder = CURRENT.get()
        if builder is not None:
            builder.note(f"T.{name} is a GPU hint without meaning here")

    hint.__name__ = hint.__qualname__ = name
    return hint


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
        "no_set_max_nreg",
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
        "Persistent",
        "PersistentTileScheduler",
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
        "WSID",
        "WSInstr",
        "WSOpRef",
        "WSPipeline",
        "WSRole",
        "WSSchedule",
        "WSScope",
        "WSSync",
        "WSSyncKind",
        "WarpSpecialize",
        "WarpSpecializeFrame",
        "abs2",
        "access_ptr",
        "activemask",
        "add2",
        "address_of",
        "align_up",
        "all_of",
        "all_sync",
        "alloc_barrier",
        "alloc_buffer",
        "alloc_cluster_barrier",
        "alloc_descriptor",
        "alloc_global",
        "alloc_reducer",
        "alloc_tcgen05_instr_desc",
        "alloc_tcgen05_instruction_desc",
        "alloc_tcgen05_smem_desc",
        "alloc_tmem",
        "alloc_wgmma_desc",
        "allocate",
        "annotate_safe_value",
        "annotate_ws_schedule",
        "any_of",
        "any_sync",
        "anylist_getitem",
        "anylist_resetitem",
        "anylist_setitem_call_cpacked",
        "anylist_setitem_call_packed",
        "arange",
        "assume",
        "async_copy",
        "atomic_add",
        "atomic_addx2",
        "atomic_addx4",
        "atomic_load",
        "atomic_max",
        "atomic_min",
        "atomic_or",
        "atomic_store",
        "attr",
        "ballot",
        "ballot_sync",
        "barrier_arrive",
        "barrier_wait",
        "block_attr",
        "block_rank_in_cluster",
        "c2d_im2col",
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
        "cummax",
        "cumsum",
        "deallocate_tmem",
        "decl_buffer",
        "device_assert",
        "dp4a",
        "end_profile_intrinsic",
        "evaluate",
        "extract_lane",
        "fast_rcp",
        "fence_proxy_async",
        "finalize_reducer",
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
        "get_thread_binding",
        "get_thread_bindings",
        "get_thread_extent",
        "get_thread_extents",
        "get_warp_group_idx",
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
        "im2col",
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
        "mbarrier_arrive",
        "mbarrier_arrive_expect_tx",
        "mbarrier_expect_tx",
        "mbarrier_wait_parity",
        "meta_class",
        "min2",
        "mma_gemm_blockscaled",
        "mma_store_index_map",
        "mul2",
        "named_barrier_arrive",
        "nextafter",
        "pdl_sync",
        "pdl_trigger",
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
        "reduce_bitand",
        "reduce_bitor",
        "reduce_bitxor",
        "reducer_init",
        "reducer_update",
        "reinterpret",
        "reshape",
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
        "sync_grid",
        "sync_threads",
        "sync_warp",
        "syncthreads_and",
        "syncthreads_count",
        "syncthreads_or",
        "target",
        "tcgen05_after_thread_sync",
        "tcgen05_before_thread_sync",
        "tcgen05_cp_warpx4",
        "tcgen05_gemm",
        "tcgen05_gemm_blockscaled",
        "tcgen05_gemm_sp",
        "tcgen05_mma",
        "tcgen05_mma_arrive",
        "tcgen05_mma_blockscaled",
        "tcgen05_sf_warp_transpose",
        "thread_binding",
        "tma_copy",
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
        "view",
        "vscale",
        "wait_wgmma",
        "warp_reduce_bitand",
        "warp_reduce_bitor",
        "warp_reduce_max",
        "warp_reduce_min",
        "warp_reduce_sum",
        "warpgroup_arrive",
        "warpgroup_commit_batch",
        "warpgroup_fence_operand",
        "warpgroup_wait",
        "wgmma_gemm",
        "wgmma_gemm_sp",
        "wgmma_mma",
        "writes",
        "ws",
        "ws_op",
        "float4_e2m1_unpacked",
    ]
)
