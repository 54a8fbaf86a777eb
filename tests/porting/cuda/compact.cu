__global__ void compact(const int *x, int *y, int *count) {
    __shared__ int totals[2];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, v = x[threadIdx.x];
    unsigned votes = __ballot_sync(0xffffffff, v > 0);
    int before = __popc(votes & ((1u << lane) - 1));
    if (lane == 0) totals[warp] = __popc(votes);
    int all = __syncthreads_count(v > 0);
    if (v > 0) y[before + (warp ? totals[0] : 0)] = v;
    if (threadIdx.x == 0) *count = all;
}
