template <typename T>
__device__ __forceinline__ T warpReduceSum(T val) {
    #pragma unroll
    for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
    return val;
}
__inline__ __device__ float warpReduceMax(float val) {
    for (int mask = 16; mask > 0; mask >>= 1) val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFFu, val, mask));
    return val;
}
template <typename T>
__device__ T blockReduceSum(T val) {
    static __shared__ T shared[32];
    int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : T(0);
    if (wid == 0) val = warpReduceSum(val);
    return val;
}

__global__ void block_sum(const float *in, float *out, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[blockIdx.x * n + i];
    sum = blockReduceSum<float>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
