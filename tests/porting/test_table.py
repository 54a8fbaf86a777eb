"""The porting table: its rows are true of their examples, cover the documents, and stand on docs/porting.md."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.conftest import compare_golden
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.glossary import TERMS
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.porting import Pattern, Table, cheat_sheet, checklist, sections, table
from ttexplore.porting.pattern import LANGUAGES
from ttexplore.record import StepRecord

PAGE = Path(__file__).parents[2] / "docs" / "porting.md"
LETTERS = [step.letter for step in PIPELINE]
ROWS = list(table())

# The rows of the documents' tables, in their order.
IN_THE_DOCUMENTS = {
    "authoring": (
        "Launch unit", "Kernel body indexers", "Thread-level parallelism", "Persistent execution", "Data staging",
        "SW pipelining", "Block / tile size", "Work distribution", "Multicast / reuse", "Synchronization",
        "Tuning knobs", "Annotations (TileLang)", "Fallbacks / libraries", "Debugging",
    ),
    "execution": (
        "Execution", "Parallelism", "Memory", "Data Movement", "Tile Size", "Compute", "Synchronization",
        "Programming Model",
    ),
    "ThunderKittens": (
        "16x16 register tiles", "TMA async copies", "WGMMA/WMMA", "LSCF pipeline", "GEMM (bf16/fp16/fp8)",
        "Bias / GELU / SiLU epilogues", "(RMS)LayerNorm", "RoPE", "Reductions (row/col)",
        "Symmetric matmul (triangular mask)",
    ),
    "concepts": ("Persistent Loop Model", "3-Kernel Architecture", "Circular Buffers", "Tile Size: 32x32"),
}  # fmt: skip


@functools.cache
def explored(kernel: str) -> Exploration:
    return ttx.explore(kernel)


@functools.cache
def emitted(kernel: str) -> str:
    """The kernels and the host program of all launches."""
    launches = explored(kernel).launches
    return "\n".join(one.text for launch in launches for name, one in launch.files.items() if name.endswith(".cpp"))


def test_rows_have_names_of_their_own_and_both_sentences() -> None:
    assert len({one.name for one in ROWS}) == len(ROWS) == sum(map(len, sections())) >= 40
    for one in ROWS:
        assert one.note.endswith("."), one.name
        assert one.pitfall.endswith("."), one.name
        assert list(one.words) == list(LANGUAGES.values())
        assert any(one.words[name] for name in ("CUDA", "Triton", "ThunderKittens", "TileLang")), one.name


def test_terms_are_of_the_glossary_and_steps_of_the_pipeline() -> None:
    for one in ROWS:
        assert one.terms, one.name
        assert [name for name in one.terms if name not in TERMS] == [], one.name
        assert one.steps, one.name
        assert sorted(set(one.steps), key=LETTERS.index) == sorted(one.steps, key=LETTERS.index), one.name


def test_rows_do_not_repeat_the_glossary() -> None:
    told = {term.meaning for term in TERMS.values()} | {term.cuda for term in TERMS.values()}
    for one in ROWS:
        assert not {one.note, one.pitfall} & told, one.name


def test_the_rows_cover_the_documents() -> None:
    expected = [f"{document}: {row}" for document, rows in IN_THE_DOCUMENTS.items() for row in rows]
    covered = [name for one in ROWS for name in one.documents]
    assert sorted(covered) == sorted(expected)


def test_words_of_gpu_languages_have_a_source() -> None:
    for one in ROWS:
        # TileLang and TT-Metalium are checked in the examples, Tessera is known from the documents alone.
        if (one.cuda or one.triton or one.thunderkittens) and not one.documents:
            assert one.sources, one.name
        assert all(source.startswith("https://") for source in one.sources), one.name
        assert not one.triton or any("triton" in source or "juejin" in source for source in one.sources), one.name
        assert not one.thunderkittens or any("Kittens" in source for source in one.sources), one.name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_example_has_the_words(row: Pattern) -> None:
    """TileLang's words stand in the kernel, TT-Metalium's in what it becomes."""
    assert [word for word in row.tilelang if word not in row.source] == []
    assert [word for word in row.metalium if word not in emitted(row.kernel)] == []


def touched(step: StepRecord, lines: set[int]) -> bool:
    """Whether a rule of the step made something of these lines of the kernel; of a step that only decides, whether it
    decided something."""
    nodes = {
        line.node for line in step.after.lines for origin in line.origins if origin.span and origin.span.line in lines
    }
    made = any(nodes & {*firing.after} for firing in step.firings)
    return made or (step.changed_plan and not step.changed_ir)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_steps_do_it(row: Pattern) -> None:
    """Each step of a row decides something, or changes what comes from a line with one of the row's words."""
    texts = enumerate(row.source.split("\n"), 1)
    # A word such as `threads=` changes the block: then any line counts.
    lines = {number for number, text in texts if any(word in text for word in row.tilelang) or not row.tilelang}
    for letter in row.steps:
        steps = [launch.steps[letter].record for launch in explored(row.kernel).launches]
        assert any(touched(step, lines) for step in steps), letter


def test_a_step_is_not_true_of_every_line() -> None:
    """The law above can fail: the step that manages DST has nothing to do with copies into shared memory."""
    step = explored(table()["launch grid"].kernel).steps["D5"].record
    lines = dict(enumerate(table()["launch grid"].source.split("\n"), 1))
    assert touched(step, {number for number, text in lines.items() if "T.gemm" in text})
    assert not touched(step, {number for number, text in lines.items() if "T.copy(A" in text})


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("cp.async", "asynchronous copy"),
        ("CP.ASYNC", "asynchronous copy"),
        ("__syncthreads", "barrier of a block"),
        ("tl.dot", "product on the tensor core"),
        ("warpgroup::mma_AB", "product on the tensor core"),
        ("tile_reduce", "reductions"),
        ("mbarrier", "mbarriers"),
        ("Bfp8_b", None),
        ("double buffering", "software pipeline"),
        ("triangular", "triangular product"),
        ("rectangle dram", "multicast"),
        ("no such construct", None),
        ("", None),
    ],
)
def test_search(query: str, first: str | None) -> None:
    found = table().search(query)
    assert next((one.name for one in found), None) == first
    assert isinstance(found, Table)


def test_a_search_puts_words_first() -> None:
    names = [one.name for one in table().search("cp.async")]
    assert names[:2] == ["asynchronous copy", "software pipeline"]
    assert 2 < len(names) < len(ROWS) / 2
    with pytest.raises(UsageError, match="the text to search for"):
        table().search(3)  # pyright: ignore[reportArgumentType]


def test_rows_by_name() -> None:
    assert table()["mbarriers"].terms[0] == "mbarrier"
    with pytest.raises(UsageError, match=r"there is no row 'mbariers'") as raised:
        table()["mbariers"]
    assert "did you mean mbarriers?" in raised.value.hint
    assert [one.name for one in cheat_sheet()] == [
        "GEMM", "bias and activation", "RMS norm and layer norm", "RoPE", "softmax", "attention, forward",
        "triangular product",
    ]  # fmt: skip


def test_the_table_as_text_and_html() -> None:
    found = table().search("mbarrier")
    text, html = str(found), found._repr_html_()
    assert text.startswith("mbarriers\n  CUDA           mbarrier.arrive, mbarrier.try_wait\n")
    assert "porting_kernels/producer_consumer.py::producer_consumer" in text
    assert "<code>mbarrier.arrive</code>" in html
    assert 'aria-label="porting table"' in html
    assert "&lt;&lt;&lt;grid, block&gt;&gt;&gt;" in table()._repr_html_()
    assert repr(found) == f"<porting: mbarrier: {len(found)} rows>"
    empty = table().search("no such construct")
    assert str(empty) == "porting: no such construct: nothing found"
    assert "nothing found" in empty._repr_html_()
    assert ttx.porting.table() == table()


def page() -> str:
    sources = sorted({source for one in ROWS for source in one.sources})
    parts = [
        "# Porting from GPUs",
        "",
        "Constructs of CUDA, Triton and ThunderKittens, and what they are in Tessera, TileLang and TT-Metalium.",
        '`ttx.porting.table()` is this table, `ttx.porting.table().search("cp.async")` finds the rows of a construct,',
        "and `ttx.porting.cheat_sheet()` has those of whole kernels. Words of TileLang occur in the example of a row,",
        "words of TT-Metalium in the C++ that it becomes. Steps are passes of the pipeline ([names.md](names.md)),",
        "terms lead to the [glossary](glossary.md), which says what CUDA has in their place.",
        "This page is written by `tests/porting` (`pytest --update-golden`) from `ttexplore/porting/patterns.toml`.",
    ]  # fmt: skip
    for section in sections():
        parts += [
            "",
            f"## {section.title}",
            "",
            section.markdown,
            "",
            "| | steps | terms | example |",
            "|---|---|---|---|",
        ]
        for one in section:
            terms = ", ".join(f"[{term.name}](glossary.md#{term.anchor})" for term in one.glossary)
            file = f"[{one.example}](../ttexplore/porting_kernels/{one.example}.py)"
            parts.append(f"| {one.name} | {', '.join(one.steps)} | {terms} | {file} |")
    parts += [
        "",
        "## Reading kernels",
        "",
        "`ttx.port(source)` reads the text of a Triton, CUDA or ThunderKittens file (C++ with the extra `port`).",
        "`.marks` are its constructs with their rows, `.unknown` those without one, `.kernels` its kernels. Where a",
        "kernel computes a GEMM with epilogue, an element-wise function, reductions or scans over rows, a norm,",
        "gathered rows, softmax, RoPE or attention forward, it is written as a TileLang kernel. Then both are run:",
        "Triton by an interpreter of its",
        "language over NumPy; CUDA as C++ on the CPU, in a process that can do nothing but compute, with its blocks",
        "and threads in two orders, so that races, divergent barriers, indices outside of arrays and variables",
        "without a value show. Sizes are all different, do not fit to blocks or are smaller than",
        "one, with gaps between rows. Elements are large, negative, equal, zero of both signs, of all magnitudes from",
        "1e-24 to 1e30 (up to 1e15 in products and 10 in attention), the numbers that the source has and those next to",
        "them, and have all bits of their dtype, which is float32 where the source says none. Up to six sizes go",
        "beyond whole numbers",
        "that the source has, the largest first, up to 2,100 along one axis, and in one launch each thread",
        "or program takes",
        "several blocks where it can; sizes that take more than 15 s are left out, and `.proof` names them.",
        "Elements agree where they are what rounding in float32 can make of the skeleton's number in float64: its",
        "error is found while it is evaluated, operation by operation, so that a rounding to 16 bits on the way shows.",
        "Where every element of every",
        "output agrees, `.skeleton` is the text of the kernel, and `.proof` says what was tried. Otherwise the kernel",
        "is a draft: `.kernels[0].draft` has its text, why it is none, and the first element that differs, with the",
        "line of the source that stored it. A parameter that no length, distance, block or value accounts for makes a",
        "draft, too; sizes with which the source itself reads outside of its tensors are left out, and `.proof` names",
        "them. `ttx.port(source, prove=False)` runs nothing: all kernels are drafts. The family",
        "follows from what is stored, not from names. Of variants that a constant chooses, the first one is taken,",
        "and the skeleton says which; sizes, blocks and strides are those of the skeleton, and dtypes where the",
        "source says none; attention is scaled by 1 / sqrt(dim).",
        "A statement or expression that no rule knows, a name that is neither a parameter",
        "nor a constant of the file, a macro that is no number, a choice by an argument in Triton: each refuses the",
        "kernel, with its line, and `.kernels[0].way` says how to write it by hand, with a kernel that does it.",
        "Each tensor must be read and written whole, by rows or by columns, by the rows that another tensor has one",
        "index for each row of, or at one such column of each row, and each element",
        "once: where a value or an index cannot be followed, or elements are shifted, skipped, transposed or chosen",
        "by a condition, there is no skeleton, and `.kernels` says why. One length ends the indices of an axis, in",
        "loops, masks and distances of rows; a distance of rows belongs to one length, and is none of elements.",
        "Numbers and indices that their type rounds, cuts or lets wrap around are refused, and so are conversions to",
        "8 bits, negative numbers that are compared or divided as unsigned ones, accumulators of whole numbers, and",
        "distances of rows as values; conditions on what a loop carries, iterations that leave out some,",
        "steps that its own variable changes, and whole parameters times numbers of more than 15 bits. Scores that a",
        "finite number hides, and maxima that begin with one, have this number in the skeleton, too.",
        "Conversions to 16 bits are left out right before a store and, in Triton, of",
        "factors of products; other roundings to 16 bits are refused. In Triton so are lengths inside of `min`, `max`,",
        "`%` and `&`, lengths and indices as floats, and products of lengths as values; where a constant has",
        "a default,",
        "its variant is read. In CUDA refused are also tensors of several dtypes, `double`, comparisons with literals",
        "that are other numbers in float32, arrays of more than 48 KiB, a length that `min`, `max`, `%`, `&` or `?:`",
        "changes, a change in a loop of what its header has, and a variable that goes on from one row of a thread to",
        "the next. Of a template with defaults, the variant of the defaults is read. Threads of a block may join what",
        "each has of a row in loops that halve a distance: by shuffles of a warp, in shared memory, or first in",
        "warps and then what warps left there. `float4` and the like are that many elements.",
        "`where(x > 0, x, 0)`, `tl.maximum` and `fmaxf` become `T.max`, which keeps NaN where the source gives the",
        "other operand; so do `T.min` and the maxima and minima of rows. Axes that have one length in the source have",
        "one size.",
        "What is computed from parameters alone is computed before the kernel, with the types of the source: float32",
        "or, in Triton, int32 that wraps around if all of these parameters are whole.",
        "Parameters keep their",
        "defaults, which must be numbers; those without one must be given: `ttx.explore(port, eps=1e-5)`.",
        "A number that the parameter's type does not hold in the source is refused, such as 2.5 for an `int`.",
        "A loop or a block of a fixed number of elements, under a mask that compares them with a length, takes the",
        "first ones of longer rows alone: such a source is a draft.",
        "Blocks are numbered along the",
        "axes of the grid, by the two digits of such a number, or in Triton group by group of rows; attention and RoPE",
        "must be that in each summand and index, so",
        "windows are refused, heads of keys are shared by as many heads of queries in a row each, and what is added to",
        "scores are positions of rows and keys, times parameters. A port has a limit of 100,000 statements and",
        "expressions, loops and calls written out, and of 1,500 operations; `time_limit_seconds` and `cancel` end it.",
        "The text of a skeleton holds no word of the source but names, numbers and comments, all of them checked.",
        '`ttx.explore(port, rows=64, ...)` explores the first skeleton, `ttx.explore(port["name"])` that of a kernel;',
        "the explorer shows it beside its source ([explorer.md](explorer.md#beside-a-gpu)), after forks and edits too.",
        "",
        "## In the style of Tessera",
        "",
        '`ex.export(folder, dialect="tessera")`, or `ttexplore export KERNEL --dialect tessera`, writes the kernel',
        "of an exploration, as it was before the first step, in the style of the documents' Tessera skeleton: tiles,",
        "staged shared memory, asynchronous copies, `mma_sync`, `tile_reduce`. Nothing compiles this text: it is an",
        "illustration. The tests give each of its words a meaning, compile it, and compare its numbers with those of",
        "the kernel. What the style has no word for is an error at its line.",
        "",
        "## Checklist",
        "",
        "`ex.porting_checks()` goes through the porting checklist for an exploration. Each check passes, fails or",
        "does not apply, with a number, the line of the kernel, and what to do. What fails may still be right: most",
        "checks ask for what is fast or as exact as on a GPU.",
        "",
        "| | check | passes if |",
        "|---|---|---|",
    ]  # fmt: skip
    for item, checks in checklist().items():
        parts += [f"| {item} | {name} | {rule} |" for name, rule in checks.items()]
    parts += ["", "## Sources", "", "The words of the GPU languages were looked up here; those of Tessera are the"]
    parts += ["documents' own.", "", *(f"- <{source}>" for source in sources)]
    return "\n".join(parts) + "\n"


def test_page(request: pytest.FixtureRequest) -> None:
    compare_golden(PAGE, page(), update=bool(request.config.getoption("--update-golden")))
    for link in re.findall(r"\]\((\.\./[^)#]+)\)", page()):
        assert (PAGE.parent / link).exists(), link
