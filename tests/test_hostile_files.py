"""Saved explorations that somebody has changed: `python -m tests.hostile_files 10000` tries more of them."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.hostile_files import Attacker, attack, outside
from ttexplore.errors import ResourceError, UsageError
from ttexplore.session.explored import Explored


@pytest.fixture(scope="module")
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Attacker:
    return Attacker(ttx.explore(gemm(64, 64, 64, 32, 32, 32)).save(tmp_path_factory.mktemp("saved") / "gemm.ttx"))


def told(content: bytes, tmp_path: Path, name: str, *, run: bool) -> Counter[str]:
    folder = tmp_path / name / "inner"
    folder.mkdir(parents=True)
    ends, wrong = attack(content, folder, run=run)
    assert wrong == []
    assert outside(folder) == []
    return ends


@pytest.mark.slow
def test_random_changes(attacker: Attacker, tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    for seed in range(60):
        ends += told(attacker.file(seed), tmp_path, str(seed), run=seed % 20 == 0)
    # The tests reach what lies behind loading too.
    assert ends["load refused"] > 30
    assert ends["report done"] > 5
    assert ends["export done"] > 5


def changed_plan(attacker: Attacker, part: str, name: str, value: Any) -> bytes:
    """The file with another value of the plan, and without kept inputs."""
    trace = json.loads(attacker.members["trace.json"])
    place = trace["plan"][part]
    (place[0] if isinstance(place, list) else place)[name] = value
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("ttx.json", attacker.members["ttx.json"])
        file.writestr("trace.json", json.dumps(trace))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("part", "name", "value", "end"),
    [
        ("layouts", "shape", [10**30, 64], "load refused"),
        ("layouts", "shape", [2**40, 64], "load refused"),
        ("layouts", "shape", [1] * 40, "run refused"),
        ("layouts", "name", "a 1 1 1 1 - /tmp/own", "load refused"),
        ("buffers", "name", "cb\nkernel 0 /tmp/own", "load refused"),
        ("layouts", "name", "other", "run refused"),
        ("buffers", "block_pages", 2**40, "run refused"),
        ("buffers", "index", 2**31, "run refused"),
        ("accessors", "pages", 2**40, "run refused"),
        ("compute", "dst_tiles", 10**9, "run refused"),
    ],
)
def test_numbers_that_nothing_holds(
    attacker: Attacker, tmp_path: Path, part: str, name: str, value: Any, end: str
) -> None:
    assert told(changed_plan(attacker, part, name, value), tmp_path, "one", run=True)[end] == 1


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, attacker: Attacker) -> None:
    def exhausted(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("ttexplore.session.lowering.make_inputs", exhausted)
    monkeypatch.setattr("ttexplore.session.lowering.arrays_for", exhausted)
    (tmp_path / "gemm.ttx").write_bytes(changed_plan(attacker, "compute", "dst_tiles", 4))
    saved: Explored = ttx.load(tmp_path / "gemm.ttx")
    for use in (saved.inputs, saved.run, saved.timeline):
        with pytest.raises(ResourceError, match="needs more memory than this machine has") as caught:
            use()
        assert "smaller" in caught.value.hint


def plans_of(trace: Any) -> list[Any]:
    """All plans of a trace that have a partition."""
    steps = trace["steps"]
    plans = [trace["plan"], *(step[name] for step in steps for name in ("plan_before", "plan_after"))]
    return [plan for plan in plans if plan["partition"]]


def many_cores(trace: Any) -> None:
    partition = trace["plan"]["partition"]
    partition["cores"] = [{**partition["cores"][0], "x": n % 64, "y": n // 64} for n in range(400_000)]


def cores_beyond_the_grid(trace: Any) -> None:
    for plan in plans_of(trace):
        one = plan["partition"]["cores"][0]
        plan["partition"]["cores"] = [{**one, "x": n % 64, "y": n // 64} for n in range(4096)]


def core_twice(trace: Any) -> None:
    trace["plan"]["partition"]["cores"] *= 2


def huge_grid(trace: Any) -> None:
    trace["plan"]["partition"]["grid"] = [2**30, 2**30]


def huge_grid_of_a_step(trace: Any) -> None:
    trace["steps"][-1]["plan_before"]["partition"]["grid"] = [2**27]


def many_axes(trace: Any) -> None:
    trace["plan"]["partition"]["grid"] = [1] * 100_000


def long_counts(trace: Any, *signs: int) -> None:
    for plan in plans_of(trace):
        for core, sign in zip(plan["partition"]["cores"], [*signs, *[1] * 100], strict=False):
            core["values"] = {"work_start": 0, "work_count": sign * 2**25}


def negative_counts(trace: Any) -> None:
    long_counts(trace, 1, -1, 1, -1)


def long_lists(trace: Any) -> None:
    partition = trace["plan"]["partition"]
    partition["form"] = "list"
    for core in partition["cores"]:
        core["listed"] = [0] * 600_000


def long_rectangles(trace: Any) -> None:
    partition = trace["plan"]["partition"]
    partition["form"] = "rectangle"
    for core in partition["cores"]:
        core["values"] = {"x_start": 0, "x_count": 2**20, "y_start": 0, "y_count": 2**20}


def many_ranges(trace: Any) -> None:
    trace["plan"]["partition"]["core_ranges"] = [{"first": [0, 0], "last": [63, 63]}] * 5_000


def wide_ranges(trace: Any) -> None:
    trace["plan"]["partition"]["core_ranges"] = [{"first": [0, 0], "last": [63, 63]}] * 2


def many_multicasts(trace: Any) -> None:
    one = {"sender": [0, 0], "cores": {"first": [0, 0], "last": [63, 63]}}
    for plan in plans_of(trace):
        plan["shared"] = [
            {"tensor": "A", "buffer": "b", "topology": "row", "ready": 0, "valid": 1, "multicasts": [one] * 2_000,
             "read_bytes": 1, "saved_bytes": 1}
        ]  # fmt: skip


def long_chains(trace: Any) -> None:
    trace["plan"]["partials"] = [
        {"tensor": "C", "received": "r", "sent": "s", "room": 0, "arrived": 1, "chains": [[[0, 0]] * 5_000],
         "steps": [1], "block_bytes": 1}
    ]  # fmt: skip


def many_steps(trace: Any) -> None:
    trace["steps"] = [{**empty(trace), "index": n} for n in range(5_000)]


def empty(trace: Any) -> Any:
    """The first step with nothing in it."""
    nothing = {**trace["steps"][0]["before"], "lines": []}
    return {**trace["steps"][0], "firings": [], "parts": [], "before": nothing, "after": nothing}


def many_parts(trace: Any) -> None:
    trace["steps"][0]["parts"] = [empty(trace)] * 5_000


def many_steps_with_parts(trace: Any) -> None:
    trace["steps"] = [{**empty(trace), "parts": [empty(trace)] * 30}] * 10


def parts_of_a_part(trace: Any) -> None:
    trace["steps"][0]["parts"][3]["parts"] = [empty(trace)]


def many_parts_of_a_part(trace: Any) -> None:
    trace["steps"][0]["parts"][3]["parts"] = [empty(trace)] * 5_000


def many_firings_of_a_part(trace: Any) -> None:
    trace["steps"][0]["parts"][3]["firings"] = [{"rule": "r", "before": [], "after": []}] * 300_000


def huge_grid_of_a_part(trace: Any) -> None:
    trace["steps"][0]["parts"][3]["plan_after"] = {
        **trace["plan"], "partition": {**trace["plan"]["partition"], "grid": [2**14, 2**13]}
    }  # fmt: skip


def many_firings(trace: Any) -> None:
    step = next(one for one in trace["steps"] if one["firings"])
    step["firings"] = step["firings"][:1] * 300_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (many_cores, "cores has 400,000 items, and at most 4,096 occur"),
        (cores_beyond_the_grid, "core (8, 0) has work, but wormhole_n150 has 8x8 cores"),
        (core_twice, "a core is there twice"),
        (huge_grid, "there are 1,152,921,504,606,846,976 work items, and at most 67,108,864 are lowered"),
        (huge_grid_of_a_step, "there are 134,217,728 work items, and at most 67,108,864 are lowered"),
        (many_axes, "grid has 100,000 items, and at most 3 occur"),
        (long_counts, "there are 134,217,728 work items, and at most 67,108,864 are lowered"),
        (negative_counts, "there are 134,217,728 work items, and at most 67,108,864 are lowered"),
        (long_lists, "there are 2,400,000 work items, and at most 2,097,152 are lowered"),
        (long_rectangles, "there are 4,398,046,511,104 work items, and at most 2,097,152 are lowered"),
        (many_ranges, "core_ranges has 5,000 items, and at most 4,096 occur"),
        (wide_ranges, "no chip has more than 4,096 cores"),
        (many_multicasts, "no chip has more than 4,096 cores"),
        (long_chains, "no chip has more than 4,096 cores"),
        (many_steps, "steps has 5,000 items, and at most 256 occur"),
        (many_firings, "firings has 300,000 items, and at most 10,000 occur"),
        (many_parts, "parts has 5,000 items, and at most 256 occur"),
        (many_steps_with_parts, "there are 310 steps and parts, and at most 256 occur"),
        (parts_of_a_part, "a part of a step has parts"),
        (many_parts_of_a_part, "parts has 5,000 items, and at most 256 occur"),
        (many_firings_of_a_part, "firings has 300,000 items, and at most 10,000 occur"),
        (huge_grid_of_a_part, "there are 134,217,728 work items, and at most 67,108,864 are lowered"),
    ],
)
def test_more_than_any_lowering_records_is_refused_before_it_is_shown(
    attacker: Attacker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None], why: str
) -> None:
    monkeypatch.setattr("ttexplore.session.explored.explorer_data", lambda *_: pytest.fail("it was shown"))
    trace = json.loads(attacker.members["trace.json"])
    change(trace)
    with zipfile.ZipFile(tmp_path / "large.ttx", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {**attacker.members, "trace.json": json.dumps(trace)}.items():
            file.writestr(name, content)
    with pytest.raises(UsageError) as caught:
        ttx.load(tmp_path / "large.ttx")
    assert caught.value.code == "TTX-U018"
    assert why in caught.value.message


def test_the_largest_grid_is_shown_as_far_as_it_can_be(attacker: Attacker, tmp_path: Path) -> None:
    """Along whichever axis it is long, the map stays as large as 4,096 blocks are."""
    for grid in ([2**21], [1, 2**21], [1, 1, 2**21], [2**11, 2**10]):
        trace = json.loads(attacker.members["trace.json"])
        for plan in plans_of(trace):
            partition = plan["partition"]
            partition["grid"] = grid
            partition["cores"] = [{**partition["cores"][0], "values": {"work_start": 0, "work_count": 2**21}}]
        with zipfile.ZipFile(tmp_path / "large.ttx", "w") as file:
            file.writestr("ttx.json", attacker.members["ttx.json"])
            file.writestr("trace.json", json.dumps(trace))
        drawn = ttx.load(tmp_path / "large.ttx").work_map.svg
        assert drawn.count("<g data-core=") == 4096
        assert drawn.count("<text") < 4200
        assert f"{2**21 - 4096:,} more items not drawn" in drawn
