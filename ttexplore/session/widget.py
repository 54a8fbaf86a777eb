"""The explorer as a Jupyter widget: sends the browser its data, and answers its requests.

All displayed data is sent once, when the widget is created. After that, the browser only requests to run, check, record
and lower again; each request is answered in its own thread, so the notebook's kernel stays responsive. A request that
is cancelled ends: the emulator, the compiler and devices are processes, which are killed; the interpreter looks before
each statement, a lowering after each pass.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from ttexplore.control import Control
from ttexplore.errors import TTExploreError, UsageError, refuse_cancelled
from ttexplore.record import ErrorRecord, JsonObject, lines_of
from ttexplore.session.answers import ANSWERS, Answer, failure_data, wrong_option
from ttexplore.session.inputs import INPUT_KINDS
from ttexplore.session.pages import launch_rows
from ttexplore.target import TARGETS
from ttexplore.views.assets import widget_module, widget_style
from ttexplore.views.explorer import error_data, packed
from ttexplore.views.figures.launch_chain import launch_chain_svg
from ttexplore.views.markup import visible
from ttexplore.views.steps.moved import moved_lines
from ttexplore.views.steps.step_changes import changed_files, step_changes

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored

# What of a request in progress every page knows; `words` are those of the page that asked.
_LISTED = ("do", "variant", "words")
# What the page asks for by itself, and nobody waits for.
_UNLISTED = ("advice", "costs", "edit", "estimate", "gpu", "module", "trace")
# Whoever still waits for an answer that was sent has not got it.
_LOST = ErrorRecord("AnswerLost", "the answer was lost while there was no connection to the kernel", "ask again")


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of one exploration, and of those that its What if creates.

    Answers messages ``{"id", "do": "run" | "check" | "record" | "tile" | "fork" | "edit" | "estimate" | "trace" |
    "costs" | "advice" | "gpu" | "module" | "cancel" | "waiting", ...}`` with
    ``{"id", "state": "progress" | "done" | "failed", ...}``.
    Errors are answers, too: the notebook's kernel never sees an exception.
    """

    _esm = widget_module()
    _css = widget_style()
    data = traitlets.Bytes().tag(sync=True)
    # Of several launches each: "name", "state", "failed", "data"; and a drawing of them.
    launches = traitlets.List(traitlets.Dict()).tag(sync=True)
    chain = traitlets.Unicode("").tag(sync=True)
    backends = traitlets.List(traitlets.Dict()).tag(sync=True)
    targets = traitlets.List(traitlets.Unicode()).tag(sync=True)
    # The kinds of inputs: name, description, whether they have a seed.
    inputs = traitlets.List(traitlets.Tuple()).tag(sync=True)
    # For each request that it cannot answer, the reason.
    missing = traitlets.Dict().tag(sync=True)
    stale = traitlets.Unicode("").tag(sync=True)
    # Where to go: "tab", "step" (a letter), "pin" (numbers of kernel lines, with commas), "file".
    place = traitlets.Dict().tag(sync=True)
    # Where a view of this widget is, in the same words, and the "text" of the kernel there, if it was edited.
    here = traitlets.Dict(None, allow_none=True).tag(sync=True)
    # Shares of panes and a height in pixels, by what they are of.
    arrangement = traitlets.Dict().tag(sync=True)
    # By this name the front end finds the model for another view of it.
    identity = traitlets.Unicode("", allow_none=True).tag(sync=True)
    # The requests in progress, so that a page that is opened later shows them and can cancel them.
    running = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, exploration: Explored, place: Mapping[str, str] | None = None) -> None:
        super().__init__(
            **_shown(exploration), backends=exploration.backends, targets=list(TARGETS),
            inputs=[(kind.name, kind.what, kind.seeded) for kind in INPUT_KINDS.values()],
            missing=exploration.missing, place=dict(place or {}),
        )  # fmt: skip
        self.identity = self.model_id  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
        self._explorations = {"": exploration} | _launches(exploration)
        self._numbers = itertools.count(1)
        # For each request in progress, by its id, what it does and what cancels it.
        self._running: dict[object, tuple[object, threading.Event]] = {}
        self._changing = threading.Lock()
        self.on_msg(self._asked)  # pyright: ignore[reportUnknownMemberType]

    def __repr__(self) -> str:
        return f"<explorer of {self._explorations['']!r}>"

    def view(self) -> JsonObject:
        """A view of this widget as a display bundle, by media type; empty without a notebook."""
        bundle: Any = self._repr_mimebundle_()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        kind = "application/vnd.jupyter.widget-view+json"
        return {kind: bundle[0][kind]} if bundle else {}

    def kernel_changed(self, cell: str) -> None:
        """Show in the explorer that the kernel has changed, if `cell`, which has just run, defines another text for it,
        or its file has changed."""
        kernel = self._explorations[""].kernel
        source = kernel.source.text
        path = Path(kernel.file)
        if path.suffix == ".py" and path.is_file():
            lines = lines_of(path.read_text(encoding="utf-8-sig", errors="replace"))
            now = lines[kernel.first_line - 1 : kernel.first_line - 1 + len(kernel.source.lines)]
            changed = now != lines_of(source)
        else:
            # A launch has a name of its own, and the text of the whole kernel.
            named = re.search(r"^\s*def\s+(\w+)", source, re.MULTILINE)
            name = named[1] if named else kernel.name
            changed = any(_plain(text) != _plain(source) for text in _definitions(cell, name))
        if changed:
            self.stale = f"{visible(kernel.name)} has changed since this exploration was made: explore it again"

    # Questions

    def _asked(self, _: object, question: JsonObject, buffers: object) -> None:
        del buffers
        do = question.get("do")
        if do == "cancel":
            # An edit ends when another one takes its place, not with what the explorer is busy with; an estimate is
            # short.
            edit = question.get("edit")
            for identifier, (kind, event) in tuple(self._running.items()):
                if identifier == edit if edit else kind not in _UNLISTED:
                    event.set()
            return
        if do == "waiting":
            for identifier in question["ids"]:
                if identifier not in self._running:
                    self._tell({"id": identifier, "state": "failed", "error": error_data(_LOST)})
            return
        if do not in _UNLISTED or do == "edit":
            # What nobody waits for gives way to what somebody does.
            for kind, event in tuple(self._running.values()):
                if kind == "advice":
                    event.set()
        cancel = threading.Event()
        self._running[question.get("id")] = (do, cancel)
        threading.Thread(target=self._answer, args=(question, cancel), daemon=True).start()

    def _answer(self, question: JsonObject, cancel: threading.Event) -> None:
        identifier = question.get("id")
        if question.get("do") not in _UNLISTED:
            self._list({"id": identifier, "since": time.time(), **{name: question.get(name) or "" for name in _LISTED}})

        def progress(text: str) -> None:
            self._tell({"id": identifier, "state": "progress", "text": visible(text)})

        exploration = self._explorations.get(question.get("variant") or "")
        try:
            if exploration is None:
                raise UsageError("U001", "an edit has replaced this lowering", hint="lower it again")
            do, control = question.get("do"), Control(cancel, progress=progress)
            match do:
                case "fork":
                    answer = self._fork(exploration, question, control)
                case "edit":
                    answer = self._edit(exploration, question, cancel)
                case _ if do in ANSWERS:
                    answer = ANSWERS[do](exploration, question, control)
                case _:
                    raise UsageError("U001", f"the explorer cannot {do!r}", hint="run the cell again")
        except TTExploreError as error:
            failure = {**failure_data(error, exploration), "option": wrong_option(question.get("options") or {})}
            self._tell({"id": identifier, "state": "failed", "error": failure})
        except Exception as error:  # The notebook continues, and the user sees what to report.
            where = traceback.extract_tb(error.__traceback__)[-1]
            record = ErrorRecord(
                type(error).__name__, f"{error}\n({Path(where.filename).name}, line {where.lineno})",
                "this is an error of ttexplore itself: please report it with the kernel",
            )  # fmt: skip
            self._tell({"id": identifier, "state": "failed", "error": error_data(record)})
        else:
            self._tell({"id": identifier, "state": "done", **answer[0]}, answer[1])
        finally:
            self._running.pop(identifier, None)
            self._list(None, identifier)

    def _list(self, request: JsonObject | None, ended: object = None) -> None:
        """Add a request to those in progress, or take the one that has `ended` away."""
        with self._changing:
            self.running = [active for active in self.running if active["id"] != ended] + ([request] if request else [])

    def _tell(self, message: JsonObject, buffers: list[bytes] | None = None) -> None:
        self.send(message, buffers)  # pyright: ignore[reportUnknownMemberType]

    def _fork(self, exploration: Explored, question: JsonObject, control: Control) -> Answer:
        target = None if question["target"] == exploration.target.name else question["target"]
        asked: Mapping[str, str] = question.get("arguments") or {}
        arguments = {name: int(size) for name, size in asked.items()}
        variant = exploration._with_kernel("lowering again").lower_again(
            question["options"], target, control, arguments
        )
        steps = step_changes(exploration.trace.steps, variant.trace.steps).with_parts
        return {
            "variant": self._added(variant), "steps": [[change.glyph, change.words] for change in steps],
            "files": list(changed_files(exploration.trace, variant.trace)),
        }, [packed(variant.data)]  # fmt: skip

    def _edit(self, exploration: Explored, question: JsonObject, cancel: threading.Event) -> Answer:
        # What earlier edits gave and the page shows no longer.
        for name in question["unused"]:
            if name:
                self._explorations.pop(name, None)
        variant = _edited(self._explorations[""], exploration, question, Control(cancel))
        data = packed(variant.data)
        refuse_cancelled(cancel)
        moved = moved_lines(*([line.text for line in side.kernel.source.lines] for side in (exploration, variant)))
        return {
            "variant": self._added(variant), "moved": moved,
            "error": error_data(variant.error.record()) if variant.error else None,
        }, [data]  # fmt: skip

    def _added(self, exploration: Explored) -> str:
        name = str(next(self._numbers))
        self._explorations[name] = exploration
        return name

    def left_for(self, exploration: Explored) -> JsonObject:
        """The place that a reader has left here, for another exploration of this kernel or of a newer text of it; none
        for a lowering that failed, which opens where it did."""
        if exploration.error is not None:
            return {}
        location: JsonObject = dict(self.here or {})
        kernel, now = self._explorations[""].kernel, exploration.kernel
        before = lines_of(str(location.pop("text", "") or kernel.source.text))
        moved = moved_lines(before, [line.text for line in now.source.lines])
        pins: list[int] = []
        for word in str(location.get("pin") or "").split(","):
            row = int(word) - kernel.first_line if word.isdecimal() else -1
            if 0 <= row < len(moved) and moved[row] >= 0:
                pins.append(now.first_line + moved[row])
        return {**location, "pin": ",".join(map(str, pins))} if location else {}

    @property
    def kernel_name(self) -> str:
        return str(self._explorations[""].kernel.name)


def _shown(exploration: Explored) -> dict[str, Any]:
    """What the page gets of the lowering, or of those of all launches."""
    if not exploration._is_several:
        return {"data": packed(exploration.data)}
    rows = launch_rows(exploration)
    launches = [
        {"name": visible(row.name), "state": row.state, "failed": row.failed, "data": packed(launch.data)}
        for row, launch in zip(rows, exploration.launches, strict=True)
    ]
    return {"launches": launches, "chain": launch_chain_svg(exploration.kernel.name, rows)}


def _launches(exploration: Explored) -> dict[str, Explored]:
    """Several launches, by the names that their lowerings have beside that of the whole."""
    launches = exploration.launches if exploration._is_several else ()
    return {f"launch {number}": launch for number, launch in enumerate(launches)}


def _edited(first: Explored, exploration: Explored, question: JsonObject, control: Control) -> Explored:
    """`exploration` with another text, which is one of the `first`: of several launches, the one that is shown."""
    action = "lowering another text"
    of = (first._with_kernel(action), int(question["launch"])) if first._is_several else None
    return exploration._with_kernel(action).lower_text(str(question["text"]), control, of)


def _definitions(cell: str, name: str) -> list[str]:
    """The text of each function `name` in a cell, decorators included."""
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        # The cell contains a magic, or did not run.
        return []
    lines = lines_of(cell)
    definitions: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            definitions.append("\n".join(lines[first - 1 : node.end_lineno]))
    return definitions


def _plain(text: str) -> str:
    return textwrap.dedent(text).strip()
