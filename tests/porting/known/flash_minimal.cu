#define Bc 32
#define Br 32
__global__ void flash(const float *Q, const float *K, const float *V, int N, int d, float scale, float *l, float *m, float *O) {
    extern __shared__ float sram[];
    int tx = threadIdx.x, bh = blockIdx.x;
    float *Kj = sram, *Vj = sram + Bc * d;
    for (int j = 0; j < N / Bc; ++j) {
        for (int x = 0; x < d; ++x) {
            Kj[tx * d + x] = K[bh * N * d + (j * Bc + tx) * d + x];
            Vj[tx * d + x] = V[bh * N * d + (j * Bc + tx) * d + x];
        }
        __syncthreads();
        for (int i = 0; i < N / Br; ++i) {
            int row = bh * N + i * Br + tx;
            float before = m[row], total = l[row], best = -INFINITY, sum = 0.0f;
            float S[Bc];
            for (int y = 0; y < Bc; ++y) {
                float s = 0.0f;
                for (int x = 0; x < d; ++x) s += Q[row * d + x] * Kj[y * d + x];
                S[y] = s * scale;
                best = fmaxf(best, S[y]);
            }
            for (int y = 0; y < Bc; ++y) { S[y] = __expf(S[y] - best); sum += S[y]; }
            float next = fmaxf(before, best);
            float all = __expf(before - next) * total + __expf(best - next) * sum;
            for (int x = 0; x < d; ++x) {
                float pv = 0.0f;
                for (int y = 0; y < Bc; ++y) pv += S[y] * Vj[y * d + x];
                O[row * d + x] = (total * __expf(before - next) * O[row * d + x] + __expf(best - next) * pv) / all;
            }
            m[row] = next;
            l[row] = all;
        }
        __syncthreads();
    }
}
