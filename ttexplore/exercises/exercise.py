"""An exercise of a notebook: checks an answer, gives hints one by one, and shows a solution."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import EllipsisType, FunctionType
from typing import Any, Literal, cast

from ttexplore.backends.base import KernelFault
from ttexplore.characters import Printed
from ttexplore.errors import KernelError, ResourceError, TTExploreError, Unsupported, UsageError, VerifyError
from ttexplore.exercises.checks import EXERCISES, Definition
from ttexplore.exercises.comparing import Wrong
from ttexplore.given import named
from ttexplore.record import Line, Listing, lines_of
from ttexplore.session.results import Static
from ttexplore.views.markup import content_id, escape, paragraphs, plural
from ttexplore.views.steps.code import code_html
from ttexplore.views.theme import fragment

_SOURCES = Path(__file__).parent / "sources"


@dataclass(frozen=True)
class ExerciseSource:
    """The marked source file of an exercise. `yours` is what stands in the learner's cell at first, `solution` what can
    stand there in its place."""

    yours: str
    solution: str
    hints: tuple[str, ...]


@functools.cache
def source_of(name: str) -> ExerciseSource:
    """Read the file of an exercise: sections that begin with ``# %% yours``, ``# %% solution`` and ``# %% hint``. The
    text of a hint is a comment."""
    (path,) = _SOURCES.glob(f"**/{name}.py")
    text = path.read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {"yours": [], "solution": [], "hint": []}
    for section in re.split(r"(?m)^# %% ", text)[1:]:
        title, _, body = section.partition("\n")
        sections[title.strip()].append(body.strip())
    (yours,), (solution,) = sections["yours"], sections["solution"]
    hints = (" ".join(line.removeprefix("#").strip() for line in hint.split("\n")) for hint in sections["hint"])
    return ExerciseSource(yours, solution, tuple(hints))


@dataclass(frozen=True)
class Verdict(Printed):
    """What :meth:`Exercise.check` says of an answer. True if the answer is right."""

    name: str
    state: Literal["solved", "wrong", "unsolved"]
    message: str

    def __bool__(self) -> bool:
        return self.state == "solved"

    @property
    def _headline(self) -> str:
        match self.state:
            case "solved":
                return f"{self.name}: solved"
            case "wrong":
                return f"{self.name}: not yet right"
            case "unsolved":
                return f"{self.name}: not solved yet"

    def __repr__(self) -> str:
        return f"{self._headline}. {self.message}"

    def _repr_html_(self) -> str:
        style, glyph = {
            "solved": ("good", '<span class="ok">✔</span> '),
            "wrong": ("fault", '<span class="bad">✖</span> '),
            "unsolved": ("", ""),
        }[self.state]
        card = (
            f'<div class="card {style}"><p><b>{glyph}{escape(self._headline)}</b></p>'
            f'<p class="pre">{_code_spans(self.message)}</p></div>'
        )
        return fragment(content_id("ttx-verdict", card), f"exercise {self.name}", card)


@dataclass
class Exercise(Printed):
    """An exercise by its name. It counts the hints that it has given: each call of :meth:`hint` goes one step on."""

    name: str
    definition: Definition = field(repr=False)
    given_hints: int = field(default=0, repr=False)

    @property
    def _source(self) -> ExerciseSource:
        return source_of(self.name)

    def check(self, *answer: Any, **named: Any) -> Verdict:
        """Check an answer on inputs that the exercise does not show, against NumPy.

        An answer that is None or has ``...`` for a statement is not solved yet. Errors in the learner's kernel are part
        of the verdict. Raises UsageError for missing and unexpected arguments, and BackendError if no kernel can run.
        """
        signature = inspect.signature(self.definition.check)
        try:
            bound = signature.bind(*answer, **named)
        except TypeError as error:
            takes = f"{self.name}.check takes ({', '.join(signature.parameters)})"
            raise UsageError("U003", f"{self.name}.check: {error}", hint=takes) from error
        if missing := [_called(name, value) for name, value in bound.arguments.items() if _is_unsolved(value)]:
            help_ = f"`ttx.exercise({self.name!r}).hint()` gives the first of {plural(len(self._source.hints), 'hint')}"
            said = f"Write {_listed(missing)} in the cell above, and run both cells. {help_}."
            return Verdict(self.name, "unsolved", said)
        try:
            return Verdict(self.name, "solved", self.definition.check(*bound.args, **bound.kwargs))
        except Wrong as wrong:
            return Verdict(self.name, "wrong", str(wrong))
        except (UsageError, KernelError, Unsupported, ResourceError, VerifyError, KernelFault) as error:
            return Verdict(self.name, "wrong", _told(error))

    def hint(self) -> Static:
        """The next hint. After the last one, it points to the solution."""
        hints = self._source.hints
        if self.given_hints == len(hints):
            text = f"That was the last hint. `ttx.exercise({self.name!r}).solution()` shows a solution."
        else:
            self.given_hints += 1
            text = f"Hint {self.given_hints} of {len(hints)}: {hints[self.given_hints - 1]}"
        card = f'<div class="card"><p>{_code_spans(text)}</p></div>'
        return Static(fragment(content_id("ttx-hint", card), f"hint of {self.name}", card), text)

    def solution(self) -> Static:
        """A solution, folded in a notebook: what can stand in the learner's cell."""
        text = self._source.solution
        listing = Listing("python", tuple(Line(line) for line in lines_of(text)), self.name)
        folded = f"<details><summary>Solution of {escape(self.name)}</summary>{code_html(listing)}</details>"
        return Static(folded, text)

    def __repr__(self) -> str:
        takes = ", ".join(inspect.signature(self.definition.check).parameters)
        hints = plural(len(self._source.hints), "hint")
        return f"<exercise {self.name} of notebook {self.definition.notebook}: .check({takes}), {hints}, .solution()>"


@functools.cache
def _known() -> Mapping[str, Exercise]:
    return {name: Exercise(name, definition) for name, definition in EXERCISES.items()}


def exercise(name: str) -> Exercise:
    """The exercise of a notebook: ``.check(...)`` checks an answer, ``.hint()`` gives one more hint with each call, and
    ``.solution()`` shows a solution.

    Each call with a name gives the same object, so that the hints go on. Raises UsageError for an unknown name.
    """
    exercises = _known()
    return exercises[named("exercise", name, exercises)]


def _is_unsolved(answer: object) -> bool:
    match answer:
        case None | EllipsisType():
            return True
        case tuple() | list():
            return any(map(_is_unsolved, cast(list[object], answer)))
        case FunctionType():
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(answer)))
            except (OSError, SyntaxError):  # the source of a lambda may be a part of a statement
                return False
            return any(_placeholders(tree))
        case _:
            return False


def _called(name: str, answer: object) -> str:
    """What the learner's cell calls an answer: a function has its own name."""
    return answer.__name__ if isinstance(answer, FunctionType) else name


def _placeholders(tree: ast.AST) -> Iterator[bool]:
    """Whether each statement of a function that is an expression, an assignment or a return is ``...``."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=value)) | ast.Assign(value=ast.Constant(value=value)):
                yield value is ...
            case ast.Return(value=ast.Constant(value=value)):
                yield value is ...
            case _:
                pass


def _told(error: TTExploreError) -> str:
    """The error as text, with its place first."""
    where = f"Line {error.span.line} of {error.span.file}: " if error.span else ""
    hint = f"\nHint: {error.hint}" if error.hint else ""
    return f"{where}{error.message}{hint}"


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _code_spans(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", paragraphs(text))
