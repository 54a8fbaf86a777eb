"""What bounds the number of blocks that a GPU runs at once, with sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """`processors` are streaming multiprocessors or compute units; each runs `blocks` and `threads` at once at most,
    with `shared_bytes` of shared memory, of which every block takes `block_bytes` more than it asks for."""

    name: str
    processor: str
    processors: int
    threads: int
    blocks: int
    shared_bytes: int
    block_bytes: int
    l2_bytes: int


# Per processor: docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html. Per chip: NVIDIA's
# whitepapers of the A100 and H100 (SXM5).
_A100 = Chip("A100", "SM", 108, 2048, 32, 164 << 10, 1 << 10, 40 << 20)
_H100 = Chip("H100", "SM", 132, 2048, 32, 228 << 10, 1 << 10, 50 << 20)
# rocm.docs.amd.com/en/latest/reference/gpu-specs.html; 2048 threads: 32 wavefronts of 64 on 4 units (AMD's CDNA3
# whitepaper), of which a block has at least one.
_MI300X = Chip("MI300X", "CU", 304, 2048, 32, 64 << 10, 0, 32 << 20)

# By the architecture that TileLang lowers for; of the others there is nothing to say.
CHIPS = {"sm_80": _A100, "sm_90": _H100, "sm_90a": _H100, "gfx942": _MI300X}
