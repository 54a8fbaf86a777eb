"""Saved explorations that somebody has changed: damaged zips, wrong JSON, strange names and numbers.

Each is loaded, shown, exported, reported, saved and (some) run. Only errors of ours may come out, nothing may be
written outside of the given folder, and all of it takes bounded time and memory. ``python -m tests.hostile_files N``
tries N of them.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import ttexplore as ttx
from tests.corpus import gemm
from ttexplore.errors import TTExploreError
from ttexplore.session.store import SavedExploration

NAMES = [
    "../own", "/tmp/own", "..\\own", "C:\\own", "own\0", "", ".", "..", "a/b", "reader.cpp/", "READER.CPP", "Makefile",
    "~/own", "\ud800", "x" * 10_000,
]  # fmt: skip
NUMBERS: list[Any] = [
    0, -1, 1, 2, 31, 33, 255, 65_536, 2**31, 2**32, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308,
    float("inf"), float("nan"), True, "7",
]  # fmt: skip
VALUES: list[Any] = [None, [], {}, "", "x", [[]], [None], {"a": 1}, *NUMBERS, *NAMES, "\ud800", "<script>", "a\nb"]


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a change can be made: a container and a key, by path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def changed_json(data: Any, known: list[tuple[Any, ...]], draw: random.Random) -> None:
    """Changes one place of `data`."""
    path = draw.choice(known)
    place = data
    try:
        for key in path[:-1]:
            place = place[key]
        old = place[path[-1]]
    except (LookupError, TypeError):
        return
    if not isinstance(place, dict | list):
        return
    key = path[-1]
    match draw.randrange(7):
        case 0:
            del place[key]
        case 1:
            place[key] = draw.choice(VALUES)
        case 2 if isinstance(old, int | float):
            place[key] = draw.choice(NUMBERS)
        case 3 if isinstance(old, str):
            place[key] = draw.choice([*NAMES, old[: len(old) // 2], old * 2, old + "\ud800", old.upper()])
        case 4 if isinstance(place, dict):
            place[draw.choice(NAMES)] = old
        case 5 if isinstance(old, list) and old:
            place[key] = draw.choice([old[1:], old[::-1], old * 2, old[:1]])
        case _:
            place[key] = draw.choice([draw.choice(VALUES), deep(draw.choice([10, 200, 900]))])


class Attacker:
    """Makes hostile files of an exploration that was saved, each by its seed."""

    def __init__(self, saved: Path) -> None:
        self.members = members_of(saved)
        self.places = {
            name: sorted(places(json.loads(self.members[name])), key=str) for name in ("ttx.json", "trace.json")
        }
        # Nearly all places are those of lines; others are tried as often.
        self.few = [path for path in self.places["trace.json"] if "lines" not in path]

    def file(self, seed: int) -> bytes:
        draw = random.Random(seed)
        members = dict(self.members)
        kind = draw.randrange(10)
        if kind < 7:
            name = "ttx.json" if kind == 0 else "trace.json"
            data = json.loads(members[name])
            known = self.few if name == "trace.json" and kind < 6 else self.places[name]
            for _ in range(draw.choice([1, 1, 1, 2, 5])):
                changed_json(data, known, draw)
            members[name] = json.dumps(data).encode("utf-8", "surrogatepass")
        elif kind == 7:
            name = draw.choice(list(members))
            content = bytearray(members[name])
            match draw.randrange(4):
                case 0:
                    del members[name]
                case 1:
                    members[name] = bytes(content[: draw.randrange(len(content))])
                case 2:
                    for _ in range(draw.randrange(1, 20)):
                        content[draw.randrange(len(content))] = draw.randrange(256)
                    members[name] = bytes(content)
                case _:
                    members[name] = draw.choice(
                        [b"", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 100_000, b" " * (65 << 20)]
                    )
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(name, content)
            if draw.random() < 0.05:
                file.writestr("../own", b"text")
        content = bytearray(packed.getvalue())
        if kind == 8:
            for _ in range(draw.randrange(1, 20)):
                content[draw.randrange(len(content))] = draw.randrange(256)
        if kind == 9:
            del content[draw.randrange(len(content)) :]
        return bytes(content)


def uses(saved: SavedExploration, folder: Path, *, run: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All that is done with an opened file."""
    yield "text", lambda: (str(saved), repr(saved), saved._repr_html_())
    yield "data", lambda: (saved.data, saved.backends, saved.missing, saved.option_forms)
    yield "steps", lambda: [(str(s), str(s.diff()), s._repr_html_(), s.plan, s.options, s.error) for s in saved.steps]
    yield "code", lambda: [(str(one), one._repr_html_()) for one in saved.code.values()]
    yield "history", lambda: saved.history(saved.kernel.first_line + 3)
    yield "find", lambda: saved.find("reader")
    yield "core map", lambda: saved.core_map
    yield "work map", lambda: saved.work_map
    yield "dataflow", lambda: saved.dataflow
    yield "L1 map", lambda: saved.l1_map
    yield "dot", lambda: (saved.dot(), saved.dot("passes"))
    yield "export", lambda: saved.export(folder / "out", dot=True)
    yield "report", lambda: saved.report(folder / "report.html", run=False)
    yield "save", lambda: saved.save(folder / "again.ttx")
    yield "inputs", lambda: saved.inputs()
    yield "compare", lambda: ttx.compare(saved, saved)
    if run:
        yield "run", lambda: saved.run(time_limit_seconds=5)
        yield "timeline", lambda: saved.timeline()


def attack(content: bytes, folder: Path, *, run: bool) -> tuple[Counter[str], list[str]]:
    """What became of each use of a file, and what must not have happened."""
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    file = folder / "hostile.ttx"
    file.write_bytes(content)

    def tried(what: str, use: Callable[[], Any]) -> Any:
        start = time.monotonic()
        try:
            made = use()
        except TTExploreError as error:
            ends[f"{what} refused"] += 1
            str(error)
            return None
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {error}"[:300])
            return None
        finally:
            if (seconds := time.monotonic() - start) > 120:
                wrong.append(f"{what}: took {seconds:.0f} s")
        ends[f"{what} done"] += 1
        return made

    saved = tried("load", lambda: ttx.load(file))
    if saved is not None:
        for what, use in uses(saved, folder, run=run):
            tried(what, use)
    return ends, wrong


EXPECTED = {"hostile.ttx", "again.ttx", "report.html", "out"}


def outside(folder: Path) -> list[str]:
    """What was written elsewhere: `folder` is in an empty one."""
    strange = [path.name for path in folder.iterdir() if path.name not in EXPECTED]
    strange += [path.name for path in folder.parent.iterdir() if path != folder]
    return strange + [name for name in ("/tmp/own", "/own") if Path(name).exists()]


def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        attacker = Attacker(ttx.explore(gemm(64, 64, 64, 32, 32, 32)).save(Path(name) / "gemm.ttx"))
    ends: Counter[str] = Counter()
    failures = 0
    for seed in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "inner"
            folder.mkdir()
            told, wrong = attack(attacker.file(seed), folder, run=seed % 20 == 0)
            wrong += [f"wrote {one}" for one in outside(folder)]
        ends += told
        failures += bool(wrong)
        for one in wrong:
            print(f"seed {seed}: {one}", flush=True)
    print(dict(sorted(ends.items())))
    print(f"{failures} of {count} files did what they must not; {getrusage(RUSAGE_SELF).ru_maxrss >> 10} MiB at most")
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]))))
