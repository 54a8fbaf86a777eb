"""Run the exported program through the real SDK: python run_ttnn.py [--inputs a.npy b.npy] [--out FOLDER].

Needs ttnn (0.81.1) and numpy, and a Tenstorrent card or a simulated chip (TT_METAL_SIMULATOR).
"""

import argparse
import json
import pathlib

import numpy as np
import ttnn

HERE = pathlib.Path(__file__).resolve().parent
# By tile format: the SDK's dtype, the bytes of a tile, NumPy's dtype on the host.
FORMATS = {
    "Float16_b": (ttnn.bfloat16, 2048, np.float32),
    "Float32": (ttnn.float32, 4096, np.float32),
    "Int32": (ttnn.int32, 4096, np.int32),
    "Bfp8_b": (ttnn.bfloat8_b, 1088, np.float32),
}
# Dtypes of 8 bits and fewer, which are stored as bfloat16: the bits of the fraction, the exponent of the smallest
# normal number and the largest number; the least and the largest integer.
SMALL_FLOATS = {
    "float8_e4m3fn": (3, -6, 448.0),
    "float8_e5m2": (2, -14, 57344.0),
    "float8_e4m3fnuz": (3, -7, 240.0),
    "float8_e5m2fnuz": (2, -15, 57344.0),
    "float8_e3m4": (4, -2, 15.5),
    "float8_e4m3b11fnuz": (3, -10, 30.0),
    "float6_e2m3fn": (3, 0, 7.5),
    "float6_e3m2fn": (2, -2, 28.0),
    "float4_e2m1fn": (1, 0, 6.0),
}
SMALL_INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255)}
# What an output holds where no kernel writes: integers have no NaN.
UNWRITTEN = {np.float32: np.nan, np.int32: -0x21524111}


def load_plan():
    return json.loads((HERE / "tt.plan.json").read_text(encoding="utf-8"))


def check_chip(plan, device):
    """The kernels are compiled for whatever chip there is; a plan for another one would run there unnoticed."""
    chip = str(device.arch()).rpartition(".")[2].lower()
    if plan["target"].partition("_")[0] != chip.partition("_")[0]:
        raise SystemExit(f"the program is for {plan['target']}, the device is a {chip}")


def cast(values, dtype):
    """Numbers as a tensor of the kernel's dtype holds them: rounded to the nearest, ties to even, but not beyond the
    largest; of integers the lowest bits."""
    if dtype == "bool":
        return values != 0
    if dtype in SMALL_INTEGERS:
        low, high = SMALL_INTEGERS[dtype]
        return (np.trunc(values).astype(np.int64) - low & high - low) + low
    if dtype not in SMALL_FLOATS:
        return values
    fraction_bits, least_exponent, largest = SMALL_FLOATS[dtype]
    inside = np.clip(np.asarray(values, np.float32), -largest, largest)
    step = np.ldexp(1.0, np.maximum(np.frexp(inside)[1] - 1, least_exponent) - fraction_bits)
    return np.rint(inside / step) * step


def tensors(plan, inputs, device):
    """Each tensor on the device, in parameter order; inputs that are not given are random.

    Outputs start as NaN, or a conspicuous integer: an element that no kernel writes is seen, not taken from what lay
    there before.
    """
    random = np.random.default_rng(0)
    arrays = iter(inputs)
    on_device = {}
    for layout in sorted(plan["layouts"], key=lambda layout: layout["position"]):
        shape = layout["shape"]
        dtype, _, on_host = FORMATS[layout["data_format"]]
        values = None if layout["role"] == "output" else next(arrays, None)
        if layout["role"] == "output":
            values = np.full(shape, UNWRITTEN[on_host])
        elif values is None:
            values = random.standard_normal(shape) if on_host is np.float32 else random.integers(-99, 100, shape)
        elif list(values.shape) != shape:
            raise SystemExit(f"{layout['name']} has shape {tuple(shape)}, its input {values.shape}")
        values = values if layout["role"] == "output" else cast(values, layout["dtype"])
        host = ttnn.Tensor(
            np.ascontiguousarray(values, dtype=on_host),
            data_type=dtype,
            layout=ttnn.ROW_MAJOR_LAYOUT if layout["page"] == "row" else ttnn.TILE_LAYOUT,
        )
        on_device[layout["name"]] = ttnn.to_device(host, device, memory_config=memory_config(layout))
    return on_device


def memory_config(layout):
    """Where the tensor lies: DRAM or L1, interleaved or in shards."""
    memory = {"dram": ttnn.BufferType.DRAM, "l1": ttnn.BufferType.L1}[layout["memory"]]
    sharding = layout["sharding"]
    if sharding is None:
        return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, memory)
    kind = getattr(ttnn.TensorMemoryLayout, sharding["kind"].upper() + "_SHARDED")
    order = {"row_major": ttnn.ShardOrientation.ROW_MAJOR, "column_major": ttnn.ShardOrientation.COL_MAJOR}
    cores = [ttnn.CoreCoord(x, y) for x, y in sharding["cores"]]
    ranges = [ttnn.CoreRange(core, core) for core in cores]
    if sharding["kind"] == "block":
        ranges = [ttnn.CoreRange(cores[0], cores[-1])]
    shards = ttnn.ShardSpec(ttnn.CoreRangeSet(ranges), sharding["shard_shape"], order[sharding["order"]])
    return ttnn.MemoryConfig(kind, memory, shards)


def core_ranges(plan):
    cores = [ttnn.CoreCoord(core["x"], core["y"]) for core in plan["partition"]["cores"]]
    return ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in cores])


def circular_buffers(plan, cores, on_device):
    descriptors = []
    # Buffers with one index are one circular buffer.
    for buffer in {buffer["index"]: buffer for buffer in plan["buffers"]}.values():
        if buffer["shard_of"]:
            shard = on_device[buffer["shard_of"]]
            descriptors.append(ttnn.cb_descriptor_from_sharded_tensor(buffer["index"], shard, core_ranges=cores))
            continue
        dtype, page, _ = FORMATS[buffer["data_format"]]
        description = ttnn.CBFormatDescriptor(buffer_index=buffer["index"], data_format=dtype, page_size=page)
        total = page * buffer["block_pages"] * buffer["stages"]
        descriptors.append(ttnn.CBDescriptor(total_size=total, core_ranges=cores, format_descriptors=[description]))
    return descriptors


def words(arguments, on_device, values, listed=(), device=None):
    numbers = []
    for argument in arguments:
        source, of = argument["source"], argument["of"]
        if source == "accessor":
            numbers += list(ttnn.TensorAccessorArgs(on_device[of]).get_compile_time_args())
        elif source == "tensor_address":
            numbers.append(on_device[of].buffer_address())
        elif source == "core_value":
            numbers.append(values[of])
        elif source in ("noc_x", "noc_y"):
            worker = device.worker_core_from_logical_core(ttnn.CoreCoord(values[of + "_x"], values[of + "_y"]))
            numbers.append(worker.x if source == "noc_x" else worker.y)
        elif source == "core_list":
            numbers += listed
        elif source == "constant":
            numbers.append(argument["value"])
        else:
            raise ValueError(f"unknown argument source {source}")
    return numbers


def configuration(kernel, plan):
    if kernel == "reader":
        return ttnn.ReaderConfigDescriptor()
    if kernel == "writer":
        return ttnn.WriterConfigDescriptor()
    compute = plan["compute"]
    config = ttnn.ComputeConfigDescriptor(
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
        config.unpack_to_dest_mode = modes
    return config


def semaphores(plan, cores):
    names = {"shared": ("ready", "valid"), "partials": ("room", "arrived")}
    numbers = sorted(record[name] for kind, fields in names.items() for record in plan[kind] for name in fields)
    return [ttnn.SemaphoreDescriptor(id=number, core_ranges=cores, initial_value=0) for number in numbers]


def program(plan, on_device):
    device = next(iter(on_device.values())).device()
    cores = core_ranges(plan)
    kernels = []
    for signature in plan["signature"]:
        name = signature["kernel"]
        per_core = ttnn.RuntimeArgs()
        for core in plan["partition"]["cores"]:
            arguments = words(signature["runtime"], on_device, core["values"], core["listed"], device)
            per_core[core["x"]][core["y"]] = arguments
        kernels.append(
            ttnn.KernelDescriptor(
                kernel_source=str((HERE / f"{name}.cpp").resolve()),
                core_ranges=cores,
                compile_time_args=words(signature["compile_time"], on_device, {}),
                common_runtime_args=words(signature["common_runtime"], on_device, {}),
                runtime_args=per_core,
                config=configuration(name, plan),
            )
        )
    buffers = circular_buffers(plan, cores, on_device)
    return ttnn.ProgramDescriptor(kernels=kernels, cbs=buffers, semaphores=semaphores(plan, cores))


def launch(plan, on_device):
    """Compiles the kernels, if they are not in the SDK's cache, and starts the program."""
    order = sorted(plan["layouts"], key=lambda layout: (layout["role"] != "input", layout["position"]))
    operands = [on_device[layout["name"]] for layout in order]
    # The SDK wants an input and an output: a program that only writes names its output twice.
    operands = operands * 2 if len(operands) == 1 else operands
    ttnn.generic_op(operands, program(plan, on_device))


def results(plan, on_device):
    """The tensors that the program writes, by name, as float32 or int32."""
    arrays = {}
    for layout in sorted(plan["layouts"], key=lambda layout: layout["position"]):
        if layout["role"] != "input":
            host = on_device[layout["name"]].cpu()
            host = host if host.dtype == ttnn.int32 else ttnn.to_dtype(host, ttnn.float32)
            host = host.to(ttnn.ROW_MAJOR_LAYOUT)
            arrays[layout["name"]] = np.array(np.from_dlpack(host.to_numpy())).reshape(layout["shape"])
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", nargs="*", default=[], help="one .npy file for each input tensor, in order")
    parser.add_argument("--out", default=str(HERE), help="folder for the output tensors, one .npy file each")
    options = parser.parse_args()
    plan = load_plan()
    device = ttnn.open_device(device_id=0)
    try:
        check_chip(plan, device)
        on_device = tensors(plan, [np.load(file) for file in options.inputs], device)
        launch(plan, on_device)
        ttnn.synchronize_device(device)
        for name, values in results(plan, on_device).items():
            file = pathlib.Path(options.out) / f"{name}.npy"
            np.save(file, values)
            print(f"{name} {values.shape} -> {file}")
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
