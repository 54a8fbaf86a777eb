"""No stub of a recipe is left, and each recipe writes its stubs where the places are."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes import REPOSITORY, Place, main, recipes, stubs

_MARK = f"STUB {'added'}: "


def test_no_stub_is_left() -> None:
    assert list(stubs()) == []


def copied(recipe: str, folder: Path) -> Path:
    """The files that a recipe changes, and its own tests, in a folder."""
    files = [place.file for place in recipes()[recipe].places]
    for name in [*files, "tests/recipes.py", "tests/recipes.toml", "tests/test_recipes.py"]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, target)
    return folder


@pytest.mark.parametrize("recipe", recipes())
def test_a_recipe_writes_a_stub_at_each_place(recipe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copied(recipe, tmp_path)
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file()}
    assert main([recipe, "added"], root) == 0
    left = list(stubs(root))
    assert sorted(line.partition(":")[0] for line in left) == sorted(
        place.file.replace("NAME", "added") for place in recipes()[recipe].places
    )
    assert all(_MARK in line for line in left)
    assert capsys.readouterr().out.startswith("\n".join(left))
    for test in recipes()[recipe].tests:
        assert (REPOSITORY / test).exists(), test
    # What is written is still Python, and what was there still is.
    for path in root.rglob("*"):
        if path.suffix == ".py":
            ast.parse(path.read_text())
        if path in before:
            assert "\n".join(line for line in path.read_text().split("\n") if _MARK not in line) == before[path]


@pytest.mark.parametrize(
    ("place", "message"),
    [(Place("docs/names.md", "x"), "exists"), (Place("docs/names.md", "x", "^no such line"), "has no line")],
)
def test_a_place_that_is_gone_is_an_error(place: Place, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place.write(REPOSITORY, "added")


def test_a_stub_fails_the_test(tmp_path: Path) -> None:
    root = copied("reduction", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_recipes.py", "-k", "no_stub"]
    statuses = [subprocess.run(command, cwd=root, check=False, capture_output=True).returncode]
    main(["reduction", "added"], root)
    statuses.append(subprocess.run(command, cwd=root, check=False, capture_output=True).returncode)
    assert statuses == [0, 1]


def test_a_recipe_needs_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["reduction"], ["reduction", "a b"], ["no such recipe", "a"]):
        with pytest.raises(SystemExit):
            main(words)
    capsys.readouterr()
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(recipes())
