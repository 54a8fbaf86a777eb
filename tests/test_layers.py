"""Imports point downward only (the layers of the package), TVM stays where it belongs."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from ttexplore.passes.pipeline import PIPELINE

PACKAGE_FOLDER = Path(__file__).parents[1] / "ttexplore"
PIPELINE_MODULE = "ttexplore.passes.pipeline"

# What each part of the package may import from the package, directly. A part also sees itself.
ALLOWED: dict[str, set[str]] = {
    "characters": set(),
    "notes": set(),
    "record": set(),
    "diagnostics": set(),
    "errors": {"record", "diagnostics"},
    "control": {"errors", "given"},
    "target": {"record", "errors", "given"},
    "plan": {"record", "errors", "notes"},
    "noc_links": {"target", "plan"},
    "optional": {"errors"},
    "given": {"errors"},
    "layout_request": {"record", "errors", "given"},
    "options": {"record", "errors", "plan", "given", "layout_request"},
    "ops": {"record", "errors", "target", "plan"},
    "ir": {"notes", "record", "errors", "control", "target", "plan", "ops", "options"},
    "language": {
        "notes", "record", "errors", "control", "target", "plan", "ops", "ir", "given", "layout_request", "options",
    },
    "analysis": {
        "notes", "errors", "target", "plan", "ops", "ir", "language", "layout_request", "options",
    },
    "passes": {
        "notes", "record", "errors", "control", "target", "plan", "noc_links", "ops", "ir", "language", "analysis",
        "given",
        "layout_request", "options", "clock",
    },
    "emit": {"record", "errors", "target", "plan", "ops", "ir"},
    "clock": {"record", "errors", "given", "control", "target", "plan", "noc_links", "ops", "ir", "views"},
    "files": {"record", "errors", "given"},
    "backends": {"record", "errors", "target", "plan", "ops"},
    "views": {"record", "errors", "given", "glossary", "target", "plan", "noc_links", "ops", "options"},
    "porting": {
        "record", "errors", "control", "glossary", "target", "plan", "given", "optional", "ir", "language", "passes",
        "backends", "views",
    },
    "porting_kernels": {"language"},
    "session": {
        "record", "errors", "control", "target", "plan", "given", "options", "ops", "backends", "views", "files",
    },
    "gpu": {
        "record", "errors", "given", "control", "target", "plan", "ops", "backends", "views", "session",
    },
    "exploration": {
        "record", "errors", "control", "target", "plan", "given", "options", "ops", "ir", "language",
        "passes", "emit", "backends", "clock", "gpu", "porting", "views", "session",
    },
    "sweeping": {
        "record", "errors", "control", "target", "plan", "given", "options", "ir", "language", "backends", "session",
        "views", "exploration", "clock", "optional",
    },
    "validating": {
        "record", "errors", "control", "target", "plan", "given", "options", "ir", "language", "passes",
        "backends", "session", "views", "exploration", "sweeping", "optional",
    },
    "course": {"record", "errors", "given", "files", "views"},
    "exercises": {"record", "errors", "given", "backends", "session", "views", "exploration"},
    "tenstorrent": {
        "record", "errors", "target", "plan", "layout_request", "options", "ir", "language", "passes", "emit", "files",
        "views", "session", "exploration",
    },
    "__main__": {"cli"},
    "glossary": set(),
    "pasting": {"language"},
    "installation": {
        "record", "errors", "target", "language", "backends", "gpu", "optional", "session", "exploration",
    },
    "cli": {
        "record", "diagnostics", "errors", "glossary", "target", "given", "options", "backends", "views", "session",
        "exploration", "installation", "sweeping", "validating", "files", "gpu", "course", "optional",
    },
    "ipython": {
        "record", "errors", "target", "options", "language", "pasting", "backends", "views", "exploration", "cli",
    },
}  # fmt: skip

# What prints itself is in all parts.
EVERYWHERE = {"characters"}
TVM_PARTS = {"analysis", "ir", "language", "passes"}
# These take plain data, so that a saved exploration runs and shows where TVM is not installed.
PLAIN_DATA_PARTS = {
    "characters", "notes", "record", "diagnostics", "errors", "control", "glossary", "given", "layout_request",
    "options", "target", "plan", "noc_links", "ops", "views", "backends", "files",
    "session", "gpu", "course", "optional",
}  # fmt: skip


# Runs by itself in TileLang's environment, with another TVM, and imports nothing of the package.
ELSEWHERE = "ttexplore.gpu.worker"


def module_name(path: Path, package_folder: Path) -> str:
    parts = [package_folder.name, *path.relative_to(package_folder).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source: str) -> set[str]:
    """The absolute names that `source` imports, wherever it does so, except for type checking only."""
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        match node:
            case ast.Import():
                found.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                base = node.module or ""
                found.add(base)
                found.update(f"{base}.{alias.name}" for alias in node.names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pending.extend(node.orelse)
                continue
            case _:
                pass
        pending.extend(ast.iter_child_nodes(node))
    return found


def violations(module: str, source: str) -> list[str]:
    """Each import of `source`, the text of `module`, that the layers do not allow."""
    parts = module.split(".")
    own = parts[1] if len(parts) > 1 else "__init__"
    plain = own in PLAIN_DATA_PARTS
    found: list[str] = []
    for name in sorted(imported_modules(source)):
        top, _, rest = name.partition(".")
        if top in ("tvm", "tvm_ffi") and own not in TVM_PARTS:
            found.append(f"{module} imports {name}: TVM belongs to {', '.join(sorted(TVM_PARTS))}")
        if own == "record" and top not in sys.stdlib_module_names and name.split(".")[1:2] != ["characters"]:
            found.append(f"{module} imports {name}: records need the standard library only")
        other = rest.partition(".")[0]
        if top != "ttexplore" or not rest or other == own or other not in ALLOWED or own == "__init__":
            continue
        if plain and other not in PLAIN_DATA_PARTS:
            found.append(f"{module} imports {name}: it takes plain data")
        elif other not in ALLOWED[own] | EVERYWHERE:
            found.append(f"{module} imports {name}: {own} stands below {other}")
    return found


@pytest.mark.every_case
@pytest.mark.parametrize(
    "path", sorted(PACKAGE_FOLDER.rglob("*.py")), ids=lambda path: module_name(path, PACKAGE_FOLDER)
)
def test_imports_point_downward(path: Path) -> None:
    module = module_name(path, PACKAGE_FOLDER)
    parts = module.split(".")
    assert len(parts) == 1 or parts[1] in ALLOWED, f"say in this test what {module} may import"
    source = path.read_text(encoding="utf-8")
    if module == ELSEWHERE:
        assert not any(name.startswith("ttexplore") for name in imported_modules(source))
    else:
        assert violations(module, source) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("ttexplore.record", "import numpy", "imports numpy: records need the standard library only"),
        (
            "ttexplore.plan",
            "def f():\n    import tvm.tir",
            "imports tvm.tir: TVM belongs to analysis, ir, language, passes",
        ),
        ("ttexplore.views.cores", "import ttexplore.session", "imports ttexplore.session: views stands below session"),
        ("ttexplore.ir.build", "from ttexplore.passes import x", "imports ttexplore.passes: ir stands below passes"),
        ("ttexplore.views.cores", "from ttexplore import ir", "imports ttexplore.ir: it takes plain data"),
        ("ttexplore.backends.emulator.run", "import ttexplore.ir.a", "imports ttexplore.ir.a: it takes plain data"),
    ],
)
def test_a_wrong_import_is_named(module: str, source: str, expected: str) -> None:
    assert violations(module, source)[0] == f"{module} {expected}"


def imported_passes(source: str) -> set[str]:
    """The modules of passes that `source` imports."""
    return imported_modules(source) & {step.function.__module__ for step in PIPELINE}


@pytest.mark.every_case
@pytest.mark.parametrize(
    "path", sorted(PACKAGE_FOLDER.rglob("*.py")), ids=lambda path: module_name(path, PACKAGE_FOLDER)
)
def test_only_the_pipeline_imports_passes(path: Path) -> None:
    """What passes share has rooms that are no pass, and imports none."""
    imported = imported_passes(path.read_text(encoding="utf-8"))
    assert imported == set() or module_name(path, PACKAGE_FOLDER) == PIPELINE_MODULE


def test_an_import_of_a_pass_is_found() -> None:
    source = "def f():\n    from ttexplore.passes.split_device_kernel import role_of"
    assert imported_passes(source) == {"ttexplore.passes.split_device_kernel"}
    pipeline = PACKAGE_FOLDER / "passes" / "pipeline.py"
    assert len(imported_passes(pipeline.read_text(encoding="utf-8"))) == len(PIPELINE)


@pytest.mark.parametrize("folder", ["", "exploration", "session"])
def test_no_folder_is_crowded(folder: str) -> None:
    assert len([*(PACKAGE_FOLDER / folder).glob("*.py")]) <= 20


def test_imports_for_type_checking_are_free() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ttexplore.passes import pipeline\n"
    assert violations("ttexplore.ir.build", source) == []
