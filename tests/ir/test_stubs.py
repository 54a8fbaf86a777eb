"""What typings/ says of TVM is true of the installed one: a wrong stub would let wrong code pass the checker."""

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
from tvm import tirx
from tvm.ir.expr import ExprWithOp

from ttexplore.ir.arithmetic.index import SYMBOLS

ROOT = Path(__file__).parents[2] / "typings"
STUBS = sorted(ROOT.rglob("*.pyi"))
# Classes that the stubs add: TVM says the same with one class for all variables, and spans of several places are no
# subclass there.
ONLY_IN_STUBS = {"Buffer"}
# Classes whose members TVM gives to those that derive from them.
STAND_INS: dict[str, Any] = {"BinaryOpExpr": tirx.Add, "ExprOperand": ExprWithOp}


def _module(path: Path) -> Any:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(part for part in parts if part != "__init__"))


def _declared() -> list[tuple[str, Any, ast.stmt]]:
    found: list[tuple[str, Any, ast.stmt]] = []
    for path in STUBS:
        module = _module(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in ONLY_IN_STUBS:
                run_time = STAND_INS.get(node.name) or getattr(module, node.name)
                found.append((f"{module.__name__}.{node.name}", run_time, node))
    return found


DECLARED = _declared()


def _parameters(function: Any) -> list[str] | None:
    try:
        return [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return None


def _check_call(where: str, function: Any, stub: ast.FunctionDef) -> None:
    """Parameters of the stub have the names, and those by position the places, that they have at run time."""
    known = _parameters(function)
    if known is None or any(one in known for one in ("args", "kwargs")):
        return
    positional = [argument.arg for argument in stub.args.args]
    if stub.name.startswith("__") and stub.name != "__init__":
        # Operators and subscripts get their operands by position alone.
        assert len(positional) == len(known), where
        return
    assert positional == known[: len(positional)], f"{where}: {positional} in the stub, {known} in TVM"
    for argument in stub.args.kwonlyargs:
        assert argument.arg in known, f"{where}: no parameter {argument.arg}"


def _has(kind: Any, field: str) -> bool:
    """Whether objects of a class have a field: one of TVM's, an annotated one, or a parameter that is kept."""
    annotated = any(field in getattr(base, "__annotations__", {}) for base in kind.__mro__)
    return hasattr(kind, field) or annotated or field in (_parameters(kind) or [])


@pytest.mark.every_case
@pytest.mark.parametrize(("where", "kind", "stub"), DECLARED, ids=[where for where, _, _ in DECLARED])
def test_stub_says_what_tvm_has(where: str, kind: Any, stub: ast.stmt) -> None:
    if isinstance(stub, ast.FunctionDef):
        _check_call(where, kind, stub)
        return
    assert isinstance(stub, ast.ClassDef)
    for member in stub.body:
        if isinstance(member, ast.AnnAssign):
            assert isinstance(member.target, ast.Name)
            assert _has(kind, member.target.id), f"{where} has no {member.target.id}"
        elif isinstance(member, ast.Assign):
            (target,) = member.targets
            assert isinstance(target, ast.Name)
            assert isinstance(member.value, ast.Constant)
            assert getattr(kind, target.id) == member.value.value
        elif isinstance(member, ast.FunctionDef):
            # Not hasattr: `|` between classes is their metaclass's.
            owner = kind if any(member.name in vars(base) for base in kind.__mro__) else ExprWithOp
            _check_call(f"{where}.{member.name}", getattr(owner, member.name), member)


def test_operations_on_two_operands_are_those_of_the_stubs() -> None:
    """`is_binary` narrows both ways: what is not in the table is none of the stubs' operations on two operands."""
    stub = ast.parse((ROOT / "tvm" / "tirx" / "__init__.pyi").read_text())
    declared = {
        node.name
        for node in stub.body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "BinaryOpExpr" for base in node.bases)
    }
    assert declared == {kind.__name__ for kind in SYMBOLS}
