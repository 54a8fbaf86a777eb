"""docs/names.md is true: each name of its tables is found, exists, or stands in an emitted text."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.corpus import CORPUS, gemm
from tests.corpus.sizes import any_size_gemm
from ttexplore import tenstorrent
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.plan import Plan
from ttexplore.session.pass_names import OLDER, pass_name

PAGE = (Path(__file__).parents[1] / "docs" / "names.md").read_text(encoding="utf-8")


def rows(title: str) -> list[tuple[list[str], list[str], str]]:
    """The documents' names, ours, and the whole text of the second column, of each row below a title."""
    table = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found: list[tuple[list[str], list[str], str]] = []
    for line in table.split("\n"):
        if line.startswith("| ") and not line.startswith("| in the documents"):
            theirs, ours, why = (part.strip() for part in line.strip("|").split("|"))
            assert why, line
            found.append((re.findall("`([^`]+)`", theirs), re.findall("`([^`]+)`", ours), ours))
    assert found, title
    return found


# What the documents call their passes, wherever they do.
IN_THE_DOCUMENTS = [
    "apply_tt_defaults",
    "infer_default_tt_schedule",
    "infer_default_tt_shard",
    "grid_to_persistent_tt",
    "tt_tiles_to_core_map",
    "memory_space_lower_tt",
    "tile_pad_tt",
    "lower_gemm_to_tt_intrinsics",
    "LowerGemmToTTIntrinsics",
    "InferTTLayout",
    "PropagateTTLayout",
    "LayoutAwareWorkPartitionTT",
    "SplitTTKernels",
    "infer_tt_layout_v5",
    "propagate_tt_layout_v5",
    "attach_tensor_accessor_tt",
    "layout_aware_work_partition_tt_v5",
    "grid_to_core_grid_v5",
    "lower_shared_to_cb_v5",
    "lower_tt_tile_intrinsics_v5",
    "build_tile_dfg_tt",
    "split_device_kernel",
    "configure_tensor_accessor_tt",
    "lower_cb_intrinsics",
    "insert_compute_init_tt",
    "insert_dst_management_tt",
    "finalize_persistent_signature_tt",
]


def test_passes() -> None:
    steps = ttx.explore(gemm()).steps
    told: set[str] = set()
    for theirs, ours, text in rows("Passes"):
        letter, (own,) = text.partition(" ")[0], ours
        assert theirs
        for name in theirs:
            assert (steps[name].letter, steps[name].name, pass_name(name)) == (letter, own, own)
        told |= {*theirs, own}
    assert told >= {step.name for step in PIPELINE}
    assert told >= set(IN_THE_DOCUMENTS)
    assert set(OLDER.values()) <= {step.name for step in PIPELINE}
    assert {pass_name(name) for name in told} == {step.name for step in PIPELINE}


def test_functions() -> None:
    told: set[str] = set()
    for theirs, ours, _ in rows("Functions"):
        assert ours
        for name in ours:
            module, _, own = name.partition(".")
            assert module == "tenstorrent"
            assert hasattr(tenstorrent, own)
            told.add(own)
        if len(ours) == len(theirs) and ours != ["tenstorrent.Module"]:
            assert [name.partition("(")[0] for name in theirs] == [name.partition(".")[2] for name in ours]
    assert told == set(tenstorrent.__all__)


def test_the_page_of_the_device_names_the_sdk() -> None:
    page = (Path(__file__).parents[1] / "docs" / "device.md").read_text(encoding="utf-8")
    versions = set(re.findall(r"\b\d+\.\d+\.\d+\b", ttx.explore(gemm()).files["main.cpp"].text))
    assert versions == {"0.81.1"}
    assert "Exports target ttnn and tt-metal 0.81.1" in page
    assert "written for\nttnn 0.81.1" in PAGE


def test_runtime_arguments() -> None:
    explorations = [
        ttx.explore(gemm()), ttx.explore(gemm(), options={"policy": "rectangular"}), ttx.explore(any_size_gemm()),
    ]  # fmt: skip
    signatures = [signature for one in explorations for signature in one.plan.signature]
    arguments = {one.name for signature in signatures for one in (*signature.common_runtime, *signature.runtime)}
    for _, ours, text in rows("Runtime arguments"):
        assert set(ours) <= arguments
        assert ours or text == "none"
    assert "`size_k`" in PAGE
    assert "size_k" in arguments


def test_facts() -> None:
    fields = {field.name for field in dataclasses.fields(Plan)}
    for _, ours, _ in rows("Facts"):
        (name,) = ours
        assert name.removeprefix("plan.") in fields


def test_device_functions() -> None:
    """Ours stand in the emitted texts, the documents' own do not, unless they are the same."""
    texts = [
        listing.text
        for case in CORPUS if case.name in ("gemm_in_dst", "gemm_reload", "exp_fp32", "copy_bf16")
        for name, listing in ttx.explore(case.make()).files.items() if name.endswith(".cpp")
    ]  # fmt: skip
    told: set[str] = set()
    for theirs, ours, text in rows("Device functions"):
        assert ours or text == "none"
        for name in ours:
            call = name.partition("(")[0].removeprefix("a_buffer").removeprefix("void ") + "("
            assert any(call in text for text in texts), name
            told.add(call)
        for name in theirs:
            call = name.partition("(")[0].removeprefix("void ") + "("
            if call not in told:
                assert not any(re.search(rf"(?<![\w.]){re.escape(call)}", text) for text in texts), name


@pytest.mark.parametrize("transposed", [False, True])
def test_products_stand_in_the_plan(transposed: bool) -> None:
    """By circular buffer, and in tiles, each with its line."""
    exploration = ttx.explore(gemm(128, 64, 96, 64, 32, 96, tb=transposed))
    (product,) = exploration.plan.products
    assert (product.rows, product.depth, product.columns, product.transpose_b) == (2, 3, 1, transposed)
    assert [exploration.plan.buffer(name).index for name in (product.a, product.b)] == [0, 1]
    assert product.out == "c"
    assert product.origin is not None
    line = Path(product.origin.file).read_text(encoding="utf-8").split("\n")[product.origin.line - 1]
    assert "T.gemm(" in line
    assert exploration.steps["C1"].plan.products == ()
