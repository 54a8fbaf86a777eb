"""The course: its chapters in order, listed and linked from one to the next. `pytest --update-golden` writes the list
and the links, so that a new chapter is a new file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import compare_golden

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
TOUR = NOTEBOOKS / "explorer.ipynb"
# The cells that this file writes, by their ids: the first and the last of each notebook, and the list in the first one.
FIRST, LAST, LIST = "course-first", "course-last", "course-list"


def cells_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def question(path: Path) -> str:
    """The title of a notebook."""
    lines = (line for cell in cells_of(path) if cell["cell_type"] == "markdown" for line in cell["source"])
    return next(line for line in lines if line.startswith("# ")).removeprefix("# ").strip()


def link(path: Path) -> str:
    return f"[{question(path)}]({path.name})"


def way(path: Path) -> str:
    """The line with which a notebook begins and ends: the chapters around it."""
    if path == TOUR:
        return f"A tour, to be read at any time · [The course]({CHAPTERS[0].name})"
    place = CHAPTERS.index(path)
    parts = [f"Chapter {path.name[:2]} of [the course]({CHAPTERS[0].name})"]
    if place:
        parts.insert(0, f"← {link(CHAPTERS[place - 1])}")
    if place + 1 < len(CHAPTERS):
        parts.append(f"{link(CHAPTERS[place + 1])} →")
    return " · ".join(parts)


def chapters() -> str:
    rows = [f"| {path.name[:2]} | {link(path)} |" for path in CHAPTERS]
    tour = f"At any time: {link(TOUR)} is a tour of the explorer."
    head = "## The course\n\nOne question in each chapter, in this order:\n\n| | |\n|---|---|\n"
    return head + "\n".join(rows) + f"\n\n{tour}"


def with_course(path: Path) -> str:
    """The text of a notebook with its cells of the course as they are to be."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    texts = {FIRST: way(path), LAST: way(path)} | ({LIST: chapters()} if path == CHAPTERS[0] else {})
    cells = {
        name: {"cell_type": "markdown", "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
        for name, text in texts.items()
    }
    kept = [cell for cell in notebook["cells"] if cell["id"] not in cells]
    notebook["cells"] = [cells.pop(FIRST), *kept, *reversed(cells.values())]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", [*CHAPTERS, TOUR], ids=lambda path: path.stem)
def test_chapters_are_listed_and_linked_in_order(path: Path, request: pytest.FixtureRequest) -> None:
    compare_golden(path, with_course(path), update=bool(request.config.getoption("--update-golden")))


def test_each_notebook_is_in_the_course() -> None:
    assert {*CHAPTERS, TOUR} == {*NOTEBOOKS.glob("*.ipynb")}
    numbers = [path.name[:2] for path in CHAPTERS]
    assert len({*numbers}) == len(numbers)


@pytest.mark.parametrize("path", [*CHAPTERS, TOUR], ids=lambda path: path.stem)
def test_the_title_is_a_question(path: Path) -> None:
    assert question(path).endswith("?")
