template <unsigned int blockSize> __device__ void last(volatile float *s, unsigned int tid) {
    if (tid < 32) {
        for (int o = 32; o > 0; o >>= 1) { float v = s[tid] + s[tid + o]; __syncwarp(); s[tid] = v; __syncwarp(); }
    }
}
template <unsigned int blockSize> __global__ void volatile_free(float *in, float *out, unsigned n) {
    __shared__ float s[blockSize + 32];
    s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 32) s[blockSize + threadIdx.x] = 0;
    __syncthreads();
    if (blockSize >= 128) { if (threadIdx.x < 64) s[threadIdx.x] += s[threadIdx.x + 64]; __syncthreads(); }
    last<blockSize>(s, threadIdx.x);
    if (threadIdx.x == 0) out[0] = s[0];
}
