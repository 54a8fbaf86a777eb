"""How often all cores execute each operation: the numbers of a compiler that runs the emitted loops and branches."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus.explored import explored
from ttexplore.emit.kernels import emitted_parts
from ttexplore.exploration import Exploration
from ttexplore.ops.functions import FUNCTIONS
from ttexplore.plan import KERNEL_ROLES, KernelRole
from ttexplore.record import EmittedPart

HARNESS = """\
#include <cstdint>
#include <cstdio>
#include <map>
static const uint32_t* arguments;
static std::map<int, long> hits;
template <typename T> static T get_arg_val(int n) { return static_cast<T>(arguments[n]); }
"""
CONTROL = re.compile(r"const|for|if|\{$")
NAMES = (
    "turns_causal_factor", "work_lists", "rectangles_column_major", "multicast_uneven", "while_stream_k",
    "split_k_over_the_noc_with_tails", "turns_chosen",
)  # fmt: skip


def parts_of(exploration: Exploration, role: KernelRole) -> list[EmittedPart]:
    found = emitted_parts(exploration.steps[-1].after.functions, exploration.plan)
    return [part for part in found if part.role == role]


def hitting(exploration: Exploration, role: KernelRole, parts: list[EmittedPart]) -> Iterator[str]:
    """The kernel's loops, branches and numbers, with a count in place of each operation."""
    operations = {line for part in parts if part.kind == "operation" for line in part.lines}
    (start,) = (line for part in parts if part.kind == "start" for line in part.lines)
    for number, line in enumerate(exploration.files[f"{role}.cpp"].lines, 1):
        text = line.text.strip()
        if number in operations:
            yield f"hits[{number}] += 1;"
        elif number == start or text in ("}", "} else {") or (line.node is not None and CONTROL.match(text)):
            yield text


@pytest.mark.parametrize("name", NAMES)
def test_operations_are_executed_as_often_as_a_compiler_says(name: str, tmp_path: Path) -> None:
    exploration = explored(name)
    partition = exploration.plan.partition
    assert partition is not None
    texts, expected = [HARNESS, *(FUNCTIONS[one] for one in ("floor_div", "floor_mod", "lesser", "greater"))], {}
    for role in KERNEL_ROLES:
        parts = parts_of(exploration, role)
        expected |= {(role, part.lines): part.times for part in parts if part.kind == "operation"}
        texts += [f"namespace {role} {{", *hitting(exploration, role, parts), "}"]
    texts.append("int main() {")
    for role in KERNEL_ROLES:
        signature = exploration.plan.kernel_signature(role)
        for core in partition.cores:
            words = [
                word
                for one in signature.runtime
                for word in (core.listed if one.source == "core_list" else (core.values.get(one.of, 0),))
            ]
            texts.append(f"{{ const uint32_t given[] = {{{', '.join(map(str, [*words, 0]))}}};")
            texts.append(f"arguments = given; {role}::kernel_main(); }}")
        texts.append(f'for (auto& [line, times] : hits) std::printf("{role} %d %ld\\n", line, times);\nhits.clear();')
    source, program = tmp_path / "counted.cpp", tmp_path / "counted"
    source.write_text("\n".join([*texts, "}"]))
    subprocess.run(["g++", "-std=c++17", "-w", "-o", str(program), str(source)], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    counted = {(role, int(line)): int(times) for role, line, times in map(str.split, said.splitlines())}
    assert counted
    assert expected == {(role, lines): sum(counted.get((role, line), 0) for line in lines) for role, lines in expected}
