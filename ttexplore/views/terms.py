"""Terms of the glossary where they are shown as labels and headings, with their definitions."""

from __future__ import annotations

import re

from ttexplore.glossary import SPELLINGS
from ttexplore.views.markup import escape, paragraphs

_TERM = re.compile(rf"\b((?:{'|'.join(SPELLINGS)})s?)\b", re.IGNORECASE)


def definitions() -> dict[str, str]:
    """The card of each term by each of its spellings, in lower case, longest first.

    The explorer looks for these spellings, and for their plurals, in labels and headings.
    """
    return {spelling: term.card for spelling, term in SPELLINGS.items()}


def defined(label: str) -> str:
    """`label` as HTML, each term in it an `<abbr>` that shows its definition on hovering and has the focus in turn."""
    markup: list[str] = []
    meanings = definitions()
    for position, piece in enumerate(_TERM.split(label)):
        if position % 2 == 0:
            markup.append(escape(piece))
            continue
        word = piece.casefold()
        meaning = paragraphs(meanings.get(word) or meanings[word.removesuffix("s")])
        markup.append(f'<abbr tabindex="0" title="{meaning}">{escape(piece)}</abbr>')
    return "".join(markup)
