"""Counts the cycles of every SFPU operation of the table: ``python -m benchmarks.sfpu_cycles``, after ``make device``.

Compiles one call of each with the SDK's own compiler and headers, for both chips and both widths of DST, and executes
the code: what the processor issues, with the instructions that it recorded and replays. Prints the rows of COUNTED
(`ttexplore/ops/sfpu_cycles.py` says what counts how much).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.typecheck.typecheck import Arch, _defines, _device_folders, _processor_source, _write_stand_ins
from ttexplore.ops import OPS, Op
from ttexplore.ops.sfpu_cycles import CALL_CYCLES

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / ".cache/ttnn-headers-0.81.1/ttnn/tt_metal"
SFPI = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".cache/ttexplore/device/sfpi"
BUILDS: tuple[tuple[Arch, bool], ...] = tuple(
    (arch, wide) for arch in ("wormhole_b0", "blackhole") for wide in (False, True)
)
# Where the compiled code stores instructions for the coprocessor: the symbol is left unresolved, so it is 0.
COPROCESSOR = 0
# The comparison of floats of the compiler's library; the powers that are counted have a positive exponent.
UNLINKED = 0
RETURN = 0xDEAD0
# Their results are there a cycle later; on Wormhole, the compiler leaves that cycle free.
MULTIPLY_ADDS = {"sfpmad", "sfpadd", "sfpmul", "sfpaddi", "sfpmuli", "sfplut", "sfplutfp32", "sfpmul24"}
# What changes the register that it names first reads it as well.
UPDATES = {
    "sfpstore", "sfpsetcc", "sfpgt", "sfpiadd", "sfpand", "sfpor", "sfpxor", "sfpshft", "sfpaddi", "sfpmuli", "sfpswap",
    "sfpdivp2", "sfpsetexp", "sfpsetman", "sfpsetsgn",
}  # fmt: skip
READS_NONE = {"sfpload", "sfploadi", "sfpencc", "sfpnop", "ttincrwc"}
Instruction = tuple[str, list[str]]


def compiled(op: Op, arch: Arch, wide: bool, folder: Path) -> Path:
    """The program with one call of an operation, as `body`, and its init, as `the_init`."""
    slots = iter(range(8))
    values = {
        one.name: str(next(slots)) if one.kind == "dst" else "1065353216u" if one.kind == "float" else "1"
        for one in op.operands
    }
    function = 'extern "C" __attribute__((noinline, used)) void {}() {{ {}; }}\n'
    text = "".join(f"#define {one}\n" for one in op.defines) + "#include <cstdint>\n"
    text += "".join(f'#include "{one}"\n' for one in ("api/compute/compute_kernel_api.h", op.header))
    text += function.format("the_init", op.init.format(**values)) + function.format("body", op.cpp.format(**values))
    (folder / "compute.cpp").write_text(text + "void kernel_main() { the_init(); body(); }\n")
    _write_stand_ins(folder, arch, "compute", {}, {0: "Float16_b"}, wide)
    (folder / "defines_generated.h").write_text("#pragma once\n#define NOC_MODE 0\n")
    command = [
        str(SFPI / "compiler/bin/riscv-tt-elf-g++"), f"-mcpu=tt-{'wh' if arch == 'wormhole_b0' else 'bh'}-tensix",
        "-std=c++17", "-O3", "-ffast-math", "-fno-exceptions", "-fno-tree-loop-distribute-patterns",
        "-fno-use-cxa-atexit", "-w", "-DTRISC_MATH", *(f"-D{one}" for one in _defines(arch, "compute", ())),
        f"-I{folder}", *(f"-I{one}" for one in _device_folders(HEADERS, arch)), f"-I{SFPI / 'include'}",
        "-include", "named_ct_arg_map_generated.h", "-nostartfiles", "-nostdlib",
        "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,body", "-Wl,-Ttext=0x10000",
        str(_processor_source(HEADERS, "compute")), "-o", "kernel.elf",
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=folder)
    return folder / "kernel.elf"


class Machine:
    """The processor that issues instructions to the vector unit, and what it has issued."""

    def __init__(self, program: Path) -> None:
        command = [str(SFPI / "compiler/bin/riscv-tt-elf-objdump"), "-d", "-M", "numeric,no-aliases", str(program)]
        self.code: dict[int, tuple[str, list[str], int]] = {}
        self.symbols: dict[str, int] = {}
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            if named := re.match(r"([0-9a-f]+) <(.*)>:", line):
                self.symbols[named[2]] = int(named[1], 16)
            elif one := re.match(r"\s*([0-9a-f]+):\s+([0-9a-f]{4,8})\s+(\S+)\s*([^#<]*)", line):
                operands = [operand.strip() for operand in one[4].split(",")] if one[4].strip() else []
                self.code[int(one[1], 16)] = one[3], operands, len(one[2]) // 2
        self.registers, self.memory = [0] * 32, dict[int, int]()
        self.recorded: dict[int, Instruction] = {}
        self.recording: tuple[int, int, bool] | None = None
        self.issued: list[Instruction] = []

    def run(self, name: str) -> tuple[int, list[Instruction]]:
        """Call a function: the instructions of the processor itself, and those of the vector unit."""
        self.registers[1], self.registers[2] = RETURN, 0x8000000
        self.issued, steps, at = [], 0, self.symbols[name]
        while at != RETURN:
            steps += 1
            at = self.step(at)
        return steps, self.issued

    def issue(self, name: str, operands: list[str]) -> None:
        if name == "ttreplay":
            first, count, executes, records = (int(one, 0) for one in operands[:4])
            if records:
                self.recording = first, count, bool(executes)
            else:
                self.issued += [self.recorded[place] for place in range(first, first + count)]
            return
        if self.recording:
            place, left, executes = self.recording
            self.recorded[place] = name, operands
            self.recording = (place + 1, left - 1, executes) if left > 1 else None
            if not executes:
                return
        self.issued.append((name, operands))

    def value(self, operand: str) -> int:
        return self.registers[int(operand[1:])] if operand.startswith("x") else int(operand, 0)

    def step(self, at: int) -> int:
        name, operands, size = self.code[at]
        if name.startswith(("tt", "sfp")) or name == ".insn":
            self.issue(name, operands)
            return at + size
        if name in ("sw", "lw", "lbu", "lhu", "sb", "sh", "jalr"):
            offset, base = re.fullmatch(r"(-?\d+)\((x\d+)\)", operands[1]).groups()  # type: ignore[union-attr]
            address = (int(offset) + self.value(base)) & 0xFFFFFFFF
            if name == "jalr":
                if address == UNLINKED:
                    self.set("x10", 1)
                    return at + size
                self.set(operands[0], at + size)
                return address
            if name == "sw" and address == COPROCESSOR:
                word = self.value(operands[0])
                replays = word >> 24 == 0x04
                fields = [word >> 14 & 1023, word >> 4 & 1023, word >> 1 & 1, word & 1]
                self.issue("ttreplay" if replays else "word", [*map(str, fields)] if replays else [])
            elif name.startswith("s"):
                self.memory[address] = self.value(operands[0])
            else:
                self.set(operands[0], self.memory.get(address, 0))
            return at + size
        if name in ("beq", "bne", "blt", "bge", "bltu", "bgeu"):
            a, b = (self.value(one) for one in operands[:2])
            if not name.endswith("u"):
                a, b = ((one ^ 1 << 31) - (1 << 31) for one in (a, b))
            taken = {"eq": a == b, "ne": a != b, "lt": a < b, "ge": a >= b}[name.removesuffix("u")[1:]]
            return int(operands[2], 16) if taken else at + size
        if name == "jal":
            self.set(operands[0], at + size)
            return int(operands[1], 16)
        if name == "lui":
            self.set(operands[0], int(operands[1], 0) << 12)
        elif name == "auipc":
            self.set(operands[0], at + (int(operands[1], 0) << 12))
        elif name == "zext.h":
            self.set(operands[0], self.value(operands[1]) & 0xFFFF)
        elif name != "fence":
            a, b = (self.value(one) & 0xFFFFFFFF for one in operands[1:3])
            self.set(operands[0], {
                "add": a + b, "sub": a - b, "and": a & b, "or": a | b, "xor": a ^ b, "sll": a << (b & 31),
                "srl": a >> (b & 31), "mul": a * b, "sltu": a < b, "sh1add": 2 * a + b, "sh2add": 4 * a + b,
            }[re.sub(r"^(add|and|or|xor|sll|srl)i$", r"\1", name).replace("sltiu", "sltu")])  # fmt: skip
        return at + size

    def set(self, register: str, value: int) -> None:
        if register != "x0":
            self.registers[int(register[1:])] = int(value) & 0xFFFFFFFF


def cycles(program: Path) -> int:
    machine = Machine(program)
    machine.run("the_init")
    steps, issued = machine.run("body")
    waits, before = 0, ""
    for name, operands in issued:
        registers = [one for one in operands if re.fullmatch(r"L\d+", one)]
        read = [] if name in READS_NONE else registers if name in UPDATES else registers[1:]
        waits += (before in read) + (name == "sfpswap")
        before = registers[0] if name in MULTIPLY_ADDS and registers else ""
    return max(len(issued) + waits, steps) + CALL_CYCLES


def counted(op: Op) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for arch, wide in BUILDS:
        if op.dst_bits and (op.dst_bits == 32) != wide:
            found.append(None)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found.append(cycles(compiled(op, arch, wide, Path(folder))))
    return tuple(found)


def rows() -> Iterator[str]:
    ops = sorted((op for op in OPS.values() if op.engine == "sfpu"), key=lambda op: op.name)
    with ThreadPoolExecutor(2) as workers:
        for op, (a, b, c, d) in zip(ops, workers.map(counted, ops), strict=True):
            yield f'    "{op.name}": ({a or b}, {b or a}, {c or d}, {d or c}),'


if __name__ == "__main__":
    for row in rows():
        print(row)
