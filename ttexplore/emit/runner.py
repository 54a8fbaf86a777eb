"""The stand-alone Python runner: it reads tt.plan.json and the kernels beside it, and needs only ttnn and numpy."""

from __future__ import annotations

RUNNER = '''"""Run the exported program through the real SDK: python run_ttnn.py [--inputs a.npy b.npy] [--out FOLDER].

Needs ttnn (0.81.1) and numpy, and a Tenstorrent card or a simulated chip (TT_METAL_SIMULATOR).
"""

import argparse
import json
import pathlib

import numpy as np
import ttnn

HERE = pathlib.Path(__file__).resolve().parent
FORMATS = {"Float16_b": ttnn.bfloat16, "Float32": ttnn.float32}


def tensors(plan, inputs, device):
    """Each tensor on the device, in parameter order; inputs that are not given are random."""
    random = np.random.default_rng(0)
    given = iter(inputs)
    made = {}
    for layout in sorted(plan["layouts"], key=lambda one: one["position"]):
        dtype, shape = FORMATS[layout["data_format"]], layout["shape"]
        if layout["role"] == "output":
            made[layout["name"]] = ttnn.allocate_tensor_on_device(
                ttnn.Shape(shape), dtype, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG
            )
            continue
        values = next(given, None)
        values = random.standard_normal(shape) if values is None else values
        host = ttnn.Tensor(
            np.ascontiguousarray(values, dtype=np.float32), data_type=dtype, layout=ttnn.TILE_LAYOUT
        )
        made[layout["name"]] = ttnn.to_device(host, device, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    return made


def core_ranges(plan):
    cores = [ttnn.CoreCoord(core["x"], core["y"]) for core in plan["partition"]["cores"]]
    return ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in cores])


def circular_buffers(plan, cores):
    made = []
    for buffer in plan["buffers"]:
        dtype = FORMATS[buffer["data_format"]]
        page = 4096 if buffer["data_format"] == "Float32" else 2048
        description = ttnn.CBFormatDescriptor(buffer_index=buffer["index"], data_format=dtype, page_size=page)
        total = page * buffer["block_pages"] * buffer["stages"]
        made.append(ttnn.CBDescriptor(total_size=total, core_ranges=cores, format_descriptors=[description]))
    return made


def words(arguments, on_device, values):
    made = []
    for argument in arguments:
        source, of = argument["source"], argument["of"]
        if source == "accessor":
            made += list(ttnn.TensorAccessorArgs(on_device[of]).get_compile_time_args())
        elif source == "tensor_address":
            made.append(on_device[of].buffer_address())
        elif source == "core_value":
            made.append(values[of])
        elif source == "constant":
            made.append(argument["value"])
        else:
            raise ValueError(f"unknown argument source {source}")
    return made


def configuration(kernel, plan):
    if kernel == "reader":
        return ttnn.ReaderConfigDescriptor()
    if kernel == "writer":
        return ttnn.WriterConfigDescriptor()
    compute = plan["compute"]
    made = ttnn.ComputeConfigDescriptor(
        math_fidelity=getattr(ttnn.MathFidelity, compute["math_fidelity"]),
        math_approx_mode=compute["math_approx_mode"],
        fp32_dest_acc_en=compute["fp32_dest_acc_en"],
        dst_full_sync_en=compute["dst_full_sync_en"],
    )
    exact = [buffer["index"] for buffer in plan["buffers"] if buffer["unpack_to_dest"]]
    if exact:
        modes = ttnn._ttnn.program_descriptor.VectorUnpackToDestMode([ttnn.UnpackToDestMode.Default] * 64)
        for index in exact:
            modes[index] = ttnn.UnpackToDestMode.UnpackToDestFp32
        made.unpack_to_dest_mode = modes
    return made


def program(plan, on_device):
    cores = core_ranges(plan)
    kernels = []
    for signature in plan["signature"]:
        name = signature["kernel"]
        per_core = ttnn.RuntimeArgs()
        for core in plan["partition"]["cores"]:
            per_core[core["x"]][core["y"]] = words(signature["runtime"], on_device, core["values"])
        kernels.append(
            ttnn.KernelDescriptor(
                kernel_source=str(HERE / f"{name}.cpp"),
                core_ranges=cores,
                compile_time_args=words(signature["compile_time"], on_device, {}),
                common_runtime_args=words(signature["common_runtime"], on_device, {}),
                runtime_args=per_core,
                config=configuration(name, plan),
            )
        )
    return ttnn.ProgramDescriptor(kernels=kernels, cbs=circular_buffers(plan, cores), semaphores=[])


def to_numpy(tensor):
    host = tensor.cpu().to(ttnn.ROW_MAJOR_LAYOUT)
    if host.dtype == ttnn.bfloat16:
        host = ttnn.to_dtype(host, ttnn.float32)
    return np.array(np.from_dlpack(host.to_numpy()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", nargs="*", default=[], help="one .npy file for each input tensor, in order")
    parser.add_argument("--out", default=str(HERE), help="folder for the output tensors, one .npy file each")
    options = parser.parse_args()
    plan = json.loads((HERE / "tt.plan.json").read_text())
    device = ttnn.open_device(device_id=0)
    try:
        on_device = tensors(plan, [np.load(file) for file in options.inputs], device)
        order = sorted(plan["layouts"], key=lambda one: (one["role"] == "output", one["position"]))
        operands = [on_device[layout["name"]] for layout in order]
        # The SDK wants an input and an output: a program that only writes names its output twice.
        operands = operands * 2 if len(operands) == 1 else operands
        ttnn.generic_op(operands, program(plan, on_device))
        ttnn.synchronize_device(device)
        for layout in order:
            if layout["role"] == "output":
                values = to_numpy(on_device[layout["name"]]).reshape(layout["shape"])
                file = pathlib.Path(options.out) / f"{layout['name']}.npy"
                np.save(file, values)
                print(f"{layout['name']} {values.shape} -> {file}")
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
'''
