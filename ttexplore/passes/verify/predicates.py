"""Predicates of a program: what steps rely on, and what they establish for those after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tvm import tirx

from ttexplore.errors import VerifyError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import statements
from ttexplore.ir.rewrite import bodies


@dataclass(frozen=True)
class Predicate:
    """A sentence about a program, and a function that says of a statement whether the sentence is false of it. The
    function also gets the loops and branches around the statement, the innermost last."""

    sentence: str
    is_violated: Callable[[tirx.Stmt, Sequence[tirx.Stmt]], bool]


def violations(
    predicates: Iterable[Predicate], functions: Mapping[str, tirx.PrimFunc]
) -> dict[Predicate, tirx.Stmt]:  # fmt: skip
    """The predicates that are false of a program, each with the first statement of which it is."""
    found: dict[Predicate, tirx.Stmt] = {}
    left, around = list(predicates), list[tirx.Stmt]()

    def visit(body: tirx.Stmt) -> None:
        for statement in statements(body):
            for predicate in left:
                if predicate not in found and predicate.is_violated(statement, around):
                    found[predicate] = statement
            around.append(statement)
            for inner in bodies(statement):
                visit(inner)
            around.pop()

    for function in functions.values() if left else ():
        visit(function.body)
    return found


class Contract(Protocol):
    """What a step requires, establishes and ends."""

    @property
    def letter(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> tuple[Predicate, ...]: ...
    @property
    def establishes(self) -> tuple[Predicate, ...]: ...
    @property
    def ends(self) -> tuple[Predicate, ...]: ...


class Contracts:
    """The predicates that hold in one lowering, checked before and after each step.

    A step may leave a statement as it is that it has no rule for: its predicate is then false until a later step
    refuses the statement, which has to happen before another one ends the predicate.
    """

    def __init__(self) -> None:
        # The predicates that a step established and none has ended, each with that step.
        self.holding: dict[Predicate, str] = {}
        # Those that a step should have established, each with an error that names the step and the statement.
        self.missing: dict[Predicate, VerifyError] = {}
        # The functions of which predicates were last seen to be true.
        self.functions: Mapping[str, tirx.PrimFunc] = {}
        self.true: frozenset[Predicate] = frozenset()

    def copy(self) -> Contracts:
        """The same predicates, of which others may hold from here on."""
        made = Contracts()
        made.holding, made.missing = dict(self.holding), dict(self.missing)
        made.functions, made.true = self.functions, self.true
        return made

    def before(self, step: Contract, functions: Mapping[str, tirx.PrimFunc]) -> None:
        """Check what a step requires. Raises VerifyError with the predicate."""
        required = [one for one in step.requires if one not in self.missing]
        for predicate, statement in violations(self._unknown(required, functions), functions).items():
            raise VerifyError(
                "V061",
                f"{step.letter} {step.name} requires that {predicate.sentence}, which is not so here",
                hint="a step before it has to establish this: see the order of the pipeline",
                span=span_of(statement),
            )
        self._know(functions, required)

    def after(self, step: Contract, functions: Mapping[str, tirx.PrimFunc]) -> None:
        """Check what a step, and the steps before it, established. Raises VerifyError with the predicate."""
        name = f"{step.letter} {step.name}"
        for predicate in step.ends:
            self.holding.pop(predicate, None)
            if predicate in self.missing:
                raise self.missing[predicate]
        false = violations([*self._unknown(self.holding, functions), *step.establishes], functions)
        for predicate, statement in false.items():
            if predicate in self.holding:
                raise _broken(
                    f"after {name} it is not so that {predicate.sentence}, which {self.holding[predicate]} established",
                    statement,
                )
            self.missing[predicate] = _broken(f"{name} does not establish that {predicate.sentence}", statement)
        self.holding |= dict.fromkeys((one for one in step.establishes if one not in false), name)
        self._know(functions, self.holding)

    def _unknown(
        self, predicates: Iterable[Predicate], functions: Mapping[str, tirx.PrimFunc]
    ) -> list[Predicate]:  # fmt: skip
        return [one for one in predicates if functions is not self.functions or one not in self.true]

    def _know(self, functions: Mapping[str, tirx.PrimFunc], predicates: Iterable[Predicate]) -> None:
        self.true = frozenset(predicates) | (self.true if functions is self.functions else frozenset())
        self.functions = functions


def _broken(message: str, statement: tirx.Stmt) -> VerifyError:
    hint = "this is an error of ttexplore itself: please report it with the kernel"
    return VerifyError("V061", message, hint=hint, span=span_of(statement))
