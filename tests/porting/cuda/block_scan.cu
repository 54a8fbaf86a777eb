__global__ void block_scan(const int *in, int *out, int n) {
    extern __shared__ int temp[];
    int t = threadIdx.x, offset = 1;
    temp[2 * t] = in[2 * t];
    temp[2 * t + 1] = in[2 * t + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) { int ai = offset * (2 * t + 1) - 1, bi = offset * (2 * t + 2) - 1; temp[bi] += temp[ai]; }
        offset *= 2;
    }
    if (t == 0) temp[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int ai = offset * (2 * t + 1) - 1, bi = offset * (2 * t + 2) - 1;
            int keep = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] += keep;
        }
    }
    __syncthreads();
    out[2 * t] = temp[2 * t];
    out[2 * t + 1] = temp[2 * t + 1];
}
