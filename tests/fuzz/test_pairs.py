"""Some random kernels of one feature each, always the same ones; ``python -m tests.fuzz.pairs`` checks other ones.

And that the generators draw every feature with every attribute that a rewriting can drop, and every name.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ttexplore.language as T
from tests.fuzz.features import ELSEWHERE, NAMES, PAIRS
from tests.fuzz.pairs import GENERATORS, campaign, drawn, summary
from ttexplore.ir.operations.scans import Scan, scan_of
from ttexplore.language.guard.names import HINTS, IGNORED, NOT_LOWERED
from ttexplore.language.tracer.dtypes import ALIASES, DTYPES
from ttexplore.passes.normalize.reductions import scans

_HERE = Path(__file__).parent
_OTHERS = {*HINTS, *IGNORED, *NOT_LOWERED, *DTYPES, *ALIASES, "annotations", "NoReturn"}
_LANGUAGE = {
    name: value
    for name, value in vars(T).items()
    if not (name.startswith("_") or isinstance(value, ModuleType) or name in _OTHERS)
}


def aliases(name: str) -> set[str]:
    return {other for other, value in _LANGUAGE.items() if value is _LANGUAGE[name]}


def test_every_generator_says_what_it_draws() -> None:
    assert set(PAIRS) == set(GENERATORS)
    assert not set(NAMES) & set(ELSEWHERE)
    assert {*NAMES, *ELSEWHERE} <= set(_LANGUAGE)


@pytest.mark.parametrize("feature", PAIRS)
def test_every_attribute_and_name_is_drawn(feature: str) -> None:
    missing = {*PAIRS[feature]}
    names = {name: rf"\bT\.({'|'.join(aliases(name))})\b" for name, home in NAMES.items() if home == feature}
    for seed in range(600):
        case = drawn(seed, feature)
        missing -= case.attributes
        text = case.text()
        names = {name: pattern for name, pattern in names.items() if not re.search(pattern, text)}
        if not missing and not names:
            return
    raise AssertionError(f"never drawn: {sorted(missing)}, {sorted(names)}")


@pytest.mark.every_case
@pytest.mark.parametrize("name", _LANGUAGE)
def test_every_name_has_a_generator(name: str) -> None:
    """A new name of the language gets an entry in `features.py`, and a generator that draws it."""
    homes = [NAMES[one] for one in aliases(name) if one in NAMES]
    if any(home in PAIRS for home in homes):
        return
    if not homes:
        assert any(one in ELSEWHERE for one in aliases(name)), f"no generator draws T.{name}"
        return
    texts = [path for home in homes for path in _HERE.rglob("*.py" if home == "." else home)]
    drawn_in = [path for path in texts if not path.name.startswith(("test_", "features"))]
    pattern = rf"\bT\.({'|'.join(aliases(name))})\b|\"({'|'.join(aliases(name))})\""
    assert any(re.search(pattern, path.read_text(encoding="utf-8")) for path in drawn_in), (
        f"{homes} do not draw T.{name}"
    )


def test_kernels_of_one_feature_are_right() -> None:
    tally = campaign(0, 20)
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.refused.total() * 10 <= tally.kernels.total() * 3, summary(tally)


def test_scans_that_start_at_the_wrong_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(statement: Any) -> Scan | None:
        found = scan_of(statement)
        return None if found is None else dataclasses.replace(found, reverse=not found.reverse)

    monkeypatch.setattr(scans, "scan_of", turned)
    assert campaign(0, 1, "scan").faults
