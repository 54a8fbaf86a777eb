"""The gallery: the kernels of ``notebooks/gallery`` in the order of TileLang's documents about Tenstorrent, and what
was recorded of each: `benchmarks/gallery.py` runs them and writes ``gallery.json`` beside them."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.course.root import course_root
from ttexplore.errors import UsageError
from ttexplore.given import named
from ttexplore.given import text as text_of
from ttexplore.record import JsonObject
from ttexplore.views.runs.times import short_time
from ttexplore.views.terminal import fold

FOLDER = Path("notebooks") / "gallery"
RECORDS = "gallery.json"
# A kernel `name` has its formula in NumPy beside it, as `name_reference`.
FORMULA = "_reference"
CHIPS = {"wormhole_n150": "Wormhole", "blackhole_p150": "Blackhole"}


@dataclass(frozen=True, slots=True)
class GallerySection:
    """A kind of kernels; `number` is that of the documents, empty for what they do not list. `kernels` are
    ``file.py::name``."""

    number: str
    title: str
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of the documents' plan."""

    title: str
    sections: tuple[GallerySection, ...]


def _of(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{file}.py::{name}" for name in names)


PHASES: tuple[Phase, ...] = (
    Phase("Phase 1: foundation", (
        GallerySection("1.1", "Addition of elements", _of("elementwise", "add")),
        GallerySection("1.2", "Element-wise, several operands", _of("elementwise", "weighted_sum", "swiglu")),
        GallerySection("1.3", "GEMM", _of("gemm", "gemm")),
    )),
    Phase("Phase 2: optimizations", (
        GallerySection("2.1", "GEMM with double buffering, with epilogues, with work dealt out", (
            *_of("gemm", "gemm_pipelined"),
            *_of("gemm_epilogues", "gemm_gelu", "gemm_silu", "gemm_bias_residual", "gemm_scaled"),
            *_of("work", "persistent", "dealt"),
        )),
        GallerySection("2.2", "Casts", _of("casts", "to_integers", "quantized")),
        GallerySection("2.3", "Reductions, softmax and norms", (
            *_of("sums", "row_sums", "column_sums", "row_ranges", "column_sums_added", "running_sums"),
            *_of("softmax", "softmax", "online_softmax"),
            *_of("norms", "rms_norm", "layer_norm", "group_norm"),
        )),
    )),
    Phase("Phase 3: advanced patterns", (
        GallerySection("3.1", "Matrix times vector", _of("gemv", "gemv", "gemv_by_threads")),
        GallerySection("3.2", "Convolution", _of(
            "convolution", "convolution", "depthwise_convolution", "convolution_im2col"
        )),
        GallerySection("3.3", "GEMM with K split", _of("work", "split_k", "joined", "split_k_added")),
    )),
    Phase("Phase 4: attention", (
        GallerySection("4.1", "Flash attention, forward", _of(
            "attention", "full_attention", "causal_attention", "windowed_attention"
        )),
        GallerySection("4.2", "Flash attention, backward", _of(
            "attention_backward", "attention_saving_sums", "products_of_rows", "gradients_of_keys",
            "gradients_of_queries",
        )),
        GallerySection("4.3", "Grouped queries, sinks and decoding", (
            *_of("attention", "grouped_attention", "attention_with_sink"),
            *_of("decoding", "decoding_parts", "decoding_joined"),
            *_of("indexed", "paged_attention"),
        )),
        GallerySection("4.4", "Linear attention", _of("linear_attention", "linear_attention", "retention")),
        GallerySection("4.5", "Block-sparse attention and products", (
            *_of("sparse_attention", "block_sparse_attention"), *_of("indexed", "block_sparse_gemm"),
        )),
    )),
    Phase("Phase 5: specialized operations", (
        GallerySection("5.1", "GEMM in 8 bits", _of("small_formats", "float8_gemm", "float8_rows", "block_float_gemm")),
        GallerySection("5.2", "Mixture of experts", (
            *_of("indexed", "grouped_gemm"), *_of("experts", "expert_layers", "routed_layers"),
        )),
        GallerySection("5.3", "Top k", _of("topk", "top_k")),
    )),
    Phase("Phase 6: complex architectures", (
        GallerySection("6.1", "Native sparse attention", _of("sparse_attention", "native_sparse_attention")),
        GallerySection("6.2", "Multi-latent attention", _of("latent_attention", "latent_decoding")),
        GallerySection("6.3", "Groups of warps", _of("warp_groups", "producer_and_consumer", "group_that_loads")),
    )),
    Phase("Beside the phases", (
        GallerySection("", "Rotary position embedding", _of("rope", "rope_halves", "rope_neighbours")),
        GallerySection("", "Triangular matrices", _of("triangular", "lower_triangle_product", "keep_upper_triangle")),
    )),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel of the gallery: its place, and its record, which is empty if it was never recorded."""

    phase: Phase
    section: GallerySection
    kernel: str
    folder: Path
    record: JsonObject

    @property
    def name(self) -> str:
        return self.kernel.partition("::")[2]

    @property
    def file(self) -> Path:
        return self.folder / self.kernel.partition("::")[0]

    @property
    def steps(self) -> str:
        """How the interpreter did: how many steps give the result of the kernel, or the code of the refusal."""
        if "refused" in self.record:
            return str(self.record["refused"]["code"])
        return f"{self.record['steps']} steps" if self.record else "-"

    @property
    def errors(self) -> str:
        """The largest error of each output on the emulator, as a share of its largest element."""
        return ", ".join(self.record.get("errors", ("-",)))

    @property
    def error(self) -> str:
        """The largest of :attr:`errors`."""
        return max(self.record.get("errors", ("-",)), key=lambda error: 0.0 if error == "-" else float(error))

    def chip(self, chip: str) -> str:
        """What a simulated chip did: ``equal`` to the emulator, ``passed``, or an error's code; with ``*`` if sums were
        taken to the FPU, and ``(old)`` if the program has changed since."""
        status = self.record.get("chips", {}).get(named("chip", chip, CHIPS))
        if status is None:
            return "-"
        old = "" if status["program"] == status["now"] else " (old)"
        return f"{status['result']}{'*' if status['options'] else ''}{old}"

    def predicted(self, chip: str) -> str:
        predicted = self.record.get("predicted", {}).get(named("chip", chip, CHIPS))
        return f"{short_time(predicted['us']).replace('µ', 'u')}, {predicted['bound']}" if predicted else "-"

    @property
    def moved(self) -> str:
        """What one run moves between DRAM and the cores."""
        if "moved" not in self.record:
            return "-"
        return ", ".join(f"{count} {unit}" for unit, count in self.record["moved"].items() if count)

    def data(self) -> JsonObject:
        where = {"phase": self.phase.title, "section": self.section.number, "title": self.section.title}
        return {**where, "kernel": self.kernel, "file": str(self.file), **self.record}

    def source(self) -> GallerySource:
        """What the file says of the kernel. Raises UsageError if it does not define it."""
        text = self.file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        function, formula = functions.get(self.name), functions.get(self.name + FORMULA)
        if function is None or formula is None:
            raise UsageError(
                "U002", f"{self.file} does not define {self.name} and {self.name}{FORMULA}",
                hint="restore the file from the repository",
            )  # fmt: skip
        about = ast.get_docstring(function) or ast.get_docstring(tree) or ""
        return GallerySource(function.lineno, " ".join(about.split()), ast.unparse(function.args), ast.unparse(formula))


@dataclass(frozen=True, slots=True)
class GallerySource:
    """What a file says of one of its kernels; `formula` is the text of its function of NumPy."""

    line: int
    about: str
    arguments: str
    formula: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """All kernels, in the order of the documents. `versions` are those of what was recorded."""

    entries: tuple[Entry, ...]
    versions: JsonObject

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def entry(self, name: str) -> Entry:
        """The kernel of this name, or ``file.py::name``. Raises UsageError."""
        asked = text_of("the name of a kernel", name).rpartition("/")[2].rpartition("::")[2]
        by_name = {entry.name: entry for entry in self.entries}
        return by_name[named("kernel in the gallery", asked, by_name)]


def gallery_folder() -> Path:
    """``notebooks/gallery`` of :func:`course_root`. Raises UsageError if there is none."""
    root = course_root(FOLDER / RECORDS)
    if root is None:
        raise UsageError("U001", f"there is no {FOLDER / RECORDS}", hint="run this in a checkout of the project")
    return root / FOLDER


def read_gallery(folder: Path | None = None) -> Gallery:
    """The gallery in a folder, by default that of :func:`gallery_folder`. Raises UsageError if its records cannot be
    read."""
    folder = gallery_folder() if folder is None else folder
    try:
        data: Any = json.loads((folder / RECORDS).read_text(encoding="utf-8"))
        records, versions = dict(data["kernels"]), dict(data["versions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "U012", f"{folder / RECORDS} cannot be read: {error}", hint="restore it from the repository"
        ) from None
    return Gallery(
        tuple(
            Entry(phase, section, kernel, folder, records.get(kernel, {}))
            for phase in PHASES
            for section in phase.sections
            for kernel in section.kernels
        ),
        versions,
    )


_LEGEND = """\
steps: executed one by one, each gives the result of the kernel. error: the largest one of the emulator beside NumPy in
float64, as a share of the largest element. Wormhole, Blackhole, simulated: equal to the emulator bit by bit, passed, or
the code of an error (ttexplore explain CODE); * with sums on the FPU, (old) for a program that has changed since, - not
run. time: predicted for Wormhole, and what bounds it."""


def table_text(gallery: Gallery, columns: int) -> str:
    """All kernels as a table of at most `columns` characters, 0 for any number. Where these are few, the last columns
    are left out."""
    heads = ("", "kernel", "steps", "error", *CHIPS.values(), "time")
    rows = {
        entry.kernel: (
            entry.section.number, entry.name, entry.steps.removesuffix(" steps"), entry.error, *map(entry.chip, CHIPS),
            entry.predicted("wormhole_n150"),
        )
        for entry in gallery
    }  # fmt: skip
    widths = [max(map(len, cells)) for cells in zip(heads, *rows.values(), strict=True)]
    shown = len(heads)
    while columns and shown > 2 and sum(widths[:shown]) + 2 * (shown - 1) > columns:
        shown -= 1

    def line(cells: tuple[str, ...]) -> str:
        return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells[:shown], widths, strict=False)).rstrip()

    lines = [line(heads)]
    for phase in PHASES:
        lines += ["", phase.title]
        lines += [line(rows[kernel]) for section in phase.sections for kernel in section.kernels]
    return "\n".join([*lines, "", fold(_LEGEND.replace("\n", " "), columns or 100)])


def entry_text(entry: Entry) -> str:
    """One kernel: where it is, what it computes, how it did, and how to go on."""
    source, record = entry.source(), entry.record
    number = f"{entry.section.number} " if entry.section.number else ""
    kernel = f"{entry.file}::{entry.name}"
    facts = [
        ("phase", f"{entry.phase.title}; {number}{entry.section.title}"),
        ("source", f"{entry.file}:{source.line}"),
        ("arguments", source.arguments),
        ("inputs", "; ".join(record.get("inputs", ("-",)))),
        ("outputs", "; ".join(record.get("outputs", ("-",)))),
        ("moved", entry.moved),
        ("interpreter", entry.steps),
        ("emulator", f"largest error {entry.errors}"),
        *((name, f"{entry.chip(chip)}; predicted {entry.predicted(chip)}") for chip, name in CHIPS.items()),
    ]
    if refused := record.get("refused"):
        facts.append(("refused", f"{refused['message']}; {refused['hint']}"))
    commands = [f"ttexplore {command} {kernel}" for command in ("run", "show", "check", "estimate", "report")]
    return "\n".join(
        [
            entry.name, f"  {source.about}", "", *(f"  {name:<12}  {text}" for name, text in facts), "",
            textwrap.indent(source.formula, "  "), "", *(f"  {command}" for command in commands),
        ]
    )  # fmt: skip


def page(gallery: Gallery) -> str:
    """`docs/gallery.md`, for a reader on the web."""
    versions = gallery.versions
    lines = [
        "# Gallery",
        "",
        "Kernels of the kinds that people port, in the order of the phases of TileLang's documents about Tenstorrent,",
        "each with its formula in NumPy beside it, in [notebooks/gallery](../notebooks/gallery). They are lowered as",
        "they are. `ttexplore gallery` prints this list, `ttexplore gallery NAME` one kernel with its formula.",
        "`make gallery` writes this page. The notebooks [08](../notebooks/08_reductions_and_softmax.ipynb) and",
        "[12](../notebooks/12_port_flash_attention.ipynb) walk through some of the kernels.",
        "",
        "- **Pictures**: orange is what one core writes, blue is all that this was made of. Each frame is a matrix of",
        "  a tensor, its cells are tiles of 32x32 elements.",
        "- **Steps**: how many steps of the lowering were executed; each gives the result of the kernel.",
        "- **Emulator**: the largest error of each output beside the formula in float64, as a share of its largest",
        "  element.",
        "- **Moved**: what one run moves between DRAM and all cores. Parts of tiles have 16 elements and more. Single",
        "  are only elements that decide something, and numbers that stand alone; the plan names each of them.",
        f"- **Wormhole, Blackhole**: the program on a simulated chip (wolfpine {versions.get('wolfpine', '-')}, ttnn",
        f"  {versions.get('ttnn', '-')}): `equal` to the emulator bit by bit, `passed`, or the code of an",
        "  [error](diagnostics.md). With `*`, sums were computed on the FPU, because the simulator adds up wrongly on",
        "  the SFPU; `(old)` programs have changed since; `-` was not run. Below, the time that",
        "  [the clock](clock.md) predicts, and what bounds it.",
    ]
    for phase in PHASES:
        lines += ["", f"## {phase.title}", ""]
        lines += ["| | Kernel | Inputs | Steps | Emulator | Moved | Wormhole | Blackhole |", "|---" * 8 + "|"]
        lines += [_row(entry) for entry in gallery if entry.phase is phase]
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    record = entry.record
    first = entry.kernel == entry.section.kernels[0]
    section = f"{entry.section.number} {entry.section.title}".strip() if first else ""
    name = f"[`{entry.name}`](../{FOLDER.as_posix()}/{entry.file.name})"
    if refused := record.get("refused"):
        return f"| {section} | {name} | | {entry.steps} | {refused['message']}; {refused['hint']} | | | |"
    picture = f'<img src="gallery/{entry.name}.svg" alt="what one core of {entry.name} reads and writes">'
    moved = f"{entry.moved}<br>{record['bytes'] / 1000:,.0f} kB" if record else "-"
    chips = [f"{entry.chip(chip)}<br>{entry.predicted(chip).replace(', ', '<br>')}" for chip in CHIPS]
    cells = [
        section, f"{name}<br>{picture}", "<br>".join(record.get("inputs", ("-",))), entry.steps.removesuffix(" steps"),
        # Browsers break lines after a hyphen.
        entry.errors.replace("e-", "e\N{NON-BREAKING HYPHEN}"), moved, *chips,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"
