"""Histories of kernel lines and the search over all steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emit.test_links import KERNEL, explored, marks
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.views.steps.history import ranges


@pytest.fixture
def exploration(tmp_path: Path) -> Exploration:
    return explored(KERNEL, tmp_path)


def line_of(mark: str) -> int:
    return next(line for line, name in marks(KERNEL).items() if name == mark)


def test_a_copy_goes_to_the_reader_alone(exploration: Exploration) -> None:
    history = exploration.history(line_of("copy a"))
    files = {name: lines for name, lines, _ in history.files}
    assert files["reader.cpp"]
    assert not files["compute.cpp"]
    assert not files["writer.cpp"]
    reader = exploration.code["reader"].lines
    linked = {n for n, line in enumerate(reader, 1) if any(o.span.line == history.line for o in line.origins)}
    assert linked == set(files["reader.cpp"])
    counts = [count for _, _, count in history.steps]
    assert counts[0] == 1
    assert counts[-1] > 1
    assert "T.copy(A[by * 32, k * 32], a_block)" in str(history)
    assert "reader.cpp" in history._repr_html_()


def test_lines_outside_of_the_kernel_are_refused(exploration: Exploration) -> None:
    with pytest.raises(UsageError, match=r"line 99 is not in the kernel, which spans lines 3 to 19"):
        exploration.history(99)


def test_the_search_names_the_first_step_and_where_a_text_is_gone(exploration: Exploration) -> None:
    found = exploration.find("cb_reserve_back")
    assert (found.first, found.gone) == ("D3", None)
    found = exploration.find("T.GEMM(")
    assert (found.first, found.gone) == ("A0", "C2")
    assert str(found).splitlines()[0] == "'T.GEMM(' appears first in A0, gone at C2"
    assert str(exploration.find("nowhere")) == "'nowhere' appears in no step"


def test_ranges_join_neighbours() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == "1–3, 7, 9–10"
    assert ranges([]) == ""
