"""Which arguments of a kernel are sizes and dtypes, and what it is tried with."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from ttexplore.errors import KernelError
from ttexplore.target import get_target
from ttexplore.validating.cases import MOST_ELEMENTS, Inputs, cases_of, roles_of

CHIP = get_target("wormhole_n150")


def inspect(arguments: Mapping[str, object]) -> Inputs:
    """A product whose arguments have names that mislead: `block` is a size, `M` is that of a block."""
    rows, block, kind = arguments["rows"], arguments["block"], arguments["kind"]
    assert isinstance(rows, int)
    assert isinstance(block, int)
    if rows % 2:
        raise KernelError("K011", "rows must be even")
    return ((rows, block), str(kind)), ((block,), "float32")


GIVEN: dict[str, object] = {"rows": 64, "block": 96, "M": 32, "causal": True, "kind": "bfloat16", "of": "float32"}


def test_names_mean_nothing() -> None:
    roles = roles_of(GIVEN, inspect)
    assert (dict(roles.sizes), dict(roles.dtypes)) == ({"rows": 64, "block": 96}, {"kind": "bfloat16"})


def test_the_kernel_must_take_its_own_arguments() -> None:
    with pytest.raises(KernelError, match="rows must be even"):
        roles_of({**GIVEN, "rows": 63}, inspect)


def test_shapes_and_dtypes() -> None:
    made = cases_of(GIVEN, roles_of(GIVEN, inspect), inspect, [CHIP])
    found = {case.called: (case.arguments["rows"], case.arguments["block"], case.arguments["kind"]) for case in made}
    assert found == {
        f"{called} {kind}": (*shape, kind)
        for kind in ("bfloat16", "float32")
        for called, shape in {
            "as given": (64, 96), "tiny": (32, 32), "odd rows": (53, 96), "odd block": (64, 85), "odd": (53, 85),
            "large": (128, 192),
        }.items()
    }  # fmt: skip
    assert all(case.arguments["M"] == 32 and case.arguments["causal"] is True for case in made)


def test_nothing_is_tried_twice_or_for_hours() -> None:
    def one_size(arguments: Mapping[str, object]) -> Inputs:
        size = arguments["n"]
        assert isinstance(size, int)
        return (((size, 1024), "float32"),)

    def called(size: int) -> list[str]:
        given: dict[str, object] = {"n": size}
        return [case.called for case in cases_of(given, roles_of(given, one_size), one_size, [CHIP])]

    assert called(32) == ["as given", "odd", "large"]
    assert called(2) == ["as given", "tiny", "odd"]
    largest = math.isqrt(MOST_ELEMENTS) * 2
    assert called(largest) == ["as given", "tiny", "odd"]
    assert called(largest // 2)[-1] == "large"


def test_each_target() -> None:
    chips = [CHIP, get_target("blackhole_p150")]
    made = cases_of(GIVEN, roles_of(GIVEN, inspect), inspect, chips)
    assert [case.target for case in made[:4]] == chips * 2
