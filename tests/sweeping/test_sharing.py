"""Points that share a trace and passes with others come to what each of them comes to alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweeping.conftest import GEMM
from ttexplore.exploration import Exploration, explore
from ttexplore.language.load import find_kernel
from ttexplore.record import to_json
from ttexplore.sweeping.cost import figures
from ttexplore.sweeping.evaluate import Task, evaluate
from ttexplore.sweeping.order import parts_of
from ttexplore.sweeping.shipping import ttexplore_digest
from ttexplore.sweeping.space import Space, space_of

SIZES: dict[str, Any] = {"M": 256, "N": 192, "K": 128}
FIDELITIES = ["LoFi", "HiFi2", "HiFi3", "HiFi4"]
# Options of most passes, between them some that are refused by a pass, by the verifier, or for L1.
SPACES: list[dict[str, list[Any]]] = [
    {"block_M": [32, 64], "math_fidelity": FIDELITIES, "policy": ["contiguous", "strided"], "stages": [1, 2]},
    {"subblock": [(1, 1), (9, 9)], "math_fidelity": ["HiFi4", "LoFi"], "cores": [(1, 1), (2, 3)]},
    {"multicast": ["off", "all", {"A": "row"}], "math_fidelity": ["HiFi3", "LoFi"], "loaded_by": ["reader", "auto"]},
    {"target": ["wormhole_n150", "blackhole_p150"], "math_fidelity": ["HiFi2", "LoFi"], "stages": [2, 900]},
]


def space(given: dict[str, list[Any]]) -> Space:
    return space_of(given, None, None, SIZES)


def described(lowered: Exploration) -> dict[str, object]:
    """All that a lowering comes to."""
    steps = [(step.name, to_json(step.plan), step.options) for step in lowered.steps]
    if lowered.error is not None:
        return {"steps": steps, "error": lowered.error.record()}
    texts = {name: listing.text for name, listing in lowered.files.items()}
    return {"steps": steps, "texts": texts, "estimate": lowered.estimate().to_json()}


@pytest.mark.slow
@pytest.mark.parametrize("given", SPACES, ids=lambda one: "-".join(one))
def test_every_point_comes_to_what_it_comes_to_alone(
    given: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    points = space(given).points
    order = [number for part in parts_of(points, range(len(points)), 5) for number in part]
    task = Task(find_kernel(GEMM), tuple(points[number] for number in order), ttexplore_digest())
    made: list[Exploration] = []
    lower = Exploration.with_options

    def noted(self: Exploration, *arguments: Any) -> Exploration:
        made.append(lower(self, *arguments))
        return made[-1]

    def explored(*arguments: Any, **more: Any) -> Exploration:
        made.append(explore(*arguments, **more))
        return made[-1]

    monkeypatch.setattr(Exploration, "with_options", noted)
    monkeypatch.setattr("ttexplore.exploration.explore", explored)
    outcomes = evaluate(task).checked()
    monkeypatch.undo()
    shared = 0
    for point, outcome, lowered in zip(task.points, outcomes, made, strict=True):
        arguments: dict[str, Any] = dict(point.arguments)
        alone = explore(GEMM, target=point.target, options=point.options, **arguments)
        assert described(lowered) == described(alone), point.given
        if alone.error is None:
            assert outcome.figures == figures(alone), point.given
        else:
            error = alone.error.record()
            assert outcome.error is not None, point.given
            assert (outcome.error.code, outcome.error.message) == (error.code, error.message)
        shared += sum(
            one._lowered.steps[-1].after.functions is lowered._lowered.steps[-1].after.functions for one in made
        )
    assert shared > len(made), "some programs are those of other points"


def test_a_part_has_whole_traces_and_what_shares_most_together() -> None:
    points = space({"math_fidelity": ["LoFi", "HiFi2"], "block_M": [32, 64, 96], "stages": [1, 2]}).points
    names = ("block_M", "stages", "math_fidelity")
    named = [
        [" ".join(str(points[number].given[name]) for name in names) for number in part]
        for part in parts_of(points, range(len(points)), 4)
    ]
    assert named[0] == ["32 1 HiFi2", "32 1 LoFi", "32 2 HiFi2", "32 2 LoFi"]
    assert [{one.partition(" ")[0] for one in part} for part in named] == [{"32"}, {"64"}, {"96"}]


@pytest.mark.parametrize(
    ("space_", "size", "lengths"),
    [
        # Ten of one trace, in even parts; four traces of two; traces of one; both.
        ({"stages": range(1, 11)}, 4, [3, 3, 4]),
        ({"block_M": [32, 64, 96, 128], "stages": [1, 2]}, 5, [4, 4]),
        ({"block_M": range(32, 32 * 8, 32)}, 3, [3, 3, 1]),
        ({"block_M": [32, 64], "stages": [1, 2, 3]}, 1, [1] * 6),
    ],
)
def test_parts_are_of_even_lengths_and_hold_every_point_once(space_: Any, size: int, lengths: list[int]) -> None:
    points = space(space_).points
    parts = parts_of(points, range(len(points)), size)
    assert [*map(len, parts)] == lengths
    assert sorted(number for part in parts for number in part) == [*range(len(points))]
    # Of those that are left to do, only these.
    assert sorted(number for part in parts_of(points, [2, 0], size) for number in part) == [0, 2]
