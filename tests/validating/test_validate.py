"""Validations find wrong numbers, and leave out nothing."""

from __future__ import annotations

import functools
import json
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.cli import main
from ttexplore.errors import KernelError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.validating import validate as module

CHIP = "wormhole_n150"


def scaled(n: int = 64, block: int = 32, dtype: str = "bfloat16", factor: float = 3.0) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n, 64), dtype), B: T.Tensor((n, 64), dtype)):
        with T.Kernel(T.ceildiv(n, block)) as bx:
            a = T.alloc_shared((block, 64), dtype)
            T.copy(A[bx * block, 0], a)
            for i, j in T.Parallel(block, 64):
                a[i, j] = a[i, j] * factor
            T.copy(a, B[bx * block, 0])

    return main


def test_a_kernel_with_other_shapes_and_dtypes() -> None:
    told: list[str] = []
    found = ttx.validate(scaled, target=CHIP, progress=told.append)
    rows = found.table()
    assert bool(found)
    assert [row["case"] for row in rows] == [
        f"{shape} {dtype}" for dtype in ("bfloat16", "float32") for shape in ("as given", "tiny", "odd", "large")
    ]
    assert [(row["n"], row["dtype"]) for row in rows[:5]] == [
        (64, "bfloat16"), (32, "bfloat16"), (53, "bfloat16"), (128, "bfloat16"), (64, "float32"),
    ]  # fmt: skip
    assert {row["state"] for row in rows} == {"passed"}
    # One multiplication: half of a last place in bfloat16, and little in float32.
    assert all(0 < row["max_ulp"] <= 0.5 and row["max_rel_error"] <= 2**-8 for row in rows[:4])
    assert all(row["max_rel_error"] <= 2**-9 for row in rows[4:])
    assert [row["cores"] for row in rows[:4]] == [(2, 1), (1,), (2, 1), (4, 1, 2)]
    assert {row["runs"] for row in rows} == {2}
    estimate = ttx.explore(scaled, target=CHIP).estimate()
    assert (rows[0]["estimate_us"], rows[0]["roofline_us"]) == (estimate.us, estimate.roofline_us)
    assert told[0] == "0 of 8 cases, 0 refused: as given bfloat16 on wormhole_n150"
    assert len(told) == 8


def test_a_reference_of_the_user() -> None:
    space = {"n": [64], "factor": [3.0, 3.5]}
    found = ttx.validate(scaled, space, target=CHIP, reference=lambda a: a * 3, cores=False, runs=1)
    right, wrong = found.table()
    assert (right["state"], wrong["state"]) == ("passed", "failed")
    assert "far from the given reference" in wrong["reason"]
    assert wrong["max_rel_error"] == pytest.approx(1 / 6, rel=0.05)
    assert not found
    assert "1 of 2 cases passed, 1 failed" in str(found)
    assert "the given reference" in found._repr_html_()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda a: a[0], r"the given reference returns \(64,\).*\n.*the outputs are \(64, 64\)"),
        (lambda a, b: a, "the given reference raises TypeError.*\n.*of the shapes \\(64, 64\\)"),
        (lambda a: (a, a), r"returns \(64, 64\), \(64, 64\)"),
        (lambda a: "much", "raises ValueError"),
        (3, "reference is 3"),
    ],
)
def test_a_reference_that_does_not_fit(reference: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ttx.validate(scaled, target=CHIP, reference=reference)


@T.prim_func
def quantized(A: T.Tensor((32, 64), "float32"), S: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "int8")):
    with T.Kernel(1):
        a, s = T.alloc_fragment((32, 64), "float32"), T.alloc_fragment((32, 64), "float32")
        q = T.alloc_fragment((32, 64), "int8")
        T.copy(A, a)
        T.copy(S, s)
        for i, j in T.Parallel(32, 64):
            q[i, j] = T.cast(T.round((a[i, j] * 40.0) * (1.0 / (s[i, j] + 3.0))), "int8")
        T.copy(q, B)


def quotients_of_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs whose quotients are halves of whole numbers, but for their rounding to float32."""
    random = np.random.default_rng(0)
    scales = random.uniform(0.5, 3, (32, 64)).astype(np.float32)
    halves = (scales.astype(np.float64) + 3) * random.integers(-80, 81, scales.shape) / 80
    monkeypatch.setattr(Exploration, "inputs", lambda *_: (halves.astype(np.float32), scales))


def rounded_quotients(a: Any, s: Any) -> Any:
    return np.rint(a * 40.0 / (s + 3.0))


@pytest.mark.parametrize("backend", ["run", "check", "validate"])
def test_integers_at_ties_are_right_beside_a_formula(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    quotients_of_halves(monkeypatch)
    exploration = ttx.explore(quantized)
    arrays = exploration.inputs()
    computed = exploration.reference(arrays) if backend == "check" else exploration.run(arrays).outputs
    wanted = rounded_quotients(*(array.astype(np.float64) for array in arrays))
    ties = int((np.asarray(computed[0], np.int64) != wanted).sum())
    assert ties > 10
    said = f"{ties} of 2,048 elements lie so near a step that rounding decides which integer they are"
    if backend == "validate":
        found = ttx.validate(quantized, target=CHIP, reference=rounded_quotients, runs=1, cores=False)
        (row,) = found.table()
        assert row["state"] == "passed"
        assert row["reason"].endswith(f"beside the given reference, {said}")
        assert f"1 passed, as given on {CHIP} first: {row['reason']}" in str(found)
        assert said in found._repr_html_()
    elif backend == "run":
        result = exploration.run(arrays, reference=rounded_quotients)
        assert result.passed
        assert said in result.message
    else:
        checked = exploration.check(arrays, reference=rounded_quotients)
        assert checked
        assert said in checked.results[0].message


def test_integers_that_no_rounding_explains_are_wrong_beside_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    quotients_of_halves(monkeypatch)

    def off_by_one(a: Any, s: Any) -> Any:
        """One element is another integer, far from a tie."""
        quotients = a * 40.0 / (s + 3.0)
        integers = np.rint(quotients)
        place = np.unravel_index(np.argmin(np.abs(quotients - integers)), integers.shape)
        integers[place] += 1
        return integers

    (row,) = ttx.validate(quantized, target=CHIP, reference=off_by_one, runs=1, cores=False).table()
    assert row["state"] == "failed"
    assert "far from the given reference" in row["reason"]


def test_what_a_reference_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves(a: Any) -> Any:
        raise SystemExit(3)

    def stops(a: Any) -> Any:
        raise KeyboardInterrupt

    exploration = ttx.explore(scaled)
    for call in (exploration.run, exploration.check, functools.partial(ttx.validate, scaled, target=CHIP)):
        with pytest.raises(UsageError, match="the given reference raises SystemExit: 3"):
            call(reference=leaves)  # pyright: ignore[reportCallIssue]
    for call in (exploration.run, exploration.check):
        with pytest.raises(KeyboardInterrupt):
            call(reference=stops)
    assert not ttx.validate(scaled, target=CHIP, reference=stops).complete


def test_what_is_refused_stays_with_its_reason() -> None:
    found = ttx.validate(scaled, {"block": [32, 4096]}, target=CHIP, runs=1, cores=False)
    right, refused = found.table()
    assert (right["state"], refused["state"], bool(found)) == ("passed", "refused", True)
    assert refused["code"] == found.error(1).code  # pyright: ignore[reportOptionalMemberAccess]
    assert refused["reason"].splitlines()[0].rstrip(":") in str(found)
    assert refused["max_ulp"] is None
    assert found.error(0) is None
    with pytest.raises(UsageError, match="the number of a case is 2"):
        found.error(2)


def test_numbers_that_depend_on_the_run_or_on_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program does that on purpose, so that the runs are made to."""
    runs = iter(range(100))
    ran = module._ran

    def other(*given: Any, **options: Any) -> Any:
        made = ran(*given, **options)
        if next(runs):
            made.outputs[0][0, 0] += 1
        return made

    monkeypatch.setattr(module, "_ran", other)
    found = ttx.validate(scaled, {"n": [64]}, target=CHIP)
    (row,) = found.table()
    assert (row["state"], row["reason"]) == (
        "failed", "1 of 2 runs gave other numbers; on 1 cores the numbers are others",
    )  # fmt: skip


def test_inputs_with_which_the_kernel_leaves_a_tensor() -> None:
    @T.prim_func
    def indexed(A: T.Tensor((4, 32, 32), "float32"), At: T.Tensor((1,), "int32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[At[0], 0, 0], a)
            T.copy(a, B)

    for kind, state in (("random", "passed"), ("extreme", "failed")):
        (row,) = ttx.validate(indexed, target=CHIP, inputs=kind, seed=1, runs=1).table()
        assert row["state"] == state
    assert "outside" in row["reason"]
    assert row["line"].startswith("test_validate.py:") or "test_validate.py:" in row["line"]


def test_sizes_that_are_not_known() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def doubled(A: T.Tensor((n, 32), "float32"), B: T.Tensor((n, 32), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + a[i, j]
            T.copy(a, B[bx * 32, 0])

    found = ttx.validate(doubled, target=CHIP, sizes={"n": 64}, runs=1, cores=False)
    rows = found.table()
    assert [(row["case"], row["n"], row["state"]) for row in rows] == [
        ("as given", 64, "passed"), ("tiny", 32, "passed"), ("odd", 53, "passed"), ("large", 128, "passed"),
    ]  # fmt: skip
    assert [row["max_ulp"] for row in rows] == [0.0] * 4


def test_what_is_stopped_keeps_what_is_done() -> None:
    cancel = threading.Event()

    def tell(text: str) -> None:
        if text.startswith("1 of"):
            cancel.set()

    found = ttx.validate(scaled, target=CHIP, runs=1, cores=False, progress=tell, cancel=cancel)
    assert [row["state"] for row in found.table()] == ["passed", *["not done"] * 7]
    assert (found.complete, bool(found)) == (False, False)
    assert "7 not done" in repr(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": []}, "target is \\[\\]"),
        ({"target": ["wormhole_n15"]}, "did you mean wormhole_n150"),
        ({"runs": 0}, "runs is 0"),
        ({"cores": 2}, "cores is 2"),
        ({"inputs": "randm"}, "did you mean random"),
        ({"seed": -1}, "seed is -1"),
        ({"m": 3}, "takes no argument m"),
        ({"sizes": {"k": 3}}, "the kernel has no size k"),
        ({"time_limit_seconds": -1}, "time_limit_seconds"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ttx.validate(scaled, **given)


def test_wrong_spaces() -> None:
    with pytest.raises(UsageError, match="sizes are given beside a space"):
        ttx.validate(scaled, {"n": [32]}, sizes={"k": 3})
    with pytest.raises(UsageError, match="target is in the space, and has a value besides"):
        ttx.validate(scaled, {"target": [CHIP]}, target=CHIP)
    with pytest.raises(KernelError, match="n_must_not_be_0"):
        ttx.validate(broken)


def broken(n: int = 0) -> Any:
    raise ValueError("n_must_not_be_0")


def test_what_is_drawn() -> None:
    found = ttx.validate(scaled, {"n": [64, 53], "block": [32, 4096]}, target=CHIP, runs=1, cores=False)
    drawn = ElementTree.fromstring(found.plot().svg)
    words = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert [words.count(word) for word in ("n=64 block=32", "n=53 block=32", "refused", CHIP)] == [1, 1, 2, 1]
    marks = [one for one in drawn.iter("{http://www.w3.org/2000/svg}circle") if list(one)]
    assert len(marks) == 2
    assert found.plot().svg in found._repr_html_()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[2] / "notebooks" / "gallery" / "elementwise.py"
    words = ["validate", f"{file}::swiglu", "--space", "M=32,53", "--runs", "1", "--target", CHIP]
    assert main([*words, "--json", "--plot", str(tmp_path / "e.svg")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["ok"], [row["state"] for row in printed["table"]]) == (True, ["passed", "passed"])
    ElementTree.parse(tmp_path / "e.svg")
    assert main([*words, "--space", "target=wormhole_n150"]) == 2
    assert "target is in the space" in capsys.readouterr().err


def test_nothing_is_rounded_in_float64() -> None:
    """The kernel in float64 is NumPy's, which rounds neither products nor sums."""
    file = Path(__file__).parents[2] / "notebooks" / "kernels" / "gemm.py"
    explored = ttx.explore(f"{file}::matmul", M=64, N=96, K=80, block_M=32, block_N=32, block_K=32)
    a, b = explored.inputs(3)
    (wide,) = explored.reference([a, b], in_float64=True)
    np.testing.assert_allclose(wide, a.astype(float) @ b.astype(float), rtol=1e-14, atol=1e-13)
    assert wide.dtype == np.float64
    with pytest.raises(UsageError, match="in_float64 is 1"):
        explored.reference(in_float64=1)  # pyright: ignore[reportArgumentType]
