// Illustrative: the kernel in the style of the Tessera skeleton of TileLang's porting document.
// Nothing compiles this text; the exported C++ of ttexplore is what runs.
__global__ void gemm_gelu(const bf16* A, const bf16* B, bf16* Out) {
  pipeline_t pipe;
  const int bx = blockIdx.x;  // 2 blocks
  const int by = blockIdx.y;  // 2 blocks
  __shared__ smem_t<tile<bf16, 64, 32>, 2> a;
  __shared__ smem_t<tile<bf16, 32, 64>, 2> b;
  tile<float, 64, 64> c;
  c = tile_zero<tile<float, 64, 64>>();
  for (int k = 0; k < 4; ++k) {
    async_copy_2d(a[k % 2], &A[(by * 64) * 128 + k * 32], 128);
    async_copy_2d(b[k % 2], &B[(k * 32) * 128 + bx * 64], 128);
    pipe.commit();
    pipe.wait();
    c = mma_sync(c, smem_load<tile<bf16, 64, 32>>(a[k % 2]), smem_load<tile<bf16, 32, 64>>(b[k % 2]));
  }
  tile_for<64, 64>([&](int i, int j) {
    c(i, j) = (0.5f * c(i, j)) * (1.0f + erf(c(i, j) * 0.70710678f));
  });
  global_store(c, &Out[(by * 64) * 128 + bx * 64], 128);
}
