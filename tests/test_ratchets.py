"""The figures of tests/ratchets.py do not rise, and each of them measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ratchets import MEASURES, RECORD, REPOSITORY, Module, measured, modules, most, record_text, recorded, risen


def test_no_figure_has_risen(request: pytest.FixtureRequest) -> None:
    figures = measured(modules())
    if request.config.getoption("--update-golden"):
        RECORD.write_text(record_text(figures, recorded()), encoding="utf-8")
    assert list(recorded()) == list(MEASURES)
    assert risen(figures, recorded()) == [], "write it smaller, or lower another one: python -m tests.ratchets"


def test_the_readme_is_short() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150, "what does not fit goes to docs"


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("modules above 400 lines", "\n" * 401),
        ("classes above 200 lines", "class A:\n" + "    x = 1\n" * 200),
        ("formatting skipped", "x = (1,\n     2)  # fmt: skip\n"),
        ("vague names in functions", "def f(made: int) -> None: ..."),
        ("vague names in functions", "def f(): return [x for x, (y, part) in ()]"),
        ("vague names in functions", "def f(x):\n    match x:\n        case [*others]: ..."),
        ("vague names in functions", "def f(x):\n    def g():\n        with x as held: ..."),
        ("vague names in functions", "f = lambda own: 0"),
        ("names of operations outside of ops", 'x == "tl.copy"'),
        ("names of operations outside of ops", 'f"tt.{x}"'),
        ("classes with the name of another", "class A: ...\nclass B:\n    class A: ..."),
    ],
)
def test_a_figure_counts(figure: str, text: str) -> None:
    assert measured([Module(Path("passes/a.py"), text)]) == {name: int(name == figure) for name in MEASURES}


def test_a_figure_does_not_count_what_is_right() -> None:
    texts = {
        "passes/a.py": "\n" * 400, "passes/b.py": "class A:\n" + "    x = 1\n" * 199, "ops/a.py": 'x = "tl.copy"',
        "porting/a.py": 'x = "tl.dot"', "emit/a.py": 'made = "tt.plan.json"\nprint(made.part)',
    }  # fmt: skip
    assert set(measured([Module(Path(path), text) for path, text in texts.items()]).values()) == {0}
    folders = [Module(Path(f"{folder}/m{number}.py"), "") for folder in ("a", "a/b") for number in range(20)]
    assert set(measured(folders).values()) == {0}
    assert measured([*folders, Module(Path("a/c.py"), "")])["modules too many in their folder"] == 1


def test_a_record_only_falls() -> None:
    figures, record = dict.fromkeys(MEASURES, 100), dict.fromkeys(MEASURES, 90) | {"formatting skipped": 110}
    lowered = record_text(figures, record)
    assert '"formatting skipped" = 100\n' in lowered
    assert '"modules above 400 lines" = 90\n' in lowered
    assert [most(figure) for figure in (0, 10, 150, 1000)] == [3, 13, 153, 1020]
    assert len(risen(figures, record)) == len(MEASURES) - 1
    assert risen(figures, dict.fromkeys(MEASURES, 97)) == []
    assert len(risen(figures, {})) == len(MEASURES)
