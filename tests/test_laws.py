"""The laws of the lowering, on every kernel of the corpus."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import CORPUS, gemm
from tests.corpus.explored import CASES, NAMES, explored
from tests.steps import LETTERS
from tests.typecheck.lint import lint
from tests.typecheck.typecheck import typecheck
from ttexplore.plan import KERNEL_ROLES
from ttexplore.record import Span
from ttexplore.target import TARGETS, get_target


def test_each_kernel_has_a_name_of_its_own() -> None:
    """Of two kernels with one name, the laws would be checked on the second alone."""
    assert len(CASES) == len(CORPUS)


@pytest.mark.every_case
@pytest.mark.parametrize("name", NAMES)
def test_every_step_executes_and_the_emulator_agrees(name: str) -> None:
    """Law 2, and the emitted text on the emulator, for all steps and the default target."""
    exploration = explored(name)
    check = exploration.check()
    assert check, str(check)
    assert len(check.results) == len(LETTERS)
    run = exploration.run()
    assert run.passed, run.message
    # What rounding explains is found beside the same numbers.
    arrays, reference = exploration._inputs(None, 0), exploration.reference()
    explained = exploration._lowered.run(exploration.steps[0].before, arrays, unit=2.0**-10)
    for output, error, want in zip(explained.outputs, explained.errors, reference, strict=True):
        np.testing.assert_array_equal(output.astype(np.float64), want.astype(np.float64))
        # One below and one above each number.
        assert error.shape == (2, *want.shape)
        assert not np.isnan(error).any()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("policy", ["contiguous", "strided", "rectangular"])
@pytest.mark.parametrize("shape", [(256, 256, 128), (512, 64, 64)])
def test_gemm_on_every_target_and_policy(target: str, policy: str, shape: tuple[int, int, int]) -> None:
    """Square and tall products against the float64 product of the rounded inputs; uneven splits included."""
    m, n, k = shape
    kernel = gemm(m, n, k, 64, 32, 64, 2, out="float32")
    exploration = ttx.explore(kernel, target=target, options={"policy": policy, "cores": (3, 2)})
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    a, b = (x.astype(np.float64) for x in exploration.inputs())
    run = exploration.run()
    assert np.corrcoef(run.outputs[0].ravel(), (a @ b).ravel())[0, 1] >= 0.9999
    # The matrix unit aligns groups of products with some 13 bits, so errors are relative to the largest value.
    assert np.abs(run.outputs[0] - a @ b).max() <= 1e-3 * np.abs(a @ b).max()
    fast = exploration.run(arithmetic="fast")
    np.testing.assert_allclose(fast.outputs[0], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("accumulate", ["reload", "l1"])
def test_both_ways_to_accumulate(accumulate: str) -> None:
    kernel = gemm(128, 128, 128, 128, 128, 32)
    exploration = ttx.explore(kernel, options={"accumulate": accumulate, "cores": (1, 1)})
    assert exploration.check()
    assert exploration.run().passed
    assert exploration.plan.buffer("c_partials").total_bytes == 16 * 4096


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_emitted_kernels_type_check(name: str, target: str, ttnn_headers: Path) -> None:
    """Every emitted kernel against the SDK's own headers, and the list of what is never emitted."""
    exploration = explored(name, target)
    chip = get_target(target)
    plan = exploration.plan
    assert plan.compute is not None
    formats = {buffer.index: buffer.data_format for buffer in plan.buffers if buffer.index is not None}
    for role in KERNEL_ROLES:
        text = exploration.code[role].text
        words = [2, 2048] * len(plan.kernel_signature(role).compile_time)
        found = typecheck(
            text, role=role, arch=chip.arch, compile_time_args=words, named={}, formats=formats,
            fp32_dest_acc=plan.compute.fp32_dest_acc_en, headers=ttnn_headers, remember=True,
        )  # fmt: skip
        assert found == [], f"{role}: {found}\n{text}"
        assert lint(text, arch=chip.arch, dst_tiles=plan.compute.dst_tiles) == []


@pytest.mark.parametrize("name", NAMES)
def test_origins_never_shrink(name: str) -> None:
    """Law 4: every line of every listing that is a statement knows a line of the kernel."""
    exploration = explored(name)
    source = exploration.kernel.source
    lines = {origin.span.line for line in source.lines for origin in line.origins}
    for step in exploration.steps:
        for line in step.listing.lines:
            if line.node is not None and "alloc_buffer" not in line.text:
                assert line.origins, f"{step.letter}: {line.text}"
            assert all(origin.span.line in lines for origin in line.origins), line.text
    for role in KERNEL_ROLES:
        statements = [line for line in exploration.code[role].lines if line.node is not None]
        linked = [line for line in statements if line.origins]
        assert len(linked) >= 0.95 * len(statements)


# Lines of the kernel that have no lines any more, by their first words in TIR and why that is so.
_ORDERED = {
    text: "the order of the statements replaces what orders groups of threads"
    for text in ("T.barrier_wait(", "T.barrier_arrive(", "T.sync_threads(", "T.gemm_wait(", "T.gemm_arrive(",
                 "tx = T.thread_index(", "if tx < ", "if T.thread_index() ")
}  # fmt: skip
_GONE: dict[str, dict[str, str]] = {
    **{name: _ORDERED for name in CASES if name.startswith("thread groups")},
    "gemm_masked_neighbours": dict.fromkeys(("for j in T.Parallel", "a[i, j] = a[i, j]"), "stores what is there"),
    "turns_causal_anew": {"T.fill(c, 3.0)": "nothing reads it before the next fill"},
    "index_masked_by_block": {"T.copy(Mask[": "a place in the tensor replaces the block"},
    "any_of_few": {"T.copy(Mask[": "a place in the tensor replaces the block"},
    "all_of_tensor": {"T.copy(Mask[": "a place in the tensor replaces the block"},
    "bits_or_columns": {"T.copy(S[": "a place in the tensor replaces the block"},
    "bits_xor_deep": {"T.copy(S[": "a place in the tensor replaces the block"},
    "elements_of_tensors": {"y = ": "the place of a copy replaces the name"},
    "computed_places": {"pair = ": "the place of a copy replaces the name"},
    "named_bounds": {"right = ": "nothing reads the name"},
    "launch 1 of synchronized": {"shift = ": "nothing reads the name"},
    "while_strided": {"tile[0] = ": "the number of the turn replaces it"},
    "while_stream_k": {"start[0] = ": "the number of the turn replaces it"},
    "while_by_index": dict.fromkeys(("low[0] = ", "high[0] = "), "the number of the turn replaces it"),
    "while_nested": dict.fromkeys(("column[0] = ", "row[0] = "), "the number of the turn replaces it"),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_line_of_the_kernel_stays_linked(name: str) -> None:
    """Every line of the kernel that does something has lines after each step, and in the C++ of a kernel."""
    trace = explored(name).trace
    does: dict[Span, str] = {}
    for line in trace.steps[0].before.lines:
        if line.node is not None and "T.alloc_buffer(" not in line.text:
            does |= {origin.span: line.text.strip() for origin in line.origins if origin.kind == "exact"}
    kernels = [*itertools.chain.from_iterable(trace.files[f"{role}.cpp"].lines for role in KERNEL_ROLES)]
    stages = [*((step.letter, step.after.lines) for step in trace.steps), ("C++", kernels)]
    lost: dict[str, str] = {}
    for where, lines in stages:
        linked = {(origin.span.file, origin.span.line) for line in lines for origin in line.origins}
        for span, text in does.items():
            if (span.file, span.line) not in linked:
                lost.setdefault(text, where)
    known = _GONE.get(name, {})
    assert {text: where for text, where in lost.items() if not any(text.startswith(one) for one in known)} == {}
    if known is not _ORDERED:
        assert all(any(text.startswith(one) for text in lost) for one in known), "an exception that is none"


@pytest.mark.parametrize("name", ["gemm_bias_reload", "deep_expression", "batched_rank4"])
def test_two_runs_are_the_same(name: str) -> None:
    """Law 5: listings, plans and files are byte-equal."""
    first, second = (ttx.explore(CASES[name].make(), options=CASES[name].options) for _ in range(2))
    assert [step.listing.text for step in first.steps] == [step.listing.text for step in second.steps]
    assert {n: f.text for n, f in first.files.items()} == {n: f.text for n, f in second.files.items()}
    assert first._repr_html_() == second._repr_html_()
    assert first.run().outputs[0].tobytes() == second.run().outputs[0].tobytes()


def test_a_planted_fault_is_found() -> None:
    """The check of the steps can fail: a product with a wrong reference does not pass."""
    exploration = explored("gemm_in_dst")
    other = exploration.inputs(seed=1)
    run = exploration.run(other)
    assert run.passed
    assert not np.array_equal(run.outputs[0], exploration.run().outputs[0])
