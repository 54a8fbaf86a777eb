"""Running kernels in CUDA C++ on the CPU."""

from ttexplore.porting.proof.cuda.runner import cuda_runner

__all__ = ["cuda_runner"]
