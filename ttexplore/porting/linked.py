"""A foreign source linked to the kernel that was written from it, for the explorer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ttexplore.porting.foreign.marks import Mark
from ttexplore.porting.pattern import patterns
from ttexplore.porting.port import Port, PortedKernel
from ttexplore.record import JsonObject, Line, Listing, Origin, lines_of
from ttexplore.views.explorer import listings_data
from ttexplore.views.markup import visible

# What the explorer asks for in place of an architecture.
NAME = "port"
_FILE = {"Triton": "source.py", "CUDA": "source.cu", "ThunderKittens": "source.cu"}


def linked_source(port: Port, kernel: PortedKernel, ours: Listing) -> Listing:
    """The foreign text; lines with constructs come from the lines of `ours` that have an equivalent of them.

    An equivalent is a word of TileLang in a row of the porting table that is about the construct; among these, one with
    the construct's own name comes first, as T.exp for tl.exp. These links are inferred: they say what stands for what,
    not which value is which. Kernels of the source that have a skeleton of their own have none.
    """
    other_lines = [ported.line for ported in port.kernels if ported.skeleton and ported != kernel]
    begins = sorted(ported.line for ported in port.kernels)
    origins_of: dict[int, dict[Origin, None]] = {}
    for mark in port.marks:
        begin = max((line for line in begins if line <= mark.line), default=0)
        if mark.row and begin not in other_lines:
            lines = _equivalents(mark, port.language, ours)
            origins_of.setdefault(mark.line, {}).update(
                dict.fromkeys(Origin(line.origins[0].span, "inferred") for line in lines)
            )
    language = "python" if port.language == "Triton" else "cpp"
    return Listing(
        language,
        tuple(Line(text, tuple(origins_of.get(number, ()))) for number, text in enumerate(lines_of(port.text), 1)),
    )


def _equivalents(mark: Mark, language: str, ours: Listing) -> list[Line]:
    rows = [
        pattern for pattern in patterns().values() if pattern.name == mark.row or mark.text in pattern.words[language]
    ]
    words = list(dict.fromkeys(word for row in rows for word in row.tilelang))
    named = re.findall(r"\w+", mark.text)
    own_words = [f"T.{named[-1]}"] if named else []
    like = [word for word in words if named and re.search(rf"(_|\b){named[-1]}\b", word)]
    for candidates in (own_words, like, words):
        lines = [line for line in ours.lines if line.origins and _has(line.text, candidates)]
        if lines:
            return lines
    return []


def _has(text: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", text) for word in words)


def port_data(port: Port, kernel: PortedKernel, ours: Listing, offered: Mapping[str, str]) -> JsonObject:
    """What the explorer shows of a port beside the lowering of the kernel that was written from it, in the form of a
    GPU lane (``ttexplore/gpu/shown.py``): the foreign source with its constructs in place of a generated one."""
    tables, (number,) = listings_data([linked_source(port, kernel, ours)])
    names = list(dict.fromkeys(mark.row for mark in port.marks if mark.row))
    return {
        "arch": NAME, "offered": list(map(list, offered.items())), "recorded": False,
        "file": {"name": _FILE[port.language], "listing": number},
        "remarks": [
            f"ported from {visible(kernel.name)}: {kernel.family}; {port.summary}",
            *([] if kernel.proof is None else map(visible, str(kernel.proof).split("\n"))),
        ],
        "concepts": [], "passes": [], "error": None,
        "port": {
            "language": port.language,
            "rows": [
                {
                    "name": row.name, "note": row.note, "pitfall": row.pitfall,
                    "tilelang": list(row.tilelang), "metalium": list(row.metalium),
                }
                for row in map(patterns().__getitem__, names)
            ],
            "marks": [
                [mark.line, mark.column, visible(mark.text), names.index(mark.row) if mark.row else -1]
                for mark in port.marks
            ],
        },
        **tables,
    }  # fmt: skip
