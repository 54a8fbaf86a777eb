"""The golden fixture itself: equal passes, different fails with a diff, updating writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import compare_golden


def test_update_then_equal(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    compare_golden(path, "one\ntwo\n", update=True)
    compare_golden(path, "one\ntwo\n", update=False)
    assert path.read_text() == "one\ntwo\n"


def test_difference_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(pytest.fail.Exception) as caught:
        compare_golden(path, "one\nthree\n", update=False)
    assert str(caught.value).splitlines() == [
        "a.txt has changed; review the difference; if it is intended, run: pytest --update-golden",
        "--- golden/a.txt", "+++ produced", "@@ -1,2 +1,2 @@", " one", "-two", "+three",
    ]  # fmt: skip
    assert path.read_text() == "one\ntwo\n"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        compare_golden(tmp_path / "a.txt", "one\n", update=False)
    assert str(caught.value).startswith("a.txt does not exist yet;")
