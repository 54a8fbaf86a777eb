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

__global__ void __launch_bounds__(64) block_softmax(const float* inp, float* out, int N, int C) {
    extern __shared__ float shared[];
    int idx = blockIdx.x, tid = threadIdx.x, warpId = tid / 32, laneId = tid % 32, warps = blockDim.x / 32;
    float* maxvals = shared;
    float* sumvals = &shared[warps];
    const float* x = inp + idx * C;
    float maxval = -INFINITY;
    for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
    maxval = warpReduceMax(maxval);
    if (laneId == 0) maxvals[warpId] = maxval;
    __syncthreads();
    if (tid == 0) {
        float val = maxvals[tid];
        for (int i = 1; i < warps; i++) val = fmaxf(val, maxvals[i]);
        maxvals[0] = val;
    }
    __syncthreads();
    float offset = maxvals[0];
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = expf(x[i] - offset);
    float sumval = 0.0f;
    for (int i = tid; i < C; i += blockDim.x) sumval += out[idx * C + i];
    sumval = warpReduceSum(sumval);
    if (laneId == 0) sumvals[warpId] = sumval;
    __syncthreads();
    if (tid == 0) {
        float val = sumvals[tid];
        for (int i = 1; i < warps; ++i) val += sumvals[i];
        sumvals[0] = val;
    }
    __syncthreads();
    float sum = sumvals[0];
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = out[idx * C + i] / sum;
}
