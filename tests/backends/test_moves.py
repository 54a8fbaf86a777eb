"""The pages that a tile is made of: as index arithmetic says, as the events say, and as changed inputs show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.corpus.explored import explored
from tests.corpus.spine import gemm
from ttexplore import explore
from ttexplore.backends.base import Array, Program, ordered_layouts
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.ops.functions import COPY_ELEMENT
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, TensorLayout

# Products in DST, with partial sums in L1 and with a transposed operand; sums over cores; what follows what; parts of
# tiles and elements, also in rows of elements, which the processors move; shards that lie in L1.
EXACT = (
    "gemm_in_dst", "gemm_reload", "gemm_transposed_b", "chained_gemms", "softmax", "online_softmax", "attention_like",
    "elements_transposed", "split_k", "copy_100x70", "rows_of_bias", "reduce_max_columns", "local_product",
    "in_place", "two_outputs",
)  # fmt: skip
# Numbers from tensors decide what is moved, or an operation takes whole tiles of which not all is stored.
AT_LEAST = ("rotated", "index_counted", "index_masked_blocks", "convolution", "elements_of_blocks")


def place(layout: TensorLayout, page: tuple[int, ...]) -> tuple[Any, ...]:
    """Where a page, or a tile of an output, lies in the array of a tensor."""
    if layout.page == "row" and len(page) < len(layout.shape):
        return page
    if len(layout.shape) < 2:
        return (slice(page[-1] * TILE_COLUMNS, (page[-1] + 1) * TILE_COLUMNS),)
    *leading, row, column = page
    rows = slice(row * TILE_ROWS, (row + 1) * TILE_ROWS)
    return (*leading, rows, slice(column * TILE_COLUMNS, (column + 1) * TILE_COLUMNS))


def indices(layout: TensorLayout, *, pages: bool) -> Iterator[tuple[int, ...]]:
    """The pages of a tensor, or its tiles."""
    if pages and layout.page == "row":
        return itertools.product(*map(range, layout.shape[:-1] or (1,)))
    if len(layout.shape) < 2:
        return iter([(column,) for column in range(-(-layout.shape[0] // TILE_COLUMNS))])
    *leading, rows, columns = layout.shape
    return itertools.product(*map(range, (*leading, -(-rows // TILE_ROWS), -(-columns // TILE_COLUMNS))))


def compared(exploration: Exploration) -> Iterator[tuple[bool, bool, bool]]:
    """For pages of inputs and tiles of outputs: whether the tile changes with the page, whether it names the page, and
    whether it names it among those that decide."""
    layouts = ordered_layouts(exploration.plan)
    outputs = [one for one in layouts if one.role != "input"]
    program = Program({role: exploration.code[role].text for role in ("reader", "compute", "writer")}, exploration.plan)
    base, other = exploration.inputs(0), exploration.inputs(1)
    before = Emulator().run(program, base).outputs
    tiles = {
        (output, tile): exploration.tile(layout.name, *tile, inputs=base)
        for output, layout in enumerate(outputs)
        for tile in list(indices(layout, pages=False))[:12]
    }
    chosen = np.random.default_rng(0)
    for number, layout in enumerate(one for one in layouts if one.role != "output"):
        every = list(indices(layout, pages=True))
        for page in sorted(chosen.choice(len(every), min(4, len(every)), replace=False)):
            changed: list[Array] = [np.array(one) for one in base]
            at = place(layout, every[page])
            changed[number][at] = other[number][at]
            after = Emulator().run(program, changed).outputs
            for (output, tile), history in tiles.items():
                where = place(outputs[output], tile)
                differs = before[output][where].tobytes() != after[output][where].tobytes()
                named = every[page] in history.pages.get(layout.name, ())
                yield differs, named, every[page] in history.decided.get(layout.name, ())


@pytest.mark.parametrize("name", EXACT)
def test_a_changed_page_changes_the_tiles_that_name_it_and_no_others(name: str) -> None:
    found = list(compared(explored(name)))
    assert any(differs for differs, _, _ in found)
    assert all(differs == named for differs, named, _ in found)


@pytest.mark.parametrize("name", AT_LEAST)
def test_a_changed_page_changes_no_tile_that_does_not_name_it(name: str) -> None:
    found = list(compared(explored(name)))
    assert any(differs for differs, _, _ in found)
    assert not any(differs and not named and not decides for differs, named, decides in found)


@pytest.fixture(scope="module")
def product() -> Exploration:
    """Each core reads for itself."""
    return explore(gemm(256, 256, 256, 32, 32, 64), options={"multicast": "off"})


def test_a_tile_of_a_product_names_its_row_and_its_column_of_tiles(product: Exploration) -> None:
    history = product.tile("C", 3, 5)
    a, b = np.arange(64).reshape(8, 8)[3], np.arange(64).reshape(8, 8)[:, 5]
    assert {page[0] * 8 + page[1] for page in history.pages["A"]} == set(a.tolist())
    assert {page[0] * 8 + page[1] for page in history.pages["B"]} == set(b.tolist())
    assert set(history.pages) == {"A", "B"}
    assert history.exact
    assert (history.item, history.block) == (3 * 8 + 5, (5, 3))


def test_the_pages_are_those_that_the_core_read(product: Exploration) -> None:
    """Each core makes one tile, so that it reads nothing else."""
    history = product.tile("C", 3, 5)
    execution = product.run().execution
    assert execution is not None
    events = execution.events
    assert events is not None
    assert product.plan.partition is not None
    cores = [(core.x, core.y) for core in product.plan.partition.cores]
    own = events.records[events.records["core"] == cores.index(history.core)]
    reads = own[own["operation"] == events.operations.index("read")]
    for index, name in enumerate(events.tensors):
        pages = reads["amount"][reads["object"] >> 8 == index].tolist()
        assert {row * 8 + column for row, column in history.pages.get(name, ())} == set(pages)


def test_each_stop_has_its_line_and_its_turns(product: Exploration) -> None:
    history = product.tile("C", 3, 5)
    assert [(stop.kernel, stop.turns) for stop in history.stops] == [
        ("reader", 8), ("reader", 8), ("compute", 8), ("compute", 1), ("writer", 1),
    ]  # fmt: skip
    calls = ("async_read(A", "async_read(B", "matmul", "pack_tile", "async_write")
    for stop, call in zip(history.stops, calls, strict=True):
        assert call in stop.text
        assert stop.text == product.code[stop.kernel].lines[stop.line - 1].text.strip()
    assert history.stops[0].pages == {"A": tuple((3, k) for k in range(8))}
    assert "reads A[3, 0–7]" in history.stops[0].does
    told = str(history)
    assert "made of: A[3, 0–7], B[0–7, 5]" in told
    assert "work item: 29, block (5, 3)" in told
    assert history.stops[2].text in told
    assert "A[3, 0–7]" in history._repr_html_()


def test_a_block_that_another_core_sends_is_followed_to_where_it_was_read(product: Exploration) -> None:
    shared = explore(gemm(256, 256, 256, 32, 32, 64), options={"multicast": "all"})
    history = shared.tile("C", 3, 5)
    assert history.pages == product.tile("C", 3, 5).pages
    sent = [stop for stop in history.stops if "async_write_multicast" in stop.text]
    assert sorted(stop.does.split()[1] for stop in sent) == ["a", "b"]


def test_each_work_item_of_a_core_is_told_apart() -> None:
    exploration = explore(gemm(256, 256, 256, 32, 64, 64), options={"cores": (2, 2)})
    for row, column in itertools.product(range(8), range(8)):
        assert exploration.tile("C", row, column).block == (column // 2, row)


def test_a_run_is_kept_for_further_tiles(product: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    product.tile("C", 0, 0)

    def run(*_: Any, **__: Any) -> None:
        raise AssertionError("the run was to be kept")

    monkeypatch.setattr(Emulator, "run", run)
    product.tile("C", 1, 1)
    with pytest.raises(AssertionError, match="to be kept"):
        product.tile("C", 1, 1, seed=1)


def test_values_that_a_kernel_can_have_stored_by_itself_are_of_all_that_its_core_read() -> None:
    exploration, role = explored("elements_of_blocks"), "reader"
    text = exploration.code[role].text
    assert COPY_ELEMENT in text
    # Another function than the one that is known.
    edited = {role: text.replace("copy_element", "copy_one")}
    output = next(one for one in exploration.plan.layouts if one.role != "input")
    tile = next(indices(output, pages=False))
    history, exact = (exploration.tile(output.name, *tile, code=code) for code in (edited, None))
    assert exact.exact
    assert not history.exact
    assert f"{role}.cpp accesses L1 by itself" in history.notes[0]
    for name, pages in exact.pages.items():
        assert set(pages) <= set(history.pages[name])


def test_wrong_tiles_are_refused(product: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="output"):
        product.tile("A", 0, 0)
    with pytest.raises(UsageError, match=r"C has no tile \(8, 0\)") as refused:
        product.tile("C", 8, 0)
    assert "0 to 7, 0 to 7" in refused.value.hint
    with pytest.raises(UsageError, match=r"C has no tile \(3\)"):
        product.tile("C", 3)
    with pytest.raises(UsageError, match="integers"):
        product.tile("C", -1, 0)
    monkeypatch.setattr("ttexplore.session.recordings._MOST_MOVES", 100)
    with pytest.raises(UsageError, match="more than 100 times"):
        product.tile("C", 0, 0, seed=3)
