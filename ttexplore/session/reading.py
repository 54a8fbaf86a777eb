"""Reading and drawing a lowering, and writing it to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttexplore.errors import UsageError
from ttexplore.files import write_files
from ttexplore.given import flag, named, whole
from ttexplore.given import path as path_of
from ttexplore.given import text as text_of
from ttexplore.plan import Partition
from ttexplore.session.archive import Archive, write_archive
from ttexplore.session.results import Graph
from ttexplore.views.figures.dot import dataflow_dot, passes_dot
from ttexplore.views.steps.history import Found, LineHistory, find_text, line_history

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored

_DIALECTS = ("tessera",)


def history(explored: Explored, line: int) -> LineHistory:
    """What became of a kernel line: the number of lines that come from it after each step, and the lines that do in
    each emitted kernel.

    Raises UsageError for a line outside the kernel.
    """
    line = whole("a line of the kernel", line)
    try:
        return line_history(explored.trace, line)
    except ValueError as error:
        raise UsageError("U003", str(error), hint="lines are counted as in the kernel's file or cell") from None


def find(explored: Explored, text: str) -> Found:
    """Find a text in the program and the plan: the first step that contains it, and the first that no longer does.

    Raises UsageError if `text` is not a string.
    """
    return find_text(explored.trace, text_of("the text to find", text))


def partition(explored: Explored) -> Partition:
    """The partition of the work. Raises UsageError before B1."""
    if explored.plan.partition is None:
        raise UsageError("U006", "the work is not partitioned yet", hint=str(explored.error or ""))
    return explored.plan.partition


def dot(explored: Explored, what: Literal["dataflow", "passes"] = "dataflow") -> Graph:
    """A graph for papers and slides: the tile dataflow, or the passes with what each decides and rewrites.

    Its text needs no program; ``dot("passes").save("passes.svg")`` needs Graphviz. Raises UsageError for any other
    name, and for the dataflow before C3.
    """
    match named("graph", what, ("dataflow", "passes")):
        case "dataflow":
            if explored.plan.graph is None:
                raise UsageError("U006", "the tile dataflow is not decided yet", hint=str(explored.error or ""))
            return Graph(dataflow_dot(explored.plan))
        case _:
            return Graph(passes_dot(explored.trace))


def export(explored: Explored, folder: str | Path, *, dot: bool = False, dialect: str | None = None) -> list[Path]:
    """Write the kernels, the host program, the plan and the runner, all or none; :mod:`ttexplore.files` covers the
    case that the process is killed. Several launches are written each to a folder of its own, ``launch_1`` and so on,
    beside a runner of all. With `dot`, also write the graphs of :meth:`dot`.

    With ``dialect="tessera"``, write only the kernel as it was before the first step, in the style of the Tessera
    skeleton of TileLang's porting document: an illustration, which nothing compiles.

    Raises UsageError if the folder, or a file in it, cannot be written, and for what the dialect has no word for.
    """
    dot = flag("dot", dot)
    if dialect is not None:
        dialect = named("dialect", dialect, _DIALECTS)
    contents = [_content(launch, dot=dot, dialect=dialect) for launch in explored.launches]
    if not explored._is_several:
        return write_files(contents[0], folder)
    folders, beside = explored._with_kernel("a runner of launches")._in_folders
    root = path_of("the folder", folder)
    written = [path for name, texts in zip(folders, contents, strict=True) for path in write_files(texts, root / name)]
    return written if dialect else [*written, *write_files(beside, folder)]


def _content(explored: Explored, *, dot: bool, dialect: str | None) -> dict[str, str]:
    """The texts of one launch that are written, by the names of their files."""
    if dialect is not None:
        if not explored._has_kernel:
            raise UsageError(
                "U028", "a saved exploration has no kernel that can be written in Tessera",
                hint="explore the kernel itself",
            )  # fmt: skip
        return {f"{explored.kernel.name}.{dialect}.cpp": explored._with_kernel(dialect)._lowered.in_tessera()}
    graphs = {"dataflow.dot": explored.dot("dataflow").text, "passes.dot": explored.dot("passes").text} if dot else {}
    return {name: listing.text for name, listing in explored.files.items()} | graphs


def save(explored: Explored, path: str | Path) -> Path:
    """Write the exploration and the emitted code to one file; ``ttexplore.load`` opens it without TVM.

    It includes inputs and reference of seed 0, unless they exceed 16 MiB. Raises UsageError if the file cannot be
    written.
    """
    only = explored._only("a file")
    stored = explored._with_kernel("a reference")._kept() if explored._has_kernel else only.kept
    return write_archive(path, Archive(explored.trace, explored.plan, explored.target, stored))
