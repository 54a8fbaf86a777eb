"""The command ``ttexplore``, for terminals and scripts.

Exit status: 0 on success, 1 if the kernel or its result is wrong or a component is missing, 2 for incorrect usage.
With ``--json``, standard output contains exactly one object. Other texts are folded to the width of the terminal, or
to COLUMNS; in a file or pipe no line is.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import difflib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO, cast
from urllib.parse import quote

from ttexplore.backends.registry import BACKENDS, DEFAULT_BACKEND, DEVICE_NAMES, DEVICES, taker
from ttexplore.characters import printable
from ttexplore.course.root import FIRST_NOTEBOOK, writable_root
from ttexplore.errors import BackendError, TTExploreError, UsageError, shown
from ttexplore.given import named
from ttexplore.optional import install_extra
from ttexplore.options import OPTIONS, Option, option_text, parse_options
from ttexplore.record import JsonObject, StepRecord, to_json
from ttexplore.target import DEFAULT_TARGET, Target, get_target
from ttexplore.views.runs.comparison import comparison_text
from ttexplore.views.steps.plan_lines import flat_plan
from ttexplore.views.terminal import fold, terminal_columns

if TYPE_CHECKING:
    from ttexplore.backends.ttnn.environment import DeviceEnvironment
    from ttexplore.exploration import Exploration
    from ttexplore.session.explored import Explored
    from ttexplore.session.steps import BaseStep
    from ttexplore.views.steps.step_changes import StepChange

SUCCEEDED, WRONG, WRONG_USE = 0, 1, 2
INTERRUPTED = 130
# The suffix of saved explorations.
SAVED = ".ttx"

OVERVIEW = """\
usage: ttexplore COMMAND ...

Lowers a TileLang kernel, step by step, to a Tenstorrent program.

  show FILE::NAME     print the steps and their sizes; --step, --plan and --code for one step, the plan, a kernel
  run FILE::NAME      run the kernel on generated inputs and compare with the reference
  check FILE::NAME    execute every step and name the first that changes the result
  estimate FILE::NAME predict the time on the target, what bounds it, and what would help most
  compare FILE::NAME  compare with another kernel, or with other options: --with NAME=VALUE
  sweep FILE::NAME    lower the kernel with each schedule of a space and find the best: --space NAME=VALUE,VALUE
  validate FILE::NAME run the kernel with tiny, odd and large shapes, in each dtype, on each target
  timeline FILE::NAME record a run and print which kernels of a core waited, and for what
  export FILE::NAME   write reader.cpp compute.cpp writer.cpp main.cpp tt.plan.json run_ttnn.py; --dot for graphs
  save FILE::NAME     write the exploration to one file, which the others but check and save accept as FILE::NAME
  report FILE::NAME   write the explorer of one or more kernels as one page that works offline
  freeze NOTEBOOK     replace the explorers in a notebook with static pages
  gallery [NAME]      list kernels of the kinds that people port, with what they do on each backend, or show one
  explain CODE|TERM   explain an error by its code, or a term of the glossary
  doctor              print what is installed, what is missing, and how to fix it
  setup device        install the real SDK and a simulated chip, for run --backend ttnn
  setup gpu           install TileLang, to show kernels as it lowers them for a GPU
  lab                 open JupyterLab on the notebooks

ttexplore COMMAND --help prints the options of a command.
"""


class _Parser(argparse.ArgumentParser):
    """Raises incorrect usage as UsageError, so that all errors are printed in the same way."""

    def error(self, message: str) -> NoReturn:
        raise UsageError("U014", message, hint=f"see: {self.prog} --help")

    def format_help(self) -> str:
        return fold(super().format_help(), terminal_columns())


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: `text` for people, which may be `code`, `data` for --json, whether it is `ok`, the
    `error` if any, and whether it is what was done when it was `interrupted`."""

    text: str
    data: JsonObject
    ok: bool = True
    error: TTExploreError | None = None
    code: bool = False
    interrupted: bool = False

    @property
    def status(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        if isinstance(self.error, UsageError):
            return WRONG_USE
        return SUCCEEDED if self.ok and self.error is None else WRONG


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments` (without the program's name) and returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        return _run(words, as_json)
    except TTExploreError as error:
        if as_json:
            _print_json({"error": to_json(error.record())})
        else:
            _tell(f"{type(error).__name__}: {error}")
        return WRONG_USE if isinstance(error, UsageError) else WRONG
    except BrokenPipeError:
        # The reader of our output has closed the pipe, as in `ttexplore show ... | head`: do not flush to it again.
        _drop_output()
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: list[str], as_json: bool) -> int:
    if not words or words[0] in ("-h", "--help"):
        _say(OVERVIEW.rstrip("\n"))
        return SUCCEEDED if words else WRONG_USE
    name = words[0]
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, 1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(COMMANDS)}"
        raise UsageError("U001", f"there is no command {name!r}", hint=hint)
    parser, command = COMMANDS[name]
    # Options may appear between the kernel's arguments.
    answer = command(parser().parse_intermixed_args(words[1:]))
    if as_json:
        _print_json(answer.data)
    elif answer.text:
        _say(answer.text, code=answer.code)
    return answer.status


def _print(text: str, stream: TextIO, columns: int, *, code: bool = False) -> None:
    """Print to a stream, folded to a width. All that the command prints goes through here: characters that steer a
    terminal are shown, and those that the stream's encoding lacks are escaped."""
    text = fold(printable(text), columns, code=code)
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        print(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding), file=stream, flush=True)


def _say(text: str, columns: int | None = None, *, code: bool = False) -> None:
    """Print to standard output, if it is open, folded to the width of the terminal if no other is given.

    Raises UsageError if it cannot be written, BrokenPipeError if its reader has closed it.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
    try:
        _print(text, sys.stdout, terminal_columns() if columns is None else columns, code=code)
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise UsageError(
            "U012",
            f"standard output cannot be written: {error.strerror}",
            hint="free space where it is written, or redirect it",
        ) from None


def _drop_output() -> None:
    """Discards buffered output: Python would flush it at exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_json(data: JsonObject) -> None:
    # JSON itself has no escape for this one.
    _say(json.dumps(_finite(data), allow_nan=False).replace("\x7f", "\\u007f"), 0)


def _finite(value: object) -> object:
    """`value` with null for NaN and infinities, which JSON cannot represent."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in cast(JsonObject, value).items()}
        case list():
            return [_finite(item) for item in cast(list[object], value)]
        case _:
            return value


# Arguments


def parse_value(text: str) -> object:
    """Parse a value from the command line: int, float, bool, a Python tuple, list or dictionary; text with commas is a
    tuple, any other text a string."""
    if text[:1] in ("(", "[", "{"):
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            return text
    if "," in text:
        return tuple(parse_value(word) for word in text.split(",") if word)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_pairs(pairs: Iterable[str], noun: str) -> JsonObject:
    """Parse ``name=value`` words to a dictionary of values. Raises as :func:`parse_words` does."""
    return {name: parse_value(text) for name, text in parse_words(pairs, noun).items()}


def parse_words(pairs: Iterable[str], noun: str) -> dict[str, str]:
    """Parse ``name=value`` words to a dictionary. Raises UsageError for other words and for repeated names."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.isidentifier():
            raise UsageError(
                "U003", f"the {noun} {pair!r} has no value", hint="write it as name=value, for example M=256"
            )
        if name in values:
            raise UsageError("U003", f"{noun} {name} is given twice", hint="give each name once")
        values[name] = text
    return values


def parse_space(words: Iterable[str]) -> dict[str, list[object]]:
    """Parse ``name=value,value`` words, of which one text may hold several, to the values of each name; a value may
    itself be a tuple: ``(1,2),(2,2)``. Raises as :func:`parse_words` does."""
    # Only between parentheses, commas and spaces are part of a value.
    pairs = (pair for word in words for pair in _split_outside(word, " ") if pair)
    texts = parse_words(pairs, "name of the space")
    return {
        name: [parse_value(choice) for choice in _split_outside(text, ",") if choice] for name, text in texts.items()
    }


def _split_outside(text: str, separator: str) -> list[str]:
    """The parts of `text` between separators that are not within parentheses, brackets or braces."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def parse_grid(text: str) -> tuple[int, int]:
    """Parse ``8x4`` to columns and rows. Raises UsageError."""
    size = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text)
    if size is None:
        raise UsageError("U007", f"{shown(text)} is not a grid", hint="write columns x rows, for example 8x4")
    return int(size[1]), int(size[2])


def parse_kernel_arguments(pairs: Iterable[str]) -> JsonObject:
    """Parse the arguments of a kernel. Raises UsageError for other words, and for names that are options instead."""
    arguments = parse_pairs(pairs, "argument")
    if clash := {"target", "options"} & arguments.keys():
        name = min(clash)
        raise UsageError("U003", f"{name} is not a kernel argument", hint=f"use --{name.removesuffix('s')}")
    return arguments


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    """Create a parser that raises UsageError for incorrect usage."""
    return _Parser(prog=program, description=description, allow_abbrev=False)


def add_exploration_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of an exploration: the target, its grid and the options of passes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "options of passes, for --option:\n" + "\n".join(
        f"  {option.name:<18}{option.meaning}: {_accepted(option)}" for option in OPTIONS.values()
    )
    # No default here: saved explorations reject a target that was given.
    parser.add_argument("--target", help=f"the chip (default: {DEFAULT_TARGET})")
    parser.add_argument("--grid", metavar="CxR", help="use only the first C columns and R rows of its cores")
    parser.add_argument(
        "--option", metavar="NAME=VALUE", action="append", default=[],
        help="an option of a pass, for example policy=strided; may be repeated",
    )  # fmt: skip


def chosen_target(arguments: argparse.Namespace) -> Target:
    """The chip chosen with the options of :func:`add_exploration_options`. Raises UsageError."""
    return _targets(arguments, [DEFAULT_TARGET])[0]


def _targets(arguments: argparse.Namespace, otherwise: Sequence[object]) -> list[Target]:
    """The chip that --target names, or `otherwise`, with --grid. Raises UsageError."""
    grid = None if arguments.grid is None else parse_grid(arguments.grid)
    names = otherwise if arguments.target is None else [arguments.target]
    return [get_target(cast(str, name), grid=grid) for name in names]


def _chips_in_space(arguments: argparse.Namespace, space: dict[str, list[object]]) -> list[Target] | None:
    """The chips that the space names, with --grid; None if it names none. Raises UsageError."""
    if "target" not in space:
        return None
    if arguments.target is not None:
        raise UsageError("U023", "target is in the space, and has a value besides", hint="omit --target")
    return _targets(arguments, space["target"])


def _accepted(option: Option) -> str:
    """The values that an option accepts, as text."""
    if option.choices:
        return ", ".join(map(option_text, option.choices))
    return f"for example {option.example or '{(0, 0): [0, 1], (1, 0): [2, 3]}'}"


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    return make_parser(f"ttexplore {name}", description)


_ARGUMENTS = "arguments of the kernel: numbers, true, false, dtypes; 4,4 is a tuple"


def _kernel_parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = _parser(name, description)
    parser.add_argument("kernel", metavar="FILE::NAME", nargs="?", help="a Python file and a kernel in it")
    parser.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help=_ARGUMENTS)
    return _with_common_options(parser)


def _words_parser(name: str, description: str) -> argparse.ArgumentParser:
    """A parser for several kernels, each followed by its arguments."""
    parser = _parser(name, description)
    parser.add_argument(
        "words",
        metavar="FILE::NAME [NAME=VALUE ...]",
        nargs="*",
        help=f"Python files and kernels in them; {_ARGUMENTS}",
    )
    return _with_common_options(parser)


def _with_common_options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    add_exploration_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _add_inputs(parser: argparse.ArgumentParser, default: str | None = "random") -> None:
    from ttexplore.session.inputs import INPUT_KINDS

    kinds = ", ".join(INPUT_KINDS)
    without = "none; needed where elements of tensors decide what the program does" if default is None else default
    parser.add_argument("--inputs", metavar="KIND", default=default, help=f"{kinds} (default: {without})")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (default: %(default)s)")


def _add_launch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--launch", metavar="N", type=int, help="one launch of several, counted from 1")


def _add_time_limit(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, help=f"(default: {default})")


def _show_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("show", "Lower a kernel and show its steps.")
    parser.add_argument("--step", metavar="S", help="show one step, by name, letter or number: what it changed")
    parser.add_argument("--against", metavar="S", help="with --step: show what differs from the program after step S")
    parser.add_argument("--plan", action="store_true", help="show the plan: all facts that the passes decided")
    parser.add_argument("--options", action="store_true", help="show each option: its value, who set it, its default")
    parser.add_argument("--code", choices=("reader", "compute", "writer", "host"), help="show the emitted C++")
    _add_launch(parser)
    _add_time_limit(parser, "none")
    return parser


def _run_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser(
        "run",
        "Run a kernel on generated inputs and compare with the reference. Of a saved exploration, it compiles and "
        "executes the C++ in the file: run only files that you trust.",
    )
    parser.add_argument("--backend", default=DEFAULT_BACKEND, help=f"{', '.join(BACKENDS)} (default: %(default)s)")
    parser.add_argument("--device", help=f"for {taker('device')}: {DEVICE_NAMES} (default: {DEVICES[0]})")
    parser.add_argument(
        "--environment", metavar="FOLDER", help=f"for {taker('environment')}: the folder made by setup device"
    )
    _add_inputs(parser)
    _add_time_limit(parser, "that of the backend")
    return parser


def _check_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("check", "Execute every step and compare each with the reference.")
    _add_inputs(parser)
    _add_time_limit(parser, "none")
    return parser


def _estimate_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("estimate", "Predict how long the program takes on its target, and what bounds it.")
    _add_inputs(parser, default=None)
    _add_time_limit(parser, "none, for the lowering and the estimate each")
    parser.add_argument(
        "--beside",
        metavar="FILE",
        help="compare with the measured times of a report of the SDK's profiler, ops_perf_results*.csv",
    )
    return parser


def _compare_parser() -> argparse.ArgumentParser:
    parser = _words_parser("compare", "Compare two lowerings: options, cores, circular buffers and code size.")
    parser.add_argument(
        "--with", dest="other", metavar="NAME=VALUE", action="append", default=[],
        help="compare with the same kernel lowered with this option of a pass; may be repeated",
    )  # fmt: skip
    parser.add_argument("--with-target", metavar="T", help="compare with the same kernel lowered for this chip")
    parser.add_argument("--show", metavar="WHAT", help="show a step, by name or letter, or an emitted file in both")
    _add_launch(parser)
    return parser


def _sweep_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("sweep", "Lower a kernel with each schedule of a space, and find the best.")
    parser.add_argument(
        "--space", metavar="NAME=VALUE,VALUE", action="append", default=[],
        help="values of an argument of the kernel, of an option of a pass, or of target; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--prove", metavar="N", type=int, default=3, help="run the best N on the emulator (default: %(default)s)"
    )
    parser.add_argument("--workers", metavar="N", type=int, help="processes (default: one for each processor)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="let the Dask cluster of this scheduler do the work")
    parser.add_argument("--fresh", action="store_true", help="lower again what earlier sweeps have found")
    parser.add_argument("--pareto", metavar="FILE", help="write the schedules as a drawing, time against L1, as SVG")
    return parser


def _validate_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser(
        "validate",
        "Run a kernel with tiny, odd and large shapes, in each dtype, for each target; compare with float64.",
    )
    parser.add_argument(
        "--space", metavar="NAME=VALUE,VALUE", action="append", default=[],
        help="other cases: values of an argument of the kernel, of an option or of target; may be repeated",
    )  # fmt: skip
    parser.add_argument("--runs", metavar="N", type=int, default=2, help="runs of each case (default: %(default)s)")
    parser.add_argument("--plot", metavar="FILE", help="write the errors of all cases as a drawing, as SVG")
    _add_inputs(parser)
    _add_time_limit(parser, "that of the backend, for each run")
    return parser


def _timeline_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser(
        "timeline", "Record a run on the emulator: how long kernels waited on all cores, and on one of them for what."
    )
    parser.add_argument(
        "--core", metavar="X,Y", help="logical coordinates (default: the core with the most work items)"
    )
    parser.add_argument("--run", action="store_true", help=f"for {SAVED} files: execute the C++ in it, if you trust it")
    _add_launch(parser)
    _add_inputs(parser)
    _add_time_limit(parser, "that of the backend")
    return parser


def _export_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("export", "Write the kernels, the host program, the plan and a runner.")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="out", help="the folder (default: %(default)s)")
    parser.add_argument(
        "--dot", action="store_true", help="also write dataflow.dot and passes.dot, graphs for Graphviz"
    )
    parser.add_argument(
        "--dialect", choices=("tessera",), help="write only the kernel, as an illustration in the style of Tessera"
    )
    return parser


def _save_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("save", "Lower a kernel and save every step to a file that opens without TVM.")
    parser.add_argument("-o", "--output", metavar="FILE", default="exploration.ttx", help="(default: %(default)s)")
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = _words_parser("report", "Write the explorers of one or more kernels as one page that works offline.")
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="(default: %(default)s)")
    runs = parser.add_mutually_exclusive_group()
    runs.add_argument("--no-run", action="store_true", help="omit the result of a run on the emulator")
    runs.add_argument("--run", action="store_true", help=f"also execute the C++ in {SAVED} files, if you trust them")
    return parser


def _freeze_parser() -> argparse.ArgumentParser:
    parser = _parser("freeze", "Replace the explorers in notebooks with static pages.")
    parser.add_argument("notebooks", metavar="NOTEBOOK", nargs="+", help="files to change in place")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _doctor_parser() -> argparse.ArgumentParser:
    parser = _parser("doctor", "Print what is installed, what is missing, and how to fix it.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _setup_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "setup", "Install the real SDK with its compiler and a simulated chip, or TileLang, in a folder of its own."
    )
    parser.add_argument("what", nargs="?", choices=("device", "gpu"), help="what to set up")
    parser.add_argument("--folder", metavar="F", type=Path, help="the folder (default: in the platform's cache folder)")
    parser.add_argument("--python", metavar="P", type=Path, help="the Python to build on: for device, 3.12 or 3.10")
    parser.add_argument(
        "--sdk-python", metavar="P", type=Path, help="for device: use this Python, which has ttnn, and install nothing"
    )
    parser.add_argument("--ttsim", metavar="F", type=Path, help="for device: a folder with libttsim_wh.so or _bh.so")
    parser.add_argument("--remove", action="store_true", help="delete what was set up")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _explain_parser() -> argparse.ArgumentParser:
    parser = _parser("explain", "Explain an error by its code, or a term of the glossary.")
    parser.add_argument("code", nargs="?", help="the code of an error, such as TTX-R001, or a term, such as DST")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _gallery_parser() -> argparse.ArgumentParser:
    parser = _parser("gallery", "List the kernels of the gallery and what they did on each backend, or show one.")
    parser.add_argument("name", nargs="?", help="a kernel of the gallery (default: all)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the list as a page, in Markdown")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _lab_parser() -> argparse.ArgumentParser:
    parser = _parser("lab", "Start JupyterLab on the notebooks.")
    parser.add_argument("notebook", nargs="?", help="a notebook or folder (default: notebooks/00_start.ipynb)")
    return parser


# Commands


def _explored(arguments: argparse.Namespace, time_limit: float | None = None) -> Explored:
    """Explore the kernel, or load a saved exploration."""
    if arguments.kernel is None or not arguments.kernel.endswith(SAVED):
        return _explore(arguments, time_limit)
    if arguments.arguments or arguments.option or arguments.grid is not None or arguments.target is not None:
        raise UsageError(
            "U003",
            f"{arguments.kernel} is a saved exploration and takes no arguments, options or target",
            hint="to change them, save the kernel again",
        )
    from ttexplore.session.store import load

    return load(arguments.kernel)


def _explore(arguments: argparse.Namespace, time_limit: float | None = None) -> Exploration:
    """Explore the kernel. Errors in the command line itself are raised before TVM is loaded."""
    if arguments.kernel is None:
        raise UsageError("U002", "no kernel is given", hint="give it as file.py::name")
    if arguments.kernel.endswith(SAVED):
        raise UsageError(
            "U002",
            f"{arguments.kernel!r} is a saved exploration, not a kernel",
            hint="give a kernel as file.py::name; show, run, compare, timeline, export and report take them",
        )
    if "::" not in arguments.kernel and not arguments.kernel.endswith(".py"):
        raise UsageError("U002", f"{arguments.kernel!r} does not name a kernel", hint="give it as file.py::name")
    kernel_arguments = parse_kernel_arguments(arguments.arguments)
    options = parse_options(parse_words(arguments.option, "option"))
    target = chosen_target(arguments)
    from ttexplore.exploration import explore

    return explore(
        arguments.kernel, target=target, options=options, time_limit_seconds=time_limit, **kernel_arguments
    )  # fmt: skip


def _each(arguments: argparse.Namespace) -> list[argparse.Namespace]:
    """Each kernel of the words with the arguments that follow it."""
    namespaces: list[argparse.Namespace] = []
    for word in arguments.words:
        # A path may contain the sign, too, but the name of an argument has no "::" or suffix.
        if not namespaces or not word.partition("=")[1] or not word.partition("=")[0].isidentifier():
            namespaces.append(argparse.Namespace(**{**vars(arguments), "kernel": word, "arguments": []}))
        else:
            namespaces[-1].arguments.append(word)
    return namespaces or [argparse.Namespace(**{**vars(arguments), "kernel": None})]


def _all_explored(arguments: argparse.Namespace) -> list[Explored]:
    """Explore each kernel of the words, or load it."""
    return [_explored(each) for each in _each(arguments)]


def _identity(exploration: Explored) -> JsonObject:
    return {"kernel": exploration.kernel.name, "target": exploration.target.name}


def _chosen_launch(exploration: Explored, number: int | None) -> Explored:
    """One launch of several, counted from 1; the whole for None. Raises UsageError if there is no such launch."""
    if number is None:
        return exploration
    count = len(exploration.launches)
    if not 1 <= number <= count:
        raise UsageError("U001", f"there is no launch {number}", hint=f"the kernel has {count}, counted from 1")
    return exploration.launches[number - 1]


def _show(arguments: argparse.Namespace) -> Answer:
    exploration = _chosen_launch(_explored(arguments, arguments.time_limit), arguments.launch)
    identity = _identity(exploration)
    if len(exploration.launches) != 1:
        if any(getattr(arguments, name) for name in ("step", "against", "code", "plan", "options")):
            raise UsageError(
                "U019",
                f"{exploration.kernel.name} has {len(exploration.launches)} launches, each with steps and code",
                hint="name one: --launch 1",
            )
        shown: JsonObject = {**identity, "launches": [_shown(launch).data for launch in exploration.launches]}
        return Answer(str(exploration), shown, error=exploration.error)
    if arguments.step is not None:
        step = _step(exploration, arguments.step)
        diff = step.diff(None if arguments.against is None else _step(exploration, arguments.against))
        return Answer(str(diff), {**identity, "step": to_json(diff.record)}, error=step.error, code=True)
    if arguments.against is not None:
        raise UsageError("U002", "--against is given without a step", hint="name it: --step S")
    if arguments.options:
        return Answer(
            str(exploration.settings), {**identity, "options": [to_json(setting) for setting in exploration.settings]}
        )
    if arguments.plan:
        plan = to_json(exploration.plan)
        text = "\n".join(f"{path}: {value}" for path, value in flat_plan(plan))
        return Answer(text, {**identity, "plan": plan}, error=exploration.error)
    if arguments.code is not None:
        text = exploration.code[arguments.code].text
        return Answer(text.rstrip("\n"), {**identity, "code": {arguments.code: text}}, code=True)
    return _shown(exploration)


def _step(exploration: Explored, key_text: str) -> BaseStep:
    """The step of this name, letter or number. Raises UsageError."""
    key = int(key_text) if re.fullmatch("[0-9]{1,9}", key_text) else key_text
    if isinstance(key, int) and key >= len(exploration.steps):
        raise UsageError("U001", f"there is no step {key}", hint=f"steps are 0 to {len(exploration.steps) - 1}")
    return exploration.steps[key]


def _described(step: StepRecord) -> JsonObject:
    """A step and its parts without what they changed."""
    return {
        "index": step.index, "letter": step.letter, "name": step.name, "stage": step.stage, "summary": step.summary,
        "seconds": step.seconds, "options": step.options, "changed_ir": step.changed_ir,
        "changed_plan": step.changed_plan, "parts": [_described(part) for part in step.parts],
    }  # fmt: skip


def _shown(exploration: Explored) -> Answer:
    """The steps and the plan of one launch."""
    error = exploration.error
    steps = [_described(step.record) for step in exploration.steps]
    data: JsonObject = {**_identity(exploration), "steps": steps, "plan": to_json(exploration.plan)}
    if error is not None:
        data["error"] = to_json(error.record())
    return Answer(str(exploration), data, error=error)


def _run_kernel(arguments: argparse.Namespace) -> Answer:
    backend = BACKENDS[named("backend", arguments.backend, BACKENDS)]
    exploration = _explored(arguments)
    run = exploration.run(
        arguments.inputs, backend.name, arguments.seed, device=arguments.device, environment=arguments.environment,
        time_limit_seconds=arguments.time_limit, progress=_told("device" in backend.takes),
    )  # fmt: skip
    data = {
        **_identity(exploration),
        "backend": run.backend,
        "passed": run.passed,
        "pcc": float(run.pcc),
        "max_rel_error": float(run.max_rel_error),
        "seconds": float(run.seconds),
        "time": run.time,
        "message": run.message,
        "comparisons": {side.name: to_json(side.comparison) for side in run.sides},
        "outputs": [{"shape": list(output.shape), "dtype": str(output.dtype)} for output in run.outputs],
    }
    return Answer(str(run), data, bool(run.passed))


def _check(arguments: argparse.Namespace) -> Answer:
    exploration = _explore(arguments)
    check = exploration.check(
        arguments.inputs, arguments.seed, time_limit_seconds=arguments.time_limit, progress=_told()
    )
    data = {
        **_identity(exploration),
        "ok": bool(check),
        "first_bad": check.first_bad,
        "steps": [to_json(result) for result in check.results],
    }
    verdict = "every step matches the reference" if check else f"{check.first_bad} changes the result"
    return Answer(f"{check}\n{verdict}", data, bool(check))


def _estimate(arguments: argparse.Namespace) -> Answer:
    exploration = _explore(arguments, arguments.time_limit)
    estimate = exploration.estimate(arguments.inputs, arguments.seed, time_limit_seconds=arguments.time_limit)
    text, data = str(estimate), {**_identity(exploration), "estimate": estimate.to_json()}
    if arguments.beside is None:
        return Answer(text, data)
    measured = estimate.beside(arguments.beside)
    return Answer(f"{text}\n\n{measured}", {**data, "measured": measured.to_json()})


def _compare(arguments: argparse.Namespace) -> Answer:
    from ttexplore.exploration import Exploration
    from ttexplore.session.reports import compare_explorations

    lowerings = _all_explored(arguments)
    options = parse_options(parse_words(arguments.other, "option"))
    forked = bool(options) or arguments.with_target is not None
    if len(lowerings) != (1 if forked else 2):
        raise UsageError(
            "U002",
            f"two lowerings are compared, not {len(lowerings) + forked}",
            hint="name two kernels, or one and --with NAME=VALUE or --with-target",
        )
    first = lowerings[0]
    if forked:
        if not isinstance(first, Exploration):
            raise UsageError(
                "U003",
                f"{arguments.words[0]} is a saved exploration, which cannot be lowered again",
                hint="name the kernel, or a second saved exploration",
            )
        lowerings.append(first.fork(target=arguments.with_target, **options))
    lowerings = [_chosen_launch(lowering, arguments.launch) for lowering in lowerings]
    comparison = compare_explorations(*lowerings)
    data: JsonObject = {"first": _identity(first), "second": _identity(lowerings[1])}
    error = next((lowering.error for lowering in lowerings if lowering.error is not None), None)
    if arguments.show is not None:
        diff = comparison.diff(arguments.show)
        return Answer(str(diff), {**data, "diff": to_json(diff.record)}, error=error, code=True)
    data["rows"] = [list(row) for row in comparison.rows]
    data["steps"] = list(map(_change, comparison.steps))
    data["files"] = list(comparison.files)
    files = f"files that differ: {', '.join(comparison.files) or 'none'}"
    text = f"{comparison_text(comparison.rows, terminal_columns())}\n\n{comparison.steps}\n\n{files}"
    return Answer(text, data, error=error)


def _change(step: StepChange) -> JsonObject:
    """Whether a step, and each of its parts, does something else."""
    return {"letter": step.letter, "name": step.name, "change": step.kind, "parts": list(map(_change, step.parts))}


def _sweep(arguments: argparse.Namespace) -> Answer:
    if arguments.kernel is None:
        raise UsageError("U002", "no kernel is given", hint="give it as file.py::name")
    space = parse_space(arguments.space)
    kernel_arguments = parse_kernel_arguments(arguments.arguments)
    options = parse_options(parse_words(arguments.option, "option"))
    chips = _chips_in_space(arguments, space)
    if chips is not None:
        space["target"] = [*chips]
    from ttexplore.files import check_writable, write_file
    from ttexplore.sweeping.sweep import sweep

    if arguments.pareto is not None:
        check_writable(arguments.pareto)
    swept = sweep(
        arguments.kernel, space, target=chosen_target(arguments) if chips is None else None, options=options,
        prove=arguments.prove, workers=arguments.workers, scheduler=arguments.scheduler, fresh=arguments.fresh,
        **kernel_arguments,
    )  # fmt: skip
    if arguments.pareto is not None:
        write_file(arguments.pareto, swept.pareto().svg)
    data: JsonObject = {
        "kernel": swept.kernel, "complete": swept.complete, "best": swept.winner if swept.ranking else None,
        "table": [{name: _simple(value) for name, value in row.items()} for row in swept.table()],
    }  # fmt: skip
    return Answer(str(swept), data, bool(swept.ranking), interrupted=not swept.complete)


def _validate(arguments: argparse.Namespace) -> Answer:
    if arguments.kernel is None:
        raise UsageError("U002", "no kernel is given", hint="give it as file.py::name")
    from ttexplore.files import check_writable, write_file
    from ttexplore.validating.validate import TARGETS, validate

    space = parse_space(arguments.space)
    targets = _chips_in_space(arguments, space) or _targets(arguments, TARGETS)
    space.pop("target", None)
    options = parse_options(parse_words(arguments.option, "option"))
    kernel_arguments = parse_kernel_arguments(arguments.arguments)
    if arguments.plot is not None:
        check_writable(arguments.plot)
    validation = validate(
        arguments.kernel, space or None, target=targets, options=options, inputs=arguments.inputs, seed=arguments.seed,
        runs=arguments.runs, time_limit_seconds=arguments.time_limit, **kernel_arguments,
    )  # fmt: skip
    if arguments.plot is not None:
        write_file(arguments.plot, validation.plot().svg)
    table = [{name: _simple(value) for name, value in row.items()} for row in validation.table()]
    data: JsonObject = {
        "kernel": validation.kernel,
        "complete": validation.complete,
        "ok": bool(validation),
        "table": table,
    }
    return Answer(str(validation), data, bool(validation), interrupted=not validation.complete)


def _simple(value: object) -> object:
    try:
        return to_json(value)
    except TypeError:
        return str(value)


def _timeline(arguments: argparse.Namespace) -> Answer:
    core = None if arguments.core is None else parse_value(arguments.core)
    if arguments.kernel is not None and arguments.kernel.endswith(SAVED) and not arguments.run:
        raise UsageError(
            "U014", f"a timeline of {arguments.kernel} compiles and executes the C++ in this file",
            hint="if you trust the file, add --run",
        )  # fmt: skip
    exploration = _chosen_launch(_explored(arguments), arguments.launch)
    shown = exploration.timeline(
        cast("tuple[int, int] | None", core), inputs=arguments.inputs, seed=arguments.seed,
        time_limit_seconds=arguments.time_limit, progress=_told(),
    )  # fmt: skip
    unit = "emulator, in logical steps, one for each operation: not a time of the chip"
    text = f"{unit}\n{shown.recording.summary}\n{shown}"
    data: JsonObject = {
        **_identity(exploration), "core": list(shown.core), "end": shown.end,
        "waits": [to_json(wait) for wait in shown.waits], "deadlock": shown.deadlock,
    }  # fmt: skip
    return Answer(text, data, not shown.deadlock)


def _export(arguments: argparse.Namespace) -> Answer:
    exploration = _explored(arguments)
    files = [str(path) for path in exploration.export(arguments.output, dot=arguments.dot, dialect=arguments.dialect)]
    return Answer("\n".join(files), {**_identity(exploration), "folder": arguments.output, "files": files})


def _save(arguments: argparse.Namespace) -> Answer:
    exploration = _explore(arguments)
    file = str(exploration.save(arguments.output))
    return Answer(file, {**_identity(exploration), "file": file}, error=exploration.error)


def _report(arguments: argparse.Namespace) -> Answer:
    from ttexplore.session.reports import report

    lowerings = _all_explored(arguments)
    # What was typed: the kernels of factories are often all called main.
    words = [str(each.kernel).partition("::")[2] for each in _each(arguments)]
    names = [word or lowering.kernel.name for word, lowering in zip(words, lowerings, strict=True)]
    run = False if arguments.no_run else True if arguments.run else None
    file = str(report(arguments.output, *lowerings, run=run, names=names))
    data: JsonObject = {
        **_identity(lowerings[0]),
        "file": file,
        "lowerings": [_identity(lowering) for lowering in lowerings],
    }
    skipped = [] if run is not None else [word for word in arguments.words if word.endswith(SAVED)]
    told = [f"not run: {word} has C++ of its own; if you trust the file, add --run" for word in skipped]
    return Answer(
        "\n".join([file, *told]),
        {**data, "not_run": skipped},
        error=next((lowering.error for lowering in lowerings if lowering.error is not None), None),
    )


def _freeze(arguments: argparse.Namespace) -> Answer:
    from ttexplore.course.freezing import freeze

    removed = {str(notebook): freeze(notebook) for notebook in arguments.notebooks}
    lines = [f"{notebook}: {count} widget{'' if count == 1 else 's'} removed" for notebook, count in removed.items()]
    return Answer("\n".join(lines), {"notebooks": removed})


def _doctor(arguments: argparse.Namespace) -> Answer:
    from ttexplore.installation.doctor import examine

    findings = examine()
    ok = all(finding.ok for finding in findings if finding.required)
    data = {"ok": ok, "findings": [to_json(finding) for finding in findings]}
    return Answer("\n".join(map(str, findings)), data, ok)


def _explain(arguments: argparse.Namespace) -> Answer:
    from ttexplore.diagnostics import PREFIX, catalogue, examples
    from ttexplore.glossary import term

    if arguments.code is None:
        lines = [f"{diagnostic.code}  {diagnostic.title}" for diagnostic in catalogue().values()]
        return Answer(
            "\n".join(lines), {"codes": {diagnostic.code: diagnostic.title for diagnostic in catalogue().values()}}
        )
    asked = str(arguments.code).upper()
    code = asked if asked.startswith(PREFIX) else PREFIX + asked
    if code not in catalogue():
        meant = term(arguments.code)
        if meant is not None:
            return Answer(meant.text, to_json(meant))
        close = difflib.get_close_matches(code, catalogue(), 1)
        hint = (
            f"did you mean {close[0]}?" if close else "ttexplore explain lists all codes; docs/glossary.md, all terms"
        )
        raise UsageError("U001", f"there is no code or term {arguments.code!r}", hint=hint)
    diagnostic = catalogue()[code]
    example = examples()[code]
    return Answer(
        f"{diagnostic.text}\n\nExample:\n{example.text}",
        {**to_json(diagnostic), "kind": diagnostic.kind, "example": to_json(example)},
    )


def _gallery(arguments: argparse.Namespace) -> Answer:
    from ttexplore.course.gallery import entry_text, page, read_gallery, table_text
    from ttexplore.files import check_writable, write_file

    gallery = read_gallery()
    if arguments.output is not None:
        check_writable(arguments.output)
        write_file(arguments.output, page(gallery))
    if arguments.name is not None:
        entry = gallery.entry(arguments.name)
        return Answer(entry_text(entry), {**entry.data(), **to_json(entry.source())})
    data: JsonObject = {"versions": gallery.versions, "kernels": [kernel.data() for kernel in gallery]}
    return Answer(table_text(gallery, terminal_columns()), data)


def _setup(arguments: argparse.Namespace) -> Answer:
    from ttexplore.backends.ttnn.environment import default_environment_folder, verified_file
    from ttexplore.backends.ttnn.setup import remove, set_up

    if arguments.what is None:
        raise UsageError(
            "U013", "nothing to set up is named", hint="run ttexplore setup device, or ttexplore setup gpu"
        )
    if arguments.what == "gpu":
        return _setup_gpu(arguments)
    folder = (arguments.folder or default_environment_folder()).expanduser().absolute()
    if arguments.remove:
        removed = remove(folder)
        text = f"removed {folder}" if removed else f"there is no device environment in {folder}"
        return Answer(text, {"folder": str(folder), "removed": removed})
    environment = set_up(
        folder, python=arguments.python, sdk_python=arguments.sdk_python, ttsim_folder=arguments.ttsim, report=_tell
    )
    if not verified_file(environment).exists():
        # Imported here: TVM takes seconds to load, and a completed set-up does not need it.
        from ttexplore.installation.verification import verify

        device, target = verified_device(environment)
        _tell(f"verifying: adding two tiles on {device} ...")
        start = time.monotonic()
        verify(environment, device, target, progress=lambda text: _tell(f"  {text}"))
        _tell(f"  done in {time.monotonic() - start:.0f} s")
    text = f"the device environment in {folder} works: ttnn {environment.ttnn_version}"
    return Answer(text, {"folder": str(folder), "ttnn_version": environment.ttnn_version, "verified": True})


def _setup_gpu(arguments: argparse.Namespace) -> Answer:
    from ttexplore.gpu.environment import default_environment_folder
    from ttexplore.gpu.setup import remove, set_up

    for name in ("sdk_python", "ttsim"):
        if vars(arguments)[name] is not None:
            raise UsageError(
                "U013", f"--{name.replace('_', '-')} is for setup device", hint="use --folder, --python or --remove"
            )
    folder = (arguments.folder or default_environment_folder()).expanduser().absolute()
    if arguments.remove:
        removed = remove(folder)
        text = f"removed {folder}" if removed else f"there is no GPU environment in {folder}"
        return Answer(text, {"folder": str(folder), "removed": removed})
    environment = set_up(folder, python=arguments.python, report=_tell)
    text = f"the GPU environment in {folder} works: TileLang {environment.tilelang_version}"
    return Answer(text, {"folder": str(folder), "tilelang_version": environment.tilelang_version, "verified": True})


def verified_device(environment: DeviceEnvironment) -> tuple[str, str]:
    """The device on which a set-up is verified, and a target of its architecture."""
    from ttexplore.backends.ttnn.environment import CARD_DEVICES, card_architecture

    card = not environment.managed and CARD_DEVICES.exists()
    if environment.wolfpine_folders and not card:
        return "wolfpine", "wormhole_n150"
    if environment.ttsim_folder is not None and not card:
        wormhole = (environment.ttsim_folder / "libttsim_wh.so").exists()
        return "ttsim", "wormhole_n150" if wormhole else "blackhole_p100"
    return "card", "blackhole_p100" if card_architecture() == "blackhole" else "wormhole_n150"


def _tell(text: str) -> None:
    """Prints progress to standard error, because --json allows only one object on standard output."""
    _print(text, sys.stderr, terminal_columns())


def _told(slow: bool = False) -> Callable[[str], None] | None:
    """Who hears of the progress: somebody at a terminal, of `slow` work everybody."""
    return _tell if slow or sys.stderr.isatty() else None


def _lab(arguments: argparse.Namespace) -> Answer:
    command, root = lab_command(arguments.notebook)
    if arguments.notebook is None:
        from ttexplore.course.trusting import trust

        # JupyterLab strips the drawings of untrusted notebooks. It starts even where no signature can be written.
        with contextlib.suppress(OSError):
            trust(sorted((root / FIRST_NOTEBOOK).parent.glob("*.ipynb")))
    status = subprocess.run(command).returncode
    return Answer("", {}, status == 0)


def lab_command(notebook: str | None) -> tuple[list[str], Path]:
    """Return the command that starts JupyterLab on `notebook`, by default on the first notebook, and the folder that it
    serves: the one with `notebooks` and `docs` if the notebook is below it, because links lead from one to the other.

    Raises UsageError if the file does not exist, BackendError if JupyterLab is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("jupyterlab") is None:
        raise BackendError("B030", "JupyterLab is not installed", hint=f"run {install_extra('lab')}")
    if notebook is None:
        own_root = writable_root()
        if own_root is None:
            raise UsageError(
                "U001",
                f"there is no {FIRST_NOTEBOOK}",
                hint="name a notebook, or run this in a checkout of the project",
            )
        root = own_root.resolve()
        path = root / FIRST_NOTEBOOK
    else:
        path = Path(notebook).resolve()
        if not path.exists():
            raise UsageError("U001", f"there is no {notebook}", hint="name a notebook or a folder")
        above = (path, *path.parents)
        root = next(
            (folder for folder in above if (folder / FIRST_NOTEBOOK).is_file()), path if path.is_dir() else path.parent
        )
    # Jupyter does not start for root, the only user in most containers, without this flag.
    allowed = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    address = "/lab" if path == root else quote(f"/lab/tree/{path.relative_to(root).as_posix()}")
    served = [f"--ServerApp.root_dir={root}", f"--LabApp.default_url={address}"]
    return [sys.executable, "-m", "jupyterlab", *allowed, *served], root


COMMANDS: dict[str, tuple[Callable[[], argparse.ArgumentParser], Callable[[argparse.Namespace], Answer]]] = {
    "show": (_show_parser, _show),
    "run": (_run_parser, _run_kernel),
    "check": (_check_parser, _check),
    "estimate": (_estimate_parser, _estimate),
    "compare": (_compare_parser, _compare),
    "sweep": (_sweep_parser, _sweep),
    "validate": (_validate_parser, _validate),
    "timeline": (_timeline_parser, _timeline),
    "export": (_export_parser, _export),
    "save": (_save_parser, _save),
    "report": (_report_parser, _report),
    "freeze": (_freeze_parser, _freeze),
    "gallery": (_gallery_parser, _gallery),
    "explain": (_explain_parser, _explain),
    "doctor": (_doctor_parser, _doctor),
    "setup": (_setup_parser, _setup),
    "lab": (_lab_parser, _lab),
}

if __name__ == "__main__":
    sys.exit(main())
