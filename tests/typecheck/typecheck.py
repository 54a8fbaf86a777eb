"""Type-checks device kernels against the real headers of the ttnn wheel, with the C++ compiler of the host.

Nothing is generated and nothing runs. The SDK compiles a kernel into the translation unit of the processor it runs on
and writes some headers for it first; here stand-ins for those headers are written, and the compiler only parses.
Compute kernels are checked at the level of the kernel API: none of the three compute processors is selected, so what
is inside UNPACK, MATH and PACK vanishes, and the vendor's vector compiler is not needed.

The standard headers are the host's, read as if for 32 bits. All include folders are named explicitly, so it makes no
difference whether the host has 32-bit libraries.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from tests.typecheck.known import compiler, keep, place, recall

Role = Literal["reader", "compute", "writer"]
Arch = Literal["wormhole_b0", "blackhole"]

# The values of the SDK's DataFormat and the bytes of a 32x32 tile (tt_metal/hw/inc, tt-1xx data format headers).
_FORMATS: dict[str, tuple[int, int]] = {
    "Float32": (0, 4096),
    "Float16_b": (5, 2048),
    "Bfp8_b": (6, 1088),
    "Bfp4_b": (7, 576),
    "Int32": (8, 4096),
}
_UNUSED_FORMAT = 255

# The translation unit that the SDK compiles each kernel into, below tt_metal/hw/firmware/src/tt-1xx.
_PROCESSOR_SOURCES: dict[Role, str] = {"reader": "ncrisck.cc", "compute": "trisck.cc", "writer": "brisck.cc"}

# The first include there that depends on the kernel, and what it or those after it include before the kernel's text.
_FIRST_OF_THE_KERNEL: dict[Role, str] = {
    "reader": '#include "internal/firmware_common.h"',
    "compute": '#include "api/compile_time_args.h"',
    "writer": '#include "internal/firmware_common.h"',
}
_INCLUDED_NEXT: dict[Role, tuple[str, ...]] = {
    "reader": ("<array>", "<optional>", "<tuple>", "<variant>", "<cstring>"),
    "compute": ("<array>", '"ckernel.h"', '"ckernel_gpr_map.h"', '"llk_param_structs.h"'),
    "writer": ("<array>", "<optional>", "<tuple>", "<variant>", "<cstring>"),
}
_PRELUDE = "prelude.h"
_ENVIRONMENT = {**os.environ, "LC_ALL": "C"}

_FLOATN_H = """\
#ifndef _BITS_FLOATN_H
#define _BITS_FLOATN_H
#define __HAVE_FLOAT128 0
#define __HAVE_DISTINCT_FLOAT128 0
#define __HAVE_FLOAT64X 0
#define __HAVE_FLOAT64X_LONG_DOUBLE 0
#include <bits/floatn-common.h>
#endif
"""
# The host's libstdc++ is configured for a C library with these two; 32-bit headers do not declare them.
_PTHREAD_H = """\
#pragma once
#include <pthread.h>
#include <time.h>
extern "C" int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
extern "C" int pthread_mutex_clocklock(pthread_mutex_t*, clockid_t, const struct timespec*);
"""
# The two headers that come with the vendor's compiler; Blackhole's kernel API names some of the first one's contents.
_LLTT_H = """\
#pragma once
namespace lltt {
enum ExecBool : bool { NoExec, Exec };
template <class... T> inline void record(T...) {}
template <ExecBool = NoExec, class... T> inline void record(T...) {}
template <class... T> inline void replay(T...) {}
template <class... T> constexpr unsigned replay_insn(T...) { return 0; }
}
"""


def typecheck(
    text: str,
    *,
    role: Role,
    arch: Arch,
    compile_time_args: Sequence[int] = (),
    named: Mapping[str, int] | None = None,
    formats: Mapping[int, str] | None = None,
    fp32_dest_acc: bool = False,
    headers: Path,
    remember: bool = False,
) -> list[str]:
    """The errors and warnings of the kernel `text`, each ``"reader.cpp:12: error: ..."``; empty when it is clean.

    `formats` gives the data format by circular buffer index, `headers` the folder that holds the wheel's ``ttnn/``.
    With `remember`, what was clean before is not compiled again. Raises FileNotFoundError where no g++ is installed.
    """
    given = (text, role, arch, [*compile_time_args], dict(named or {}), dict(formats or {}), fp32_dest_acc)
    known = place(headers, __file__, given) if remember else None
    if known is not None and recall(known) is not None:
        return []
    root = headers / "ttnn" / "tt_metal"
    shared = Path(_shared(root, arch, role).name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        kernel = folder / f"{role}.cpp"
        kernel.write_text(text, encoding="utf-8")
        _write_stand_ins(folder, arch, role, named or {}, formats or {}, fp32_dest_acc)
        command = [
            *_command(root, arch, role, shared, compile_time_args), "-fsyntax-only", f"-I{folder}",
            "-include", _PRELUDE, "-include", "named_ct_arg_map_generated.h", str(_processor_source(root, role)),
        ]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, cwd=shared, env=_ENVIRONMENT)
        found = _diagnostics(result.stderr, kernel, failed=result.returncode != 0)
    if known is not None and not found:
        keep(known, "")
    return found


def _command(root: Path, arch: Arch, role: Role, shared: Path, compile_time_args: Sequence[int]) -> list[str]:
    return [
        compiler(), "-m32", "-std=gnu++17", "-O2", "-Wall", "-fpermissive",
        "-Wno-attributes", "-Wno-unknown-pragmas", "-Wno-unused-variable", "-Wno-unused-function",
        "-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-nostdinc", "-nostdinc++",
        f"-I{shared / 'overlay'}", f"-I{shared}", *(f"-I{path}" for path in _device_folders(root, arch)),
        "-isystem", str(shared / "system"), *(f"-isystem{path}" for path in _host_folders()),
        *(f"-D{define}" for define in _defines(arch, role, compile_time_args)),
    ]  # fmt: skip


def _processor_source(root: Path, role: Role) -> Path:
    return root / "hw/firmware/src/tt-1xx" / _PROCESSOR_SOURCES[role]


@functools.cache
def _shared(root: Path, arch: Arch, role: Role) -> tempfile.TemporaryDirectory[str]:
    """What all kernels of a processor have in common: the stand-ins that are the same for all, and, compiled once, what
    the processor's source includes before anything that depends on the kernel. It lives as long as this process."""
    made = tempfile.TemporaryDirectory()
    folder = Path(made.name)
    head, first, _ = _processor_source(root, role).read_text(encoding="utf-8").partition(_FIRST_OF_THE_KERNEL[role])
    if not first:
        raise ValueError(f"{_PROCESSOR_SOURCES[role]} does not include {_FIRST_OF_THE_KERNEL[role]}")
    files = {
        "system/gnu/stubs-32.h": "",
        "system/bits/floatn.h": _FLOATN_H,
        "system/pthread_clock.h": _PTHREAD_H,
        "system/lltt.h": _LLTT_H,
        "system/sfpi.h": "#pragma once\n",
        "defines_generated.h": "#pragma once\n#define NOC_MODE 0\n",
        _PRELUDE: "#include <pthread_clock.h>\n" + head + "".join(f"#include {one}\n" for one in _INCLUDED_NEXT[role]),
    }
    # Compilers before g++ 13 reject static_assert(false) in a template that is never instantiated.
    for header, relaxed in _relaxed_headers(root).items():
        files[f"overlay/{header}"] = relaxed
    _write(folder, files)
    # What depends on the kernel must not get in.
    _write(folder, {"of_the_kernel/chlkc_descriptors.h": '#error "depends on the kernel"\n'})
    command = [
        *_command(root, arch, role, folder, ()), f"-I{folder / 'of_the_kernel'}",
        "-x", "c++-header", _PRELUDE, "-o", f"{_PRELUDE}.gch",
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=_ENVIRONMENT)
    return made


def _diagnostics(output: str, kernel: Path, *, failed: bool) -> list[str]:
    """Errors anywhere, and warnings in the kernel; what is wrong in a header is told with the kernel's line."""
    found: list[str] = []
    place = ""
    for line in output.splitlines():
        if seen := re.search(rf"{re.escape(str(kernel))}:(\d+)", line):
            place = f"{kernel.name}:{seen[1]}"
        match = re.match(r"(.+?):(\d+)(?::\d+)?: (fatal error|error|warning): (.*)", line)
        if match is None:
            continue
        file, number, severity, message = match.groups()
        if file == str(kernel):
            found.append(f"{kernel.name}:{number}: {severity.removeprefix('fatal ')}: {message}")
        elif severity != "warning":
            found.append(f"{place or kernel.name}: error: {message} (in {Path(file).name}:{number})")
    if failed and not found:
        found.append(f"{kernel.name}: error: {output.strip() or 'the compiler failed without a message'}")
    return list(dict.fromkeys(found))


@functools.cache
def _host_folders() -> tuple[str, ...]:
    """The compiler's own include folders (for 64 bits, which every installation has)."""
    result = subprocess.run(
        [compiler(), "-x", "c++", "-E", "-v", "/dev/null"],
        capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    listed = result.stderr.split("#include <...> search starts here:")[1].split("End of search list.")[0]
    return tuple(os.path.normpath(line.strip()) for line in listed.splitlines() if line.strip())


def _device_folders(root: Path, arch: Arch) -> list[Path]:
    short = arch.removesuffix("_b0")
    names = (
        "hw/inc", "", "..", "tt-llk/common", "tt-llk/tools/include", "hostdevcommon/api", "api",
        f"hw/ckernels/{arch}/metal/common", f"hw/ckernels/{arch}/metal/llk_io", "hw/inc/internal/tt-1xx",
        f"hw/inc/internal/tt-1xx/{short}", f"hw/inc/internal/tt-1xx/{short}/{arch}_defines",
        f"hw/inc/internal/tt-1xx/{short}/noc", f"tt-llk/tt_llk_{arch}/common/inc", f"tt-llk/tt_llk_{arch}/llk_lib",
        f"hw/ckernels/{arch}/metal/llk_api", f"hw/ckernels/{arch}/metal/llk_api/llk_sfpu", "hw/firmware/src/tt-1xx",
    )  # fmt: skip
    return [root / name for name in names]


def _defines(arch: Arch, role: Role, compile_time_args: Sequence[int]) -> list[str]:
    """What the SDK's build defines on the command line, for cards with every DRAM bank and worker."""
    match arch:
        case "wormhole_b0":
            chip = ["ARCH_WORMHOLE", "NUM_DRAM_BANKS=12", "IS_NOT_POW2_NUM_DRAM_BANKS=1", "NUM_L1_BANKS=64",
                    "LOG_BASE_2_OF_NUM_L1_BANKS=6"]  # fmt: skip
        case "blackhole":
            chip = ["ARCH_BLACKHOLE", "NUM_DRAM_BANKS=8", "LOG_BASE_2_OF_NUM_DRAM_BANKS=3", "NUM_L1_BANKS=110",
                    "IS_NOT_POW2_NUM_L1_BANKS=1"]  # fmt: skip
    match role:
        case "compute":
            processor = ["COMPILE_FOR_TRISC=1", "UCK_CHLKC_MATH", "PROCESSOR_INDEX=3"]
        case "reader":
            processor = ["COMPILE_FOR_NCRISC", "NOC_INDEX=0", "NOC_MODE=0", "PROCESSOR_INDEX=1"]
        case "writer":
            processor = ["COMPILE_FOR_BRISC", "NOC_INDEX=1", "NOC_MODE=0", "PROCESSOR_INDEX=0"]
    arguments = [f"KERNEL_COMPILE_TIME_ARGS={','.join(map(str, compile_time_args))}"] if compile_time_args else []
    return [
        *chip, *processor, *arguments, "KERNEL_BUILD", "TENSIX_FIRMWARE", "LOCAL_MEM_EN=0", "PCIE_NOC_X=0",
        "PCIE_NOC_Y=3", "PROGRAMMABLE_CORE_TYPE=0", "DISPATCH_MESSAGE_ADDR=4290183304", 'FULL_KERNEL_NAME="kernel"',
        "ROUTING_FW_ENABLED",
    ]  # fmt: skip


def _write_stand_ins(
    folder: Path, arch: Arch, role: Role, named: Mapping[str, int], formats: Mapping[int, str], fp32_dest_acc: bool
) -> None:
    """Those that depend on the kernel."""
    files = {
        "chlkc_descriptors.h": _descriptors(32 if arch == "wormhole_b0" else 64, formats, fp32_dest_acc),
        "named_ct_arg_map_generated.h": _named_arguments(named),
    }
    include = f'void kernel_main();\n#include "{folder / role}.cpp"\n'
    match role:
        case "compute":
            files["chlkc_math.cpp"] = '#include "defines_generated.h"\n' + include
        case "reader" | "writer":
            files["kernel_includes.hpp"] = include
    _write(folder, files)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


@functools.cache
def _relaxed_headers(root: Path) -> dict[str, str]:
    relaxed: dict[str, str] = {}
    for header in sorted((root / "hw/inc/api").rglob("*.h")):
        text = header.read_text(encoding="utf-8", errors="replace")
        if re.search(r"static_assert\(\s*false\b", text):
            name = str(header.relative_to(root / "hw/inc"))
            relaxed[name] = re.sub(r"static_assert\(\s*false\s*,\s*\"[^\"]*\"\s*\);", ";", text)
    return relaxed


def _named_arguments(named: Mapping[str, int]) -> str:
    pairs = ",".join(f'{{"{name}",{value}}}' for name, value in named.items())
    return "#pragma once\n#include <cstdint>\n" + (f"#define KERNEL_COMPILE_TIME_ARG_MAP {pairs}\n" if pairs else "")


def _descriptors(circular_buffers: int, formats: Mapping[int, str], fp32_dest_acc: bool) -> str:
    """The formats and tile shapes of each circular buffer, as the SDK writes them for one kernel."""
    codes = [_UNUSED_FORMAT] * circular_buffers
    sizes = [1088] * circular_buffers
    for index, name in formats.items():
        codes[index], sizes[index] = _FORMATS[name]

    def array(kind: str, name: str, values: Sequence[int]) -> str:
        return f"constexpr {kind} {name}[{circular_buffers}] = {{{','.join(map(str, values))}}};"

    tile = {
        "tile_num_faces": 4, "partial_face": 0, "tile_face_r_dim": 16, "narrow_tile": 0, "tile_r_dim": 32,
        "tile_c_dim": 32, "num_faces_r_dim": 2, "num_faces_c_dim": 2,
    }  # fmt: skip
    lines = [
        "#pragma once",
        '#include "llk_defs.h"',
        "constexpr ckernel::MathFidelity MATH_FIDELITY = static_cast<ckernel::MathFidelity>(4);",
        "constexpr bool APPROX = false;",
        f"constexpr bool DST_ACCUM_MODE = {str(fp32_dest_acc).lower()};",
        "#define DST_SYNC_MODE DstSync::SyncHalf",
    ]
    for side, kind in (("unpack", "uint8_t"), ("pack", "unsigned char")):
        lines += [array(kind, f"{side}_{end}_format", codes) for end in ("src", "dst")]
        lines += [array("uint8_t", f"{side}_{name}", [value] * circular_buffers) for name, value in tile.items()]
        lines.append(array("uint16_t", f"{side}_tile_size", sizes))
    return "\n".join(lines) + "\n"
