"""The rows of the porting table: a construct each, and how each language writes it, as ``patterns.toml`` has them."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.characters import Printed
from ttexplore.glossary import TERMS, Term

# The columns of the table, in order: the field of a pattern, and the language.
LANGUAGES: dict[str, str] = {
    "cuda": "CUDA",
    "triton": "Triton",
    "thunderkittens": "ThunderKittens",
    "tessera": "Tessera",
    "tilelang": "TileLang",
    "metalium": "TT-Metalium",
}

_KERNELS = Path(__file__).parents[1] / "porting_kernels"


@dataclass(frozen=True, slots=True)
class Pattern(Printed):
    """A construct of GPU kernels and its equivalents.

    The fields named after languages hold words of their code; none where a language has no construct for it. `note`
    says what becomes of it here, `pitfall` what goes wrong when it is ported word by word. `steps` are the letters of
    the passes that lower it, `terms` the names of glossary entries, which explain it and what CUDA has in its place.
    `example` names a kernel of :mod:`ttexplore.porting_kernels` that uses it. `documents` are the rows of the source
    documents' tables that it covers, `sources` the pages where its GPU words are documented.
    """

    name: str
    note: str
    pitfall: str
    steps: tuple[str, ...]
    terms: tuple[str, ...]
    example: str
    cuda: tuple[str, ...] = ()
    triton: tuple[str, ...] = ()
    thunderkittens: tuple[str, ...] = ()
    tessera: tuple[str, ...] = ()
    tilelang: tuple[str, ...] = ()
    metalium: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """The words of each language by its name, in the order of the columns."""
        return {language: getattr(self, field) for field, language in LANGUAGES.items()}

    @property
    def glossary(self) -> tuple[Term, ...]:
        """The entries of the glossary that explain the construct."""
        return tuple(TERMS[name] for name in self.terms)

    @property
    def kernel(self) -> str:
        """The example as ``file.py::name``, for :func:`ttexplore.explore`."""
        return f"{_KERNELS / self.example}.py::{self.example}"

    @property
    def source(self) -> str:
        """The text of the example's file."""
        return (_KERNELS / f"{self.example}.py").read_text(encoding="utf-8")

    def __str__(self) -> str:
        lines = [self.name]
        lines += [f"  {language:<15}{', '.join(words) or '-'}" for language, words in self.words.items()]
        lines += [f"  {'note':<15}{self.note}", f"  {'pitfall':<15}{self.pitfall}"]
        lines += [f"  {'steps':<15}{', '.join(self.steps)}", f"  {'terms':<15}{', '.join(self.terms)}"]
        lines.append(f"  {'example':<15}{self.kernel}")
        return "\n".join(lines)


def _pattern(fields: dict[str, Any], pages: dict[str, str]) -> Pattern:
    """Make a row of its fields. Raises TypeError for lacking or unknown fields, KeyError for unknown pages."""
    sources = [pages[name] for name in fields.get("sources", ())]
    values: dict[str, Any] = {
        name: " ".join(value.split()) if isinstance(value, str) else tuple(value)
        for name, value in (fields | {"sources": sources}).items()
    }
    return Pattern(**values)


@functools.cache
def pattern_sections() -> dict[str, tuple[Pattern, ...]]:
    """The rows of ``patterns.toml`` by subject, in order."""
    subjects = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
    pages = subjects.pop("pages")
    return {subject: tuple(_pattern(fields, pages) for fields in rows) for subject, rows in subjects.items()}


@functools.cache
def patterns() -> dict[str, Pattern]:
    """The rows by name."""
    return {pattern.name: pattern for rows in pattern_sections().values() for pattern in rows}
