"""The course: its chapters in order, listed and linked from one to the next. `pytest --update-golden` writes the list
and the links, so that a new chapter is a new file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import compare_golden
from tests.test_glossary import EVERYDAY
from ttexplore.cli import lab_command
from ttexplore.glossary import SECTIONS, SPELLINGS, TERMS

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


MARKED = r"\[(?P<bold>\*\*)?(?P<text>[^]]*?)(?:\*\*)?\]\([^)]*glossary\.md#(?P<anchor>[^)]*)\)"
MENTION = re.compile(
    rf"{MARKED}|`[^`]*`|\b(?:tensor|CUDA) cores?\b|\b(?P<term>{'|'.join(SPELLINGS)})s?\b", re.IGNORECASE
)
BY_ANCHOR = {one.anchor: one for one in TERMS.values()}
# What the words of a sentence that explains a term are at least, beside the terms.
FEWEST_WORDS = 5


def sentences(path: Path) -> list[str]:
    """The sentences of a notebook, with its headings but without its title, which is the question that it answers."""
    ours = {FIRST, LAST, LIST}
    kept = [cell for cell in cells_of(path) if cell["cell_type"] == "markdown" and cell["id"] not in ours]
    prose = "\n\n".join(re.sub(r"(?m)^# .*$", "", "".join(cell["source"])) for cell in kept)
    return re.split(r"\n\s*\n|(?<=[.?:])\s+(?=[A-Z`*\[])", prose)


def terms_of(sentence: str) -> dict[str, bool]:
    """The terms of a sentence, in order: whether it marks them as explained, by a link in bold."""
    found: dict[str, bool] = {}
    for match in MENTION.finditer(sentence):
        if match["anchor"]:
            one, spelling = BY_ANCHOR[match["anchor"]], ""
        elif match["term"]:
            spelling = match["term"].casefold()
            one = SPELLINGS[spelling]
        else:
            continue
        if one not in SECTIONS["GPU words"] and not {one.name, spelling} & {*EVERYDAY}:
            found[one.name] = found.get(one.name, False) or bool(match["bold"])
    return found


def unexplained(notebooks: list[Path]) -> list[str]:
    """The first uses of terms that do not explain them. A sentence explains at most two, with words enough."""
    known: set[str] = set()
    wrong: list[str] = []
    for path in notebooks:
        for sentence in sentences(path):
            terms = terms_of(sentence)
            new = [name for name in terms if name not in known]
            words = re.findall(r"[A-Za-z]\w+", re.sub(MARKED, "", sentence))
            enough = len(new) <= 2 and len(words) >= FEWEST_WORDS * len(new)
            wrong += [
                f"{path.name}: {name!r} in: {' '.join(sentence.split())}"
                for name in new
                if not (terms[name] and enough)
            ]
            known |= {*terms}
    return wrong


def test_no_term_is_used_before_it_is_explained() -> None:
    """Someone who knows CUDA and reads from the first chapter on finds each term explained where it first stands: as
    `[**term**](../docs/glossary.md#term)` in a sentence that says what it is."""
    wrong = unexplained(CHAPTERS)
    assert not wrong, "\n".join(wrong)


def test_unexplained_terms_are_found(tmp_path: Path) -> None:
    def complaints(*texts: str) -> list[str]:
        cells = [{"cell_type": "markdown", "id": str(n), "source": [text]} for n, text in enumerate(texts)]
        (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
        return [line.partition(" in: ")[0].partition(": ")[2] for line in unexplained([tmp_path / "a.ipynb"])]

    tile, face = (f"[**{name}**](../docs/glossary.md#{name})" for name in ("tile", "face"))
    gloss = "which is a square of 32 x 32 numbers that engines compute with"
    assert complaints(f"# Tiles?\n\nA {tile}, {gloss}.", "Tiles. `packer`, and tensor cores.") == []
    assert complaints("A tile is read.", f"A {tile}, {gloss}.") == ["'tile'"]
    assert complaints("A [tile](../docs/glossary.md#tile), " + gloss) == ["'tile'"]
    assert complaints(f"A {tile}.") == ["'tile'"]
    assert complaints(f"A {tile} has a {face}, {gloss}, and the packer.") == ["'tile'", "'face'", "'packer'"]
    assert complaints("## The packer", f"A {tile}, {gloss}.") == ["'packer'"]


@pytest.mark.parametrize(
    "word",
    [
        "CUDA",
        "Triton",
        "warp",
        "occupancy",
        "`__syncthreads`",
        "shared memory",
        "`cp.async`",
        "mbarrier",
        "tensor core",
    ],
)
def test_words_of_gpus_stand_in_the_course(word: str) -> None:
    assert any(word in sentence for path in CHAPTERS for sentence in sentences(path))


@pytest.mark.parametrize("path", [*CHAPTERS, TOUR], ids=lambda path: path.stem)
def test_guesses_are_asked(path: Path) -> None:
    texts = ["".join(cell["source"]) for cell in cells_of(path) if cell["cell_type"] == "code"]
    asked = [text for text in texts if re.search(r"^guess = \.\.\.$|\bguess=", text, re.MULTILINE)]
    assert len(asked) >= 2


LINK = re.compile(r"""\]\((?P<text>[^)\s]+)\)|(?:href|src)=\\?["'](?P<page>[^"'\\]+)""")


def test_links_lead_to_files_that_jupyter_serves() -> None:
    """Relative links of cells and their outputs lead to files of the folder that `ttexplore lab` serves, and to a
    heading that is there."""
    root = lab_command(None)[1]
    assert root == NOTEBOOKS.parent
    found: set[Path] = set()
    for path in (*CHAPTERS, TOUR):
        for match in LINK.finditer(path.read_text(encoding="utf-8")):
            target, _, anchor = (match["text"] or match["page"]).partition("#")
            if not target or re.match(r"[a-z]+:", target):
                continue
            file = (path.parent / target).resolve()
            assert file.is_relative_to(root), f"{path.name}: {target}"
            assert file.is_file(), f"{path.name}: {target}"
            if anchor:
                headings = re.findall(r"(?m)^#+ (.*)$", file.read_text(encoding="utf-8"))
                slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor in slugs, f"{path.name}: {target}#{anchor}"
            found.add(file)
    assert len(found) > 15
