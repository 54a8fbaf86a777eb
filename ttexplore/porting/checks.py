"""The porting checklist: what someone who ports a GPU kernel looks at, as checks of a lowering.

The checks know what was decided (the plan), what was written (the listings), what was executed (the check of all
steps) and what is predicted (the estimate). Each gives a number, the kernel's line, and what to do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from ttexplore.characters import Printed
from ttexplore.plan import DATA_FORMATS, CircularBuffer, Partition, Plan
from ttexplore.record import ErrorRecord, Listing, Span
from ttexplore.target import Target
from ttexplore.views.markup import byte_size, content_id, escape, plural, visible
from ttexplore.views.runs.times import plain_time
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment

if TYPE_CHECKING:
    # The estimate is made of live programs; here only its figures are read.
    from ttexplore.clock.estimate import Estimate

Verdict = Literal["pass", "fail", "not applicable"]
# The items of the porting checklist, in its order.
Item = Literal[
    "tile shapes and dtypes", "layout", "async copies", "MMA loop", "epilogues", "numerics", "launch",
    "performance sanity",
]  # fmt: skip

# The largest share of a tensor that may be padding, the smallest mean load of a core, as part of the largest, the most
# often that an input may be read, and the largest part of the time that instructions may take, and the time as a
# multiple of the roofline. A port that misses one of them is right, but leaves that factor on the table.
LARGEST_PADDING = 0.1
LEAST_LOAD = 0.75
MOST_READS = 2.0
LARGEST_ISSUE = 0.2
FARTHEST = 2.0

_WIDTH = 100
_GLYPHS: dict[Verdict, tuple[str, str]] = {"pass": ("✔", "ok"), "fail": ("✖", "bad"), "not applicable": ("–", "q")}


@dataclass(frozen=True, slots=True)
class PortingCheck:
    """One check of the porting checklist. `item` is what it belongs to there. `number` is what was found, `line` the
    kernel's line that it is about, and `advice` what to do if it fails. `launch` counts the kernel's launches."""

    item: Item
    name: str
    verdict: Verdict
    number: str
    line: Span | None = None
    advice: str = ""
    launch: int = 0


class PortingChecks(Printed, tuple[PortingCheck, ...]):
    """The checks of a kernel, in the order of the checklist; text in a terminal, a table in a notebook. Truthy if none
    fails."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[PortingCheck, ...]:
        """The checks that fail."""
        return tuple(check for check in self if check.verdict == "fail")

    @property
    def summary(self) -> str:
        """How many checks passed, failed and do not apply."""
        counts = [sum(check.verdict == verdict for check in self) for verdict in _GLYPHS]
        return f"{counts[0]} passed, {counts[1]} failed, {counts[2]} not applicable"

    def __str__(self) -> str:
        width = max((len(check.name) for check in self), default=0)
        several = any(check.launch for check in self)
        lines = [f"porting checklist: {self.summary}"]
        item = ""
        for check in self:
            if check.item != item:
                item = check.item
                lines.append(item)
            launch = f"launch {check.launch}  " if several else ""
            line = f"  {check.line}" if check.line else ""
            lines.append(
                f"  {_GLYPHS[check.verdict][0]} {launch}{check.name:<{width}}  {visible(check.number)}{visible(line)}"
            )
            if check.verdict == "fail":
                indent = " " * 6
                lines += textwrap.wrap(check.advice, _WIDTH, initial_indent=indent, subsequent_indent=indent)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        several = any(check.launch for check in self)
        names = ("", "check", *(("launch",) if several else ()), "found", "line")
        heads = "".join(f'<th scope="col">{name}</th>' for name in names)
        rows: list[str] = []
        for position, check in enumerate(self):
            if not position or self[position - 1].item != check.item:
                rows.append(f'<tr><th scope="rowgroup" colspan="{len(names)}">{defined(check.item)}</th></tr>')
            glyph, state = _GLYPHS[check.verdict]
            mark = (
                f'<span class="{state}" role="img" aria-label="{check.verdict}" title="{check.verdict}">{glyph}</span>'
            )
            line = f"<code>{escape(str(check.line))}</code>" if check.line else ""
            launch = (str(check.launch),) if several else ()
            cells = (mark, defined(check.name), *launch, escape(check.number), line)
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
            if check.verdict == "fail":
                rows.append(f'<tr><td></td><td colspan="{len(names) - 1}">{escape(check.advice)}</td></tr>')
        table = (
            f'<table class="t facts" aria-label="porting checklist"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table>"
        )
        content = (
            f'<div class="head"><h3>porting checklist</h3><span>{self.summary}</span></div>'
            f'<div class="scroll">{table}</div>'
        )
        return fragment(content_id("ttx-porting-checks", content), "porting checklist", content)


@dataclass(frozen=True)
class LaunchFacts:
    """What is known of one launch.

    `kernel` is the listing of the kernel before the first step, `compute` the emitted compute kernel. `lines` are the
    lines of the tensors. `estimate` is None if `no_estimate` says why the time cannot be predicted. `checked`
    says how the results differ from the reference, empty if they do not, None if nothing was executed. `reads` are the
    tensors that the launch reads, `writes` those that it writes.
    """

    plan: Plan
    target: Target
    kernel: Listing
    compute: Listing
    lines: Mapping[str, Span]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    estimate: Estimate | None
    no_estimate: ErrorRecord | None = None
    checked: str | None = None

    @property
    def partition(self) -> Partition:
        assert self.plan.partition is not None, "a lowering that succeeded has a partition"
        return self.plan.partition

    @property
    def launch_line(self) -> Span | None:
        """The line of the launch grid: that of the outermost loop."""
        return next(
            (origin.span for line in self.kernel.lines if line.work == "controls" for origin in line.origins), None
        )

    @property
    def computed_lines(self) -> tuple[Span, ...]:
        """The kernel's lines that the compute kernel computes for, in its order."""
        return tuple(origin.span for line in self.compute.lines if line.work == "computes" for origin in line.origins)


@dataclass(frozen=True, slots=True)
class _CheckResult:
    verdict: Verdict
    number: str
    line: Span | None = None
    advice: str = ""


def porting_checks(launches: Sequence[LaunchFacts]) -> PortingChecks:
    """Go through the checklist for a kernel of these launches."""
    results: list[PortingCheck] = []
    for item, checks in _CHECKLIST.items():
        for name, _, check in checks:
            for number, facts in enumerate(launches):
                finding = check(facts, launches[:number])
                results.append(
                    PortingCheck(item, name, finding.verdict, finding.number, finding.line, finding.advice, number)
                )
    return PortingChecks(results)


def _padding(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    # A vector is one row of tiles: that its other rows are padding cannot be changed.
    tiled = [layout for layout in facts.plan.layouts if layout.page == "tile" and len(layout.shape) > 1]
    if not tiled:
        return _CheckResult("not applicable", "no tensor of rows and columns is stored in tiles")
    shares = {layout: 1 - prod(layout.shape) / prod(layout.padded_shape) for layout in tiled}
    worst = max(tiled, key=lambda layout: shares[layout])
    shape, padded = ("x".join(map(str, sizes)) for sizes in (worst.shape, worst.padded_shape))
    number = f"{worst.name}: {shape} in {padded}, {shares[worst]:.0%} padding"
    return _verdict(
        shares[worst] <= LARGEST_PADDING, number, facts.lines.get(worst.name),
        "Make the last two sizes multiples of 32, or fold a small axis into the rows: a tile is 32x32 whatever the "
        "tensor core's fragments were.",
    )  # fmt: skip


def _dtypes(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    native_dtypes = {data_format.dtype for data_format in DATA_FORMATS.values()}
    converted = [layout for layout in facts.plan.layouts if layout.dtype not in native_dtypes]
    if not converted:
        return _CheckResult(
            "pass", f"{', '.join(sorted({layout.dtype for layout in facts.plan.layouts}))}, stored as they are"
        )
    number = ", ".join(f"{layout.name}: {layout.dtype} is stored as {layout.data_format}" for layout in converted)
    return _CheckResult(
        "fail", number, facts.lines.get(converted[0].name),
        "Use bfloat16, float32 or int32, for which tiles have a format. Float16_b has the range of float32 and 8 bits "
        "of mantissa: compare with a tolerance for that.",
    )  # fmt: skip


def _layout(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    converted = [layout for layout in facts.plan.layouts if layout.through]
    if not converted:
        return _CheckResult("pass", f"pages of {plural(len(facts.plan.layouts), 'tensor')} move as they are stored")
    count = sum(prod(layout.shape) * layout.element_bytes for layout in converted)
    names = ", ".join(layout.name for layout in converted)
    return _CheckResult(
        "fail", f"{names}: {byte_size(count)} in rows are converted on the chip", facts.lines.get(converted[0].name),
        "Store the tensor in tiles, once, before the launch: its layout is an option of the lowering (layouts). Rows "
        "pay only where a tensor is used once.",
    )  # fmt: skip


def _stages(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    most = max(core.items for core in facts.partition.cores)
    # Constant tiles have no line of the kernel; shards are there already.
    loaded = [
        buffer for buffer in facts.plan.buffers
        if buffer.producer != "compute" and buffer.consumer == "compute" and buffer.origin and not buffer.shard_of
    ]  # fmt: skip
    if not loaded:
        return _CheckResult("not applicable", "the compute kernel takes nothing that is loaded")
    blocks = {buffer.name: _blocks(facts, buffer, most) for buffer in loaded}
    single = [buffer for buffer in loaded if buffer.stages == 1 and (blocks[buffer.name] or 2) > 1]
    if not single:
        fewest = min(loaded, key=lambda buffer: buffer.stages)
        return _CheckResult(
            "pass", f"{plural(len(loaded), 'buffer')}, {plural(fewest.stages, 'block')} deep or deeper", fewest.origin
        )
    worst = single[0]
    turns = blocks[worst.name]
    number = f"{worst.name}: 1 block deep, {f'{turns:,} blocks' if turns else 'a varying number of blocks'} on a core"
    return _CheckResult(
        "fail", number, worst.origin,
        "Give it room for two blocks, so that the next one arrives while this one is computed with: num_stages=2 of "
        "its T.Pipelined, or the option cb_depth. If L1 is full, make the blocks smaller.",
    )  # fmt: skip


def _blocks(facts: LaunchFacts, buffer: CircularBuffer, items: int) -> int | None:
    """How many blocks go through a buffer of the busiest core; None if that varies."""
    assert facts.plan.graph is not None, "a lowering that succeeded has a graph"
    tiles = [edge.tiles_per_item for edge in facts.plan.graph.edges if edge.target == buffer.name]
    counts = [count for count in tiles if count is not None]
    return sum(counts) * items // buffer.block_pages if len(counts) == len(tiles) else None


def _accumulator(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    if not facts.plan.products or facts.plan.compute is None:
        return _CheckResult("not applicable", "no T.gemm")
    worst = max(facts.plan.products, key=lambda product: product.rows * product.columns)
    tiles, room = worst.rows * worst.columns, facts.plan.compute.dst_tiles
    return _verdict(
        tiles <= room, f"an accumulator of {plural(tiles, 'tile')}, DST holds {room}", worst.origin,
        "The accumulator does not stay in DST: it goes to L1 and back between the steps of K. Make the block smaller, "
        "or take more of K per step, or let the packer add in L1 (option accumulate).",
    )  # fmt: skip


def _epilogue(facts: LaunchFacts, before: Sequence[LaunchFacts]) -> _CheckResult:
    products = {product.origin for product in facts.plan.products if product.origin}
    if products:
        lines = facts.computed_lines
        last = max(index for index, line in enumerate(lines) if line in products)
        after = [*dict.fromkeys(lines[last + 1 :])]
        if not after:
            return _CheckResult("not applicable", "the product is stored as it is")
        return _CheckResult("pass", f"{plural(len(after), 'line')} before the product is stored", after[0])
    product_outputs = {name for launch in before if launch.plan.products for name in launch.writes}
    reloaded = [name for name in facts.reads if name in product_outputs]
    if not reloaded or not facts.computed_lines:
        return _CheckResult("not applicable", "no T.gemm")
    count = sum(prod(layout.shape) * layout.element_bytes for layout in facts.plan.layouts if layout.name in reloaded)
    return _CheckResult(
        "fail", f"{', '.join(reloaded)}: {byte_size(count)} are stored by a product and loaded again",
        facts.computed_lines[0],
        "Compute it in the launch of the product, in T.Parallel before the accumulator is copied to its tensor: the "
        "tiles are still in DST then.",
    )  # fmt: skip


def _accumulation(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    compute = facts.plan.compute
    if not facts.plan.products or compute is None:
        return _CheckResult("not applicable", "no T.gemm")
    bits = 32 if compute.fp32_dest_acc_en else 16
    return _verdict(
        bits == 32 and compute.math_fidelity in ("HiFi3", "HiFi4"),
        f"{compute.math_fidelity}, sums of {bits} bits", facts.plan.products[0].origin,
        "A tensor core multiplies bfloat16 exactly and adds in float32. Take a fragment of float32, and leave "
        "math_fidelity and accumulate_dtype alone, before you compare results.",
    )  # fmt: skip


def _results(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    if facts.checked is None:
        return _CheckResult("not applicable", "nothing was executed")
    if not facts.checked:
        return _CheckResult("pass", "every step gives the result of the kernel on the CPU")
    return _CheckResult(
        "fail", facts.checked, facts.launch_line,
        "Run ex.check() with inputs that you know, and compare ex.reference() with the GPU's result first: it is what "
        "the kernel means.",
    )  # fmt: skip


def _load(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    partition = facts.partition
    allowed = len({core for core_range in partition.core_ranges for core in core_range.cores}) or facts.target.cores
    counts = [core.items for core in partition.cores]
    load = sum(counts) / (max(counts) * allowed)
    used = sum(count > 0 for count in counts)
    return _verdict(
        load >= LEAST_LOAD,
        f"{plural(sum(counts), 'block')} on {used} of {allowed} cores, {max(counts)} at most: {load:.0%} loaded",
        facts.launch_line,
        "Choose blocks so that their number is a multiple of the cores, or a large one: smaller blocks, split-K with "
        "T.atomic_add, or several heads or batches in one launch.",
    )  # fmt: skip


def _reuse(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    if facts.estimate is None:
        return _unpredicted(facts)
    inputs = {layout.name for layout in facts.plan.layouts if layout.role != "output" and layout.memory == "dram"}
    least = sum(accessor.pages * accessor.page_bytes for accessor in facts.plan.accessors if accessor.tensor in inputs)
    if not least:
        return _CheckResult("not applicable", "no input is in DRAM")
    read = facts.estimate.read_bytes
    shared = f", {plural(len(facts.plan.shared), 'input')} sent from core to core" if facts.plan.shared else ""
    return _verdict(
        read <= MOST_READS * least,
        f"{byte_size(read)} read of inputs of {byte_size(least)}, {read / least:.1f} times{shared}", facts.launch_line,
        "Blocks that CTA pairs or the L2 cache shared are read from DRAM by every core here. Make blocks larger, or "
        "let cores send them to each other: option multicast, with the policy rectangular.",
    )  # fmt: skip


# What to do about each bound of an estimate.
_REMEDIES: dict[str, str] = {
    "DRAM": "Read less: larger blocks, multicast, or a smaller dtype.",
    "NoC": "Move less between cores: larger blocks, shards where the work is, other cores.",
    "math": "Ask for a lower math_fidelity where the numbers allow it, and compute each value once.",
    "pack": "Store less to circular buffers: keep values in DST from one T.Parallel to the next.",
    "unpack": "Load each tile once: larger blocks use it for more products.",
    "RISC-V": "Move whole blocks with T.copy, and keep conditions on indices out of loops: elements that processors "
    "move or fill one by one cost most.",
    "latency": "Make buffers deeper, or blocks larger, so that more is on its way at a time.",
    "imbalance": "Distribute the blocks more evenly: other block sizes or another policy.",
    "launch": "Give one launch more work: the launch itself takes longest.",
}


def _roofline(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    estimate = facts.estimate
    if estimate is None:
        return _unpredicted(facts)
    if not estimate.roofline_us:
        return _CheckResult("not applicable", "nothing is computed or moved to and from DRAM")
    times = estimate.us / estimate.roofline_us
    number = f"{plain_time(estimate.us)} (estimate), {times:.1f} times the roofline, bound by {estimate.bound}"
    return _verdict(times <= FARTHEST, number, facts.launch_line, _REMEDIES[estimate.bound])


def _issue(facts: LaunchFacts, _: Sequence[LaunchFacts]) -> _CheckResult:
    estimate = facts.estimate
    if estimate is None:
        return _unpredicted(facts)
    share = estimate.gains_us["RISC-V"] / estimate.us
    return _verdict(
        share <= LARGEST_ISSUE, f"instructions of the processors cost {share:.0%} of the time", facts.launch_line,
        _REMEDIES["RISC-V"],
    )  # fmt: skip


def _unpredicted(facts: LaunchFacts) -> _CheckResult:
    assert facts.no_estimate is not None, "there is an estimate, or a reason"
    return _CheckResult("not applicable", facts.no_estimate.message, facts.no_estimate.span)


def _verdict(passed: bool, number: str, line: Span | None, advice: str) -> _CheckResult:
    return _CheckResult("pass", number, line) if passed else _CheckResult("fail", number, line, advice)


_Check = Callable[[LaunchFacts, Sequence[LaunchFacts]], _CheckResult]
# The checks of each item: the name, what holds if it passes, and the function.
_CHECKLIST: dict[Item, tuple[tuple[str, str, _Check], ...]] = {
    "tile shapes and dtypes": (
        (
            "whole tiles",
            f"At most {LARGEST_PADDING:.0%} of each tensor with rows and columns is padding of tiles.",
            _padding,
        ),
        ("formats of tiles", "Tiles have a format for the dtype of each tensor.", _dtypes),
    ),
    "layout": (("pages as stored", "No tensor is converted between rows and tiles on the chip.", _layout),),
    "async copies": (
        (
            "double buffering",
            "Loaded blocks go through circular buffers with room for two, if more than one comes.",
            _stages,
        ),
    ),
    "MMA loop": (("accumulator in DST", "The accumulator of each T.gemm fits into DST.", _accumulator),),
    "epilogues": (
        (
            "fused epilogue",
            "What follows a product is computed before the product is stored, not in a later launch.",
            _epilogue,
        ),
    ),
    "numerics": (
        ("accumulation", "Products have HiFi3 or HiFi4, and sums 32 bits.", _accumulation),
        (
            "results",
            "Every step gives the result of the kernel on the CPU.",
            _results,
        ),
    ),
    "launch": (
        ("load of the cores", f"The mean load of the cores is at least {LEAST_LOAD:.0%} of the largest.", _load),
        (
            "inputs read once",
            f"All cores together read at most {MOST_READS:g} times the bytes of the inputs from DRAM.",
            _reuse,
        ),
    ),
    "performance sanity": (
        ("roofline", f"The predicted time is at most {FARTHEST:g} times the roofline.", _roofline),
        (
            "issue rate",
            f"Without the instructions of the processors, at most {LARGEST_ISSUE:.0%} of the time would be saved.",
            _issue,
        ),
    ),
}


def checklist() -> dict[Item, dict[str, str]]:
    """What each check asks for: by item, and by the name of the check."""
    return {item: {name: rule for name, rule, _ in checks} for item, checks in _CHECKLIST.items()}
