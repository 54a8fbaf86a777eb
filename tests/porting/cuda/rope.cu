template <typename scalar_t>
inline __device__ void apply(scalar_t* __restrict__ arr, const scalar_t* __restrict__ cos_ptr,
                             const scalar_t* __restrict__ sin_ptr, int rot_offset, int embed_dim) {
    const int x_index = rot_offset, y_index = embed_dim + rot_offset;
    const scalar_t c = __ldg(cos_ptr + x_index), s = __ldg(sin_ptr + x_index);
    const scalar_t x = arr[x_index], y = arr[y_index];
    arr[x_index] = x * c - y * s;
    arr[y_index] = y * c + x * s;
}
template <typename scalar_t>
__global__ void rope(const int64_t* __restrict__ positions, scalar_t* __restrict__ query,
                     const scalar_t* __restrict__ cache, const int rot_dim, const int num_heads) {
    const int token_idx = blockIdx.x;
    int64_t pos = positions[token_idx];
    const scalar_t* cache_ptr = cache + pos * rot_dim;
    const int embed_dim = rot_dim / 2, nq = num_heads * embed_dim;
    for (int i = threadIdx.x; i < nq; i += blockDim.x) {
        const int head_idx = i / embed_dim;
        const int64_t token_head = int64_t(token_idx) * num_heads * rot_dim + head_idx * rot_dim;
        apply<scalar_t>(query + token_head, cache_ptr, cache_ptr + embed_dim, i % embed_dim, embed_dim);
    }
}
