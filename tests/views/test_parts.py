"""Parts of a step wherever steps are shown: one kernel of which a part of A0 rewrites, and one of which several do."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.steps import LETTERS, PARTS, after_a0, letter_of
from ttexplore.cli import main
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.record import ErrorRecord
from ttexplore.session.results import Check, StepCheck
from ttexplore.views.explorer import explorer_data
from ttexplore.views.steps.exploration import exploration_html

_GALLERY = Path(__file__).parents[2] / "notebooks" / "gallery"
_GROUPS = f"{_GALLERY / 'warp_groups.py'}::group_that_loads"
_SPARSE = f"{_GALLERY / 'sparse_attention.py'}::block_sparse_attention"
_SUMS = f"{_GALLERY / 'work.py'}::split_k_added"
# What changes something, and what is executed: A0.16 changes what a statement is made of, and no line.
SHOWN = {_GROUPS: ["A0.1", "A0.4"], _SPARSE: ["A0.1", "A0.11", "A0.17"]}
EXECUTED = {_GROUPS: ["A0.1", "A0.4"], _SPARSE: ["A0.1", "A0.11", "A0.16"]}
SHOWN_LATER = {
    _GROUPS: ["A2.5", "B1.1", "B1.2", "D1.1", "D1.2", "D5.1", "D5.2"],
    _SPARSE: ["A2.3", "A2.5", "B1.1", "D1.2", "D5.1", "D5.2"],
}
EXECUTED_LATER = {_GROUPS: ["D1.1", "D1.2", "D5.1", "D5.2"], _SPARSE: ["A2.3", "D1.2", "D5.1", "D5.2"]}


# Of two lowerings, one with partial sums that cores hand on.
_DIFFERENT_IN_A0 = [letter_of("give_updates_owners"), letter_of("mask_partial_blocks")]
_DIFFERENT = ["B1.1", "D1.1", "D1.2"]


@cache
def explored(kernel: str) -> Exploration:
    return ttx.explore(kernel)


@pytest.fixture(params=SHOWN, ids=["groups", "sparse"])
def kernel(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_text_has_a_row_for_each_part_that_changed_something(kernel: str) -> None:
    rows = str(explored(kernel)).split("\n\n")[1].splitlines()[1:]
    found = [re.search(r"[●◐○] +([A-E][\d.]+) ", row) for row in rows]
    assert [one[1] for one in found if one] == ["A0", *SHOWN[kernel], *after_a0(SHOWN_LATER[kernel])]
    counts = {one[1]: row[one.end() :].split()[1:] for one, row in zip(found, rows, strict=True) if one}
    if kernel == _GROUPS:
        assert (counts["A0"], counts["A0.4"]) == (["−11", "~8", "+7"], ["−11", "~8", "+7", "−1"])
    else:
        assert (counts["A0.11"], counts["A0.17"]) == (["+2", "−1", "·"], ["·", "+3", "−1"])


def test_the_page_has_these_rows_and_each_diff_once(kernel: str) -> None:
    page = explored(kernel)._repr_html_()
    steps = page[page.index('<div class="steps">') : page.index("<h4>Code</h4>")]
    rows = ["A0", *SHOWN[kernel], *after_a0(SHOWN_LATER[kernel])]
    assert re.findall(r'<span class="letter">([^<]*)<', steps) == rows
    assert len(re.findall(r'<details class="part">', steps)) == len([*SHOWN[kernel], *SHOWN_LATER[kernel]])
    whole, *parts = re.split(r'<details class="part">', steps)
    assert f"Of its {len(PARTS['A0'])} parts, these change something or fail: {', '.join(SHOWN[kernel])}" in whole
    assert "<table" not in whole
    # The page may be too full for the diffs of those that change the most lines.
    assert all("<table" in part for part in parts if not re.search(r'class="letter">(A0\.11|A2\.3|D[15]\.)', part))
    assert len(page.encode()) <= 120_000


def test_the_explorer_has_all_parts_after_their_step(kernel: str) -> None:
    steps = explored(kernel).data["steps"]
    later = after_a0([part for parts in PARTS.values() for part in parts])
    assert [one["letter"] for one in steps] == ["A0", *PARTS["A0"], *later]
    whole = [one["letter"].partition(".")[0] for one in steps if one["part_of"] >= 0]
    assert [steps[one["part_of"]]["letter"] for one in steps if one["part_of"] >= 0] == whole
    assert [whole.count(letter) for letter in PARTS] == [*map(len, PARTS.values())]
    assert [one["letter"] for one in steps if one["part_of"] == 0 and one["glyph"] != "○"] == SHOWN[kernel]


def test_the_graph_of_the_passes_goes_through_the_parts(kernel: str) -> None:
    text = explored(kernel).dot("passes").text
    later = after_a0(SHOWN_LATER[kernel])
    way = [*SHOWN[kernel], *(one for one in later if one not in PARTS)]
    assert re.findall(r'^  "([\w.]+)" -> "([\w.]+)";$', text, re.MULTILINE) == list(pairwise(way))
    assert re.findall(r'^  "([\w.]+)" \[label', text, re.MULTILINE) == way
    assert text.count('label="A0 apply_defaults";') == 1
    assert text.count("{") == text.count("}")


def test_a_check_has_rows_for_the_parts_that_were_executed(kernel: str) -> None:
    check = explored(kernel).check()
    rows = ["A0", *EXECUTED[kernel], *after_a0(EXECUTED_LATER[kernel])]
    assert [one.letter for one in check.rows] == rows
    assert re.findall(r"^ok +(\S+) ", str(check), re.MULTILINE) == rows
    assert re.findall(r"<td>([A-E]\d[\d.]*)</td>", check._repr_html_()) == rows


def test_a_check_names_the_part_that_changes_the_result_once() -> None:
    good = [StepCheck(f"part_{n}", f"A0.{n}", True, 1.0, 0.0, "", executed=n == 1) for n in range(1, 4)]
    bad = StepCheck("part_4", "A0.4", False, 0.5, 1.0, "C differs at (0, 0)")
    check = Check((StepCheck.of_parts("whole", "A0", [*good, bad]), StepCheck("next", "A1", True, 1.0, 0.0, "")))
    assert check.first_bad == "part_4"
    assert [one.letter for one in check.rows] == ["A0", "A0.1", "A0.4", "A1"]
    for shown in (str(check), check._repr_html_()):
        assert shown.count("C differs at (0, 0)") == 1
    assert "A0.4 part_4 changes the result" in check._repr_html_()
    assert re.findall(r"^(BAD|ok) +(\S+)", str(check), re.MULTILINE) == [
        ("BAD", "A0"), ("ok", "A0.1"), ("BAD", "A0.4"), ("ok", "A1"),
    ]  # fmt: skip


def test_searches_and_histories_name_the_part() -> None:
    groups, sparse = explored(_GROUPS), explored(_SPARSE)
    found = groups.find("barrier_wait")
    assert (found.first, found.gone) == ("A0", "A0.4")
    assert [row[0] for row in found.steps if row[2]] == ["A0.1"]
    found = sparse.find("Mask_value = ")
    assert (found.first, found.gone) == ("A0.11", None)
    line = next(one for one in sparse.kernel.source.lines if "if Mask[" in one.text).origins[0].span.line
    history = {letter: count for letter, _, count in sparse.history(line).steps}
    # The history counts lines of the program, which A0.1 and A0.17 leave alone.
    assert [*history] == ["A0", "A0.11", *after_a0(["A2.3", "D1.2", "D5.1", "D5.2"])]
    assert (history["A0"], history["A0.11"]) == (2, 2)


def test_two_lowerings_are_compared_part_by_part() -> None:
    one = explored(_SUMS)
    comparison = ttx.compare(one, one.fork(partials="noc"))
    steps = comparison.steps
    assert [step.letter for step in steps] == LETTERS
    assert [part.letter for part in steps[0].parts] == PARTS["A0"]
    assert [part.letter for part in steps[0].parts if part.kind != "same"] == _DIFFERENT_IN_A0
    assert next(part for part in steps[0].parts if part.kind != "same").kind == "program"
    assert [step.letter for step in steps.with_parts] == [step["letter"] for step in one.data["steps"]]
    # In both texts, and only there, parts have rows.
    shown = ["A0", _DIFFERENT_IN_A0[0], *after_a0(_DIFFERENT)]
    assert [row.split()[1] for row in str(steps).splitlines()] == shown
    assert re.findall(r"<td>([A-E]\d[.\d]*) ", steps._repr_html_()) == shown
    diff = comparison.diff(_DIFFERENT_IN_A0[0])
    assert diff.record.before.text == one.steps[_DIFFERENT_IN_A0[0]].listing.text
    assert diff.record.parts == ()
    with pytest.raises(UsageError, match=r"there is no step or file 'A0\.44'"):
        comparison.diff("A0.44")


def test_an_option_of_a_step_and_of_its_part_is_there_once() -> None:
    settings = [(one.step, one.name) for one in explored(_GROUPS).settings]
    assert [one for one in settings if one[1] == "partials"] == [("A0", "partials")]
    assert len(settings) == len({name for _, name in settings})


def test_a_lowering_that_a_part_rejects_says_so_once(kernel: str) -> None:
    one = explored(kernel)
    steps = one.trace.steps
    parts = steps[0].parts[:9]
    error = ErrorRecord("Unsupported", "too many", "use fewer", code="TTX-L001")
    failed = dataclasses.replace(parts[-1], error=error, changed_ir=False, changed_plan=False)
    before = steps[0].before
    whole = dataclasses.replace(
        steps[0], after=before, error=error, changed_ir=False, changed_plan=False, parts=(*parts[:-1], failed)
    )
    trace = dataclasses.replace(one.trace, steps=(whole,), files={})
    page = exploration_html(trace, one.target, one.steps[0].plan)
    assert page.count("use fewer") == 1
    assert "stopped at A0.9 name_deciding_variables" in page
    data = explorer_data(trace, one.steps[0].plan, one.target)
    assert [step["letter"] for step in data["steps"] if step["error"]] == ["A0", "A0.9"]


def test_a_saved_exploration_has_the_parts(kernel: str, tmp_path: Path) -> None:
    one = explored(kernel)
    saved = ttx.load(one.save(tmp_path / "one.ttx"))
    assert saved.trace == one.trace
    assert str(saved) == str(one)
    assert saved.steps["A0.4"].listing.text == one.steps["A0.4"].listing.text
    assert str(saved.steps["A0.4"].diff(saved.steps["A0.3"])) == str(one.steps["A0.4"].diff(one.steps["A0.3"]))
    assert [step["letter"] for step in saved.data["steps"]] == [step["letter"] for step in one.data["steps"]]


def test_the_commands_know_the_parts(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", kernel, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [one["letter"] for one in steps] == LETTERS
    changed = [one["letter"] for one in steps[0]["parts"] if one["changed_ir"] or one["changed_plan"]]
    assert (len(steps[0]["parts"]), changed) == (len(PARTS["A0"]), SHOWN[kernel])
    assert main(["check", kernel, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [one["letter"] for one in steps[0]["parts"] if one["executed"]] == EXECUTED[kernel]
    assert main(["show", kernel, "--step", "A0.4"]) == 0
    assert capsys.readouterr().out.startswith("A0.4 order_thread_groups: ")
