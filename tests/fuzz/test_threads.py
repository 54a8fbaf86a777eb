"""Some random kernels for single threads, always the same ones; ``python -m tests.fuzz.threads`` checks other ones."""

from __future__ import annotations

from tests.fuzz.threads import campaign


def test_what_is_lowered_is_right_in_all_orders_of_threads() -> None:
    verdicts = campaign(0, 30)
    assert verdicts["lowered"] >= 10, verdicts
    assert verdicts["wrong, rejected"] >= 3, verdicts
