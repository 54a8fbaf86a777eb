#define BM 64
#define BN 64
#define BK 8
#define TM 8
__global__ void sgemm(int M, int N, int K, const float *A, const float *B, float *C) {
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    int threadCol = threadIdx.x % BN, threadRow = threadIdx.x / BN;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    float results[TM] = {0.0f};
    for (int bk = 0; bk < K; bk += BK) {
        As[threadIdx.x] = A[(threadIdx.x / BK) * K + threadIdx.x % BK];
        Bs[threadIdx.x] = B[(threadIdx.x / BN) * N + threadIdx.x % BN];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (int k = 0; k < BK; ++k) {
            float b = Bs[k * BN + threadCol];
            for (int i = 0; i < TM; ++i) results[i] += As[(threadRow * TM + i) * BK + k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) C[(threadRow * TM + i) * N + threadCol] = results[i];
}
