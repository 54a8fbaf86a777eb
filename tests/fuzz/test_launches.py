"""Some random kernels of several launches, always the same ones; ``python -m tests.fuzz.launches`` checks others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.launches import campaign
from ttexplore.passes.launches import splitting as launches
from ttexplore.passes.launches import tensor_roles


def test_launches_give_the_numbers_of_numpy() -> None:
    told = campaign(15, 9)
    assert told["kept block, refused"] >= 1, told
    assert told["unwritten, refused"] >= 1, told
    assert sum(count for what, count in told.items() if not what.endswith("0 of them after T.sync_grid")) >= 6, told


def _nothing_is_kept(_: Any) -> dict[str, str]:
    return {}


def _nothing_is_checked(*_: Any) -> tuple[str, ...]:
    return ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (tensor_roles, "kept_parts", _nothing_is_kept),
        (launches, "_check_contents", _nothing_is_checked),
        (launches, "_check_read", _nothing_is_checked),
    ],
)
def test_what_is_lost_between_launches_is_missed(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, fault: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, name, fault)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=r"Not equal|DID NOT RAISE|seed \d+"):
        campaign(15, 9)
