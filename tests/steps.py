"""The letters of the steps as the pipeline has them, for tests of what shows or runs all of them.

`tests/golden/pipeline.txt` shows them; a new pass or part changes that file, and no test.
"""

from __future__ import annotations

from ttexplore.passes.pipeline import PIPELINE

LETTERS = [step.letter for step in PIPELINE]
PARTS = {step.letter: [part.letter for part in step.parts] for step in PIPELINE if step.parts}


def before(letter: str) -> list[str]:
    """The steps before one, in order."""
    return LETTERS[: LETTERS.index(letter)]


def after(letter: str) -> list[str]:
    """The steps after one, in order."""
    return LETTERS[LETTERS.index(letter) + 1 :]


def letter_of(name: str) -> str:
    """The letter of the part with this name."""
    return next(part.letter for step in PIPELINE for part in step.parts if part.name == name)


def after_a0(parts: list[str]) -> list[str]:
    """The steps after A0 with some of their parts."""
    return [
        row for letter in after("A0") for row in (letter, *(part for part in parts if part.startswith(f"{letter}.")))
    ]
