"""The porting table: its rows, the search in them, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ttexplore.characters import Printed
from ttexplore.errors import unknown
from ttexplore.given import text as text_of
from ttexplore.porting.pattern import LANGUAGES, Pattern, pattern_sections, patterns
from ttexplore.views.markup import content_id, escape, plural
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment

_NONE = "–"


@dataclass(frozen=True, repr=False)
class Table(Printed):
    """Rows of the porting table, in order. ``table["mbarriers"]`` is one row; ``table.search("cp.async")`` are those
    that a word or a sentence belongs to, the best first."""

    patterns: tuple[Pattern, ...]
    title: str = "porting"

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self.patterns)

    def __len__(self) -> int:
        return len(self.patterns)

    def __getitem__(self, name: str) -> Pattern:
        """The row of this name. Raises UsageError for other names."""
        name = text_of("the row", name)
        for pattern in self.patterns:
            if pattern.name == name:
                return pattern
        raise unknown("row", name, [pattern.name for pattern in self.patterns])

    def search(self, query: str) -> Table:
        """The rows in which `query` occurs, in upper or lower case: first those that have it as a word or as their
        name, then those with a longer word that contains it, then those that have it in a term or in a sentence.

        If no row has it as a whole, the rows that have all its words, in any place. Raises UsageError if it is not a
        text.
        """
        query = text_of("the text to search for", query).strip().casefold()
        ranked = [(_rank(pattern, query), pattern) for pattern in self.patterns]
        matches = [pattern for rank, pattern in sorted(ranked, key=lambda pair: pair[0] or 0) if rank is not None]
        if not matches and (words := query.split()):
            matches = [pattern for pattern in self.patterns if all(_rank(pattern, word) is not None for word in words)]
        return Table(tuple(matches), f"{self.title}: {query}")

    @property
    def markdown(self) -> str:
        """The rows as tables of Markdown: the words of each language, and below them the notes of each row."""
        lines = [f"| | {' | '.join(LANGUAGES.values())} |", f"|---|{'---|' * len(LANGUAGES)}"]
        for pattern in self.patterns:
            cells = [", ".join(map(_code, words)) or _NONE for words in pattern.words.values()]
            lines.append(f"| **{pattern.name}** | {' | '.join(cells)} |")
        for pattern in self.patterns:
            lines += ["", f"**{pattern.name}.** {pattern.note} *Pitfall:* {pattern.pitfall}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.title}: {plural(len(self), 'row')}>"

    def __str__(self) -> str:
        if not self.patterns:
            return f"{self.title}: nothing found"
        return "\n\n".join(map(str, self.patterns))

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in ("", *LANGUAGES.values()))
        rows = "".join(map(_row, self.patterns))
        table = f'<table class="t facts"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        content = (
            f'<div class="head"><h3>{escape(self.title)}</h3><span>{plural(len(self), "row")}</span></div>'
            f'<div class="scroll">{table if self.patterns else "<p>nothing found</p>"}</div>'
        )
        return fragment(content_id("ttx-porting", content), "porting table", content)


def table() -> Table:
    """The whole porting table: constructs of CUDA, Triton and ThunderKittens, and what they are in Tessera, TileLang
    and TT-Metalium."""
    return Table(tuple(patterns().values()))


def cheat_sheet() -> Table:
    """The rows of whole kernels: GEMM, epilogues, norms, RoPE, softmax, attention, triangular products."""
    return Table(pattern_sections()["Kernel families"], "porting: kernel families")


def sections() -> tuple[Table, ...]:
    """The porting table in parts, by subject."""
    return tuple(Table(rows, name) for name, rows in pattern_sections().items())


def _rank(pattern: Pattern, query: str) -> int | None:
    """How well a row fits, 0 being best; None if it has the query nowhere."""
    if not query:
        return None
    words = [word.casefold() for words in pattern.words.values() for word in words]
    if query in words or query == pattern.name.casefold():
        return 0
    if any(word.startswith(query) for word in words) or query in pattern.name.casefold():
        return 1
    if any(query in word for word in words):
        return 2
    terms = [name.casefold() for term in pattern.glossary for name in (term.name, *term.aliases)]
    if query in terms:
        return 3
    return 4 if _occurs(query, (pattern.note, pattern.pitfall, *(term.cuda for term in pattern.glossary))) else None


def _occurs(query: str, texts: Iterable[str]) -> bool:
    return any(query in text.casefold() for text in texts)


def _code(word: str) -> str:
    return f"`{word}`".replace("|", "\\|")


def _marked(word: str) -> str:
    # Long names break after an underscore, not anywhere.
    return f"<code>{escape(word).replace('_', '_<wbr>')}</code>"


def _row(pattern: Pattern) -> str:
    cells = "".join(f"<td>{', '.join(map(_marked, words)) or _NONE}</td>" for words in pattern.words.values())
    span = f'<td colspan="{len(LANGUAGES)}">'
    terms = ", ".join(defined(name) for name in pattern.terms)
    told = (
        f'<tr><td></td>{span}{escape(pattern.note)} <span class="q">Pitfall:</span> {escape(pattern.pitfall)} '
        f'<span class="q">Steps {escape(", ".join(pattern.steps))}; {terms}</span></td></tr>'
    )
    return f"<tr><td><b>{escape(pattern.name)}</b></td>{cells}</tr>{told}"
