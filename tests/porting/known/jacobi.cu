__global__ void jacobi(const float *old_grid, float *new_grid, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
        new_grid[y * nx + x] = 0.25f * (old_grid[y * nx + x - 1] + old_grid[y * nx + x + 1]
                                        + old_grid[(y - 1) * nx + x] + old_grid[(y + 1) * nx + x]);
    }
}
