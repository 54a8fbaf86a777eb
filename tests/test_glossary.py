"""The glossary: one entry for each term, found by every spelling, and read from one page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ttexplore.cli import main
from ttexplore.glossary import SECTIONS, SPELLINGS, TERMS, read_term, term

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "glossary.md"


def test_the_page_is_read_whole() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall("^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    assert re.findall("^### (.+)$", text, re.MULTILINE) == list(TERMS)
    links = [(" ".join(name.split()), anchor) for name, anchor in re.findall(r"\[([^]]+)\]\(#([^)]+)\)", text)]
    assert links == [(name, TERMS[name].anchor) for one in TERMS.values() for name in one.see]
    words = " ".join(text.split())
    for one in TERMS.values():
        assert f"### {one.name} {one.meaning} {one.counterpart}" in words
        assert not one.aliases or f"Also: {', '.join(one.aliases)}." in words, one.name


@pytest.mark.parametrize(
    "entry",
    ["core", "core\n\nA processor.", "core\n\nA processor.\n\nAlso: Tensix.",
     "core\n\nA processor.\n\nIn CUDA: An SM.\n\nAlias: Tensix.", "core\n\n\n\nIn CUDA: An SM."],
)  # fmt: skip
def test_an_incomplete_entry_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match=r"core|not enough values"):
        read_term(entry)


def test_every_spelling_names_one_term() -> None:
    spellings = [name.casefold() for one in TERMS.values() for name in (one.name, *one.aliases)]
    assert sorted(spellings) == sorted(set(spellings))
    assert sum(map(len, SECTIONS.values())) == len(TERMS)
    for name in spellings:
        found = term(name.upper())
        assert found is not None
        assert name in map(str.casefold, (found.name, *found.aliases))
    assert term("wavefront") is None


def test_every_term_has_a_counterpart_in_cuda_or_says_that_there_is_none() -> None:
    sentences = re.compile(r"\.(?=\s|$)")
    for one in TERMS.values():
        assert 1 <= len(sentences.findall(one.meaning)) <= 2, one.name
        assert 1 <= len(sentences.findall(one.counterpart)) <= 2, one.name
        assert one.counterpart.startswith(("In CUDA: ", "CUDA has none")), one.name
        assert one.counterpart.endswith("."), one.name
        assert one.counterpart in one.text, one.name
    assert TERMS["circular buffer"].counterpart.startswith("In CUDA: A ring of stages in shared memory")
    assert TERMS["NoC"].counterpart.startswith("CUDA has none: ")


def test_related_terms_exist() -> None:
    assert [(one.name, name) for one in TERMS.values() for name in one.see if name not in TERMS] == []


def test_links_into_the_glossary_lead_to_a_term() -> None:
    anchors = {one.anchor for one in TERMS.values()}
    files = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    links = {(file.name, link) for file in files for link in re.findall(r"glossary\.md#([^)\s]*)\)", file.read_text())}
    assert links
    assert [link for link in sorted(links) if link[1] not in anchors] == []


# Words that are terms and everyday words; which one is meant no test can tell.
EVERYDAY = (
    "accumulate", "barrier", "block", "compute", "init", "item", "kernel", "layout", "order", "page", "pass", "plan",
    "policy", "pop", "program", "push", "reserve", "section", "step", "target", "wait",
)  # fmt: skip
LINK = re.compile(r"\[([^]]*)\]\([^)]*glossary\.md#([^)]*)\)")


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_links_each_term_where_it_first_uses_it(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "markdown"]
    cells = [cell for cell in cells if not cell["id"].startswith("course-")]  # titles of other notebooks
    prose = "".join(line for cell in cells for line in [*cell["source"], "\n"] if not line.startswith("#"))
    linked: set[str] = set()
    missing: list[str] = []
    # Links, text that is none of ours to explain, and words.
    words = rf"{LINK.pattern}|`[^`]*`|\b(?:tensor|CUDA) cores?\b|\b(?P<term>{'|'.join(SPELLINGS)})s?\b"
    for found in re.finditer(words, prose, re.IGNORECASE):
        if anchor := found[2]:
            linked.add(anchor)
        elif spelling := found["term"]:
            one = SPELLINGS[spelling.casefold()]
            if one.anchor not in linked and not {one.name, spelling.casefold()} & {*EVERYDAY}:
                missing.append(found[0])
    assert missing == []


def test_explain_prints_a_term(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "circular buffer"]) == 0
    out = capsys.readouterr().out
    assert out == TERMS["circular buffer"].text + "\n"
    assert main(["explain", "cb"]) == 0
    assert capsys.readouterr().out == out
    assert main(["explain", "--json", "ULP"]) == 0
    assert '"name": "ULP"' in capsys.readouterr().out
