"""What all tests share: which of them are slow, golden files and the device headers."""

from __future__ import annotations

import difflib
import gc
import os
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.typecheck.headers import HEADERS_FOLDER, headers_missing

GOLDEN_FOLDER = Path(__file__).parent / "golden"
LARGEST_DIFF_LINES = 80
# Of a test with many parameters `make test` runs so many, from all over them, and `make test-all` so many more. Those
# marked `every_case` it runs with all, as `make test-thorough` does every test.
EVERYDAY_PARAMETERS = 6
MOST_PARAMETERS = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing them")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        everyday = _spread(len(cases), EVERYDAY_PARAMETERS)
        # Tests of the same parameters take different ones of them.
        most = {(number + zlib.crc32(name.encode())) % len(cases) for number in _spread(len(cases), MOST_PARAMETERS)}
        for number, item in enumerate(cases):
            if number not in everyday:
                item.add_marker(pytest.mark.slow)
                if number not in most and not item.get_closest_marker("every_case"):
                    item.add_marker(pytest.mark.thorough)


def _spread(cases: int, count: int) -> set[int]:
    """So many numbers of cases, from all over them."""
    return {round((cases - 1) / (count - 1) * number) for number in range(count)}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fails where pytest-xdist does not keep the tests of a group in one process: they would share servers' ports,
    and each process would lower the same kernels again."""
    if session.config.getoption("loadgroup", False):
        for item in session.items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
                raise pytest.UsageError(f"{item.nodeid}: pytest-xdist does not see its group")
    # The tests themselves stay: no collection of garbage need look through all of them.
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    # The processes that run tests side by side are told of 80 columns, which fold the output of the command.
    os.environ.pop("COLUMNS", None)


def compare_golden(path: Path, text: str, *, update: bool) -> None:
    """Fail with a diff unless the file at `path` contains `text`; with `update`, write it there."""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    fix = "review the difference; if it is intended, run: pytest --update-golden"
    if not path.exists():
        pytest.fail(f"{path.name} does not exist yet; {fix}", pytrace=False)
    expected = path.read_text(encoding="utf-8")
    if text == expected:
        return
    diff = list(
        difflib.unified_diff(expected.splitlines(), text.splitlines(), f"golden/{path.name}", "produced", lineterm="")
    )
    shown = diff[:LARGEST_DIFF_LINES] + (["..."] if len(diff) > LARGEST_DIFF_LINES else [])
    pytest.fail("\n".join([f"{path.name} has changed; {fix}", *shown]), pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("name.txt", text)`` compares `text` with the file of that name in tests/golden."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        compare_golden(GOLDEN_FOLDER / name, text, update=update)

    return check


@pytest.fixture(scope="session")
def ttnn_headers() -> Path:
    """The folder with the device headers of the ttnn wheel; without them the test is skipped, in CI it fails."""
    if missing := headers_missing():
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    return HEADERS_FOLDER
