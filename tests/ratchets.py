"""Figures of the library's source that may only fall, and its lines by package.

    python -m tests.ratchets

prints them; `make lint` runs this. `ratchets.toml` has the figures, and `pytest --update-golden tests/test_ratchets.py`
lowers those that have fallen. A figure may exceed its record by a little, so that two changes that each pass also pass
together; the record does not follow it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".toml")
# Lines of a module and of a class, and modules of a folder.
LONGEST_MODULE, LONGEST_CLASS, LARGEST_FOLDER = 400, 200, 20
VAGUE = re.compile(
    "one|made|found|known|given|taken|others?|own|parts?|seen|wanted|held|kept|left|places?|what|whole|turn"
)
# Names of operations in the kernel language and in the IR. In porting, `tl` is Triton's module.
_OPERATION = re.compile(r"t[lt]\.\w*")
_NAMED_ELSEWHERE = ("ops", "porting")


@dataclass(frozen=True)
class Module:
    """A module of the library; `path` is relative to the package."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        return self.path.parts[0] if len(self.path.parts) > 1 else "(modules)"

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def modules(package: Path = REPOSITORY / "ttexplore") -> list[Module]:
    return [
        Module(path.relative_to(package), path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))
    ]


def _in_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from ast.walk(child) if is_function else _in_functions(child)


def bound_names(module: Module) -> Iterator[str]:
    """The names that the functions of a module bind, once for each binding."""
    for node in _in_functions(module.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case _:
                pass


def _classes(module: Module) -> list[ast.ClassDef]:
    return [node for node in module.nodes if isinstance(node, ast.ClassDef)]


def _operations(module: Module) -> Iterator[str]:
    """The texts of a module that name an operation, or begin the name of one in an f-string."""
    if module.package not in _NAMED_ELSEWHERE:
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _OPERATION.fullmatch(node.value):
                yield node.value


def _folders(every: list[Module]) -> Counter[str]:
    return Counter(str(module.path.parent) for module in every)


def _repeated_classes(every: list[Module]) -> int:
    names = Counter(one.name for module in every for one in _classes(module))
    return sum(count - 1 for count in names.values())


def _total(count: Callable[[Module], int]) -> Callable[[list[Module]], int]:
    return lambda every: sum(map(count, every))


MEASURES: dict[str, Callable[[list[Module]], int]] = {
    "modules above 400 lines": _total(lambda module: module.lines > LONGEST_MODULE),
    "classes above 200 lines": _total(
        lambda module: sum((one.end_lineno or 0) - one.lineno >= LONGEST_CLASS for one in _classes(module))
    ),
    "formatting skipped": _total(lambda module: module.text.count("# fmt: skip")),
    "vague names in functions": _total(
        lambda module: sum(VAGUE.fullmatch(name) is not None for name in bound_names(module))
    ),
    "names of operations outside of ops": _total(lambda module: len([*_operations(module)])),
    "modules too many in their folder": lambda every: sum(
        max(count - LARGEST_FOLDER, 0) for count in _folders(every).values()
    ),
    "classes with the name of another": _repeated_classes,
}


def measured(every: list[Module]) -> dict[str, int]:
    return {name: measure(every) for name, measure in MEASURES.items()}


def recorded() -> dict[str, int]:
    return tomllib.loads(RECORD.read_text(encoding="utf-8"))


def most(record: int) -> int:
    """The largest figure that passes."""
    return record + max(3, record // 50)


def risen(figures: dict[str, int], record: dict[str, int]) -> list[str]:
    """What to say of the figures that have risen."""
    return [
        f"{name}: {figure}, which may be {most(record.get(name, 0))} at most; the record is {record.get(name, 0)}"
        for name, figure in figures.items()
        if figure > most(record.get(name, 0))
    ]


def record_text(figures: dict[str, int], record: dict[str, int]) -> str:
    """The record with those figures that have fallen."""
    lines = ["# What may only fall; `pytest --update-golden tests/test_ratchets.py` lowers what has fallen."]
    lines += [f'"{name}" = {min(figure, record.get(name, figure))}' for name, figure in figures.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    every = modules()
    lines: Counter[str] = Counter()
    for module in every:
        lines[module.package] += module.lines
    for package, count in [*lines.most_common(), ("ttexplore", lines.total())]:
        print(f"{count:8,} lines  {package}")
    figures, record = measured(every), recorded()
    for name, figure in figures.items():
        print(f"{figure:8,} {name} (record {record.get(name, 0):,})")
    bound = sum(1 for module in every for _ in bound_names(module))
    print(f"{figures['vague names in functions'] / bound:8.1%} of {bound:,} names bound in functions are vague")
    failures = risen(figures, record)
    for failure in failures:
        print(failure)
    return min(len(failures), 1)


if __name__ == "__main__":
    sys.exit(main())
