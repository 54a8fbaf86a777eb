"""The text of a kernel that is edited in the explorer: answers, superseded questions, and what is kept of them."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.corpus.launches import two_products
from ttexplore import Exploration, explore
from ttexplore.session.lowering import READ
from ttexplore.session.widget import ExplorerWidget
from ttexplore.views.steps.moved import moved_lines


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return explore("notebooks/kernels/gemm.py::matmul", M=64, N=64, K=64, block_M=32, block_N=32)


@pytest.fixture
def told(gemm: Exploration, monkeypatch: pytest.MonkeyPatch) -> tuple[ExplorerWidget, list[dict[str, Any]]]:
    """An explorer, and what it says."""
    widget, said = gemm.widget(), list[dict[str, Any]]()
    monkeypatch.setattr(widget, "_tell", lambda message, buffers=None: said.append(message))
    return widget, said


def changed(gemm: Exploration, old: str, new: str) -> str:
    text = gemm.kernel.source.text
    assert old in text
    return text.replace(old, new)


def ask(explorer: tuple[ExplorerWidget, list[dict[str, Any]]], text: str, **question: Any) -> dict[str, Any]:
    widget, said = explorer
    asked = {"id": "1", "do": "edit", "text": text, "unused": [], **question}
    widget._answer(asked, threading.Event())
    assert widget.running == []
    return said[-1]


def test_an_edit_is_another_lowering(told: tuple[ExplorerWidget, list[dict[str, Any]]], gemm: Exploration) -> None:
    answer = ask(told, changed(gemm, "        T.clear(C_local)\n", "        # to zero\n        T.clear(C_local)\n"))
    lines = [line.text for line in gemm.kernel.source.lines]
    clear = lines.index("        T.clear(C_local)")
    assert (answer["state"], answer["error"]) == ("done", None)
    assert answer["moved"] == [*range(clear), *range(clear + 1, len(lines) + 1)]
    # Runs and edits go on from there.
    widget, said = told
    widget._answer(
        {"id": "2", "do": "run", "variant": answer["variant"], "backend": "interpreter", "inputs": "ones", "seed": 0},
        threading.Event(),
    )
    assert said[-1]["passed"]
    back = ask(told, gemm.kernel.source.text, variant=answer["variant"])
    assert widget._explorations[back["variant"]].kernel is gemm.kernel


def test_a_lowering_that_fails_says_why(told: tuple[ExplorerWidget, list[dict[str, Any]]], gemm: Exploration) -> None:
    answer = ask(told, changed(gemm, "(block_M, block_K)", "(block_M, block_Q)"))
    line = next(line.origins[0].span.line for line in gemm.kernel.source.lines if "(block_M, block_K)" in line.text)
    assert answer["state"] == "failed"
    assert answer["error"]["line"] == line
    assert answer["error"]["where"] == f"notebooks/kernels/gemm.py (edited):{line}"
    failed = ask(told, changed(gemm, "num_stages=2", "num_stages=2000"))
    assert failed["state"] == "done"
    assert "of L1" in "".join(failed["error"]["message"])


def test_lowerings_that_no_page_shows_are_dropped(
    told: tuple[ExplorerWidget, list[dict[str, Any]]], gemm: Exploration
) -> None:
    first = ask(told, changed(gemm, "num_stages=2", "num_stages=3"))["variant"]
    second = ask(told, changed(gemm, "num_stages=2", "num_stages=4"), variant=first, unused=[first, "", "none"])
    assert set(told[0]._explorations) == {"", second["variant"]}
    gone = ask(told, gemm.kernel.source.text, variant=first)
    assert gone["error"]["message"] == ["an edit has replaced this lowering"]


def test_a_superseded_edit_is_cancelled_and_nothing_else(
    told: tuple[ExplorerWidget, list[dict[str, Any]]], gemm: Exploration
) -> None:
    widget, said = told
    endless = changed(gemm, "        T.clear(C_local)\n", "        while True:\n            x = 1\n")
    for number in ("1", "2"):
        widget._asked(None, {"id": number, "do": "edit", "text": endless, "unused": []}, [])
    # The explorer's Cancel is about what it is busy with; an edit is cancelled by its id.
    widget._asked(None, {"do": "cancel"}, [])
    widget._asked(None, {"do": "cancel", "edit": "1"}, [])
    ends(said, ["1"])
    assert "2" in widget._running
    widget._asked(None, {"do": "cancel", "edit": "2"}, [])
    ends(said, ["1", "2"])
    assert {one["error"]["kind"] for one in said} == {"Cancelled"}


def ends(said: list[dict[str, Any]], wanted: list[str]) -> None:
    end = time.monotonic() + 60
    while [one["id"] for one in said] != wanted and time.monotonic() < end:
        time.sleep(0.01)
    assert [one["id"] for one in said] == wanted


def test_lines_that_were_rewritten_together_are_each_other_in_order() -> None:
    assert moved_lines(["a", "b", "c"], ["a", "x", "c"]) == [0, 1, 2]
    assert moved_lines(["a", "b", "c", "d"], ["a", "x", "d"]) == [0, 1, 1, 2]
    assert moved_lines(["a", "b", "c"], ["c"]) == [-1, -1, 0]
    assert moved_lines([], ["a"]) == []


def test_the_text_of_several_launches_is_edited_from_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch that is shown is lowered anew; what a fork has chosen for it stays, and the first text is the first
    kernel again."""
    whole = explore(two_products())
    widget, said = whole.widget(), list[dict[str, Any]]()
    monkeypatch.setattr(widget, "_tell", lambda message, buffers=None: said.append(message))
    assert "edit" not in widget.missing
    text = whole.kernel.source.text
    for number, launch in enumerate(whole.launches):
        name = f"launch {number}"
        doubled = text.replace("            T.clear(c)\n", "            T.fill(c, 1.0)\n")
        edited = ask((widget, said), doubled, variant=name, launch=number)
        lowered = widget._explorations[edited["variant"]]
        assert (lowered.kernel.name, edited["error"]) == (launch.kernel.name, None)
        arrays = [np.ones(tensor.shape) for tensor in launch._tensors(READ)]
        plain, other = (one.run(backend="interpreter", inputs=arrays).outputs[0] for one in (launch, lowered))
        np.testing.assert_array_equal(other, plain + 1.0)
        fork = {"id": "2", "do": "fork", "options": {"policy": "strided"}, "target": whole.target.name}
        widget._answer({**fork, "variant": name}, threading.Event())
        forked = said[-1]["variant"]
        again = ask((widget, said), doubled, variant=forked, launch=number)
        assert widget._explorations[again["variant"]].plan.options["policy"] == "strided"
        back = ask((widget, said), text, variant=edited["variant"], launch=number)
        assert widget._explorations[back["variant"]].trace.steps[-1].after.text == launch.trace.steps[-1].after.text
    alone = text[: text.rindex("        with T.Kernel")]
    fewer = ask((widget, said), alone, variant="launch 1", launch=1)
    assert widget._explorations[fewer["variant"]].kernel.name != "kernel_2"
