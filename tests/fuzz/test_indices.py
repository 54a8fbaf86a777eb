"""Some random index expressions, always the same ones; ``python -m tests.fuzz.indices`` checks other ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.indices import Fault, Item, check, expected, search, value
from ttexplore.backends.emulator import Emulator
from ttexplore.passes import verify


def test_interpreter_and_emulator_agree_on_every_index() -> None:
    told, faults = search(32, 0, 16, types_every=2)
    assert not faults, "\n\n".join(faults)
    assert told[""] >= 30, told


def test_truth() -> None:
    """What expressions are held to, by hand."""
    assert value("(bx - 3) // 2 % 5", bx=0) == 3
    assert value("T.truncdiv(bx - 3, 2)", bx=0) == -1
    assert value("T.truncmod(bx - 3, 2)", bx=0) == -1
    item = Item("T.max(k, 0)", ("bx - 2", "bx"), "copy")
    assert item.pages(1)[3] == item.pages(1)[0] == 0
    assert expected([item]).shape == (5 * 4 * 32, 32)


def test_a_wrong_index_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = Item("T.max(bx - 2, 0)", None, "copy")
    assert check([item], tmp_path, Emulator(event_limit=0)) == ""
    monkeypatch.setattr(Item, "pages", lambda self, bx: [bx, *[float("nan")] * 3])
    with pytest.raises(Fault, match="the interpreter at A0: Item"):
        check([item], tmp_path, Emulator(event_limit=0))


def test_a_mistake_of_the_lowering_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("of its own")

    monkeypatch.setattr(verify, "check_handshake", fail)
    with pytest.raises(Fault, match=r"TTX-V060 .*ValueError: of its own"):
        check([Item("bx", None, "copy")], tmp_path, Emulator(event_limit=0))
