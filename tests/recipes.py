"""Steps to add an element of ttexplore: a stub at each place that must know it.

    python -m tests.recipes                  # the recipes
    python -m tests.recipes reduction prod   # writes the stubs of T.reduce_prod, and says which tests to run

`recipes.toml` has the places. `tests/test_recipes.py` fails as long as a stub is left anywhere; the tests that the
recipe names fail as long as the places do not agree.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
_RECIPES = Path(__file__).with_suffix(".toml")
_FOLDERS = ("ttexplore", "tests", "widgets", "docs")
_ENDINGS = (".py", ".cpp", ".h", ".js", ".ts", ".md", ".toml")
_STUB = re.compile(r"\bSTUB (\w+): ")


@dataclass(frozen=True)
class Place:
    """A file, and the stub in it: after the first line that has the pattern `after`; without one the file is new."""

    file: str
    stub: str
    after: str = ""

    def write(self, root: Path, name: str) -> None:
        """Write the stub. Raises ValueError if the file is there and should not be, or has no such line."""
        path, stub = root / self.file.replace("NAME", name), self.stub.replace("NAME", name)
        if not self.after:
            if path.exists():
                raise ValueError(f"{path} exists")
            path.write_text(f"{stub}\n", encoding="utf-8")
            return
        lines = path.read_text(encoding="utf-8").split("\n")
        at = next((number for number, line in enumerate(lines) if re.search(self.after, line)), None)
        if at is None:
            raise ValueError(f"{path} has no line {self.after}")
        lines.insert(at + 1, stub)
        path.write_text("\n".join(lines), encoding="utf-8")


@dataclass(frozen=True)
class Recipe:
    """`what` it adds, the `places` that must know it, and the `tests` that fail until they agree."""

    what: str
    places: tuple[Place, ...]
    tests: tuple[str, ...]


def recipes() -> dict[str, Recipe]:
    tables = tomllib.loads(_RECIPES.read_text(encoding="utf-8"))
    return {
        name: Recipe(table["what"], tuple(Place(**place) for place in table["places"]), tuple(table["tests"]))
        for name, table in tables.items()
    }


def stubs(root: Path = REPOSITORY) -> Iterator[str]:
    """The stubs that are left, as file:line: text."""
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            # The stubs of the recipes themselves are still to be written.
            if path.suffix in _ENDINGS and path.is_file() and path.name != _RECIPES.name:
                lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
                yield from (f"{path.relative_to(root)}:{at}: {line}" for at, line in lines if _STUB.search(line))


def main(arguments: list[str] | None = None, root: Path = REPOSITORY) -> int:
    choices = recipes()
    parser = argparse.ArgumentParser(prog="python -m tests.recipes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("recipe", choices=choices, nargs="?", help="what to add; without it, list the recipes")
    parser.add_argument("name", nargs="?", help="its name")
    options = parser.parse_args(arguments)
    if options.recipe is None:
        print(*(f"{name:<10} {recipe.what}" for name, recipe in choices.items()), sep="\n")
        return 0
    if options.name is None or not options.name.isidentifier():
        parser.error(f"the {options.recipe} needs a name of letters and digits")
    for place in choices[options.recipe].places:
        place.write(root, options.name)
    print(*stubs(root), sep="\n")
    print(f"then: pytest tests/test_recipes.py {' '.join(choices[options.recipe].tests)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
