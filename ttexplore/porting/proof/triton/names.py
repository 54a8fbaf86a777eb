"""What the names of a module with Triton kernels stand for: imports, functions, constants. Nothing is executed."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field

from ttexplore.porting.proof.running import CannotRun

# What these names stand for in a kernel that is given without the imports of its module.
_USUAL_NAMES = {"triton": "triton", "tl": "triton.language"}


@dataclass(frozen=True, slots=True)
class Imported:
    """Something that is imported, by its full name, as ``triton.language.exp``."""

    path: str

    @property
    def is_triton(self) -> bool:
        return self.path.split(".")[0].startswith("triton")


@dataclass(frozen=True)
class TritonModule:
    """The functions of a module and the expressions that its names are assigned, each name bound once."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict[str, ast.FunctionDef])
    imported: dict[str, Imported] = field(default_factory=dict[str, Imported])
    assigned: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    twice: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, text: str) -> TritonModule:
        """Read a module. Raises CannotRun for a text that is not Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotRun("a text that is not Python") from error
        module = cls()
        pending: list[ast.stmt] = [*tree.body]
        while pending:
            statement = pending.pop(0)
            match statement:
                case ast.Import(aliases):
                    for alias in aliases:
                        name = alias.asname or alias.name.split(".")[0]
                        module.bind(name, Imported(alias.name if alias.asname else name))
                case ast.ImportFrom(source, aliases, level):
                    for alias in aliases:
                        module.bind(alias.asname or alias.name, Imported(f"{'.' * level}{source or ''}.{alias.name}"))
                case ast.FunctionDef(name):
                    module.bind(name, statement)
                case ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                    module.bind(name, Imported(f".{name}"))
                case ast.Assign([ast.Name(name)], value):
                    module.bind(name, value)
                case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
                    module.bind(name, value)
                case ast.If(_, then, otherwise):
                    pending += [*then, *otherwise]
                case ast.Try(body, handlers, otherwise, last):
                    pending += [*body, *otherwise, *last, *(inner for each in handlers for inner in each.body)]
                case _:
                    module.twice.update(
                        node.id
                        for node in ast.walk(statement)
                        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                    )
        for name, path in _USUAL_NAMES.items():
            if name not in module.functions.keys() | module.assigned.keys() | module.imported.keys() | module.twice:
                module.imported[name] = Imported(path)
        return module

    def bind(self, name: str, meaning: Imported | ast.FunctionDef | ast.expr) -> None:
        bound = self.functions.keys() | self.assigned.keys() | self.imported.keys()
        if name in bound and self.imported.get(name) != meaning:
            self.twice.add(name)
        match meaning:
            case Imported():
                self.imported[name] = meaning
            case ast.FunctionDef():
                self.functions[name] = meaning
            case _:
                self.assigned[name] = meaning
