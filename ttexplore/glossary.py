"""The glossary: every word of the hardware, of the lowering and of the numbers that the product shows.

The entries are read from docs/glossary.md. ``ttexplore explain TERM`` prints one, and the explorer shows one where the
term is a heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IN_CUDA = "In CUDA: "
NO_COUNTERPART = "CUDA has none"


@dataclass(frozen=True, slots=True)
class Term:
    """A term with its meaning, in at most two sentences. `cuda` says what a CUDA programmer knows it as, or begins with
    "CUDA has none"; `aliases` are other spellings of it, `see` names related terms."""

    name: str
    meaning: str
    cuda: str
    aliases: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The fragment under which docs/glossary.md has the term, as GitHub makes it from the heading."""
        letters = (c for c in self.name.lower() if c.isalnum() or c in " -_")
        return "".join(letters).replace(" ", "-")

    @property
    def counterpart(self) -> str:
        """What CUDA has in its place, as a sentence of its own."""
        return self.cuda if self.cuda.startswith(NO_COUNTERPART) else IN_CUDA + self.cuda

    @property
    def card(self) -> str:
        """What the explorer shows of it: the meaning, and in a line of its own the counterpart."""
        return f"{self.name}: {self.meaning}\n{self.counterpart}".replace("`", "")

    @property
    def text(self) -> str:
        """The entry as plain text."""
        also = f" (also: {', '.join(self.aliases)})" if self.aliases else ""
        related = f"\nSee also: {', '.join(self.see)}" if self.see else ""
        return f"{self.name}{also}\n{self.meaning}\n{self.counterpart}{related}"


def read_term(entry: str) -> Term:
    """Read an entry of the page. Raises ValueError if a part is missing, or is not one that entries have."""
    name, meaning, counterpart, *related = (" ".join(paragraph.split()) for paragraph in entry.split("\n\n"))
    labelled = dict(paragraph.removesuffix(".").split(": ", 1) for paragraph in related)
    aliases, see = labelled.pop("Also", ""), labelled.pop("See", "")
    if labelled or not meaning or not counterpart.startswith((IN_CUDA, NO_COUNTERPART)):
        raise ValueError(f"{_PAGE}: the entry {name!r} lacks its counterpart in CUDA, or has unknown parts")
    links = re.findall(r"\[(.+?)\]\(#", see)
    return Term(
        name, meaning, counterpart.removeprefix(IN_CUDA), tuple(filter(None, aliases.split(", "))), tuple(links)
    )


def _sections(page: str) -> Iterator[tuple[str, tuple[Term, ...]]]:
    for section in page.strip().split("\n\n## ")[1:]:
        title, *entries = section.split("\n\n### ")
        yield title, tuple(map(read_term, entries))


# The page lies beside the package in a checkout, and inside it once installed.
_PAGE = next(filter(Path.is_file, (root / "docs" / "glossary.md" for root in Path(__file__).parents[:2])))
SECTIONS: dict[str, tuple[Term, ...]] = dict(_sections(_PAGE.read_text(encoding="utf-8")))
TERMS: dict[str, Term] = {term.name: term for section in SECTIONS.values() for term in section}
# Each name and alias in lower case, longest first: a pattern of alternatives in this order finds the longest match.
SPELLINGS: dict[str, Term] = dict(
    sorted(
        ((name.casefold(), term) for term in TERMS.values() for name in (term.name, *term.aliases)),
        key=lambda entry: (-len(entry[0]), entry[0]),
    )
)


def term(name: str) -> Term | None:
    """The entry for a term or one of its aliases, in upper or lower case; None if there is none."""
    return SPELLINGS.get(name.strip().casefold())
