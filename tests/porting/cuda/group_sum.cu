using namespace cooperative_groups;
__global__ void group_sum(const float *x, float *sums, int *votes) {
    thread_block block = this_thread_block();
    auto tile = tiled_partition<8>(block);
    float v = x[block.thread_rank()];
    for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
    unsigned positive = tile.ballot(x[block.thread_rank()] > 0);
    block.sync();
    if (tile.thread_rank() == 0) { sums[tile.meta_group_rank()] = v; votes[tile.meta_group_rank()] = __popc(positive); }
}
