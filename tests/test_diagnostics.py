"""The catalogue of diagnostics: complete, unambiguous, shown, and written to docs/diagnostics.md."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ttexplore
from tests.conftest import compare_golden
from tests.examples import backends, kernels, lowering, resources, usage, verifier
from tests.faults.faults import FAULTS, TEXT_FAULTS
from tests.faults.test_faults import found_by, found_in_text
from ttexplore import errors
from ttexplore.cli import main
from ttexplore.diagnostics import EXAMPLES, KINDS, PREFIX, Example, catalogue
from ttexplore.errors import ResourceError, TTExploreError
from ttexplore.record import ErrorRecord, to_json

PAGE = Path(__file__).parents[1] / "docs" / "diagnostics.md"
PACKAGE = Path(ttexplore.__file__).parent
CLASSES = {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, TTExploreError)
}
# Errors outside of ttexplore.errors, and methods that make one of what they are given.
OTHERS = {"KernelFault": "BackendError", "DeviceEnded": "BackendError", "fault": "VerifyError"}


@dataclass(frozen=True)
class Raised:
    """An error as a source makes it. `message` has ``{}`` for what differs; it is empty where it is not written out."""

    kind: str
    line: int
    code: str
    message: str


def template(node: ast.expr) -> str | None:
    """The text of a message with ``{}`` for what differs; None where it is not written out."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = template(left), template(right)
            return None if parts == (None, None) else "".join("{}" if part is None else part for part in parts)
        case ast.IfExp(body=body):
            return template(body)
        case _:
            return None


def raised(source: str) -> list[Raised]:
    """Every error that a source makes with a code of its own."""
    found: list[Raised] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        kind, code = OTHERS.get(name, name), node.args[0]
        if kind in CLASSES and isinstance(code, ast.Constant):
            message = template(node.args[1]) or ""
            # Without letters of its own it hands on the message of another.
            message = message if re.search("[a-z]", message) else ""
            found.append(Raised(kind, node.lineno, f"{PREFIX}{code.value}", message))
        elif name == "__init__" and (text := template(code)) and re.fullmatch(r"[A-Z]\d{3}", text):
            # A class whose errors all have one code.
            message = template(node.args[1]) or ""
            found.append(Raised(KINDS[text[0]], node.lineno, PREFIX + text, message))
    return found


def faults(source: str) -> list[Raised]:
    """The faults that a C++ source of the emulator raises. Its machine makes the errors of what they say."""
    found: list[Raised] = []
    literal = r'"(?:[^"\\]|\\.)*"'
    for match in re.finditer(rf'fault\(\s*"([A-Z]\d+)",\s*(?:format_text\(\s*)?((?:{literal}\s*)*)', source):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[2]))
        line = source[: match.start()].count("\n") + 1
        found.append(Raised("BackendError", line, f"{PREFIX}{match[1]}", re.sub(r"%[-.\d]*z?[a-z]", "{}", text)))
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))
RUNTIME = sorted((PACKAGE / "backends" / "emulator" / "runtime").glob("*.cpp"))


@functools.cache
def all_raised() -> dict[Path, list[Raised]]:
    made = {path: raised(path.read_text(encoding="utf-8")) for path in SOURCES}
    return made | {path: faults(path.read_text(encoding="utf-8")) for path in RUNTIME}


@pytest.mark.every_case
@pytest.mark.parametrize("path", [*SOURCES, *RUNTIME], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_code_is_in_the_catalogue(path: Path) -> None:
    wrong = [
        f"{path.name}:{one.line}: {one.kind} {one.code}"
        for one in all_raised()[path]
        if one.code not in catalogue() or catalogue()[one.code].kind != one.kind
    ]
    assert wrong == [], "use a code of the catalogue in ttexplore/diagnostics, of the error's own kind, or add one"


def test_what_is_raised_is_found() -> None:
    """The tests above look at something."""
    assert sum(map(len, all_raised().values())) > 500
    source = (
        'raise KernelError("K001", f"no {name}")\nraise self.fault("V001", "a" + b, "hint")\nraise KernelError(code, x)'
    )
    assert raised(source) == [
        Raised("KernelError", 1, "TTX-K001", "no {}"),
        Raised("VerifyError", 2, "TTX-V001", "a{}"),
    ]
    source = 'kernel_fault("B010", format_text("%u tiles "\n"of %s", 1, x), "hint");'
    assert faults(source) == [Raised("BackendError", 1, "TTX-B010", "{} tiles of {}")]


def test_no_entry_is_left_over() -> None:
    """Each entry of the catalogue is raised somewhere."""
    assert catalogue().keys() - {one.code for errors in all_raised().values() for one in errors} == set()


def test_codes_and_texts() -> None:
    for code, one in catalogue().items():
        assert re.fullmatch(r"TTX-[UKLRVB]\d{3}", code)
        assert one.code == code
        assert one.title
        assert one.meaning.endswith(".")
        assert one.remedy.endswith((".", "`"))
    titles = [one.title for one in catalogue().values()]
    assert len(set(titles)) == len(titles)


def test_an_error_shows_its_code() -> None:
    error = ResourceError("R002", "33 circular buffers are needed; a core of wormhole_n150 has 32", hint="use fewer")
    assert error.code == "TTX-R002"
    text = "33 circular buffers are needed; a core of wormhole_n150 has 32\n  hint: use fewer [TTX-R002]"
    assert str(error) == text
    assert error.record().code == "TTX-R002"
    table = ResourceError("R001", "the circular buffers need 9 B of L1; a core of x has 8 B:\n  table")
    assert str(table).splitlines()[0].endswith("has 8 B: [TTX-R001]")
    # Records of older files may have none.
    again = errors.from_record(ErrorRecord("BackendError", "nobody has ever said this"))
    assert (type(again), again.code, str(again)) == (errors.BackendError, "", "nobody has ever said this")
    assert errors.from_record(error.record()).code == "TTX-R002"


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "TTX-R001"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("TTX-R001 the circular buffers do not fit L1 (ResourceError)\n")
    assert "What to do: Make the largest block smaller, or use fewer stages." in out
    assert "  ttx.explore(kernel)\n\n  message: the circular buffers need 16,777,216 B of L1" in out
    assert main(["explain", "r001"]) == 0
    assert capsys.readouterr().out == out
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(catalogue())
    assert main(["explain", "--json", "TTX-V014"]) == 0
    assert '"kind": "VerifyError"' in capsys.readouterr().out
    assert main(["explain", "TTX-R008"]) == 2
    assert "there is no code or term 'TTX-R008'" in capsys.readouterr().err


def provoked(example: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Example:
    """Runs an example of tests/examples."""
    wanted = inspect.signature(example).parameters
    fixtures = {name: value for name, value in (("tmp_path", folder), ("monkeypatch", monkeypatch)) if name in wanted}
    with monkeypatch.context():
        try:
            error = example(**fixtures).error
        except TTExploreError as raised:
            error = raised
    monkeypatch.undo()
    assert isinstance(error, TTExploreError), example
    assert error.code == f"TTX-{example.__name__.upper()}", error
    given = inspect.getdoc(example)
    source = textwrap.dedent(inspect.getsource(example).partition("\n")[2]).replace("return ", "").strip()
    source = re.sub(r"(difference|product)\(\)", "kernel", source)
    return told(error, given or source, is_source=given is None)


def told(error: TTExploreError, given: str, *, is_source: bool = False) -> Example:
    """The message, the kernel's line and the hint, without the rest of a table."""
    line = ""
    assert error.hint, error
    if error.span is not None:
        line = Path(error.span.file).read_text(encoding="utf-8").splitlines()[error.span.line - 1].strip()
    # Neither the folders of this machine nor the names of what is cached.
    message, hint = (
        re.sub(r"/([\w.][\w.-]*/)+|-[0-9a-f]{16,}", "", text.splitlines()[0]) for text in (error.message, error.hint)
    )
    return Example(given, is_source, message.rstrip(":"), line, hint)


def errors_of_faults() -> list[tuple[str, TTExploreError]]:
    """The names of the faults in tests/faults, and their errors."""
    found = [(fault.name, found_by(fault)[1]) for fault in FAULTS]
    found += [(f"{fault.name}, in {fault.role}.cpp", found_in_text(fault)) for fault in TEXT_FAULTS]
    return [(name, error) for name, error in found if error is not None]


def planted() -> dict[str, Example]:
    """The first fault of each code."""
    found: dict[str, Example] = {}
    for name, error in errors_of_faults():
        found.setdefault(error.code, told(error, f"Planted fault: {name}."))
    return found


def fits(form: str, message: str) -> bool:
    """Whether a message is of this form, with ``{}`` for anything."""
    return re.fullmatch(".*".join(map(re.escape, form.split("{}"))), message, re.DOTALL) is not None


@pytest.mark.xdist_group("faults")
def test_every_raise_of_the_verifier_is_provoked() -> None:
    """By a fault whose message docs/faults.md holds, or in tests/passes/test_verify.py; a race is the kernel's own, and
    in tests/passes/test_owners.py, and parts in a wrong order are in tests/passes/test_parts_of_steps.py."""
    elsewhere = {
        "{} {} requires that {}, which is not so here",
        "the condition {} cannot be decided",
        "{}: the pages of {} that are used are not known: {}",
        "{}: {} is used in {} transfers; at most {} are verified",
        "{} and {} both write {} of {}: the result depends on which comes last",
    }
    messages = [error.message for _, error in errors_of_faults()]
    unread = [
        (path.name, one.line, one.message)
        for path in sorted((PACKAGE / "passes" / "verify").glob("*.py"))
        for one in all_raised()[path]
        if one.message and one.message not in elsewhere
        if not any(fits(one.message, message) for message in messages)
    ]
    assert unread == [], "plant a fault for each in tests/faults"


@pytest.mark.xdist_group("faults")
def test_every_code_has_an_example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is provoked here; docs/diagnostics.md and `ttexplore explain` show them."""
    found = planted()
    for module in (usage, kernels, lowering, resources, verifier, backends):
        for name, example in vars(module).items():
            if re.fullmatch(r"[uklrvb]\d{3}", name):
                folder = tmp_path / name
                folder.mkdir()
                found[f"TTX-{name.upper()}"] = provoked(example, folder, monkeypatch)
    assert found.keys() == catalogue().keys()
    update = bool(request.config.getoption("--update-golden"))
    data = {code: to_json(found[code]) for code in catalogue()}
    compare_golden(EXAMPLES, json.dumps(data, indent=1, ensure_ascii=False) + "\n", update=update)
    compare_golden(PAGE, page(found), update=update)


def page(found: dict[str, Example]) -> str:
    parts = [
        "# Diagnostics",
        "",
        f"{len(catalogue())} codes. `ttexplore explain CODE` prints an entry. This page is generated by",
        "`tests/test_diagnostics.py` (`pytest --update-golden`), which runs the examples.",
    ]
    forms: dict[str, set[str]] = {}
    for error in itertools.chain(*all_raised().values()):
        if error.message:
            forms.setdefault(error.code, set()).add(error.message.partition("\n")[0])
    for kind in KINDS.values():
        parts += ["", f"## {kind}", "", (getattr(errors, kind).__doc__ or "").strip()]
        for one in catalogue().values():
            if one.kind == kind:
                messages = [f"- `{form.replace('{}', '…')}`" for form in sorted(forms.get(one.code, ()))]
                parts += ["", f"### {one.code} {one.title}", "", one.meaning, "", f"What to do: {one.remedy}"]
                parts += ["", "Messages:", "", *messages] if messages else []
                parts += ["", *shown(found[one.code])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)) + "\n"


def shown(example: Example) -> list[str]:
    if not example.message:
        return [example.given]
    where = f" at `{example.line}`" if example.line else ""
    given = (
        ["Example:", "", "```python", example.given, "```", ""] if example.is_source else [f"Example: {example.given}"]
    )
    return [*given, f"“{example.message}”{where}; hint: {example.hint}"]
