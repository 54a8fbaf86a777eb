"""The GPU lane: the same kernel through TileLang's own pipeline for CUDA and HIP, in a process of its own."""
