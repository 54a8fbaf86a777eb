"""Names of TileLang's language that no rule lowers yet: they exist, and are refused where a kernel uses them."""

from __future__ import annotations

NOT_LOWERED = tuple(
    """
    Persistent Pipeline alloc_barrier alloc_cluster_barrier alloc_descriptor alloc_global alloc_reducer
    alloc_smem_offset alloc_tmem alloc_wgmma_desc all_of annotate_l2_hit_ratio annotate_restrict_buffers
    annotate_tt_layout annotate_tt_schedule annotate_tt_sharding any_of assume async_copy atomic_add atomic_addx2
    atomic_addx4 atomic_load atomic_max atomic_min atomic_store barrier_arrive barrier_wait bitwise_and bitwise_not
    bitwise_or bitwise_xor block_rank_in_cluster c2d_im2col call_extern call_intrin call_packed clamp
    cluster_sync cp_async_barrier_noinc cp_async_commit_group cp_async_wait_group create_list_of_mbarrier
    create_tma_descriptor cumsum dec_max_nreg device_assert dp4a dynamic eval exp10 fence_proxy_async finalize_reducer
    fma gemm_sp gemm_v1 gemm_v2 get_block_binding get_block_bindings get_lane_idx get_thread_binding
    get_thread_bindings get_warp_group_idx get_warp_idx get_warp_idx_sync im2col import_source inc_max_nreg
    initialize_wgmma_descriptor isfinite isinf isnan launch_thread ldg128 ldg32 ldg64 log10 log1p logical_and
    logical_not logical_or loop_break make_tensor match_buffer max_value mbarrier_arrive mbarrier_expect_tx
    mbarrier_wait_parity mbarrier_init min_value mma_sp no_set_max_nreg ptr print ptx_ldmatrix ptx_mma ptx_stmatrix
    reads reduce_all reduce_any reduce_bitand reduce_bitor reduce_bitxor reinterpret reshape round rng_init rng_rand
    set_max_nreg shfl_down shfl_sync shfl_up shfl_xor shift_left shift_right shuffle_elect stg128 stg32 stg64
    StridedTensor symbolic sync_global sync_grid sync_threads sync_warp tan tcgen05_gemm tcgen05_mma_arrive tma_copy
    tma_load tma_store tma_store_arrive tma_store_wait transpose trunc truncdiv truncmod tvm_access_ptr
    tvm_warp_shuffle tvm_storage_sync vectorized_copy view wait_wgmma warp_reduce_max warp_reduce_sum warpgroup_arrive
    warpgroup_commit_batch warpgroup_fence_operand warpgroup_wait wgmma_gemm writes while_loop ws
    """.split()
)
