"""Predicates of a program: what steps rely on, and what they establish for those after them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tvm import tirx

from ttexplore.errors import TTExploreError, VerifyError
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.build import op_name, statements
from ttexplore.ir.dataflow import is_parallel
from ttexplore.ir.rewrite import bodies, walk
from ttexplore.record import Span

# A statement, and the loops and branches around it, the innermost last.
Placed = tuple[tirx.Stmt, tuple[tirx.Stmt, ...]]


class Walked:
    """A function, the statements of each type in it, and the predicates that are known to be true of it."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.function = function
        self.true: set[Predicate] = set()

    @functools.cached_property
    def by_type(self) -> Mapping[type, Sequence[Placed]]:
        statements_of: dict[type, list[Placed]] = {}

        def visit(body: tirx.Stmt, around: tuple[tirx.Stmt, ...]) -> None:
            for statement in statements(body):
                statements_of.setdefault(type(statement), []).append((statement, around))
                inner = bodies(statement)
                within = (*around, statement) if inner else around
                for child in inner:
                    visit(child, within)

        visit(self.function.body, ())
        return statements_of


@dataclass(frozen=True, eq=False)
class Predicate:
    """A sentence about each function of a program, and what gives the statements of which the sentence is false."""

    sentence: str
    breaches: Callable[[Walked], Iterator[tirx.Stmt]]


def where(
    is_breach: Callable[[tirx.Stmt, Sequence[tirx.Stmt]], bool], *types: type[tirx.Stmt]
) -> Callable[[Walked], Iterator[tirx.Stmt]]:  # fmt: skip
    """The statements of some types of which something holds, which looks at a statement and what is around it."""

    def breaches(walked: Walked) -> Iterator[tirx.Stmt]:
        for kind in types:
            for statement, around in walked.by_type.get(kind, ()):
                if is_breach(statement, around):
                    yield statement

    return breaches


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
    refuses the statement, or changes it, which has to happen before another one ends the predicate.
    """

    def __init__(self) -> None:
        # The predicates that a step established and none has ended, each with that step.
        self.holding: dict[Predicate, str] = {}
        # Those that a step should have established and that are false so far, each with that step.
        self.missing: dict[Predicate, str] = {}
        # The functions that were seen last, and those of which all that holds has been checked.
        self.walked: dict[str, Walked] = {}
        self.checked: Mapping[str, tirx.PrimFunc] = {}

    def copy(self) -> Contracts:
        """The same predicates, of which others may hold from here on."""
        contracts = Contracts()
        contracts.holding, contracts.missing = dict(self.holding), dict(self.missing)
        contracts.walked, contracts.checked = self.walked, self.checked
        return contracts

    def are_kept_by(self, step: Contract, functions: Mapping[str, tirx.PrimFunc]) -> bool:
        """Whether there is nothing to check after a step: it left the functions as they were, and says nothing."""
        return functions is self.checked and not (step.ends or step.establishes or self.missing)

    def before(self, step: Contract, functions: Mapping[str, tirx.PrimFunc]) -> None:
        """Check what a step requires. Raises VerifyError with the predicate."""
        self._look(functions)
        for predicate in step.requires:
            statement = None if predicate in self.missing else self._breach(predicate)
            if statement is not None:
                raise VerifyError(
                    "V061",
                    f"{step.letter} {step.name} requires that {predicate.sentence}, which is not so here",
                    hint="a step before it has to establish this: see the order of the pipeline",
                    span=span_of(statement),
                )

    def after(self, step: Contract, functions: Mapping[str, tirx.PrimFunc]) -> None:
        """Check what a step, and the steps before it, established. Raises VerifyError with the predicate."""
        name = f"{step.letter} {step.name}"
        for predicate in step.ends:
            self.holding.pop(predicate, None)
            if predicate in self.missing:
                statement = self._breach(predicate)
                assert statement is not None, "what has become true is not missing"
                raise _broken(f"{self.missing[predicate]} does not establish that {predicate.sentence}", statement)
        self._look(functions)
        for predicate, by in self.holding.items():
            if (statement := self._breach(predicate)) is not None:
                raise _broken(f"after {name} it is not so that {predicate.sentence}, which {by} established", statement)
        for predicate in [*self.missing, *step.establishes]:
            is_false = self._breach(predicate) is not None
            by = self.missing.pop(predicate, name)
            (self.missing if is_false else self.holding)[predicate] = by
        self.checked = functions

    def left_by(self, error: TTExploreError) -> Iterator[str]:
        """For each step that has left what an error refuses as it was: what it should have established."""
        refused = [
            statement for walked in self.walked.values() for placed in walked.by_type.values() for statement,
            _ in placed
            if _is_at(statement, error.span)
        ]  # fmt: skip
        for predicate, by in self.missing.items():
            breaches = (statement for walked in self.walked.values() for statement in predicate.breaches(walked))
            unhandled = next((breach for breach in breaches if _is_about(breach, refused)), None)
            if unhandled is not None:
                yield f"{by} has no rule for {_described(unhandled)}, so it is not true that {predicate.sentence}"

    def _look(self, functions: Mapping[str, tirx.PrimFunc]) -> None:
        before = self.walked
        self.walked = {
            role: before[role] if role in before and before[role].function is function else Walked(function)
            for role, function in functions.items()
        }

    def _breach(self, predicate: Predicate) -> tirx.Stmt | None:
        """The first statement of which a predicate is false."""
        for walked in self.walked.values():
            if predicate not in walked.true:
                if (breach := next(predicate.breaches(walked), None)) is not None:
                    return breach
                walked.true.add(predicate)
        return None


def _is_at(statement: tirx.Stmt, span: Span | None) -> bool:
    statement_span = span_of(statement)
    return (
        statement_span is not None
        and span is not None
        and (statement_span.file, statement_span.line) == (span.file, span.line)
    )


def _is_about(statement: tirx.Stmt, refused: Iterable[tirx.Stmt]) -> bool:
    """Whether a statement holds something refused, or is in a T.Parallel that is."""
    inner = {identity(nested) for nested in walk(statement)}
    return any(
        identity(candidate) in inner
        or (is_parallel(candidate) and any(statement.same_as(nested) for nested in walk(candidate)))
        for candidate in refused
    )  # fmt: skip


def _described(statement: tirx.Stmt) -> str:
    """What the kernel calls a statement, and its line."""
    words = {tirx.While: "while", tirx.For: "for", tirx.IfThenElse: "if"}
    name, span = op_name(statement), span_of(statement)
    word = next((text for kind, text in words.items() if type(statement) is kind), name.replace("tl.", "T."))
    return (f"the `{word}`" if word else "the statement") + (f" in line {span.line}" if span else "")


def _broken(message: str, statement: tirx.Stmt) -> VerifyError:
    hint = "this is an error of ttexplore itself: please report it with the kernel"
    return VerifyError("V061", message, hint=hint, span=span_of(statement))
