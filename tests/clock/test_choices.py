"""The choices that passes make by predicted time, held to the clock, and the table of what they gain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.clock.published import GEMMS
from tests.clock.sdk import matmul
from tests.conftest import compare_golden
from tests.corpus import CORPUS
from tests.corpus.case import Case
from tests.corpus.explored import NAMES, explored
from tests.corpus.sums import SUMS as OF_SUMS
from tests.corpus.sums import split_k
from tests.gallery.test_gallery import KERNELS
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import replay
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.target import get_target

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "schedules.md"
KERNEL = "notebooks/kernels/gemm.py::matmul"
START, END = "<!-- generated: choices -->\n", "<!-- end -->\n"
# Without the choices.
BEFORE: dict[str, Any] = {"policy": "contiguous", "multicast": "off", "loaded_by": "reader"}
# Of two replays of nearly the same program.
ROUNDING = 1.01
CASES = {case.name: case for case in CORPUS}


def product(target: str, m: int, n: int, k: int, blocks: tuple[int, int, int], **options: Any) -> Exploration:
    sizes = dict(zip(("M", "N", "K", "block_M", "block_N", "block_K"), (m, n, k, *blocks), strict=True))
    found = ttx.explore(str(ROOT / KERNEL), target=target, options=options, **sizes)
    assert found.error is None, str(found.error)
    return found


def launches(exploration: Exploration) -> list[Exploration]:
    return [*exploration.launches]


def chose(exploration: Exploration) -> bool:
    """Whether something was chosen: without, the program is the one from before."""
    return any(one.plan.shared or one.plan.partition.policy != "contiguous" or loaded_by_writer(one)
               for one in launches(exploration) if one.plan.partition is not None)  # fmt: skip


def loaded_by_writer(exploration: Exploration) -> list[str]:
    """The inputs that the writer loads."""
    inputs = {one.name for one in exploration.plan.layouts if one.role == "input"}
    assert exploration.plan.graph is not None
    edges = {(edge.source, edge.target) for edge in exploration.plan.graph.edges}
    return [one for one in sorted(inputs) if (one, "writer") in edges]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_nothing_in_the_corpus_takes_longer(name: str, target: str) -> None:
    case: Case = CASES[name]
    free = {option: value for option, value in BEFORE.items() if option not in case.options}
    if {*case.options} & {"order", "work_lists"}:
        # The policy follows from them.
        free.pop("policy", None)
    after = explored(name, target)
    if chose(after):
        before = ttx.explore(case.make(), target=target, options={**case.options, **free})
        assert after.estimate().us <= ROUNDING * before.estimate().us


@pytest.mark.parametrize(("file", "name"), KERNELS, ids=lambda one: one if isinstance(one, str) else one.stem)
def test_nothing_in_the_gallery_takes_longer(file: Path, name: str) -> None:
    after = ttx.explore(f"{file}::{name}", target="blackhole_p150")
    if chose(after):
        before = ttx.explore(f"{file}::{name}", target="blackhole_p150", options=BEFORE)
        assert after.estimate().us <= ROUNDING * before.estimate().us


@pytest.mark.parametrize("case", [case for case in OF_SUMS if "partials" not in case.options], ids=lambda one: one.name)
@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_partial_sums_are_sent_only_where_that_is_faster(case: Case, target: str) -> None:
    us = {
        one: ttx.explore(case.make(), target=target, options={**case.options, "partials": one})
        for one in ("auto", "dram")
    }
    assert us["auto"].error is None
    if us["auto"].plan.partials:
        assert us["auto"].estimate().us <= us["dram"].estimate().us


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("parts", [2, 4, 16])
@pytest.mark.parametrize(("rows", "columns", "depth"), [(32, 32, 128), (32, 32, 32), (64, 64, 64), (128, 128, 32)])
def test_split_products_of_all_sizes(rows: int, columns: int, depth: int, parts: int, target: str) -> None:
    """The choice is never slower than one core, and misses little of what several gain."""
    kernel = split_k(rows, columns, depth * parts, parts)
    auto, dram, noc = (ttx.explore(kernel, target=target, options={"partials": one}) for one in ("auto", "dram", "noc"))
    assert auto.estimate().us <= ROUNDING * dram.estimate().us
    if noc.error is None:
        assert auto.estimate().us <= 1.5 * noc.estimate().us


SIZES = [
    (64, 64, 64, (32, 32, 32)), (128, 128, 128, (32, 32, 32)), (256, 256, 256, (32, 32, 32)),
    (256, 256, 256, (64, 64, 32)), (512, 512, 512, (128, 128, 64)), (512, 512, 512, (64, 64, 64)),
    (1024, 1024, 256, (128, 128, 64)), (1024, 1024, 1024, (64, 128, 64)), (320, 1024, 512, (64, 96, 64)),
    (256, 1024, 1024, (32, 128, 64)), (1024, 32, 1024, (32, 32, 64)), (32, 2048, 1024, (32, 32, 128)),
    (640, 704, 704, (64, 64, 64)), (512, 512, 2048, (256, 64, 32)), (96, 96, 4096, (32, 32, 128)),
]  # fmt: skip


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi4"])
@pytest.mark.parametrize(("m", "n", "k", "blocks"), SIZES)
def test_products_of_all_sizes(
    m: int, n: int, k: int, blocks: tuple[int, int, int], fidelity: str, target: str
) -> None:  # fmt: skip
    """Sharing never makes them slower, and is left out only where it would gain little."""
    after, before, most = (
        product(target, m, n, k, blocks, math_fidelity=fidelity, **one).estimate().us
        for one in ({}, BEFORE, {**BEFORE, "multicast": "all"})
    )
    assert after <= ROUNDING * before
    assert after <= 1.2 * most


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi4"])
@pytest.mark.parametrize(("m", "n", "k", "blocks"), SIZES)
def test_the_kernel_that_loads_an_input(
    m: int, n: int, k: int, blocks: tuple[int, int, int], fidelity: str, target: str
) -> None:  # fmt: skip
    """The writer loads one only where that is faster, and is left out only where it would gain little."""
    chosen = product(target, m, n, k, blocks, math_fidelity=fidelity)
    after, reader, both = (
        one.estimate().us for one in (chosen, *(chosen.fork(at="D1", loaded_by=way) for way in ("reader", "both")))
    )
    assert after <= ROUNDING * reader
    assert after <= 1.3 * both
    assert after < reader or not loaded_by_writer(chosen)


@cache
def sdk_us(target: str, size: int) -> float:
    """The time of the SDK's own matmul by the clock, bf16 at HiFi2."""
    chip = get_target(target)
    found = replay(matmul(chip, (size, size, size), 2048, "HiFi2"), rates_of(chip))
    return (found.cycles + chip.costs.launch_cycles) / chip.clock_hz * 1e6


def published_us(target: str, size: int) -> float | None:
    of = (row.us for row in GEMMS if row.target.name == target and row.sizes == (size,) * 3 and row.format == "bf16")
    return next(of, None)


# After those of the kernel, the fastest of some blocks that were tried.
ROWS: list[tuple[str, int, tuple[int, int, int], Mapping[str, Any]]] = [
    ("wormhole_n150", 1024, (128, 128, 32), {}),
    ("wormhole_n150", 1024, (128, 128, 128), {}),
    ("wormhole_n150", 2048, (128, 128, 32), {}),
    ("wormhole_n150", 2048, (256, 256, 256), {}),
    ("wormhole_n150", 2048, (256, 256, 128), {"accumulate": "l1"}),
    ("blackhole_p150", 1024, (128, 128, 32), {}),
    ("blackhole_p150", 1024, (128, 96, 256), {}),
    ("blackhole_p150", 2048, (128, 128, 32), {}),
    ("blackhole_p150", 2048, (224, 192, 256), {}),
    ("blackhole_p150", 2048, (224, 192, 128), {"accumulate": "l1"}),
]
DEFAULT_BLOCKS = (128, 128, 32)


@cache
def measured(row: int) -> tuple[float, int, float, int]:
    """Microseconds and bytes from DRAM, before and after."""
    target, size, blocks, options = ROWS[row]
    found = [
        product(target, size, size, size, blocks, math_fidelity="HiFi2", **options, **one).estimate()
        for one in (BEFORE, {})
    ]
    before, after = found
    return before.us, before.read_bytes, after.us, after.read_bytes


@pytest.mark.parametrize("row", [pytest.param(row, id=str(ROWS[row][:3])) for row in range(len(ROWS))])
def test_large_products_come_near_the_sdk(row: int) -> None:
    target, size, blocks, _ = ROWS[row]
    before, read, after, read_after = measured(row)
    assert after < 0.75 * before
    assert read_after < read
    if blocks != DEFAULT_BLOCKS:
        assert after <= 1.26 * (published_us(target, size) or sdk_us(target, size))


def table() -> str:
    lines = [
        "| Chip | M = N = K | Blocks | Options | Before, us | After, us | From DRAM, MB | SDK, us | After by SDK |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row, (target, size, blocks, options) in enumerate(ROWS):
        before, read, after, read_after = measured(row)
        published, predicted = published_us(target, size), sdk_us(target, size)
        sdk = f"{predicted:.1f} predicted" if published is None else f"{published:.1f} published"
        asked = ", ".join(f"{name}={value}" for name, value in options.items())
        lines.append(
            f"| {target} | {size} | {'x'.join(map(str, blocks))} | {asked} | {before:.1f} | {after:.1f} | "
            f"{read / 1e6:.1f}, then {read_after / 1e6:.1f} | {sdk} | {after / (published or predicted):.2f} |"
        )
    return "\n".join(lines) + "\n"


def test_the_page_lists_them(request: pytest.FixtureRequest) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    text = f"{before}{START}\n{table()}\n{END}{after}"
    compare_golden(PAGE, text, update=bool(request.config.getoption("--update-golden")))


@pytest.mark.parametrize("name", ["index_counted", "while_by_index"])
def test_what_has_no_time_is_as_before(name: str) -> None:
    after = explored(name)
    assert not chose(after)
    with pytest.raises(UsageError):
        after.estimate()
