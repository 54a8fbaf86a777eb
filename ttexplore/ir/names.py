"""Names of what a pass makes: the wanted one, with a number where it is taken."""

from __future__ import annotations

from collections.abc import Container

# The buffer that is all of DST, once values have their places in it.
DST = "dst"


def unused_name(name: str, used: Container[str]) -> str:
    """`name`, or one of ``wanted_2``, ``wanted_3``, ... that is not `used`."""
    if name not in used:
        return name
    # Numbers are given one after another, so a search by halves finds one that is free, and mostly the first.
    taken_number, number = 1, 2
    while f"{name}_{number}" in used:
        taken_number, number = number, number + 1 if number < 16 else number * 2
    while number - taken_number > 1:
        middle = (taken_number + number) // 2
        if f"{name}_{middle}" in used:
            taken_number = middle
        else:
            number = middle
    return f"{name}_{number}"
