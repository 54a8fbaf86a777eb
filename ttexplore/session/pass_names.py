"""The names of the passes in the two generations of TileLang's documents; docs/names.md explains them.

Names of the second generation are our names with the suffix ``_v5``, ``_tt`` or both. Names of the first generation are
listed here, with the corresponding pass.
"""

from __future__ import annotations

import re

OLDER: dict[str, str] = {
    "apply_tt_defaults": "apply_defaults",
    "infer_default_tt_shard": "infer_tt_layout",
    "tile_pad": "infer_tt_layout",
    "infer_default_tt_schedule": "layout_aware_work_partition",
    "tt_tiles_to_core_map": "layout_aware_work_partition",
    "grid_to_persistent": "grid_to_core_grid",
    "memory_space_lower": "lower_shared_to_cb",
    "lower_gemm_to_tt_intrinsics": "lower_tt_tile_intrinsics",
    "lower_to_sfpu": "lower_tt_tile_intrinsics",
    "split_tt_kernels": "split_device_kernel",
}


def pass_name(name: str) -> str:
    """Translate a pass name of the documents, such as ``GridToPersistentTT`` or ``infer_tt_layout_v5``, to our name.
    Other names are returned unchanged."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower() if "_" not in name else name
    words = words.removesuffix("_v5").removesuffix("_tt")
    return OLDER.get(words, words)
