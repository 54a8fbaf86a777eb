"""The command ``ttexplore``: the main job from a terminal or a script.

Exit status: 0 if what was asked for succeeded and the check passed, 1 if the kernel or its result is wrong or
something is missing, 2 for wrong use. With ``--json`` there is exactly one object on standard output.
"""

from __future__ import annotations

import argparse
import ast
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
from typing import TYPE_CHECKING, Any, NoReturn

from ttexplore.backends.registry import BACKENDS, DEFAULT_BACKEND, DEVICE_NAMES, DEVICES, taker
from ttexplore.errors import BackendError, TTExploreError, UsageError, shown
from ttexplore.given import named
from ttexplore.options import OPTIONS, Option, option_text, parse_options
from ttexplore.record import to_json

if TYPE_CHECKING:
    from ttexplore.backends.ttnn.environment import DeviceEnvironment
    from ttexplore.exploration import Exploration
    from ttexplore.explored import Explored
    from ttexplore.target import Target

SUCCEEDED, WRONG, WRONG_USE = 0, 1, 2
INTERRUPTED = 130
# How files of explorations end.
SAVED = ".ttx"
_DEFAULT_TARGET = "wormhole_n150"

OVERVIEW = """\
usage: ttexplore COMMAND ...

Lowers a TileLang kernel, step by step, to a Tenstorrent program.

  show FILE::NAME     the steps, the plan and the size of the result; --step for one step, --code for a kernel
  run FILE::NAME      run it, on random inputs or others, and compare with the reference
  check FILE::NAME    execute every step, name the first that changes the result
  export FILE::NAME   write reader.cpp compute.cpp writer.cpp main.cpp tt.plan.json run_ttnn.py; --dot for graphs
  save FILE::NAME     write all of it to one file, which show, run, export and report take in place of FILE::NAME
  report FILE::NAME   write the explorer as one page that works offline
  freeze NOTEBOOK     replace the explorers in a notebook by what they show without Python
  explain CODE|TERM   what an error means and what to do, by its code; or what a term of the glossary means
  doctor              what is installed and what is missing
  setup device        install the real SDK and a simulated chip, for run --backend ttnn
  lab                 JupyterLab on the notebooks

ttexplore COMMAND --help tells the options of each.
"""


class _Parser(argparse.ArgumentParser):
    """Wrong use is raised like any other error, so that it is printed in one way."""

    def error(self, message: str) -> NoReturn:
        raise UsageError("U014", message, hint=f"see: {self.prog} --help")


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What a command says: text for people, an object for --json, and whether all is well; `error` is what is not."""

    text: str
    data: dict[str, Any]
    ok: bool = True
    error: TTExploreError | None = None

    @property
    def status(self) -> int:
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
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return WRONG_USE if isinstance(error, UsageError) else WRONG
    except BrokenPipeError:
        # The reader of our output went away, as in `ttexplore show ... | head`; Python must not flush to it again.
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
        close = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else f"commands are {', '.join(COMMANDS)}"
        raise UsageError("U001", f"there is no command {name!r}", hint=hint)
    parser, command = COMMANDS[name]
    # Options may stand between the kernel's arguments.
    answer = command(parser().parse_intermixed_args(words[1:]))
    if as_json:
        _print_json(answer.data)
    elif answer.text:
        _say(answer.text)
    return answer.status


def _say(text: str) -> None:
    """Prints to standard output; what its encoding does not have is escaped. Nothing, where it is closed.

    Raises UsageError where it cannot be written, BrokenPipeError where nobody reads it any more.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
    try:
        try:
            print(text)
        except UnicodeEncodeError:
            encoding = sys.stdout.encoding
            print(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise UsageError(
            "U012", f"standard output cannot be written: {error.strerror}", hint="make room where it goes"
        ) from None


def _drop_output() -> None:
    """What standard output still has goes nowhere: Python would write it at its end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_json(data: dict[str, Any]) -> None:
    _say(json.dumps(_finite(data), allow_nan=False))


def _finite(value: Any) -> Any:
    """`value` with null for what JSON has no number for: NaN and infinities."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_finite(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


# Arguments


def parse_value(text: str) -> Any:
    """A value as written on the command line: int, float, bool, a Python tuple, list or dictionary, a tuple where there
    are commas, else text."""
    if text[:1] in ("(", "[", "{"):
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            return text
    if "," in text:
        return tuple(parse_value(part) for part in text.split(",") if part)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_pairs(pairs: Iterable[str], what: str) -> dict[str, Any]:
    """``name=value`` words as a dictionary of values. Raises what :func:`parse_words` raises."""
    return {name: parse_value(text) for name, text in parse_words(pairs, what).items()}


def parse_words(pairs: Iterable[str], what: str) -> dict[str, str]:
    """``name=value`` words as a dictionary. Raises UsageError for a word that is none, and for a name given twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.isidentifier():
            raise UsageError("U003", f"{pair!r} is no {what}", hint="write it as name=value, for example M=256")
        if name in values:
            raise UsageError("U003", f"{what} {name} is given twice", hint="give each name once")
        values[name] = text
    return values


def parse_grid(text: str) -> tuple[int, int]:
    """``8x4`` as columns and rows. Raises UsageError."""
    size = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text)
    if size is None:
        raise UsageError("U007", f"{shown(text)} is no grid", hint="write columns x rows, for example 8x4")
    return int(size[1]), int(size[2])


def parse_kernel_arguments(pairs: Iterable[str]) -> dict[str, Any]:
    """The arguments of a kernel by name. Raises UsageError for what is none, and for what has an option of its own."""
    arguments = parse_pairs(pairs, "argument")
    if clash := {"target", "options"} & arguments.keys():
        name = min(clash)
        raise UsageError("U003", f"{name} is no argument of a kernel", hint=f"use --{name.removesuffix('s')}")
    return arguments


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    """A parser that raises UsageError for what it does not understand."""
    return _Parser(prog=program, description=description, allow_abbrev=False)


def add_exploration_options(parser: argparse.ArgumentParser) -> None:
    """What can be said of an exploration apart from its kernel: the target, its grid and the options of passes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "options of passes, for --option:\n" + "\n".join(
        f"  {one.name:<18}{one.meaning}: {_accepted(one)}" for one in OPTIONS.values()
    )
    # Whether it was given matters for saved explorations, so it has no default here.
    parser.add_argument("--target", help=f"the chip (default: {_DEFAULT_TARGET})")
    parser.add_argument("--grid", metavar="CxR", help="use only the first C columns and R rows of its cores")
    parser.add_argument(
        "--option", metavar="NAME=VALUE", action="append", default=[],
        help="an option of a pass, for example policy=strided; may be repeated",
    )  # fmt: skip


def chosen_target(arguments: argparse.Namespace) -> Target:
    """The chip that was asked for with the options of :func:`add_exploration_options`. Raises UsageError."""
    from ttexplore.target import get_target

    name = _DEFAULT_TARGET if arguments.target is None else arguments.target
    return get_target(name, grid=None if arguments.grid is None else parse_grid(arguments.grid))


def _accepted(option: Option) -> str:
    """Which texts an option takes."""
    if option.choices:
        return ", ".join(map(option_text, option.choices))
    return f"for example {option.example or '{(0, 0): [0, 1], (1, 0): [2, 3]}'}"


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    return make_parser(f"ttexplore {name}", description)


def _kernel_parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = _parser(name, description)
    parser.add_argument("kernel", metavar="FILE::NAME", nargs="?", help="a Python file and a kernel in it")
    parser.add_argument(
        "arguments", metavar="NAME=VALUE", nargs="*",
        help="arguments of the kernel: numbers, true, false, dtypes; 4,4 is a tuple",
    )  # fmt: skip
    add_exploration_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    from ttexplore.inputs import INPUT_KINDS

    parser.add_argument(
        "--inputs", metavar="KIND", default="random", help=f"{', '.join(INPUT_KINDS)} (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (default: %(default)s)")


def _show_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("show", "Lower a kernel and show its steps.")
    parser.add_argument("--step", metavar="S", help="show one step, by name, letter or number: what it changed")
    parser.add_argument("--code", choices=("reader", "compute", "writer", "host"), help="show the emitted C++")
    return parser


def _run_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("run", "Run a kernel, on random inputs or others, and compare with the reference.")
    parser.add_argument("--backend", default=DEFAULT_BACKEND, help=f"{', '.join(BACKENDS)} (default: %(default)s)")
    parser.add_argument("--device", help=f"of {taker('device')}: {DEVICE_NAMES} (default: {DEVICES[0]})")
    parser.add_argument(
        "--environment", metavar="FOLDER", help=f"of {taker('environment')}: the folder that setup device made"
    )
    _add_inputs(parser)
    return parser


def _check_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("check", "Execute every step and compare each with the reference.")
    _add_inputs(parser)
    return parser


def _export_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("export", "Write the kernels, the host program, the plan and a runner.")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="out", help="the folder (default: %(default)s)")
    parser.add_argument(
        "--dot", action="store_true", help="also write dataflow.dot and passes.dot, graphs for Graphviz"
    )
    return parser


def _save_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("save", "Lower a kernel and save every step; the file opens where TVM is not installed.")
    parser.add_argument("-o", "--output", metavar="FILE", default="exploration.ttx", help="(default: %(default)s)")
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = _kernel_parser("report", "Write the explorer as one page that works offline.")
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="(default: %(default)s)")
    parser.add_argument("--no-run", action="store_true", help="without the result of a run on the emulator")
    return parser


def _freeze_parser() -> argparse.ArgumentParser:
    parser = _parser("freeze", "Replace the explorers in notebooks by what they show without Python.")
    parser.add_argument("notebooks", metavar="NOTEBOOK", nargs="+", help="files that are changed in place")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _doctor_parser() -> argparse.ArgumentParser:
    parser = _parser("doctor", "Tell what is installed, what is missing, and how to get it.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _setup_parser() -> argparse.ArgumentParser:
    parser = _parser("setup", "Install the real SDK with its compiler and a simulated chip, in a folder of its own.")
    parser.add_argument("what", nargs="?", choices=("device",), help="what to set up")
    parser.add_argument("--folder", metavar="F", type=Path, help="where (default: the platform's cache folder)")
    parser.add_argument("--python", metavar="P", type=Path, help="the Python 3.12 or 3.10 to build on")
    parser.add_argument("--sdk-python", metavar="P", type=Path, help="a Python with ttnn: use it, install nothing")
    parser.add_argument("--ttsim", metavar="F", type=Path, help="a folder with libttsim_wh.so and libttsim_bh.so")
    parser.add_argument("--remove", action="store_true", help="delete what was set up")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _explain_parser() -> argparse.ArgumentParser:
    parser = _parser("explain", "Explain an error by its code, or a term of the glossary.")
    parser.add_argument("code", nargs="?", help="the code of an error, such as TTX-R001, or a term, such as DST")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _lab_parser() -> argparse.ArgumentParser:
    parser = _parser("lab", "Start JupyterLab on the notebooks.")
    parser.add_argument("notebook", nargs="?", help="a notebook or folder (default: notebooks/00_start.ipynb)")
    return parser


# Commands


def _explored(arguments: argparse.Namespace) -> Explored:
    """The exploration that was asked for, or the one in a file that was saved."""
    if arguments.kernel is None or not arguments.kernel.endswith(SAVED):
        return _explore(arguments)
    if arguments.arguments or arguments.option or arguments.grid is not None or arguments.target is not None:
        raise UsageError(
            "U003",
            f"{arguments.kernel} is saved already and takes no arguments",
            hint="save the kernel again with others",
        )
    from ttexplore.saved import load

    return load(arguments.kernel)


def _explore(arguments: argparse.Namespace) -> Exploration:
    """The exploration that was asked for. What can be wrong with the words alone is told before TVM is loaded."""
    if arguments.kernel is None:
        raise UsageError("U002", "which kernel?", hint="give it as file.py::name")
    if arguments.kernel.endswith(SAVED):
        raise UsageError(
            "U002",
            f"{arguments.kernel!r} names no kernel",
            hint="give it as file.py::name; what is saved is lowered already: show, run and export open it",
        )
    if "::" not in arguments.kernel and not arguments.kernel.endswith(".py"):
        raise UsageError("U002", f"{arguments.kernel!r} names no kernel", hint="give it as file.py::name")
    kernel_arguments = parse_kernel_arguments(arguments.arguments)
    options = parse_options(parse_words(arguments.option, "option"))
    target = chosen_target(arguments)
    from ttexplore.exploration import explore

    return explore(arguments.kernel, target=target, options=options, **kernel_arguments)


def _identity(exploration: Explored) -> dict[str, Any]:
    return {"kernel": exploration.kernel.name, "target": exploration.target.name}


def _show(arguments: argparse.Namespace) -> Answer:
    exploration = _explored(arguments)
    identity = _identity(exploration)
    if arguments.step is not None:
        key = int(arguments.step) if re.fullmatch("[0-9]{1,9}", arguments.step) else arguments.step
        if isinstance(key, int) and key >= len(exploration.steps):
            raise UsageError("U001", f"there is no step {key}", hint=f"steps are 0 to {len(exploration.steps) - 1}")
        step = exploration.steps[key]
        return Answer(str(step.diff()), {**identity, "step": to_json(step.record)}, error=step.error)
    if arguments.code is not None:
        text = str(exploration.code[arguments.code])
        return Answer(text.rstrip("\n"), {**identity, "code": {arguments.code: text}})
    error = exploration.error
    steps = [
        {
            "index": step.index, "letter": step.letter, "name": step.name, "stage": step.stage,
            "summary": step.summary, "seconds": step.seconds, "options": to_json(step.options),
        }
        for step in exploration.steps
    ]  # fmt: skip
    data: dict[str, Any] = {**identity, "steps": steps, "plan": to_json(exploration.plan)}
    if error is not None:
        data["error"] = to_json(error.record())
    return Answer(str(exploration), data, error=error)


def _run_kernel(arguments: argparse.Namespace) -> Answer:
    backend = BACKENDS[named("backend", arguments.backend, BACKENDS)]
    exploration = _explored(arguments)
    run = exploration.run(
        arguments.inputs, backend.name, arguments.seed, device=arguments.device, environment=arguments.environment,
        progress=_tell if "progress" in backend.takes else None,
    )  # fmt: skip
    data = {
        **_identity(exploration),
        "backend": run.backend,
        "passed": bool(run.passed),
        "pcc": float(run.pcc),
        "max_rel_error": float(run.max_rel_error),
        "seconds": float(run.seconds),
        "message": run.message,
        "comparisons": {side.name: to_json(side.comparison) for side in run.sides},
        "outputs": [{"shape": list(output.shape), "dtype": str(output.dtype)} for output in run.outputs],
    }
    return Answer(str(run), data, bool(run.passed))


def _check(arguments: argparse.Namespace) -> Answer:
    exploration = _explore(arguments)
    check = exploration.check(arguments.inputs, arguments.seed)
    data = {
        **_identity(exploration),
        "ok": bool(check),
        "first_bad": check.first_bad,
        "steps": [to_json(result) for result in check.results],
    }
    verdict = "every step matches the reference" if check else f"{check.first_bad} changes the result"
    return Answer(f"{check}\n{verdict}", data, bool(check))


def _export(arguments: argparse.Namespace) -> Answer:
    exploration = _explored(arguments)
    files = [str(path) for path in exploration.export(arguments.output, dot=arguments.dot)]
    return Answer("\n".join(files), {**_identity(exploration), "folder": arguments.output, "files": files})


def _save(arguments: argparse.Namespace) -> Answer:
    exploration = _explore(arguments)
    file = str(exploration.save(arguments.output))
    return Answer(file, {**_identity(exploration), "file": file}, error=exploration.error)


def _report(arguments: argparse.Namespace) -> Answer:
    exploration = _explored(arguments)
    file = str(exploration.report(arguments.output, run=not arguments.no_run))
    return Answer(file, {**_identity(exploration), "file": file}, error=exploration.error)


def _freeze(arguments: argparse.Namespace) -> Answer:
    from ttexplore.freezing import freeze

    taken = {str(notebook): freeze(notebook) for notebook in arguments.notebooks}
    lines = [f"{notebook}: {count} widget{'' if count == 1 else 's'} taken out" for notebook, count in taken.items()]
    return Answer("\n".join(lines), {"notebooks": taken})


def _doctor(arguments: argparse.Namespace) -> Answer:
    from ttexplore.doctor import examine

    findings = examine()
    ok = all(finding.ok for finding in findings if finding.required)
    data = {"ok": ok, "findings": [to_json(finding) for finding in findings]}
    return Answer("\n".join(map(str, findings)), data, ok)


def _explain(arguments: argparse.Namespace) -> Answer:
    from ttexplore.diagnostics import CATALOGUE, PREFIX
    from ttexplore.diagnostics.examples import examples
    from ttexplore.glossary import term

    if arguments.code is None:
        lines = [f"{one.code}  {one.title}" for one in CATALOGUE.values()]
        return Answer("\n".join(lines), {"codes": {one.code: one.title for one in CATALOGUE.values()}})
    given = str(arguments.code).upper()
    code = given if given.startswith(PREFIX) else PREFIX + given
    if code not in CATALOGUE:
        meant = term(arguments.code)
        if meant is not None:
            return Answer(meant.text, to_json(meant))
        close = difflib.get_close_matches(code, CATALOGUE, 1)
        hint = (
            f"did you mean {close[0]}?" if close else "ttexplore explain lists all codes; docs/glossary.md, all terms"
        )
        raise UsageError("U001", f"there is no code {arguments.code!r}", hint=hint)
    one = CATALOGUE[code]
    example = examples()[code]
    return Answer(
        f"{one.text}\n\nExample:\n{example.text}", {**to_json(one), "kind": one.kind, "example": to_json(example)}
    )


def _setup(arguments: argparse.Namespace) -> Answer:
    from ttexplore.backends.ttnn.environment import default_environment_folder, verified_file
    from ttexplore.backends.ttnn.setup import remove, set_up

    if arguments.what is None:
        raise UsageError("U013", "set up what?", hint="ttexplore setup device")
    folder = (arguments.folder or default_environment_folder()).expanduser().absolute()
    if arguments.remove:
        removed = remove(folder)
        text = f"removed {folder}" if removed else f"there is no device environment in {folder}"
        return Answer(text, {"folder": str(folder), "removed": removed})
    environment = set_up(
        folder, python=arguments.python, sdk_python=arguments.sdk_python, ttsim_folder=arguments.ttsim, report=_tell
    )
    if not verified_file(environment).exists():
        # TVM takes seconds to load, which a set-up that has nothing to do should not.
        from ttexplore.verification import verify

        device, target = verified_device(environment)
        _tell(f"verifying: adding two tiles on {device} ...")
        start = time.monotonic()
        verify(environment, device, target, progress=lambda text: _tell(f"  {text}"))
        _tell(f"  done in {time.monotonic() - start:.0f} s")
    text = f"the device environment in {folder} works: ttnn {environment.ttnn_version}"
    return Answer(text, {"folder": str(folder), "ttnn_version": environment.ttnn_version, "verified": True})


def verified_device(environment: DeviceEnvironment) -> tuple[str, str]:
    """The device that a set-up is verified on, and a target of its architecture."""
    from ttexplore.backends.ttnn.environment import CARD_DEVICES, card_architecture

    card = not environment.managed and CARD_DEVICES.exists()
    if environment.wolfpine_folders and not card:
        return "wolfpine", "wormhole_n150"
    if environment.ttsim_folder is not None and not card:
        wormhole = (environment.ttsim_folder / "libttsim_wh.so").exists()
        return "ttsim", "wormhole_n150" if wormhole else "blackhole_p100"
    return "card", "blackhole_p100" if card_architecture() == "blackhole" else "wormhole_n150"


def _tell(text: str) -> None:
    """Progress goes to standard error: with --json there is one object on standard output."""
    print(text, file=sys.stderr, flush=True)


def _lab(arguments: argparse.Namespace) -> Answer:
    command = lab_command(arguments.notebook)
    if arguments.notebook is None:
        # The project's own notebooks: JupyterLab strips the drawings of those that it does not trust.
        own = sorted(str(path) for path in Path(command[-1]).parent.glob("*.ipynb"))
        subprocess.run([sys.executable, "-m", "jupyter", "trust", *own], stdout=subprocess.DEVNULL, check=False)
    status = subprocess.run(command).returncode
    return Answer("", {}, status == 0)


def lab_command(notebook: str | None) -> list[str]:
    """The command that starts JupyterLab on `notebook`, by default on the first of the notebooks.

    Raises UsageError where there is no such file, BackendError where JupyterLab is not installed.
    """
    import importlib.util

    folders = (Path.cwd(), Path(__file__).parents[1])
    candidates = [Path(notebook)] if notebook else [folder / "notebooks" / "00_start.ipynb" for folder in folders]
    path = next((candidate for candidate in candidates if candidate.exists()), None)
    if path is None:
        raise UsageError(
            "U001",
            f"there is no {notebook or 'notebooks/00_start.ipynb'}",
            hint="name a notebook, or run this in a clone of the repository",
        )
    if importlib.util.find_spec("jupyterlab") is None:
        raise BackendError(
            "B030", "JupyterLab is not installed", hint=f"{sys.executable} -m pip install 'ttexplore[lab]'"
        )
    # Jupyter refuses to start for the superuser, who is the only user in a container, unless told so.
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [sys.executable, "-m", "jupyterlab", *root, str(path)]


COMMANDS: dict[str, tuple[Callable[[], argparse.ArgumentParser], Callable[[argparse.Namespace], Answer]]] = {
    "show": (_show_parser, _show),
    "run": (_run_parser, _run_kernel),
    "check": (_check_parser, _check),
    "export": (_export_parser, _export),
    "save": (_save_parser, _save),
    "report": (_report_parser, _report),
    "freeze": (_freeze_parser, _freeze),
    "explain": (_explain_parser, _explain),
    "doctor": (_doctor_parser, _doctor),
    "setup": (_setup_parser, _setup),
    "lab": (_lab_parser, _lab),
}

if __name__ == "__main__":
    sys.exit(main())
