"""Files appear whole, those of an export together, and nowhere else, whatever goes wrong meanwhile."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from ttexplore.course.freezing import freeze
from ttexplore.errors import UsageError
from ttexplore.files import write_file, write_files
from ttexplore.plan import EXPORTED_FILES
from ttexplore.session.archive import read_archive

NAMES = [f"file{number}.txt" for number in range(6)]
OLD = {name: f"old {name}" for name in NAMES}
NEW = {name: f"new {name}" for name in [*NAMES, "another.txt"]}
SPAWN = multiprocessing.get_context("fork")


def texts(folder: Path) -> dict[str, str]:
    """What is in a folder, without what writing leaves behind for the next one."""
    return {file.name: file.read_text() for file in folder.iterdir() if not file.name.startswith(".ttexplore-")}


# Names


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../a", "/etc/a", "a/b", "a/", "..\\a", "a\\b", "C:a", "a\0b", "a\nb", "a ", " a", "a.", ".a",
        "~", "~/a", "-a", "nul", "NUL.cpp", "com1", "a:b", "é", "a" * 65, "\u202ea", "a..b", "$HOME", "*",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name for an export") as caught:
        write_files({"reader.cpp": "good", name: "bad"}, tmp_path / "out")
    assert caught.value.hint
    assert list(tmp_path.rglob("*")) == []


def test_two_names_that_some_systems_take_for_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"two exported files are named 'READER\.cpp'") as caught:
        write_files({"reader.cpp": "", "READER.cpp": ""}, tmp_path)
    assert caught.value.hint == "use names that differ in more than case"


def test_every_exported_name_is_one(tmp_path: Path) -> None:
    exploration = ttx.explore(gemm(64, 64, 64, 32, 32, 32))
    assert tuple(exploration.files) == EXPORTED_FILES
    written = exploration.export(tmp_path / "out", dot=True)
    assert [path.name for path in written] == [*EXPORTED_FILES, "dataflow.dot", "passes.dot"]
    assert texts(tmp_path / "out").keys() == {path.name for path in written}


# Several files


def test_an_export_replaces_what_it_writes_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("own")
    (tmp_path / "elsewhere").write_text("not of the export")
    (tmp_path / NAMES[0]).symlink_to(tmp_path / "elsewhere")
    write_files(OLD, tmp_path)
    assert write_files(NEW, tmp_path) == [tmp_path / name for name in NEW]
    assert texts(tmp_path) == {**NEW, "own.txt": "own", "elsewhere": "not of the export"}
    assert not (tmp_path / NAMES[0]).is_symlink()
    assert len(os.listdir(tmp_path)) == len(NEW) + 2
    assert stat.S_IMODE((tmp_path / NAMES[0]).stat().st_mode) == stat.S_IMODE((tmp_path / "own.txt").stat().st_mode)


CALLS = ("mkdir", "rename", "replace", "open", "fsync", "unlink")


def count_calls(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> Callable[[], int]:
    """Calls `act` with a number before each call of the system that writing makes."""
    calls = 0

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def one(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            act(calls)
            return call(*arguments, **options)

        return one

    for name in CALLS:
        monkeypatch.setattr(os, name, wrapped(getattr(os, name)))
    return lambda: calls


def calls_of_an_export(folder: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        counted = count_calls(patch, lambda number: None)
        write_files(NEW, folder)
        return counted()


def error_of(folder: Path) -> UsageError | None:
    try:
        write_files(NEW, folder)
    except UsageError as error:
        return error
    return None


def test_an_export_that_fails_anywhere_is_undone(tmp_path: Path) -> None:
    """Whichever call of the system is refused: the folder has all of the old files or all of the new ones."""
    write_files(OLD, tmp_path / "count")
    calls = calls_of_an_export(tmp_path / "count")
    assert calls > 30
    told = 0
    for failing in range(1, calls + 1):
        folder = tmp_path / str(failing)
        write_files(OLD, folder)

        def refuse(number: int, failing: int = failing) -> None:
            if number == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.MonkeyPatch.context() as patch:
            count_calls(patch, refuse)
            error = error_of(folder)
        if error is not None:
            told += 1
            assert error.message == f"{folder} cannot be written: No space left on device"
            assert "free space" in error.hint
        assert texts(folder) == (NEW if error is None else OLD), failing
        assert write_files(NEW, folder)
        assert sorted(os.listdir(folder)) == sorted(NEW)
    assert told > 20


def killed_after(folder: str, calls: int) -> None:
    def kill(number: int) -> None:
        if number == calls:
            os.kill(os.getpid(), 9)

    with pytest.MonkeyPatch.context() as patch:
        count_calls(patch, kill)
        write_files(NEW, folder)


def test_a_process_that_is_killed_leaves_no_mixture(tmp_path: Path) -> None:
    """Killed at any call of the system: the files that are there are of one export, and the next export is whole."""
    write_files(OLD, tmp_path / "count")
    whole = 0
    calls = calls_of_an_export(tmp_path / "count")
    for last in range(1, calls + 1):
        folder = tmp_path / str(last)
        write_files(OLD, folder)
        child = SPAWN.Process(target=killed_after, args=(str(folder), last))
        child.start()
        child.join(60)
        assert child.exitcode == -9
        left = texts(folder)
        assert left.items() <= OLD.items() or left.items() <= NEW.items(), last
        whole += left in (OLD, NEW)
        # An export that is refused leaves one of the two, whole.
        (folder / "blocked.txt").mkdir()
        with pytest.raises(UsageError, match=r"blocked\.txt is a folder"):
            write_files({**NEW, "blocked.txt": ""}, folder)
        (folder / "blocked.txt").rmdir()
        assert texts(folder) in (OLD, NEW), last
        write_files(OLD, folder)
        assert {name: text for name, text in texts(folder).items() if name in OLD} == OLD
    assert whole > calls // 2


def test_exports_at_once_take_turns(tmp_path: Path) -> None:
    """Of processes and of threads: the folder always has the files of one of them."""
    sets = [{name: f"{number} {name}" for name in NAMES} for number in range(4)]

    def write(number: int) -> None:
        for _ in range(20):
            write_files(sets[number], tmp_path)

    children = [SPAWN.Process(target=write, args=(number,)) for number in (0, 1)]
    threads = [threading.Thread(target=write, args=(number,)) for number in (2, 3)]
    for one in (*children, *threads):
        one.start()
    for one in (*children, *threads):
        one.join(60)
    assert [child.exitcode for child in children] == [0, 0]
    assert texts(tmp_path) in sets
    assert sorted(os.listdir(tmp_path)) == NAMES


def test_a_folder_in_a_files_place_is_named(tmp_path: Path) -> None:
    write_files(OLD, tmp_path)
    (tmp_path / NAMES[3]).unlink()
    (tmp_path / NAMES[3] / "inside").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"cannot be written: file3\.txt is a folder") as caught:
        write_files(NEW, tmp_path)
    assert "move the folder away" in caught.value.hint
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)
    assert (tmp_path / NAMES[0]).read_text() == OLD[NAMES[0]]


def test_staging_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "old").mkdir(parents=True)
    (tmp_path / "elsewhere" / "old" / "file").write_text("own")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".ttexplore-export").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is in the way"):
        write_files(NEW, tmp_path / "out")
    assert (tmp_path / "elsewhere" / "old" / "file").read_text() == "own"


@pytest.mark.parametrize("make", ["link", "hidden", "folder"])
def test_staging_that_no_export_left_is_not_moved(tmp_path: Path, make: str) -> None:
    """As in a folder that was unpacked from somebody's archive: a link to the user's files, a name of another."""
    out, own = tmp_path / "out", tmp_path / "own"
    own.mkdir()
    (own / "file").write_text("own")
    staging = out / ".ttexplore-export"
    (staging / "complete").mkdir(parents=True)
    (out / ".profile").write_text("own")
    match make:
        case "link":
            (staging / "new").symlink_to(own)
        case "hidden":
            (staging / "new").mkdir()
            (staging / "new" / ".profile").write_text("theirs")
        case _:
            (staging / "new" / "file").mkdir(parents=True)
    with pytest.raises(UsageError, match="ttexplore-export is in the way"):
        write_files(NEW, out)
    assert (own / "file").read_text() == "own"
    assert (out / ".profile").read_text() == "own"
    assert sorted(os.listdir(out)) == [".profile", ".ttexplore-export"]


@pytest.mark.parametrize("make", [lambda lock: lock.mkdir(), lambda lock: lock.symlink_to("elsewhere")])
def test_a_lock_that_no_export_left_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / ".ttexplore-lock")
    with pytest.raises(UsageError, match="ttexplore-lock is in the way"):
        write_files(NEW, tmp_path)
    assert os.listdir(tmp_path) == [".ttexplore-lock"]


# One file


def test_a_file_keeps_its_permissions_and_links(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "page.html").chmod(0o640)
    (tmp_path / "link").symlink_to("page.html")
    assert write_file(tmp_path / "link", "new") == tmp_path / "link"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "page.html").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o640
    assert len(os.listdir(tmp_path)) == 2


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_file(tmp_path / "pipe", "text")
    reader.join(60)
    assert got == ["text"]
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("path", ["folder", "missing/file", "nul\0", "own/file", "a" * 300])
def test_what_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "own").write_text("own")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_file(path, "text")
    assert (tmp_path / "own").read_text() == "own"
    assert sorted(os.listdir(tmp_path)) == ["folder", "own"]


@pytest.mark.parametrize("path", ["", 3, None, True, b"x", ["x"], 1.5], ids=repr)
def test_what_is_no_path_is_refused_where_files_are_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (
        lambda: write_files(NEW, path),
        lambda: write_file(path, ""),
        lambda: ttx.load(path),
        lambda: freeze(path),
    ):
        with pytest.raises(UsageError, match=r"^the (file|folder|notebook) is ") as caught:
            use()
        assert "takes a path" in caught.value.hint
        assert caught.value.code == "TTX-U010"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("read", [ttx.load, freeze])
@pytest.mark.parametrize("path", ["a" * 300, "nul\0"])
def test_a_name_that_no_file_has_is_no_file(read: Callable[[str], object], path: str) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read(path)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("missing/file", "create its parent folder"),
        ("own/file", "choose another name"),
        ("a" * 300, "choose a shorter name"),
    ],
)
def test_what_to_do_about_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").write_text("own")
    with pytest.raises(UsageError, match="cannot be written") as caught:
        write_file(path, "text")
    assert hint in caught.value.hint


def test_text_that_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    assert write_file(tmp_path / "file", "a\udcffb").read_bytes() == b"a\\udcffb"


@pytest.mark.parametrize("what", ["save", "report", "graph", "freeze"])
def test_the_old_file_outlives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    exploration = ttx.explore(gemm(64, 64, 64, 32, 32, 32))
    file = tmp_path / "file.ipynb"
    view = {"application/vnd.jupyter.widget-view+json": {}, "text/html": ""}
    old = json.dumps({"cells": [{"outputs": [{"data": view}]}], "metadata": {}})
    file.write_text(old)
    write = {
        "save": lambda: exploration.save(file), "report": lambda: exploration.report(file, run=False),
        "graph": lambda: exploration.dot().save(file), "freeze": lambda: freeze(file),
    }[what]  # fmt: skip

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="cannot be written: No space left on device"):
            write()
    assert file.read_text() == old
    assert os.listdir(tmp_path) == ["file.ipynb"]
    write()
    assert file.read_text(errors="replace") != old


def test_saves_at_once_leave_one_of_them(tmp_path: Path) -> None:
    one, other = ttx.explore(gemm(64, 64, 64, 32, 32, 32)), ttx.explore(gemm(32, 32, 32, 32, 32, 32))
    file = tmp_path / "gemm.ttx"

    def save(exploration: Any) -> None:
        for _ in range(10):
            exploration.save(file)
            assert read_archive(file).trace in (one.trace, other.trace)

    errors: list[BaseException] = []

    def thread(exploration: Any) -> None:
        try:
            save(exploration)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(exploration,)) for exploration in (one, other)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert errors == []
    assert os.listdir(tmp_path) == ["gemm.ttx"]


def test_a_notebook_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "list.ipynb").write_text("[]")
    (tmp_path / "deep.ipynb").write_text("[" * 100_000)
    for name in ("list.ipynb", "deep.ipynb"):
        with pytest.raises(UsageError, match="is not a notebook"):
            freeze(tmp_path / name)
