"""``%load_ext ttexplore``: a cell that begins with ``%%ttexplore`` contains a kernel, explored when the cell runs."""

from __future__ import annotations

import argparse
import ast
import linecache
import re
import shlex
import sys
import traceback
import types
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from ttexplore.backends.registry import DEFAULT_BACKEND
from ttexplore.cli import add_exploration_options, chosen_target, make_parser, parse_kernel_arguments, parse_words
from ttexplore.errors import KernelError, TTExploreError, UsageError, unknown
from ttexplore.exploration import Exploration, explore
from ttexplore.language.alias import stand_ins
from ttexplore.language.load import kernels_in
from ttexplore.language.tracer.spans import error_span
from ttexplore.options import parse_options
from ttexplore.pasting import accept_pasted_code
from ttexplore.record import Span, lines_of
from ttexplore.views.failures import ErrorCard, show_cards


def load_ipython_extension(shell: Any) -> None:
    """Implements ``%load_ext ttexplore``."""
    shell.register_magics(ExploreMagics)
    accept_pasted_code()
    show_cards(shell)


class CellFailed(Exception):
    """Ends a cell whose error is displayed already: later cells do not run, and no traceback hides the display."""

    def _render_traceback_(self) -> list[str]:
        return [f"✖ The cell failed: {self}, see above."]


@magics_class
class ExploreMagics(Magics):
    """The ``%%ttexplore`` cell."""

    shell: Any

    # IPython must not expand braces and dollars: they belong to Python and the options here.
    @no_var_expand
    @cell_magic
    def ttexplore(self, line: str, cell: str) -> None:
        """Explore the kernel of this cell: %%ttexplore [NAME] [name=value ...] [--target T] [--option name=value]

        The cell runs as usual; then its last kernel, or NAME, is lowered with the arguments of the line, displayed, and
        bound to `ex` (-o gives another name). --check executes every step, --run runs it on the emulator. If the cell
        does not import T, T is ttexplore.language. %%ttexplore --help lists the options.

        Raises CellFailed, after displaying the error, if the cell, kernel, a step or the run fails.
        """
        words = None
        try:
            words = _words(line)
            # The name must not keep an exploration of the previous kernel.
            self.shell.user_ns.pop(words.output, None)
            exploration = self._explored(words, cell)
            self.shell.user_ns[words.output] = exploration
            display(exploration)
            if exploration.error is not None:
                failed = next(launch for launch in exploration.launches if launch.error is not None)
                raise CellFailed(f"{failed.steps[-1].letter} rejected the kernel") from exploration.error
            if words.check:
                check = exploration.check()
                display(check)
                if not check:
                    raise CellFailed(f"{check.first_bad} changed the result")
            if words.run:
                run = exploration.run()
                display(run)
                if not run.passed:
                    raise CellFailed("the run did not give the reference's result")
        except SystemExit:
            # --help has been printed.
            return
        except TTExploreError as error:
            display(ErrorCard(error.record()))
            raise CellFailed(type(error).__name__) from error

    def _explored(self, words: argparse.Namespace, cell: str) -> Exploration:
        options = parse_options(parse_words(words.option, "option"))
        target = chosen_target(words)
        names = [word for word in words.words if "=" not in word]
        if len(names) > 1:
            raise UsageError(
                "U014", f"the argument {names[1]!r} has no value", hint="write it as name=value, for example M=256"
            )
        arguments = parse_kernel_arguments(word for word in words.words if "=" in word)
        kernel = self._kernel(self._run(cell), names[0] if names else None)
        return explore(kernel, target=target, options=options, **arguments)

    def _run(self, cell: str) -> list[str]:
        """Runs the cell in the user's namespace, and returns the names that it assigns, in order.

        Raises KernelError, at the cell's line, for any exception of the cell.
        """
        namespace: dict[str, Any] = self.shell.user_ns
        if "T" not in namespace:
            import ttexplore.language

            namespace["T"] = ttexplore.language
        # The line of the magic and empty lines count, so that line numbers match the cell as displayed.
        empty = len(cell) - len(cell.lstrip("\n"))
        text = "\n" * (1 + empty) + self.shell.transform_cell(cell)
        number = self._number()
        file = self.shell.compile.cache(text, number, raw_code=text)
        # IPython also splits at characters such as a form feed, which do not end lines in Python.
        linecache.cache[file] = (len(text), None, [line + "\n" for line in lines_of(text)], file)
        shown = f"cell {number}"
        try:
            tree = ast.parse(text, file)
            with stand_ins():
                exec(compile(tree, file, "exec", dont_inherit=True), namespace)
        except TTExploreError as error:
            raise error.at(error_span(error, {file: shown})) from error.__cause__
        except SyntaxError as error:
            span = Span(shown, error.lineno or 1, error.offset or 1, error.end_lineno or 1, error.end_offset or 1)
            raise KernelError("K011", f"{error.msg}", hint="fix the cell: it is not valid Python", span=span) from error
        except Exception as error:
            said = "".join(traceback.format_exception_only(error)).strip()
            hint = "fix the cell, which raised this, or run it without %%ttexplore to see the whole traceback"
            raise KernelError("K011", said, hint=hint, span=error_span(error, {file: shown})) from error
        return _assigned(tree)

    def _number(self) -> int:
        """The number of the running cell. The shell's counter may be one ahead of it."""
        frame = sys._getframe()
        while frame is not None:
            name = self.shell.compile.format_code_name(frame.f_code.co_filename)
            counted = re.fullmatch(r"In\[(\d+)\]", name[1]) if name else None
            if counted:
                return int(counted[1])
            frame = frame.f_back
        return int(self.shell.execution_count)

    def _kernel(self, names: list[str], asked: str | None) -> Any:
        namespace: dict[str, Any] = self.shell.user_ns
        module = types.ModuleType(str(namespace["__name__"]))
        module.__dict__.update({name: namespace[name] for name in names if name in namespace})
        kernels = kernels_in(module)
        if asked is not None:
            # Any function may be a factory.
            if asked not in kernels and not isinstance(namespace.get(asked), types.FunctionType):
                raise unknown("kernel", asked, kernels)
            return kernels.get(asked, namespace.get(asked))
        if not kernels:
            raise UsageError(
                "U002",
                "the cell defines no kernel",
                hint="define one with @T.prim_func, or name a function: %%ttexplore NAME",
            )
        return list(kernels.values())[-1]


def _words(line: str) -> argparse.Namespace:
    parser = make_parser("%%ttexplore", "Explore the kernel of this cell.")
    parser.add_argument("words", metavar="NAME | name=value", nargs="*", help="the kernel and its arguments")
    add_exploration_options(parser)
    parser.add_argument("-o", "--output", metavar="NAME", default="ex", help="bind this name (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="execute every step")
    parser.add_argument("--run", action="store_true", help=f"run on the {DEFAULT_BACKEND}")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(
            "U014", f"the line of %%ttexplore cannot be parsed: {error}", hint="close the quotation"
        ) from None
    return parser.parse_intermixed_args(words)


def _assigned(tree: ast.Module) -> list[str]:
    """The names that a module's statements bind, in the order of their last binding."""
    names_bound: dict[str, None] = {}
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        for name in names:
            names_bound.pop(name, None)
            names_bound[name] = None
    return list(names_bound)
