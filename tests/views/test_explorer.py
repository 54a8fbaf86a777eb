"""The Python half of the explorer: what it says of a lowering is what the lowering's own records say."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import pytest

from tests.corpus import CORPUS
from ttexplore import explore
from ttexplore.options import OPTIONS, option_forms
from ttexplore.record import Line, StepRecord, to_json
from ttexplore.views.assets import LATE, late_module, widget_module, widget_style
from ttexplore.views.explorer import ORIGIN_KINDS, ROW_KINDS, packed
from ttexplore.views.markup import visible
from ttexplore.views.steps.rows import counts, ir_rows, renames

SHOWN = ("gemm_reload", "row_bias_fragment_bf16", "copy_bf16")


def data_of(name: str) -> tuple[Any, dict[str, Any]]:
    case = next(case for case in CORPUS if case.name == name)
    exploration = explore(case.make(), options=case.options)
    return exploration, exploration.data


def text_of(data: dict[str, Any], listing: int) -> list[str]:
    return [data["texts"][text] for text in data["listings"][listing][::4]]


def step_with(before: list[str], after: list[str]) -> StepRecord:
    from ttexplore.record import Listing

    def listing(texts: list[str]) -> Listing:
        return Listing("tir", tuple(Line(text, (), node) for node, text in enumerate(texts)))

    return StepRecord(
        0, "step", "X1", "stage", "", "", True, False, 0.0, listing(before), listing(after), {}, {}, {}
    )  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_listings_have_the_texts_and_origins_of_the_records(name: str) -> None:
    exploration, data = data_of(name)
    trace = exploration.trace
    steps = [one for step in trace.steps for one in (step, *step.parts)]
    for step, shown in zip(steps, data["steps"], strict=True):
        for side, lines in (("before", step.before.lines), ("after", step.after.lines)):
            listing = data["listings"][shown["ir"][side]]
            assert text_of(data, shown["ir"][side]) == [visible(line.text) for line in lines]
            for line, origins in zip(lines, listing[1::4], strict=True):
                flat = data["origins"][origins]
                places = {(tuple(data["places"][flat[k]]), ORIGIN_KINDS[flat[k + 1]]) for k in range(0, len(flat), 2)}
                best = {}
                for origin in line.origins:
                    place = (visible(origin.span.file), origin.span.line)
                    best[place] = min(best.get(place, 2), ORIGIN_KINDS.index(origin.kind))
                assert places == {(place, ORIGIN_KINDS[kind]) for place, kind in best.items()}
    assert [file["name"] for file in data["files"]] == list(trace.files)


@pytest.mark.parametrize("name", SHOWN)
def test_rows_hold_every_line_of_both_sides_once(name: str) -> None:
    _, data = data_of(name)
    for step in data["steps"]:
        for part in (step["ir"], step["plan"]):
            sides: tuple[list[int], list[int]] = ([], [])
            for kind, i, j, *rest in part["rows"]:
                length = rest[0] if ROW_KINDS[kind] == "equal" else 1
                for lines, first in zip(sides, (i, j), strict=True):
                    lines.extend(range(first, first + length) if first >= 0 else [])
            for lines, side in zip(sides, ("before", "after"), strict=True):
                assert sorted(lines) == list(range(len(data["listings"][part[side]]) // 4))


def test_pieces_of_a_changed_line_add_up_to_it() -> None:
    _, data = data_of("gemm_reload")
    found = 0
    for step in data["steps"]:
        for part in (step["ir"], step["plan"]):
            before, after = (text_of(data, part[side]) for side in ("before", "after"))
            for kind, i, j, *rest in part["rows"]:
                if ROW_KINDS[kind] == "changed":
                    assert sum(rest[0]) == len(before[i])
                    assert sum(rest[1]) == len(after[j])
                    found += 1
    assert found > 5


def test_a_new_name_everywhere_is_no_change() -> None:
    step = step_with(
        ["A = T.alloc(4)", "T.copy(A, B)", "T.fill(B, 0)"], ["A_cb = T.alloc(4)", "T.copy(A_cb, B)", "T.fill(B, 0)"]
    )
    rows = ir_rows(step)
    assert str(counts(rows)) == "≈2"
    assert renames(rows) == {"A": "A_cb"}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (["T.copy(A, B)", "T.fill(A, 0)"], ["T.copy(C, B)", "T.fill(A, 0)"], "A lives on: C is another variable"),
        (["T.copy(A, B)", "T.fill(C, 0)"], ["T.copy(C, B)", "T.fill(C, 0)"], "C was there before"),
        (["T.copy(A, B)", "T.fill(A, 0)"], ["T.copy(C, B)", "T.fill(D, 0)"], "A became two"),
        (["T.read(A, 4)"], ["T.write(A, 4)"], "another function"),
        (["T.copy(A.left, B)"], ["T.copy(A.right, B)"], "another member"),
        (["T.fill(A, 0)"], ["T.fill(A, 1)"], "another number"),
    ],
)
def test_what_only_looks_like_a_new_name_is_a_change(before: list[str], after: list[str], why: str) -> None:
    number = counts(ir_rows(step_with(before, after)))
    assert number.renamed == 0, why
    assert number.added == number.removed >= 1, why


def test_a_statement_that_stands_elsewhere_is_moved() -> None:
    step = step_with(
        ["T.alloc(A, 4)", "T.fill(B, 1)", "T.fill(C, 2)"], ["T.fill(B, 1)", "T.fill(C, 2)", "T.alloc(A, 4)"]
    )
    moved = [row for row in ir_rows(step) if row.kind == "moved"]
    assert [(row.before_number, row.after_number, row.partner) for row in moved] == [(1, None, 3), (None, 3, 1)]
    assert str(counts(ir_rows(step))) == "⇄1"


def test_two_equal_statements_are_never_called_moved() -> None:
    kept = ["T.copy(A, B)", "T.copy(B, C)", "T.copy(C, D)"]
    twice = ["T.fill(B, 1)", "T.fill(B, 1)"]
    assert str(counts(ir_rows(step_with([*twice, *kept], [*kept, *twice])))) == "+2 −2"


def test_the_data_is_json_and_the_same_each_time() -> None:
    exploration, data = data_of("copy_bf16")
    again = explore(exploration.kernel).data
    for one in (data, again):
        for step in one["steps"]:
            step["ms"] = 0
    assert packed(data) == packed(again)
    assert json.loads(zlib.decompress(packed(data))) == json.loads(json.dumps(data))


def test_the_module_is_small() -> None:
    assert len(widget_module().encode()) + len(widget_style().encode()) < 130_000


def test_the_module_asks_for_nothing_outside() -> None:
    for text in (widget_module(), widget_style(), *map(late_module, LATE)):
        assert not re.findall(r"https?://(?!www\.w3\.org/)|@import|\bfetch\s*\(|XMLHttpRequest", text)
        assert "innerHTML" not in text
    # The late tabs are modules of text that Python or the page holds.
    modules = "".join([widget_module(), *map(late_module, LATE)])
    assert re.findall(r"\bimport\s*\(", modules) == ["import("]
    assert re.search(r"await import\(URL\.createObjectURL\(new Blob\(", widget_module())


def test_every_option_can_be_written_and_its_example_lowers() -> None:
    exploration = explore("notebooks/kernels/gemm.py::matmul", M=128, N=128, K=128, block_M=64, block_N=64)
    shown = {one["name"]: one for step in exploration.data["steps"] for one in step["options"]}
    for step in exploration.steps:
        for name, value in step.options.items():
            assert to_json(OPTIONS[name].parse(shown[name]["text"])) == to_json(value), name
            assert all(OPTIONS[name].parse(text) is not None for text in shown[name]["choices"])
    for name, one in shown.items():
        assert bool(one["choices"]) != bool(one["example"]), name
        if one["example"]:
            asked: dict[str, Any] = {name: one["example"]}
            if one["policy"]:
                asked["policy"] = one["policy"]
            if name == "match":
                asked["layouts"] = {"A": {"shard": "height"}}
            other = exploration.fork(**asked)
            if name == "qk_chunk_tiles":
                assert other.error is not None, "no loop of this kernel chains products"
                assert other.error.message.startswith("qk_chunk_tiles is given, but no loop")
                continue
            assert other.error is None, name
            # What was asked for can be written again.
            again = next(o for step in other.data["steps"] for o in step["options"] if o["name"] == name)
            assert to_json(OPTIONS[name].parse(again["text"])) == to_json(OPTIONS[name].parse(one["example"])), name
    assert shown["work_lists"]["example"] == "{(0, 0): [0, 1], (1, 0): [2, 3]}"
    assert option_forms(64)["work_lists"].example == "{(0, 0): [0, 1], (1, 0): [..., 63]}"


def test_lines_say_which_rule_made_them() -> None:
    exploration, data = data_of("gemm_reload")
    steps = [one for step in exploration.steps for one in (step, *step.parts)]
    for step, shown in zip(steps, data["steps"], strict=True):
        before, after = shown["ir"]["why"]
        rules, made = shown["ir"]["rules"], shown["ir"]["made"]
        assert len(before) == len(step.record.before.lines)
        for number, position in enumerate(after, 1):
            told = [(*rules[rule], tuple(line + 1 for line in lines)) for rule, lines in made[position]]
            wanted = step.why(number).made_by
            assert told == [(one.rule, one.sentence, tuple(line for line, _ in one.before)) for one in wanted]


def test_decisions_of_the_plan_know_their_kernel_lines() -> None:
    exploration, data = data_of("gemm_relu")
    product = next(line for line in exploration.kernel.source.lines if "T.gemm(" in line.text).origins[0].span
    plan = data["listings"][data["steps"][-1]["plan"]["after"]]
    found = {
        data["texts"][text]: [data["places"][place][1] for place in data["origins"][origins][::2]]
        for text, origins in zip(plan[::4], plan[1::4], strict=True)
    }
    assert [text.partition(":")[0] for text, lines in found.items() if lines == [product.line]] == ["products[0]"]
    assert found["buffers[a].index: 0"] != []
    assert found["layouts[A].memory: dram"] == []


def test_lines_say_what_they_do() -> None:
    _, data = data_of("gemm_relu")
    file = data["listings"][next(one for one in data["files"] if one["name"] == "compute.cpp")["listing"]]
    work = {data["texts"][text].strip(): work for text, work in zip(file[::4], file[3::4], strict=True)}
    assert [work[line] for line in ("relu_tile(r);", "a_buffer.wait_front(8);", "relu_tile_init();", "}")] == [
        0,
        3,
        3,
        3,
    ]
    assert next(number for line, number in work.items() if line.startswith("matmul_block(")) == 0
    assert next(number for line, number in work.items() if line.startswith("pack_tile")) == 1
    assert next(number for line, number in work.items() if line.startswith("for (")) == 2
