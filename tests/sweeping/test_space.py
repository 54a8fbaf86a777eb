"""Spaces of schedules, and what is wrong with some."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ttexplore.errors import UsageError
from ttexplore.sweeping.kept import keys_of
from ttexplore.sweeping.space import MOST_POINTS, space_of
from ttexplore.target import get_target

N150 = "wormhole_n150"


def test_every_combination_is_a_point_in_order() -> None:
    made = space_of(
        {"block_M": [32, 64], "policy": ["strided", "contiguous"], "cores": ["2x2", (4, 4)]},
        N150, {"stages": "3"}, {"M": 128},
    )  # fmt: skip
    assert made.names == ("block_M", "policy", "cores")
    wanted = [*itertools.product([32, 64], ["strided", "contiguous"], [(2, 2), (4, 4)])]
    found = [(one.arguments["block_M"], one.options["policy"], one.options["cores"]) for one in made.points]
    assert found == wanted
    assert all(one.arguments["M"] == 128 and one.options["stages"] == 3 for one in made.points)
    assert made.points[0].given == {"block_M": 32, "policy": "strided", "cores": "2x2"}


def test_targets_values_of_numpy_and_spaces_one_after_another() -> None:
    small = get_target(N150, grid=(2, 2))
    made = space_of([{"target": [N150, small]}, {"block_M": np.array([32, 64])}], "blackhole_p100", None, {})
    assert [one.target.cores for one in made.points] == [64, 4, 110, 110]
    assert [one.arguments for one in made.points] == [{}, {}, {"block_M": 32}, {"block_M": 64}]
    assert all(type(one.arguments["block_M"]) is int for one in made.points[2:])


def test_a_point_of_several_spaces_is_one() -> None:
    small = {"block_M": [32, 64], "cores": [(2, 2)], "target": [N150]}
    made = space_of([small, {"target": N150, "cores": ["2x2", (4, 4)], "block_M": [64]}], None, {"stages": 3}, {})
    assert [(one.arguments["block_M"], one.options["cores"]) for one in made.points] == [
        (32, (2, 2)), (64, (2, 2)), (64, (4, 4)),
    ]  # fmt: skip
    assert len(space_of([{"block_M": [32]}, {"block_M": [32.0, 64]}, {"block_N": [32]}], None, None, {}).points) == 4
    # What is not given may be another value than the default, by the kernel's annotations.
    given = [{"block_M": [32], "loaded_by": ["auto"]}, {"block_M": [32]}]
    assert len(space_of(given, None, None, {}).points) == 2


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        ({}, {}, "the space is empty"),
        ([], {}, r"the space is \[\]"),
        ("block_M=32", {}, "the space is 'block_M=32'"),
        ({3: [1]}, {}, "a name of the space is 3"),
        ({"block_M": []}, {}, "the space has no values for block_M"),
        ({"block_M": [32, 64, 32]}, {}, "the space lists 32 for block_M twice"),
        ({"stages": [2]}, {"stages": 3}, "stages is in the space, and has a value besides"),
        ({"a": range(1000), "b": range(1000)}, {}, "the space has 1,000,000 points"),
        ({"a": range(10**9)}, {}, "the space has more than 100,000 values for a"),
        ({"a": range(10**30)}, {}, "the space has more than 100,000 values for a"),
        ({"a": {32, 64}}, {}, "the space for a is {"),
        ({"a": frozenset({32})}, {}, "the space for a is frozenset"),
        ({"a": (one for one in (32, 64))}, {}, "the space for a is <generator"),
        ({"a": {1: 32}.values()}, {}, r"the space for a is dict_values"),
        ({"a": [1, 10**5000]}, {}, "a value of a cannot be printed: a int"),
        ({"policy": ["strided", "stridden"]}, {}, "there is no policy 'stridden'"),
        ({"target": ["wormhole"]}, {}, "there is no target 'wormhole'"),
        ({"cores": (4, 4)}, {}, r"the space for cores is \(4, 4\), which is one value"),
        ({"core_ranges": (((0, 0), (1, 1)),)}, {}, r"the space for core_ranges is \(.*\), which is one value"),
    ],
)
def test_a_wrong_space_is_refused_before_anything_is_lowered(space: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        space_of(space, N150, options, {})
    assert caught.value.hint


def test_an_argument_that_cannot_be_printed_is_refused() -> None:
    with pytest.raises(UsageError, match="a value of M cannot be printed: a int"):
        space_of({"block_M": [32]}, N150, None, {"M": 10**5000})


def test_values_of_numpy_are_kept_as_those_of_python() -> None:
    made, wanted = (space_of({"x": [kind(32), 64]}, N150, None, {}).points for kind in (np.int64, int))
    assert keys_of(made) == keys_of(wanted)
    assert [type(one.arguments["x"]) for one in made] == [int, int]
    given = [np.int64(1), np.int32(1), np.float16(0.5), np.arange(3), np.arange(4), [np.int64(1)], object()]
    *keys, none = keys_of(space_of({"x": [1]}, N150, None, {"M": one}).points[0] for one in given)
    assert none is None
    assert len({*keys} - {None}) == len(keys)


def test_true_and_one_are_two_values() -> None:
    assert len(space_of({"x": [1, True, 1.0]}, N150, None, {}).points) == 3
    assert len(space_of({"a": range(MOST_POINTS)}, N150, None, {}).points) == MOST_POINTS
