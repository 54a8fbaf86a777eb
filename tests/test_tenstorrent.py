"""The functions of TileLang's documents, and the documents' GEMM word for word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import copy_block, gemm
from ttexplore import tenstorrent as tt
from ttexplore.errors import UsageError
from ttexplore.target import TARGETS

GEMM = """
import tilelang.language as T
BLOCK = 32

@T.prim_func
def gemm(A: T.Buffer((M, K), "bf16"),
         B: T.Buffer((K, N), "bf16"),
         C: T.Buffer((M, N), "bf16")):
    Mt, Nt, Kt = T.ceildiv(M, BLOCK), T.ceildiv(N, BLOCK), T.ceildiv(K, BLOCK)
    with T.Kernel(grid_x=Nt, grid_y=Mt, threads=(32, 4)) as (bx, by):
        i0, j0 = by * BLOCK, bx * BLOCK
        Cacc = T.alloc_fragment((BLOCK, BLOCK), "bf16"); T.fill(Cacc, 0)
        for kk in range(Kt):
            Ablk = T.alloc_shared((BLOCK, BLOCK), "bf16")
            Bblk = T.alloc_shared((BLOCK, BLOCK), "bf16")
            T.copy(T.region(A[i0, kk*BLOCK], "r", BLOCK, BLOCK), Ablk)
            T.copy(T.region(B[kk*BLOCK, j0], "r", BLOCK, BLOCK), Bblk)
            T.gemm(Ablk, Bblk, Cacc)
        T.copy(Cacc, T.region(C[i0, j0], "w", BLOCK, BLOCK))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_documents_gemm(target: str, tmp_path: Path) -> None:
    file = tmp_path / "gemm.py"
    file.write_text("M, N, K = 128, 96, 64\n" + GEMM)
    exploration = ttx.explore(f"{file}::gemm", target=target)
    assert exploration.check()
    a, b = (one.astype(np.float64) for one in exploration.inputs())
    run = exploration.run()
    assert np.corrcoef(run.outputs[0].astype(np.float64).ravel(), (a @ b).ravel())[0, 1] > 0.9999


def test_the_documents_functions_give_the_files_of_an_exploration() -> None:
    kernel = tt.annotate_tt_schedule(gemm(), {"policy": "block_linear", "order": "block_linear(2)"})
    mod = tt.apply_tt_defaults(kernel, options={"cores": (2, 1)})
    assert (mod.steps, mod.plan.layouts) == (1, ())
    mod = tt.apply_tt_metadata_passes(mod)
    assert mod.plan.partition is not None
    assert mod.plan.partition.policy == "block_linear"
    assert mod.plan.signature == ()
    mod = tt.verify_tt_ir(tt.run_pipeline(mod))
    assert mod.program.is_split
    artifacts = tt.emit_tt_artifacts(mod)
    exploration = ttx.explore(kernel, options={"cores": (2, 1)})
    assert artifacts == {name: listing.text for name, listing in exploration.files.items()}


def test_a_kernel_is_a_module_of_its_own(tmp_path: Path) -> None:
    artifacts = tt.emit_tt_artifacts(copy_block())
    assert {"reader.cpp", "compute.cpp", "writer.cpp", "main.cpp", "tt.plan.json"} <= set(artifacts)
    assert tt.apply_tt_defaults(tt.run_pipeline(copy_block())).steps == len(ttx.explore(copy_block()).steps)
    written = tt.write_artifacts_to_disk(artifacts, tmp_path)
    assert {path.name: path.read_text() for path in written} == artifacts


def test_what_is_no_kernel() -> None:
    with pytest.raises(UsageError, match="7 is no kernel but int"):
        tt.run_pipeline(7)
    program = ttx.explore(copy_block()).steps[3].after
    with pytest.raises(UsageError, match=r"a program of ttexplore\.explore has gone through its steps already"):
        tt.run_pipeline(program)
    with pytest.raises(UsageError, match="there is no policy 'stried'"):
        tt.apply_tt_metadata_passes(tt.apply_tt_defaults(copy_block(), options={"policy": "stried"}))
