__global__ void arg_max(const float *x, long long *index, int n) {
    typedef struct { float v; int i; } Best;
    Best best = {-INFINITY, 0};
    for (int i = threadIdx.x; i < n; i += warpSize) if (x[blockIdx.x * n + i] > best.v) best = {x[blockIdx.x * n + i], i};
    for (int o = 16; o > 0; o >>= 1) {
        float v = __shfl_down_sync(0xffffffff, best.v, o);
        int i = __shfl_down_sync(0xffffffff, best.i, o);
        if (v > best.v || (v == best.v && i < best.i)) best = {v, i};
    }
    if (!threadIdx.x) index[blockIdx.x] = best.i;
}
