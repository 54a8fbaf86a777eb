"""Terms in labels: each is found by every spelling, and carries the definition that the glossary has."""

from __future__ import annotations

import html
import re

from ttexplore.glossary import SPELLINGS, TERMS
from ttexplore.views.terms import defined, definitions


def test_every_spelling_is_words_only() -> None:
    """They are alternatives of a pattern, in Python and in the browser."""
    assert [spelling for spelling in SPELLINGS if not re.fullmatch(r"\w[\w -]*\w", spelling, re.ASCII)] == []


def test_longer_spellings_come_first() -> None:
    spellings = list(definitions())
    assert spellings == sorted(spellings, key=lambda one: (-len(one), one))
    assert spellings.index("circular buffer") < spellings.index("buffer")


def test_each_spelling_has_the_definition_of_its_term() -> None:
    known = definitions()
    for term in TERMS.values():
        for spelling in (term.name, *term.aliases):
            assert known[spelling.casefold()] == term.card


def test_a_label_shows_the_definitions_of_its_terms() -> None:
    shown = defined("elements by error in ULP & <pages>")
    assert shown.startswith("elements by error in <abbr ")
    assert re.findall(r">([^<]+)</abbr>", shown) == ["ULP", "pages"]
    titles = [html.unescape(title) for title in re.findall(r'title="([^"]*)"', shown)]
    assert titles == [TERMS["ULP"].card, TERMS["page"].card]
    assert shown.endswith("</abbr>&gt;")
    assert defined("compared") == "compared"
