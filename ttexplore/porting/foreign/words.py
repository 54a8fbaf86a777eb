"""The words of GPU kernels by the row of the porting table that they belong to, beyond those that the rows show."""

from __future__ import annotations

from ttexplore.porting.patterns import PATTERNS

# Names in triton.language, by row.
TRITON: dict[str, str] = {
    "launch grid": "program_id num_programs cdiv",
    "threads and warps": "arange num_warps num_ctas",
    "persistent kernel": "range",
    "sizes known at launch": "constexpr static_assert multiple_of max_contiguous static_range assume max_constancy",
    "tensor in global memory": "load store make_block_ptr advance pointer_type",
    "tensor descriptor": "make_tensor_descriptor _experimental_descriptor_load _experimental_descriptor_store "
    "_experimental_make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor",
    "barrier of a block": "debug_barrier",
    "fragments": "zeros full zeros_like full_like",
    "product on the tensor core": "dot",
    "transposed operand": "trans permute",
    "atomics and split-K": "atomic_add atomic_max atomic_min atomic_cas atomic_xchg atomic_and atomic_or",
    "element-wise arithmetic": "exp exp2 log log2 sqrt rsqrt sqrt_rn div_rn fdiv sin cos abs maximum minimum max min "
    "sigmoid erf fma floor ceil clamp tanh umulhi asin acos atan sinh cosh asinh acosh atanh pow",
    "broadcast of a row or column": "expand_dims broadcast_to broadcast reshape view ravel",
    "reductions": "sum max min reduce argmax argmin xor_sum",
    "scans": "cumsum cumprod associative_scan",
    "conversion of dtypes": "cast float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "int1 float8e5 float8e4nv float8e4b15 float8e4b8 float8e5b16 tensor dtype",
    "masks from indices": "where",
    "RoPE": "split join interleave cat",
    "softmax": "softmax",
    "order of blocks": "swizzle2d",
    "debugging": "device_print device_assert static_print",
    "inline assembly": "inline_asm_elementwise",
}

# Names of CUDA C++ by row: built-in variables, qualifiers, types and functions.
CUDA: dict[str, str] = {
    "launch grid": "blockIdx gridDim <<<>>> dim3 uint3",
    "threads and warps": "threadIdx blockDim warpSize __activemask thread_rank size thread_index group_index "
    "meta_group_size block_tile_memory thread_block thread_block_tile this_thread_block tiled_partition "
    "num_threads meta_group_rank",
    "occupancy": "__launch_bounds__ __maxnreg__",
    "barrier of the whole grid": "this_grid grid_group grid_sync __threadfence __threadfence_system",
    "sizes known at launch": "__global__ __device__ __host__ __forceinline__ __noinline__ __constant__ "
    "__CUDA_ARCH__ __grid_constant__ #pragma",
    "tensor in global memory": "__restrict__ __ldg __ldcs __stcs",
    "tensor descriptor": "CUtensorMap",
    "shared memory": "__shared__ __align__ alignas __cvta_generic_to_shared",
    "asynchronous copy": "cp.async memcpy_async __pipeline_memcpy_async cp.async.bulk.tensor aligned_size_t",
    "software pipeline": "pipeline make_pipeline pipeline_shared_state thread_scope_thread thread_scope_block "
    "producer_acquire producer_commit consumer_wait consumer_release consumer_wait_prior quit "
    "pipeline_consumer_wait_prior "
    "__pipeline_commit __pipeline_wait_prior thread_scope pipeline_role pipeline_producer_commit cp.async.commit_group "
    "cp.async.wait_group make_pipeline",
    "mbarriers": "mbarrier.arrive mbarrier.try_wait barrier arrive arrive_and_wait wait init awbarrier",
    "barrier of a block": "__syncthreads __syncwarp sync __syncthreads_or __syncthreads_and __syncthreads_count",
    "fragments": "load_matrix_sync store_matrix_sync fragment accumulator matrix_a matrix_b num_elements",
    "start of an accumulator": "fill_fragment",
    "product on the tensor core": "mma_sync mma.sync wgmma.mma_async precision",
    "layout of shared memory": "ldmatrix row_major mem_row_major mem_col_major layout_t",
    "transposed operand": "col_major",
    "atomics and split-K": "atomicAdd atomicMax atomicMin atomicCAS atomicExch atomicInc atomicDec atomicOr atomicAnd "
    "atomicXor atomicSub",
    "element-wise arithmetic": "expf exp __expf exp2f logf log log2f __logf sqrtf sqrt rsqrtf rsqrt sinf cosf sin cos "
    "tanhf tanh fabsf fabs abs fmaxf fminf fmax fmin max min fmaf fma powf pow __fdividef erff float2 float4 int2 int4 "
    "uint2 uint4 make_float2 make_float4 make_int2 make_int4 make_uint4 copysignf __mul24 __umul24 __fmaf_rn __hadd "
    "__hmul __hfma uchar4 copysign floorf ceilf double2 double4 int3 __shfl_exp",
    "reductions": "__shfl_down_sync __shfl_xor_sync __shfl_down __shfl_xor __reduce_add_sync __reduce_max_sync "
    "shfl_down shfl_xor reduce plus BlockReduce WarpReduce __ballot_sync __any_sync __all_sync __shfl_sync shfl",
    "scans": "BlockScan WarpScan inclusive_scan exclusive_scan __shfl_up_sync shfl_up __shfl_up",
    "conversion of dtypes": "half __half __half2 half2 __nv_bfloat16 nv_bfloat16 __nv_bfloat162 bf16 __float2bfloat16 "
    "__bfloat162float __float2half __half2float __float2half_rn __int2float_rn tf32 __float_to_tf32 __nv_fp8_e4m3 "
    "__float22bfloat162_rn __ushort_as_bfloat16",
    "debugging": "printf assert __trap clock clock64",
    "inline assembly": "asm",
}

# Names of ThunderKittens by row, without kittens:: and the groups of threads that run them.
KITTENS: dict[str, str] = {
    "launch grid": "coord task_iter",
    "threads and warps": "warpid laneid group WARP_THREADS WARPGROUP_WARPS groupid WARPGROUP_THREADS threadIdx",
    "specialized warps": "increase_registers decrease_registers producer_registers consumer_registers "
    "producer_setup_args producer_load_args producer_store_args consumer_setup_args consumer_compute_args "
    "consumer_finish_args common_setup_args producer consumer warpgroup::",
    "tensor in global memory": "gl load store rows cols depth batch",
    "shared memory": "shared_allocator allocate alignment_dummy st sv tma_swizzle_allocator tma_allocator",
    "layout of shared memory": "st_bf st_fl st_hf st_fp8e4m3 sv_bf sv_fl subtile_inplace st_subtile swizzle",
    "asynchronous copy": "load_async store_async tma prefetch store_add_async",
    "software pipeline": "load_async_wait store_async_wait store_async_read_wait store_commit_group "
    "store_async_read_wait lcf lcsf",
    "mbarriers": "semaphore init_semaphore expect_bytes expect arrive wait arrive_and_wait barrier",
    "barrier of a block": "sync __syncthreads __syncwarp everyone",
    "fragments": "rt rt_bf rt_fl rt_hf rv rv_fl rv_bf col_vec row_vec rt_fp8e4m3 col_l row_l",
    "start of an accumulator": "zero one neg_infty",
    "product on the tensor core": "mma_AB mm_AB mma_async_wait mma mma_commit mma_fence mma_wait "
    "mma_commit_group mm mma_async_commit",
    "transposed operand": "mma_ABt mm_ABt mma_AtB mm_AtB mma_AtBt mm_AtBt swap_layout transpose_sep transpose_inplace "
    "swap_layout_inplace",
    "element-wise arithmetic": "mul add sub div exp exp2 log log2 sqrt rsqrt max min abs relu unary_op bin_map",
    "broadcast of a row or column": "mul_row sub_row add_row div_row mul_col add_col sub_col div_col broadcast_row "
    "broadcast_col max_row",
    "reductions": "row_sum row_max col_sum col_max sum row_min",
    "sizes known at launch": "#pragma num_elements length",
    "conversion of dtypes": "copy __bfloat1622float2 __float22bfloat162_rn bf16 half fp8e4m3 base_types "
    "constants packing convertor bf16_2",
    "masks from indices": "make_causal make_causal_t tril triu right_fill left_fill",
}

# Names of Triton outside of triton.language.
TRITON_AROUND: dict[str, str] = {
    "tuning": "autotune Config heuristics",
    "sizes known at launch": "jit",
    "launch grid": "cdiv next_power_of_2",
}


def by_name(words: dict[str, str]) -> dict[str, str]:
    """The row of each name."""
    assert not set(words) - set(PATTERNS), sorted(set(words) - set(PATTERNS))
    return {name: row for row, names in words.items() for name in names.split()}
