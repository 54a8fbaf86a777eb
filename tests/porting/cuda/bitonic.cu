__global__ void bitonic(float *values) {
    extern __shared__ float shared[];
    const unsigned int tid = threadIdx.x;
    shared[tid] = values[tid];
    __syncthreads();
    for (unsigned int k = 2; k <= blockDim.x; k *= 2)
        for (unsigned int j = k / 2; j > 0; j /= 2) {
            unsigned int ixj = tid ^ j;
            if (ixj > tid) {
                bool up = (tid & k) == 0;
                if (up ? shared[tid] > shared[ixj] : shared[tid] < shared[ixj]) {
                    float t = shared[tid]; shared[tid] = shared[ixj]; shared[ixj] = t;
                }
            }
            __syncthreads();
        }
    values[tid] = shared[tid];
}
