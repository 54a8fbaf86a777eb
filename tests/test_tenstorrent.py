"""The functions of TileLang's documents, and the documents' GEMM word for word."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm  # noqa: TID251 - its modules are taken, too

import ttexplore as ttx
from tests.corpus import copy_block, gemm
from tests.steps import LETTERS
from ttexplore import tenstorrent as tt
from ttexplore.errors import ResourceError, UsageError
from ttexplore.language.load import load_module
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


# The documents' own, where they show how the functions are called.
SNIPPET = """
import tvm
import tilelang.language as T
import tilelang.tenstorrent as tt

M, N = 64, 96

@T.prim_func
def matmul(A: T.Buffer((M, 64), "bf16"), B: T.Buffer((64, N), "bf16"), C: T.Buffer((M, N), "bf16")):
    with T.Kernel(T.ceildiv(M, 32), T.ceildiv(N, 32)) as (bx, by):
        a = T.alloc_shared((32, 64), "bf16")
        b = T.alloc_shared((64, 32), "bf16")
        c = T.alloc_fragment((32, 32), "bf16")
        T.clear(c)
        T.copy(A[bx * 32, 0], a)
        T.copy(B[0, by * 32], b)
        T.gemm(a, b, c)
        T.copy(c, C[bx * 32, by * 32])

# Apply TT backend
mod = tvm.IRModule.from_expr(matmul)
mod = tt.apply_tt_defaults(mod)         # Inject TT annotations
mod = tt.apply_tt_metadata_passes(mod)  # Lower to persistent + CBs
artifacts = tt.emit_tt_artifacts(mod)   # Generate reader/compute/writer
"""


def test_the_documents_snippet(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    module = load_module(file)
    assert isinstance(module.mod, tt.Module)
    count = f"{LETTERS.index('C1') + 1} of {len(LETTERS)} steps"
    assert repr(module.mod) == f"<module of matmul for wormhole_n150: {count}, after C1 lower_shared_to_cb>"
    assert "for item in range(work_count):" in str(module.mod)
    assert '"tt.cb"' in str(module.mod)
    exploration = module.mod.explore()
    assert exploration.check()
    assert module.artifacts == {name: listing.text for name, listing in exploration.files.items()}
    assert "tilelang" not in sys.modules
    assert "tilelang.tenstorrent" not in sys.modules


def test_a_module_shows_itself() -> None:
    mod = tt.apply_tt_defaults(gemm(), options={"cores": (2, 1)}, target="blackhole_p100")
    assert repr(mod) == f"<module of plain for blackhole_p100: 1 of {len(LETTERS)} steps, after A0 apply_defaults>"
    html = mod._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "&lt;module of plain" in html
    assert "alloc_buffer" in html
    exploration = mod.explore()
    assert (exploration.target.name, exploration.options) == ("blackhole_p100", {"cores": (2, 1)})
    assert exploration.plan.partition is not None
    assert len(exploration.plan.partition.cores) == 2


def test_verification_of_a_module_that_is_not_lowered() -> None:
    """A kernel that needs 16 MB of L1 is refused before its first step, too; one that fits comes back as it was."""
    large = gemm(2048, 2048, 2048, 1024, 1024, 1024)
    for mod in (large, tt.apply_tt_defaults(large)):
        with pytest.raises(ResourceError, match="B of L1; a core of wormhole_n150 has 1,393,312 B"):
            tt.verify_tt_ir(mod)
    assert tt.verify_tt_ir(tt.apply_tt_defaults(gemm())).steps == 1


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("infer_default_tt_schedule", "B1"), ("infer_default_tt_shard", "A1"), ("grid_to_persistent_tt", "B2"),
        ("tt_tiles_to_core_map", "B1"), ("memory_space_lower_tt", "C1"), ("tile_pad_tt", "A1"),
        ("lower_gemm_to_tt_intrinsics", "C2"), ("infer_tt_layout_v5", "A1"), ("LowerGemmToTTIntrinsics", "C2"),
        ("layout_aware_work_partition_tt_v5", "B1"), ("finalize_persistent_signature_tt", "E1"),
    ],
)  # fmt: skip
def test_passes_by_the_documents_names(name: str, letter: str) -> None:
    """As functions of a kernel, and among the steps of an exploration, of a saved one, too."""
    exploration = ttx.explore(copy_block())
    assert exploration.steps[name].letter == letter
    assert getattr(exploration.steps, name).letter == letter
    mod = getattr(tt, name)(copy_block())
    assert mod.steps == [step.letter for step in exploration.steps].index(letter) + 1
    assert mod.plan == exploration.steps[letter].plan


def test_names_that_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="has no 'apply_tt_default'; did you mean apply_tt_defaults"):
        _ = tt.apply_tt_default
    with pytest.raises(AttributeError, match="has no 'zzz'; use one of Module, TTShard"):
        _ = tt.zzz
    with pytest.raises(ImportError, match="has no 'apply_tt_default'; did you mean apply_tt_defaults"):
        from ttexplore.tenstorrent import apply_tt_default  # noqa: F401  # pyright: ignore
    with pytest.raises(UsageError, match="there is no step 'grid_to_cor_grid'") as caught:
        _ = ttx.explore(copy_block()).steps["grid_to_cor_grid"]
    assert caught.value.hint.startswith("did you mean grid_to_core_grid? steps are A0, A1")


def test_modules_of_tvm() -> None:
    exploration = ttx.explore(tvm.IRModule.from_expr(tt.annotate_tt_schedule(gemm(), {"policy": "strided"})))
    assert exploration.plan.options["policy"] == "strided"
    with pytest.raises(UsageError, match="the module holds 0 functions, of which 0 are kernels"):
        tt.run_pipeline(tvm.IRModule({}))
    with pytest.raises(UsageError, match="PrimFunc is a kernel of the installed TileLang or TVM") as caught:
        ttx.explore(copy_block().traced.function)
    assert "import ttexplore.language as T" in caught.value.hint


def test_what_is_no_kernel() -> None:
    with pytest.raises(UsageError, match="7 is not a kernel but a value of type int"):
        tt.run_pipeline(7)
    program = ttx.explore(copy_block()).steps[3].after
    with pytest.raises(UsageError, match=r"a program from ttexplore\.explore is lowered already"):
        tt.run_pipeline(program)
    with pytest.raises(UsageError, match="there is no policy 'stried'"):
        tt.apply_tt_metadata_passes(tt.apply_tt_defaults(copy_block(), options={"policy": "stried"}))
