"""Run all launches of the exported kernel through the real SDK: python run_launches.py [--inputs a.npy b.npy]
[--out FOLDER].

Needs ttnn (0.81.1) and numpy, and a Tenstorrent card or a simulated chip (TT_METAL_SIMULATOR). Each launch lies in a
folder of its own, with a runner of its own; what one writes goes through the host to those that read it.
"""

import argparse
import importlib.util
import json
import pathlib

import numpy as np
import ttnn

HERE = pathlib.Path(__file__).resolve().parent


def runner(folder):
    """The run_ttnn.py of a launch, as a module."""
    specification = importlib.util.spec_from_file_location(f"run_{folder}", HERE / folder / "run_ttnn.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run(folder, arrays, device):
    """Run a launch on the tensors of these names; those that it writes take their places."""
    module = runner(folder)
    plan = module.load_plan()
    module.check_chip(plan, device)
    layouts = sorted(plan["layouts"], key=lambda layout: layout["position"])
    # What nothing has been stored to holds zeros.
    inputs = [
        arrays[layout["name"]] if layout["name"] in arrays else np.zeros(layout["shape"])
        for layout in layouts
        if layout["role"] != "output"
    ]
    on_device = module.tensors(plan, inputs, device)
    module.launch(plan, on_device)
    ttnn.synchronize_device(device)
    arrays.update(module.results(plan, on_device))


def main():
    description = json.loads((HERE / "launches.json").read_text(encoding="utf-8"))
    names = [tensor["name"] for tensor in description["inputs"]]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", nargs="*", help=f"one .npy file for each of {', '.join(names)}; random without")
    parser.add_argument("--out", default=str(HERE), help="folder for the output tensors, one .npy file each")
    options = parser.parse_args()
    if options.inputs is None:
        random = np.random.default_rng(0)
        arrays = [
            random.integers(0, 2, tensor["shape"])
            if "float" not in tensor["dtype"]
            else random.standard_normal(tensor["shape"])
            for tensor in description["inputs"]
        ]
    else:
        arrays = [np.load(file) for file in options.inputs]
    if len(arrays) != len(names):
        raise SystemExit(f"the kernel takes {len(names)} inputs, {', '.join(names)}; {len(arrays)} are given")
    tensors = dict(zip(names, arrays, strict=True))
    device = ttnn.open_device(device_id=0)
    try:
        for folder in description["launches"]:
            run(folder, tensors, device)
        for tensor in description["outputs"]:
            name = tensor["name"]
            file = pathlib.Path(options.out) / f"{name}.npy"
            np.save(file, tensors[name])
            print(f"{name} {tensors[name].shape} -> {file}")
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
