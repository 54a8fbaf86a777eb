__global__ void rope(float *x, const int *positions, const float *cosines, const float *sines, int heads, int half) {
    int token = blockIdx.x, head = blockIdx.y, i = threadIdx.x;
    if (i >= half) return;
    float c = cosines[positions[token] * half + i], s = sines[positions[token] * half + i];
    float *row = x + (token * heads + head) * 2 * half;
    float a = row[i], b = row[i + half];
    row[i] = a * c - b * s;
    row[i + half] = b * c + a * s;
}
