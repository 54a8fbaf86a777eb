"""Each pass has its test and its golden file, which shows what the pass does on small kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import GOLDEN_FOLDER
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.passes.step import Pass

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("step", PIPELINE, ids=lambda step: step.name)
def test_a_pass_has_its_test(step: Pass) -> None:
    path = FOLDER / f"test_{step.name}.py"
    assert path.exists(), f"write {path.name}, which calls pass_golden with a small kernel"
    assert re.search(rf'pass_golden\(\s*"{step.letter}",', path.read_text()), f"{path.name} is of another pass"


def test_no_file_is_left_over() -> None:
    found = {path.name for path in (GOLDEN_FOLDER / "passes").iterdir()}
    assert found == {f"{one.letter}_{one.name}.txt" for step in PIPELINE for one in (step, *step.parts)}
