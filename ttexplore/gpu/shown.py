"""What the explorer shows of a GPU lane beside a lowering, as plain JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from ttexplore.gpu.beside import Beside, step_words
from ttexplore.gpu.concepts import Concept, figures, first_runs, lines_by_file
from ttexplore.gpu.environment import SET_UP
from ttexplore.gpu.programs import Fact
from ttexplore.record import JsonObject, Listing
from ttexplore.views.explorer import error_data, listings_data
from ttexplore.views.markup import plural, visible

# A page names no folder of the machine on which it was made.
_RECORDED = (f"recorded when ttexplore was made; with `{SET_UP}`, TileLang lowers the kernel on this machine",)


def beside_data(both: Beside, offered: Mapping[str, str]) -> JsonObject:
    """The lane of `both` with the aligned passes, and, if none of them failed, the source and the map of concepts.
    `offered` are what can be chosen instead, by name, as it is shown."""
    lane = both.lane
    failed = lane.error
    concepts = both.concepts.rows if failed is None else ()
    tables, numbers = listings_data([] if failed is not None else [_working(lane.code.listing, lane.file, concepts)])
    return {
        "arch": lane.arch,
        "offered": list(map(list, offered.items())),
        "file": {"name": lane.file, "listing": numbers[0]} if numbers else None,
        "recorded": bool(lane.recorded),
        "remarks": [visible(remark) for remark in (*lane.remarks, *(_RECORDED if lane.recorded else ()), *lane.notes)],
        "concepts": [
            {
                "names": [concept.gpu_name, concept.name], "sentence": concept.sentence,
                "facts": [list(map(_fact, side)) for side in (concept.gpu, concept.ours)],
            }
            for concept in concepts
        ],
        "passes": [
            {
                "name": row.purpose.name, "sentence": row.purpose.sentence,
                "gpu": [visible(step_words(step)) for step in row.gpu],
                "ours": [[visible(step_words(step)), step.letter] for step in row.ours],
            }
            for row in both.passes.rows
        ],
        "port": None,
        "error": error_data(failed.record()) if failed is not None else None,
        **tables,
    }  # fmt: skip


def _working(source: Listing, file: str, concepts: Iterable[Concept]) -> Listing:
    """The source in which the lines that a concept names do the work, and all others are around that: whoever follows a
    line of the kernel wants to see the copy and the product, not the loops."""
    named = {number for row in concepts for fact in row.gpu for name, number in fact.lines if name == file}
    lines = tuple(
        dataclasses.replace(line, work="computes") if number in named else line
        for number, line in enumerate(source.lines, 1)
    )
    return dataclasses.replace(source, lines=lines)


def _fact(fact: Fact) -> JsonObject:
    files = {file: first_runs(lines) for file, lines in lines_by_file(fact.lines).items()}
    hidden = sum(more for _, more in files.values())
    return {
        "text": visible(figures(fact)),
        "lines": [[file, first, last] for file, (spans, _) in files.items() for first, last in spans],
        "more": f"and {plural(hidden, 'more line')}" if hidden else "",
    }
