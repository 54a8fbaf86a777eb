"""One kernel of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A kernel by name, a function that makes it, and the options that it is lowered with.

    `on_chip` says that the device tests run it on a simulated chip too: a sample of each construct, for its time.
    """

    name: str
    make: Callable[[], Any]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_chip: bool = True
