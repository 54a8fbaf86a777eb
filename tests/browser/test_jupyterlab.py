"""The explorer in a real JupyterLab: a notebook that is run, stepped through, closed and opened again."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, TimeoutError

from tests.browser.conftest import Open
from tests.browser.explorer_page import ExplorerPage
from ttexplore.passes.pipeline import PIPELINE

# A server, and for each test a kernel that starts.
pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_START_SECONDS = 120
_PATIENCE_MS = 120_000
# What is told or ended at once takes some tenths of a second, but on a busy machine.
_AT_ONCE_SECONDS = 30
_CELLS = (
    "import ttexplore as ttx\nex = ttx.explore('gemm.py::matmul', M=128, N=128, K=64, block_M=64, block_N=64)\n"
    "import numpy as np\nmine = [np.ones((128, 64)), np.eye(64, 128)]\nex",
    "ex",
    "ttx.explore('gemm.py::matmul', M=1024, N=1024, K=1024, block_M=1024, block_N=1024, block_K=1024)",
)

# Text that is there but not seen is none.
SEEN = """() => [...document.querySelectorAll(".jp-OutputArea-child > .jp-OutputArea-output")].map((one) => {
    if (!one.getClientRects().length) return "";
    if (one.querySelector(".ttx-explorer")) return "live";
    const still = one.querySelector(".ttx-still");
    if (still) return still.getBoundingClientRect().height > 300 ? "still" : "";
    return getComputedStyle(one).visibility === "hidden" ? getComputedStyle(one, "::after").content : one.innerText;
})"""
LIVE = ["live", ""] * 3
STILL = ['"The live explorer is not running: rerun the cell to use it."', "still"] * 3
# JupyterLab writes these to the console: for a kernel that is gone, and, now and then, for one that starts or ends.
LABS_OWN = ("widget model not found", "Could not restore the debugger state", "Could not send widget sync message")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebook explorer.ipynb is."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab in that folder."""
    (folder / "gemm.py").write_bytes((_ROOT / "notebooks" / "kernels" / "gemm.py").read_bytes())
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for n, source in enumerate(_CELLS)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "explorer.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {name: str(folder / "jupyter") for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    path = os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", "")))
    options = [
        "--no-browser",
        f"--port={port}",
        "--IdentityProvider.token=",
        # Another server's port would lead to that server.
        "--ServerApp.port_retries=0",
        "--allow-root",
        "--LabApp.expose_app_in_browser=True",
        "--ServerApp.disable_check_xsrf=True",
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}", "--LabApp.news_url="],
            stdout=log, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **own, "PYTHONPATH": path},
        )  # fmt: skip
        try:
            _wait_for(f"http://127.0.0.1:{port}/api", server, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                # It waits for its kernels, which end by themselves without it.
                server.kill()
                server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}", pytrace=False)


@pytest.fixture
def notebook(lab: str, open_context: Open) -> Page:
    """The notebook, with all of its cells run in a kernel of its own: an explorer opens where the one before it in the
    same kernel was left."""
    end_kernels(lab)
    page = new_page(open_context)
    open_notebook(page, lab)
    run(page, "notebook:run-all-cells")
    return page


def new_page(open_context: Open, *expected: str) -> Page:
    """A page in which kernels may take their time to start, and where errors may have one of the texts `expected`."""
    context = open_context(expected=(*LABS_OWN, *expected), viewport={"width": 1500, "height": 1000})
    context.set_default_timeout(_PATIENCE_MS)
    return context.new_page()


def told_by_run(page: Page) -> str:
    """The text of the run's result, once it is there. Until then another card may stand in its place."""
    page.wait_for_function("() => document.querySelector('.result > div')?.shadowRoot")
    return page.evaluate("document.querySelector('.result > div').shadowRoot.textContent")


def end_kernels(lab: str) -> None:
    """Ends the kernels that earlier tests have left. One that is ending by itself may refuse that, until it is gone."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.HTTPError):
            with urllib.request.urlopen(f"{lab}/api/sessions", timeout=_START_SECONDS) as answer:
                sessions = json.load(answer)
            if not sessions:
                return
            for session in sessions:
                request = urllib.request.Request(f"{lab}/api/sessions/{session['id']}", method="DELETE")
                urllib.request.urlopen(request, timeout=_START_SECONDS).close()
        time.sleep(0.1)
    pytest.fail("JupyterLab does not end the kernels of earlier tests", pytrace=False)


def run(page: Page, command: str, arguments: dict[str, Any] | None = None) -> None:
    """Runs a command of JupyterLab."""
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.isReady")
    page.evaluate(
        "([command, arguments_]) => { jupyterapp.commands.execute(command, arguments_); }", [command, arguments or {}]
    )


def explorer(page: Page, number: int = 0) -> ExplorerPage:
    page.locator(".ttx-explorer").nth(number).get_by_role("tab", name="Steps").wait_for()
    return ExplorerPage(page, {}, number)


def open_notebook(page: Page, lab: str, name: str = "explorer.ipynb") -> None:
    page.goto(f"{lab}/lab/tree/{name}?reset")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()


def open_again(page: Page, lab: str, name: str = "explorer.ipynb") -> ExplorerPage:
    """Opens a notebook whose kernel lives. JupyterLab asks the kernel for its widgets, and waits a few seconds only."""
    open_notebook(page, lab, name)
    try:
        page.locator(".ttx-explorer").first.wait_for(timeout=_PATIENCE_MS / 4)
    except TimeoutError:
        open_notebook(page, lab, name)
    return explorer(page)


def save(page: Page) -> None:
    run(page, "docmanager:save")
    page.wait_for_function("() => !jupyterapp.shell.currentWidget.context.model.dirty")


def wait_until_seen(page: Page, wanted: list[str]) -> None:
    """Waits until the outputs of the notebook's cells show this: ``live``, ``still``, a text, or nothing."""
    try:
        page.wait_for_function(
            f"(wanted) => JSON.stringify(({SEEN})()) === JSON.stringify(wanted)", arg=wanted, timeout=_PATIENCE_MS
        )
    except TimeoutError:
        assert page.evaluate(SEEN) == wanted


def change_theme(page: Page, name: Literal["Light", "Dark"]) -> None:
    """Waits until it is there and JupyterLab's splash is gone, which two changes at a time would remove twice."""
    run(page, "apputils:change-theme", {"theme": f"JupyterLab {name}"})
    page.wait_for_function("(name) => document.body.dataset.jpThemeName === name", arg=f"JupyterLab {name}")
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def shut_down_kernels(lab: str) -> None:
    """Ends them from outside, when no page uses them any more."""
    with urllib.request.urlopen(f"{lab}/api/sessions") as answer:
        sessions: list[dict[str, Any]] = json.load(answer)
    for session in sessions:
        urllib.request.urlopen(urllib.request.Request(f"{lab}/api/sessions/{session['id']}", method="DELETE")).close()


@contextlib.contextmanager
def frozen(page: Page, folder: Path) -> Generator[None]:
    """The notebook's kernel does nothing in the meantime, in any of its threads, for a minute at most."""
    file = folder / "frozen"
    command = "touch frozen; for i in $(seq 600); do [ -e frozen ] && sleep 0.1; done"
    code = f"import ctypes; ctypes.PyDLL(None).system({command.encode()})"
    page.evaluate(
        "(code) => { jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}); }", code
    )
    end = time.monotonic() + _START_SECONDS
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    try:
        yield
    finally:
        file.unlink()


def cells(page: Page) -> int:
    return page.evaluate("jupyterapp.shell.currentWidget.content.model.cells.length")


def test_a_notebook_is_explored(notebook: Page, lab: str) -> None:
    first, second, failed = explorer(notebook), explorer(notebook, 1), explorer(notebook, 2)
    count = cells(notebook)
    # Keys are the explorer's, none the notebook's.
    first.root.scroll_into_view_if_needed()
    first.find(".steplist .step").filter(has_text="A3").click()
    first.type("a", "b", "x", "d", "d", "j", "j", "j", "j", "0", "0")
    letter = ".steplist [aria-selected=true] .letter"
    assert (first.find(letter).inner_text(), cells(notebook)) == ("B2", count)
    assert second.find(letter).inner_text() == "B2"
    second.press("k")
    assert (first.find(letter).inner_text(), second.find(letter).inner_text()) == ("B2", "B1.2")
    # A pinned line of the kernel.
    first.find(".source .l").filter(has_text="T.gemm(").click()
    assert "pinned" in first.find(".history").inner_text() or "L27" in first.find(".history").inner_text()
    assert first.lit(".diff")
    # The kernel answers: a run, a check of each step, another lowering.
    first.tab("Run")
    first.find("select[aria-label=backend]").select_option("interpreter")
    first.root.get_by_role("button", name="Run", exact=True).click()
    assert "PCC" in told_by_run(notebook)
    first.button("Check every step").click()
    first.find(".checks .card.good").wait_for()
    # Arrays of the notebook, by the name of their list.
    first.find(".runview select[aria-label=inputs]").select_option("yours")
    names = first.find(".runview [aria-label='names of notebook variables']")
    for given, told in (("mne", "did you mean mine?"), ("mine", "on interpreter, inputs mine")):
        names.fill(given)
        first.root.get_by_role("button", name="Run", exact=True).click()
        first.find(".result").filter(has_text=told).wait_for()
    first.type("d", "d")
    assert cells(notebook) == count
    first.tab("What if")
    first.find(".whatifview form").get_by_label("target").select_option("blackhole_p150")
    first.button("Lower and compare").click()
    first.find(".compared table").first.wait_for()
    assert "blackhole_p150" in first.find(".compared").inner_text()
    # A recorded run can be scrubbed through.
    first.tab("Buffers")
    first.button("Record a run").click()
    first.find(".timeline .lane").first.wait_for()
    moment = first.find(".timeline .tools .m")
    before = moment.inner_text()
    first.find(".scrubber").focus()
    for _ in range(5):
        notebook.keyboard.press("ArrowRight")
    assert moment.inner_text() != before
    # The lowering that fails shows the failed step.
    assert "of L1" in failed.find(".refusal .card.fault").inner_text()
    assert failed.find(".steplist [aria-selected=true] .bad").inner_text() == "✖"
    # Dark colours with the dark theme.
    light = first.root.evaluate("one => getComputedStyle(one).backgroundColor")
    change_theme(notebook, "Dark")
    notebook.wait_for_function(
        "(light) => getComputedStyle(document.querySelector('.ttx-explorer')).backgroundColor !== light", arg=light
    )
    change_theme(notebook, "Light")
    # Closed and opened again, while the kernel lives, the explorer comes back.
    save(notebook)
    again = open_again(notebook, lab)
    again.find(".timeline").wait_for()
    again.tab("Steps")
    again.press("j")
    # 15 steps, and the parts of A0.
    assert again.find(".steplist [role=option]").count() == sum(1 + len(step.parts) for step in PIPELINE)
    wait_until_seen(notebook, LIVE)


def test_a_notebook_is_opened_again_without_its_kernel(
    notebook: Page, lab: str, folder: Path, open_context: Open, tmp_path: Path
) -> None:
    explorer(notebook, 2)
    # One and the same exploration is shown by two cells; the third has failed.
    wait_until_seen(notebook, LIVE)
    save(notebook)
    notebook.close()
    shut_down_kernels(lab)
    # A new kernel knows nothing of the explorers: their pages are seen, and no error.
    page = new_page(open_context)
    open_notebook(page, lab)
    wait_until_seen(page, STILL)
    for theme in ("Light", "Dark"):
        change_theme(page, theme)
        page.screenshot(path=tmp_path / f"still_{theme.lower()}.png")
    # A cell that runs again is live again; the others stay.
    run(page, "notebook:run-cell")
    explorer(page)
    wait_until_seen(page, [*LIVE[:2], *STILL[2:]])
    page.screenshot(path=tmp_path / "live_dark.png")
    page.close()
    # A notebook from somebody else is not trusted: no widget, no style of ours, the page all the same.
    shut_down_kernels(lab)
    file = folder / "explorer.ipynb"
    theirs = json.loads(file.read_text(encoding="utf-8"))
    theirs["metadata"]["author"] = "somebody else"
    file.write_text(json.dumps(theirs), encoding="utf-8")
    page = page.context.new_page()
    open_notebook(page, lab)
    wait_until_seen(page, ["", "still"] * 3)
    page.screenshot(path=tmp_path / "untrusted_dark.png")


def test_an_explorer_stands_beside_its_notebook(notebook: Page, tmp_path: Path) -> None:
    first = explorer(notebook)
    first.find(".steplist .step").filter(has_text="C2").click()
    first.tab("Code")
    first.find(".badge").filter(has_text="µs").wait_for()
    assert first.root.evaluate("one => one.querySelector('header').scrollWidth <= one.clientWidth")
    first.button("beside").click()
    beside = notebook.locator(".ttx-filled .ttx-explorer")
    beside.wait_for()
    # Where the first one is, to the right of the notebook, and as large as its panel.
    assert beside.locator("[aria-label=views] [aria-selected=true]").inner_text() == "Code"
    notebook.wait_for_function("document.querySelector('.ttx-filled').getBoundingClientRect().width > 300")
    box, panel = beside.bounding_box(), notebook.locator(".ttx-filled").bounding_box()
    of_notebook = notebook.locator(".jp-NotebookPanel").bounding_box()
    assert box is not None
    assert of_notebook is not None
    assert panel is not None
    assert all(box[name] == pytest.approx(panel[name], abs=2) for name in ("x", "y", "width", "height"))
    assert box["x"] >= of_notebook["x"] + of_notebook["width"]
    assert box["width"] > 300
    assert beside.get_by_role("button", name="beside").count() == 0
    # One of both is enough: the first shows its head, until it is opened again.
    assert not first.find(".body").is_visible()
    assert (first.root.bounding_box() or {})["height"] < 80
    first.button("show here").click()
    assert first.find(".body").is_visible()
    notebook.screenshot(path=tmp_path / "beside.png")
    # It goes its own way, and Python answers it.
    beside.get_by_role("tab", name="Steps", exact=True).click()
    assert beside.locator(".stepchoice").evaluate("one => one.selectedOptions[0].text.split(' ')[1]") == "C2"
    beside.focus()
    notebook.keyboard.press("j")
    assert beside.locator(".stepchoice").evaluate("one => one.selectedOptions[0].text.split(' ')[1]") == "C3"
    assert first.find("[aria-label=views] [aria-selected=true]").inner_text() == "Code"
    beside.get_by_role("tab", name="Run", exact=True).click()
    beside.locator("select[aria-label=backend]").select_option("interpreter")
    beside.get_by_role("button", name="Run", exact=True).click()
    beside.locator(".result > div").wait_for()
    # JupyterLab's own view of the output opens where the reader was last.
    notebook.locator(".jp-NotebookPanel .jp-Cell").first.click(position={"x": 60, "y": 12})
    run(notebook, "notebook:create-output-view")
    notebook.locator(".jp-LinkedOutputView .ttx-explorer .runview").wait_for()
    notebook.screenshot(path=tmp_path / "output_view.png")


GONE = "the notebook's kernel restarted or ended: run the cell again"


def test_a_restart_of_the_kernel_is_told_at_once(notebook: Page, folder: Path, tmp_path: Path) -> None:
    """While a run waits for an answer: the explorer gives up, says what to do, and is there again with the cell."""
    first, second = explorer(notebook), explorer(notebook, 1)
    second.tab("What if")
    first.tab("Run")
    first.find("select[aria-label=backend]").select_option("interpreter")
    # The question stays with the kernel.
    with frozen(notebook, folder):
        first.root.get_by_role("button", name="Run", exact=True).click()
        first.root.get_by_role("button", name="Running …").wait_for()
        start = time.monotonic()
        notebook.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); 0")
        first.find(".banner").filter(has_text=GONE).wait_for()
        second.find(".banner").filter(has_text=GONE).wait_for()
        assert time.monotonic() - start < _AT_ONCE_SECONDS
    assert GONE in first.find(".result .card.fault").inner_text()
    for name in ("Run", "Check every step"):
        assert first.root.get_by_role("button", name=name, exact=True).is_disabled()
    assert first.root.get_by_role("button", name="Cancel").is_hidden()
    assert second.button("Lower and compare").is_disabled()
    assert second.find(".whatifview [aria-label=target]").is_disabled()
    assert f"Not available: {GONE}." in second.find(".whatifview form").inner_text()
    first.tab("Buffers")
    assert first.button("Record a run").is_disabled()
    for theme in ("Dark", "Light"):
        change_theme(notebook, theme)
        for tab in ("Buffers", "Run"):
            first.tab(tab)
            first.root.screenshot(path=tmp_path / f"restarted_{tab.lower()}_{theme.lower()}.png")
        second.root.screenshot(path=tmp_path / f"restarted_whatif_{theme.lower()}.png")
    # What needs no Python is there all the same.
    first.tab("Steps")
    first.press("j")
    assert first.lit(".diff") is not None
    # Run again, a new explorer is in its place.
    run(notebook, "notebook:run-all-cells")
    notebook.wait_for_function("() => !document.querySelector('.ttx-explorer .banner:not([hidden])')")
    wait_until_seen(notebook, LIVE)
    again = explorer(notebook)
    again.tab("Run")
    again.find("select[aria-label=backend]").select_option("interpreter")
    again.root.get_by_role("button", name="Run", exact=True).click()
    again.find(".result > div").wait_for()


AWAY = "there is no connection to the notebook's kernel"
# Once the lines to kernels are cut, new ones lead nowhere while the page is away.
_LINES = """
window.lines = [];
window.cut = () => { window.away = true; for (const line of lines.splice(0)) line.close(); };
window.WebSocket = class extends WebSocket {
  constructor(address, protocols) {
    const kernels = /channels/.test(address);
    super(window.away && kernels ? "ws://127.0.0.1:9999" : address, protocols);
    if (kernels) lines.push(this);
  }
};
"""


def test_what_was_asked_is_answered_when_a_lost_connection_is_back(lab: str, folder: Path, open_context: Open) -> None:
    page = new_page(open_context, "ERR_CONNECTION_REFUSED")
    page.add_init_script(_LINES)
    open_notebook(page, lab)
    run(page, "notebook:run-all-cells")
    first = explorer(page)
    first.tab("Run")
    first.find("select[aria-label=backend]").select_option("interpreter")
    # The question waits until Python has time, and by then nobody hears the answer.
    with frozen(page, folder):
        first.root.get_by_role("button", name="Run", exact=True).click()
        first.root.get_by_role("button", name="Running …").wait_for()
        page.evaluate("cut()")
        first.find(".banner").filter(has_text=AWAY).wait_for()
        assert not first.find(".result > div").count()
        for name in ("Running …", "Check every step"):
            assert first.root.get_by_role("button", name=name, exact=True).is_disabled()
        first.tab("Steps")
        first.press("j")
        assert first.lit(".diff") is not None
    page.wait_for_timeout(3000)
    page.evaluate("window.away = false")
    page.wait_for_function("() => !document.querySelector('.ttx-explorer .banner:not([hidden])')")
    first.tab("Run")
    first.find(".result > div").wait_for()
    # And the next question, too.
    first.find(".result").evaluate("one => one.replaceChildren()")
    first.root.get_by_role("button", name="Run", exact=True).click()
    first.find(".result > div").wait_for()


def simulations() -> list[int]:
    """The processes of this machine that simulate the spinning kernel."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"/runner-" in words[0] and SPINNING.encode() in (folder / "cwd" / "job.txt").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


# Among the declarations of a simulation, which name the tensors: only this one's has such.
SPINNING = "tensor Spinning "


def wait_until_gone() -> None:
    end = time.monotonic() + _AT_ONCE_SECONDS
    while simulations():
        assert time.monotonic() < end
        time.sleep(0.02)


def spin(explorer: ExplorerPage) -> None:
    """Runs a kernel that has been edited to a loop without an end, and waits until its process is there."""
    explorer.tab("Code")
    explorer.file("compute.cpp").get_by_role("button", name="edit compute.cpp").click()
    editor = explorer.find("textarea[aria-label='compute.cpp, edited']")
    start = "void kernel_main() {"
    editor.fill(editor.input_value().replace(start, f"{start}\n    for (volatile int i = 0;;) {{}}"))
    explorer.tab("Run")
    explorer.root.get_by_role("button", name="Run", exact=True).click()
    explorer.root.get_by_role("button", name="Running …").wait_for()
    explorer.find(".runview .busy [role=status]").filter(has_text="simulating 1 core").wait_for()
    end = time.monotonic() + _AT_ONCE_SECONDS
    # The program, and the process that ends it with its parent.
    while len(simulations()) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(simulations()) == 2


@pytest.mark.thorough
def test_a_kernel_that_spins_is_cancelled_at_once(lab: str, folder: Path, open_context: Open) -> None:
    """While a cell runs, too; by a page that has been loaded again; and with the notebook's kernel it ends itself."""
    source = (
        "import ttexplore as ttx\nimport ttexplore.language as T\n\n@T.prim_func\n"
        "def copy(Spinning: T.Tensor((32, 32)), B: T.Tensor((32, 32))):\n"
        "    with T.Kernel(1):\n        a = T.alloc_shared((32, 32))\n"
        "        T.copy(Spinning, a)\n        T.copy(a, B)\n\nttx.explore(copy)"
    )
    file = json.loads((folder / "explorer.ipynb").read_text(encoding="utf-8"))
    file["cells"] = [{**file["cells"][0], "outputs": [], "source": source}]
    (folder / "spinning.ipynb").write_text(json.dumps(file), encoding="utf-8")
    page = new_page(open_context)
    open_notebook(page, lab, "spinning.ipynb")
    run(page, "notebook:run-all-cells")
    shown = explorer(page)
    spin(shown)
    page.evaluate(
        "jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute("
        "{code: 'import time\\nfor _ in range(400): time.sleep(0.01)'}); 0"
    )
    shown.button("Cancel").click()
    wait_until_gone()
    shown.find(".result .card.fault").filter(has_text="the run was cancelled").wait_for()
    # Its limit ends it as well, and says so.
    shown.find(".runview [aria-label^='time limit']").fill("1")
    shown.root.get_by_role("button", name="Run", exact=True).click()
    shown.find(".result .card.fault").filter(
        has_text="within the time limit of 1 seconds: the compute kernel"
    ).wait_for()
    assert simulations() == []
    # The page is loaded again, and knows of the run that goes on.
    shown.find(".runview [aria-label^='time limit']").fill("")
    shown.root.get_by_role("button", name="Run", exact=True).click()
    shown.find(".runview .busy [role=status]").filter(has_text="simulating 1 core").wait_for()
    save(page)
    again = open_again(page, lab, "spinning.ipynb")
    again.tab("Run")
    again.button("Cancel").click()
    wait_until_gone()
    again.find(".result .card.fault").filter(has_text="the run was cancelled").wait_for()
    assert again.find(".runview .busy").is_hidden()
    # Nothing is left of all that: the next run passes.
    again.root.get_by_role("button", name="Run", exact=True).click()
    # Until then, the card of the run before stands there.
    told = told_by_run(page)
    assert "passed" in told
    assert "of this machine's time" in told
    # A restarted kernel takes its processes with it.
    spin(again)
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); 0")
    again.find(".banner").filter(has_text=GONE).wait_for()
    wait_until_gone()


@pytest.mark.thorough
def test_a_kernel_that_is_shut_down_is_told_at_once(notebook: Page) -> None:
    first = explorer(notebook)
    notebook.evaluate(
        "window.ending = jupyterapp.shell.currentWidget.sessionContext.session.kernel;"
        "jupyterapp.commands.execute('kernelmenu:shutdown'); 0"
    )
    # Until then, the server waits for the kernel to end.
    notebook.wait_for_function("() => ending.isDisposed")
    start = time.monotonic()
    first.find(".banner").filter(has_text=GONE).wait_for()
    assert time.monotonic() - start < _AT_ONCE_SECONDS
    first.tab("Run")
    assert first.root.get_by_role("button", name="Run", exact=True).is_disabled()
    # With a new kernel and the cells run again all is well.
    notebook.evaluate("jupyterapp.shell.currentWidget.sessionContext.startKernel(); 0")
    run(notebook, "notebook:run-all-cells")
    notebook.wait_for_function("() => !document.querySelector('.ttx-explorer .banner:not([hidden])')")
    wait_until_seen(notebook, LIVE)


@pytest.mark.thorough
def test_a_kernel_that_ends_by_itself_is_told(notebook: Page) -> None:
    first = explorer(notebook)
    notebook.evaluate(
        "jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute("
        "{code: 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)'}); 0"
    )
    first.find(".banner").filter(has_text=GONE).wait_for()
    notebook.locator(".jp-Dialog .jp-mod-accept").click()
    first.tab("Run")
    assert first.root.get_by_role("button", name="Run", exact=True).is_disabled()


@pytest.mark.thorough
def test_a_kernel_is_broken_and_mended(notebook: Page) -> None:
    """Typed with JupyterLab's own keys around it, run on the emulator, mended by the fix that was tried."""
    shown = explorer(notebook)
    shown.tab("Code")
    pane = shown.file("compute.cpp")
    pane.get_by_role("button", name="edit compute.cpp").click()
    field = pane.locator("textarea")
    text = field.input_value()
    before = cells(notebook)
    lines = text.split("\n")
    position = next(i for i, line in enumerate(lines) if ".push_back(" in line)
    # Long lines wrap, so arrows go over more rows than there are lines.
    field.evaluate("(field, at) => field.setSelectionRange(at, at)", len("\n".join(lines[:position])) + 1)
    shown.type("Control+]", "Control+[")
    assert field.input_value() == text
    assert pane.locator(".text > .at").text_content() == lines[position]
    shown.type("Shift+End", "Delete")
    assert field.input_value().split("\n") == [*lines[:position], "", *lines[position + 1 :]]
    # What is seen lies where it is typed, whatever JupyterLab's style says of such fields.
    assert field.evaluate(
        """field => {
            const heights = [...field.previousSibling.children].map((row) => row.getBoundingClientRect().height);
            field.style.height = 0;
            const typed = field.scrollHeight;
            field.style.height = "";
            return typed - Math.round(heights.reduce((sum, one) => sum + one));
        }"""
    ) == 0  # fmt: skip
    shown.type("Tab")
    assert not field.evaluate("one => one === document.activeElement")
    shown.tab("Run")
    shown.find("select[aria-label=backend]").select_option("emulator")
    shown.button("Run").click()
    shown.button("Apply this fix").click()
    shown.find(".result").get_by_role("button", name="compute.cpp line").first.click()
    assert sorted(field.input_value().split("\n")) == sorted([*lines, ""])
    shown.tab("Run")
    shown.button("Run").click()
    shown.find(".result").filter(has_text="PASS").wait_for()
    assert cells(notebook) == before


@pytest.mark.thorough
def test_a_kernel_is_edited_and_its_cell_runs_again(notebook: Page, record_property: Any) -> None:
    first = explorer(notebook)
    first.root.scroll_into_view_if_needed()
    first.find(".steplist .step").filter(has_text="D3").click()
    chosen = first.step()
    first.find(".source .l").filter(has_text="C_local = ").click()
    pinned = first.find(".history b").inner_text()
    facts = first.head()
    first.press("e")
    field = first.root.get_by_role("textbox", name="kernel, edited").locator("visible=true")
    field.evaluate(
        "one => { const at = one.value.indexOf('block_K=32') + 9; one.setSelectionRange(at - 1, at + 1); one.focus(); }"
    )
    # Typed keys, among them those that are commands of the notebook.
    count = cells(notebook)
    first.type("Delete", "6", "4")
    start = time.monotonic()
    edited = first.new_head(facts)
    record_property("seconds from the last key to the new counts", time.monotonic() - start)
    print(f"new counts {time.monotonic() - start:.2f} s after the last key")
    assert (first.step(), first.find(".history b").inner_text(), cells(notebook)) == (chosen, pinned, count)
    # An error leaves that in sight; a text that is right again is lowered.
    first.type("(")
    notebook.locator(".ttx-explorer.outdated .text [data-mark=error]").wait_for()
    assert first.head() == edited
    first.type("Backspace")
    first.find(".draft [role=status]:visible").filter(has_text="edited; source unchanged").wait_for()
    # This kernel stands in a file.
    assert not first.button("write to cell").count()
    # The cell runs again: its text, in the same place.
    first.tab("Code")
    first.file("writer.cpp").wait_for()
    first.root.evaluate("one => { one.dataset.old = 1; }")
    notebook.locator(".jp-NotebookPanel .jp-Cell").first.click(position={"x": 60, "y": 12})
    run(notebook, "notebook:run-cell")
    notebook.wait_for_function("() => document.querySelector('.ttx-explorer:not([data-old]) .codeview')")
    again = ExplorerPage(notebook, {})
    assert again.find("[aria-label=views] [aria-selected=true]").inner_text() == "Code"
    assert again.find(".files [role=tab][aria-selected=true]").inner_text().startswith("writer.cpp")
    assert "block_K=32" in again.find(".codeview .rows").first.inner_text()
    again.tab("Steps")
    assert (again.step(), again.find(".history b").inner_text()) == (chosen, pinned)
    assert again.head() == facts


def test_an_edited_kernel_is_written_into_its_cell(lab: str, folder: Path, open_context: Open) -> None:
    kernel = """
    @T.prim_func
    def scaled(A: T.Tensor((32, 64)), B: T.Tensor((32, 64))):
        with T.Kernel(2) as b:
            a = T.alloc_fragment((32, 32))
            T.copy(A[0, b * 32], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * 2
            T.copy(a, B[0, b * 32])
"""
    sources = [
        "import ttexplore as ttx\nimport ttexplore.language as T\n",
        f"def factory():{kernel}    return scaled\n\nex = ttx.explore(factory())\nex",
    ]
    file = json.loads((folder / "explorer.ipynb").read_text(encoding="utf-8"))
    cell = file["cells"][0]
    file["cells"] = [{**cell, "id": f"w{n}", "outputs": [], "source": source} for n, source in enumerate(sources)]
    (folder / "written.ipynb").write_text(json.dumps(file), encoding="utf-8")
    page = new_page(open_context)
    open_notebook(page, lab, "written.ipynb")
    run(page, "notebook:run-all-cells")
    shown = explorer(page)
    shown.press("e")
    assert shown.button("write to cell").is_hidden()
    field = shown.root.get_by_role("textbox", name="kernel, edited").locator("visible=true")
    field.evaluate(
        "one => { const at = one.value.indexOf('* 2') + 2; one.setSelectionRange(at, at + 1); one.focus(); }"
    )
    shown.type("3")
    shown.find(".draft [role=status]:visible").filter(has_text="edited; source unchanged").wait_for()
    shown.button("write to cell").click()
    cells_now = "[...jupyterapp.shell.currentWidget.context.model.cells].map((one) => one.sharedModel.source)"
    written = page.evaluate(cells_now)
    assert written == [sources[0], sources[1].replace("* 2", "* 3")]
    assert shown.button("write to cell").is_hidden()
    assert shown.button("undo all").is_hidden()
    # A cell that has become another one is left alone.
    page.evaluate("[...jupyterapp.shell.currentWidget.context.model.cells][1].sharedModel.source = 'other = 1'")
    assert shown.button("edit the kernel").evaluate("one => one === document.activeElement")
    field.focus()
    shown.type("4")
    shown.find(".draft [role=status]:visible").filter(has_text="edited; source unchanged").wait_for()
    assert shown.button("write to cell").is_hidden()
    # What was written runs.
    page.evaluate(
        "(text) => { [...jupyterapp.shell.currentWidget.context.model.cells][1].sharedModel.source = text; }",
        written[1],
    )
    shown.root.evaluate("one => { one.dataset.old = 1; }")
    run(page, "notebook:run-all-cells")
    page.wait_for_function("() => document.querySelector('.ttx-explorer:not([data-old]) .source .rows')")
    assert "* 3" in ExplorerPage(page, {}).find(".source .rows").inner_text()
