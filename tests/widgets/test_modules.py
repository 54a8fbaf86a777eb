"""The modules that run without a page, tested by Node; and the bundles, which are made of the modules as they are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ttexplore.views.explorer import ROW_KINDS, TABS
from ttexplore.views.steps.origins import ORIGIN_KINDS
from widgets.build import BUNDLES, FOLDER, NODE, bundled

TESTS = sorted(Path(__file__).parent.glob("*.test.mjs"))
# What each folder of modules may import.
LAYERS = {"model": {"model"}, "parts": {"model", "parts"}, "views": {"model", "parts", "views"}}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.partition(".")[0])
def test_units(path: Path) -> None:
    ran = subprocess.run(
        [*NODE, "--test", "--test-reporter=spec", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # A file in which nothing is tested passes, too.
    assert re.search(r"^ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


def test_every_module_of_the_model_is_tested() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in TESTS)
    modules = [path.name for path in (FOLDER / "model").glob("*.js")]
    assert [name for name in modules if f"/model/{name}" not in texts] == []


def test_every_module_is_in_the_explorer() -> None:
    """A view is shown once a bundle's own module names it: what nothing imports is in no bundle."""
    used: set[Path] = set()
    pending = [FOLDER / name for name in BUNDLES if name.endswith(".js")]
    while pending:
        if (path := pending.pop().resolve()) not in used:
            used.add(path)
            imported = re.findall(r'from "(\..*?)";', path.read_text(encoding="utf-8"))
            pending += [path.parent / name for name in imported]
    assert {path.resolve() for layer in LAYERS for path in (FOLDER / layer).glob("*.js")} - used == set()


def test_numbers_mean_the_same_in_python_and_in_the_page() -> None:
    program = """
        import { ROWS } from "./model/diff.js";
        import { KINDS } from "./model/lowering.js";
        console.log(JSON.stringify([ROWS, KINDS]));
    """
    command = [*NODE, "--input-type=module", "--eval", program]
    ran = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(ran.stdout) == [list(ROW_KINDS), list(ORIGIN_KINDS)]


def test_the_tabs_are_the_same_in_python_and_in_the_page() -> None:
    text = (FOLDER / "explorer.js").read_text(encoding="utf-8")
    views = text.partition("const VIEWS = {")[2].partition("};")[0]
    assert tuple(re.findall(r'^  "?([A-Z][\w ]*)"?: ', views, re.MULTILINE)) == TABS


@pytest.mark.parametrize("name", BUNDLES)
def test_the_bundle_is_made_of_these_modules(name: str) -> None:
    assert (FOLDER / "dist" / name).read_bytes() == bundled(name), "run: make widgets"


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_downward(layer: str) -> None:
    for path in (FOLDER / layer).glob("*.js"):
        for name in re.findall(r'^import .* from "(.*)";$', path.read_text(encoding="utf-8"), re.MULTILINE):
            assert (path.parent / name).resolve().parent.name in LAYERS[layer], f"{path.name} imports {name}"


def test_no_type_is_any() -> None:
    for path in [*FOLDER.glob("*.[jd]*s"), *FOLDER.glob("[mpv]*/*s")]:
        found = re.findall(r"[{<(|:,]\s*(?:any|\*)\s*[}>)|,;\]]|@ts-\w+", path.read_text(encoding="utf-8"))
        assert found == [], path
